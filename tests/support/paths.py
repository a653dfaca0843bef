"""Where files lie that several tests read."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The root of the repository."""

ROBOTS = ROOT.parent / "shared" / "example-robot-data" / "robots"
"""Robots of other makers, beside a checkout; tests of them are left out where there are none."""

LARGE = ("anymal", "tiago", "tiago_dual")
"""Those with the most links and meshes, which take as long as all others together."""

SCENES = ROOT.parent / "shared" / "scenes"
"""Scenes of other makers, as ``ROBOTS``."""
