"""A physics engine for articulated rigid bodies on NVIDIA Warp: thousands of robots at once, on CPU and GPU."""

from newton_like.dynamics.forces import eval_inverse_dynamics
from newton_like.dynamics.matrices import eval_mass_matrix
from newton_like.kinematics import eval_fk, eval_ik, eval_jacobian
from newton_like.mechanism import MechanismState
from newton_like.model import Contacts, Control, JointDofConfig, Model, ModelBuilder, ShapeConfig, State
from newton_like.types import MAXVAL, Axis, BodyFlags, GeoType, JointTargetMode, JointType, ModelFlags, ShapeFlags

__version__ = "0.1.0"

__all__ = [
    "MAXVAL",
    "Axis",
    "BodyFlags",
    "Contacts",
    "Control",
    "GeoType",
    "JointDofConfig",
    "JointTargetMode",
    "JointType",
    "MechanismState",
    "Model",
    "ModelBuilder",
    "ModelFlags",
    "ShapeConfig",
    "ShapeFlags",
    "State",
    "eval_fk",
    "eval_ik",
    "eval_inverse_dynamics",
    "eval_jacobian",
    "eval_mass_matrix",
]
