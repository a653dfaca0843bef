"""Reads USD files in a process that may die of them. ``guard`` starts this file as a script; it imports nothing of ours.

A request is a line of JSON on the standard input, and so is the answer on what was the standard output.
"""

import contextlib
import faulthandler
import json
import os
import sys

from pxr import Ar, Sdf, Tf, Usd

PIECE = 1000
"""Specs or prims read between two looks at the clock."""


NO_LAYER = "it must be a .usda, .usdc, .usd or .usdz file"

MEMORY, GROWTH = 8 * 2**30, 4096
"""Address space that the process may take beyond what it has [bytes], and in addition for each byte of a file.

Arrays of equal numbers grow most: sixteen-fold as integers are packed, and 255-fold by LZ4.
"""


class Watch:
    """Ends the process, in whatever code it is, when a piece of work takes too long.

    Args:
        seconds: limit for each piece.
        nowhere: file for the traceback that nobody reads.
    """

    def __init__(self, seconds: float, nowhere):
        self._seconds, self._nowhere = seconds, nowhere
        self._count = 0
        self.piece()

    def piece(self) -> None:
        faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._nowhere)

    def step(self) -> None:
        self._count += 1
        if self._count % PIECE == 0:
            self.piece()

    def end(self) -> None:
        faulthandler.cancel_dump_traceback_later()


def read_layer(identifier: str, step=lambda: None) -> tuple[Sdf.Layer, str]:
    """Opens a layer and reads every value in it; the layer, and the first of its specs that is listed and not there.

    Raises:
        Tf.ErrorException: it cannot be opened, as no USD file can.
    """
    layer = Sdf.Layer.FindOrOpen(identifier)
    if layer is None:
        return None, ""
    paths = []
    layer.Traverse(Sdf.Path.absoluteRootPath, paths.append)
    missing = ""
    for path in paths:
        step()
        # Targets are specs too, but have no values and nothing in Python.
        spec = None if path.IsTargetPath() else layer.GetObjectAtPath(path)
        if spec is None:
            if not missing and (path.isEmpty or path.IsPrimPath() or path.IsPrimPropertyPath()):
                missing = str(path) or "a name that is none"
            continue
        # What is an error in words here is one in the other process too.
        for key in spec.ListInfoKeys():
            with contextlib.suppress(Exception):
                spec.GetInfo(key)
    return layer, missing


def read_stage(layer: Sdf.Layer, folders: list[str], step=lambda: None) -> None:
    """Composes a stage and goes over its prims and properties, those of instances among them."""
    stage = Usd.Stage.Open(layer, Ar.DefaultResolverContext(folders))
    for prim in Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()):
        step()
        prim.GetProperties()


def answer(request: dict, held: dict, nowhere) -> dict:
    """What is to be said of a layer or a stage: ``error`` in USD's words, or the path of a ``missing`` spec."""
    if held.get("session") != request["session"]:
        held.clear()
        held["session"] = request["session"]
    _limit_memory(request["size"])
    watch = Watch(request["seconds"], nowhere)
    try:
        if "layer" in request:
            layer, missing = read_layer(request["layer"], watch.step)
            held[request["layer"]] = layer
            return {"error": NO_LAYER} if layer is None else {"missing": missing}
        if "text" in request:
            layer = Sdf.Layer.CreateAnonymous(".usda")
            layer.ImportFromString(request["text"])
        else:
            layer = Sdf.Layer.FindOrOpen(request["stage"])
        watch.piece()
        read_stage(layer, request["folders"], watch.step)
        return {}
    except Tf.ErrorException as error:
        return {"error": " ".join(str(error).split())}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        watch.end()


def _limit_memory(size: int) -> None:
    """Lets a file that claims to be huge fail, and not the machine."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # systems without, or with stricter limits
        import resource

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY + GROWTH * size, hard))


def _prepare() -> None:
    """Interrupts are for the other process; where memory is short this one is to go; and what kills it leaves no file."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def main() -> None:
    with open(os.devnull, "w") as nowhere, os.fdopen(os.dup(1), "w") as answers:
        os.dup2(nowhere.fileno(), 1)  # USD prints too
        _prepare()
        held: dict = {}
        print(json.dumps("ready"), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), held, nowhere)), file=answers, flush=True)
        os._exit(0)  # USD need not clean up


if __name__ == "__main__":
    main()
