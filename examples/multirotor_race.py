"""Quadrotors race through gates, each at its own speed: ``python -m examples.multirotor_race``.

A closed spline through the gates gives position, velocity and acceleration of a course, and its direction the yaw. A Lee controller follows
it. The allocation keeps the thrusts within their limits, and gives up the yaw first, which these vehicles turn slowly.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

import newton_like as nl
from examples import blocks, common
from examples.drones import Drones
from newton_like.articulation.multirotor import BodyDrag, LeePositionController, add_vehicle

GATES = np.array(
    [
        (6.0, 0.0, 1.5),
        (3.5, 4.5, 2.6),
        (-2.0, 5.0, 1.4),
        (-6.0, 1.5, 2.0),
        (-3.5, -3.0, 3.2),
        (0.0, -1.5, 1.6),
        (3.5, -4.0, 1.4),
    ]
)
"""Centres of the gates [m]."""
OPENING, BAR = 1.2, 0.05
"""Width of the opening of a gate, and half the thickness of its bars [m]."""
FASTEST, SLOWEST = 10.0, 13.0
"""Times of a lap [s]."""
DRAG = 0.1
"""Drag of the body [N s/m], which the controller does not know."""
BEFORE = 2.0
"""Time before the start of the course in which vehicles speed up [s]."""
TEST_TIME, TEST_DISTANCE = SLOWEST + BEFORE + 1.0, 0.35
"""Simulated time of the test [s]; largest distance from the centre of a gate [m], within which a vehicle fits through."""
COLOR = (0.85, 0.35, 0.1)
LOOK = {"spacing": (0.0, 0.0, 0.0), "azimuth": -60.0, "elevation": 32.0, "size": (720, 420), "follow": False}
ROW = 6


def course() -> tuple[CubicSpline, np.ndarray]:
    """The course over laps (period 1), and the share of a lap at each gate."""
    points = np.concatenate([GATES, GATES[:1]])
    # the time between gates grows with the root of their distance, which smooths the turns
    share = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1) ** 0.8)])
    share /= share[-1]
    return CubicSpline(share, points, bc_type="periodic"), share[:-1]


def headings(spline: CubicSpline, share: np.ndarray) -> np.ndarray:
    """Yaw of the course [rad]."""
    v = spline(share, 1)
    return np.arctan2(v[..., 1], v[..., 0])


class Race(Drones):
    """The scene."""

    def setup(self) -> None:
        self.spline, self.at_gates = course()
        self.lap = np.linspace(FASTEST, SLOWEST, self.worlds)
        self.controller = self.drone.controller = LeePositionController(
            self.drone,
            position_gain=8.0,
            velocity_gain=5.0,
            attitude_gain=(150.0, 150.0, 2.0),
            rate_gain=(20.0, 20.0, 2.0),
            max_yaw_error=0.5,
            allocation="bounded",
            weights=(1.0, 1.0, 3.0, 10.0, 10.0, 0.3),
        )

    def command(self) -> None:
        """The course at the time of the step; before its start, vehicles speed up along it."""
        t = self.time - BEFORE
        # the speed grows linearly from zero, the start is the first gate
        past = np.minimum(t, 0.0)
        time = t + 0.5 * past**2 / BEFORE
        rate = np.where(t < 0.0, 1.0 + past / BEFORE, 1.0)
        gain = np.where(t < 0.0, 1.0 / BEFORE, 0.0)
        share = time / self.lap
        x, v, a = (self.spline(share % 1.0, k) for k in range(3))
        lap = self.lap[:, None]
        yaw = np.arctan2(v[:, 1], v[:, 0])
        turn = (v[:, 0] * a[:, 1] - v[:, 1] * a[:, 0]) / np.maximum(v[:, 0] ** 2 + v[:, 1] ** 2, 1e-9) * rate / self.lap
        acceleration = a * rate**2 / lap**2 + v * gain / lap
        self.controller.set_command(np.column_stack([x, yaw, v * rate / lap, acceleration, turn]))

    def misses(self) -> np.ndarray:
        """Distances from the centres of the gates at the first passage after the start, ``[worlds, gates]`` [m]; infinite: none."""
        x = self.heights_and_places()
        result = np.full((self.worlds, len(GATES)), np.inf)
        yaw = headings(self.spline, self.at_gates)
        for k, (gate, angle) in enumerate(zip(GATES, yaw, strict=True)):
            away = x - gate
            along = away @ [np.cos(angle), np.sin(angle), 0.0]
            near = (np.linalg.norm(away, axis=2)[:-1] < 2.0) & (along[:-1] < 0.0) & (along[1:] >= 0.0)
            for world in np.flatnonzero(near.any(axis=0)):
                i = int(np.argmax(near[:, world]))
                s = along[i, world] / (along[i, world] - along[i + 1, world])
                result[world, k] = np.linalg.norm((1.0 - s) * away[i, world] + s * away[i + 1, world])
        return result


def add_gates(scene: nl.ModelBuilder) -> None:
    """Draws the gates, which nothing collides with."""
    look = nl.ShapeConfig(density=0.0, has_shape_collision=False)
    spline, at = course()
    half = 0.5 * OPENING + BAR
    for k, (gate, yaw) in enumerate(zip(GATES, headings(spline, at), strict=True)):
        side = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
        turn = (0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw))
        for i, sign in enumerate((-1.0, 1.0)):
            post, beam = gate + sign * half * side, gate + sign * half * np.array([0.0, 0.0, 1.0])
            for name, place, y, z in (("post", post, BAR, half + BAR), ("beam", beam, half, BAR)):
                scene.add_shape_box(
                    -1, xform=(*place, *turn), hx=BAR, hy=y, hz=z, color=COLOR, cfg=look, label=f"gate_{k}_{name}_{i}"
                )


def build(worlds: int, dt: float, device: str, seed: int) -> Race:
    """Vehicles at the start, on the course before the first gate."""
    one = nl.ModelBuilder()
    settings = add_vehicle(one, "iris")
    settings.drag = BodyDrag(linear=DRAG)
    scene = nl.ModelBuilder()
    scene.add_ground_plane()
    add_gates(scene)
    spline, _ = course()
    share = -0.5 * BEFORE / np.linspace(FASTEST, SLOWEST, worlds) % 1.0
    yaw = headings(spline, share)
    q = np.zeros((worlds, 7))
    q[:, :3], q[:, 5], q[:, 6] = spline(share), np.sin(0.5 * yaw), np.cos(0.5 * yaw)
    q[:, :3] += np.random.default_rng(seed).uniform(-0.05, 0.05, (worlds, 3))
    return Race(one, settings, q, dt, device, seed, scene)


def passages(scene: Race) -> np.ndarray:
    """The distances of :meth:`Race.misses` of the gates that there was time for, ``[worlds, gates]``; not a number: there was none."""
    misses = scene.misses()
    # the first gate is passed at the end of the first lap
    last = (np.where(scene.at_gates > 0.0, scene.at_gates, 1.0) * scene.lap[:, None]) + BEFORE + 0.3
    return np.where(last <= scene.seconds[-1], misses, np.nan)


def check(scene: Race) -> None:
    """Raises AssertionError unless all vehicles fly through all gates."""
    wrong = ~(passages(scene) < TEST_DISTANCE)
    # raised by hand: python -O leaves assertions out
    if wrong.any():
        world, gate = np.argwhere(wrong)[0]
        raise AssertionError(
            f"{wrong.any(axis=1).sum()} of {common.count_text(scene.worlds, 'vehicle')} miss a gate; world {world} passes gate {gate} at"
            f" {passages(scene)[world, gate]:.2f} m from its centre"
        )


def report(scene: Race, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    misses = passages(scene)
    there = misses[np.isfinite(misses)]
    speed = np.linalg.norm(np.diff(scene.heights_and_places(), axis=0), axis=2) / scene.frame_time
    rows = [("gates passed", f"{np.count_nonzero(there < 0.5 * OPENING):,} of {np.count_nonzero(~np.isnan(misses)):,}")]
    if there.size:
        rows.append(
            ("distance from the centre", f"{100 * there.mean():.1f} cm on average, at most {100 * there.max():.1f} cm")
        )
    common.summary(heading, [*rows, ("fastest", f"{speed.max():.1f} m/s"), *rates])


def plot(scene: Race, folder: Path) -> Path:
    """Plots the course from above and from the side, speeds and passages; returns the path of the PNG."""
    figure, axes = common.new_figure([["above", "speed"], ["side", "gates"]], figsize=(11, 8))
    figure.suptitle(common.count_text(scene.worlds, "quadrotor"), fontsize=13, fontweight="bold")
    x, line = scene.heights_and_places(), scene.spline(np.linspace(0.0, 1.0, 500))
    chosen = np.unique(np.linspace(0, scene.worlds - 1, 3).astype(int))
    yaw = headings(scene.spline, scene.at_gates)
    across = 0.5 * OPENING * np.stack([-np.sin(yaw), np.cos(yaw)], axis=1)
    for name, height in (("above", 1), ("side", 2)):
        axes[name].plot(line[:, 0], line[:, height], color="0.7", lw=1.0, ls="--", label="course")
        for i, world in enumerate(chosen):
            axes[name].plot(
                x[:, world, 0], x[:, world, height], color=f"C{i}", lw=1.2, label=f"{scene.lap[world]:.1f} s a lap"
            )
        for k, gate in enumerate(GATES):
            ends = gate[:2] + np.array([[-1.0], [1.0]]) * across[k] if height == 1 else None
            if ends is not None:
                axes[name].plot(ends[:, 0], ends[:, 1], color=COLOR, lw=3.0)
            else:
                axes[name].plot([gate[0]] * 2, gate[2] + 0.5 * OPENING * np.array([-1.0, 1.0]), color=COLOR, lw=3.0)
        axes[name].set(xlabel="x [m]", ylabel=f"{'y' if height == 1 else 'z'} [m]", aspect="equal")
    axes["above"].set(title="From above")
    axes["side"].set(title="From the side")
    axes["above"].legend(loc="center", fontsize=7)
    speed = np.linalg.norm(np.diff(x, axis=0), axis=2) / scene.frame_time
    for i, world in enumerate(chosen):
        axes["speed"].plot(scene.seconds[1:], speed[:, world], color=f"C{i}", lw=1.2)
    axes["speed"].set(title="Speed", xlabel="time [s]", ylabel="speed [m/s]", xlim=(0.0, scene.seconds[-1]))
    misses = passages(scene)
    for k in range(len(GATES)):
        there = misses[np.isfinite(misses[:, k]), k]
        axes["gates"].plot(np.full(len(there), k), 100 * there, ".", color="C0", alpha=0.4)
    axes["gates"].axhline(100 * TEST_DISTANCE, color="C3", lw=1.0, ls="--")
    axes["gates"].set(
        title="Distance from the centres of the gates", xlabel="gate", ylabel="distance [cm]", ylim=(0.0, None)
    )
    return common.save_figure(figure, folder, "multirotor_race.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="multirotor_race",
        description="Simulates quadrotors that fly through gates by Lee control.",
        tested=f"all vehicles pass the centres of all gates at less than {100 * TEST_DISTANCE:g} cm",
        title="quadrotor",
        word="fly",
        test_time=TEST_TIME,
        world_count=64,
        num_frames=980,
        build=build,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
    )


if __name__ == "__main__":
    common.run(main)
