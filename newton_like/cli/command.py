"""The command line: ``newton-like inspect | convert | simulate``.

Exit codes: 0 done; 1 the file could not be read, converted or simulated; 2 wrong options; 130 stopped by the user.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path


def main(argv: list[str] | None = None) -> int:
    """Runs the command and gives its exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    try:
        args.run(args)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # whoever reads has seen enough; Python must not write to the pipe again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, ValueError, TypeError, KeyError, NotImplementedError, ImportError) as error:
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        if getattr(args, "json", False):
            print(json.dumps({"error": text, "kind": type(error).__name__}))
        print(f"newton-like: {text}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="newton-like", description="Looks into robot and scene files, converts and simulates them."
    )
    parser.add_argument("--version", action="version", version=f"newton-like {version('newton-like')}")
    commands = parser.add_subparsers(dest="command", required=True)

    inspect = commands.add_parser(
        "inspect", help="tree, degrees of freedom, masses, limits and what the importer remarked"
    )
    _reading(inspect)
    inspect.add_argument("--plot", type=Path, metavar="PNG", help="write a picture of it")
    inspect.add_argument(
        "--collisions", action="store_true", help="the picture shows what collides, not what is visible"
    )
    inspect.set_defaults(run=_inspect)

    convert = commands.add_parser("convert", help="URDF, MJCF or USD to USD")
    _reading(convert)
    convert.add_argument("output", type=Path, help="the USD file to write: .usd, .usda or .usdc")
    convert.set_defaults(run=_convert)

    simulate = commands.add_parser("simulate", help="simulate and write the motion as a USD file")
    _reading(simulate)
    simulate.add_argument("--frames", type=_positive, default=120, help="frames to simulate (default: 120)")
    simulate.add_argument("--fps", type=_rate, default=60.0, help="frames a second (default: 60)")
    simulate.add_argument("--substeps", type=_positive, default=4, help="time steps a frame (default: 4)")
    simulate.add_argument("--output", type=Path, metavar="USD", help="the USD file to write; none by default")
    simulate.add_argument("--ground", action="store_true", help="add a ground plane")
    simulate.add_argument("--device", default="cpu", help="Warp device (default: cpu)")
    simulate.set_defaults(run=_simulate)
    return parser


def _reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a URDF, MJCF (.xml) or USD file")
    base = parser.add_mutually_exclusive_group()
    base.add_argument("--floating", dest="floating", action="store_true", default=None, help="the root floats freely")
    base.add_argument("--fixed", dest="floating", action="store_false", help="the root is fixed to the world")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress bar, no remarks")


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return value


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 1.0 <= value <= 10_000.0:
        raise argparse.ArgumentTypeError(f"{text} must be from 1 to 10000 frames a second")
    return value


def _read(args, **more):
    from newton_like.cli.scene import read

    scene = read(args.file, {"floating": args.floating}, **more)
    if not args.quiet and not args.json:
        for text in scene.remarks:
            print(f"remark: {text}", file=sys.stderr)
    return scene


def _inspect(args) -> None:
    from newton_like.cli.summary import as_text, summary

    scene = _read(args)
    data = summary(scene)
    if args.plot is not None:
        from newton_like.viewer import picture

        picture(scene.model, scene.state, args.plot, world=None, collisions=args.collisions, title=args.file.name)
        data["plot"] = str(args.plot)
    if args.json:
        print(json.dumps(data))
        return
    print(as_text({**data, "remarks": []}, args.file.name))
    if args.plot is not None:
        print(f"\npicture: {args.plot}")


def _convert(args) -> None:
    from newton_like.usd import write

    scene = _read(args)
    write(scene.model, str(args.output))
    data = {
        "output": str(args.output),
        "bodies": scene.model.body_count,
        "joints": scene.model.joint_count,
        "remarks": scene.remarks,
    }
    print(json.dumps(data) if args.json else f"{args.output}: {data['bodies']} bodies, {data['joints']} joints")


def _simulate(args) -> None:
    from newton_like.cli.simulate import simulate

    data = simulate(args, _read)
    if args.json:
        print(json.dumps(data))
        return
    print(f"{data['frames']} frames, {data['seconds']:.3f} s simulated in {data['wall_seconds']:.2f} s")
    print(f"energy {data['energy_start']:.6g} J -> {data['energy_end']:.6g} J")
    if data["output"]:
        print(f"motion: {data['output']}")
