"""Builds a parsed URDF robot with the model builder."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from newton_like.geometry import inertia as rigid
from newton_like.geometry.mesh import Mesh
from newton_like.geometry.transforms import IDENTITY, quat_from_axis_angle, transform, transform_multiply
from newton_like.importers.custom import BODY, JOINT, from_element, understood
from newton_like.importers.shared import (
    Options,
    add_root_joint,
    bounded,
    join_articulation,
    ordered,
    possible_inertia,
    remark_massless,
)
from newton_like.importers.urdf.parse import Joint, Link, Piece, UrdfRobot, remark_size_zero
from newton_like.importers.xml_source import (
    ImportFileError,
    MissingFileError,
    OutsideFoldersError,
    allowed_folders,
    find_file,
)
from newton_like.types import MAXVAL, JointTargetMode, ShapeFlags


@dataclass(frozen=True, kw_only=True)
class UrdfOptions(Options):
    """Arguments of :func:`newton_like.importers.urdf.add_urdf`."""

    massless_link_density: float
    soft_limits: bool
    skip_missing_meshes: bool
    joint_damping_mode: str = "passive"
    collapse_massless_fixed_root: bool
    force_position_velocity_actuation: bool

    @property
    def visuals(self) -> bool:
        """Whether visuals become visible shapes."""
        return not self.hide_visuals and not self.parse_visuals_as_colliders


class RobotBuilder:
    """Builds one robot. The constructor finds all errors of the file and does not modify the builder.

    Results are attributes with the names of :class:`newton_like.importers.urdf.UrdfImport`.
    """

    def __init__(self, builder, robot: UrdfRobot, options: UrdfOptions):
        self.builder, self.robot, self.options = builder, robot, options
        understood(builder, robot.not_understood, {"link": BODY, "joint": JOINT}, "urdf")
        order = ordered(robot.root, list(robot.joints.values()), options.joint_ordering, _out_of_order)
        self._meshes = _load_meshes(robot, options)
        self._body_of = _group(robot, order, options, self._massless_root(order))
        self._bodies: dict[str, list[Link]] = {}
        for link, (carrier, _) in self._body_of.items():
            self._bodies.setdefault(carrier, []).append(robot.links[link])
        self._kept = [joint for joint in order if joint.child in self._bodies]
        # In a robot with visuals, collisions of a link without visuals stay invisible: they are for example keep-out boxes.
        self._bare = not (options.visuals and any(link.visuals for link in robot.links.values()))
        self.links: dict[str, int] = {}
        self.frames: dict[str, tuple[int, np.ndarray]] = {}
        self.joints: dict[str, int] = {}
        self.shapes: dict[str, list[int]] = {name: [] for name in robot.links}

    def _massless_root(self, order: list[Joint]) -> set[str]:
        """The links without mass from a free root on that fixed joints connect, if what these carry is to be merged into the root."""
        chain: set[str] = set()
        if not (self.options.collapse_massless_fixed_root and self.options.frees_root):
            return chain
        ends = [self.robot.root, *(joint.child for joint in order if joint.type == "fixed")]
        above = {joint.child: joint.parent for joint in order}
        for name in ends:
            if (name == self.robot.root or above[name] in chain) and not self._has_mass(self.robot.links[name]):
                chain.add(name)
        return chain

    def _has_mass(self, link: Link) -> bool:
        options = self.options
        if not options.ignore_inertial_definitions and link.inertial is not None:
            return link.inertial[0] > 0.0
        given = options.ignore_inertial_definitions
        density = self.builder.default_shape_cfg.density if given else options.massless_link_density
        colliders = link.visuals if options.parse_visuals_as_colliders else link.collisions
        return density > 0.0 and any(map(self._has_geometry, colliders))

    def build(self) -> None:
        """Adds bodies, joints, shapes, the articulation and collision filters to the builder."""
        start = {joint.name: _start(joint, self.robot) for joint in self._kept}
        for name, pose in self._poses(start).items():
            self._add_body(name, pose)
        self.base_joint = self._add_base()
        for add in (lambda joint: self._add_joint(joint, start[joint.name]), self._add_mimic):
            for joint in self._kept:
                try:
                    add(joint)
                except ValueError as error:  # numbers whose products overflow
                    raise joint.element.error(str(error)) from error
        for name in self._bodies:
            self._add_shapes(name)
        builder, joints = self.builder, [self.base_joint, *self.joints.values()]
        self.articulation = join_articulation(builder, self.options.parent_body, joints, self.robot.name)
        self._filter_collisions()
        remark_massless(builder, joints, self.robot.remark, {index: name for name, index in self.joints.items()})

    def _poses(self, start: dict[str, float]) -> dict[str, np.ndarray]:
        """Initial poses of all bodies in the world, in the order of the builder."""
        poses = {self.robot.root: self.options.world_pose(self.builder)}
        for joint in self._kept:
            placed = transform_multiply(poses[self._carrier(joint.parent)], self._joint_frame(joint))
            moved = _displacement(joint, start[joint.name] * self._unit(joint))
            poses[joint.child] = transform_multiply(placed, moved)
        return poses

    def _label(self, name: str) -> str:
        return f"{self.robot.name}/{name}"

    def _carrier(self, link: str) -> str:
        """Name of the first link of the body that contains a link."""
        return self._body_of[link][0]

    def _unit(self, joint: Joint) -> float:
        """Unit of a joint coordinate: metres of the model for a metre of the file for linear joints, 1 for rotational joints."""
        return self.options.scale if joint.type == "prismatic" else 1.0

    def _scaled(self, pose: np.ndarray) -> np.ndarray:
        return transform(self.options.scale * pose[:3], pose[3:])

    def _joint_frame(self, joint: Joint) -> np.ndarray:
        """Pose of the joint frame in its parent body."""
        return transform_multiply(self._body_of[joint.parent][1], self._scaled(joint.origin))

    def _add_body(self, name: str, pose: np.ndarray) -> None:
        parts, scale = [], self.options.scale
        for link in self._bodies[name]:
            if not self.options.ignore_inertial_definitions and link.inertial is not None:
                mass, com, inertia = link.inertial
                parts.append(rigid.transform(mass, scale * com, scale**2 * inertia, self._body_of[link.name][1]))
        # The centre of a part without mass counts only if no part has mass.
        mass, com, inertia = rigid.combine([part for part in parts if part[0] > 0.0] or parts)
        inertia = possible_inertia(mass, inertia, "links", name, self.robot.remark)
        own: dict = {}
        for link in self._bodies[name]:  # of merged links, the first one with entries
            own = from_element(self.builder, link.element, BODY, "urdf") | own
        index = self.builder.add_link(
            xform=pose, mass=mass, com=com, inertia=inertia, label=self._label(name), custom_attributes=own
        )
        for link in self._bodies[name]:
            self.links[link.name] = index
            self.frames[link.name] = (index, self._body_of[link.name][1])
        merged = [link.name for link in self._bodies[name][1:]]
        self.builder.frames.extend(
            [self._label(x) for x in merged], [index] * len(merged), [self.frames[x][1] for x in merged]
        )

    def _add_base(self) -> int:
        options, root = self.options, self.links[self.robot.root]
        labels = [self._label(name) for name in ("base_joint", "floating_base", "fixed_base")]
        return add_root_joint(self.builder, options, options.floating, root, options.root_pose, labels)

    def _add_joint(self, joint: Joint, start: float) -> None:
        builder = self.builder
        ends = (self.links[joint.parent], self.links[joint.child])
        placed = {
            "parent_xform": self._joint_frame(joint),
            "label": self._label(joint.name),
            "custom_attributes": from_element(builder, joint.element, JOINT, "urdf"),
        }
        if joint.type == "fixed":
            index = builder.add_joint_fixed(*ends, **placed)
        elif joint.type == "floating":
            index = builder.add_joint_free(ends[1], parent=ends[0], **placed)
        elif joint.type == "planar":
            u, v = plane_axes(joint.axis)
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
        """Settings of one axis: those of the file, and the builder's defaults for missing ones."""
        unit = self.options.scale if sliding else 1.0
        default = self.builder.default_joint_cfg
        settings = {"axis": tuple(axis.tolist())}
        if joint.type == "continuous":
            settings.update(limit_lower=-MAXVAL, limit_upper=MAXVAL)
        elif joint.lower is not None:
            settings.update(limit_lower=bounded(unit * joint.lower), limit_upper=bounded(unit * joint.upper))
        if joint.effort is not None:
            settings["effort_limit"] = bounded(joint.effort)
        if joint.velocity is not None:
            settings["velocity_limit"] = bounded(unit * joint.velocity)
        for name in ("damping", "friction", "limit_ke", "limit_kd"):
            if getattr(joint, name) is not None:
                in_drive = name == "damping" and self.options.joint_damping_mode == "drive"
                settings["target_kd" if in_drive else name] = getattr(joint, name)
        if joint.armature is not None:
            # The armature of a linear joint is a mass, because the reduction converts metres of the file to radians.
            settings["armature"] = joint.armature * (1.0 if sliding else self.options.scale**2)
        if default.actuator_mode is None:
            both = self.options.force_position_velocity_actuation
            settings["actuator_mode"] = JointTargetMode.POSITION_VELOCITY if both else JointTargetMode.POSITION
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
        default, options = self.builder.default_shape_cfg, self.options
        for link in self._bodies[name]:
            density, frame = 0.0, self._body_of[link.name][1]
            if options.ignore_inertial_definitions:
                density = default.density
            elif link.inertial is None:
                density = options.massless_link_density
            colliders = link.visuals if options.parse_visuals_as_colliders else link.collisions
            visuals = [piece for piece in link.visuals if self._has_geometry(piece)] if options.visuals else []
            shown = options.force_show_colliders or (not visuals and (self._bare or bool(link.visuals)))
            cfg = default.copy(density=density, is_visible=shown)
            for number, piece in enumerate(colliders):
                if not self._has_geometry(piece):
                    continue
                self._add_shape(link, piece, frame, cfg, piece.name or f"collision_{number}")
            cfg = default.copy(density=0.0, has_shape_collision=False, has_particle_collision=False, is_visible=True)
            for number, piece in enumerate(visuals):
                self._add_shape(link, piece, frame, cfg, piece.name or f"visual_{number}")

    def _has_geometry(self, piece: Piece) -> bool:
        """Whether a piece has geometry: all except meshes that could not be read."""
        return piece.geometry.kind != "mesh" or id(piece.geometry) in self._meshes

    def _add_shape(self, link: Link, piece: Piece, frame: np.ndarray, cfg, name: str) -> None:
        builder, geometry, scale = self.builder, piece.geometry, self.options.scale
        if geometry.kind == "capsule" and geometry.size[0] == 0.0:
            remark_size_zero(self.robot, "collision", link.name)
            return
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
            shape = builder.add_shape_mesh(body, mesh=self._meshes[id(geometry)], scale=tuple(size), **settings)
        else:
            add = builder.add_shape_cylinder if geometry.kind == "cylinder" else builder.add_shape_capsule
            shape = add(body, radius=size[0], half_height=0.5 * size[1], **settings)
        self.shapes[link.name].append(shape)

    def _filter_collisions(self) -> None:
        """Adds the filter pairs of the robot's shapes: all pairs, or those of welded and adjacent links."""
        weld = {self._carrier(self.robot.root): self._carrier(self.robot.root)}
        neighbours = set()
        self_collisions = self.options.enable_self_collisions
        for joint in self._kept:
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
        return bool(self.builder.shape_flags[shape] & ShapeFlags.COLLIDE_SHAPES)


def _out_of_order(joint: Joint) -> Exception:
    return joint.element.error(
        f"comes before the joint that moves its parent link {joint.parent!r}; use joint_ordering='dfs'"
    )


def _load_meshes(robot: UrdfRobot, options: UrdfOptions) -> dict[int, Mesh]:
    """Meshes of all pieces that are used, by ``id`` of their geometry."""
    meshes = {}
    for link in robot.links.values():
        colliders = link.visuals if options.parse_visuals_as_colliders else link.collisions
        pieces = [(piece, False) for piece in link.visuals if options.visuals]
        for piece, needed in [*pieces, *((piece, True) for piece in colliders)]:
            geometry = piece.geometry
            if geometry.kind != "mesh":
                continue
            try:
                meshes[id(geometry)] = _load_mesh(robot, geometry.filename, options)
            except (OSError, ValueError) as error:
                missing = isinstance(error, FileNotFoundError | OutsideFoldersError)
                if needed and not (missing and options.skip_missing_meshes):
                    cure = ", or ignore such meshes with skip_missing_meshes=True" if missing else ""
                    raise geometry.element.error(
                        f"the collision mesh of link {link.name!r} cannot be used: {error}{cure}",
                        MissingFileError if missing else ImportFileError,
                    ) from error
                what = (
                    "collision meshes are missing or outside of the folders that may be read,"
                    if needed
                    else "visual meshes are missing, unreadable or outside of the folders that may be read,"
                )
                robot.remark(f"{what} and ignored", geometry.filename)
    return meshes


def _load_mesh(robot: UrdfRobot, filename: str, options: UrdfOptions) -> Mesh:
    folder = robot.source.folder
    within = allowed_folders(folder, options.package_dirs)
    path, tried = find_file(filename, folder, options.package_dirs, within)
    if path is None:
        places = ", ".join(str(place) for place in tried[:4]) + (", ..." if len(tried) > 4 else "")
        raise FileNotFoundError(
            f"{filename!r} does not exist (searched: {places or 'no folder'}); name the folder of its package in "
            "package_dirs, or correct the file name"
        )
    return Mesh.from_file(path, max_hull_vertices=options.mesh_maxhullvert)


def _group(
    robot: UrdfRobot, order: list[Joint], options: UrdfOptions, hosts: set[str]
) -> dict[str, tuple[str, np.ndarray]]:
    """For each link, the first link of its body, whose frame is the body's frame, and the pose of the link in it.

    Args:
        hosts: links into which links behind fixed joints are merged, if not all are.
    """
    body_of = {robot.root: (robot.root, IDENTITY)}
    for joint in order:
        carrier, pose = joint.child, IDENTITY
        if joint.type == "fixed" and (options.collapse_fixed_joints or joint.parent in hosts):
            carrier, pose = body_of[joint.parent]
            pose = transform_multiply(pose, transform(options.scale * joint.origin[:3], joint.origin[3:]))
        body_of[joint.child] = (carrier, pose)
    return body_of


def _start(joint: Joint, robot: UrdfRobot) -> float:
    """Initial position of a revolute or prismatic joint, in the units of the file."""
    if joint.mimic is not None:
        leader, multiplier, offset = joint.mimic
        return multiplier * _start(robot.joints[leader], robot) + offset
    if joint.lower is None or joint.type == "planar" or joint.lower <= 0.0 <= joint.upper:
        return 0.0
    start = joint.lower if joint.lower > 0.0 else joint.upper
    robot.remark("the range of joints does not include 0; they start at the nearer limit", f"{joint.name} ({start:g})")
    return start


def _displacement(joint: Joint, position: float) -> np.ndarray:
    if position == 0.0:
        return IDENTITY
    if joint.type == "prismatic":
        return transform(position * joint.axis)
    return transform(q=quat_from_axis_angle(joint.axis, position))


def plane_axes(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two axes that form a right-handed frame with a normal: x and y for the normal z, and cyclic."""
    main = int(np.argmax(np.abs(normal)))
    u = np.eye(3)[(main + 1) % 3]
    u = u - np.dot(u, normal) * normal
    u /= np.linalg.norm(u)
    return u, np.cross(normal, u)
