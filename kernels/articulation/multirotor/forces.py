"""Wrenches on the bodies of a multirotor: of its rotors and of the air, at the pose of the moment.

Drag of the body is linear and quadratic in the velocity relative to the wind, along each axis of the root. A rotor with the speed n has the
force -c |n| v in its plane, where v is the velocity of its hub relative to the wind in this plane (Martin and Salaun, The True Role of
Accelerometer Feedback in Quadrotor Control, 2010). Near the ground a rotor has the thrust T / (1 - s (R / 4 z)^2) (Cheeseman and
Bennett, The Effect of the Ground on a Helicopter Rotor in Forward Flight, 1955), with its radius R and the height z of its hub, which
counts as at least half a radius. A rotor with the angular momentum h along its axis exerts the torque -w x h - dh/dt on its body, whose
angular velocity is w; the inertia of the body contains that of the rotor.
"""

import types

from newton_like.kernels.articulation.multirotor.records import (
    ANGULAR_DRAG,
    BODY_DRAG,
    COLUMN,
    GROUND,
    GROUND_EFFECT,
    GROUND_STRENGTH,
    HUB,
    HUB_DRAG,
    LINEAR_DRAG,
    MOMENTUM,
    QUADRATIC_DRAG,
    RADIUS,
    ROTOR,
    ROTOR_DRAG,
    SPIN,
    SPIN_DRAG,
    STEPS,
    VEHICLE,
)


def rotor_force_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``push``, the wrenches on the bodies."""
    lane, real = m.lane, m.real

    @m.func
    def times(a: m.Vec3, b: m.Vec3) -> m.Vec3:
        return m.vec(m.mul(a.x, b.x), m.mul(a.y, b.y), m.mul(a.z, b.z))

    @m.func
    def drag_of(linear: m.Vec3, quadratic: m.Vec3, v: m.Vec3) -> m.Vec3:
        """linear v + quadratic |v| v, for each axis."""
        size = m.vec(m.unsigned(v.x), m.unsigned(v.y), m.unsigned(v.z))
        return times(m.add3(linear, times(quadratic, size)), v)

    @m.func
    def ground_factor(b: int, at: int, z: lane, V: m.Vehicle) -> lane:
        """How much stronger a rotor at the height z is."""
        radius = m.number(V, b, at + RADIUS)
        least = m.larger(m.mul(m.fill(real(0.5)), radius), m.fill(real(1.0e-6)))
        ratio = m.mul(m.mul(m.fill(real(0.25)), radius), m.rcp(m.larger(z, least)))
        return m.rcp(m.fnma(m.mul(m.number(V, b, GROUND_STRENGTH), ratio), ratio, m.fill(real(1.0))))

    @m.func
    def push(b: int, t: int, F: m.Flight, V: m.Vehicle, mem: m.memory):
        """Adds the wrenches to the row ``force``: force and torque about the centre of mass of each body, world axes."""
        wind = m.get3(mem, F.wind, t)
        for k in range(F.bodies):
            r = m.quat_to_matrix(m.get4(mem, F.pose + 7 * k + 3, t))
            height = m.get(mem, F.pose + 7 * k + 2, t)
            v = m.apply_t(m.sub3(m.get3(mem, F.twist + 6 * k, t), wind), r)
            w = m.apply_t(m.get3(mem, F.twist + 6 * k + 3, t), r)
            total = m.spatial(m.zero3(), m.zero3())
            for i in range(F.rotors):
                if F.body[i] == k:
                    at = m.rotor_at(i)
                    force = m.number3(V, b, at + COLUMN)
                    thrust = m.get(mem, F.applied + i, t)
                    torque = m.number3(V, b, at + COLUMN + 3)
                    hub = m.number3(V, b, at + HUB)
                    if (F.air & GROUND_EFFECT) != 0:
                        z = m.sub(m.dot_plus(r.z, hub, height), m.number(V, b, GROUND))
                        thrust = m.mul(thrust, ground_factor(b, at, z, V))
                    total = m.spatial(m.fma3(force, thrust, total.v), m.fma3(torque, thrust, total.w))
                    if (F.air & MOMENTUM) != 0:
                        unit = m.number3(V, b, at + SPIN)
                        gain = m.mul(m.number(V, b, STEPS), m.get(mem, F.work + i, t))
                        turning = m.cross(w, m.scale3(unit, m.get(mem, F.speed + i, t)))
                        total = m.spatial(total.v, m.fnma3(unit, gain, m.sub3(total.w, turning)))
                    if (F.air & ROTOR_DRAG) != 0:
                        arm = m.sub3(hub, m.number3(V, b, VEHICLE + ROTOR * F.rotors + 3 * i))
                        u = m.cross_plus(w, arm, v)
                        size = m.rcp(m.larger(m.dot(force, force), m.fill(real(1.0e-20))))
                        u = m.fnma3(force, m.mul(m.dot(u, force), size), u)
                        c = m.mul(m.number(V, b, at + HUB_DRAG), m.unsigned(m.get(mem, F.speed + i, t)))
                        drag = m.scale3(u, m.neg(c))
                        total = m.spatial(m.add3(total.v, drag), m.cross_plus(arm, drag, total.w))
            if k == 0:
                if (F.air & BODY_DRAG) != 0:
                    f = drag_of(m.number3(V, b, LINEAR_DRAG), m.number3(V, b, QUADRATIC_DRAG), v)
                    n = drag_of(m.number3(V, b, ANGULAR_DRAG), m.number3(V, b, SPIN_DRAG), w)
                    total = m.spatial(m.sub3(total.v, f), m.sub3(total.w, n))
            at = F.force + 6 * k
            m.put3(mem, at, t, m.apply_plus(r, total.v, m.get3(mem, at, t)))
            m.put3(mem, at + 3, t, m.apply_plus(r, total.w, m.get3(mem, at + 3, t)))

    return locals()
