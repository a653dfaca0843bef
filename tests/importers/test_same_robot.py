"""The same robot through URDF, MJCF and USD: the same mass matrix, limits and drives to 1e-6.

The URDF is read by newton_like and by MuJoCo. MuJoCo's model is written as MJCF with all digits and read by newton_like; the model of
newton_like is written as USD and read again.
"""

import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import assets, eval_fk, eval_mass_matrix, usd
from newton_like.model.builder.builder import ModelBuilder
from tests.support.paths import ROBOTS, by_size

PATHS = [Path(assets.path("quadruped.urdf")), Path(assets.path("arm.urdf")), *sorted(ROBOTS.rglob("*.urdf"))]

REFUSED = {"anymal", "tiago", "tiago_dual", "tiago_no_hand"}
"""Robots with impossible or missing inertias, which MuJoCo rejects."""

# Gains and armature, which URDF cannot state.
KE, KD, ARMATURE = 200.0, 4.0, 0.01

LIMITS = ("joint_limit_lower", "joint_limit_upper", "joint_effort_limit", "joint_velocity_limit")
DRIVES = (
    "joint_target_ke",
    "joint_target_kd",
    "joint_target_mode",
    "joint_armature",
    "joint_damping",
    "joint_friction",
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::newton_like.importers.urdf.UrdfWarning", "ignore::newton_like.importers.mjcf.MjcfWarning"
)

every_robot = pytest.mark.parametrize("path", by_size(PATHS), ids=lambda path: path.stem)


def urdf_builder(path) -> ModelBuilder:
    builder = ModelBuilder()
    cfg = builder.default_joint_cfg
    cfg.target_ke, cfg.target_kd, cfg.armature = KE, KD, ARMATURE
    builder.add_urdf(path, floating=True, collapse_fixed_joints=True, hide_visuals=True)
    return builder


def read_by_mujoco(path) -> mujoco.MjModel:
    """The robot without its shapes, whose meshes are not everywhere, on a free joint."""
    root = ElementTree.parse(path).getroot()
    for link in root.findall("link"):
        for piece in (*link.findall("visual"), *link.findall("collision")):
            link.remove(piece)
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
    spec.worldbody.first_body().add_freejoint()
    return spec.compile()


def numbers(values) -> str:
    return " ".join(repr(float(value)) for value in np.ravel(values))


def as_mjcf(model: mujoco.MjModel) -> str:
    """An MJCF text with all digits of a compiled model, and with motors. MuJoCo's own writer keeps six digits."""
    below: dict[int, list[int]] = {}
    for child, parent in enumerate(model.body_parentid[1:], 1):
        below.setdefault(parent, []).append(child)
    motors = []

    def joint(j: int) -> str:
        name, dof = model.joint(j).name, model.jnt_dofadr[j]
        if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE:
            return "<freejoint/>"
        kind = "hinge" if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE else "slide"
        limit = f'range="{numbers(model.jnt_range[j])}"' if model.jnt_limited[j] else 'limited="false"'
        force = f'forcerange="{numbers(model.jnt_actfrcrange[j])}"' if model.jnt_actfrclimited[j] else ""
        motors.append(f'<position joint="{name}" kp="{KE}" kv="{KD}" {force}/>')
        return (
            f'<joint name="{name}" type="{kind}" pos="{numbers(model.jnt_pos[j])}" axis="{numbers(model.jnt_axis[j])}" '
            f'{limit} damping="{numbers(model.dof_damping[dof])}" frictionloss="{numbers(model.dof_frictionloss[dof])}" '
            f'armature="{ARMATURE}"/>'
        )

    def body(i: int) -> str:
        first = model.body_jntadr[i]
        inside = [
            f'<inertial mass="{numbers(model.body_mass[i])}" pos="{numbers(model.body_ipos[i])}" '
            f'quat="{numbers(model.body_iquat[i])}" diaginertia="{numbers(model.body_inertia[i])}"/>',
            *(joint(j) for j in range(first, first + model.body_jntnum[i])),
            *(body(child) for child in below.get(i, ())),
        ]
        place = f'pos="{numbers(model.body_pos[i])}" quat="{numbers(model.body_quat[i])}"'
        return f'<body name="{model.body(i).name}" {place}>{"".join(inside)}</body>'

    bodies = "".join(body(i) for i in below[0])
    return (
        f'<mujoco model="same"><compiler angle="radian"/><worldbody>{bodies}</worldbody>'
        f"<actuator>{''.join(motors)}</actuator></mujoco>"
    )


def check_same(first, second, rng, fields) -> None:
    """Mass matrices and poses at random configurations, and per-dof numbers."""
    for name in fields:
        expected, found = (getattr(model, name).numpy()[6:] for model in (first, second))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9, err_msg=name)
    low, high = np.maximum(first.joint_limit_lower.numpy(), -3.0), np.minimum(first.joint_limit_upper.numpy(), 3.0)
    for _ in range(2):
        turn = rng.normal(size=4)
        q = np.concatenate([rng.uniform(-1, 1, 3), turn / np.linalg.norm(turn), rng.uniform(low[6:], high[6:])])
        matrices, ends = [], []
        for model in (first, second):
            state = model.state()
            state.joint_q.assign(q)
            matrices.append(eval_mass_matrix(model, state).numpy()[0])
            eval_fk(model, state.joint_q, state.joint_qd, state)
            ends.append(state.body_q.numpy()[:, :3])
        # In the scale of its rows and columns, so that fingers count as much as trunks.
        scale = np.sqrt(np.diagonal(matrices[0]))
        difference = (matrices[1] - matrices[0]) / np.outer(scale, scale)
        np.testing.assert_allclose(difference, 0.0, rtol=0, atol=1e-6)
        np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-6)


@every_robot
def test_urdf_and_usd(path, rng, tmp_path):
    """Numbers of UsdPhysics are float32: half a unit in the last place is 6e-8 of a value."""
    first = urdf_builder(path).finalize("cpu", dtype=wp.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        usd.write(first, tmp_path / "robot.usda")
        builder = ModelBuilder()
        builder.add_usd(tmp_path / "robot.usda")
    second = builder.finalize("cpu", dtype=wp.float64)
    assert second.joint_label == first.joint_label and second.body_label == first.body_label
    check_same(first, second, rng, (*LIMITS, *DRIVES, "joint_target_q"))


@every_robot
def test_urdf_and_mjcf(path, rng):
    """MJCF has no limits of speed, and targets of its position actuators are 0 at first."""
    if path.stem in REFUSED:
        with pytest.raises(ValueError, match="inertia"):
            read_by_mujoco(path)
        return
    builder = ModelBuilder()
    builder.add_mjcf(as_mjcf(read_by_mujoco(path)))
    second, first = builder.finalize("cpu", dtype=wp.float64), urdf_builder(path).finalize("cpu", dtype=wp.float64)
    names = [[label.rpartition("/")[2] for label in model.joint_label][1:] for model in (first, second)]
    assert names[0] == names[1]
    fields = [name for name in (*LIMITS, *DRIVES) if name != "joint_velocity_limit"]
    check_same(first, second, rng, fields)
