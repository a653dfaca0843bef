"""Wrenches on bodies of forces that no joint of the tree transmits: of loop joints and spatial tendons, and shares of weight."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.dynamics.loops import loops_of
from newton_like.dynamics.names import names_of
from newton_like.kernels.dynamics.loops import LOOP, NO_ROW
from newton_like.kernels.solvers.pulls import CHILD, PARENT, pull_kernels
from newton_like.kernels.solvers.rows.closure_rows import SPIN
from newton_like.model.tendons import pieces_of
from newton_like.solvers.featherstone.loop_rows import KIND, SOURCE, solver_rows
from newton_like.types import warp_types

_WITHOUT = "{} does not support models with {}: the forces of these on single bodies are not computed"


class Pulls:
    """Adds these wrenches to those on bodies.

    Args:
        model: the model.
        what: name of the array that needs them, for errors.

    Attributes:
        act: whether there are any.

    Raises:
        NotImplementedError: forces of the model are not known by body.
    """

    def __init__(self, model, what: str):
        self._model, self._what = model, what
        self._refuse(model, what)
        shares = model.custom_attributes.get("mujoco:gravcomp")
        self._relieved = shares is not None and bool(np.any(model.mujoco.gravcomp.numpy()))
        self._loops = self._find_loops(model) if (model.joint_articulation.numpy() < 0).any() else None
        self._lines = self._find_lines(model) if any(tendon.is_spatial for tendon in model.tendons) else None
        self.act = self._relieved or self._loops is not None or self._lines is not None
        self._wrench = wp.zeros(
            model.body_count if self.act else 0, dtype=warp_types(model.dtype).spatial_vector, device=model.device
        )

    @staticmethod
    def _refuse(model, what: str) -> None:
        told = None
        for tendon in model.tendons:
            if tendon.is_spatial and any(kind == "geom" for kind, *_ in tendon.path):
                told = f"tendons that wrap around shapes ({tendon.label!r})"
            elif tendon.is_spatial and tendon.ties:
                told = f"ties of spatial tendons ({tendon.label!r})"
        for actuator in model.actuators:
            if actuator.transmission in ("site", "slidercrank", "body"):
                told = f"actuators on a {actuator.transmission} ({actuator.label!r})"
        if (model.joint_articulation.numpy() < 0).any():
            found = solver_rows(model)
            rows = found.rows
            # joints of trees transmit the torques of limits of ball joints
            of_trees = (rows[:, KIND] >= SPIN) & (model.joint_articulation.numpy()[found.joints] >= 0)
            unknown = (rows[:, KIND] != NO_ROW) & (rows[:, SOURCE] < 0) & ~of_trees
            if unknown.any():
                told = "drives, springs, friction or limits of loop joints, or polynomials between joints"
        if told is not None:
            raise NotImplementedError(_WITHOUT.format(what, told))

    def _find_loops(self, model):
        """Kinds of rows and their bodies, ``[articulations, rows, 3]``, and the numbers of rows."""
        loops, names = loops_of(model, distances=True, polynomials=True), names_of(model)
        table = np.moveaxis(loops.rows, 1, 2).astype(np.int32)
        for a in range(len(table)):
            links = names.child[names.start[a] : names.start[a] + names.count[a]]
            for end in (PARENT, CHILD):
                link = table[a, :, end]
                table[a, :, end] = np.where(
                    (link >= 0) & (link < len(links)), links[np.clip(link, 0, len(links) - 1)], -1
                )
        numbers = loops.numbers.reshape(*loops.numbers.shape[:2], LOOP)
        return (
            wp.array(np.ascontiguousarray(table), dtype=wp.int32, device=model.device),
            wp.array(np.ascontiguousarray(numbers), dtype=model.dtype, device=model.device),
        )

    def _find_lines(self, model):
        """Tendon and sites of straight pieces, ``[pieces, 3]``, and their factors."""
        table, factors = [], []
        for n, tendon in enumerate(model.tendons):
            for first, last, _, _, divisor in pieces_of(tendon) if tendon.is_spatial else ():
                table.append((n, first, last))
                factors.append(1.0 / divisor)
        return wp.array(np.array(table), dtype=wp.int32, device=model.device), wp.array(
            factors, dtype=model.dtype, device=model.device
        )

    def add(self, solver, body_q: wp.array, body_f: wp.array) -> wp.array:
        """External wrenches on bodies in the last step with these, ``[body_count]``, about centres of mass, world axes.

        Args:
            solver: the solver of the step.
            body_q: poses after the step.
            body_f: external wrenches in the step.

        Raises:
            NotImplementedError: the solver does not tell the forces of loop joints or of tendons.
        """
        if not self.act:
            return body_f
        for found, name, of in ((self._loops, "loop_forces", "loop joints"), (self._lines, "tendon_forces", "tendons")):
            if found is not None and not hasattr(solver, name):
                raise NotImplementedError(
                    f"{self._what} needs the forces of {of}, which {type(solver).__name__} does not tell; use SolverFeatherstone"
                )
        model = self._model
        kernels, device = pull_kernels(model.dtype), model.device
        wp.copy(self._wrench, body_f)
        bodies = [body_q, model.body_com]
        if self._relieved:
            wp.launch(
                kernels.relieve, dim=model.body_count,
                inputs=[model.mujoco.gravcomp, model.body_mass, model.body_world, model.gravity], outputs=[self._wrench], device=device,
            )  # fmt: skip
        if self._loops is not None:
            force = solver.loop_forces()
            wp.launch(
                kernels.close,
                dim=force.shape[0],
                inputs=[*self._loops, force, *bodies],
                outputs=[self._wrench],
                device=device,
            )
        if self._lines is not None:
            wp.launch(
                kernels.pull, dim=1,
                inputs=[*self._lines, solver.tendon_forces(), model.shape_body, model.shape_transform, *bodies],
                outputs=[self._wrench], device=device,
            )  # fmt: skip
        return self._wrench
