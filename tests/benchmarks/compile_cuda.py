"""Every kernel of the engine, compiled for a GPU that need not be there: seconds, and what a thread needs.

``python -m tests.benchmarks.compile_cuda [NAME ...] [--arch 90] [--level 0..3]`` compiles with the compiler that Warp brings along
(NVRTC) into an empty folder and prints a row for every kernel: processor seconds, size of the machine code, registers and bytes of
stack of the kernel, and bytes of the largest stack of its functions. Kernels are made at width 1 on the CPU, which is the code that a
GPU runs. Without names, the steps and what kinematics and dynamics run most.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import warp as wp
from newton_like.kernels.articulation import joints, root
from newton_like.kernels.articulation.multirotor.step import flight_kernel
from newton_like.kernels.articulation.poses import pose_kernels
from newton_like.kernels.articulation.reactions import reaction_kernels
from newton_like.kernels.articulation.scatter import scatter_kernels
from newton_like.kernels.articulation.wrenches import wrench_kernels
from newton_like.kernels.solvers.health import forget_kernel
from newton_like.kernels.solvers.step import Features
from newton_like.kernels.solvers.xpbd.step import xpbd_kernel

import newton_like
from newton_like.programs import robot
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.featherstone import stepper

from .cases import CASES

PROGRAMS = (
    "eval_fk", "eval_ik", "eval_jacobian", "eval_mass_matrix", "eval_bias_forces", "eval_inverse_dynamics", "eval_coriolis_matrix",
    "eval_momentum", "eval_soft_contact",
)  # fmt: skip
"""Programs whose general kernels are compiled."""


def machine_code(path: Path) -> tuple[int, int, int]:
    """Registers and bytes of stack of the kernel in a cubin, and bytes of the largest stack of its functions."""
    data = path.read_bytes()
    at, (size, count, names) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]
    strings = sections[names][4]

    def name(offset: int) -> str:
        return data[strings + offset : data.index(b"\0", strings + offset)].decode()

    most = {0x2F: 0, 0x12: 0, 0x11: 0}  # registers; stack of a kernel with all that it calls; frame of a function
    for head, _, _, _, start, length, *_ in sections:
        i = start if name(head).startswith(".nv.info") else start + length
        while i < start + length:
            kind, attribute, size = struct.unpack_from("<BBH", data, i)
            if kind == 4 and attribute in most:
                most[attribute] = max(most[attribute], struct.unpack_from("<II", data, i + 4)[1])
            i += 4 + (size if kind == 4 else 0)
    return tuple(most.values())


def programs() -> dict[str, Callable]:
    """What there is to compile: names, and what makes the kernel."""
    made = {
        "multirotors, float32": lambda: flight_kernel(1, wp.float32),
        "step, general, float32": lambda: stepper.general_step(1, wp.float32, Features()),
        "step, general, pairs of bodies": lambda: stepper.general_step(1, wp.float32, Features(paired=True)),
        "step, general, loops and tendons": lambda: stepper.general_step(
            1, wp.float32, Features(closed=True, tensed=True, bonded=True)
        ),
        "step, general, contacts given": lambda: stepper.general_step(1, wp.float32, Features(given=True)),
        "SolverXPBD, float32": lambda: xpbd_kernel(1, wp.float32, trees=True)[0],
        "SolverXPBD, laws of contacts, wraps, pivots": lambda: xpbd_kernel(
            1, wp.float32, "wraps", True, True, True, True
        )[0],
        "step, general, float64": lambda: stepper.general_step(1, wp.float64, Features()),
    }
    for case in CASES:
        if case.name != "trot":
            made[f"step, specialised, {case.name}"] = lambda case=case: specialised_step(case)
    made.update({f"{name}, general": lambda name=name: robot.general_kernel(name, 1, wp.float32) for name in PROGRAMS})
    kinds = tuple(kind + late for late in (0, joints.DELAYED) for kind in range(joints.NETWORK + 1))
    made["articulation, actuators"] = lambda: joints.actuate_kernel(wp.float32, kinds, 1, 12)
    for kernels in (
        root.state_kernels(wp.float32),
        joints.joint_kernels(wp.float32),
        wrench_kernels(wp.float32),
        scatter_kernels(wp.float32),
        pose_kernels(wp.float32),
        reaction_kernels(wp.float32),
    ):
        made.update({f"articulation, {name}": lambda kernel=kernel: kernel for name, kernel in vars(kernels).items()})
    made["forget contact forces"] = lambda: forget_kernel(wp.float32)
    return made


def specialised_step(case):
    """The kernel that steps the robot of a case."""
    model = case.scene(newton_like, 2).finalize("cpu")
    options = dict(evaluator="specialised", width=1, threads=1, unsupported_contacts="ignore")
    return SolverFeatherstone(model, **options)._steppers[0].kernel


def main(arguments: list[str] | None = None) -> int:
    """Compiles and prints; 1 if a kernel does not compile."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="compile what has one of these in its name")
    parser.add_argument("--arch", type=int, default=90, help="compute capability times ten")
    parser.add_argument(
        "--level", type=int, choices=range(4), help="of optimisation, instead of the engine's own choice"
    )
    options = parser.parse_args(arguments)
    wp.config.log_level = wp.LOG_ERROR
    wp.init()
    if options.arch not in wp.get_cuda_supported_archs():
        print(
            f"this Warp does not compile for architecture {options.arch}; it does for {wp.get_cuda_supported_archs()}"
        )
        return 1
    failed = 0
    print(f"{'kernel':34}{'s':>7}{'kB':>8}{'registers':>11}{'stack':>8}{'of one':>8}")
    for title, make in programs().items():
        if options.names and not any(word in title for word in options.names):
            continue
        module = make().module
        if options.level is not None:
            module.options["optimization_level"] = options.level
            module.mark_modified()
        with tempfile.TemporaryDirectory() as folder:
            begin = time.process_time()
            try:
                (path,) = wp.compile_aot_module(module, arch=options.arch, module_dir=folder, use_ptx=False)
            except Exception as error:
                print(f"{title:34}{error}")
                failed = 1
                continue
            seconds = time.process_time() - begin
            registers, stack, frame = machine_code(Path(path))
            size = Path(path).stat().st_size / 1000
            print(f"{title:34}{seconds:7.1f}{size:8.0f}{registers:11}{stack:8}{frame:8}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
