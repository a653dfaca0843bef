"""The numbers of a robot, and its launches."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

import numpy as np

from newton_like.robot.core.calls import Calls
from newton_like.robot.core.machine import Machine
from newton_like.robot.core.shelf import Shelf
from newton_like.robot.core.single import Patterns
from newton_like.robot.core.tasks import Task
from newton_like.robot.regrouped import regrouped_numbers
from newton_like.robot.screws import axis_of
from newton_like.robot.structure.joint import Joint
from newton_like.robot.structure.link import Link
from newton_like.robot.structure.tree import survey
from newton_like.robot.to_model import edges_of, flattened, machine_model, merged_inertias, with_inertias
from newton_like.threads import compiling

_BATCHES = 8
"""Batches, by order of joints and size, whose launches stay recorded."""


class RobotCore:
    """The tree below a base link as it is now, and the kernels that compute for it. Links of a robot are also called bodies; body k is
    ``links[k]``.

    Args:
        base_link: the base link.
        evaluator: see :class:`newton_like.robot.Robot`.

    Attributes:
        links: all links, breadth-first.
        edges: all joints, in the order of their child links; see :class:`newton_like.robot.to_model.Edge`.
        joints: the joints that move, breadth-first. The dofs of a robot have this order.
        link_names, joint_names: of links and joints.
        scale: radians, or for translations metres, of motion for each unit of the coordinates, ``[n]``.
        unit: whether all of them are 1.
        masses: of the links [kg], ``[links]``.
        single: numbers on the device, and kernels for one configuration.
        patterns: launches for one configuration, and the memory that states hand on.
        evaluator: how batches are computed.
        capsules: those of :mod:`newton_like.robot.nearest`, by the order of links and joints.

    Raises:
        ValueError: an unsound tree, inertia or joint.
    """

    @compiling
    def __init__(self, base_link: Link, evaluator: str):
        self.evaluator = evaluator
        self.links, every = survey(base_link)
        self.edges = edges_of(self.links, every)
        self.joints: list[Joint] = [joint for joint in every if not joint.is_fixed()]
        self.link_names, self.joint_names = [link.name for link in self.links], [joint.name for joint in self.joints]
        flat = flattened(self.edges)
        model = machine_model(self.links, self.edges, flat)
        self.scale = np.array([axis_of(joint.S).scale for joint in self.joints], dtype=float)
        self.unit = bool((self.scale == 1.0).all())
        self.masses = np.array([link.mass for link in self.links])
        inertias, moved = merged_inertias(self.links, self.edges)
        regrouped = partial(regrouped_numbers, inertias, flat)
        merged = partial(with_inertias, model, inertias) if moved else None
        self._numbers = model, regrouped, merged, not self.unit
        self.single, self._machine = Machine(*self._numbers, narrow=True), None
        self.patterns = Patterns(self.single, len(self.joints))
        self.capsules: OrderedDict = OrderedDict()
        self._batches = Shelf(_BATCHES)

    @property
    def machine(self) -> Machine:
        """Numbers on the device, and kernels for batches."""
        return self._machine or self._make_machine()

    @compiling
    def _make_machine(self) -> Machine:
        if self._machine is None:
            self._machine = Machine(*self._numbers)
        return self._machine

    def path(self, target: int, ref: int) -> tuple[list[int], list[int]]:
        """The dofs between two bodies: those that move the reference link only, from that link up; and those that move the target link
        only, from the base link down."""
        up, down = self._ancestors(ref), self._ancestors(target)[::-1]
        shared = set(up) & set(down)
        return [i for i in up if i not in shared], [i for i in down if i not in shared]

    def _ancestors(self, body: int) -> list[int]:
        """The dofs that move a body, from the body to the base link."""
        # the joints may be connected to other links by now
        tree = self.single.batch.template
        dofs: list[int] = []
        while body:
            dofs += range(int(tree.dof_at[body]), int(tree.dof_at[body + 1]))
            body = int(tree.parent[body])
        return dofs

    def evaluate(self, order: np.ndarray, count: int, task: Task, arrays: dict, shape, links) -> np.ndarray:
        """The result of a task for a batch; see :meth:`Calls.evaluate`. `order`: of joints."""
        key = (order.tobytes(), count)
        calls = self._batches.take(key) or Calls(self.machine, count, order, self.evaluator)
        (found,) = calls.evaluate(task, arrays, (shape,), links)
        self._batches.give(key, calls)
        return found
