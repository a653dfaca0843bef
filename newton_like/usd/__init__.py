"""USD stages: export of models, recording of motions, and simulation of stages in place.

:func:`write` saves a model, which ``ModelBuilder.add_usd`` and other tools can open. :class:`Recorder` saves the motion of a
model as an animation. :class:`Simulation` opens a stage, simulates it, and writes the motion to its prims.
"""

from newton_like.exporters.usd import UsdExport, write
from newton_like.usd.recorder import Recorder
from newton_like.usd.simulation import Simulation

__all__ = ["Recorder", "Simulation", "UsdExport", "write"]
