"""Rows of dominoes fall, after a push on the first one: ``python -m examples.dominoes``.

The dominoes stand on an arc. The speed of the wave of falling dominoes soon depends on their sizes and distances only, and not on the push
(W. J. Stronge, "The domino effect: a wave of destabilizing collisions in a periodic array", Proc. R. Soc. Lond. A 409, 1987).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import newton_like as nl
from examples import blocks, common
from examples.blocks import Blocks

DOMINOES = 14
SIZE = (0.08, 0.24, 0.48)
"""Thickness, width and height of a domino [m]."""
SPACING = 0.24
"""Distance between the centres of neighbours, along the arc [m]."""
RADIUS = 1.6
"""Radius of the arc [m]."""
FRICTION = 0.3
PUSH = (2.0, 3.0)
"""Range of the first domino's angular velocity at the start [rad/s]. It falls by itself if this is above 0.91 rad/s."""
GRAVITY = 9.81
TEST_TIME = 3.0
TEST_SPEED = (0.5, 3.0)
"""Range of plausible speeds of the wave, in units of ``sqrt(g h)`` for dominoes of height h."""
ROW = 1
LOOK = {"azimuth": -70.0, "elevation": 30.0, "size": (560, 360)}


def build(worlds: int, dt: float, device: str, seed: int) -> Blocks:
    """Dominoes that stand on an arc; the first one turns about its lower edge."""
    domino = nl.ModelBuilder()
    domino.default_shape_cfg.mu = FRICTION
    for i in range(DOMINOES):
        body = domino.add_body(label=f"domino_{i}")
        domino.add_shape_box(body, hx=0.5 * SIZE[0], hy=0.5 * SIZE[1], hz=0.5 * SIZE[2])
    angle = (np.arange(DOMINOES) - 0.5 * (DOMINOES - 1)) * SPACING / RADIUS
    q = np.zeros((worlds, DOMINOES, 7))
    q[..., 0], q[..., 1] = RADIUS * np.sin(angle), RADIUS * (1.0 - np.cos(angle))
    q[..., 2] = 0.5 * SIZE[2]
    q[..., 5], q[..., 6] = np.sin(0.5 * angle), np.cos(0.5 * angle)
    forward = np.array([np.cos(angle[0]), np.sin(angle[0]), 0.0])
    left, up = np.array([-forward[1], forward[0], 0.0]), np.array([0.0, 0.0, 1.0])
    speed = np.random.default_rng(seed).uniform(*PUSH, (worlds, 1))
    qd = np.zeros((worlds, DOMINOES, 6))
    # the centre moves about the lower edge in front
    arm = 0.5 * (SIZE[2] * up - SIZE[0] * forward)
    qd[:, 0, :3], qd[:, 0, 3:] = speed * np.cross(left, arm), speed * left
    return Blocks(domino, q, qd, dt, device)


def tipping_times(scene: Blocks) -> np.ndarray:
    """When each domino tilts beyond its balance, ``[worlds, dominoes]`` [s]; not a number for a domino that does not."""
    balance = np.arctan2(SIZE[0], SIZE[2])
    tilt = scene.tilts()
    beyond = tilt > balance
    after = np.maximum(beyond.argmax(axis=0), 1)[None]
    low, high = np.take_along_axis(tilt, after - 1, axis=0)[0], np.take_along_axis(tilt, after, axis=0)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        times = scene.frame_time * (after[0] - 1.0 + (balance - low) / (high - low))
    return np.where(beyond.any(axis=0), times, np.nan)


def wave_speeds(scene: Blocks) -> np.ndarray:
    """Speed of the wave over the second half of the row, in units of ``sqrt(g h)``, ``[worlds]``."""
    times, middle = tipping_times(scene), DOMINOES // 2
    way = SPACING * (DOMINOES - 1 - middle)
    return way / (times[:, -1] - times[:, middle]) / np.sqrt(GRAVITY * SIZE[2])


def fallen(scene: Blocks) -> np.ndarray:
    """In which worlds all dominoes fell, one after the other, ``[worlds]``."""
    return scene.healthy & (np.diff(tipping_times(scene), axis=1) > 0.0).all(axis=1)


def check(scene: Blocks) -> None:
    """Raises AssertionError unless all dominoes fell in order, and the wave has a plausible speed."""
    failed = np.flatnonzero(~fallen(scene))
    # Raised by hand: python -O leaves assertions out.
    if len(failed):
        raise AssertionError(
            f"in {len(failed)} of {common.count_text(scene.worlds, 'world')} not all dominoes fell in order, "
            f"the first is world {failed[0]}"
        )
    speed, (low, high) = wave_speeds(scene), TEST_SPEED
    odd = np.flatnonzero((speed < low) | (speed > high))
    if len(odd):
        raise AssertionError(
            f"the wave of world {odd[0]} has the speed {speed[odd[0]]:.2f} sqrt(g h), not {low:g} to {high:g} sqrt(g h)"
        )


def report(scene: Blocks, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    whole = fallen(scene)
    rows = [("all fell in order", f"{whole.sum()} of {common.count_text(scene.worlds, 'row')}")]
    if whole.any():
        speed, times = wave_speeds(scene)[whole], tipping_times(scene)[whole]
        rows += [
            ("time from the first to the last", f"{np.mean(times[:, -1] - times[:, 0]):.2f} s"),
            (
                "speed of the wave",
                f"{speed.mean() * np.sqrt(GRAVITY * SIZE[2]):.2f} m/s = {speed.mean():.2f} sqrt(g h), spread {speed.std():.3f} sqrt(g h)",
            ),
        ]
    common.summary(heading, [*rows, *rates])


def plot(scene: Blocks, folder: Path) -> Path:
    """Plots the tilts of the dominoes of a row, and when those of all rows tip over; returns the path of the PNG."""
    figure, axes = common.new_figure([["tilt", "times"]], figsize=(11, 4.8))
    figure.suptitle(common.count_text(scene.worlds, "row") + " of dominoes", fontsize=13, fontweight="bold")
    tilt = np.degrees(scene.tilts()[:, 0])
    for i in range(DOMINOES):
        axes["tilt"].plot(scene.seconds, tilt[:, i], color=f"C{i % 10}", lw=1.4)
    axes["tilt"].set(
        title="Tilt of the dominoes (world 0)", xlabel="time [s]", ylabel="tilt [deg]", xlim=(0.0, scene.seconds[-1])
    )
    times = tipping_times(scene)
    times = times[np.isfinite(times).all(axis=1)]
    if len(times):
        common.band(axes["times"], np.arange(DOMINOES), (times - times[:, :1]).T, "C0")
        axes["times"].legend(loc="best")
    axes["times"].set(title="Time of tipping over", xlabel="domino", ylabel="time after the first [s]")
    return common.save_figure(figure, folder, "dominoes.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="dominoes",
        description="Simulates rows of dominoes that fall one after the other.",
        tested="all dominoes fall in order, with a plausible speed of the wave",
        title="row",
        word="fall",
        test_time=TEST_TIME,
        world_count=64,
        num_frames=200,
        build=build,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
    )


if __name__ == "__main__":
    common.run(main)
