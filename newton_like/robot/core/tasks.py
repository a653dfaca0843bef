"""The quantities of a robot that kernels compute: what each reads, and where its result is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from newton_like.kernels.robot import tasks
from newton_like.programs.program import Field


def _dofs(model) -> int:
    return model.joint_dof_count


def _square(model) -> int:
    return _dofs(model) ** 2


@dataclass(frozen=True, eq=False)
class Task:
    """A quantity of a robot.

    Attributes:
        number: of ``newton_like.kernels.robot.tasks``.
        inputs: what is read beside the coordinates.
        row, size: where the result is in the memory, and its size.
        columns: 1: the last dimension of the result are dofs; 2: the last two.
        traced: what specialised code has as straight-line code: ``"robot"``, the whole task for any links; ``"links"``, the whole task for
            given links; ``"frames"``, only the frames; ``"loop"``, the frames in a loop that computes them several times.
        program: what runs the task.
    """

    number: int
    row: str
    size: int | Callable
    inputs: tuple[str, ...] = ()
    columns: int = 0
    traced: str = "links"
    program: str = "eval_robot"

    def length(self, model) -> int:
        """Numbers in the result of one configuration."""
        return self.size(model) if callable(self.size) else self.size


FRAMES = Task(tasks.FRAMES, "matrix", 0)
POSE = Task(tasks.POSE, "matrix", 16)
JACOBIAN = Task(tasks.JACOBIAN, "matrix", lambda model: 6 * _dofs(model), columns=1)
VELOCITY = Task(tasks.VELOCITY, "matrix", 6, ("v",))
CENTRE = Task(tasks.CENTRE, "matrix", 3, ("weights",))
CENTRE_JACOBIAN = Task(tasks.CENTRE_JACOBIAN, "matrix", lambda model: 3 * _dofs(model), ("weights",), columns=1)
TOTAL_INERTIA = Task(tasks.TOTAL_INERTIA, "matrix", 36)
OPERATIONAL = Task(tasks.OPERATIONAL, "operational", 37)
MASS_MATRIX = Task(tasks.MASS_MATRIX, "matrix", _square, columns=2, traced="robot")
HOLDING = Task(tasks.HOLDING, "matrix", _dofs, ("base_acceleration",), columns=1, traced="robot")
INVERSE_DYNAMICS = Task(
    tasks.INVERSE_DYNAMICS,
    "matrix",
    _dofs,
    ("v", "acceleration", "base_twist", "base_acceleration"),
    columns=1,
    traced="robot",
)

FIELDS = {
    "q": Field("q", "coords"), "v": Field("v", "dofs"), "acceleration": Field("acceleration", "dofs"),
    "base_twist": Field("base_twist", "articulations", 6), "base_acceleration": Field("base_acceleration", "articulations", 6),
    "weights": Field("weights", "all", lambda model: model.body_count), "capsules": Field("capsules", "all", 7),
    "goals": Field("goals", "articulations"), "ik_settings": Field("ik_settings", "all"),
}  # fmt: skip
"""The inputs of tasks. Those of dofs are in the order of a state's joints."""

SIZED_LATER = ("capsules", "goals", "ik_settings")
"""Inputs whose sizes follow from their arrays."""
