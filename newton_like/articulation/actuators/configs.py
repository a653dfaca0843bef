"""Configurations of actuators, one for each law.

Numbers of joints are one number, or a dictionary of numbers by regular expressions of joint names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from newton_like.options import Settings, configuration

Numbers = float | dict[str, float] | None


@configuration(slots=True)
class ActuatorCfg(Settings):
    """A group of joints with one law. Use one of the subclasses.

    Attributes:
        joint_names_expr: regular expression of joint names, or several.
        stiffness, damping: gains [N m/rad, N m s/rad, or N/m, N s/m]; None: those of the model. Networks do not use them.
        effort_limit: largest effort of the actuator [N m or N]; None: that of the model.
        velocity_limit: speed limit of the actuator [rad/s or m/s]; None: that of the model. It does not act, except in the torque-speed
            line of a DC motor.
        effort_limit_sim: limit of the drive in the step; None: ``effort_limit`` for implicit actuators, none for others. Implicit actuators
            refuse two different limits.
        velocity_limit_sim: velocity limit that the step keeps; None: that of the model.
        armature: inertia of the rotor at the joint [kg m^2 or kg]; None: that of the model.
        friction, dynamic_friction, viscous_friction: dry friction at rest and in motion [N m or N], and viscous friction [N m s/rad or
            N s/m] of the joint; None: those of the model, and for ``dynamic_friction`` its share of ``friction`` in the model.
        gear_ratio: turns of the motor for one of the joint; reported in ``data.gear_ratio`` only. Gains, limits and armature are those at
            the joint.
    """

    joint_names_expr: str | Sequence[str] = ".*"
    stiffness: Numbers = None
    damping: Numbers = None
    effort_limit: Numbers = None
    velocity_limit: Numbers = None
    effort_limit_sim: Numbers = None
    velocity_limit_sim: Numbers = None
    armature: Numbers = None
    friction: Numbers = None
    dynamic_friction: Numbers = None
    viscous_friction: Numbers = None
    gear_ratio: Numbers = None


@configuration(slots=True)
class ImplicitActuatorCfg(ActuatorCfg):
    """The drive of the step: PD with the new position and velocity, stable for any gains."""


@configuration(slots=True)
class IdealPDActuatorCfg(ActuatorCfg):
    """PD of the state of the moment, within the effort limit."""


@configuration(slots=True)
class DCMotorCfg(IdealPDActuatorCfg):
    """PD within the torque-speed line of a DC motor.

    Attributes:
        saturation_effort: stall effort [N m or N], above 0. ``velocity_limit`` is the speed without load, above 0; None: that of the model,
            where it has one.
    """

    saturation_effort: Numbers = None


@configuration(slots=True)
class DelayedPDActuatorCfg(IdealPDActuatorCfg):
    """Ideal PD of commands that arrive some physics steps later.

    Attributes:
        min_delay, max_delay: smallest and largest delay [physics steps]. Each instance gets its own at each reset.
        seed: of the random numbers; None: one that follows from the names of robot and group, so that groups differ and runs agree.
    """

    min_delay: int = 0
    max_delay: int = 0
    seed: int | None = None


@configuration(slots=True)
class RemotizedPDActuatorCfg(DelayedPDActuatorCfg):
    """Delayed PD whose effort limit depends on the position, as behind a linkage.

    Attributes:
        effort_limit: must be None; the table has the limits.
        joint_parameter_lookup: rows of position [rad or m], ascending, and effort limit [N m or N]; or rows of position, transmission ratio
            and effort limit, whose ratio is not used. Linear between rows, constant beyond.
    """

    joint_parameter_lookup: Sequence[Sequence[float]] | None = None


@configuration(slots=True)
class NetworkActuatorCfg(DCMotorCfg):
    """Efforts from a function, such as a trained network, within the torque-speed line of a DC motor.

    Its input has a row for each joint of each instance: errors of position (target minus position) of the steps ``input_idx``, then
    velocities of these steps, scaled. Joints of an instance follow each other. Steps before the first one of an episode have its entries.
    Its output is an effort for each row. Outputs are not checked: NaN makes the state of its world NaN.

    Attributes:
        network: function of an array ``[instances * joints, 2 len(input_idx)]`` that gives ``[instances * joints]`` or one more dimension
            of size 1: a torch module (called with torch tensors, without gradients), path of an ONNX (``.onnx``) or TorchScript file, or
            any function of NumPy arrays.
        input_idx: how many physics steps ago the entries are; 0: now.
        input_order: ``"pos_vel"`` or ``"vel_pos"``.
        pos_scale, vel_scale, torque_scale: factors of errors, velocities and efforts.
        on_reset: function of a NumPy array of indices, which is called when these instances are reset, for networks with a memory, such as
            recurrent ones.
    """

    network: Callable | str | None = None
    input_idx: Sequence[int] = (0, 2, 4)
    input_order: str = "pos_vel"
    pos_scale: float = 1.0
    vel_scale: float = 1.0
    torque_scale: float = 1.0
    on_reset: Callable | None = None
