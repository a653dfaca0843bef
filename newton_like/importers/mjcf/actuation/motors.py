"""The ``dcmotor`` actuator of MuJoCo 4: its attributes, and its law in terms of those that a builder has.

With the motor constant K, the resistance R, the voltage V and the speed u, the current i and the torque are

    t di/dt = (V - K u) / R - i,   torque = K i + A sin(N L + phi),

where t is the electrical time constant (0: the current follows at once) and the last term is the cogging torque at length L (MuJoCo's
documentation, "DC motor model").
"""

from __future__ import annotations

from newton_like.importers.mjcf.source import floats
from newton_like.importers.xml_source import XmlElement

INPUTS = ("voltage", "pos", "vel", "ff", "none")

# Places in the parameters of MuJoCo's gain, bias and dynamics.
_RESISTANCE, _CONSTANT, _ALPHA, _REFERENCE, _KP, _KI, _KD, _MOST_VOLTAGE = range(8)
_COGGING = 3
_TIME, _CURRENT_RATE, _THERMAL, _CAPACITY, _AMBIENT, _BRISTLE, _BRISTLE_DAMPING, _SLEW, _MOST_INTEGRAL = range(9)


def motor_numbers(gain: tuple, bias: tuple, dynamics: tuple, element: XmlElement) -> tuple[tuple, tuple, tuple]:
    """MuJoCo's parameters of gain, bias and dynamics after the attributes of a ``dcmotor`` element, which change those of its class.

    Raises:
        ImportFileError: the attributes give no positive motor constant or resistance.
    """
    gain, bias, dynamics = list(gain), list(bias), list(dynamics)

    def several(name: str, count: int) -> tuple[float, ...]:
        given = floats(element, name, count, ())
        return (*given, *(0.0,) * (count - len(given)))

    def put(numbers: list, at: int, value: float, given: bool) -> None:
        if given:
            numbers[at] = value

    torque_constant, back_constant = several("motorconst", 2)
    resistance = element.number("resistance", gain[_RESISTANCE], low=0.0)
    voltage, stall, idle = several("nominal", 3)
    # a motor has one constant; a different torque constant and back-EMF constant give their geometric mean
    constant = gain[_CONSTANT]
    if "motorconst" in element.attributes:
        back = back_constant or torque_constant
        constant = (torque_constant * back) ** 0.5 if min(torque_constant, back) > 0.0 else 0.0
    elif voltage > 0.0 and idle > 0.0:
        constant = voltage / idle
        if resistance <= 0.0 and stall > 0.0:
            resistance = constant * voltage / stall
    elif voltage > 0.0 and stall > 0.0 and resistance > 0.0:
        constant = stall * resistance / voltage
    if resistance <= 0.0 and voltage > 0.0 and stall > 0.0:
        resistance = constant * voltage / stall
    if not constant > 0.0 or not resistance > 0.0:
        raise element.error(
            "gives no motor constant and resistance above 0; add motorconst and resistance, or nominal (voltage, stall torque, speed"
            " without load)"
        )
    gain[_RESISTANCE], gain[_CONSTANT] = resistance, constant
    inductance, time = several("inductance", 2)
    put(dynamics, _TIME, inductance / resistance if inductance > 0.0 else time, "inductance" in element.attributes)
    put(dynamics, _CURRENT_RATE, several("saturation", 3)[2], "saturation" in element.attributes)
    if "cogging" in element.attributes:
        bias[:_COGGING] = several("cogging", 3)
    if "controller" in element.attributes:
        kp, ki, kd, slew, most, voltage = several("controller", 6)
        gain[_KP], gain[_KI], gain[_KD], gain[_MOST_VOLTAGE] = kp, ki, kd, voltage
        dynamics[_SLEW], dynamics[_MOST_INTEGRAL] = slew, most
    put(dynamics, _THERMAL, 1.0, any(several("thermal", 6)))
    put(dynamics, _BRISTLE, several("lugre", 5)[0], "lugre" in element.attributes)
    return tuple(gain), tuple(bias), tuple(dynamics)


def has_states(gain: tuple, dynamics: tuple) -> bool:
    """Whether a motor has activations."""
    return any(dynamics[at] > 0.0 for at in (_TIME, _THERMAL, _BRISTLE, _SLEW)) or gain[_KI] > 0.0


def motor_input(element: XmlElement, usual: str) -> str:
    """What the controls of a ``dcmotor`` are, as in the file.

    Raises:
        ImportFileError: an unknown word.
    """
    given = element.get("input", usual).split()
    unknown = [word for word in given if word not in INPUTS]
    if unknown or not given:
        raise element.error(f"input={element.get('input')!r} is unknown; use {', '.join(INPUTS)}")
    return " ".join(given)


def motor_forces(element: XmlElement, constant: float) -> tuple[float, float] | None:
    """The range of forces by the largest torque or current of a ``dcmotor``; None: it states none."""
    given = floats(element, "saturation", 3, ())
    torque, current, _ = (*given, 0.0, 0.0, 0.0)[:3]
    most = torque if torque > 0.0 else constant * current
    return (-most, most) if most > 0.0 else None


def motor_law(gain: tuple, bias: tuple, dynamics: tuple, what: str) -> tuple | str:
    """Gain, bias and dynamics of a builder, ``(type, numbers)`` each, for those of MuJoCo; or the part of a motor that is not simulated."""
    (_, g), (_, b), (states, d) = gain, bias, dynamics
    if gain[0] != "dcmotor" or bias[0] != "dcmotor" or states not in ("none", "dcmotor"):
        return "types dcmotor beside others"
    for numbers, at, part in (
        (d, _THERMAL, "thermal models"), (d, _BRISTLE, "LuGre friction"), (d, _SLEW, "slew rates of controllers"),
        (d, _CURRENT_RATE, "limits of the rate of the current"), (g, _KI, "integral gains of controllers"),
    ):  # fmt: skip
        if numbers[at] > 0.0:
            return part
    if what != "voltage":
        return f"controllers with input '{what}'"
    if g[_MOST_VOLTAGE] > 0.0:
        return "limits of the voltage"
    r, k = g[_RESISTANCE], g[_CONSTANT]
    if not r > 0.0:
        return "motors without a resistance"
    cogging = (*b[:_COGGING], *(0.0,) * 4)
    # without dynamics the numbers of dynprm mean nothing
    if states == "dcmotor" and d[_TIME] > 0.0:
        return ("fixed", _padded(k)), ("dcmotor", (0.0, 0.0, 0.0, *cogging)), ("dcmotor", _padded(d[_TIME], r, k))
    affine = "dcmotor" if b[0] else "affine"
    return ("fixed", _padded(k / r)), (affine, (0.0, 0.0, -k * k / r, *cogging)), ("none", _padded(1.0))


def _padded(*numbers: float) -> tuple[float, ...]:
    return (*numbers, *(0.0,) * (10 - len(numbers)))
