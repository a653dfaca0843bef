"""Parameters of multirotors for kernels: one number for all worlds, or one a world."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import unrecorded
from newton_like.programs.device import interleaved


class Parameters:
    """A table of parameters, one row for all worlds or one for each.

    Args:
        m: namespace of programs, see :func:`newton_like.kernels.articulation.multirotor.step.flight_namespace`.
        count: number of instances.
        size: number of parameters.
        device: device of the arrays.

    Attributes:
        rows: the numbers, ``[1 or count, size]`` float64.
        struct: the struct ``Vehicle`` for kernels.
        moved: number that grows when kernels must be told of other arrays, or compiled with other constants.
        loose: parameters that are not constants in code, ``[size]`` bools. An edit of a constant makes it one.
    """

    def __init__(self, m, count: int, size: int, device):
        self.m, self.count, self.size, self.device = m, count, size, device
        self.rows = np.zeros((1, size))
        self.struct, self.moved, self._fresh, self._stale = m.Vehicle(), 0, False, None
        self.struct.uniform = wp.zeros(size, dtype=m.real, device=device)
        self.struct.varying = self._lanes(1)
        self.loose = np.zeros(size, dtype=bool)
        self._held = None

    def _lanes(self, blocks: int) -> wp.array:
        if interleaved(self.device):
            return wp.zeros((self.size, blocks), dtype=self.m.lane, device=self.device).transpose((1, 0))
        return wp.zeros((blocks, self.size), dtype=self.m.lane, device=self.device)

    def put(self, at, values, instances: np.ndarray | None = None) -> None:
        """Writes parameters.

        Args:
            at: index of one, or indices of several parameters.
            values: numbers that broadcast to ``[instances, parameters]``.
            instances: chosen instances; None: all.
        """
        at = np.atleast_1d(at)
        values = np.asarray(values, dtype=float)
        before = None if self._held is None else self.rows[:1, at]
        shape = (self.count if instances is None else len(instances), len(at))
        if instances is None:
            given = values.reshape(-1, len(at)) if values.ndim > 1 else np.atleast_2d(values)
            given = np.broadcast_to(given, (len(given), len(at)))
            if (given == given[0]).all():
                given = given[:1]
        else:
            given = np.broadcast_to(values, shape)
            if not len(given) or ((given == self.rows[0, at]).all() and len(self.rows) == 1):
                return
        if len(self.rows) == 1 and (instances is not None or len(given) > 1):
            self.rows = np.repeat(self.rows, self.count, axis=0)
        if instances is None:
            self.rows[:, at] = given
            self._stale = None
        else:
            self.rows[np.ix_(instances, at)] = given
            if self._fresh:
                self._stale = [instances]
            elif self._stale is not None:
                self._stale.append(instances)
        self._fresh = False
        if before is not None:
            edited = self._held[at] & (self.rows[:, at] != before).any(axis=0)
            if edited.any():
                self.loose[at[edited]] = True
                self._held, self.moved = None, self.moved + 1

    def spread(self) -> None:
        """Gives every instance numbers of its own, so that later edits stay in the memory that a graph reads."""
        if len(self.rows) == 1:
            self.rows, self._fresh, self._stale = np.repeat(self.rows, self.count, axis=0), False, None

    def hold(self) -> np.ndarray:
        """Mask of the parameters that are constants in code: those that all worlds share, except the loose ones, ``[size]``."""
        if self._held is None:
            self._held = (self.rows == self.rows[:1]).all(axis=0) & ~self.loose
        return self._held

    def get(self, at) -> np.ndarray:
        """Parameters of all instances, ``[count, parameters]``."""
        found = self.rows[:, np.atleast_1d(at)]
        return np.broadcast_to(found, (self.count, found.shape[1]))

    def upload(self) -> None:
        """Copies the numbers to the device, if they changed."""
        if self._fresh:
            return
        if self._stale is not None and self._upload_some(np.concatenate(self._stale)):
            self._fresh = True
            return
        real = wp.dtype_to_numpy(self.m.real)
        with unrecorded(self.device, "parameters of a multirotor"):
            if len(self.rows) == 1:
                self.struct.uniform.assign(self.rows[0].astype(real))
                if self.struct.varies:
                    self.struct.varies, self.moved = 0, self.moved + 1
            else:
                width = self.m.width
                blocks = -(-self.count // width)
                if self.struct.varying.shape[0] != blocks or not self.struct.varies:
                    self.struct.varies, self.moved = 1, self.moved + 1
                    self.struct.varying = self._lanes(blocks)
                padded = np.concatenate([self.rows, np.repeat(self.rows[-1:], blocks * width - self.count, axis=0)])
                lanes = padded.reshape(blocks, width, self.size).transpose(0, 2, 1).astype(real)
                if width == 1:
                    lanes = lanes[:, :, 0]
                self._copy(np.ascontiguousarray(lanes))
        self._fresh = True

    def _upload_some(self, instances: np.ndarray) -> bool:
        """Copies the numbers of some instances. Returns whether that is possible."""
        blocks, width = -(-self.count // self.m.width), self.m.width
        varying = self.struct.varying
        if not (self.struct.varies and self.device.is_cpu and width > 1 and varying.shape[0] == blocks):
            return False
        varying.numpy().reshape(blocks, self.size, width)[instances // width, :, instances % width] = self.rows[
            instances
        ]
        return True

    def _copy(self, lanes: np.ndarray) -> None:
        varying = self.struct.varying
        if varying.is_contiguous:
            varying.assign(lanes)
        else:
            wp.copy(varying, wp.array(lanes, dtype=self.m.lane, device=self.device))
