"""Mass, centre of mass and inertia of vehicles, and how their bodies lie to the root."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from newton_like.geometry.transforms import quat_inverse, quat_multiply, quat_rotate, quat_to_matrix
from newton_like.kinematics import eval_fk


class Masses(NamedTuple):
    """Of vehicles in the initial configuration, in the frame of the root; the first dimension is 1 where all worlds agree.

    Attributes:
        total: masses [kg], ``[worlds]``.
        centre: centres of mass [m], ``[worlds, 3]``.
        moments: inertias about the centres [kg m^2], ``[worlds, 3, 3]``.
        poses: of the bodies, ``[worlds, bodies, 7]``.
        centres: of mass of the bodies in their link frames [m], ``[worlds, bodies, 3]``.
    """

    total: np.ndarray
    centre: np.ndarray
    moments: np.ndarray
    poses: np.ndarray
    centres: np.ndarray


class MassReader:
    """Reads masses of vehicles again after edits of the model.

    Args:
        model: the model.
        bodies: of each instance, the root first, ``[count, bodies]``.
    """

    def __init__(self, model, bodies: np.ndarray):
        self.model, self.bodies = model, np.asarray(bodies)
        self._seen = None
        state = model.state()
        if self.bodies.shape[1] > 1:
            # poses that a builder was given need not be those of its joints
            eval_fk(model, state.joint_q, state.joint_qd, state)
        poses = state.body_q.numpy().astype(float)[self.bodies]
        root = poses[:, :1]
        turned = quat_inverse(root[..., 3:])
        places = quat_rotate(turned, poses[..., :3] - root[..., :3])
        self._poses = _common(np.concatenate([places, quat_multiply(turned, poses[..., 3:])], axis=-1), 1.0e-6)

    def changed(self) -> Masses | None:
        """The masses, if they were edited since the last call."""
        model = self.model
        numbers = [
            getattr(model, f"body_{name}").numpy()[self.bodies].astype(float) for name in ("mass", "com", "inertia")
        ]
        if self._seen is not None and all(np.array_equal(a, b) for a, b in zip(numbers, self._seen, strict=True)):
            return None
        self._seen = numbers
        worlds = [_common(a) for a in (*numbers, self._poses)]
        rows = max(len(a) for a in worlds)
        mass, com, inertia, poses = (np.broadcast_to(a, (rows, *a.shape[1:])) for a in worlds)
        centres = poses[..., :3] + quat_rotate(poses[..., 3:], com)
        total = mass.sum(axis=1)
        centre = np.einsum("wb,wbi->wi", mass, centres) / total[:, None]
        r = quat_to_matrix(poses[..., 3:])
        own = r @ inertia.reshape(*inertia.shape[:2], 3, 3) @ np.swapaxes(r, -1, -2)
        d = centres - centre[:, None]
        shift = np.einsum("wbi,wbi->wb", d, d)[..., None, None] * np.eye(3) - d[..., :, None] * d[..., None, :]
        moments = (own + mass[..., None, None] * shift).sum(axis=1)
        return Masses(total, centre, moments, poses, com)


def _common(values: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
    """One row where all are equal."""
    return values[:1] if (np.abs(values - values[:1]) <= tolerance).all() else values
