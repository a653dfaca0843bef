"""Simulation of stages in place: the motion is written to the prims of the stage."""

from __future__ import annotations

import logging
import math
import os
import warnings

import numpy as np
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdUtils, Vt

from newton_like.coercion import as_count, as_flag, as_number
from newton_like.exporters.usd.author import Author, as_target, save
from newton_like.geometry.transforms import quat_from_matrix, transform_inverse, transform_multiply, transform_to_matrix
from newton_like.importers.newton_options import USD
from newton_like.importers.shared import folders
from newton_like.importers.usd import UsdWarning, add_usd
from newton_like.importers.usd.opening.files import open_stage
from newton_like.importers.usd.values.units import placement
from newton_like.kinematics import eval_fk
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.overlays import overlays_of
from newton_like.options import named_arguments, unknown_option
from newton_like.solvers.choice import SOLVERS, SolverChoice, choose_solver
from newton_like.types import Axis

log = logging.getLogger("newton_like.usd")

LONGEST_STEP = 1.0 / 240.0
"""Longest step of the solver [s] if the user gives no number of substeps."""

SHEAR = 1.0e-6
"""Cosine between the axes of a local frame from which the frame is written as a matrix."""

SAME_SIZE = 1.0e-9
"""Relative change of a scale from which it is written again; rounding errors are about 1e-15."""

PARTS = ("translate", "orient", "scale")
"""The ops that carry the motion."""

SUFFIX = ":simulated"
"""Suffix of the names of the ops for the motion; ops of the source do not change."""


class Simulation:
    """Simulation of the physics of a USD stage, which writes the motion to the stage as time samples.

    The source does not change: samples go into a separate layer below the session layer, or into a layer of the stage that the
    caller chooses. There they override the transforms of the prims, for all kinds of transform ops, parents, units and up axes.

    Example::

        simulation = Simulation("scene.usda")
        simulation.step(240)
        simulation.save("motion.usda")      # a stage that holds the motion, and scene.usda as a sublayer

    Bodies inside of instances get separate prims: the layer disables the instances above them.

    Attributes:
        stage: the ``Usd.Stage``.
        layer: the ``Sdf.Layer`` with the motion.
        report: the result of :func:`newton_like.importers.usd.add_usd`, with paths and indices.
        model, state, control, solver: objects of the simulation. The control may be changed at any time.
        choice: the :class:`newton_like.solvers.SolverChoice`: which solver, and why. It is also logged (logger ``newton_like.usd``).
        time: simulated time [s].
        frame_dt: time between samples [s].
    """

    def __init__(
        self,
        source,
        *,
        layer: Sdf.Layer | None = None,
        fps: float | None = None,
        substeps: int | None = None,
        start_time_code: float | None = None,
        dtype=wp.float32,
        device=None,
        solver: dict | str | type | None = None,
        solver_options: dict | None = None,
        write: bool = True,
        **options,
    ):
        """Reads the physics and writes the first sample.

        Args:
            source: a ``Usd.Stage`` or the path of a stage.
            layer: the layer for the motion, part of the stage; by default a new layer below the session layer.
            fps: samples a second; by default the stage's ``timeCodesPerSecond``.
            substeps: steps of the solver between samples; by default the smallest number with steps of at most 1/240 s.
            start_time_code: time code of the first sample; by default the stage's ``startTimeCode``.
            dtype: scalar type of the model.
            device: Warp device of the model.
            solver: ``"auto"``: the solver that fits the model, see :func:`newton_like.solvers.choose_solver`; the name of a solver
                (``"featherstone"``, ``"xpbd"``) or a class; None: :class:`newton_like.solvers.SolverFeatherstone`; a dictionary: arguments
                of this solver.
            solver_options: arguments of the solver. With ``"auto"``, a dictionary of them for each solver by its name,
                ``{"featherstone": {...}, "xpbd": {...}}``.
            write: whether :meth:`step` writes samples; if false, only :meth:`write` does.
            options: arguments of :func:`newton_like.importers.usd.add_usd`.

        Raises:
            TypeError, ValueError: a wrong argument, a layer that is not part of the stage, or an invalid stage.
            FileNotFoundError: the file does not exist.
        """
        known = (*named_arguments(add_usd), *USD)
        for name in options:
            if name not in known:
                raise unknown_option("Simulation", name, named_arguments(Simulation.__init__), known)
        self.stage, _ = open_stage(source, folders(options.get("package_dirs")), text=False)
        self.layer = self._choose_layer(layer)
        self._time_codes = self.stage.GetTimeCodesPerSecond()
        fps = self._time_codes if fps is None else as_number(fps, "fps")
        if not fps > 0.0:
            raise ValueError(f"fps {fps:g} must be above 0")
        self.fps, self.frame_dt = fps, 1.0 / fps
        if substeps is None:
            substeps = math.ceil(self.frame_dt / LONGEST_STEP - 1.0e-9)
        self.substeps = as_count(substeps, "substeps")
        if start_time_code is None:
            start_time_code = self.stage.GetStartTimeCode()
        self._start = as_number(start_time_code, "start_time_code")
        self._writes = as_flag(write, "write")
        self._part_instances()
        builder = ModelBuilder(up_axis=Axis.from_any(str(UsdGeom.GetStageUpAxis(self.stage))))
        options.setdefault("time", self._start)
        self.report = add_usd(builder, self.stage, **options)
        self.model = builder.finalize(device=device, dtype=dtype)
        self.choice, given = _choose(self.model, solver, solver_options)
        log.info("%s is simulated by %s", self.stage.GetRootLayer().identifier, self.choice)
        self.solver = self.choice.solver(self.model, **given)
        self.state, self.control = self.model.state(), self.model.control()
        eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)
        self.frame = 0
        self._find_tracks()
        self._declare()
        if self._writes:
            self.write()

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.frame * self.frame_dt

    @property
    def time_code(self) -> float:
        """Time code of the stage for the simulated time."""
        return self._start + self.frame * self._time_codes / self.fps

    def step(self, frames: int = 1) -> None:
        """Simulates one or several frames, and writes a sample for each.

        Raises:
            TypeError, ValueError: ``frames`` is not a number of frames.
            RuntimeError: a world diverged.
        """
        dt = self.frame_dt / self.substeps
        for _ in range(as_count(frames, "frames", 0)):
            for _ in range(self.substeps):
                self.solver.step(self.state, self.state, self.control, None, dt)
            self.frame += 1
            if not np.isfinite(self.state.body_q.numpy()).all():
                raise RuntimeError(
                    f"the simulation diverged at {self.time:g} s; use more substeps than {self.substeps}"
                )
            if self._writes:
                self.write()

    def write(self) -> None:
        """Writes the transforms of all simulated prims as samples at :attr:`time_code`."""
        code = self.time_code
        poses = self.state.body_q.numpy().astype(np.float64).reshape(-1, 7)
        poses = transform_multiply(poses[self._bodies], self._inner)
        poses = transform_multiply(transform_inverse(self.report.stage_pose), poses)
        poses[:, :3] /= self.report.meters_per_unit
        # USD uses row vectors.
        worlds = self._stretches @ np.swapaxes(transform_to_matrix(poses), 1, 2)
        parents = self._chains.copy()
        cache = UsdGeom.XformCache(Usd.TimeCode(code))
        for number in self._moving:
            between = self._between(self.stage.GetPrimAtPath(self._paths[number]), self._numbers)
            parents[number] = _product(between[: -1 if self._above[number] >= 0 else None], cache)
        below = self._above >= 0
        parents[below] = parents[below] @ worlds[self._above[below]]
        with Sdf.ChangeBlock():
            self._write_locals(worlds @ np.linalg.inv(parents), self._to_layer * code)
            self._write_visibility(code)
            self._extend_range(code)

    def save(self, path) -> None:
        """Saves the motion as a stage: the samples and the rest of the session layer, with the source as a sublayer.

        A source that is in memory only becomes part of the file. Of sources in files, changes that are not saved are not seen in
        it, and a warning names them. To import such a file where the source is in another folder, name that folder in
        ``package_dirs``.

        Args:
            path: the file: ``.usda``, ``.usdc`` or ``.usd``; not that of the source.

        Raises:
            RuntimeError: the motion is in a layer that the caller named, and is to be saved with it.
            ValueError: the path is that of a layer of the source.
            FileNotFoundError: the folder does not exist.
            OSError: the file cannot be written.
        """
        if not self._ranged:
            raise RuntimeError(f"the motion is in the layer {self.layer.identifier!r} that you gave; save that layer")
        path = as_target(path)
        target = os.path.realpath(path)
        if any(used.realPath and os.path.realpath(used.realPath) == target for used in self.stage.GetUsedLayers()):
            raise ValueError(f"'{path}' is part of the stage itself; give the path of a new file")
        root = self.stage.GetRootLayer()
        session = Usd.Stage.Open(self.stage.GetSessionLayer(), None, Usd.Stage.LoadNone)
        motion = UsdUtils.FlattenLayerStack(self.stage if root.anonymous else session)
        pseudo = motion.pseudoRoot
        pseudo.SetInfo("startTimeCode", self._start)
        pseudo.SetInfo("endTimeCode", self.time_code)
        for name in ("upAxis", "metersPerUnit", "kilogramsPerUnit", "defaultPrim", "framesPerSecond"):
            if root.pseudoRoot.HasInfo(name) and not pseudo.HasInfo(name):
                pseudo.SetInfo(name, root.pseudoRoot.GetInfo(name))
        if not root.anonymous:
            motion.subLayerPaths = [*motion.subLayerPaths, _relative(root.realPath, target)]
        save(motion, path)
        unsaved = sorted(used.identifier for used in self.stage.GetUsedLayers() if used.dirty and not used.anonymous)
        if unsaved:
            text = f"{', '.join(unsaved)}: changes that are not saved are not seen in '{path}'; save them"
            warnings.warn(UsdWarning(text), stacklevel=2)

    # ------------------------------------------------------------------------------------------------ set-up

    def _choose_layer(self, layer) -> Sdf.Layer:
        """The layer for the motion, part of the stage. Also sets the conversion between its time codes and those of the stage."""
        self._ranged: tuple[Sdf.Layer, ...] = ()
        if layer is None:
            layer = Sdf.Layer.CreateAnonymous("simulated.usda")
            session = self.stage.GetSessionLayer()
            if session is None:
                raise ValueError("the stage was opened without a session layer; name a layer of the stage to write to")
            rate = self.stage.GetTimeCodesPerSecond()
            self._ranged = (layer, session)
            for owner in self._ranged:
                owner.timeCodesPerSecond = rate
            session.subLayerPaths.insert(0, layer.identifier)
        elif not isinstance(layer, Sdf.Layer):
            raise TypeError(f"layer must be an Sdf.Layer, not {layer!r}")
        elif layer not in self.stage.GetLayerStack():
            raise ValueError(f"layer {layer.identifier!r} is not part of the stage; insert it as a sublayer first")
        elif not layer.permissionToEdit:
            raise ValueError(f"layer {layer.identifier!r} may not be edited; give another")
        offset = self.stage.GetEditTargetForLocalLayer(layer).GetMapFunction().timeOffset
        self._to_layer = offset.GetInverse()
        return layer

    def _part_instances(self) -> None:
        """Disables instancing of the ancestors of bodies, in the layer."""
        found = True
        while found:
            found = set()
            for prim in Usd.PrimRange(self.stage.GetPseudoRoot(), Usd.TraverseInstanceProxies()):
                if prim.IsInstanceProxy() and "PhysicsRigidBodyAPI" in prim.GetAppliedSchemas():
                    above = prim.GetParent()
                    while above.IsInstanceProxy():
                        above = above.GetParent()
                    found.add(above.GetPath())
            with Sdf.ChangeBlock():
                for path in found:
                    Sdf.CreatePrimInLayer(self.layer, path).instanceable = False

    def _find_tracks(self) -> None:
        """Finds the prims of bodies, and the factors of their matrices, see :meth:`write`."""
        cache = UsdGeom.XformCache(Usd.TimeCode(self._start))
        self._paths = [Sdf.Path(path) for path in self.report.frames]
        self._numbers = numbers = {path: number for number, path in enumerate(self._paths)}
        self._bodies = np.array([body for body, _ in self.report.frames.values()], dtype=int)
        self._inner = np.array([inner for _, inner in self.report.frames.values()], dtype=float).reshape(-1, 7)
        prims = [self.stage.GetPrimAtPath(path) for path in self._paths]
        self._stretches = np.array([_stretch(cache.GetLocalToWorldTransform(prim)) for prim in prims]).reshape(-1, 4, 4)
        self._resets = [UsdGeom.Xformable(prim).GetResetXformStack() for prim in prims]
        self._above = np.full(len(prims), -1)
        self._chains = np.tile(np.eye(4), (len(prims), 1, 1))
        self._moving: list[int] = []
        for number, prim in enumerate(prims):
            between = [] if self._resets[number] else self._between(prim, numbers)
            if between and between[-1].GetPath() in numbers:
                self._above[number] = numbers[between.pop().GetPath()]
            self._chains[number] = _product(between, cache)
            if any(
                prim.IsA(UsdGeom.Xformable) and UsdGeom.Xformable(prim).TransformMightBeTimeVarying()
                for prim in between
            ):
                self._moving.append(number)

    def _between(self, prim, numbers) -> list:
        """Ancestors of a prim up to the next one that is simulated or that resets its transform."""
        found = []
        parent = prim.GetParent()
        while parent and not parent.IsPseudoRoot():
            found.append(parent)
            xformable = UsdGeom.Xformable(parent)
            if parent.GetPath() in numbers or (xformable and xformable.GetResetXformStack()):
                break
            parent = parent.GetParent()
        return found

    def _declare(self) -> None:
        """Declares the ops for the motion. Their op order contains no op of the source."""
        author = Author(self.layer)
        self._sheared: set[int] = set()
        self._unseen, self._looks = np.zeros(len(self._paths), dtype=bool), {}
        self._turns: np.ndarray | None = None
        self._sizes: np.ndarray | None = None
        self._stretching = np.zeros(len(self._paths), dtype=bool)
        # looked up once, to save time
        self._ops = {
            name: [path.AppendProperty(f"xformOp:{name}{SUFFIX}") for path in self._paths]
            for name in (*PARTS, "transform")
        }
        with Sdf.ChangeBlock():
            for number, path in enumerate(self._paths):
                prim = author.prim(str(path), specifier=Sdf.SpecifierOver)
                for name, kind in zip(PARTS, ("double3", "quatd", "double3"), strict=True):
                    author.set(prim, f"xformOp:{name}{SUFFIX}", kind)
                self._set_order(number, PARTS)

    def _set_order(self, number: int, names) -> None:
        order = ["!resetXformStack!"] if self._resets[number] else []
        order += [f"xformOp:{name}{SUFFIX}" for name in names]
        prim = self.layer.GetPrimAtPath(self._paths[number])
        Author(self.layer).set(prim, "xformOpOrder", "token[]", order, uniform=True)

    def _write_locals(self, rows: np.ndarray, code: float) -> None:
        """Writes samples of all prims from their matrices ``[n, 4, 4]``."""
        if not len(rows):
            return
        sizes = np.linalg.norm(rows[:, :3, :3], axis=2)
        axes = rows[:, :3, :3] / sizes[:, :, None]
        mirror = np.where(np.linalg.det(axes) < 0.0, -1.0, 1.0)[:, None]
        sizes, axes = mirror * sizes, mirror[:, :, None] * axes
        shear = np.abs(axes @ np.swapaxes(axes, 1, 2) - np.eye(3)).max(axis=(1, 2)) > SHEAR
        for number in np.flatnonzero(shear).tolist():
            if number not in self._sheared:
                self._shear(number)
        turns = quat_from_matrix(np.swapaxes(axes, 1, 2))
        if self._turns is not None:
            # USD interpolates the components between samples, so neighbouring quaternions need the same sign.
            turns *= np.where(np.sum(turns * self._turns, axis=1) < 0.0, -1.0, 1.0)[:, None]
        self._turns = turns
        sample, numbers = self.layer.SetTimeSample, range(len(rows))
        if self._sheared:
            for number in sorted(self._sheared):
                sample(self._ops["transform"][number], code, Gf.Matrix4d(rows[number].tolist()))
            numbers = [number for number in numbers if number not in self._sheared]
        places = Vt.Vec3dArray.FromNumpy(np.ascontiguousarray(rows[:, 3, :3]))
        translate, orient = self._ops["translate"], self._ops["orient"]
        turns = Vt.QuatdArray.FromNumpy(turns)
        for number in numbers:
            sample(translate[number], code, places[number])
            sample(orient[number], code, turns[number])
        self._write_sizes(sizes, numbers, code)

    def _write_visibility(self, code: float) -> None:
        """Writes samples for prims of bodies that assets hide (``set_visibility``) or show again."""
        mask = overlays_of(self.model).hidden
        now = np.zeros(len(self._bodies), dtype=bool) if mask is None else mask[self._bodies]
        for number in np.flatnonzero(now != self._unseen).tolist():
            path, start = self._paths[number], self._to_layer * self._start
            if number not in self._looks:
                seen = UsdGeom.Imageable(self.stage.GetPrimAtPath(path)).GetVisibilityAttr().Get(self._start)
                self._looks[number] = seen or UsdGeom.Tokens.inherited
                Author(self.layer).set(self.layer.GetPrimAtPath(path), "visibility", "token")
                self.layer.SetTimeSample(path.AppendProperty("visibility"), start, self._looks[number])
            look = UsdGeom.Tokens.invisible if now[number] else self._looks[number]
            self.layer.SetTimeSample(path.AppendProperty("visibility"), self._to_layer * code, look)
        self._unseen = now

    def _write_sizes(self, sizes: np.ndarray, numbers, code: float) -> None:
        """Writes scales: one value for all times, and samples only for prims whose scale changes."""
        if self._sizes is None:
            self._sizes = sizes
            for number in numbers:
                self.layer.GetAttributeAtPath(self._ops["scale"][number]).default = Gf.Vec3d(*sizes[number].tolist())
            return
        changed = (np.abs(sizes - self._sizes) > SAME_SIZE * np.abs(self._sizes)).any(axis=1) & ~self._stretching
        for number in np.flatnonzero(changed).tolist():
            for earlier in self.layer.ListTimeSamplesForPath(self._ops["translate"][number]):
                if earlier != code:
                    self.layer.SetTimeSample(
                        self._ops["scale"][number], earlier, Gf.Vec3d(*self._sizes[number].tolist())
                    )
        self._stretching |= changed
        for number in np.flatnonzero(self._stretching).tolist():
            if number not in self._sheared:
                self.layer.SetTimeSample(self._ops["scale"][number], code, Gf.Vec3d(*sizes[number].tolist()))

    def _shear(self, number: int) -> None:
        """Converts all samples of a prim to matrices, because a rotated frame under a nonuniform scale is sheared."""
        self._sheared.add(number)
        layer, path = self.layer, self._paths[number]
        prim = layer.GetPrimAtPath(path)
        Author(layer).set(prim, f"xformOp:transform{SUFFIX}", "matrix4d")
        translate, orient, scale = (self._ops[name][number] for name in PARTS)
        for code in layer.ListTimeSamplesForPath(translate):
            place, turn = (layer.QueryTimeSample(name, code) for name in (translate, orient))
            size = (
                layer.QueryTimeSample(scale, code)
                if self._stretching[number]
                else layer.GetAttributeAtPath(scale).default
            )
            matrix = Gf.Matrix4d().SetScale(size) * Gf.Matrix4d().SetRotate(turn) * Gf.Matrix4d().SetTranslate(place)
            layer.SetTimeSample(self._ops["transform"][number], code, matrix)
        for name in PARTS:
            prim.RemoveProperty(prim.attributes[f"xformOp:{name}{SUFFIX}"])
        self._set_order(number, ("transform",))

    def _extend_range(self, code: float) -> None:
        """Sets the start and end time code in the session layer, which the stage reads, so that the source does not change."""
        for layer in self._ranged:
            layer.pseudoRoot.SetInfo("startTimeCode", self._start)
            layer.pseudoRoot.SetInfo("endTimeCode", code)


def _choose(model, solver, options: dict | None) -> tuple[SolverChoice, dict]:
    """The solver of a simulation, and its arguments."""
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"solver_options must be a dictionary or None, not {options!r}")
    if solver is None or isinstance(solver, dict):
        if solver is not None and options is not None:
            raise ValueError("give the arguments of the solver in solver or in solver_options, not in both")
        return SolverChoice(SOLVERS["featherstone"], "it is the default"), {**(solver or {}), **(options or {})}
    choice = choose_solver(model, solver)
    given = options or {}
    if solver != "auto":
        return choice, given
    unknown = [name for name in given if name not in SOLVERS]
    if unknown:
        raise ValueError(
            f"solver_options has {unknown[0]!r}; with solver='auto' give arguments by solver: {', '.join(SOLVERS)}"
        )
    for name, chosen in given.items():
        if not isinstance(chosen, dict):
            raise TypeError(f"solver_options[{name!r}] must be a dictionary of arguments, not {chosen!r}")
    return choice, next(given.get(name, {}) for name, kind in SOLVERS.items() if kind is choice.solver)


def _product(prims, cache) -> np.ndarray:
    """Product of the local matrices of some prims, each a child of the next."""
    result = Gf.Matrix4d(1.0)
    for prim in prims:
        result *= cache.GetLocalTransformation(prim)[0]
    return np.array(result)


def _stretch(world: Gf.Matrix4d) -> np.ndarray:
    """The remaining factor of a prim's matrix without the pose that the importer reads from it."""
    pose = placement(world, 1.0).pose
    return np.array(world) @ transform_to_matrix(transform_inverse(pose)).T


def _relative(path: str, target: str) -> str:
    """The path of a sublayer relative to a file, so that their folder can be moved."""
    relative = os.path.relpath(os.path.realpath(path), os.path.dirname(target)).replace(os.sep, "/")
    return relative if relative.startswith(".") else f"./{relative}"
