"""Robots of other projects: all that can be written or set comes back for random worlds, joints, bodies and tendons, and other worlds keep
every bit, then and in the steps after."""

import re
from functools import partial

import numpy as np
import pytest

import newton_like as nl
from newton_like.articulation import Articulation, ImplicitActuatorCfg, SimulationContext
from tests.articulation.robots import WORLDS, random_inertia, random_states
from tests.articulation.test_commands import chosen
from tests.support.paths import ROBOTS, SCENES

pytestmark = [
    pytest.mark.skipif(not (ROBOTS.is_dir() and SCENES.is_dir()), reason="no ../shared beside the repository"),
    pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning"),
    pytest.mark.filterwarnings("ignore:joint .* the default position"),
]


def add_tendons(builder) -> None:
    """The humanoid of MuJoCo with the tendons that its file has in a comment, and two from hands to feet."""
    text = re.sub("<!-- (<tendon>.*</tendon>) -->", r"\1", (SCENES / "humanoid.xml").read_text(), flags=re.DOTALL)
    for side in ("left", "right"):
        for geom in (f"hand_{side}", f"foot1_{side}"):
            text = text.replace(f'<geom name="{geom}"', f'<site name="{geom}"/><geom name="{geom}"')
        ends = f'<site site="hand_{side}"/><site site="foot1_{side}"/>'
        text = text.replace("</tendon>", f'<spatial name="rope_{side}" stiffness="5">{ends}</spatial></tendon>')
    builder.add_mjcf(text)


def add_file(name: str, floating: bool, builder) -> None:
    pose = (0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0)
    builder.add_urdf(ROBOTS / name, xform=pose, floating=floating, collapse_fixed_joints=True)


FILES = {
    "double_pendulum": partial(add_file, "double_pendulum_description/urdf/double_pendulum.urdf", False),
    "solo12": partial(add_file, "solo_description/robots/solo12.urdf", True),
    "tendons": add_tendons,
    "go2": partial(add_file, "go2_description/urdf/go2.urdf", True),
    "panda": partial(add_file, "panda_description/urdf/panda_collision.urdf", False),
    "biped": partial(add_file, "simple_humanoid_description/urdf/simple_humanoid_classical.urdf", True),
}


def robot_of(name: str) -> Articulation:
    """A robot in several worlds. All joints have limits and friction, so that no row of the solver appears when they are written."""
    one = nl.ModelBuilder()
    one.default_joint_cfg.armature = 0.02
    FILES[name](one)
    scene = nl.ModelBuilder()
    scene.replicate(one, WORLDS)
    sim = SimulationContext(scene.finalize("cpu"), dt=1.0 / 500.0, evaluator="general")
    cfg = ImplicitActuatorCfg(".*", stiffness=20.0, damping=1.0, friction=0.02, velocity_limit_sim=50.0)
    robot = Articulation(sim, one.articulation_label[0], actuators={"all": cfg})
    robot.write_joint_position_limit_to_sim(np.clip(robot.data.numpy.joint_pos_limits, -3.0, 3.0))
    return robot


def positive(rng, *shape: int) -> np.ndarray:
    return rng.uniform(0.1, 0.5, shape)


def signed(rng, *shape: int) -> np.ndarray:
    return rng.uniform(-0.4, 0.4, shape)


def inertias(rng, rows: int, columns: int, _: int) -> np.ndarray:
    return np.array([[random_inertia(rng).ravel() for _ in range(columns)] for _ in range(rows)])


def ranges(rng, *shape: int) -> np.ndarray:
    return np.stack([-positive(rng, *shape[:-1]), positive(rng, *shape[:-1])], axis=-1)


WRITES = {
    "set_joint_position_target": ("joint_pos_target", signed),
    "set_joint_velocity_target": ("joint_vel_target", signed),
    "set_joint_effort_target": ("joint_effort_target", signed),
    "write_joint_position_to_sim": ("joint_pos", signed),
    "write_joint_velocity_to_sim": ("joint_vel", signed),
    "write_joint_stiffness_to_sim": ("joint_stiffness", positive),
    "write_joint_damping_to_sim": ("joint_damping", positive),
    "write_joint_armature_to_sim": ("joint_armature", positive),
    "write_joint_effort_limit_to_sim": ("joint_effort_limits", positive),
    "write_joint_velocity_limit_to_sim": ("joint_vel_limits", positive),
    "write_joint_friction_to_sim": ("joint_friction_coeff", positive),
    "write_joint_friction_coefficient_to_sim": ("joint_friction_coeff", positive),
    "write_joint_position_limit_to_sim": ("joint_pos_limits", ranges),
    "write_joint_limits_to_sim": ("joint_limits", ranges),
    "write_body_mass_to_sim": ("body_mass", positive),
    "write_body_com_to_sim": ("body_com_pos_b", signed),
    "write_body_inertia_to_sim": ("body_inertia", inertias),
    "set_fixed_tendon_stiffness": ("fixed_tendon_stiffness", positive),
    "set_fixed_tendon_damping": ("fixed_tendon_damping", positive),
    "set_fixed_tendon_limit_stiffness": ("fixed_tendon_limit_stiffness", positive),
    "set_fixed_tendon_position_limit": ("fixed_tendon_pos_limits", ranges),
    "set_fixed_tendon_limit": ("fixed_tendon_limit", ranges),
    "set_fixed_tendon_rest_length": ("fixed_tendon_rest_length", signed),
    "set_fixed_tendon_offset": ("fixed_tendon_offset", signed),
    "set_spatial_tendon_stiffness": ("spatial_tendon_stiffness", positive),
    "set_spatial_tendon_damping": ("spatial_tendon_damping", positive),
    "set_spatial_tendon_limit_stiffness": ("spatial_tendon_limit_stiffness", positive),
    "set_spatial_tendon_offset": ("spatial_tendon_offset", signed),
}
"""What is read back exactly: its name, and what makes values."""

ROOTS = {
    f"write_root_{frame}{part}_to_sim": (f"root_{frame}{name}_w", numbers)
    for frame in ("", "link_", "com_")
    for part, name, numbers in (
        ("pose", "pose", slice(0, 7)),
        ("velocity", "vel", slice(7, 13)),
        ("state", "state", slice(0, 13)),
    )
}
"""What is read back of roots within rounding, and its part of a state."""


def test_all_methods_are_here():
    others = {"write_data_to_sim", "set_debug_vis", "set_visibility", "set_external_force_and_torque"}
    others |= {"write_joint_state_to_sim"} | {f"write_{kind}_tendon_properties_to_sim" for kind in ("fixed", "spatial")}
    every = {name for name in dir(Articulation) if name.startswith(("set_", "write_"))}
    assert every == others | WRITES.keys() | ROOTS.keys()


def arrays(robot) -> dict[str, np.ndarray]:
    """All arrays of joints, bodies and tendons in the model, the state and the control, without inverses, which follow from masses."""
    sim = robot.sim
    sim.forward()
    found = {}
    for part in (sim.model, sim.state, sim.control):
        for name, value in vars(part).items():
            if name.startswith(("joint_", "body_", "tendon_")) and hasattr(value, "numpy") and "_inv_" not in name:
                found[f"{type(part).__name__}.{name}"] = value.numpy().copy()
    return found


def check_others(before: dict, after: dict, others: np.ndarray, told: str) -> None:
    """Other worlds keep every bit."""
    for name, old in before.items():
        if not np.array_equal(old, after[name]):
            new, old = (x.reshape(WORLDS, -1)[others] for x in (after[name], old))
            np.testing.assert_array_equal(new, old, err_msg=f"{told} {name}")


def write_root(robot, rng, method: str, envs, rows) -> None:
    """Writes random poses or velocities of roots, and reads them back."""
    name, numbers = ROOTS[method]
    values = random_states(rng, len(rows))[:, numbers]
    if robot.is_fixed_base and numbers.stop > 7:
        kept = arrays(robot)
        with pytest.raises(ValueError, match="free joint"):
            getattr(robot, method)(values, envs)
        check_others(kept, arrays(robot), np.arange(WORLDS), method)
        return
    getattr(robot, method)(values, envs)
    found = getattr(robot.data, name).numpy()[rows]
    if numbers.start == 0:
        values[:, 3:7] *= np.sign((found[:, 3:7] * values[:, 3:7]).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found, values, atol=5e-6)


def write_some(robot, rng, method: str, envs, rows) -> None:
    """Writes random numbers of chosen joints, bodies or tendons, and reads them back."""
    name, make = WRITES[method]
    kind = re.match("(?:set|write)_(joint|body|fixed_tendon|spatial_tendon)_", method)[1]
    wanted = getattr(robot.data, name).numpy().copy()
    wanted = wanted.reshape(*wanted.shape[:2], *([9] if wanted.ndim == 4 else wanted.shape[2:]))
    ids, columns = chosen(rng, wanted.shape[1])
    values = make(rng, len(rows), len(columns), *wanted.shape[2:]).astype(np.float32)
    getattr(robot, method)(values, **{f"{kind}_ids": ids, "env_ids": envs})
    wanted[np.ix_(rows, columns)] = values
    if "tendon" in kind:
        getattr(robot, f"write_{kind}_properties_to_sim")(ids, envs)
        # a reset reads the numbers of the model again
        robot.reset(envs)
    np.testing.assert_array_equal(getattr(robot.data, name).numpy().reshape(wanted.shape), wanted)


def steps(robot, commands: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays after some steps."""
    for targets in commands:
        robot.set_joint_position_target(targets)
        robot.write_data_to_sim()
        robot.sim.step()
    return arrays(robot)


@pytest.mark.parametrize(
    "name", [x if x == "double_pendulum" else pytest.param(x, marks=pytest.mark.slow) for x in FILES]
)
def test_numbers_come_back_on_random_selections_and_other_worlds_do_not_see_them(rng, name):
    robot = robot_of(name)
    sim, joints = robot.sim, robot.num_joints
    robot.write_joint_state_to_sim(*signed(rng, 2, WORLDS, joints))
    if not robot.is_fixed_base:
        robot.write_root_velocity_to_sim(signed(rng, WORLDS, 6))
    commands = signed(rng, 3, WORLDS, joints)
    robot.reset()
    start = {n: getattr(sim.state, n).numpy().copy() for n in ("joint_q", "joint_qd", "joint_qdd")}
    reference = steps(robot, commands)
    for n, values in start.items():
        getattr(sim.state, n).assign(values)
    robot.reset()
    robot.write_joint_position_to_sim(robot.data.joint_pos)  # bodies follow the coordinates
    envs, rows = chosen(rng, WORLDS)
    while len(rows) == WORLDS:
        envs, rows = chosen(rng, WORLDS)
    others = np.setdiff1d(np.arange(WORLDS), rows)
    methods = [m for m in WRITES if "tendon" not in m or getattr(robot.data, WRITES[m][0]).size] + [*ROOTS]
    for method in rng.permutation(methods):
        before = arrays(robot)
        (write_root if method in ROOTS else write_some)(robot, rng, method, envs, rows)
        check_others(before, arrays(robot), others, method)
    check_others(reference, steps(robot, commands), others, "steps")
    robot.reset_to(envs)
    defaults = robot.data.numpy.default_joint_pos
    np.testing.assert_array_equal(robot.data.joint_pos.numpy()[rows], defaults[rows])
    check_others(reference, arrays(robot), others, "reset")
