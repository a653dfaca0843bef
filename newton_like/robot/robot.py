"""Kinematics and dynamics of one robot in double precision, for one configuration or a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import is_finalizing
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from newton_like.coercion import as_flag
from newton_like.model import ModelBuilder
from newton_like.robot.arguments import one_form
from newton_like.robot.core import tasks
from newton_like.robot.core.orders import Orders
from newton_like.robot.core.robot import RobotCore
from newton_like.robot.core.state import StateCore
from newton_like.robot.errors import RobotError, ShapeError
from newton_like.robot.nearest import Distances, capsules_of, chosen_pairs
from newton_like.robot.screws import inverse_of_symmetric, symmetric_inverse
from newton_like.robot.state import State, new_state
from newton_like.robot.structure.configuration import RobotConfiguration
from newton_like.robot.structure.joint import Joint, q_limits, qddot_limits, qdot_limits
from newton_like.robot.structure.link import Link
from newton_like.robot.structure.tree import count_joints
from newton_like.robot.to_model import robot_builder
from newton_like.robot.wheels import Wheels, base_velocity, mobility_of

_REACHABLE = 1e-12
"""Eigenvalue of an operational inertia's inverse, as a part of the largest one, below which a direction counts as unreachable."""


class Robot:
    """The tree of links and joints below a base link.

    The robot keeps the tree, the screws, the frames and the inertias as they are now; limits of joints are read when they are asked for.

    Functions take a :class:`State` and indices of its links. Twists, wrenches and Jacobians have the angular part first. Where the state
    has a batch of configurations, results have the batch as their first dimension, and one call computes them in SIMD lanes and on all
    cores (environment variable ``NEWTON_LIKE_THREADS``). Several threads may use one robot at the same time, each with its own
    state. Copies and pickles of a robot are robots of their own; states cannot be copied.

    Args:
        robot_configuration: name, base link and mobile base.
        evaluator: how batches are computed. ``"specialised"``: by code that is compiled for this robot (seconds, then kept on disk);
            ``"general"``: by code for all robots; ``"auto"``: specialised from 256 configurations on, unless the code is long (a mass
            matrix of more than some 50 joints). The results are the same, bit by bit.

    Raises:
        ValueError: an unsound tree (cycles, repeated names), inertia, joint or mobile base; the message names it. An unknown `evaluator`.
        TypeError: not a RobotConfiguration.

    Warns:
        UserWarning: positions of wheels do not tell their roles, see :func:`wheel_roles`.
    """

    _state = State
    _dofs: int | None = None

    def __init__(self, robot_configuration: RobotConfiguration, *, evaluator: str = "auto"):
        if not isinstance(robot_configuration, RobotConfiguration):
            raise TypeError(
                f"robot_configuration must be a RobotConfiguration, not {type(robot_configuration).__name__}"
            )
        if evaluator not in ("auto", "general", "specialised"):
            raise RobotError(f"evaluator={evaluator!r} must be 'auto', 'general' or 'specialised'")
        if robot_configuration.base_link is None:
            raise RobotError("the robot configuration has no base link; set its base_link")
        self.configuration = robot_configuration
        # for the files of this package
        self.core = RobotCore(robot_configuration.base_link, evaluator)
        if self._dofs not in (None, self.dof):
            raise RobotError(
                f"{type(self).__name__} has {self._dofs} joints that move, but this robot has {self.dof}; use Robot"
            )
        self._orders = Orders(self.core)
        self._masses = self.core.masses.tolist()
        self._has_mass = sum(self._masses) > 0.0
        self._mobility = mobility_of(robot_configuration)

    def __reduce__(self):
        # copies and pickles are new robots, of the configuration as it is then
        return _made_again, (type(self), self.configuration, self.core.evaluator)

    def __repr__(self) -> str:
        n, links = self.dof, len(self.core.links)
        return f"{type(self).__name__}(\n  DOF={n},\n  links={links},\n  joints={n},\n  base={self.base.name!r}\n)"

    def __str__(self) -> str:
        return f"{type(self).__name__}(DOF={self.dof}, joints={self.dof}, base={self.base.name})"

    # ------------------------------------------------------------------------------------------------ structure

    @property
    def dof(self) -> int:
        """Number of joints that move."""
        return len(self.core.joints)

    @property
    def base(self) -> Link:
        """The base link."""
        return self.core.links[0]

    @property
    def links(self) -> list[Link]:
        """All links, breadth-first."""
        return list(self.core.links)

    @property
    def joints(self) -> list[Joint]:
        """The joints that move, breadth-first."""
        return list(self.core.joints)

    @property
    def link_names(self) -> list[str]:
        """Names of :attr:`links`."""
        return list(self.core.link_names)

    @property
    def joint_names(self) -> list[str]:
        """Names of :attr:`joints`."""
        return list(self.core.joint_names)

    def get_base(self) -> Link:
        """:attr:`base`"""
        return self.base

    def get_dof(self) -> int:
        """:attr:`dof`"""
        return self.dof

    def get_number_of_joints(self) -> int:
        """:attr:`dof`"""
        return self.dof

    def get_link_names(self) -> list[str]:
        """:attr:`link_names`"""
        return self.link_names

    def get_joint_names(self) -> list[str]:
        """:attr:`joint_names`"""
        return self.joint_names

    @overload
    def get_link(self, name: str) -> Link | None: ...
    @overload
    def get_link(self, state: State, index: int) -> Link: ...
    def get_link(self, *args: str | State | int, **named: str | State | int) -> Link | None:
        """``get_link(name)``: the link of that name, or None. ``get_link(state, index)``: the link with that index of the state.

        Raises:
            IndexError: no such index.
            TypeError: other arguments.
        """
        given = one_form("get_link", (("name",), ("state", "index")), args, named)
        if "index" in given:
            return self.core.links[core_of(self, given["state"]).body(given["index"])]
        if not isinstance(given["name"], str):
            raise TypeError(f"the name of a link must be a str, not {given['name']!r}; or give a state and an index")
        at = self._orders.body_of.get(given["name"])
        return None if at is None else self.core.links[at]

    @staticmethod
    def count_joints(base_link: Link, include_fixed: bool = False) -> int:
        """Number of joints below a link: those that move, and with `include_fixed` the fixed ones.

        Raises:
            TypeError, ValueError: not a :class:`Link`; two links or two joints have the same name.
        """
        return count_joints(base_link, include_fixed)

    def make_state(self, link_names: Sequence[str] = (), joint_names: Sequence[str] = ()) -> State:
        """A state, zero at first, whose links and joints have the listed names first, and then the others breadth-first.

        Args:
            link_names: names of links, those behind fixed joints too.
            joint_names: names of joints that move.

        Raises:
            KeyError, ValueError: unknown or repeated names.
            TypeError: no list of names.
        """
        return new_state(self._state, self, self._orders.links(link_names), self._orders.joints(joint_names))

    def get_joint_property(self, state: State, getter: Callable[[Joint], float]) -> np.ndarray:
        """A number of each joint in the order of a state, ``[n]``.

        Raises:
            TypeError, ValueError: `getter` is not a function, or does not return a number.
        """
        if not callable(getter):
            raise _NotCallable(f"getter must be a function of a Joint, not {getter!r}")
        joints = core_of(self, state).joints
        found = [getter(joint) for joint in joints]
        for joint, x in zip(joints, found, strict=True):
            if (type(x) not in _PLAIN and not isinstance(x, int | float | np.number | np.bool_)) or isinstance(
                x, np.complexfloating
            ):
                raise RobotError(f"getter returns {x!r} for joint {joint.name!r}; return a number")
        # scalars of NumPy are faster as floats of Python
        plain = found and type(found[0]) is float
        return np.array(found if plain else [*map(float, found)], dtype=float)

    def get_limit_q_lower(self, state: State) -> np.ndarray:
        """Lower limits of positions in the order of a state [rad or m], ``[n]``."""
        return np.array([limits[0] for limits in map(q_limits, core_of(self, state).joints)])

    def get_limit_q_upper(self, state: State) -> np.ndarray:
        """Upper limits of positions in the order of a state [rad or m], ``[n]``."""
        return np.array([limits[1] for limits in map(q_limits, core_of(self, state).joints)])

    def get_limit_qdot_lower(self, state: State) -> np.ndarray:
        """Lower limits of velocities in the order of a state [rad/s or m/s], ``[n]``."""
        return np.array([limits[0] for limits in map(qdot_limits, core_of(self, state).joints)])

    def get_limit_qdot_upper(self, state: State) -> np.ndarray:
        """Upper limits of velocities in the order of a state [rad/s or m/s], ``[n]``."""
        return np.array([limits[1] for limits in map(qdot_limits, core_of(self, state).joints)])

    def get_limit_qddot_lower(self, state: State) -> np.ndarray:
        """Lower limits of accelerations in the order of a state [rad/s^2 or m/s^2], ``[n]``."""
        return np.array([limits[0] for limits in map(qddot_limits, core_of(self, state).joints)])

    def get_limit_qddot_upper(self, state: State) -> np.ndarray:
        """Upper limits of accelerations in the order of a state [rad/s^2 or m/s^2], ``[n]``."""
        return np.array([limits[1] for limits in map(qddot_limits, core_of(self, state).joints)])

    def get_limit_torque(self, state: State) -> np.ndarray:
        """Limits of torques and forces in the order of a state [N m or N], ``[n]``."""
        return np.array([joint.get_limit_torque() for joint in core_of(self, state).joints])

    # ------------------------------------------------------------------------------------------------ kinematics

    def compute_forward_kinematics(self, state: State) -> None:
        """Checks that the state is one of this robot. The call is not needed: functions compute what is not up to date, and use frames of
        links again as long as the positions are the same."""
        core_of(self, state)

    def compute_diff_forward_kinematics(self, state: State) -> None:
        """As :meth:`compute_forward_kinematics`; other functions compute velocities when they need them."""
        core_of(self, state)

    def compute_2nd_diff_forward_kinematics(self, state: State) -> None:
        """As :meth:`compute_forward_kinematics`; other functions compute accelerations when they need them."""
        core_of(self, state)

    def compute_transformation(self, state: State, reference_link_index: int, target_link_index: int) -> np.ndarray:
        """Pose of the target link in the frame of the reference link, ``[4, 4]`` or ``[batch, 4, 4]``.

        Raises:
            ValueError, TypeError: a state of another robot.
            IndexError, TypeError: no index of a link.
        """
        core = core_of(self, state)
        return core.evaluate(tasks.POSE, (4, 4), core.body(target_link_index), core.body(reference_link_index))

    def compute_space_jacobian(self, state: State, reference_link_index: int, target_link_index: int) -> np.ndarray:
        """Jacobian of the target link's twist ``vee(dT/dt inverse(T))`` with its pose T in the frame of the reference link, ``[6, n]`` or
        ``[batch, 6, n]``. Twists have the axes and the origin of the reference frame.

        Raises:
            ValueError, TypeError, IndexError: see :meth:`compute_transformation`.
        """
        core = core_of(self, state)
        ref = core.body(reference_link_index)
        return core.evaluate(tasks.JACOBIAN, (6, core.dofs), core.body(target_link_index), ref, ref)

    def compute_body_jacobian(self, state: State, reference_link_index: int, target_link_index: int) -> np.ndarray:
        """Jacobian of the target link's twist relative to the reference link, ``vee(inverse(T) dT/dt)``, with the axes and the origin of
        the target frame, ``[6, n]`` or ``[batch, 6, n]``.

        Raises:
            ValueError, TypeError, IndexError: see :meth:`compute_transformation`.
        """
        core = core_of(self, state)
        target = core.body(target_link_index)
        return core.evaluate(tasks.JACOBIAN, (6, core.dofs), target, core.body(reference_link_index), target)

    def compute_body_velocity(self, state: State, reference_link_index: int, target_link_index: int) -> np.ndarray:
        """Twist of the target link relative to the reference link in the target frame, ``[6]`` or ``[batch, 6]``: the body Jacobian times
        qdot.

        Raises:
            ValueError, TypeError, IndexError: see :meth:`compute_transformation`; inputs are batches of different sizes.
        """
        core = core_of(self, state)
        target = core.body(target_link_index)
        return core.evaluate(tasks.VELOCITY, (6,), target, core.body(reference_link_index), target)

    # ------------------------------------------------------------------------------------------------ masses

    def compute_mass(self, state: State, target_link_index: int) -> float:
        """Mass of one link [kg].

        Raises:
            ValueError, TypeError, IndexError: see :meth:`compute_transformation`.
        """
        return self._masses[core_of(self, state).body(target_link_index)]

    def compute_center_of_mass(
        self,
        state: State,
        ref_link: int,
        target_link: int | Sequence[int] | None = None,
        *,
        target_links: int | Sequence[int] | None = None,
    ) -> np.ndarray:
        """Centre of mass in the frame of the reference link [m], ``[3]`` or ``[batch, 3]``.

        Args:
            state: the state.
            ref_link: index of the reference link.
            target_link: index of a link, or a list of them, in which a link may be repeated; by default all links.
            target_links: the same.

        Raises:
            ValueError, TypeError, IndexError: see :meth:`compute_transformation`; the links have no mass.
        """
        core = core_of(self, state)
        ref = core.body(ref_link)
        if target_link is not None and target_links is not None:
            raise TypeError("compute_center_of_mass takes target_link or target_links, not both")
        self._weigh(core, target_link if target_links is None else target_links)
        return core.evaluate(tasks.CENTRE, (3,), 0, ref)

    def compute_center_of_mass_jacobian(
        self, state: State, ref_link: int, target_link: int | Sequence[int] | None = None
    ) -> np.ndarray:
        """Derivative of :meth:`compute_center_of_mass` with respect to q, ``[3, n]`` or ``[batch, 3, n]``.

        Raises:
            ValueError, TypeError, IndexError: see :meth:`compute_center_of_mass`.
        """
        core = core_of(self, state)
        ref = core.body(ref_link)
        self._weigh(core, target_link)
        return core.evaluate(tasks.CENTRE_JACOBIAN, (3, core.dofs), 0, ref)

    def _weigh(self, core: StateCore, links) -> None:
        """Selects links whose centre of mass is asked for."""
        weights = core.read["weights"]
        if links is None:
            weights.fill(1.0)
            if self._has_mass:
                return
        else:
            weights.fill(0.0)
            if type(links) is int:
                k = core.body(links)
                weights[k] = 1.0
                if self._masses[k] > 0.0:
                    return
            elif not core.count_links(links):
                one = isinstance(links, str | bytes) or not hasattr(links, "__iter__")
                for i in [links] if one else links:
                    weights[core.body(i)] += 1.0
        if not weights.dot(self.core.masses) > 0.0:
            names = [core.link_names[i] for i, k in enumerate(core.bodies) if weights[k]]
            raise RobotError(
                f"there is no centre of mass: links {names} have no mass"
                if names
                else "the list of links is empty; name a link"
            )

    def compute_total_inertial(self, state: State, ref_link: int) -> np.ndarray:
        """Inertia of all links about the origin of the reference link, in its axes: sum of ``Ad(T^-1)^T G Ad(T^-1)``, ``[6, 6]`` or
        ``[batch, 6, 6]`` [kg m^2, kg m, kg].

        Raises:
            ValueError, TypeError, IndexError: see :meth:`compute_transformation`.
        """
        core = core_of(self, state)
        ref = core.body(ref_link)
        return core.evaluate(tasks.TOTAL_INERTIA, (6, 6), 0, ref)

    # ------------------------------------------------------------------------------------------------ dynamics

    def compute_mass_matrix(self, state: State) -> np.ndarray:
        """Joint-space inertia with the base link fixed, ``[n, n]`` or ``[batch, n, n]``, by the composite-rigid-body algorithm
        (Featherstone 2008, table 6.2).

        Raises:
            ValueError, TypeError: a state of another robot.
        """
        core = core_of(self, state)
        return core.evaluate(tasks.MASS_MATRIX, (core.dofs, core.dofs))

    def compute_gravity_term(self, state: State) -> np.ndarray:
        """Joint torques and forces that hold the robot at rest under ``state.Vdot0`` [N m or N], ``[n]`` or ``[batch, n]``. Neither V0 nor
        qdot are read.

        Raises:
            ValueError, TypeError: a state of another robot.
        """
        core = core_of(self, state)
        # a test of one configuration takes longer than what it saves
        task = tasks.LIFTING if core.batched and not core.given["Vdot0"][..., :3].any() else tasks.HOLDING
        return core.evaluate(task, (core.dofs,))

    def compute_inverse_dynamics(self, state: State) -> None:
        """Writes to ``state.tau`` the joint torques and forces [N m or N] for q, qdot, qddot and the motion V0, Vdot0 of the base link, by
        the recursive Newton-Euler algorithm (Luh, Walker and Paul 1980).

        Raises:
            ValueError, TypeError: a state of another robot; inputs are batches of different sizes.
        """
        core = core_of(self, state)
        core.given["tau"] = core.evaluate(tasks.INVERSE_DYNAMICS, (core.dofs,))

    def compute_reflective_inertia(self, state: State, reference_link_index: int, target_link_index: int) -> np.ndarray:
        """Inertia of the robot as seen at the target link, in its frame: ``pinv(J pinv(M) J^T)`` with the body Jacobian J and the mass
        matrix M in radians and metres, ``[6, 6]`` or ``[batch, 6, 6]`` [kg m^2, kg m, kg]. It is zero in directions in which the link
        cannot move relative to the reference link.

        Raises:
            ValueError, TypeError, IndexError: see :meth:`compute_transformation`.
        """
        core = core_of(self, state)
        target, ref = core.body(target_link_index), core.body(reference_link_index)
        found = core.evaluate(tasks.OPERATIONAL, (38,), target, ref, target)
        if found.ndim == 1:
            stuck, singular = found[36:].tolist()
            if not stuck:
                A = found[:36].reshape(6, 6)
                return inverse_of_symmetric(A, _REACHABLE) if singular else A
        A = np.ascontiguousarray(found[..., :36]).reshape(*found.shape[:-1], 6, 6)
        if not found[..., 36:].any():
            return A
        stuck, singular = found[..., 36] > 0.0, found[..., 37] > 0.0
        if stuck.any():
            # configurations in which some joints move no inertia
            J = core.evaluate(tasks.JACOBIAN, (6, core.dofs), target, ref, target)[stuck]
            M = core.evaluate(tasks.MASS_MATRIX, (core.dofs, core.dofs))[stuck]
            if core.scale is not None:
                J, M = J / core.scale, M / (core.scale * core.scale[:, None])
            A[stuck] = J @ symmetric_inverse(M, _REACHABLE) @ np.swapaxes(J, -1, -2)
        left = stuck | singular
        A[left] = symmetric_inverse(A[left], _REACHABLE)
        return A

    # ------------------------------------------------------------------------------------------------ collision

    def detect_collisions_or_nearest_links(self, state: State, collision_threshold: int = 0) -> list[Any]:
        """Pairs of capsules that touch or overlap, and the nearest others until there are `collision_threshold` in all, nearest first.

        A pair is two capsules of different links that pass :meth:`Geom.filter`. Points are in the frame of the first link of the state.

        Args:
            state: the state.
            collision_threshold: least number of results, if there are as many pairs. 0 and, as in the SDK, negative numbers: only pairs
                that touch or overlap.

        Returns:
            A list of :class:`CollisionResult` objects; for a batch, a sequence with a list of them for each configuration, whose objects
            are made when they are asked for. Type checkers see a list with entries of any type, since a type tells nothing about batches.

        Raises:
            ValueError, TypeError: a state of another robot; no count.
            NotImplementedError: a link has a shape that is only a :class:`Geom`; a RuntimeError.
        """
        core = core_of(self, state)
        capsules = capsules_of(core)
        if isinstance(collision_threshold, bool) or not isinstance(collision_threshold, int | np.integer):
            raise TypeError(f"collision_threshold must be an integer, not {collision_threshold!r}")
        return capsules.results(core, max(collision_threshold, 0))

    def compute_distances(self, state: State, pairs: Sequence[int] | None = None, jacobian: bool = False) -> Distances:
        """Distances of pairs of capsules, with nearest points, as arrays.

        Args:
            state: the state.
            pairs: indices of pairs; by default all pairs that pass the filter, in the order of the state's links.
            jacobian: whether to compute the derivatives of the distances with respect to q.

        Raises:
            ValueError, TypeError: a state of another robot.
            IndexError, TypeError: no such pair; `pairs` is not a list of integers.
            NotImplementedError: a link has a shape that is only a :class:`Geom`; a RuntimeError.
        """
        core = core_of(self, state)
        capsules = capsules_of(core)
        return capsules.evaluate(core, as_flag(jacobian, "jacobian"), chosen_pairs(capsules, pairs))

    # ------------------------------------------------------------------------------------------------ mobile base

    def compute_mobility_diff_kinematics(self, state: State) -> np.ndarray:
        """Velocity ``[w, vx, vy]`` of the base link [rad/s, m/s] from the velocities of the wheels in ``state.qdot``, by least squares,
        ``[3]`` or ``[batch, 3]``.

        Raises:
            ValueError, TypeError: a state of another robot; a robot without wheels.
        """
        return self._wheels(core_of(self, state)).velocity(state.core.given["qdot"])

    @overload
    def compute_mobility_inverse_diff_kinematics(
        self, state: State, linear_velocity: ArrayLike, angular_velocity: float
    ) -> None: ...
    @overload
    def compute_mobility_inverse_diff_kinematics(self, state: State, body_velocity: ArrayLike) -> None: ...
    def compute_mobility_inverse_diff_kinematics(
        self, state: State, *args: ArrayLike | float, **named: ArrayLike | float
    ) -> None:
        """Writes to ``state.qdot`` the velocities of the wheels for a velocity of the base link.

        ``(state, linear_velocity, angular_velocity)`` takes ``[vx, vy]`` and w; ``(state, body_velocity)`` takes ``[w, vx, vy]``, ``[3]``
        or ``[batch, 3]``.

        Raises:
            ValueError, TypeError: a state of another robot; a robot without wheels; a wrong shape.
        """
        core = core_of(self, state)
        velocity = base_velocity(args, named)
        self._wheels(core).drive(core, velocity)

    def _wheels(self, core: StateCore) -> Wheels:
        """The wheels in the order of a state's joints."""
        if core.wheels is None:
            if self._mobility is None:
                raise RobotError(
                    "the robot has no mobile base with wheels; set mobile_base of its configuration before it is made, or <mobile> of "
                    "its file"
                )
            core.wheels = Wheels(self._mobility, core.joint_names)
        return core.wheels

    # ------------------------------------------------------------------------------------------------ models

    def to_builder(
        self, state: State | None = None, *, floating: bool = False, self_collisions: bool = False
    ) -> ModelBuilder:
        """A :class:`newton_like.ModelBuilder` with this robot, to simulate, record or draw it.

        Bodies and joints have the names of links and joints. The joint of the base link is ``{name of the robot}_base``, with ``_`` for
        each ``/``, and the shapes are ``{link}/{collision}_{index of the geom}``; such a label that another joint or shape has ends with a
        number, such as ``_2``. Joints have the limits of position, velocity (the smaller one of both directions, with a warning) and
        torque; models have no limits of acceleration. Capsules become shapes without density. The mobile base is left out: its wheels are
        joints like all others. Inertias that no body can have are replaced by the nearest possible ones.

        Args:
            state: gives the initial positions of the joints, and so the poses of the bodies; by default zero.
            floating: whether the base link is free; otherwise it is fixed at the origin of the world.
            self_collisions: whether capsules that pass the filter of the robot collide with each other; a solver may not support that.

        Raises:
            ValueError: a state of another robot or with a batch; a screw whose axis has not the length 1; a helical joint; limits of
                velocity that leave out 0; a shape that is only a :class:`Geom`. The message names the joint or the collision.
            TypeError: not a state; a flag that is not a bool.

        Warns:
            UserWarning: inertias were replaced, or a joint has different limits of velocity in both directions. The message names the
                links or the joint.
        """
        core = core_of(self, self.make_state() if state is None else state)
        values = core.given["q"]
        if values.ndim != 1:
            raise ShapeError("the state has a batch of configurations; give one of a single configuration")
        q = dict(zip(core.joint_names, values.tolist(), strict=True))
        poses = [core.evaluate(tasks.POSE, (4, 4), k) for k in range(len(core.bodies))]
        flags = as_flag(floating, "floating"), as_flag(self_collisions, "self_collisions")
        return robot_builder(self.core.links, self.core.edges, self.configuration.name or "robot", *flags, q, poses)


_PLAIN = frozenset((float, int, np.float64, np.int64))
"""Kinds of numbers that a fast test finds."""


def _made_again(kind: type[Robot], configuration: RobotConfiguration, evaluator: str) -> Robot:
    """The robot of a copied configuration."""
    return kind(configuration, evaluator=evaluator)


def core_of(robot: Robot, state: State) -> StateCore:
    """The core of a state, which must belong to a robot.

    Raises:
        RobotError, TypeError: a state of another robot, or no state; the interpreter ends.
    """
    if state.__class__ is robot._state and state.core.robot is robot:
        if is_finalizing():
            # kernels may be gone already
            raise RobotError(
                "the interpreter ends; robots compute nothing any more. Do this earlier, for example by atexit"
            )
        return state.core
    if isinstance(state, State):
        raise _ForeignState(
            f"the state belongs to another robot ({state.core.robot}); use a state that make_state of this robot ({robot}) made"
        )
    raise TypeError(f"state must be a {robot._state.__name__}, as make_state makes it, not {type(state).__name__}")


class _ForeignState(RobotError, TypeError):
    """A state of another robot."""


class _NotCallable(RobotError, TypeError):
    """Not a function."""
