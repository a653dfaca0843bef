"""One robot, as a control engineer sees it: the names and conventions of the robot SDK ``rby1_sdk.dynamics``.

Twists ``[w, v]``, wrenches ``[m, f]`` and screws have the angular part first (Lynch and Park 2017, "Modern Robotics"), unlike the other
packages of newton_like. Poses are homogeneous transforms ``[4, 4]``; ``T_ab`` is the pose of frame b in frame a. All numbers are in double
precision and SI units. The velocity of a mobile base is ``[w, vx, vy]``.

Errors are of the kinds of the SDK, see :mod:`newton_like.robot.errors`.
"""

from newton_like.robot.control.controllers import (
    computed_torque,
    gravity_compensation,
    operational_space_control,
    task_space_impedance,
)
from newton_like.robot.control.ik import IKResult, solve_ik
from newton_like.robot.control.qp import PoseTask, QPPath, QPStep, solve_ik_qp, solve_qp_step
from newton_like.robot.errors import (
    RobotError,
    RobotFileError,
    RobotFileNotFoundError,
    RobotIndexError,
    RobotNameError,
    ShapeError,
)
from newton_like.robot.fixed_size import Robot_18, Robot_24, Robot_26, State_18, State_24, State_26
from newton_like.robot.from_model import from_model
from newton_like.robot.nearest import Distances
from newton_like.robot.robot import Robot
from newton_like.robot.state import State
from newton_like.robot.structure.collision import Collision, CollisionResult, Geom, GeomCapsule, GeomType
from newton_like.robot.structure.configuration import RobotConfiguration
from newton_like.robot.structure.joint import Joint
from newton_like.robot.structure.link import Link
from newton_like.robot.structure.mobile_base import (
    MobileBase,
    MobileBaseDifferential,
    MobileBaseMecanum,
    MobileBaseType,
    blocked_velocity,
    integrate_odometry,
    slip,
    velocity_matrix,
    wheel_axes,
    wheel_matrix,
    wheel_roles,
)
from newton_like.robot.structure.urdf import load_robot_from_urdf, load_robot_from_urdf_data

__all__ = [
    "Collision",
    "CollisionResult",
    "Distances",
    "Geom",
    "GeomCapsule",
    "GeomType",
    "IKResult",
    "Joint",
    "Link",
    "MobileBase",
    "MobileBaseDifferential",
    "MobileBaseMecanum",
    "MobileBaseType",
    "PoseTask",
    "QPPath",
    "QPStep",
    "Robot",
    "RobotConfiguration",
    "RobotError",
    "RobotFileError",
    "RobotFileNotFoundError",
    "RobotIndexError",
    "RobotNameError",
    "Robot_18",
    "Robot_24",
    "Robot_26",
    "ShapeError",
    "State",
    "State_18",
    "State_24",
    "State_26",
    "blocked_velocity",
    "computed_torque",
    "from_model",
    "gravity_compensation",
    "integrate_odometry",
    "load_robot_from_urdf",
    "load_robot_from_urdf_data",
    "operational_space_control",
    "slip",
    "solve_ik",
    "solve_ik_qp",
    "solve_qp_step",
    "task_space_impedance",
    "velocity_matrix",
    "wheel_axes",
    "wheel_matrix",
    "wheel_roles",
]
