"""Links: rigid bodies of a robot."""

from __future__ import annotations

from collections import deque
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

# joints import links; annotations name the module of joints, which typing.get_type_hints finds later
from newton_like.robot import structure
from newton_like.robot.arguments import LARGE, as_array, as_array_of_any, as_name, as_object
from newton_like.robot.errors import RobotError
from newton_like.robot.structure.collision import Collision, versions
from newton_like.robot.structure.copies import bare, reduced_link, restore

if TYPE_CHECKING:
    import newton_like.robot.structure.joint  # noqa: F401

_TOLERANCE = 1.0e-6
"""Largest deviation from the form of a spatial inertia, relative to the largest entry. It allows for numbers in single precision."""


_LARGEST = 1.0e100
"""Largest entry of an inertia whose form is tested: its square is a number."""

_UNIT = np.eye(6)
"""The inertia of a new link."""
_UNIT.flags.writeable = False


_CHANGES = 8
"""Changes that are looked at one by one; after more, joints are counted again."""

_changes: deque[tuple] = deque([(0, None, None, None)], maxlen=_CHANGES)
"""The last changes of connections of links: the number of the change; the joint, its parent link and its child link as weak references. The
child link is None if the joint was connected, and not separated; all three are None if anything may have changed."""

_numbers = count(1)


class Link:
    """A rigid body of a robot.

    The spatial inertia refers to the origin and the axes of the link frame, with the angular part first (Lynch and Park 2017, "Modern
    Robotics", section 8.2): ``[[Ic + m [c][c]^T, m [c]], [m [c]^T, m 1]]`` with the mass m [kg], the centre of mass c [m], the inertia Ic
    about it [kg m^2], and the matrix ``[c]`` of the cross product with c. A mass of 0 is valid.

    ``copy.copy(link)`` has no joints. ``copy.deepcopy`` and ``pickle`` take the whole tree of links and joints with them.

    Args:
        name: name of the link.
        I: spatial inertia, shape ``[6, 6]``.

    Raises:
        ShapeError, TypeError: an argument has another type or shape.
        RobotError: an empty name, or a matrix that is not the inertia of a rigid body.
    """

    def __init__(self, name: str, I: np.ndarray | None = None):
        self._name = as_name(name, "name of a link")
        self._inertia = _UNIT if I is None else _spatial_inertia(I, f"I of link {name!r}")
        self._parent_joint: structure.joint.Joint | None = None
        self._child_joints: list[structure.joint.Joint] = []
        self._collisions: list[Collision] = []
        # for count_joints: the number of changes of connections, and two counts
        self._counts: tuple[int, int, int] | None = None

    @property
    def name(self) -> str:
        """Name of the link."""
        return self._name

    @property
    def inertia(self) -> np.ndarray:
        """A copy of the spatial inertia about the origin of the link frame, shape ``[6, 6]``."""
        return self._inertia.copy()

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self._inertia[3, 3])

    @property
    def center_of_mass(self) -> np.ndarray:
        """Centre of mass in the link frame [m], shape ``[3]``; zero for a link without mass."""
        G = self._inertia
        return np.array([G[2, 4], G[0, 5], G[1, 3]]) / self.mass if self.mass > 0.0 else np.zeros(3)

    @property
    def parent_joint(self) -> structure.joint.Joint | None:
        """The joint that moves the link, or ``None``."""
        return self._parent_joint

    @property
    def child_joints(self) -> list[structure.joint.Joint]:
        """The joints on the link, in the order in which they were connected."""
        return list(self._child_joints)

    @property
    def collisions(self) -> list[Collision]:
        """The collision shapes of the link."""
        return list(self._collisions)

    def get_name(self) -> str:
        """:attr:`name`."""
        return self._name

    def get_parent_joint(self) -> structure.joint.Joint | None:
        """:attr:`parent_joint`."""
        return self._parent_joint

    def get_child_joint_list(self) -> list[structure.joint.Joint]:
        """:attr:`child_joints`."""
        return list(self._child_joints)

    def get_collisions(self) -> list[Collision]:
        """:attr:`collisions`."""
        return list(self._collisions)

    def add_collision(self, collision: Collision) -> None:
        """Adds collision shapes. Raises TypeError for other objects than a :class:`Collision`."""
        self._collisions.append(as_object(collision, Collision, f"collision of link {self._name!r}"))

    def __copy__(self) -> Link:
        return bare(
            self, {"_parent_joint": None, "_child_joints": [], "_counts": None, "_collisions": list(self._collisions)}
        )

    def __reduce__(self):
        return reduced_link(self)

    def __setstate__(self, tree) -> None:
        restore(self, tree)
        _changes.append((next(_numbers), None, None, None))

    def __repr__(self) -> str:
        parent = None if self._parent_joint is None else self._parent_joint.name
        children = [joint.name for joint in self._child_joints]
        return f"Link({self._name!r}, parent_joint={parent!r}, children={children}, collisions={len(self._collisions)})"


def link_of_file(name: str, G: np.ndarray) -> Link:
    """A link with the inertia of a file, which may be one that no body can have."""
    link = Link(name)
    link._inertia = G
    return link


def connections() -> int:
    """The number of the last change of connections of links."""
    return _changes[-1][0]


def join(joint: structure.joint.Joint, parent: Link, child: Link) -> None:
    """Makes a joint the last one on the parent link, and the one that moves the child link."""
    parent._child_joints.append(joint)
    child._parent_joint = joint
    # other threads may count: first the change, then its number
    _changes.append((next(_numbers), ref(joint), ref(parent), None))


def part(joint: structure.joint.Joint, parent: Link, child: Link) -> None:
    """Takes a joint from its two links."""
    parent._child_joints.remove(joint)
    child._parent_joint = None
    _changes.append((next(_numbers), ref(joint), ref(parent), ref(child)))


joints_on = attrgetter("_child_joints")
"""The joints on a link, as :attr:`Link.child_joints`, without a copy."""


def known_counts(link: Link) -> tuple[int, int, int] | None:
    """What :func:`keep_counts` kept, if the joints below the link are the same."""
    known = link._counts
    if known is not None and known[0] != _changes[-1][0]:
        last = known[0]
        changes = [change for change in _changes.copy() if change[0] > last]
        if not changes or len(changes) != changes[-1][0] - last or not _same_below(link, changes):
            return None
        known = link._counts = changes[-1][0], known[1], known[2]
    return known


def _same_below(link: Link, changes: list[tuple]) -> bool:
    """Whether the joints below a link are the same as before some changes of connections. Their order may differ.

    They are the same in two cases. In the first case, each joint connects the same links as before its first change. In the second case, no
    change was below the link. The parent link of the last change below the link is still below it, so it suffices to look at the parent
    links as they are now.
    """
    # hashing a reference whose joint is gone would be an error; all references to one joint are one object
    seen = set()
    for _, joint, parent, child in changes:
        if id(joint) not in seen:
            seen.add(id(joint))
            if child is None:
                break
            found = joint()
            if found is None or found.get_parent_link() is not parent() or found.get_child_link() is not child():
                break
    else:
        return True
    for _, _, parent, _ in changes:
        if parent is None:
            return False
        above = parent()
        while above is not None:
            if above is link:
                return False
            joint = above._parent_joint
            above = None if joint is None else joint.get_parent_link()
    return True


def keep_counts(link: Link, changes: int, moving: int, every: int) -> tuple[int, int, int]:
    """Keeps the numbers of the joints below a link that move, and of all joints, which were counted after :func:`connections` was
    read."""
    link._counts = changes, moving, every
    return link._counts


def collision_versions(links: list[Link]) -> tuple:
    """What changes when collisions of links are added or edited."""
    return versions([collision for link in links for collision in link._collisions])


def _spatial_inertia(value, what: str) -> np.ndarray:
    G = as_array_of_any(value, (6, 6), what)
    if _is_sound(G.tolist()):
        return G
    G = as_array(G, (6, 6), what)
    mass, coupling = G[3, 3], G[:3, 3:]
    if np.abs(G).max() > _LARGEST:
        raise RobotError(f"{what} has the number {np.abs(G).max():g}, which is too large; units are SI (kg, m)")
    slack = _TOLERANCE * np.abs(G).max()
    if np.abs(G - G.T).max() > slack:
        raise RobotError(f"{what} is not symmetric")
    if mass < 0.0:
        raise RobotError(f"{what} has the mass {mass:g} kg; a mass is at least 0")
    if np.abs(G[3:, 3:] - mass * np.eye(3)).max() > slack:
        raise RobotError(
            f"{what} has the lower right block {G[3:, 3:].tolist()}; it must be the mass times the identity"
        )
    if np.abs(coupling + coupling.T).max() > slack:
        raise RobotError(
            f"{what} has the upper right block {coupling.tolist()}; it must be m [c], which is antisymmetric"
        )
    if mass == 0.0 and np.abs(coupling).max() > 0.0:
        raise RobotError(f"{what} has the mass 0 and a first moment of mass that is not 0; give the link a mass")
    least = least_moment(G)
    if least < -_TOLERANCE * np.abs(G[:3, :3]).max():
        raise RobotError(
            f"{what} has a negative principal moment of inertia about the centre of mass, {least:g} kg m^2; it must be at least 0"
        )
    return G


def _is_sound(G: list[list[float]]) -> bool:
    """A fast test that inertias of rigid bodies with finite numbers pass, those of point masses, rods and links without mass among them.

    It is stricter than that of :func:`_spatial_inertia`. Principal moments are above a negative number if the matrix minus that number has
    positive pivots.
    """
    (
        (a, b, c, p, q, r),
        (d, e, f, s, t, u),
        (g, h, i, v, w, x),
        (j, k, l, m, n, o),
        (y, z, A, B, C, D),
        (E, F, H, I, J, K),
    ) = G
    scale = max(a, e, i)
    slack = _TOLERANCE * max(scale, m)
    if not (
        0.0 <= m < LARGE and 0.0 <= scale < LARGE and abs(d - b) <= slack and abs(g - c) <= slack and abs(h - f) <= slack
        and abs(j - p) <= slack and abs(k - s) <= slack and abs(l - v) <= slack and abs(y - q) <= slack and abs(z - t) <= slack
        and abs(A - w) <= slack and abs(E - r) <= slack and abs(F - u) <= slack and abs(H - x) <= slack
        and abs(C - m) <= slack and abs(K - m) <= slack and n == o == B == D == I == J == 0.0
        and p == t == x == 0.0 and abs(q + s) <= slack and abs(r + v) <= slack and abs(u + w) <= slack
    ):  # fmt: skip
        return False
    if scale == 0.0:
        # no inertia about the origin, so the mass is there
        return a == e == i == d == g == h == q == r == s == u == v == w == 0.0
    # the lower triangle of the inertia about the centre of mass, plus half of what is allowed
    more = 0.5 * _TOLERANCE * scale
    a += more
    e += more
    i += more
    if m > 0.0:
        a -= (q * q + r * r) / m
        e -= (s * s + u * u) / m
        i -= (v * v + w * w) / m
        d -= u * r / m
        g -= w * q / m
        h -= v * s / m
    elif not q == r == s == u == v == w == 0.0:
        return False
    # pivots of a Cholesky factorisation, whose rounding errors are far below what is added
    if not a > 0.0:
        return False
    e -= d * d / a
    if not e > 0.0:
        return False
    h -= g * d / a
    return i - g * g / a - h * h / e > 0.0


def least_moment(G: np.ndarray) -> float:
    """The smallest principal moment of inertia about the centre of mass [kg m^2] of a spatial inertia."""
    C = G[:3, 3:]
    return float(np.linalg.eigvalsh(G[:3, :3] - (C @ C.T / G[3, 3] if G[3, 3] > 0.0 else 0.0))[0])
