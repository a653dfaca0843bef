"""Collision detection under the name that it has in Newton."""

from __future__ import annotations

from newton_like.coercion import as_flag, as_number
from newton_like.collision.pipeline import collide
from newton_like.model.arguments import check_choice, check_model
from newton_like.model.contacts import Contacts
from newton_like.model.model import checked_room, contact_room
from newton_like.options import ANY, OneOf, Settings, check_option

_SOFT = "there are no deformable bodies here"
_PAIRS = "filter pairs of shapes by collision_group or shape_collision_filter_pairs"
_MEMORY = "the result does not depend on it"
_FOUND = "contacts are found as they are; edit the list afterwards"

_NEWTON = {
    "reduce_contacts": (ANY, _MEMORY),
    "body_pair_reduction": (None, _FOUND),
    "max_triangle_pairs": (ANY, _MEMORY),
    "shape_pairs_filtered": (None, _PAIRS),
    "include_static_kinematic_pairs": (True, _PAIRS),
    "soft_contact_max": (OneOf((None, 0)), _SOFT),
    "soft_contact_gap": (None, _SOFT),
    "soft_contact_margin": (None, _SOFT),
    "enable_rigid_soft_full_surface_contact": (False, _SOFT),
    "broad_phase": (OneOf((None, "nxn", "sap", "explicit")), "all pairs of a world are looked at"),
    "narrow_phase": (None, "model.collide computes the contacts"),
    "sdf_hydroelastic_config": (None, "contacts are points"),
    "shape_pairs_max": (ANY, _MEMORY),
    "deterministic": (ANY, _MEMORY),
    "contact_matching": ("disabled", "the solver matches contacts of successive steps itself, with contacts=None"),
    "contact_matching_pos_threshold": (ANY, _MEMORY),
    "contact_matching_normal_dot_threshold": (ANY, _MEMORY),
    "contact_report": (False, "there are no reports about matched contacts"),
    "verify_buffers": (ANY, _MEMORY),
    "contact_reduction_hashtable_size_factor": (ANY, _MEMORY),
    "speculative_contact_gap_max": (None, "shapes that approach each other are always listed before they touch"),
    "dynamic_shape_scale": (False, "edit model.shape_scale and call model.notify_changed()"),
    "publish_capacity": (ANY, _MEMORY),
}
"""Options of Newton 1.8: the values without effect here, and advice instead of other values."""


class CollisionPipeline(Settings):
    """Finds the contacts of states of one model: :meth:`Model.collide`, with the interface of Newton.

    A solver finds them itself if ``step`` gets ``contacts=None``, which is faster
    than to hand over a list.

    Attributes:
        model: the model.
        rigid_contact_max: number of contacts that :meth:`contacts` allocates.
        requires_grad: whether their arrays have gradients.
    """

    __slots__ = ("__weakref__", "model", "requires_grad", "rigid_contact_max", "unsupported_contacts")

    def __init__(
        self,
        model,
        *,
        rigid_contact_max: int | None = None,
        requires_grad: bool | None = None,
        unsupported_contacts: str = "error",
        **newton_options,
    ):
        """Makes a pipeline.

        Args:
            model: the model.
            rigid_contact_max: number of contacts to allocate; None: ``model.rigid_contact_max``, or eight for every colliding shape on a
                body, 16 for a convex hull.
            requires_grad: whether the arrays of contacts have gradients; None: as the model. :meth:`collide` has no gradients.
            unsupported_contacts: ``"error"``, or ``"ignore"``: pairs whose contacts are not found are ignored.
            newton_options: other options of Newton 1.8. Those that choose how Newton computes contacts, such as ``broad_phase``,
                ``reduce_contacts`` or ``shape_pairs_max``, have no effect. Other options must have Newton's default.

        Raises:
            TypeError: ``model`` is not a model; an unknown option.
            ValueError: an argument is out of range; an option of Newton that does not exist here, at another value than the default.
        """
        own = ("rigid_contact_max", "requires_grad", "unsupported_contacts")
        for name, value in newton_options.items():
            check_option("CollisionPipeline", name, value, _NEWTON, own)
        check_choice(unsupported_contacts, "unsupported_contacts", ("error", "ignore"))
        self.model = check_model(model)
        self.unsupported_contacts = unsupported_contacts
        self.requires_grad = model.requires_grad if requires_grad is None else as_flag(requires_grad, "requires_grad")
        self.rigid_contact_max = (
            contact_room(model) if rigid_contact_max is None else checked_room(model, rigid_contact_max)
        )

    @property
    def device(self):
        """Device of the model."""
        return self.model.device

    def contacts(self) -> Contacts:
        """Allocates contacts."""
        model = self.model
        contacts = Contacts(
            self.rigid_contact_max,
            device=model.device,
            dtype=model.dtype,
            requires_grad=self.requires_grad,
            requested_attributes=model.contact_attributes,
            world_count=model.world_count,
        )
        contacts.made_by = model.made_by
        return contacts

    def collide(
        self,
        state,
        contacts: Contacts,
        *,
        soft_contact_margin: float | None = None,
        soft_self_contact: bool = False,
        dt: float | None = None,
    ) -> None:
        """Finds the contacts of a state; see :func:`newton_like.collision.collide`.

        Args:
            state: its ``body_q`` and ``body_qd`` are read.
            contacts: where the contacts go; the old ones are forgotten.
            soft_contact_margin, soft_self_contact: must be None and False: there are no deformable bodies.
            dt: time step [s]; the result does not depend on it.

        Raises:
            ValueError, RuntimeError: see :func:`newton_like.collision.collide`.
        """
        for name, value, neutral in (
            ("soft_contact_margin", soft_contact_margin, None),
            ("soft_self_contact", soft_self_contact, False),
        ):
            check_option("CollisionPipeline.collide", name, value, {name: (neutral, _SOFT)}, ())
        if dt is not None:
            as_number(dt, "dt")
        collide(self.model, state, contacts, self.unsupported_contacts)
        if contacts.short:
            contacts.warn_dropped(stacklevel=2)
