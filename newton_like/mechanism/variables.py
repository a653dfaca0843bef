"""Coordinates, velocities and additional states of mechanisms as rows of articulations: setters, views, copies, indices."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, constant_array
from newton_like.coercion import as_count, as_index
from newton_like.dynamics.coordinates.velocity import set_velocity, velocity
from newton_like.dynamics.internal.common import finite_numbers, output_array, state_arrays
from newton_like.dynamics.internal.dense import coord_rows, dof_rows
from newton_like.dynamics.names import check_name, index_of, joint_coords, joint_dofs, link_index, names_of
from newton_like.model.arguments import as_numbers, check_array, check_model

_SHARED = "use one articulation's: configuration()[a, configuration_range(joint, a)]"


def _alone(joint, world) -> None:
    if joint is not None or world is not None:
        raise TypeError("repr is for the velocities of all joints of all worlds; omit joint and world")


class Variables:
    """q, v and s of every articulation; see :class:`newton_like.MechanismState`."""

    def __init__(self, model, state=None, additional_states: int = 0):
        count = as_count(additional_states, "additional_states", 0, 2**24)
        self.model = check_model(model)
        check_recorded(model.device, "MechanismState(model)")
        self.made_by = model.made_by
        self._coords, self._dofs = coord_rows(model), dof_rows(model)
        source = [model.joint_q, model.joint_qd] if state is None else state_arrays(model, state)
        self._flat_q, self._flat_v = (wp.clone(a, requires_grad=False) for a in source)
        self._q, self._v = self._coords.rows(self._flat_q), self._dofs.rows(self._flat_v)
        self._s = wp.zeros((model.articulation_count, count), dtype=model.dtype, device=model.device)
        self._stamps = dict.fromkeys("qvs", 0)
        self._flat_stamps = dict.fromkeys("qv", 0)
        self._places: dict = {}

    # ----------------------------------------------------------------------------------------------- sizes and ranges

    @property
    def num_positions(self) -> int:
        """Largest number of coordinates of an articulation."""
        return self._coords.columns

    @property
    def num_velocities(self) -> int:
        """Largest number of degrees of freedom of an articulation."""
        return self._dofs.columns

    @property
    def num_additional_states(self) -> int:
        """Additional states of each articulation."""
        return self._s.shape[1]

    def configuration_range(self, joint, articulation: int = 0) -> slice:
        """Slice of the coordinates of a joint among those of its articulation.

        Args:
            joint: name, or index among the joints of the articulation.
            articulation: which one; all of one shape are alike.

        Raises:
            KeyError: no joint has the name.
            IndexError: the index, or the articulation, does not exist.
            ValueError: several joints have the name.
            TypeError: neither a name nor an index.
        """
        return joint_coords(self.model, joint, articulation)

    def velocity_range(self, joint, articulation: int = 0) -> slice:
        """Where the velocities of a joint are among those of its articulation; see :meth:`configuration_range`."""
        return joint_dofs(self.model, joint, articulation)

    def configuration_index_to_joint(self, index: int, articulation: int = 0) -> int:
        """The joint, by its index in the articulation, that a coordinate belongs to.

        Raises:
            IndexError: the coordinate, or the articulation, does not exist.
        """
        return self._joint_of(self._coords, self.model.joint_q_start, index, articulation)

    def velocity_index_to_joint(self, index: int, articulation: int = 0) -> int:
        """The joint, by its index in the articulation, that a velocity belongs to; see :meth:`configuration_index_to_joint`."""
        return self._joint_of(self._dofs, self.model.joint_qd_start, index, articulation)

    def _joint_of(self, rows, starts: wp.array, index, articulation) -> int:
        a = as_index(articulation, "articulation", self.model.articulation_count)
        place = rows.start[a] + as_index(index, "index", int(rows.count[a]))
        # a joint without coordinates has the same start as the next joint
        return int(np.searchsorted(starts.numpy(), place, side="right")) - 1 - int(names_of(self.model).start[a])

    def supports(self, joint, body, articulation: int = 0) -> bool:
        """Whether a joint lies between the world and a body, so that its motion moves the body.

        A loop joint supports no body: the trees are the same without it.

        Args:
            joint: name, or index among the joints of the articulation; or the name of a loop joint.
            body: name of the link, or its index among the links of the articulation.
            articulation: which one; all of one shape are alike.

        Raises:
            KeyError, IndexError, ValueError, TypeError: as :meth:`configuration_range`.
        """
        link = link_index(self.model, body, articulation)
        if self._closes_loop(joint, articulation):
            return False
        wanted = index_of(self.model, "joint", joint, articulation)
        first = int(names_of(self.model).start[articulation])
        at = first + link
        above = self.model.joint_ancestor.numpy()
        while at > first + wanted:
            at = int(above[at])
        return at == first + wanted

    def _closes_loop(self, joint, articulation) -> bool:
        """Whether a name belongs to a joint outside of the trees, and to no joint of a tree."""
        model = self.model
        as_index(articulation, "articulation", model.articulation_count)
        if not isinstance(joint, str) or names_of(model).only("joint", joint, articulation) is not None:
            return False
        loops = np.flatnonzero(model.joint_articulation.numpy() < 0)
        return any(f"/{model.joint_label[j]}".endswith(f"/{joint}") for j in loops)

    # ----------------------------------------------------------------------------------------------------- views

    @property
    def joint_q(self) -> wp.array:
        """Coordinates as in :class:`State`, ``[joint_coord_count]``, for functions of `newton_like.dynamics`. Who writes them calls
        :meth:`joints_changed`."""
        return self._flat("q", self._coords, self._q, self._flat_q)

    @property
    def joint_qd(self) -> wp.array:
        """Velocities as in :class:`State`, ``[joint_dof_count]``, for functions of `newton_like.dynamics`; see :attr:`joint_q`."""
        return self._flat("v", self._dofs, self._v, self._flat_v)

    def _flat(self, name: str, rows, values, flat) -> wp.array:
        if not rows.shared and self._flat_stamps[name] != self._stamps[name]:
            rows.flat(values, flat)
            # a capture on a CPU does not run what it records
            self._flat_stamps[name] = -1 if self.model.device.is_capturing else self._stamps[name]
        return flat

    def configuration(self, joint=None, *, world: int | None = None) -> wp.array:
        """The coordinates, or those of one joint or one world. They may be written; :meth:`set_dirty` must follow.

        Args:
            joint: name or index of a joint, which must have its coordinates at the same place in all articulations.
            world: whose articulations; by default those of all worlds.

        Returns:
            A view [m, rad or quaternion x y z w], ``[articulations, coordinates]``; what an articulation lacks is zero.

        Raises:
            KeyError, IndexError, ValueError, TypeError: as :meth:`configuration_range`; the world does not exist; the places differ.
        """
        return self._view(self._q, self.configuration_range, joint, world)

    def velocity(self, joint=None, *, world: int | None = None, repr=None) -> wp.array:
        """The velocities, or those of one joint or one world, ``[articulations, dofs]``; see :meth:`configuration`.

        Args:
            joint, world: see :meth:`configuration`.
            repr: :class:`VelRepr` of floating bases, of all joints of all worlds (:func:`newton_like.dynamics.velocity`); a new
                array, and no view. By default velocities as they are.

        Raises:
            TypeError: ``repr`` with a joint or a world.
        """
        if repr is not None:
            _alone(joint, world)
            return velocity(self.model, self, repr)
        return self._view(self._v, self.velocity_range, joint, world)

    def additional_state(self, *, world: int | None = None) -> wp.array:
        """The additional states, or those of one world, ``[articulations, num_additional_states]``; see :meth:`configuration`."""
        return self._view(self._s, None, None, world)

    def _view(self, values: wp.array, span, joint, world) -> wp.array:
        chosen = self._articulations(world)
        if joint is not None:
            spans = {(s.start, s.stop) for s in (span(joint, int(a)) for a in self._having(joint, chosen))}
            if len(spans) != 1 or len(self._having(joint, chosen)) != len(chosen):
                raise ValueError(f"joint {joint!r} is not at one place in all articulations; {_SHARED}")
            start, stop = spans.pop()
            if start == stop:
                return wp.zeros((len(chosen), 0), dtype=values.dtype, device=values.device)
            values = values[:, start:stop]
        return values if world is None else values[int(chosen[0]) : int(chosen[-1]) + 1]

    def _articulations(self, world) -> np.ndarray:
        """Indices of the articulations of a world, in order; None: all."""
        if world is None:
            return np.arange(self.model.articulation_count)
        world = as_index(world, "world", max(self.model.world_count, 1))
        of = np.maximum(self.model.articulation_world.numpy(), 0)
        chosen = np.flatnonzero(of == world)
        if not len(chosen):
            raise ValueError(f"world {world} has no articulation")
        return chosen

    def _having(self, joint, chosen: np.ndarray) -> np.ndarray:
        """The articulations among the chosen ones that have a joint."""
        names = names_of(self.model)
        if isinstance(joint, str):
            found = [a for a in chosen if names.only("joint", joint, int(a)) is not None]
        else:
            index = as_index(joint, "joint", self.model.max_joints_per_articulation)
            found = [a for a in chosen if index < names.count[a]]
        if not found:
            index_of(self.model, "joint", joint, int(chosen[0]) if len(chosen) else 0)  # raises an error
        return np.array(found, dtype=int)

    # --------------------------------------------------------------------------------------------------- setters

    def set_configuration(self, q, joint=None, *, world: int | None = None) -> None:
        """Sets the coordinates. Quaternions are not normalised, see :meth:`normalize_configuration`.

        Args:
            q: [m, rad or quaternion x y z w], numbers or a Warp array. Without `joint`: ``[articulations, num_positions]``, or as
                ``State.joint_q`` if it is for all worlds. With `joint`: ``[articulations that have it, its coordinates]``. Numbers may
                be one row for all.
            joint: name or index; by default all joints.
            world: whose articulations; by default those of all worlds.

        Raises:
            KeyError, IndexError, ValueError, TypeError: as :meth:`configuration_range`; wrong shape, scalar type or device; host
                numbers that are not finite.
        """
        self._set("q", self._q, self._coords, self.configuration_range, q, "configuration", joint, world)

    def set_velocity(self, v, joint=None, *, world: int | None = None, repr=None) -> None:
        """Sets the velocities [m/s or rad/s], laid out as ``State.joint_qd``; see :meth:`set_configuration`.

        Args:
            v, joint, world: see there.
            repr: :class:`VelRepr` of floating bases in ``v``, which then holds all joints of all worlds
                (:func:`newton_like.dynamics.set_velocity`). By default velocities as they are.

        Raises:
            TypeError: ``repr`` with a joint or a world.
        """
        if repr is not None:
            _alone(joint, world)
            set_velocity(self.model, self, v, repr)
            return
        self._set("v", self._v, self._dofs, self.velocity_range, v, "velocity", joint, world)

    def set_additional_state(self, s, *, world: int | None = None) -> None:
        """Sets the additional states, ``[articulations, num_additional_states]``; see :meth:`set_configuration`."""
        self._set("s", self._s, None, None, s, "additional state", None, world)

    def _set(self, name: str, values, rows, span, given, what: str, joint, world) -> None:
        if joint is None:
            target = self._view(values, None, None, world)
            if rows is not None and world is None and np.shape(given) == (rows.size,):
                array = self._given(given, (rows.size,), what)
                rows.rows(array, out=values)
            else:
                wp.copy(target, self._given(given, target.shape, what))
        else:
            shape, places = self._joint_places(name, values, span, joint, world)
            if shape[1]:
                array = self._given(given, shape, f"{what} of joint {joint!r}")
                wp.copy(wp.indexedarray(values.flatten(), [places]), array.flatten())
        self._changed(name)

    def _joint_places(self, name: str, values: wp.array, span, joint, world) -> tuple[tuple[int, int], wp.array]:
        """Shape of a joint's numbers, and their places among all rows."""
        check_name(joint, "joint")
        if world is not None:
            world = as_index(world, "world", max(self.model.world_count, 1))
        key = (name, type(joint), joint, world, self.model.version)
        if key not in self._places:
            having = self._having(joint, self._articulations(world))
            spans = [span(joint, int(a)) for a in having]
            widths = {s.stop - s.start for s in spans}
            if len(widths) > 1:
                raise ValueError(
                    f"joint {joint!r} has {sorted(widths)} numbers in different articulations; set one world each"
                )
            places = np.concatenate(
                [a * values.shape[1] + np.arange(s.start, s.stop) for a, s in zip(having, spans, strict=True)]
            )
            device = self.model.device
            array = constant_array(places.astype(np.int32), wp.int32, device)
            self._places[key] = (len(having), widths.pop()), array
        return self._places[key]

    def _given(self, value, shape: tuple[int, ...], what: str) -> wp.array:
        """Numbers as a contiguous array of a shape."""
        if isinstance(value, wp.array):
            if not value.is_contiguous:
                value = value.contiguous()
            return check_array(self.model, value, what, self.model.dtype, shape)
        numbers = finite_numbers(self.model, as_numbers(value, what, "numbers"), what)
        row = numbers.reshape(1) if numbers.ndim == 0 else numbers
        if row.shape != shape and row.shape != shape[1:]:
            raise ValueError(f"{what} has shape {numbers.shape}; it must have {shape}")
        check_recorded(self.model.device, f"{what} from the host")
        whole = np.ascontiguousarray(np.broadcast_to(row, shape))
        return wp.array(whole, dtype=self.model.dtype, device=self.model.device)

    def set_dirty(self) -> None:
        """Discards all cached results. Necessary after writing to views."""
        for name in self._stamps:
            self._changed(name)

    def joints_changed(self) -> None:
        """Takes over ``joint_q`` and ``joint_qd``, after those were written: functions that advance a state, such as
        :func:`newton_like.dynamics.integrate`, call it."""
        for name, rows, values, flat in (
            ("q", self._coords, self._q, self._flat_q),
            ("v", self._dofs, self._v, self._flat_v),
        ):
            if not rows.shared:
                rows.rows(flat, out=values)
            self._changed(name)
            self._flat_stamps[name] = self._stamps[name]

    def _changed(self, name: str) -> None:
        self._stamps[name] += 1

    def reset_contact_state(self) -> None:
        """Sets the additional states to zero, as without contact."""
        self._s.zero_()
        self._changed("s")

    # ---------------------------------------------------------------------------------------------------- copies

    def copy_to(self, out: wp.array | None = None) -> wp.array:
        """The whole state as rows ``[q; v; s]``.

        Args:
            out: array for the result; a new array by default.

        Returns:
            ``[articulation_count, num_positions + num_velocities + num_additional_states]``.

        Raises:
            ValueError: `out` has the wrong shape or device.
            TypeError: it has the wrong scalar type.
        """
        shape = (self.model.articulation_count, sum(a.shape[1] for a in self._parts))
        out = output_array(self.model, out, shape)
        for part, columns in zip(self._parts, self._columns(), strict=True):
            if part.size:
                wp.copy(out[:, columns], part)
        return out

    def copy_from(self, source) -> None:
        """Copies a whole state from another :class:`MechanismState` of the same model, or from rows of :meth:`copy_to`.

        Raises:
            ValueError: a state of another model, or with another number of additional states; wrong shape or device; host numbers
                that are not finite.
            TypeError: wrong scalar type, or no numbers.
        """
        if isinstance(source, Variables):
            if source.model is not self.model:
                raise ValueError("the state belongs to another model; states can be copied only within one model")
            if source.num_additional_states != self.num_additional_states:
                raise ValueError(
                    f"the state has {source.num_additional_states} additional states and this one {self.num_additional_states}"
                )
            parts = [a if a.size else None for a in source._parts]
        else:
            shape = (self.model.articulation_count, sum(a.shape[1] for a in self._parts))
            rows = self._given(source, shape, "state")
            parts = [rows[:, columns] if columns.start < columns.stop else None for columns in self._columns()]
        for mine, theirs in zip(self._parts, parts, strict=True):
            if theirs is not None:
                wp.copy(mine, theirs)
        self.set_dirty()

    @property
    def _parts(self) -> tuple[wp.array, wp.array, wp.array]:
        return self._q, self._v, self._s

    def _columns(self):
        at = 0
        for part in self._parts:
            yield slice(at, at + part.shape[1])
            at += part.shape[1]
