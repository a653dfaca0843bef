"""The simulation that assets act on: state, control, solver and time of one model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet, WeakValueDictionary

import numpy as np
import warp as wp

from newton_like.arrays import is_captured
from newton_like.articulation.chosen import Chosen
from newton_like.articulation.data.fields import Fresh
from newton_like.articulation.graphs import StepGraph
from newton_like.articulation.launching import Repeated
from newton_like.articulation.wrenches import Pressing
from newton_like.coercion import as_count, as_time_step
from newton_like.dynamics.kinematics import accelerations_after
from newton_like.kernels.articulation.scatter import scatter_kernels
from newton_like.kernels.solvers.requested import requested_kernels
from newton_like.kinematics import move_bodies
from newton_like.model.arguments import check_model
from newton_like.model.contacts import FORCE
from newton_like.options import did_you_mean, named_arguments, unknown_attribute, unknown_option
from newton_like.solvers.featherstone import SolverFeatherstone
from newton_like.solvers.featherstone.beside import step_beside
from newton_like.solvers.featherstone.newton_options import refuse_unknown
from newton_like.types import ModelFlags

_PACKAGE = f"{__package__}."
_contexts: WeakValueDictionary = WeakValueDictionary()


def _refuse_misspelt(make: type, solver_options: dict) -> None:
    """Raises TypeError for names that neither a context nor its solver has, before the solver is made."""
    own, of_solver = named_arguments(SimulationContext.__init__), named_arguments(make.__init__)
    for name in solver_options:
        if name not in of_solver and did_you_mean(name, own):
            raise unknown_option("SimulationContext", name, own, of_solver)
    if make is SolverFeatherstone:
        refuse_unknown(
            SolverFeatherstone, {name: value for name, value in solver_options.items() if name not in of_solver}
        )


WORTHWHILE = 1024
"""Number of worlds from which on threads of the solver take over launches of assets; to find out which ones takes as long as some launches
of few worlds."""


def is_own(thing, *methods: str) -> bool:
    """Whether the class of an object is one of this package, with these methods as they are."""
    return type(thing).__module__.startswith(_PACKAGE) and vars(thing).keys().isdisjoint(methods)


def _refuse_another_model(solver, model) -> None:
    if solver.model is not model:
        raise ValueError("the solver is one of another model; make it with the model of the context")


class SimulationContext:
    """State, control and solver of a model, with a clock. Assets of one model share a context.

    A step of an environment is::

        robot.set_joint_position_target(actions)
        for _ in range(sim.decimation):
            robot.write_data_to_sim()
            sim.step()
        robot.update(sim.step_dt)

    :meth:`advance` runs the loop for a scene. Joint coordinates that assets write move bodies before a step, and when data or :attr:`state`
    are read (:meth:`forward`).

    Args:
        model: the model. States of the model get the array ``joint_qdd``.
        dt: length of a physics step [s].
        decimation: physics steps of a step of the environment.
        solver: solver of the model, or a class or function that makes one of the model at its first use, such as
            :class:`newton_like.solvers.SolverXPBD`; None: :class:`newton_like.solvers.SolverFeatherstone`.
        solver_options: further arguments of the class or function.

    Attributes:
        model: as above.
        control: arrays of the simulation. Do not replace them, nor those of :attr:`state`: data of assets are views of them.
        time: simulated time [s].
        steps: number of physics steps.
        stamp: number that grows with each step and each write. Data of assets of an older stamp are computed again.

    Raises:
        TypeError: ``model`` is not a model; an option that neither the context nor the solver has; ``solver`` makes no solver.
        ValueError: ``dt`` or ``decimation`` is not positive; a solver that was made, and options; a solver of another model.
        AttributeError: an attribute is set that the context does not have. Subclasses are free.
    """

    _is_made = False

    def __init__(self, model, dt: float = 1.0 / 240.0, decimation: int = 1, solver=None, **solver_options):
        self.model = check_model(model)
        self.dt, self.decimation = dt, decimation
        make = SolverFeatherstone if solver is None else solver
        is_made = not isinstance(make, type) and hasattr(make, "step")
        if not (is_made or callable(make)):
            raise TypeError(
                f"solver must be a solver, or a class or function that makes one of a model, not {solver!r}"
            )
        if solver_options and isinstance(make, type):
            _refuse_misspelt(make, solver_options)
        if is_made and solver_options:
            raise ValueError(f"give a solver, or options of one ({', '.join(solver_options)}), not both")
        if is_made:
            _refuse_another_model(make, self.model)
        model.request_state_attributes("joint_qdd")
        self._state, self.control = model.state(), model.control()
        # launches that write the control of the next step; None: commands are launched at once
        self._gathered: list[Repeated] | None = None
        self.time, self.stamp, self.steps = 0.0, 0, 0
        self._solver, self._make, self._solver_options = solver if is_made else None, make, solver_options
        device = model.device
        # coordinates of the builder may have been edited without their bodies
        self._moved = wp.ones(model.world_count, dtype=wp.bool, device=device)
        self._some_moved = True
        self._accelerations = self._contacts = None
        # with substeps: accelerations of the last one, those of its links, and memory
        self._last_substep = self._last_accelerations = self._change = None
        self._accelerated = self._touched = -1
        # by the dofs of an articulation: its dry friction in motion
        self._friction: dict[bytes, wp.array] = {}
        # the graph that is being captured, and those that were
        self.graph: StepGraph | None = None
        self._graphs: WeakSet[StepGraph] = WeakSet()
        # by the bodies of an articulation
        self._pressing: dict[bytes, Pressing] = {}
        state = self._state
        self._joints = [state.joint_q, state.joint_qd, state.body_q, state.body_qd]
        self._chosen = wp.zeros(max(model.articulation_count, 1), dtype=wp.bool, device=device)
        _contexts[id(model)] = self
        self._is_made = type(self) is SimulationContext

    def __setattr__(self, name: str, value) -> None:
        if self._is_made and not (name.startswith("_") or name in self.__dict__ or hasattr(type(self), name)):
            raise unknown_attribute(
                self, name, "unknown attributes have no effect; store other data elsewhere, or in a subclass"
            )
        object.__setattr__(self, name, value)

    @classmethod
    def of(cls, model) -> SimulationContext:
        """The context of a model that was made last, or a new one."""
        if isinstance(model, SimulationContext):
            return model
        found = _contexts.get(id(model))
        return found if found is not None and found.model is model else cls(model)

    @property
    def device(self) -> wp.Device:
        """Device of the model."""
        return self.model.device

    @property
    def solver(self):
        """The solver. It is made when it is first needed, so that assets set parameters before."""
        if self._solver is None:
            solver = self._make(self.model, **self._solver_options)
            if not hasattr(solver, "step"):
                raise TypeError(f"solver {self._make!r} made {solver!r}, which is no solver")
            _refuse_another_model(solver, self.model)
            self._solver = solver
        return self._solver

    @property
    def state(self):
        """The state of the simulation, with bodies where joint coordinates put them that assets wrote. Read it again after such writes."""
        self.forward()
        return self._state

    @property
    def dt(self) -> float:
        """Length of a physics step [s]. It can be set between steps."""
        return self._dt

    @dt.setter
    def dt(self, dt: float) -> None:
        self._dt = as_time_step(dt)

    @property
    def decimation(self) -> int:
        """Number of physics steps of a step of the environment. It can be set between steps."""
        return self._decimation

    @decimation.setter
    def decimation(self, decimation: int) -> None:
        self._decimation = as_count(decimation, "decimation")

    @property
    def step_dt(self) -> float:
        """Length of a step of the environment [s]."""
        return self.dt * self.decimation

    def step(self) -> None:
        """Takes one physics step of :attr:`dt`."""
        self._step((), ())

    def _step(self, before: tuple, after: tuple) -> None:
        """Takes one physics step, with launches that come before and after that of the solver."""
        self.forward()
        solver, state = self.solver, self.state
        gives = "joint_qdd" in solver.results
        several = gives and solver.substeps > 1
        # where the solver gives no accelerations, or those of its last substep, they are the change of the velocity by the step
        change = state.joint_qdd if not gives else self._change_of(state) if several else None
        if change is not None:
            wp.copy(change, state.joint_qd)
        if before or after:
            step_beside(solver, before, after, state, self.control, self.dt)
        else:
            solver.step(state, state, self.control, dt=self.dt)
        if change is not None:
            kernel = requested_kernels(self.model.dtype).change
            inputs = [state.joint_qd, self.model.dtype(1.0 / self.dt)]
            wp.launch(kernel, dim=state.joint_qd.size, inputs=inputs, outputs=[change], device=self.device)
        if several:
            wp.copy(self._last_substep, state.joint_qdd)
            wp.copy(state.joint_qdd, change)
        # without the look at names
        own = self.__dict__
        own["time"] += self.dt
        own["steps"] += 1
        own["stamp"] += 1

    def _change_of(self, state) -> wp.array:
        """Memory for the change of the velocity by a step of several substeps."""
        if self._last_substep is None:
            self._change, self._last_substep = wp.empty_like(state.joint_qd), wp.empty_like(state.joint_qd)
        return self._change

    def friction_in_motion(self, dofs: np.ndarray, of_model: np.ndarray, data) -> wp.array:
        """Dry friction of joints in motion, ``[num_instances, num_joints]``: an array that all assets of the same joints share.

        Args:
            dofs: dofs of the joints.
            of_model: its numbers in the model, where they are rounded.
            data: the data of the asset.
        """
        known = self._friction.get(dofs.tobytes())
        if known is None or not np.allclose(known.numpy(), of_model):
            known = self._friction[dofs.tobytes()] = data.buffer(*of_model.shape)
            known.assign(of_model)
        return known

    def pressing(self, asset, bodies: np.ndarray) -> Pressing:
        """The assets of the same bodies, with this one. Assets are held weakly."""
        found = self._pressing.setdefault(bodies.tobytes(), Pressing())
        found.add(asset)
        return found

    def advance(self, scene, steps: int | None = None) -> None:
        """Takes :attr:`decimation` physics steps with the commands of a scene or an asset, then updates its data.

        Args:
            scene: object with ``write_data_to_sim()`` and ``update(dt)``.
            steps: number of physics steps; None: :attr:`decimation`.

        Raises:
            TypeError: not a scene or an asset.
            ValueError: a number of steps below 1, or a scene or an asset of another context.
        """
        if not (hasattr(scene, "write_data_to_sim") and hasattr(scene, "update")):
            raise TypeError(
                f"advance() needs a scene or an asset, with write_data_to_sim() and update(dt), not {scene!r}"
            )
        other = getattr(scene, "sim", None)
        if isinstance(other, SimulationContext) and other is not self:
            raise ValueError(f"{scene!r} acts on another SimulationContext; call advance() of its sim")
        count = self.decimation if steps is None else as_count(steps, "steps")
        assets = self._assets_of(scene)
        if assets is None:
            for _ in range(count):
                scene.write_data_to_sim()
                self.step()
            scene.update(self.dt * count)
            return
        for _ in range(count - 1):
            self._write_and_step(scene, ())
        ahead = [(asset.data, asset.data.launches_ahead()) for asset in assets if isinstance(asset.data, Fresh)]
        self._write_and_step(scene, tuple(launch for _, found in ahead for launch in found.values()))
        scene.update(self.dt * count)
        for data, found in ahead:
            data.computed(found)

    def _assets_of(self, scene) -> list | None:
        """The assets of a scene whose launches threads of the solver can take over. None: code of the user may come between commands, step
        and data; a graph is captured; or the solver takes over nothing."""
        if self.model.world_count < WORTHWHILE:
            return None
        if self.graph is not None or not isinstance(self.solver, SolverFeatherstone) or is_captured(self.device):
            return None
        if not (is_own(scene, "write_data_to_sim", "update") and is_own(self, "step")):
            return None
        assets = scene._members()
        controllers = [controller for each in assets if (controller := getattr(each, "controller", None)) is not None]
        own = all(is_own(each, "write_data_to_sim", "update") for each in assets) and all(map(is_own, controllers))
        return assets if own else None

    def _write_and_step(self, scene, after: tuple) -> None:
        """Takes a physics step with the commands of a scene, whose launches go with that of the solver."""
        self._gathered = []
        try:
            scene.write_data_to_sim()
            before = tuple(self._gathered)
        finally:
            self._gathered = None
        self._step(before, after)

    def gather(self, launch: Repeated) -> bool:
        """Takes over a launch that writes the control of the next step; returns whether the step launches it."""
        if self._gathered is None:
            return False
        self._gathered.append(launch)
        return True

    def launch_gathered(self) -> None:
        """Launches what :meth:`gather` has taken over, before code reads what it writes."""
        for launch in self._gathered or ():
            launch.launch()
        if self._gathered:
            self._gathered.clear()

    def __repr__(self) -> str:
        return (
            f"SimulationContext({self.model.world_count} worlds on {self.device}, dt {self.dt:g} s, decimation {self.decimation},"
            f" time {self.time:g} s)"
        )

    def touch(self) -> None:
        """Tells assets that arrays of the state were written by other code."""
        self.stamp += 1

    def joints_written(self, rows: wp.array, count: int, world_of: wp.array) -> None:
        """Tells that joint coordinates or velocities of some worlds were written: their bodies move before they are read.

        Args:
            rows: chosen instances; without entries: all.
            count: number of chosen instances.
            world_of: world of each instance.
        """
        if count:
            kernel = scatter_kernels(self.model.dtype).mark
            wp.launch(kernel, dim=count, inputs=[rows, world_of], outputs=[self._moved], device=self.device)
            self._some_moved = True
        self.stamp += 1

    def forward(self) -> None:
        """Moves the bodies of worlds whose joint coordinates or velocities were written by assets."""
        if not self._some_moved:
            return
        # what a graph of other code records has not moved them yet
        self._some_moved = self.graph is None and is_captured(self.device)
        self._move_written()

    def _move_written(self) -> None:
        wp.launch(
            scatter_kernels(self.model.dtype).spread,
            dim=self.model.articulation_count,
            inputs=[self._moved, self.model.articulation_world],
            outputs=[self._chosen],
            device=self.device,
        )
        move_bodies(self.model, self._joints, self._chosen)
        self._moved.zero_()

    @contextmanager
    def capture(self) -> Iterator[StepGraph]:
        """Captures physics steps, commands of assets and data that are read into a graph, instead of running them::

            with sim.capture() as graph:
                sim.advance(robot)
                velocity = robot.data.root_lin_vel_b
            graph.launch()  # as often as wanted; velocity is that of now

        Targets, wrenches, states and parameters that are written before a launch count. Python code does not run again. On a GPU, take a
        step and read the data once before the capture.

        Raises:
            RuntimeError: within the capture: numbers, masks or indices from the host, resets, networks, incoming joint wrenches, and steps
                of a solver that cannot be captured.
        """
        self.forward()
        _ = self.solver
        graph, time, steps = StepGraph(self), self.time, self.steps
        self.touch()
        self.graph = graph
        try:
            with wp.ScopedCapture(self.device) as captured:
                self._move_written()
                yield graph
            graph.finish(captured.graph, self.steps - steps, self._some_moved)
            self._graphs.add(graph)
        finally:
            self.graph = None
            self.time, self.steps = time, steps
            self._some_moved = True
            self.touch()

    def replayed(self, graph: StepGraph) -> None:
        """Counts the steps of a graph that was launched."""
        self.time += graph.steps * graph.dt
        self.steps += graph.steps
        self._some_moved |= graph.moves
        self.touch()

    def link_accelerations(self) -> wp.array:
        """Accelerations of the centres of mass of all links in the last step, ``[articulation_count, max_links, 6]``: linear [m/s^2],
        angular [rad/s^2], world axes. Computed once for all assets."""
        if self._accelerated != self.stamp:
            self._accelerations = self._accelerations_of(self.state.joint_qdd, self._accelerations)
            self._accelerated = self.stamp
        return self._accelerations

    def link_accelerations_of_substep(self) -> wp.array | None:
        """The same in the last substep; None: steps have no substeps."""
        if self._last_substep is None:
            return None
        self._last_accelerations = self._accelerations_of(self._last_substep, self._last_accelerations)
        return self._last_accelerations

    def _accelerations_of(self, joint_qdd: wp.array, out: wp.array | None) -> wp.array:
        return accelerations_after(self.model, self.state.joint_q, self.state.joint_qd, joint_qdd, out)

    def calm(self, dofs: np.ndarray) -> None:
        """Clears accelerations of the last substep."""
        if self._last_substep is not None:
            numbers = self._last_substep.numpy()
            numbers[dofs] = 0.0
            if not self.device.is_cpu:
                self._last_substep.assign(numbers)

    def contacts(self):
        """The contacts of the last step with their forces, found once for all assets.

        Raises:
            ValueError: the last step did not keep its contacts: call ``model.request_contact_attributes("force")`` before it; there was no
                room for all of them.
        """
        if FORCE not in self.model.contact_attributes:
            raise ValueError("call model.request_contact_attributes('force') before the step, for wrenches of contacts")
        if self._contacts is None:
            self._contacts = self.model.contacts()
        if self._touched != self.stamp:
            self.solver.update_contacts(self._contacts, self.state)
            self._touched = self.stamp
        if self._contacts.dropped:
            raise ValueError(f"{self._contacts.dropped_message()}; set model.rigid_contact_max to a larger number")
        return self._contacts

    def notify(self, flags: ModelFlags, chosen: Chosen | None, worlds: np.ndarray) -> None:
        """Tells the solver of edited arrays of the model.

        Args:
            flags: groups of arrays.
            chosen: instances whose arrays were edited; None: all.
            worlds: world of each instance.
        """
        mask = None
        if chosen is not None and not chosen.everything:
            mask = np.zeros(self.model.world_count, dtype=bool)
            mask[np.maximum(worlds[chosen.indices], 0)] = True
        target = self.model.notify_changed if self._solver is None else self._solver.notify_model_changed
        target(flags, mask)
        self.stamp += 1

    def forget(self, worlds: np.ndarray | None) -> None:
        """Clears the contact forces that the solver remembers of some worlds.

        Args:
            worlds: indices; None: all.
        """
        if self._solver is not None and (worlds is None or len(worlds)):
            self._solver.forget(worlds)
