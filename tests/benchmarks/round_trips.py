"""MJCF files that are written to USD and read again: which models and accelerations differ from those of the file.

    python -m tests.benchmarks.round_trips FOLDER ... [--match TEXT] [--all]

Files that the importer refuses (parts that other files include) are left out, and so are those without bodies. Arrays of the models are
compared to single precision, without materials and margins of shapes that do not collide, which a stage does not have. Accelerations are
those of a step of 1 us at random coordinates within the limits of joints, with random velocities and controls; the difference is relative
to the largest one. `--all` also prints files that agree.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
import warp as wp

from newton_like import JointType, ModelBuilder
from newton_like.solvers import SolverFeatherstone
from newton_like.types import ShapeFlags
from newton_like.usd import write
from tests.support.usd_models import SINGLE, differences, differences_of_constraints

STEP, CLOSE = 1.0e-6, 1.0e-3
"""The time step [s], and the relative difference of accelerations up to which they agree."""

_CONTACT = ("shape_margin", "shape_gap", "shape_material_")


def compared(model, other) -> dict[str, str]:
    """What differs between two models."""
    found = differences(model, other, ignore=("body_q",)) | differences_of_constraints(model, other)
    collides = (model.shape_flags.numpy() & int(ShapeFlags.COLLIDE_SHAPES)) != 0
    for name in [name for name in found if name.startswith(_CONTACT)]:
        if np.allclose(*(getattr(m, name).numpy()[collides] for m in (model, other)), rtol=SINGLE):
            del found[name]
    return found


def accelerations(model, seed: int = 0) -> np.ndarray:
    """Accelerations of the joints at random coordinates ``[joint_dof_count]``."""
    rng, state, control = np.random.default_rng(seed), model.state(), model.control()
    q, speed = state.joint_q.numpy(), 0.3 * rng.normal(size=model.joint_dof_count)
    q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    for joint, kind in enumerate(model.joint_type.numpy()):
        if kind not in (JointType.FREE, JointType.DISTANCE, JointType.BALL):
            dofs = slice(qd_start[joint], qd_start[joint + 1])
            coords = slice(q_start[joint], q_start[joint + 1])
            moved = q[coords] + rng.uniform(-0.3, 0.3, coords.stop - coords.start)
            q[coords] = np.clip(
                moved, *(getattr(model, f"joint_limit_{end}").numpy()[dofs] for end in ("lower", "upper"))
            )
    state.joint_q.assign(q)
    state.joint_qd.assign(speed)
    if model.actuators:
        control.actuator_ctrl = rng.uniform(0.0, 0.5, len(model.actuators))
    solver = SolverFeatherstone(model, evaluator="general", width=1, unsupported_contacts="ignore", iterations=64)
    solver.step(state, state, control, None, STEP)
    return (state.joint_qd.numpy() - speed) / STEP


def round_trip(model, folder: str) -> dict[str, str]:
    """What differs after a model was written and read, and remarks about parts that are not written."""
    path = Path(folder) / "model.usdc"
    remarks = write(model, path).remarks
    builder = ModelBuilder()
    report = builder.add_usd(str(path))
    other = builder.finalize("cpu", dtype=model.dtype)
    found = {text: ", ".join(names[:3]) for text, names in remarks.items() if "not written" in text}
    found |= report.not_understood | compared(model, other)
    try:
        mine = accelerations(model) if model.joint_dof_count else np.zeros(1)
    except (ValueError, NotImplementedError):
        return found  # the solver does not take the file
    theirs = accelerations(other) if model.joint_dof_count else np.zeros(1)
    if mine.shape == theirs.shape:
        worst = np.abs(mine - theirs).max() / max(1.0, np.abs(mine).max())
        if not worst <= CLOSE:
            found["accelerations"] = f"{worst:.2g} of the largest, {np.abs(mine).max():.3g}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--match", default="", help="only files whose paths contain this text")
    parser.add_argument("--all", action="store_true", help="print files that agree, too")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    files = sorted(file for folder in args.folders for file in folder.rglob("*.xml") if args.match in str(file))
    agree = differ = left_out = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            builder = ModelBuilder()
            try:
                builder.add_mjcf(str(file))
                model = builder.finalize("cpu", dtype=wp.float64)
            except (ValueError, OSError, RuntimeError):
                left_out += 1
                continue
            if not model.body_count:
                left_out += 1
                continue
            found = round_trip(model, folder)
            agree, differ = agree + (not found), differ + bool(found)
            if found or args.all:
                print(file, "agrees" if not found else "".join(f"\n    {k}: {v}" for k, v in found.items()), flush=True)
    print(f"{agree} files agree, {differ} differ, {left_out} were left out")


if __name__ == "__main__":
    main()
