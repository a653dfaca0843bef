"""A physics engine for articulated rigid bodies on NVIDIA Warp: thousands of robots in parallel, on CPUs and GPUs."""

from importlib import import_module
from typing import TYPE_CHECKING

# first: all others import what it finds
import newton_like.checkout  # noqa: F401  # isort: skip

from newton_like.geometry.mesh import Heightfield, Mesh
from newton_like.model import Contacts, Control, JointDofConfig, Model, ModelBuilder, ShapeConfig, State
from newton_like.types import (
    MAXVAL,
    Axis,
    BodyFlags,
    GeoType,
    JointTargetMode,
    JointType,
    ModelFlags,
    ShapeFlags,
    VelRepr,
)

if TYPE_CHECKING:
    from newton_like import dynamics
    from newton_like.collision import CollisionPipeline
    from newton_like.dynamics.forces import eval_inverse_dynamics
    from newton_like.dynamics.matrices import eval_mass_matrix
    from newton_like.kinematics import eval_fk, eval_ik, eval_jacobian
    from newton_like.mechanism import MechanismState

__version__ = "0.1.0"

__all__ = [
    "MAXVAL",
    "Axis",
    "BodyFlags",
    "CollisionPipeline",
    "Contacts",
    "Control",
    "GeoType",
    "Heightfield",
    "JointDofConfig",
    "JointTargetMode",
    "JointType",
    "MechanismState",
    "Mesh",
    "Model",
    "ModelBuilder",
    "ModelFlags",
    "ShapeConfig",
    "ShapeFlags",
    "State",
    "VelRepr",
    "dynamics",
    "eval_fk",
    "eval_ik",
    "eval_inverse_dynamics",
    "eval_jacobian",
    "eval_mass_matrix",
]

_LATER = (
    "articulation", "compiler", "dynamics", "kinematics", "mechanism", "programs", "robot", "selection", "sensors", "solvers", "urdf",
    "usd", "viewer",
)  # fmt: skip
"""Packages that are imported when they are first asked for, as an attribute of this one."""

_FROM = {
    "CollisionPipeline": "collision",
    "MechanismState": "mechanism",
    "eval_fk": "kinematics",
    "eval_ik": "kinematics",
    "eval_inverse_dynamics": "dynamics.forces",
    "eval_jacobian": "kinematics",
    "eval_mass_matrix": "dynamics.matrices",
}
"""Names that are imported likewise, and from which modules: building a model needs neither programs nor dynamics."""


def __getattr__(name: str):
    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    if name in _FROM:
        value = globals()[name] = getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_FROM})
