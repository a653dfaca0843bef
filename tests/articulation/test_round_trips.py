"""Numbers of bodies, joints and tendons come back on random selections, and others keep every bit; energy and momentum are kept."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import dynamics
from newton_like.articulation import Articulation, SimulationContext
from newton_like.model.tendons import Tendon
from tests.articulation.robots import WORLDS, add_robot, numbers, random_inertia, random_states, walker
from tests.articulation.test_commands import chosen


@pytest.fixture(scope="module")
def robot(module_rng) -> Articulation:
    """A robot with two fixed tendons and two spatial ones."""
    one = nl.ModelBuilder()
    add_robot(one, module_rng)
    hips = [one.joint_label.index(f"walker/{side}_hip_joint") for side in ("left", "right")]
    for k, joint in enumerate(hips):
        one.add_tendon(Tendon(label=f"fixed_{k}", joints=((joint, 0, 1.0),), stiffness=1.0, limits=(-3.0, 3.0)))
        ends = [one.add_site(b) for b in (0, one.body_label.index("walker/left_knee"))]
        one.add_tendon(Tendon(label=f"spatial_{k}", path=tuple(("site", s) for s in ends), stiffness=1.0))
    scene = nl.ModelBuilder()
    scene.replicate(one, WORLDS)
    return Articulation(SimulationContext(scene.finalize("cpu"), evaluator="general"), "walker")


def everything(robot) -> dict[str, np.ndarray]:
    """All arrays of the model and the state with an entry for each joint, body or tendon, without inverses, which the first edit of a mass
    computes again on the device."""
    model, state = robot.model, robot.sim.state
    names = [
        n
        for n in vars(model)
        if n.startswith(("joint_", "body_", "tendon_")) and isinstance(getattr(model, n), wp.array)
    ]
    found = {name: getattr(model, name).numpy().copy() for name in names if "_inv_" not in name}
    return found | {f"state {name}": getattr(state, name).numpy().copy() for name in ("joint_q", "joint_qd")}


def check_others(before: dict, after: dict, touched: tuple[str, ...]) -> None:
    """Only the arrays that were written changed."""
    for name, values in before.items():
        assert name in touched or np.array_equal(values, after[name]), name


BODIES = {
    "write_body_mass_to_sim": ("body_mass", (), ("body_mass",)),
    "write_body_com_to_sim": ("body_com_pos_b", (3,), ("body_com",)),
    "write_body_inertia_to_sim": ("body_inertia", (9,), ("body_inertia",)),
}


@pytest.mark.parametrize("method", BODIES)
def test_numbers_of_bodies_come_back_on_random_selections(robot, rng, method):
    name, inner, touched = BODIES[method]
    for _ in range(3):
        (envs, rows), (bodies, columns) = chosen(rng, WORLDS), chosen(rng, robot.num_bodies)
        before = getattr(robot.data, name).numpy().copy().reshape(WORLDS, robot.num_bodies, *inner)
        values = rng.uniform(1.0, 2.0, (len(rows), len(columns), *inner))
        if inner == (9,):
            values = np.array([[random_inertia(rng).ravel() for _ in columns] for _ in rows])
        values, whole = values.astype(np.float32), everything(robot)
        getattr(robot, method)(values, bodies, envs)
        before[np.ix_(rows, columns)] = values
        np.testing.assert_array_equal(getattr(robot.data, name).numpy().reshape(before.shape), before)
        check_others(whole, everything(robot), touched)


def test_friction_comes_back_on_random_selections(robot, rng):
    d, names = robot.data, ("joint_friction_coeff", "joint_dynamic_friction_coeff", "joint_viscous_friction_coeff")
    for _ in range(3):
        (envs, rows), (joints, columns) = chosen(rng, WORLDS), chosen(rng, robot.num_joints)
        wanted = [getattr(d, name).numpy().copy() for name in names]
        values = rng.uniform(0.1, 1.0, (3, len(rows), len(columns))).astype(np.float32)
        values[1] *= values[0]
        whole = everything(robot)
        robot.write_joint_friction_coefficient_to_sim(*values, joint_ids=joints, env_ids=envs)
        for name, array, numbers_ in zip(names, wanted, values, strict=True):
            array[np.ix_(rows, columns)] = numbers_
            np.testing.assert_array_equal(getattr(d, name).numpy(), array)
        check_others(whole, everything(robot), ("joint_friction", "joint_friction_ratio", "joint_damping"))


@pytest.mark.parametrize("method", ["write_joint_position_limit_to_sim", "write_joint_limits_to_sim"])
def test_position_limits_come_back_on_random_selections(robot, rng, method):
    for _ in range(3):
        (envs, rows), (joints, columns) = chosen(rng, WORLDS), chosen(rng, robot.num_joints)
        wanted = robot.data.joint_pos_limits.numpy().copy()
        values = np.sort(rng.uniform(-3.0, 3.0, (len(rows), len(columns), 2)), axis=-1).astype(np.float32)
        whole = everything(robot)
        getattr(robot, method)(values, joints, envs, warn_limit_violation=False)
        wanted[np.ix_(rows, columns)] = values
        np.testing.assert_array_equal(robot.data.joint_pos_limits.numpy(), wanted)
        check_others(whole, everything(robot), ("joint_limit_lower", "joint_limit_upper"))


def test_joint_states_come_back_on_random_selections(robot, rng):
    for _ in range(3):
        (envs, rows), (joints, columns) = chosen(rng, WORLDS), chosen(rng, robot.num_joints)
        wanted = [x.numpy().copy() for x in (robot.data.joint_pos, robot.data.joint_vel)]
        values = rng.normal(size=(2, len(rows), len(columns))).astype(np.float32)
        robot.write_joint_state_to_sim(*values, joint_ids=joints, env_ids=envs)
        for array, found, given in zip(wanted, (robot.data.joint_pos, robot.data.joint_vel), values, strict=True):
            array[np.ix_(rows, columns)] = given
            np.testing.assert_array_equal(found.numpy(), array)


@pytest.mark.parametrize("frame", ["", "link_", "com_"])
@pytest.mark.parametrize("part", ["pose", "velocity"])
def test_poses_and_velocities_of_roots_come_back_on_random_selections(robot, rng, frame, part):
    envs, rows = chosen(rng, WORLDS)
    values = random_states(rng, len(rows))[:, :7] if part == "pose" else random_states(rng, len(rows))[:, 7:]
    name = f"root_{frame}{'pose' if part == 'pose' else 'vel'}_w"
    others, before = np.setdiff1d(np.arange(WORLDS), rows), numbers(getattr(robot.data, name))
    whole = robot.sim.state.joint_q.numpy().reshape(WORLDS, -1)[others].copy()
    getattr(robot, f"write_root_{frame}{part}_to_sim")(values, envs)
    found = numbers(getattr(robot.data, name))
    if part == "pose":
        values[:, 3:] *= np.sign(np.einsum("ni,ni->n", found[rows, 3:], values[:, 3:]))[:, None]
    np.testing.assert_allclose(found[rows], values, atol=5e-6)
    np.testing.assert_array_equal(found[others], before[others])
    np.testing.assert_array_equal(robot.sim.state.joint_q.numpy().reshape(WORLDS, -1)[others], whole)


@pytest.mark.parametrize(
    "kind, name", [(k, n) for k in ("fixed", "spatial") for n in ("stiffness", "damping", "offset")]
)
def test_properties_of_tendons_come_back_on_random_selections(robot, rng, kind, name):
    """Values that are set wait for the write, which writes those of chosen worlds and tendons alone."""
    model = robot.model
    which = [k for k, label in enumerate(model.tendon_label[:4]) if kind in label]
    for _ in range(2):
        (envs, rows), (tendons, columns) = chosen(rng, WORLDS), chosen(rng, 2)
        values = rng.uniform(0.1, 2.0, (len(rows), len(columns))).astype(np.float32)
        whole = everything(robot)
        getattr(robot, f"set_{kind}_tendon_{name}")(values, tendons, envs)
        check_others(whole, everything(robot), ())
        getattr(robot, f"write_{kind}_tendon_properties_to_sim")(tendons, envs)
        wanted = whole[f"tendon_{name}"].reshape(WORLDS, 4).copy()
        wanted[np.ix_(rows, np.array(which)[columns])] = values
        np.testing.assert_array_equal(getattr(model, f"tendon_{name}").numpy().reshape(WORLDS, 4), wanted)
        np.testing.assert_array_equal(getattr(robot.data, f"{kind}_tendon_{name}").numpy(), wanted[:, which])
        check_others(whole, everything(robot), (f"tendon_{name}",))


def test_energy_and_momentum_are_kept_with_everything_switched_off(rng):
    """Without gravity, drives, friction and wrenches, in short steps; the writes of commands that are zero add nothing."""
    robot = walker(rng, gravity=0.0, dt=2.5e-4)
    robot.write_joint_armature_to_sim(0.0)
    robot.sim.forward()
    d, model, state = robot.data, robot.model, robot.sim.state

    def kept() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m, x, v = numbers(d.body_mass)[..., None], numbers(d.body_com_pos_w), numbers(d.body_com_lin_vel_w)
        turn = nl.geometry.transforms.quat_to_matrix(numbers(d.body_link_quat_w))
        spin = np.einsum("nbij,nbjk,nblk,nbl->nbi", turn, numbers(d.body_inertia), turn, numbers(d.body_com_ang_vel_w))
        energy = numbers(dynamics.kinetic_energy(model, state))
        return energy, (m * v).sum(axis=1), (np.cross(x, m * v) + spin).sum(axis=1)

    before = kept()
    for _ in range(200):
        robot.write_data_to_sim()
        robot.sim.step()
    for old, new in zip(before, kept(), strict=True):
        # of first order in the time step
        np.testing.assert_allclose(new, old, atol=2e-3 * abs(old).max())
