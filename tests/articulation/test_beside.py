"""``SimulationContext.advance``, in which threads of the solver launch actuators and data: the bits of the loop that is written out."""

import numpy as np
import pytest

from newton_like.articulation import (
    Articulation,
    IdealPDActuatorCfg,
    InteractiveScene,
    NetworkActuatorCfg,
    RigidObjectCollection,
    SimulationContext,
    simulation,
)
from newton_like.articulation.data.fields import Part
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.base import SolverBase
from newton_like.types import ModelFlags
from tests.articulation.robots import add_robot, scene, shake
from tests.articulation.test_graphs import ACTUATORS, GAINS

WORLDS = 130
"""Two threads share blocks of so many worlds such that each share begins at a block of 16 worlds; the last block is not full."""

COMPUTED = ("root", "bodies")
"""Groups of data that a step computes ahead if they were read after the last one."""


@pytest.fixture(autouse=True)
def share_few_worlds(monkeypatch):
    """Launches are shared for few worlds, too."""
    monkeypatch.setattr(simulation, "WORTHWHILE", 1)


def fields(data) -> list[str]:
    """Data that are computed in groups, and efforts."""
    found = [name for name in dir(type(data)) if isinstance(getattr(type(data), name), Part)]
    return [*found, "computed_torque", "applied_torque", "joint_pos", "joint_vel", "joint_acc"]


def group_of(data, name: str) -> str:
    """The group that a property of data belongs to; "": none."""
    return getattr(getattr(type(data), name, None), "group", "")


def pair(rng, actuators, worlds: int = WORLDS, **options) -> list[Articulation]:
    """The same robot in the same random states twice."""
    seed = int(rng.integers(1 << 31))
    found = []
    for _ in range(2):
        own = np.random.default_rng(seed)
        sim = SimulationContext(scene(own, worlds), dt=1 / 240, evaluator="general", **options)
        found.append(Articulation(sim, "walker", actuators=actuators))
        shake(found[-1], own)
    return found


def written_out(robot: Articulation) -> None:
    """What advance() does, without sharing."""
    sim = robot.sim
    for _ in range(sim.decimation):
        robot.write_data_to_sim()
        sim.step()
    robot.update(sim.step_dt)


def assert_same(one: Articulation, other: Articulation, names) -> None:
    for name in names:
        a, b = (getattr(each.data, name).numpy() for each in (one, other))
        assert np.isfinite(a).all() and np.array_equal(a, b), f"{name} differs by {abs(a - b).max()}"


def around(robot: Articulation) -> list:
    """What the last recorded step launched with its shares; None: a set of launches could not be shared out."""
    return list(robot.sim.solver._recent[0]._around.values())


@pytest.mark.parametrize("decimation", (1, 3))
@pytest.mark.parametrize("kind", ACTUATORS)
def test_advance_gives_the_bits_of_the_loop(rng, kind, decimation):
    ours, plain = pair(rng, {"all": ACTUATORS[kind]}, threads=2, decimation=decimation)
    names = fields(ours.data)
    for step in range(5):
        target = rng.uniform(-1.0, 1.0, (WORLDS, 4))
        for each in (ours, plain):
            each.set_joint_position_target(target)
        ours.sim.advance(ours)
        written_out(plain)
        # what was read is computed ahead, or not: the groups take turns
        assert_same(ours, plain, [name for name in names if group_of(ours.data, name) != COMPUTED[step % 2]])
        if step == 2:
            for each in (ours, plain):
                each.reset_to([3, 77])
            assert_same(ours, plain, names)
    assert len(around(ours)) > 1 and all(around(ours)), "nothing was shared out"


@pytest.mark.parametrize(("worlds", "options"), [(37, dict(threads=2)), (5, {}), (WORLDS, dict(threads=2, substeps=2))])
def test_other_batches_and_substeps_give_the_same_bits(rng, worlds, options):
    ours, plain = pair(rng, {"all": ACTUATORS["delayed"]}, worlds, **options)
    for _ in range(4):
        ours.sim.advance(ours)
        written_out(plain)
        assert_same(ours, plain, fields(ours.data))


def test_the_loop_and_advance_take_turns(rng):
    ours, plain = pair(rng, {"all": ACTUATORS["delayed"]}, threads=2)
    for step in range(6):
        (written_out if step % 3 == 0 else ours.sim.advance)(ours)
        written_out(plain)
        assert_same(ours, plain, fields(ours.data))
    # centres of mass that move after a step
    ours.sim.advance(ours)
    written_out(plain)
    for each in (ours, plain):
        each.model.body_com.numpy()[:] += np.float32(0.01)
        each.sim.solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
        each.sim.touch()
    assert_same(ours, plain, fields(ours.data))


class Halves(SolverFeatherstone):
    """A solver of the user: a step is two steps."""

    def step(self, state_in, state_out, control=None, contacts=None, dt: float = 1.0 / 240.0) -> None:
        for _ in range(2):
            super().step(state_in, state_out, control, contacts, dt / 2)


class Another(SolverBase):
    """A solver that takes over no launches."""

    def __init__(self, model):
        super().__init__(model)
        self._inner = SolverFeatherstone(model, evaluator="general")

    def step(self, state_in, state_out, control=None, contacts=None, dt: float = 1.0 / 240.0) -> None:
        self._inner.step(state_in, state_out, control, contacts, dt)


@pytest.mark.parametrize(
    "make", (lambda model: Halves(model, evaluator="general"), Another), ids=("subclass", "another")
)
def test_other_solvers(rng, make):
    seed, found = int(rng.integers(1 << 31)), []
    for _ in range(2):
        own = np.random.default_rng(seed)
        sim = SimulationContext(scene(own), dt=1 / 240, solver=make)
        found.append(Articulation(sim, "walker", actuators={"all": ACTUATORS["delayed"]}))
        shake(found[-1], own)
    ours, plain = found
    for _ in range(5):
        ours.sim.advance(ours)
        written_out(plain)
        assert_same(ours, plain, ("root_state_w", "heading_w", "applied_torque", "joint_pos"))


def test_edits_of_the_model_count_at_the_first_reading(rng):
    ours, plain = pair(rng, {"all": ACTUATORS["ideal"]}, threads=2)
    for down in (-9.81, 3.0):
        ours.sim.advance(ours)
        written_out(plain)
        for each in (ours, plain):
            each.model.set_gravity((0.0, down, 0.0))
        assert_same(ours, plain, ("projected_gravity_b", "root_state_w"))


def test_subclasses_of_collections_see_the_control(rng):
    seen = []

    class Objects(RigidObjectCollection):
        def write_data_to_sim(self) -> None:
            super().write_data_to_sim()
            seen.append(abs(self.sim.control.joint_act.numpy()).max())

    def box(one) -> None:
        body = one.add_body(label="box")
        one.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)

    sim = SimulationContext(scene(rng, 3, beside=box), dt=1 / 240, evaluator="general", unsupported_contacts="ignore")
    robot = Articulation(sim, "walker", actuators={"all": IdealPDActuatorCfg(".*", **GAINS)})
    shake(robot, rng)
    whole = InteractiveScene(sim, {"robot": robot, "boxes": Objects(sim, ["box*"])})
    sim.advance(whole)
    assert seen[0] == abs(robot.data.applied_torque.numpy()).max() > 0.0


def test_code_of_the_user_sees_the_control(rng):
    """A class that changes efforts after the actuators; a network that reads the efforts of another robot."""
    seen = []

    class Weak(Articulation):
        def write_data_to_sim(self) -> None:
            super().write_data_to_sim()
            self.sim.control.joint_act.numpy()[:] *= 0.5
            seen.append(abs(self.sim.control.joint_act.numpy()).max())

    sim = SimulationContext(scene(rng, 3), dt=1 / 240, evaluator="general")
    robot = Weak(sim, "walker", actuators={"all": IdealPDActuatorCfg(".*", **GAINS)})
    shake(robot, rng)
    sim.advance(robot)
    assert seen[0] == 0.5 * abs(robot.data.applied_torque.numpy()).max() > 0.0

    model = scene(rng, 3, beside=lambda one: add_robot(one, rng, label="other"))
    sim = SimulationContext(model, dt=1 / 240, evaluator="general")
    first = Articulation(sim, "walker", actuators={"all": IdealPDActuatorCfg(".*", **GAINS)})
    read = []

    def network(numbers):
        read.append(first.data.applied_torque.numpy().copy())
        return 0.0 * numbers[:, 0]

    cfg = NetworkActuatorCfg(
        ".*", network=network, input_idx=(0,), effort_limit=1.0, velocity_limit=10.0, saturation_effort=1.0
    )
    second = Articulation(sim, "other", actuators={"all": cfg})
    both = InteractiveScene(sim, {"first": first, "second": second})
    for _ in range(3):
        first.set_joint_position_target(rng.uniform(-1.0, 1.0, (3, 4)))
        sim.advance(both)
        assert np.array_equal(read[-1], first.data.applied_torque.numpy()) and abs(read[-1]).max() > 0.0
