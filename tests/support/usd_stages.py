"""Robots described in SI units with z up, written as USD stages in any units and as URDF."""

from __future__ import annotations

import math

import numpy as np
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade, Vt
from scipy.spatial.transform import Rotation

from newton_like.geometry.transforms import (
    IDENTITY,
    quat_between,
    quat_from_axis_angle,
    transform,
    transform_inverse,
    transform_multiply,
)
from newton_like.model.builder.builder import ModelBuilder

from .reference import Tree, body_poses, pose_matrix

AXES = np.eye(3)


def random_pose(rng, size: float = 0.4) -> np.ndarray:
    """A position of some decimetres and a random orientation."""
    return transform(rng.uniform(-size, size, 3), Rotation.random(None, rng).as_quat())


def random_inertial(rng) -> dict:
    """Mass, centre, physically possible principal moments, and their axes."""
    mass = rng.uniform(0.5, 5.0)
    squares = rng.uniform(0.001, 0.02, 3) * mass
    return {
        "mass": mass,
        "com": rng.uniform(-0.1, 0.1, 3),
        "moments": squares.sum() - squares,
        "axes": Rotation.random(None, rng).as_quat(),
    }


def random_robot(rng, count: int = 6, kinds=("revolute", "prismatic", "fixed"), displaced: bool = True) -> dict:
    """A random tree. Bodies have their poses for random joint coordinates if `displaced`, else for zero.

    Returns:
        ``bodies`` and ``joints`` as dictionaries; body i is the child of joint i, whose parent is -1 for the world.
    """
    bodies, joints = [], []
    for number in range(count):
        parent = -1 if number == 0 else int(rng.integers(0, number))
        kind = "fixed" if number == 0 else str(rng.choice(kinds))
        axis = int(rng.integers(0, 3))
        slides = kind == "prismatic"
        q = rng.uniform(-0.5, 0.5) if displaced and kind != "fixed" else 0.0
        joint = {
            "kind": kind,
            "parent": parent,
            "axis": axis,
            "X_p": random_pose(rng),
            "X_c": random_pose(rng),
            "q": q,
            "lower": -rng.uniform(0.6, 1.5),
            "upper": rng.uniform(0.6, 1.5),
            "effort": rng.uniform(5.0, 50.0),
            "velocity": rng.uniform(1.0, 9.0),
            "friction": rng.uniform(0.0, 0.5),
            "damping": rng.uniform(0.0, 0.5),
            "armature": rng.uniform(0.01, 0.1),
            "ke": rng.uniform(10.0, 100.0),
            "kd": rng.uniform(1.0, 10.0),
            "target": rng.uniform(-0.5, 0.5),
        }
        moved = transform(q * AXES[axis]) if slides else transform(q=quat_from_axis_angle(AXES[axis], q))
        base = IDENTITY if parent < 0 else bodies[parent]["pose"]
        pose = transform_multiply(
            transform_multiply(base, joint["X_p"]), transform_multiply(moved, transform_inverse(joint["X_c"]))
        )
        bodies.append({"name": f"link_{number}", "pose": pose, **random_inertial(rng)})
        joints.append(joint)
    return {"bodies": bodies, "joints": joints}


class StageWriter:
    """A stage in memory. Its methods take SI units and z up.

    Args:
        meters, kilograms: metres and kilograms for the units of the stage.
        up: its up axis.
    """

    def __init__(self, meters: float = 1.0, kilograms: float = 1.0, up: str = "Z"):
        self.stage = Usd.Stage.CreateInMemory()
        self.meters, self.kilograms, self.up = meters, kilograms, up
        UsdGeom.SetStageMetersPerUnit(self.stage, meters)
        UsdGeom.SetStageUpAxis(self.stage, up)
        UsdPhysics.SetStageKilogramsPerUnit(self.stage, kilograms)
        self.torque = kilograms * meters**2
        self.force = kilograms * meters
        # From z up to the stage: the inverse of the importer's rotation.
        turn = quat_between(AXES["XYZ".index(up)], AXES[2])
        self.turn = transform_inverse(transform(q=turn))

    def in_stage(self, pose) -> np.ndarray:
        """Converts a world pose (z up) to the stage's axes and units."""
        pose = transform_multiply(self.turn, pose)
        return transform(pose[:3] / self.meters, pose[3:])

    def xform(self, path: str, pose=None, kind=UsdGeom.Xform):
        """A prim with a world pose (if its parents have none)."""
        prim = kind.Define(self.stage, path)
        if pose is not None:
            set_pose(prim, self.in_stage(pose))
        return prim

    def body(self, path: str, pose, inertial: dict | None = None):
        """A rigid body with a world pose."""
        prim = self.xform(path, pose).GetPrim()
        UsdPhysics.RigidBodyAPI.Apply(prim)
        if inertial is not None:
            self.inertial(prim, inertial)
        return prim

    def inertial(self, prim, inertial: dict) -> None:
        """MassAPI of mass, com, moments and axes; any may be missing."""
        api = UsdPhysics.MassAPI.Apply(prim)
        if "mass" in inertial:
            api.CreateMassAttr(inertial["mass"] / self.kilograms)
        if "density" in inertial:
            api.CreateDensityAttr(inertial["density"] / self.kilograms * self.meters**3)
        if "com" in inertial:
            api.CreateCenterOfMassAttr(Gf.Vec3f(*(inertial["com"] / self.meters).tolist()))
        if "moments" in inertial:
            moments = inertial["moments"] / (self.kilograms * self.meters**2)
            api.CreateDiagonalInertiaAttr(Gf.Vec3f(*moments.tolist()))
        if "axes" in inertial:
            api.CreatePrincipalAxesAttr(quatf(inertial["axes"]))

    def shape(self, path: str, kind: str, pose=None, collides: bool = True, **sizes):
        """A gprim with a pose in its parent; `sizes` are its attributes, and lengths are converted."""
        prim = getattr(UsdGeom, kind).Define(self.stage, path)
        if pose is not None:
            set_pose(prim, transform(np.asarray(pose[:3]) / self.meters, pose[3:]))
        for name, value in sizes.items():
            value = value if isinstance(value, str) else float(value / self.meters)
            prim.GetPrim().GetAttribute(name).Set(value)
        if collides:
            UsdPhysics.CollisionAPI.Apply(prim.GetPrim())
        return prim.GetPrim()

    def joint(self, path: str, kind: str, first, second, X0=IDENTITY, X1=IDENTITY, axis: int | None = None):
        """A joint between two body paths (``None``: the world) with frames in these bodies."""
        prim = {
            "revolute": UsdPhysics.RevoluteJoint,
            "prismatic": UsdPhysics.PrismaticJoint,
            "fixed": UsdPhysics.FixedJoint,
            "ball": UsdPhysics.SphericalJoint,
            "distance": UsdPhysics.DistanceJoint,
            "d6": UsdPhysics.Joint,
        }[kind].Define(self.stage, path)
        if axis is not None:
            prim.CreateAxisAttr("XYZ"[axis])
        for end, body, frame in ((0, first, X0), (1, second, X1)):
            frame = self.in_stage(frame) if body is None else transform(frame[:3] / self.meters, frame[3:])
            if body is not None:
                (prim.CreateBody0Rel, prim.CreateBody1Rel)[end]().SetTargets([body])
            (prim.CreateLocalPos0Attr, prim.CreateLocalPos1Attr)[end](Gf.Vec3f(*frame[:3].tolist()))
            (prim.CreateLocalRot0Attr, prim.CreateLocalRot1Attr)[end](quatf(frame[3:]))
        return prim

    def limits(self, joint, lower: float, upper: float) -> None:
        """Limits of a revolute [rad] or prismatic [m] joint."""
        unit = self.position_unit(joint)
        joint.CreateLowerLimitAttr(lower / unit)
        joint.CreateUpperLimitAttr(upper / unit)

    def position_unit(self, joint) -> float:
        """rad or m for a unit of the file."""
        return math.pi / 180.0 if joint.GetPrim().IsA(UsdPhysics.RevoluteJoint) else self.meters

    def effort_unit(self, joint) -> float:
        """N m or N for a unit of the file."""
        return self.torque if joint.GetPrim().IsA(UsdPhysics.RevoluteJoint) else self.force

    def drive(self, joint, ke: float, kd: float, target: float, speed: float = 0.0, effort: float | None = None):
        """A force drive in SI units."""
        unit, force = self.position_unit(joint), self.effort_unit(joint)
        name = "angular" if joint.GetPrim().IsA(UsdPhysics.RevoluteJoint) else "linear"
        api = UsdPhysics.DriveAPI.Apply(joint.GetPrim(), name)
        api.CreateStiffnessAttr(ke * unit / force)
        api.CreateDampingAttr(kd * unit / force)
        api.CreateTargetPositionAttr(target / unit)
        api.CreateTargetVelocityAttr(speed / unit)
        if effort is not None:
            api.CreateMaxForceAttr(effort / force)
        return api

    def number(self, prim, name: str, value: float) -> None:
        """An attribute without a schema."""
        prim.CreateAttribute(name, Sdf.ValueTypeNames.Float).Set(float(value))

    def material(self, path: str, friction: float, restitution: float, density: float | None = None):
        """A physics material."""
        material = UsdShade.Material.Define(self.stage, path)
        api = UsdPhysics.MaterialAPI.Apply(material.GetPrim())
        api.CreateStaticFrictionAttr(friction)
        api.CreateDynamicFrictionAttr(friction)
        api.CreateRestitutionAttr(restitution)
        if density is not None:
            api.CreateDensityAttr(density / self.kilograms * self.meters**3)
        return material

    def scene(self, path: str = "/Scene", gravity=None):
        """A physics scene, with a gravity vector of z up [m/s^2]."""
        scene = UsdPhysics.Scene.Define(self.stage, path)
        if gravity is not None:
            direction = Rotation.from_quat(self.turn[3:]).apply(gravity)
            size = np.linalg.norm(direction)
            scene.CreateGravityDirectionAttr(Gf.Vec3f(*(direction / size).tolist()))
            scene.CreateGravityMagnitudeAttr(size / self.meters)
        return scene


def bind(prim, material) -> None:
    """Binds a physics material."""
    UsdShade.MaterialBindingAPI.Apply(prim).Bind(material, materialPurpose="physics")


def quatf(q) -> Gf.Quatf:
    """USD's order of a quaternion x, y, z, w."""
    x, y, z, w = (float(c) for c in q)
    return Gf.Quatf(w, x, y, z)


def set_pose(xformable, pose) -> None:
    """Translate and orient in double precision."""
    xformable = UsdGeom.Xformable(xformable.GetPrim())
    xformable.ClearXformOpOrder()
    xformable.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*np.asarray(pose[:3], dtype=float).tolist()))
    x, y, z, w = (float(c) for c in pose[3:])
    xformable.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(w, x, y, z))


def write_robot(robot: dict, meters: float = 1.0, kilograms: float = 1.0, up: str = "Z", swapped=()) -> StageWriter:
    """A robot as a stage; joints with a number in ``swapped`` have their bodies in the reverse order."""
    writer = StageWriter(meters, kilograms, up)
    root = UsdGeom.Xform.Define(writer.stage, "/Robot").GetPrim()
    UsdPhysics.ArticulationRootAPI.Apply(root)
    paths = [f"/Robot/{body['name']}" for body in robot["bodies"]]
    for path, body in zip(paths, robot["bodies"], strict=True):
        writer.body(path, body["pose"], body)
    for number, spec in enumerate(robot["joints"]):
        parent = None if spec["parent"] < 0 else paths[spec["parent"]]
        ends = [(parent, spec["X_p"]), (paths[number], spec["X_c"])]
        if number in swapped:
            ends.reverse()
        kind = spec["kind"]
        (first, X0), (second, X1) = ends
        axis = None if kind == "fixed" else spec["axis"]
        joint = writer.joint(f"/Robot/joint_{number}", kind, first, second, X0, X1, axis)
        if kind == "fixed":
            continue
        unit, effort = writer.position_unit(joint), writer.effort_unit(joint)
        prim = joint.GetPrim()
        writer.limits(joint, spec["lower"], spec["upper"])
        writer.drive(joint, spec["ke"], spec["kd"], spec["target"], effort=spec["effort"])
        inertia = writer.torque if kind == "revolute" else kilograms
        writer.number(prim, "newton:armature", spec["armature"] / inertia)
        writer.number(prim, "newton:friction", spec["friction"] / effort)
        writer.number(prim, "newton:damping", spec["damping"] * unit / effort)
        writer.number(prim, "newton:velocityLimit", spec["velocity"] / unit)
    return writer


SINGLE = 3.0e-6
"""Tolerance for float32 attributes of USD (6e-8 relative): a joint frame or inertia is a product of a few of them."""


def load(source, **options):
    builder = ModelBuilder()
    return builder, builder.add_usd(source, **options)


def text(body: str, head: str = 'metersPerUnit = 1\nupAxis = "Z"') -> str:
    # Statements of the text format end with their line.
    return f"#usda 1.0\n(\n{head}\n)\n" + body.replace("}", "\n}\n")


def tree_of(builder) -> Tree:
    return Tree.from_model(builder.finalize(device="cpu", dtype=wp.float64))


def poses(builder, q) -> list[np.ndarray]:
    """Matrices of all bodies."""
    return [pose_matrix(pose) for pose in body_poses(tree_of(builder), np.array(q, dtype=float))]


def add_mesh(writer, path, points, faces, approximation=None, collides=True):
    mesh = UsdGeom.Mesh.Define(writer.stage, path)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.asarray(points, dtype=np.float32)))
    mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
    mesh.CreateFaceVertexIndicesAttr([int(i) for face in faces for i in face])
    if collides:
        UsdPhysics.CollisionAPI.Apply(mesh.GetPrim())
    if approximation is not None:
        UsdPhysics.MeshCollisionAPI.Apply(mesh.GetPrim()).CreateApproximationAttr(approximation)
    return mesh


CUBE_FACES = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]


def cube_points(half=(0.5, 0.5, 0.5), center=(0.0, 0.0, 0.0)):
    corners = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    return np.array(corners) * half + center


def pair(writer, **masses):
    for name in "ab":
        writer.body(f"/{name}", random_pose(np.random.default_rng(1)), {"mass": 1.0, "moments": np.ones(3), **masses})
