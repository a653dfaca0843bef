"""Data of articulations beside their definitions, finite differences and the dynamics library."""

import re
import sys

import numpy as np
import pytest
import warp as wp

from newton_like import dynamics, eval_fk
from newton_like.articulation import ImplicitActuatorCfg
from newton_like.articulation.data.fields import Part, View
from newton_like.types import VelRepr
from tests.articulation.robots import WORLDS, numbers, rotation, shake, walker

_TOL = dict(rtol=1e-4, atol=2e-5)


@pytest.fixture
def robot(rng):
    return walker(rng)


def fields_of(data) -> list[str]:
    return [n for n in dir(type(data)) if isinstance(getattr(type(data), n), Part | View)]


def test_states_of_links_and_centres_of_mass_follow_from_each_other(robot):
    d, model = robot.data, robot.model
    q, com = numbers(d.body_link_quat_w), numbers(d.body_com_pos_b)
    np.testing.assert_array_equal(com.reshape(-1, 3), model.body_com.numpy())
    arm = np.einsum("nbij,nbj->nbi", rotation(q), com)
    np.testing.assert_allclose(numbers(d.body_com_pos_w), numbers(d.body_link_pos_w) + arm, **_TOL)
    w = numbers(d.body_com_ang_vel_w)
    np.testing.assert_allclose(numbers(d.body_link_lin_vel_w), numbers(d.body_com_lin_vel_w) - np.cross(w, arm), **_TOL)
    np.testing.assert_array_equal(d.body_link_ang_vel_w.numpy(), d.body_com_ang_vel_w.numpy())
    for name in ("link", "com"):
        state = numbers(getattr(d, f"body_{name}_state_w"))
        np.testing.assert_array_equal(state[..., :7], numbers(getattr(d, f"body_{name}_pose_w")))
        np.testing.assert_array_equal(state[..., 7:], numbers(getattr(d, f"body_{name}_vel_w")))
        np.testing.assert_array_equal(numbers(getattr(d, f"root_{name}_state_w")), state[:, 0])
    np.testing.assert_array_equal(numbers(d.body_state_w)[..., 7:], numbers(d.body_com_vel_w))
    np.testing.assert_array_equal(numbers(d.root_state_w), numbers(d.body_state_w)[:, 0])


def test_principal_axes_make_inertias_diagonal(robot):
    d = robot.data
    turn = rotation(numbers(d.body_com_quat_b))
    found = np.swapaxes(turn, -1, -2) @ numbers(d.body_inertia) @ turn
    off = found - np.einsum("nbii->nbi", found)[..., None] * np.eye(3)
    assert abs(off).max() < 1e-6
    # the smallest of all turns to these axes
    assert (np.einsum("nbii->nb", turn) >= 1.0 - 1e-5).all()
    world = rotation(numbers(d.body_com_quat_w))
    np.testing.assert_allclose(world, rotation(numbers(d.body_link_quat_w)) @ turn, atol=2e-6)


def test_root_quantities_in_root_axes(robot):
    d = robot.data
    back = np.swapaxes(rotation(numbers(d.root_link_quat_w)), -1, -2)
    for kind in ("link_lin", "link_ang", "com_lin", "com_ang"):
        world, own = (numbers(getattr(d, f"root_{kind}_vel_{frame}")) for frame in "wb")
        np.testing.assert_allclose(own, np.einsum("nij,nj->ni", back, world), **_TOL)
    np.testing.assert_allclose(numbers(d.projected_gravity_b), -back[:, :, 2], atol=2e-6)
    forward = np.swapaxes(back, -1, -2)[:, :, 0]
    np.testing.assert_allclose(numbers(d.heading_w), np.arctan2(forward[:, 1], forward[:, 0]), atol=2e-6)


def test_velocities_are_the_rates_of_poses(rng):
    robot = walker(rng, gravity=0.0, dt=1e-4)
    d = robot.data
    before, v = numbers(d.body_com_pos_w), numbers(d.body_com_lin_vel_w)
    link, u = numbers(d.body_link_pos_w), numbers(d.body_link_lin_vel_w)
    robot.sim.step()
    h = robot.sim.dt
    # positions of some metres are rounded to 1e-7 m
    close = dict(atol=0.02, rtol=1e-3)
    np.testing.assert_allclose(
        (numbers(d.body_com_pos_w) - before) / h, 0.5 * (v + numbers(d.body_com_lin_vel_w)), **close
    )
    np.testing.assert_allclose(
        (numbers(d.body_link_pos_w) - link) / h, 0.5 * (u + numbers(d.body_link_lin_vel_w)), **close
    )


def test_accelerations_are_those_of_the_dynamics(rng):
    """Of a step so short that forces and the configuration hardly change."""
    robot = walker(rng, dt=1e-4)
    d, model, state = robot.data, robot.model, robot.sim.state
    efforts = rng.normal(size=d.joint_pos.shape)
    robot.set_joint_effort_target(efforts)
    robot.write_data_to_sim()
    joint_f = robot.sim.control.joint_act.numpy()
    wanted = dynamics.forward_dynamics(model, state, wp.array(joint_f, dtype=float, device="cpu"))
    links = numbers(dynamics.link_accelerations(model, state, wanted, out_repr=VelRepr.COM))
    wanted = numbers(wanted)
    robot.sim.step()
    size = 1.0 + abs(wanted[:, 6:]).max()
    np.testing.assert_allclose(numbers(d.joint_acc) / size, wanted[:, 6:] / size, atol=0.02)
    size = 1.0 + abs(links).max()
    np.testing.assert_allclose(numbers(d.body_com_acc_w) / size, links / size, atol=0.02)
    np.testing.assert_array_equal(d.body_acc_w.numpy()[..., 3:], d.body_com_ang_acc_w.numpy())


@pytest.mark.parametrize("speed", [1.0, 40.0])
def test_accelerations_are_the_velocity_change_of_the_last_physics_step(robot, rng, speed):
    """Also where one of the worlds is so fast that the step takes back energy that it added."""
    robot.write_joint_velocity_to_sim(speed, env_ids=[1])
    state = robot.sim.state
    before = numbers(state.joint_qd)
    robot.sim.step()
    wanted = (numbers(state.joint_qd) - before) / robot.sim.dt
    np.testing.assert_allclose(numbers(state.joint_qdd), wanted, rtol=1e-3, atol=1e-2)
    kept = robot.data.joint_acc.numpy().copy()
    # a state that is written has no part in it
    shake(robot, rng)
    np.testing.assert_array_equal(robot.data.joint_acc.numpy(), kept)


def test_accelerations_of_steps_with_substeps_are_those_of_the_whole_step(rng):
    """Joints run into their limits within a substep. Wrenches through joints are those of the last substep, as of a robot that takes the
    substeps as steps."""
    seed, dt = int(rng.integers(1 << 30)), 1.0 / 240.0
    speed = 8.0 * rng.choice([-1.0, 1.0], (WORLDS, 4))
    robot = walker(np.random.default_rng(seed), dt=dt, substeps=4)
    fine = walker(np.random.default_rng(seed), dt=dt / 4)
    for each in (robot, fine):
        each.write_joint_position_limit_to_sim([-1.05, 1.05])
        each.write_joint_velocity_to_sim(speed)
    d, sim, shocks = robot.data, robot.sim, 0
    for _ in range(25):
        before = numbers(sim.state.joint_qd)
        sim.advance(robot)
        fine.sim.advance(fine, 4)
        wanted = (numbers(sim.state.joint_qd) - before).reshape(WORLDS, -1) / dt
        np.testing.assert_allclose(numbers(d.joint_acc), wanted[:, 6:], rtol=1e-4, atol=1e-2)
        np.testing.assert_allclose(numbers(d.body_com_ang_acc_w)[:, 0], wanted[:, 3:6], rtol=1e-3, atol=0.05)
        shocks += (abs(numbers(fine.data.joint_acc) - wanted[:, 6:]) > 50.0).sum()
        wrench, last = (numbers(each.data.body_incoming_joint_wrench_b) for each in (robot, fine))
        np.testing.assert_allclose(wrench, last, atol=2e-3 * abs(last).max())
    assert shocks > 0
    for each in (robot, fine):
        each.reset([1, 3])
    assert not d.joint_acc.numpy()[[1, 3]].any()
    wrench, last = (numbers(each.data.body_incoming_joint_wrench_b)[[1, 3]] for each in (robot, fine))
    np.testing.assert_allclose(wrench, last, atol=2e-3 * abs(last).max())


class Silent:
    """A solver whose steps give no accelerations."""

    results = frozenset()

    def __init__(self, solver):
        self._solver = solver

    def step(self, state_in, state_out, control, dt):
        kept, vars(state_out)["joint_qdd"] = state_out.joint_qdd, None
        self._solver.step(state_in, state_out, control, dt=dt)
        vars(state_out)["joint_qdd"] = kept


def test_solvers_without_accelerations_give_the_change_of_the_velocity(robot):
    sim = robot.sim
    sim._solver = Silent(sim.solver)
    before = sim.state.joint_qd.numpy().astype(float)
    sim.step()
    change = sim.state.joint_qd.numpy() - before
    np.testing.assert_allclose(numbers(sim.state.joint_qdd), change / sim.dt, rtol=1e-5, atol=1e-3)


def test_wxyz_accessors_turn_quaternions_only(robot):
    d = robot.data
    for name in ("root_quat_w", "body_com_quat_w", "body_com_quat_b"):
        q, turned = getattr(d, name).numpy(), getattr(d, f"{name}_wxyz").numpy()
        np.testing.assert_array_equal(turned, q[..., [3, 0, 1, 2]])
    order = [0, 1, 2, 6, 3, 4, 5, *range(7, 13)]
    np.testing.assert_array_equal(d.body_state_w_wxyz.numpy(), d.body_state_w.numpy()[..., order])
    np.testing.assert_array_equal(d.root_link_pose_w_wxyz.numpy(), d.root_link_pose_w.numpy()[..., order[:7]])
    with pytest.raises(AttributeError, match="joint_pos_wxyz"):
        d.joint_pos_wxyz  # noqa: B018


def test_every_property_sees_steps_and_writes(robot, rng):
    d = robot.data
    old = {name: getattr(d, name).numpy().copy() for name in fields_of(d)}
    robot.sim.step()
    shake(robot, rng)
    still = ("_mass", "_inertia", "stiffness", "damping", "armature", "friction", "coeff", "limits", "_b", "com_")
    for name, before in old.items():
        if name.endswith(still) and not name.endswith(("vel_b", "gravity_b")):
            continue
        now = getattr(d, name).numpy()
        assert now.shape == before.shape and not np.array_equal(now, before), name


def test_arrays_share_memory_with_the_simulation_and_other_libraries(robot):
    d = robot.data
    view = d.joint_pos.numpy()
    assert np.shares_memory(view, robot.sim.state.joint_q.numpy())
    assert np.shares_memory(d.body_pos_w.numpy(), robot.sim.state.body_q.numpy())
    for name in ("joint_pos", "root_quat_w", "body_com_state_w", "heading_w"):
        array = getattr(d, name)
        taken = np.from_dlpack(array)
        assert taken.shape == array.shape and taken.ctypes.data == array.ptr
        np.testing.assert_array_equal(taken, array.numpy())


def test_numpy_views_have_all_attributes_in_place(robot, rng):
    d = robot.data
    for name in ("joint_pos", "root_lin_vel_b", "default_joint_pos", "root_quat_w_wxyz", "joint_pos_limits"):
        np.testing.assert_array_equal(getattr(d.numpy, name), getattr(d, name).numpy())
    assert np.shares_memory(d.numpy.joint_pos, robot.sim.state.joint_q.numpy()) and d.numpy.joint_names == d.joint_names
    d.numpy.default_joint_pos[1:3] += 0.5
    d.numpy.default_joint_vel = 0.25
    assert (d.default_joint_vel.numpy() == 0.25).all()
    robot.reset_to()
    np.testing.assert_array_equal(d.joint_pos.numpy(), d.default_joint_pos.numpy())
    assert {"joint_pos", "heading_w"} <= set(dir(d.numpy))
    with pytest.raises(AttributeError, match="joint_names"):
        d.numpy.joint_names = 3
    for name in ("joint_pos", "root_lin_vel_b"):
        with pytest.raises(AttributeError, match=f"{name}.*write_.*_to_sim"):
            setattr(d.numpy, name, 0.0)
    d.numpy.default_joint_vel += 0.5
    assert (d.default_joint_vel.numpy() == 0.75).all()
    with pytest.raises(AttributeError, match="joint_position"):
        d.numpy.joint_position  # noqa: B018


@pytest.mark.parametrize("front", ["data", "numpy"])
def test_data_that_users_set_are_copied_into_their_arrays(rng, front):
    """An assignment acts as the method that fills the same array: targets reach the joints, defaults the reset."""
    assigned, called = (
        walker(np.random.default_rng(3), actuators={"a": ImplicitActuatorCfg(".*", stiffness=30.0, damping=2.0)})
        for _ in range(2)
    )
    d = assigned.data if front == "data" else assigned.data.numpy
    arrays = {n: getattr(assigned.data, n) for n in ("joint_pos_target", "joint_effort_target", "default_joint_pos")}
    target, efforts, start = rng.normal(size=(WORLDS, 4)), rng.normal(size=4), rng.normal(size=(WORLDS, 4))
    d.joint_pos_target, d.joint_effort_target = wp.array(target, dtype=wp.float32), efforts
    called.set_joint_position_target(target)
    called.set_joint_effort_target(efforts)
    for robot in (assigned, called):
        robot.sim.advance(robot, 5)
    np.testing.assert_array_equal(assigned.data.joint_pos.numpy(), called.data.joint_pos.numpy())
    d.default_joint_pos, d.default_root_state = start, [0, 0, 3.0, 0, 0, 0, 1, *[0] * 6]
    assigned.reset_to([1])
    np.testing.assert_array_equal(assigned.data.joint_pos.numpy()[1], start[1].astype(np.float32))
    assert assigned.data.root_pos_w.numpy()[1].tolist() == [0, 0, 3]
    assert all(getattr(assigned.data, name) is array for name, array in arrays.items())
    assigned.set_joint_position_target(0.25)
    assert (assigned.data.joint_pos_target.numpy() == 0.25).all()
    for name, wrong, told in (
        ("joint_pos_target", np.zeros((4, WORLDS)), r"joint_pos_target has shape \(4, 5\)"),
        ("default_joint_pos", np.nan, "default_joint_pos holds numbers"),
    ):
        with pytest.raises(ValueError, match=told):
            setattr(d, name, wrong)


def test_other_data_refuse_an_assignment_and_name_the_method(robot):
    """All data refuse or copy; a method that is named exists."""
    d = robot.data
    named = set()
    for name in dir(d):
        if name.startswith("_") or callable(getattr(type(d), name, None)) or name in ("numpy", "torch"):
            continue
        try:
            before = getattr(d, name)
        except (NotImplementedError, ValueError):  # wrenches of joints, which need contacts
            continue
        try:
            setattr(d, name, 0.5 if isinstance(before, wp.array) else 3)
        except AttributeError as error:
            assert repr(name) in str(error)
            named |= {
                word
                for word in re.findall(r"\w+", str(error))
                if word.startswith(("write_root", "write_joint", "set_f"))
            }
        else:
            assert (getattr(d, name).numpy() == 0.5).all(), name
        assert getattr(d, name) is before
    assert {"write_root_link_velocity_to_sim", "write_joint_position_to_sim"} <= named
    assert not [method for method in named if not hasattr(robot, method)]
    with pytest.raises(AttributeError, match="'joint_posx'; did you mean 'joint_pos'"):
        d.joint_posx = 1.0
    with pytest.raises(AttributeError, match="'joint_posx'; did you mean 'joint_pos'"):
        d.joint_posx  # noqa: B018


def test_soft_limits_are_a_share_of_the_range(rng):
    robot = walker(rng, soft_joint_pos_limit_factor=0.8)
    limits = np.sort(rng.normal(size=(4, 2)), axis=1)
    robot.write_joint_position_limit_to_sim(limits, warn_limit_violation=False)
    found = numbers(robot.data.soft_joint_pos_limits)
    middle, half = limits.mean(axis=1), 0.4 * (limits[:, 1] - limits[:, 0])
    np.testing.assert_allclose(
        found, np.broadcast_to(np.stack([middle - half, middle + half], -1), found.shape), rtol=1e-5, atol=1e-6
    )


def test_tensors_of_torch_share_memory_and_are_taken(robot, rng):
    torch = pytest.importorskip("torch")
    d = robot.data
    for name in ("joint_pos", "root_quat_w", "body_com_state_w", "heading_w", "root_state_w_wxyz"):
        array = getattr(d, name)
        for tensor in (torch.from_dlpack(array), wp.to_torch(array, requires_grad=False)):
            assert tuple(tensor.shape) == array.shape and tensor.data_ptr() == array.ptr
            np.testing.assert_array_equal(tensor.numpy(), array.numpy())
        assert getattr(d.torch, name).data_ptr() == array.ptr
    d.torch.default_joint_vel = 0.25
    assert (d.default_joint_vel.numpy() == 0.25).all()
    values = torch.from_numpy(rng.normal(size=(2, 4)).astype(np.float32))
    robot.set_joint_position_target(values, env_ids=torch.tensor([3, 1]))
    np.testing.assert_array_equal(d.joint_pos_target.numpy()[[3, 1]], values.numpy())
    mask = torch.tensor([True, False, True, False, False])
    robot.write_joint_state_to_sim(values, values.double(), env_ids=mask)
    np.testing.assert_array_equal(d.joint_vel.numpy()[[0, 2]], values.numpy())
    robot.write_root_pose_to_sim(torch.tensor([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0]), env_ids=mask)
    np.testing.assert_allclose(d.root_pos_w.numpy()[[0, 2]], [[1.0, 2.0, 3.0]] * 2)
    robot.set_external_force_and_torque(torch.ones(5, 5, 3), torch.zeros(3))


def test_soft_limits_that_are_set_stay(rng):
    """Whatever else is written; only new limits of a joint give it new soft ones."""
    robot = walker(rng, soft_joint_pos_limit_factor=0.5)
    robot.write_joint_position_limit_to_sim([-2.0, 2.0])
    d, given = robot.data, np.sort(rng.uniform(-1.0, 1.0, (WORLDS, 4, 2)), axis=-1).astype(np.float32)
    d.soft_joint_pos_limits = given
    robot.write_body_mass_to_sim(d.default_mass)
    robot.write_joint_armature_to_sim(0.1)
    robot.sim.step()
    np.testing.assert_array_equal(d.soft_joint_pos_limits.numpy(), given)
    robot.write_joint_position_limit_to_sim([-1.0, 3.0], joint_ids=[1], env_ids=[0, 2])
    given[[0, 2], 1] = [0.0, 2.0]
    np.testing.assert_array_equal(d.soft_joint_pos_limits.numpy(), given)


def test_tensors_without_torch_name_what_is_missing(robot, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'newton-like\[torch\]'; data.numpy"):
        _ = robot.data.torch.joint_pos
    assert robot.data.torch.joint_names == robot.joint_names


def test_the_state_of_the_simulation_has_bodies_where_written_coordinates_put_them(robot, rng):
    for write in (
        lambda: shake(robot, rng),
        robot.reset_to,
        lambda: robot.write_joint_position_to_sim(0.3, env_ids=[2]),
    ):
        robot.sim.state.body_q.numpy()
        write()
        found = robot.sim.state.body_q.numpy().copy()
        np.testing.assert_array_equal(found.reshape(WORLDS, -1, 7), robot.data.body_link_pose_w.numpy())
        again = robot.model.state()
        again.joint_q.assign(robot.sim.state.joint_q)
        again.joint_qd.assign(robot.sim.state.joint_qd)
        eval_fk(robot.model, again.joint_q, again.joint_qd, again)
        np.testing.assert_allclose(found, again.body_q.numpy(), atol=1e-6)
