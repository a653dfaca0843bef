"""What all solvers share: refusing what a model asks for in vain, looking after worlds, and putting them back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, flat
from newton_like.kernels.solvers.health import health_kernels
from newton_like.kinematics import eval_fk
from newton_like.types import BodyFlags, ModelFlags


def _loop_joints(model, solver: str) -> str | None:
    loops = np.flatnonzero(model.joint_articulation.numpy() < 0)
    if not len(loops):
        return None
    return (
        f"joint '{model.joint_label[loops[0]]}' (index {loops[0]}) is in no articulation and closes a loop; {solver} does not solve loop"
        " joints: remove it, or add it to an articulation"
    )


def _disabled_joints(model, solver: str) -> str | None:
    disabled = np.flatnonzero(~model.joint_enabled.numpy().astype(bool))
    if not len(disabled):
        return None
    return f"joint '{model.joint_label[disabled[0]]}' (index {disabled[0]}) is disabled; {solver} keeps all tree joints: remove it"


def _kinematic_bodies(model, solver: str) -> str | None:
    bodies = np.flatnonzero(model.body_flags.numpy() & BodyFlags.KINEMATIC)
    if not len(bodies):
        return None
    return f"body '{model.body_label[bodies[0]]}' (index {bodies[0]}) is kinematic, which {solver} does not do: fix it"


def _tendons(model, solver: str) -> str | None:
    if not model.tendons:
        return None
    return f"tendon '{model.tendons[0].label}' (index 0): {solver} does not act on tendons; clear model.tendons to simulate without them"


FEATURES: dict[str, Callable] = {
    "loop joints": _loop_joints,
    "disabled joints": _disabled_joints,
    "kinematic bodies": _kinematic_bodies,
    "tendons": _tendons,
}
"""What a model may ask for and not every solver does: from a model and a solver's name to the error about the first thing that asks, or
None."""


class SolverBase:
    """A solver: it moves the states of one model forward in time.

    A solver says in `supports` what it does of :data:`FEATURES`, overrides :meth:`step`, `_refresh` and `_forget`, and calls
    `_check_version` at the start of a step.

    Args:
        model: the model.

    Raises:
        ValueError: the model asks for what this solver does not do.
    """

    supports: frozenset[str] = frozenset()

    def __init__(self, model):
        self.model = model
        for feature, asked in FEATURES.items():
            told = None if feature in self.supports else asked(model, type(self).__name__)
            if told is not None:
                raise ValueError(told)
        self._version = model.version
        self._chosen = self._control = None

    def step(self, state_in, state_out, control=None, contacts=None, dt: float = 1.0 / 240.0) -> None:
        """Advances all worlds by one step.

        Args:
            state_in: the state now.
            state_out: the state afterwards.
            control: forces and targets; None: those of the model's initial control.
            contacts: None: the solver finds contacts itself.
            dt: time step [s].
        """
        raise NotImplementedError

    def notify_model_changed(self, flags: ModelFlags | int = ModelFlags.ALL) -> None:
        """Takes over edited model arrays. Contact forces are remembered.

        Specialised robots are compiled again where a number that all worlds shared has changed; numbers that differ between worlds
        may change freely.

        Args:
            flags: which groups of arrays were edited.
        """
        self.model.notify_changed(flags)
        self._check_version()

    def _check_version(self) -> None:
        """Takes over what was edited since the last step."""
        if self._version != self.model.version:
            if self._control is not None:
                self._control.assign(self.model.control())
            self._refresh()
            # last, so that an error comes back at the next step
            self._version = self.model.version

    def _refresh(self) -> None:
        """Gathers the numbers of the model anew."""

    def _forget(self, mask: wp.array) -> None:
        """Forgets what is remembered of the worlds that the mask selects, ``[world_count]`` bool."""

    def _default_control(self):
        """The model's initial control, as of its version."""
        if self._control is None:
            self._control = self.model.control()
        return self._control

    # ------------------------------------------------------------------------------------------------ health

    def check(self, state, highest_speed: float = 1.0e4) -> np.ndarray:
        """Which worlds are healthy: all joint coordinates finite, all joint velocities below a bound.

        Args:
            state: the state to look at.
            highest_speed: the bound [m/s or rad/s].

        Returns:
            ``[world_count]`` bool.
        """
        model = self.model
        healthy = wp.full(model.world_count, True, dtype=wp.bool, device=model.device)
        examine, _, _ = health_kernels(model.dtype)
        wp.launch(
            examine,
            dim=model.articulation_count,
            inputs=[
                model.articulation_start,
                model.articulation_world,
                model.joint_q_start,
                model.joint_qd_start,
                model.dtype(highest_speed),
                state.joint_q,
                state.joint_qd,
            ],
            outputs=[healthy],
            device=model.device,
        )
        return healthy.numpy()

    def reset(self, state, world_mask=None) -> None:
        """Puts worlds back to the model's initial state, and forgets their contact forces and accounts of energy. Other worlds keep
        every bit.

        Args:
            state: the state to change.
            world_mask: ``[world_count]`` bool, which worlds; None: all.

        Raises:
            ValueError: the mask has another length.
        """
        model = self.model
        mask = self._world_mask(world_mask)
        if self._chosen is None:
            self._chosen = wp.zeros(model.articulation_count, dtype=wp.bool, device=model.device)
        _, restore, release = health_kernels(model.dtype)
        wp.launch(
            restore,
            dim=model.articulation_count,
            inputs=[
                mask,
                model.articulation_start,
                model.articulation_world,
                model.joint_q_start,
                model.joint_qd_start,
                model.joint_q,
                model.joint_qd,
            ],
            outputs=[state.joint_q, state.joint_qd, self._chosen],
            device=model.device,
        )
        self._forget(mask)
        if state.body_f is not None:
            inputs, forces = [mask, model.body_world], flat(state.body_f, model.dtype)
            wp.launch(release, dim=model.body_count, inputs=inputs, outputs=[forces], device=model.device)
        if model.articulation_count:
            eval_fk(model, state.joint_q, state.joint_qd, state, mask=self._chosen)

    def _world_mask(self, mask) -> wp.array:
        """Bools on the model's device. Those that are there already are taken as they are."""
        model = self.model
        if mask is None:
            mask = np.ones(model.world_count, bool)
        size = mask.size if isinstance(mask, wp.array) else np.size(mask)
        if size != model.world_count:
            raise ValueError(f"world_mask has {size} entries, the model has {model.world_count} worlds")
        if isinstance(mask, wp.array):
            if mask.dtype is wp.bool and mask.ndim == 1 and mask.device == model.device:
                return mask
            mask = mask.numpy()
        check_recorded(model.device, "solver.reset with a mask from the host")
        return wp.array(np.asarray(mask).astype(bool).ravel(), dtype=wp.bool, device=model.device)
