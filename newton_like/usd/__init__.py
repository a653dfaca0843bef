"""USD out and around: models and motions as UsdPhysics stages, and stages simulated in place.

:func:`write` saves a model so that ``ModelBuilder.add_usd`` and other tools open it. :class:`Recorder` keeps the motion of any
model as an animation. :class:`Simulation` opens a stage, steps it, and writes the motion over its prims.
"""

from newton_like.exporters.usd import UsdExport, write
from newton_like.usd.recorder import Recorder
from newton_like.usd.simulation import Simulation

__all__ = ["Recorder", "Simulation", "UsdExport", "write"]
