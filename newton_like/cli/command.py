"""The command line: ``newton-like inspect | convert | simulate``.

Exit codes: 0 success; 1 the file could not be read, converted or simulated; 2 wrong options; 130 stopped by the user.
"""

from __future__ import annotations

import argparse
import difflib
import json
import math
import sys
import warnings
from pathlib import Path

from newton_like.cli.options import DAMPING_TIME, assignments, gains
from newton_like.cli.terminal import (
    count_text,
    device_there,
    folder,
    number_in,
    positive_int,
    reader_gone,
    start_warp,
    suffix_text,
)

EXPECTED = (OSError, ValueError, TypeError, KeyError, NotImplementedError, RuntimeError, ImportError, MemoryError)
"""Errors of files, options and missing packages. Any other error is a defect of the program and keeps its traceback."""

EPILOG = """exit codes:
  0    success
  1    the file could not be read, converted, drawn or simulated; the reason is one line on stderr
  2    wrong options
  130  stopped by Ctrl-C

With --json the result is one JSON object on stdout. An error is {"error": reason, "kind": class}."""


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    words = sys.argv[1:] if argv is None else argv
    _Parser.json = "--json" in words
    parser = _parser()
    args = parser.parse_args(words)
    if args.command == "inspect" and args.collisions and args.plot is None:
        parser.error("--collisions needs --plot, as it chooses the shapes of the picture")
    try:
        start_warp()
        args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        reader_gone()
        return 0
    except EXPECTED as error:
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        text = " ".join(text.split()) or type(error).__name__
        if args.json:
            _print_json({"error": text, "kind": type(error).__name__})
        print(f"newton-like: {text}", file=sys.stderr)
        return 1
    return 0


class _Parser(argparse.ArgumentParser):
    """An argument parser that also writes errors of options as JSON, if ``--json`` is among the options."""

    json = False
    _words: tuple | list = ()

    def error(self, message):
        message += self._suggestion()
        if self.json:
            _print_json({"error": message, "kind": "usage"})
        super().error(message)

    def parse_known_args(self, args=None, namespace=None):
        self._words = sys.argv[1:] if args is None else list(args)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            # of a command: its own options are known here
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _suggestion(self) -> str:
        """The command or the option that an unknown word resembles, in words."""
        options = [name for action in self._actions for name in action.option_strings]
        commands = [name for action in self._actions if isinstance(action.choices, dict) for name in action.choices]
        for word in self._words:
            is_option = word.startswith("--")
            name, known = word.partition("=")[0], options if is_option else commands
            near = [] if name in known else difflib.get_close_matches(name, known, n=1)
            if near:
                return f"; did you mean {near[0]}?"
            if commands and not is_option:
                # the words behind the command are its own
                break
        return ""


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="newton-like",
        description="Inspects, converts and simulates robot and scene files (URDF, MJCF, USD).",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # of the package that runs, also where it is not installed; modules do not import names of the top package
    version = sys.modules["newton_like"].__version__
    parser.add_argument("--version", action="version", version=f"newton-like {version}")
    commands = parser.add_subparsers(dest="command", required=True)

    inspect = commands.add_parser(
        "inspect", help="show the tree, degrees of freedom, masses, limits and remarks of the importer"
    )
    _reading(inspect)
    inspect.add_argument("--plot", type=Path, metavar="PNG", help="write a picture of the model")
    inspect.add_argument(
        "--collisions", action="store_true", help="draw the colliding shapes instead of the visible shapes"
    )
    inspect.set_defaults(run=_inspect)

    convert = commands.add_parser("convert", help="convert a URDF, MJCF or USD file to USD, or a single robot to URDF")
    _reading(convert)
    convert.add_argument(
        "output", type=Path, help="the file to write: .usd, .usda, .usdc or .urdf; an existing file is replaced"
    )
    convert.set_defaults(run=_convert)

    simulate = commands.add_parser(
        "simulate",
        help="simulate a file and write the motion as USD or as a video",
        description="Simulates a file. The drives of the joints hold constant targets: the targets in the file, or the initial positions "
        "of joints that --stiffness or --joint-positions names. A joint without gains moves freely; URDF files have no gains. "
        "A remark names pairs of shapes that pass through each other.",
    )
    _reading(simulate)
    simulate.add_argument("--frames", type=positive_int, default=120, help="frames to simulate (default: 120)")
    rate = number_in(1.0, 10_000.0, "frames per second")
    simulate.add_argument("--fps", type=rate, default=60.0, help="frames per second (default: 60)")
    simulate.add_argument("--substeps", type=positive_int, default=4, help="time steps per frame (default: 4)")
    simulate.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="file for the motion: .usd, .usda, .usdc, .gif or .mp4 (default: none)",
    )
    simulate.add_argument(
        "--viewer",
        choices=("null", "gif", "mp4"),
        default="null",
        help="write a video, beside --output or in the current folder; mp4 needs ffmpeg (default: null)",
    )
    simulate.add_argument(
        "--joint-positions",
        type=assignments,
        action="append",
        metavar="JOINT=Q,...",
        help="initial positions [rad or m] by name of the joint, which may have wildcards: elbow=-1.5,finger*=0.02; or those of "
        "all joints in order, as in --joint-positions=-0.5,0.2,0 (may be given several times)",
    )
    simulate.add_argument(
        "--keyframe",
        metavar="NAME",
        help="start from a keyframe of an MJCF file, given by name or number, with its controls",
    )
    simulate.add_argument(
        "--stiffness",
        type=gains,
        action="append",
        metavar="[JOINT=]KE,...",
        help="position gain of the drives [N m/rad or N/m], of all joints or by name (may be given several times)",
    )
    simulate.add_argument(
        "--damping",
        type=gains,
        action="append",
        metavar="[JOINT=]KD,...",
        help=f"velocity gain of the drives [N m s/rad or N s/m] (default: the gain in the file, or {DAMPING_TIME:g} s times --stiffness)",
    )
    simulate.add_argument(
        "--ground",
        action="store_true",
        help="add a ground plane at height 0; floating bodies that would start below it are lifted onto it",
    )
    height = number_in(-1.0e6, 1.0e6, "m")
    simulate.add_argument(
        "--lift", type=height, default=0.0, metavar="M", help="lift floating bodies by this height before the start"
    )
    simulate.add_argument("--device", default="cpu", help="Warp device (default: cpu)")
    simulate.set_defaults(run=_simulate)
    return parser


def _reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a URDF, MJCF (.xml) or USD file")
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        "--floating", dest="floating", action="store_true", default=None, help="the root link moves freely"
    )
    base.add_argument("--fixed", dest="floating", action="store_false", help="the root link is fixed to the world")
    parser.add_argument(
        "--up-axis",
        type=str.upper,
        choices=("X", "Y", "Z"),
        help="up axis of a URDF or MJCF file (default: Z); a USD file defines its own",
    )
    parser.add_argument(
        "--package-dir",
        type=folder,
        action="append",
        metavar="DIR",
        help="additional folder to read meshes, includes, layers and package:// URIs from (may be given several times)",
    )
    parser.add_argument(
        "--self-collisions",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="allow collisions between the moving parts of the file (default: as in an MJCF or USD file; none for a URDF)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar and no remarks")


def _read(args, **more):
    from newton_like.cli.scene import read

    keyframe = getattr(args, "keyframe", None)
    options = {
        "floating": args.floating,
        "enable_self_collisions": args.self_collisions,
        "up_axis": args.up_axis,
        "package_dirs": args.package_dir,
        "keyframe": int(keyframe) if keyframe is not None and keyframe.isdigit() else keyframe,
    }
    return read(args.file, options, **more)


def _tell(args, remarks: list[str]) -> None:
    if not args.quiet and not args.json:
        for text in remarks:
            print(f"remark: {text}", file=sys.stderr)


def _keep_input(args) -> None:
    output = args.output
    if output is not None and output.exists() and args.file.exists() and output.samefile(args.file):
        raise ValueError(f"{output}: the output file is the input file; name another output")


def _print_json(data) -> None:
    print(json.dumps(_plain(data), allow_nan=False))


def _plain(data):
    """Replaces numbers that JSON does not support, such as infinity, by null."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _inspect(args) -> None:
    from newton_like.cli.summary import as_text, headline, summary

    scene = _read(args)
    _tell(args, scene.remarks)
    data = summary(scene)
    if args.plot is not None:
        from newton_like.viewer import picture

        title = f"{args.file.name}\n{headline(data)}"
        picture(scene.model, scene.state, args.plot, world=None, collisions=args.collisions, title=title)
        data["plot"] = str(args.plot)
    if args.json:
        _print_json(data)
        return
    print(as_text({**data, "remarks": []}, args.file.name))
    if args.plot is not None:
        print(f"\npicture: {args.plot}")


def _convert(args) -> None:
    _keep_input(args)
    kind = args.output.suffix.lower()
    if kind == ".urdf":
        from newton_like.exporters.urdf import write
    else:
        from newton_like.exporters.usd.author import SUFFIXES
        from newton_like.usd import write

        if kind not in SUFFIXES:
            known = ", ".join((".urdf", *SUFFIXES))
            raise ValueError(f"{args.output}: files {suffix_text(kind)} cannot be written; use one of {known}")
    scene = _read(args)
    robots = scene.model.articulation_count
    if kind == ".urdf" and robots != 1:
        raise ValueError(
            f"{args.file} has {robots} articulations, but a URDF file can have only one; convert it to USD"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write(scene.model, str(args.output))
    remarks = scene.remarks + [str(w.message) for w in caught]
    _tell(args, remarks)
    data = {
        "output": str(args.output),
        "bodies": scene.model.body_count,
        "joints": scene.model.joint_count,
        "remarks": remarks,
    }
    if args.json:
        _print_json(data)
    else:
        print(f"{args.output}: {count_text(data['bodies'], 'body', 'bodies')}, {count_text(data['joints'], 'joint')}")


def _simulate(args) -> None:
    import warp as wp

    from newton_like.cli.pose import prepare
    from newton_like.cli.simulate import ignored, simulate, video_path
    from newton_like.collision.ground import unsupported_pairs
    from newton_like.collision.pairs import resolved

    _keep_input(args)
    device_there(args.device)
    video = video_path(args)
    scene = _read(
        args,
        ground=args.ground,
        lift=args.lift,
        device=args.device,
        dtype=wp.float32,
        prepare=lambda builder, report: prepare(builder, report, args),
    )
    pairs = unsupported_pairs(scene.model, dynamic=True, known=resolved)
    scene.remarks.extend(ignored(scene.model, pairs))
    _tell(args, scene.remarks)
    data = simulate(scene, args, video, pairs)
    if args.json:
        _print_json(data)
        return
    print(f"{data['frames']} frames, {data['seconds']:.3f} s simulated in {data['wall_seconds']:.2f} s")
    print(f"energy {data['energy_start']:.6g} J -> {data['energy_end']:.6g} J")
    if data["output"]:
        print(f"motion: {data['output']}")
    if data["video"]:
        print(f"video: {data['video']}")
