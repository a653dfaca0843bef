"""USD stages opened safely: no layer outside of the allowed folders is read, whatever a file names."""

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
"""Files that a stage may consist of. Scenes have dozens; more are a mistake or an attack."""

MAX_DEPTH = 500
"""Deepest nesting of prims. Scenes have about twenty levels, and USD itself dies of too many."""

_SCHEME = re.compile(r"[A-Za-z][\w+.-]+:")
"""What URLs and names of layers in memory start with; a drive of Windows has one letter."""


@contextlib.contextmanager
def usd_errors(name: str):
    """Turns errors of the USD library into ours."""
    try:
        yield
    except Tf.ErrorException as error:
        raise ImportFileError(f"{name} cannot be read as USD: {plain(str(error))}") from error


def open_stage(source, package_dirs: tuple[Path, ...] = (), *, text: bool = True) -> tuple[Usd.Stage, str]:
    """The stage that a source is or names, and what messages call it.

    Some damaged binary files make USD itself end the process. So another process reads binary files first, and composes
    their stage; what it dies of, or does not come to an end with, is refused (see ``guard``). That takes half a second for
    the first such file, and a third more of the time for others; files that do not change are read so once.

    Sublayers, references, payloads and value clips are read from the folder of the stage and below, and from
    ``package_dirs``; files elsewhere raise an error before they are opened, in variants that are not chosen too. Paths are
    compared as they are written, so that a link inside of a folder may lead out of it. A stage that is open already has
    read its files, and is taken as it is.

    Args:
        source: a ``Usd.Stage``, a path or the text of a ``.usda`` file.
        package_dirs: other folders from which layers may be read. Names that do not start with a dot are looked up
            there too.
        text: whether texts are taken.

    Raises:
        FileNotFoundError: the file does not exist.
        ImportFileError: it is not USD, is damaged, or names a file that may not be read.
        TypeError: ``source`` is none of these.
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
            # os.path.isfile() is false for names the system cannot have, where Path.is_file() raises.
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
    """Knows the folders that may be read.

    Args:
        name: what messages call the stage.
        allowed: folders.
        guard: vets what is read.
    """

    def __init__(self, name: str, allowed, guard: Guard):
        self._name, self._guard = name, guard
        self._allowed = tuple(Path(os.path.abspath(folder)) for folder in allowed)

    def walk(self, root: Sdf.Layer) -> list[Sdf.Layer]:
        """All layers that a layer names, it itself, and those that they name; each is checked before it is opened."""
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
                with contextlib.suppress(Tf.ErrorException):  # what is broken is reported when the stage is composed
                    found = Sdf.Layer.FindOrOpen(identifier)
                    if found is not None:
                        layers.append(found)
                        # A stronger layer stack's variables override those of what it refers to.
                        variables.append(known if name in sublayers else {**found.expressionVariables, **known})
        return layers

    def check(self, stage: Usd.Stage) -> None:
        """Refuses a stage that was composed of layers that :meth:`walk` did not foresee."""
        for layer in stage.GetUsedLayers():
            if not layer.anonymous:
                self._check(_outer(layer.realPath or layer.identifier), layer.identifier, "a layer of the stage")

    def _check_clips(self, layer: Sdf.Layer, clips) -> None:
        """Value clips: files that hold time samples."""
        for clip in clips.values():
            if not isinstance(clip, dict):
                continue
            named = [clip.get("manifestAssetPath"), clip.get("templateAssetPath"), *(clip.get("assetPaths") or ())]
            for name in named:
                if (name := name.path if isinstance(name, Sdf.AssetPath) else name) and self._checked(layer, name):
                    anchored = Sdf.ComputeAssetPathRelativeToLayer(layer, name)
                    self._guard.clips(str(Ar.GetResolver().Resolve(anchored)) or anchored)

    def _checked(self, layer: Sdf.Layer, name: str) -> str | None:
        """What a layer names, as USD opens it; ``None`` where it names nothing."""
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
    """The file on disk: the archive, where a path leads into one."""
    return Ar.SplitPackageRelativePathOuter(path)[0] if Ar.IsPackageRelativePath(path) else path


def _evaluated(name: str, variables: dict) -> str:
    """An asset path with its variables put in; as it is where it has none, "" where they are not known."""
    if not Sdf.VariableExpression.IsExpression(name):
        return name
    value = Sdf.VariableExpression(name).Evaluate(variables).value
    return value if isinstance(value, str) else ""


def _screen(path: str) -> None:
    """Refuses a file that USD would die of."""
    with contextlib.suppress(
        OSError, EOFError, RuntimeError, struct.error, zipfile.BadZipFile
    ):  # USD says what is wrong
        if path.lower().endswith(".usdz"):
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    if entry.filename.lower().endswith((".usda", ".usd")) and entry.compress_type == zipfile.ZIP_STORED:
                        _check_depth(f"{Path(path).name}[{entry.filename}]", archive.read(entry))
        elif path:
            _check_depth(Path(path).name, Path(path).read_bytes())


def _check_depth(name: str, content: bytes) -> None:
    """Refuses a text whose braces are nested too deep; USD's parser needs its stack for each."""
    if is_text(content):
        letters = np.frombuffer(content, dtype=np.uint8)
        braces = letters[(letters == ord("{")) | (letters == ord("}"))]
        if np.cumsum(np.where(braces == ord("{"), 1, -1)).max(initial=0) > MAX_DEPTH:
            raise ImportFileError(f"{name}: braces are nested deeper than {MAX_DEPTH}")


def _named(layer: Sdf.Layer) -> tuple[list[str], list]:
    """Sublayers, references and payloads that a layer names; and all that its prims say about value clips.

    Raises:
        ImportFileError: the layer says of a prim that it is there, and it is not, or its prims are nested too deep.
    """
    if layer.anonymous or layer.dirty:
        binary, clipped = False, "clips" in layer.ExportToString()
    else:
        binary = clipped = True
        with contextlib.suppress(OSError):
            content = Path(layer.realPath).read_bytes()
            # In binary files words may be cut into pieces.
            binary, clipped = not is_text(content), not is_text(content) or b"clips" in content
    if not clipped:
        return layer.GetCompositionAssetDependencies(), []
    # Nothing is raised in look(): USD would go on.
    paths: list[Sdf.Path] = []

    def look(path: Sdf.Path) -> None:
        # The path of a set of variants is that of a choice without a name.
        if path.IsPrimPath() or (path.IsPrimVariantSelectionPath() and path.GetVariantSelection()[1]):
            paths.append(path)

    layer.Traverse(Sdf.Path.absoluteRootPath, look)
    if max((path.pathElementCount for path in paths), default=0) > MAX_DEPTH:
        raise ImportFileError(f"{layer.GetDisplayName()}: prims are nested deeper than {MAX_DEPTH}")
    # USD's own list of these dies of some broken binary files that the stage survives.
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
