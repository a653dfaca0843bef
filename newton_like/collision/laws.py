"""The laws of contacts whose shapes, or whose pair, state MuJoCo's settings: friction, and softness by `solref` and `solimp`; and those of
joint limits, softness by `solreflimit` and `solimplimit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from newton_like.collision.ground import ContactTables
from newton_like.kernels.parameters.contacts import LAW_TABLE
from newton_like.model.mujoco.contact_settings import (
    FRICTION_RULE,
    LARGER_RULE,
    LIMIT_SETTINGS,
    PAIR_SETTINGS,
    SOFTNESS_RULE,
    has_contact_settings,
    settings_of,
)

from newton_like.kernels.tree import (  # isort: skip
    LAW, LAW_BY_RULE, LAW_DAMPING, LAW_IMPEDANCE, LAW_IMPEDANCE_MOST, LAW_INVERSE_WIDTH, LAW_MIDPOINT, LAW_MOST, LAW_MU, LAW_POWER,
    LAW_SHIFT, LAW_SOFT, LAW_STIFFNESS, LAWS_OF_CANDIDATES, LAWS_OF_PAIRS,
)  # fmt: skip

MIN_IMPEDANCE, MAX_IMPEDANCE = 1.0e-4, 0.9999
"""Bounds of impedances and of their midpoint, MuJoCo's ``mjMINIMP`` and ``mjMAXIMP``."""

TINY = 1.0e-15
"""MuJoCo's ``mjMINVAL``."""


MOST_CLASSES = 512
"""Largest number of kinds of shapes that state settings; laws of all pairs of them take 38 MB."""


@dataclass
class Laws:
    """Laws of the contacts and of the position limits of a batch.

    Attributes:
        shapes: model indices of the first and of the second shapes, ``[count, laws]`` each; contacts are colliders, then pairs. -1 for the
            limits of degrees of freedom, which follow.
        table: the numbers of laws, ``[count or 1, laws, LAW_TABLE]``.
        handed: how many laws, the first ones, come with lists of contacts, one for each candidate.
    """

    shapes: tuple[np.ndarray, np.ndarray]
    table: np.ndarray
    handed: int = 0


@dataclass
class ListedLaws:
    """Laws of contacts in lists, by their shapes.

    Attributes:
        class_of: the class of each shape, ``[shape_count]``.
        table: laws of the contacts of two classes, ``[classes, classes, LAW_TABLE]``.
        codes: pairs of shapes with laws of their own, as 2^32 smaller + larger index, in ascending order.
        of_pairs: the laws of these, ``[len(codes), LAW_TABLE]``.
    """

    class_of: np.ndarray
    table: np.ndarray
    codes: np.ndarray
    of_pairs: np.ndarray


def add_laws(model, tables: ContactTables) -> ContactTables:
    """Adds the laws of contacts to the tables of a batch, where some shape or pair states one.

    Raises:
        ValueError: a setting is out of range.
    """
    if not has_contact_settings(model):
        return tables
    settings = settings_of(model)
    pairs = _explicit(settings)
    if not settings["contact_rules"].any() and not len(pairs[0]):
        return tables
    _check(model, settings)
    arrays = tables.arrays
    one = np.concatenate([tables.shapes, tables.pair_shapes[:, arrays["pair_one"]]], axis=1)
    two = np.concatenate([tables.planes, tables.pair_shapes[:, arrays["pair_two"]]], axis=1)
    if not one.size:
        return tables
    flat = _combined(settings, pairs, turning_friction(model), one.ravel(), two.ravel())
    table = flat.reshape(*one.shape, LAW_TABLE)
    if not (table[..., LAW_BY_RULE].any() or table[..., LAW_SOFT].any()):
        return tables
    if (table == table[:1]).all():
        table = table[:1]
    tables.laws = Laws((one, two), table)
    tables.numbers.update(laws=LAWS_OF_PAIRS, soft_contacts=int(table[..., LAW_SOFT].any()))
    if table[..., LAW_MU + 1 : LAW_MU + 3].any():
        tables.numbers["contact_rows"] = 6
    return tables


def listed_laws(model) -> ListedLaws | None:
    """The laws of contacts that are handed over in lists; None: no shape or pair states one.

    Raises:
        ValueError: a setting is out of range; there are too many kinds of shapes.
    """
    if not has_contact_settings(model):
        return None
    settings = settings_of(model)
    codes, of = _explicit(settings)
    if not settings["contact_rules"].any() and not len(codes):
        return None
    _check(model, settings)
    class_of, table = class_laws(model)
    if len(table) > MOST_CLASSES:
        raise ValueError(
            f"the shapes have {len(table)} different sets of settings of MuJoCo (solref, solimp, condim, priority, solmix, torsional"
            f" and rolling friction); contacts that are handed over may have at most {MOST_CLASSES}; use fewer, or pass contacts=None"
        )
    if not settings["contact_rules"].any():
        table[..., LAW + 3] = -1.0
    of_pairs = np.zeros((len(codes), LAW_TABLE))
    _state_pairs(of_pairs, settings, np.arange(len(codes)), of)
    return ListedLaws(class_of, table, codes, of_pairs)


def add_listed_laws(tables: ContactTables, laws: ListedLaws | None, count: int) -> ContactTables:
    """Adds a law for each candidate to the tables of a batch of so many clusters that is handed contacts; lists fill them in."""
    candidates = tables.numbers["candidates"]
    if laws is None or not candidates:
        return tables
    none = np.full((count, candidates), -1)
    tables.laws = Laws((none, none), _plain_laws(1, candidates), candidates)
    soft = any(x[..., LAW_SOFT].any() for x in (laws.table, laws.of_pairs))
    tables.numbers.update(laws=LAWS_OF_CANDIDATES, soft_contacts=int(soft))
    if any(x[..., LAW_MU + 1 : LAW_MU + 3].any() for x in (laws.table, laws.of_pairs)):
        tables.numbers["contact_rows"] = 6
    return tables


def class_laws(model) -> tuple[np.ndarray, np.ndarray]:
    """Laws of contacts by classes of shapes that state the same settings.

    Returns:
        The class of each shape, ``[shape_count]``, and the laws of the contacts of two classes, ``[classes, classes, LAW_TABLE]``.

    Raises:
        ValueError: a setting is out of range.
    """
    settings = settings_of(model) if has_contact_settings(model) else {}
    if not np.asarray(settings.get("contact_rules", ())).any():
        return np.zeros(model.shape_count, dtype=int), _plain_laws(1, 1)
    _check(model, settings)
    turning = turning_friction(model)
    if not (settings["contact_rules"] & FRICTION_RULE).any():
        # no law reads it
        turning = np.zeros_like(turning)
    names = (
        "contact_rules",
        "condim",
        "geom_priority",
        "geom_solmix",
        "solref",
        "geom_solimp",
        "geom_turning_friction",
    )
    columns = [settings[name].reshape(model.shape_count, -1).astype(np.float64) for name in names]
    _, first, class_of = np.unique(
        np.concatenate([*columns, turning], axis=1), axis=0, return_index=True, return_inverse=True
    )
    one, two = (x.ravel() for x in np.meshgrid(first, first, indexing="ij"))
    none = np.zeros(0, dtype=np.int64)
    table = _combined(settings, (none, none), turning, one, two)
    return class_of.ravel(), table.reshape(len(first), len(first), LAW_TABLE)


def law_inputs(model) -> dict[str, np.ndarray]:
    """The arrays of which the tables of laws are made, copied: settings, and friction of shapes that some law combines."""
    if not has_contact_settings(model):
        return {}
    found = {name: numbers.copy() for name, numbers in settings_of(model).items()}
    if (found["contact_rules"] & FRICTION_RULE).any():
        found["turning"] = turning_friction(model)
    return found


def turning_friction(model) -> np.ndarray:
    """Torsional and rolling friction of shapes, ``[shape_count, 2]``."""
    return np.stack(
        [getattr(model, f"shape_material_mu_{name}").numpy().astype(np.float64) for name in ("torsional", "rolling")],
        axis=1,
    )


def add_limit_laws(model, batch, tables: ContactTables, inverse_inertias: Callable[[], np.ndarray]) -> ContactTables:
    """Adds the laws of position limits to the tables of a batch, behind those of contacts, where some degree of freedom states one.

    Args:
        model: the model of the batch.
        batch: a :class:`newton_like.programs.template.Batch`.
        tables: those of its contacts.
        inverse_inertias: those of all degrees of freedom of the model in the initial pose, by which limits are soft.

    Raises:
        ValueError: a setting is out of range.
    """
    if not has_contact_settings(model) or not batch.template.dofs:
        return tables
    settings = settings_of(model)
    if not settings["limit_rules"].any():
        return tables
    _check(model, settings)
    index = batch.qd_start[:, None] + batch.template.dof_slot
    soft = settings["limit_rules"][index] != 0
    if not soft.any():
        return tables
    table = _plain_laws(*index.shape)
    table[..., LAW_SHIFT] = np.where(soft, -settings["limit_margin"][index].astype(np.float64), 0.0)
    flat = table.reshape(-1, LAW_TABLE)
    numbers = (settings[name][index].astype(np.float64) for name in ("solreflimit", "solimplimit"))
    solref, solimp = (x.reshape(-1, x.shape[-1]) for x in numbers)
    _soften(flat, soft.ravel(), solref, solimp)
    table = flat.reshape(table.shape)
    first = tables.law_count
    shapes = np.full(index.shape, -1)
    shapes = (shapes, shapes)
    if tables.laws is not None:
        before = np.broadcast_to(tables.laws.table, (batch.count, first, LAW_TABLE))
        table = np.concatenate([before, table], axis=1)
        shapes = tuple(np.concatenate([old, shapes[0]], axis=1) for old in tables.laws.shapes)
    if (table == table[:1]).all():
        table = table[:1]
    tables.laws = Laws(shapes, table, 0 if tables.laws is None else tables.laws.handed)
    tables.weights = lambda: inverse_inertias()[index]
    tables.numbers.update(limit_laws=1, first_limit_law=first)
    return tables


def add_tendon_laws(tables: ContactTables, laws: np.ndarray, count: int) -> ContactTables:
    """Adds the laws of the limits of tendons to the tables of a batch of so many clusters, behind all others."""
    first = tables.law_count
    shapes = np.full((count, laws.shape[1]), -1)
    shapes = (shapes, shapes)
    if tables.laws is not None:
        length = max(len(laws), len(tables.laws.table))
        parts = [np.broadcast_to(x, (length, *x.shape[1:])) for x in (tables.laws.table, laws)]
        laws = np.concatenate(parts, axis=1)
        shapes = tuple(np.concatenate([old, shapes[0]], axis=1) for old in tables.laws.shapes)
    tables.laws = Laws(shapes, laws, 0 if tables.laws is None else tables.laws.handed)
    tables.numbers.update(first_tendon_law=first)
    return tables


def soft_table(solref: np.ndarray, solimp: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """Laws of limits by these settings of MuJoCo, ``[n, LAW_TABLE]``."""
    table = np.zeros((len(solref), LAW_TABLE))
    table[:, LAW_SHIFT] = -margin
    _soften(table, np.ones(len(solref), dtype=bool), solref, solimp)
    return table


def _explicit(settings: dict) -> tuple[np.ndarray, np.ndarray]:
    """Pairs with settings of their own, in ascending order of their codes: the codes, and which pairs they are."""
    first, second = (settings[name].astype(np.int64) for name in ("pair_geom1", "pair_geom2"))
    used = np.flatnonzero((first >= 0) & (second >= 0))
    codes = _codes(first[used], second[used])
    order = np.argsort(codes, kind="stable")
    return codes[order], used[order]


def _plain_laws(*shape: int) -> np.ndarray:
    """Laws that state nothing, ``[*shape, LAW_TABLE]``."""
    table = np.zeros((*shape, LAW_TABLE))
    table[..., LAW_IMPEDANCE : LAW_IMPEDANCE_MOST + 1] = table[..., LAW_MIDPOINT, None] = 0.5
    table[..., LAW_POWER] = 1.0
    return table


def _codes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (np.minimum(a, b).astype(np.int64) << 32) | np.maximum(a, b)


def _combined(settings: dict, pairs, turning: np.ndarray, s: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The numbers of the laws of pairs of shapes, ``[n, LAW_TABLE]``."""
    table = _plain_laws(len(s))
    table[:, LAW + 3] = -1.0
    rules, priority = settings["contact_rules"], settings["geom_priority"]
    # whose settings decide: -1 the first shape's, 1 the second one's, 0 both
    decides = np.sign(priority[g] - priority[s])
    _combine_friction(table, settings, turning, s, g, decides)
    soft = [((rules[x] & SOFTNESS_RULE) != 0) & (decides != away) for x, away in ((s, 1), (g, -1))]
    own = soft[0] | soft[1]
    # a shape that states nothing has no share
    mix = [np.where(of, settings["geom_solmix"][x].astype(np.float64), 0.0) for of, x in zip(soft, (s, g), strict=True)]
    both = soft[0] & soft[1]
    share = np.where(both, _share(*mix), np.where(soft[0], 1.0, 0.0))[:, None]
    ref = [settings["solref"][x].astype(np.float64) for x in (s, g)]
    mixed = share * ref[0] + (1.0 - share) * ref[1]
    # stiffness and damping are not mixed with time constants: the smaller numbers count
    mixes = (ref[0][:, 0] > 0.0) & (ref[1][:, 0] > 0.0) | ~both
    solref = np.where(mixes[:, None], mixed, np.minimum(*ref))
    imp = [settings["geom_solimp"][x].astype(np.float64) for x in (s, g)]
    _soften(table, own, solref, share * imp[0] + (1.0 - share) * imp[1])
    codes, of = pairs
    if len(codes):
        at = np.minimum(np.searchsorted(codes, _codes(s, g)), len(codes) - 1)
        named = np.flatnonzero(codes[at] == _codes(s, g))
        _state_pairs(table, settings, named, of[at[named]])
    return table


def _share(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The share of the first of two numbers that are mixed with these weights."""
    none = np.where(first < TINY, np.where(second < TINY, 0.5, 0.0), 1.0)
    return np.where((first >= TINY) & (second >= TINY), first / np.maximum(first + second, TINY), none)


def _combine_friction(table, settings: dict, turning: np.ndarray, s, g, decides) -> None:
    """Friction of contacts: that of the shape of higher priority, or the larger numbers of both. Contacts of which no shape states a
    rule, and those of which only one has the rule of the larger friction, keep the mean."""
    rules = settings["contact_rules"]
    stated = (rules & FRICTION_RULE) != 0
    larger = (rules & LARGER_RULE) != 0
    table[:, LAW_BY_RULE] = stated[s] | stated[g] | (larger[s] & larger[g])
    # a shape that states nothing has rows for all friction that it has
    plain = np.where(turning[:, 1] > 0.0, 6, np.where(turning[:, 0] > 0.0, 4, 3))
    dims = np.where(stated, settings["condim"], plain)
    numbers = np.where(stated[:, None], settings["geom_turning_friction"].astype(np.float64), turning)
    dim = np.where(decides == 0, np.maximum(dims[s], dims[g]), np.where(decides < 0, dims[s], dims[g]))
    both = np.maximum(numbers[s], numbers[g])
    turn = np.where((decides == 0)[:, None], both, np.where((decides < 0)[:, None], numbers[s], numbers[g]))
    own = table[:, LAW_BY_RULE] * (dim > 1)
    table[:, LAW], table[:, LAW + 1], table[:, LAW + 2] = own * (decides < 0), own * (decides > 0), own * (decides == 0)
    table[:, LAW_MU + 1] = own * np.where(dim >= 4, turn[:, 0], 0.0)
    table[:, LAW_MU + 2] = own * np.where(dim >= 6, turn[:, 1], 0.0)


def _soften(table, rows, solref: np.ndarray, solimp: np.ndarray) -> None:
    """Softness of some contacts by `solref` ``[n, 2]`` and `solimp` ``[n, 5]``."""
    rows = np.flatnonzero(rows)
    time, ratio = solref[rows].T
    standard = time > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        stiffness = np.where(standard, 1.0 / (time * ratio) ** 2, -time)
        damping = np.where(standard, 2.0 / time, -ratio)
        # a time constant is at least two steps long
        most = np.where(standard, np.minimum(1.0, 0.25 / ratio**2), 1.0)
    low, high, width, middle, power = solimp[rows].T
    low, high = np.clip(low, MIN_IMPEDANCE, MAX_IMPEDANCE), np.clip(high, MIN_IMPEDANCE, MAX_IMPEDANCE)
    middle = np.clip(middle, MIN_IMPEDANCE, MAX_IMPEDANCE)
    flat = (low == high) | (width <= TINY)
    mean = 0.5 * (low + high)
    values = {
        LAW_SOFT: 1.0, LAW_STIFFNESS: stiffness, LAW_DAMPING: damping, LAW_MOST: most, LAW_IMPEDANCE: np.where(flat, mean, low),
        LAW_IMPEDANCE_MOST: high, LAW_INVERSE_WIDTH: np.where(flat, 0.0, 1.0 / np.maximum(width, TINY)), LAW_MIDPOINT: middle,
        LAW_POWER: np.maximum(power, 1.0),
    }  # fmt: skip
    for at, numbers in values.items():
        table[rows, at] = numbers


def soft_numbers(solref: np.ndarray, solimp: np.ndarray) -> np.ndarray:
    """The numbers of a law from LAW_STIFFNESS to LAW_POWER."""
    table = np.zeros((1, LAW_TABLE))
    _soften(table, [True], *(np.asarray(x, dtype=np.float64)[None] for x in (solref, solimp)))
    return table[0, LAW_STIFFNESS : LAW_POWER + 1]


def _state_pairs(table, settings: dict, rows: np.ndarray, pairs: np.ndarray) -> None:
    """The laws of contacts whose pair has settings of its own."""
    dim, friction = settings["pair_condim"][pairs], settings["pair_friction"][pairs].astype(np.float64)
    part = np.zeros((len(rows), LAW_TABLE))
    part[:, LAW_BY_RULE] = 1.0
    for i, (least, column) in enumerate(((3, 0), (4, 2), (6, 3))):
        part[:, LAW_MU + i] = np.where(dim >= least, friction[:, column], 0.0)
    part[:, LAW + 3] = settings["pair_margin"][pairs]
    solref, solimp = (settings[f"pair_{name}"][pairs].astype(np.float64) for name in ("solref", "solimp"))
    _soften(part, np.ones(len(rows), dtype=bool), solref, solimp)
    table[rows] = part


_POSITIVE = {
    "geom_solmix": "a number",
    "geom_turning_friction": "numbers",
    "pair_friction": "numbers",
    "pair_margin": "a distance",
    "limit_margin": "a distance",
}


def _check(model, settings: dict) -> None:
    """Raises ValueError for settings that are out of range, naming the shape or pair."""

    def refuse(name: str, wrong: np.ndarray, give: str) -> None:
        if wrong.any():
            i = int(np.argmax(wrong))
            if name in PAIR_SETTINGS:
                a, b = (int(settings[f"pair_geom{k}"][i]) for k in (1, 2))
                what = f"pair of shapes '{model.shape_label[a]}' and '{model.shape_label[b]}'"
            elif name in LIMIT_SETTINGS:
                joint = int(np.searchsorted(model.joint_qd_start.numpy(), i, side="right")) - 1
                what = f"joint '{model.joint_label[joint]}' (index {joint}), degree of freedom {i}"
            else:
                what = f"shape '{model.shape_label[i]}' (index {i})"
            raise ValueError(f"{what}: mujoco:{name} is {settings[name][i].tolist()}; give {give}")

    for name, what in _POSITIVE.items():
        numbers = settings[name]
        sound = (np.isfinite(numbers) & (numbers >= 0.0)).all(axis=tuple(range(1, numbers.ndim)))
        refuse(name, ~sound, f"{what} of at least 0")
    rules = settings["contact_rules"]
    refuse(
        "contact_rules",
        (rules < 0) | (rules > FRICTION_RULE + SOFTNESS_RULE + LARGER_RULE),
        "a sum of 1, 2 and 4, or 0",
    )
    for name in ("condim", "pair_condim"):
        refuse(name, ~np.isin(settings[name], (1, 3, 4, 6)), "1, 3, 4 or 6")
    for name in ("solref", "pair_solref", "solreflimit"):
        numbers = settings[name].reshape(-1, 2)
        sound = np.isfinite(numbers).all(axis=1) & ((numbers > 0.0).all(axis=1) | (numbers < 0.0).all(axis=1))
        refuse(
            name,
            ~sound,
            "a time constant [s] and a damping ratio above 0, or both a stiffness and a damping as negative numbers",
        )
    for name in ("geom_solimp", "pair_solimp", "solimplimit"):
        numbers = settings[name].reshape(-1, 5)
        refuse(name, ~np.isfinite(numbers).all(axis=1), "five finite numbers")
