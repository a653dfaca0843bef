"""URDF robots into a :class:`newton_like.model.builder.ModelBuilder`."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from newton_like.coercion import as_index, as_number
from newton_like.geometry import inertia as rigid
from newton_like.geometry.mesh import LEAST_HULL_VERTICES, MAX_HULL_VERTICES, Mesh
from newton_like.geometry.transforms import (
    IDENTITY,
    as_transform,
    quat_between,
    quat_from_axis_angle,
    quat_inverse,
    transform,
    transform_multiply,
)
from newton_like.importers.urdf_parse import Joint, Link, Piece, UrdfRobot, parse_robot
from newton_like.importers.xml_source import find_file, read_xml
from newton_like.types import MAXVAL, Axis, JointTargetMode

SHOWN_NAMES = 5
"""Names that a warning lists before it counts the rest; the report lists all."""


class UrdfWarning(UserWarning):
    """A URDF file leaves something open, or holds something that is left out."""


@dataclass(frozen=True)
class UrdfImport:
    """What :func:`add_urdf` made of a robot.

    Attributes:
        name: of the robot; labels are ``<name>/<link>`` and ``<name>/<joint>``.
        articulation: index of the articulation that the joints are in.
        base_joint: index of the joint that holds or frees the root link.
        links: body index by link name. Where fixed joints are collapsed, several links share one body.
        joints: joint index by joint name, without collapsed ones.
        frames: ``(body index, pose of the link frame in the body's link frame)`` by link name.
        shapes: shape indices by link name, collisions before visuals.
        remarks: statements about the file with the names they hold for.
        not_understood: number of elements that were left out, by ``parent/tag``.
        unused: number of elements that mean nothing to a simulation (``safety_controller``), by ``parent/tag``.
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


@dataclass(frozen=True)
class _Options:
    scale: float
    visuals: bool
    visuals_collide: bool
    show_colliders: bool
    own_inertia: bool
    massless_density: float
    collapse: bool
    package_dirs: tuple
    hull_vertices: int


@dataclass
class _Body:
    """Links that become one body: the first gives its frame, the others hang on it by fixed joints."""

    links: list[Link] = field(default_factory=list)
    frames: list[np.ndarray] = field(default_factory=list)


def add_urdf(
    builder,
    source,
    *,
    xform=None,
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
    joint_ordering: str | None = "dfs",
    collapse_fixed_joints: bool = False,
    package_dirs=(),
    mesh_maxhullvert: int | None = None,
) -> UrdfImport:
    """Adds the robot of a URDF file to a builder.

    Every link becomes a body with the mass and inertia that the file states, every joint a joint: ``revolute`` and
    ``continuous`` REVOLUTE, ``prismatic`` PRISMATIC, ``floating`` FREE, ``fixed`` FIXED, and ``planar`` D6 with two
    linear axes in the plane and one angular axis along its normal. Settings that a file cannot express (gains,
    armature, ...) are those of ``builder.default_joint_cfg`` and ``builder.default_shape_cfg``; drives are in POSITION
    mode, so that setting gains in the builder is enough to use them. Files that could be taken in two ways are read
    like this:

    * ``<limit>``: an effort or velocity of 0 means no limit, as nobody builds such a joint; without ``lower`` and
      ``upper``, or with zeros in all four, there is no position limit.
    * A joint whose range does not hold 0 starts at the nearer end of it.
    * An inertia that no body can have is replaced by the nearest possible one.
    * A link without ``<inertial>`` has no mass, see ``massless_link_density``.
    * Chains of mimic joints follow the joint at their end.
    * ``<dynamics>`` of a planar joint holds for all its axes, its position and other limits for the linear ones.

    Whatever the file leaves open and whatever is left out of it ends up in the returned report and in one
    :class:`UrdfWarning`. Meshes: STL, OBJ, DAE and others, see :meth:`newton_like.geometry.mesh.Mesh.from_file`; for
    URIs see :func:`newton_like.importers.xml_source.find_file`. Elements that are not read: ``transmission``,
    ``gazebo``, ``sensor``, textures and whatever else is not named here. ``safety_controller`` is for real motors.

    Args:
        builder: a :class:`newton_like.model.builder.ModelBuilder`. An error in the file leaves it as it
            was.
        source: path, ``file:`` or ``package:`` URI, or the XML text.
        xform: pose of the root link in the world, or in ``parent_body``.
        floating: true frees the root link (FREE joint, whose coordinates are the pose of the root link in the world);
            false and ``None`` fix it.
        base_joint: another joint for the root link: a dictionary of arguments of ``builder.add_joint`` (``joint_type``,
            ``linear_axes``, ``angular_axes``, ``label``). Its axes are not turned by ``xform``.
        parent_body: body that carries the robot; -1 is the world. The robot joins the articulation of that body.
        scale: factor for all lengths. Masses, forces and gains keep their numbers; inertias grow with its square.
        up_axis: the axis of the file that points up; it is turned to the builder's up axis.
        hide_visuals: leave visuals out altogether.
        parse_visuals_as_colliders: use the visuals as collisions, and the collisions not at all.
        force_show_colliders: draw collisions of links that have visuals too.
        enable_self_collisions: let links of the robot touch each other, except links that a joint connects (over any
            number of fixed joints). Off by default: the contacts of :class:`SolverFeatherstone` are with static shapes.
        ignore_inertial_definitions: compute mass and inertia from the collisions with the density of
            ``builder.default_shape_cfg``.
        massless_link_density: density [kg/m^3] that gives links without ``<inertial>`` the mass of their collisions.
        joint_ordering: order of bodies and joints: ``"dfs"`` depth first, ``"bfs"`` breadth first, ``None`` as in the
            file. Joints at the same link keep the order of the file.
        collapse_fixed_joints: merge links that fixed joints weld together into one body. The base joint stays.
        package_dirs: folders in which ``package://`` and relative URIs are looked up first.
        mesh_maxhullvert: largest number of vertices of the collision hull of a mesh; 64 by default.

    Returns:
        Indices by name, and remarks about the file.

    Raises:
        FileNotFoundError: there is no such file.
        ImportFileError: the file is wrong, or the mesh of a collision is missing; a ``ValueError`` whose message names
            file, line, element and cure.
        ValueError, TypeError, IndexError: an argument is wrong.
    """
    scale = as_number(scale, "scale")
    density = as_number(massless_link_density, "massless_link_density")
    if scale <= 0.0:
        raise ValueError(f"scale {scale:g} must be above 0")
    if density < 0.0:
        raise ValueError(f"massless_link_density {density:g} kg/m^3 must be at least 0")
    hull_vertices = MAX_HULL_VERTICES if mesh_maxhullvert is None else mesh_maxhullvert
    hull_vertices = int(as_number(hull_vertices, "mesh_maxhullvert"))
    if hull_vertices < LEAST_HULL_VERTICES:
        raise ValueError(f"mesh_maxhullvert {mesh_maxhullvert} must be at least {LEAST_HULL_VERTICES}")
    parent_body = as_index(parent_body, "parent_body", builder.body_count, lowest=-1)
    _check_base(builder, floating, base_joint, parent_body)
    options = _Options(
        scale=scale,
        visuals=not hide_visuals and not parse_visuals_as_colliders,
        visuals_collide=bool(parse_visuals_as_colliders),
        show_colliders=bool(force_show_colliders),
        own_inertia=not ignore_inertial_definitions,
        massless_density=density,
        collapse=bool(collapse_fixed_joints),
        package_dirs=(package_dirs,) if isinstance(package_dirs, str | Path) else tuple(package_dirs or ()),
        hull_vertices=hull_vertices,
    )
    turn = quat_between(Axis.from_any(up_axis).to_vector(), builder.up_vector)
    root_pose = transform_multiply(as_transform(xform, "xform"), transform(q=turn))

    robot = parse_robot(read_xml(source, options.package_dirs))
    order = _ordered(robot, joint_ordering)
    meshes = _load_meshes(robot, options)
    bodies, body_of = _group(robot, order, options)

    importer = _Importer(builder, robot, options, meshes, bodies, body_of)
    return importer.run(order, root_pose, floating, base_joint, parent_body, enable_self_collisions)


class _Importer:
    """One run of :func:`add_urdf`, after everything that can fail for the file's sake has been done."""

    def __init__(self, builder, robot, options, meshes, bodies, body_of):
        self.builder, self.robot, self.options = builder, robot, options
        self.meshes, self.bodies, self.body_of = meshes, bodies, body_of
        self.links: dict[str, int] = {}
        self.frames: dict[str, tuple[int, np.ndarray]] = {}
        self.joints: dict[str, int] = {}
        self.shapes: dict[str, list[int]] = {name: [] for name in robot.links}

    def run(self, order, root_pose, floating, base_joint, parent_body, self_collisions) -> UrdfImport:
        builder, robot = self.builder, self.robot
        world_pose = root_pose
        if parent_body >= 0:
            world_pose = transform_multiply(as_transform(builder.body_q[parent_body]), root_pose)
        moving = [joint for joint in order if joint.child in self.bodies]
        start = {joint.name: _start(joint, robot) for joint in moving}
        poses = {robot.root: world_pose}
        for joint in moving:
            poses[joint.child] = transform_multiply(
                transform_multiply(poses[self._carrier(joint.parent)], self._joint_frame(joint)),
                _displacement(joint, start[joint.name] * self._unit(joint)),
            )
        for name in (robot.root, *(joint.child for joint in moving)):
            self._add_body(name, poses[name])
        base = self._add_base(root_pose, floating, base_joint, parent_body)
        for joint in moving:
            self._add_joint(joint, start[joint.name])
        for joint in moving:
            self._add_mimic(joint)
        for name in self.bodies:
            self._add_shapes(name)
        joints = [base, *self.joints.values()]
        if parent_body >= 0:
            articulation = _articulation_of(builder, parent_body)
            builder.extend_articulation(articulation, joints)
        else:
            articulation = builder.add_articulation(joints, label=robot.name)
        self._filter_collisions(moving, self_collisions)
        self._remark_massless(moving)
        report = UrdfImport(
            name=robot.name,
            articulation=articulation,
            base_joint=base,
            links=self.links,
            joints=self.joints,
            frames=self.frames,
            shapes=self.shapes,
            remarks=robot.remarks,
            not_understood=dict(robot.not_understood),
            unused=dict(robot.unused),
        )
        _warn(report, robot.source.name)
        return report

    def _label(self, name: str) -> str:
        return f"{self.robot.name}/{name}"

    def _carrier(self, link: str) -> str:
        """Name of the first link of the body that a link belongs to."""
        return self.body_of[link][0]

    def _unit(self, joint: Joint) -> float:
        """Metres of the model for a metre of the file where the joint slides, 1 where it turns."""
        return self.options.scale if joint.type == "prismatic" else 1.0

    def _scaled(self, pose: np.ndarray) -> np.ndarray:
        return transform(self.options.scale * pose[:3], pose[3:])

    def _joint_frame(self, joint: Joint) -> np.ndarray:
        """Pose of the joint frame in its parent body."""
        return transform_multiply(self.body_of[joint.parent][1], self._scaled(joint.origin))

    def _add_body(self, name: str, pose: np.ndarray) -> None:
        body = self.bodies[name]
        parts = []
        for link, frame in zip(body.links, body.frames, strict=True):
            if self.options.own_inertia and link.inertial is not None:
                mass, com, inertia = link.inertial
                scale = self.options.scale
                parts.append(rigid.transform(mass, scale * com, scale**2 * inertia, frame))
        # A centre of mass without mass says nothing, where other parts have mass.
        mass, com, inertia = rigid.combine([part for part in parts if part[0] > 0.0] or parts)
        if rigid.check(mass, inertia) is not None:
            possible = rigid.nearest_possible(inertia)
            change = np.linalg.norm(possible - inertia) / np.linalg.norm(inertia)
            self.robot.remark(
                "links have an inertia that no body has (a moment is negative or above the sum of the others); the "
                "nearest possible one is used",
                f"{name} ({100.0 * change:.2g} % away)",
            )
            inertia = possible
        index = self.builder.add_link(xform=pose, mass=mass, com=com, inertia=inertia, label=self._label(name))
        for link, frame in zip(body.links, body.frames, strict=True):
            self.links[link.name] = index
            self.frames[link.name] = (index, frame)

    def _add_base(self, root_pose, floating, base_joint, parent_body) -> int:
        builder, root = self.builder, self.links[self.robot.root]
        if base_joint is not None:
            # The rotation goes to the child's side, so that the joint's axes stay those of the world.
            settings = {
                "label": self._label("base_joint"),
                "parent_xform": transform(root_pose[:3]),
                "child_xform": transform(q=quat_inverse(root_pose[3:])),
                **base_joint,
            }
            return builder.add_joint(settings.pop("joint_type"), parent_body, root, **settings)
        if floating:
            return builder.add_joint_free(root, label=self._label("floating_base"))
        return builder.add_joint_fixed(parent_body, root, parent_xform=root_pose, label=self._label("fixed_base"))

    def _add_joint(self, joint: Joint, start: float) -> None:
        builder = self.builder
        ends = (self.links[joint.parent], self.links[joint.child])
        placed = {"parent_xform": self._joint_frame(joint), "label": self._label(joint.name)}
        if joint.type == "fixed":
            index = builder.add_joint_fixed(*ends, **placed)
        elif joint.type == "floating":
            index = builder.add_joint_free(ends[1], parent=ends[0], **placed)
        elif joint.type == "planar":
            u, v = _plane(joint.axis)
            turn = self._dof(dataclasses.replace(joint, lower=None, upper=None, effort=None, velocity=None), joint.axis)
            sliding = [self._dof(joint, axis, sliding=True) for axis in (u, v)]
            index = builder.add_joint_d6(*ends, linear_axes=sliding, angular_axes=[turn], **placed)
        else:
            sliding = joint.type == "prismatic"
            dof = self._dof(joint, joint.axis, sliding=sliding, start=start * self._unit(joint))
            add = builder.add_joint_prismatic if sliding else builder.add_joint_revolute
            index = add(*ends, axis=dof, **placed)
            builder.joint_q[builder.joint_q_start[index]] = start * self._unit(joint)
        self.joints[joint.name] = index

    def _dof(self, joint: Joint, axis, sliding: bool = False, start: float = 0.0):
        """Settings of one axis: those of the file, and the builder's defaults for the rest."""
        unit = self.options.scale if sliding else 1.0
        default = self.builder.default_joint_cfg
        settings = {"axis": tuple(axis.tolist())}
        if joint.type == "continuous":
            settings.update(limit_lower=-MAXVAL, limit_upper=MAXVAL)
        elif joint.lower is not None:
            settings.update(limit_lower=_limit(unit * joint.lower), limit_upper=_limit(unit * joint.upper))
        if joint.effort is not None:
            settings["effort_limit"] = _limit(joint.effort)
        if joint.velocity is not None:
            settings["velocity_limit"] = _limit(unit * joint.velocity)
        for name in ("damping", "friction"):
            if getattr(joint, name) is not None:
                settings[name] = getattr(joint, name)
        if default.actuator_mode is None:
            settings["actuator_mode"] = JointTargetMode.POSITION
        if default.target_q is None and start != 0.0:
            settings["target_q"] = start
        return default.copy(**settings)

    def _add_mimic(self, joint: Joint) -> None:
        if joint.mimic is None:
            return
        leader, multiplier, offset = joint.mimic
        unit, leader_unit = self._unit(joint), self._unit(self.robot.joints[leader])
        self.builder.set_joint_mimic(
            self.joints[joint.name], self.joints[leader], coeffs=(unit * offset, multiplier * unit / leader_unit)
        )

    def _add_shapes(self, name: str) -> None:
        body, options = self.bodies[name], self.options
        default = self.builder.default_shape_cfg
        for link, frame in zip(body.links, body.frames, strict=True):
            density = 0.0
            if not options.own_inertia:
                density = default.density
            elif link.inertial is None:
                density = options.massless_density
            colliders = link.visuals if options.visuals_collide else link.collisions
            visuals = link.visuals if options.visuals else []
            cfg = default.copy(density=density, is_visible=options.show_colliders or not visuals)
            for number, piece in enumerate(colliders):
                self._add_shape(link, piece, frame, cfg, piece.name or f"collision_{number}")
            cfg = default.copy(density=0.0, has_shape_collision=False, has_particle_collision=False, is_visible=True)
            for number, piece in enumerate(visuals):
                self._add_shape(link, piece, frame, cfg, piece.name or f"visual_{number}")

    def _add_shape(self, link: Link, piece: Piece, frame: np.ndarray, cfg, name: str) -> None:
        builder, geometry, scale = self.builder, piece.geometry, self.options.scale
        body = self.links[link.name]
        size = [scale * number for number in geometry.size]
        settings = {
            "xform": transform_multiply(frame, self._scaled(piece.origin)),
            "cfg": cfg,
            "label": f"{self._label(link.name)}/{name}",
            "color": None if piece.rgba is None else piece.rgba[:3],
            "opacity": None if piece.rgba is None else piece.rgba[3],
        }
        if geometry.kind == "box":
            hx, hy, hz = (0.5 * side for side in size)
            shape = builder.add_shape_box(body, hx=hx, hy=hy, hz=hz, **settings)
        elif geometry.kind == "sphere":
            shape = builder.add_shape_sphere(body, radius=size[0], **settings)
        elif geometry.kind == "mesh":
            mesh = self.meshes.get(id(geometry))
            if mesh is None:
                return
            shape = builder.add_shape_mesh(body, mesh=mesh, scale=tuple(size), **settings)
        else:
            add = builder.add_shape_cylinder if geometry.kind == "cylinder" else builder.add_shape_capsule
            shape = add(body, radius=size[0], half_height=0.5 * size[1], **settings)
        self.shapes[link.name].append(shape)

    def _filter_collisions(self, moving: list[Joint], self_collisions: bool) -> None:
        """Forbids pairs of the robot's shapes: all of them, or those of welded and of neighbouring links."""
        weld = {self._carrier(self.robot.root): self._carrier(self.robot.root)}
        neighbours = set()
        for joint in moving:
            parent = weld[self._carrier(joint.parent)]
            weld[joint.child] = parent if joint.type == "fixed" else joint.child
            if joint.type != "fixed":
                neighbours.add((parent, joint.child))
        groups: dict[str, list[int]] = {}
        for link, shapes in self.shapes.items():
            group = weld[self._carrier(link)] if self_collisions else ""
            colliding = [shape for shape in shapes if self._collides(shape)]
            groups.setdefault(group, []).extend(colliding)
        pairs = [(a, b) for group in groups.values() for n, a in enumerate(group) for b in group[n + 1 :]]
        for parent, child in neighbours if self_collisions else ():
            pairs += [(a, b) for a in groups.get(parent, ()) for b in groups.get(child, ())]
        self.builder.shape_collision_filter_pairs.update(pairs)

    def _collides(self, shape: int) -> bool:
        from newton_like.types import ShapeFlags

        return bool(self.builder.shape_flags[shape] & ShapeFlags.COLLIDE_SHAPES)

    def _remark_massless(self, moving: list[Joint]) -> None:
        carried = {name: self.builder.body_mass[self.links[name]] for name in self.bodies}
        for joint in reversed(moving):
            carried[self._carrier(joint.parent)] += carried[joint.child]
            if carried[joint.child] == 0.0 and joint.type != "fixed":
                self.robot.remark("joints move links without any mass; give them an <inertial>", joint.name)


def _check_base(builder, floating, base_joint, parent_body) -> None:
    if base_joint is not None:
        if floating is not None:
            raise ValueError("give floating or base_joint, not both: each says how the root link moves")
        if "joint_type" not in base_joint:
            raise ValueError(f"base_joint {base_joint!r} has no 'joint_type'; add one, such as JointType.D6")
        wrong = {"parent", "child"} & set(base_joint)
        if wrong:
            raise ValueError(f"base_joint must not hold {', '.join(sorted(wrong))}; use parent_body")
    if parent_body >= 0:
        if floating:
            raise ValueError(
                f"floating=True frees the robot from the world, but parent_body is {parent_body}; drop one of the two"
            )
        articulation = _articulation_of(builder, parent_body)
        if articulation != builder.articulation_count - 1 or builder.articulation_end[-1] != builder.joint_count:
            raise ValueError(
                f"parent_body: body {builder.body_label[parent_body]!r} (index {parent_body}) is not in the "
                "articulation that was added last, and joints of an articulation stay together; mount the robot before "
                "adding others"
            )


def _articulation_of(builder, body: int) -> int:
    for joint, child in enumerate(builder.joint_child):
        if child == body and builder.joint_articulation[joint] >= 0:
            return builder.joint_articulation[joint]
    raise ValueError(
        f"parent_body: body {builder.body_label[body]!r} (index {body}) is in no articulation; add it to one first"
    )


def _ordered(robot: UrdfRobot, ordering: str | None) -> list[Joint]:
    """Joints with every parent before its children."""
    if ordering not in ("dfs", "bfs", None):
        raise ValueError(f"joint_ordering {ordering!r} must be 'dfs', 'bfs' or None")
    if ordering is None:
        placed = {robot.root}
        for joint in robot.joints.values():
            if joint.parent not in placed:
                raise joint.element.error(
                    f"stands before the joint that moves its parent link {joint.parent!r}; use joint_ordering='dfs'"
                )
            placed.add(joint.child)
        return list(robot.joints.values())
    below = robot.children()
    order, waiting = [], deque(below[robot.root])
    while waiting:
        joint = waiting.popleft()
        order.append(joint)
        if ordering == "dfs":
            waiting.extendleft(reversed(below[joint.child]))
        else:
            waiting.extend(below[joint.child])
    return order


def _load_meshes(robot: UrdfRobot, options: _Options) -> dict[int, Mesh]:
    """Meshes of all pieces that will be used, by the identity of their geometry."""
    meshes = {}
    for link in robot.links.values():
        groups = []
        if options.visuals or options.visuals_collide:
            groups.append((link.visuals, options.visuals_collide))
        if not options.visuals_collide:
            groups.append((link.collisions, True))
        for pieces, needed in groups:
            for piece in pieces:
                geometry = piece.geometry
                if geometry.kind != "mesh":
                    continue
                try:
                    meshes[id(geometry)] = _load_mesh(robot, geometry.filename, options)
                except (OSError, ValueError) as error:
                    if needed:
                        raise geometry.element.error(
                            f"the collision mesh of link {link.name!r} cannot be used: {error}"
                        ) from error
                    robot.remark("visual meshes are missing or unreadable and left out", geometry.filename)
    return meshes


def _load_mesh(robot: UrdfRobot, filename: str, options: _Options) -> Mesh:
    path, tried = find_file(filename, robot.source.folder, options.package_dirs)
    if path is None:
        places = ", ".join(str(place) for place in tried[:4]) + (", ..." if len(tried) > 4 else "")
        raise FileNotFoundError(
            f"{filename!r} is not there (looked at {places or 'no folder'}); name the folder of its package in "
            "package_dirs, or correct the file name"
        )
    return Mesh.from_file(path, max_hull_vertices=options.hull_vertices)


def _group(robot: UrdfRobot, order: list[Joint], options: _Options):
    """Bodies by the name of their first link; and for each link that name and its pose in the body."""
    body_of = {robot.root: (robot.root, IDENTITY)}
    bodies = {robot.root: _Body([robot.links[robot.root]], [IDENTITY])}
    for joint in order:
        link = robot.links[joint.child]
        if joint.type == "fixed" and options.collapse:
            carrier, pose = body_of[joint.parent]
            pose = transform_multiply(pose, transform(options.scale * joint.origin[:3], joint.origin[3:]))
        else:
            carrier, pose = link.name, IDENTITY
        body_of[link.name] = (carrier, pose)
        body = bodies.setdefault(carrier, _Body())
        body.links.append(link)
        body.frames.append(pose)
    return bodies, body_of


def _start(joint: Joint, robot: UrdfRobot) -> float:
    """Initial position of a hinge or slider, in the units of the file."""
    if joint.mimic is not None:
        leader, multiplier, offset = joint.mimic
        return multiplier * _start(robot.joints[leader], robot) + offset
    if joint.lower is None or joint.type == "planar" or joint.lower <= 0.0 <= joint.upper:
        return 0.0
    start = joint.lower if joint.lower > 0.0 else joint.upper
    robot.remark("joints cannot be at 0 and start at the nearer limit", f"{joint.name} ({start:g})")
    return start


def _displacement(joint: Joint, position: float) -> np.ndarray:
    if position == 0.0:
        return IDENTITY
    if joint.type == "prismatic":
        return transform(position * joint.axis)
    return transform(q=quat_from_axis_angle(joint.axis, position))


def _plane(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two axes that make a right-handed frame with a normal; x and y for the normal z, and so on around."""
    main = int(np.argmax(np.abs(normal)))
    u = np.eye(3)[(main + 1) % 3]
    u = u - np.dot(u, normal) * normal
    u /= np.linalg.norm(u)
    return u, np.cross(normal, u)


def _limit(value: float) -> float:
    """A limit with the numbers that files write for "none" (inf, 1e16) brought to the one that arrays hold."""
    return math.copysign(min(abs(value), MAXVAL), value)


def _warn(report: UrdfImport, source: str) -> None:
    parts = []
    for statement, names in report.remarks.items():
        names = list(dict.fromkeys(names))
        shown = ", ".join(names[:SHOWN_NAMES]) + (
            f", and {len(names) - SHOWN_NAMES} more" if names[SHOWN_NAMES:] else ""
        )
        parts.append(f"{statement} ({len(names)}): {shown}")
    if report.not_understood:
        counts = ", ".join(f"{count} {tag}" for tag, count in sorted(report.not_understood.items()))
        parts.append(f"elements not understood and left out: {counts}")
    if parts:
        # Shown where the user called builder.add_urdf, which is two calls above add_urdf's own frame here.
        warnings.warn(UrdfWarning(f"{source}: " + "; ".join(parts)), stacklevel=5)
