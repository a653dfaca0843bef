"""The data of a multirotor that its programs read: structure and options (integers) and parameters (numbers).

The parameters of a vehicle are `VEHICLE` numbers, then `ROTOR` numbers for each rotor, then the numbers of the allocation: the
pseudo-inverse ``[rotors, 6]``; for bounded allocation also the matrix of the normal equations ``[rotors, rotors]`` and its right side for
each wrench ``[rotors, 6]``. They are the same for all worlds, or one lane a world.
"""

import types

import warp as wp

# Stages of a launch, as bits: the controller, the pseudo-inverse, bounded least squares, the motors, the forces on bodies; a new start.
CONTROL, ALLOCATE, BOUND, MOTORS, FORCES, RESTART = 1, 2, 4, 8, 16, 32

# Controllers. ATTITUDE has the target as a quaternion, ANGLES as roll, pitch and the rate of the yaw.
POSITION, VELOCITY, ACCELERATION, ATTITUDE, ANGLES, RATES = range(6)

# Forces, as bits: drag of the root, drag of the rotors, ground effect; angular momentum of the rotors.
BODY_DRAG, ROTOR_DRAG, GROUND_EFFECT, MOMENTUM = 1, 2, 4, 8

# Of the vehicle, with the cosine and the sine of the largest error of the yaw. The centre of mass and the inertia (xx yy zz xy xz yz) are
# those of all bodies, in the frame of the root; the offset is that of the centre from the one of the root's own mass; STEPS: physics
# steps in a second.
VEHICLE = 47
(
    MASS, GRAVITY, CENTRE, MOMENTS, GAIN_POSITION, GAIN_VELOCITY, GAIN_ATTITUDE, GAIN_RATE, MOST_ACCELERATION, TILT_TANGENT,
    TURN_COSINE, TURN_SINE, LINEAR_DRAG, QUADRATIC_DRAG, ANGULAR_DRAG, SPIN_DRAG, GROUND, GROUND_STRENGTH, OFFSET, STEPS,
) = (0, 1, 4, 7, 13, 16, 19, 22, 25, 26, 27, 28, 29, 32, 35, 38, 41, 42, 43, 46)  # fmt: skip

# Of a rotor: shares of the way to the target in a time step, T = k n |n|, limits of the thrust, largest change in a time step, share of
# the thrust that acts, wrench of a unit thrust about the centre of mass of its body in link axes, hub in the link frame, radius, drag,
# angular momentum for each rev/s in link axes.
ROTOR = 21
SHARE_UP, SHARE_DOWN, CONSTANT, LEAST, MOST, CHANGE, EFFICIENCY, COLUMN, HUB, RADIUS, HUB_DRAG, SPIN = (
    0, 1, 2, 3, 4, 5, 6, 7, 13, 16, 17, 18,
)  # fmt: skip
# The centre of mass of the body of the rotor, in link axes, is behind the rotors, three numbers each; see `centre_at`.


def flight_structs(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the structs ``Flight`` and ``Vehicle``."""

    @m.struct
    class Flight:
        """Structure, options and memory of a multirotor.

        Counts: `rotors`, `bodies` (those with rotors, the root first), `columns` of the command. `fast[i]`: whether the state of rotor
        i is its speed, and not its thrust; `body[i]`: its body among these. `stages`, `kind`, `air`: see above; `full`: whether the
        wrench has three components of force; `tilted`: whether the tilt has a limit; `rounds`: of the bounded allocation;
        `jointed`: whether the vehicle has several moving bodies.
        Other integers are rows of memory.
        """

        rotors: int
        bodies: int
        columns: int
        stages: int
        kind: int
        air: int
        full: int
        tilted: int
        rounds: int
        jointed: int
        fast: wp.array[int]
        body: wp.array[int]
        pose: int
        twist: int
        speed: int
        target: int
        command: int
        wind: int
        force: int
        wrench: int
        computed: int
        applied: int
        work: int

    @m.struct
    class Vehicle:
        """Parameters: one number for all worlds, or lanes ``[block, i]``."""

        varies: int
        uniform: wp.array[m.real]
        varying: wp.array2d[m.lane]

    lane = m.lane

    @m.func
    def number(V: Vehicle, b: int, i: int) -> lane:
        """Parameter i."""
        return m.param(V.uniform, V.varying, V.varies, b, i)

    @m.func
    def number3(V: Vehicle, b: int, i: int) -> m.Vec3:
        """Parameters i to i + 2."""
        return m.vec(number(V, b, i), number(V, b, i + 1), number(V, b, i + 2))

    @m.func
    def rotor_at(i: int) -> int:
        """The first parameter of rotor i."""
        return VEHICLE + ROTOR * i

    return locals()
