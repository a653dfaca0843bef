"""Reads files as models, by suffix."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import warp as wp

from newton_like.cli.terminal import suffix_text
from newton_like.geometry.outline import triangles
from newton_like.geometry.transforms import quat_inverse, quat_rotate, transform_multiply
from newton_like.kinematics import eval_fk
from newton_like.model import Model, ModelBuilder, State
from newton_like.model.joint_types import look_up
from newton_like.types import GeoType, ShapeFlags

READERS = {
    ".urdf": "urdf",
    ".xml": "mjcf",
    ".mjcf": "mjcf",
    ".usd": "usd",
    ".usda": "usd",
    ".usdc": "usd",
    ".usdz": "usd",
}
"""The importer for each suffix. An ``.xml`` file whose root element is ``robot`` is a URDF."""

DEFAULTS: dict[str, dict] = {
    "urdf": {},
    "mjcf": {"enable_self_collisions": True},  # the file defines which shapes collide
    "usd": {},
}
"""Options of the importers with another default in the command line."""

COMMENT = re.compile(rb"<!--.*?-->", re.S)
ROOT = re.compile(rb"<([A-Za-z_][\w.-]*)")
"""The first element of an XML file."""

CLEARANCE = 1.0e-3
"""Distance between the ground and bodies that are lifted onto it [m]."""


@dataclass(frozen=True)
class Scene:
    """A file that was read.

    Attributes:
        model: the model.
        state: the initial state.
        format: ``"urdf"``, ``"mjcf"`` or ``"usd"``.
        remarks: warnings of the importer, and changes of the initial state.
    """

    model: Model
    state: State
    format: str
    remarks: list[str]


def format_of(path: Path) -> str:
    """The format of a file.

    Raises:
        FileNotFoundError, IsADirectoryError, OSError: the file does not exist or cannot be read.
        ValueError: an unsupported format.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a file")
    if not path.exists():
        raise FileNotFoundError(f"{path}: the file does not exist")
    known = READERS.get(path.suffix.lower())
    if known is None:
        raise ValueError(f"{path}: files {suffix_text(path.suffix)} are not read; give one of {', '.join(READERS)}")
    if known == "mjcf":
        root = ROOT.search(COMMENT.sub(b"", path.read_bytes()))
        if root is not None and root[1] == b"robot":
            return "urdf"
    return known


def read(
    path: Path, options: dict, ground: bool = False, lift: float = 0.0, device="cpu", dtype=wp.float64, prepare=None
) -> Scene:
    """Reads a file.

    Args:
        path: path of a URDF, MJCF or USD file.
        options: options of the importer; None selects the default.
        ground: add a ground plane at height 0. Floating bodies that start below it are lifted onto it.
        lift: height by which floating bodies are lifted [m].
        device: Warp device of the model.
        dtype: scalar type of the model.
        prepare: function of the builder and the importer's report. It modifies the builder before `finalize`, and returns remarks.

    Raises:
        FileNotFoundError, IsADirectoryError: the file does not exist.
        ValueError, TypeError, KeyError: an error of the importer or of `finalize`.
    """
    kind = format_of(path)
    if kind == "usd" and options.get("up_axis") is not None:
        raise ValueError(f"{path}: a USD file defines its up axis; omit --up-axis")
    if kind != "mjcf" and options.get("keyframe") is not None:
        raise ValueError(f"{path}: only MJCF files have keyframes; omit --keyframe")
    given = {**DEFAULTS[kind], **{k: v for k, v in options.items() if v is not None}}
    builder = ModelBuilder()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = getattr(builder, f"add_{kind}")(str(path), **given)
        more = prepare(builder, report) if prepare is not None else []
        if ground:
            builder.add_ground_plane()
        model = builder.finalize(device, dtype=dtype)
    remarks = [str(w.message) for w in caught] + more
    if not model.body_count:
        remarks.append("the file has no bodies, so nothing can move")
    state = _start(model)
    if lift:
        state = _lift(model, lift)
        if not len(_floating(model)):
            remarks.append(f"--lift {lift:g} has no effect: no body floats")
    if ground:
        state = _put_on_ground(model, state, remarks)
    return Scene(model, state, kind, remarks)


def _start(model: Model) -> State:
    state = model.state()
    if model.articulation_count:
        eval_fk(model, state.joint_q, state.joint_qd, state)
    return state


def _floating(model: Model) -> np.ndarray:
    """Joints that let their body float freely in the world."""
    floats = look_up(model.joint_type.numpy(), "floats")
    return np.flatnonzero(floats & (model.joint_parent.numpy() < 0))


def _lift(model: Model, height: float) -> State:
    """Lifts the initial positions of all floating bodies by a height [m]."""
    q, frames = model.joint_q.numpy().copy(), model.joint_X_p.numpy()
    starts, up = model.joint_q_start.numpy(), np.eye(3)[int(model.up_axis)]
    for j in _floating(model):
        q[starts[j] : starts[j] + 3] += height * quat_rotate(quat_inverse(frames[j, 3:]), up)
    model.joint_q.assign(q)
    return _start(model)


def _put_on_ground(model: Model, state: State, remarks: list[str]) -> State:
    """Lifts all floating bodies by one distance, so that none of them starts below height 0 and stacks stay stacked."""
    low = lowest_points(model, state)
    rooted = np.zeros(model.body_count, dtype=bool)
    rooted[model.joint_child.numpy()[_floating(model)]] = True
    for parent, child in zip(model.joint_parent.numpy().tolist(), model.joint_child.numpy().tolist(), strict=True):
        # parents precede their children
        rooted[child] |= parent >= 0 and rooted[parent]
    depth = float(-low[rooted].min(initial=0.0))
    if depth > 0.0:
        state = _lift(model, depth + CLEARANCE)
        remarks.append(
            f"the lowest floating body would start {depth:.4g} m below the ground; all floating bodies are lifted onto it"
        )
    stuck = np.flatnonzero((low < 0.0) & ~rooted)
    if len(stuck):
        deepest = int(stuck[np.argmin(low[stuck])])
        more = f", and {len(stuck) - 1} more bodies" if len(stuck) > 1 else ""
        remarks.append(
            f"body '{model.body_label[deepest]}' reaches {-low[deepest]:.4g} m below the ground and does not float{more}"
        )
    return state


def lowest_points(model: Model, state: State) -> np.ndarray:
    """Height of the lowest point of the colliding shapes of each body, ``[body_count]`` [m]; infinite for bodies without such shapes."""
    low = np.full(model.body_count, np.inf)
    poses, places = state.body_q.numpy().astype(float), model.shape_transform.numpy().astype(float)
    kinds, scales = model.shape_type.numpy(), model.shape_scale.numpy()
    bodies, flags = model.shape_body.numpy(), model.shape_flags.numpy()
    for s in np.flatnonzero((bodies >= 0) & (flags & int(ShapeFlags.COLLIDE_SHAPES) != 0) & (kinds != GeoType.PLANE)):
        vertices, _ = triangles(kinds[s], scales[s], model.shape_source[s])
        x = transform_multiply(poses[bodies[s]], places[s])
        heights = (quat_rotate(x[3:], vertices) + x[:3])[:, int(model.up_axis)]
        low[bodies[s]] = min(low[bodies[s]], heights.min(initial=np.inf))
    return low
