"""Reads USD files in a separate process that may crash. ``guard`` starts this file as a script; it does not import newton_like.

A request is a line of JSON on the standard input, and an answer is a line of JSON on the original standard output.
"""

import contextlib
import faulthandler
import json
import math
import os
import re
import sys
import time

from pxr import Ar, Sdf, Tf, Usd

PIECE = 1000
"""Number of specs or prims between two checks of the time."""


CURE = "write it again with the program that made it, or take an older copy"

PATIENCE = 20.0
"""Limit of the elapsed time of a piece over its limit of processor time, for busy computers and slow networks."""

SLOW = (1, -24)
"""Exit codes of a process that exceeded its time limit; the second is that of SIGXCPU."""

KINDS = {
    "apiSchemas": Sdf.TokenListOp,
    "references": Sdf.ReferenceListOp,
    "payload": Sdf.PayloadListOp,
    "inheritPaths": Sdf.PathListOp,
    "specializes": Sdf.PathListOp,
    "targetPaths": Sdf.PathListOp,
    "connectionPaths": Sdf.PathListOp,
    "variantSetNames": Sdf.StringListOp,
    "variantSelection": dict,
    "clips": dict,
    "customData": dict,
    "customLayerData": dict,
}
"""Types of lists and dictionaries that USD reads without checking the type."""

PARTS = tuple(f"{kind}Items" for kind in ("explicit", "prepended", "appended", "added", "deleted", "ordered"))
"""Attributes of list operations."""

MEMORY, THREAD, GROWTH = 2 * 2**30, 32 * 2**20, 4096
"""Limit of further address space of the process [bytes]: a constant, for each processor's thread, and for each byte of a
file. Arrays of equal numbers expand most: 16 times by the packing of integers, and 255 times by LZ4."""


def plain(text: str) -> str:
    """A message of USD, without the position in USD's own source code."""
    return re.sub(r"(Error in )?'\S+' at line \d+ in file \S+ : ", "", " ".join(text.split()))[-300:]


class Watch:
    """Ends the process when a piece of work exceeds its time limit, also within native code.

    Args:
        seconds: limit of processor time for each piece, or of elapsed time on systems without such limits.
        nowhere: file for the traceback, which is discarded.
    """

    def __init__(self, seconds: float, nowhere):
        self._seconds, self._nowhere = seconds, nowhere
        self._count = 0
        self.piece()

    def piece(self) -> None:
        patience = PATIENCE if _limit("CPU", math.ceil(time.process_time() + self._seconds)) else 1.0
        faulthandler.dump_traceback_later(patience * self._seconds, exit=True, file=self._nowhere)

    def step(self) -> None:
        self._count += 1
        if self._count % PIECE == 0:
            self.piece()

    def end(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        _limit("CPU")


def read_layer(identifier: str, step=lambda: None) -> tuple[Sdf.Layer | None, str]:
    """Opens a layer and reads every value in it. Returns the layer and an error message, "" for a valid layer."""
    layer = Sdf.Layer.FindOrOpen(identifier)
    if layer is None:
        return None, f"cannot be read as USD; {CURE}"
    paths: list[Sdf.Path] = []
    layer.Traverse(Sdf.Path.absoluteRootPath, paths.append)
    for path in paths:
        step()
        # Targets are also specs, but they have no values and no Python object.
        spec = None if path.IsTargetPath() else layer.GetObjectAtPath(path)
        if spec is not None:
            for key in spec.ListInfoKeys():
                try:
                    value = spec.GetInfo(key)
                    if key in KINDS and not _sound(key, value):
                        return (
                            layer,
                            f"is damaged: {key} of <{path}> has an entry without a name, or is {value!r}; {CURE}",
                        )
                except (Tf.ErrorException, MemoryError, RuntimeError) as error:
                    return layer, f"is damaged: {key} of <{path}>: {_words(error)}; {CURE}"
                except Exception:  # a type without a Python binding
                    continue
        elif path.isEmpty or path.IsPrimPath() or path.IsPrimVariantSelectionPath() or path.IsPrimPropertyPath():
            listed = f"<{path}> is listed but does not exist" if path else "a listed entry has no name"
            return layer, f"is damaged: {listed}; {CURE}"
    return layer, ""


def read_stage(layer: Sdf.Layer, folders: list[str], step=lambda: None) -> None:
    """Composes a stage and visits its prims and properties, including those of instances."""
    stage = Usd.Stage.Open(layer, Ar.DefaultResolverContext(folders))
    for prim in Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()):
        step()
        prim.GetProperties()


def answer(request: dict, held: dict, nowhere) -> str:
    """The error message of a layer or a stage, to be appended to its name; "" if it is valid.

    Args:
        request: path of a ``layer`` or ``stage`` or ``text`` of a stage, search ``folders`` of names, ``size`` of the
            files [bytes], ``seconds`` for a piece of work, and number of the ``session``.
        held: open layers of this session.
        nowhere: file for discarded output.
    """
    if held.get("session") != request["session"]:
        held.clear()
        held["session"] = request["session"]
    _limit_memory(request["size"])
    watch = Watch(request["seconds"], nowhere)
    try:
        if "layer" in request:
            held[request["layer"]], wrong = read_layer(request["layer"], watch.step)
            return wrong
        if "text" in request:
            layer = Sdf.Layer.CreateAnonymous(".usda")
            layer.ImportFromString(request["text"])
        else:
            layer = Sdf.Layer.FindOrOpen(request["stage"])
        watch.piece()
        read_stage(layer, request["folders"], watch.step)
    except Exception as error:
        # Other errors of a stage are reported when the caller composes it.
        if "layer" in request or isinstance(error, MemoryError):
            return f"cannot be read as USD: {_words(error)}"
    finally:
        watch.end()
    return ""


def _sound(key: str, value) -> bool:
    """Whether a value has the type of its key and no empty names, which USD returns for names that it cannot find."""
    if not isinstance(value, KINDS[key]):
        return False
    if isinstance(value, dict):
        return "" not in value
    return key in ("references", "payload") or all(item for part in PARTS for item in getattr(value, part))


def _words(error: Exception) -> str:
    return plain(str(error)) or type(error).__name__


def _limit(what: str, soft: int | None = None) -> bool:
    """Sets the soft limit of a resource, by default to the hard limit. Returns false on systems without such limits or with stricter
    ones."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        kind = getattr(resource, f"RLIMIT_{what}")
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (hard if soft is None else soft, hard))
        return True
    return False


def _limit_memory(size: int) -> None:
    """Limits the address space, so that a file that claims to be huge raises MemoryError."""
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:  # absent on some systems
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        _limit("AS", used + MEMORY + THREAD * (os.cpu_count() or 1) + GROWTH * size)


def _prepare() -> None:
    """Ignores interrupts, which the parent process handles; makes this process the first to be ended if memory is short; disables core
    dumps."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    _limit("CORE", 0)


def main() -> None:
    """Answers requests until the standard input ends."""
    with open(os.devnull, "w") as nowhere, os.fdopen(os.dup(1), "w") as answers:
        os.dup2(nowhere.fileno(), 1)  # USD prints too
        _prepare()
        held: dict = {}
        print(json.dumps("ready"), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), held, nowhere)), file=answers, flush=True)
        os._exit(0)  # skips the cleanup of USD


if __name__ == "__main__":
    main()
