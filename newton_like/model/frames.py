"""Named frames of bodies: the link frames of bodies that were merged into others."""

from __future__ import annotations

import numpy as np

from newton_like.geometry.transforms import IDENTITY, UNIT_TOLERANCE, as_transform, transform_multiply


class FrameTable:
    """Named frames fixed to bodies or to the world. They have no mass, no shape and no cost in a step.

    Merging of bodies (``collapse_fixed_joints``) adds the link frames of the merged bodies. Sites are shapes, and not in this table.
    The columns are arrays with one entry for each frame, which are replicated with worlds by NumPy.

    Attributes:
        label: names.
        body: the body of each frame, -1: the world, ``[n]`` int.
        articulation: for frames of the world, the articulation that the merged link was in; else -1, ``[n]`` int.
        transform: pose of each frame in the link frame of its body (or in the world): position [m], quaternion x y z w, ``[n, 7]``.
    """

    def __init__(self):
        self.label: list[str] = []
        self.body = np.zeros(0, dtype=np.int64)
        self.articulation = np.zeros(0, dtype=np.int64)
        self.transform = np.zeros((0, 7))

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        return f"FrameTable({self.label})" if len(self) <= 20 else f"FrameTable of {len(self)} frames"

    def extend(self, labels, bodies, transforms, articulations=None) -> None:
        """Adds frames.

        Args:
            labels, bodies, transforms, articulations: one entry for each frame, see the class.
        """
        count = len(labels)
        poses = np.array(
            [as_transform(pose, f"frame {label!r}") for label, pose in zip(labels, transforms, strict=True)]
        )
        carriers = np.full(count, -1) if articulations is None else np.asarray(articulations, dtype=np.int64)
        self._append(list(labels), np.asarray(bodies, dtype=np.int64), carriers, poses.reshape(count, 7))

    def _append(self, label, body, articulation, transform) -> None:
        self.label = [*self.label, *label]
        self.body = np.concatenate([self.body, body])
        self.articulation = np.concatenate([self.articulation, articulation])
        self.transform = np.concatenate([self.transform, transform])

    def copy(self) -> FrameTable:
        """An independent copy."""
        result = FrameTable()
        result._append(self.label, self.body, self.articulation, self.transform)
        return result

    def append_copies(self, source: FrameTable, labels, bodies, articulations, poses: np.ndarray) -> None:
        """Appends copies of all frames of another table.

        Args:
            source: the table to copy.
            labels: names of all new frames.
            bodies, articulations: offsets of the indices of each copy, ``[copies]``.
            poses: pose of each copy in the world, ``[copies, 7]``.
        """
        if not len(source):
            return

        def moved(indices: np.ndarray, offsets: np.ndarray) -> np.ndarray:
            return np.where(indices >= 0, indices + np.asarray(offsets)[:, None], -1).ravel()

        transform = np.broadcast_to(source.transform, (len(poses), *source.transform.shape))
        fixed = source.body < 0
        if fixed.any() and not np.array_equal(poses, np.broadcast_to(IDENTITY, poses.shape)):
            transform = transform.copy()
            transform[:, fixed] = transform_multiply(poses[:, None], source.transform[fixed])
        self._append(
            labels, moved(source.body, bodies), moved(source.articulation, articulations), transform.reshape(-1, 7)
        )

    def merge(self, host: dict[int, int], pose: dict[int, np.ndarray], articulation: dict[int, int]) -> None:
        """Moves the frames of merged bodies to the bodies that they were merged into.

        Args:
            host: for each body, the body that it is part of.
            pose: pose of each body in its host.
            articulation: the articulation of each body, stored for frames that move to the world.
        """
        for i, body in enumerate(self.body.tolist()):
            if host[body] != body:
                self.transform[i] = transform_multiply(pose[body], self.transform[i])
                self.articulation[i] = articulation.get(body, -1) if host[body] < 0 else -1
                self.body[i] = host[body]

    def renumber(self, body: dict[int, int], articulation: dict[int, int]) -> None:
        """Renumbers bodies and articulations. Removed articulations become -1."""
        self.body = np.array([-1 if b < 0 else body[b] for b in self.body.tolist()], dtype=np.int64)
        self.articulation = np.array([articulation.get(a, -1) for a in self.articulation.tolist()], dtype=np.int64)

    def check(self, body_count: int, articulation_count: int) -> None:
        """Checks that the table fits its bodies and articulations, and normalises its quaternions.

        Raises:
            ValueError: columns of different lengths; a number that is not finite, or a quaternion that is not of unit length.
            IndexError: a body or an articulation does not exist.
            TypeError: an index is not an integer.
        """
        count = len(self)
        for name, shape in (("body", (count,)), ("articulation", (count,)), ("transform", (count, 7))):
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(
                    f"frames.{name} has shape {np.shape(getattr(self, name))} for {count} labels; give {shape}"
                )
        for name, exist in (("body", body_count), ("articulation", articulation_count)):
            index = np.asarray(getattr(self, name))
            if count and index.dtype.kind not in "iu":
                raise TypeError(f"frames.{name} holds {index.dtype}; give integers")
            wrong = (index < -1) | (index >= exist)
            if wrong.any():
                i = int(np.flatnonzero(wrong)[0])
                raise IndexError(f"frame {self.label[i]!r}: {name} {index[i]} is out of range: {exist} exist")
        transform = np.asarray(self.transform)
        length = np.linalg.norm(transform[:, 3:], axis=1)
        unit = np.abs(length - 1.0) <= UNIT_TOLERANCE
        wrong = ~(unit & np.isfinite(transform).all(axis=1))
        for i in np.flatnonzero(wrong)[:1].tolist():
            as_transform(transform[i], f"frame {self.label[i]!r}")
        transform[:, 3:] /= length[:, None]
