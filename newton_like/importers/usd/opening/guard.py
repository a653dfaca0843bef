"""Checks binary USD files in a separate process, because USD can crash when it reads damaged files."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path

from pxr import Ar

from newton_like.importers.usd.opening.reading import CURE, SLOW
from newton_like.importers.xml_source import ImportFileError

SECONDS, SECONDS_PER_BYTE = 10.0, 1.0e-4
"""Limit of the processor time for opening a file, and for every thousand of its specs: a constant [s], and per byte. Valid files of many
small prims take some microseconds a byte, and others less."""

BINARY = (".usd", ".usdc", ".usdz")
"""Suffixes of files with binary layers."""

SCRIPT = Path(__file__).with_name("reading.py")
"""The script of the separate process."""

_BOOT = "import json, runpy, sys; sys.path[:] = json.loads(sys.stdin.readline()); runpy.run_path(sys.argv[1], run_name='__main__')"


def is_text(content: bytes) -> bool:
    """Whether a file with this beginning is not a binary layer."""
    return content[:100].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"#")


class Guard:
    """Checks the binary layers of one stage, and then the stage. Results are cached until a file changes.

    Args:
        name: name of the stage in messages.
    """

    def __init__(self, name: str):
        self._name = name
        self._session = next(_sessions)
        self._stamps: list[tuple] = []
        self._vetted: list[str] = []

    def layer(self, path: str) -> None:
        """Checks a layer if it is binary.

        Args:
            path: path of the file, or of a layer in an archive.

        Raises:
            ImportFileError: a file that cannot be read, is damaged, crashes USD, or exceeds the time limit.
        """
        outer, inner = Ar.SplitPackageRelativePathOuter(path) if Ar.IsPackageRelativePath(path) else (path, "")
        outer = os.path.abspath(outer)
        stamp = _stamp(outer)
        if stamp is None:
            return
        self._stamps.append(stamp)
        if not _is_binary(outer):
            return
        name = Path(outer).name + (f"[{inner}]" if inner else "")
        self._vetted.append(name)
        identifier = Ar.JoinPackageRelativePath(outer, inner) if inner else outer
        self._ask(("layer", identifier, stamp), name, {"layer": identifier}, stamp[2])

    def clips(self, path: str) -> None:
        """Checks the files of a value clip, given by a path or a template."""
        for file in _matching(path) if "#" in path else [path]:
            self.layer(file)

    def stage(self, root: str, folders: list[str], *, text: bool = False) -> None:
        """Checks the composition of a stage with binary layers.

        Args:
            root: path, or the text of a stage without a file.
            folders: search folders of names without a dot.
            text: whether ``root`` is a text.

        Raises:
            ImportFileError: the composition crashes USD, or exceeds the time limit.
        """
        if not self._vetted:
            return
        request = {"text" if text else "stage": root if text else os.path.abspath(root), "folders": folders}
        size = sum(stamp[2] for stamp in self._stamps)
        source = hashlib.sha256(root.encode(errors="replace")).hexdigest() if text else root
        key = ("stage", source, *folders, *self._stamps)
        files = ", ".join(self._vetted[:3]) + (f", and {len(self._vetted) - 3} more" if len(self._vetted) > 3 else "")
        self._ask(key, self._name if files == self._name else f"{self._name} (or one of {files})", request, size)

    def _ask(self, key: tuple, name: str, request: dict, size: int) -> None:
        if key not in _known:
            seconds = SECONDS + SECONDS_PER_BYTE * size
            try:
                found = _reader.ask({**request, "session": self._session, "seconds": seconds, "size": size})
            except _NoReaderError as error:
                _warn(str(error))
                return
            if found in SLOW:
                raise ImportFileError(f"{name} could not be read in {seconds:.3g} s, and may be damaged; {CURE}")
            if isinstance(found, int):
                raise ImportFileError(f"{name} is damaged and crashes USD; {CURE}")
            _known[key] = found
        if wrong := _known[key]:
            raise ImportFileError(f"{name} {wrong}")


_known: dict[tuple, str] = {}
"""Error messages of files and stages, by their keys; "" for valid ones."""

_sessions = itertools.count()


def _stamp(path: str) -> tuple[str, int, int] | None:
    with contextlib.suppress(OSError, ValueError):
        if os.path.isfile(path):
            status = os.stat(path)
            return path, status.st_mtime_ns, status.st_size
    return None


def _is_binary(path: str) -> bool:
    if not path.lower().endswith(BINARY):
        return False
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return not is_text(file.read(100))
    return False


def _matching(template: str) -> list[str]:
    """Files that match a template of value clips, in which runs of ``#`` are numbers."""
    path = Path(template)
    pattern = re.compile("".join(r"-?\d+" if "#" in part else re.escape(part) for part in re.split("(#+)", path.name)))
    with contextlib.suppress(OSError):
        return sorted(str(file) for file in path.parent.iterdir() if pattern.fullmatch(file.name))
    return []


class _NoReaderError(Exception):
    """A separate process cannot be started; the message gives the reason."""


class _Reader:
    """The separate process. It is started on demand, restarted after a crash, and ended with this process."""

    def __init__(self):
        self.forget()

    def forget(self) -> None:
        """Drops the separate process without ending it. For a fork of this process, because the original still uses it."""
        self._lock = threading.Lock()
        if process := getattr(self, "_process", None):
            process.stdin.close()
            process.stdout.close()
            process.returncode = 0  # prevents Popen from waiting for it in the fork
        self._process: subprocess.Popen | None = None

    def ask(self, request: dict) -> str | int:
        """The answer to a request, or the exit code of a fresh process that crashed on this request.

        Raises:
            _NoReaderError: a separate process cannot be started.
        """
        with self._lock:
            fresh = self._process is None or self._process.poll() is not None
            if fresh:
                self._start()
            found = self._exchange(request)
            if isinstance(found, int) and not fresh:  # repeat: an earlier request may be the cause
                self._start()
                found = self._exchange(request)
            return found

    def stop(self) -> None:
        """Ends the separate process immediately."""
        if process := self._process:
            self._process = None
            process.kill()
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.stdout.close()
            process.wait()

    def _start(self) -> None:
        self.stop()
        program = sys.executable or ""
        if getattr(sys, "frozen", False) or not re.search("python|pypy", Path(program).name.lower()):
            raise _NoReaderError(f"{program or 'this program'!r} is not a Python interpreter")
        # Uninitialised memory is not zero there, so that its use is detected; crash reports of USD are discarded.
        environment = {**os.environ, "MALLOC_PERTURB_": "165", "MALLOC_ARENA_MAX": "4", "TMPDIR": os.devnull}
        try:
            self._process = subprocess.Popen(
                [program, "-S", "-P", "-c", _BOOT, str(SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            raise _NoReaderError(f"{program!r} cannot be started: {error}") from error
        if self._exchange([entry for entry in sys.path if isinstance(entry, str)]) != "ready":
            self.stop()
            raise _NoReaderError(f"{program!r} cannot run {SCRIPT}")

    def _exchange(self, message) -> str | int:
        process = self._process
        try:
            with contextlib.suppress(BrokenPipeError, OSError):
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
            line = process.stdout.readline()
        except BaseException:  # after an interrupt, a late answer would belong to the next request
            self.stop()
            raise
        if line.endswith(b"\n"):
            return json.loads(line)
        code = process.wait()
        self.stop()
        return code


def _warn(why: str) -> None:
    if not _warned:
        _warned.append(why)
        warnings.warn(
            f"binary USD files are read in this process, because a separate one cannot be used ({why}); a damaged file may crash it",
            RuntimeWarning,
            stacklevel=2,
        )


_warned: list[str] = []
_reader = _Reader()
atexit.register(_reader.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reader.forget)
