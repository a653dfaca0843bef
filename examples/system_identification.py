"""Estimates the masses and centres of mass of the links of an arm from its noisy motion: ``python -m examples.system_identification``.

Every sample of the motion is a world, with the positions, velocities, accelerations and torques that sensors measure. Gradient descent on
the error of the torques of inverse dynamics, through Warp's tape, estimates the parameters. It starts from nominal parameters, as a
drawing of the arm gives them.

Only some combinations of the parameters are identifiable, the "base parameters" (Khalil and Dombre 2002, section 9.3). For example, the
torque of the first hinge, which is vertical, depends on the inertia of the first link about this hinge, but not on its mass. The example
finds these combinations by a singular value decomposition of the derivative of the torques, descends in them alone, and gives each
estimate with its expected error.
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
"""Nominal boxes of the links and their centres [m]."""
MASSES = (4.2, 5.0, 3.0, 2.4, 1.6, 1.4)
"""Nominal masses of the links [kg]."""
LINKS = len(AXES)

PERIOD, HARMONICS, REACH = 6.0, 5, 1.6
"""An exciting motion: a Fourier series of that period [s], up to that angle [rad] (Swevers et al. 1997)."""
NOISE = (1.0e-4, 1.0e-3, 1.0e-2)
"""Standard deviations of measured angles, rates and accelerations [rad, rad/s, rad/s^2]."""
TORQUE_NOISE, TORQUE_FLOOR = 0.01, 0.003
"""Noise of measured torques: a share of the standard deviation of the torque, plus a constant [N m]."""
WRONG_MASS, WRONG_CENTRE = 0.2, 0.025
"""Errors of the nominal parameters: a share of the masses, and a length of the centres of mass [m]."""

LEVER = 0.05
"""The unit of a first moment (mass times centre of mass) is this length [m] times the nominal mass."""
PHASES = (0.1, 0.1, 0.05, 0.02)
"""Step sizes of the phases of the descent."""
WORLD_BYTES = 60_000


def build(worlds: int, device: str, ground: bool = False) -> nl.Model:
    """A model of nominal arms, one in each world, in double precision and with gradients; on the ground for videos."""
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
    if ground:
        scene.add_ground_plane(height=0.16)  # below the first box
    scene.replicate(arm, worlds)
    return scene.finalize(device, dtype=wp.float64, requires_grad=True)


@dataclass
class Motion:
    """Angles, rates, accelerations and torques of the joints, ``[samples, joints]``."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    torque: np.ndarray | None = None

    @classmethod
    def exciting(cls, seconds: np.ndarray, rng: np.random.Generator) -> Motion:
        """A random periodic motion that moves all joints."""
        rate = 2.0 * np.pi / PERIOD * np.arange(1, HARMONICS + 1)
        a, b = rng.normal(size=(2, LINKS, HARMONICS))
        sin, cos = np.sin(np.outer(seconds, rate)), np.cos(np.outer(seconds, rate))
        q = (sin / rate) @ a.T - (cos / rate) @ b.T
        scale = REACH / np.abs(q).max(axis=0)
        return cls(q * scale, (cos @ a.T + sin @ b.T) * scale, ((cos * rate) @ b.T - (sin * rate) @ a.T) * scale)

    def measured(self, rng: np.random.Generator) -> Motion:
        """This motion with the noise of the sensors."""
        noisy = [x + s * rng.normal(size=x.shape) for x, s in zip((self.q, self.qd, self.qdd), NOISE, strict=True)]
        return Motion(*noisy, self.torque + torque_noise(self.torque) * rng.normal(size=self.torque.shape))


def torque_noise(torque: np.ndarray) -> np.ndarray:
    """Standard deviation of the torque sensors, for every joint [N m]."""
    return TORQUE_NOISE * torque.std(axis=0) + TORQUE_FLOOR


class Parameters:
    """Masses and first moments of the links as dimensionless numbers x, ``[4 * links]``, which are zero for the nominal arm.

    The inertia about the centre of mass is proportional to the mass, because the shape of each link is known. Torques are linear in masses
    and first moments, except for the part of the inertia that depends on the centre of mass.
    """

    def __init__(self, model: nl.Model):
        nominal = dynamics.inertial_parameters(model).numpy()[:LINKS]
        self.mass, self.centre = nominal[:, 0], nominal[:, 1:4]
        self.form = nominal[:, 4:] / nominal[:, :1]

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
    """Combinations of x, the best identifiable first.

    Attributes:
        singular: singular values of the derivative of the torques.
        directions: the combinations, as rows.
        rank: number of combinations that are identifiable; these are the first rows.
    """

    singular: np.ndarray
    directions: np.ndarray
    rank: int

    @classmethod
    def of(cls, prediction: Prediction, x: np.ndarray, scale: np.ndarray) -> Base:
        """The combinations at x, with torques divided by `scale`."""
        singular, directions = np.linalg.svd(prediction.derivative(x, scale), full_matrices=False)[1:]
        # singular values of combinations that are not identifiable are rounding errors: 1e-16 of the largest
        rank = int(np.sum(singular > 1.0e-9 * singular[0]))
        return cls(singular, directions, rank)

    def covariance(self) -> np.ndarray:
        """Expected covariance of x in the identifiable combinations, for torque noise of variance 1."""
        scaled = self.directions[: self.rank] / self.singular[: self.rank, None]
        return scaled.T @ scaled

    def known(self) -> np.ndarray:
        """Which entries of x are identifiable by themselves."""
        return np.sum(self.directions[: self.rank] ** 2, axis=0) > 1.0 - 1.0e-9


def descend(prediction: Prediction, torque: np.ndarray, scale: np.ndarray, iterations: int, quiet: bool):
    """Adam (Kingma and Ba 2015) on half the mean square error of the torques, divided by `scale`.

    It descends in the identifiable combinations of x, scaled by the square roots of their singular values to improve the condition.
    Each phase computes them again, because they depend on x.

    Returns:
        x and the mean square error, after every iteration and before the first.
    """
    x, path, losses = np.zeros(4 * LINKS), [], []
    lengths = [len(part) for part in np.array_split(np.arange(iterations), len(PHASES))]
    progress = iter(common.progress(iterations, quiet, "descend"))
    for rate, length in zip(PHASES, lengths, strict=True):
        base = Base.of(prediction, x, scale * np.sqrt(torque.size))
        directions = base.directions[: base.rank].T / np.sqrt(base.singular[: base.rank])
        start, z = x, np.zeros(base.rank)
        mean, square = np.zeros_like(z), np.zeros_like(z)
        for i, _ in zip(range(length), progress, strict=False):
            predicted, back = prediction.torques(x)
            error = (predicted - torque) / scale
            path.append(x)
            losses.append(np.mean(error**2))
            gradient = directions.T @ back(error / scale / error.size).sum(axis=0)
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.99 * square + 0.01 * gradient**2
            step = (mean / (1.0 - 0.9 ** (i + 1))) / (np.sqrt(square / (1.0 - 0.99 ** (i + 1))) + 1.0e-12)
            # the step size falls to zero at the end of a phase, so that the iterates settle
            z = z - rate * 0.5 * (1.0 + np.cos(np.pi * i / length)) * step
            x = start + directions @ z
            # masses stay positive
            x[::4] = np.maximum(x[::4], -0.9)
    path.append(x)
    losses.append(np.mean(((prediction.torques(x)[0] - torque) / scale) ** 2))
    return np.array(path), np.array(losses)


@dataclass
class Result:
    """The estimate and its errors.

    Attributes:
        parameters: the meaning of x.
        true: x of the true arm.
        path: x after every iteration, and before the first, ``[iterations + 1, 4 * links]``.
        losses: mean square errors of the measured torques there, in variances of the sensors' noise.
        floor: mean square error of the true x, which is the noise alone.
        base: the identifiable combinations, with torques divided by the remaining errors.
        distance: root mean square error of the estimate over all identifiable combinations, in expected standard deviations.
        fresh: torques of another motion, without noise: of the true arm, with nominal and with estimated parameters,
            ``[3, samples, joints]``.
        seconds: times of the samples [s].
        motion: the measured motion.
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
    motion: Motion

    def links(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Masses [kg] and centres of mass [m] of the links."""
        vectors = self.parameters.vectors(x)
        return vectors[:, 0], vectors[:, 1:4]

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """Expected standard deviations of masses [kg] and centres of mass [m]; infinite where they are not identifiable by themselves."""
        mass, centre = self.links(self.path[-1])
        scale, covariance, known = self.parameters.mass, self.base.covariance(), self.base.known()
        by_mass, by_centre = np.full(LINKS, np.inf), np.full((LINKS, 3), np.inf)
        for k in range(LINKS):
            own = slice(4 * k, 4 * k + 4)
            if known[own].all():
                # derivatives of the mass and of the centre of mass = first moment / mass
                slopes = scale[k] * np.vstack(
                    [[1.0, 0.0, 0.0, 0.0], np.column_stack([-centre[k], LEVER * np.eye(3)]) / mass[k]]
                )
                deviation = np.sqrt(np.diag(slopes @ covariance[own, own] @ slopes.T))
                by_mass[k], by_centre[k] = deviation[0], deviation[1:]
        return by_mass, by_centre

    def torque_errors(self) -> np.ndarray:
        """Errors of the torques of `fresh`, nominal and estimated, root mean square, over their standard deviations, ``[2, joints]``."""
        arm = self.fresh[0]
        return np.sqrt(np.mean((self.fresh[1:] - arm) ** 2, axis=1)) / arm.std(axis=0)


def identify(samples: int, iterations: int, dt: float, seed: int, device: str, quiet: bool) -> Result:
    """Makes an arm whose parameters differ at random from the nominal ones, moves it, and estimates its parameters."""
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
    # Compared as torques, on which other combinations have no effect. The expected square of each combination is 1.
    distance = np.sqrt(np.sum(((found - arm) / left) ** 2) / base.rank)
    ahead = Prediction(model, parameters, fresh)
    torques = np.array([ahead.torques(x)[0] for x in (true, path[0], path[-1])])
    return Result(parameters, true, path, losses, float(floor), base, float(distance), torques, seconds, measured)


def report(result: Result, busy: float, device) -> None:
    """Prints the estimate."""
    (true, centre), (nominal, _), (found, place) = (
        result.links(x) for x in (result.true, result.path[0], result.path[-1])
    )
    sure, spread = result.expected()
    before, after = 100.0 * result.torque_errors()
    rows = [
        ("identifiable", f"{result.base.rank} of {4 * LINKS} parameters, or combinations of them"),
        (
            "mean square error",
            f"{result.losses[0]:.0f} -> {result.losses[-1]:.3f} [noise variances]; {result.floor:.3f} with the true parameters",
        ),
        (
            "error of estimate",
            f"{result.distance:.2f} expected standard deviations, root mean square over all combinations",
        ),
        ("other motion", f"largest torque error {before.max():.0f} % -> {after.max():.2f} % of a joint's torque"),
    ]
    for k in range(LINKS):
        off, about = 1000.0 * np.linalg.norm(place[k] - centre[k]), 1000.0 * np.linalg.norm(spread[k])
        known = f"+- {sure[k]:.3f} kg; centre of mass: error {off:.1f} mm, expected {about:.1f} mm"
        known = known if np.isfinite(sure[k]) else "kg (not identifiable by itself)"
        rows.append(
            (
                f"link {k + 1}",
                f"mass: true {true[k]:.3f} kg, nominal {nominal[k]:.3f}, estimated {found[k]:.3f} {known}",
            )
        )
    rows.append(("throughput", f"{(len(result.path) - 1) * len(result.seconds) / busy:,.0f} gradients/s"))
    common.summary(
        f"Identification of an arm from {common.count_text(len(result.seconds), 'sample')}, "
        f"{len(result.path) - 1} iterations, {device}",
        rows,
    )


def check(result: Result) -> None:
    """Compares the estimate with the true arm.

    Raises:
        AssertionError: an error is larger than expected; the message names it.
    """
    assert result.base.rank == 4 * LINKS - 3, f"{result.base.rank} combinations are identifiable, not {4 * LINKS - 3}"
    assert result.losses[-1] < 1.01 * result.floor, (
        f"the final mean square error is {result.losses[-1] / result.floor:.2f} times that of the true parameters"
    )
    # 1 is expected; the noise of angles and rates, which differs between samples, adds to it
    assert result.distance < 2.5, f"the error of the estimate is {result.distance:.1f} standard deviations"
    (true, centre), (found, place) = (result.links(x) for x in (result.true, result.path[-1]))
    sure, spread = result.expected()
    for k in range(1, LINKS):
        off = abs(found[k] - true[k])
        assert off < 6.0 * sure[k], f"the mass of link {k + 1} is {true[k]:.3f} kg, not {found[k]:.3f} +- {sure[k]:.3f}"
        off = np.abs(place[k] - centre[k])
        assert (off < 6.0 * spread[k]).all(), (
            f"the centre of mass of link {k + 1} is {1000 * off} mm off, +- {1000 * spread[k]}"
        )
    # the last two links are well identifiable
    share, off = np.abs(found / true - 1.0)[-2:], np.linalg.norm(place - centre, axis=1)[-2:]
    assert share.max() < 0.05, f"the errors of the last two masses are {100 * share} %"
    assert off.max() < 0.005, f"the errors of the last two centres of mass are {1000 * off} mm"
    worst = result.torque_errors()[1].max()
    assert worst < 0.01, f"the torques of another motion have an error of {100 * worst:.1f} %"


def plot(result: Result, folder: Path) -> Path:
    """Plots the descent and the torques of another motion; returns the path of the PNG."""
    figure, axes = common.new_figure(
        [["loss", "mass", "centre"], ["torque", "torque", "joint"]], figsize=(12, 6.8), width_ratios=(1.0, 1.0, 1.0)
    )
    steps = np.arange(len(result.path))
    axes["loss"].semilogy(steps, result.losses, color="C0")
    axes["loss"].axhline(result.floor, color="0.4", lw=1.0, ls="--", label="true parameters: noise alone")
    axes["loss"].set(title="Torque error", xlabel="iteration", ylabel="mean square error [noise variances]")
    axes["loss"].legend()
    links = [result.links(x) for x in result.path]
    mass, centre = result.links(result.true)
    for k in range(1, LINKS):
        axes["mass"].plot(steps, [m[k] for m, _ in links], color=f"C{k}", label=f"link {k + 1}")
        axes["mass"].axhline(mass[k], color=f"C{k}", lw=1.0, ls=":")
        off = 1000.0 * np.array([np.linalg.norm(c[k] - centre[k]) for _, c in links])
        axes["centre"].semilogy(steps, off, color=f"C{k}")
    axes["mass"].set(title="Masses (dotted: true)", xlabel="iteration", ylabel="estimated mass [kg]")
    axes["mass"].legend(loc="upper right", ncols=2, fontsize=7)
    axes["centre"].set(title="Centres of mass", xlabel="iteration", ylabel="error [mm]")
    for k, j in enumerate((1, 2, 0)):
        axes["torque"].plot(result.seconds, result.fresh[0, :, j], color=f"C{k}", lw=4.0, alpha=0.3)
        axes["torque"].plot(result.seconds, result.fresh[1, :, j], color=f"C{k}", lw=0.9, ls="--")
        axes["torque"].plot(result.seconds, result.fresh[2, :, j], color=f"C{k}", lw=1.1, label=f"joint {j + 1}")
    axes["torque"].set(
        title="Torques of another motion (wide: true, dashed: nominal, thin: estimated)",
        xlabel="time [s]", ylabel="torque [N m]", xlim=(result.seconds[0], max(result.seconds[-1], 1.0e-3)),
    )  # fmt: skip
    axes["torque"].legend(loc="upper right", ncols=3, fontsize=7)
    before, after = 100.0 * result.torque_errors()
    joints = np.arange(LINKS)
    axes["joint"].bar(joints - 0.2, before, 0.4, color="0.75", label="nominal")
    axes["joint"].bar(joints + 0.2, after, 0.4, color="C0", label="estimated")
    axes["joint"].set(
        title="Torque errors of this motion", xlabel="joint", ylabel="error [% of the torque]", yscale="log"
    )
    axes["joint"].set_xticks(joints, [str(j + 1) for j in joints])
    axes["joint"].legend(loc="upper left", ncols=2, fontsize=7)
    return common.save_figure(figure, folder, "system_identification.png")


def film(result: Result, args) -> None:
    """Draws the measured motion as a video, where ``--viewer`` asks for one."""
    model = build(1, "cpu", ground=True)
    if recorder := common.video(args, model, "system_identification", azimuth=-60.0, size=(480, 400)):
        state = model.state(requires_grad=False)
        for seconds, angles in zip(result.seconds, result.motion.q, strict=True):
            state.joint_q.assign(angles)
            nl.eval_fk(model, state.joint_q, state.joint_qd, state)
            recorder.record(state, seconds)
        common.save_video(recorder, args.quiet)


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    options = common.parser(
        "Estimates the masses of the links of an arm from its noisy motion.", world_count=2048, num_frames=400,
        worlds="samples of the motion, each a world", frames="iterations", dt="time between samples",
    )  # fmt: skip
    options.add_argument(
        "--test",
        action="store_true",
        help="fail if the errors of the estimated masses and centres of mass are too large",
    )
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
    film(result, args)
    if args.test:
        common.verdict(lambda: check(result))


if __name__ == "__main__":
    common.run(main)
