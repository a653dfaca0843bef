"""Lee controllers: geometric tracking control of multirotors.

T. Lee, M. Leok, N. H. McClamroch, Geometric Tracking Control of a Quadrotor UAV on SE(3), 2010. Gains are per unit of mass and inertia, so
that a small error e of the attitude obeys e'' + K_W e' + K_R e = 0, and one of the position e'' + K_v e' + K_x e = 0 while the attitude
follows.
"""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import ClassVar, Never

import numpy as np
import warp as wp

from newton_like.arrays import host_array
from newton_like.articulation.chosen import Chosen, choose, write
from newton_like.articulation.drawing import FRAME, ROD, TARGET
from newton_like.articulation.multirotor.allocation import EQUAL_WEIGHTS, checked_weights, refuse_unused_weights
from newton_like.articulation.multirotor.flight import COMMAND
from newton_like.articulation.multirotor.rotors import Rotors, rounds_of
from newton_like.coercion import as_flag, as_number
from newton_like.geometry.markers import Markers
from newton_like.geometry.transforms import UNIT_TOLERANCE
from newton_like.kernels.articulation.multirotor import records
from newton_like.kernels.articulation.multirotor.records import ALLOCATE, BOUND, CONTROL
from newton_like.options import unknown_option

ALLOCATIONS = ("pseudo_inverse", "bounded")
"""How thrusts are found for a wrench."""

ALWAYS = ("rate_gain", "allocation", "weights")
"""Arguments that all controllers use."""

SOME = (
    "position_gain", "velocity_gain", "attitude_gain", "max_acceleration", "max_tilt", "max_yaw_error", "fully_actuated",
)  # fmt: skip
"""Arguments that some controllers use."""


class LeeController:
    """Base class of Lee controllers of a multirotor.

    Position, velocity and acceleration are those of the centre of mass of the vehicle. A vehicle of several moving bodies counts as rigid,
    with the pose and the velocity of its root, in its initial configuration.

    All controllers use `rate_gain`, `allocation` and `weights`. They refuse other arguments unless they use them, see ``uses``.

    Args:
        multirotor: the :class:`newton_like.articulation.multirotor.Multirotor`.
        position_gain: K_x [1/s^2]; a number, three numbers for the axes of the world, or those of each world ``[count, 3]``.
        velocity_gain: K_v [1/s], likewise.
        attitude_gain: K_R [1/s^2], for the axes of the root.
        rate_gain: K_W [1/s], likewise.
        max_acceleration: largest acceleration that errors of position and velocity ask for [m/s^2]; the commanded acceleration is added
            without a limit. None: no limit.
        max_tilt: largest angle between the desired axis of thrust and the vertical [rad]. The desired force then points up: its vertical
            part is at least 0.5 m/s^2 times the mass, even if less is asked for. None: no limit. Not with `fully_actuated`.
        max_yaw_error: largest error of the yaw that the position controller hands to the attitude [rad]; None: no limit. The errors of
            roll and pitch lose their strength while that of the yaw is near half a turn.
        allocation: ``"pseudo_inverse"``; or ``"bounded"``: bounded least squares, for thrusts at their limits.
        weights: of the errors of the six components of the wrench in bounded allocation, relative to what thrusts can do.
        fully_actuated: the force has three components, and the root stays level (position, velocity and acceleration controllers);
            for thrusters with different directions.

    Attributes:
        multirotor: as above.

    Gains and options cannot be set afterwards; a multirotor may get another controller at any time.

    Raises:
        TypeError: not a multirotor; an argument that the controller does not use.
        ValueError: the allocation cannot make the wrench; gains that are negative; limits that are not positive; weights without
            bounded allocation; a largest tilt of a controller that is fully actuated.
    """

    kinds: ClassVar[dict[int, int]] = {}
    """Kind of the controller in the kernels by the number of numbers of a command."""
    meaning = ""
    """Numbers of a command, for errors."""
    uses: ClassVar[tuple[str, ...]] = SOME
    """Arguments that the controller uses besides `ALWAYS`."""

    def __new__(cls, *_, **options):
        unused = [name for name in options if name in SOME and name not in cls.uses]
        if unused:
            raise TypeError(
                f"{cls.__name__} does not use {', '.join(unused)}; leave it out (the controller uses {', '.join((*cls.uses, *ALWAYS))})"
            )
        return super().__new__(cls)

    def __init__(
        self,
        multirotor,
        *,
        position_gain=4.0,
        velocity_gain=3.0,
        attitude_gain=(100.0, 100.0, 2.0),
        rate_gain=(16.0, 16.0, 2.5),
        max_acceleration: float | None = None,
        max_tilt: float | None = None,
        max_yaw_error: float | None = 1.0,
        allocation: str = "pseudo_inverse",
        weights=EQUAL_WEIGHTS,
        fully_actuated: bool = False,
        **others: Never,
    ):
        if others:
            raise unknown_option(type(self).__name__, next(iter(others)), [*self.uses, *ALWAYS])
        if not isinstance(getattr(multirotor, "rotors", None), Rotors):
            raise TypeError(f"{type(self).__name__} needs a Multirotor, not {multirotor!r}")
        self.multirotor, self._rotors = multirotor, multirotor.rotors
        count = self._rotors.count
        gains = {
            "position_gain": position_gain,
            "velocity_gain": velocity_gain,
            "attitude_gain": attitude_gain,
            "rate_gain": rate_gain,
        }
        self._gains = np.zeros((1, 16))
        for i, (name, value) in enumerate(gains.items()):
            self._put_gain(name, 3 * i, value, count)
        self._gains[:, 12] = 1.0e12 if max_acceleration is None else _positive(max_acceleration, "max_acceleration")
        self._tilted = max_tilt is not None
        if self._tilted:
            angle = _positive(max_tilt, "max_tilt")
            if angle >= math.pi / 2:
                raise ValueError(
                    f"max_tilt {angle:g} rad must be below a right angle ({math.pi / 2:.4f}); None: no limit"
                )
            self._gains[:, 13] = math.tan(angle)
        turn = math.pi if max_yaw_error is None else _positive(max_yaw_error, "max_yaw_error")
        self._gains[:, 14:] = (-2.0, 0.0) if turn >= math.pi else (math.cos(turn), math.sin(turn))
        if allocation not in ALLOCATIONS:
            raise ValueError(f"allocation {allocation!r} must be one of {ALLOCATIONS}")
        self._bounded, self._full = allocation == "bounded", as_flag(fully_actuated, "fully_actuated")
        if self._full and self._tilted:
            raise ValueError(
                f"{type(self).__name__}: max_tilt has no effect with fully_actuated=True, where the root stays level; leave one of them out"
            )
        self._weights = checked_weights(weights)
        refuse_unused_weights(self._weights, allocation)
        self._command: wp.array | None = None
        self._rotors.prepare_allocation(self._full, type(self).__name__)

    def __setattr__(self, name: str, value) -> None:
        near = [] if name.startswith("_") or hasattr(self, name) else get_close_matches(name, (*SOME, *ALWAYS), 1, 0.8)
        if near:
            raise AttributeError(
                f"{name!r} of a {type(self).__name__} cannot be set; gains and options are arguments, so make another controller, such as"
                f" {type(self).__name__}(multirotor, {near[0]}=...)"
            )
        super().__setattr__(name, value)

    @property
    def command(self) -> wp.array | None:
        """The command of each world, ``[count, n]``; None before :meth:`set_command`. An assignment is that of :meth:`set_command`."""
        return self._command

    @command.setter
    def command(self, command) -> None:
        self.set_command(command)

    def _put_gain(self, name: str, at: int, value, count: int) -> None:
        gain = np.asarray(value.numpy() if isinstance(value, wp.array) else value, dtype=float)
        if gain.shape not in ((), (3,), (count, 3)):
            raise ValueError(f"{name} must be a number, three numbers or ({count}, 3) numbers; got shape {gain.shape}")
        wrong = gain[~(gain >= 0.0) | np.isinf(gain)]
        if wrong.size:
            raise ValueError(f"{name} holds {wrong.flat[0]:g}; gains are finite and not negative")
        gain = np.broadcast_to(gain, (count if gain.ndim == 2 else 1, 3))
        if len(gain) > len(self._gains):
            self._gains = np.repeat(self._gains, len(gain), axis=0)
        self._gains[:, at : at + 3] = gain

    def set_command(self, command, env_ids=None) -> None:
        """Sets the command of the controller, until it is set again.

        Args:
            command: ``[chosen worlds, n]``, with n numbers as the class says, or numbers that broadcast to it.
            env_ids: chosen worlds, as indices, a slice or a mask; None: all.

        Raises:
            ValueError: another number of numbers, or numbers that are not finite. Worlds without a command exist.
            IndexError: a world does not exist.
        """
        shape = getattr(command, "shape", None) or np.shape(command)
        n = int(shape[-1]) if len(shape) else 0
        if n not in self.kinds:
            wanted = " or ".join(map(str, self.kinds))
            raise ValueError(
                f"{type(self).__name__}: a command has {wanted} numbers ({self.meaning}); got shape {tuple(shape)}"
            )
        rotors = self._rotors
        self._check(command, n)
        rows = choose(env_ids, rotors.count, rotors.model.device, "env_ids")
        target = self._command
        if target is None or target.shape[1] != n:
            if not rows.everything:
                raise ValueError(f"{type(self).__name__}: give a command of {n} numbers to all worlds first")
            target = wp.zeros((rotors.count, n), dtype=rotors.model.dtype, device=rotors.model.device)
        write(target, rows, Chosen(None, n, rotors.model.device), command, "command")
        self._command = target

    def _check(self, command, n: int) -> None:
        """Raises ValueError: a command of n numbers makes no sense."""

    def compute(self, command=None, state=None) -> wp.array:
        """The wrench that the controller asks for in the state of the moment.

        Args:
            command: as for :meth:`set_command`; None: the last one.
            state: the state; None: that of the simulation.

        Returns:
            Force [N] and torque about the centre of mass of the vehicle [N m] in axes of the root, ``[count, 6]``; the memory of the
            multirotor, which the next call overwrites.
        """
        if command is not None:
            self.set_command(command)
        return self._rotors.wrench_of(self, self.multirotor.state if state is None else state)

    def draw(self, markers: Markers, poses: np.ndarray, rows: np.ndarray, size: float, worlds: np.ndarray) -> None:
        """Adds what the controller aims at to the debug drawing.

        Args:
            markers: where it is added.
            poses: of the roots, ``[len(rows), 7]``.
            rows, worlds: instances, and their worlds.
            size: of the vehicle [m].
        """
        if self.command is not None:
            numbers = self.command.numpy()[rows].astype(np.float64)
            self._draw(markers, numbers, np.asarray(poses, dtype=np.float64), size, worlds)

    def _draw(self, markers, numbers: np.ndarray, poses: np.ndarray, size: float, worlds: np.ndarray) -> None:
        """Adds the goal of commands ``[n, numbers]``; of those without a place: nothing."""

    def options(self) -> dict:
        """Options of a launch, with the stages of this controller."""
        if self.command is None:
            raise ValueError(f"{type(self).__name__} has no command; call set_command first")
        rotors = self._rotors
        rotors.prepare_allocation(self._full, type(self).__name__)
        if self._bounded:
            rotors.prepare_bounds(self._weights)
        rotors.prepare_gains(self, self._gains)
        return {
            "stages": CONTROL | ALLOCATE | (BOUND if self._bounded else 0),
            "kind": self.kinds[self.command.shape[1]],
            "command": self.command,
            "full": self._full,
            "tilted": self._tilted,
            "jointed": rotors.jointed,
            "rounds": rounds_of(len(rotors.names)) if self._bounded else 0,
        }


class LeePositionController(LeeController):
    """Holds or follows a position of the centre of mass of the vehicle and a yaw.

    A command has 4, 7, 10 or 11 numbers: position in the world [m] and yaw [rad], velocity [m/s], acceleration [m/s^2] of this
    centre, rate of the yaw [rad/s].
    """

    kinds: ClassVar[dict[int, int]] = {
        4: records.POSITION,
        7: records.POSITION,
        10: records.POSITION,
        COMMAND: records.POSITION,
    }
    meaning = "position and yaw, velocity, acceleration, rate of the yaw"

    def _draw(self, markers, numbers, poses, size, worlds) -> None:
        half = 0.5 * numbers[:, 3:4]
        goals = np.concatenate([numbers[:, :3], np.zeros((len(half), 2)), np.sin(half), np.cos(half)], axis=1)
        markers.add_balls(numbers[:, :3], 4.0 * ROD * size, TARGET, worlds)
        markers.add_frames(goals, 1.5 * FRAME * size, worlds)
        markers.add_rods(poses[:, :3], numbers[:, :3], 0.5 * ROD * size, TARGET, worlds)


class LeeVelocityController(LeeController):
    """Follows a velocity and a rate of the yaw.

    A command has 4 or 7 numbers: velocity of the centre of mass of the vehicle in the world [m/s], rate of the yaw [rad/s], acceleration
    [m/s^2].
    """

    kinds: ClassVar[dict[int, int]] = {4: records.VELOCITY, 7: records.VELOCITY}
    meaning = "velocity, rate of the yaw, acceleration"
    uses: ClassVar[tuple[str, ...]] = (
        "velocity_gain", "attitude_gain", "max_acceleration", "max_tilt", "fully_actuated",
    )  # fmt: skip

    def _draw(self, markers, numbers, poses, size, worlds) -> None:
        # the way of a third of a second
        markers.add_arrows(poses[:, :3], numbers[:, :3] / 3.0, ROD * size, TARGET, worlds)


class LeeAccelerationController(LeeController):
    """Follows an acceleration and a rate of the yaw.

    A command has 4 numbers: acceleration of the centre of mass of the vehicle in the world [m/s^2], rate of the yaw [rad/s].
    """

    kinds: ClassVar[dict[int, int]] = {4: records.ACCELERATION}
    meaning = "acceleration, rate of the yaw"
    uses: ClassVar[tuple[str, ...]] = ("attitude_gain", "max_tilt", "fully_actuated")


class LeeAttitudeController(LeeController):
    """Follows an attitude with a thrust.

    A command has 5 or 8 numbers: thrust [N], quaternion x y z w of the root in the world, angular velocity in the axes of that attitude
    [rad/s]; or 4 numbers: thrust [N], roll and pitch [rad], rate of the yaw [rad/s].
    """

    kinds: ClassVar[dict[int, int]] = {4: records.ANGLES, 5: records.ATTITUDE, 8: records.ATTITUDE}
    meaning = "thrust, quaternion, angular velocity; or thrust, roll, pitch, rate of the yaw"
    uses: ClassVar[tuple[str, ...]] = ("attitude_gain",)

    def _draw(self, markers, numbers, poses, size, worlds) -> None:
        if numbers.shape[1] > 4:
            goals = np.concatenate([poses[:, :3], numbers[:, 1:5]], axis=1)
            markers.add_frames(goals, 3.0 * FRAME * size, worlds)

    def _check(self, command, n: int) -> None:
        if n == 4 or self._rotors.model.device.is_cuda:
            return
        quaternions = np.reshape(host_array(command, "command"), (-1, n))[:, 1:5]
        length = np.linalg.norm(quaternions, axis=1)
        wrong = np.flatnonzero(np.abs(length - 1.0) > UNIT_TOLERANCE)
        if wrong.size:
            raise ValueError(
                f"{type(self).__name__}: the quaternion {quaternions[wrong[0]].tolist()} of the command {wrong[0]} has the length"
                f" {length[wrong[0]]:g}; normalise it (x y z w)"
            )


class LeeRateController(LeeController):
    """Follows angular velocities with a thrust.

    A command has 4 numbers: thrust [N], angular velocity in axes of the root [rad/s].
    """

    kinds: ClassVar[dict[int, int]] = {4: records.RATES}
    meaning = "thrust, angular velocity"
    uses: ClassVar[tuple[str, ...]] = ()


def _positive(value, name: str) -> float:
    number = as_number(value, name)
    if not number > 0.0:
        raise ValueError(f"{name} {number:g} must be positive; None: no limit")
    return number
