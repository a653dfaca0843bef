"""Imports MJCF models (MuJoCo's XML) into a :class:`newton_like.model.builder.builder.ModelBuilder`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from newton_like.coercion import as_flag, as_number
from newton_like.importers.mjcf.actuation.actuators import Actuator
from newton_like.importers.mjcf.build import MjcfOptions, SceneBuilder
from newton_like.importers.mjcf.constraints import Equality, Keyframe
from newton_like.importers.mjcf.parse import parse_mjcf
from newton_like.importers.mjcf.source import read_mjcf
from newton_like.importers.newton_options import MJCF, refuses_others
from newton_like.importers.shared import regular_expressions, report_of, tell, unchanged_by_errors, warn
from newton_like.types import Axis


class MjcfWarning(UserWarning):
    """Warning: an MJCF file is ambiguous, or has parts that are ignored."""


@dataclass(frozen=True)
class MjcfImport:
    """Report of :func:`add_mjcf`.

    Attributes:
        name: name of the model; labels are ``<name>/<body>``, ``<name>/<joint>``, ``<name>/<geom>`` and so on.
        articulations: indices of the articulations, one for each child body of the world with its subtree; trees that
            equalities or tendons connect share one.
        links: link index by body name; -1 for the world and bodies that are merged with it.
        frames: ``(link index, pose of the body's frame in the link)`` by body name.
        joints: joint index by joint name. Several joints of a body may be one D6 joint.
        mocaps: index of the free joint of each mocap body, by body name. The body is kinematic: write its pose to ``State.joint_q``.
        dofs, coords: index of the first dof and of the first coordinate by joint name.
        shapes: shape index by geom name.
        sites: shape index by site name.
        actuators: see :class:`Actuator`, which gives the entry of ``Control`` for the control of each.
        equalities: see :class:`Equality`, which gives the joint of each.
        tendons: names; ``builder.tendons`` has the :class:`newton_like.model.tendons.Tendon` of each.
        pairs: attributes of the contact pairs of the file, as strings.
        excludes: pairs of bodies that do not collide.
        keyframes: see :class:`Keyframe`.
        sensors: kind and attributes of the file's sensors, as strings.
        option: attributes of ``<option>`` by name (``timestep``, ``integrator``, ...), and its flags by ``"flag <name>"``.
        remarks: statements about the file, each with the names of the entities concerned.
        not_understood: numbers of items that were ignored: elements by ``parent/tag``, attributes by ``tag@name``,
            text by ``tag/text``.
        unused: numbers of items without meaning for a simulation (``visual``, ``camera``), in the same form.
    """

    name: str
    articulations: list[int]
    links: dict[str, int]
    frames: dict[str, tuple[int, np.ndarray]]
    joints: dict[str, int]
    mocaps: dict[str, int]
    dofs: dict[str, int]
    coords: dict[str, int]
    shapes: dict[str, int]
    sites: dict[str, int]
    actuators: list[Actuator]
    equalities: list[Equality]
    tendons: list[str]
    pairs: list[dict[str, str]]
    excludes: list[tuple[str, str]]
    keyframes: list[Keyframe]
    sensors: list[tuple[str, dict[str, str]]]
    option: dict
    remarks: dict[str, list[str]]
    not_understood: dict[str, int]
    unused: dict[str, int]

    @property
    def bodies(self) -> dict[str, int]:
        """The same as ``links``."""
        return self.links

    @property
    def timestep(self) -> float:
        """Time step of the file [s]; MuJoCo's default of 0.002 if the file has none."""
        return self.option["timestep"]


@refuses_others(MJCF)
def add_mjcf(
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
    parse_visuals: bool = True,
    parse_meshes: bool = True,
    parse_sites: bool = True,
    parse_visuals_as_colliders: bool = False,
    force_show_colliders: bool = False,
    enable_self_collisions: bool = False,
    ignore_inertial_definitions: bool = False,
    skip_equality_constraints: bool = False,
    parse_mujoco_options: bool = True,
    joint_ordering: str | None = "dfs",
    collapse_fixed_joints: bool = False,
    collapse_massless_fixed_root: bool = False,
    armature_scale: float = 1.0,
    keyframe: str | int | None = None,
    ignore_names=(),
    ignore_classes=(),
    package_dirs=(),
    path_resolver: Callable | None = None,
    skip_missing_meshes: bool = False,
    mesh_maxhullvert: int | None = None,
    verbose: bool = False,
) -> MjcfImport:
    """Adds the model of an MJCF file to a builder.

    Every body becomes a link with the mass and inertia that MuJoCo's compiler gives it. ``free`` joints become FREE,
    ``ball`` BALL, ``slide`` PRISMATIC, ``hinge`` REVOLUTE, no joint FIXED. Several joints of a body become one D6 joint
    where they are slides followed by hinges through one point at right angles; others become a chain of joints with links
    without mass between them. Coordinates of slides and hinges have MuJoCo's numbers (``ref`` included), those of free and
    ball joints the order and axes of this engine.

    * Masks, excludes, pairs and the parent rule of the file define which shapes collide. Bodies of one tree do not collide with each
      other, unless ``enable_self_collisions`` is set. A tree of 500 or more moving shapes gets its own collision group for this.
    * ``motor``, ``position``, ``velocity`` and linear ``general`` actuators without activation of hinges, slides and tendons become
      drives: gains, effort limits, targets for the controls of `keyframe`, or for 0. Other actuators are added to
      ``builder.actuators``: with activation, with gains or biases that depend on length and velocity, with a range of forces beside
      other actuators of the joint or tendon, muscles, ``dcmotor``, crank sliders, ``adhesion``, and all on sites. Data only, with a
      remark, are ``pid``, ``orientation`` and ``plugin`` elements, types ``user``, ``dcmotor`` with a controller, thermal model or LuGre
      friction, and muscles without ``lengthrange`` on sliders or on joints without limits.
      Armature and damping of an actuator become those of its joint.
    * ``connect`` and ``weld`` become loop joints, and a linear ``joint`` equality becomes a mimic joint. Other ``joint`` equalities become
      rows of the custom frequency ``mujoco:equality_constraint``. Equalities that state ``solref`` or ``solimp`` are soft as in MuJoCo;
      others are rigid.
    * Tendons are added to ``builder.tendons``, and linear actuators on them become their drives.
    * Planes are infinite, as in MuJoCo. Mocap bodies are kinematic bodies with free joints, see ``mocaps`` of the report.
    * ``gravcomp`` of bodies becomes the custom attribute ``mujoco:gravcomp``.
    * ``actuatorfrcrange`` of joints becomes an effort limit. Where other forces of actuators than those of the drive act on the joint, or
      compensated weight, it holds for their sum, by the custom attributes ``mujoco:effort_rules``, ``effort_middle`` and
      ``jnt_actgravcomp``; drives of such joints with a ``forcerange``, and of tendons that move them, are in ``builder.actuators``.
    * Settings that the file does not have are those of ``builder.default_joint_cfg`` and ``builder.default_shape_cfg``;
      ``margin`` and ``gap`` keep their meaning.
    * If some geom of the file states ``solref`` or ``solimp``, contacts of its geoms are soft as in MuJoCo; geoms that state none have
      MuJoCo's defaults. If some geom states a ``priority`` or a ``condim`` other than 3, friction is combined as in MuJoCo. Otherwise, if
      geoms differ in their sliding friction, contacts between geoms of the file have the larger one, as in MuJoCo; contacts with other
      shapes have the mean. ``solmix`` has its meaning, too. Contact pairs have their own settings, and MuJoCo's defaults of those that
      they do not state; their ``solreffriction`` and ``adhesion`` are ignored. These settings become custom attributes, see
      :meth:`newton_like.solvers.SolverFeatherstone.register_custom_attributes`. Friction itself is never soft.
    * Limits of hinges, slides and ball joints that state ``solreflimit``, ``solimplimit`` or ``margin`` are soft as in MuJoCo; others are
      stiff. The range of a ball joint becomes its ``max_angle``.
    * Gravity of the file becomes the gravity of the current world, or of the builder.

    The returned report and one :class:`MjcfWarning` list the parts that are ignored, and options and flags that have no effect here
    but change the motion in MuJoCo. Not read are plugins,
    flexes, skins, composites, builtin meshes, and all elements that are not named here. Cameras, lights and ``visual`` are
    ignored. Global coordinates raise an error, as in MuJoCo since 2.3.4. ``attach`` raises an error, because the robot would be missing.

    Args:
        builder: a :class:`newton_like.model.builder.builder.ModelBuilder`. An error leaves it as it was.
        source: path, ``file:`` or ``package:`` URI, or the XML text. Includes, meshes and height fields are read from
            the folder that its own one is in (or the nearest one above with a ``package.xml``) and below, and from
            ``package_dirs``; from nowhere else.
        xform: pose of the file's world in the world, or in ``parent_body``.
        override_root_xform: needs ``xform``. All child bodies of the file's world are at ``xform``, whatever the file and `keyframe` say;
            geoms of the file's world are where they are without this option. ``xform`` rotates the axes of ``base_joint``.
        floating: true frees the only body in the file's world, false fixes it; ``None`` leaves it as in the file.
        base_joint, parent_body, scale, up_axis, mesh_maxhullvert: as for :func:`newton_like.importers.urdf.add_urdf`.
        hide_visuals: leave out geoms without collisions; ``parse_visuals=False`` does the same.
        parse_meshes: false leaves out all geoms of meshes, and their mass for bodies without ``<inertial>``.
        parse_sites: false leaves out all sites but those that tendons run through.
        parse_visuals_as_colliders: use visual geoms as collisions, and leave out the other geoms except planes and height fields.
        force_show_colliders: also draw collisions of bodies that have visuals.
        enable_self_collisions: enable collisions between moving shapes of one tree, if the rules of the file permit them. Off by
            default, as in ``add_urdf``.
        ignore_inertial_definitions: compute mass and inertia from the geoms, even for bodies with an ``<inertial>``.
        skip_equality_constraints: keep equalities as data only.
        parse_mujoco_options: use the gravity of the file.
        joint_ordering: order of bodies and joints in a tree: ``"dfs"`` (and ``None``) as in the file, depth first, or
            ``"bfs"`` breadth first.
        collapse_fixed_joints: merge bodies without joints into their parents. Child bodies of the world are not merged.
        collapse_massless_fixed_root: merge bodies that are welded to a free body without mass in the file's world, by way of bodies without
            mass, into this one.
        armature_scale: factor on the armature of joints, also of ``builder.default_joint_cfg``. Inertias of actuators are not scaled.
        keyframe: name or number of the keyframe whose positions become the initial ones, and whose controls, within their ranges, the
            initial targets and forces of the drives. Controls are 0 where it has none, and without a keyframe.
        ignore_names: regular expressions; bodies whose names begin with a match are ignored with their descendants and with all that
            refers to these (actuators, equalities, tendons, sensors, contacts; all keyframes, if joints, mocap bodies or actuators are
            ignored), and so are geoms and sites.
        ignore_classes: regular expressions; bodies whose ``childclass`` begins with a match are ignored with their descendants, and so are
            geoms and sites with such a ``class``. Only attributes of the element itself count.
        package_dirs: other folders from which files may be read.
        path_resolver: ``f(folder, name)`` returns the absolute path of a file that the model names, instead of the search in these
            folders: ``folder`` is that of the model (None for a text), and ``name`` includes the ``meshdir`` of the model. The returned
            path may be in any folder.
        skip_missing_meshes: leave out geoms whose mesh is in none of these folders, and list them in the report. Their mass is missing
            in bodies without ``<inertial>``.
        verbose: print how many bodies, joints and shapes were added.

    Returns:
        Indices by name, the parts that are kept as data, and remarks about the file.

    Raises:
        FileNotFoundError: the file does not exist.
        ImportFileError: the file is wrong, or something that it needs is missing or outside of the allowed folders; a
            ``ValueError`` whose message names file, line, element and solution.
        KeyError: the keyframe does not exist.
        ValueError, TypeError, IndexError: an argument is wrong.
    """
    if keyframe is not None and (isinstance(keyframe, bool) or not isinstance(keyframe, str | int | np.integer)):
        raise TypeError(f"keyframe must be a name or a number, not {keyframe!r}")
    keyframe = int(keyframe) if isinstance(keyframe, np.integer) else keyframe
    hide_visuals = as_flag(hide_visuals, "hide_visuals") or not as_flag(parse_visuals, "parse_visuals")
    armature_scale = as_number(armature_scale, "armature_scale")
    if armature_scale < 0.0:
        raise ValueError(f"armature_scale {armature_scale:g} must be at least 0")
    options = MjcfOptions.read(builder, locals())
    if path_resolver is not None and not callable(path_resolver):
        raise TypeError(f"path_resolver must be a function of a folder and a name, not {path_resolver!r}")
    file = read_mjcf(source, options.package_dirs, path_resolver)
    classes = regular_expressions(ignore_classes, "ignore_classes")
    model = parse_mjcf(file, regular_expressions(ignore_names, "ignore_names"), classes)
    made = SceneBuilder(builder, model, options)
    with unchanged_by_errors(builder):
        made.build()
    report = report_of(
        MjcfImport,
        made,
        model,
        model.findings,
        tendons=[record.name for record in made.tendons],
        sensors=[(element.tag, dict(element.attributes)) for element in model.elements["sensor"]],
    )
    warn(MjcfWarning, report, file.name)
    if options.verbose:
        tell(
            file.name, report.links.values(), report.joints.values(), [*report.shapes.values(), *report.sites.values()]
        )
    return report
