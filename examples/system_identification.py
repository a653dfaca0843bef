"""An arm moves, and from its noisy motion come the masses of its links: ``python -m examples.system_identification``.

Every sample of the motion is a world: positions, velocities, accelerations and torques as sensors give them. The masses and
centres of mass of the links are found by gradient descent on the torques that inverse dynamics predicts, through Warp's tape.

What can be found at all are combinations of parameters ("base parameters", Khalil and Dombre 2002, section 9.3): nothing that the first
link weighs is felt by its vertical hinge but its inertia about it. The example takes these combinations from the singular
vectors of the derivative of the torques, descends in them alone, and gives every number with the error that is to be expected of it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import warp as wp

import newton_like as nl
from examples import common
from newton_like import dynamics

AXES = ("z", "y", "y", "x", "y", "x")
ANCHORS = ((0, 0, 0.2), (0, 0.08, 0.12), (0, -0.02, 0.42), (0, 0, 0.08), (0.3, 0, 0), (0.12, 0, 0))
"""Hinges of the arm, seen from the link before [m]."""
SIZES = ((0.1, 0.1, 0.18), (0.1, 0.1, 0.45), (0.2, 0.08, 0.1), (0.3, 0.08, 0.08), (0.14, 0.1, 0.1), (0.18, 0.1, 0.12))
MIDDLES = ((0.015, 0.03, 0.05), (0, 0.02, 0.2), (0.06, 0, 0.03), (0.12, 0, 0), (0.05, 0, 0), (0.07, 0, 0))
"""Boxes of the links and their middles, as in a drawing [m]."""
MASSES = (4.2, 5.0, 3.0, 2.4, 1.6, 1.4)
"""What the drawing says that they weigh [kg]."""
LINKS = len(AXES)

PERIOD, HARMONICS, REACH = 6.0, 5, 1.6
"""An exciting motion: a Fourier series of that period [s], up to that angle [rad] (Swevers et al. 1997)."""
NOISE = (1.0e-4, 1.0e-3, 1.0e-2)
"""Of measured angles, rates and accelerations [rad, rad/s, rad/s^2]."""
TORQUE_NOISE, TORQUE_FLOOR = 0.01, 0.003
"""Of measured torques: a share of what a joint usually bears, and something more [N m]."""
WRONG_MASS, WRONG_CENTRE = 0.2, 0.025
"""How wrong the drawing is: a share of the masses, and a length [m]."""

LEVER = 0.05
"""First moments (mass times centre of mass) are counted in these [m] times the mass of the drawing."""
PHASES = (0.1, 0.1, 0.05, 0.02)
"""Rates of the descent, one phase after the other."""
WORLD_BYTES = 60_000


def build(worlds: int, device: str) -> nl.Model:
    """A model of arms as in the drawing, one a world, in double precision and with gradients."""
    arm, joints, parent = nl.ModelBuilder(), [], -1
    for axis, anchor, size, middle, mass in zip(AXES, ANCHORS, SIZES, MIDDLES, MASSES, strict=True):
        link = arm.add_link(label=f"link {len(joints) + 1}")
        hx, hy, hz = np.multiply(size, 0.5)
        solid = nl.ShapeConfig(density=mass / np.prod(size))
        arm.add_shape_box(link, xform=(*middle, 0, 0, 0, 1), hx=hx, hy=hy, hz=hz, cfg=solid)
        joints.append(arm.add_joint_revolute(parent, link, axis=axis, parent_xform=(*anchor, 0, 0, 0, 1)))
        parent = link
    arm.add_articulation(joints)
    scene = nl.ModelBuilder()
    scene.replicate(arm, worlds)
    return scene.finalize(device, dtype=wp.float64, requires_grad=True)


@dataclass
class Motion:
    """Angles, rates and accelerations of the joints, and what torques are measured there, ``[samples, joints]``."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    torque: np.ndarray | None = None

    @classmethod
    def exciting(cls, seconds: np.ndarray, rng: np.random.Generator) -> Motion:
        """A random periodic motion that shakes everything."""
        rate = 2.0 * np.pi / PERIOD * np.arange(1, HARMONICS + 1)
        a, b = rng.normal(size=(2, LINKS, HARMONICS))
        sin, cos = np.sin(np.outer(seconds, rate)), np.cos(np.outer(seconds, rate))
        q = (sin / rate) @ a.T - (cos / rate) @ b.T
        scale = REACH / np.abs(q).max(axis=0)
        return cls(q * scale, (cos @ a.T + sin @ b.T) * scale, ((cos * rate) @ b.T - (sin * rate) @ a.T) * scale)

    def measured(self, rng: np.random.Generator) -> Motion:
        """The same as sensors see it."""
        noisy = [x + s * rng.normal(size=x.shape) for x, s in zip((self.q, self.qd, self.qdd), NOISE, strict=True)]
        return Motion(*noisy, self.torque + torque_noise(self.torque) * rng.normal(size=self.torque.shape))


def torque_noise(torque: np.ndarray) -> np.ndarray:
    """Standard deviation of the torque sensors, for every joint [N m]."""
    return TORQUE_NOISE * torque.std(axis=0) + TORQUE_FLOOR


class Parameters:
    """Masses and first moments of the links as numbers x of about one, zero for the drawing, ``[4 * links]``.

    The form of the links is known, so that their inertia about the centre of mass goes with the mass. Torques are linear in masses and
    first moments but for what the centre of mass adds to the inertia.
    """

    def __init__(self, model: nl.Model):
        drawn = dynamics.inertial_parameters(model).numpy()[:LINKS]
        self.mass, self.centre = drawn[:, 0], drawn[:, 1:4]
        self.form = drawn[:, 4:] / drawn[:, :1]

    def numbers(self, mass: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """x of masses and centres of mass."""
        moment = mass[:, None] * centre / self.mass[:, None] - self.centre
        return np.concatenate([(mass / self.mass - 1.0)[:, None], moment / LEVER], axis=1).ravel()

    def vectors(self, x: np.ndarray) -> np.ndarray:
        """Mass, centre of mass and inertia of every link, ``[links, 10]``, as :func:`dynamics.inertial_parameters` has them."""
        change = x.reshape(LINKS, 4)
        mass = self.mass * (1.0 + change[:, 0])
        centre = self.mass[:, None] * (self.centre + LEVER * change[:, 1:]) / mass[:, None]
        return np.concatenate([mass[:, None], centre, mass[:, None] * self.form], axis=1)

    def chain(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Gradients with respect to x from those with respect to `vectors`, ``[samples, links, 10]``."""
        vectors = self.vectors(x)
        share = gradient[..., 1:4] / vectors[:, :1]
        by_mass = gradient[..., 0] + np.sum(gradient[..., 4:] * self.form, axis=-1)
        by_mass = by_mass - np.sum(share * vectors[:, 1:4], axis=-1)
        whole = np.concatenate([by_mass[..., None], LEVER * share], axis=-1) * self.mass[:, None]
        return whole.reshape(len(gradient), -1)


class Prediction:
    """Torques of a motion as a function of x, with derivatives: all samples at once, each in a world of its own."""

    def __init__(self, model: nl.Model, parameters: Parameters, motion: Motion):
        self.model, self.parameters = model, parameters
        self.state = model.state(requires_grad=False)
        self.state.joint_q.assign(motion.q.ravel())
        self.state.joint_qd.assign(motion.qd.ravel())
        self.acceleration = wp.array(motion.qdd.ravel(), dtype=model.dtype, device=model.device)

    def torques(self, x: np.ndarray):
        """Torques ``[samples, joints]``, and a function that takes gradients with respect to them back to x, ``[samples, len(x)]``."""
        vectors = np.tile(self.parameters.vectors(x), (self.model.world_count, 1))
        values = wp.array(vectors, dtype=self.model.dtype, device=self.model.device, requires_grad=True)
        with wp.Tape() as tape:
            dynamics.set_inertial_parameters(self.model, values)
            torque = dynamics.inverse_dynamics(self.model, self.state, self.acceleration)

        def back(gradient: np.ndarray) -> np.ndarray:
            tape.zero()
            tape.backward(grads={torque: wp.array(gradient, dtype=self.model.dtype, device=self.model.device)})
            return self.parameters.chain(x, values.grad.numpy().reshape(-1, LINKS, 10))

        return torque.numpy(), back

    def derivative(self, x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Derivative of all torques over `scale` with respect to x, by one pass backward for each joint."""
        back, rows = self.torques(x)[1], []
        for j in range(LINKS):
            seed = np.zeros((self.model.world_count, LINKS))
            seed[:, j] = 1.0 / scale[j]
            rows.append(back(seed))
        return np.concatenate(rows)


@dataclass
class Base:
    """Combinations of x that a motion tells, the strongest first: rows of `ways` with their singular values; the others say nothing."""

    singular: np.ndarray
    ways: np.ndarray
    rank: int

    @classmethod
    def of(cls, prediction: Prediction, x: np.ndarray, scale: np.ndarray) -> Base:
        """Those of the torques' derivative at x."""
        singular, ways = np.linalg.svd(prediction.derivative(x, scale), full_matrices=False)[1:]
        # what is not felt comes out as rounding: 1e-16 of the largest
        rank = int(np.sum(singular > 1.0e-9 * singular[0]))
        return cls(singular, ways, rank)

    def covariance(self) -> np.ndarray:
        """Of x to be expected of noise of one, as far as it is felt."""
        felt = self.ways[: self.rank] / self.singular[: self.rank, None]
        return felt.T @ felt

    def known(self) -> np.ndarray:
        """Which numbers have no part that is not felt."""
        return np.sum(self.ways[: self.rank] ** 2, axis=0) > 1.0 - 1.0e-9


def descend(prediction: Prediction, torque: np.ndarray, scale: np.ndarray, iterations: int, quiet: bool):
    """Adam (Kingma and Ba 2015) on half the mean square error of the torques, counted in `scale`.

    It descends in combinations of x that are felt, weighted so that strong and weak ones are closer to each other; they are
    taken anew in every phase, as they depend on x.

    Returns:
        x and the mean square error, after every iteration and before the first.
    """
    x, path, losses = np.zeros(4 * LINKS), [], []
    lengths = [len(part) for part in np.array_split(np.arange(iterations), len(PHASES))]
    progress = iter(common.progress(iterations, quiet, "descend"))
    for rate, length in zip(PHASES, lengths, strict=True):
        base = Base.of(prediction, x, scale * np.sqrt(torque.size))
        ways = base.ways[: base.rank].T / np.sqrt(base.singular[: base.rank])
        start, z = x, np.zeros(base.rank)
        mean, square = np.zeros_like(z), np.zeros_like(z)
        for i, _ in zip(range(length), progress, strict=False):
            predicted, back = prediction.torques(x)
            error = (predicted - torque) / scale
            path.append(x)
            losses.append(np.mean(error**2))
            gradient = ways.T @ back(error / scale / error.size).sum(axis=0)
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.99 * square + 0.01 * gradient**2
            step = (mean / (1.0 - 0.9 ** (i + 1))) / (np.sqrt(square / (1.0 - 0.99 ** (i + 1))) + 1.0e-12)
            # the rate fades, so that steps end where they should
            z = z - rate * 0.5 * (1.0 + np.cos(np.pi * i / length)) * step
            x = start + ways @ z
            # no link is without mass
            x[::4] = np.maximum(x[::4], -0.9)
    path.append(x)
    losses.append(np.mean(((prediction.torques(x)[0] - torque) / scale) ** 2))
    return np.array(path), np.array(losses)


@dataclass
class Result:
    """What was found, and what it is compared with.

    Attributes:
        parameters: what x means.
        true: x of the arm.
        path: x after every iteration, and before the first, ``[iterations + 1, 4 * links]``.
        losses: mean square errors of the measured torques there, in noises of their sensors; `floor`: that of the true x.
        base: what the motion tells, in units of the errors that are left.
        distance: how far what was found is from the arm, in all combinations that are felt: root mean square, in standard deviations
            to be expected.
        fresh: torques of another motion, without noise: of the arm, as drawn and as found, ``[3, samples, joints]``.
        seconds: when these are.
    """

    parameters: Parameters
    true: np.ndarray
    path: np.ndarray
    losses: np.ndarray
    floor: float
    base: Base
    distance: float
    fresh: np.ndarray
    seconds: np.ndarray

    def links(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Masses [kg] and centres of mass [m] of the links."""
        vectors = self.parameters.vectors(x)
        return vectors[:, 0], vectors[:, 1:4]

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard deviations to be expected of masses [kg] and centres of mass [m]; infinite where they are not felt alone."""
        mass, centre = self.links(self.path[-1])
        scale, covariance, known = self.parameters.mass, self.base.covariance(), self.base.known()
        by_mass, by_centre = np.full(LINKS, np.inf), np.full((LINKS, 3), np.inf)
        for k in range(LINKS):
            own = slice(4 * k, 4 * k + 4)
            if known[own].all():
                # mass, and centre of mass = first moment / mass, by those numbers
                slopes = scale[k] * np.vstack(
                    [[1.0, 0.0, 0.0, 0.0], np.column_stack([-centre[k], LEVER * np.eye(3)]) / mass[k]]
                )
                deviation = np.sqrt(np.diag(slopes @ covariance[own, own] @ slopes.T))
                by_mass[k], by_centre[k] = deviation[0], deviation[1:]
        return by_mass, by_centre

    def torque_errors(self) -> np.ndarray:
        """Errors of the torques of the fresh motion, as drawn and as found, shares of what joints bear, ``[2, joints]``."""
        arm = self.fresh[0]
        return np.sqrt(np.mean((self.fresh[1:] - arm) ** 2, axis=1)) / arm.std(axis=0)


def identify(samples: int, iterations: int, dt: float, seed: int, device: str, quiet: bool) -> Result:
    """Draws an arm that is not quite as in the drawing, moves it, and finds out what it weighs."""
    rng = np.random.default_rng(seed)
    model = build(samples, device)
    parameters = Parameters(model)
    mass = parameters.mass * np.exp(WRONG_MASS * rng.normal(size=LINKS))
    true = parameters.numbers(mass, parameters.centre + WRONG_CENTRE * rng.normal(size=(LINKS, 3)))

    seconds = dt * np.arange(samples)
    motion, fresh = Motion.exciting(seconds, rng), Motion.exciting(seconds, rng)
    motion.torque = Prediction(model, parameters, motion).torques(true)[0]
    measured = motion.measured(rng)
    prediction, scale = Prediction(model, parameters, measured), torque_noise(measured.torque)
    path, losses = descend(prediction, measured.torque, scale, iterations, quiet)

    found, arm = prediction.torques(path[-1])[0], prediction.torques(true)[0]
    floor = np.mean(((arm - measured.torque) / scale) ** 2)
    left = np.maximum(np.sqrt(np.mean((found - measured.torque) ** 2, axis=0)), 1.0e-9)
    base = Base.of(prediction, path[-1], left)
    # both as torques, of which parameters that are not felt are no part: of each combination one square is expected
    distance = np.sqrt(np.sum(((found - arm) / left) ** 2) / base.rank)
    ahead = Prediction(model, parameters, fresh)
    torques = np.array([ahead.torques(x)[0] for x in (true, path[0], path[-1])])
    return Result(parameters, true, path, losses, float(floor), base, float(distance), torques, seconds)


def report(result: Result, busy: float, device) -> None:
    """Prints what was found."""
    (true, centre), (drawn, _), (found, place) = (
        result.links(x) for x in (result.true, result.path[0], result.path[-1])
    )
    sure, spread = result.expected()
    before, after = 100.0 * result.torque_errors()
    rows = [
        ("felt", f"{result.base.rank} of {4 * LINKS} parameters, or combinations of them"),
        (
            "mean square error",
            f"{result.losses[0]:.0f} -> {result.losses[-1]:.3f} noises of the sensors; of the arm itself {result.floor:.3f}",
        ),
        ("combinations", f"{result.distance:.2f} standard deviations off, root mean square"),
        ("torques elsewhere", f"{before.max():.0f} % -> {after.max():.2f} % wrong on another motion, the worst joint"),
    ]
    for k in range(LINKS):
        off, about = 1000.0 * np.linalg.norm(place[k] - centre[k]), 1000.0 * np.linalg.norm(spread[k])
        known = f"+- {sure[k]:.3f} kg, centre of mass {off:.1f} mm off (+- {about:.1f})"
        known = known if np.isfinite(sure[k]) else "kg: cannot be known alone"
        rows.append((f"link {k + 1}", f"{true[k]:.3f} kg, drawn {drawn[k]:.3f}, found {found[k]:.3f} {known}"))
    rows.append(("throughput", f"{(len(result.path) - 1) * len(result.seconds) / busy:,.0f} gradients/s"))
    common.summary(
        f"Identification of an arm from {common.count_text(len(result.seconds), 'sample')}, "
        f"{len(result.path) - 1} iterations, {device}",
        rows,
    )


def check(result: Result) -> None:
    """Fails where what is claimed is not found.

    Raises:
        AssertionError: says what.
    """
    assert result.base.rank == 4 * LINKS - 3, f"{result.base.rank} combinations are felt, not {4 * LINKS - 3}"
    assert result.losses[-1] < 1.01 * result.floor, (
        f"the descent ended at {result.losses[-1] / result.floor:.2f} times the least"
    )
    # one is expected; noise of angles and rates adds to it, which is not the same in all samples
    assert result.distance < 2.5, f"combinations are {result.distance:.1f} standard deviations off"
    (true, centre), (found, place) = (result.links(x) for x in (result.true, result.path[-1]))
    sure, spread = result.expected()
    for k in range(1, LINKS):
        off = abs(found[k] - true[k])
        assert off < 6.0 * sure[k], f"link {k + 1} weighs {true[k]:.3f} kg, not {found[k]:.3f} +- {sure[k]:.3f}"
        off = np.abs(place[k] - centre[k])
        assert (off < 6.0 * spread[k]).all(), (
            f"the centre of mass of link {k + 1} is {1000 * off} mm off, +- {1000 * spread[k]}"
        )
    # the last two links are felt well by themselves
    share, off = np.abs(found / true - 1.0)[-2:], np.linalg.norm(place - centre, axis=1)[-2:]
    assert share.max() < 0.05, f"the last two masses are {100 * share} % off"
    assert off.max() < 0.005, f"the last two centres of mass are {1000 * off} mm off"
    worst = result.torque_errors()[1].max()
    assert worst < 0.01, f"torques of another motion are {100 * worst:.1f} % off"


def plot(result: Result, folder: Path) -> Path:
    """Draws the descent, and the torques of another motion; returns the path of the PNG."""
    figure, axes = common.new_figure(
        [["loss", "mass", "centre"], ["torque", "torque", "joint"]], figsize=(12, 6.8), width_ratios=(1.0, 1.0, 1.0)
    )
    steps, felt = np.arange(len(result.path)), range(1, LINKS)
    axes["loss"].semilogy(steps, result.losses, color="C0")
    axes["loss"].axhline(result.floor, color="0.4", lw=1.0, ls="--", label="the arm itself: noise alone")
    axes["loss"].set(title="Error of the torques", xlabel="iteration", ylabel="mean square, in noises of the sensors")
    axes["loss"].legend()
    links = [result.links(x) for x in result.path]
    mass, centre = result.links(result.true)
    for k in felt:
        axes["mass"].plot(steps, [m[k] for m, _ in links], color=f"C{k}", label=f"link {k + 1}")
        axes["mass"].axhline(mass[k], color=f"C{k}", lw=1.0, ls=":")
        off = 1000.0 * np.array([np.linalg.norm(c[k] - centre[k]) for _, c in links])
        axes["centre"].semilogy(steps, off, color=f"C{k}")
    axes["mass"].set(title="Masses (dotted: of the arm)", xlabel="iteration", ylabel="kg")
    axes["mass"].legend(loc="upper right", ncols=2, fontsize=7)
    axes["centre"].set(title="Errors of the centres of mass", xlabel="iteration", ylabel="mm")
    for k, j in enumerate((1, 2, 0)):
        axes["torque"].plot(result.seconds, result.fresh[0, :, j], color=f"C{k}", lw=4.0, alpha=0.3)
        axes["torque"].plot(result.seconds, result.fresh[1, :, j], color=f"C{k}", lw=0.9, ls="--")
        axes["torque"].plot(result.seconds, result.fresh[2, :, j], color=f"C{k}", lw=1.1, label=f"joint {j + 1}")
    axes["torque"].set(
        title="Torques of a motion that was not learnt from (wide: the arm, dashed: drawn, thin: found)",
        xlabel="s", ylabel="N m", xlim=(result.seconds[0], max(result.seconds[-1], 1.0e-3)),
    )  # fmt: skip
    axes["torque"].legend(loc="upper right", ncols=3, fontsize=7)
    before, after = 100.0 * result.torque_errors()
    joints = np.arange(LINKS)
    axes["joint"].bar(joints - 0.2, before, 0.4, color="0.75", label="drawn")
    axes["joint"].bar(joints + 0.2, after, 0.4, color="C0", label="found")
    axes["joint"].set(title="Errors of these torques", xlabel="joint", ylabel="% of what the joint bears", yscale="log")
    axes["joint"].set_xticks(joints, [str(j + 1) for j in joints])
    axes["joint"].legend(loc="upper left", ncols=2, fontsize=7)
    return common.save_figure(figure, folder, "system_identification.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    options = common.parser(
        "An arm finds out what its links weigh.", world_count=2048, num_frames=400,
        worlds="samples of the motion, each a world", frames="iterations", dt="time between samples",
    )  # fmt: skip
    options.add_argument("--test", action="store_true", help="fail unless masses and centres of mass are found")
    args = options.parse_args(arguments)
    common.prepare(options, args, WORLD_BYTES)
    common.say(
        f"building {common.count_text(args.world_count, 'world')}; kernels are compiled the first time ...", args.quiet
    )
    begin = time.perf_counter()
    result = identify(args.world_count, args.num_frames, args.dt, args.seed, args.device, args.quiet)
    report(result, time.perf_counter() - begin, args.device)
    if args.viewer == "plot":
        print(f"  plot in {plot(result, args.output_path)}")
    if args.test:
        common.verdict(lambda: check(result))


if __name__ == "__main__":
    common.run(main)
