"""Writes custom attributes of a model, which ``add_usd`` reads into a builder that declares them, and MuJoCo's settings of pairs of
shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from pxr import Sdf

from newton_like.exporters.usd.author import Author
from newton_like.model.custom import AttributeAssignment, AttributeFrequency, CustomAttribute, holder
from newton_like.model.mujoco.contact_settings import PAIR, PAIR_SETTINGS, has_contact_settings, settings_of
from newton_like.model.mujoco.equality_settings import EQUALITY

KINDS = {
    AttributeFrequency.BODY: "body",
    AttributeFrequency.SHAPE: "shape",
    AttributeFrequency.ARTICULATION: "articulation",
    AttributeFrequency.JOINT: "joint",
    AttributeFrequency.JOINT_DOF: "dof",
    AttributeFrequency.JOINT_COORD: "coord",
    AttributeFrequency.JOINT_CONSTRAINT: "constraint",
}
"""Kinds of entities whose attributes are written. Attributes of the last three are lists on the prims of joints."""

_MUJOCO = "mjc:"
"""Beginning of the names of MuJoCo's schemas, whose numbers are in double precision."""

NO_CUSTOM = "custom attributes are not written"
SECOND_PAIRS = "second settings of a pair of shapes have no effect, and are not written"

PAIR_NUMBERS = {
    "index": "int[]",
    "condim": "int[]",
    "solref": "float[]",
    "solimp": "float[]",
    "margin": "float[]",
    "gap": "float[]",
    "friction": "float[]",
}
"""Types of the attributes ``newtonLike:pair<Name>`` by the names of settings of pairs: the numbers of one pair after the other. Pairs are
read in the order of their indices."""


@dataclass
class Entries:
    """The entries of a custom attribute.

    Attributes:
        attribute: the declaration.
        kind: one of ``KINDS``.
        values: ``[count, ...]``, or a list of strings.
        given: which are not the default, ``[count]``.
    """

    attribute: CustomAttribute
    kind: str
    values: np.ndarray | list[str]
    given: np.ndarray

    def differ(self, mine: np.ndarray, theirs: np.ndarray) -> bool:
        """Whether the entries with some indices differ from those with others."""
        if isinstance(self.values, list):
            return any(self.values[a] != self.values[b] for a, b in zip(mine, theirs, strict=True))
        return self.values[mine].tobytes() != self.values[theirs].tobytes()


def entries_of(model, state=None) -> tuple[list[Entries], list[str]]:
    """The entries to write, of attributes with some that are not the default, and the keys of such attributes that cannot be written:
    those of worlds, of the whole model and of other custom frequencies, those that refer to entities, and those whose values a function
    reads from the file.

    Args:
        model: the model.
        state: has the entries of attributes of states; None: those of the model's initial states.
    """
    found, left_out = [], []
    for key, attribute in model.custom_attributes.items():
        if attribute.frequency in (EQUALITY, PAIR):
            continue
        values = _values(model, state, key, attribute)
        if values is None:
            continue
        if isinstance(values, list):
            given = np.array([value != attribute.default for value in values], dtype=bool)
        else:
            usual = np.asarray(attribute.default, dtype=values.dtype)
            given = (values != usual).any(axis=tuple(range(1, values.ndim)))
        if not given.any():
            continue
        kind = KINDS.get(attribute.frequency)
        name = attribute.usd_attribute_name
        if (
            kind is None
            or attribute.references is not None
            or attribute.reference_value_transformer is not None
            or attribute.usd_value_transformer is not None
            or not Sdf.Path.IsValidNamespacedIdentifier(name)
        ):
            left_out.append(key)
        else:
            found.append(Entries(attribute, kind, values, given))
    return found, left_out


def _values(model, state, key: str, attribute: CustomAttribute):
    """The array of an attribute, ``[count, ...]``, or a list of strings; None: there is none."""
    if attribute.assignment is AttributeAssignment.MODEL:
        owner, name = holder(model, key)
        array = getattr(owner, name, None)
    elif attribute.assignment is AttributeAssignment.STATE and state is not None:
        owner, name = holder(state, key)
        array = getattr(owner, name, None)
    else:
        initial = model._custom_state if attribute.assignment is AttributeAssignment.STATE else model._custom_control
        array = initial.get(key)
    if array is None or isinstance(array, list):
        return array
    return array.numpy().reshape(len(array), *attribute.shape)


class CustomWriter:
    """Writes the entries of custom attributes that are not the default.

    Args:
        author: author of the layer.
        host: arrays of the model.
        remark: function that is called with a statement and a label.
    """

    def __init__(self, author: Author, host, remark):
        self._author, self._host, self._remark = author, host, remark

    def write(self, paths: dict[str, list[str]], scopes) -> None:
        """Writes all of them, on prims that exist already.

        Args:
            paths: paths of all prims, by kind of entity.
            scopes: the scopes of the stage; copies have the entries of their originals.
        """
        host = self._host
        members = {"body": "bodies", "shape": "shapes", "articulation": "articulations"}
        whole = [scope for scope in scopes if scope.copy_of is None]
        for entries in host.custom:
            taken = False
            for scope in whole:
                for index in getattr(scope, members.get(entries.kind, "joints")).tolist():
                    rows = slice(index, index + 1) if entries.kind in (*members, "joint") else None
                    rows = rows or host.rows(entries.kind, index)
                    if not entries.given[rows].any():
                        continue
                    path = paths["joint" if entries.kind not in members else entries.kind][index]
                    if entries.kind == "articulation" and not path:
                        path = paths["body"][int(host.joint_child[host.articulation_start[index]])]
                    taken |= not self._set(path, entries, rows)
            if taken:
                self._remark(NO_CUSTOM, entries.attribute.key)

    def _set(self, path: str, entries: Entries, rows: slice) -> bool:
        """Writes the entries of one prim. Returns false if the prim has an attribute of the name, which another property is read from."""
        prim, name = self._author.layer.GetPrimAtPath(path), entries.attribute.usd_attribute_name
        if name in prim.properties:
            return False
        values, of_mujoco = entries.values[rows], name.startswith(_MUJOCO)
        single = entries.kind in ("body", "shape", "articulation", "joint") or (of_mujoco and len(values) == 1)
        kind = _usd_type(entries.attribute, single)
        self._author.set(prim, name, kind, _flat(values, single), uniform=of_mujoco, custom=True)
        return True

    def write_pairs(self, shape_paths: list[str], written) -> None:
        """Writes MuJoCo's settings of pairs of shapes, on the prim of one of them.

        Args:
            shape_paths: paths of all prims of shapes.
            written: whether the prim of a shape is written in full, and is not in a copy of a world.
        """
        author, model, world = self._author, self._host.model, self._host.shape_world
        rows = settings_of(model) if PAIR in model.custom_frequency_counts and has_contact_settings(model) else {}
        rows["pair_index"] = np.arange(len(rows.get("pair_geom1", ())))
        of_shape: dict[int, list[tuple[int, int]]] = {}
        seen = set()
        for i, pair in enumerate(zip(rows.get("pair_geom1", ()), rows.get("pair_geom2", ()), strict=True)):
            # prims of worlds may refer to shared ones
            first, second = sorted(map(int, pair), key=lambda shape: world[shape] < 0)
            if min(first, second) < 0:
                continue
            if frozenset((first, second)) in seen:
                self._remark(SECOND_PAIRS, f"{model.shape_label[first]} and {model.shape_label[second]}")
            elif written(first):
                seen.add(frozenset((first, second)))
                of_shape.setdefault(first, []).append((i, second))
        for shape, found in of_shape.items():
            prim = author.layer.GetPrimAtPath(shape_paths[shape])
            author.relate(prim, "newtonLike:pairs", [shape_paths[other] for _, other in found])
            for name, kind in PAIR_NUMBERS.items():
                numbers = np.concatenate([np.ravel(rows[f"pair_{name}"][i]) for i, _ in found])
                author.set(prim, f"newtonLike:pair{name.capitalize()}", kind, numbers)


def pair_bonds(model, first: dict, bonds: dict) -> None:
    """Adds the settings of pairs of shapes to the things that tell worlds apart.

    Args:
        model: the model.
        first: the first joint and the first shape of each world.
        bonds: a tuple for each world.
    """
    if PAIR not in model.custom_frequency_counts or not has_contact_settings(model):
        return
    rows = settings_of(model)
    worlds = model.shape_world.numpy()
    for i, pair in enumerate(zip(rows["pair_geom1"].tolist(), rows["pair_geom2"].tolist(), strict=True)):
        if min(pair) < 0:
            continue
        world = int(max(worlds[shape] for shape in pair))
        own = [shape - first[world][1] for shape in pair]
        # a reference cannot lead to a shape outside of its world
        alone = i if min(worlds[shape] for shape in pair) != world else -1
        numbers = tuple(
            rows[name][i].tobytes() for name in PAIR_SETTINGS if name not in ("pair_world", "pair_geom1", "pair_geom2")
        )
        bonds[world] = (*bonds.get(world, ()), (own[0], own[1], numbers, alone))


def _usd_type(attribute: CustomAttribute, single: bool) -> str:
    """Name of the USD type of an entry, or of a list of entries, see ``Author``."""
    if attribute.dtype is str:
        return "string" if single else "string[]"
    scalar, shape = attribute.scalar, attribute.shape
    kind = np.dtype(wp.dtype_to_numpy(scalar))
    of_mujoco = attribute.usd_attribute_name.startswith(_MUJOCO)
    if kind.kind == "f":
        base = "double" if kind.itemsize == 8 or of_mujoco else "float"
    elif kind.kind == "b" or scalar is wp.bool:
        base = "bool"
    else:
        base = ("uint64" if kind.kind == "u" else "int64") if kind.itemsize == 8 or kind == np.uint32 else "int"
    if not single or (shape and wp.types.type_is_transformation(attribute.dtype)):
        return f"{base}[]"
    if shape and wp.types.type_is_quaternion(attribute.dtype):
        return "quatd" if base == "double" else "quatf"
    if not shape:
        return base
    short = base in ("float", "double") and shape in ((2,), (3,), (4,)) and not of_mujoco
    return f"{base}{shape[0]}" if short else f"{base}[]"


def _flat(values, single: bool):
    """The value of one prim: an entry, or the numbers of all entries."""
    if isinstance(values, list):
        return values[0] if single else values
    numbers = np.ravel(values).tolist()
    return numbers[0] if single and values.ndim == 1 else numbers
