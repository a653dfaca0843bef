"""The project's robots and scenes have consistent data and can be simulated."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
import warp as wp

import newton_like.robot as rd
from newton_like import assets, eval_fk, eval_mass_matrix
from newton_like.dynamics import mechanical_energy
from newton_like.geometry import inertia
from newton_like.geometry.shapes import mass_properties
from newton_like.geometry.transforms import quat_from_axis_angle, transform
from newton_like.model.builder.builder import ModelBuilder
from newton_like.types import GeoType
from tests.support.reference import Tree, body_poses, pose_matrix
from tests.support.simulate import Simulation


def test_the_quadruped_weighs_what_its_comments_say():
    """The inertias in the file, from the primitives in its comments."""
    builder = ModelBuilder()
    report = builder.add_urdf(assets.path("quadruped.urdf"))
    assert not report.remarks and not report.not_understood
    assert sum(builder.body_mass) == pytest.approx(12.0, rel=1e-12)
    across = quat_from_axis_angle([1, 0, 0], math.pi / 2)

    def solid(kind, scale, mass, place=(0, 0, 0), turn=(0, 0, 0, 1)):
        volume, com, moments = mass_properties(kind, scale, 1.0)
        return inertia.transform(mass, com, moments * mass / volume, transform(place, turn))

    for leg in ("fl", "fr", "rl", "rr"):
        left = 1.0 if leg[1] == "l" else -1.0
        expected = {
            "trunk": [solid(GeoType.BOX, (0.2, 0.08, 0.05), 5.6)],
            f"{leg}_hip": [solid(GeoType.CYLINDER, (0.045, 0.03, 0), 0.6, (0, 0.03 * left, 0), across)],
            f"{leg}_thigh": [
                solid(GeoType.CYLINDER, (0.045, 0.02, 0), 0.55, (0, 0.02 * left, 0), across),
                solid(GeoType.CYLINDER, (0.02, 0.1, 0), 0.25, (0, 0, -0.1)),
            ],
            f"{leg}_calf": [solid(GeoType.CYLINDER, (0.012, 0.1, 0), 0.15, (0, 0, -0.1))],
            f"{leg}_foot": [solid(GeoType.SPHERE, (0.02, 0, 0), 0.05)],
        }
        for name, parts in expected.items():
            mass, com, moments = inertia.combine(parts)
            body = report.links[name]
            assert builder.body_mass[body] == pytest.approx(mass)
            # The file has five digits.
            assert np.allclose(builder.body_com[body], com, atol=1e-6)
            assert np.allclose(builder.body_inertia[body], moments, rtol=1e-4, atol=1e-4 * np.max(moments))


def test_the_quadruped_stands_where_its_comments_say():
    builder = ModelBuilder()
    report = builder.add_urdf(assets.path("quadruped.urdf"), floating=True)
    for leg in ("fl", "fr", "rl", "rr"):
        for part, angle in (("thigh", 0.8), ("calf", -1.6)):
            builder.joint_q[builder.joint_q_start[report.joints[f"{leg}_{part}"]]] = angle
    tree = Tree.from_model(builder.finalize(device="cpu", dtype=wp.float64))
    placed = [pose_matrix(pose) for pose in body_poses(tree, np.array(builder.joint_q))]
    height = 0.4 * math.cos(0.8)
    for leg, x, y in (("fl", 0.18, 0.12), ("fr", 0.18, -0.12), ("rl", -0.18, 0.12), ("rr", -0.18, -0.12)):
        assert np.allclose(placed[report.links[f"{leg}_foot"]][:3, 3], (x, y, -height), atol=1e-12)
    # Only the feet touch the ground then.
    ground = -height - 0.02
    for name, shapes in report.shapes.items():
        for shape in shapes:
            low = placed[report.links[name]] @ pose_matrix(np.array(builder.shape_transform[shape]))
            reach = np.linalg.norm(np.array(builder.shape_scale[shape]) * np.abs(low[2, :3]))
            assert low[2, 3] - reach > ground + 0.005 or "foot" in name
    assert builder.joint_effort_limit[6] == 35.0 and builder.joint_velocity_limit[6] == 25.0


def test_the_arms_inertias_are_those_of_its_shapes():
    """The comments of the file give every shape's mass; the shapes themselves are read from the file."""
    builder = ModelBuilder()
    report = builder.add_urdf(assets.path("arm.urdf"), hide_visuals=True)
    assert not report.remarks and not report.not_understood
    masses = {
        "base": [4.0], "turret": [3.0, 0.8], "upper_arm": [2.5, 1.2], "sleeve": [1.6], "forearm": [1.4, 0.8],
        "cuff": [1.0], "wrist": [0.8, 0.2], "hand": [0.25, 0.35, 0.05, 0.05],
    }  # fmt: skip
    assert set(masses) == set(report.links)
    assert sum(builder.body_mass) == pytest.approx(18.0, rel=1e-12)
    for name, parts in masses.items():
        solids = []
        for shape, part in zip(report.shapes[name], parts, strict=True):
            volume, com, moments = mass_properties(builder.shape_type[shape], builder.shape_scale[shape], 1.0)
            solids.append(inertia.transform(part, com, moments * part / volume, builder.shape_transform[shape]))
        mass, com, moments = inertia.combine(solids)
        body = report.links[name]
        # The file has nine digits.
        assert builder.body_mass[body] == pytest.approx(mass, rel=1e-12)
        assert np.allclose(builder.body_com[body], com, atol=1e-9)
        assert np.allclose(builder.body_inertia[body], moments, rtol=0, atol=1e-8 * np.max(moments))


def arms() -> tuple[ModelBuilder, ModelBuilder]:
    """The arm of the URDF file, with the gains that its comment names, and that of the USD file."""
    urdf, usd = ModelBuilder(), ModelBuilder()
    urdf.default_joint_cfg.target_ke, urdf.default_joint_cfg.target_kd = 800.0, 40.0
    urdf.add_urdf(assets.path("arm.urdf"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = usd.add_usd(assets.path("arm.usda"))
    assert not report.remarks and not report.not_understood
    return urdf, usd


def test_the_arm_is_the_same_in_urdf_and_usd(rng):
    """Mass matrix, poses, limits and drives agree to 1e-6, the precision of float32 attributes of a USD file."""
    made = [builder.finalize("cpu", dtype=wp.float64) for builder in arms()]
    names = [[label.rpartition("/")[2] for label in model.joint_label][1:] for model in made]
    assert names[0] == names[1] == ["turn", "shoulder", "roll", "elbow", "twist", "wrist", "flange"]
    for name in (
        "joint_limit_lower", "joint_limit_upper", "joint_effort_limit", "joint_velocity_limit", "joint_damping",
        "joint_friction", "joint_armature", "joint_stiffness", "joint_target_ke", "joint_target_kd", "joint_target_q",
        "joint_target_qd", "joint_target_mode", "joint_qd", "body_mass",
    ):  # fmt: skip
        expected, found = (getattr(model, name).numpy() for model in made)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12, err_msg=name)
    # Angles of the bodies' poses, from float32 quaternions.
    np.testing.assert_allclose(made[1].joint_q.numpy(), made[0].joint_q.numpy(), rtol=0, atol=1e-7)
    assert made[0].joint_target_ke.numpy().tolist() == [800.0] * 7
    low, high = made[0].joint_limit_lower.numpy(), made[0].joint_limit_upper.numpy()
    assert np.all(low < 0.0) and np.all(high > 0.0) and made[0].joint_effort_limit.numpy()[0] == 120.0
    for _ in range(5):
        q = rng.uniform(low, high)
        matrices, hands = [], []
        for model in made:
            state = model.state()
            state.joint_q.assign(q)
            matrices.append(eval_mass_matrix(model, state).numpy()[0])
            eval_fk(model, state.joint_q, state.joint_qd, state)
            hands.append(pose_matrix(state.body_q.numpy()[-1]))
        np.testing.assert_allclose(matrices[1], matrices[0], rtol=0, atol=1e-6 * np.abs(matrices[0]).max())
        np.testing.assert_allclose(hands[1], hands[0], rtol=0, atol=1e-6)


def test_the_arm_goes_where_it_is_told(rng):
    """Drives hold targets against gravity, up to errors by dry friction and by their finite gains."""
    simulation = Simulation(arms()[1], dt=1.0 / 240.0)
    low, high = (getattr(simulation.model, f"joint_limit_{end}").numpy() for end in ("lower", "upper"))
    target = rng.uniform(0.6 * low, 0.6 * high)
    simulation.control.joint_target_q.assign(target.astype(np.float32))
    # The widest way, 3.6 rad at 2 rad/s, takes 1.8 s.
    simulation.run(3.0)
    mass, gravity = simulation.model.body_mass.numpy(), 9.81
    # The bodies above the shoulder, 10.2 kg, stretched out horizontally: their centre of mass is less than 0.5 m away.
    softness = mass[2:].sum() * gravity * 0.5 / 800.0
    assert np.all(np.abs(simulation.q[0] - target) < softness + 0.5 / 800.0 + 0.002)
    assert np.all(np.abs(simulation.qd[0]) < 0.02)


def cart_pole() -> ModelBuilder:
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = builder.add_usd(assets.path("cartpole.usda"))
    assert not report.remarks and not report.not_understood
    return builder


def test_the_cart_poles_mass_matrix_is_that_of_the_textbook(rng):
    """``[[M + m, m l cos q], [m l cos q, I + m l^2]]`` with a pole whose mass follows from its density."""
    builder = cart_pole()
    radius, length, density = 0.01, 0.98, 636.62
    volume, _, moments = mass_properties(GeoType.CAPSULE, (radius, 0.5 * length, 0.0), 1.0)
    assert volume == pytest.approx(math.pi * radius**2 * (length + 4.0 / 3.0 * radius), rel=1e-12)
    mass, turning = density * volume, density * moments[1, 1]
    assert mass == pytest.approx(0.1987, abs=5e-5)
    model = builder.finalize("cpu", dtype=wp.float64)
    assert model.joint_limit_lower.numpy()[0] == pytest.approx(-1.8) and model.joint_effort_limit.numpy()[0] == 40.0
    # It starts 5 degrees off, in a float32 attribute.
    np.testing.assert_allclose(model.joint_q.numpy(), [0.0, math.radians(5)], atol=1e-6)
    state, angle = model.state(), rng.uniform(-np.pi, np.pi)
    state.joint_q.assign([0.3, angle])
    coupling = mass * 0.5 * math.cos(angle)
    expected = [[1.0 + mass, coupling], [coupling, turning + mass * 0.25]]
    # float32 attributes.
    np.testing.assert_allclose(eval_mass_matrix(model, state).numpy()[0], expected, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_the_cart_pole_falls_over_and_swings(rng):
    """Momentum along the rail changes by the cart's damping alone; energy only falls."""
    simulation = Simulation(cart_pole(), dt=1.0 / 960.0, dtype=wp.float64)
    start = rng.uniform(0.05, 0.2)
    simulation.state.joint_q.assign([0.0, start])
    eval_fk(simulation.model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)

    def watch():
        state = simulation.state
        momentum = simulation.model.body_mass.numpy() @ state.body_qd.numpy()[:, 0]
        return [*simulation.q[0], momentum, float(mechanical_energy(simulation.model, state).numpy().sum())]

    cart, pole, momentum, energy = simulation.run(2.0, watch).T
    # It falls to where it began and swings to the other side: past 5/6 of a turn.
    assert pole.max() > 5.0 and np.abs(cart).max() < 0.5
    # Both sides start at zero; the step's error is of the order dt * 2 N.
    np.testing.assert_allclose(momentum, -0.1 * cart, atol=2.0 / 960.0)
    swing = 2.0 * 0.1987 * 9.81 * 0.5
    assert np.all(np.diff(energy) < 1e-3 * swing) and energy[-1] < energy[0]


def test_the_humanoid_weighs_what_its_comments_say():
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = builder.add_mjcf(assets.path("humanoid.xml"))
    assert not report.remarks and not report.not_understood
    sides = {"thigh": 5.0, "shank": 2.5, "foot": 0.9, "upper_arm": 1.6, "forearm": 1.4}
    expected = {"pelvis": 6.0, "torso": 17.0}
    expected |= {f"{side}_{part}": mass for side in ("left", "right") for part, mass in sides.items()}
    assert set(report.links) == {"world", *expected}
    for name, mass in expected.items():
        assert builder.body_mass[report.links[name]] == pytest.approx(mass, rel=1e-12), name
    assert builder.joint_dof_count == 27 and len(report.actuators) == 21
    knee, shoulder = report.dofs["left_knee"], report.dofs["right_shoulder_roll"]
    assert builder.joint_limit_upper[knee] == pytest.approx(math.radians(140)) and builder.joint_target_ke[knee] == 600
    assert builder.joint_effort_limit[shoulder] == 50.0
    assert builder.joint_limit_lower[shoulder] == pytest.approx(math.radians(-120))


def test_the_humanoid_stands():
    """In its keyframe, held by its position servos, for two seconds; and its soles touch the ground there at once."""
    builder = ModelBuilder()
    report = builder.add_mjcf(assets.path("humanoid.xml"), keyframe="standing")
    (key,) = report.keyframes
    for actuator, control in zip(report.actuators, key.ctrl, strict=True):
        assert actuator.drive == "joint_target_q"
        builder.joint_target_q[actuator.index] = actuator.factor * control + actuator.offset
    simulation = Simulation(builder, dt=1.0 / 240.0)
    state = simulation.state
    eval_fk(simulation.model, state.joint_q, state.joint_qd, state)
    feet = [report.links[f"{side}_foot"] for side in ("left", "right")]
    # The soles are 0.06 m below the ankles; the keyframe has four digits.
    assert np.allclose(state.body_q.numpy()[feet, 2], 0.06, atol=1e-4)
    path = simulation.run(2.0, lambda: simulation.q[0, :7])
    # The servos are not stiff: hips and ankles give way by a few hundredths of a radian.
    assert np.all(np.abs(path[:, :2]) < 0.05) and np.all(np.abs(path[:, 2] - key.qpos[2]) < 0.02)
    upright = 1.0 - 2.0 * (path[:, 3] ** 2 + path[:, 4] ** 2)
    assert np.all(upright > math.cos(math.radians(6)))
    assert np.abs(simulation.qd).max() < 0.05
    # All contacts are with the ground; otherwise the solver would raise an error.
    assert simulation.solver.check(state).all()


@pytest.fixture(scope="module")
def warehouse() -> tuple[ModelBuilder, object]:
    """The warehouse, turned to z up."""
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = builder.add_usd(assets.path("warehouse.usda"))
    return builder, report


def test_the_warehouse_is_metres_and_kilograms(warehouse):
    """Sizes in centimetres, densities in kg/cm^3 and the upward y axis of the file have become those of the engine."""
    builder, report = warehouse
    assert not report.remarks and not report.not_understood
    assert report.meters_per_unit == 0.01 and report.up_axis.name == "Y"
    model = builder.finalize("cpu")
    np.testing.assert_allclose(model.gravity.numpy(), [[0.0, 0.0, -9.81]], atol=1e-6)
    expected = {
        # Boards 5 x 0.16 x 0.02 x 0.8 and runners 3 x 1.2 x 0.12 x 0.1 m^3 of 600 kg/m^3.
        "Loose/Pallet": 600.0 * (5 * 0.16 * 0.02 * 0.8 + 3 * 1.2 * 0.12 * 0.1),
        "Loose/StandingCarton": 150.0 * 0.6 * 0.4 * 0.4,
        "Loose/SlidingCarton": 150.0 * 0.4 * 0.3 * 0.3,
        "Loose/FallingCarton": 150.0 * 0.3 * 0.2 * 0.2,
        "Loose/StandingBarrel": 55.0,
        "Door/Leaf": 25.0,
        "Trolley": 40.0,
        "Lamps/Left": 3.0,
        "Conveyor/TenthRoller": 4.0,
    }
    for name, mass in expected.items():
        body = report.bodies[f"/Warehouse/{name}"]
        # float32 attributes.
        assert builder.body_mass[body] == pytest.approx(mass, rel=1e-6), name
    m, r, h = 55.0, 0.19, 0.62
    drum = np.array(builder.body_inertia[report.bodies["/Warehouse/Loose/StandingBarrel"]])
    across = m * (r**2 / 4 + h**2 / 12)
    np.testing.assert_allclose(drum, np.diag([across, 0.5 * m * r**2, across]), rtol=1e-6, atol=1e-9)
    # Everything is in the hall: 10 m by 7 m, and 3.5 m high. The floor has no end.
    poses, bodies = model.body_q.numpy(), model.shape_body.numpy()
    for shape, kind in enumerate(model.shape_type.numpy()):
        if kind != GeoType.PLANE:
            place = pose_matrix(model.shape_transform.numpy()[shape])
            if bodies[shape] >= 0:
                place = pose_matrix(poses[bodies[shape]]) @ place
            x, y, z = place[:3, 3]
            assert abs(x) < 5.0 and abs(y) < 3.5 and 0.0 < z < 3.5, model.shape_label[shape]
    assert len(report.shapes["/Warehouse/Racks/Left/Boards/High"]) == 1
    hinge = builder.joint_qd_start[report.joints["/Warehouse/Door/hinge"]]
    assert builder.joint_target_ke[hinge] == pytest.approx(30.0, rel=1e-6)
    assert builder.joint_target_kd[hinge] == pytest.approx(25.0, rel=1e-6)
    roller = builder.joint_qd_start[report.joints["/Warehouse/Conveyor/FirstRoller/axle"]]
    assert builder.joint_target_kd[roller] == pytest.approx(0.5, rel=1e-6)
    assert builder.joint_effort_limit[roller] == pytest.approx(10.0, rel=1e-6)


def test_the_warehouse_moves_as_it_says(warehouse):
    """Each mechanism follows its law: a brake, a closer, motors, friction, rolling; falling bodies come to rest on the floor."""
    builder, report = warehouse
    # Cartons might meet other things than the floor, and do not.
    simulation = Simulation(builder, dt=1.0 / 240.0, unsupported_contacts="ignore")
    model, state = simulation.model, simulation.state

    def body(name):
        return report.bodies[f"/Warehouse/{name}"]

    def dof(name):
        return builder.joint_qd_start[report.joints[f"/Warehouse/{name}"]]

    def watch():
        return np.concatenate([state.body_q.numpy()[:, :3].ravel(), simulation.qd[0]])

    start = state.body_q.numpy()[:, :3].astype(float)
    seen = simulation.run(3.0, watch)
    places = seen[:, : 3 * model.body_count].reshape(len(seen), -1, 3)
    velocities = seen[:, 3 * model.body_count :]
    assert simulation.solver.check(state).all()

    slope = math.atan2(60.0, 200.0)
    # Down at m g sin(slope) / b once the brake, which takes m / b = 0.2 s to, has caught it; half a percent left at 1.1 s.
    speed = 40.0 * 9.81 * math.sin(slope) / 200.0
    assert velocities[round(1.1 * 240), dof("Trolley/rail")] == pytest.approx(-speed, rel=0.01)
    # At the end of its rail, 1.25 m down, but for the softness of the limit.
    assert np.linalg.norm(places[-1, body("Trolley")] - start[body("Trolley")]) == pytest.approx(1.25, abs=2e-3)

    closing = velocities[:, dof("Door/hinge")]
    assert closing.min() < -0.5 and abs(closing[-1]) < 0.05
    rollers = [dof(f"Conveyor/{name}Roller/axle") for name in ("First", "Fifth", "Tenth")]
    # Degrees a second; the motors have no load.
    assert np.allclose(velocities[-1, rollers], -math.pi, rtol=1e-3)

    def way(name):
        return np.linalg.norm(places[-1, body(name)] - start[body(name)])

    # v^2 / (2 mu g), mu the mean of cardboard and concrete; the law of a step takes half a step's way off or adds it.
    assert way("Loose/SlidingCarton") == pytest.approx(4.0 / (2 * 0.6 * 9.81), abs=0.01)
    # Rolls on without loss.
    assert way("Loose/RollingBarrel") == pytest.approx(3.0 * 0.57, rel=0.01)
    resting = {
        "LoadedPallet/Pallet": 0.0, "LoadedPallet/LeftCarton": 0.34, "Loose/Pallet": 0.0, "Loose/StandingCarton": 0.2,
        "Loose/TumblingCarton": 0.15, "Loose/FallingCarton": 0.1, "Loose/SlidingCarton": 0.15,
        "Loose/StandingBarrel": 0.31, "Loose/OtherBarrel": 0.31, "Loose/RollingBarrel": 0.19,
    }  # fmt: skip
    for name, height in resting.items():
        # Contacts give way by less than a millimetre under these weights.
        assert places[-1, body(name), 2] == pytest.approx(height, abs=2e-3), name
        if name != "Loose/RollingBarrel":
            assert np.abs(state.body_qd.numpy()[body(name)]).max() < 0.02, name
    # The lamps swing through on hooks that stay where they are.
    for name, x in (("Left", -1.9), ("Right", 1.9)):
        assert np.allclose(places[:, body(f"Lamps/{name}")], (x, -0.6, 3.3), atol=1e-4)
        assert np.abs(velocities[:, dof(f"Lamps/{name}/hook") : dof(f"Lamps/{name}/hook") + 3]).max() > 0.5


def test_the_wheeled_humanoid_is_symmetric_and_weighs_what_its_page_says(rng):
    """The mirror image of a posture has the mirror image of its centre of mass; arms weigh 8 kg."""
    robot = rd.Robot(rd.load_robot_from_urdf(assets.path("wheeled_humanoid.urdf"), "base"), evaluator="general")
    state, other = robot.make_state(["base"]), robot.make_state(["base"])
    assert robot.compute_total_inertial(state, 0)[3, 3] == pytest.approx(72.0)
    arm = [i for i, name in enumerate(state.link_names) if name.startswith("left_") and "wheel" not in name]
    assert sum(robot.compute_mass(state, i) for i in arm) == pytest.approx(8.0)
    limits = (x(state).clip(-3.0, 3.0) for x in (robot.get_limit_q_lower, robot.get_limit_q_upper))
    q = dict(zip(state.joint_names, rng.uniform(*limits), strict=True))
    # the mirror keeps pitches and the lift, and turns the sign of rolls and yaws
    sides = {"right": "left", "left": "right"}
    mirrored = {}
    for name, x in q.items():
        side, _, rest = name.partition("_")
        twin = f"{sides[side]}_{rest}" if side in sides else name
        mirrored[twin] = -x if "roll" in name or "yaw" in name else x
    state.q, other.q = [q[n] for n in state.joint_names], [mirrored[n] for n in state.joint_names]
    np.testing.assert_allclose(
        robot.compute_center_of_mass(state, 0), robot.compute_center_of_mass(other, 0) * (1, -1, 1), atol=1e-12
    )


def test_assets_are_found_by_name():
    names = [
        "arm.urdf",
        "arm.usda",
        "cartpole.usda",
        "crazyflie.urdf",
        "hexarotor.urdf",
        "humanoid.xml",
        "iris.urdf",
        "quadruped.urdf",
        "warehouse.usda",
        "wheeled_humanoid.urdf",
    ]
    assert all(assets.path(name).is_file() for name in names)
    with pytest.raises(FileNotFoundError, match=rf"'dog\.urdf'.*{', '.join(names)}$"):
        assets.path("dog.urdf")
    with pytest.raises(FileNotFoundError):
        assets.path("../pyproject.toml")


def test_every_asset_says_its_license():
    folder = Path(assets.path("arm.usda")).parent
    files = [p for p in folder.iterdir() if p.suffix in (".urdf", ".xml", ".usda")]
    assert len(files) >= 6
    for file in files:
        assert "SPDX-License-Identifier: Apache-2.0" in "".join(file.read_text().splitlines()[:2]), file.name
        assert file.name in (folder / "README.md").read_text()
