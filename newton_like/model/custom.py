"""Quantities of a user's own: what they are called, what they have one entry of, and which object carries them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import warp as wp

from newton_like.coercion import as_member
from newton_like.model.fields import Fields


class AttributeAssignment(IntEnum):
    """Which object has the array of a custom attribute."""

    MODEL = 0
    """The :class:`Model`."""
    STATE = 1
    """Every :class:`State` that the model makes, a copy each."""
    CONTROL = 2
    """Every :class:`Control` that the model makes, a copy each."""


class AttributeFrequency(IntEnum):
    """What a custom attribute has one entry of. The numbers are those of Newton 1.8."""

    ONCE = 0
    """The model: one entry."""
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
"""What builders and models call the numbers of entries; there are ``world_count`` worlds, at least one."""

REFERENCES = {counted.removesuffix("_count"): counted for counted in COUNTED.values()}
"""Kinds of entities that the integers of an attribute may be indices of."""

_SCALARS = {bool: wp.bool, int: wp.int32, float: wp.float32}


@dataclass
class CustomAttribute:
    """A quantity of a user's own, declared by :meth:`ModelBuilder.add_custom_attribute`.

    Entries are given to the ``add_*`` methods of the builder (``custom_attributes={key: value}``), or read from files. Entries that
    nothing gives are the default.

    Raises:
        TypeError, ValueError: a value is not as described.
    """

    name: str
    """Name of the array: ``model.name``, or ``model.namespace.name``."""
    dtype: Any
    """Warp scalar, vector, matrix, quaternion or transform type, whatever the scalar type of the model; or ``str``: a list of texts."""
    frequency: AttributeFrequency | str
    """What it has one entry of; or the key of a :class:`CustomFrequency`."""
    assignment: AttributeAssignment = AttributeAssignment.MODEL
    """Which object carries the array."""
    namespace: str | None = None
    """Name of a group of attributes."""
    references: AttributeFrequency | str | None = None
    """What integers are indices of, so that they are renumbered where builders are copied into others: an
    :class:`AttributeFrequency` or its name (``"body"``, ``"joint_dof"``), the key of a custom frequency, or ``"world"``: the world
    that the entry is copied into. Negative numbers point at nothing and stay."""
    default: Any = None
    """Entry where none is given; None: zero, False, an empty text, the identity of quaternions and transforms."""
    values: dict[int, Any] | list | None = None
    """Entries that are given: by index; of a custom frequency a list, None for the default."""
    usd_attribute_name: str | None = None
    """USD attribute that :meth:`ModelBuilder.add_usd` reads; None: ``newton:<key>``. ``"*"``: none, the transformer is called with None for
    every prim of the kind."""
    mjcf_attribute_name: str | None = None
    """XML attribute that :meth:`ModelBuilder.add_mjcf` reads; None: the name."""
    urdf_attribute_name: str | None = None
    """XML attribute that :meth:`ModelBuilder.add_urdf` reads; None: the name."""
    usd_value_transformer: Callable | None = None
    """``f(value, {"prim": prim, "attr": attribute})`` makes an entry of the value in the file; None: there is no entry."""
    mjcf_value_transformer: Callable | None = None
    """The same of the text in an MJCF; its second argument is a dict with the XML element under ``"element"``."""
    urdf_value_transformer: Callable | None = None
    """The same of the text in a URDF."""
    reference_value_transformer: Callable | None = None
    """``f(values, context)`` renumbers the given entries where a builder is copied, in place of `references`, where it depends on other
    numbers what an entry refers to. The context is a dict: ``builder`` (the copied one), ``destination_builder``, ``entity_offsets``
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
        """Whether two declarations are of one attribute."""
        names = ("dtype", "frequency", "assignment", "references", "reference_value_transformer")
        return self.key == other.key and all(getattr(self, name) == getattr(other, name) for name in names)

    def copy(self, values=None) -> CustomAttribute:
        """The same declaration with entries of its own."""
        return dataclasses.replace(self, values=type(self.values)() if values is None else values)

    def entry(self, value, what: str):
        """A value as an entry: a text, a number, or tuples of numbers.

        Raises:
            TypeError: it is none.
            ValueError: a number is beyond the range of the type.
        """
        if self.dtype is str:
            if not isinstance(value, str):
                raise TypeError(f"{what} must be a text, not {value!r}")
            return value
        value = value.numpy() if isinstance(value, wp.array) else value
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
        """The entry that a text of a file stands for; numbers that it lacks at its end are those of the default.

        Raises:
            ValueError: it stands for none.
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
        """Entries as a Warp array; texts as a list."""
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


@dataclass
class CustomFrequency:
    """Entities of a user's own that custom attributes may have entries of, registered by :meth:`ModelBuilder.add_custom_frequency`.

    :meth:`ModelBuilder.add_custom_values` adds an entity.
    """

    name: str
    namespace: str | None = None

    @property
    def key(self) -> str:
        """``name``, or ``namespace:name``."""
        return f"{self.namespace}:{self.name}" if self.namespace else self.name


class AttributeNamespace(Fields):
    """The custom attributes of one namespace of a model, a state or a control."""

    def __init__(self, name: str, arrays: dict[str, Any]):
        vars(self).update(arrays)
        vars(self)["_name"] = name

    def __repr__(self) -> str:
        return f"AttributeNamespace({self._name}: {', '.join(n for n in vars(self) if n != '_name')})"


def attach(target, arrays: dict[str, Any]) -> None:
    """Makes arrays attributes of an object: by keys, those of a namespace as attributes of that."""
    spaces: dict[str, dict] = {}
    for key, array in arrays.items():
        space, _, name = key.rpartition(":")
        (spaces.setdefault(space, {}) if space else vars(target))[name] = array
    vars(target).update({space: AttributeNamespace(space, own) for space, own in spaces.items()})


def holder(target, key: str):
    """The object that has the array of a key as an attribute, and the name it has there."""
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
    """Lists within lists as tuples."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value
