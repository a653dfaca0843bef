"""The rotors of multirotors on the bodies of a model: thrusters, allocation, and forces of the air."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded
from newton_like.articulation.chosen import Chosen, choose, write
from newton_like.articulation.multirotor.allocation import (
    bounded_system,
    check_allocation,
    checked_weights,
    pseudo_inverse,
    rotor_columns,
)
from newton_like.articulation.multirotor.config import (
    SCHEMES,
    STATES,
    BodyDrag,
    GroundEffect,
    MultirotorCfg,
    ThrusterCfg,
    shares,
)
from newton_like.articulation.multirotor.flight import Flight
from newton_like.articulation.multirotor.mass import MassReader
from newton_like.articulation.names import by_name, find_names
from newton_like.coercion import as_number, as_time_step
from newton_like.geometry.transforms import quat_rotate
from newton_like.kernels.articulation.multirotor import records
from newton_like.kernels.articulation.multirotor.records import (
    ALLOCATE,
    BODY_DRAG,
    BOUND,
    CONTROL,
    FORCES,
    GROUND_EFFECT,
    MOMENTUM,
    MOTORS,
    RESTART,
    ROTOR,
    ROTOR_DRAG,
    VEHICLE,
)
from newton_like.selection.members import last_part

NEVER = 1.0e30
"""For limits that do not exist."""

PARAMETERS = {
    "thrust_constant": ("CONSTANT", 0.0), "thrust_min": ("LEAST", None), "thrust_max": ("MOST", None),
    "time_constant_up": (None, 0.0), "time_constant_down": (None, 0.0), "max_thrust_rate": (None, 0.0),
    "torque_to_thrust_ratio": (None, None), "efficiency": ("EFFICIENCY", 0.0), "rotor_drag": ("HUB_DRAG", 0.0),
    "radius": ("RADIUS", 0.0), "rotor_inertia": ("SPIN", 0.0),
}  # fmt: skip
"""Parameters of thrusters: the name in the kernels' records, and the least value."""

BOUNDED_DAMPING = 1.0e-4
"""Weight of the thrusts of the pseudo-inverse in bounded allocation."""


class Rotors:
    """Thrusters of the instances of an asset.

    Args:
        model: the model.
        bodies: bodies of each instance, the root first, ``[count, bodies]``.
        body_names: their names.
        cfg: the :class:`newton_like.articulation.multirotor.config.MultirotorCfg`.
        evaluator: see :class:`newton_like.articulation.multirotor.flight.Flight`.

    Attributes:
        names: of the thrusters.
        groups: indices of the thrusters of each group.
        flight: the :class:`newton_like.articulation.multirotor.flight.Flight`.
        spins: 1 or -1 for each thruster.
        jointed: whether vehicles have several moving bodies.
        default_speeds: initial speeds [rev/s], ``[count, n]``, a Warp array.

    Raises:
        ValueError, TypeError: settings that make no sense, thrusters without a body, with the name of the setting.
    """

    def __init__(self, model, bodies: np.ndarray, body_names: list[str], cfg: MultirotorCfg, evaluator: str = "auto"):
        self.model, self.cfg, self.count = model, cfg, len(bodies)
        self._bodies, self._body_names = np.asarray(bodies), list(body_names)
        self.jointed = self._bodies.shape[1] > 1
        self._find_thrusters()
        known = sorted({0, *self._slot})
        self._known = np.asarray(known)
        cfg_fast = [group.state == "speed" for group in self._cfg_of]
        self.flight = Flight(model, self._bodies[:, known], [known.index(s) for s in self._slot], cfg_fast, evaluator)
        self._fast = np.asarray(cfg_fast)
        # thrusters fail in the middle of a flight
        self.flight.parameters.loose[self._at(records.EFFICIENCY)] = True
        self._masses = MassReader(model, self._bodies)
        self._read_settings()
        self._dt, self._allocation, self._owner, self._bounds = None, None, None, None
        self._matrix_given = self._given_matrix()
        self._every = Chosen(None, self.count, model.device)
        self._mask = wp.zeros(self.count, dtype=wp.bool, device=model.device)
        self._version, self._gravity = None, None
        self._worlds = np.maximum(model.body_world.numpy()[self._bodies[:, 0]], 0)
        self.refresh()
        self.reset()

    # ------------------------------------------------------------------------------------------------------- structure

    def _find_thrusters(self) -> None:
        """Names, bodies and poses of the thrusters."""
        frames, doubles = self._frames()
        there = [*self._body_names, *(name for name in frames if name not in self._body_names)]
        self.names, self.groups, self._slot, self._pose, self._cfg_of = [], {}, [], [], []
        if not isinstance(self.cfg.actuators, dict) or not self.cfg.actuators:
            raise ValueError("actuators must be a dictionary of groups of thrusters; give at least one ThrusterCfg")
        owner: dict[str, str] = {}
        for group, cfg in self.cfg.actuators.items():
            if not isinstance(cfg, ThrusterCfg):
                raise TypeError(
                    f"group '{group}' of MultirotorCfg.actuators must be a ThrusterCfg, not {type(cfg).__name__}; actuators of joints are"
                    " the argument `actuators` of the Multirotor"
                )
            if cfg.state not in STATES:
                raise ValueError(f"group '{group}': state {cfg.state!r} must be one of {STATES}")
            if cfg.integration not in SCHEMES:
                raise ValueError(f"group '{group}': integration {cfg.integration!r} must be one of {SCHEMES}")
            _, found = find_names(cfg.thruster_names_expr, there, "body or frame")
            if not found:
                raise ValueError(f"group '{group}' has no thrusters; give patterns of names in thruster_names_expr")
            for name in found:
                if name in owner:
                    raise ValueError(
                        f"thruster '{name}' is in two groups, '{owner[name]}' and '{group}'; make the patterns of one of them narrower"
                    )
                owner[name] = group
                if name in doubles and name not in self._body_names:
                    raise ValueError(
                        f"thruster '{name}' is ambiguous: the vehicle has the frames {', '.join(map(repr, doubles[name]))}; rename one"
                    )
                slot, pose = frames.get(name, (None, None))
                if name in self._body_names:
                    slot, pose = self._body_names.index(name), np.array([0, 0, 0, 0, 0, 0, 1.0])
                self._slot.append(slot)
                self._pose.append(pose)
                self._cfg_of.append(cfg)
            self.groups[group] = list(range(len(self.names), len(self.names) + len(found)))
            self.names += found

    def _frames(self) -> tuple[dict[str, tuple[int, np.ndarray]], dict[str, list[str]]]:
        """Frames that were merged into bodies of the first instance, by the last part of their labels: the place of the body, and the
        pose; and the labels of frames that share this part."""
        table, mine = self.model.frames, {int(b): i for i, b in enumerate(self._bodies[0])}
        chosen = np.flatnonzero(np.isin(table.body, list(mine)))
        labels: dict[str, list[str]] = {}
        for i in chosen:
            labels.setdefault(last_part(table.label[i]), []).append(table.label[i])
        found = {last_part(table.label[i]): (mine[int(table.body[i])], table.transform[i]) for i in chosen}
        return found, {name: several for name, several in labels.items() if len(several) > 1}

    def _given_matrix(self) -> np.ndarray | None:
        if self.cfg.allocation_matrix is None:
            return None
        try:
            matrix = np.array(self.cfg.allocation_matrix, dtype=float)
        except (TypeError, ValueError):
            raise TypeError("allocation_matrix must be 6 rows of numbers") from None
        if matrix.shape != (6, len(self.names)):
            raise ValueError(
                f"allocation_matrix has shape {matrix.shape}; it must be (6, {len(self.names)}): a column for each of the thrusters"
                f" {', '.join(self.names)}"
            )
        if not np.isfinite(matrix).all():
            raise ValueError("allocation_matrix contains numbers that are not finite")
        return matrix

    def hubs_at(self, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of the hubs [m] and directions of thrust in the world, both ``[..., n, 3]``, for poses of the bodies of instances ``[...,
        bodies, 7]``."""
        carriers = poses[..., self._slot, :]
        hubs = carriers[..., :3] + quat_rotate(carriers[..., 3:], np.broadcast_to(self._hubs, carriers[..., :3].shape))
        return hubs, quat_rotate(carriers[..., 3:], np.broadcast_to(self._axes, carriers[..., :3].shape))

    # ------------------------------------------------------------------------------------------------------ parameters

    def _read_settings(self) -> None:
        cfg, n = self.cfg, len(self.names)
        self._values: dict[str, np.ndarray] = {}
        for parameter in PARAMETERS:
            numbers = np.zeros((1, n))
            for group, indices in self.groups.items():
                own = cfg.actuators[group]
                names = [self.names[i] for i in indices]
                if parameter in ("thrust_min", "thrust_max"):
                    value = _range(own.thrust_range, group)[parameter == "thrust_max"]
                else:
                    value = self._of_all(getattr(own, parameter), f"{parameter} of '{group}'", names)
                numbers[0, indices] = value
            self._check(parameter, numbers)
            self._values[parameter] = numbers
        directions = 1.0 if cfg.rotor_directions is None else cfg.rotor_directions
        if not isinstance(directions, dict) and np.ndim(directions) and len(directions) != n:
            raise ValueError(
                f"rotor_directions has {len(directions)} entries; there are {n} thrusters: {', '.join(self.names)}"
            )
        self.spins = self._of_all(directions, "rotor_directions")
        if not np.isin(self.spins, (-1.0, 1.0)).all():
            raise ValueError(f"rotor_directions {self.spins.tolist()} must be 1 (counter-clockwise) or -1 (clockwise)")
        axis = np.asarray(cfg.thruster_force_direction, dtype=float)
        if axis.shape != (3,) or not np.isfinite(axis).all() or np.linalg.norm(axis) < 1.0e-6:
            raise ValueError(
                f"thruster_force_direction {cfg.thruster_force_direction!r} must be a direction of three numbers"
            )
        poses = np.array(self._pose)
        self._hubs, self._axes = poses[:, :3], quat_rotate(poses[:, 3:], axis / np.linalg.norm(axis))
        start = None if cfg.init_state is None else cfg.init_state.rps
        speeds = self._of_all(cfg.rps, "rps") if start is None else self._of_all(start, "init_state.rps")
        self.default_speeds = wp.array(
            np.tile(speeds, (self.count, 1)), dtype=self.model.dtype, device=self.model.device
        )
        self.air = 0
        if not np.isfinite(speeds).all():
            raise ValueError(f"{'rps' if start is None else 'init_state.rps'} {speeds.tolist()} must be finite")
        for name, kind in (("drag", BodyDrag), ("ground_effect", GroundEffect)):
            given = getattr(cfg, name)
            if not isinstance(given, kind | None):
                raise TypeError(f"{name} must be a {kind.__name__} or None, not {type(given).__name__}")
        if cfg.drag is not None:
            self._put_vehicle(records.LINEAR_DRAG, np.concatenate(cfg.drag.numbers()))
            self.air |= BODY_DRAG
        if cfg.ground_effect is not None:
            self._put_vehicle(records.GROUND, np.array(cfg.ground_effect.numbers()))
            self.air |= GROUND_EFFECT
        for parameter in PARAMETERS:
            self._put(parameter)

    def _of_all(self, values, what: str, names: list[str] | None = None) -> np.ndarray:
        """One number for each thruster; see :func:`newton_like.articulation.names.by_name`. Raises ValueError: patterns leave one out."""
        names = self.names if names is None else names
        numbers = by_name(values, names, "thruster", None, what)
        if np.isnan(numbers).any():
            missing = names[int(np.flatnonzero(np.isnan(numbers))[0])]
            raise ValueError(f"{what} has no number for the thruster '{missing}'")
        return numbers

    def _check(self, parameter: str, values: np.ndarray) -> None:
        least = PARAMETERS[parameter][1]
        if least is None:
            return
        wrong, word = values < least, f"{least:g} or more"
        if parameter == "thrust_constant":
            wrong, word = values <= 0.0, "positive"
        if parameter == "efficiency":
            wrong, word = wrong | (values > 1.0), "from 0 to 1"
        if wrong.any():
            world, i = np.argwhere(wrong)[0]
            raise ValueError(f"{parameter} {values[world, i]:g} of thruster '{self.names[i]}' must be {word}")

    def _put_vehicle(self, at: int, values: np.ndarray, instances=None) -> None:
        self.flight.parameters.put(np.arange(at, at + values.shape[-1]), values, instances)

    def _put(self, parameter: str, instances: np.ndarray | None = None) -> None:
        """Hands a parameter to the kernels, as far as it does not need the time step or masses."""
        record = PARAMETERS[parameter][0]
        values = self._values[parameter]
        if parameter == "rotor_drag" and (values > 0.0).any():
            self.air |= ROTOR_DRAG
        if parameter == "rotor_inertia" and (values > 0.0).any():
            self.air |= MOMENTUM
        if record is None:
            return
        if parameter == "rotor_drag":
            values = values * self._fast
        if parameter == "rotor_inertia":
            self._put_momenta()
            return
        rows = values if instances is None else np.broadcast_to(values, (self.count, values.shape[1]))[instances]
        self.flight.parameters.put(self._at(getattr(records, record)), rows, instances)

    def _put_momenta(self) -> None:
        """Angular momenta of rotors with 1 rev/s, in axes of their links [kg m^2/s]."""
        size = 2.0 * np.pi * self._values["rotor_inertia"] * self.spins * self._fast
        at = (self._at(records.SPIN)[:, None] + np.arange(3)).ravel()
        self.flight.parameters.put(at, (size[..., None] * self._axes).reshape(len(size), -1))

    def _at(self, record: int) -> np.ndarray:
        return VEHICLE + ROTOR * np.arange(len(self.names)) + record

    def parameter(self, name: str) -> np.ndarray:
        """A parameter of all thrusters, ``[count, n]``.

        Raises:
            KeyError: no such parameter.
        """
        self._known_parameter(name)
        return np.broadcast_to(self._values[name], (self.count, len(self.names))).copy()

    def set_parameter(self, name: str, values, thruster_ids=None, env_ids=None) -> None:
        """Sets a parameter of some thrusters in some worlds.

        Raises:
            KeyError: no such parameter.
            IndexError, TypeError, ValueError: see :func:`newton_like.articulation.chosen.choose`; values out of range.
        """
        self._known_parameter(name)
        check_recorded(self.model.device, f"{name} of thrusters")
        rows, items = self._choose(env_ids, thruster_ids)
        values = np.asarray(values.numpy() if isinstance(values, wp.array) else values, dtype=float)
        if np.isnan(values).any():
            raise ValueError(f"{name} contains NaN")
        whole = self.parameter(name)
        try:
            whole[np.ix_(rows.indices, items.indices)] = values
        except ValueError:
            raise ValueError(
                f"{name} has shape {values.shape}; it must be {(rows.count, items.count)}, or broadcast to it"
            ) from None
        self._check(name, whole)
        low, high = ((whole if name == p else self.parameter(p)) for p in ("thrust_min", "thrust_max"))
        if (low > high).any():
            i = int(np.argwhere(low > high)[0, 1])
            raise ValueError(f"{name} of thruster '{self.names[i]}': thrust_min is above thrust_max")
        if (whole == whole[0]).all():
            whole = whole[:1]
        self._values[name] = whole
        instances = None if rows.everything or len(whole) == 1 else rows.indices
        self._put(name, instances)
        if name in ("time_constant_up", "time_constant_down", "max_thrust_rate"):
            self._dt = None
        if name == "torque_to_thrust_ratio":
            self._put_columns()
            self._allocation = None

    def _known_parameter(self, name: str) -> None:
        if name not in PARAMETERS:
            raise KeyError(f"thrusters have no parameter {name!r}; they have {', '.join(PARAMETERS)}")

    def _choose(self, env_ids, thruster_ids) -> tuple[Chosen, Chosen]:
        device = self.model.device
        return (
            choose(env_ids, self.count, device, "env_ids", self._every),
            choose(thruster_ids, len(self.names), device, "thruster_ids"),
        )

    def refresh(self) -> None:
        """Reads masses and gravity again, if the model was edited."""
        if self._version == self.model.version:
            return
        self._version = self.model.version
        found = self._masses.changed()
        if found is not None:
            self.masses = found
            self._put_vehicle(records.MASS, found.total[:, None])
            self._put_vehicle(records.CENTRE, found.centre)
            self._put_vehicle(records.OFFSET, found.centre - found.centres[:, 0])
            i = found.moments
            six = [i[:, 0, 0], i[:, 1, 1], i[:, 2, 2], i[:, 0, 1], i[:, 0, 2], i[:, 1, 2]]
            self._put_vehicle(records.MOMENTS, np.stack(six, axis=1))
            self._put_columns()
            self._allocation = None
        rows = self.model.gravity.numpy().astype(float)[self._worlds]
        if self._gravity is None or not np.array_equal(rows, self._gravity):
            self._gravity = rows.copy()
            self._put_vehicle(records.GRAVITY, rows)

    def _put_columns(self) -> None:
        """Wrenches of the thrusters on their bodies, and about the centre of mass of the vehicle."""
        found, slot, n = self.masses, np.asarray(self._slot), len(self.names)
        ratio = self._values["torque_to_thrust_ratio"]
        poses, centres = found.poses[:, slot], found.centres[:, slot]
        hubs = poses[..., :3] + quat_rotate(poses[..., 3:], self._hubs)
        axes = quat_rotate(poses[..., 3:], self._axes)
        columns = rotor_columns(self._hubs, self._axes, ratio, self.spins, centres)
        whole = np.swapaxes(rotor_columns(hubs, axes, ratio, self.spins, found.centre[:, None]), -1, -2)
        if self._matrix_given is not None:
            whole = self._matrix_given[None]
            away = np.cross((found.centre - found.centres[:, 0])[:, None], whole[0, :3].T)
            columns = np.concatenate([np.broadcast_to(whole[0, :3].T, away.shape), whole[0, 3:].T + away], axis=-1)
            if (slot != 0).any():
                away = self.names[int(np.flatnonzero(slot)[0])]
                raise ValueError(
                    f"allocation_matrix is about the root, but thruster '{away}' is on another moving body;"
                    " merge bodies with collapse_fixed_joints, or leave the matrix out"
                )
        self._whole = whole
        at = self._at(records.COLUMN)[:, None] + np.arange(6)
        self.flight.parameters.put(at.ravel(), columns.reshape(len(columns), -1))
        at = self._at(records.HUB)[:, None] + np.arange(3)
        self.flight.parameters.put(at.ravel(), self._hubs.ravel())
        at = VEHICLE + ROTOR * n + np.arange(3 * n)
        self.flight.parameters.put(at, centres.reshape(len(centres), -1))

    @property
    def allocation_matrix(self) -> np.ndarray:
        """Force and torque about the centre of mass of the vehicle for each newton, in axes of the root: ``[6, n]``, or ``[count, 6, n]``
        where worlds differ."""
        self.refresh()
        return self._whole[0] if len(self._whole) == 1 else self._whole

    def prepare_allocation(self, full: bool, what: str) -> None:
        """Hands the pseudo-inverse to the kernels. Raises ValueError: it is singular."""
        self.refresh()
        if self._allocation is None:
            self._allocation, self._bounds = set(), None
            inverse = pseudo_inverse(self._whole)
            at = self._first_inverse
            self.flight.parameters.put(np.arange(at, at + inverse[0].size), inverse.reshape(len(inverse), -1))
            self._inverse = inverse
        if full not in self._allocation:
            check_allocation(self._whole, full, self.names, what)
            self._allocation.add(full)

    def prepare_bounds(self, weights) -> None:
        """Hands the normal equations of bounded allocation to the kernels."""
        weights = tuple(weights)
        if self._bounds == weights:
            return
        normal, right = bounded_system(self._whole, self._inverse, weights, BOUNDED_DAMPING)
        both = np.concatenate([normal.reshape(len(normal), -1), right.reshape(len(right), -1)], axis=1)
        at = self._first_inverse + 6 * len(self.names)
        self.flight.parameters.put(np.arange(at, at + both.shape[1]), both)
        self._bounds = weights

    def prepare_gains(self, controller, gains: np.ndarray) -> None:
        """Hands the gains and limits of a controller to the kernels, unless the last ones are of the same controller.

        Args:
            controller: the :class:`newton_like.articulation.multirotor.lee.LeeController`. Its gains do not change later.
            gains: ``[1 or count, 16]``, in the order of the kernels' records from ``GAIN_POSITION`` on.
        """
        if self._owner is controller:
            return
        at = records.GAIN_POSITION
        self.flight.parameters.put(np.arange(at, at + gains.shape[1]), gains)
        self._owner = controller

    @property
    def _first_inverse(self) -> int:
        return VEHICLE + (ROTOR + 3) * len(self.names)

    def _prepare_motors(self, dt: float) -> None:
        if dt == self._dt:
            return
        for record, name in ((records.SHARE_UP, "time_constant_up"), (records.SHARE_DOWN, "time_constant_down")):
            values = self._values[name]
            result = np.empty(values.shape)
            for group, indices in self.groups.items():
                scheme = self.cfg.actuators[group].integration
                result[:, indices] = shares(scheme, dt, values[:, indices], f"group '{group}': integration")
            self.flight.parameters.put(self._at(record), result)
        self._put_vehicle(records.STEPS, np.array([1.0 / dt]))
        self.flight.parameters.put(self._at(records.CHANGE), np.minimum(self._values["max_thrust_rate"] * dt, NEVER))
        self._dt = dt

    # ------------------------------------------------------------------------------------------------------------ run

    def set_target(self, target, thruster_ids=None, env_ids=None) -> None:
        """Writes targets of thrusts."""
        rows, items = self._choose(env_ids, thruster_ids)
        write(self.flight.target, rows, items, target, "target")

    def run(self, state, dt: float, controller=None, added: bool = True) -> None:
        """Advances the motors by a time step, and adds their wrenches to the forces on bodies.

        Args:
            state: the state; its poses and velocities are those of the moment, its ``body_f`` is written.
            dt: time step [s].
            controller: a :class:`newton_like.articulation.multirotor.lee.LeeController` that sets the targets.
            added: whether wrenches are added to the forces; otherwise they replace them.

        Raises:
            ValueError: a time step that is not positive, or too large for a scheme.
        """
        options = self._prepared(as_time_step(dt), controller)
        stages = options.pop("stages", 0) | MOTORS | FORCES
        self.flight.run(state, stages, air=self.air, added=added, **options)

    def _prepared(self, dt: float, controller) -> dict:
        """Options of a launch, with the parameters of motors and controller of now."""
        self.refresh()
        self._prepare_motors(dt)
        return {} if controller is None else controller.options()

    def renew(self, dt: float, controller) -> None:
        """Hands parameters that were edited to the kernels, before a graph reads them."""
        self._prepared(float(dt), controller)
        self.flight.upload()

    def allocate(self, wrench, env_ids=None, bounded: bool = False, weights=(1.0,) * 6, full: bool = False) -> None:
        """Sets the targets of all worlds from wrenches; see ``Multirotor.set_wrench_target``."""
        if bounded:
            weights = checked_weights(weights)
        self.prepare_allocation(full, "set_wrench_target")
        rows = choose(env_ids, self.count, self.model.device, "env_ids", self._every)
        items = Chosen(None, 6, self.model.device)
        write(self.flight.wrench, rows, items, wrench, "wrench")
        before = None if rows.everything else wp.clone(self.flight.target)
        stages, rounds = ALLOCATE, 0
        if bounded:
            self.prepare_bounds(weights)
            stages, rounds = ALLOCATE | BOUND, rounds_of(len(self.names))
        self.flight.run(None, stages, rounds=rounds)
        if before is not None:
            rest = np.setdiff1d(np.arange(self.count), rows.indices).astype(np.int32)
            others = Chosen(rest, self.count, self.model.device, masked=True)
            write(self.flight.target, others, Chosen(None, len(self.names), self.model.device), before, "target")

    def wrench_of(self, controller, state) -> wp.array:
        """The wrench that a controller asks for, ``[count, 6]``."""
        self.refresh()
        options = controller.options()
        options.update(stages=CONTROL, rounds=0)
        self.flight.run(state, **options)
        return self.flight.wrench

    def reset(self, env_ids=None) -> None:
        """Gives rotors of some worlds their default speeds, and the thrusts of these speeds as targets."""
        rows, _ = self._choose(env_ids, None)
        if not rows.count:
            return
        mask = None
        if not rows.everything:
            chosen = np.zeros(self.count, dtype=bool)
            chosen[rows.indices] = True
            self._mask.assign(chosen)
            mask = self._mask
        self.flight.run(None, RESTART, defaults=self.default_speeds, mask=mask)


def rounds_of(n: int) -> int:
    """Rounds after which bounded allocation stops at the latest."""
    return 4 * n + 4


def _range(values, group: str) -> tuple[float, float]:
    try:
        low, high = (as_number(v, f"thrust_range of '{group}'", finite=False) for v in values)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"thrust_range of '{group}' must be two numbers, the least and the largest thrust: {error}"
        ) from None
    if not low <= high:
        raise ValueError(f"thrust_range of '{group}': the least thrust {low:g} N is above the largest, {high:g} N")
    return max(low, -NEVER), min(high, NEVER)
