"""The wheeled humanoid of the assets: its robot, poses of its arms, and a model that draws it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import newton_like as nl
import newton_like.robot as rd
from newton_like import assets

READY = {
    "lift": 0.15, "right_shoulder_pitch": -0.3, "right_shoulder_roll": -0.25, "right_elbow": -1.4,
    "left_shoulder_pitch": -0.3, "left_shoulder_roll": 0.25, "left_elbow": -1.4,
}  # fmt: skip
"""A pose with both forearms forward [m, rad]."""

TIRE = (0.12, 0.13, 0.15)


def load(evaluator: str = "auto") -> rd.Robot:
    """The robot."""
    return rd.Robot(rd.load_robot_from_urdf(assets.path("wheeled_humanoid.urdf"), "base"), evaluator=evaluator)


def set_joints(state: rd.State, values: dict[str, float]) -> None:
    """Sets the positions of some joints by name."""
    q = state.q
    for name, value in values.items():
        q[state.joint_names.index(name)] = value
    state.q = q


def drawn(robot: rd.Robot, floating: bool = False, marks: int = 0) -> tuple[nl.Model, nl.State]:
    """A model that draws a robot on a floor, with some red spheres, the bodies ``mark_0``, ``mark_1``, ..., that float about."""
    builder = robot.to_builder(floating=floating)
    look = nl.ShapeConfig(density=0.0, has_shape_collision=False)
    builder.add_ground_plane(cfg=look)
    across = (0.0, 0.0, 0.0, np.sin(np.pi / 4), 0.0, 0.0, np.cos(np.pi / 4))
    column = builder.body_label.index("base")
    builder.add_shape_cylinder(
        column, radius=0.05, half_height=0.2, xform=(0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0), color=TIRE, cfg=look
    )
    for side in ("right", "left"):
        wheel = builder.body_label.index(f"{side}_wheel_link")
        builder.add_shape_cylinder(wheel, radius=0.1, half_height=0.025, xform=across, color=TIRE, cfg=look)
        shoulder = builder.body_label.index(f"{side}_shoulder")
        builder.add_shape_sphere(shoulder, radius=0.065, cfg=look)
    for i in range(marks):
        mark = builder.add_body(mass=1.0, inertia=np.eye(3), label=f"mark_{i}")
        builder.add_shape_sphere(mark, radius=0.02, color=(0.85, 0.15, 0.1), cfg=look)
    model = builder.finalize("cpu")
    return model, model.state()


def show(
    model: nl.Model, robot: rd.Robot, now: nl.State, q: np.ndarray, names: Sequence[str], base=None, marks=()
) -> None:
    """Moves the drawing to joint positions `q` of joints `names`, to the pose of the base ``(x, y, yaw)``, and its marks to points."""
    values = now.joint_q.numpy()
    starts = model.joint_q_start.numpy()
    for name, value in zip(names, q, strict=True):
        values[starts[model.joint_label.index(name)]] = value
    if base is not None:
        x, y, yaw = base
        values[:7] = (x, y, 0.0, 0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw))
    for i, point in enumerate(marks):
        at = starts[model.joint_child.numpy().tolist().index(model.body_label.index(f"mark_{i}"))]
        values[at : at + 3] = point
    now.joint_q.assign(values)
    nl.eval_fk(model, now.joint_q, now.joint_qd, now)
