"""Thrusters: first-order motors with limits of the thrust and of its rate."""

import types

from newton_like.kernels.articulation.multirotor.records import (
    CHANGE,
    CONSTANT,
    EFFICIENCY,
    LEAST,
    MOMENTUM,
    MOST,
    SHARE_DOWN,
    SHARE_UP,
)


def motor_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``spin``, the motors of a multirotor over a time step, and ``restart``."""
    lane, real = m.lane, m.real

    @m.func
    def limited(x: lane, low: lane, high: lane) -> lane:
        """x between bounds; NaN where x is NaN, because ``smaller`` and ``larger`` give their second argument then."""
        return m.smaller(high, m.larger(low, x))

    @m.func
    def unsigned(x: lane) -> lane:
        return m.larger(x, m.neg(x))

    @m.func
    def signed_root(x: lane) -> lane:
        """The number n with n |n| = x."""
        s = m.sqrt(unsigned(x))
        return m.where_lt(x, m.fill(real(0.0)), m.neg(s), s)

    @m.func
    def spin(b: int, t: int, F: m.Flight, V: m.Vehicle, mem: m.memory):
        """Advances the speeds n (or thrusts) of the rotors towards those of the thrust targets: n += share (n* - n). The row ``work`` gets
        their changes, for the angular momentum of rotors.

        The shares follow from the time constants, the time step and the scheme of integration, for rotors that get faster and slower.
        """
        for i in range(F.rotors):
            at = m.rotor_at(i)
            low = m.number(V, b, at + LEAST)
            high = m.number(V, b, at + MOST)
            k = m.number(V, b, at + CONSTANT)
            goal = limited(m.get(mem, F.target + i, t), low, high)
            old = m.get(mem, F.speed + i, t)
            before = old
            if F.fast[i] == 1:
                before = m.mul(k, m.mul(old, unsigned(old)))
                goal = signed_root(m.mul(goal, m.rcp(k)))
            share = m.where_lt(
                unsigned(old), unsigned(goal), m.number(V, b, at + SHARE_UP), m.number(V, b, at + SHARE_DOWN)
            )
            new = m.fma(share, m.sub(goal, old), old)
            thrust = new
            if F.fast[i] == 1:
                thrust = m.mul(k, m.mul(new, unsigned(new)))
            change = m.number(V, b, at + CHANGE)
            bounded = limited(thrust, m.sub(before, change), m.add(before, change))
            slow = bounded
            if F.fast[i] == 1:
                slow = signed_root(m.mul(bounded, m.rcp(k)))
            # the speed follows the bounded thrust only where the bound acts, so that no digit is lost elsewhere
            new = m.where_lt(thrust, bounded, slow, m.where_lt(bounded, thrust, slow, new))
            m.put(mem, F.speed + i, t, new)
            if (F.air & MOMENTUM) != 0:
                m.put(mem, F.work + i, t, m.sub(new, old))
            m.put(mem, F.computed + i, t, bounded)
            m.put(mem, F.applied + i, t, m.mul(limited(bounded, low, high), m.number(V, b, at + EFFICIENCY)))

    @m.func
    def restart(b: int, t: int, F: m.Flight, V: m.Vehicle, mem: m.memory):
        """Rotors turn with the speeds in the row ``speed`` [rev/s], and keep their thrust."""
        for i in range(F.rotors):
            at = m.rotor_at(i)
            n = m.get(mem, F.speed + i, t)
            thrust = m.mul(m.number(V, b, at + CONSTANT), m.mul(n, unsigned(n)))
            if F.fast[i] == 0:
                m.put(mem, F.speed + i, t, thrust)
            m.put(mem, F.target + i, t, thrust)
            m.put(mem, F.computed + i, t, thrust)
            acts = limited(thrust, m.number(V, b, at + LEAST), m.number(V, b, at + MOST))
            m.put(mem, F.applied + i, t, m.mul(acts, m.number(V, b, at + EFFICIENCY)))

    return locals()
