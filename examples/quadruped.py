"""Quadrupeds trot over level ground, each with a slightly different initial state: ``python -m examples.quadruped``.

With ``--terrain 0.04`` the ground is a height field with hills and hollows of up to 4 cm. The gait is open loop (``examples.gait``): the
drives of the joints follow foot paths that depend on time only. There is no feedback control of the trunk.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import warp as wp
from scipy.ndimage import gaussian_filter

import newton_like as nl
from examples import common
from examples.gait import LEGS, Trot
from newton_like import assets
from newton_like.solvers import SolverFeatherstone
from newton_like.viewer import VideoRecorder

CONTROL = 1.0 / 120.0
"""Interval between new targets of the drives [s]; rounded up to a multiple of the time step."""
FRAME = 2
"""Control intervals in a frame."""
FOOT_RADIUS = 0.02
TOUCHING = 1.0
"""A foot counts as on the ground when it carries more than this [N]."""
ARMATURE = 0.005
STIFFNESS, DAMPING = 200.0, 4.0
"""Gains of the drives [N m/rad], [N m s/rad]: critical for a leg of 0.02 kg m^2 seen from its hip, and soft enough to give when a
foot touches down. With twice the stiffness, the trunk bounces from foot to foot."""
BENCHMARK_TIME = 40.0
"""Longest motion that a benchmark on hills simulates [s]: the robots stay on the terrain."""
TEST_TIME, TEST_DISTANCE, TEST_TILT = 5.0, 0.5, 30.0
ROW = 4
"""Robots that a video shows side by side."""
LOOK = {"spacing": (0.0, 0.55, 0.0), "azimuth": -40.0, "elevation": 22.0, "size": (560, 320)}
"""Distance between them [m], direction of the camera [degrees] and size of the video [pixels]."""
CELL, HILL, LEVEL = 0.125, 0.25, 0.5
"""Grid spacing of the terrain [m], the length over which its heights differ [m], and the radius of the level start [m]."""
WORLD_BYTES, FRAME_BYTES = 80_000, 64
"""Memory of a world while it is built, and of each recorded frame."""

Targets = wp.types.vector(12, float)


@wp.kernel(enable_backward=False)
def set_targets(
    q: Targets,
    qd: Targets,
    coords: int,
    dofs: int,
    # Control out:
    joint_target_q: wp.array[float],
    joint_target_qd: wp.array[float],
):
    """The same targets for the last twelve joints of every world."""
    world = wp.tid()
    for i in range(12):
        joint_target_q[world * coords + coords - 12 + i] = q[i]
        joint_target_qd[world * dofs + dofs - 12 + i] = qd[i]


class Walk:
    """The scene, the solver, and recorded data of the walk.

    Attributes:
        ready: wall time that building and compiling took [s].
        position: of the trunks, ``[frames, worlds, 3]`` [m].
        tilt: angle between the trunks' and the world's up, ``[frames, worlds]`` [rad].
        load: vertical contact force of each foot, ``[frames, worlds, 4]`` [N].
        leg_q, leg_target: joint angles (hip, thigh, calf) of the front left leg of world 0, and their targets half a
            control interval earlier, ``[frames, 3]`` [rad].
    """

    def __init__(
        self,
        worlds: int,
        dt: float,
        device: str,
        seed: int,
        gait: Trot | None = None,
        terrain: nl.Heightfield | None = None,
    ):
        begin = time.perf_counter()
        self.worlds, self.dt, self.gait = worlds, dt, gait or Trot()
        self.substeps, self.frame_time = timing(dt)
        self.time = 0.0

        robot = nl.ModelBuilder()
        robot.default_joint_cfg.armature = ARMATURE
        robot.default_joint_cfg.target_ke = STIFFNESS
        robot.default_joint_cfg.target_kd = DAMPING
        robot.default_joint_cfg.actuator_mode = nl.JointTargetMode.POSITION_VELOCITY
        height = self.gait.height + FOOT_RADIUS
        self.robot = robot.add_urdf(
            assets.path("quadruped.urdf"), xform=(0, 0, height, 0, 0, 0, 1), floating=True, collapse_fixed_joints=True
        )
        robot.joint_q[7:] = self.gait.standing()
        scene = nl.ModelBuilder()
        if terrain is None:
            scene.add_ground_plane()
        else:
            scene.add_shape_heightfield(heightfield=terrain, color=(0.62, 0.58, 0.50))
        scene.replicate(robot, worlds)
        scene.joint_q = different_starts(np.reshape(scene.joint_q, (worlds, -1)), seed).ravel()
        self.model = scene.finalize(device)

        self.state, self.control = self.model.state(), self.model.control()
        self.solver = SolverFeatherstone(self.model)
        self.solver.reset(self.state)
        start = self.model.shape_world_start.numpy()[:worlds, None]
        self.feet = start + [self.robot.shapes[f"{leg}_foot"][0] for leg in LEGS]
        self.position, self.tilt, self.load, self.leg_q, self.leg_target = [], [], [], [], []
        self.warm_up()
        self.observe()
        self.ready = time.perf_counter() - begin

    def warm_up(self) -> None:
        """Steps a copy of the state once, which compiles what is not in the kernel cache yet."""
        self.set_targets()
        copy = self.state.clone()
        self.solver.step(copy, copy, self.control, None, self.dt)
        self.solver.reset(copy)
        wp.synchronize_device(self.model.device)

    def set_targets(self) -> None:
        """Targets of the middle of the control interval that comes."""
        q, qd = self.gait.targets(self.time + 0.5 * self.substeps * self.dt)
        coords, dofs = self.model.joint_coord_count // self.worlds, self.model.joint_dof_count // self.worlds
        wp.launch(
            set_targets,
            dim=self.worlds,
            inputs=[Targets(*q), Targets(*qd), coords, dofs],
            outputs=[self.control.joint_target_q, self.control.joint_target_qd],
            device=self.model.device,
        )

    def advance(self) -> None:
        """One frame."""
        for _ in range(FRAME):
            self.set_targets()
            for _ in range(self.substeps):
                self.solver.step(self.state, self.state, self.control, None, self.dt)
            self.time += self.substeps * self.dt

    def observe(self) -> None:
        """Records trunks, feet and joints."""
        body_q = self.state.body_q.numpy().reshape(self.worlds, -1, 7)
        trunk = body_q[:, self.robot.links["trunk"]]
        self.position.append(trunk[:, :3].copy())
        self.tilt.append(np.arccos(np.clip(1.0 - 2.0 * (trunk[:, 3] ** 2 + trunk[:, 4] ** 2), -1.0, 1.0)))
        self.load.append(self.solver.contact_forces().numpy()[self.feet, 2])
        joint_q, target_q = self.state.joint_q.numpy(), self.control.joint_target_q.numpy()
        self.leg_q.append(joint_q[7:10].copy())
        self.leg_target.append(target_q[7:10].copy())

    @property
    def title(self) -> str:
        """``4096 quadrupeds``."""
        return common.count_text(self.worlds, "quadruped")

    @property
    def touching(self) -> np.ndarray:
        """Which feet are on the ground, ``[frames, worlds, 4]``."""
        return np.array(self.load) > TOUCHING

    def travelled(self) -> tuple[np.ndarray, np.ndarray]:
        """Distances forward (in the initial heading of the trunk) and to the left, ``[frames, worlds]`` [m]."""
        x, y, z, w = self.model.joint_q.numpy().reshape(self.worlds, -1)[:, 3:7].T
        yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        way = np.array(self.position)[..., :2] - self.position[0][:, :2]
        ahead = np.stack([np.cos(yaw), np.sin(yaw)], axis=1)
        left = np.stack([-np.sin(yaw), np.cos(yaw)], axis=1)
        return np.sum(way * ahead, axis=2), np.sum(way * left, axis=2)


def hills(height: float, reach: float, seed: int) -> nl.Heightfield:
    """A square of smooth random terrain around a level start.

    Args:
        height: difference between the highest and the lowest point [m].
        reach: half its side [m].
        seed: of the heights.
    """
    count = 2 * int(np.ceil(reach / CELL)) + 1
    heights = gaussian_filter(np.random.default_rng(seed).normal(size=(count, count)), HILL / CELL)
    heights *= height / np.ptp(heights)
    at = CELL * (np.arange(count) - count // 2)
    heights -= heights[count // 2, count // 2]
    heights *= np.clip(np.hypot(*np.meshgrid(at, at)) / LEVEL - 1.0, 0.0, 1.0)
    return nl.Heightfield(heights, count, count, at[-1], at[-1])


def timing(dt: float) -> tuple[int, float]:
    """Steps in a control interval, and the length of a frame [s]: 1/60 s where the time step divides 1/120 s."""
    substeps = common.steps_in(CONTROL, dt)
    return substeps, FRAME * substeps * dt


def different_starts(joint_q: np.ndarray, seed: int) -> np.ndarray:
    """Coordinates ``[worlds, 7 + 12]``, each world a little higher, tilted, turned and with its joints a little off."""
    rng = np.random.default_rng(seed)
    joint_q = joint_q.copy()
    worlds = len(joint_q)
    joint_q[:, 2] += rng.uniform(0.0, 0.02, worlds)
    half = 0.5 * rng.normal(0.0, 0.02, (worlds, 3))
    joint_q[:, 3:7] = np.hstack([half, np.ones((worlds, 1))])
    joint_q[:, 3:7] /= np.linalg.norm(joint_q[:, 3:7], axis=1, keepdims=True)
    joint_q[:, 7:] += rng.normal(0.0, 0.03, (worlds, joint_q.shape[1] - 7))
    return joint_q


def simulate(walk: Walk, frames: int, quiet: bool, video: VideoRecorder | None = None) -> float:
    """Runs, observes and records the walk; returns the wall time of the steps of all frames [s]."""
    busy = 0.0
    if video is not None:
        video.record(walk.state, walk.time)
    for _ in common.progress(frames, quiet, "trot"):
        begin = time.perf_counter()
        walk.advance()
        wp.synchronize_device(walk.model.device)
        busy += time.perf_counter() - begin
        walk.observe()
        if video is not None:
            video.record(walk.state, walk.time)
    return busy


def report(walk: Walk, busy: float) -> None:
    """Prints the summary."""
    ahead, left = walk.travelled()
    tilt, seconds = np.degrees(walk.tilt), walk.time
    steps = walk.worlds * (len(ahead) - 1) * FRAME * walk.substeps
    duty = 100.0 * np.mean(walk.touching, axis=(0, 1))
    healthy = walk.solver.check(walk.state)
    upright = healthy & (tilt.max(axis=0) < TEST_TILT)
    end = ahead[-1]
    common.summary(
        f"Trot of {walk.title}, {seconds:.2f} s, time step {common.step_text(walk.dt)}, {walk.model.device}",
        [
            (
                "distance walked",
                f"{end.mean():z.2f} m, spread {end.std():.3f} m, {end.min():z.2f} to {end.max():z.2f} m",
            ),
            ("drift to the left", f"{left[-1].mean():z.2f} m, spread {left[-1].std():.3f} m"),
            (
                "upright",
                f"{upright.sum()} of {walk.worlds} worlds; tilt {tilt.mean():.1f} deg, at most {tilt.max():.1f} deg",
            ),
            ("feet on the ground", "  ".join(f"{leg} {share:.0f} %" for leg, share in zip(LEGS, duty, strict=True))),
            ("start-up", f"{walk.ready:.1f} s for building and compiling"),
            ("throughput", f"{steps / busy:,.0f} world-steps/s"),
            ("real-time factor", f"{common.factor_text(walk.worlds * seconds / busy)}, {seconds / busy:.2f} per world"),
        ],
    )


def benchmark(walk: Walk, quiet: bool, bursts: int = 9, least: float = 0.3, most: float = math.inf) -> None:
    """Prints the throughput of the walk once it is steady, targets included.

    Args:
        walk: the scene.
        quiet: draw no progress bar.
        bursts: number of measurements.
        least: wall time of a measurement, at least [s].
        most: simulated time of all measurements, at most [s]; it overrules `least`.
    """
    device = walk.model.device

    def burst(frames: int) -> float:
        begin = time.perf_counter()
        for _ in range(frames):
            walk.advance()
        wp.synchronize_device(device)
        return time.perf_counter() - begin

    warm = common.steps_in(1.0, walk.frame_time)
    wanted = np.ceil(least / max(burst(warm) / warm, 1.0e-9))
    frames = max(1, int(min(wanted, (most / walk.frame_time - warm) / bursts)))
    rates = [
        walk.worlds * frames * FRAME * walk.substeps / burst(frames) for _ in common.progress(bursts, quiet, "bursts")
    ]
    if not walk.solver.check(walk.state).all():
        raise SystemExit("benchmark: some worlds diverged, so the rates are invalid")
    common.summary(
        f"Trot of {walk.title}, time step {common.step_text(walk.dt)}, {device}, "
        f"{bursts} bursts of {common.count_text(frames, 'frame')}",
        [
            ("start-up", f"{walk.ready:.1f} s for building and compiling"),
            ("median", f"{np.median(rates):,.0f} world-steps/s"),
            ("slowest, fastest", f"{min(rates):,.0f}, {max(rates):,.0f} world-steps/s"),
            ("real-time factor", common.factor_text(np.median(rates) * walk.dt)),
        ],
    )


def check(walk: Walk) -> None:
    """Raises AssertionError unless all worlds stayed upright, and had walked 0.5 m after 5 s."""
    ahead, _ = walk.travelled()
    tilt = np.degrees(np.max(walk.tilt, axis=0))
    fallen = np.flatnonzero(~(walk.solver.check(walk.state) & (tilt < TEST_TILT)))
    # Raised by hand: python -O leaves assertions out.
    if len(fallen):
        raise AssertionError(f"{len(fallen)} of {walk.worlds} worlds fell, the first is world {fallen[0]}")
    way = ahead[common.steps_in(TEST_TIME, walk.frame_time)]
    if way.min() < TEST_DISTANCE:
        raise AssertionError(f"world {way.argmin()} walked only {way.min():.2f} m in {TEST_TIME:.0f} s")


def plot(walk: Walk, folder: Path) -> Path:
    """Plots the walk; returns the path of the PNG."""
    figure, axes = common.new_figure(
        [["way", "height"], ["tracks", "feet"], ["thigh", "calf"]],
        figsize=(11, 9),
        height_ratios=(1.0, 0.8, 1.0),
    )
    ahead, left = walk.travelled()
    seconds = walk.frame_time * np.arange(len(ahead))
    figure.suptitle(
        f"Open-loop trot of {walk.title}, time step {common.step_text(walk.dt)}", fontsize=13, fontweight="bold"
    )

    common.band(axes["way"], seconds, ahead, "C0")
    ramp = np.minimum(seconds, walk.gait.ramp)
    asked = walk.gait.speed * (seconds - ramp + 0.5 * ramp**2 / walk.gait.ramp)
    axes["way"].plot(seconds, asked, color="0.4", lw=1.0, ls="--", label=f"commanded speed of {walk.gait.speed:g} m/s")
    axes["way"].set(title="Distance walked", ylabel="distance [m]")
    common.band(axes["height"], seconds, np.array(walk.position)[..., 2], "C2")
    axes["height"].set(title="Height of the trunk", ylabel="height [m]")
    for name in ("way", "height"):
        axes[name].set(xlabel="time [s]", xlim=(0.0, seconds[-1]))
        axes[name].legend(loc="best")

    shown = np.unique(np.linspace(0, walk.worlds - 1, min(walk.worlds, 60)).astype(int))
    axes["tracks"].plot(ahead[:, shown], left[:, shown], lw=0.6, alpha=0.5, color="C0")
    axes["tracks"].plot(ahead[-1], left[-1], ".", ms=2.5, color="C3", alpha=0.6)
    reach = max(0.3, 1.2 * np.abs(left).max())
    axes["tracks"].set(
        title=f"Tracks from above (paths of {common.count_text(len(shown), 'world')}, ends of all)",
        xlabel="distance forward [m]", ylabel="distance to the left [m]", ylim=(-reach, reach),
    )  # fmt: skip

    window = seconds >= seconds[-1] - 2.0
    start, end = seconds[window][0], seconds[-1]
    touching = walk.touching[window, 0]
    for row, color in enumerate(("C0", "C1", "C1", "C0")):
        axes["feet"].broken_barh(runs(touching[:, row], start, walk.frame_time), (3.1 - row, 0.8), color=color)
    duty = 100.0 * np.mean(walk.touching, axis=(0, 1))
    axes["feet"].set_yticks([3.5, 2.5, 1.5, 0.5], [f"{leg}  {d:.0f} %" for leg, d in zip(LEGS, duty, strict=True)])
    axes["feet"].set(
        title="Feet on the ground (bars: world 0)",
        xlabel="time [s]",
        ylabel="foot (share of time)",
        ylim=(0, 4),
    )
    axes["feet"].grid(axis="y", visible=False)

    for joint, name in ((1, "thigh"), (2, "calf")):
        target = np.degrees(np.array(walk.leg_target)[window, joint])
        angle = np.degrees(np.array(walk.leg_q)[window, joint])
        held = seconds[window] - 0.5 * walk.substeps * walk.dt
        axes[name].plot(held, target, color="0.4", lw=1.0, ls="--", label="target")
        axes[name].plot(seconds[window], angle, color="C1", lw=1.6, label="joint")
        axes[name].set(title=f"Front left {name} (world 0)", xlabel="time [s]", ylabel="joint angle [deg]")
        axes[name].margins(y=0.15)
        axes[name].legend(loc="lower right", ncols=2)
    for name in ("feet", "thigh", "calf"):
        axes[name].set_xlim(start, end)
    return common.save_figure(figure, folder, "quadruped.png")


def runs(flags: np.ndarray, start: float, interval: float) -> list[tuple[float, float]]:
    """Beginnings and lengths of the stretches of true flags, one flag an interval."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(start + interval * a, interval * (b - a)) for a, b in edges.reshape(-1, 2)]


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    options = common.parser("Simulates quadrupeds that trot over level ground.", world_count=4096, num_frames=300)
    options.add_argument(
        "--test", action="store_true", help="fail unless all worlds stay upright and walk 0.5 m in 5 s"
    )
    options.add_argument(
        "--benchmark", action="store_true", help="measure the throughput of the steady trot; ignores --num-frames"
    )
    options.add_argument(
        "--terrain",
        type=common.hill_height,
        default=0.0,
        help="height of random hills [m], such as 0.04; 0: a plane. A video shows one world on hills",
    )
    args = options.parse_args(arguments)
    if args.benchmark and (args.test or args.viewer != "null"):
        options.error("--benchmark does not record data for --viewer and --test; omit these options")
    needed = common.steps_in(TEST_TIME, timing(args.dt)[1])
    if args.test and args.num_frames < needed:
        options.error(f"--test needs {TEST_TIME:.0f} s of motion: use --num-frames {needed} or more")
    common.prepare(options, args, WORLD_BYTES + (0 if args.benchmark else FRAME_BYTES * args.num_frames))
    common.say(
        f"building {common.count_text(args.world_count, 'world')}; kernels are compiled the first time ...", args.quiet
    )
    terrain = None
    if args.terrain > 0.0:
        seconds = BENCHMARK_TIME if args.benchmark else args.num_frames * timing(args.dt)[1]
        terrain = hills(args.terrain, 2.0 + 1.5 * Trot().speed * seconds, args.seed)
    walk = Walk(args.world_count, args.dt, args.device, args.seed, terrain=terrain)
    if args.benchmark:
        benchmark(walk, args.quiet, most=math.inf if terrain is None else BENCHMARK_TIME)
        return
    shown = range(min(args.world_count, ROW)) if terrain is None else 0
    video = common.video(args, walk.model, "quadruped", world=shown, **LOOK)
    report(walk, simulate(walk, args.num_frames, args.quiet, video))
    if args.viewer == "plot":
        print(f"  plot in {plot(walk, args.output_path)}")
    common.save_video(video, args.quiet)
    if args.test:
        common.verdict(lambda: check(walk))


if __name__ == "__main__":
    common.run(main)
