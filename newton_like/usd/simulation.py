"""Stages simulated in place: the physics of a stage, stepped, and its motion written back over the same prims."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom

from newton_like.coercion import as_flag, as_index, as_number
from newton_like.geometry.transforms import quat_from_matrix, transform_inverse, transform_multiply, transform_to_matrix
from newton_like.importers.usd import add_usd
from newton_like.kinematics import eval_fk
from newton_like.model.builder import ModelBuilder
from newton_like.solvers.featherstone import SolverFeatherstone
from newton_like.types import Axis
from newton_like.usd.author import Author, as_target, save

LONGEST_STEP = 1.0 / 240.0
"""Longest step of the solver [s] where the user names no number of substeps."""

SHEAR = 1.0e-6
"""Cosine between the axes of a local frame from which on it is written as a matrix."""

SUFFIX = ":simulated"
"""What the names of the ops that carry the motion end with; those of the source are left alone."""


@dataclass
class _Track:
    """How one body's prim follows its body.

    Attributes:
        path: of the prim.
        body: index of the body that moves it.
        inner: pose of the prim in that body; not the identity where bodies were merged.
        stretch: the prim's scale in the stage: its matrix is ``stretch`` followed by the pose.
        above: number of the track of the nearest simulated prim above it, or -1.
        chain: matrix from the prim's parent to that prim; ``None`` where it changes with time.
        resets: the prim stands in the stage, whatever is above it.
    """

    path: Sdf.Path
    body: int
    inner: np.ndarray
    stretch: Gf.Matrix4d
    above: int
    chain: Gf.Matrix4d | None
    resets: bool


class Simulation:
    """The physics of a USD stage, stepped, with the motion written back as time samples.

    Nothing of the source is changed: samples go into a layer of their own below the session layer, or into a layer of the
    stage that the caller names. There they override the transforms of the same prims, whatever their ops, parents, units and up
    axis are.

    Example::

        simulation = Simulation("scene.usda")
        simulation.step(240)
        simulation.save("motion.usda")      # a stage that holds the motion, and scene.usda as a sublayer

    Bodies inside of instances get prims of their own: the instances above them are switched off in the layer.

    Attributes:
        stage: the ``Usd.Stage``.
        layer: the ``Sdf.Layer`` that holds the motion.
        report: what :func:`newton_like.importers.usd.add_usd` returned, paths and indices among it.
        model, state, control, solver: of the simulation. Control may be changed at any time.
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
        solver: dict | None = None,
        write: bool = True,
        **options,
    ):
        """Reads the physics and writes the first sample.

        Args:
            source: a ``Usd.Stage`` or the path of one.
            layer: where to write: a layer that is part of the stage. By default a new one below the session layer.
            fps: samples a second; by default the stage's ``timeCodesPerSecond``.
            substeps: steps of the solver between samples; by default so many that none is longer than 1/240 s.
            start_time_code: time code of the first sample; by default the stage's ``startTimeCode``.
            dtype: scalar type of the model.
            device: Warp device of the model.
            solver: arguments of :class:`newton_like.solvers.SolverFeatherstone`.
            write: write samples; false only simulates until :meth:`write` is called.
            options: arguments of :func:`newton_like.importers.usd.add_usd`.

        Raises:
            TypeError, ValueError: an argument is wrong, the layer is none of the stage's, or the stage is wrong.
            FileNotFoundError: there is no such file.
        """
        self.stage = _open(source)
        self.layer = self._choose_layer(layer)
        self._time_codes = self.stage.GetTimeCodesPerSecond()
        fps = self._time_codes if fps is None else as_number(fps, "fps")
        if not fps > 0.0:
            raise ValueError(f"fps {fps:g} must be above 0")
        self.fps, self.frame_dt = fps, 1.0 / fps
        if substeps is None:
            substeps = math.ceil(self.frame_dt / LONGEST_STEP - 1.0e-9)
        self.substeps = as_index(substeps, "substeps", 2**31, lowest=1)
        if start_time_code is None:
            start_time_code = self.stage.GetStartTimeCode()
        self._start = as_number(start_time_code, "start_time_code")
        self._writes = as_flag(write, "write")
        self._part_instances()
        builder = ModelBuilder(up_axis=Axis.from_any(str(UsdGeom.GetStageUpAxis(self.stage))))
        options.setdefault("time", self._start)
        self.report = add_usd(builder, self.stage, **options)
        self.model = builder.finalize(device=device, dtype=dtype)
        self.solver = SolverFeatherstone(self.model, **(solver or {}))
        self.state, self.control = self.model.state(), self.model.control()
        eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)
        self.frame = 0
        self._tracks = self._find_tracks()
        self._declare()
        if self._writes:
            self.write()

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.frame * self.frame_dt

    @property
    def time_code(self) -> float:
        """Time code of the stage that belongs to the simulated time."""
        return self._start + self.frame * self._time_codes / self.fps

    def step(self, frames: int = 1) -> None:
        """Simulates to the next frame, or some frames further, and writes a sample at each.

        Raises:
            RuntimeError: a world diverged.
        """
        dt = self.frame_dt / self.substeps
        for _ in range(as_index(frames, "frames", 2**31)):
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
        here = self._to_layer * code
        poses = self.state.body_q.numpy().astype(np.float64).reshape(-1, 7)
        meters = self.report.meters_per_unit
        to_stage = transform_inverse(self.report.stage_pose)
        cache = UsdGeom.XformCache(Usd.TimeCode(code))
        worlds: list[Gf.Matrix4d] = []
        samples = []
        for track in self._tracks:
            pose = transform_multiply(to_stage, transform_multiply(poses[track.body], track.inner))
            pose[:3] /= meters
            world = track.stretch * Gf.Matrix4d(transform_to_matrix(pose).T.tolist())
            worlds.append(world)
            samples.append((track, world * self._parent(track, worlds, cache).GetInverse()))
        with Sdf.ChangeBlock():
            for track, local in samples:
                self._write_local(track, local, here)
            self._extend_range(code)

    def save(self, path) -> None:
        """Saves the motion as a stage: the samples, with the source as a sublayer.

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
        motion = Sdf.Layer.CreateAnonymous(".usda")
        motion.TransferContent(self.layer)
        root = self.stage.GetRootLayer()
        pseudo = motion.pseudoRoot
        pseudo.SetInfo("startTimeCode", self._start)
        pseudo.SetInfo("endTimeCode", self.time_code)
        for name in ("upAxis", "metersPerUnit", "kilogramsPerUnit", "defaultPrim", "framesPerSecond"):
            if root.pseudoRoot.HasInfo(name) and not pseudo.HasInfo(name):
                pseudo.SetInfo(name, root.pseudoRoot.GetInfo(name))
        if not root.anonymous:
            motion.subLayerPaths = [*motion.subLayerPaths, _relative(root.realPath, target)]
        save(motion, path)

    # ------------------------------------------------------------------------------------------------ set-up

    def _choose_layer(self, layer) -> Sdf.Layer:
        """The layer to write to, part of the stage; and how its time codes go with those of the stage."""
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
            raise ValueError(f"layer {layer.identifier!r} is no part of the stage; insert it as a sublayer first")
        elif not layer.permissionToEdit:
            raise ValueError(f"layer {layer.identifier!r} may not be edited; give another")
        offset = self.stage.GetEditTargetForLocalLayer(layer).GetMapFunction().timeOffset
        self._to_layer = offset.GetInverse()
        return layer

    def _part_instances(self) -> None:
        """Switches instancing off, in the layer, above bodies."""
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

    def _find_tracks(self) -> list[_Track]:
        """All prims of bodies, those above others first."""
        cache = UsdGeom.XformCache(Usd.TimeCode(self._start))
        paths = sorted((Sdf.Path(path) for path in self.report.frames), key=lambda path: path.pathElementCount)
        numbers = {path: number for number, path in enumerate(paths)}
        tracks = []
        for path in paths:
            body, inner = self.report.frames[str(path)]
            prim = self.stage.GetPrimAtPath(path)
            world = cache.GetLocalToWorldTransform(prim)
            resets = UsdGeom.Xformable(prim).GetResetXformStack()
            above, chain, moves = -1, Gf.Matrix4d(1.0), False
            parent = prim.GetParent()
            while parent and not parent.IsPseudoRoot() and not resets:
                if parent.GetPath() in numbers:
                    above = numbers[parent.GetPath()]
                    break
                local, starts_anew = cache.GetLocalTransformation(parent)
                chain = chain * local
                xformable = UsdGeom.Xformable(parent)
                moves = moves or (bool(xformable) and xformable.TransformMightBeTimeVarying())
                if starts_anew:
                    break
                parent = parent.GetParent()
            tracks.append(
                _Track(path, body, np.asarray(inner), _stretch(world), above, None if moves else chain, resets)
            )
        return tracks

    def _parent(self, track: _Track, worlds: list[Gf.Matrix4d], cache) -> Gf.Matrix4d:
        """Matrix from the parent of a track's prim to the stage, now."""
        if track.resets:
            return Gf.Matrix4d(1.0)
        chain = track.chain
        if chain is None:
            chain = Gf.Matrix4d(1.0)
            top = self._tracks[track.above].path if track.above >= 0 else Sdf.Path.absoluteRootPath
            parent = self.stage.GetPrimAtPath(track.path.GetParentPath())
            while parent.GetPath() != top and not parent.IsPseudoRoot():
                local, starts_anew = cache.GetLocalTransformation(parent)
                chain = chain * local
                if starts_anew:
                    return chain
                parent = parent.GetParent()
        return chain * worlds[track.above] if track.above >= 0 else chain

    def _declare(self) -> None:
        """Declares the ops that carry the motion. They stand alone: no op of the source is in their order."""
        author = Author(self.layer)
        self._sheared: set[Sdf.Path] = set()
        self._turns: dict[Sdf.Path, np.ndarray] = {}
        with Sdf.ChangeBlock():
            for track in self._tracks:
                prim = author.prim(str(track.path), specifier=Sdf.SpecifierOver)
                for name, kind in (("translate", "double3"), ("orient", "quatd"), ("scale", "double3")):
                    author.set(prim, f"xformOp:{name}{SUFFIX}", kind)
                self._set_order(track, ("translate", "orient", "scale"))

    def _set_order(self, track: _Track, names) -> None:
        order = [*(["!resetXformStack!"] if track.resets else []), *(f"xformOp:{name}{SUFFIX}" for name in names)]
        prim = self.layer.GetPrimAtPath(track.path)
        Author(self.layer).set(prim, "xformOpOrder", "token[]", order, uniform=True)

    def _write_local(self, track: _Track, local: Gf.Matrix4d, code: float) -> None:
        rows = np.array(local)
        sizes = np.linalg.norm(rows[:3, :3], axis=1)
        axes = rows[:3, :3] / sizes[:, None]
        if np.linalg.det(axes) < 0.0:
            sizes, axes = -sizes, -axes
        if track.path not in self._sheared and np.abs(axes @ axes.T - np.eye(3)).max() > SHEAR:
            self._shear(track)
        if track.path in self._sheared:
            self.layer.SetTimeSample(f"{track.path}.xformOp:transform{SUFFIX}", code, local)
            return
        turn = quat_from_matrix(axes.T)
        # Between samples USD goes the way of the numbers, and q and -q are the same attitude.
        turn = turn if np.dot(turn, self._turns.get(track.path, turn)) >= 0.0 else -turn
        self._turns[track.path] = turn
        values = {
            "translate": Gf.Vec3d(*rows[3, :3].tolist()),
            "orient": Gf.Quatd(*turn[[3, 0, 1, 2]].tolist()),
            "scale": Gf.Vec3d(*sizes.tolist()),
        }
        for name, value in values.items():
            self.layer.SetTimeSample(f"{track.path}.xformOp:{name}{SUFFIX}", code, value)

    def _shear(self, track: _Track) -> None:
        """Goes over to matrices, for all samples of a prim: under an uneven scale a turned frame is sheared."""
        self._sheared.add(track.path)
        prim = self.layer.GetPrimAtPath(track.path)
        Author(self.layer).set(prim, f"xformOp:transform{SUFFIX}", "matrix4d")
        names = {name: f"{track.path}.xformOp:{name}{SUFFIX}" for name in ("translate", "orient", "scale")}
        for code in self.layer.ListTimeSamplesForPath(names["translate"]):
            place, turn, scale = (self.layer.QueryTimeSample(name, code) for name in names.values())
            matrix = Gf.Matrix4d().SetScale(scale) * Gf.Matrix4d().SetRotate(turn) * Gf.Matrix4d().SetTranslate(place)
            self.layer.SetTimeSample(f"{track.path}.xformOp:transform{SUFFIX}", code, matrix)
        for name in names:
            prim.RemoveProperty(prim.attributes[f"xformOp:{name}{SUFFIX}"])
        self._set_order(track, ("transform",))

    def _extend_range(self, code: float) -> None:
        """Start and end time code, where the stage reads them and the source is not: in the session layer."""
        for layer in self._ranged:
            layer.pseudoRoot.SetInfo("startTimeCode", self._start)
            layer.pseudoRoot.SetInfo("endTimeCode", code)


def _stretch(world: Gf.Matrix4d) -> Gf.Matrix4d:
    """What is left of a prim's matrix when the pose that the importer takes from it is taken away."""
    from newton_like.importers.usd_units import placement

    place = placement(world, 1.0)
    pose = Gf.Matrix4d(transform_to_matrix(place.pose).T.tolist())
    return world * pose.GetInverse()


def _open(source) -> Usd.Stage:
    if isinstance(source, Usd.Stage):
        return source
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source must be a Usd.Stage or a path, not {source!r}")
    if not Path(source).is_file():
        raise FileNotFoundError(f"USD file '{source}' does not exist")
    return Usd.Stage.Open(str(source))


def _relative(path: str, target: str) -> str:
    """How a file names another as a sublayer: relative, so that a folder can be moved."""
    relative = os.path.relpath(os.path.realpath(path), os.path.dirname(target)).replace(os.sep, "/")
    return relative if relative.startswith(".") else f"./{relative}"
