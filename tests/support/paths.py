"""Paths of files for several tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The root of the repository."""

ROBOTS = ROOT.parent / "shared" / "example-robot-data" / "robots"
"""Robots of other projects, beside a checkout; their tests are skipped if the folder is missing."""

LARGE = ("anymal", "tiago", "tiago_dual")
"""The robots with the most links and meshes, which take as long as all others together."""

SCENES = ROOT.parent / "shared" / "scenes"
"""Scenes of other projects, as ``ROBOTS``."""
