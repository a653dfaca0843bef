"""Debug drawing of assets: frames, wrenches and targets in pictures, videos and recordings; visibility."""

from __future__ import annotations

import numpy as np

from newton_like.coercion import as_flag, as_number
from newton_like.geometry.markers import Markers
from newton_like.geometry.transforms import quat_rotate, transform_multiply
from newton_like.kinematics import eval_fk
from newton_like.model.overlays import overlays_of
from newton_like.options import Settings, configuration

FORCE, TORQUE, TARGET, THRUST = (0.82, 0.16, 0.14), (0.55, 0.25, 0.65), (0.10, 0.45, 0.80), (0.95, 0.60, 0.10)
"""Colours of forces, torques, targets and thrusts."""

FRAME, ROD, WEAK, LONGEST = 0.18, 0.012, 1.0e-3, 3.0
"""Length of the axes of frames, and radius of rods, over the size of an asset; arrows below this share of the weight are not drawn; length
of the longest arrow over the size."""

UNSIZED, LARGE = 0.3, 1.0e3
"""Size of an asset without an extent, and radius from which a shape has no extent [m]."""


@configuration(slots=True)
class DebugVisCfg(Settings):
    """Settings of the debug drawing of an asset.

    Attributes:
        frames: frames of links: x red, y green, z blue.
        wrenches: external forces (red) and torques (purple) of the last ``write_data_to_sim``, at the centres of mass.
        targets: links at the position targets of joints with a stiffness (blue rods); of multirotors, the goal of the controller.
        thrusts: thrusts of the rotors (orange).
        size: length [m] that axes and rods are proportional to; None: the extent of the asset.
        newton: length of the arrow of a force of 1 N [m]; None: the arrow of the weight of the asset has the length `size`. Arrows end at
            three times the `size`. Torques are drawn as the forces at a lever of half the `size`.
    """

    frames: bool = True
    wrenches: bool = True
    targets: bool = True
    thrusts: bool = True
    size: float | None = None
    newton: float | None = None

    def __setattr__(self, name: str, value) -> None:
        if name in ("size", "newton") and value is not None:
            value = as_number(value, f"debug_vis_cfg.{name}")
            if value <= 0.0:
                raise ValueError(f"debug_vis_cfg.{name} {value:g} must be above 0; None: that of the asset")
        elif name in ("frames", "wrenches", "targets", "thrusts"):
            value = as_flag(value, f"debug_vis_cfg.{name}")
        Settings.__setattr__(self, name, value)


def checked_cfg(cfg, what: str) -> DebugVisCfg:
    """Settings of debug drawing.

    Raises:
        TypeError: something else.
    """
    if not isinstance(cfg, DebugVisCfg):
        raise TypeError(f"debug_vis_cfg of {what} must be a DebugVisCfg, not {type(cfg).__name__}")
    return cfg


class Drawing:
    """The part of :class:`newton_like.articulation.asset.Asset` about debug drawing and visibility."""

    def _start_drawing(self) -> None:
        self._vis_cfg = DebugVisCfg()
        self._shows, self._composed, self._ghost, self._extent = False, None, None, None

    @property
    def debug_vis_cfg(self) -> DebugVisCfg:
        """What is drawn, and how large. It can be replaced, also by that of another asset."""
        return self._vis_cfg

    @debug_vis_cfg.setter
    def debug_vis_cfg(self, cfg: DebugVisCfg) -> None:
        self._vis_cfg = checked_cfg(cfg, repr(self._layout.label))

    @property
    def has_debug_vis_implementation(self) -> bool:
        """True: assets have debug drawing."""
        return True

    def set_debug_vis(self, debug_vis: bool) -> bool:
        """Turns debug drawing on or off. :func:`newton_like.viewer.picture`, :class:`newton_like.viewer.VideoRecorder` and
        :class:`newton_like.usd.Recorder` of the model then show what :attr:`debug_vis_cfg` says.

        Args:
            debug_vis: whether it is drawn.

        Returns:
            True: it is available.

        Raises:
            TypeError: not a bool.
        """
        self._shows = as_flag(debug_vis, "debug_vis")
        overlays_of(self.model).show(self, self._shows)
        if not self._shows:
            self._composed = None
        return True

    def set_visibility(self, visible: bool, env_ids=None) -> None:
        """Shows or hides the bodies of instances in pictures, videos, recordings and stages that are simulated in place. The simulation
        does not change. In recordings, a change counts from the next recorded time on.

        Args:
            visible: whether they are shown.
            env_ids: instances: None (all), a slice, indices, or a mask of bools.

        Raises:
            IndexError: an instance does not exist.
            TypeError: not a bool, or not indices.
        """
        rows = self._rows(env_ids)
        bodies = self._layout.bodies[rows.indices].ravel()
        overlays_of(self.model).hide(bodies, not as_flag(visible, "visible"), self.model.body_count)

    def markers(self, poses=None, worlds: list[int] | None = None) -> Markers:
        """What the debug drawing shows, whether it is on or not.

        Args:
            poses: poses of all bodies of the model, ``[body_count, 7]``; None: those of the simulation.
            worlds: worlds; None: all.
        """
        if poses is None:
            self.sim.forward()
            poses = self.sim.state.body_q.numpy().reshape(-1, 7)
        rows = np.arange(self.num_instances)
        if worlds is not None:
            rows = rows[np.isin(self._layout.worlds, list(worlds))]
        result = Markers()
        if len(rows):
            self._draw(result, np.asarray(poses, dtype=np.float64)[self._layout.bodies[rows]], rows)
        return result

    # ---------------------------------------------------------------------------------------------------- drawing

    def _draw(self, markers: Markers, poses: np.ndarray, rows: np.ndarray) -> None:
        """Adds the markers of instances.

        Args:
            markers: where they are added.
            poses: of the bodies, ``[len(rows), bodies, 7]``.
            rows: the instances.
        """
        cfg, size, worlds = self.debug_vis_cfg, self._size(), self._world_rows(rows)
        if cfg.frames:
            count = poses.shape[1]
            markers.add_frames(poses.reshape(-1, 7), FRAME * size / min(count, 3) ** 0.5, np.repeat(worlds, count))
        if cfg.wrenches:
            self._draw_wrenches(markers, poses, rows)

    def _draw_wrenches(self, markers: Markers, poses: np.ndarray, rows: np.ndarray) -> None:
        kept = self.permanent_wrench_composer.composed.numpy() if self._composed is None else self._composed
        composed, q = kept[rows].astype(np.float64), poses[..., 3:]
        if not composed.any():
            return
        com = self.model.body_com.numpy()[self._layout.bodies[rows]].astype(np.float64)
        x = poses[..., :3] + quat_rotate(q, com)
        force = quat_rotate(q, composed[..., :3]) + composed[..., 6:9]
        torque = quat_rotate(q, composed[..., 3:6]) + composed[..., 9:12]
        torque += composed[..., 12:15] - np.cross(x, composed[..., 15:18])
        self._draw_arrows(markers, x, force, FORCE, rows)
        self._draw_arrows(markers, x, torque / (0.5 * self._size()), TORQUE, rows)

    def _draw_arrows(self, markers: Markers, points: np.ndarray, forces: np.ndarray, color, rows: np.ndarray) -> None:
        """Adds arrows of forces ``[rows, n, 3]`` [N] at points; weak ones are left out, and long ones are cut."""
        size, weight = self._size(), self._weight()
        newton = size / weight if self.debug_vis_cfg.newton is None else self.debug_vis_cfg.newton
        strength = np.linalg.norm(forces, axis=-1, keepdims=True)
        length = np.minimum(newton * strength, LONGEST * size)
        vectors = np.where(strength > WEAK * weight, forces / np.maximum(strength, 1e-300) * length, 0.0)
        worlds = np.repeat(self._world_rows(rows), points.shape[1])
        markers.add_arrows(points.reshape(-1, 3), vectors.reshape(-1, 3), ROD * size, color, worlds)

    def _draw_links(self, markers: Markers, poses: np.ndarray, rows: np.ndarray) -> None:
        """Adds rods between the joints of links, and to the centres of mass of the last links."""
        model, layout, size = self.model, self._layout, self._size()
        joints, bodies = layout.joints, layout.bodies[0]
        place_of = {int(body): k for k, body in enumerate(bodies)}
        parents = [place_of.get(int(body), -1) for body in model.joint_parent.numpy()[joints[0]]]
        anchors = transform_multiply(poses, model.joint_X_c.numpy()[joints[rows]].astype(np.float64))[..., :3]
        com = model.body_com.numpy()[layout.bodies[rows]].astype(np.float64)
        middles, worlds = poses[..., :3] + quat_rotate(poses[..., 3:], com), self._world_rows(rows)
        for k, parent in enumerate(parents):
            if parent >= 0:
                begin = anchors[:, parent] if parents[parent] >= 0 else poses[:, parent, :3]
                markers.add_rods(begin, anchors[:, k], ROD * size, TARGET, worlds)
            if k and k not in parents:
                markers.add_rods(anchors[:, k], middles[:, k], ROD * size, TARGET, worlds)

    # ------------------------------------------------------------------------------------------------------ sizes

    def _world_rows(self, rows: np.ndarray) -> np.ndarray:
        return self._layout.worlds[rows]

    def _keep_wrenches(self) -> None:
        """Keeps the wrenches of a physics step for drawing."""
        self._composed = (
            self.permanent_wrench_composer.composed.numpy() + self.instantaneous_wrench_composer.composed.numpy()
        )

    def _weight(self) -> float:
        mass = float(self.model.body_mass.numpy()[self._layout.bodies[0]].sum())
        pull = float(np.linalg.norm(self.model.gravity.numpy()[0])) or 9.81
        return max(mass, 1e-9) * pull

    def _size(self) -> float:
        """Length of the diagonal of the box of the first instance in the configuration of the model [m]."""
        if self.debug_vis_cfg.size is not None:
            return float(self.debug_vis_cfg.size)
        if self._extent is None:
            model, bodies = self.model, self._layout.bodies[0]
            poses = model.body_q.numpy().reshape(-1, 7).astype(np.float64)
            points, radii = [poses[bodies, :3]], [np.zeros(len(bodies))]
            if model.shape_count:
                radius = model.shape_collision_radius.numpy().astype(np.float64)
                shapes = np.flatnonzero(np.isin(model.shape_body.numpy(), bodies) & (radius < LARGE))
                places = model.shape_transform.numpy().reshape(-1, 7)[shapes].astype(np.float64)
                points.append(transform_multiply(poses[model.shape_body.numpy()[shapes]], places)[:, :3])
                radii.append(radius[shapes])
            x, r = np.concatenate(points), np.concatenate(radii)[:, None]
            extent = float(np.linalg.norm((x + r).max(axis=0) - (x - r).min(axis=0)))
            self._extent = extent if np.isfinite(extent) and extent > 1e-6 else UNSIZED
        return self._extent


class JointDrawing(Drawing):
    """Debug drawing of articulations: the links at the targets of their joints, too."""

    def _draw(self, markers: Markers, poses: np.ndarray, rows: np.ndarray) -> None:
        super()._draw(markers, poses, rows)
        if self.debug_vis_cfg.targets and self.num_joints:
            self._draw_targets(markers, rows)

    def _draw_targets(self, markers: Markers, rows: np.ndarray) -> None:
        data, sim, layout = self.data, self.sim, self._layout
        driven = self._actuators.kp.numpy() > 0.0
        if not driven[rows].any():
            return
        if self._ghost is None:
            self._ghost = sim.model.state()
        ghost = self._ghost
        ghost.joint_q.assign(sim.state.joint_q)
        coords = ghost.joint_q.numpy()
        coords[layout.coords] = np.where(driven, data.joint_pos_target.numpy(), coords[layout.coords])
        ghost.joint_q.assign(coords)
        eval_fk(sim.model, ghost.joint_q, sim.state.joint_qd, ghost)
        self._draw_links(markers, ghost.body_q.numpy().reshape(-1, 7)[layout.bodies[rows]].astype(np.float64), rows)
