"""Summaries of models: as a dictionary for JSON, and as text."""

from __future__ import annotations

import numpy as np

from newton_like.cli.scene import Scene
from newton_like.cli.terminal import count_text
from newton_like.types import MAXVAL, GeoType, JointType


def summary(scene: Scene) -> dict:
    """Bodies, joints and shapes of a scene in plain Python types, ready for ``json``. Units are SI."""
    model = scene.model
    mass = model.body_mass.numpy()
    shapes = [GeoType(int(kind)).name.lower() for kind in model.shape_type.numpy()]
    return {
        "format": scene.format,
        "up_axis": model.up_axis.name,
        "gravity": [float(x) for x in model.gravity.numpy()[0]],
        "counts": {
            "bodies": model.body_count, "joints": model.joint_count, "dofs": model.joint_dof_count,
            "coordinates": model.joint_coord_count, "articulations": model.articulation_count, "shapes": model.shape_count,
            "worlds": model.world_count,
        },
        "mass": float(mass.sum()),
        "center_of_mass": _center(scene, mass),
        "bodies": [
            {"name": label, "mass": float(mass[b]), "parent": parent, "joint": joint}
            for b, (label, (parent, joint)) in enumerate(zip(model.body_label, _parents(model), strict=True))
        ],
        "joints": _joints(model),
        "shapes": {kind: shapes.count(kind) for kind in sorted(set(shapes))},
        "remarks": scene.remarks,
    }  # fmt: skip


def _center(scene: Scene, mass) -> list[float] | None:
    if not mass.sum() > 0.0:
        return None
    from newton_like.geometry.transforms import quat_rotate

    poses, com = scene.state.body_q.numpy(), scene.model.body_com.numpy()
    places = poses[:, :3] + np.array([quat_rotate(x[3:], c) for x, c in zip(poses, com, strict=True)])
    return [float(x) for x in mass @ places / mass.sum()]


def _parents(model) -> list[tuple[str | None, str | None]]:
    """Parent body and joint of every body, by name; None for the world and for bodies without a joint."""
    found: list = [(None, None)] * model.body_count
    arrays = (model.joint_parent.numpy(), model.joint_child.numpy(), model.joint_articulation.numpy())
    for j, (parent, child, articulation) in enumerate(zip(*arrays, strict=True)):
        if articulation >= 0:
            found[child] = (model.body_label[parent] if parent >= 0 else None, model.joint_label[j])
    return found


def _joints(model) -> list[dict]:
    kinds, starts = model.joint_type.numpy(), model.joint_qd_start.numpy()
    lower, upper = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
    effort, velocity = model.joint_effort_limit.numpy(), model.joint_velocity_limit.numpy()
    parent, child, articulation = (
        model.joint_parent.numpy(), model.joint_child.numpy(), model.joint_articulation.numpy(),
    )  # fmt: skip

    def bound(x) -> float | None:
        return float(x) if abs(x) < MAXVAL else None

    return [
        {
            "name": label,
            "type": JointType(int(kinds[j])).name,
            "parent": model.body_label[parent[j]] if parent[j] >= 0 else None,
            "child": model.body_label[child[j]],
            "closes_loop": bool(articulation[j] < 0),
            "dofs": [
                {
                    "lower": bound(lower[i]), "upper": bound(upper[i]), "effort": bound(effort[i]),
                    "velocity": bound(velocity[i]),
                }
                for i in range(starts[j], starts[j + 1])
            ],
        }
        for j, label in enumerate(model.joint_label)
    ]  # fmt: skip


def headline(data: dict) -> str:
    """The numbers of entities, in one line."""
    counts = data["counts"]
    parts = [
        count_text(counts["bodies"], "body", "bodies"),
        count_text(counts["joints"], "joint"),
        count_text(counts["dofs"], "degree of freedom", "degrees of freedom"),
        count_text(counts["shapes"], "shape"),
    ]
    return ", ".join(parts) + (f", {data['mass']:.4g} kg" if data["mass"] > 0.0 else "")


def as_text(data: dict, name: str) -> str:
    """The result of :func:`summary` as text: the tree, and the remarks of the importer."""
    lines = [
        f"{name} ({data['format'].upper()}): {headline(data)}",
        f"up {data['up_axis']}, gravity {_vector(data['gravity'])} m/s^2",
    ]
    if data["center_of_mass"] is not None:
        lines.append(f"centre of mass {_vector(data['center_of_mass'])} m")
    if data["shapes"]:
        lines.append("shapes: " + ", ".join(f"{n} {kind}" for kind, n in data["shapes"].items()))
    if data["bodies"]:
        lines.append("")
    joints = {j["name"]: j for j in data["joints"]}
    children: dict = {}
    for body in data["bodies"]:
        children.setdefault(body["parent"], []).append(body)

    def show(parent, depth: int) -> None:
        # not recursive, because a tree may be deeper than Python's recursion limit
        stack = [(body, depth) for body in reversed(children.get(parent, []))]
        while stack:
            body, level = stack.pop()
            joint = joints.get(body["joint"])
            lines.append(f"{'  ' * level}{body['name']}  {body['mass']:.4g} kg  {_joint_text(joint)}".rstrip())
            stack += [(child, level + 1) for child in reversed(children.get(body["name"], []))]

    show(None, 0)
    loops = [j for j in data["joints"] if j["closes_loop"]]
    if loops:
        lines += ["", "loop joints:", *(f"  {j['name']}  {_joint_text(j)}" for j in loops)]
    if data["remarks"]:
        lines += ["", "remarks:", *(f"  {text}" for text in data["remarks"])]
    return "\n".join(lines)


def _vector(x) -> str:
    # a rotation of axes turns zeros into rounding errors
    least = 1e-12 * max(map(abs, x))
    return "(" + ", ".join(f"{v if abs(v) > least else 0.0:.4g}" for v in x) + ")"


def _joint_text(joint: dict | None) -> str:
    if joint is None:
        return "without a joint"
    text = f"{joint['name']}: {joint['type'].lower()}"
    if len(joint["dofs"]) == 1:
        dof = joint["dofs"][0]
        if dof["lower"] is not None or dof["upper"] is not None:
            low, high = ("-inf" if dof["lower"] is None else f"{dof['lower']:.4g}"), dof["upper"]
            text += f" [{low}, {'inf' if high is None else f'{high:.4g}'}]"
    return text
