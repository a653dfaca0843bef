"""Custom attributes: arrays of a user with names, frequencies and an object that has them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import warp as wp

from newton_like.coercion import as_member
from newton_like.model.fields import Fields
from newton_like.options import Settings, configuration


class AttributeAssignment(IntEnum):
    """The object that has the array of a custom attribute."""

    MODEL = 0
    """The :class:`Model`."""
    STATE = 1
    """Every :class:`State` of the model, a copy each."""
    CONTROL = 2
    """Every :class:`Control` of the model, a copy each."""


class AttributeFrequency(IntEnum):
    """The kind of entities for which a custom attribute has an entry each. The numbers are those of Newton 1.8."""

    ONCE = 0
    """One entry in the model."""
    JOINT = 1
    JOINT_DOF = 2
    JOINT_COORD = 3
    JOINT_CONSTRAINT = 4
    """The directions of velocity that joints block: ``JointType.constraint_count`` for each joint, in the order of joints."""
    BODY = 5
    SHAPE = 6
    ARTICULATION = 7
    WORLD = 15


COUNTED = {
    AttributeFrequency.JOINT: "joint_count",
    AttributeFrequency.JOINT_DOF: "joint_dof_count",
    AttributeFrequency.JOINT_COORD: "joint_coord_count",
    AttributeFrequency.JOINT_CONSTRAINT: "joint_constraint_count",
    AttributeFrequency.BODY: "body_count",
    AttributeFrequency.SHAPE: "shape_count",
    AttributeFrequency.ARTICULATION: "articulation_count",
}
"""Attributes of builders and models with the number of entries; attributes of worlds have ``world_count`` entries, at least one."""

FREQUENCY_OF = {
    "joint": AttributeFrequency.JOINT,
    "dof": AttributeFrequency.JOINT_DOF,
    "coord": AttributeFrequency.JOINT_COORD,
    "body": AttributeFrequency.BODY,
    "shape": AttributeFrequency.SHAPE,
    "articulation": AttributeFrequency.ARTICULATION,
}
"""Frequencies of arrays by the kinds of columns."""

REFERENCES = {counted.removesuffix("_count"): counted for counted in COUNTED.values()}
"""Kinds of entities that the integers of an attribute may refer to."""

_SCALARS = {bool: wp.bool, int: wp.int32, float: wp.float32}


@configuration(slots=True)
class CustomAttribute(Settings):
    """A custom attribute, declared by :meth:`ModelBuilder.add_custom_attribute`.

    Entries are arguments of the ``add_*`` methods of the builder (``custom_attributes={key: value}``), or come from files. Missing
    entries have the default value.

    Raises:
        TypeError, ValueError: a value is not as described.
    """

    name: str
    """Name of the array: ``model.name``, or ``model.namespace.name``."""
    dtype: Any
    """Warp scalar, vector, matrix, quaternion or transform type, independent of the scalar type of the model; or ``str``, for a list of
    strings."""
    frequency: AttributeFrequency | str
    """The kind of entities with an entry each; or the key of a :class:`CustomFrequency`."""
    assignment: AttributeAssignment = AttributeAssignment.MODEL
    """The object that has the array."""
    namespace: str | None = None
    """Name of a group of attributes."""
    references: AttributeFrequency | str | None = None
    """The kind of entities that integers refer to, so that they are renumbered in copies of builders: an
    :class:`AttributeFrequency` or its name (``"body"``, ``"joint_dof"``), the key of a custom frequency, or ``"world"``, the world
    that the entry is copied into. Negative numbers refer to nothing and are not renumbered."""
    default: Any = None
    """Value of missing entries; None: zero, False, an empty string, or the identity of quaternions and transforms."""
    values: dict[int, Any] | list | None = None
    """The given entries, by index; for a custom frequency a list, with None for the default."""
    usd_attribute_name: str | None = None
    """USD attribute that :meth:`ModelBuilder.add_usd` reads; None: ``newton:<key>``. ``"*"``: no attribute is read, and the transformer is
    called with None for every prim of the kind. Joints have a list of all numbers of their dofs, coordinates or constraints, or one
    entry for all of them."""
    mjcf_attribute_name: str | None = None
    """XML attribute that :meth:`ModelBuilder.add_mjcf` reads; None: the name."""
    urdf_attribute_name: str | None = None
    """XML attribute that :meth:`ModelBuilder.add_urdf` reads; None: the name."""
    usd_value_transformer: Callable | None = None
    """``f(value, {"prim": prim, "attr": attribute})`` returns the entry for a value of the file, or None for no entry."""
    mjcf_value_transformer: Callable | None = None
    """The same for the string in an MJCF; the second argument is a dict with the XML element under ``"element"``."""
    urdf_value_transformer: Callable | None = None
    """The same for the string in a URDF."""
    reference_value_transformer: Callable | None = None
    """``f(values, context)`` renumbers the given entries when a builder is copied, instead of `references`, for entries whose reference
    depends on other numbers. The context is a dict: ``builder`` (the copied one), ``destination_builder``, ``entity_offsets``
    (by kind), ``custom_frequency_offsets``, ``row_indices`` of the values, ``world`` and ``label_prefix`` of this copy."""

    def __post_init__(self):
        for text, what in ((self.name, "name"), (self.namespace, "namespace")):
            if text is None and what == "namespace":
                continue
            if not isinstance(text, str) or not text.isidentifier() or text.startswith("_"):
                raise ValueError(
                    f"custom attribute: {what} {text!r} must be an identifier that does not begin with '_'"
                )
        what = f"custom attribute {self.key!r}"
        self.dtype = _SCALARS.get(self.dtype, self.dtype)
        if self.dtype is not str and not _is_warp_type(self.dtype):
            raise ValueError(f"{what}: dtype {self.dtype!r} must be a Warp scalar, vector or matrix type, or str")
        if not isinstance(self.frequency, str):
            try:
                self.frequency = AttributeFrequency(self.frequency)
            except ValueError:
                raise ValueError(
                    f"{what}: unsupported attribute frequency: {self.frequency!r}; use a member of AttributeFrequency, or the key of"
                    " a CustomFrequency"
                ) from None
        self.assignment = as_member(AttributeAssignment, self.assignment, f"{what}: assignment")
        if self.references is not None and self.reference_value_transformer is not None:
            raise ValueError(f"{what}: give references or reference_value_transformer, not both")
        if (self.references is not None or self.reference_value_transformer is not None) and not self._holds_integers:
            raise ValueError(f"{what}: references are integers, not {self.dtype_name}")
        if self.references is not None and not isinstance(self.references, str):
            frequency = as_member(AttributeFrequency, self.references, f"{what}: references")
            if frequency is AttributeFrequency.ONCE:
                raise ValueError(f"{what}: references ONCE name nothing that is numbered; use another frequency")
            self.references = (
                "world" if frequency is AttributeFrequency.WORLD else COUNTED[frequency].removesuffix("_count")
            )
        self.default = self._zero() if self.default is None else self.entry(self.default, f"{what}: default")
        if self.values is None:
            self.values = [] if isinstance(self.frequency, str) else {}
        if not isinstance(self.values, list if isinstance(self.frequency, str) else dict):
            kind = "a list" if isinstance(self.frequency, str) else "a dict from indices to entries"
            raise TypeError(f"{what}: values must be {kind}, not {self.values!r}")
        self.usd_attribute_name = self.usd_attribute_name or f"newton:{self.key}"
        self.mjcf_attribute_name = self.mjcf_attribute_name or self.name
        self.urdf_attribute_name = self.urdf_attribute_name or self.name
        if self.usd_attribute_name == "*" and self.usd_value_transformer is None:
            raise ValueError(f"{what}: usd_attribute_name '*' needs a usd_value_transformer")

    @property
    def key(self) -> str:
        """``name``, or ``namespace:name``."""
        return f"{self.namespace}:{self.name}" if self.namespace else self.name

    @property
    def dtype_name(self) -> str:
        """Name of the type, for messages."""
        return getattr(self.dtype, "__name__", str(self.dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers in an entry."""
        return tuple(getattr(self.dtype, "_shape_", ()))

    @property
    def scalar(self):
        """Type of the numbers."""
        return getattr(self.dtype, "_wp_scalar_type_", self.dtype)

    @property
    def _holds_integers(self) -> bool:
        return self.dtype is not str and self.scalar is not wp.bool and _numpy_type(self.scalar).kind in "iu"

    def is_like(self, other: CustomAttribute) -> bool:
        """Whether two declarations agree."""
        names = ("dtype", "frequency", "assignment", "references", "reference_value_transformer")
        return self.key == other.key and all(getattr(self, name) == getattr(other, name) for name in names)

    def copy(self, values=None) -> CustomAttribute:
        """A copy of the declaration with separate entries."""
        return dataclasses.replace(self, values=type(self.values)() if values is None else values)

    def entry(self, value, what: str):
        """Converts a value to an entry: a string, a number, or tuples of numbers.

        Raises:
            TypeError: the value is not an entry.
            ValueError: a number is beyond the range of the type.
        """
        if self.dtype is str:
            if not isinstance(value, str):
                raise TypeError(f"{what} must be a text, not {value!r}")
            return value
        value = value.numpy() if isinstance(value, wp.array) else value
        if hasattr(value, "value") and (isinstance(value, wp.bool) or wp.types.type_is_scalar(type(value))):
            value = value.value
        try:
            numbers = np.asarray(value)
        except ValueError:
            numbers = np.zeros(0, object)
        target = _numpy_type(self.scalar)
        kind = target.kind
        if (
            kind in "iu"
            and numbers.dtype.kind == "O"
            and numbers.size
            and all(isinstance(n, int) for n in numbers.flat)
        ):
            raise self._beyond(value, what)
        fits = numbers.dtype.kind in {"b": "biu", "i": "iu", "u": "iu", "f": "iuf"}[kind] or (numbers.size == 0)
        if not fits or numbers.size != int(np.prod(self.shape, dtype=int)):
            raise TypeError(f"{what} must be a value of {self.dtype_name}, not {value!r}")
        if kind == "b" and not np.isin(numbers, (0, 1)).all():
            raise TypeError(f"{what} must be True or False, not {value!r}")
        with np.errstate(over="ignore"):
            held = numbers.reshape(self.shape).astype(target)
        kept = (
            np.isinf(held) <= np.isinf(numbers.reshape(self.shape))
            if kind == "f"
            else held == numbers.reshape(self.shape)
        )
        if not np.all(kept):
            raise self._beyond(value, what)
        return _plain(held.tolist())

    def _beyond(self, value, what: str) -> ValueError:
        return ValueError(f"{what}: {value!r} is beyond the range of {self.dtype_name}")

    def read(self, text: str, what: str):
        """Parses the string of a file as an entry. Missing numbers at its end are those of the default.

        Raises:
            ValueError: the string is not an entry.
        """
        if self.dtype is str:
            return text
        words = text.replace(",", " ").split()
        count = int(np.prod(self.shape, dtype=int))
        try:
            if self.scalar is wp.bool:
                numbers = [_TRUTHS[word.lower()] for word in words]
            else:
                numbers = [int(word) if self._holds_integers else float(word) for word in words]
            if not 0 < len(numbers) <= count:
                raise ValueError
        except (ValueError, KeyError):
            raise ValueError(f"{what}: {text!r} is no value of {self.dtype_name}") from None
        if any(math.isinf(number) and "inf" not in word.lower() for number, word in zip(numbers, words, strict=True)):
            raise self._beyond(text, what)
        rest = np.asarray(self.default).ravel()[len(numbers) :].tolist()
        return self.entry(np.array([*numbers, *rest]).reshape(self.shape), what)

    def array(self, rows: list, device, requires_grad: bool):
        """Entries as a Warp array; strings as a list."""
        if self.dtype is str:
            return list(rows)
        numbers = np.array(rows, dtype=_numpy_type(self.scalar)).reshape(len(rows), *self.shape)
        grad = requires_grad and numbers.dtype.kind == "f"
        return wp.array(numbers, dtype=self.dtype, device=device, requires_grad=grad)

    def _zero(self):
        if self.dtype is str:
            return ""
        if wp.types.type_is_quaternion(self.dtype):
            return (0.0, 0.0, 0.0, 1.0)
        if wp.types.type_is_transformation(self.dtype):
            return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        return _plain(np.zeros(self.shape, _numpy_type(self.scalar)).tolist())


def several(attribute: CustomAttribute, value) -> bool:
    """Whether a value for a joint, no dict, is a list of entries and not one entry."""
    if isinstance(value, str):
        return False
    depth = 0 if attribute.dtype is str else len(attribute.shape)
    try:
        return np.ndim(value) != depth
    except ValueError:
        # rows of different lengths: each is looked at by itself
        return True


@configuration(slots=True)
class CustomFrequency(Settings):
    """A custom kind of entities for custom attributes, registered by :meth:`ModelBuilder.add_custom_frequency`.

    :meth:`ModelBuilder.add_custom_values` adds an entity. Views of articulations have arrays of a frequency whose entities tell which
    articulation they belong to: ``CustomFrequency("item", "lab", articulation_owner_attribute="lab:item_articulation")``, and an
    attribute ``item_articulation`` with ``references="articulation"``.

    Raises:
        ValueError: a name is empty or has a colon, an attribute has not the name that is asked for, or one that is needed is missing.
        TypeError: a function cannot be called.
    """

    name: str
    """Name of the entities."""
    namespace: str | None = None
    """Name of a group of frequencies and attributes."""
    usd_prim_filter: Callable | None = None
    """``f(prim, context)`` tells whether a prim of a stage stands for an entity, which :meth:`ModelBuilder.add_usd` then adds. Its entries
    are attributes of the prim, see :attr:`CustomAttribute.usd_attribute_name`. The context is a dict: ``prim``, ``builder``, and
    ``result``, the report of the import. Prims are visited in the order of the stage, after all bodies, joints and shapes were added."""
    usd_entry_expander: Callable | None = None
    """``f(prim, context)`` returns the entities of such a prim, instead of its attributes: a dict of entries by key for each."""
    articulation_owner_attribute: str | None = None
    """Key of the attribute that has the articulation of each entity, -1 for none: ``<key>_articulation``. It is an integer attribute of
    the model with ``references="articulation"``. Give it the default -1, so that entities without an entry belong to none."""
    articulation_owner_resolver: Callable | None = None
    """``f(builder)`` returns an articulation for each entity of the builder, -1 for none. It is asked where the builder is copied into
    another one, and in ``finalize``; entities keep an articulation that they have already."""
    label_attribute: str | None = None
    """Key of the attribute that has labels of the entities: ``<key>_label``. It is an attribute of the model of type ``str``. Copies of
    a builder have their prefix before these labels, too."""

    def __post_init__(self):
        what = f"custom frequency {self.key!r}"
        for text in (self.name, *(() if self.namespace is None else (self.namespace,))):
            if not isinstance(text, str) or not text or ":" in text:
                raise ValueError(f"{what}: name and namespace must be texts without ':', not {text!r}")
        for field, ending in (("articulation_owner_attribute", "articulation"), ("label_attribute", "label")):
            given = getattr(self, field)
            if given not in (None, f"{self.key}_{ending}"):
                raise ValueError(f"{what}: {field} {given!r} must be called '{self.key}_{ending}'")
        for field, needed in (
            ("usd_prim_filter", None),
            ("usd_entry_expander", "usd_prim_filter"),
            ("articulation_owner_resolver", "articulation_owner_attribute"),
        ):
            function = getattr(self, field)
            if function is not None and not callable(function):
                raise TypeError(f"{what}: {field} must be a function, not {function!r}")
            if function is not None and needed is not None and getattr(self, needed) is None:
                raise ValueError(f"{what}: {field} needs {needed}")

    @property
    def key(self) -> str:
        """``name``, or ``namespace:name``."""
        return f"{self.namespace}:{self.name}" if self.namespace else self.name

    def check(self, attributes: dict[str, CustomAttribute]) -> None:
        """Raises ValueError if the attributes of owners and labels are not declared, or not as described."""
        wanted = (
            (self.articulation_owner_attribute, "integers with references='articulation'", _is_owner),
            (self.label_attribute, "str", lambda attribute: attribute.dtype is str),
        )
        for key, what, fits in wanted:
            if key is None:
                continue
            attribute = attributes.get(key)
            own = attribute is not None and attribute.frequency == self.key and fits(attribute)
            if not own or attribute.assignment is not AttributeAssignment.MODEL:
                raise ValueError(
                    f"custom frequency {self.key!r} needs the custom attribute {key!r}, of this frequency and of the model, with {what}"
                    f"{'; declare it with add_custom_attribute()' if attribute is None else ''}"
                )


def _is_owner(attribute: CustomAttribute) -> bool:
    return attribute.references == "articulation" and not attribute.shape


class AttributeNamespace(Fields):
    """The custom attributes of one namespace of a model, a state or a control."""

    def __init__(self, name: str, arrays: dict[str, Any]):
        vars(self).update(arrays)
        vars(self)["_name"] = name

    def __repr__(self) -> str:
        return f"AttributeNamespace({self._name}: {', '.join(n for n in vars(self) if n != '_name')})"


def attach(target, arrays: dict[str, Any]) -> None:
    """Sets arrays as attributes of an object, by key; arrays of a namespace become attributes of the namespace object."""
    spaces: dict[str, dict] = {}
    for key, array in arrays.items():
        space, _, name = key.rpartition(":")
        (spaces.setdefault(space, {}) if space else vars(target))[name] = array
    vars(target).update({space: AttributeNamespace(space, own) for space, own in spaces.items()})


def holder(target, key: str):
    """The object that has the array of a key as an attribute, and the name of the attribute."""
    space, _, name = key.rpartition(":")
    return (getattr(target, space, None) if space else target), name


_TRUTHS = dict.fromkeys(("1", "true", "yes", "t", "y"), True) | dict.fromkeys(("0", "false", "no", "f", "n"), False)


def _is_warp_type(dtype) -> bool:
    try:
        _numpy_type(getattr(dtype, "_wp_scalar_type_", dtype))
    except TypeError:
        return False
    return True


def _numpy_type(scalar) -> np.dtype:
    return np.dtype(wp.dtype_to_numpy(scalar))


def _plain(value):
    """Converts nested lists to tuples."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value
