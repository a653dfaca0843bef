"""Builds a parsed MJCF model with the model builder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from newton_like.geometry.transforms import (
    IDENTITY,
    quat_from_axis_angle,
    quat_rotate,
    transform,
    transform_multiply,
)
from newton_like.importers.custom import BODY, JOINT, SHAPE, from_element, from_elements, understood
from newton_like.importers.mjcf.actuation.acting import Binder
from newton_like.importers.mjcf.actuation.actuators import (
    find_drives,
    read_actuators,
    reflect_rotors,
    site_ties,
)
from newton_like.importers.mjcf.actuation.drives import drives_of
from newton_like.importers.mjcf.actuation.ranges import effort_limit, find_sums
from newton_like.importers.mjcf.assets import Assets
from newton_like.importers.mjcf.constraints import (
    Names,
    pair_elements,
    read_contacts,
    read_equalities,
    read_keyframes,
    read_tendons,
    reflect_on_tendons,
    scaled_lengths,
    tendon_ties,
)
from newton_like.importers.mjcf.contact import read_pair_settings
from newton_like.importers.mjcf.mass import SOLIDS, fill_masses, fit_to_mesh, joint_inertias
from newton_like.importers.mjcf.records import Joint, Mjcf
from newton_like.importers.mjcf.shapes import ShapeBuilder
from newton_like.importers.mjcf.ties import Ties
from newton_like.importers.mjcf.trees import find_hosts, order_of, share_joints
from newton_like.importers.shared import Options, add_root_joint, join_articulation, remark_massless
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.mujoco.contact_settings import NAMESPACE, declare_body_settings, declare_contact_settings
from newton_like.model.tendons import Tendon, length_of
from newton_like.types import MAXVAL, JointTargetMode, JointType


@dataclass(frozen=True, kw_only=True)
class MjcfOptions(Options):
    """Arguments of :func:`newton_like.importers.mjcf.add_mjcf`."""

    skip_equality_constraints: bool
    parse_mujoco_options: bool
    keyframe: str | int | None
    skip_missing_meshes: bool
    parse_meshes: bool
    parse_sites: bool
    collapse_massless_fixed_root: bool
    armature_scale: float = 1.0
    verbose: bool


class SceneBuilder:
    """Builds one model. The constructor finds all errors of the file and does not modify the builder.

    Results are attributes with the names of :class:`newton_like.importers.mjcf.MjcfImport`.
    """

    def __init__(self, builder, model: Mjcf, options: MjcfOptions):
        self.builder, self.model, self.options = builder, model, options
        if model.compiler.discardvisual:
            self.options = options = replace(options, hide_visuals=True)
        if options.ignore_inertial_definitions:
            model.compiler.inertiafromgeom = True
        if options.override_root_xform:
            for body in model.bodies[1:]:
                if body.parent == 0:
                    body.pose = IDENTITY.copy()
        tags = {"body": BODY, "joint": JOINT, "freejoint": JOINT, "geom": SHAPE, "site": SHAPE}
        understood(builder, model.findings.not_understood, tags, "mjcf")
        names = Names(model)
        self.equalities = read_equalities(model, names)
        self.tendons = read_tendons(model, names)
        self.pairs, self.excludes = read_contacts(model, names)
        pair_settings = read_pair_settings(model, pair_elements(model, names))
        self.keyframes = read_keyframes(model)
        self._key = self._chosen_key()
        if not options.parse_meshes:
            self.model.geoms = [geom for geom in model.geoms if not geom.mesh]
        if not options.parse_sites:
            needed = {name for t in self.tendons for kind, *names in t.path for name in names if kind != "pulley"}
            self.model.sites = [site for site in model.sites if site.name in needed]
        assets = Assets(model, options.mesh_maxhullvert)
        if options.skip_missing_meshes:
            self._skip_missing(assets)
        paired = {pair[name] for pair in self.pairs for name in ("geom1", "geom2")}
        for i, geom in enumerate(model.geoms):
            if geom.mesh and geom.kind in SOLIDS:
                model.geoms[i] = fit_to_mesh(geom, assets, model.compiler.fitaabb)
        fill_masses(model, assets)
        self._inertias = None
        joints = names.tables["joint"]
        for joint in joints.values():
            if "armature" in joint.given:
                joint.given["armature"] *= options.armature_scale
        self.actuators = read_actuators(model, names.tables)
        reflect_rotors(self.actuators, joints)
        self._set_springs()
        find_drives(self.actuators, joints, self._moved)
        self.sums = find_sums(model, self.actuators, self.tendons, names.tables)
        efforts = {
            "joint": {name: None if name in self.sums.joints else joint.effort for name, joint in joints.items()}
        }
        efforts["tendon"] = {record.name: record.values["effort"] for record in self.tendons}
        drives = drives_of(self.actuators, efforts, model, self._key and self._key.ctrl)
        self._drives, self._tendon_drives = drives["joint"], drives["tendon"]
        reflect_on_tendons(self.actuators, self.tendons)
        self._names = names
        self._shapes = ShapeBuilder(builder, model, assets, options, paired)
        self._load(assets)
        self._shapes.read_settings(pair_settings)
        self._ties = Ties(model, names, self.equalities, self.tendons, options)
        self._static_pose = model.world_poses()
        merge = options.collapse_fixed_joints or model.compiler.fusestatic
        self._hosts = find_hosts(model, merge, model.compiler.fusestatic, self._massless_roots())
        self._trees = order_of(
            model,
            self._hosts,
            [
                *self._ties.pairs(),
                *tendon_ties(model, names, self.tendons),
                *site_ties(self.actuators, names.tables["site"]),
            ],
            options.joint_ordering == "bfs",
        )
        self._base = self._find_base()
        self.links: dict[str, int] = {"world": options.parent_body}
        self.frames: dict[str, tuple[int, np.ndarray]] = {}
        self.joints: dict[str, int] = {}
        self.dofs: dict[str, int] = {}
        self.coords: dict[str, int] = {}
        self.mocaps: dict[str, int] = {}
        self.articulations: list[int] = []
        # of tendons
        self.indices: dict[str, int] = {}

    # ------------------------------------------------------------------------------------------- before building

    def _moved(self) -> dict[int, float]:
        if self._inertias is None:
            self._inertias = joint_inertias(self.model)
        return self._inertias

    def _set_springs(self) -> None:
        """Computes stiffness and damping of joints with a time constant and a damping ratio."""
        for body in self.model.bodies:
            for joint in body.joints:
                if joint.springdamper is None:
                    continue
                inertia = self._moved()[id(joint)]
                time, ratio = joint.springdamper
                joint.given["stiffness"] = inertia / (time * ratio) ** 2
                joint.given["damping"] = 2.0 * inertia / time

    def _skip_missing(self, assets: Assets) -> None:
        """Removes geoms whose mesh, or the mesh that they are fitted to, has no file."""
        missing = {name for name in {geom.mesh for geom in self.model.geoms if geom.mesh} if assets.is_missing(name)}
        for geom in self.model.geoms:
            if geom.mesh in missing:
                self.model.findings.remark(
                    "meshes are missing; their geoms are ignored; bodies without <inertial> lack the masses of these geoms",
                    geom.mesh,
                )
        self.model.geoms = [geom for geom in self.model.geoms if geom.mesh not in missing]

    def _load(self, assets: Assets) -> None:
        """Loads the assets of shapes, and removes visual geoms whose files are missing."""
        kept = []
        for geom in self.model.geoms:
            try:
                if self._shapes.wanted(geom) and geom.kind == "mesh":
                    assets.mesh(geom.mesh)
                elif geom.kind == "hfield":
                    assets.hfield(geom.hfield)
            except ImportFileError:
                if not self._shapes.is_visual(geom) or self.options.parse_visuals_as_colliders:
                    raise
                self.model.findings.remark("visual meshes are missing or unreadable and ignored", geom.mesh)
                continue
            if geom.kind == "sdf":
                self.model.findings.remark("geoms of type sdf are ignored", geom.name)
            elif self._shapes.wanted(geom):
                kept.append(geom)
        self.model.geoms = kept

    def _chosen_key(self):
        wanted = self.options.keyframe
        if wanted is None:
            return None
        for index, key in enumerate(self.keyframes):
            if wanted == key.name or (isinstance(wanted, int) and wanted == index):
                if key.qpos is None:
                    raise ValueError(f"keyframe {wanted!r} has no qpos; name another")
                return key
        shown = ", ".join(repr(key.name) for key in self.keyframes[:8]) or "none"
        if not self.keyframes and any("ignore_names" in text for text in self.model.findings.remarks):
            shown += "; ignore_names and ignore_classes leave keyframes out, see the remarks of the report"
        raise KeyError(f"no keyframe is called {wanted!r}; there are: {shown}")

    def _massless_roots(self) -> set[int]:
        """The bodies without mass from free bodies in the world on that are welded to each other, if what these carry is to be merged."""
        chain: set[int] = set()
        if not self.options.collapse_massless_fixed_root or self.options.parent_body >= 0:
            return chain
        given = self.options.floating is not None or self.options.base_joint is not None
        for index, body in enumerate(self.model.bodies[1:], 1):
            if body.parent == 0:
                free = self.options.frees_root if given else [joint.kind for joint in body.joints] == ["free"]
            else:
                free = body.parent in chain and not body.joints
            if free and not body.mocap and body.mass == 0.0:
                chain.add(index)
        return chain

    def _find_base(self) -> int:
        """The body whose joint the user's arguments replace, or -1."""
        if self.options.floating is None and self.options.base_joint is None:
            return -1
        roots = [i for i, body in enumerate(self.model.bodies) if body.parent == 0 and self._hosts.body[i] == i]
        what = "floating" if self.options.base_joint is None else "base_joint"
        if len(roots) != 1:
            raise ValueError(
                f"{what} applies to a single root body, but the file has {len(roots)} bodies in the world; omit {what}"
            )
        kinds = [joint.kind for joint in self.model.bodies[roots[0]].joints]
        if kinds not in ([], ["free"]):
            raise ValueError(
                f"{what} replaces the joint of the root body {self.model.bodies[roots[0]].name!r}, but this body has joints "
                f"({', '.join(kinds)}) in the file; omit {what}"
            )
        return roots[0]

    # ------------------------------------------------------------------------------------------- building

    def build(self) -> None:
        """Adds bodies, joints, shapes, articulations, loops, tendons and collision filters to the builder."""
        scale, before = self.options.scale, self.builder.joint_count
        self._shapes.settings.declare()
        if any(joint.limit for body in self.model.bodies for joint in body.joints):
            declare_contact_settings(self.builder)
        self._world_pose = self.options.world_pose(self.builder)
        self._link_of: dict[int, int] = {0: self.options.parent_body}
        for tree in self._trees:
            first = self.builder.joint_count
            for body in tree:
                self._add_body(body)
            joints = list(range(first, self.builder.joint_count))
            label = self.model.name if len(self._trees) == 1 else self.label(self.model.bodies[tree[0]].name)
            self.articulations.append(join_articulation(self.builder, self.options.parent_body, joints, label))
        for index, body in enumerate(self.model.bodies):
            host, pose = self._hosts.place(index, IDENTITY)
            self.frames[body.name] = (self._link_of[host], self._in_link(host, pose))
            self.links[body.name] = self._link_of[host]
            if host != index:
                link, pose = self.frames[body.name]
                self.builder.frames.extend([self.label(body.name)], [link], [pose])
        for geom in self.model.geoms:
            host, pose = self._hosts.place(geom.body, geom.pose)
            in_world = transform_multiply(self._static_pose[geom.body], geom.pose)
            in_world = transform_multiply(self._world_pose, _scaled(in_world, scale))
            self._shapes.add_geom(geom, self._link_of[host], self._in_link(host, pose), in_world)
        for site in self.model.sites:
            host, pose = self._hosts.place(site.body, site.pose)
            self._shapes.add_site(site, self._link_of[host], self._in_link(host, pose))
        self.shapes, self.sites = self._shapes.shapes, self._shapes.sites
        self._shapes.filter_pairs(self.pairs, self.excludes)
        self._shapes.settings.add_pairs(self.shapes)
        remark_massless(self.builder, range(before, self.builder.joint_count), self.model.findings.remark)
        self._ties.declare(self.builder)
        self._ties.add_mimics(self.builder, self.joints)
        self._ties.add_polynomials(self.builder, self.joints)
        self._ties.add_loops(self.builder, self._hosts, self._link_of, self._in_link)
        self._add_tendons()
        self._ties.add_tendon_ties(self.builder, self.indices)
        Binder(self, self._key, self._names.tables).bind()
        self._relieve()
        for key in self.keyframes:
            if key.qpos is not None:
                key.joint_q = self._joint_q(key.qpos) | self._mocap_q(key)
        if self._key is not None:
            for coordinate, value in self._key.joint_q.items():
                self.builder.joint_q[coordinate] = value
        self._set_gravity()

    def _in_link(self, host: int, pose: np.ndarray) -> np.ndarray:
        """Converts a pose in a body [m of the model] to a pose in its link; the link of the world is the world or ``parent_body``."""
        pose = _scaled(pose, self.options.scale)
        return transform_multiply(self.options.root_pose, pose) if host == 0 else pose

    def label(self, name: str) -> str:
        """The label of an entity of the file."""
        return f"{self.model.name}/{name}"

    def _add_mocap(self, body, link: int) -> None:
        """Adds the free joint of a mocap body, a kinematic body whose coordinates the user sets."""
        self.mocaps[body.name] = self.builder.add_joint_free(link, label=self.label(f"{body.name}_mocap"))

    def _add_link(self, body: int, label: str, real: bool, is_kinematic: bool = False) -> int:
        record, scale = self.model.bodies[body], self.options.scale
        pose = transform_multiply(self._world_pose, _scaled(self._static_pose[body], scale))
        if not real:
            return self.builder.add_link(xform=pose, label=label, lock_inertia=True)
        return self.builder.add_link(
            xform=pose,
            mass=record.mass,
            com=scale * np.asarray(record.com),
            inertia=scale**2 * np.asarray(record.inertia),
            label=label,
            lock_inertia=True,
            is_kinematic=is_kinematic,
            custom_attributes=from_element(self.builder, record.element, BODY, "mjcf"),
        )

    def _add_body(self, index: int) -> None:
        body, builder = self.model.bodies[index], self.builder
        host, pose = self._hosts.place(body.parent, body.pose)
        parent, anchor = self._link_of[host], self._in_link(host, pose)
        if index == self._base:
            self._link_of[index] = self._add_link(index, self.label(body.name), True)
            self._add_base(self._link_of[index], anchor, body)
            return
        if not body.joints:
            movable = body.mocap and parent < 0
            link = self._link_of[index] = self._add_link(index, self.label(body.name), True, movable)
            if movable:
                self._add_mocap(body, link)
                return
            builder.add_joint_fixed(
                parent, link, parent_xform=anchor, label=self.label(f"{body.name}_weld"), collision_filter_parent=False
            )
            if body.mocap:
                self.model.findings.remark(
                    "mocap bodies are welded to parent_body where the file places them", body.name
                )
            return
        alone = {id(self._names.tables["joint"][name]) for name in self._ties.alone}
        groups = share_joints(body.joints, alone)
        for number, group in enumerate(groups):
            last = number == len(groups) - 1
            label = body.name if last else f"{body.name}/{'+'.join(joint.name for joint in group)}"
            link = self._add_link(index, self.label(label), last)
            self._add_joints(group, parent, link, anchor)
            parent, anchor = link, IDENTITY
        self._link_of[index] = link

    def _add_base(self, link: int, anchor: np.ndarray, body) -> None:
        """Adds the joint of the root body that the user's arguments give instead of the file's."""
        options = self.options
        name = body.joints[0].name if body.joints else "floating_base"
        labels = [self.label(label) for label in ("base_joint", name, "fixed_base")]
        joint = add_root_joint(self.builder, options, options.floating, link, anchor, labels)
        if body.joints and options.base_joint is None and options.floating:
            self._remember(body.joints[0], joint, 0)

    def _remember(self, joint: Joint, index: int, number: int) -> None:
        self.joints[joint.name] = index
        self.dofs[joint.name] = self.builder.joint_qd_start[index] + number
        self.coords[joint.name] = self.builder.joint_q_start[index] + number
        for name, value in joint.limit.items():
            # lengths of a slide joint
            if joint.kind == "slide" and name == "limit_margin":
                value *= self.options.scale
            elif joint.kind == "slide" and name == "solimplimit":
                value = (*value[:2], self.options.scale * value[2], *value[3:])
            self.builder.custom_attributes[f"{NAMESPACE}:{name}"].values[self.dofs[joint.name]] = value

    def _add_joints(self, group: list[Joint], parent: int, link: int, anchor: np.ndarray) -> None:
        """Adds one joint for one or several joints of the file."""
        builder, scale = self.builder, self.options.scale
        label = self.label("+".join(joint.name for joint in group))
        kind = group[0].kind
        axes_of = [joint for slide in (True, False) for joint in group if (joint.kind == "slide") is slide]
        common = {
            "label": label,
            "collision_filter_parent": False,
            "custom_attributes": from_elements(builder, [joint.element for joint in axes_of], "mjcf"),
        }
        if kind == "free":
            linear, angular = self._six(group[0])
            index = builder.add_joint(JointType.FREE, parent, link, linear_axes=linear, angular_axes=angular, **common)
            self._remember(group[0], index, 0)
            if group[0].given.get("stiffness"):
                at = builder.joint_q_start[index]
                builder.joint_rest_q[at : at + 7] = builder.joint_q[at : at + 7]
            return
        place = scale * next((joint.pos for joint in group if joint.kind != "slide"), group[0].pos)
        if kind == "ball":
            # MuJoCo takes the larger number of the range
            stop = {} if group[0].range is None else {"max_angle": max(group[0].range)}
            index = builder.add_joint_ball(
                parent,
                link,
                parent_xform=transform_multiply(anchor, transform(place)),
                child_xform=transform(place),
                **stop,
                **self._given(group[0]),
                **common,
            )
            self._remember(group[0], index, 0)
            return
        slides = [joint for joint in group if joint.kind == "slide"]
        hinges = [joint for joint in group if joint.kind == "hinge"]
        back = place - scale * sum((joint.ref * joint.axis for joint in slides), np.zeros(3))
        child = transform(place)
        if hinges and hinges[-1].ref != 0.0:
            child = transform(place, quat_from_axis_angle(hinges[-1].axis, hinges[-1].ref))
        common |= {"parent_xform": transform_multiply(anchor, transform(back)), "child_xform": child}
        axes = {
            "linear_axes": [self._dof(joint) for joint in slides],
            "angular_axes": [self._dof(joint) for joint in hinges],
        }
        kind = JointType.D6 if len(group) > 1 else JointType.PRISMATIC if slides else JointType.REVOLUTE
        index = builder.add_joint(kind, parent, link, **axes, **common)
        for number, joint in enumerate(slides + hinges):
            self._remember(joint, index, number)
            if joint.name in self._drives:
                dof, drive = self.dofs[joint.name], self._drives[joint.name]
                builder.joint_f[dof], builder.joint_act[dof] = drive.force, drive.feedforward
            builder.joint_q[builder.joint_q_start[index] + number] = joint.ref * (
                scale if joint.kind == "slide" else 1.0
            )

    def _six(self, joint: Joint):
        """Axes of a free joint."""
        if any(joint.given.values()):
            self.model.findings.remark(
                "free joints have springs, armature, damping or friction: these act on the centre of mass, not on the origin of the frame",
                joint.name,
            )
        if not any(joint.given.values()):
            return None, None
        make = self.builder.JointDofConfig.create_unlimited
        given = [self._given(joint, turns) for turns in (False, True)]
        return tuple([make(axis).copy(**settings) for axis in ("x", "y", "z")] for settings in given)

    def _given(self, joint: Joint, turns: bool = True) -> dict[str, float]:
        """Settings of a joint in the file. The armature of a rotation is an inertia, and scales with the square of lengths."""
        given = dict(joint.given)
        if turns and "armature" in given:
            given["armature"] *= self.options.scale**2
        elif self.options.armature_scale != 1.0 and joint.kind != "free" and "armature" not in given:
            given["armature"] = self.builder.default_joint_cfg.armature * self.options.armature_scale
        return given

    def _dof(self, joint: Joint):
        """Settings of one axis: those of the file, and the builder's defaults for missing ones."""
        unit = self.options.scale if joint.kind == "slide" else 1.0
        default = self.builder.default_joint_cfg
        settings = {
            "axis": tuple(joint.axis.tolist()),
            "limit_lower": -MAXVAL,
            "limit_upper": MAXVAL,
            **self._given(joint, turns=joint.kind == "hinge"),
        }
        if joint.range is not None:
            settings.update(limit_lower=unit * joint.range[0], limit_upper=unit * joint.range[1])
        if "stiffness" in joint.given:
            settings["rest_q"] = unit * joint.springref
        drive = self._drives.get(joint.name)
        if drive is None:
            return default.copy(**settings, **effort_limit(joint, self.sums, None))
        settings |= {
            "actuator_mode": JointTargetMode[drive.mode],
            "target_ke": drive.ke,
            "target_kd": drive.kd,
            "target_q": unit * drive.target_q,
            "target_qd": unit * drive.target_qd,
        }
        return default.copy(**settings, **effort_limit(joint, self.sums, drive))

    def _with_rest(self, tendon: Tendon) -> Tendon:
        """A spatial tendon with the length at which the joints are at ``springref``, or unchanged where this is the initial pose."""
        joints = [joint for body in self.model.bodies for joint in body.joints if joint.kind in ("hinge", "slide")]
        if all(joint.springref == joint.ref for joint in joints):
            return tendon
        builder, poses = self.builder, self.model.spring_poses()
        body_q = list(builder.body_q)
        for host in {self._hosts.place(i, IDENTITY)[0] for i in range(1, len(poses))} - {0}:
            body_q[self._link_of[host]] = transform_multiply(self._world_pose, _scaled(poses[host], self.options.scale))
        names = ("shape_transform", "shape_body", "shape_type", "shape_scale")
        length = length_of(tendon, SimpleNamespace(body_q=body_q, **{name: getattr(builder, name) for name in names}))
        return replace(tendon, rest_length=(length, length))

    def _add_tendons(self) -> None:
        for record in self.tendons:
            joints = tuple(
                (self.joints[name], self.dofs[name] - self.builder.joint_qd_start[self.joints[name]], factor)
                for name, factor in record.joints
            )
            path = []
            for kind, *rest in record.path:
                if kind == "site":
                    path.append(("site", self.sites[rest[0]]))
                elif kind == "geom":
                    path.append(("geom", self.shapes.get(rest[0], -1), self.sites[rest[1]] if rest[1] else -1))
                else:
                    path.append(("pulley", rest[0]))
            values, drive = dict(record.values), self._tendon_drives.get(record.name)
            if drive is not None:
                values |= {
                    "target_ke": drive.ke,
                    "target_kd": drive.kd,
                    "effort_limit": drive.effort,
                    "force": drive.force,
                }
                values |= {"target_q": drive.target_q, "target_qd": drive.target_qd}
            if path and self.options.scale != 1.0:
                values = scaled_lengths(values, self.options.scale)
            tendon = Tendon(label=self.label(record.name), joints=joints, path=tuple(path), **values)
            if tendon.is_spatial and tendon.rest_length is None and tendon.stiffness > 0.0:
                tendon = self._with_rest(tendon)
            self.indices[record.name] = self.builder.add_tendon(tendon)

    def _relieve(self) -> None:
        """Gives bodies the shares of their weight that are taken away."""
        bodies = self.model.bodies
        if not any(body.gravcomp for body in bodies):
            return
        declare_body_settings(self.builder)
        shares = self.builder.custom_attributes[f"{NAMESPACE}:gravcomp"].values
        for index, body in enumerate(bodies[1:], 1):
            host = self._hosts.body[index]
            if host and body.gravcomp != bodies[host].gravcomp and self._hosts.body[index] != index:
                self.model.findings.remark("bodies that are merged into others get the gravcomp of these", body.name)
            elif host == index and body.gravcomp:
                shares[self._link_of[index]] = body.gravcomp

    def _joint_q(self, qpos) -> dict[int, float]:
        """Converts MuJoCo's coordinates to coordinates of the builder, by index."""
        result, at, scale = {}, 0, self.options.scale
        for body in self.model.bodies:
            for joint in body.joints:
                count = {"free": 7, "ball": 4}.get(joint.kind, 1)
                values, at = np.array(qpos[at : at + count]), at + count
                if joint.name not in self.coords:
                    continue
                if joint.kind == "free":
                    pose = transform(scale * values[:3], _quaternion(values[3:]))
                    pose = IDENTITY if self.options.override_root_xform else pose
                    values = transform_multiply(self.options.root_pose, pose)
                elif joint.kind == "ball":
                    values = _quaternion(values)
                elif joint.kind == "slide":
                    values = scale * values
                start = self.coords[joint.name]
                result |= {start + i: float(value) for i, value in enumerate(values)}
        return result

    def _mocap_q(self, key) -> dict[int, float]:
        """The coordinates of mocap bodies in a keyframe, by index."""
        result = {}
        bodies = [body for body in self.model.bodies if body.mocap]
        for i, body in enumerate(bodies):
            if body.name not in self.mocaps:
                continue
            pose = body.pose.copy()
            if key.mpos:
                pose[:3] = key.mpos[3 * i : 3 * i + 3]
            if key.mquat:
                pose[3:] = _quaternion(np.array(key.mquat[4 * i : 4 * i + 4]))
            pose = transform_multiply(self.options.root_pose, _scaled(pose, self.options.scale))
            start = self.builder.joint_q_start[self.mocaps[body.name]]
            result |= {start + k: float(value) for k, value in enumerate(pose)}
        return result

    def _set_gravity(self) -> None:
        option = self.model.option
        gravity = (0.0, 0.0, 0.0) if option.get("flag gravity") is False else option.get("gravity")
        if gravity is not None and self.options.parse_mujoco_options:
            self.builder._adopt_gravity(tuple(quat_rotate(self.options.turn[3:], np.array(gravity)).tolist()))


def _scaled(pose: np.ndarray, scale: float) -> np.ndarray:
    return pose if scale == 1.0 else transform(scale * pose[:3], pose[3:])


def _quaternion(wxyz: np.ndarray) -> np.ndarray:
    """Converts a quaternion w x y z to a unit quaternion x y z w; zeros become the identity, as in MuJoCo."""
    length = np.linalg.norm(wxyz)
    if length == 0.0:
        return np.array([0.0, 0.0, 0.0, 1.0])
    return np.roll(wxyz / length, -1)
