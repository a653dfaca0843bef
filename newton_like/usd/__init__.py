"""USD out and around: models and motions as UsdPhysics stages, and stages simulated in place.

:func:`write` saves a model so that ``ModelBuilder.add_usd`` and other tools open it. :class:`Recorder` keeps the motion of any
model as an animation. :class:`Simulation` opens a stage, steps it, and writes the motion as an override of its prims.
"""

from newton_like.usd.export import UsdExport, write

__all__ = ["UsdExport", "write"]
