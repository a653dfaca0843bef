"""Imports USD stages into a :class:`newton_like.model.builder.builder.ModelBuilder`."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from pxr import Sdf, Usd, UsdGeom

from newton_like.coercion import as_flag, as_number
from newton_like.importers.custom import add_entities
from newton_like.importers.newton_options import USD, refuses_others
from newton_like.importers.shared import regular_expressions, tell, unchanged_by_errors, upright, warn
from newton_like.importers.usd.build import UsdOptions
from newton_like.importers.usd.opening.files import open_stage, usd_errors
from newton_like.importers.usd.parse import StageParser
from newton_like.importers.usd.records import Tendon
from newton_like.importers.usd.scopes import Part, add_parts
from newton_like.importers.xml_source import ImportFileError
from newton_like.types import Axis


class UsdWarning(UserWarning):
    """Warning: a USD stage is ambiguous, or has parts that are ignored."""


@dataclass(frozen=True)
class UsdImport:
    """Report of :func:`add_usd`.

    Attributes:
        source: name of the file.
        bodies: body index by prim path. Prims that collapsed fixed joints connect share one body.
        frames: ``(body index, pose of the prim's frame in the body's link frame)`` by prim path.
        joints: joint index by prim path, without collapsed ones.
        dofs: dof indices by prim path of the joint; several one-axis joints between two bodies share one joint.
        base_joints: index of the joint of a root body, by the path of that body.
        articulations: index by path of the prim with the ArticulationRootAPI, else ``<root body>_articulation``.
        shapes: shape indices by prim path: colliders, visuals and sites.
        tendons: tendons of the file.
        stage_pose: pose of the stage in the world: the rotation of the up axis, and ``xform``.
        meters_per_unit, kilograms_per_unit, up_axis: values of the stage.
        remarks: statements about the stage, each with the paths concerned.
        not_understood: number of attributes (by name) and prims (by type) that were ignored.
    """

    source: str
    bodies: dict[str, int]
    frames: dict[str, tuple[int, np.ndarray]]
    joints: dict[str, int]
    dofs: dict[str, list[int]]
    base_joints: dict[str, int]
    articulations: dict[str, int]
    shapes: dict[str, list[int]]
    tendons: list[Tendon]
    stage_pose: np.ndarray
    meters_per_unit: float
    kilograms_per_unit: float
    up_axis: Axis
    remarks: dict[str, list[str]]
    not_understood: dict[str, int]

    def __contains__(self, key) -> bool:
        """Whether ``report[key]`` exists."""
        return key == "path_shape_map" or key in _NEWTON_KEYS or key in self.__dataclass_fields__

    def __getitem__(self, key: str):
        """An entry by its name in Newton's dictionary, or the name of an attribute.

        Newton's names are ``path_body_map``, ``path_joint_map``, ``path_shape_map`` (the first shape of each prim; :attr:`shapes` has all),
        ``linear_unit``, ``mass_unit`` and ``up_axis``.

        Raises:
            KeyError: there is no such entry.
        """
        if key == "path_shape_map":
            return {path: shapes[0] for path, shapes in self.shapes.items() if shapes}
        names = {**{name: name for name in self.__dataclass_fields__}, **_NEWTON_KEYS}
        if key not in names:
            known = ", ".join(sorted([*names, "path_shape_map"]))
            raise KeyError(f"the report of add_usd has no entry {key!r}; it has {known}")
        return getattr(self, names[key])


_NEWTON_KEYS = {
    "path_body_map": "bodies",
    "path_joint_map": "joints",
    "linear_unit": "meters_per_unit",
    "mass_unit": "kilograms_per_unit",
}
"""Names of entries in Newton's dictionary, and attributes of :class:`UsdImport`."""


@refuses_others(USD)
def add_usd(
    builder,
    source,
    *,
    xform=None,
    override_root_xform: bool = False,
    apply_up_axis_from_stage: bool = False,
    floating: bool | None = None,
    base_joint: dict | None = None,
    parent_body: int = -1,
    package_dirs=(),
    root_path: str = "/",
    ignore_paths=None,
    only_load_enabled_joints: bool = False,
    only_load_enabled_rigid_bodies: bool = True,
    time: float | None = None,
    scene_gravity: bool = True,
    hide_visuals: bool = False,
    load_visual_shapes: bool = True,
    load_static_visual_shapes: bool = True,
    load_sites: bool = True,
    hide_collision_shapes: bool = False,
    skip_mesh_approximation: bool = False,
    parse_visuals_as_colliders: bool = False,
    force_show_colliders: bool = False,
    enable_self_collisions: bool | None = None,
    ignore_inertial_definitions: bool = False,
    joint_ordering: str | None = "dfs",
    collapse_fixed_joints: bool = False,
    mesh_maxhullvert: int | None = None,
    joint_drive_gains_scaling: float = 1.0,
    force_position_velocity_actuation: bool = False,
    verbose: bool = False,
) -> UsdImport:
    """Adds the physics of a USD stage to a builder.

    Units are converted from ``metersPerUnit`` and ``kilogramsPerUnit`` of the stage to SI, degrees to radians, and the up axis of the
    stage to that of the builder. Labels are prim paths.

    * **Bodies** are prims with an enabled RigidBodyAPI; colliders and visuals belong to the nearest body above them,
      else to the world. Masses follow UsdPhysics: body over collider, mass over density over the material's density
      over that of ``builder.default_shape_cfg``. Velocities are in the axes of their body.
    * **Colliders**: cube, sphere (an ellipsoid under an uneven scale), capsule, cylinder, cone, plane (infinite), points
      (balls) and mesh. A mesh is the surface itself, or by its approximation a hull, convex parts (``convexDecomposition``, by
      CoACD; a hull for each connected part, with a remark, where CoACD is not installed), a box along its axes or a sphere around
      the centre of that box. A collider whose collisionEnabled is false does not collide and has no mass.
    * **Joints**: revolute, prismatic, spherical, fixed, distance, and generic ones as D6 whose locked axes are gone
      (FREE without any limit). All bodies that joints connect form a tree, ArticulationRootAPI or not; joints that are
      excluded from articulations, disabled or close a loop are added outside of it. Trees that such joints connect are one
      articulation, unless they have different ArticulationRootAPIs or the joint is disabled. Joint coordinates start where the
      bodies are, or at the state that the file gives (``state:*:physics:position``). Several hinges and slides between
      the same two bodies, as converters from MuJoCo write them, follow each other: one D6, or a chain of massless links.
      The cone of a spherical joint becomes its ``max_swing``; of two different angles, the smaller one.
    * **Drives** are in POSITION, VELOCITY, POSITION_VELOCITY (where a target velocity is given) or EFFORT mode (without
      gains). Joints without a drive have that of ``builder.default_joint_cfg``.
    * **Vendors**: ``newton:*``, ``physx*`` and ``mjc:*`` attributes for armature, friction, damping, velocity and effort
      limits, limit gains, margins and gaps, shells, hull sizes, self collisions, mimics, tendons (MjcTendon; PhysxTendonAxis and
      PhysxTendonAttachment schemas), actuators (MjcActuator), equalities of joints, ``mjc:gravcomp`` of bodies, softness of limits
      (``mjc:solreflimit``, ``mjc:solimplimit``, ``mjc:margin``). The last two become custom attributes of the namespace ``mujoco``, which
      need no declaration; other custom attributes are read if the builder declares them.
    * **Gravity** of the first physics scene becomes that of the builder, or of the world that is open.

    The returned report and one :class:`UsdWarning` list the parts that are ignored.

    Each call reads the stage again. For many equal worlds, add the stage to a separate builder once, and copy that with
    ``builder.replicate``.

    Users of Newton: indices by path are attributes of the report, static shapes stand on ``parent_body`` if there is
    one, meshes that are not hulls collide as hulls, and units are converted.

    Args:
        builder: a :class:`newton_like.model.builder.builder.ModelBuilder`. An error leaves it as it was.
        source: a ``Usd.Stage``, a path, or the text of a ``.usda`` file. Layers that a file names are read from its
            folder and below, and from ``package_dirs``; other layers, and URLs, raise an error before they are opened. The
            layers of an open stage are not checked.
        xform: pose of the stage in the world, or in ``parent_body``, after the rotation of the up axis.
        override_root_xform: needs ``xform``. Bodies of an articulation with an ArticulationRootAPI keep their poses relative to the prim
            with this API, which is at ``xform``. Other bodies, and geometry of the world, are where they are without this option.
        apply_up_axis_from_stage: set ``builder.up_axis`` to that of the stage, instead of rotating the stage.
        floating: true frees root bodies, including those with a fixed joint to the world; false fixes free root bodies;
            ``None`` keeps the joints of the stage.
        base_joint, parent_body, joint_ordering, collapse_fixed_joints, ignore_inertial_definitions: as for
            :func:`newton_like.importers.urdf.add_urdf`; ``base_joint`` is for root bodies.
        package_dirs: other folders from which layers may be read. Names that do not start with a dot are also searched
            there.
        root_path: path of the prim whose descendants are added.
        ignore_paths: regular expressions; prims with a matching path are ignored with their descendants; ``None``: none.
        only_load_enabled_joints: ignore joints whose jointEnabled is false. By default they are added with ``joint_enabled`` false.
        only_load_enabled_rigid_bodies: prims whose rigidBodyEnabled is false become parts of their parent body (the default), else bodies.
        time: time code at which attributes are read; ``None`` for their default values.
        scene_gravity: use the gravity of the stage.
        hide_visuals: leave out geometry without CollisionAPI; ``load_visual_shapes=False`` does the same.
        load_static_visual_shapes: false leaves out geometry without CollisionAPI that belongs to no body.
        load_sites: false leaves out sites.
        hide_collision_shapes: do not draw colliders of bodies that have geometry without CollisionAPI, whatever the stage and
            `force_show_colliders` say.
        skip_mesh_approximation: use meshes themselves, whatever approximation the stage states.
        parse_visuals_as_colliders: use geometry without CollisionAPI as colliders, and leave out the colliders.
        force_show_colliders: also draw colliders that the stage hides.
        enable_self_collisions: enable collisions between bodies of an articulation, except those that a joint connects.
            ``None``: the attribute of the ArticulationRootAPI's prim (``newton:selfCollisionEnabled``,
            ``physxArticulation:enabledSelfCollisions``); without it they are enabled, as in UsdPhysics.
        mesh_maxhullvert: largest number of vertices of a hull if the file has none; 64 by default.
        joint_drive_gains_scaling: factor on the drive gains of the stage.
        force_position_velocity_actuation: drives with both gains are in POSITION_VELOCITY mode.
        verbose: print how many bodies, joints and shapes were added.

    Returns:
        Indices by prim path, and remarks about the stage.

    Raises:
        FileNotFoundError: the file does not exist.
        ImportFileError: the stage is invalid, or names files outside of the allowed folders; a ``ValueError`` whose message
            names file, prim and solution.
        ValueError, TypeError, IndexError: a wrong argument.
    """
    hide_visuals = as_flag(hide_visuals, "hide_visuals") or not as_flag(load_visual_shapes, "load_visual_shapes")
    joint_drive_gains_scaling = as_number(joint_drive_gains_scaling, "joint_drive_gains_scaling")
    if joint_drive_gains_scaling < 0.0:
        raise ValueError(f"joint_drive_gains_scaling {joint_drive_gains_scaling:g} must be at least 0")
    options = UsdOptions.read(builder, locals())
    stage, name = open_stage(source, options.package_dirs)
    moment = Usd.TimeCode.Default() if time is None else Usd.TimeCode(as_number(time, "time"))
    root, ignored = _path(root_path), regular_expressions(() if ignore_paths is None else ignore_paths, "ignore_paths")

    def parse(path: str, left_out: frozenset):
        return StageParser(stage, name, moment, path, ignored, options, left_out).parse()

    with usd_errors(name):
        stage_axis = str(UsdGeom.GetStageUpAxis(stage))
    if stage_axis not in ("X", "Y", "Z"):
        raise ImportFileError(f"{name}: upAxis is {stage_axis!r}; make it 'Y' or 'Z'")
    stage_axis = Axis.from_string(stage_axis)
    up_axis = stage_axis if as_flag(apply_up_axis_from_stage, "apply_up_axis_from_stage") else builder.up_axis
    options = replace(options, turn=upright(up_axis, stage_axis))
    entities = any(frequency.usd_prim_filter is not None for frequency in builder.custom_frequencies.values())
    with unchanged_by_errors(builder) if entities or up_axis != builder.up_axis else nullcontext():
        builder.up_axis = up_axis
        parts, report = _added(builder, stage, name, root, parse, options, stage_axis)
        for part in parts if entities else ():
            own = {str(other.world.GetPath()) for other in parts if other.world is not None and other is not part}
            top = stage.GetPrimAtPath(root) if part.world is None else part.world
            add_entities(builder, _prims(top, ignored, own), part.scene.reader, name, report, part.index)
    warn(UsdWarning, report, name)
    if options.verbose:
        tell(name, report.bodies.values(), report.joints.values(), chain.from_iterable(report.shapes.values()))
    return report


def _added(
    builder, stage, name: str, root: str, parse, options: UsdOptions, up_axis: Axis
) -> tuple[list[Part], UsdImport]:
    """Adds a stage to a builder: its parts, and the report."""
    with usd_errors(name):
        parts = add_parts(builder, stage, root, parse, options)
        unresolved = stage.GetCompositionErrors()
        loaded = set(stage.GetLoadSet())
        unloaded = [path for path in stage.FindLoadable(root) if path not in loaded]
    scene = parts[0].scene
    for path in unloaded:
        scene.remark("payloads are not loaded, and their contents are missing; load them", str(path))
    for error in unresolved:
        scene.remark("references or payloads cannot be resolved, and their contents are missing", str(error))
    report = UsdImport(
        source=name,
        **{
            table: {path: entry for part in parts for path, entry in getattr(part.made, table).items()}
            for table in ("bodies", "frames", "joints", "dofs", "base_joints", "articulations", "shapes")
        },
        tendons=[tendon for part in parts for tendon in part.scene.tendons],
        stage_pose=parts[0].made.stage_pose,
        meters_per_unit=scene.units.meters,
        kilograms_per_unit=scene.units.kilograms,
        up_axis=up_axis,
        remarks=_joined(part.scene.remarks for part in parts),
        not_understood=dict(sum((part.scene.leftovers.not_understood for part in parts), Counter())),
    )
    return parts, report


def _joined(tables) -> dict[str, list[str]]:
    """Joins several tables of remarks."""
    joined: dict[str, list[str]] = {}
    for table in tables:
        for statement, paths in table.items():
            known = joined.setdefault(statement, [])
            known += [path for path in paths if path not in known[-8:]]
    return joined


def _prims(root, ignored: list[str], left_out: set[str]):
    """A prim and those below it, without those that are left out and what is below these."""
    patterns = [re.compile(pattern) for pattern in ignored]
    prims = iter(Usd.PrimRange(root, Usd.TraverseInstanceProxies()))
    for prim in prims:
        path = str(prim.GetPath())
        if path in left_out or any(pattern.search(path) for pattern in patterns):
            prims.PruneChildren()
        elif not prim.IsPseudoRoot():
            yield prim


def _path(value) -> str:
    if not isinstance(value, str | Sdf.Path):
        raise TypeError(f"root_path must be a prim path such as '/World', not {value!r}")
    path = str(value)
    if not Sdf.Path.IsValidPathString(path) or not Sdf.Path(path).IsAbsoluteRootOrPrimPath():
        raise ValueError(f"root_path {path!r} is not an absolute prim path; give one such as '/World'")
    return path
