"""Tendons of a builder and a model: what they run through, and their parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from newton_like.coercion import as_index, as_number
from newton_like.geometry.transforms import quat_rotate, transform_multiply
from newton_like.geometry.wrapping import piece_length
from newton_like.kernels.tree import IN_CYLINDER, IN_SPHERE, ROUND_CYLINDER, ROUND_SPHERE, STRAIGHT
from newton_like.model.mujoco.contact_settings import SOLIMP, SOLREF, is_solref
from newton_like.options import configuration
from newton_like.types import MAXVAL, GeoType, ShapeFlags

ENTRIES = {
    "site": ('"site"', "shape index"),
    "geom": ('"geom"', "shape index", "shape index of the site beside it or -1"),
    "pulley": ('"pulley"', "divisor"),
}
"""What entries of paths consist of."""


def _is_row(value, count: int) -> bool:
    return isinstance(value, tuple | list | np.ndarray) and len(value) == count


def _check_numbers(what: str, values, count: int) -> None:
    """Checks that values are a row of finite numbers."""
    if not _is_row(values, count):
        raise ValueError(f"{what} must be {count} numbers, not {values!r}")
    for value in values:
        as_number(value, what)


def _check_softness(what: str, of: str, solref, solimp) -> None:
    """Checks ``solref`` and ``solimp`` of a limit or an equality."""
    _check_numbers(f"{what}: solref {of}", solref, 2)
    _check_numbers(f"{what}: solimp {of}", solimp, 5)
    if not is_solref(solref):
        raise ValueError(
            f"{what}: solref {tuple(solref)} {of} is neither a time constant and a damping ratio above 0, nor a stiffness and a"
            " damping below 0"
        )


@configuration(frozen=True, kw_only=True)
class TendonTie:
    """An equality constraint on the length L of a tendon: ``L - rest[0] = sum of c_i (L' - rest[1])^i``, with the length L' of the leader.

    Attributes:
        leader: index of the leading tendon, less the index of the tendon that has the tie; 0: none, and the polynomial is its constant.
        polycoef: five coefficients.
        rest: lengths of both tendons from which the polynomial counts.
        solref, solimp: softness as in MuJoCo; None: rigid.
        enabled: whether it acts. To switch it on or off in a model, replace the tendon in ``model.tendons``, and notify
            ``TENDON_PROPERTIES``.
    """

    leader: int = 0
    polycoef: tuple[float, float, float, float, float] = (0.0, 1.0, 0.0, 0.0, 0.0)
    rest: tuple[float, float] = (0.0, 0.0)
    solref: tuple[float, float] | None = None
    solimp: tuple[float, float, float, float, float] = SOLIMP
    enabled: bool = True

    def check(self, what: str, own: int, count: int) -> None:
        """Checks the tie of tendon `own` of `count`.

        Raises:
            IndexError: the leader does not exist.
            TypeError, ValueError: as of :meth:`check_numbers`.
        """
        if not 0 <= own + self.leader < count:
            raise IndexError(f"{what} is tied to tendon {own + self.leader}, which does not exist; there are {count}")
        self.check_numbers(what)

    def check_numbers(self, what: str) -> None:
        """Checks the coefficients, the lengths and the softness.

        Raises:
            TypeError: a value is not a number.
            ValueError: rows of another length, numbers that are not finite, or a softness that is none.
        """
        _check_numbers(f"{what}: polycoef of a tie", self.polycoef, 5)
        _check_numbers(f"{what}: rest of a tie", self.rest, 2)
        if self.solref is not None:
            _check_softness(what, "of a tie", self.solref, self.solimp)


@configuration(frozen=True, kw_only=True)
class Tendon:
    """A tendon as in MuJoCo: its length is a sum over joints (fixed) or that of a line through sites (spatial).

    Attributes:
        label: name.
        joints: of a fixed tendon: ``(joint index, number of the joint's dof, coefficient)`` each; the length is the sum of
            coefficient times coordinate.
        path: of a spatial tendon, in order: ``("site", shape index)``, ``("geom", shape index, shape index of the site on
            the side it passes or -1)`` for a shape that it wraps around, ``("pulley", divisor)``.
        stiffness, damping: of the spring [N/m] and the damper [N s/m] along it.
        friction: dry friction along it [N].
        armature: inertia along it [kg].
        rest_length: two lengths [m] between which the spring is slack, or ``None`` for the length at the start.
        limits: smallest and largest length [m], or ``None``.
        effort: smallest and largest force [N] of all its actuators together, or ``None``.
        offset: what is added to the length [m].
        target_ke, target_kd: gains of the drive [N/m, N s/m].
        effort_limit: largest force of the drive [N], or ``None``.
        force, target_q, target_qd: defaults of ``Control.tendon_f`` [N], ``tendon_target_q`` [m] and ``tendon_target_qd`` [m/s].
        limit_ke: stiffness [N/m] of the springs that act beyond the limits, or ``None`` for limits as soft as `solref_limit` states.
        solref_limit, solimp_limit: softness of the limits as in MuJoCo.
        margin: how far before a limit it acts [m].
        ties: equality constraints on its length.
        world: as of other entities; set by the builder.

    With angles instead of lengths, [m] is [rad] and [N] is [N m].
    """

    label: str
    joints: tuple[tuple[int, int, float], ...] = ()
    path: tuple[tuple, ...] = ()
    stiffness: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    rest_length: tuple[float, float] | None = None
    limits: tuple[float, float] | None = None
    effort: tuple[float, float] | None = None
    offset: float = 0.0
    target_ke: float = 0.0
    target_kd: float = 0.0
    effort_limit: float | None = None
    force: float = 0.0
    target_q: float = 0.0
    target_qd: float = 0.0
    limit_ke: float | None = None
    solref_limit: tuple[float, float] = SOLREF
    solimp_limit: tuple[float, float, float, float, float] = SOLIMP
    margin: float = 0.0
    ties: tuple[TendonTie, ...] = ()
    world: int = -1

    @property
    def is_spatial(self) -> bool:
        """Whether it runs through sites."""
        return bool(self.path)

    def renumbered(self, joint, shape, **changes) -> Tendon:
        """A copy with renumbered indices, for copies of builders.

        Args:
            joint, shape: functions from old to new indices.
            changes: other attributes to change.
        """
        path = tuple(
            entry if entry[0] == "pulley" else (entry[0], *(shape(index) if index >= 0 else -1 for index in entry[1:]))
            for entry in self.path
        )
        joints = tuple((joint(index), dof, coefficient) for index, dof, coefficient in self.joints)
        # as dataclasses.replace, which takes ten times as long
        result = object.__new__(Tendon)
        vars(result).update(vars(self), joints=joints, path=path, **changes)
        return result

    def check(self, joint_count: int, shape_count: int, dof_dim: Sequence[tuple[int, int]]) -> None:
        """Checks the tendon.

        Args:
            joint_count, shape_count: how many there are.
            dof_dim: numbers of linear and angular dofs of the joints.

        Raises:
            IndexError: a joint, a dof of it, or a shape does not exist.
            TypeError: a value is not a number.
            ValueError: neither joints nor a path, or both; an entry of them of another form; a negative value; a lower limit above the
                upper limit; a softness that is none.
        """
        what = f"tendon {self.label!r}"
        if bool(self.joints) == bool(self.path):
            raise ValueError(f"{what} needs joints (fixed) or a path (spatial), and only one of them")
        for name in ("stiffness", "damping", "friction", "armature", "target_ke", "target_kd", "margin"):
            value = getattr(self, name)
            if not (type(value) is float and value >= 0.0) and as_number(value, f"{what}: {name}") < 0.0:
                raise ValueError(f"{what}: {name} {getattr(self, name):g} must be at least 0")
        if self.limit_ke is not None and as_number(self.limit_ke, f"{what}: limit_ke") < 0.0:
            raise ValueError(f"{what}: limit_ke {self.limit_ke:g} must be at least 0")
        _check_softness(what, "of the limits", self.solref_limit, self.solimp_limit)
        for name in ("offset", "force", "target_q", "target_qd"):
            as_number(getattr(self, name), f"{what}: {name}")
        if self.effort_limit is not None and as_number(self.effort_limit, f"{what}: effort_limit", finite=False) < 0.0:
            raise ValueError(f"{what}: effort_limit {self.effort_limit:g} must be at least 0")
        for name in ("rest_length", "limits", "effort"):
            pair = getattr(self, name)
            if pair is not None and not (_is_row(pair, 2) and pair[0] <= pair[1]):
                raise ValueError(f"{what}: {name} {pair} must be the smaller number and the larger one")
        for tie in self.ties:
            if not isinstance(tie, TendonTie):
                raise TypeError(f"{what}: ties are a tuple of TendonTie, not {tie!r}")
            tie.check_numbers(what)
        for entry in self.joints:
            if not _is_row(entry, 3):
                raise ValueError(
                    f"{what}: an entry of joints is (joint index, number of its dof, coefficient), not {entry!r}"
                )
            joint, dof, coefficient = entry
            if not (type(joint) is int and 0 <= joint < joint_count):
                as_index(joint, f"{what}: joint", joint_count)
            count = sum(dof_dim[joint])
            if not (type(dof) is int and 0 <= dof < count):
                as_index(dof, f"{what}: joint {joint}, dof", count)
            as_number(coefficient, f"{what}: joint {joint}, coefficient")
        for entry in self.path:
            kind, *rest = entry if isinstance(entry, tuple | list) and entry else (entry,)
            if kind not in ENTRIES:
                raise ValueError(f"{what}: a path has sites, geoms and pulleys, not {kind!r}")
            if len(rest) + 1 != len(ENTRIES[kind]):
                raise ValueError(f"{what}: an entry of a path is ({', '.join(ENTRIES[kind])}), not {entry!r}")
            for shape in rest if kind != "pulley" else ():
                if not (type(shape) is int and -1 <= shape < shape_count):
                    as_index(shape, f"{what}: shape", shape_count, lowest=-1)
        if self.path:
            check_path(what, self.path)


def check_path(what: str, path: tuple) -> None:
    """Raises ValueError for a path that does not lead from site to site."""
    kinds = [entry[0] for entry in path]
    for i, kind in enumerate(kinds):
        before, after = (kinds[j] if 0 <= j < len(kinds) else None for j in (i - 1, i + 1))
        if kind == "geom" and (before, after) != ("site", "site"):
            raise ValueError(f"{what}: a path wraps around a shape between two sites; add a site before and after it")
        if kind == "site" and "site" not in (before, after) and "geom" not in (before, after):
            raise ValueError(f"{what}: a branch of the path has a single site; add another one")
        if kind == after == "site" and path[i][1] == path[i + 1][1]:
            raise ValueError(f"{what}: the path leads from site {path[i][1]!r} to itself; name another one")
        if kind == "pulley" and after in (None, "pulley"):
            raise ValueError(f"{what}: no branch of the path follows a pulley; add sites behind it, or remove it")
        if kind == "pulley" and not as_number(path[i][1], f"{what}: divisor") > 0.0:
            raise ValueError(f"{what}: the divisor {path[i][1]} of a pulley must be above 0")


def check_shapes(tendon: Tendon, builder) -> None:
    """Raises ValueError if a path leads over a shape of a builder that is no site, or around one that nothing wraps around."""
    for kind, *rest in tendon.path if tendon.is_spatial else ():
        sites = rest if kind == "site" else rest[1:] if kind == "geom" else ()
        for shape in sites:
            if shape >= 0 and not builder.shape_flags[shape] & ShapeFlags.SITE:
                around = f', or wrap around the shape with ("geom", {shape}, -1)' if kind == "site" else ""
                raise ValueError(
                    f"tendon {tendon.label!r}: its path names {builder._describe('shape', shape)} as a site; make a site with"
                    f" add_site(){around}"
                )
        if kind == "geom" and rest[0] >= 0 and builder.shape_type[rest[0]] not in (GeoType.SPHERE, GeoType.CYLINDER):
            kind = GeoType(builder.shape_type[rest[0]]).name
            raise ValueError(
                f"tendon {tendon.label!r}: its path wraps around {builder._describe('shape', rest[0])}, of type {kind}; a tendon wraps"
                " around spheres and cylinders"
            )


def pieces_of(tendon: Tendon) -> list[tuple[int, int, int, int, float]]:
    """The pieces of the path of a spatial tendon: shapes of both sites, of what the piece wraps around and of the side site (-1: none), and
    the divisor."""
    found, divisor, last, around = [], 1.0, -1, (-1, -1)
    for kind, *rest in tendon.path:
        if kind == "pulley":
            divisor, last = float(rest[0]), -1
        elif kind == "geom":
            around = (int(rest[0]), int(rest[1]))
        else:
            if last >= 0:
                found.append((last, int(rest[0]), *around, divisor))
            last, around = int(rest[0]), (-1, -1)
    return found


def piece_kind(shapes, around: int, beside: int) -> int:
    """The kind of a piece of a path, see `newton_like.kernels.tree`.

    Args:
        shapes: object with ``shape_type``, ``shape_scale``, ``shape_body`` and ``shape_transform`` as sequences.
        around, beside: shapes that it wraps around, and on the side that it passes; -1: none.

    Raises:
        ValueError: it wraps around neither a sphere nor a cylinder.
    """
    if around < 0:
        return STRAIGHT
    kinds = {int(GeoType.SPHERE): (ROUND_SPHERE, IN_SPHERE), int(GeoType.CYLINDER): (ROUND_CYLINDER, IN_CYLINDER)}
    if int(shapes.shape_type[around]) not in kinds:
        raise ValueError(f"a path wraps around spheres and cylinders, not around shape {around}")
    inside = False
    if beside >= 0 and shapes.shape_body[beside] == shapes.shape_body[around]:
        at, centre = shapes.shape_transform[beside], shapes.shape_transform[around]
        inside = sum((at[i] - centre[i]) ** 2 for i in range(3)) < shapes.shape_scale[around][0] ** 2
    return kinds[int(shapes.shape_type[around])][bool(inside)]


def length_of(tendon: Tendon, columns) -> float:
    """The length of a tendon at initial coordinates, or of a spatial one in initial poses.

    Args:
        columns: object with the lists of a builder.
    """
    if tendon.joints:
        places = ((columns.joint_q_start[j] + dof, c) for j, dof, c in tendon.joints)
        return tendon.offset + sum(c * float(columns.joint_q[at]) for at, c in places)

    def pose(shape: int) -> np.ndarray:
        own, body = np.array(columns.shape_transform[shape], dtype=np.float64), columns.shape_body[shape]
        return own if body < 0 else transform_multiply(np.array(columns.body_q[body], dtype=np.float64), own)

    total = tendon.offset
    for a, b, around, beside, divisor in pieces_of(tendon):
        kind, (x, y) = piece_kind(columns, around, beside), (pose(k)[:3] for k in (a, b))
        side, radius = None, 0.0
        if around >= 0:
            frame, radius = pose(around), float(columns.shape_scale[around][0])
            back = frame[3:] * np.array([-1.0, -1.0, -1.0, 1.0])
            side = pose(beside)[:3] if beside >= 0 else None
            x, y, side = (None if p is None else quat_rotate(back, p - frame[:3]) for p in (x, y, side))
        total += piece_length(kind, x, y, side, radius) / divisor
    return total


ARRAYS = (
    "offset", "stiffness", "damping", "armature", "rest_lower", "rest_upper", "target_ke", "target_kd", "effort_limit", "friction",
    "limit_lower", "limit_upper", "limit_ke", "f", "target_q", "target_qd",
)  # fmt: skip
"""Arrays ``tendon_*`` of a model, one number a tendon; the last three are defaults of ``Control``."""


def tendon_numbers(builder) -> dict[str, np.ndarray]:
    """The numbers of these arrays for the tendons of a builder."""
    rows, lengths = [], {}
    for tendon in builder.tendons:
        rest = tendon.rest_length
        if rest is None:
            # equal for copies in other worlds up to the place of the world; found once for tendons without springs
            key = id(tendon) if tendon.stiffness > 0.0 else None
            if key not in lengths:
                lengths[key] = length_of(tendon, builder) if tendon.stiffness > 0.0 else 0.0
            rest = (lengths[key], lengths[key])
        lower, upper = tendon.limits or (-MAXVAL, MAXVAL)
        effort = MAXVAL if tendon.effort_limit is None else min(tendon.effort_limit, MAXVAL)
        rows.append(
            (
                tendon.offset, tendon.stiffness, tendon.damping, tendon.armature, *rest, tendon.target_ke, tendon.target_kd, effort,
                tendon.friction, max(lower, -MAXVAL), min(upper, MAXVAL), -1.0 if tendon.limit_ke is None else tendon.limit_ke,
                tendon.force, tendon.target_q, tendon.target_qd,
            )
        )  # fmt: skip
    table = np.array(rows, dtype=np.float64).reshape(-1, len(ARRAYS))
    return {name: table[:, i] for i, name in enumerate(ARRAYS)}
