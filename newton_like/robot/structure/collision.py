"""Collision shapes of links, and the distance of two of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np

from newton_like.coercion import LARGEST
from newton_like.robot.arguments import (
    LARGE,
    MAX_BITS,
    as_array,
    as_bits,
    as_length,
    as_matrix_rows,
    as_object,
    as_pose,
    plain_vector,
)
from newton_like.robot.errors import RobotError
from newton_like.robot.structure.enums import NumberedEnum
from newton_like.robot.structure.segments import along, nearest_points, normal_between, placed


class GeomType(NumberedEnum):
    """The types of collision shapes."""

    Capsule = 0


_ORIGIN = (0.0, 0.0, 0.0)

_PLAIN = (float, int, int)
"""Types of the radius and the bits of a capsule that are used as they are."""

_NAMELESS, _FIRST = [("", "")], [0]
"""The links and the pair of a result between two shapes without links."""


class CollisionResult:
    """The nearest points of two collision shapes. All attributes are read-only.

    Without arguments, names are empty and numbers are 0, as in the SDK.

    Args:
        link1, link2: names of the links, or "".
        position1, position2: nearest points on the axes of the two capsules [m], shape ``[3]``.
        distance: distance of the surfaces [m], negative for capsules that overlap.
        surface1, surface2: nearest points on the surfaces [m], shape ``[3]``. If the capsules overlap, each is the point of its
            surface that is deepest in the other one.
        normal: unit vector from the first axis to the second one, shape ``[3]``.

    ``distance = normal . (surface2 - surface1)``. The points of :meth:`Geom.compute_minimum_distance` are in the frame of the poses.
    """

    __slots__ = ("_at", "_rows")

    def __init__(
        self,
        link1: str = "",
        link2: str = "",
        position1: np.ndarray | None = None,
        position2: np.ndarray | None = None,
        distance: float = 0.0,
        surface1: np.ndarray | None = None,
        surface2: np.ndarray | None = None,
        normal: np.ndarray | None = None,
    ):
        position1 = _ORIGIN if position1 is None else position1
        position2 = _ORIGIN if position2 is None else position2
        surface1 = position1 if surface1 is None else surface1
        surface2 = position2 if surface2 is None else surface2
        points = position1, position2, surface1, surface2, _ORIGIN if normal is None else normal
        self._rows, self._at = ResultRows([(link1, link2)], [0], [distance], tuple([x] for x in points)), 0

    def _vector(self, i: int) -> np.ndarray:
        """An array of its own for a point or a normal, which is made when it is asked for."""
        return np.array(self._rows.points[i][self._at], dtype=float)

    @property
    def link1(self) -> str:
        """Name of the first link."""
        return self._rows.links[self._rows.pair[self._at]][0]

    @property
    def link2(self) -> str:
        """Name of the second link."""
        return self._rows.links[self._rows.pair[self._at]][1]

    @property
    def position1(self) -> np.ndarray:
        """Nearest point on the axis of the first capsule [m], shape ``[3]``."""
        return self._vector(0)

    @property
    def position2(self) -> np.ndarray:
        """Nearest point on the axis of the second capsule [m], shape ``[3]``."""
        return self._vector(1)

    @property
    def distance(self) -> float:
        """Distance of the surfaces [m], negative for capsules that overlap."""
        return float(self._rows.distance[self._at])

    @property
    def surface1(self) -> np.ndarray:
        """Nearest point on the surface of the first capsule [m], shape ``[3]``."""
        return self._vector(2)

    @property
    def surface2(self) -> np.ndarray:
        """Nearest point on the surface of the second capsule [m], shape ``[3]``."""
        return self._vector(3)

    @property
    def normal(self) -> np.ndarray:
        """Unit vector from the first axis to the second one, shape ``[3]``."""
        return self._vector(4)

    def __repr__(self) -> str:
        return f"CollisionResult({self.link1!r}, {self.link2!r}, distance={self.distance:g})"


class ResultRows(NamedTuple):
    """The numbers of some results, one in each row.

    Attributes:
        links: names of the two links of each pair.
        pair: index into `links`.
        distance: of the surfaces [m].
        points: positions, points on surfaces, and normals, ``[rows, 3]`` each.
    """

    links: Sequence[tuple[str, str]]
    pair: Sequence[int]
    distance: Sequence[float]
    points: tuple[Sequence, ...]

    def results(self, first: int, last: int) -> list[CollisionResult]:
        """The results of rows from the first to that before the last."""
        made = []
        for at in range(first, last):
            result = object.__new__(CollisionResult)
            result._rows, result._at = self, at
            made.append(result)
        return made


class _Points(tuple):
    """The points of :class:`ResultRows` of one pair, computed when they are asked for: nearest points of two axes, their ends, and the
    radii."""

    __slots__ = ()

    def __getitem__(self, i: int) -> list:
        p, q, a0, a1, b0, b1, radius, other_radius = self
        if i < 2:
            return [q if i else p]
        n = normal_between(p, q, a0, a1, b0, b1)
        return [(along(p, n, radius), along(q, n, -other_radius), n)[i - 2]]


class BatchResults(Sequence):
    """The results of each configuration of a batch, a list of :class:`CollisionResult` each. Objects are made when they are asked for.

    Args:
        rows: of all configurations.
        starts: the first row of each configuration, and the number of rows, ``[batch + 1]``.
    """

    def __init__(self, rows: ResultRows, starts: list[int]):
        self._rows, self._starts = rows, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> list[CollisionResult]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[CollisionResult]]: ...
    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return self._rows.results(self._starts[at], self._starts[at + 1])

    def __repr__(self) -> str:
        return f"BatchResults({len(self)} configurations, {self._starts[-1]} results)"


class Geom:
    """A collision shape. Only the derived class :class:`GeomCapsule` has a shape.

    Args:
        coltype: bits of the groups that the shape belongs to, from 0 to 2^32 - 1.
        colaffinity: bits of the groups that the shape collides with, from 0 to 2^32 - 1.

    Raises:
        TypeError: not an integer, or out of range.
    """

    def __init__(self, coltype: int, colaffinity: int):
        self._coltype, self._colaffinity = as_bits(coltype, "coltype"), as_bits(colaffinity, "colaffinity")

    @property
    def coltype(self) -> int:
        """Bits of the groups that the shape belongs to."""
        return self._coltype

    @property
    def colaffinity(self) -> int:
        """Bits of the groups that the shape collides with."""
        return self._colaffinity

    def get_coltype(self) -> int:
        """:attr:`coltype`."""
        return self._coltype

    def get_colaffinity(self) -> int:
        """:attr:`colaffinity`."""
        return self._colaffinity

    def get_type(self) -> GeomType:
        """The type of the shape. Raises NotImplementedError (a RuntimeError) for a shape that is only a :class:`Geom`."""
        raise NotImplementedError("a Geom has no shape; use GeomCapsule")

    def filter(self, other_geom: Geom) -> bool:
        """Whether two shapes are a pair: ``coltype`` of one and ``colaffinity`` of the other have a common bit.

        Raises:
            TypeError: not a :class:`Geom`.
        """
        other = as_object(other_geom, Geom, "other_geom")
        return bool(self._coltype & other._colaffinity or other._coltype & self._colaffinity)

    def compute_minimum_distance(self, T: np.ndarray, other_geom: Geom, other_T: np.ndarray) -> CollisionResult | None:
        """Distance and nearest points of two shapes.

        :meth:`filter` does not apply, and the names of the links in the result are empty, as in the SDK.

        Args:
            T: pose of this shape, shape ``[4, 4]``.
            other_geom: the other shape.
            other_T: pose of the other shape in the same frame, shape ``[4, 4]``.

        The poses are not checked to be rigid.

        Returns:
            A :class:`CollisionResult`, never None, with points in the frame of the poses. The annotation is that of the SDK.

        Raises:
            NotImplementedError: a shape that is only a :class:`Geom`; a RuntimeError.
            ShapeError, TypeError: an argument has another type or shape.
            RobotError: a pose is not finite.
        """
        raise NotImplementedError("a Geom has no shape; use GeomCapsule")


class GeomCapsule(Geom):
    """A capsule: all points whose distance from a segment is at most the radius.

    There are two constructors::

        GeomCapsule(height, radius, coltype, colaffinity)
        GeomCapsule(start_point, end_point, radius, coltype, colaffinity)

    Args:
        height: length of the segment [m], without the caps. The segment is on the z axis, from ``height / 2`` to ``-height / 2``.
        start_point, end_point: ends of the segment [m], shape ``[3]``. They may coincide.
        radius: radius [m], at least 0.
        coltype, colaffinity: see :class:`Geom`.

    Raises:
        ShapeError, TypeError: an argument is missing, or has another type or shape.
        RobotError: a negative or infinite length, or NaN.
    """

    @overload
    def __init__(self, height: float, radius: float, coltype: int, colaffinity: int) -> None: ...

    @overload
    def __init__(
        self, start_point: np.ndarray, end_point: np.ndarray, radius: float, coltype: int, colaffinity: int
    ) -> None: ...

    def __init__(self, *args: float | np.ndarray, **kwargs: float | np.ndarray) -> None:
        if self._take_plain(args):
            return
        names = ("height", "radius", "coltype", "colaffinity")
        if len(args) + len(kwargs) == 5:
            names = ("start_point", "end_point", *names[1:])
        if len(args) + len(kwargs) != len(names) or set(kwargs) != set(names[len(args) :]):
            raise TypeError(
                "GeomCapsule takes (height, radius, coltype, colaffinity) or (start_point, end_point, radius, coltype, colaffinity), not "
                f"{len(args)} positional arguments and the names {sorted(kwargs)}"
            )
        given = dict(zip(names, args, strict=False)) | kwargs
        super().__init__(given["coltype"], given["colaffinity"])
        self._radius = as_length(given["radius"], "radius")
        if "height" in given:
            half = 0.5 * as_length(given["height"], "height")
            self._ends = [0.0, 0.0, half], [0.0, 0.0, -half]
        else:
            names = "start_point", "end_point"
            self._ends = tuple([as_array(given[name], (3,), name).tolist() for name in names])

    def _take_plain(self, args: tuple) -> bool:
        """Sets all attributes if no argument needs a conversion. Returns whether that is so."""
        if len(args) < 4 or tuple(map(type, args[-3:])) != _PLAIN:
            return False
        radius, coltype, colaffinity = args[-3:]
        if len(args) == 4:
            height = args[0]
            if type(height) is not float or not 0.0 <= height <= LARGEST:
                return False
            ends = [0.0, 0.0, 0.5 * height], [0.0, 0.0, -0.5 * height]
        else:
            ends = plain_vector(args[0], 3), plain_vector(args[1], 3)
            if len(args) > 5 or None in ends or not math.hypot(*ends[0], *ends[1]) < LARGE:
                return False
        if not 0.0 <= radius <= LARGEST or (coltype | colaffinity) & ~MAX_BITS:
            return False
        self._radius, self._coltype, self._colaffinity, self._ends = radius, coltype, colaffinity, ends
        return True

    @property
    def start_point(self) -> np.ndarray:
        """A copy of the start of the segment [m], shape ``[3]``."""
        return np.array(self._ends[0])

    @property
    def end_point(self) -> np.ndarray:
        """A copy of the end of the segment [m], shape ``[3]``."""
        return np.array(self._ends[1])

    @property
    def radius(self) -> float:
        """Radius [m]."""
        return self._radius

    def get_start_point(self) -> np.ndarray:
        """:attr:`start_point`."""
        return np.array(self._ends[0])

    def get_end_point(self) -> np.ndarray:
        """:attr:`end_point`."""
        return np.array(self._ends[1])

    def get_radius(self) -> float:
        """:attr:`radius`."""
        return self._radius

    def get_type(self) -> GeomType:
        """``GeomType.Capsule``."""
        return GeomType.Capsule

    def compute_minimum_distance(self, T: np.ndarray, other_geom: Geom, other_T: np.ndarray) -> CollisionResult | None:
        # documented by Geom
        if not isinstance(other_geom, GeomCapsule):
            as_object(other_geom, Geom, "other_geom")
            raise NotImplementedError("other_geom has no shape; use GeomCapsule")
        other = other_geom
        rows, other_rows = as_matrix_rows(T, "T"), as_matrix_rows(other_T, "other_T")
        (a0, a1), (b0, b1) = placed(rows, self._ends), placed(other_rows, other._ends)
        p, q = nearest_points(a0, a1, b0, b1)
        distance = math.dist(p, q) - self._radius - other._radius
        if not math.isfinite(distance):
            for pose, what in ((T, "T"), (other_T, "other_T")):
                as_array(pose, (4, 4), what)
            raise RobotError(f"the distance of two capsules is {distance}; their coordinates are too large")
        result = object.__new__(CollisionResult)
        points = _Points((p, q, a0, a1, b0, b1, self._radius, other._radius))
        result._rows, result._at = ResultRows(_NAMELESS, _FIRST, [distance], points), 0
        return result

    def __repr__(self) -> str:
        points = f"{self._ends[0]}, {self._ends[1]}"
        return (
            f"GeomCapsule({points}, radius={self._radius:g}, coltype={self._coltype}, colaffinity={self._colaffinity})"
        )


def versions(collisions: list[Collision]) -> tuple:
    """What changes when one of these collisions is edited or replaced."""
    return tuple([(id(collision), collision._version) for collision in collisions])


class Collision:
    """Collision shapes with a common pose in a link.

    Args:
        name: name of the collision.

    Raises:
        TypeError: not a string.
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"name of a collision must be a str, not {name!r}")
        self._name = name
        self._origin = np.eye(4)
        self._geoms: list[Geom] = []
        self._version = 0

    def __copy__(self) -> Collision:
        # the copy has a list of its own
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _geoms=list(self._geoms))
        return made

    @property
    def name(self) -> str:
        """Name of the collision; it may be empty."""
        return self._name

    @property
    def origin(self) -> np.ndarray:
        """A copy of the pose of the shapes in the link frame, shape ``[4, 4]``. May be set; raises as :meth:`set_origin`."""
        return self._origin.copy()

    @origin.setter
    def origin(self, T: np.ndarray) -> None:
        self.set_origin(T)

    @property
    def geoms(self) -> list[Geom]:
        """The shapes."""
        return list(self._geoms)

    def get_origin(self) -> np.ndarray:
        """:attr:`origin`."""
        return self._origin.copy()

    def set_origin(self, T: np.ndarray) -> None:
        """Sets the pose of the shapes in the link frame.

        Args:
            T: the pose, shape ``[4, 4]``.

        Raises:
            ShapeError, TypeError: another type or shape.
            RobotError: not a rigid motion.
        """
        self._origin = as_pose(T, f"origin of collision {self._name!r}")
        self._version += 1

    def get_geoms(self) -> list[Geom]:
        """:attr:`geoms`."""
        return list(self._geoms)

    def add_geom(self, geom: Geom) -> None:
        """Adds a shape. Raises TypeError for other objects than a :class:`Geom`."""
        self._geoms.append(as_object(geom, Geom, f"geom of collision {self._name!r}"))
        self._version += 1

    def __repr__(self) -> str:
        return f"Collision({self._name!r}, geoms={len(self._geoms)})"
