"""Laws of contacts in the solver in maximal coordinates: MuJoCo's rules for friction and softness, by classes of shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.collision.laws import MOST_CLASSES, class_laws
from newton_like.dynamics.matrices import eval_mass_matrix
from newton_like.kernels.tree import LAW_SOFT
from newton_like.kinematics import eval_jacobian
from newton_like.model.mujoco.contact_settings import has_contact_settings, settings_of
from newton_like.solvers.xpbd.moving import moving_bodies


@dataclass
class ContactLaws:
    """Laws of the contacts of a model.

    Attributes:
        class_of: the class of each shape, ``[shape_count]``.
        table: laws of pairs of classes, ``[classes, classes, LAW_COLUMNS]``.
        weight: mean inverse masses of bodies at their centres of mass [1/kg], zero where no law is soft, ``[body_count]``.
    """

    class_of: np.ndarray
    table: np.ndarray
    weight: np.ndarray

    def arrays(self, model, array) -> dict:
        """The arrays of the struct ``Laws`` that steps do not write; `array` makes them."""
        return dict(
            laws=array(self.table.ravel(), model.dtype), classes=len(self.table), class_of=array(self.class_of),
            torsional=model.shape_material_mu_torsional, rolling=model.shape_material_mu_rolling,
            weight=array(self.weight, model.dtype),
        )  # fmt: skip


def laws_by_class(model) -> tuple[np.ndarray, np.ndarray] | None:
    """The class of each shape and the laws of pairs of classes, as in :class:`ContactLaws`; None: contacts have a normal and two tangents,
    and the softness of materials.

    Raises:
        ValueError: a setting is out of range; there are too many kinds of shapes.
    """
    rolls = any((getattr(model, f"shape_material_mu_{name}").numpy() > 0.0).any() for name in ("torsional", "rolling"))
    stated = has_contact_settings(model) and settings_of(model)["contact_rules"].any()
    if not model.shape_count or not (rolls or stated):
        return None
    class_of, table = class_laws(model)
    if len(table) > MOST_CLASSES:
        raise ValueError(
            f"the shapes have {len(table)} different sets of settings of MuJoCo (solref, solimp, condim, priority, solmix, friction);"
            f" SolverXPBD takes at most {MOST_CLASSES}"
        )
    return class_of, table


def contact_laws_of(model) -> ContactLaws | None:
    """The laws of contacts of a model; None as in :func:`laws_by_class`.

    Raises:
        ValueError: see :func:`laws_by_class`.
    """
    found = laws_by_class(model)
    if found is None:
        return None
    class_of, table = found
    weight = _inverse_weights(model) if (table[..., LAW_SOFT] > 0.0).any() else np.zeros(model.body_count)
    return ContactLaws(class_of, table, weight)


def _inverse_weights(model) -> np.ndarray:
    """The mean inverse masses of bodies at their centres of mass, in the initial configuration."""
    out = np.zeros(model.body_count)
    moves, mass = moving_bodies(model), model.body_mass.numpy().astype(np.float64)
    out[moves & (mass > 0.0)] = 1.0 / mass[moves & (mass > 0.0)]
    if not model.articulation_count:
        return out
    state = model.state()
    jacobians = eval_jacobian(model, state).numpy().astype(np.float64)
    inertia = eval_mass_matrix(model, state).numpy().astype(np.float64)
    # degrees of freedom that an articulation lacks
    lacks = np.einsum("aii->ai", inertia) <= 0.0
    inertia += np.einsum("ai,ij->aij", lacks, np.eye(inertia.shape[1]))
    rows = jacobians.reshape(len(jacobians), -1, 6, jacobians.shape[2])[:, :, :3]
    response = np.linalg.solve(inertia[:, None], np.swapaxes(rows, 2, 3))
    mean = np.einsum("akij,akji->ak", rows, response) / 3.0
    starts, child = model.articulation_start.numpy(), model.joint_child.numpy()
    for a in range(model.articulation_count):
        own = child[starts[a] : starts[a + 1]]
        out[own] = mean[a, : len(own)]
    out[~moves] = 0.0
    return out
