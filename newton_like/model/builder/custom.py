"""The methods of :class:`ModelBuilder` that keep quantities of a user's own: declared, given, copied, laid out."""

from __future__ import annotations

import warnings

import numpy as np
import warp as wp

from newton_like.coercion import as_index, as_list
from newton_like.model.columns import BY_NAME
from newton_like.model.custom import (
    COUNTED,
    REFERENCES,
    AttributeAssignment,
    AttributeFrequency,
    CustomAttribute,
    CustomFrequency,
    attach,
    several,
)
from newton_like.model.model import Model
from newton_like.model.state import Control, State

_OWNERS = {
    AttributeAssignment.MODEL: Model,
    AttributeAssignment.STATE: State,
    AttributeAssignment.CONTROL: Control,
}


class CustomMethods:
    """Part of :class:`ModelBuilder`: custom attributes, and entities that only they know.

    Attributes:
        custom_attributes: the declared :class:`CustomAttribute` by their keys, with the entries that were given.
        custom_frequencies: the registered :class:`CustomFrequency` by their keys.
    """

    custom_attributes: dict[str, CustomAttribute]
    custom_frequencies: dict[str, CustomFrequency]

    def add_custom_attribute(self, attribute: CustomAttribute) -> None:
        """Declares a custom attribute: an array of the model, its states or its controls.

        Entries are given as ``custom_attributes={key: value}`` to the methods that add bodies, joints, shapes and articulations. For dofs,
        coordinates and constraints of a joint a value is one entry for all of them, or a list of one each. Copies of a builder have copies
        of its entries. Solvers read only those that :meth:`SolverFeatherstone.register_custom_attributes` declares.

        Args:
            attribute: the declaration. The builder keeps a copy of it, ``custom_attributes[key]``.

        Raises:
            TypeError: the argument is not a CustomAttribute.
            ValueError: the key is declared with another specification; Model, State or Control has an attribute of this name; the custom
                frequency is not registered; the name is a namespace, or the namespace is the name of an attribute.
        """
        if not isinstance(attribute, CustomAttribute):
            raise TypeError(f"add_custom_attribute() takes a CustomAttribute, not {attribute!r}")
        what, known = f"custom attribute {attribute.key!r}", self.custom_attributes.get(attribute.key)
        if known is not None:
            if not known.is_like(attribute):
                raise ValueError(
                    f"{what} already exists with an incompatible specification (dtype, frequency, assignment or references); use"
                    " another name or namespace"
                )
            known.values.update(attribute.values) if isinstance(known.values, dict) else known.values.extend(
                attribute.values
            )
            return
        owner, top = _OWNERS[attribute.assignment], attribute.namespace or attribute.name
        self._check_top_name(attribute)
        if (owner is Model and top in BY_NAME) or top in vars(owner).get("__annotations__", ()) or hasattr(owner, top):
            raise ValueError(f"{what}: {owner.__name__} has {top!r} already; use another name or a namespace")
        if isinstance(attribute.frequency, str) and attribute.frequency not in self.custom_frequencies:
            raise ValueError(
                f"{what}: its frequency {attribute.frequency!r} is not registered; call add_custom_frequency() first"
            )
        self.custom_attributes[attribute.key] = attribute.copy(attribute.values.copy())

    def _check_top_name(self, attribute: CustomAttribute) -> None:
        """Raises ValueError if an attribute has the name of a namespace of its object, or its namespace that of an attribute."""
        for other in self.custom_attributes.values():
            if other.assignment is not attribute.assignment:
                continue
            if attribute.namespace is None and other.namespace == attribute.name:
                taken = f"the namespace of {other.key!r}"
            elif attribute.namespace is not None and other.namespace is None and other.name == attribute.namespace:
                taken = f"the custom attribute {other.key!r}"
            else:
                continue
            raise ValueError(
                f"custom attribute {attribute.key!r}: {_OWNERS[attribute.assignment].__name__} has {taken} already, which would be under"
                " the same name; use another name or namespace"
            )

    def add_custom_frequency(self, frequency: CustomFrequency) -> None:
        """Registers a kind of entity. Registering a frequency again has no effect.

        Raises:
            TypeError: the argument is not a :class:`CustomFrequency`.
            ValueError: another one of that key is registered.
        """
        if not isinstance(frequency, CustomFrequency):
            raise TypeError(f"add_custom_frequency() takes a CustomFrequency, not {frequency!r}")
        if self.custom_frequencies.setdefault(frequency.key, frequency) != frequency:
            raise ValueError(
                f"custom frequency {frequency.key!r} is registered already, with other functions or attributes; use another name or"
                " namespace"
            )

    def has_custom_attribute(self, key: str) -> bool:
        """Whether an attribute of that key is declared.

        Raises:
            TypeError: the key is not a string.
        """
        if not isinstance(key, str):
            raise TypeError(f"key must be a text, not {key!r}")
        return key in self.custom_attributes

    def get_custom_attributes_by_frequency(self, frequencies) -> list[CustomAttribute]:
        """The declared attributes that have entries of one of some frequencies, in the order of their declaration.

        Args:
            frequencies: a list of :class:`AttributeFrequency` and keys of custom frequencies.

        Raises:
            TypeError: the argument is not a list of these.
        """
        listed = list(frequencies) if isinstance(frequencies, set | frozenset) else frequencies
        wanted = as_list(listed, "frequencies", "AttributeFrequency or keys of custom frequencies")
        for frequency in wanted:
            if not isinstance(frequency, AttributeFrequency | str):
                raise TypeError(
                    f"frequencies holds {frequency!r}; give AttributeFrequency or keys of custom frequencies"
                )
        return [a for a in self.custom_attributes.values() if a.frequency in wanted]

    def add_custom_values(self, **values) -> dict[str, int]:
        """Adds an entity of a custom frequency.

        Args:
            values: entries by the keys of attributes, ``**{"space:name": value}``. Attributes of the frequency that are left out have
                their default; those that refer to a world, the world that is open. Give all entries of an entity in one call: ``finalize``
                warns of attributes that were always given in calls of their own.

        Returns:
            Of each attribute, the index of its entry.

        Raises:
            AttributeError: an attribute is not declared.
            TypeError: it has no custom frequency, or the value is no entry of it.
        """
        return self.add_custom_values_batch([values])[0]

    def add_custom_values_batch(self, rows) -> list[dict[str, int]]:
        """Adds entities, one for each dict of entries; see :meth:`add_custom_values`."""
        read = []
        for row in as_list(rows, "rows", "dicts from keys to entries"):
            if not isinstance(row, dict):
                raise TypeError(f"rows holds {row!r}; give dicts from keys to entries")
            given = {}
            for key, value in row.items():
                attribute = self._custom_attribute(key)
                if not isinstance(attribute.frequency, str):
                    raise TypeError(
                        f"custom attribute {key!r} has the frequency {attribute.frequency.name}; add_custom_values() takes attributes of a"
                        " custom frequency, others are given to the add_ methods"
                    )
                entry = None if value is None else attribute.entry(value, f"custom attribute {key!r}")
                given[key] = self.current_world if entry is None and attribute.references == "world" else entry
            for attribute in self.get_custom_attributes_by_frequency(
                {self.custom_attributes[key].frequency for key in given}
            ):
                if attribute.references == "world":
                    given.setdefault(attribute.key, self.current_world)
            read.append(given)
        added = []
        for row in read:
            places = {f: self._rows_of(f) for f in {self.custom_attributes[key].frequency for key in row}}
            added.append({key: places[self.custom_attributes[key].frequency] for key in row})
            # attributes that had entries beside those of the row before are left out on purpose: finalize does not warn of them
            beside = {
                self.custom_attributes[key].frequency
                for key, place in added[-1].items()
                if 0 < place == len(self.custom_attributes[key].values)
            }
            for attribute in self.get_custom_attributes_by_frequency(beside):
                if attribute.key not in row and len(attribute.values) == places[attribute.frequency]:
                    attribute.values.append(None)
            for key, entry in row.items():
                values = self.custom_attributes[key].values
                values.extend([None] * (added[-1][key] - len(values)))
                values.append(entry)
        return added

    @property
    def joint_constraint_count(self) -> int:
        """Number of directions of velocity that the joints block."""
        return sum(6 - linear - angular for linear, angular in self.joint_dof_dim)

    def _custom_attribute(self, key: str) -> CustomAttribute:
        if key not in self.custom_attributes:
            known = ", ".join(self.custom_attributes) or "none"
            raise AttributeError(
                f"custom attribute {key!r} is not declared ({known} are); call add_custom_attribute() first"
            )
        return self.custom_attributes[key]

    def _custom_entries(self, given, counts: dict[AttributeFrequency, int], what: str) -> list[tuple]:
        """Checked entries of something that is about to be added: attributes with their entries in order.

        Args:
            given: the argument ``custom_attributes``.
            counts: frequencies of what is added, and how many entries it gets of each.
        """
        if given is None:
            return []
        if not isinstance(given, dict):
            raise TypeError(f"{what}: custom_attributes must be a dict from keys to values, not {given!r}")
        result = []
        for key, value in given.items():
            attribute = self._custom_attribute(key)
            if attribute.frequency not in counts:
                name = getattr(attribute.frequency, "name", repr(attribute.frequency))
                raise ValueError(f"{what}: custom attribute {key!r} has the frequency {name}, so it is not given here")
            if value is not None:
                about = f"{what}: custom attribute {key!r}"
                result.append((attribute, _entries(attribute, value, counts[attribute.frequency], about)))
        return result

    def _joint_constraints(self, row, axes: int) -> dict[AttributeFrequency, int]:
        """How many entries a joint of some axes has of each frequency."""
        dofs = axes
        return {
            AttributeFrequency.JOINT: 1,
            AttributeFrequency.JOINT_DOF: dofs,
            AttributeFrequency.JOINT_COORD: dofs + row.has_quaternion,
            AttributeFrequency.JOINT_CONSTRAINT: 6 - dofs,
        }

    def _keep_entries(self, entries: list[tuple]) -> None:
        """Gives entries to what is about to be added."""
        for attribute, own in entries:
            first = getattr(self, COUNTED[attribute.frequency])
            attribute.values.update({first + i: entry for i, entry in enumerate(own) if entry is not None})

    def _rows_of(self, frequency: str) -> int:
        """Number of entities of a custom frequency."""
        return max((len(a.values) for a in self.get_custom_attributes_by_frequency([frequency])), default=0)

    # ------------------------------------------------------------------------------------------------ copies

    def _check_custom(self, source) -> None:
        """Raises ValueError if attributes or frequencies of a builder that is to be copied do not fit those of this one."""
        for key, frequency in source.custom_frequencies.items():
            if self.custom_frequencies.get(key, frequency) != frequency:
                raise ValueError(
                    f"the builder to copy registers the custom frequency {key!r} with other functions or attributes; use another"
                    " name or namespace"
                )
            _resolved_owners(source, frequency)
        for key, attribute in source.custom_attributes.items():
            known = self.custom_attributes.get(key)
            if known is not None and not known.is_like(attribute):
                raise ValueError(
                    f"the builder to copy declares the custom attribute {key!r} with an incompatible specification (dtype,"
                    " frequency, assignment or references); use another name or namespace"
                )
            if known is None:
                self._check_top_name(attribute)
            rows = len(attribute.values) or (
                isinstance(attribute.frequency, str) and source._rows_of(attribute.frequency)
            )
            kind = attribute.references
            if kind is not None and rows and kind not in ("world", *REFERENCES, *source.custom_frequencies):
                raise ValueError(
                    f"custom attribute {key!r}: Unknown references value {kind!r}; use world, {', '.join(REFERENCES)} or a"
                    " registered custom frequency"
                )

    def _copy_custom(self, source, worlds: np.ndarray, first: dict, size: dict, prefixes: list) -> None:
        """Appends the entries of copies of a builder.

        Args:
            source: the builder, which :meth:`_check_custom` has seen.
            worlds: world of each copy.
            first: numbers of entities before, by the names of ``COUNTED``.
            size: those of the builder.
            prefixes: of the labels of each copy.
        """
        for frequency in source.custom_frequencies.values():
            self.add_custom_frequency(frequency)
        before = {frequency: self._rows_of(frequency) for frequency in self.custom_frequencies}
        rows = {frequency: source._rows_of(frequency) for frequency in source.custom_frequencies}
        owners = {
            f.articulation_owner_attribute: _resolved_owners(source, f) for f in source.custom_frequencies.values()
        }
        labels = {frequency.label_attribute for frequency in source.custom_frequencies.values()}
        new = [key for key in source.custom_attributes if key not in self.custom_attributes]
        for key in new:
            self.add_custom_attribute(source.custom_attributes[key].copy())
        for copy, (world, prefix) in enumerate(zip(worlds.tolist(), prefixes, strict=True)):
            offsets = {kind: first[counted] + copy * size[counted] for kind, counted in REFERENCES.items()}
            places = {frequency: before[frequency] + copy * rows.get(frequency, 0) for frequency in before}
            context = {
                "builder": source, "destination_builder": self, "entity_offsets": offsets,
                "custom_frequency_offsets": places, "world": world, "label_prefix": prefix,
            }  # fmt: skip
            for key, attribute in source.custom_attributes.items():
                target = self.custom_attributes[key]
                given = _given(attribute, target, key in new and copy == 0, size, rows, owners.get(key))
                moved = _renumbered(attribute, given, context)
                if prefix and key in labels:
                    moved = {i: f"{prefix}/{label}" if label else label for i, label in moved.items()}
                if isinstance(attribute.frequency, str):
                    start = places[attribute.frequency]
                    if moved:
                        target.values.extend([None] * (start - len(target.values)))
                        target.values.extend(moved.values())
                elif attribute.frequency is AttributeFrequency.WORLD:
                    if moved and world >= 0:
                        target.values[world] = moved[0]
                elif attribute.frequency is AttributeFrequency.ONCE:
                    target.values.update(moved)
                else:
                    start = offsets[COUNTED[attribute.frequency].removesuffix("_count")]
                    target.values.update({start + i: entry for i, entry in moved.items()})
        for attribute in self.get_custom_attributes_by_frequency([f for f, n in rows.items() if n]):
            attribute.values.extend([None] * (self._rows_of(attribute.frequency) - len(attribute.values)))

    def _renumber_custom(self, remap: dict[str, dict[int, int]]) -> None:
        """Follows a removal of entities, before they are removed.

        Args:
            remap: of kinds of columns the indices that are left, from old to new; all others stay.
        """
        remap = {{"dof": "joint_dof", "coord": "joint_coord"}.get(kind, kind): index for kind, index in remap.items()}
        blocked = [6 - linear - angular for linear, angular in self.joint_dof_dim]
        joints = np.repeat(np.arange(self.joint_count), blocked).tolist()
        left = [i for i, joint in enumerate(joints) if joint in remap.get("joint", range(self.joint_count))]
        remap.setdefault("joint_constraint", {old: new for new, old in enumerate(left)})
        for attribute in self.custom_attributes.values():
            counted = COUNTED.get(attribute.frequency)
            if counted is not None and counted.removesuffix("_count") in remap:
                own = remap[counted.removesuffix("_count")]
                attribute.values = {own[i]: entry for i, entry in attribute.values.items() if i in own}
            if attribute.references in remap:
                index = remap[attribute.references]
                pairs = attribute.values.items() if isinstance(attribute.values, dict) else enumerate(attribute.values)
                moved = {i: _mapped(entry, lambda n, index=index: index.get(n, -1)) for i, entry in pairs}
                attribute.values = moved if isinstance(attribute.values, dict) else list(moved.values())


def lay_out_custom(builder, model) -> None:
    """Gives a model the arrays of the custom attributes.

    Raises:
        ValueError: an entry is of an entity that does not exist, or the model has something of that name.
        TypeError: an entry is of another type.
    """
    model.joint_constraint_count = builder.joint_constraint_count
    model.custom_attributes = {key: a.copy() for key, a in builder.custom_attributes.items()}
    model.custom_frequency_counts = {key: builder._rows_of(key) for key in builder.custom_frequencies}
    owners = {f.articulation_owner_attribute: _resolved_owners(builder, f) for f in builder.custom_frequencies.values()}
    arrays: dict[AttributeAssignment, dict] = {assignment: {} for assignment in AttributeAssignment}
    for key, attribute in builder.custom_attributes.items():
        what = f"custom attribute {key!r}"
        count = _count(model, attribute)
        if count == 0 and isinstance(attribute.frequency, str):
            continue
        values = attribute.values if owners.get(key) is None else owners[key]
        if isinstance(values, list):
            if 0 < len(values) < count:
                warnings.warn(
                    f"{what} has missing values: {len(values)} entries, where others of {attribute.frequency!r} have {count}; the rest"
                    " is the default",
                    stacklevel=4,
                )
            values = dict(enumerate(values))
        rows = [attribute.default] * count
        named = _count_of_references(model, attribute)
        # copies of a world have the same objects, each of which is converted once; integers need no conversion
        known: dict = {}
        integers = attribute.dtype is wp.int32
        for i, value in values.items():
            if not isinstance(i, int | np.integer) or not 0 <= i < count:
                raise ValueError(f"{what} has an entry of index {i!r}; there are {count}")
            if value is None:
                continue
            if integers and type(value) is int and abs(value) < 2**31:
                rows[i] = low = high = value
            else:
                if id(value) not in known:
                    known[id(value)] = attribute.entry(value, f"{what}, index {i}")
                rows[i] = known[id(value)]
                low, high = (rows[i], rows[i]) if named is None else (np.min(rows[i]), np.max(rows[i]))
            if named is not None and (high >= named or low < -1) and rows[i] != attribute.default:
                raise ValueError(
                    f"{what}, index {i}: {rows[i]} refers to {'an' if attribute.references[0] in 'aeiou' else 'a'}"
                    f" {attribute.references} that does not exist; there are {named} (-1 refers to none)"
                )
        top = attribute.namespace or attribute.name
        if attribute.assignment is AttributeAssignment.MODEL and top in vars(model):
            raise ValueError(f"{what}: a Model has {top!r} already; use another name or a namespace")
        arrays[attribute.assignment][key] = attribute.array(rows, model.device, model.requires_grad)
    attach(model, arrays[AttributeAssignment.MODEL])
    model._custom_state, model._custom_control = (
        arrays[assignment] for assignment in (AttributeAssignment.STATE, AttributeAssignment.CONTROL)
    )
    _lay_out_owners(builder, model, arrays[AttributeAssignment.MODEL])


def _lay_out_owners(builder, model, arrays: dict) -> None:
    """Tells a model which attributes have the articulations and labels of the entities of custom frequencies.

    Raises:
        ValueError: an attribute is not as declared, or names an articulation that does not exist.
    """
    model.custom_frequency_articulation, model.custom_frequency_label_attributes = {}, {}
    for key, frequency in builder.custom_frequencies.items():
        frequency.check(builder.custom_attributes)
        owner = frequency.articulation_owner_attribute
        if owner is not None:
            found = arrays.get(owner)
            if found is None:
                found = wp.zeros(0, dtype=builder.custom_attributes[owner].dtype, device=model.device)
            numbers = found.numpy()
            wrong = np.flatnonzero((numbers < -1) | (numbers >= model.articulation_count))
            if wrong.size:
                raise ValueError(
                    f"custom attribute {owner!r}, index {wrong[0]}: articulation {numbers[wrong[0]]} does not exist; there are "
                    f"{model.articulation_count}"
                )
            model.custom_frequency_articulation[key] = found
        if frequency.label_attribute is not None:
            model.custom_frequency_label_attributes[key] = frequency.label_attribute


def _count(model, attribute: CustomAttribute) -> int:
    """Number of entries that an array has."""
    if isinstance(attribute.frequency, str):
        return model.custom_frequency_counts[attribute.frequency]
    if attribute.frequency is AttributeFrequency.ONCE:
        return 1
    if attribute.frequency is AttributeFrequency.WORLD:
        return model.world_count
    return getattr(model, COUNTED[attribute.frequency])


def _count_of_references(model, attribute: CustomAttribute) -> int | None:
    """Number of entities that an attribute may refer to; None if it refers to none."""
    if attribute.references in REFERENCES:
        return getattr(model, REFERENCES[attribute.references])
    return (
        model.world_count
        if attribute.references == "world"
        else model.custom_frequency_counts.get(attribute.references)
    )


def _entries(attribute: CustomAttribute, value, count: int, what: str) -> list:
    """A value for one thing with `count` entries: one for all, or one for each."""
    if attribute.frequency not in (
        AttributeFrequency.JOINT_DOF,
        AttributeFrequency.JOINT_COORD,
        AttributeFrequency.JOINT_CONSTRAINT,
    ):
        return [attribute.entry(value, what)]
    if isinstance(value, dict):
        wrong = [i for i in value if not isinstance(i, int | np.integer) or not 0 <= i < count]
        if wrong:
            raise ValueError(f"{what} has an entry {wrong[0]!r}; there are {count}")
        return [attribute.entry(value[i], f"{what}[{i}]") if i in value else None for i in range(count)]
    if not several(attribute, value):
        return [attribute.entry(value, what)] * count
    values = list(value)
    if len(values) != count:
        raise ValueError(f"{what} has {len(values)} values; the joint has {count}: give one each, or one for all")
    return [attribute.entry(v, f"{what}[{i}]") for i, v in enumerate(values)]


def _given(
    attribute: CustomAttribute, target: CustomAttribute, first: bool, size: dict, rows: dict, values: list | None = None
) -> dict[int, object]:
    """Entries of a builder that are copied, `values` instead of its own; defaults are, too, where the copy does not have the same by
    default."""
    differs = attribute.references is not None or attribute.default != target.default
    if isinstance(attribute.frequency, str):
        values = attribute.values if values is None else values
        given = dict(enumerate([*values, *[None] * (rows[attribute.frequency] - len(values))]))
        return {i: attribute.default if differs and v is None else v for i, v in given.items()}
    given = dict(attribute.values)
    if attribute.frequency is AttributeFrequency.ONCE:
        return given if given or not (first and differs) else {0: attribute.default}
    if not differs:
        return given
    counted = COUNTED.get(attribute.frequency)
    return {i: given.get(i, attribute.default) for i in range(1 if counted is None else size[counted])}


def _resolved_owners(builder, frequency: CustomFrequency) -> list | None:
    """The articulation of each entity of a frequency, where a resolver tells it; None without one.

    Raises:
        ValueError: the resolver returns another number of values.
        TypeError, IndexError: a value is no articulation of the builder, or -1.
    """
    count = builder._rows_of(frequency.key)
    if frequency.articulation_owner_resolver is None or not count:
        return None
    frequency.check(builder.custom_attributes)
    what = f"articulation_owner_resolver of the custom frequency {frequency.key!r}"
    found = as_list(frequency.articulation_owner_resolver(builder), what, "articulations")
    if len(found) != count:
        raise ValueError(f"{what} returned {len(found)} values, expected {count}: one for each entity")
    known = builder.custom_attributes[frequency.articulation_owner_attribute].values
    known = [*known, *[None] * (count - len(known))]
    found = [
        as_index(owner, f"{what}, entity {i}", builder.articulation_count, lowest=-1) for i, owner in enumerate(found)
    ]
    return [own if own is not None and own >= 0 else owner for own, owner in zip(known, found, strict=True)]


def _renumbered(attribute: CustomAttribute, given: dict, context: dict) -> dict:
    """Entries as they are in a copy."""
    if attribute.reference_value_transformer is not None and given:
        values = attribute.reference_value_transformer(list(given.values()), {**context, "row_indices": list(given)})
        if len(values) != len(given):
            raise ValueError(
                f"custom attribute {attribute.key!r}: reference_value_transformer returned {len(values)} values, expected {len(given)}"
            )
        return dict(zip(given, values, strict=True))
    kind = attribute.references
    if kind is None:
        return given
    if kind == "world":
        world = attribute.entry(np.full(attribute.shape, context["world"]), "world")
        return dict.fromkeys(given, world)
    offset = context["entity_offsets" if kind in REFERENCES else "custom_frequency_offsets"].get(kind, 0)
    return {i: _mapped(entry, lambda n: n + offset) for i, entry in given.items()}


def _mapped(entry, change):
    """An entry with its numbers of at least 0 changed."""
    if entry is None:
        return None
    if isinstance(entry, int | np.integer):
        return change(int(entry)) if entry >= 0 else int(entry)
    return tuple(_mapped(number, change) for number in entry)
