"""A thousand hexarotors hold their places in gusts of wind, and a motor of some of them fails: ``python -m examples.multirotor_hover``.

The allocation of thrusts respects their limits. A tenth of a second after a failure, it is told that the motor has no thrust.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import newton_like as nl
from examples import blocks, common
from examples.drones import Drones
from newton_like.articulation.multirotor import BodyDrag, LeePositionController, add_vehicle

HEIGHT, SPREAD = 2.0, 0.3
"""Height of the places, and largest distance from them at the start along each axis [m]."""
DRAG = 0.25
"""Drag of the body [N s/m]."""
WIND, GUST, CALM = 3.0, 1.5, 0.8
"""Standard deviation of the mean wind of a world, and that of its gusts [m/s]; time in which gusts lose their correlation [s]."""
FAILING, FAILURE, NOTICE = 10, 4.0, 0.1
"""One world in so many has a failure, at this time [s], which the controller knows of after this time [s]."""
TEST_TIME, SETTLED = 8.0, 2.5
"""Simulated time of the test, and time after which vehicles are at their places and after which a failure is overcome [s]."""
TEST_DISTANCE, TEST_DISTANCE_FAILED = 0.5, 1.2
"""Largest distances from the place of a vehicle, and of one with a failure [m]."""
LOOK = {"spacing": (1.4, 0.0, 0.0), "azimuth": -70.0, "elevation": 12.0, "size": (640, 360)}
ROW = 5


class Hover(Drones):
    """The scene."""

    def setup(self) -> None:
        self.controller = self.drone.controller = LeePositionController(
            self.drone,
            position_gain=6.0,
            velocity_gain=4.0,
            max_acceleration=5.0,
            max_tilt=0.7,
            allocation="bounded",
            weights=(0.01, 0.01, 1.0, 3.0, 3.0, 0.3),
        )
        self.controller.set_command([0.0, 0.0, HEIGHT, 0.0])
        self.failing = np.arange(self.worlds) % FAILING == 2
        self.motor = np.random.default_rng(self.seed).integers(0, self.drone.num_thrusters, self.worlds)
        self.most = self.drone.thruster_parameter("thrust_max")

    def start(self) -> None:
        rng = self.rng = np.random.default_rng(self.seed)
        self.mean = WIND / np.sqrt(3.0) * rng.normal(size=(self.worlds, 3)) * [1.0, 1.0, 0.2]
        self.gust = GUST * rng.normal(size=(self.worlds, 3))
        self.drone.set_thruster_parameter("efficiency", 1.0)
        self.drone.set_thruster_parameter("thrust_max", self.most)
        self.failed = self.noticed = False

    def advance(self) -> None:
        """A frame with one wind, which is an Ornstein-Uhlenbeck process from frame to frame."""
        keep = np.exp(-self.frame_time / CALM)
        self.gust = keep * self.gust + GUST * np.sqrt(1.0 - keep**2) * self.rng.normal(size=(self.worlds, 3))
        self.drone.set_wind(self.mean + self.gust)
        if self.failing.any():
            if not self.failed and self.time >= FAILURE:
                self.fail("efficiency")
                self.failed = True
            if not self.noticed and self.time >= FAILURE + NOTICE:
                self.fail("thrust_max")
                self.noticed = True
        super().advance()

    def fail(self, parameter: str) -> None:
        """Sets a parameter of the motors that fail to zero."""
        worlds = np.flatnonzero(self.failing)
        values = self.drone.thruster_parameter(parameter)[worlds]
        values[np.arange(len(worlds)), self.motor[worlds]] = 0.0
        self.drone.set_thruster_parameter(parameter, values, env_ids=worlds)

    def distances(self) -> np.ndarray:
        """Distances of the vehicles from their places, ``[frames, worlds]`` [m]."""
        return np.linalg.norm(self.heights_and_places() - [0.0, 0.0, HEIGHT], axis=2)


def build(worlds: int, dt: float, device: str, seed: int) -> Hover:
    """Vehicles near their places."""
    one = nl.ModelBuilder()
    settings = add_vehicle(one, "hexarotor")
    settings.drag = BodyDrag(linear=DRAG)
    q = np.zeros((worlds, 7))
    q[:, 6] = 1.0
    q[:, :3] = np.random.default_rng(seed).uniform(-SPREAD, SPREAD, (worlds, 3))
    q[:, 2] += HEIGHT
    return Hover(one, settings, q, dt, device, seed)


def settled(scene: Hover) -> tuple[np.ndarray, np.ndarray]:
    """Largest distances from the place after the start, of vehicles without and with a failure [m]."""
    distance, seconds = scene.distances(), scene.seconds
    later = seconds >= min(SETTLED, seconds[-1])
    overcome = seconds >= FAILURE + SETTLED
    failed = distance[overcome][:, scene.failing]
    most = failed.max(axis=0, initial=0.0) if len(failed) else np.zeros(0)
    return distance[later][:, ~scene.failing].max(axis=0, initial=0.0), most


def check(scene: Hover) -> None:
    """Raises AssertionError unless all vehicles hold their places."""
    whole, failed = settled(scene)
    # raised by hand: python -O leaves assertions out
    for distances, most, word in ((whole, TEST_DISTANCE, "without"), (failed, TEST_DISTANCE_FAILED, "with")):
        away = np.flatnonzero(~(distances < most))
        if len(away):
            raise AssertionError(
                f"{len(away)} of {len(distances)} vehicles {word} a failure leave their places; one is {distances[away[0]]:.2f} m away"
            )
    if not scene.healthy.all():
        raise AssertionError("some worlds diverged")


def report(scene: Hover, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    whole, failed = settled(scene)
    rows = [("distance from the place", f"{100 * whole.mean():.1f} cm on average, at most {100 * whole.max():.1f} cm")]
    if failed.size:
        rows.append(
            (
                "after a failure",
                f"{len(failed)} vehicles, {100 * failed.mean():.1f} cm on average, at most {100 * failed.max():.1f} cm",
            )
        )
    common.summary(heading, [*rows, *rates])


def plot(scene: Hover, folder: Path) -> Path:
    """Plots distances and thrusts; returns the path of the PNG."""
    figure, axes = common.new_figure([["whole", "failed"], ["thrusts", "winds"]], figsize=(11, 7))
    figure.suptitle(f"{common.count_text(scene.worlds, 'hexarotor')} in gusts", fontsize=13, fontweight="bold")
    seconds, distance, thrusts = scene.seconds, scene.distances(), np.array(scene.thrusts)
    for name, chosen, title in (
        ("whole", ~scene.failing, "Distance from the place, no failure"),
        ("failed", scene.failing, f"Distance, a motor fails at {FAILURE:g} s"),
    ):
        if chosen.any():
            common.band(axes[name], seconds, distance[:, chosen], "C0" if name == "whole" else "C3")
            axes[name].legend(loc="upper center", bbox_to_anchor=(0.3, 1.0))
        axes[name].set(title=title, ylabel="distance [m]")
        axes[name].set_ylim(0.0, None)
    world = int(np.flatnonzero(scene.failing)[0]) if scene.failing.any() else 0
    for i in range(thrusts.shape[2]):
        axes["thrusts"].plot(seconds, thrusts[:, world, i], color=f"C{i}", lw=1.0, label=str(i))
    axes["thrusts"].set(title=f"Thrusts of the rotors (world {world})", ylabel="thrust [N]")
    axes["thrusts"].legend(loc="upper left", ncols=3)
    place = scene.heights_and_places()[:, world] - [0.0, 0.0, HEIGHT]
    for i, axis in enumerate("xyz"):
        axes["winds"].plot(seconds, place[:, i], color=f"C{i}", lw=1.2, label=axis)
    axes["winds"].set(title=f"Position from the place (world {world})", ylabel="position [m]")
    axes["winds"].legend(loc="upper left")
    for name in axes:
        axes[name].set(xlabel="time [s]", xlim=(0.0, max(seconds[-1], 1e-6)))
    return common.save_figure(figure, folder, "multirotor_hover.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="multirotor_hover",
        description="Simulates hexarotors that hold their places in gusts of wind while motors fail.",
        tested=f"all vehicles hold their places for {TEST_TIME:g} s",
        title="hexarotor",
        word="fly",
        test_time=TEST_TIME,
        world_count=1000,
        num_frames=500,
        build=build,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
    )


if __name__ == "__main__":
    common.run(main)
