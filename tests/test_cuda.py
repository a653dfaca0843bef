"""Results on a GPU agree with those on a CPU, do not depend on a world's index (same bits), and launches can be captured in a graph.

Without a CUDA device these tests are skipped. With ``NEWTON_LIKE_GPU=cpu`` they run on a CPU with one world a thread and the memory layout
of a GPU, which tests all code except the device, and
except the blocks of threads that share a chunk in `SolverXPBD`.
"""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

import newton_like
from newton_like import dynamics, eval_fk, eval_ik, eval_jacobian, eval_mass_matrix
from newton_like.articulation import SimulationContext
from newton_like.articulation.multirotor import (
    BodyDrag,
    GroundEffect,
    LeePositionController,
    Multirotor,
    add_vehicle,
)
from newton_like.solvers import SolverFeatherstone, SolverXPBD
from newton_like.solvers.xpbd.solver import GPU_CHUNKS
from tests.benchmarks.cases import CASES
from tests.benchmarks.contact_scenes import heap
from tests.support.kinematic_cases import forest, real_array
from tests.support.paths import ROOT
from tests.support.random_trees import random_state

pytestmark = pytest.mark.gpu
GPU = os.environ.get("NEWTON_LIKE_GPU", "cuda:0")
STAND = CASES[0]
WORLDS = 33
"""One more than a warp has threads."""

DOUBLE = 1.0e-9
"""The scalar libraries and the fused products of the two devices differ in the last place, and contacts within ten steps by a
thousand times as much."""

SINGLE = 1.0e-3
"""The same in single precision."""


class Gpu:
    """A GPU, or its substitute by a CPU within `with gpu:`."""

    def __init__(self, monkeypatch):
        self.device, self.real, self._patch = wp.get_device(GPU), wp.get_device(GPU).is_cuda, monkeypatch

    def __enter__(self):
        if not self.real:
            self._patch.setenv("NEWTON_LIKE_WIDTH", "1")
            self._patch.setattr("newton_like.programs.device.STAND_IN", True)
        return self

    def __exit__(self, *_):
        self._patch.undo()

    def agrees(self, work, tolerance: float) -> None:
        """Runs ``work(device)`` on a CPU and here; it gives arrays of numbers."""
        expected = work("cpu")
        with self:
            found = work(self.device)
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            a, b = (x.numpy() if isinstance(x, wp.array) else x for x in (a, b))
            assert np.isfinite(b).all()
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, np.abs(b).max()), err_msg=str(i))


@pytest.fixture
def gpu():
    if GPU != "cpu" and not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    with pytest.MonkeyPatch.context() as patch:
        yield Gpu(patch)


def walkers(worlds: int = WORLDS):
    """Quadrupeds with limits, dry friction and drives, about to touch the ground with their feet."""
    return STAND.scene(newton_like, worlds)


def started(model, worlds: int = WORLDS, first: int = 0):
    """A state in which the state of world i does not depend on the number of worlds."""
    state = model.state()
    q, qd = (x.numpy().reshape(worlds, -1).copy() for x in (state.joint_q, state.joint_qd))
    for i in range(worlds):
        rng = np.random.default_rng(first + i)
        q[i, 2] += rng.uniform(0.0, 0.005)
        q[i, 7:] += rng.normal(0.0, 0.02, q.shape[1] - 7)
        qd[i] += rng.normal(0.0, 0.1, qd.shape[1])
    state.joint_q.assign(q.ravel())
    state.joint_qd.assign(qd.ravel())
    eval_fk(model, state.joint_q, state.joint_qd, state)
    return state


def results(state) -> list[np.ndarray]:
    return [getattr(state, x).numpy() for x in ("joint_q", "joint_qd", "body_q", "body_qd")]


@pytest.mark.parametrize("evaluator", ["general", "specialised"])
@pytest.mark.parametrize("dtype", [wp.float32, wp.float64], ids=["single", "double"])
def test_steps(gpu, evaluator, dtype):
    """Falling, landing and standing up, pushed from outside."""

    def work(device):
        model = walkers().finalize(device, dtype=dtype)
        solver, state = SolverFeatherstone(model, evaluator=evaluator, unsupported_contacts="ignore"), started(model)
        forces = np.zeros((model.body_count, 6))
        forces[:: model.body_count // WORLDS, 0] = 5.0
        state.body_f.assign(forces)
        for _ in range(10):
            solver.step(state, state, dt=1.0 / 240.0)
        assert solver.check(state).all()
        return [*results(state), solver.contact_forces()]

    gpu.agrees(work, DOUBLE if dtype is wp.float64 else SINGLE)


def test_contacts_that_are_handed_over(gpu):
    """Found by the collision pipeline, in the same order, and used by the solver."""

    def work(device):
        model = walkers().finalize(device, dtype=wp.float64)
        solver, state, contacts = (
            SolverFeatherstone(model, unsupported_contacts="ignore"),
            started(model),
            model.contacts(),
        )
        q = state.joint_q.numpy().reshape(WORLDS, -1)
        q[:, 2] -= 0.01
        state.joint_q.assign(q.ravel())
        eval_fk(model, state.joint_q, state.joint_qd, state)
        for _ in range(3):
            model.collide(state, contacts)
            solver.step(state, state, contacts=contacts, dt=1.0 / 240.0)
        count = int(contacts.rigid_contact_count.numpy()[0])
        assert count >= WORLDS and solver.unused_contacts() == 0
        shapes = [getattr(contacts, f"rigid_contact_shape{i}").numpy()[:count] for i in (0, 1)]
        return [*results(state), *shapes, contacts.rigid_contact_point0.numpy()[:count]]

    gpu.agrees(work, DOUBLE)


@pytest.mark.parametrize("kind", [SolverFeatherstone, SolverXPBD])
def test_bits_depend_on_the_world_alone(gpu, kind):
    """The same bits in every run, for any number of worlds and at any place among them."""
    with gpu:

        def run(worlds, first):
            model = walkers(worlds).finalize(gpu.device)
            solver, state = kind(model, unsupported_contacts="ignore"), started(model, worlds, first)
            for _ in range(20):
                solver.step(state, state, dt=1.0 / 240.0)
            return state.joint_q.numpy().reshape(worlds, -1)

        whole = run(100, 0)
        np.testing.assert_array_equal(run(100, 0), whole)
        np.testing.assert_array_equal(run(WORLDS, 10), whole[10 : 10 + WORLDS])
        np.testing.assert_array_equal(run(1, 99), whole[99:])


def test_a_world_that_breaks_is_found_and_reset_alone(gpu):
    with gpu:
        model = walkers().finalize(gpu.device)
        solver, state, other = SolverFeatherstone(model, unsupported_contacts="ignore"), started(model), started(model)
        q = state.joint_q.numpy().reshape(WORLDS, -1)
        q[7] = np.nan
        state.joint_q.assign(q.ravel())
        fresh = SolverFeatherstone(model, unsupported_contacts="ignore")
        for _ in range(5):
            solver.step(state, state, dt=1.0 / 240.0)
            fresh.step(other, other, dt=1.0 / 240.0)
        healthy = solver.check(state)
        np.testing.assert_array_equal(np.flatnonzero(~healthy), [7])
        solver.reset(state, wp.array(~healthy, dtype=wp.bool, device=gpu.device))
        assert solver.check(state).all()
        found, expected = (x.joint_q.numpy().reshape(WORLDS, -1) for x in (state, other))
        np.testing.assert_array_equal(np.delete(found, 7, axis=0), np.delete(expected, 7, axis=0))
        np.testing.assert_array_equal(found[7], model.joint_q.numpy().reshape(WORLDS, -1)[7])


def test_steps_and_resets_are_captured(gpu):
    """A graph of two steps and a reset by mask agrees with the calls; capturing calls without an earlier call raises an error."""
    with gpu:
        model = walkers().finalize(gpu.device)
        solver, state, other = SolverFeatherstone(model, unsupported_contacts="ignore"), started(model), started(model)
        mask = wp.zeros(WORLDS, dtype=wp.bool, device=gpu.device)

        def frame(state):
            solver.step(state, state, dt=1.0 / 240.0)
            solver.step(state, state, dt=1.0 / 240.0)
            solver.reset(state, mask)

        def replayed(state):
            if not gpu.real:
                return lambda: frame(state)
            with wp.ScopedCapture(gpu.device) as capture:
                frame(state)
            return lambda: wp.capture_launch(capture.graph)

        for _ in range(2):
            frame(other)
        mask.assign(np.arange(WORLDS) == 3)
        frame(other)
        expected = results(other)
        mask.zero_()
        if gpu.real:
            with pytest.raises(RuntimeError, match=r"before.*captured"), wp.ScopedCapture(gpu.device):
                solver.step(state, state, dt=1.0 / 240.0)
        # contact forces of the other run are forgotten, the arrays become known
        solver.reset(state)
        frame(state)
        solver.reset(state)
        again = started(model)
        for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
            getattr(state, name).assign(getattr(again, name))
        play = replayed(state)
        play()
        play()
        mask.assign(np.arange(WORLDS) == 3)
        play()
        for a, b in zip(results(state), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_forces_of_couplings(gpu):
    """Of a mimic joint and a rope, after steps and, on a GPU, launches of a graph."""

    def work(device):
        world = newton_like.ModelBuilder()
        links = [world.add_link(mass=mass, inertia=0.01 * np.eye(3)) for mass in (2.0, 1.0, 0.5)]
        rails = [world.add_joint_prismatic(-1, link, axis=(0, 0, 1)) for link in links[:2]]
        world.add_articulation(rails)
        world.set_joint_mimic(rails[1], rails[0], coeffs=(0.0, -0.7))
        world.add_articulation([world.add_joint_distance(-1, links[2], max_distance=1.0)])
        world.joint_q[4] = -1.0
        scene = newton_like.ModelBuilder()
        scene.replicate(world, 3)
        model = scene.finalize(device, dtype=wp.float64)
        solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
        for _ in range(3):
            solver.step(state, state)
        if device == "cpu" or not gpu.real:
            for _ in range(2):
                solver.step(state, state)
        else:
            with wp.ScopedCapture(device) as capture:
                solver.step(state, state)
            for _ in range(2):
                wp.capture_launch(capture.graph)
        forces = solver.coupling_forces()
        assert np.abs(forces.numpy()).min() > 1.0
        return [forces]

    gpu.agrees(work, DOUBLE)


def test_kinematics(gpu, rng):
    """All joint types, some of the articulations."""
    scene, numbers = forest(rng, worlds=WORLDS), int(rng.integers(2**31))

    def work(device):
        model, draw = scene.finalize(device, dtype=wp.float64), np.random.default_rng(numbers)
        q, qd = random_state(model, draw)
        state, again = model.state(), model.state()
        eval_fk(model, real_array(model, q), real_array(model, qd), state)
        eval_ik(model, state, again.joint_q, again.joint_qd, mask=draw.random(model.articulation_count) < 0.5)
        eval_fk(model, again.joint_q, again.joint_qd, again, indices=[0, 3])
        return [*results(state)[2:], *results(again), eval_jacobian(model, again), eval_mass_matrix(model, again)]

    gpu.agrees(work, 1.0e-11)


@pytest.mark.parametrize("evaluator", ["general", "specialised"])
def test_dynamics(gpu, rng, evaluator):
    """Functions of the dynamics library over two kinds of robots, forward and on the tape."""
    scene, numbers = forest(rng, worlds=5, robots=1, joints=5), int(rng.integers(2**31))

    def work(device):
        model, draw = scene.finalize(device, dtype=wp.float64, requires_grad=True), np.random.default_rng(numbers)
        model.evaluator = evaluator
        q, qd = random_state(model, draw)
        tau = real_array(model, draw.normal(size=model.joint_dof_count))
        state = SimpleNamespace(joint_q=real_array(model, q, True), joint_qd=real_array(model, qd, True))
        found = [
            dynamics.inverse_dynamics(model, state, tau),
            dynamics.forward_dynamics(model, state, tau),
            dynamics.forward_dynamics(model, state, tau, method="crb"),
            dynamics.mass_matrix(model, state),
            dynamics.mass_matrix_inverse(model, state),
            dynamics.coriolis_matrix(model, state),
            dynamics.bias_forces(model, state),
            dynamics.kinetic_energy(model, state),
            dynamics.total_momentum(model, state),
        ]
        with wp.Tape() as tape:
            acceleration = dynamics.forward_dynamics(model, state, tau)
        seed = draw.normal(size=acceleration.shape)
        tape.backward(grads={acceleration: wp.array(seed, dtype=wp.float64, device=device)})
        return [*found, state.joint_q.grad, state.joint_qd.grad, model.body_mass.grad, model.body_inertia.grad.numpy()]

    gpu.agrees(work, 1.0e-8)


def test_a_heap_in_maximal_coordinates(gpu):
    """A heap of 300 bodies that lies, in one world: on a GPU the threads of a block share it."""
    scene = newton_like.ModelBuilder()
    scene.add_ground_plane()
    scene.add_builder(heap(300))
    model = scene.finalize("cpu", dtype=wp.float64)
    fallen, solver = model.state(), SolverXPBD(model)
    eval_fk(model, fallen.joint_q, fallen.joint_qd, fallen)
    for _ in range(150):
        solver.step(fallen, fallen, dt=1.0 / 240.0)

    def work(device):
        model = scene.finalize(device, dtype=wp.float64)
        state, contacts = model.state(), model.contacts()
        for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
            getattr(state, name).assign(getattr(fallen, name).numpy())
        model.collide(state, contacts)
        assert contacts.rigid_contact_count.numpy()[0] > 500
        solver = SolverXPBD(model)
        for _ in range(3):
            solver.step(state, state, dt=1.0 / 240.0)
        # velocities as the motion of a step
        q, qd, body_q, body_qd = results(state)
        return q, qd / 240.0, body_q, body_qd / 240.0

    # where rounding decides about a point of a contact, bodies move otherwise: 3e-7 m or rad in a step on an H100
    gpu.agrees(work, 1.0e-6)


def test_small_worlds_in_maximal_coordinates(gpu):
    """Quadrupeds that stand, more than one in a chunk."""
    worlds = 2 * GPU_CHUNKS + 1

    def work(device):
        model = walkers(worlds).finalize(device, dtype=wp.float64)
        solver, state = SolverXPBD(model, unsupported_contacts="ignore"), started(model, worlds)
        assert len(solver._slots.chunks) < worlds
        for _ in range(10):
            solver.step(state, state, dt=1.0 / 240.0)
        return results(state)

    gpu.agrees(work, DOUBLE)


@pytest.mark.parametrize("allocation", ["pseudo_inverse", "bounded"])
def test_multirotors(gpu, rng, allocation):
    """Control, allocation, motors, forces of the air and resets of some worlds, whose parameters differ."""
    seed = int(rng.integers(2**31))

    def work(device):
        own = np.random.default_rng(seed)
        one = newton_like.ModelBuilder()
        settings = add_vehicle(one, "iris")
        settings.drag, settings.ground_effect = BodyDrag(0.1, 0.05), GroundEffect(-1.0)
        scene = newton_like.ModelBuilder()
        scene.replicate(one, WORLDS)
        sim = SimulationContext(scene.finalize(device, dtype=wp.float64), dt=0.004, evaluator="general")
        drone = Multirotor(sim, "*", settings)
        drone.set_wind(own.normal(size=(WORLDS, 3)))
        drone.set_thruster_parameter("thrust_constant", own.uniform(3e-4, 4e-4, (WORLDS, 4)))
        drone.controller = LeePositionController(drone, allocation=allocation, max_tilt=0.7)
        drone.controller.set_command(own.normal(size=(WORLDS, 4)))
        for i in range(20):
            drone.write_data_to_sim()
            sim.step()
            if i == 10:
                drone.reset([3, WORLDS - 1])
        return drone.data.applied_thrust.numpy().copy(), sim.state.body_q.numpy().copy()

    gpu.agrees(work, 1.0e-8)


def test_recordings(gpu, tmp_path):
    """Recordings of a model on a GPU are read back as those on a CPU."""
    pytest.importorskip("pxr")
    from pxr import Usd, UsdGeom

    from newton_like.usd import Recorder

    def work(device):
        model = walkers(2).finalize(device, dtype=wp.float64)
        state, path = started(model, 2), tmp_path / "recording.usda"
        with Recorder(model, path) as recorder:
            recorder.record(state, 0.0)
            paths = recorder.body_paths
        cache = UsdGeom.XformCache(Usd.TimeCode(0.0))
        stage = Usd.Stage.Open(str(path))
        return [np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(p))) for p in paths]

    gpu.agrees(work, DOUBLE)


def test_tensors_of_pytorch(gpu):
    torch = pytest.importorskip("torch")
    from newton_like.interop import torch_function

    def work(device):
        model = walkers(2).finalize(device, dtype=wp.float64)
        state = started(model, 2)
        where = wp.device_to_torch(model.device)
        q, qd = (torch.tensor(x.numpy(), device=where, requires_grad=True) for x in (state.joint_q, state.joint_qd))
        forces = torch_function(model, dynamics.bias_forces)(q, qd)
        forces.square().sum().backward()
        return [x.detach().cpu().numpy() for x in (forces, q.grad, qd.grad)]

    gpu.agrees(work, DOUBLE)


@pytest.mark.parametrize("example", ["pendulum", "quadruped", "usd_pipeline"])
def test_examples(gpu, example, tmp_path):
    command = [sys.executable, "-m", f"examples.{example}", "--device", GPU, "--num-frames", "20", "--quiet"]
    command += ["--output-path", str(tmp_path)] + (["--world-count", "64"] if example != "usd_pipeline" else [])
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    assert GPU in run.stdout


def test_memory(gpu):
    """The memory is below the required 40 kB a world."""
    from tests.benchmarks.first_step import array_bytes

    with gpu:
        worlds = 1024
        model = walkers(worlds).finalize(gpu.device)
        solver, state = SolverFeatherstone(model, evaluator="general", unsupported_contacts="ignore"), model.state()
        solver.step(state, state, dt=1.0 / 240.0)
        assert array_bytes(model, solver, state) < 40_000 * worlds
