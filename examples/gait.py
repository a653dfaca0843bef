"""An open-loop trot for legs of a thigh and a shank of equal length: foot paths, inverse kinematics, joint targets.

Diagonal legs step together, the two pairs half a period apart. A foot is on the ground for more than half of the time, so
that one pair takes over from the other without a flight. On the ground it moves backwards at the walking speed, straight
and level; in the air it returns on a cubic that leaves and lands at the speed of the ground, so that it neither scuffs nor
brakes. All of it is a function of time alone: no time step enters, and nothing that the robot feels.

Standing on two feet the robot falls like an inverted pendulum, with a time constant of sqrt(height / g) = 0.17 s. A swing has
to be over by then, which sets the frequency: (1 - duty) / frequency = 0.16 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

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
        ramp: time in which speed and clearance grow from nothing [s].
        link: length of thigh and shank [m].
    """

    frequency: float = 2.5
    duty: float = 0.6
    speed: float = 0.5
    height: float = 0.28
    clearance: float = 0.06
    ramp: float = 1.0
    link: float = 0.2

    def standing(self) -> np.ndarray:
        """Joint angles (hip, thigh, calf) with the foot straight below the thigh joint [rad]."""
        half = np.arccos(self.height / (2.0 * self.link))
        return np.array([0.0, half, -2.0 * half])

    def struct(self) -> Gait:
        """The same numbers for the device."""
        gait = Gait()
        for name in Gait.vars:
            setattr(gait, name, float(getattr(self, name)))
        return gait


@wp.struct
class Gait:
    frequency: float
    duty: float
    speed: float
    height: float
    clearance: float
    ramp: float
    link: float


@wp.func
def foot_path(phase: float, gait: Gait):
    """Place and velocity (x, z, x', z') of a foot below its thigh joint, for a phase of 0 (touch-down) to 1."""
    stance = gait.duty / gait.frequency
    stride = gait.speed * stance
    if phase < gait.duty:
        s = phase / gait.duty
        return wp.vec4(stride * (0.5 - s), -gait.height, -gait.speed, 0.0)
    swing = (1.0 - gait.duty) / gait.frequency
    s = (phase - gait.duty) / (1.0 - gait.duty)
    # x: the cubic from -stride/2 to stride/2 with the slopes of the ground at both ends
    back = gait.speed * swing
    reach = stride + back
    x = -0.5 * stride - back * s + reach * s * s * (3.0 - 2.0 * s)
    dx = (-back + reach * 6.0 * s * (1.0 - s)) / swing
    # z: the quartic that starts and ends level
    up = s * (1.0 - s)
    z = gait.clearance * 16.0 * up * up
    dz = gait.clearance * 32.0 * up * (1.0 - 2.0 * s) / swing
    return wp.vec4(x, z - gait.height, dx, dz)


@wp.func
def leg_angles(p: wp.vec4, link: float):
    """Thigh and calf angles and their rates for a foot path (x, z, x', z') in the leg's plane; the knee bends back.

    With equal links the foot lies on the line of the mean angle: (x, z) = -r (sin m, cos m), r = 2 link cos(calf / 2),
    m = thigh + calf / 2.
    """
    r = wp.sqrt(p[0] * p[0] + p[1] * p[1])
    c = wp.min(r / (2.0 * link), 0.999)
    calf = -2.0 * wp.acos(c)
    thigh = wp.atan2(-p[0], -p[1]) - 0.5 * calf
    dr = (p[0] * p[2] + p[1] * p[3]) / r
    dcalf = dr / (link * wp.sqrt(1.0 - c * c))
    dthigh = (p[2] * p[1] - p[0] * p[3]) / (r * r) - 0.5 * dcalf
    return wp.vec4(thigh, calf, dthigh, dcalf)


@wp.kernel(enable_backward=False)
def trot_targets(
    time: float,
    gait: Gait,
    joints_per_world: int,
    hips: wp.array[int],
    phases: wp.array[float],
    # Model:
    joint_q_start: wp.array[int],
    joint_qd_start: wp.array[int],
    # Control out:
    joint_target_q: wp.array[float],
    joint_target_qd: wp.array[float],
):
    """Targets of one leg (hip, thigh, calf) of one world at a time."""
    world, leg = wp.tid()
    ramp = wp.min(time / gait.ramp, 1.0)
    now = gait
    now.speed = gait.speed * ramp
    now.clearance = gait.clearance * wp.min(4.0 * ramp, 1.0)
    cycle = gait.frequency * time + phases[leg]
    angles = leg_angles(foot_path(cycle - wp.floor(cycle), now), gait.link)
    hip = world * joints_per_world + hips[leg]
    q = joint_q_start[hip]
    qd = joint_qd_start[hip]
    joint_target_q[q] = 0.0
    joint_target_q[q + 1] = angles[0]
    joint_target_q[q + 2] = angles[1]
    joint_target_qd[qd] = 0.0
    joint_target_qd[qd + 1] = angles[2]
    joint_target_qd[qd + 2] = angles[3]
