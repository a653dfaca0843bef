"""Resolution of frames, links and points that users give: the link in every articulation, and the offset on the link."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import active_tape, constant_array, flat
from newton_like.coercion import as_list
from newton_like.dynamics.internal.common import finite_numbers, input_array, links
from newton_like.dynamics.names import as_link_index, check_name, names_of, unknown
from newton_like.geometry.transforms import IDENTITY, as_transform
from newton_like.kernels.dynamics.offsets import offset_kernel
from newton_like.model.arguments import as_numbers
from newton_like.programs.program import Field

WORLD, NONE = -1, -2
"""Link indices for the world, and for a link that an articulation lacks."""

_KEPT = 256


class Frames:
    """The links of some frames and of their base frame, equal in all articulations.

    Attributes:
        links: link indices, or `WORLD` or `NONE`, ``[frames + 1]``; the last is the link of the base frame.
        size: numbers of an offset: 0, 3 or 7.
        varied: whether calls use varying frames, see :class:`newton_like.programs.program.Program`.
        programs: programs for these frames.
    """

    def __init__(self, links: np.ndarray, size: int, varied: bool = True):
        self.links, self.size, self.varied, self.programs = links, size, varied, {}

    def of(self, batch) -> dict:
        """Integers and arrays of ``Tree`` for programs; see `tables` of :class:`newton_like.programs.program.Program`."""
        return {"points": len(self.links) - 1, "point_body": self.links, "offset_size": self.size}


@dataclass(frozen=True)
class Asked:
    """Resolved frames of a call.

    Attributes:
        parts: pairs of frames and a mask of their articulations; None: all articulations. A name may refer to different links in
            different articulations.
        count: number of frames.
        field, offsets: the offsets of the frames as an input of programs; None without offsets.
    """

    parts: tuple
    count: int
    field: Field | None = None
    offsets: wp.array | None = None


class _Kept:
    """Cached frames and offsets of a model."""

    def __init__(self, version: int):
        self.version = version
        self.frames: OrderedDict = OrderedDict()
        self.offsets: OrderedDict = OrderedDict()
        self.asked: OrderedDict = OrderedDict()


_kept: WeakKeyDictionary = WeakKeyDictionary()


def _kept_for(model) -> _Kept:
    kept = _kept.get(model)
    if kept is None:
        kept = _kept[model] = _Kept(model.version)
    elif kept.version != model.version:
        # links never change, so frames stay valid; offsets of sites in `asked` may have changed
        kept.version = model.version
        kept.asked.clear()
    return kept


def _keep(store: OrderedDict, key, make):
    value = store.get(key)
    if value is None:
        value = store[key] = make()
        if len(store) > _KEPT:
            store.popitem(last=False)
    return value


def _parts(model, rows: np.ndarray, size: int) -> tuple:
    """Frames for links ``[articulation_count, frames + 1]``; articulations with equal rows share a part."""
    kept = _kept_for(model)

    def frames(row):
        # equal links give the same object, so that compiled programs and recordings are reused
        row = np.ascontiguousarray(row, dtype=np.int32)
        return _keep(kept.frames, (row.tobytes(), len(row), size), lambda: Frames(row, size))

    if (rows == rows[:1]).all():
        return ((frames(rows[0]), None),) if len(rows) else ((frames(np.full(rows.shape[1], NONE)), None),)
    different, of = np.unique(rows, axis=0, return_inverse=True)
    of = of.reshape(-1)
    masks = (constant_array(of == i, wp.bool, model.device) for i in range(len(different)))
    return tuple((frames(row), mask) for row, mask in zip(different, masks, strict=True))


def every_link(model) -> Asked:
    """All links."""

    count = links(model)
    frames = _keep(
        _kept_for(model).frames,
        "links",
        lambda: Frames(np.array([*range(count), WORLD], dtype=np.int32), 0, varied=False),
    )
    return Asked(((frames, None),), count)


def asked_link(model, link) -> Asked:
    """One link, from its name or index. Raises KeyError, IndexError, TypeError, ValueError as `link_rows`."""

    def make():
        return Asked(_parts(model, _seen_from_world(link_rows(model, link)[:, None]), 0), 1)

    if not isinstance(link, str | int | np.integer):
        return make()
    return _keep(_kept_for(model).asked, ("link", type(link), link), make)


def _seen_from_world(rows: np.ndarray) -> np.ndarray:
    return np.concatenate([rows, np.full((len(rows), 1), WORLD)], axis=1)


def link_rows(model, link, what: str = "link") -> np.ndarray:
    """The index of a link in every articulation, from a name or an index, ``[articulation_count]``.

    Raises:
        KeyError: no articulation has the name.
        IndexError: no articulation has the index.
        TypeError: neither a name nor an index.
        ValueError: several links of one articulation have the name.
    """
    if not isinstance(link, str):
        return np.full(model.articulation_count, as_link_index(link, what, links(model)))
    names = names_of(model)
    found = names.everywhere("link", link)
    if all(i is None for i in found):
        error = unknown(what, link, names.every("link"), "any articulation")
        if any(names.matches("frame", link, a) for a in range(len(names.start))):
            error = KeyError(
                f"{what} {link!r} is a named frame on a link, not a link; use a function of frames, or frame_link() and frame_offset()"
            )
        raise error
    return np.array([NONE if i is None else i for i in found], dtype=int)


def _named_rows(model, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Links and offsets of a named frame in every articulation; None if no articulation has it."""
    names = names_of(model)
    found = names.everywhere("frame", name)
    if all(i is None for i in found):
        return None
    rows = np.full(len(found), NONE)
    offsets = np.tile(IDENTITY, (len(found), 1))
    has = np.array([i is not None for i in found])
    at = names.frame_start[:-1][has] + np.array([i for i in found if i is not None])
    rows[has], offsets[has] = names.frame_link[at], names.frame_poses(model, at)
    return rows, offsets


def _frame_rows(model, frame) -> tuple[np.ndarray, np.ndarray | None]:
    """Links ``[articulation_count]`` and offsets ``[1 or articulation_count, 7]``, or None without an offset, of one frame."""
    if isinstance(frame, tuple) and len(frame) == 2:
        offset = _offset(model, frame[1])
        if frame[0] is None:
            return np.full(model.articulation_count, WORLD), offset
        return link_rows(model, frame[0]), offset
    if frame is None:
        return np.full(model.articulation_count, WORLD), None
    if isinstance(frame, str):
        named = _named_rows(model, frame)
        names = names_of(model)
        linked = [names.matches("link", frame, a) for a in range(len(names.start))]
        if named is not None:
            if any(linked):
                raise ValueError(
                    f"frame {frame!r} is a named frame and a link; give the link's index, or a pair (link, offset)"
                )
            return named
        if not any(linked):
            raise unknown("frame", frame, names.every("frame", "link"), "any articulation")
    return link_rows(model, frame, "frame"), None


def _offset(model, offset) -> np.ndarray:
    what = "a frame's offset"
    try:
        # gradients of Warp arrays are handled by `_tracked`
        values = as_numbers(offset.numpy() if isinstance(offset, wp.array) else offset, what)
    except TypeError:
        # a pair of a position and a quaternion; `as_transform` raises for other values
        return np.array([as_transform(offset, what)]).reshape(-1, 7)
    if values.ndim == 2 and values.shape != (model.articulation_count, 7):
        raise ValueError(f"{what} has shape {values.shape}; give (7,) or ({model.articulation_count}, 7)")
    rows = values if values.ndim == 2 else values[None] if values.ndim == 1 else [offset]
    return np.array([as_transform(row, what) for row in rows]).reshape(-1, 7)


def _tracked(frame) -> wp.array | None:
    """The offset of a frame if it needs gradients, else None."""
    offset = frame[1] if isinstance(frame, tuple) and len(frame) == 2 else None
    return offset if isinstance(offset, wp.array) and offset.requires_grad and active_tape() is not None else None


def _key(frame):
    """Key of a frame in the cache. Raises TypeError for a frame whose offset is on a tape, because it is not a constant."""
    if _tracked(frame) is not None:
        raise TypeError("an offset on a tape is not a constant")
    if isinstance(frame, tuple) and len(frame) == 2:
        offset = as_numbers(frame[1], "a frame's offset")
        return (type(frame[0]), frame[0], offset.shape, offset.tobytes())
    return (type(frame), frame)


def asked_frames(model, frames, base=None) -> Asked:
    """Resolves frames that a user gives.

    Args:
        model: the :class:`Model`.
        frames: names of sites, merged links or links, indices of links, or pairs of a link and an offset, transform or
            ``[articulation_count, 7]``; None: the world.
        base: the base frame, given in the same way.

    Raises:
        KeyError, IndexError, ValueError, TypeError: as `link_rows` and `as_transform`.
    """
    asked = [*as_list(frames, "frames", "frames"), base]
    try:
        key = ("frames", *map(_key, asked))
        hash(key)
    except (TypeError, ValueError):
        key = None

    def make():
        found = [_frame_rows(model, frame) for frame in asked]
        rows = np.stack([rows for rows, _ in found], axis=1)
        count = len(asked) - 1
        if all(offset is None for _, offset in found):
            return Asked(_parts(model, rows, 0), count)
        offsets = np.stack(
            [np.broadcast_to(IDENTITY if x is None else x, (model.articulation_count, 7)) for _, x in found], axis=1
        )
        tracked = {i: _tracked(frame) for i, frame in enumerate(asked) if _tracked(frame) is not None}
        if tracked:
            return Asked(_parts(model, rows, 7), count, *_tracked_offsets(model, offsets, tracked))
        return Asked(_parts(model, rows, 7), count, *_offsets(model, offsets))

    return make() if key is None else _keep(_kept_for(model).asked, key, make)


def _offsets(model, offsets: np.ndarray) -> tuple[Field, wp.array]:
    """Offsets ``[articulation_count, frames, size]`` as an input: one copy where all articulations agree."""
    kind, size = "articulations", offsets.shape[1] * offsets.shape[2]
    if (offsets == offsets[:1]).all():
        kind, offsets = "all", offsets[:1]
    values = np.ascontiguousarray(offsets)
    array = _keep(
        _kept_for(model).offsets,
        (values.tobytes(), values.shape),
        lambda: constant_array(values.ravel(), model.dtype, model.device),
    )
    return Field("offset", kind, size), array


def _tracked_offsets(model, offsets: np.ndarray, tracked: dict[int, wp.array]) -> tuple[Field, wp.array]:
    """The same as `_offsets`, with gradients for the offsets `tracked`, by index of the frame."""
    count, width = len(offsets), 7 * offsets.shape[1]
    array = constant_array(offsets.reshape(count, width), model.dtype, model.device, requires_grad=True)
    for i, offset in tracked.items():
        shape = (7,) if offset.ndim == 1 else (count, 7)
        given = flat(input_array(model, offset, "a frame's offset", model.dtype, shape), model.dtype)
        inputs = [given, i, 0 if offset.ndim == 1 else 7]
        wp.launch(offset_kernel(model.dtype), (count, 7), inputs=inputs, outputs=[array], device=model.device)
    return Field("offset", "articulations", width), array


def asked_points(model, on, points) -> Asked:
    """Resolves points on links that a user gives.

    Args:
        model: the :class:`Model`.
        on: the link of all points, or one for each: names or indices.
        points: positions in the link frames [m], ``[n, 3]`` or ``[articulation_count, n, 3]``: a differentiable Warp array of the
            model's type, or numbers.

    Raises:
        KeyError, IndexError, ValueError, TypeError: as `link_rows`; wrong shape, or numbers that are not finite.
    """
    if isinstance(points, wp.array):
        array = points
    else:
        values = as_numbers(points, "points")
        key = (values.tobytes(), values.shape, "points")

        def made() -> wp.array:
            return wp.array(finite_numbers(model, values, "points"), dtype=model.dtype, device=model.device)

        array = _keep(_kept_for(model).offsets, key, made)
    count = model.articulation_count
    shared = array.ndim == 2
    if array.ndim not in (2, 3) or array.shape[-1] != 3 or (not shared and array.shape[0] != count):
        raise ValueError(f"points has shape {array.shape}; give (n, 3) or ({count}, n, 3)")
    n = array.shape[-2]
    input_array(model, array, "points", model.dtype, array.shape)
    single = isinstance(on, str | int | np.integer)
    carriers = [on] * n if single else [check_name(x, "link") for x in as_list(on, "links", "names or indices")]
    if len(carriers) != n:
        raise ValueError(f"{len(carriers)} links for {n} points; give one for all, or one for each")

    def make():
        found = {link: link_rows(model, link) for link in set(carriers)}
        rows = np.stack([found[link] for link in carriers], axis=1) if n else np.zeros((count, 0), dtype=int)
        return _parts(model, _seen_from_world(rows), 3)

    parts = _keep(_kept_for(model).asked, ("points", *((type(x), x) for x in carriers)), make)
    return Asked(parts, n, Field("offset", "all" if shared else "articulations", 3 * n), array)
