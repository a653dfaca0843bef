"""Several assets of the same worlds: rigid objects, collections, origins, one loop with decimation."""

import numpy as np
import pytest

import newton_like as nl
from newton_like.articulation import (
    Articulation,
    BodyData,
    ImplicitActuatorCfg,
    InteractiveScene,
    RigidObject,
    RigidObjectCollection,
    SimulationContext,
)
from newton_like.solvers import SolverFeatherstone, SolverXPBD
from tests.articulation.robots import add_robot, numbers, random_inertia, random_states, rotation

WORLDS = 6


def add_body(builder: nl.ModelBuilder, rng, label: str) -> None:
    body = builder.add_link(mass=1.5, com=rng.uniform(-0.1, 0.1, 3), inertia=random_inertia(rng), label=f"{label}/body")
    builder.add_articulation([builder.add_joint_free(body, label=f"{label}/free")], label=label)


@pytest.fixture
def scene(rng) -> InteractiveScene:
    one = nl.ModelBuilder()
    add_robot(one, rng)
    for label in ("cube", "ball", "stick"):
        add_body(one, rng, label)
    scene = InteractiveScene.replicate(
        one, WORLDS, env_spacing=3.0, device="cpu", dt=1 / 240, decimation=4, evaluator="general"
    )
    scene.add(
        "robot",
        Articulation(scene.sim, "walker", actuators={"legs": ImplicitActuatorCfg(".*", stiffness=10.0, damping=1.0)}),
    )
    scene.add("cube", RigidObject(scene.sim, "cube"))
    scene.add("others", RigidObjectCollection(scene.sim, {"ball": "ball", "stick": "stick"}))
    return scene


def test_origins_are_those_of_the_worlds(scene):
    origins = numbers(scene.env_origins)
    steps = numbers(scene["robot"].data.root_pos_w)
    np.testing.assert_allclose(steps - steps[:1], origins - origins[:1], atol=1e-6)
    gaps = np.linalg.norm(origins[:, None] - origins, axis=-1)[~np.eye(WORLDS, dtype=bool)]
    assert gaps.min() == pytest.approx(3.0)


def test_a_spacing_is_that_of_the_worlds(rng):
    for up, given in (("Z", (2.0, 2.0, 0.0)), ("Y", (2.0, 0.0, 2.0))):
        one = nl.ModelBuilder(up_axis=up)
        for label in ("cube", "ball"):
            add_body(one, rng, label)
        builder = nl.ModelBuilder(up_axis=up)
        builder.replicate(one, WORLDS, spacing=given)
        sim = SimulationContext(builder.finalize("cpu"))
        cube = RigidObject(sim, "cube")
        own = InteractiveScene.replicate(one, WORLDS, env_spacing=2.0, device="cpu")
        for scene in (InteractiveScene(sim, env_spacing=2.0), own):
            place = (
                numbers(cube.data.root_pos_w)
                if scene.sim is sim
                else numbers(RigidObject(own.sim, "cube").data.root_pos_w)
            )
            np.testing.assert_allclose(
                place - place[0], numbers(scene.env_origins) - numbers(scene.env_origins)[0], atol=1e-5
            )
        with pytest.raises(
            ValueError,
            match=r"env_spacing 3 is not that of the worlds: world 1 is \(2, 0, 0\) from world 0, not \(3, 0, 0\)",
        ):
            InteractiveScene(sim, env_spacing=3.0)
        np.testing.assert_array_equal(InteractiveScene(sim, env_origins=np.ones((WORLDS, 3))).env_origins.numpy(), 1.0)


def test_a_step_of_the_environment_is_its_physics_steps(scene, rng):
    """With decimation, and with the same steps by hand."""
    sim, robot = scene.sim, scene["robot"]
    robot.set_joint_position_target(rng.normal(size=(WORLDS, 4)))
    start = scene.get_state()
    sim.advance(scene)
    after = scene.get_state()
    assert sim.time == pytest.approx(4 / 240)
    scene.reset_to(start)
    robot.set_joint_position_target(robot.data.joint_pos_target)
    by_hand = robot.data.joint_pos_target.numpy().copy()
    assert not by_hand.any()  # a reset clears commands
    again = scene.get_state()
    for name in ("root_pose", "joint_position"):
        np.testing.assert_allclose(
            again["articulation"]["robot"][name], start["articulation"]["robot"][name], atol=1e-6
        )
    assert not np.array_equal(
        after["articulation"]["robot"]["joint_position"], start["articulation"]["robot"]["joint_position"]
    )


def test_free_bodies_fall_under_gravity_and_forces(scene):
    """Closed form: the centre of mass of each body has the acceleration g + F / m, whatever else is in its world."""
    sim, cube, others = scene.sim, scene["cube"], scene["others"]
    force = np.array([3.0, 0.0, 1.5])
    cube.set_external_force_and_torque(force, None, is_global=True)
    others.set_external_force_and_torque(np.stack([force, 0 * force]), None, is_global=True)
    before = [numbers(cube.data.root_com_pos_w), numbers(others.data.object_com_pos_w)]
    for _ in range(6):
        sim.advance(scene)
    t, g = sim.time, np.array([0.0, 0.0, -9.81])
    fallen = numbers(cube.data.root_com_pos_w) - before[0]
    np.testing.assert_allclose(fallen, np.tile(0.5 * (g + force / 1.5) * t * t, (WORLDS, 1)), atol=2e-4)
    moved = numbers(others.data.object_com_pos_w) - before[1]
    np.testing.assert_allclose(moved[:, 0], np.tile(0.5 * (g + force / 1.5) * t * t, (WORLDS, 1)), atol=2e-4)
    np.testing.assert_allclose(moved[:, 1], np.tile(0.5 * g * t * t, (WORLDS, 1)), atol=2e-4)
    np.testing.assert_allclose(
        numbers(cube.data.body_com_acc_w)[:, 0, :3], np.tile(g + force / 1.5, (WORLDS, 1)), atol=1e-3
    )
    assert others.data.object_acc_w.shape == (WORLDS, 2, 6)


def test_objects_of_a_collection_are_written_apart(scene, rng):
    others = scene["others"]
    states = random_states(rng, 2)[:, None]
    before = numbers(others.data.object_link_state_w)
    others.write_object_link_state_to_sim(states, env_ids=[1, 4], object_ids=[1])
    found = numbers(others.data.object_link_state_w)
    np.testing.assert_allclose(rotation(found[[1, 4], 1, 3:7]), rotation(states[:, 0, 3:7]), atol=1e-5)
    np.testing.assert_allclose(
        found[[1, 4], 1][:, [0, 1, 2, *range(7, 13)]], states[:, 0][:, [0, 1, 2, *range(7, 13)]], atol=1e-5
    )
    found[[1, 4], 1] = before[[1, 4], 1]
    np.testing.assert_array_equal(found, before)
    assert others.find_objects("b.*") == ([0], ["ball"])
    np.testing.assert_array_equal(
        others.data.object_quat_w_wxyz.numpy(), others.data.object_quat_w.numpy()[..., [3, 0, 1, 2]]
    )
    others.reset_to([1], [1])
    np.testing.assert_allclose(
        numbers(others.data.object_state_w)[1], numbers(others.data.default_object_state)[1], atol=1e-6
    )


def test_states_relative_to_origins_move_with_them(scene, rng):
    state = scene.get_state(is_relative=True)
    chosen = [0, 5]
    swapped = {
        kind: {name: {k: v[[5, 0]] for k, v in numbers_.items()} for name, numbers_ in assets.items()}
        for kind, assets in state.items()
    }
    scene.reset_to(swapped, chosen, is_relative=True)
    after = scene.get_state(is_relative=True)
    for kind, assets in after.items():
        for name, found in assets.items():
            for key, value in found.items():
                np.testing.assert_allclose(value[chosen], state[kind][name][key][[5, 0]], atol=2e-6)
                np.testing.assert_array_equal(value[1:5], state[kind][name][key][1:5])


def test_a_state_brings_all_assets_back(scene, rng):
    """Robot, rigid object and both objects of the collection, after they fell; bit by bit, in the chosen worlds only."""
    robot, others = scene["robot"], scene["others"]
    others.write_object_state_to_sim(random_states(rng, WORLDS * 2).reshape(WORLDS, 2, 13))
    kept = scene.get_state()
    assert {kind: list(assets) for kind, assets in kept.items()} == {
        "articulation": ["robot"],
        "rigid_object": ["cube"],
        "rigid_object_collection": ["others"],
    }
    scene.sim.advance(scene)
    moved = scene.get_state()
    chosen, rest = [0, 3], [1, 2, 4, 5]
    part = {
        kind: {name: {k: v[chosen] for k, v in found.items()} for name, found in assets.items()}
        for kind, assets in kept.items()
    }
    scene.reset_to(part, chosen)
    after = scene.get_state()
    for kind, assets in after.items():
        for name, found in assets.items():
            for key, value in found.items():
                np.testing.assert_allclose(value[chosen], kept[kind][name][key][chosen], atol=1e-5)
                np.testing.assert_array_equal(value[rest], moved[kind][name][key][rest])
                assert (value[chosen] != moved[kind][name][key][chosen]).any()
    # what is wrong is found before anything is written
    before = robot.sim.state.joint_q.numpy().copy()
    pose = part["rigid_object_collection"]["others"]["object_pose"]
    for wrong, error, told in (
        ({"others": {"object_pose": pose}}, KeyError, "'others' has no 'object_velocity'"),
        (
            {"others": {"object_pose": pose[:1], "object_velocity": np.zeros((2, 2, 6))}},
            ValueError,
            r"\(1, 2, 7\).*\(2, 2, 7\)",
        ),
        ({"others": {"object_pose": 0.0 * pose, "object_velocity": np.zeros((2, 2, 6))}}, ValueError, "quaternion"),
        ({"cube": {}}, KeyError, "no rigid_object_collection 'cube'"),
    ):
        with pytest.raises(error, match=told):
            scene.reset_to({**part, "rigid_object_collection": wrong}, chosen)
        np.testing.assert_array_equal(robot.sim.state.joint_q.numpy(), before)
    with pytest.raises(ValueError, match=r"root_pose has shape \(6, 7\); it must be \(2, 7\)"):
        scene.reset_to(kept, chosen, is_relative=True)
    with pytest.raises(KeyError, match=r"kind of assets 'rigid_objects'.*'rigid_object'"):
        scene.reset_to({"rigid_objects": {}})


def test_frames_and_composers_of_a_collection_are_those_of_its_objects(scene, rng):
    others = scene["others"]
    states = random_states(rng, WORLDS * 2).reshape(WORLDS, 2, 13)
    for frame in ("link", "com"):
        for name, values in (("pose", states[..., :7]), ("velocity", states[..., 7:])):
            getattr(others, f"write_object_{frame}_{name}_to_sim")(values[[1, 2]], [1, 2])
            found = numbers(getattr(others.data, f"object_{frame}_{name[:4] if name == 'pose' else 'vel'}_w"))[[1, 2]]
            if name == "pose":
                np.testing.assert_allclose(rotation(found[..., 3:]), rotation(states[[1, 2]][..., 3:7]), atol=1e-5)
            np.testing.assert_allclose(found[..., :3], values[[1, 2]][..., :3], atol=1e-5)
    forces, torques, points = rng.normal(size=(3, 2, 2, 3))
    for name in ("permanent_wrench_composer", "instantaneous_wrench_composer"):
        for is_global in (False, True):
            getattr(others, name).set_forces_and_torques(forces, torques, points, None, [0, 4], is_global)
            getattr(others, name).add_forces_and_torques(forces[:, :1], None, body_ids=[1], env_ids=[0, 4])
            by_hand = []
            for k, each in enumerate(others.objects.values()):
                by_hand.append(numbers(getattr(each, name).composed))
                own = getattr(each, name)
                own.reset()
                one = [x[:, k : k + 1] for x in (forces, torques, points)]
                own.set_forces_and_torques(*one, None, [0, 4], is_global)
                if k == 1:
                    own.add_forces_and_torques(forces[:, :1], None, env_ids=[0, 4])
                np.testing.assert_array_equal(by_hand[-1], numbers(own.composed))
                assert by_hand[-1][[0, 4]].any() and not by_hand[-1][[1, 2, 3, 5]].any()
        assert getattr(others, name).active
        getattr(others, name).reset()
        assert not getattr(others, name).active


def test_data_of_a_collection_are_those_of_its_objects_in_every_step(scene):
    """All properties of roots and bodies, read again after each step."""
    others = scene["others"]
    own = {"projected_gravity_b": "projected_gravity_b", "heading_w": "heading_w"}
    for name in dir(BodyData):
        for start in ("root_", "body_"):
            if name.startswith(start) and name != "body_names":
                own.setdefault(name.replace(start, "object_", 1), name)
    assert len(own) > 40
    assert set(own) <= set(dir(others.data))
    assert all(hasattr(others.data, name) for name in dir(others.data) if not name.endswith("wrench_b"))
    for _ in range(3):
        scene.sim.advance(scene)
        for name, source in own.items():
            for end in ("", "_wxyz") if "quat" in name or "pose" in name else ("",):
                both = [numbers(getattr(each.data, source + end)) for each in others.objects.values()]
                both = [x[:, 0] if source.startswith("body_") else x for x in both]
                np.testing.assert_array_equal(
                    numbers(getattr(others.data, name + end)), np.stack(both, axis=1), err_msg=name
                )


def test_defaults_of_a_collection_lead_its_reset(scene, rng):
    others = scene["others"]
    start = random_states(rng, WORLDS * 2).reshape(WORLDS, 2, 13)
    others.data.default_object_state = start
    before = numbers(others.data.object_state_w)
    others.reset_to([2, 4], ["ball", "stick"].index("stick"))
    found = numbers(others.data.object_state_w)
    np.testing.assert_allclose(rotation(found[[2, 4], 1, 3:7]), rotation(start[[2, 4], 1, 3:7]), atol=1e-5)
    np.testing.assert_allclose(found[[2, 4], 1, 7:], start[[2, 4], 1, 7:], atol=1e-5)
    np.testing.assert_array_equal(found[:, 0], before[:, 0])
    with pytest.raises(AttributeError, match="write_object_pose_to_sim"):
        others.data.object_pos_w = 0.0
    with pytest.raises(ValueError, match="quaternion"):
        others.write_object_state_to_sim(np.zeros(13))
    with pytest.raises(TypeError, match=r"\['ball'\], or a RigidObject"):
        RigidObjectCollection(scene.sim, "ball")
    with pytest.raises(ValueError, match="objects 'first' and 'second' are both 'ball'; give each object its own"):
        RigidObjectCollection(scene.sim, {"first": "ball", "cube": "cube", "second": "b*"})


def test_a_scene_takes_a_solver_by_its_class(rng):
    """`replicate` makes the model, so that solvers are made by a class or a function."""
    one = nl.ModelBuilder()
    add_body(one, rng, "cube")

    def scene_with(**options):
        scene = InteractiveScene.replicate(one, 2, device="cpu", **options)
        return scene, RigidObject(scene.sim, "cube")

    scene, cube = scene_with(solver=SolverXPBD, iterations=3)
    assert isinstance(scene.sim.solver, SolverXPBD) and scene.sim.solver.iterations == 3
    speeds = []
    for solver in (None, SolverFeatherstone, lambda model, **others: SolverFeatherstone(model, **others)):
        scene, cube = scene_with(solver=solver, evaluator="general", iterations=3)
        cube.write_body_mass_to_sim(2.0)
        scene.sim.advance(cube)
        assert scene.sim.solver.iterations == 3
        speeds.append(numbers(cube.data.root_lin_vel_w))
    assert np.array_equal(speeds[0], speeds[1]) and np.array_equal(speeds[0], speeds[2])
    with pytest.raises(TypeError, match=r"solver must be a solver, or a class or function that makes one.*'xpbd'"):
        scene_with(solver="xpbd")
    with pytest.raises(TypeError, match="made 3, which is no solver"):
        _ = scene_with(solver=lambda model: 3)[0].sim.solver
    with pytest.raises(ValueError, match="the solver is one of another model"):
        _ = scene_with(solver=lambda model: cube.sim.solver)[0].sim.solver
    with pytest.raises(TypeError, match="iterations"):
        _ = scene_with(solver=SolverXPBD, itterations=3)[0].sim.solver


def test_assets_of_one_model_share_a_context(scene):
    model = scene.sim.model
    assert Articulation(model, "walker").sim is scene.sim is RigidObject(model, "cube").sim
    assert SimulationContext.of(model) is scene.sim


def test_bad_scenes_are_named(scene):
    with pytest.raises(KeyError, match=r"'robo'.*'robot'"):
        scene["robo"]
    with pytest.raises(ValueError, match=r"asset.*'cube'"):
        scene.add("cube", scene["cube"])
    for name in ("robot", "cube", "others"):
        with pytest.raises(ValueError, match=f"assets '{name}' and 'again' are one and the same"):
            scene.add("again", scene[name])
    other = SimulationContext(scene.sim.model)
    with pytest.raises(ValueError, match=r"RigidObject.*'cube'.*another SimulationContext"):
        other.advance(scene["cube"])
    assert other.steps == 0
    with pytest.raises(ValueError, match="patterns contains 'ball' twice"):
        RigidObjectCollection(scene.sim, ["ball", "cube", "ball"])
    with pytest.raises(TypeError, match=r"'x'.*Articulation"):
        scene.add("x", 3)
    with pytest.raises(ValueError, match=r"'walker'.*\b5\b"):
        RigidObject(scene.sim, "walker")
    with pytest.raises(ValueError, match=r"\b2 articulations\b"):
        RigidObject(scene.sim, ["cube", "ball"])
    with pytest.raises(ValueError, match="object"):
        RigidObjectCollection(scene.sim, {})
    one = nl.ModelBuilder()
    one.add_body(mass=1.0)
    for wrong, error, told in (
        (dict(env_spacng=2.0), TypeError, "'env_spacng'; did you mean 'env_spacing'"),
        (dict(iteratoins=3), TypeError, "'iteratoins'; did you mean 'iterations'"),
        (dict(env_spacing=-1.0), ValueError, "env_spacing -1"),
        (dict(num_envs=0), ValueError, "num_envs"),
    ):
        with pytest.raises(error, match=told):
            InteractiveScene.replicate(one, **{"num_envs": 2, "device": "cpu", **wrong})
    with pytest.raises(ValueError, match="env_spacing -1"):
        InteractiveScene(scene.sim, env_spacing=-1.0)
    with pytest.raises(TypeError, match="dt"):
        scene.update("x")
    with pytest.raises(ValueError, match="dt"):
        SimulationContext(scene.sim.model, dt=0.0)


def test_what_worlds_share_stays_as_it_was(rng):
    one, ground = nl.ModelBuilder(), nl.ModelBuilder()
    add_body(one, rng, "cube")
    ground.add_ground_plane()
    for count in (2, 3):
        scene = InteractiveScene.replicate(one, count, shared=ground, device="cpu")
        assert scene.sim.model.world_count == count
    assert (ground.body_count, ground.shape_count) == (0, 1)


def test_data_are_computed_again_after_steps_of_other_code(rng):
    one = nl.ModelBuilder()
    add_body(one, rng, "cube")
    scene = InteractiveScene.replicate(one, 2, device="cpu", evaluator="general")
    cube, sim = scene.add("cube", RigidObject(scene.sim, "cube")), scene.sim
    before = cube.data.root_com_state_w.numpy().copy()
    sim.solver.step(sim.state, sim.state, sim.control, dt=0.1)
    scene.update(0.1)
    assert (cube.data.root_com_state_w.numpy()[:, 2] < before[:, 2]).all()


def test_attributes_that_a_context_does_not_have_are_refused(scene):
    with pytest.raises(AttributeError, match=r"no attribute 'decimaton'; did you mean 'decimation'"):
        scene.sim.decimaton = 2

    class Own(type(scene.sim)):
        """A class of a user."""

    own = Own(scene.sim.model)
    own.episode = 3
    assert own.episode == 3


def test_times_and_counts_of_steps_are_checked_when_they_are_set(scene):
    sim, cube = scene.sim, scene["cube"]
    for name, value, error in (
        ("dt", 0.0, ValueError), ("dt", -0.01, ValueError), ("dt", np.nan, ValueError), ("dt", "x", TypeError),
        ("decimation", 0, ValueError), ("decimation", 1.5, TypeError),
    ):  # fmt: skip
        before = getattr(sim, name)
        with pytest.raises(error, match=name):
            setattr(sim, name, value)
        assert getattr(sim, name) == before
    sim.dt, sim.decimation = 0.005, 3
    sim.advance(scene)
    assert sim.steps == 3 and np.isclose(sim.time, 0.015) and sim.step_dt == 3 * 0.005
    stamp = sim.stamp
    for each in (scene, cube):
        with pytest.raises(ValueError, match=r"dt -1\.0 must be at least 0"):
            each.update(-1.0)
    assert sim.stamp == stamp
    cube.update(0.0)
