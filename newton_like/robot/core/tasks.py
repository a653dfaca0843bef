"""The quantities of a robot that kernels compute: what each reads, and where its result is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from newton_like.kernels.robot import tasks
from newton_like.kernels.robot.capsules import PAIR
from newton_like.programs.program import Field


def _dofs(model) -> int:
    return model.joint_dof_count


@dataclass(frozen=True, eq=False)
class Result:
    """What a task writes.

    Attributes:
        row, size: where it is in the memory, and its size.
        columns: 1: its last dimension are dofs; 2: the last two.
        record: the memory has so many numbers of each item in a row; the result has all first numbers of items, then all second ones,
            and so on. 0: the order is the same.
    """

    row: str
    size: int | Callable
    columns: int = 0
    record: int = 0

    def length(self, model) -> int:
        """Numbers for one configuration."""
        return self.size(model) if callable(self.size) else self.size


@dataclass(frozen=True, eq=False)
class Task:
    """Quantities of a robot that one launch computes.

    Attributes:
        number: of ``newton_like.kernels.robot.tasks``.
        results: what is written.
        inputs: what is read beside the coordinates.
        traced: what specialised code has as straight-line code: ``"robot"``, the whole task for any links; ``"links"``, the whole task for
            given links; ``"frames"``, only the frames; ``"loop"``, the frames in a loop that computes them several times.
        program: what runs the task.
        masses: ``"own"``: the task reads the masses of links; ``"merged"``: it has the same result if links on fixed joints are parts of
            the link that carries them; ``"regrouped"``: it reads the numbers of :mod:`newton_like.robot.regrouped`; ``""``: it reads no
            masses.
        frames: whether it reads the frames of links; otherwise it reads the coordinates.
    """

    number: int
    results: tuple[Result, ...] = ()
    inputs: tuple[str, ...] = ()
    traced: str = "links"
    program: str = "eval_robot"
    masses: str = ""
    frames: bool = True


def _matrix(size: int | Callable, columns: int = 0) -> tuple[Result, ...]:
    return (Result("matrix", size, columns),)


FRAMES = Task(tasks.FRAMES)
POSE = Task(tasks.POSE, _matrix(16))
JACOBIAN = Task(tasks.JACOBIAN, _matrix(lambda model: 6 * _dofs(model), columns=1), masses="regrouped", frames=False)
VELOCITY = Task(tasks.VELOCITY, _matrix(6), ("v",))
CENTRE = Task(tasks.CENTRE, _matrix(3), ("weights",), masses="own")
CENTRE_JACOBIAN = Task(
    tasks.CENTRE_JACOBIAN, _matrix(lambda model: 3 * _dofs(model), columns=1), ("weights",), masses="own"
)
TOTAL_INERTIA = Task(tasks.TOTAL_INERTIA, _matrix(36), masses="own")
OPERATIONAL = Task(tasks.OPERATIONAL, (Result("operational", 38),), masses="merged")
MASS_MATRIX = Task(
    tasks.MASS_MATRIX, _matrix(lambda model: _dofs(model) ** 2, columns=2), traced="robot", masses="merged"
)
HOLDING, LIFTING = (
    Task(number, _matrix(_dofs, columns=1), ("base_acceleration",), traced="robot", masses="regrouped", frames=False)
    for number in (tasks.HOLDING, tasks.LIFTING)
)
INVERSE_DYNAMICS = Task(
    tasks.INVERSE_DYNAMICS,
    _matrix(_dofs, columns=1),
    ("v", "acceleration", "base_twist", "base_acceleration"),
    traced="robot",
    masses="regrouped",
    frames=False,
)


POINT = 9
"""Numbers of the nearest points of two axes: both points, and the unit vector between them."""

NEAREST_POINTS = Task(tasks.NEAREST_POINTS, (Result("pairs", POINT),), ("capsule_axes",))


def gaps_task(pairs: int, capsules: int) -> Task:
    """Distances of pairs of capsules, and the axes of all capsules."""
    found = Result("pairs", pairs), Result("capsule_axes", 6 * capsules)
    return Task(tasks.GAPS, found, ("capsules",), traced="frames")


def distance_tasks(pairs: int, dofs: int) -> tuple[Task, Task]:
    """Distances of pairs of capsules, and distances with their derivatives."""
    found, slopes = Result("pairs", PAIR * pairs, record=PAIR), Result("distance_rows", dofs * pairs, columns=1)
    return (
        Task(tasks.DISTANCES, (found,), ("capsules",), traced="frames"),
        Task(tasks.DISTANCE_JACOBIAN, (found, slopes), ("capsules",), traced="frames"),
    )


FIELDS = {
    "q": Field("q", "coords"), "v": Field("v", "dofs"), "acceleration": Field("acceleration", "dofs"),
    "base_twist": Field("base_twist", "articulations", 6), "base_acceleration": Field("base_acceleration", "articulations", 6),
    "weights": Field("weights", "all", lambda model: model.body_count), "capsules": Field("capsules", "all", 7),
    "capsule_axes": Field("capsule_axes", "articulations", 12),
    "goals": Field("goals", "articulations"), "ik_settings": Field("ik_settings", "all"),
}  # fmt: skip
"""The inputs of tasks. Those of dofs are in the order of a state's joints."""

SIZED_LATER = ("capsules", "capsule_axes", "goals", "ik_settings")
"""Inputs whose sizes follow from their arrays."""
