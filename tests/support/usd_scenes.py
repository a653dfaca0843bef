"""Stages for tests and benchmarks: walls of bricks."""

from __future__ import annotations

import math
from pathlib import Path

from pxr import Gf, Usd, UsdGeom, UsdPhysics

BRICK = (0.2, 0.4, 0.2)
"""Size of a brick [m]: thickness, width, height."""


def wall_stage(path: Path, rows: int, columns: int, walls: int = 1, lean: float = 0.0) -> Path:
    """Writes a stage with walls of bricks on a ground plane.

    Args:
        path: the file.
        rows, columns: bricks of a wall, upwards and sideways.
        walls: how many walls there are, behind each other.
        lean: angle by which each wall leans about its lower edge [rad].
    """
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(24)
    stage.SetStartTimeCode(0)
    world = UsdGeom.Xform.Define(stage, "/World")
    stage.SetDefaultPrim(world.GetPrim())
    UsdPhysics.Scene.Define(stage, "/World/physics")
    ground = UsdGeom.Plane.Define(stage, "/World/ground")
    ground.CreateAxisAttr("Z")
    UsdPhysics.CollisionAPI.Apply(ground.GetPrim())
    thickness, width, height = BRICK
    for k in range(walls):
        for i in range(rows):
            for j in range(columns):
                cube = UsdGeom.Cube.Define(stage, f"/World/wall_{k}/brick_{i}_{j}")
                cube.CreateSizeAttr(1.0)
                # about the lower edge in front
                x, z = 0.5 * thickness, height * (i + 0.5)
                cosine, sine = math.cos(lean), math.sin(lean)
                place = Gf.Vec3d(
                    1.5 * k + cosine * x + sine * z,
                    width * (j + 0.5 * (i % 2)),
                    thickness * sine + cosine * z - sine * x,
                )
                cube.AddTranslateOp().Set(place)
                cube.AddRotateYOp().Set(math.degrees(lean))
                cube.AddScaleOp().Set(Gf.Vec3f(*BRICK))
                cube.CreateDisplayColorAttr([Gf.Vec3f(0.7, 0.3 + 0.2 * (i % 2), 0.2 + 0.1 * (j % 3))])
                prim = cube.GetPrim()
                UsdPhysics.RigidBodyAPI.Apply(prim)
                UsdPhysics.CollisionAPI.Apply(prim)
                UsdPhysics.MassAPI.Apply(prim).CreateDensityAttr(500.0)
    stage.Save()
    return path
