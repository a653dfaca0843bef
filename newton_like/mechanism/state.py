"""The state of mechanisms, with derived quantities that are computed on demand and cached."""

from __future__ import annotations

import inspect

import numpy as np
import warp as wp

from newton_like.arrays import constant_array, keep_for_graph
from newton_like.coercion import as_index
from newton_like.dynamics.coordinates import configuration
from newton_like.dynamics.internal.frames import link_rows
from newton_like.dynamics.kinematics import chosen
from newton_like.dynamics.loops import constrained_dynamics, loop_joint, loops_of
from newton_like.dynamics.names import check_name, joint_index
from newton_like.mechanism.quantities import QUANTITIES
from newton_like.mechanism.variables import Variables
from newton_like.types import VelRepr

_CONSTANTS = (str, int, float, np.integer, np.floating)


class _Kept:
    """A cached quantity, and the version of the state it was computed for."""

    def __init__(self):
        self.stamp, self.value = None, None


class MechanismState(Variables):
    """Coordinates q, velocities v and additional states s of all mechanisms (articulations) of a model, with a cache of results.

    After RigidBodyDynamics.jl: derived quantities are computed on first use and kept until something they depend on changes. A
    setter invalidates only the quantities that depend on its argument: ``set_velocity`` does not invalidate poses, inertias and
    the mass matrix. :meth:`Model.notify_changed` invalidates all quantities. Setting ``additional_state`` invalidates none. All
    arrays have one row for every articulation.

    Every quantity of `newton_like.mechanism.QUANTITIES` is a method that takes the options of the function of `newton_like.dynamics`
    which computes it (such as ``out_repr=``) and is kept for each choice of them: :meth:`mass_matrix`, :meth:`bias_forces`,
    :meth:`link_transforms`, :meth:`link_jacobians`, :meth:`total_momentum` and so on. Results are views of what is kept: the next
    computation overwrites them.

    A state can be given to every function of `newton_like.dynamics` instead of a :class:`State`. For gradients use these functions,
    with arrays that have some: what is kept is not put on a tape again. While a graph is captured, each call computes its quantity in the
    graph, and the first call afterwards computes it again.

    Args:
        model: the :class:`Model`.
        state: a :class:`State` (or anything with ``joint_q`` and ``joint_qd``) to start from; the model's by default.
        additional_states: numbers of s for each articulation, such as three for each point that can touch the ground
            (:func:`newton_like.dynamics.soft_contact_forces`).

    Raises:
        ValueError, TypeError: `state` belongs to another model; a number of additional states that is none.
        RuntimeError: a graph is being captured.
    """

    def __init__(self, model, state=None, additional_states: int = 0):
        super().__init__(model, state, additional_states)
        self._kept: dict = {}
        self._views: dict = {}
        self._updated: set | None = None

    # ------------------------------------------------------------------------------------------------- the cache

    def _get(self, name: str, **options):
        """A quantity; computed if the cached one is stale."""
        quantity = QUANTITIES[name]
        options = quantity.options(options)
        key = (name, tuple(sorted(options.items())))
        if not _constant(options.values()):
            return quantity.function(self.model, self, **options)
        return self._keep(key, quantity.reads, lambda out: quantity.function(self.model, self, out=out, **options))

    def _keep(self, key, reads: str, compute):
        kept = self._kept.get(key)
        if kept is None:
            kept = _Kept()
        stamp = (self.model.version, *(self._stamps[x] for x in reads))
        capturing = self.model.device.is_capturing
        fresh = kept.stamp == stamp and not capturing if self._updated is None else key in self._updated
        if not fresh:
            if capturing:
                keep_for_graph(self.model.device, self)
            kept.value = compute(kept.value)
            # a graph computes it later, and again
            kept.stamp = None if capturing else stamp
            # reached only without an error, so failed results are not cached
            self._kept[key] = kept
            if self._updated is not None:
                self._updated.add(key)
        return kept.value

    def update(self, *stages) -> None:
        """Computes quantities whether they are stale or not, always into the same arrays.

        For CUDA graphs: a graph repeats launches and not Python's decisions what is stale. Call this inside of the capture, once
        outside before (so that arrays exist and kernels are compiled), and read the results after every launch of the graph.

        Args:
            stages: names of quantities, or pairs of a name and a dict of options; by default all that were asked for before.

        Raises:
            KeyError: no quantity has the name.
            TypeError: neither a name nor such a pair.
        """
        asked = []
        for stage in stages:
            name, options = (stage, {}) if isinstance(stage, str) else _pair(stage)
            if name not in QUANTITIES:
                raise KeyError(f"no quantity {name!r}; there are {', '.join(sorted(QUANTITIES))}")
            asked.append((name, options))
        self._updated = set()
        # coordinates that a graph writes arrive in the flat arrays again
        self._flat_stamps = dict.fromkeys(self._flat_stamps, -1)
        try:
            for name, options in asked:
                self._get(name, **options)
            for kind, *key in [] if stages else list(self._kept):
                if kind == "picked":
                    self._pick(*key)
                else:
                    self._get(kind, **dict(*key))
        finally:
            self._updated = None

    def _pick(self, name: str, places: tuple[int, ...], options: tuple) -> wp.array:
        """The entries of a quantity for links or joints with the indices `places` in their articulations, ``[articulation_count, ...]``."""
        if places[0] >= 0 and len(set(places)) == 1:
            # results keep their arrays, so views of them stay valid
            whole, key = self._get(name, **dict(options)), (name, places[0], options)
            if key not in self._views:
                self._views[key] = whole[:, places[0]]
            return self._views[key]

        def gather(out):
            whole = self._get(name, **dict(options))
            if out is None:
                out = wp.zeros((whole.shape[0], *whole.shape[2:]), dtype=whole.dtype, device=whole.device)
            to, source = self._places_of(places, whole.shape[1], out.size // len(places))
            wp.copy(wp.indexedarray(out.flatten(), [to]), wp.indexedarray(whole.flatten(), [source]))
            return out

        return self._keep(("picked", name, places, options), QUANTITIES[name].reads, gather)

    def _places_of(self, places: tuple[int, ...], count: int, size: int) -> tuple[wp.array, wp.array]:
        """Indices of all numbers of the picked entries, in the result and in the quantity."""
        key = (places, count, size)
        if key not in self._places:
            have = np.array([a for a, k in enumerate(places) if k >= 0], dtype=np.int32)
            entries = have, count * have + np.array(places, dtype=np.int32)[have]
            self._places[key] = tuple(
                constant_array((size * e[:, None] + np.arange(size)).ravel(), wp.int32, self.model.device)
                for e in entries
            )
        return self._places[key]

    def _where(self, kind: str, which) -> tuple[int, ...]:
        """The index of a link or a joint in every articulation; negative in articulations without it."""
        key = (kind, type(which), check_name(which, kind), self.model.version)
        if key not in self._places:
            if kind == "body":
                places = link_rows(self.model, which, "body")
            else:
                places = np.full(self.model.articulation_count, -1)
                for a in self._having(which, np.arange(len(places))):
                    places[a] = joint_index(self.model, which, int(a))
            self._places[key] = tuple(places.tolist())
        return self._places[key]

    def _of(self, kind: str, name: str, which, **options) -> wp.array:
        return self._pick(
            name, self._where(kind, which), tuple(sorted({**QUANTITIES[name].defaults, **options}.items()))
        )

    # --------------------------------------------------------------------------------------------------- queries

    def joint_transform(self, joint) -> wp.array:
        """Pose of the anchor frame of a joint's child seen from that of its parent.

        Args:
            joint: name, or index among the joints of the articulation.

        Returns:
            Position [m] and quaternion x y z w, ``[articulation_count, 7]``; zeros where an articulation has no such joint.

        Raises:
            KeyError: no joint has the name.
            IndexError: no articulation has the index.
            ValueError: several joints of an articulation have the name.
            TypeError: neither a name nor an index.
        """
        return self._of("joint", "joint_transforms", joint)

    def transform_to_root(self, body) -> wp.array:
        """Pose of a link in the world, ``[articulation_count, 7]``; see :meth:`joint_transform`."""
        return self._of("body", "link_transforms", body)

    def relative_transform(self, source, target) -> wp.array:
        """Pose of one frame seen from another; see :func:`newton_like.dynamics.relative_transform`.

        Frames with an offset that is not a tuple of numbers are computed each time.
        """
        return self._get("relative_transform", source=source, target=target)

    def twist(self, joint, *, out_repr=VelRepr.MIXED, repr=None) -> wp.array:
        """Velocity of a joint's child minus that of a body that is fixed to its parent, ``S v``, ``[articulation_count, 6]``.

        See :func:`newton_like.dynamics.joint_twists` for representations, and :meth:`joint_transform`.
        """
        return self._of("joint", "joint_twists", joint, out_repr=chosen(out_repr, repr))

    def twist_wrt_world(self, body, *, out_repr=VelRepr.MIXED, repr=None) -> wp.array:
        """Velocity of a link, ``[articulation_count, 6]``; see :func:`newton_like.dynamics.link_velocities`."""
        return self._of("body", "link_velocities", body, out_repr=chosen(out_repr, repr))

    def relative_twist(self, source, target, *, out_repr=VelRepr.MIXED, repr=None, axes: str = "target") -> wp.array:
        """Velocity of one frame seen from another; see :func:`newton_like.dynamics.relative_twist`."""
        return self._get("relative_twist", source=source, target=target, out_repr=chosen(out_repr, repr), axes=axes)

    def bias_acceleration(self, body=None, *, joint=None, out_repr=VelRepr.MIXED, repr=None) -> wp.array:
        """Acceleration of a link, or across a joint, while all v are constant, ``[articulation_count, 6]``.

        Args:
            body: link, by name or index; the time derivative of :meth:`twist_wrt_world`.
            joint: joint, likewise; the time derivative of :meth:`twist`. In INERTIAL, those of a chain add up to that of its last link.
            out_repr: :class:`VelRepr` of the velocity; ``repr`` is another name of this argument.

        Raises:
            KeyError, IndexError, ValueError, TypeError: as :meth:`joint_transform`; both or neither are given.
        """
        if (body is None) == (joint is None):
            raise TypeError("bias_acceleration needs a body or a joint")
        if joint is not None:
            return self._of("joint", "joint_bias_accelerations", joint, out_repr=chosen(out_repr, repr))
        return self._of("body", "link_bias_accelerations", body, out_repr=chosen(out_repr, repr))

    def spatial_inertia(self, body, *, out_repr=VelRepr.BODY, repr=None) -> wp.array:
        """Spatial inertia of a link, ``[articulation_count, 6, 6]``; see :func:`newton_like.dynamics.link_spatial_inertia`."""
        return self._of("body", "link_spatial_inertias", body, out_repr=chosen(out_repr, repr, VelRepr.BODY))

    def crb_inertia(self, body, *, out_repr=VelRepr.BODY, repr=None) -> wp.array:
        """Inertia of a link and all that it carries, ``[articulation_count, 6, 6]``; see :func:`newton_like.dynamics.crb_inertia`."""
        return self._of("body", "crb_inertias", body, out_repr=chosen(out_repr, repr, VelRepr.BODY))

    def gravitational_potential_energy(self, body=None) -> wp.array:
        """Potential energy in gravity [J], ``[articulation_count]``: of the whole mechanism, or of a link, by name or index.

        See :func:`newton_like.dynamics.potential_energy`.
        """
        return self._get("potential_energy", link=body)

    # -------------------------------------------------------------------------------------- the manifold of coordinates

    def _choose(self, function, *args) -> None:
        function(self.model, *args, out=self._q)
        self._changed("q")

    def normalize_configuration(self) -> None:
        """Gives quaternions unit length."""
        self._choose(configuration.normalize_configuration, self)

    def principal_value(self) -> None:
        """Brings quaternions to w >= 0 and angles to (-pi, pi]; poses stay."""
        self._choose(configuration.principal_value, self)

    def zero_configuration(self) -> None:
        """Sets the coordinates at which every joint's transform is the identity."""
        self._choose(configuration.zero_configuration)

    def rand_configuration(self, seed=None) -> None:
        """Sets random coordinates; see :func:`newton_like.dynamics.rand_configuration`."""
        self._choose(configuration.rand_configuration, seed)

    def zero_velocity(self) -> None:
        """Sets all velocities to zero."""
        self._v.zero_()
        self._changed("v")

    def rand_velocity(self, seed=None) -> None:
        """Sets random velocities; see :func:`newton_like.dynamics.rand_velocity`."""
        configuration.rand_velocity(self.model, seed, out=self._v)
        self._changed("v")

    def zero(self) -> None:
        """Sets zero coordinates, velocities and additional states."""
        self.zero_configuration()
        self.zero_velocity()
        self.reset_contact_state()

    def rand(self, seed=None) -> None:
        """Sets random coordinates and velocities."""
        generator = configuration.generator(seed)
        self.rand_configuration(generator)
        self.rand_velocity(generator)

    def local_coordinates(self, q0, *, out=None) -> tuple[wp.array, wp.array]:
        """phi and phi_dot of this state about coordinates q0; see :func:`newton_like.dynamics.local_coordinates`."""
        return configuration.local_coordinates(self.model, self, q0, out=out)

    def global_coordinates(self, q0, phi) -> None:
        """Sets the coordinates whose local ones about q0 are phi; see :func:`newton_like.dynamics.global_coordinates`."""
        self._choose(configuration.global_coordinates, q0, phi)

    def velocity_to_configuration_derivative(self) -> wp.array:
        """dq/dt of this state, for unit quaternions, ``[articulation_count, num_positions]``."""
        return self._get("position_rate", regularisation=0.0)

    def configuration_derivative_to_velocity(self, rate, *, out=None) -> wp.array:
        """The velocities with which q changes at a rate; see :func:`newton_like.dynamics.velocity_of_position_rate`."""
        return configuration.velocity_of_position_rate(self.model, self, rate, out=out)

    # ----------------------------------------------------------------------------------------------- loop joints

    @property
    def num_constraints(self) -> int:
        """Largest number of constraint rows of an articulation.

        Raises:
            ValueError: a loop joint connects two articulations, or limits a distance.
        """
        return loops_of(self.model, polynomials=True).count

    def constraint_range(self, joint, articulation: int = 0) -> slice:
        """The rows of a loop joint in the constraint of its articulation.

        Args:
            joint: name, or index among the loop joints of the articulation.
            articulation: which one; all of one shape are alike.

        Raises:
            KeyError, IndexError, ValueError, TypeError: as :meth:`configuration_range`.
        """
        index = loop_joint(self.model, joint, articulation)
        return slice(*loops_of(self.model, polynomials=True).ranges[articulation][index])

    def constraint_index_to_joint(self, index: int, articulation: int = 0) -> int:
        """The loop joint, by its index among those of the articulation, that a row of the constraint belongs to.

        Raises:
            IndexError: the row, or the articulation, does not exist.
        """
        ranges = loops_of(self.model, polynomials=True).ranges[
            as_index(articulation, "articulation", self.model.articulation_count)
        ]
        row = as_index(index, "index", ranges[-1][1] if ranges else 0)
        return next(i for i, (start, end) in enumerate(ranges) if start <= row < end)

    def constrained_dynamics(self, joint_forces=None, link_forces=None, **options) -> tuple[wp.array, wp.array]:
        """Accelerations with closed loops, and the forces that close them; see :func:`newton_like.dynamics.constrained_dynamics`."""
        return constrained_dynamics(self.model, self, joint_forces, link_forces, **options)


def _constant(values) -> bool:
    """Whether values are immutable: numbers, names, and tuples of them, in contrast to arrays and lists."""
    return all(_constant(v) if isinstance(v, tuple) else v is None or isinstance(v, _CONSTANTS) for v in values)


def _pair(stage) -> tuple[str, dict]:
    """Name and options of a quantity, from an argument of :meth:`MechanismState.update`."""
    fits = isinstance(stage, tuple | list) and len(stage) == 2 and isinstance(stage[0], str)
    if not fits or not isinstance(stage[1], dict):
        raise TypeError(f"stages must be names, or pairs of a name and a dict of options, not {stage!r}")
    return tuple(stage)


def _method(name: str):
    quantity = QUANTITIES[name]

    def method(self, **options):
        for option in options:
            if option == "out":
                raise TypeError(
                    f"{name}() of a MechanismState has no argument 'out', because results are cached; use the function of "
                    "newton_like.dynamics, or copy the result"
                )
            if option not in quantity.defaults:
                known = ", ".join(quantity.defaults) or "none"
                raise TypeError(f"{name}() got an unexpected keyword argument {option!r}; options: {known}")
        return self._get(name, **options)

    method.__name__, method.__qualname__ = name, f"MechanismState.{name}"
    method.__doc__ = (
        f"{inspect.getdoc(quantity.function)}\n\nHere model and state are given, and the result is kept until "
        f"{'coordinates' if quantity.reads == 'q' else 'coordinates or velocities'} change."
    )
    return method


for _name in QUANTITIES:
    if not hasattr(MechanismState, _name):
        setattr(MechanismState, _name, _method(_name))
