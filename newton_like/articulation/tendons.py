"""Tendons of articulations: names, and properties of each world."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.articulation.chosen import Chosen, choose, write
from newton_like.articulation.names import find_names, names_of_labels
from newton_like.dynamics.tendons import tendons_of
from newton_like.types import ModelFlags

ARRAYS = {
    "stiffness": ("stiffness",),
    "damping": ("damping",),
    "offset": ("offset",),
    "rest_length": ("rest_lower", "rest_upper"),
    "pos_limits": ("limit_lower", "limit_upper"),
    "limit_stiffness": ("limit_ke",),
}
"""Properties, and the arrays ``tendon_*`` of the model that hold them."""

OF_KIND = {"fixed": tuple(ARRAYS), "spatial": ("stiffness", "damping", "offset", "limit_stiffness")}
"""Properties of fixed and of spatial tendons."""


class TendonGroup:
    """The fixed or the spatial tendons of an articulation.

    Args:
        model: the model.
        articulations: articulation of each instance.
        spatial: which of the two.

    Attributes:
        names: names of tendons, as of joints.
        indices: tendons in the model, ``[num_instances, tendons]``.
        every: all of them as a selection.

    Raises:
        ValueError: instances have different tendons.
    """

    def __init__(self, model, articulations: np.ndarray, spatial: bool):
        self._model, self.kind = model, "spatial" if spatial else "fixed"
        lists = [[]] * len(articulations)
        if model.tendons:
            index = tendons_of(model).index
            lists = [[n for n in index[a] if model.tendons[n].is_spatial is spatial] for a in articulations]
        if any(len(own) != len(lists[0]) for own in lists):
            raise ValueError(f"instances have different numbers of {self.kind} tendons")
        self.indices = np.array(lists, dtype=int).reshape(len(articulations), -1)
        self.names = names_of_labels([model.tendon_label[n] for n in lists[0]])
        self.every = Chosen(None, len(self.names), model.device)

    def read(self, name: str) -> np.ndarray:
        """A property in the model, ``[num_instances, tendons]``, limits ``[num_instances, tendons, 2]``; a rest length is the middle of
        both; a stiffness of limits is NaN where ``solref_limit`` states how soft they are."""
        parts = [getattr(self._model, f"tendon_{array}").numpy()[self.indices] for array in ARRAYS[name]]
        if name == "pos_limits":
            return np.stack(parts, axis=-1)
        if name == "limit_stiffness":
            return np.where(parts[0] < 0.0, np.nan, parts[0])
        return np.mean(parts, axis=0)

    def write(self, name: str, values: np.ndarray, rows: Chosen, columns: Chosen) -> None:
        """Writes a property of chosen tendons into the model."""
        where = np.ix_(rows.indices, columns.indices)
        places = self.indices[where]
        for i, array in enumerate(ARRAYS[name]):
            target = getattr(self._model, f"tendon_{array}")
            numbers = target.numpy().copy()
            given = values[where][..., i] if name == "pos_limits" else values[where]
            numbers[places] = np.where(np.isnan(given), -1.0, given) if name == "limit_stiffness" else given
            target.assign(numbers)


class TendonParameters:
    """The part of :class:`newton_like.articulation.Articulation` about tendons.

    ``set_*`` fill buffers, which are ``data.fixed_tendon_*`` and ``data.spatial_tendon_*``; ``write_*_tendon_properties_to_sim`` write
    them to the model, in the chosen worlds. Values have the shape ``[instances, tendons]`` or broadcast to it. The units are those of
    :class:`newton_like.model.tendons.Tendon`.
    """

    def _make_tendons(self) -> None:
        """Finds the tendons, and fills buffers and defaults of the data."""
        model, data = self.model, self.data
        self._tendons = {kind: TendonGroup(model, self._layout.articulations, kind == "spatial") for kind in OF_KIND}
        for kind, group in self._tendons.items():
            setattr(data, f"{kind}_tendon_names", group.names)
            for name in OF_KIND[kind]:
                values = group.read(name)
                for prefix in ("", "default_"):
                    array = wp.array(np.ascontiguousarray(values), dtype=model.dtype, device=self.device)
                    setattr(data, f"{prefix}{kind}_tendon_{name}", array)

    @property
    def fixed_tendon_names(self) -> list[str]:
        """Names of fixed tendons."""
        return self._tendons["fixed"].names

    @property
    def spatial_tendon_names(self) -> list[str]:
        """Names of spatial tendons."""
        return self._tendons["spatial"].names

    @property
    def num_fixed_tendons(self) -> int:
        """Number of fixed tendons."""
        return len(self.fixed_tendon_names)

    @property
    def num_spatial_tendons(self) -> int:
        """Number of spatial tendons."""
        return len(self.spatial_tendon_names)

    def find_fixed_tendons(
        self, name_keys, tendon_subsets: list[str] | None = None, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Fixed tendons by name; see :meth:`newton_like.articulation.Articulation.find_joints`."""
        return find_names(name_keys, self.fixed_tendon_names, "fixed tendon", preserve_order, tendon_subsets)

    def find_spatial_tendons(
        self, name_keys, tendon_subsets: list[str] | None = None, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Spatial tendons by name; see :meth:`newton_like.articulation.Articulation.find_joints`."""
        return find_names(name_keys, self.spatial_tendon_names, "spatial tendon", preserve_order, tendon_subsets)

    def _set(self, kind: str, name: str, values, ids, env_ids, low: float | None = None) -> None:
        group = self._tendons[kind]
        columns = choose(ids, len(group.names), self.device, f"{kind}_tendon_ids", group.every)
        if low is not None and (np.asarray(values.numpy() if isinstance(values, wp.array) else values) < low).any():
            raise ValueError(f"{name} of {kind} tendons must be at least {low:g}")
        write(getattr(self.data, f"{kind}_tendon_{name}"), self._rows(env_ids), columns, values, name)

    def _write_properties(self, kind: str, ids, env_ids) -> None:
        group, rows = self._tendons[kind], self._rows(env_ids)
        columns = choose(ids, len(group.names), self.device, f"{kind}_tendon_ids", group.every)
        if not rows.count or not columns.count:
            return
        found = {name: getattr(self.data, f"{kind}_tendon_{name}").numpy() for name in OF_KIND[kind]}
        limits = found.get("pos_limits")
        if limits is not None and (limits[..., 0] > limits[..., 1]).any():
            i, k = np.argwhere(limits[..., 0] > limits[..., 1])[0]
            raise ValueError(
                f"fixed tendon {group.names[k]!r} of instance {i}: its lower limit is above its upper limit"
            )
        for name, values in found.items():
            group.write(name, values, rows, columns)
        self.sim.notify(ModelFlags.TENDON_PROPERTIES, rows, self._layout.worlds)

    # ---------------------------------------------------------------------------------------------------- fixed

    def set_fixed_tendon_stiffness(self, stiffness, fixed_tendon_ids=None, env_ids=None) -> None:
        """Sets stiffnesses of springs, at least 0; see the class."""
        self._set("fixed", "stiffness", stiffness, fixed_tendon_ids, env_ids, 0.0)

    def set_fixed_tendon_damping(self, damping, fixed_tendon_ids=None, env_ids=None) -> None:
        """Sets dampings, at least 0; see the class."""
        self._set("fixed", "damping", damping, fixed_tendon_ids, env_ids, 0.0)

    def set_fixed_tendon_limit_stiffness(self, limit_stiffness, fixed_tendon_ids=None, env_ids=None) -> None:
        """Sets stiffnesses of the springs that act beyond the limits, at least 0. Limits that get none are as soft as
        ``Tendon.solref_limit`` states; their number is NaN."""
        self._set("fixed", "limit_stiffness", limit_stiffness, fixed_tendon_ids, env_ids, 0.0)

    def set_fixed_tendon_position_limit(self, limit, fixed_tendon_ids=None, env_ids=None) -> None:
        """Sets lower and upper limits of the length, ``[instances, tendons, 2]``; see the class."""
        self._set("fixed", "pos_limits", limit, fixed_tendon_ids, env_ids)

    def set_fixed_tendon_limit(self, limit, fixed_tendon_ids=None, env_ids=None) -> None:
        """As :meth:`set_fixed_tendon_position_limit`."""
        self.set_fixed_tendon_position_limit(limit, fixed_tendon_ids, env_ids)

    def set_fixed_tendon_rest_length(self, rest_length, fixed_tendon_ids=None, env_ids=None) -> None:
        """Sets rest lengths of springs; a dead band becomes a point; see the class."""
        self._set("fixed", "rest_length", rest_length, fixed_tendon_ids, env_ids)

    def set_fixed_tendon_offset(self, offset, fixed_tendon_ids=None, env_ids=None) -> None:
        """Sets what is added to the length; see the class."""
        self._set("fixed", "offset", offset, fixed_tendon_ids, env_ids)

    def write_fixed_tendon_properties_to_sim(self, fixed_tendon_ids=None, env_ids=None) -> None:
        """Writes the properties of fixed tendons that were set to the model.

        Raises:
            ValueError: a lower limit is above the upper one.
        """
        self._write_properties("fixed", fixed_tendon_ids, env_ids)

    # -------------------------------------------------------------------------------------------------- spatial

    def set_spatial_tendon_stiffness(self, stiffness, spatial_tendon_ids=None, env_ids=None) -> None:
        """Sets stiffnesses of springs [N/m], at least 0; see the class."""
        self._set("spatial", "stiffness", stiffness, spatial_tendon_ids, env_ids, 0.0)

    def set_spatial_tendon_damping(self, damping, spatial_tendon_ids=None, env_ids=None) -> None:
        """Sets dampings [N s/m], at least 0; see the class."""
        self._set("spatial", "damping", damping, spatial_tendon_ids, env_ids, 0.0)

    def set_spatial_tendon_limit_stiffness(self, limit_stiffness, spatial_tendon_ids=None, env_ids=None) -> None:
        """Sets stiffnesses [N/m] of the springs that act beyond the limits, at least 0. Limits that get none are as soft as
        ``Tendon.solref_limit`` states; their number is NaN."""
        self._set("spatial", "limit_stiffness", limit_stiffness, spatial_tendon_ids, env_ids, 0.0)

    def set_spatial_tendon_offset(self, offset, spatial_tendon_ids=None, env_ids=None) -> None:
        """Sets what is added to the length [m]; see the class."""
        self._set("spatial", "offset", offset, spatial_tendon_ids, env_ids)

    def write_spatial_tendon_properties_to_sim(self, spatial_tendon_ids=None, env_ids=None) -> None:
        """Writes the properties of spatial tendons that were set to the model."""
        self._write_properties("spatial", spatial_tendon_ids, env_ids)

    def _reset_tendons(self, rows: Chosen) -> None:
        """What was set and not written is dropped, and drives of tendons aim at the model's defaults."""
        for kind, group in self._tendons.items():
            if not group.names:
                continue
            for name in OF_KIND[kind]:
                target = getattr(self.data, f"{kind}_tendon_{name}")
                numbers = target.numpy().copy()
                numbers[rows.indices] = group.read(name)[rows.indices]
                target.assign(numbers)
            places = group.indices[rows.indices]
            for name in ("tendon_f", "tendon_target_q", "tendon_target_qd"):
                target = getattr(self.sim.control, name)
                numbers = target.numpy().copy()
                numbers[places] = getattr(self.model, name).numpy()[places]
                target.assign(numbers)
