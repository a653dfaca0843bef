"""Safe opening of USD stages: layers outside of the allowed folders are not read."""

from __future__ import annotations

import contextlib
import os
import re
import struct
import zipfile
from pathlib import Path

import numpy as np
from pxr import Ar, Sdf, Tf, Usd

from newton_like.importers.usd.opening.guard import Guard, is_text
from newton_like.importers.usd.opening.reading import plain
from newton_like.importers.xml_source import ImportFileError

MAX_LAYERS = 10_000
"""Largest number of files of a stage. Scenes have dozens; more indicate a mistake or an attack."""

MAX_DEPTH = 500
"""Deepest nesting of prims. Scenes have about twenty levels, and too many levels crash USD."""

_SCHEME = re.compile(r"[A-Za-z][\w+.-]+:")
"""Start of URLs and of names of layers in memory; Windows drives have one letter only."""


@contextlib.contextmanager
def usd_errors(name: str):
    """Context manager that converts errors of the USD library to ImportFileError."""
    try:
        yield
    except Tf.ErrorException as error:
        raise ImportFileError(f"{name} cannot be read as USD: {plain(str(error))}") from error


def open_stage(source, package_dirs: tuple[Path, ...] = (), *, text: bool = True) -> tuple[Usd.Stage, str]:
    """Opens the stage of a source, and returns it with its name for messages.

    Some damaged binary files crash USD. Therefore a separate process first reads binary files and composes their
    stage. Files for which this process crashes or exceeds its time limit raise an error (see ``guard``). The check takes half
    a second for the first such file, and a third of the reading time for others. Unchanged files are checked once.

    Sublayers, references, payloads and value clips are read from the folder of the stage and its subfolders, and from
    ``package_dirs``. Files elsewhere raise an error before they are opened, also in variants that are not selected. Paths are
    compared as they are written, so a symbolic link may lead out of a folder. A stage that is already open has
    read its files, and is not checked.

    Args:
        source: a ``Usd.Stage``, a path or the text of a ``.usda`` file.
        package_dirs: other folders from which layers may be read. Names that do not start with a dot are also searched
            there.
        text: whether the text of a stage is accepted.

    Raises:
        FileNotFoundError: the file does not exist.
        ImportFileError: not USD, damaged, or with the name of a file outside of the allowed folders.
        TypeError: ``source`` has another type.
    """
    if isinstance(source, Usd.Stage):
        return source, source.GetRootLayer().GetDisplayName() or "stage"
    if not isinstance(source, str | os.PathLike):
        kinds = "a Usd.Stage, a path or the text of a .usda file" if text else "a Usd.Stage or a path"
        raise TypeError(f"a USD source must be {kinds}, not {source!r}")
    with usd_errors(repr(str(source)[:80])):
        allowed = list(package_dirs)
        if text and isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("#usda"):
            name, layer = "<text>", Sdf.Layer.CreateAnonymous(".usda")
            vetting, written = Guard(name), True
            _check_depth("<text>", source.encode(errors="replace"))
            if not layer.ImportFromString(source.lstrip("\ufeff \t\r\n")):
                raise ImportFileError("<text>: this is not USD text; it must follow the grammar of .usda files")
        else:
            # for invalid names os.path.isfile() is false, but Path.is_file() raises
            if not os.path.isfile(source):
                raise FileNotFoundError(f"USD file {os.fspath(source)[:200]!r} does not exist; correct the path")
            name = Path(source).name
            vetting, written = Guard(name), False
            _screen(os.fspath(source))
            vetting.layer(os.fspath(source))
            layer = Sdf.Layer.FindOrOpen(os.fspath(source))
            if layer is None:
                raise ImportFileError(f"{name} cannot be read as USD; it must be a .usda, .usdc, .usd or .usdz file")
            allowed.insert(0, Path(source).parent)
        fence = _Fence(name, allowed, vetting)
        searched = [os.path.abspath(folder) for folder in package_dirs]
        context = Ar.DefaultResolverContext(searched)
        with Ar.ResolverContextBinder(context):
            layers = fence.walk(layer)
        vetting.stage(os.fspath(source), searched, text=written)
        stage = Usd.Stage.Open(layer, context)
        with Ar.ResolverContextBinder(context):
            fence.check(stage)
    del layers  # held until here, so that the stage does not read them again
    return stage, name


class _Fence:
    """Checks that the files of a stage are in the allowed folders.

    Args:
        name: name of the stage in messages.
        allowed: folders.
        guard: checks the contents of files.
    """

    def __init__(self, name: str, allowed, guard: Guard):
        self._name, self._guard = name, guard
        self._allowed = tuple(Path(os.path.abspath(folder)) for folder in allowed)

    def walk(self, root: Sdf.Layer) -> list[Sdf.Layer]:
        """A layer and all layers that it refers to, directly or indirectly. Each is checked before it is opened."""
        layers = [root]
        variables = [dict(root.expressionVariables)]
        seen = {root.identifier}
        for layer, known in zip(layers, variables, strict=False):  # both grow
            assets, all_clips = _named(layer)
            for clips in all_clips:
                self._check_clips(layer, clips)
            sublayers = set(layer.subLayerPaths)
            for name in assets:
                identifier = self._checked(layer, _evaluated(name, known))
                if identifier is None or identifier in seen:
                    continue
                seen.add(identifier)
                if len(seen) > MAX_LAYERS:
                    raise ImportFileError(f"{self._name} consists of more than {MAX_LAYERS} files; join some")
                resolved = str(Ar.GetResolver().Resolve(identifier))
                _screen(_outer(resolved))
                if resolved:
                    self._guard.layer(resolved)
                with contextlib.suppress(Tf.ErrorException):  # errors are reported when the stage is composed
                    found = Sdf.Layer.FindOrOpen(identifier)
                    if found is not None:
                        layers.append(found)
                        # Variables of a stronger layer stack override those of the referenced layers.
                        variables.append(known if name in sublayers else {**found.expressionVariables, **known})
        return layers

    def check(self, stage: Usd.Stage) -> None:
        """Raises ImportFileError if a layer of the composed stage is outside of the allowed folders, in case :meth:`walk` missed it."""
        for layer in stage.GetUsedLayers():
            if not layer.anonymous:
                self._check(_outer(layer.realPath or layer.identifier), layer.identifier, "a layer of the stage")

    def _check_clips(self, layer: Sdf.Layer, clips) -> None:
        """Checks the files of value clips, which contain time samples."""
        for clip in clips.values():
            if not isinstance(clip, dict):
                continue
            named = [clip.get("manifestAssetPath"), clip.get("templateAssetPath"), *(clip.get("assetPaths") or ())]
            for name in named:
                if (name := name.path if isinstance(name, Sdf.AssetPath) else name) and self._checked(layer, name):
                    anchored = Sdf.ComputeAssetPathRelativeToLayer(layer, name)
                    self._guard.clips(str(Ar.GetResolver().Resolve(anchored)) or anchored)

    def _checked(self, layer: Sdf.Layer, name: str) -> str | None:
        """Checks a path in a layer, and returns the identifier that USD opens for it; ``None`` for an empty path."""
        path, arguments = Sdf.Layer.SplitIdentifier(name)
        if not path:
            return None
        if _SCHEME.match(path):
            raise ImportFileError(
                f"{self._name}: {layer.GetDisplayName()} names {name[:200]!r}, and only local files are read; download "
                "it, and name it by its path"
            )
        anchored = Sdf.ComputeAssetPathRelativeToLayer(layer, path)
        found = str(Ar.GetResolver().Resolve(anchored)) or anchored
        self._check(_outer(found), name, layer.GetDisplayName())
        return Sdf.Layer.CreateIdentifier(anchored, arguments)

    def _check(self, path: str, name: str, where: str) -> None:
        path = Path(os.path.abspath(path))
        if not any(path.is_relative_to(folder) for folder in self._allowed):
            folders = ", ".join(map(str, self._allowed)) or "none, as the stage is a text without a file"
            raise ImportFileError(
                f"{self._name}: {where} names {name[:200]!r}, which is outside of the folders that may be read "
                f"({folders}); move it there, or name its folder in package_dirs"
            )


def _outer(path: str) -> str:
    """The file on disk; for a path into an archive, the archive."""
    return Ar.SplitPackageRelativePathOuter(path)[0] if Ar.IsPackageRelativePath(path) else path


def _evaluated(name: str, variables: dict) -> str:
    """Evaluates the variables of an asset path. A path without variables is returned unchanged; "" if a variable is unknown."""
    if not Sdf.VariableExpression.IsExpression(name):
        return name
    value = Sdf.VariableExpression(name).Evaluate(variables).value
    return value if isinstance(value, str) else ""


def _screen(path: str) -> None:
    """Raises ImportFileError for a file that crashes USD by deep nesting."""
    with contextlib.suppress(
        OSError, EOFError, RuntimeError, struct.error, zipfile.BadZipFile
    ):  # USD reports these errors
        if path.lower().endswith(".usdz"):
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    if entry.filename.lower().endswith((".usda", ".usd")) and entry.compress_type == zipfile.ZIP_STORED:
                        _check_depth(f"{Path(path).name}[{entry.filename}]", archive.read(entry))
        elif path:
            _check_depth(Path(path).name, Path(path).read_bytes())


def _check_depth(name: str, content: bytes) -> None:
    """Raises ImportFileError for a text with deeply nested braces, because USD's parser is recursive."""
    if is_text(content):
        letters = np.frombuffer(content, dtype=np.uint8)
        braces = letters[(letters == ord("{")) | (letters == ord("}"))]
        if np.cumsum(np.where(braces == ord("{"), 1, -1)).max(initial=0) > MAX_DEPTH:
            raise ImportFileError(f"{name}: braces are nested deeper than {MAX_DEPTH}")


def _named(layer: Sdf.Layer) -> tuple[list[str], list]:
    """Sublayers, references and payloads of a layer, and the value clips of its prims.

    Raises:
        ImportFileError: the layer lists a prim that does not exist, or its prims are nested too deep.
    """
    if layer.anonymous or layer.dirty:
        binary, clipped = False, "clips" in layer.ExportToString()
    else:
        binary = clipped = True
        with contextlib.suppress(OSError):
            content = Path(layer.realPath).read_bytes()
            # Binary files may store words in pieces.
            binary, clipped = not is_text(content), not is_text(content) or b"clips" in content
    if not clipped:
        return layer.GetCompositionAssetDependencies(), []
    # look() must not raise, because USD would ignore the exception.
    paths: list[Sdf.Path] = []

    def look(path: Sdf.Path) -> None:
        # The path of a variant set is a selection with an empty name.
        if path.IsPrimPath() or (path.IsPrimVariantSelectionPath() and path.GetVariantSelection()[1]):
            paths.append(path)

    layer.Traverse(Sdf.Path.absoluteRootPath, look)
    if max((path.pathElementCount for path in paths), default=0) > MAX_DEPTH:
        raise ImportFileError(f"{layer.GetDisplayName()}: prims are nested deeper than {MAX_DEPTH}")
    # GetCompositionAssetDependencies() crashes for some damaged binary files that a stage can read.
    assets = list(layer.subLayerPaths) if binary else layer.GetCompositionAssetDependencies()
    clips = []
    for path in paths:
        prim = layer.GetPrimAtPath(path)
        if not prim:
            raise ImportFileError(f"{layer.GetDisplayName()} is damaged: <{path}> is listed but missing")
        if prim.HasInfo("clips"):
            clips.append(prim.GetInfo("clips"))
        for arc in ("references", "payload") if binary else ():
            if prim.HasInfo(arc):
                listed = prim.GetInfo(arc)
                for kind in ("explicit", "prepended", "appended", "added"):
                    assets += [item.assetPath for item in getattr(listed, f"{kind}Items")]
    return assets, clips
