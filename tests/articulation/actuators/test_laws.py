"""Each actuator beside its formula, on signals that are recorded while a robot moves."""

import re

import numpy as np
import pytest

import newton_like as nl
from newton_like.articulation import (
    Articulation,
    DCMotorCfg,
    DelayedPDActuatorCfg,
    IdealPDActuatorCfg,
    ImplicitActuatorCfg,
    NetworkActuatorCfg,
    RemotizedPDActuatorCfg,
    SimulationContext,
)
from tests.articulation.robots import WORLDS, numbers, scene, walker

KP, KD = 30.0, 0.5
TABLE = [(-1.0, 1.0), (0.0, 3.0), (0.5, 2.0)]
ALL = ".*"


def signals(robot, rng, steps: int = 12) -> dict[str, np.ndarray]:
    """Commands, states before each step, and reported efforts, each ``[step, instance, joint]``."""
    d, kept = robot.data, {}
    for _ in range(steps):
        given = dict(
            target=rng.normal(size=(WORLDS, 4)), rate=rng.normal(size=(WORLDS, 4)), feed=rng.normal(size=(WORLDS, 4))
        )
        robot.set_joint_position_target(given["target"])
        robot.set_joint_velocity_target(given["rate"])
        robot.set_joint_effort_target(given["feed"])
        given |= dict(q=numbers(d.joint_pos), qd=numbers(d.joint_vel))
        robot.write_data_to_sim()
        given |= dict(computed=numbers(d.computed_torque), applied=numbers(d.applied_torque))
        given["act"] = robot.sim.control.joint_act.numpy().reshape(WORLDS, -1)[:, 6:].astype(float)
        for name, value in given.items():
            kept.setdefault(name, []).append(value)
        robot.sim.step()
    return {name: np.array(values) for name, values in kept.items()}


def pd(s: dict, kp=KP, kd=KD) -> np.ndarray:
    return kp * (s["target"] - s["q"]) + kd * (s["rate"] - s["qd"]) + s["feed"]


def close(found, wanted) -> None:
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_ideal_pd_is_clipped(rng):
    robot = walker(rng, actuators={"a": IdealPDActuatorCfg(ALL, stiffness=KP, damping=KD, effort_limit=4.0)})
    s = signals(robot, rng)
    close(s["computed"], pd(s))
    close(s["applied"], np.clip(pd(s), -4.0, 4.0))
    np.testing.assert_array_equal(s["act"], s["applied"])
    # the step has no drive beside the actuator
    assert not robot.model.joint_target_mode.numpy().any() and (robot.data.joint_effort_limits.numpy() > 1e9).all()
    assert (robot.data.joint_stiffness.numpy() == KP).all() and (robot.data.default_joint_damping.numpy() == KD).all()


def test_implicit_pd_hands_targets_to_the_drive(rng):
    robot = walker(rng, actuators={"a": ImplicitActuatorCfg(ALL, stiffness=KP, damping=KD, effort_limit=4.0)})
    s = signals(robot, rng)
    close(s["computed"], pd(s))
    close(s["applied"], np.clip(pd(s), -4.0, 4.0))
    close(s["act"], s["feed"])
    assert (robot.data.joint_stiffness.numpy() == KP).all() and (robot.data.joint_effort_limits.numpy() == 4.0).all()


def test_dc_motors_stay_within_their_torque_speed_line(rng):
    top, stall, limit = 2.0, 6.0, 4.0
    cfg = DCMotorCfg(ALL, stiffness=KP, damping=KD, effort_limit=limit, velocity_limit=top, saturation_effort=stall)
    s = signals(walker(rng, actuators={"a": cfg}), rng)
    v = np.clip(s["qd"], -top * (1 + limit / stall), top * (1 + limit / stall))
    high, low = np.minimum(stall * (1 - v / top), limit), np.maximum(stall * (-1 - v / top), -limit)
    close(s["applied"], np.clip(pd(s), low, high))
    # beyond the speed without load a motor brakes, at most by its limit
    assert (abs(s["applied"]) <= limit + 1e-5).all()
    fast = s["qd"] > top
    assert (s["applied"][fast] <= 1e-5).all()


def test_commands_arrive_late_by_the_delay_of_the_instance(rng):
    cfg = DelayedPDActuatorCfg(
        ALL, stiffness=KP, damping=KD, effort_limit=50.0, min_delay=0, max_delay=4, seed=int(rng.integers(1000))
    )
    robot = walker(rng, actuators={"a": cfg})
    for _ in range(2):
        delay = robot.actuators["a"].delay
        assert delay.shape == (WORLDS,) and (delay >= 0).all() and (delay <= 4).all()
        s = signals(robot, rng)
        steps = np.arange(len(s["q"]))
        for i in range(WORLDS):
            # before the first command has arrived, it counts
            then = np.maximum(steps - delay[i], 0)
            late = {name: s[name][then, i] for name in ("target", "rate", "feed")} | {
                name: s[name][:, i] for name in ("q", "qd")
            }
            close(s["computed"][:, i], pd(late))
        robot.reset()


def test_delays_that_are_set_hold_until_a_reset(rng):
    cfg = DelayedPDActuatorCfg(ALL, stiffness=KP, damping=KD, effort_limit=50.0, min_delay=1, max_delay=4)
    robot = walker(rng, actuators={"a": cfg})
    group = robot.actuators["a"]
    delay = rng.integers(1, 5, WORLDS)
    group.delay = delay
    group.set_delay([4, 1], [3, 0])
    group.set_delay(2, np.arange(WORLDS) == 1)
    delay[[3, 0, 1]] = 4, 1, 2
    np.testing.assert_array_equal(group.delay, delay)
    s = signals(robot, rng)
    then = np.maximum(np.arange(len(s["q"]))[:, None] - delay, 0), np.arange(WORLDS)
    close(
        s["computed"], pd({name: s[name][then] for name in ("target", "rate", "feed")} | {n: s[n] for n in ("q", "qd")})
    )
    for values, chosen, error, told in (
        (0, None, ValueError, "delay 0 must be from min_delay 1 to max_delay 4"), (5, [2], ValueError, "delay 5"),
        (1.5, None, TypeError, "integer"), ([1, 2], None, ValueError, r"shape \(2,\)"), (1, [9], IndexError, "index 9"),
    ):  # fmt: skip
        with pytest.raises(error, match=told):
            group.set_delay(values, chosen)
    np.testing.assert_array_equal(group.delay, delay)
    robot.reset([0, 1, 2])
    np.testing.assert_array_equal(group.delay[3:], delay[3:])


def test_edits_of_a_configuration_do_not_change_robots_that_were_made_with_it(rng):
    """Delays above those of the first configuration were read outside of the table."""
    cfg = DelayedPDActuatorCfg(ALL, stiffness=KP, damping=KD, max_delay=1, seed=3)
    robot = walker(rng, actuators={"a": cfg})
    cfg.max_delay = robot.actuators["a"].cfg.max_delay = 60
    for _ in range(10):
        robot.reset()
        assert (robot.actuators["a"].delay <= 1).all()
    with pytest.raises(ValueError, match="delay 2 must be from min_delay 0 to max_delay 1"):
        robot.actuators["a"].set_delay(2)


def test_delays_of_groups_differ_and_those_of_runs_agree(rng):
    cfg = dict(stiffness=KP, damping=KD, max_delay=50)
    left, right = (DelayedPDActuatorCfg(f"{side}.*", **cfg) for side in ("left", "right"))
    delays = []
    for _ in range(2):
        robot = walker(rng, actuators={"left": left, "right": right})
        found = [robot.actuators[side].delay for side in ("left", "right")]
        robot.reset()
        delays.append([*found, *(robot.actuators[side].delay for side in ("left", "right"))])
    np.testing.assert_array_equal(*delays)
    assert len({tuple(one) for one in delays[0]}) == 4
    # seeds that are given are those of the groups
    left.seed = right.seed = int(rng.integers(1000))
    robot = walker(rng, actuators={"left": left, "right": right})
    np.testing.assert_array_equal(*(robot.actuators[side].delay for side in ("left", "right")))


def test_motors_without_a_speed_have_that_of_the_model(rng):
    model = scene(rng)
    speed = rng.uniform(1.0, 3.0, (WORLDS, 4)).astype(np.float32)
    model.joint_velocity_limit.numpy().reshape(WORLDS, -1)[:, 6:] = speed
    cfg = DCMotorCfg(ALL, stiffness=KP, damping=KD, velocity_limit_sim=9.0, saturation_effort=5.0)
    robot = Articulation(model, "walker", actuators={"a": cfg})
    np.testing.assert_array_equal(robot.actuators["a"].velocity_limit.numpy(), speed)
    assert (robot.data.joint_vel_limits.numpy() == 9.0).all()


def test_limits_by_position_are_linear_between_the_rows_of_their_table(rng):
    cfg = RemotizedPDActuatorCfg(ALL, stiffness=KP, damping=KD, joint_parameter_lookup=TABLE)
    s = signals(walker(rng, actuators={"a": cfg}), rng)
    bound = np.interp(s["q"], *np.array(TABLE).T)
    close(s["applied"], np.clip(pd(s), -bound, bound))


def test_networks_see_errors_and_velocities_of_earlier_steps(rng):
    seen = []

    def network(rows):
        seen.append(rows.copy())
        return rows @ np.array([3.0, 2.0, 1.0, 0.5, 0.25, 0.125])

    cfg = NetworkActuatorCfg(
        ALL, network=network, input_idx=(0, 1, 3), pos_scale=2.0, vel_scale=0.5, torque_scale=0.1, effort_limit=1.0, velocity_limit=100.0,
        saturation_effort=50.0,
    )  # fmt: skip
    s = signals(walker(rng, actuators={"a": cfg}), rng)
    steps = np.arange(len(s["q"]))
    past = [np.maximum(steps - i, 0) for i in (0, 1, 3)]
    error, speed = 2.0 * (s["target"] - s["q"]), 0.5 * s["qd"]
    rows = np.stack([error[p] for p in past] + [speed[p] for p in past], -1)
    close(np.array(seen).reshape(rows.shape), rows)
    wanted = 0.1 * rows @ np.array([3.0, 2.0, 1.0, 0.5, 0.25, 0.125])
    close(s["computed"], wanted)
    assert (abs(s["applied"]) <= 1.0 + 1e-6).all()


def test_groups_of_several_laws_keep_to_their_joints(rng):
    common = dict(stiffness=KP, damping=KD, effort_limit=4.0)
    robot = walker(
        rng,
        actuators={
            "motor": DCMotorCfg("left_hip_joint", velocity_limit=2.0, saturation_effort=6.0, **common),
            "drive": ImplicitActuatorCfg("left_knee_joint", **common),
            "late": DelayedPDActuatorCfg("right_hip.*", min_delay=2, max_delay=2, **common),
            "table": RemotizedPDActuatorCfg("right_knee.*", joint_parameter_lookup=TABLE, stiffness=KP, damping=KD),
        },
    )
    s = signals(robot, rng)
    effort = pd(s)
    close(s["computed"][..., [0, 1, 3]], effort[..., [0, 1, 3]])
    late = np.maximum(np.arange(len(effort)) - 2, 0)
    shifted = {name: s[name][late] for name in ("target", "rate", "feed")} | {name: s[name] for name in ("q", "qd")}
    close(s["computed"][..., 2], pd(shifted)[..., 2])
    close(s["applied"][..., 1], np.clip(effort[..., 1], -4.0, 4.0))
    close(s["act"][..., 1], s["feed"][..., 1])
    bound = np.interp(s["q"][..., 3], *np.array(TABLE).T)
    close(s["act"][..., 3], np.clip(effort[..., 3], -bound, bound))
    assert robot.actuators["motor"].joint_names == ["left_hip_joint"]
    np.testing.assert_array_equal(
        robot.actuators["late"].computed_effort.numpy()[:, 0], robot.data.computed_torque.numpy()[:, 2]
    )
    assert (robot.actuators["table"].stiffness.numpy() == KP).all()


def test_an_implicit_drive_is_stable_where_an_explicit_one_is_not(rng):
    """The gains are far beyond what a step can take explicitly."""
    gains = dict(stiffness=1e5, damping=1e3, effort_limit=1e9)
    found = []
    for cfg in (ImplicitActuatorCfg, IdealPDActuatorCfg):
        robot = walker(np.random.default_rng(1), floating=False, actuators={"a": cfg(ALL, **gains)})
        robot.write_joint_state_to_sim(0.0, 0.0)
        for _ in range(30):
            robot.set_joint_position_target(0.1)
            robot.write_data_to_sim()
            robot.sim.step()
        found.append(abs(numbers(robot.data.joint_pos) - 0.1).max())
    assert found[0] < 0.01
    assert not found[1] <= 0.01


def test_parameters_of_actuators_reach_the_model(rng):
    cfg = ImplicitActuatorCfg(
        ALL, stiffness={".*_hip.*": 5.0, ".*knee.*": 6.0}, damping=0.3, armature=0.02, friction=0.4, dynamic_friction=0.4,
        viscous_friction=0.05, velocity_limit_sim=7.0, effort_limit_sim=8.0, gear_ratio=9.0,
    )  # fmt: skip
    d = walker(rng, actuators={"a": cfg}).data
    for name, value in (
        ("joint_damping", 0.3), ("joint_armature", 0.02), ("joint_friction_coeff", 0.4), ("joint_dynamic_friction_coeff", 0.4),
        ("joint_viscous_friction_coeff", 0.05), ("joint_vel_limits", 7.0), ("joint_effort_limits", 8.0), ("gear_ratio", 9.0),
        ("default_joint_armature", 0.02), ("default_joint_damping", 0.3),
    ):  # fmt: skip
        assert (getattr(d, name).numpy() == np.float32(value)).all(), name
    np.testing.assert_array_equal(d.joint_stiffness.numpy()[0], [5.0, 6.0, 5.0, 6.0])


@pytest.mark.parametrize(
    "cfg, told",
    [
        (DCMotorCfg(ALL, velocity_limit=3.0), "saturation_effort"),
        (DCMotorCfg(ALL, saturation_effort=3.0), "joint 'left_hip_joint' needs a positive velocity_limit"),
        (IdealPDActuatorCfg([]), "has no joints"),
        (DelayedPDActuatorCfg(ALL, min_delay=3, max_delay=1), r"delays? .*\b3\b.*\b1\b"),
        (RemotizedPDActuatorCfg(ALL), "joint_parameter_lookup"),
        (RemotizedPDActuatorCfg(ALL, joint_parameter_lookup=[(1.0, 2.0), (0.0, 2.0)]), "joint_parameter_lookup"),
        (NetworkActuatorCfg(ALL, velocity_limit=1.0, saturation_effort=1.0), "network"),
        (
            NetworkActuatorCfg(ALL, velocity_limit=1.0, saturation_effort=1.0, network="gone.onnx"),
            "'gone.onnx'",
        ),
        (
            ImplicitActuatorCfg(ALL, effort_limit=3.0, effort_limit_sim={"left_hip.*": 4.0, "right.*": 3.0}),
            "effort_limit 3 and effort_limit_sim 4 of joint 'left_hip_joint'",
        ),
        (
            RemotizedPDActuatorCfg(ALL, effort_limit=3.0, joint_parameter_lookup=[[-1, 2.0], [1, 3.0]]),
            "effort_limit has no effect",
        ),
        (IdealPDActuatorCfg(ALL, effort_limit={"left.*": -2.0}), r"effort_limit .*'left_hip_joint'.*-2\b"),
    ],
)
def test_bad_configurations_are_named(rng, cfg, told):
    with pytest.raises(ValueError, match=rf"actuator 'a': .*{told}|actuator 'a' .*{told}"):
        walker(rng, actuators={"a": cfg})


def test_delays_are_numbers_of_steps(rng):
    with pytest.raises(TypeError, match=r"actuator 'a': max_delay must be an integer, not 1\.5"):
        walker(rng, actuators={"a": DelayedPDActuatorCfg(ALL, max_delay=1.5)})


def test_resets_call_on_reset_of_networks(rng):
    """A running sum of errors begins again in the instances that are reset."""

    class Summing:
        def __init__(self):
            self.sum, self.told = np.zeros((WORLDS, 4)), []

        def reset(self, env_ids):
            self.told.append(list(env_ids))
            self.sum[env_ids] = 0.0

        def __call__(self, rows):
            self.sum += rows[:, 0].reshape(WORLDS, 4)
            return self.sum.ravel()

    network = Summing()
    cfg = NetworkActuatorCfg(
        ALL,
        network=network,
        input_idx=(0,),
        effort_limit=100.0,
        velocity_limit=1e3,
        saturation_effort=1e3,
        on_reset=network.reset,
    )
    robot = walker(rng, actuators={"net": cfg})
    assert network.told == [list(range(WORLDS))]
    expected = np.zeros((WORLDS, 4))
    for chosen in ([], [1, 3], [0]):
        robot.reset(chosen)
        expected[chosen] = 0.0
        for _ in range(3):
            robot.set_joint_position_target(rng.normal(size=(WORLDS, 4)))
            expected += robot.data.joint_pos_target.numpy() - robot.data.joint_pos.numpy()
            robot.write_data_to_sim()
            np.testing.assert_allclose(robot.data.computed_torque.numpy(), expected, rtol=1e-4, atol=1e-5)
            robot.sim.step()
    assert network.told[1:] == [[1, 3], [0]]


def linear_network(rng, width: int = 6) -> np.ndarray:
    return rng.normal(size=(width, 1)).astype(np.float32)


def test_networks_of_onnx_files_are_their_function(rng, tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    weights = linear_network(rng)
    helper = onnx.helper
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "linear",
        [value("x", onnx.TensorProto.FLOAT, [None, 6])],
        [value("y", onnx.TensorProto.FLOAT, [None, 1])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = tmp_path / "network.onnx"
    onnx.save(model, path)
    compare_networks(rng, str(path), lambda rows: rows @ weights)


def test_networks_of_torch_modules_are_their_function(rng, tmp_path):
    torch = pytest.importorskip("torch")
    weights = linear_network(rng)
    module = torch.nn.Linear(6, 1, bias=False)
    module.weight.data = torch.from_numpy(weights.T.copy())
    compare_networks(rng, module, lambda rows: rows @ weights)
    path = tmp_path / "network.pt"
    torch.jit.script(module).save(str(path))
    compare_networks(rng, str(path), lambda rows: rows @ weights)


def compare_networks(rng, network, function) -> None:
    """Two robots, one with each, move alike."""
    seed = int(rng.integers(1 << 30))
    found = []
    for each in (network, function):
        cfg = NetworkActuatorCfg(ALL, network=each, effort_limit=3.0, velocity_limit=100.0, saturation_effort=50.0)
        own = np.random.default_rng(seed)
        robot = walker(own, actuators={"a": cfg})
        s = signals(robot, own, 6)
        robot.reset([1, 2])
        found.append([s, signals(robot, own, 6)])
    for one, two in zip(*found, strict=True):
        for name in ("computed", "applied", "q"):
            np.testing.assert_allclose(one[name], two[name], rtol=1e-3, atol=1e-3)


def test_implicit_drives_act_with_the_new_velocity(rng):
    """The formula of docs/articulation.md, on one hinge without other forces: inertia times acceleration is the effort of the drive."""
    inertia, dt, kp, kd = rng.uniform(0.2, 0.5), 0.01, rng.uniform(20.0, 100.0), rng.uniform(0.5, 3.0)
    one = nl.ModelBuilder(gravity=0.0)
    link = one.add_link(mass=1.0, inertia=np.eye(3) * inertia, label="link")
    one.add_articulation([one.add_joint_revolute(-1, link, axis=(0, 0, 1), armature=0.0)], label="hinge")
    worlds = nl.ModelBuilder(gravity=0.0)
    worlds.replicate(one, 5)
    sim = SimulationContext(worlds.finalize("cpu"), dt=dt, evaluator="general")
    robot = Articulation(sim, "hinge", actuators={"a": ImplicitActuatorCfg(".*", stiffness=kp, damping=kd)})
    target, target_v = rng.normal(size=(2, 5, 1))
    robot.write_joint_state_to_sim(rng.normal(size=(5, 1)), 3.0 * rng.normal(size=(5, 1)))
    robot.set_joint_position_target(target)
    robot.set_joint_velocity_target(target_v)
    for _ in range(3):
        q, v = (x.numpy().astype(float) for x in (robot.data.joint_pos, robot.data.joint_vel))
        sim.advance(robot)
        new = robot.data.joint_vel.numpy().astype(float)
        effort = kp * (target - q - dt * (0.5 * v + new)) + kd * (target_v - new)
        np.testing.assert_allclose(inertia * (new - v) / dt, effort, rtol=1e-3, atol=2e-2)
        np.testing.assert_allclose(
            robot.data.applied_torque.numpy(), kp * (target - q) + kd * (target_v - v), rtol=1e-4, atol=1e-3
        )
    with pytest.raises(TypeError, match="actuators must be a dictionary"):
        Articulation(sim, "hinge", actuators=[ImplicitActuatorCfg(".*")])
    with pytest.raises(TypeError, match=r"advance\(\) needs a scene or an asset"):
        sim.advance(3)
    assert "'hinge', 5 worlds" in repr(robot) and "dt 0.01" in repr(sim)
    assert "no wrenches" in repr(robot.permanent_wrench_composer)


def test_labels_name_what_was_meant(rng):
    with pytest.raises(KeyError, match="'walkr' matches no articulation; did you mean 'walker'"):
        Articulation(walker(rng).sim, "walkr")
    with pytest.raises(KeyError, match=r"shell-style pattern.*re.compile"):
        Articulation(walker(rng).sim, "walk.*")
    assert Articulation(walker(rng).sim, re.compile("walk.*")).num_instances == 5
