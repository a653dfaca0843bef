"""An open-loop trot for legs of a thigh and a shank of equal length: foot paths, inverse kinematics, joint targets.

Diagonal legs step together, the two pairs half a period apart. A foot is on the ground for more than half of the time, so that
one pair takes over from the other without a flight. On the ground it moves backwards at the walking speed, straight and level; in
the air it returns on a cubic that leaves and lands at the speed of the ground, so that it neither scuffs nor brakes. The targets
are functions of time only; they do not depend on the time step or on the state of the robot.

Standing on two feet the robot falls like an inverted pendulum, with a time constant of sqrt(height / g) = 0.17 s. A
swing has to be over by about then, which sets the frequency: (1 - duty) / frequency = 0.18 s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

LEGS = ("fl", "fr", "rl", "rr")
PHASE = (0.0, 0.5, 0.5, 0.0)


@dataclass(frozen=True)
class Trot:
    """A gait.

    Attributes:
        frequency: steps of one leg a second [Hz].
        duty: fraction of a period that a foot is on the ground.
        speed: walking speed [m/s].
        height: of the hip pitch axis above the foot's centre [m].
        clearance: how high the swinging foot is lifted [m].
        ramp: time in which the speed grows from nothing [s]. The feet are lifted fully after a quarter of it.
        link: length of thigh and shank [m].
    """

    frequency: float = 2.2
    duty: float = 0.6
    speed: float = 0.5
    height: float = 0.28
    clearance: float = 0.06
    ramp: float = 1.0
    link: float = 0.2

    def standing(self) -> list[float]:
        """Angles of all joints (hip, thigh, calf; leg by leg) with the feet straight below the thigh joints [rad]."""
        thigh, calf, _, _ = leg_angles((0.0, -self.height, 0.0, 0.0), self.link)
        return [0.0, thigh, calf] * len(LEGS)

    def targets(self, time: float) -> tuple[list[float], list[float]]:
        """Angles [rad] and rates [rad/s] of all joints, leg by leg, at a time [s]."""
        ramp = min(time / self.ramp, 1.0)
        now = replace(self, speed=self.speed * ramp, clearance=self.clearance * min(4.0 * ramp, 1.0))
        q, qd = [], []
        for phase in PHASE:
            thigh, calf, thigh_rate, calf_rate = leg_angles(now.foot((self.frequency * time + phase) % 1.0), self.link)
            q += [0.0, thigh, calf]
            qd += [0.0, thigh_rate, calf_rate]
        return q, qd

    def foot(self, phase: float) -> tuple[float, float, float, float]:
        """Place and velocity (x, z, x', z') of a foot seen from its thigh joint; phase 0 is touch-down, 1 the next."""
        stride = self.speed * self.duty / self.frequency
        if phase < self.duty:
            return stride * (0.5 - phase / self.duty), -self.height, -self.speed, 0.0
        swing = (1.0 - self.duty) / self.frequency
        s = (phase - self.duty) / (1.0 - self.duty)
        # x is the cubic from -stride/2 to stride/2 that has the slope of the ground at both ends ...
        back = self.speed * swing
        reach = stride + back
        x = -0.5 * stride - back * s + reach * s * s * (3.0 - 2.0 * s)
        dx = (-back + reach * 6.0 * s * (1.0 - s)) / swing
        # ... and z the quartic that starts and ends level
        up = 4.0 * s * (1.0 - s)
        z = self.clearance * up * up
        dz = self.clearance * 8.0 * up * (1.0 - 2.0 * s) / swing
        return x, z - self.height, dx, dz


def leg_angles(foot: tuple[float, float, float, float], link: float) -> tuple[float, float, float, float]:
    """Thigh and calf angles, and their rates, for a foot at (x, z) with the velocity (x', z'); the knee bends back.

    With links of equal length the foot lies in the direction of the mean angle: (x, z) = -r (sin m, cos m) with
    r = 2 link cos(calf / 2) and m = thigh + calf / 2.

    Args:
        foot: (x, z, x', z') in the leg's plane, seen from the thigh joint [m, m/s].
        link: length of thigh and shank [m].
    """
    x, z, dx, dz = foot
    r = math.hypot(x, z)
    cosine = r / (2.0 * link)
    calf = -2.0 * math.acos(cosine)
    thigh = math.atan2(-x, -z) - 0.5 * calf
    calf_rate = (x * dx + z * dz) / (r * link * math.sqrt(1.0 - cosine * cosine))
    thigh_rate = (dx * z - x * dz) / (r * r) - 0.5 * calf_rate
    return thigh, calf, thigh_rate, calf_rate
