"""Random MJCF models: trees of bodies with joints, geoms and frames of every kind, as XML."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

GEOMS = ("sphere", "capsule", "cylinder", "ellipsoid", "box")


def text(values) -> str:
    return " ".join(repr(float(v)) for v in np.ravel(values))


def orientation(rng: np.random.Generator) -> str:
    """One of the five orientation attributes, or none."""
    q = Rotation.random(None, rng)
    x, y = q.as_matrix()[:2]
    return (
        "",
        f' quat="{text(rng.uniform(0.2, 5.0) * q.as_quat(scalar_first=True))}"',
        f' axisangle="{text([*rng.normal(size=3), rng.uniform(-200, 200)])}"',
        f' xyaxes="{text([*x, *(y + 0.3 * x)])}"',
        f' zaxis="{text(rng.normal(size=3))}"',
        f' euler="{text(rng.uniform(-180, 180, 3))}"',
    )[rng.integers(6)]


def place(rng: np.random.Generator, size: float = 0.4) -> str:
    return f' pos="{text(size * rng.normal(size=3))}"' + orientation(rng)


def geom(rng: np.random.Generator) -> str:
    kind = GEOMS[rng.integers(len(GEOMS))]
    size = text(rng.uniform(0.05, 0.3, 3))
    where = place(rng)
    if kind != "sphere" and rng.random() < 0.3:
        where = f' fromto="{text(0.3 * rng.normal(size=6))}"'
    how = ("", f' mass="{rng.uniform(0.1, 3.0)!r}"', f' density="{rng.uniform(10, 3000)!r}"')[rng.integers(3)]
    shell = ' shellinertia="true"' if rng.random() < 0.2 else ""
    return f'<geom type="{kind}" size="{size}"{where}{how}{shell} group="{rng.integers(3)}"/>'


def inertial(rng: np.random.Generator) -> str:
    squares = rng.uniform(0.01, 0.2, 3) ** 2
    moments = squares.sum() - squares
    if rng.random() < 0.5:
        return f'<inertial{place(rng)} mass="{rng.uniform(0.2, 3.0)!r}" diaginertia="{text(moments)}"/>'
    R = Rotation.random(None, rng).as_matrix()
    m = R @ np.diag(moments) @ R.T
    full = [m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2]]
    return f'<inertial pos="{text(rng.normal(size=3))}" mass="{rng.uniform(0.2, 3.0)!r}" fullinertia="{text(full)}"/>'


def joint(rng: np.random.Generator, kind: str) -> str:
    extra = f' armature="{rng.uniform(0.0, 0.1)!r}"'
    if kind in ("hinge", "slide"):
        extra += f' axis="{text(rng.normal(size=3))}"'
        if rng.random() < 0.3:
            extra += f' ref="{rng.uniform(-1.0, 1.0) * (50.0 if kind == "hinge" else 1.0)!r}"'
    position = f' pos="{text(0.2 * rng.normal(size=3))}"' if rng.random() < 0.6 else ""
    return f'<joint type="{kind}"{position}{extra}/>'


def joints(rng: np.random.Generator) -> str:
    """Up to three slides and a ball or up to three hinges, in an order that MuJoCo allows."""
    kinds = ["slide"] * rng.integers(3) + ["hinge"] * rng.integers(4)
    if rng.random() < 0.25:
        kinds = ["slide"] * rng.integers(3) + ["ball"]
    elif rng.random() < 0.5:
        rng.shuffle(kinds)
    if len(kinds) == 3 and set(kinds) == {"hinge"} and rng.random() < 0.5:
        # Three orthogonal axes through one point, which one D6 joint can represent.
        where = text(0.2 * rng.normal(size=3))
        axes = Rotation.random(None, rng).as_matrix()
        return "".join(f'<joint pos="{where}" axis="{text(a)}" armature="0.01"/>' for a in axes)
    return "".join(joint(rng, kind) for kind in kinds)


def body(rng: np.random.Generator, depth: int, top: bool = False) -> str:
    if top and rng.random() < 0.4:
        inside = "<freejoint/>"
    else:
        inside = joints(rng)
    inside += inertial(rng) if rng.random() < 0.3 else geom(rng)
    inside += "".join(geom(rng) for _ in range(rng.integers(2)))
    inside += f"<site{place(rng)}/>"
    for _ in range(rng.integers(3) if depth else 0):
        child = body(rng, depth - 1)
        inside += f"<frame{place(rng)}>{child}{geom(rng)}</frame>" if rng.random() < 0.3 else child
    return f"<body{place(rng)}>{inside}</body>"


def random_mjcf(rng: np.random.Generator, depth: int = 3, roots: int = 2) -> str:
    """A model with some trees; angles in degrees, Euler angles about random axes."""
    sequence = "".join(rng.choice(list("xyzXYZ"), 3))
    bodies = "".join(body(rng, depth, top=True) for _ in range(roots))
    gravity = text(5.0 * rng.normal(size=3))
    return (
        f'<mujoco model="random"><compiler eulerseq="{sequence}"/><option gravity="{gravity}"/>'
        f"<worldbody>{geom(rng)}{bodies}</worldbody></mujoco>"
    )
