"""Ranges of the lengths of muscles that do not state them: those that MuJoCo's compiler finds."""

import mujoco
import numpy as np
import pytest

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.featherstone.muscle_ranges import length_ranges

ARM = """
<mujoco><compiler angle="radian"/><worldbody><site name="w" pos="0 0 .1"/><body><joint name="a" axis="0 1 0" range="-1 .8"/>
<geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="1"/><site name="s" pos=".2 0 {height}"/><body pos=".4 0 0">
<joint name="b" axis="0 1 .2" range="-.5 2"/><geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="1"/>
<geom name="g" type="cylinder" size=".04 .1" euler="1.57 0 0" contype="0" conaffinity="0"/><site name="e" pos=".15 0 .05"/></body></body>
</worldbody><tendon>{tendons}</tendon><actuator>{muscles}</actuator></mujoco>
"""
TENDONS = (
    '<spatial name="t0"><site site="w"/><site site="s"/></spatial>'
    '<spatial name="t1"><site site="s"/><geom geom="g"/><site site="e"/></spatial>'
    '<spatial name="t2"><site site="w"/><site site="s"/><site site="e"/></spatial>'
    '<fixed name="t3"><joint joint="a" coef="1"/><joint joint="b" coef="-.7"/></fixed>'
)


@pytest.mark.slow
def test_ranges_are_those_of_all_poses(rng):
    """Of a fine grid of poses; and no narrower than those of MuJoCo, whose pulls may end at a local extreme."""
    muscles = "".join(
        f'<muscle name="m{k}" tendon="t{k}" force="10" gear="{rng.uniform(-2, 2):.3f}"/>' for k in range(4)
    )
    xml = ARM.format(height=f"{rng.uniform(0.04, 0.08):.3f}", tendons=TENDONS, muscles=muscles)
    spec = mujoco.MjSpec.from_string(xml)
    options = spec.compiler.LRopt
    options.inttotal, options.interval, options.timestep = 60.0, 5.0, 0.005
    theirs = spec.compile()
    builder = ModelBuilder()
    report = builder.add_mjcf(xml)
    assert [actuator.drive for actuator in report.actuators] == ["actuator_ctrl"] * 4
    # two worlds, so that searches go on alone
    both = ModelBuilder()
    both.replicate(builder, 2)
    model = both.finalize("cpu")
    found = length_ranges(model, {n: actuator.target for n, actuator in enumerate(model.actuators)})
    gears = model.actuator_gear.numpy()[:, 0]
    data, grid = mujoco.MjData(theirs), []
    for pose in np.stack(np.meshgrid(*(np.linspace(*limits, 121) for limits in theirs.jnt_range)), axis=-1).reshape(
        -1, theirs.nq
    ):
        data.qpos[:] = pose
        mujoco.mj_fwdPosition(theirs, data)
        grid.append(data.actuator_length.copy())
    grid = np.array([np.min(grid, axis=0), np.max(grid, axis=0)]).T
    for n, pair in found.items():
        low, high = np.sort(gears[n] * np.array(pair))
        span = high - low
        # half a cell of the grid; single precision
        np.testing.assert_allclose((low, high), grid[n % 4], atol=0.01 * span)
        # MuJoCo pulls at soft limits, and takes the range as found where it changes by less than a twentieth
        least, largest = theirs.actuator_lengthrange[n % 4]
        assert low < least + 0.06 * span and high > largest - 0.06 * span
    np.testing.assert_allclose([found[n] for n in range(4)], [found[n + 4] for n in range(4)], atol=1e-6)


@pytest.mark.slow
def test_the_model_gets_the_range_that_the_solver_finds():
    xml = ARM.format(
        height=".05",
        tendons=TENDONS,
        muscles='<muscle tendon="t3" force="10" gear="-2"/><muscle tendon="t0" force="9" lengthrange=".1 .3"/>',
    )
    builder = ModelBuilder()
    builder.add_mjcf(xml)
    model = builder.finalize("cpu")
    np.testing.assert_array_equal(model.actuator_lengthrange.numpy()[0], [0.0, 0.0])
    SolverFeatherstone(model, evaluator="general")
    found = model.actuator_lengthrange.numpy()
    # the length is a - 0.7 b
    np.testing.assert_allclose(found[0], [-2.0 * (0.8 + 0.35), -2.0 * (-1.0 - 1.4)], atol=1e-3)
    np.testing.assert_allclose(found[1], [0.1, 0.3])
    # a second solver has the same, and searches no more
    model.joint_limit_upper.assign([0.1, 0.1])
    SolverFeatherstone(model, evaluator="general")
    np.testing.assert_array_equal(model.actuator_lengthrange.numpy(), found)


@pytest.mark.slow
def test_a_muscle_that_nothing_bounds_is_refused_by_name():
    xml = ARM.format(height=".05", tendons=TENDONS, muscles='<muscle name="m" tendon="t3" force="10"/>')
    builder = ModelBuilder()
    builder.add_mjcf(xml.replace('range="-1 .8"', "").replace('range="-.5 2"', ""))
    model = builder.finalize("cpu")
    with pytest.raises(ValueError, match=r"/m' \(index 0\).*tendon '.*t3'.*range"):
        length_ranges(model, {0: 3})


@pytest.mark.slow
@pytest.mark.parametrize("joint", ["", 'limited="true" range="-.05 .2"'])
def test_limits_of_the_tendon_bound_the_range_as_in_mujoco(joint):
    """A load that hangs on a muscle, as in myomuscle.xml of myosuite; its joint has no limits, or one nearer than that of the tendon."""
    xml = f"""<mujoco><worldbody><site name="hook" pos="0 0 .5"/><body pos="0 0 .1"><joint type="slide" axis="0 0 1" {joint}/>
        <geom size=".02" mass="1"/><site name="load"/></body></worldbody>
        <tendon><spatial name="t" limited="true" range=".3 .5" solreflimit=".001 1" solimplimit=".9999 .9999 .001"><site site="hook"/>
        <site site="load"/></spatial></tendon><actuator><muscle name="m" tendon="t" force="10"/></actuator></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(xml).actuator_lengthrange[0]
    builder = ModelBuilder()
    builder.add_mjcf(xml)
    model = builder.finalize("cpu")
    found = length_ranges(model, {0: 0})[0]
    np.testing.assert_allclose(found, [0.3, 0.45 if joint else 0.5], atol=1e-6)
    np.testing.assert_allclose(found, theirs, atol=2e-3)
    SolverFeatherstone(model, evaluator="general")


TWO_LINKS = """<mujoco><worldbody><site name="w0" pos="0 0 1.2"/><body pos="0 0 1"><joint axis="0 1 0" range="-90 90"/>
<geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/><body pos=".3 0 0"><joint axis="0 1 0" range="-80 80"/>
<geom type="capsule" size=".03" fromto="0 0 0 .25 0 0"/><site name="s1" pos=".1 0 .05"/></body></body><body pos="0 .5 1">
<joint type="slide" axis="0 0 1" range="-.3 .3"/><geom size=".05"/><site name="s2" pos=".02 .01 0"/></body></worldbody>
<tendon><spatial name="t"><site site="w0"/><site site="s1"/><site site="s2"/></spatial></tendon>
<actuator><muscle tendon="t" force="30"/></actuator></mujoco>"""


@pytest.mark.slow
def test_the_range_does_not_depend_on_the_initial_pose(rng):
    """The length of this tendon has several local extremes. Those that random poses and steps towards an extreme find are not beyond it."""
    found = []
    for start in [(0.0, 0.0, 0.0), (1.0, 1.0, 0.0), rng.uniform(-1.0, 1.0, 3) * [1.5, 1.3, 0.3]]:
        builder = ModelBuilder()
        builder.add_mjcf(TWO_LINKS)
        builder.joint_q[:3] = list(start)
        found.append(length_ranges(builder.finalize("cpu"), {0: 0})[0])
    np.testing.assert_allclose(found, np.broadcast_to(found[0], (3, 2)), rtol=0, atol=1e-4)
    mj = mujoco.MjModel.from_xml_string(TWO_LINKS)
    np.testing.assert_allclose(found[0], mj.actuator_lengthrange[0], rtol=0, atol=2e-3)


def test_a_shorter_length_beyond_a_longer_one_is_found(rng):
    """A muscle from the world to a hinged link is longest where the link points away from its fixed end, and has a local shortest length
    on both sides. The search from the initial pose, with a slope of either sign, finds the one on its side."""
    away = rng.uniform(0.2, 0.6, 6) * [1, -1, 1, -1, 1, -1]  # of the initial pose from the longest length [rad]
    limits = np.sort(np.abs(away) + rng.uniform(0.3, 1.5, (2, 6)), axis=0)
    # the initial pose is on the side of the nearer limit, where the local shortest length is longer
    low, high = np.where(away > 0.0, [-limits[1], limits[0]], [-limits[0], limits[1]])
    near, far = rng.uniform(0.05, 0.1, 6), rng.uniform(0.15, 0.3, 6)
    builder = ModelBuilder()
    bodies = "".join(
        f'<site name="w{k}" pos="{-near[k]} {k} 0"/><body pos="0 {k} 0"><joint axis="0 -1 0" range="{low[k]} {high[k]}" ref="{away[k]}"/>'
        f'<geom size=".02"/><site name="s{k}" pos="{far[k] * np.cos(away[k])} 0 {far[k] * np.sin(away[k])}"/></body>'
        for k in range(6)
    )
    tendons = "".join(f'<spatial><site site="w{k}"/><site site="s{k}"/></spatial>' for k in range(6))
    builder.add_mjcf(
        f'<mujoco><compiler angle="radian"/><worldbody>{bodies}</worldbody><tendon>{tendons}</tendon></mujoco>'
    )
    model = builder.finalize("cpu")
    model.actuator_label = [f"muscle {k}" for k in range(6)]
    found = length_ranges(model, {k: k for k in range(6)})
    angles = np.linspace(low, high, 2001)
    lengths = np.sqrt(near**2 + far**2 + 2.0 * near * far * np.cos(angles))
    # searches end with steps of at most 1e-4 rad along an arm of at most 0.1 m
    np.testing.assert_allclose([found[k] for k in range(6)], np.stack([lengths.min(0), lengths.max(0)], 1), atol=2e-5)
