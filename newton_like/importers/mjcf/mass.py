"""Mass, centre of mass and inertia of MJCF bodies by MuJoCo's rules."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from newton_like.coercion import LARGEST
from newton_like.geometry import inertia as rigid
from newton_like.geometry.shapes import mass_properties
from newton_like.geometry.transforms import (
    quat_from_matrix,
    quat_rotate,
    quat_to_matrix,
    transform,
    transform_multiply,
    transform_point,
)
from newton_like.importers.mjcf.assets import Assets
from newton_like.importers.mjcf.records import Body, Geom, Mjcf
from newton_like.types import GeoType

SHELL_STEP = 1.0e-6
"""Thickness [m] of the shell that approximates the surface of an ellipsoid, as in MuJoCo."""

SOLIDS = {
    "sphere": GeoType.SPHERE,
    "capsule": GeoType.CAPSULE,
    "cylinder": GeoType.CYLINDER,
    "ellipsoid": GeoType.ELLIPSOID,
    "box": GeoType.BOX,
}


def fill_masses(model: Mjcf, assets: Assets) -> None:
    """Computes mass, centre of mass and inertia of every body.

    The values come from ``<inertial>`` or the geoms, depending on ``inertiafromgeom``. Then ``boundmass``, ``boundinertia`` and
    ``balanceinertia`` are applied, and ``settotalmass`` to all bodies together.

    Raises:
        ImportFileError: a physically impossible inertia, or a mesh that cannot be used.
    """
    compiler = model.compiler
    low, high = compiler.inertiagrouprange
    geoms: list[list[Geom]] = [[] for _ in model.bodies]
    for geom in model.geoms:
        if geom.body > 0 and low <= geom.group <= high:
            geoms[geom.body].append(geom)
    for body, own in zip(model.bodies[1:], geoms[1:], strict=True):
        from_geoms = compiler.inertiafromgeom
        if from_geoms is None:
            from_geoms = body.inertial is None
        if body.inertial is not None:
            body.mass, body.com, body.inertia = body.inertial
        if from_geoms and own:
            body.mass, body.com, body.inertia = _of_geoms(own, assets)
        if body.mass > LARGEST or np.abs(body.inertia).max() > LARGEST:
            raise body.element.error(
                f"body {body.name!r} has a mass of {body.mass:g} kg and inertias up to {np.abs(body.inertia).max():g} kg m^2; "
                "units are SI (m, kg, s)"
            )
        _adjust(body, model)
    total = sum(body.mass for body in model.bodies)
    if compiler.settotalmass > 0.0 and total > 0.0:
        factor = compiler.settotalmass / total
        for body in model.bodies:
            body.mass *= factor
            body.inertia = factor * body.inertia


def _of_geoms(geoms: list[Geom], assets: Assets) -> tuple[float, np.ndarray, np.ndarray]:
    parts = [geom_mass(geom, assets) for geom in geoms]
    parts = [part for part in parts if part[0] > 0.0]
    return rigid.combine(parts)


def _adjust(body: Body, model: Mjcf) -> None:
    compiler = model.compiler
    if body.inertial is None and body.mass == 0.0 and compiler.boundmass > 0.0:
        # MuJoCo puts the centre of mass of a body without mass at the numbers of pos, in the body's own frame.
        body.com = np.array(body.element.numbers("pos", 3, (0.0, 0.0, 0.0)))
    body.mass = max(body.mass, compiler.boundmass)
    if not body.inertia.any() and compiler.boundinertia == 0.0:
        return
    moments, axes = np.linalg.eigh(body.inertia)
    moments = np.maximum(moments, compiler.boundinertia) if compiler.boundinertia > 0.0 else moments
    slack = rigid.RELATIVE_TOLERANCE * np.abs(moments).max()
    if moments[0] < -slack:
        raise body.element.error(
            f"the inertia of body {body.name!r} has the negative moment {moments[0]:g}; correct it"
        )
    if moments[2] > moments[0] + moments[1] + slack:
        if not compiler.balanceinertia:
            raise body.element.error(
                f"the inertia of body {body.name!r} has the moments {', '.join(f'{m:.6g}' for m in moments)}, but none may be larger "
                "than the sum of the others; correct it, or set balanceinertia='true' in <compiler>"
            )
        moments = np.full(3, moments.mean())
        model.findings.remark("bodies had an impossible inertia; its moments were replaced by their mean", body.name)
    elif compiler.boundinertia == 0.0:
        return
    body.inertia = (axes * moments) @ axes.T


def geom_mass(geom: Geom, assets: Assets) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre and inertia of a geom in the frame of its body. Raises ImportFileError for an unusable mesh."""
    if geom.mass == 0.0 or (geom.mass is None and geom.density == 0.0) or geom.kind in ("plane", "hfield", "sdf"):
        return 0.0, geom.pose[:3].copy(), np.zeros((3, 3))
    if geom.kind == "mesh":
        mass, com, inertia = assets.mesh_mass(geom.mesh)
        mass, inertia = mass * geom.density, inertia * geom.density
    elif geom.shell:
        mass, inertia = _shell(geom)
        com = np.zeros(3)
    else:
        mass, com, inertia = mass_properties(SOLIDS[geom.kind], geom.size, geom.density)
    if geom.mass is not None:
        if mass <= 0.0:
            # The density is zero, but the mass is given: any density gives its distribution.
            return geom_mass(replace(geom, density=1.0), assets)
        mass, inertia = geom.mass, inertia * (geom.mass / mass)
    return rigid.transform(mass, com, inertia, geom.pose)


def _shell(geom: Geom) -> tuple[float, np.ndarray]:
    """Mass and inertia of a geom whose mass covers its surface, with the density [kg/m^2]."""
    a, b, c = geom.size
    if geom.kind == "sphere":
        mass = geom.density * 4.0 * math.pi * a * a
        return mass, np.eye(3) * mass * 2.0 / 3.0 * a * a
    if geom.kind == "ellipsoid":
        return _ellipsoid_shell(geom)
    if geom.kind == "box":
        # three pairs of flat plates at a distance from the centre
        parts = []
        half = np.array([a, b, c])
        for axis in range(3):
            plate = half.copy()
            plate[axis] = 0.0
            across = np.delete(half, axis)
            mass = geom.density * 8.0 * across[0] * across[1]
            offset = np.zeros(3)
            offset[axis] = half[axis]
            second = mass * (plate**2 / 3.0 + offset**2)
            parts.append((mass, np.diag(second.sum() - second)))
        return sum(part[0] for part in parts), sum(part[1] for part in parts)
    # A cylindrical wall and two caps: discs, or half spheres whose centre of mass is half a radius from their plane.
    wall = geom.density * 4.0 * math.pi * a * b
    across, along = wall * (a * a / 2.0 + b * b / 3.0), wall * a * a
    if geom.kind == "cylinder":
        caps = geom.density * 2.0 * math.pi * a * a
        across, along = across + caps * (a * a / 4.0 + b * b), along + caps * a * a / 2.0
    else:
        caps = geom.density * 4.0 * math.pi * a * a
        across += caps * (2.0 / 3.0 * a * a + a * b + b * b)
        along += caps * 2.0 / 3.0 * a * a
    return wall + caps, np.diag([across, across, along])


def _ellipsoid_shell(geom: Geom) -> tuple[float, np.ndarray]:
    """Mass by Thomsen's formula for the surface (error at most 1.061 %), distributed as between two ellipsoids."""
    a, b, c = geom.size
    p = 1.6075
    products = ((a * b) ** p + (b * c) ** p + (c * a) ** p) / 3.0
    mass = geom.density * 4.0 * math.pi * products ** (1.0 / p)
    inner, _, inside = mass_properties(GeoType.ELLIPSOID, geom.size, 1.0)
    outer, _, outside = mass_properties(GeoType.ELLIPSOID, tuple(size + SHELL_STEP for size in geom.size), 1.0)
    return mass, mass / (outer - inner) * (outside - inside)


def fit_to_mesh(geom: Geom, assets: Assets, aabb: bool) -> Geom:
    """A primitive geom fitted to a mesh: its size is that of the mesh's box of equal inertia, or of its bounding box."""
    mass, com, inertia = assets.mesh_mass(geom.mesh)
    moments, axes = np.linalg.eigh(inertia)
    moments, axes = moments[::-1], axes[:, ::-1].copy()
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    frame, centre = axes, com
    if aabb:
        points = (assets.mesh(geom.mesh).vertices - com) @ axes
        low, high = points.min(axis=0), points.max(axis=0)
        x, y, z = 0.5 * (high - low)
        centre = com + axes @ (0.5 * (low + high))
        around = cap = max(x, y)
        ball = max(x, y, z)
    else:
        x, y, z = 0.5 * np.sqrt(np.maximum(6.0 * (moments.sum() - 2.0 * moments) / mass, 0.0))
        around = 0.5 * (x + y)
        ball, cap = (x + y + z) / 3.0, 0.5 * around
    sizes = {
        "sphere": (ball, 0.0, 0.0),
        "capsule": (around, max(0.0, z - cap), 0.0),
        "cylinder": (around, z, 0.0),
    }
    scale = geom.element.number("fitscale", 1.0)
    size = tuple(float(scale * part) for part in sizes.get(geom.kind, (x, y, z)))
    placed = transform_multiply(geom.pose, transform(centre, quat_from_matrix(frame)))
    return replace(geom, size=size, pose=placed, mesh=None)


def joint_inertias(model: Mjcf) -> dict[int, float]:
    """The inertia that each joint of a model moves in the reference pose with all other joints free, by ``id`` of the joint record.

    It is the inverse of the mean diagonal entry of ``M^-1`` over the joint's dofs, with the joint-space inertia M (composite
    rigid bodies, Featherstone 2008, section 6.2) including armature.
    """
    poses, children = model.world_poses(), model.children()
    result: dict[int, float] = {}
    for root in children[0]:
        dofs, owners = [], []
        order, composite = [root], {}
        for body in order:
            order += children[body]
        above = {root: []}
        for body in order:
            own = list(above[body])
            for joint in model.bodies[body].joints:
                columns = _subspace(joint, poses[body])
                own += range(len(dofs), len(dofs) + len(columns))
                dofs += [(body, column, joint.given.get("armature", 0.0)) for column in columns]
                owners += [joint] * len(columns)
            for child in children[body]:
                above[child] = own
            above[body] = own
            composite[body] = _spatial(model.bodies[body], poses[body])
        for body in reversed(order[1:]):
            composite[model.bodies[body].parent] += composite[body]
        matrix = np.zeros((len(dofs), len(dofs)))
        for j, (body, column, armature) in enumerate(dofs):
            force = composite[body] @ column
            for i in above[body]:
                if i <= j:
                    matrix[i, j] = matrix[j, i] = dofs[i][1] @ force
            matrix[j, j] += armature
        loose = np.diagonal(np.linalg.pinv(matrix, hermitian=True)) if dofs else np.zeros(0)
        for joint in {id(owner): owner for owner in owners}.values():
            at = [i for i, owner in enumerate(owners) if owner is joint]
            mean = float(np.mean(loose[at]))
            result[id(joint)] = 1.0 / mean if mean > 0.0 else 0.0
    return result


def _subspace(joint, pose: np.ndarray) -> list[np.ndarray]:
    """The spatial velocity of each dof: of the point at the world's origin, and angular."""
    point = transform_point(pose, joint.pos)
    turned = quat_to_matrix(pose[3:])
    if joint.kind == "slide":
        return [np.concatenate([quat_rotate(pose[3:], joint.axis), np.zeros(3)])]
    axes = [quat_rotate(pose[3:], joint.axis)] if joint.kind == "hinge" else list(turned.T)
    if joint.kind == "free":
        point = pose[:3]
    turns = [np.concatenate([np.cross(point, axis), axis]) for axis in axes]
    slides = [np.concatenate([axis, np.zeros(3)]) for axis in np.eye(3)] if joint.kind == "free" else []
    return slides + turns


def _spatial(body: Body, pose: np.ndarray) -> np.ndarray:
    """Spatial inertia of a body about the world's origin, linear part first."""
    mass, com, inertia = rigid.transform(body.mass, body.com, body.inertia, pose)
    x, y, z = com
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    result = np.zeros((6, 6))
    result[:3, :3] = mass * np.eye(3)
    result[:3, 3:] = -mass * cross
    result[3:, :3] = mass * cross
    result[3:, 3:] = inertia - mass * cross @ cross
    return result
