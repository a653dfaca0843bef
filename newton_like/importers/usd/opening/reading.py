"""Reads USD files in a process that may die of them. ``guard`` starts this file as a script; it imports nothing of ours.

A request is a line of JSON on the standard input, and so is the answer on what was the standard output.
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
"""Specs or prims read between two looks at the clock."""


CURE = "write it again with the program that made it, or take an older copy"

PATIENCE = 20.0
"""How much longer than its processor time a piece may take: computers are busy, and networks slow."""

SLOW = (1, -24)
"""Exit codes of a process whose watch ran out; the second is that of SIGXCPU."""

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
"""Types of lists and dictionaries that are read without a look at their type."""

PARTS = tuple(f"{kind}Items" for kind in ("explicit", "prepended", "appended", "added", "deleted", "ordered"))
"""What lists consist of."""

MEMORY, THREAD, GROWTH = 2 * 2**30, 32 * 2**20, 4096
"""Address space that the process may take beyond what it has [bytes]: anyway, for each processor's thread, and for each
byte of a file. Arrays of equal numbers grow most: sixteen-fold as integers are packed, and 255-fold by LZ4."""


def plain(text: str) -> str:
    """What USD says, without where in its own source that was found."""
    return re.sub(r"(Error in )?'\S+' at line \d+ in file \S+ : ", "", " ".join(text.split()))[-300:]


class Watch:
    """Ends the process, in whatever code it is, when a piece of work takes too long.

    Args:
        seconds: of processor time for each piece, where the system counts that, else of any time.
        nowhere: file for the traceback that nobody reads.
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
    """Opens a layer and reads every value in it: the layer, and what is wrong with it."""
    layer = Sdf.Layer.FindOrOpen(identifier)
    if layer is None:
        return None, f"cannot be read as USD; {CURE}"
    paths: list[Sdf.Path] = []
    layer.Traverse(Sdf.Path.absoluteRootPath, paths.append)
    for path in paths:
        step()
        # Targets are specs too, but have no values and nothing in Python.
        spec = None if path.IsTargetPath() else layer.GetObjectAtPath(path)
        if spec is not None:
            for key in spec.ListInfoKeys():
                try:
                    value = spec.GetInfo(key)
                    if key in KINDS and not _sound(key, value):
                        return layer, f"is damaged: {key} of <{path}> holds what has no name, or is {value!r}; {CURE}"
                except (Tf.ErrorException, MemoryError, RuntimeError) as error:
                    return layer, f"is damaged: {key} of <{path}>: {_words(error)}; {CURE}"
                except Exception:  # it is of a type that Python does not know
                    continue
        elif path.isEmpty or path.IsPrimPath() or path.IsPrimVariantSelectionPath() or path.IsPrimPropertyPath():
            listed = f"<{path}> is listed but does not exist" if path else "what it lists has no name"
            return layer, f"is damaged: {listed}; {CURE}"
    return layer, ""


def read_stage(layer: Sdf.Layer, folders: list[str], step=lambda: None) -> None:
    """Composes a stage and goes over its prims and properties, those of instances among them."""
    stage = Usd.Stage.Open(layer, Ar.DefaultResolverContext(folders))
    for prim in Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()):
        step()
        prim.GetProperties()


def answer(request: dict, held: dict, nowhere) -> str:
    """What is wrong with a layer or a stage, after its name; nothing where it is good.

    Args:
        request: path of a ``layer`` or ``stage`` or ``text`` of one, ``folders`` in which names are looked up, ``size`` of the
            files [bytes], ``seconds`` for a piece of work, and number of the ``session``.
        held: layers of this session, that need not be opened again.
        nowhere: file for what nobody reads.
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
        # What is no more than an error of a stage is said by those who compose it.
        if "layer" in request or isinstance(error, MemoryError):
            return f"cannot be read as USD: {_words(error)}"
    finally:
        watch.end()
    return ""


def _sound(key: str, value) -> bool:
    """Whether a value is of its kind and has no empty names, which stand for those that USD does not find."""
    if not isinstance(value, KINDS[key]):
        return False
    if isinstance(value, dict):
        return "" not in value
    return key in ("references", "payload") or all(item for part in PARTS for item in getattr(value, part))


def _words(error: Exception) -> str:
    return plain(str(error)) or type(error).__name__


def _limit(what: str, soft: int | None = None) -> bool:
    """Sets the soft limit of a resource, by default to the hard one; false on systems without, or with stricter limits."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        kind = getattr(resource, f"RLIMIT_{what}")
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (hard if soft is None else soft, hard))
        return True
    return False


def _limit_memory(size: int) -> None:
    """Lets a file that claims to be huge fail, and not the machine."""
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:  # systems without
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        _limit("AS", used + MEMORY + THREAD * (os.cpu_count() or 1) + GROWTH * size)


def _prepare() -> None:
    """Interrupts are for the other process; where memory is short this one is to go; and what kills it leaves no file."""
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
        os._exit(0)  # USD need not clean up


if __name__ == "__main__":
    main()
