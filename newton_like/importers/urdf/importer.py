"""Imports URDF robots into a :class:`newton_like.model.builder.builder.ModelBuilder`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.coercion import as_number
from newton_like.importers.newton_options import URDF, refuses_others
from newton_like.importers.shared import report_of, unchanged_by_errors, warn
from newton_like.importers.urdf.build import RobotBuilder, UrdfOptions
from newton_like.importers.urdf.motors import SafetyController, Transmission, reflect_rotors, use_soft_limits
from newton_like.importers.urdf.parse import parse_robot
from newton_like.importers.xml_source import read_xml
from newton_like.model.arguments import check_choice
from newton_like.types import Axis


class UrdfWarning(UserWarning):
    """Warning: a URDF file is ambiguous, or has parts that are ignored."""


@dataclass(frozen=True)
class UrdfImport:
    """Report of :func:`add_urdf`.

    Attributes:
        name: name of the robot; labels are ``<name>/<link>`` and ``<name>/<joint>``.
        articulation: index of the articulation of the joints.
        base_joint: index of the joint of the root link.
        links: body index by link name. Links that collapsed fixed joints connect share one body.
        joints: joint index by joint name, without collapsed ones.
        frames: ``(body index, pose of the link frame in the body's link frame)`` by link name.
        shapes: shape indices by link name, collisions before visuals.
        remarks: statements about the file, each with the names of the entities concerned.
        not_understood: numbers of items that were ignored: elements by ``parent/tag``, attributes by ``tag@name``,
            text by ``tag/text``.
        unused: numbers of elements without meaning for a simulation (``calibration``), by ``parent/tag``.
        transmissions: see :class:`Transmission`.
        safety: soft limits and gains of the joints' safety controllers, by joint name; see :class:`SafetyController`.
    """

    name: str
    articulation: int
    base_joint: int
    links: dict[str, int]
    joints: dict[str, int]
    frames: dict[str, tuple[int, np.ndarray]]
    shapes: dict[str, list[int]]
    remarks: dict[str, list[str]]
    not_understood: dict[str, int]
    unused: dict[str, int]
    transmissions: list[Transmission]
    safety: dict[str, SafetyController]

    @property
    def bodies(self) -> dict[str, int]:
        """The same as ``links``."""
        return self.links


@refuses_others(URDF)
def add_urdf(
    builder,
    source,
    *,
    xform=None,
    override_root_xform: bool = False,
    floating: bool | None = None,
    base_joint: dict | None = None,
    parent_body: int = -1,
    scale: float = 1.0,
    up_axis=Axis.Z,
    hide_visuals: bool = False,
    parse_visuals_as_colliders: bool = False,
    force_show_colliders: bool = False,
    enable_self_collisions: bool = False,
    ignore_inertial_definitions: bool = False,
    massless_link_density: float = 0.0,
    soft_limits: bool = False,
    rotor_inertia: float | dict[str, float] | None = None,
    joint_damping_mode: str = "passive",
    joint_ordering: str | None = "dfs",
    collapse_fixed_joints: bool = False,
    collapse_massless_fixed_root: bool = False,
    force_position_velocity_actuation: bool = False,
    package_dirs=(),
    skip_missing_meshes: bool = False,
    mesh_maxhullvert: int | None = None,
) -> UrdfImport:
    """Adds the robot of a URDF file to a builder.

    Each link becomes a body with the mass and inertia of the file. Each joint becomes a joint: ``revolute`` and
    ``continuous`` REVOLUTE, ``prismatic`` PRISMATIC, ``floating`` FREE, ``fixed`` FIXED, and ``planar`` D6 with two
    linear axes in the plane and one angular axis along its normal. ``builder.default_joint_cfg`` and
    ``builder.default_shape_cfg`` define the settings that URDF does not have (gains, armature, ...). Drives are in POSITION
    mode, so setting gains in the builder is enough to use them. Ambiguous files are read as follows:

    * ``<limit>``: an effort or velocity of 0 means no limit, as such a joint could not move; without ``lower`` and
      ``upper``, or with zeros in all four attributes, there is no position limit.
    * A joint whose range does not include 0 starts at the nearer limit.
    * A physically impossible inertia is replaced by the nearest possible one.
    * A link without ``<inertial>``, or with an ``<inertial>`` without ``<mass>``, has no mass, see ``massless_link_density``. Inertia
      without mass is ignored. Mass without ``<inertia>``, or without one of its three moments, is a point. Joints that move no mass are
      for kinematics only: solvers raise an error for them.
    * In a chain of mimic joints, all joints follow the last one. A joint that follows a joint that does not exist is free.
    * Shapes of size zero are left out. A colour of three numbers is opaque; one of another count than 3 or 4 is ignored.
    * Limits apply to joints. The reduction of a ``<transmission>`` does not change them; it applies to the inertia of the
      rotor of the motor, see ``rotor_inertia``.
    * Soft limits of a ``<safety_controller>`` are used only with ``soft_limits``.
    * ``<dynamics>`` of a planar joint holds for all its axes, its position and other limits for the linear ones.

    The returned report and one :class:`UrdfWarning` list the parts of the file that are ambiguous or ignored. All elements that are
    not named here, such as ``gazebo`` and ``sensor``, are ignored. Meshes without a ``<material>`` have the mean colour of the materials
    in their file.

    Meshes are STL, OBJ, DAE and others (:meth:`newton_like.geometry.mesh.Mesh.from_file`).
    :func:`newton_like.importers.xml_source.find_file` documents the search; only files in the folders of
    :func:`newton_like.importers.xml_source.allowed_folders` are read. Meshes become MESH shapes, which collide as convex
    hulls.

    Users of Newton: self collisions are off by default, links without ``<inertial>`` have no mass, hidden visuals are
    not added, and the indices are returned.

    Args:
        builder: a :class:`newton_like.model.builder.builder.ModelBuilder`. An error leaves it as it was.
        source: path, ``file:`` or ``package:`` URI, or the XML text.
        xform: pose of the root link in the world, or in ``parent_body``.
        override_root_xform: needs ``xform``. The root link is at ``xform``, which also rotates the axes of ``base_joint``; a URDF
            states no pose of its root.
        floating: True: the root link has a FREE joint, whose coordinates are the pose of the root link in the world. False or
            None: the root link is fixed.
        base_joint: another joint for the root link: a dictionary of arguments of ``builder.add_joint`` (``joint_type``,
            ``linear_axes``, ``angular_axes``, ``label``). ``xform`` does not rotate its axes.
        parent_body: parent body of the robot; -1 is the world. The robot joins the articulation of that body.
        scale: factor for all lengths. Masses, forces and gains do not change; inertias are multiplied by its square.
        up_axis: the up axis of the file, which is rotated to the builder's up axis.
        hide_visuals: leave out all visuals.
        parse_visuals_as_colliders: use the visuals as collisions, and leave out the collisions.
        force_show_colliders: draw all collisions. By default only collisions instead of unreadable visuals, and all collisions of
            a robot without visuals, are drawn.
        enable_self_collisions: enable collisions between links of the robot, except links that a joint connects (over any
            number of fixed joints). Off by default, because meshes and capsules of neighbouring links often overlap.
        ignore_inertial_definitions: compute mass and inertia from the collisions with the density of
            ``builder.default_shape_cfg``.
        massless_link_density: density [kg/m^3] that gives links without a stated mass the mass of their collisions.
        soft_limits: narrow the position limits to the soft limits of safety controllers. ``limit_ke`` and ``limit_kd`` of
            these joints become ``k_position * k_velocity`` and ``k_velocity``, the spring and damper of such a
            controller beyond the soft limits (``SolverFeatherstone`` always has hard limits).
        rotor_inertia: moment of inertia of the motors' rotors about their own axes [kg m^2], one number or by name of
            the actuator or joint in a ``<transmission>``. With the reduction n, n^2 times it is the joint's armature.
            ``None``: the value of the file (``drake:rotor_inertia``), else the armature of ``builder.default_joint_cfg``.
        joint_damping_mode: what the damping of ``<dynamics>`` becomes. ``"passive"``: ``joint_damping``. ``"drive"``: ``joint_target_kd``,
            the damping of the drive. The other one is that of ``builder.default_joint_cfg``.
        joint_ordering: order of bodies and joints: ``"dfs"`` depth first, ``"bfs"`` breadth first, ``None`` as in the
            file. Joints at the same link keep the order of the file.
        collapse_fixed_joints: merge links that fixed joints connect into one body. The base joint is not removed.
        collapse_massless_fixed_root: merge links that fixed joints connect to a free root link without mass, by way of links without mass,
            into the root link.
        force_position_velocity_actuation: drives are in POSITION_VELOCITY mode.
        package_dirs: folders that are searched first for ``package://`` and relative URIs. Meshes outside of these and of
            the robot's own package are not read.
        skip_missing_meshes: leave out collisions whose mesh is in none of these folders, and list them in the report.
        mesh_maxhullvert: largest number of vertices of the collision hull of a mesh; 64 by default.

    Returns:
        Indices by name, and remarks about the file.

    Raises:
        FileNotFoundError: the file does not exist.
        ImportFileError: the file is wrong, or (``MissingFileError``) the mesh of a collision is missing; a ``ValueError`` whose
            message names file, line, element and solution.
        KeyError: a name in ``rotor_inertia`` is in no transmission.
        ValueError, TypeError, IndexError: an argument is wrong.
    """
    massless_link_density = as_number(massless_link_density, "massless_link_density")
    if massless_link_density < 0.0:
        raise ValueError(f"massless_link_density {massless_link_density:g} kg/m^3 must be at least 0")
    check_choice(joint_damping_mode, "joint_damping_mode", ("passive", "drive"))
    options = UrdfOptions.read(builder, locals())
    robot = parse_robot(read_xml(source, options.package_dirs))
    if options.soft_limits:
        use_soft_limits(robot)
    reflect_rotors(robot, rotor_inertia)
    made = RobotBuilder(builder, robot, options)
    with unchanged_by_errors(builder):
        made.build()
    report = report_of(UrdfImport, made, robot)
    warn(UrdfWarning, report, robot.source.name)
    return report
