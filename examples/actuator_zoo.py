"""Legs with six kinds of actuators follow the same targets: ``python -m examples.actuator_zoo``.

Each world has six copies of one leg, whose feet have another mass in each world. Targets of hip and knee swing faster and faster, until
the actuators reach their limits. The plot shows the efforts over the speed of the knees, and what each law allows.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import newton_like as nl
from examples import blocks, common
from examples.blocks import FRAME, Blocks
from newton_like.articulation import (
    Articulation,
    DCMotorCfg,
    DelayedPDActuatorCfg,
    IdealPDActuatorCfg,
    ImplicitActuatorCfg,
    InteractiveScene,
    NetworkActuatorCfg,
    RemotizedPDActuatorCfg,
    SimulationContext,
)

KP, KD, LIMIT = 60.0, 1.5, 12.0
"""Gains [N m/rad, N m s/rad] and effort limit [N m] of all actuators."""
STALL, TOP = 16.0, 9.0
"""Stall effort [N m] and speed without load [rad/s] of motors."""
LAG = 6
"""Delay of commands [physics steps]."""
TABLE = ((-1.8, 4.0), (-1.2, 12.0), (-0.6, 9.0), (0.6, 12.0))
"""Effort limits [N m] by position [rad]."""
SOFTNESS = 10.0
"""Effort at which the network begins to saturate [N m]."""
THIGH, CALF, RADIUS = 0.22, 0.22, 0.018
"""Lengths and radius of the links [m]."""
FOOT, SPREAD = 0.35, 0.5
"""Mass of the feet [kg], and its largest relative difference between worlds."""
MIDDLE, SWING = (0.3, -0.9), (0.45, 0.55)
"""Middle and amplitude of the targets of hip and knee [rad]."""
SLOW, FAST, SWEEP = 0.4, 3.5, 8.0
"""Frequencies at the start and at the end of the sweep [Hz], and its length [s]."""
TEST_TIME, TEST_ERROR = 2.0, 0.35
"""Simulated time of the test [s]; largest error of the joints in it [rad]."""
LOOK = {"spacing": (0.0, 0.0, 0.0), "azimuth": -35.0, "elevation": 12.0, "size": (720, 360)}
ROW = 1
COLORS = (
    (0.16, 0.38, 0.68),
    (0.20, 0.55, 0.55),
    (0.85, 0.45, 0.12),
    (0.50, 0.35, 0.65),
    (0.60, 0.60, 0.15),
    (0.75, 0.25, 0.30),
)


def network(rows: np.ndarray) -> np.ndarray:
    """A network of one neuron: efforts of errors and velocities ``[rows, 2]``, which saturate softly."""
    return SOFTNESS * np.tanh((KP * rows[:, 0] - KD * rows[:, 1]) / SOFTNESS)


def target_at(time: float) -> np.ndarray:
    """Position targets of hip and knee at a time, ``[2]`` [rad]: swings whose frequency grows linearly."""
    t = min(time, SWEEP)
    phase = 2.0 * np.pi * (SLOW * t + 0.5 * (FAST - SLOW) * t * t / SWEEP + FAST * (time - t))
    return np.array(MIDDLE) + np.array(SWING) * np.array([np.sin(phase), -np.sin(phase + 0.8)])


GAINS = {"stiffness": KP, "damping": KD, "effort_limit": LIMIT}
LINE = {"saturation_effort": STALL, "velocity_limit": TOP}
ACTUATORS = {
    "implicit PD": ImplicitActuatorCfg(**GAINS),
    "ideal PD": IdealPDActuatorCfg(**GAINS),
    "DC motor": DCMotorCfg(**GAINS, **LINE),
    "delayed PD": DelayedPDActuatorCfg(min_delay=LAG, max_delay=LAG, **GAINS),
    "limits by position": RemotizedPDActuatorCfg(joint_parameter_lookup=TABLE, stiffness=KP, damping=KD),
    "network": NetworkActuatorCfg(network=network, input_idx=(0,), **GAINS, **LINE),
}
"""The six kinds by name."""


def add_leg(world: nl.ModelBuilder, label: str, y: float, color) -> None:
    """Adds a leg that hangs from a fixed hip."""
    cfg = nl.ShapeConfig(density=900.0, has_shape_collision=False)
    along = (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5))
    base = world.add_link(label=f"{label}/base")
    world.add_shape_box(base, hx=0.05, hy=0.03, hz=0.03, color=(0.35, 0.37, 0.4), cfg=cfg)
    joints = [world.add_joint_fixed(-1, base, parent_xform=(0.0, y, 0.6, 0.0, 0.0, 0.0, 1.0), label=f"{label}/mount")]
    parent, reach = base, 0.0
    for name, joint, length in (("thigh", "hip", THIGH), ("calf", "knee", CALF)):
        link = world.add_link(label=f"{label}/{name}")
        half = 0.5 * length
        world.add_shape_capsule(
            link, xform=(0.0, 0.0, -half, 0.0, 0.0, 0.0, 1.0), radius=RADIUS, half_height=half, color=color, cfg=cfg
        )
        joints.append(
            world.add_joint_revolute(
                parent, link, parent_xform=(0.0, 0.0, -reach, 0.0, 0.0, 0.0, 1.0), axis=(0, 1, 0), armature=0.01,
                label=f"{label}/{joint}",
            )
        )  # fmt: skip
        parent, reach = link, length
    foot = nl.ShapeConfig(density=FOOT / (4.0 / 3.0 * np.pi * 0.03**3), has_shape_collision=False)
    world.add_shape_sphere(parent, xform=(0.0, 0.0, -CALF, *along), radius=0.03, color=(0.25, 0.25, 0.28), cfg=foot)
    world.joint_q[-2:] = target_at(0.0)
    world.add_articulation(joints, label=label)


class Zoo(Blocks):
    """Worlds with a leg for each kind of actuator.

    Attributes:
        legs: the :class:`newton_like.articulation.Articulation` by kind.
        signals: targets, positions and velocities before each physics step, and efforts before and after limits, by name: ``[steps, kinds,
            worlds, 2]`` for hip and knee.
    """

    def __init__(self, worlds: int, dt: float, device: str, seed: int):
        begin = time.perf_counter()
        one, scene = nl.ModelBuilder(), nl.ModelBuilder()
        for i, (name, color) in enumerate(zip(ACTUATORS, COLORS, strict=True)):
            add_leg(one, name.replace(" ", "_"), 0.16 * i, color)
        scene.replicate(one, worlds)
        self.sim = SimulationContext(
            scene.finalize(device), dt=dt, evaluator="general", varying=("body_mass", "body_inertia", "body_com")
        )
        self.scene = InteractiveScene(self.sim)
        feet = np.random.default_rng(seed).uniform(-SPREAD, SPREAD, (worlds, 1))
        self.legs = {}
        for name, cfg in ACTUATORS.items():
            leg = self.legs[name] = self.scene.add(
                name, Articulation(self.sim, name.replace(" ", "_"), actuators={"all": cfg})
            )
            # videos show the links at their targets
            leg.debug_vis_cfg.frames = False
            leg.set_debug_vis(True)
            calf = leg.find_bodies("calf")[0]
            leg.write_body_mass_to_sim(leg.data.default_mass.numpy()[:, calf] + FOOT * feet, calf)
        self.signals: dict[str, list] = {}
        self.prepare(self.sim.model, worlds, self.sim.model.body_count // worlds, dt, begin)

    def prepare(self, model, worlds: int, boxes: int, dt: float, begin: float) -> None:
        self.model, self.worlds, self.boxes, self.dt, self.time = model, worlds, boxes, dt, 0.0
        self.substeps = common.steps_in(FRAME, dt)
        self.frame_time = self.substeps * dt
        self.state, self.solver, self.keeps = self.sim.state, self.sim.solver, False
        self.advance()
        self.reset()
        self.poses: list[np.ndarray] = []
        self.ready = time.perf_counter() - begin

    def reset(self) -> None:
        for leg in self.legs.values():
            leg.reset_to()
        self.time = 0.0

    def targets(self) -> np.ndarray:
        """Position targets of hip and knee now, ``[2]`` [rad]."""
        return target_at(self.time)

    def advance(self) -> None:
        for _ in range(self.substeps):
            target = self.targets()
            for leg in self.legs.values():
                leg.set_joint_position_target(target)
            before = self.now() if self.keeps else None
            self.scene.write_data_to_sim()
            if before is not None:
                self.keep(target, before)
            self.sim.step()
            self.time += self.dt

    def now(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities, each ``[kinds, worlds, 2]``."""
        data = [leg.data for leg in self.legs.values()]
        return np.stack([d.joint_pos.numpy() for d in data]), np.stack([d.joint_vel.numpy() for d in data])

    def keep(self, target: np.ndarray, before: tuple[np.ndarray, np.ndarray]) -> None:
        """Keeps the signals of a physics step."""
        data = [leg.data for leg in self.legs.values()]
        found = {
            "target": np.broadcast_to(target, before[0].shape), "q": before[0], "qd": before[1],
            "computed": np.stack([d.computed_torque.numpy() for d in data]), "applied": np.stack([d.applied_torque.numpy() for d in data]),
        }  # fmt: skip
        for name, values in found.items():
            self.signals.setdefault(name, []).append(values)

    def observe(self) -> None:
        self.sim.forward()
        super().observe()
        # the efforts of what follows; a benchmark does not observe
        self.keeps = True

    def recorded(self) -> dict[str, np.ndarray]:
        """The signals as arrays."""
        return {name: np.array(values, dtype=np.float64) for name, values in self.signals.items()}


def build(worlds: int, dt: float, device: str, seed: int) -> Zoo:
    """Legs at rest."""
    return Zoo(worlds, dt, device, seed)


def laws(s: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Efforts before limits by the formulas of the six laws, and the largest and smallest allowed ones, ``[steps, kinds, worlds, 2]``."""
    late = np.maximum(np.arange(len(s["q"])) - LAG, 0)
    kinds = list(ACTUATORS)
    wanted = KP * (s["target"] - s["q"]) - KD * s["qd"]
    high = np.full(wanted.shape, LIMIT)
    k = kinds.index("delayed PD")
    wanted[:, k] = KP * (s["target"][late, k] - s["q"][:, k]) - KD * s["qd"][:, k]
    k = kinds.index("limits by position")
    high[:, k] = np.interp(s["q"][:, k], *np.transpose(TABLE))
    low = -high
    k = kinds.index("network")
    wanted[:, k] = SOFTNESS * np.tanh((KP * (s["target"][:, k] - s["q"][:, k]) - KD * s["qd"][:, k]) / SOFTNESS)
    for name in ("DC motor", "network"):
        k = kinds.index(name)
        low[:, k], high[:, k] = line(s["qd"][:, k])
    return wanted, low, high


def line(speed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest effort of a DC motor at a speed."""
    most = TOP * (1.0 + LIMIT / STALL)
    v = np.clip(speed, -most, most)
    return np.maximum(STALL * (-1.0 - v / TOP), -LIMIT), np.minimum(STALL * (1.0 - v / TOP), LIMIT)


def acting(s: dict[str, np.ndarray], dt: float) -> np.ndarray:
    """Efforts that act in all steps but the last, ``[steps - 1, kinds, worlds, 2]``. Drives in the step act with the new velocity; reported
    efforts are those of the old one."""
    efforts, k = s["applied"][:-1].copy(), list(ACTUATORS).index("implicit PD")
    new = s["qd"][1:, k]
    aim = s["target"][:-1, k] - s["q"][:-1, k] - dt * (0.5 * s["qd"][:-1, k] + new)
    efforts[:, k] = np.clip(KP * aim - KD * new, -LIMIT, LIMIT)
    return efforts


def check(scene: Zoo) -> None:
    """Raises AssertionError unless efforts are those of the laws, and slow targets are followed."""
    s = scene.recorded()
    wanted, low, high = laws(s)
    # single precision, with efforts up to some hundred N m
    close = {"rtol": 1e-4, "atol": 1e-3}
    for k, name in enumerate(ACTUATORS):
        # raised by hand: python -O leaves assertions out
        for found, formula in (("computed", wanted), ("applied", np.clip(wanted, low, high))):
            if not np.allclose(s[found][:, k], formula[:, k], **close):
                worst = np.abs(s[found][:, k] - formula[:, k]).max()
                raise AssertionError(f"{name}: the {found} effort differs from its formula by up to {worst:.3g} N m")
        late = int(TEST_TIME / scene.dt)
        error = np.abs(s["target"] - s["q"])[:late, k].max()
        if not error < TEST_ERROR:
            raise AssertionError(f"{name}: a joint is {error:.2f} rad from its target")


def report(scene: Zoo, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    s, rows = scene.recorded(), []
    if s:
        error = np.sqrt(((s["target"] - s["q"]) ** 2).mean(axis=(0, 2, 3)))
        limited = (np.abs(s["applied"] - s["computed"]) > 1e-3).mean(axis=(0, 2, 3))
        rows = [
            (name, f"error {e:.3f} rad (root mean square), at its limit {100 * part:.0f} % of the time")
            for name, e, part in zip(ACTUATORS, error, limited, strict=True)
        ]
    common.summary(heading, [*rows, *rates])


def plot(scene: Zoo, folder: Path) -> Path:
    """Plots efforts over speeds of the knees, positions and efforts over time; returns the path of the PNG."""
    kinds = list(ACTUATORS)
    figure, axes = common.new_figure([kinds[:3], kinds[3:], ["position"] * 3, ["effort"] * 3], figsize=(11, 12))
    figure.suptitle(f"Six actuators, {common.count_text(scene.worlds, 'world')}", fontsize=13, fontweight="bold")
    s = scene.recorded()
    efforts = acting(s, scene.dt)
    wide = 1.05 * max(np.abs(s["qd"][..., 1]).max(), 1.0)
    speed = np.linspace(-wide, wide, 200)
    for k, name in enumerate(kinds):
        ax = axes[name]
        ax.plot(s["qd"][:-1, k, :, 1].ravel(), efforts[:, k, :, 1].ravel(), ".", ms=1.2, color=COLORS[k], alpha=0.4)
        low, high = line(speed) if name in ("DC motor", "network") else (np.full(200, -LIMIT), np.full(200, LIMIT))
        for bound in (low, high):
            ax.plot(speed, bound, color="0.25", lw=1.0, ls="--")
        ax.set(
            title=name,
            xlabel="speed of the knee [rad/s]",
            ylabel="effort [N m]",
            xlim=(-wide, wide),
            ylim=(-1.2 * LIMIT, 1.2 * LIMIT),
        )
    seconds = scene.dt * np.arange(len(s["q"]))
    axes["position"].plot(seconds, s["target"][:, 0, 0, 1], color="0.2", lw=1.0, ls="--", label="target")
    for k, name in enumerate(kinds):
        axes["position"].plot(seconds, s["q"][:, k, 0, 1], color=COLORS[k], lw=1.2, label=name)
        axes["effort"].plot(seconds[:-1], efforts[:, k, 0, 1], color=COLORS[k], lw=1.0)
    axes["position"].set(title="Position of the knees (world 0)", ylabel="position [rad]")
    axes["position"].legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=7, fontsize=8)
    axes["effort"].set(title="Efforts of the knees (world 0)", ylabel="effort [N m]", xlabel="time [s]")
    for name in ("position", "effort"):
        axes[name].set(xlim=(0.0, max(seconds[-1], 1e-6)))
    return common.save_figure(figure, folder, "actuator_zoo.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="actuator_zoo",
        description="Simulates legs with six kinds of actuators that follow the same targets.",
        tested="the efforts are those of the formulas, and slow targets are followed",
        title="world",
        word="swing",
        test_time=TEST_TIME,
        world_count=16,
        num_frames=int(SWEEP * 60),
        build=build,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
    )


if __name__ == "__main__":
    common.run(main)
