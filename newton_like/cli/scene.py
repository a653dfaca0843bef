"""Files as models, by their suffix."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import warp as wp

from newton_like.kinematics import eval_fk
from newton_like.model import Model, ModelBuilder, State

READERS = {
    ".urdf": "urdf",
    ".xml": "mjcf",
    ".mjcf": "mjcf",
    ".usd": "usd",
    ".usda": "usd",
    ".usdc": "usd",
    ".usdz": "usd",
}
"""Which importer reads files of a suffix. An ``.xml`` whose root is ``robot`` is a URDF."""


@dataclass(frozen=True)
class Scene:
    """A file that was read.

    Attributes:
        builder: what the importer added to.
        model: finished in double precision.
        state: where all bodies are at the start.
        format: ``"urdf"``, ``"mjcf"`` or ``"usd"``.
        remarks: warnings of the importer.
    """

    builder: ModelBuilder
    model: Model
    state: State
    format: str
    remarks: list[str]


def format_of(path: Path) -> str:
    """The importer that reads a file.

    Raises:
        ValueError: none does.
    """
    known = READERS.get(path.suffix.lower())
    if known is None:
        raise ValueError(f"{path}: files of the type '{path.suffix}' are not read; give one of {', '.join(READERS)}")
    if known == "mjcf" and b"<robot" in path.read_bytes()[:4096]:
        return "urdf"
    return known


def read(path: Path, options: dict, ground: bool = False, dtype=wp.float64) -> Scene:
    """Reads a file.

    Args:
        path: of a URDF, MJCF or USD file.
        options: of the importer; those that are None are left at its defaults.
        ground: add a ground plane.
        dtype: scalar type of the model.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError, TypeError, KeyError: the importer or the model refuses it.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    kind = format_of(path)
    builder = ModelBuilder()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(builder, f"add_{kind}")(str(path), **{k: v for k, v in options.items() if v is not None})
        if ground:
            builder.add_ground_plane()
        model = builder.finalize("cpu", dtype=dtype)
    state = model.state()
    if model.articulation_count:
        eval_fk(model, state.joint_q, state.joint_qd, state)
    return Scene(builder, model, state, kind, [str(w.message) for w in caught])
