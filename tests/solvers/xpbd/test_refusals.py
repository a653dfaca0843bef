"""What the solver does not do, it refuses by name."""

import warnings

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.geometry.transforms import quat_from_axis_angle
from newton_like.solvers import SolverXPBD
from newton_like.solvers.xpbd.features import warn_unposed
from tests.solvers.xpbd.scenes import pendulum, started, xpbd


def one_body(**options) -> nl.ModelBuilder:
    builder = nl.ModelBuilder()
    builder.add_body(label="brick", **{"mass": 1.0, "inertia": np.eye(3), **options})
    return builder


def massless(builder) -> None:
    builder.body_mass[1], builder.body_inertia[1] = 0.0, np.zeros((3, 3))


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda b: b.joint_armature.__setitem__(0, 0.1), None),
        (massless, r"'link_1' \(index 1\).*mass"),
        (lambda b: b.body_inertia.__setitem__(0, np.zeros((3, 3))), "moments of inertia"),
    ],
)
def test_models_are_refused_by_name(edit, told):
    builder = pendulum(2)
    builder.body_label[:] = ["link_0", "link_1"]
    edit(builder)
    model = builder.finalize("cpu")
    if told is None:
        SolverXPBD(model)
        return
    with pytest.raises(ValueError, match=told):
        SolverXPBD(model)


def test_massless_links_are_told_what_helps():
    """Fixed joints can be merged. A link between two axes of a body cannot; with mass it is taken."""
    welded = nl.ModelBuilder()
    hand, tool = welded.add_link(mass=1.0, inertia=np.eye(3)), welded.add_link(label="tool")
    welded.add_articulation([welded.add_joint_free(hand), welded.add_joint_fixed(hand, tool)])
    with pytest.raises(ValueError, match=r"'tool' \(index 1\).*collapse_fixed_joints"):
        SolverXPBD(welded.finalize("cpu"))
    ankle = nl.ModelBuilder()
    ankle.add_mjcf("""<mujoco><worldbody><body name="foot"><joint name="pitch" axis="0 1 0" pos="0 0 .08"/>
        <joint name="roll" axis="1 0 .5" pos="0 0 .04"/><geom size=".1" mass="1"/></body></worldbody></mujoco>""")
    (link,) = np.flatnonzero(np.array(ankle.body_mass) <= 0.0)
    with pytest.raises(ValueError, match=rf"'{ankle.body_label[link]}' \(index {link}\).*give it mass") as told:
        SolverXPBD(ankle.finalize("cpu"))
    assert "collapse" not in str(told.value)
    with pytest.raises(ValueError, match=r"brick.*give it mass and inertia") as told:
        SolverXPBD(one_body(mass=0.0, inertia=np.zeros((3, 3))).finalize("cpu"))
    assert "importers" not in str(told.value)
    ankle.body_mass[link], ankle.body_inertia[link] = 0.05, 2e-4 * np.eye(3)
    SolverXPBD(ankle.finalize("cpu"))


def test_soft_limits_are_told_how_to_harden():
    builder = nl.ModelBuilder()
    builder.add_mjcf("""<mujoco><worldbody><body><joint name="elbow" range="-1 1" solreflimit=".05 1"/><geom size=".1"/></body>
        </worldbody></mujoco>""")
    model = builder.finalize("cpu")
    with pytest.raises(ValueError, match=r"elbow.*set mujoco:limit_rules to 0"):
        SolverXPBD(model)
    model.mujoco.limit_rules.zero_()
    SolverXPBD(model)


def test_drives_of_free_joints_away_from_the_centre_of_mass_are_refused():
    builder = nl.ModelBuilder()
    builder.add_body(mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    builder.joint_stiffness[2] = 0.5
    with pytest.raises(ValueError, match=r"free.*stiffness"):
        SolverXPBD(builder.finalize("cpu"))


def test_axes_that_are_not_perpendicular_are_refused():
    builder = nl.ModelBuilder()
    body = builder.add_link(mass=1.0, inertia=np.eye(3))
    config = nl.ModelBuilder.JointDofConfig
    axes = [config(axis=(1, 0, 0)), config(axis=(0.8, 0.6, 0))]
    builder.add_articulation([builder.add_joint_d6(-1, body, linear_axes=axes, label="table")])
    with pytest.raises(ValueError, match=r"'table' .*perpendicular"):
        SolverXPBD(builder.finalize("cpu"))


def test_options_of_newton_are_known_by_name():
    model = one_body().finalize("cpu")
    SolverXPBD(model, rigid_contact_con_weighting=False, joint_linear_relaxation=0.7)
    with pytest.raises(ValueError, match=r"joint_linear_compliance=0\.1\b.*Newton"):
        SolverXPBD(model, joint_linear_compliance=0.1)
    with pytest.raises(TypeError, match="'substeps'"):
        SolverXPBD(model, substep=4)
    with pytest.raises(ValueError, match=r"max_depenetration_speed.*-1\b"):
        SolverXPBD(model, max_depenetration_speed=-1.0)


def test_wrong_arguments_of_a_step_are_named():
    model = one_body().finalize("cpu")
    solver, state = xpbd(model), started(model)
    with pytest.raises(TypeError, match=r"state_in.*\bState\b"):
        solver.step(model, state)
    with pytest.raises(ValueError, match=r"\bdt 0\.0\b"):
        solver.step(state, state, dt=0.0)
    with pytest.raises(ValueError, match="another model"):
        solver.step(one_body().finalize("cpu").state(), state)


def test_edits_are_taken_over(rng):
    """A heavier body feels the same force less."""
    builder = nl.ModelBuilder(gravity=0.0)
    builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize("cpu")
    solver, state = xpbd(model), started(model)
    state.body_f.assign(np.array([[1.0, 0, 0, 0, 0, 0]], dtype=np.float32))
    solver.step(state, state, dt=0.1)
    assert state.body_qd.numpy()[0, 0] == pytest.approx(0.1)
    model.body_mass.assign([4.0])
    model.body_inv_mass.assign([0.25])
    solver.notify_model_changed()
    solver.step(state, state, dt=0.1)
    assert state.body_qd.numpy()[0, 0] == pytest.approx(0.125)


def test_an_error_of_an_edit_comes_back_at_each_step():
    builder = pendulum(2)
    builder.set_joint_mimic(1, 0)
    model = builder.finalize("cpu")
    solver, state = SolverXPBD(model), model.state()
    enabled = model.joint_enabled.numpy()
    enabled[0] = False
    model.joint_enabled.assign(enabled)
    for call in (solver.notify_model_changed, *[lambda: solver.step(state, state)] * 2):
        with pytest.raises(ValueError, match=r"disabled.*mimic"):
            call()


def test_joint_coordinates_are_kept_up_on_request():
    model = pendulum(2).finalize("cpu")
    one, two = started(model), started(model)
    SolverXPBD(model, width=8).step(one, one)
    SolverXPBD(model, width=8, update_joints=False).step(two, two)
    assert np.array_equal(one.body_q.numpy(), two.body_q.numpy())
    assert not two.joint_q.numpy().any()
    found = wp.zeros_like(two.joint_q), wp.zeros_like(two.joint_qd)
    nl.eval_ik(model, two, *found)
    assert np.array_equal(found[1].numpy(), one.joint_qd.numpy())


def test_poses_that_open_joints_are_told():
    """States are made with the poses of the builder, not with those of joint coordinates."""
    model = pendulum(2).finalize("cpu")
    with pytest.warns(UserWarning, match=r"index 1\b.*\b1 m\b.*body_q.*state_in.*eval_fk"):
        state = model.state()
        xpbd(model).step(state, state)


def test_joint_coordinates_that_are_not_in_the_poses_are_told():
    """Coordinates that were set in the builder play no part until `eval_fk`; poses that were set are what a step starts from."""
    builder = nl.ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=0.1 * np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis="y", label="hinge")])
    builder.joint_q[0] = 1.0
    model = builder.finalize("cpu")
    state, posed, moved = (model.state() for _ in range(3))
    nl.eval_fk(model, posed.joint_q, posed.joint_qd, posed)
    moved.body_q.assign([0.0, 0.0, 0.0, 0.0, np.sin(0.1), 0.0, np.cos(0.1)])
    with pytest.warns(UserWarning, match=r"body_q.*'body_0'.*eval_fk"):
        xpbd(model).step(state, state)
    builder.joint_q[0], builder.joint_qd[0] = 0.0, 1.0
    turning = builder.finalize("cpu")
    with pytest.warns(UserWarning, match=r"body_qd.*'body_0'.*eval_fk"):
        xpbd(turning).step(turning.state(), turning.state())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for each in (posed, moved):
            xpbd(model).step(each, each)


def test_coordinates_of_floating_bodies_are_told_or_not_as_kinematics_has_them(rng):
    """Bodies that all float need no kernel of forward kinematics."""

    def frame() -> np.ndarray:
        return np.r_[rng.normal(size=3), quat_from_axis_angle(rng.normal(size=3), rng.uniform(0.5, 3.0))]

    builder = nl.ModelBuilder()
    for _ in range(3):
        body = builder.add_link(mass=1.0, inertia=np.eye(3))
        builder.add_articulation([builder.add_joint_free(body, parent_xform=frame(), child_xform=frame())])
    for wrong in (None, "q", "qd"):
        builder.joint_q[:] = np.ravel([frame() for _ in range(3)])
        builder.joint_qd[:] = rng.normal(size=18)
        model = builder.finalize("cpu", dtype=wp.float64)
        posed = model.state()
        nl.eval_fk(model, posed.joint_q, posed.joint_qd, posed)
        model.body_q, model.body_qd = posed.body_q, posed.body_qd
        if wrong is not None:
            numbers = getattr(model, f"body_{wrong}").numpy()
            numbers[1, rng.integers(6)] += 0.1
            setattr(model, f"body_{wrong}", numbers)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            warn_unposed(model, model.state(), stacklevel=1)
        found = [str(w.message) for w in found if "its joint_" in str(w.message)]
        assert len(found) == (wrong is not None)
        assert wrong is None or (f"body_{wrong} of state_in" in found[0] and "index 1" in found[0])


def test_unknown_choices_are_refused_when_a_solver_is_made():
    model = pendulum(1).finalize("cpu")
    with pytest.raises(ValueError, match=r"unsupported_contacts.*'error'.*'ignore'"):
        SolverXPBD(model, unsupported_contacts="nonsense")
    solver = SolverXPBD(model)
    for bound in (np.nan, -1.0, 0.0):
        with pytest.raises(ValueError, match="highest_speed"):
            solver.check(model.state(), bound)
    assert solver.check(model.state(), np.inf).all()
