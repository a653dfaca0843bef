"""Paths of files for several tests."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
"""The root of the repository."""

ROBOTS = ROOT.parent / "shared" / "example-robot-data" / "robots"
"""Robots of other projects, beside a checkout; their tests are skipped if the folder is missing."""

LARGE = (
    "anymal",
    "tiago",
    "tiago_dual",
    "tiago_no_hand",
    "go2",
    "panda",
    "panda_collision",
    "simple_humanoid",
    "solo",
    "solo12",
)
"""The robots with the most links and meshes, which take several times as long as all others together; their tests are slow."""


def by_size(paths: list[Path]) -> list:
    """Parameters of tests: paths, those of `LARGE` marked as slow."""
    return [pytest.param(path, marks=pytest.mark.slow) if path.stem in LARGE else path for path in paths]


SCENES = ROOT.parent / "shared" / "scenes"
"""Scenes of other projects, as ``ROBOTS``."""
