"""Models with all features of stages, and comparison of two models."""

from __future__ import annotations

import numpy as np

from newton_like import Axis, GeoType, JointDofConfig, JointTargetMode, JointType, ModelBuilder, ShapeConfig, ShapeFlags
from newton_like.geometry.mesh import Heightfield, Mesh
from newton_like.model.actuators import NUMBERS as ACTUATOR_NUMBERS
from newton_like.model.columns import COLUMNS
from newton_like.model.mujoco.contact_settings import SETTINGS
from newton_like.model.mujoco.equality_settings import equalities_of
from newton_like.model.tendons import ARRAYS as TENDON_ARRAYS

from .random_trees import random_transform, random_tree, random_unit

SINGLE = 2.0e-6
"""Tolerance for float32 attributes of USD: an anchor is a product of two frames, and a body's pose a product along its chain."""

BOX = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
BOX_FACES = [0, 1, 3, 0, 3, 2, 4, 6, 7, 4, 7, 5, 0, 4, 5, 0, 5, 1, 2, 3, 7, 2, 7, 6, 0, 2, 6, 0, 6, 4, 1, 5, 7, 1, 7, 3]


def random_mesh(rng) -> Mesh:
    return Mesh(
        BOX * rng.uniform(0.05, 0.3, 3) + 0.05 * rng.normal(size=3),
        BOX_FACES,
        max_hull_vertices=int(rng.integers(8, 20)),
    )


def random_cfg(rng, **changes) -> ShapeConfig:
    cfg = ShapeConfig(
        mu=rng.uniform(0.1, 1.0),
        restitution=rng.uniform(0.0, 0.9),
        mu_torsional=rng.uniform(0.0, 0.1),
        mu_rolling=rng.uniform(0.0, 0.1),
        ke=rng.uniform(10.0, 1000.0),
        kd=rng.uniform(10.0, 1000.0),
        kf=rng.uniform(10.0, 1000.0),
        time_constant=rng.uniform(0.001, 0.01),
        damping_ratio=rng.uniform(0.5, 2.0),
        margin=rng.uniform(0.0, 0.01),
        gap=rng.uniform(0.0, 0.01),
        is_visible=bool(rng.random() < 0.7),
        density=0.0,
    )
    return cfg.copy(**changes)


def add_random_shapes(rng, builder: ModelBuilder, bodies, groups=(1,)) -> None:
    """One shape of every type on random bodies, colliding and not, and a site."""
    mesh = random_mesh(rng)
    for kind in GeoType:
        body = -1 if kind in (GeoType.PLANE, GeoType.HFIELD) else int(rng.choice(bodies))
        scale, source = rng.uniform(0.05, 0.3, 3), None
        if kind in (GeoType.MESH, GeoType.CONVEX_MESH):
            scale, source = scale * rng.choice([-1.0, 1.0], 3), mesh
        elif kind == GeoType.HFIELD:
            rows, columns = (int(n) for n in rng.integers(2, 6, 2))
            source = Heightfield(rng.normal(size=rows * columns), rows, columns, *rng.uniform(0.5, 2.0, 2))
        elif kind in (GeoType.CAPSULE, GeoType.CYLINDER, GeoType.CONE):
            scale[2] = 0.0
        elif kind == GeoType.SPHERE:
            scale[1:] = 0.0
        elif kind == GeoType.PLANE:
            scale = scale * float(rng.random() < 0.5)
            scale[2] = 0.0
        elif kind == GeoType.NONE:
            scale[:] = 0.0
        collides = kind != GeoType.NONE and rng.random() < 0.8
        group = int(rng.choice(groups))
        cfg = random_cfg(rng, has_shape_collision=collides, has_particle_collision=bool(rng.random() < 0.5))
        if not collides:
            # For shapes without collisions a stage has only the appearance.
            cfg = ShapeConfig(
                density=0.0,
                has_shape_collision=False,
                has_particle_collision=cfg.has_particle_collision,
                is_visible=cfg.is_visible,
            )
        builder.add_shape(
            body=body,
            type=kind,
            xform=random_transform(rng),
            cfg=cfg.copy(collision_group=group),
            scale=scale,
            src=source,
            color=rng.random(3),
            opacity=float(rng.choice([1.0, 0.4])),
            label=f"{kind.name.lower()} shape",
        )
    builder.add_site(
        int(rng.choice(bodies)), xform=random_transform(rng), label="a site", visible=bool(rng.random() < 0.5)
    )
    builder.add_site(int(rng.choice(bodies)), type=GeoType.BOX, scale=(0.1, 0.2, 0.3), label="box site")


def randomize_dofs(rng, builder: ModelBuilder) -> None:
    """Sets random properties of every dof, as its joint type permits."""
    for joint, kind in enumerate(builder.joint_type):
        start = builder.joint_qd_start[joint]
        for dof in range(start, start + sum(builder.joint_dof_dim[joint])):
            for name in (
                "armature",
                "friction",
                "damping",
                "stiffness",
                "limit_ke",
                "limit_kd",
                "target_ke",
                "target_kd",
            ):
                getattr(builder, f"joint_{name}")[dof] = float(rng.choice([0.0, rng.uniform(0.01, 20.0)]))
            builder.joint_effort_limit[dof] = float(rng.choice([1.0e6, np.inf, rng.uniform(1.0, 50.0)]))
            builder.joint_velocity_limit[dof] = float(rng.choice([1.0e6, np.inf, rng.uniform(1.0, 50.0)]))
            builder.joint_target_mode[dof] = int(rng.choice(list(JointTargetMode)))
            builder.joint_target_qd[dof] = float(rng.normal())
            builder.joint_f[dof] = float(rng.choice([0.0, rng.normal()]))
            builder.joint_act[dof] = float(rng.choice([0.0, rng.normal()]))
        if kind == JointType.BALL:
            for name in ("max_angle", "max_swing"):
                getattr(builder, f"joint_{name}")[joint] = float(rng.choice([-1.0, np.inf, rng.uniform(0.0, 3.0)]))
        if kind in (JointType.PRISMATIC, JointType.REVOLUTE, JointType.D6):
            dims = builder.joint_dof_dim[joint]
            first = builder.joint_q_start[joint]
            for i in range(sum(dims)):
                low, high = sorted(rng.uniform(-1.5, 1.5, 2))
                q = rng.uniform(low, high)
                builder.joint_limit_lower[start + i] = float(rng.choice([-np.inf, low]))
                builder.joint_limit_upper[start + i] = float(rng.choice([np.inf, high]))
                builder.joint_q[first + i] = float(q)
                builder.joint_target_q[first + i] = float(rng.uniform(low, high))
                builder.joint_rest_q[first + i] = float(rng.uniform(low, high))
                builder.joint_qd[start + i] = float(rng.choice([0.0, rng.normal()]))


def random_scene(rng, *, joints: int = 10, loops: bool = True, groups=(1, 2, -1, 0), up_axis=Axis.Z) -> ModelBuilder:
    """Two random trees with joints of all types, free and kinematic bodies, loop joints, mimics, shapes of all types."""
    builder = ModelBuilder(up_axis=up_axis, gravity=rng.normal(size=3))
    for name, floating in (("held", False), ("floating", True)):
        random_tree(rng, joints=joints, builder=builder, floating=floating, label=name)
    first = builder.joint_count
    links = [
        builder.add_link(mass=1.0, inertia=np.eye(3), com=rng.normal(size=3), label=f"planar/{i}") for i in range(3)
    ]
    axes = [JointDofConfig(axis=axis) for axis in ((0, 0, 1), (-1, 0, 0))]
    turns = [JointDofConfig(axis=axis) for axis in ((0, -1, 0), (1, 0, 0))]
    builder.add_joint_d6(-1, links[0], linear_axes=axes, angular_axes=turns[:1], parent_xform=random_transform(rng))
    builder.add_joint_d6(links[0], links[1], angular_axes=turns, child_xform=random_transform(rng))
    builder.add_joint_d6(links[1], links[2], linear_axes=[JointDofConfig(axis=random_unit(rng)) for _ in range(2)])
    builder.add_articulation(range(first, first + 3), label="planar")
    bodies = list(range(builder.body_count))
    bodies += [builder.add_body(xform=random_transform(rng), label=f"stone {i}") for i in range(3)]
    kinematic = builder.add_body(mass=1.0, inertia=np.eye(3), xform=random_transform(rng), is_kinematic=True)
    bodies.append(kinematic)
    for body in bodies[-4:-1]:
        builder.add_shape_box(body, hx=0.1, hy=0.2, hz=0.3)
    randomize_dofs(rng, builder)
    add_random_shapes(rng, builder, [*bodies, -1], groups)
    add_random_shapes(rng, builder, bodies, groups)
    if loops:
        builder.add_joint_revolute(
            bodies[0], bodies[3], axis=random_unit(rng), parent_xform=random_transform(rng), label="loop"
        )
        builder.add_joint_fixed(-1, bodies[5], label="weld", enabled=False)
    single = (JointType.REVOLUTE, JointType.PRISMATIC)
    hinges = [j for j in range(joints, 2 * joints) if builder.joint_type[j] in single]
    if len(hinges) >= 2:
        builder.set_joint_mimic(hinges[0], hinges[1], coeffs=rng.normal(size=2))
    for _ in range(6):
        a, b = rng.choice(builder.shape_count, 2, replace=False)
        builder.add_shape_collision_filter_pair(int(a), int(b))
    return builder


def differences(model, other, tolerance: float = SINGLE, ignore=()) -> dict[str, str]:
    """Columns in which two models differ, with an example. Filter pairs are compared only for colliding shapes."""
    found = {}
    for column in COLUMNS:
        if column.builder_only or column.name in ignore:
            continue
        a, b = getattr(model, column.name), getattr(other, column.name)
        if column.type == "object":
            if column.name == "shape_source":
                wrong = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if not _same_source(x, y, tolerance)]
            else:
                wrong = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
            if wrong:
                found[column.name] = f"{wrong[0]}: {a[wrong[0]]!r}, {b[wrong[0]]!r}"
            continue
        a, b = a.numpy(), b.numpy()
        if a.shape != b.shape:
            found[column.name] = f"{a.shape}, {b.shape}"
            continue
        if not a.size:
            continue
        a, b = a.reshape(len(a), -1).astype(float), b.reshape(len(b), -1).astype(float)
        if column.name == "joint_q":
            b[:, 0] = _same_quaternions(model, a[:, 0], b[:, 0])
        if column.type == "transform":
            b[:, 3:] *= np.sign(np.sum(a[:, 3:] * b[:, 3:], axis=1, keepdims=True))
        exact = column.type in ("int", "int2", "bool")
        # a velocity of a floating joint is stored at another point, and comes back as a sum of velocities and levers
        axis = None if column.name == "joint_qd" else 1
        error = np.abs(a - b) / (1.0 if exact else np.maximum(1.0, np.abs(a).max(axis=axis, keepdims=True)))
        worst = int(np.argmax(error.max(axis=1)))
        if error.max() > (0.0 if exact else tolerance):
            found[column.name] = f"{worst}: {a[worst].tolist()}, {b[worst].tolist()}"
    for name in ("gravity", "articulation_start", "joint_ancestor", "shape_world_start"):
        a, b = getattr(model, name).numpy(), getattr(other, name).numpy()
        if a.shape != b.shape or np.abs(a - b).max(initial=0.0) > tolerance * max(1.0, np.abs(a).max(initial=0.0)):
            found[name] = f"{a.tolist()}, {b.tolist()}"
    for name in ("world_count", "world_label", "up_axis"):
        if getattr(model, name) != getattr(other, name):
            found[name] = f"{getattr(model, name)}, {getattr(other, name)}"
    pairs = colliding_pairs(model) ^ colliding_pairs(other)
    if pairs:
        found["shape_collision_filter_pairs"] = f"{sorted(pairs)[:5]} and more in one of them only"
    return found


def _same_quaternions(model, q: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Coordinates whose quaternions have the signs of those in ``q``."""
    other = other.copy()
    for start, kind in zip(model.joint_q_start.numpy(), model.joint_type.numpy(), strict=False):
        if kind in (JointType.FREE, JointType.DISTANCE):
            part = slice(start + 3, start + 7)
            other[part] *= np.sign(np.dot(q[part], other[part]))
    return other


def colliding_pairs(model) -> set[tuple[int, int]]:
    """Filter pairs of shapes that would collide otherwise: without visuals, and without pairs of static shapes."""
    body = model.shape_body.numpy()
    collides = model.shape_flags.numpy() & int(ShapeFlags.COLLIDE_SHAPES)
    return {
        (a, b)
        for a, b in model.shape_collision_filter_pairs
        if collides[a] and collides[b] and max(body[a], body[b]) >= 0
    }


def _same_source(a, b, tolerance: float) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, Mesh):
        alike = a.vertices.shape == b.vertices.shape and np.array_equal(a.indices, b.indices)
        alike = alike and np.abs(a.vertices - b.vertices).max() <= tolerance * np.abs(a.vertices).max()
        return alike and a.is_solid == b.is_solid and a.max_hull_vertices == b.max_hull_vertices
    if isinstance(a, Heightfield):
        numbers = [(x.hx, x.hy, x.min_z, x.max_z) for x in (a, b)]
        return (
            a.data.shape == b.data.shape
            and np.allclose(a.data, b.data, atol=10.0 * tolerance)
            and np.allclose(*numbers)
        )
    return a == b


def differences_of_constraints(model, other, tolerance: float = SINGLE) -> dict[str, str]:
    """What :func:`differences` does not compare: tendons, actuators, equality constraints, and attributes in the namespace ``mujoco``."""
    found = {}

    def compare(name: str, a, b) -> None:
        a, b = np.asarray(a, float), np.asarray(b, float)
        if a.shape != b.shape:
            found[name] = f"{a.shape}, {b.shape}"
            return
        with np.errstate(invalid="ignore"):
            error = np.where(a == b, 0.0, np.abs(a - b) / np.maximum(1.0, np.abs(a)))
        if not error.max(initial=0.0) <= tolerance:
            found[name] = f"{a.ravel()[error.argmax()]}, {b.ravel()[error.argmax()]}"

    for kind, names, texts in (
        (
            "tendon",
            TENDON_ARRAYS,
            ("label", "world", "path", "ties", "effort", "solref_limit", "solimp_limit", "margin"),
        ),
        ("actuator", (*ACTUATOR_NUMBERS, "ctrl", "act"), _ACTUATOR_TEXTS),
    ):
        mine, theirs = getattr(model, f"{kind}s"), getattr(other, f"{kind}s")
        for name in names if mine or theirs else ():
            compare(f"{kind}_{name}", *(getattr(m, f"{kind}_{name}").numpy() for m in (model, other)))
        for name in texts:
            a, b = ([getattr(one, name) for one in ones] for ones in (mine, theirs))
            if a != b:
                found[f"{kind} {name}"] = next(
                    (f"{x}, {y}" for x, y in zip(a, b, strict=False) if x != y), "other numbers"
                )
    compare("equality constraints", *(_equality_rows(m) for m in (model, other)))
    for name in (*SETTINGS, "gravcomp"):
        attribute = model.custom_attributes.get(f"mujoco:{name}")
        mine, theirs = (getattr(getattr(m, "mujoco", None), name, None) for m in (model, other))
        if mine is not None:
            mine = mine.numpy()
            # what has the default everywhere needs no attribute
            usual = np.broadcast_to(np.asarray(attribute.default, mine.dtype), mine.shape)
            compare(name, mine, usual if theirs is None else theirs.numpy())
    return found


_ACTUATOR_TEXTS = [
    "label",
    "world",
    "transmission",
    "target",
    "dof",
    "reference",
    "gain",
    "bias",
    "dynamics",
    "drive",
    "actearly",
    "rod",
]


def _equality_rows(model) -> list:
    """Numbers of all equality constraints, in ascending order."""
    rows = equalities_of(model, every=True)
    names = ["target", "joint1", "joint2", "enabled", "rules", "polycoef", "solref", "solimp", "torquescale"]
    count = 0 if rows is None else len(rows["target"])
    return sorted([number for name in names for number in np.ravel(rows[name][i]).tolist()] for i in range(count))
