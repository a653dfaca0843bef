"""The project's own robots say the truth about themselves."""

import math

import numpy as np
import pytest
import warp as wp

from newton_like import assets
from newton_like.geometry import inertia
from newton_like.geometry.shapes import mass_properties
from newton_like.geometry.transforms import quat_from_axis_angle, transform
from newton_like.model.builder import ModelBuilder
from newton_like.types import GeoType

from .support.reference import Tree, body_poses, pose_matrix


def test_the_quadruped_weighs_what_its_comments_say():
    """The inertias in the file, from the primitives in its comments."""
    builder = ModelBuilder()
    report = builder.add_urdf(assets.path("quadruped.urdf"))
    assert not report.remarks and not report.not_understood
    assert sum(builder.body_mass) == pytest.approx(12.0, rel=1e-12)
    across = quat_from_axis_angle([1, 0, 0], math.pi / 2)

    def solid(kind, scale, mass, place=(0, 0, 0), turn=(0, 0, 0, 1)):
        volume, com, moments = mass_properties(kind, scale, 1.0)
        return inertia.transform(mass, com, moments * mass / volume, transform(place, turn))

    for leg in ("fl", "fr", "rl", "rr"):
        left = 1.0 if leg[1] == "l" else -1.0
        expected = {
            "trunk": [solid(GeoType.BOX, (0.2, 0.08, 0.05), 5.6)],
            f"{leg}_hip": [solid(GeoType.CYLINDER, (0.045, 0.03, 0), 0.6, (0, 0.03 * left, 0), across)],
            f"{leg}_thigh": [
                solid(GeoType.CYLINDER, (0.045, 0.02, 0), 0.55, (0, 0.02 * left, 0), across),
                solid(GeoType.CYLINDER, (0.02, 0.1, 0), 0.25, (0, 0, -0.1)),
            ],
            f"{leg}_calf": [solid(GeoType.CYLINDER, (0.012, 0.1, 0), 0.15, (0, 0, -0.1))],
            f"{leg}_foot": [solid(GeoType.SPHERE, (0.02, 0, 0), 0.05)],
        }
        for name, parts in expected.items():
            mass, com, moments = inertia.combine(parts)
            body = report.links[name]
            assert builder.body_mass[body] == pytest.approx(mass)
            # The file has five digits.
            assert np.allclose(builder.body_com[body], com, atol=1e-6)
            assert np.allclose(builder.body_inertia[body], moments, rtol=1e-4, atol=1e-4 * np.max(moments))


def test_the_quadruped_stands_where_its_comments_say():
    builder = ModelBuilder()
    report = builder.add_urdf(assets.path("quadruped.urdf"), floating=True)
    for leg in ("fl", "fr", "rl", "rr"):
        for part, angle in (("thigh", 0.8), ("calf", -1.6)):
            builder.joint_q[builder.joint_q_start[report.joints[f"{leg}_{part}"]]] = angle
    tree = Tree.from_model(builder.finalize(device="cpu", dtype=wp.float64))
    placed = [pose_matrix(pose) for pose in body_poses(tree, np.array(builder.joint_q))]
    height = 0.4 * math.cos(0.8)
    for leg, x, y in (("fl", 0.18, 0.12), ("fr", 0.18, -0.12), ("rl", -0.18, 0.12), ("rr", -0.18, -0.12)):
        assert np.allclose(placed[report.links[f"{leg}_foot"]][:3, 3], (x, y, -height), atol=1e-12)
    # Nothing but the feet touches the ground then.
    ground = -height - 0.02
    for name, shapes in report.shapes.items():
        for shape in shapes:
            low = placed[report.links[name]] @ pose_matrix(np.array(builder.shape_transform[shape]))
            reach = np.linalg.norm(np.array(builder.shape_scale[shape]) * np.abs(low[2, :3]))
            assert low[2, 3] - reach > ground + 0.005 or "foot" in name
    assert builder.joint_effort_limit[6] == 35.0 and builder.joint_velocity_limit[6] == 25.0


def test_assets_are_found_by_name():
    assert assets.path("quadruped.urdf").is_file()
    with pytest.raises(FileNotFoundError, match=r"no asset 'dog.urdf'; there are: quadruped.urdf"):
        assets.path("dog.urdf")
    with pytest.raises(FileNotFoundError):
        assets.path("../pyproject.toml")
