"""The scenes of `bench_contact`: worlds in which bodies touch."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import newton_like as nl
from newton_like import assets

from ..support.paths import ROBOTS

RNG = 13
DATA = "cmeel.prefix/share/example-robot-data/robots"
"""Where the package example-robot-data of PyPI is installed, below site-packages."""


@dataclass(frozen=True)
class Scene:
    """A world, how it starts, and what has to hold after it has settled.

    Attributes:
        name: for the command line.
        title: for the table.
        world: function that returns a builder of one world, without ground.
        dt: time step [s].
        settle: simulated time before the measurement [s].
        spread: function of random numbers, coordinates and velocities ``[coord]`` and ``[dof]`` of one world, that changes both in place.
        worlds: number of worlds that are checked, and that MuJoCo steps.
        most: the largest number of worlds that are measured, None for any; 1: a single world with one lane and one thread.
        window: steps of a burst, which starts from the settled states each time; None: bursts continue.
        peer_settle: time that MuJoCo steps from the settled states of this engine, before states are compared [s].
        deepest: largest overlap of two shapes [m].
        same: largest difference of the mean heights of a body in the two engines [m].
        ground: whether there is a plane at z = 0.
        grasp: ends of the labels of a finger and of the body that it holds.
        between_bodies: whether moving bodies may touch each other.
    """

    name: str
    title: str
    world: Callable
    dt: float
    settle: float
    spread: Callable
    worlds: int = 64
    most: int | None = None
    window: int | None = None
    peer_settle: float = 0.5
    deepest: float = 5.0e-3
    same: float = 5.0e-3
    ground: bool = True
    grasp: tuple[str, str] | None = None
    between_bodies: bool = True

    def model(self, worlds: int):
        """The finalized model of a number of worlds."""
        scene = nl.ModelBuilder()
        if self.ground:
            scene.add_ground_plane()
        scene.replicate(self.world(), worlds)
        return scene.finalize("cpu")

    def start(self, rng, model) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and velocities of one world ``[n]``, around those of a model."""
        q, qd = (
            a.numpy().reshape(model.world_count, -1)[0].astype(np.float64) for a in (model.joint_q, model.joint_qd)
        )
        self.spread(rng, q, qd)
        return q, qd


def robot_folder(name: str) -> Path:
    """The folder of a robot of example-robot-data: beside the repository, or of the package on PyPI.

    Raises:
        FileNotFoundError: neither has the robot.
    """
    folders = [ROBOTS, Path(sysconfig.get_path("purelib")) / DATA]
    for folder in folders:
        if (folder / name).is_dir():
            return folder / name
    raise FileNotFoundError(
        f"{name} is not in {' or '.join(map(str, folders))}; install it with `pip install --no-deps example-robot-data`"
    )


def _still(rng, q, qd):
    pass


def _shift_boxes(rng, q, qd):
    """Boxes are moved by up to 5 mm."""
    q.reshape(-1, 7)[:, :2] += rng.uniform(-0.005, 0.005, (len(q) // 7, 2))


def _shift_bricks(rng, q, qd):
    """Bricks are moved by up to half a millimetre along the wall, and 2 mm across it."""
    q.reshape(-1, 7)[:, :2] += rng.uniform(-1.0, 1.0, (len(q) // 7, 2)) * [0.0005, 0.002]


def _bend(rng, q, qd):
    """A robot starts up to a centimetre higher, with its joints turned a little."""
    q[2] += rng.uniform(0.0, 0.01)
    q[7:] += rng.normal(0.0, 0.02, len(q) - 7)


def _tumble(rng, q, qd):
    """A robot falls from a place where it does not touch the ground, in any direction."""
    turn = rng.normal(size=4)
    q[2], q[3:7] = rng.uniform(0.4, 0.9), turn / np.linalg.norm(turn)
    q[7:] += rng.normal(0.0, 0.15, len(q) - 7)


def _push(rng, q, qd):
    """A robot that stands is pushed over."""
    heading = rng.uniform(0.0, 2.0 * np.pi)
    qd[:2] = 1.5 * np.cos(heading), 1.5 * np.sin(heading)
    qd[3:6] = rng.normal(0.0, 1.0, 3)
    q[2] += 0.02
    q[7:] += rng.normal(0.0, 0.05, len(q) - 7)


def _nudge(rng, q, qd):
    """The arm moves a little; the held body, which comes last, is up to a millimetre away from its place."""
    qd[:7] = rng.normal(0.0, 0.02, 7)
    q[-7:-4] += rng.uniform(-0.001, 0.001, 3) * [1.0, 0.0, 1.0]


def tower():
    """Ten boxes of 8 kg."""
    builder = nl.ModelBuilder()
    for i in range(10):
        body = builder.add_body(xform=(0.0, 0.0, 0.1 + 0.2005 * i, 0.0, 0.0, 0.0, 1.0))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    return builder


def press():
    """A box of 1 kg below one of 100 kg."""
    builder = nl.ModelBuilder()
    for i, mass in enumerate((1.0, 100.0)):
        body = builder.add_body(xform=(0.0, 0.0, 0.1 + 0.2005 * i, 0.0, 0.0, 0.0, 1.0))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=nl.ShapeConfig(density=mass / 0.2**3))
    return builder


def wall():
    """Ten courses of five bricks; each second course is a quarter of a brick ahead."""
    builder = nl.ModelBuilder()
    for i in range(50):
        course, place = divmod(i, 5)
        x = 0.202 * place + (0.05 if course % 2 else 0.0)
        body = builder.add_body(xform=(x, 0.0, 0.03 + 0.0602 * course, 0.0, 0.0, 0.0, 1.0))
        builder.add_shape_box(body, hx=0.1, hy=0.05, hz=0.03)
    return builder


def humanoid(drives: float):
    """``assets/humanoid.xml`` whose links touch each other, with drives of a share of their gains."""
    text = Path(assets.path("humanoid.xml")).read_text()
    text, found = re.subn(r'contype="1" conaffinity="0"', 'contype="1" conaffinity="1"', text, count=1)
    if not found:
        raise ValueError("assets/humanoid.xml has no geoms with contype 1 and conaffinity 0: adapt this function")
    # the plane of the file is left out: a copy would be in each world
    text = re.sub(r'<geom[^>]*class="ground"[^>]*/>', "", text)
    builder = nl.ModelBuilder()
    builder.add_mjcf(text, keyframe="standing", enable_self_collisions=True)
    for gains in (builder.joint_target_ke, builder.joint_target_kd):
        gains[:] = [drives * x for x in gains]
    return builder


def _walker(folder: str, file: str, height: float, pose: dict[str, float], ke: float, kd: float):
    builder = nl.ModelBuilder()
    cfg = builder.default_joint_cfg
    cfg.armature, cfg.target_ke, cfg.target_kd = 0.01, ke, kd
    cfg.actuator_mode = nl.JointTargetMode.POSITION_VELOCITY
    source = robot_folder(folder) / "urdf" / file
    builder.add_urdf(
        str(source),
        xform=(0.0, 0.0, height, 0.0, 0.0, 0.0, 1.0),
        floating=True,
        hide_visuals=True,
        collapse_fixed_joints=True,
        enable_self_collisions=False,
    )
    for i, label in enumerate(builder.joint_label):
        angles = [angle for part, angle in pose.items() if part in label]
        if angles:
            at = builder.joint_q_start[i]
            builder.joint_q[at] = builder.joint_target_q[at] = angles[0]
    return builder


def go2():
    """Unitree Go2, standing; its own shapes do not touch."""
    pose = {"hip_joint": 0.0, "thigh_joint": 0.8, "calf_joint": -1.5}
    return _walker("go2_description", "go2.urdf", 0.34, pose, 150.0, 4.0)


def g1():
    """Unitree G1 of 29 joints, standing; its own shapes do not touch."""
    pose = {"hip_pitch": -0.2, "knee": 0.4, "ankle_pitch": -0.2}
    return _walker("g1_description", "g1_29dof_rev_1_0.urdf", 0.79, pose, 600.0, 15.0)


PANDA_POSE = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
CUBE = 0.025
"""Half the edge of the cube that the Panda holds [m]."""


@cache
def _panda_text(file: Path) -> str:
    # two fingers with a drive each: the bridge to MuJoCo does not know mimic joints
    return re.sub(r"<mimic[^>]*/>", "", file.read_text())


def panda():
    """A Panda that holds a cube of 2 kg between its fingers, over a table."""
    folder = robot_folder("panda_description")
    builder = nl.ModelBuilder()
    cfg = builder.default_joint_cfg
    cfg.armature, cfg.target_ke, cfg.target_kd = 0.1, 4000.0, 200.0
    cfg.actuator_mode = nl.JointTargetMode.POSITION_VELOCITY
    builder.add_urdf(
        _panda_text(folder / "urdf" / "panda.urdf"),
        hide_visuals=True,
        collapse_fixed_joints=True,
        package_dirs=[str(folder.parent.parent.parent), str(folder.parent)],
    )
    pose = [*PANDA_POSE, CUBE, CUBE]
    builder.joint_q[:] = pose
    builder.joint_target_q[:] = [*PANDA_POSE, 0.0, 0.0]
    builder.joint_target_ke[7:] = [2000.0] * 2
    builder.joint_target_kd[7:] = [100.0] * 2
    arm = builder.finalize("cpu")
    state = arm.state()
    nl.eval_fk(arm, arm.joint_q, arm.joint_qd, state)
    finger = state.body_q.numpy()[-1].astype(np.float64)
    # its frame is 0.0584 m before that of the hand, and the cube between the tips is 0.1034 m before it
    x, y, z = finger[:3] + Rotation.from_quat(finger[3:]).apply([0.0, CUBE, 0.045])
    cube = builder.add_body(xform=(x, y, z, *finger[3:]), label="cube")
    builder.add_shape_box(
        cube, hx=CUBE, hy=CUBE, hz=CUBE, cfg=builder.default_shape_cfg.copy(density=2.0 / (8 * CUBE**3))
    )
    builder.add_shape_box(-1, xform=(x + 0.1, y, z - CUBE - 0.07, 0.0, 0.0, 0.0, 1.0), hx=0.25, hy=0.4, hz=0.02)
    return builder


KINDS = ("sphere", "box", "capsule", "cylinder", "plank")


def heap(count: int = 500):
    """Mixed bodies that fall between four walls."""
    rng = np.random.default_rng(RNG)
    builder = nl.ModelBuilder()
    half = 0.08 * count ** (1.0 / 3.0)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        xform = (x * (half + 0.05), y * (half + 0.05), 1.0, 0.0, 0.0, 0.0, 1.0)
        builder.add_shape_box(-1, xform=xform, hx=0.05 if x else half, hy=0.05 if y else half, hz=1.0)
    side = max(1, int(2.0 * half / 0.22))
    for i in range(count):
        place = np.array([i % side, i // side % side, i // side**2])
        x, y = (place[:2] + 0.5) / side * 2.0 * half - half
        turn = rng.normal(size=4)
        body = builder.add_body(xform=(x, y, 0.15 + 0.2 * place[2], *(turn / np.linalg.norm(turn))))
        kind = KINDS[i % 5]
        if kind == "sphere":
            builder.add_shape_sphere(body, radius=0.07)
        elif kind == "box":
            builder.add_shape_box(body, hx=0.07, hy=0.06, hz=0.05)
        elif kind == "capsule":
            builder.add_shape_capsule(body, radius=0.04, half_height=0.05)
        elif kind == "cylinder":
            builder.add_shape_cylinder(body, radius=0.06, half_height=0.05)
        else:
            builder.add_shape_box(body, hx=0.08, hy=0.04, hz=0.04)
    return builder


HUMANOID_DT, DT = 0.004, 1.0 / 240.0

SCENES = [
    Scene("tower", "tower of ten boxes", tower, DT, 2.0, _shift_boxes),
    Scene("press", "100 kg on a box of 1 kg", press, DT, 2.0, _shift_boxes),
    Scene("wall", "wall of 50 bricks", wall, DT, 2.0, _shift_bricks, worlds=16),
    Scene(
        "lying", "humanoid.xml, self-collision, limp, lying", lambda: humanoid(0.05), HUMANOID_DT, 4.0, _tumble, same=0.02
    ),
    Scene(
        "falling", "the same, pushed over, first second", lambda: humanoid(0.05), HUMANOID_DT, 0.0, _push,
        window=250, deepest=0.025, same=0.02,
    ),  # overlaps at impacts: MuJoCo has 22 mm at this time step
    Scene("go2", "Unitree Go2, standing", go2, DT, 2.0, _bend, between_bodies=False),
    Scene("g1", "Unitree G1, 29 joints, standing", g1, DT, 2.0, _bend, between_bodies=False),
    Scene("panda", "Panda that holds a cube of 2 kg", panda, DT, 2.0, _nudge, ground=False, grasp=("leftfinger", "cube")),
    Scene("heap", "heap of 500 bodies between walls", heap, DT, 4.0, _still, worlds=1, most=1, peer_settle=0.02, same=0.02),
]  # fmt: skip
