"""Bridges to PyTorch and JAX: the same numbers and the same memory as Warp's, and gradients against central differences."""

import sys

import numpy as np
import pytest
import warp as wp

import newton_like.dynamics as dynamics
from newton_like.interop import jax_function, torch_bridge, torch_function
from tests.support.dynamics_cases import known_robots
from tests.support.random_trees import random_state

INPUTS = ("joint_q", "joint_qd", "joint_forces", "inertial_parameters")
BRIDGES = (torch_function, jax_function)


@pytest.fixture(scope="module")
def model():
    return known_robots()


@pytest.fixture
def numbers(model, rng):
    """For every one of INPUTS; coordinates by world."""
    q, qd = random_state(model, rng)
    parameters = dynamics.inertial_parameters(model).numpy()
    yield [q.reshape(2, -1), qd.reshape(2, -1), rng.normal(size=model.joint_dof_count), parameters]
    dynamics.set_inertial_parameters(model, parameters)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def jax():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


def accelerations(model, numbers) -> np.ndarray:
    q, qd, forces, _ = (wp.array(x.ravel(), dtype=wp.float64) for x in numbers)
    state = model.state()
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    return dynamics.forward_dynamics(model, state, forces).numpy()


def two_steps(model, state, joint_forces, dt):
    """A function of a user's own, with two results."""
    for _ in range(2):
        after = model.state(requires_grad=True)
        dynamics.integrate(model, state, after, dt, joint_forces=joint_forces)
        state = after
    return state.joint_q, state.joint_qd


def test_torch_differentiates_forward_dynamics(model, numbers, torch):
    function = torch_function(model, dynamics.forward_dynamics, INPUTS)
    tensors = [torch.tensor(x, requires_grad=True) for x in numbers]
    np.testing.assert_array_equal(function(*tensors).detach().numpy(), accelerations(model, numbers))
    # central differences along random directions: truncation and cancellation of steps of 1e-6
    assert torch.autograd.gradcheck(function, tensors, eps=1e-6, atol=1e-5, rtol=1e-5, fast_mode=True)


def test_torch_and_warp_share_memory(model, numbers, torch):
    seen = {}

    def function(model, state, joint_forces):
        seen["in"], seen["out"] = joint_forces, dynamics.forward_dynamics(model, state, joint_forces)
        return seen["out"]

    forces = torch.tensor(numbers[2])
    result = torch_function(model, function, ("joint_forces",))(forces)
    assert seen["in"].ptr == forces.data_ptr() and seen["out"].ptr == result.data_ptr()


@pytest.mark.parametrize("count", [3, 4])
def test_torch_goes_back_in_any_order_and_again(model, numbers, torch, rng, count):
    """Every call keeps a tape of its own, and inertial parameters (the fourth input) of its own."""
    numbers = numbers[:count]
    function = torch_function(model, dynamics.forward_dynamics, INPUTS[:count])
    second = [x + 0.05 * rng.normal(size=x.shape) if i < 3 else 1.1 * x for i, x in enumerate(numbers)]
    calls = [[torch.tensor(x, requires_grad=True) for x in numbers] for numbers in (numbers, second)]
    alone = [torch.autograd.grad(function(*tensors).sum(), tensors) for tensors in calls]
    results = [function(*tensors).sum() for tensors in calls]
    for i in (1, 0, 1):
        again = torch.autograd.grad(results[i], calls[i], retain_graph=True)
        for a, b in zip(again, alone[i], strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_torch_goes_through_several_results(model, numbers, torch):
    """One of them unused; an input whose gradient is not wanted; a loss that is differentiated by torch itself."""
    function = torch_function(model, two_steps, INPUTS[:3], dt=0.01)
    q, qd, forces = (torch.tensor(x) for x in numbers[:3])
    forces.requires_grad = True

    def loss(forces):
        return (function(q, qd, forces)[1] ** 2).sum()

    assert torch.autograd.gradcheck(loss, [forces], eps=1e-6, atol=1e-5, rtol=1e-5, fast_mode=True)
    assert q.grad is None
    with torch.no_grad():
        assert not function(q, qd, forces)[0].requires_grad


def test_jax_differentiates_forward_dynamics(model, numbers, jax):
    from jax.test_util import check_grads

    function = jax_function(model, dynamics.forward_dynamics, INPUTS)
    arrays = [jax.numpy.asarray(x) for x in numbers]
    for call in (function, jax.jit(function)):
        np.testing.assert_array_equal(np.asarray(call(*arrays)), accelerations(model, numbers))
    # central differences along a random direction: truncation and cancellation
    check_grads(jax.jit(function), arrays, order=1, modes=["rev"], eps=1e-6, atol=1e-5, rtol=1e-5)


def test_jax_goes_through_several_results(model, numbers, jax):
    from jax.test_util import check_grads

    function = jax_function(model, two_steps, INPUTS[:3], dt=0.01)
    q, qd, forces = (jax.numpy.asarray(x) for x in numbers[:3])
    loss = jax.jit(lambda forces: (function(q, qd, forces)[1] ** 2).sum())
    check_grads(loss, [forces], order=1, modes=["rev"], eps=1e-6, atol=1e-5, rtol=1e-5)


def test_jax_goes_forward(model, numbers, jax):
    """Directional derivatives and Jacobians agree with differences and with reverse mode."""
    from jax.test_util import check_grads

    function = jax_function(model, dynamics.forward_dynamics, INPUTS, mode="forward")
    arrays = [jax.numpy.asarray(x) for x in numbers]
    np.testing.assert_array_equal(np.asarray(function(*arrays)), accelerations(model, numbers))
    check_grads(jax.jit(function), arrays, order=1, modes=["fwd"], eps=1e-6, atol=1e-5, rtol=1e-5)
    energy, back = (jax_function(model, dynamics.kinetic_energy, INPUTS[:2], mode=m) for m in ("forward", "reverse"))
    expected = jax.jacrev(back)(*arrays[:2])
    np.testing.assert_allclose(jax.jacfwd(energy)(*arrays[:2]), expected, rtol=1e-10, atol=1e-10)


def test_jax_goes_forward_where_articulations_share_numbers(model, numbers, jax, rng):
    """Points that all robots have, and results of a user's own with the numbers of all joints in a row."""
    from jax.test_util import check_grads

    q, qd, forces = (jax.numpy.asarray(x) for x in numbers[:3])
    steps = jax_function(model, two_steps, INPUTS[:3], mode="forward", dt=0.01)
    check_grads(steps, [q, qd, forces], order=1, modes=["fwd"], eps=1e-6, atol=1e-5, rtol=1e-5)
    points = jax_function(model, dynamics.point_positions, ("joint_q", "points"), mode="forward", links=[0, 1])
    given = jax.numpy.asarray(rng.normal(size=(2, 3)))
    check_grads(lambda p: points(q, p), [given], order=1, modes=["fwd"], eps=1e-6, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="mode"):
        jax_function(model, dynamics.kinetic_energy, mode="sideways")


def test_jax_maps_over_batches(model, numbers, jax, rng):
    function = jax_function(model, dynamics.forward_dynamics, INPUTS[:3])
    q, qd, _ = (jax.numpy.asarray(x) for x in numbers[:3])
    forces = rng.normal(size=(3, model.joint_dof_count))
    mapped = jax.vmap(lambda f: function(q, qd, f))(jax.numpy.asarray(forces))
    for f, result in zip(forces, mapped, strict=True):
        np.testing.assert_array_equal(np.asarray(result), accelerations(model, [*numbers[:2], f, numbers[3]]))


def test_both_give_the_same_gradients(model, numbers, torch, jax):
    given = torch_function(model, dynamics.inverse_dynamics, INPUTS[:2])
    other = jax_function(model, dynamics.inverse_dynamics, INPUTS[:2])
    tensors = [torch.tensor(x, requires_grad=True) for x in numbers[:2]]
    expected = torch.autograd.grad((given(*tensors) ** 2).sum(), tensors)
    actual = jax.grad(lambda *a: (other(*a) ** 2).sum(), argnums=(0, 1))(*map(jax.numpy.asarray, numbers[:2]))
    for a, b in zip(actual, expected, strict=True):
        # the sum of squares and its gradient are rounded in another order
        np.testing.assert_allclose(np.asarray(a), b.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("bridge", BRIDGES)
def test_what_cannot_be_bridged(model, bridge):
    pytest.importorskip("torch" if bridge is torch_function else "jax")
    with pytest.raises(KeyError, match=r"forward_dynamics.*'joint_force'.*joint_q"):
        bridge(model, dynamics.forward_dynamics, ("joint_q", "joint_force"))
    with pytest.raises(KeyError, match="'metod'"):
        bridge(model, dynamics.forward_dynamics, metod="crb")
    with pytest.raises(ValueError, match="names"):
        bridge(model, dynamics.forward_dynamics, ("joint_q", "joint_q"))
    with pytest.raises(TypeError, match="callable"):
        bridge(model, "forward_dynamics")
    with pytest.raises(ValueError, match="requires_grad=True"):
        bridge(known_robots(requires_grad=False), dynamics.forward_dynamics, ("inertial_parameters",))


def test_wrong_tensors(model, numbers, torch):
    function = torch_function(model, dynamics.bias_forces)
    q, qd = (torch.tensor(x) for x in numbers[:2])
    with pytest.raises(TypeError, match=r"1 arrays.*2.*joint_q.*joint_qd"):
        function(q)
    with pytest.raises(TypeError, match="joint_qd"):
        function(q, numbers[1])
    with pytest.raises(TypeError, match=r"joint_q.*torch.float32.*torch.float64"):
        function(q.float(), qd)
    with pytest.raises(ValueError, match=r"joint_qd.*\(2, 3\).*28"):
        function(q, qd[:, :3])


def test_wrong_jax_arrays(model, numbers, jax):
    function = jax_function(model, dynamics.bias_forces)
    q, qd = (jax.numpy.asarray(x) for x in numbers[:2])
    with pytest.raises(TypeError, match=r"1 arrays.*2.*joint_q.*joint_qd"):
        function(q)
    with pytest.raises(TypeError, match=r"joint_q.*float32.*float64.*jax.config.update"):
        function(q.astype("float32"), qd)
    with pytest.raises(ValueError, match=r"joint_qd.*\(2, 3\).*28"):
        function(q, qd[:, :3])


@pytest.mark.parametrize(("bridge", "package"), [(torch_function, "torch"), (jax_function, "jax")])
def test_says_what_to_install(model, monkeypatch, bridge, package):
    monkeypatch.setitem(sys.modules, package, None)
    torch_bridge._function.cache_clear()
    with pytest.raises(ImportError, match=rf"pip install 'newton-like\[{package}\]'"):
        bridge(model, dynamics.forward_dynamics)
