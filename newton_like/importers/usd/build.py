"""Builds the records of a USD stage with the model builder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.geometry import inertia as rigid
from newton_like.geometry.transforms import IDENTITY, as_transform
from newton_like.importers.custom import ARTICULATION, BODY, JOINT, SHAPE, from_prim
from newton_like.importers.shared import NO_FORCES, Options, add_root_joint, join_articulation
from newton_like.importers.usd.mass import body_mass
from newton_like.importers.usd.merge import merge_joints
from newton_like.importers.usd.own import joint_rank
from newton_like.importers.usd.records import Scene, Shape, below
from newton_like.importers.usd.tree import Edge, Tree, build_trees, coordinates, speeds
from newton_like.importers.usd.values.pose import (
    moved_mass,
    quat_inverse,
    quat_rotate,
    transform_inverse,
    transform_multiply,
    transform_point,
)
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.configs import JointDofConfig
from newton_like.types import GeoType, JointTargetMode, JointType, ShapeFlags


@dataclass(frozen=True, kw_only=True)
class UsdOptions(Options):
    """Arguments of :func:`newton_like.importers.usd.add_usd`."""

    enable_self_collisions: bool | None
    scene_gravity: bool
    load_sites: bool
    only_load_enabled_joints: bool
    only_load_enabled_rigid_bodies: bool
    load_static_visual_shapes: bool
    hide_collision_shapes: bool
    skip_mesh_approximation: bool
    force_position_velocity_actuation: bool
    verbose: bool
    joint_drive_gains_scaling: float = 1.0


class SceneBuilder:
    """Builds one stage. The constructor finds all errors of the trees and does not modify the builder.

    Results are attributes with the names of :class:`newton_like.importers.usd.UsdImport`.
    """

    def __init__(self, builder, scene: Scene, options: UsdOptions):
        self.builder, self.scene, self.options = builder, scene, options
        self.stage_pose = transform_multiply(options.xform, options.turn)
        for attribute in builder.custom_attributes.values():
            scene.leftovers.not_understood.pop(attribute.usd_attribute_name, None)
        self._parts = merge_joints(scene)
        self._trees, self._loops = build_trees(scene, options.joint_ordering)
        self._closing = {edge.joint.path for edge in self._loops}
        self._roots_above: dict[str, str | None] = {}
        # for bodies of articulations, what replaces the pose of the stage
        self._placed: dict[str, np.ndarray] = {}
        for tree in self._trees if options.override_root_xform else ():
            root = self._root_prim(tree)
            if root is not None:
                pose = transform_multiply(self.stage_pose, transform_inverse(scene.root_poses[root]))
                self._placed |= dict.fromkeys(tree.bodies, pose)
        self._host: dict[str, tuple[str, np.ndarray]] = {}
        for tree in self._trees:
            self._host[tree.root] = (tree.root, IDENTITY)
            for edge in tree.edges:
                merged = options.collapse_fixed_joints and edge.joint.kind == "fixed"
                self._host[edge.child] = self._merged(edge) if merged else (edge.child, IDENTITY)
        self._below: dict[str, list[str]] = {}
        for edge in (edge for tree in self._trees for edge in tree.edges):
            self._below.setdefault(edge.parent, []).append(edge.child)
        of_body: dict[str, list[Shape]] = {}
        for shape in scene.shapes.values():
            if shape.collides and shape.body is not None:
                of_body.setdefault(shape.body, []).append(shape)
        density, use_given = builder.default_shape_cfg.density, not options.ignore_inertial_definitions
        try:
            self._mass = {
                path: body_mass(body, of_body.get(path, []), density, use_given, scene.remark)
                for path, body in scene.bodies.items()
            }
        except ValueError as error:
            raise ImportFileError(f"{scene.source}: {error}") from error
        self._coms = {path: transform_point(scene.bodies[path].pose, part[1]) for path, part in self._mass.items()}
        self.bodies: dict[str, int] = {}
        self.frames: dict[str, tuple[int, np.ndarray]] = {}
        self.merged: dict[str, int] = {}  # indices in builder.frames
        self.joints: dict[str, int] = {}
        self.dofs: dict[str, list[int]] = {}
        self.base_joints: dict[str, int] = {}
        self.shapes: dict[str, list[int]] = {}
        self.articulations: dict[str, int] = {}
        # the trees of each articulation
        self._articulated: list[list[Tree]] = []
        self._reversed: set[str] = set()
        self._hidden: set[str] = set()

    def build(self) -> None:
        """Adds static shapes, trees, loop joints, mimics, shapes, collision filters and gravity to the builder."""
        drawn = {shape.body for shape in self.scene.shapes.values() if shape.shown and not shape.site}
        if self.options.hide_collision_shapes:
            shapes = self.scene.shapes.values()
            self._hidden = {shape.body for shape in shapes if not shape.collider and not shape.site} - {None}
        # For a stage with the order of its original model, entities of each kind are added together.
        ordered = bool(self.scene.order)
        for shape in self.scene.shapes.values():
            if shape.body is None and not ordered:
                self._add_shape(shape, drawn)
        if ordered:
            self._add_ordered()
        else:
            for trees in self._groups():
                for tree in trees:
                    self._add_bodies(tree.bodies)
                self._add_trees(trees)
            for edge in self._loops:
                self._add_loop(edge)
        self._number_dofs()
        self._add_mimics()
        for shape in self.scene.shapes.values():
            if shape.body is not None or ordered:
                self._add_shape(shape, drawn)
        self._filter_collisions()
        gravity = self.scene.gravity
        if gravity is not None and self.options.scene_gravity:
            self.builder._adopt_gravity(tuple(quat_rotate(self.options.turn[3:], gravity).tolist()))

    def _merged(self, edge: Edge) -> tuple[str, np.ndarray]:
        host, pose = self._host[edge.parent]
        to_parent, to_child = edge.frames
        return host, transform_multiply(pose, transform_multiply(to_parent, transform_inverse(to_child)))

    def _own(self, path: str, frequencies) -> dict:
        """Entries of custom attributes of a prim."""
        return from_prim(self.builder, self.scene.prim_at(path), frequencies, self.scene.reader)

    def in_world(self, pose: np.ndarray, body: str) -> np.ndarray:
        """Converts a pose of a body in the stage to a pose in the world."""
        pose = transform_multiply(self._placed.get(body, self.stage_pose), pose)
        if self.options.parent_body >= 0:
            pose = transform_multiply(as_transform(self.builder.body_q[self.options.parent_body]), pose)
        return pose

    def _groups(self) -> list[list[Tree]]:
        """The trees of each articulation: those that loop joints connect, also disabled ones, unless they have different
        ArticulationRootAPIs. A tree with such a root is the first one."""
        group_of = {body: number for number, tree in enumerate(self._trees) for body in tree.bodies}
        groups = [[tree] for tree in self._trees]
        roots = [{self._root_prim(tree)} - {None} for tree in self._trees]
        for edge in self._loops:
            if edge.parent is not None:
                kept, gone = sorted(group_of[path] for path in (edge.parent, edge.child))
                if kept != gone and len(roots[kept] | roots[gone]) <= 1:
                    group_of |= {body: kept for tree in groups[gone] for body in tree.bodies}
                    groups[kept], groups[gone] = groups[kept] + groups[gone], []
                    roots[kept] |= roots[gone]
        return [sorted(group, key=lambda tree: self._root_prim(tree) is None) for group in groups if group]

    def _add_ordered(self) -> None:
        self._add_bodies(self.scene.bodies)
        # the original model may have had several trees in an articulation
        groups: dict[str, list[tuple]] = {}
        for tree in self._trees:
            rank = joint_rank(self.scene, tree.base, tree.root)
            groups.setdefault(self._root_prim(tree) or tree.root, []).append((rank, tree))
        found = [sorted(group, key=lambda entry: entry[0]) for group in groups.values()]
        steps = [(group[0][0], self._add_trees, [tree for _, tree in group]) for group in found]
        steps += [(joint_rank(self.scene, edge, None), self._add_loop, edge) for edge in self._loops]
        for _, add, step in sorted(steps, key=lambda entry: entry[0]):
            add(step)

    def _add_bodies(self, paths) -> None:
        merged: dict[str, list[str]] = {}
        for path in paths:
            merged.setdefault(self._host[path][0], []).append(path)
        for path, members in merged.items():
            self._add_body(path, members)

    def _add_trees(self, trees: list[Tree]) -> None:
        """Adds trees as one articulation."""
        self._articulated.append(trees)
        joints = []
        for tree in trees:
            joints.append(self._add_base(tree))
            for edge in tree.edges:
                if self._host[edge.child][0] == edge.child:
                    joints.append(self._add_joint(edge))
        label = self._label(trees[0])
        index = self.articulations[label] = join_articulation(self.builder, self.options.parent_body, joints, label)
        if self.options.parent_body < 0:
            for key, value in self._own(self._root_prim(trees[0]) or trees[0].root, ARTICULATION).items():
                attribute = self.builder.custom_attributes[key]
                attribute.values[index] = attribute.entry(value, key)

    def _label(self, tree: Tree) -> str:
        """Path of the ArticulationRootAPI of the tree, unless another tree has it as label; else a name after the root."""
        root = self._root_prim(tree)
        return f"{tree.root}_articulation" if root is None or root in self.articulations else root

    def _root_prim(self, tree: Tree) -> str | None:
        """Path of the ArticulationRootAPI of a tree: on its joint to the world, on a body, or above the root."""
        roots = self.scene.roots
        if not roots:
            return None
        paths = [tree.base.joint.path] if tree.base is not None else []
        for path in (*paths, *tree.bodies):
            if path in roots:
                return path
        return self._root_above(tree.root)

    def _root_above(self, path: str) -> str | None:
        """Path of the nearest ArticulationRootAPI above a prim."""
        passed = []
        while path and path not in self._roots_above:
            passed.append(path)
            path = path.rpartition("/")[0]
            if path in self.scene.roots:
                break
        found = path if path in self.scene.roots else self._roots_above.get(path)
        self._roots_above.update(dict.fromkeys(passed, found))
        return found

    def _add_body(self, path: str, members: list[str]) -> None:
        builder, body = self.builder, self.scene.bodies[path]
        parts = [moved_mass(self._mass[member], self._host[member][1]) for member in members]
        mass, com, inertia = rigid.combine([part for part in parts if part[0] > 0.0] or parts)
        index = builder.add_link(
            xform=self.in_world(body.pose, path),
            mass=mass,
            com=com,
            inertia=inertia,
            label=path,
            is_kinematic=body.kinematic,
            custom_attributes=self._own(path, BODY),
        )
        turn = self.in_world(IDENTITY, path)[3:]
        shift = transform_point(body.pose, com) - self._coms[path]
        velocity = body.velocity[:3] + np.cross(body.velocity[3:], shift)
        builder.body_qd[index] = (*quat_rotate(turn, velocity).tolist(), *quat_rotate(turn, body.velocity[3:]).tolist())
        for member in members:
            self.bodies[member] = index
            self.frames[member] = (index, self._host[member][1])
        merged = [member for member in members if member != path]
        self.merged |= {member: len(builder.frames) + i for i, member in enumerate(merged)}
        builder.frames.extend(merged, [index] * len(merged), [self.frames[member][1] for member in merged])

    def _add_base(self, tree: Tree) -> int:
        """Adds the joint of a root: that of the file, or that of the options."""
        builder, options, root = self.builder, self.options, self.bodies[tree.root]
        base, carrier = tree.base, options.parent_body
        free_to_choose = base is None or base.joint.kind == "fixed"
        if base is not None and not (free_to_choose and (options.floating or options.base_joint is not None)):
            index = self._add_joint(base)
        else:
            pose = self._local(carrier, self.in_world(self.scene.bodies[tree.root].pose, tree.root))
            floating = options.floating if options.floating is not None else carrier < 0
            labels = [f"{tree.root}_{kind}_joint" for kind in ("base", "free", "fixed")]
            index = add_root_joint(builder, options, floating, root, pose, labels)
            if floating and options.base_joint is None:
                start = builder.joint_qd_start[index]
                builder.joint_qd[start : start + 6] = list(builder.body_qd[root])
        self.base_joints[tree.root] = index
        return index

    def _local(self, carrier: int, pose: np.ndarray) -> np.ndarray:
        """Converts a world pose to a pose in a body of the builder; -1 is the world."""
        if carrier < 0:
            return pose
        return transform_multiply(transform_inverse(as_transform(self.builder.body_q[carrier])), pose)

    def _ends(self, edge: Edge) -> tuple[int, int, np.ndarray, np.ndarray]:
        """Body indices of a joint and its frames in these bodies, after merging and with the stage's pose."""
        to_parent, to_child = edge.frames
        if edge.parent is None:
            pose = self._placed.get(edge.child, self.stage_pose)
            parent, to_parent = self.options.parent_body, transform_multiply(pose, to_parent)
        else:
            host, pose = self._host[edge.parent]
            parent, to_parent = self.bodies[host], transform_multiply(pose, to_parent)
        host, pose = self._host[edge.child]
        return parent, self.bodies[host], to_parent, transform_multiply(pose, to_child)

    def _add_joint(self, edge: Edge) -> int:
        builder, joint = self.builder, edge.joint
        parent, child, to_parent, to_child = self._ends(edge)
        placed = {"parent_xform": to_parent, "child_xform": to_child, "label": joint.path, "enabled": joint.enabled}
        placed["custom_attributes"] = self._own(joint.path, JOINT)
        if edge.parent is not None or joint.collides:
            placed["collision_filter_parent"] = not joint.collides
        if joint.kind == "distance":
            low, high = joint.distances
            index = builder.add_joint_distance(parent, child, min_distance=low, max_distance=high, **placed)
        elif joint.kind == "free":
            index = builder.add_joint_free(child, parent=parent, **placed)
        elif joint.kind == "ball":
            passive = (NO_FORCES if joint.path in self._closing else {}) | joint.passive
            index = builder.add_joint_ball(parent, child, **passive, **joint.stops, **placed)
        else:
            linear, angular = ([self._dof(axis, edge) for axis in axes] for axes in (edge.linear, edge.angular))
            kind = JointType[joint.kind.upper() if linear or angular else "FIXED"]
            index = builder.add_joint(kind, parent, child, linear_axes=linear, angular_axes=angular, **placed)
        self.joints[joint.path] = index
        if edge.flipped and edge.angular:
            self._reversed.add(joint.path)
        if joint.kind in ("distance", "free"):
            self._start_free(index, parent, child, to_parent)
        else:
            q, qd = coordinates(self.scene, edge), speeds(self.scene, edge, self._coms)
            start = builder.joint_q_start[index]
            builder.joint_q[start : start + len(q)] = q.tolist()
            start = builder.joint_qd_start[index]
            builder.joint_qd[start : start + len(qd)] = qd.tolist()
        return index

    def _start_free(self, index: int, parent: int, child: int, to_parent: np.ndarray) -> None:
        """Sets the initial velocity of a free joint: of the child relative to its parent, in the axes of the parent's anchor frame."""
        builder = self.builder
        velocity = np.array(builder.body_qd[child])
        turn = to_parent[3:]
        if parent >= 0:
            carried = np.array(builder.body_qd[parent])
            pose = as_transform(builder.body_q[parent])
            here = transform_point(as_transform(builder.body_q[child]), builder.body_com[child])
            there = transform_point(pose, builder.body_com[parent])
            velocity[:3] -= carried[:3] + np.cross(carried[3:], here - there)
            velocity[3:] -= carried[3:]
            turn = transform_multiply(pose, to_parent)[3:]
        inverse = quat_inverse(turn)
        start = builder.joint_qd_start[index]
        parts = [*quat_rotate(inverse, velocity[:3]).tolist(), *quat_rotate(inverse, velocity[3:]).tolist()]
        builder.joint_qd[start : start + 6] = parts

    def _dof(self, axis, edge: Edge):
        """Settings of one axis: those of the file, and the builder's defaults for missing ones."""
        settings = dict(axis.settings)
        if axis.acceleration:
            self.scene.remark(
                "acceleration drives become force drives with the inertia that the joint moves at the start",
                edge.joint.path,
            )
            moved = self._moved_inertia(edge, axis)
            settings["target_ke"] *= moved
            settings["target_kd"] *= moved
        for gain in settings.keys() & {"target_ke", "target_kd"}:
            settings[gain] *= self.options.joint_drive_gains_scaling
        cfg = self._default(edge).copy(axis=tuple(axis.axis.tolist()), **settings)
        if self.options.force_position_velocity_actuation and cfg.target_ke != 0.0 and cfg.target_kd != 0.0:
            cfg.actuator_mode = JointTargetMode.POSITION_VELOCITY
        return cfg

    def _default(self, edge: Edge) -> JointDofConfig:
        """Settings that the file does not have: the builder's defaults; joints that close loops have no forces."""
        return JointDofConfig() if edge.joint.path in self._closing else self.builder.default_joint_cfg

    def _moved_inertia(self, edge: Edge, axis) -> float:
        """Mass or moment of inertia along an axis of the subtree of a joint, in the poses of the stage."""
        carried, waiting = [], [edge.child]
        while waiting:
            path = waiting.pop()
            carried.append(path)
            waiting += self._below.get(path, ())
        parts = [moved_mass(self._mass[path], self.scene.bodies[path].pose) for path in carried]
        mass, com, inertia = rigid.combine(parts)
        if any(axis is other for other in edge.linear):
            return mass
        frame = transform_multiply(self.scene.bodies[edge.child].pose, edge.frames[1])
        direction = quat_rotate(frame[3:], axis.axis)
        return float(direction @ (inertia + rigid.parallel_axis(mass, com - frame[:3])) @ direction)

    def _add_loop(self, edge: Edge) -> None:
        """Adds a joint outside of trees."""
        if edge.parent is not None and self._host[edge.parent][0] == self._host[edge.child][0]:
            self.scene.remark("joints connect parts of one body after merging, and are ignored", edge.joint.path)
            return
        self._add_joint(edge)

    def _number_dofs(self) -> None:
        builder = self.builder
        for path, joint in self.joints.items():
            start, count = builder.joint_qd_start[joint], sum(builder.joint_dof_dim[joint])
            self.dofs[path] = list(range(start, start + count))
        for whole in {whole for whole, _ in self._parts.values()} & set(self.joints):
            dofs = self.dofs[whole][::-1] if whole in self._reversed else self.dofs[whole]
            for path, (owner, number) in self._parts.items():
                if owner == whole:
                    self.joints[path], self.dofs[path] = self.joints[whole], [dofs[number]]

    def _add_mimics(self) -> None:
        for joint in self.scene.joints.values():
            if joint.mimic is None or joint.path not in self.joints:
                continue
            leader, offset, factor = joint.mimic
            if leader in self._parts:
                self.scene.remark("mimics that follow one axis of a D6 joint are ignored", joint.path)
                continue
            seen = {joint.path}
            while leader in self.scene.joints and self.scene.joints[leader].mimic is not None and leader not in seen:
                seen.add(leader)
                leader, inner_offset, inner_factor = self.scene.joints[leader].mimic
                offset, factor = offset + factor * inner_offset, factor * inner_factor
            if leader in seen or leader not in self.joints:
                what = "follows itself" if leader in seen else "is not a joint that was imported"
                raise ValueError(f"{self.scene.source}: <{joint.path}> mimics <{leader}>, which {what}; correct it")
            self.builder.set_joint_mimic(self.joints[joint.path], self.joints[leader], coeffs=(offset, factor))

    def _add_shape(self, shape: Shape, drawn: set) -> None:
        builder, cfg = self.builder, self.builder.default_shape_cfg
        if shape.body is None:
            body, pose = self.options.parent_body, self.stage_pose
        else:
            host, in_host = self._host[shape.body]
            body = self.bodies[host]
            pose = transform_multiply(in_host, transform_inverse(self.scene.bodies[shape.body].pose))
        indices, own = self.shapes.setdefault(shape.path, []), self._own(shape.path, SHAPE)
        if shape.site and not self.options.load_sites:
            return
        if shape.site:
            place = transform_multiply(pose, shape.place)
            indices.append(builder.add_site(body, xform=place, label=shape.path, custom_attributes=own))
            return
        if shape.body is None and not shape.collider and not self.options.load_static_visual_shapes:
            return
        if shape.collider:
            material = shape.material.settings if shape.material is not None else {}
            visible = shape.shown or self.options.force_show_colliders or shape.body not in drawn
            visible = visible and shape.body not in self._hidden
            cfg = cfg.copy(
                density=0.0, is_visible=visible, has_shape_collision=shape.collides, **material, **shape.settings
            )
        else:
            cfg = cfg.copy(density=0.0, has_shape_collision=False, has_particle_collision=False, is_visible=True)
        for piece in shape.pieces:
            if piece.type == GeoType.PLANE and not shape.collider and body >= 0:
                self.scene.remark("visual planes on bodies are ignored", shape.path)
                continue
            indices.append(
                builder.add_shape(
                    body=body,
                    type=piece.type,
                    xform=transform_multiply(pose, piece.pose),
                    scale=piece.scale,
                    src=piece.mesh,
                    cfg=cfg,
                    label=shape.path + piece.suffix,
                    color=shape.color,
                    opacity=shape.opacity,
                    custom_attributes=own,
                )
            )

    def _filter_collisions(self) -> None:
        """Adds filter pairs: within articulations without self collisions, of filtered pairs, and of collision groups."""
        of_body: dict[str | None, list[int]] = {}
        for path, indices in self.shapes.items():
            colliding = [i for i in indices if self.builder.shape_flags[i] & ShapeFlags.COLLIDE_SHAPES]
            of_body.setdefault(self.scene.shapes[path].body, []).extend(colliding)
        pairs = []
        for trees in self._articulated:
            if not self._collides_with_itself(trees[0]):
                own = [i for tree in trees for path in tree.bodies for i in of_body.get(path, ())]
                pairs += [(a, b) for n, a in enumerate(own) for b in own[n + 1 :]]
        paths = sorted(self.shapes)
        for first, second in self.scene.filters:
            pairs += self._cross(self._shapes_under(first, paths, of_body), self._shapes_under(second, paths, of_body))
        for first, second in self.scene.groups:
            pairs += self._cross(*([i for path in part for i in self.shapes.get(path, ())] for part in (first, second)))
        self.builder.shape_collision_filter_pairs.update(pairs)

    def _collides_with_itself(self, tree: Tree) -> bool:
        if self.options.enable_self_collisions is not None:
            return self.options.enable_self_collisions
        setting = self.scene.roots.get(self._root_prim(tree))
        return True if setting is None else setting

    def _cross(self, first: list[int], second: list[int]) -> list[tuple[int, int]]:
        """Pairs of two lists of shapes that can collide: on different bodies, not both static."""
        body = self.builder.shape_body
        return [(a, b) for a in first for b in second if body[a] != body[b]]

    def _shapes_under(self, path: str, paths: list[str], of_body) -> list[int]:
        """Shapes of a body, of a collider, of the articulation of a joint, or of all prims below a prim."""
        if path in self.scene.bodies:
            return of_body.get(path, [])
        if path in self.shapes:
            return self.shapes[path]
        if path in self.scene.roots and path in self.scene.joints:
            trees = (tree for tree in self._trees if self._root_prim(tree) == path)
            return [i for tree in trees for body in tree.bodies for i in of_body.get(body, ())]
        found = [shape for other in below(path, paths) for shape in self.shapes[other]]
        if not found and path not in self.scene.roots:
            self.scene.remark("filtered pairs name prims without colliders", path)
        return found
