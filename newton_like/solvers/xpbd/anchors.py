"""How joints hold bodies to the world, which contacts with the world follow: see `newton_like.kernels.solvers.xpbd.pivots`."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from newton_like.geometry.transforms import quat_inverse, quat_multiply, quat_rotate
from newton_like.kernels.solvers.xpbd.order import ANCHORED, HELD_FAST
from newton_like.kernels.solvers.xpbd.pivots import ANCHOR, AXES, FIXED_AXIS, OWN_AXIS, PIVOT_COLUMNS, SLIDE
from newton_like.model.joint_types import look_up
from newton_like.solvers.xpbd.moving import held_bodies


class Anchors:
    """Of each body, how a joint connects it to the world, or to a body that fixed joints hold to the world.

    Disabled, free and distance joints do not count.

    Attributes:
        marks: `HELD_FAST` for bodies that fixed joints hold, `ANCHORED` for others with such a joint, else 0.
        turning: joints that leave a body turns only; of several joints of a body, the last one has the fewest axes.
        matter: whether a contact may be between the world, or a body that is held fast, and a body on a pivot or a slide, or held fast.
    """

    def __init__(self, model):
        self._model = model
        self.marks, self.matter = np.zeros(model.body_count, dtype=np.int32), False
        self._holds = np.zeros(model.joint_count, dtype=bool)
        self.turning = self._slides = np.zeros(0, dtype=int)
        if not model.joint_count:
            return
        kinds, dims = model.joint_type.numpy(), model.joint_dof_dim.numpy()
        parent, child = model.joint_parent.numpy(), model.joint_child.numpy()
        fast = held_bodies(model)
        enabled = model.joint_enabled.numpy().astype(bool)
        self._holds = ~look_up(kinds, "floats") & enabled & np.append(fast, True)[parent]
        self.marks[child[self._holds]] = ANCHORED
        self.marks[fast] = HELD_FAST
        self._slides = np.flatnonzero(self._holds & (dims == (1, 0)).all(axis=1))
        turning = np.flatnonzero(self._holds & (dims[:, 0] == 0) & (dims[:, 1] > 0))
        self.turning = turning[np.argsort(-dims[turning, 1], kind="stable")]
        body = model.shape_body.numpy()
        pivot = np.zeros(model.body_count + 1, dtype=bool)
        pivot[child[turning]] = True
        pivot[child[self._slides]] = True
        held = np.append(self.marks, HELD_FAST)[body] == HELD_FAST
        # a body that is held fast matters beside anything, a body on a pivot beside what is held
        self.matter = bool((held & (body >= 0)).any() or (held.any() and pivot[body].any()))

    @property
    def kinds(self) -> np.ndarray:
        """What the code of a step follows from."""
        return np.append(self.marks, self.matter)

    @cached_property
    def _fixed_frames(self) -> np.ndarray:
        """Orientations in world axes of the parents' frames of joints that hold a body, ``[joint_count, 4]``."""
        model = self._model
        fixed = look_up(model.joint_type.numpy(), "fixed") & self._holds
        parent, child = model.joint_parent.numpy(), model.joint_child.numpy()
        frame_p, frame_c = (getattr(model, f"joint_X_{side}").numpy()[:, 3:].astype(np.float64) for side in "pc")
        turn, known = np.tile([0.0, 0.0, 0.0, 1.0], (model.body_count + 1, 1)), np.zeros(model.body_count + 1, bool)
        known[-1] = True
        while len(new := np.flatnonzero(fixed & known[parent] & ~known[child])):
            own = quat_multiply(quat_multiply(turn[parent[new]], frame_p[new]), quat_inverse(frame_c[new]))
            turn[child[new]], known[child[new]] = own, True
        return quat_multiply(turn[parent], frame_p)

    @property
    def rails(self) -> np.ndarray:
        """Directions in world axes of bodies on a slide, else zero, ``[body_count, 3]``."""
        model, along = self._model, np.zeros((self._model.body_count, 3))
        if model.joint_count:
            slides = self._slides
            axis = model.joint_axis.numpy()[model.joint_qd_start.numpy()[slides]].astype(np.float64)
            along[model.joint_child.numpy()[slides]] = quat_rotate(self._fixed_frames[slides], axis)
        return along

    @property
    def pivots(self) -> np.ndarray:
        """The table of bodies of `newton_like.kernels.solvers.xpbd.pivots`, ``[body_count, PIVOT_COLUMNS]``."""
        model, joints = self._model, self.turning
        table = np.zeros((model.body_count, PIVOT_COLUMNS))
        rails = self.rails
        on_slide = rails.any(axis=1)
        table[on_slide, AXES], table[on_slide, FIXED_AXIS : FIXED_AXIS + 3] = SLIDE, rails[on_slide]
        if len(joints):
            angles, first = model.joint_dof_dim.numpy()[joints, 1], model.joint_qd_start.numpy()[joints]
            axes = model.joint_axis.numpy().astype(np.float64)
            frame_c = model.joint_X_c.numpy()[joints].astype(np.float64)
            rows = np.zeros((len(joints), PIVOT_COLUMNS))
            rows[:, AXES] = angles
            rows[:, FIXED_AXIS : FIXED_AXIS + 3] = quat_rotate(self._fixed_frames[joints], axes[first])
            rows[:, OWN_AXIS : OWN_AXIS + 3] = quat_rotate(frame_c[:, 3:], axes[first + angles - 1])
            rows[:, ANCHOR : ANCHOR + 3] = frame_c[:, :3]
            table[model.joint_child.numpy()[joints]] = rows
        return table
