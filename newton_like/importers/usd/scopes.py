"""Import of stages with several worlds, from ``newton_like.usd.write``: the shared scene first, then each world."""

from __future__ import annotations

from dataclasses import dataclass

from newton_like.importers.shared import unchanged_by_errors
from newton_like.importers.usd.actuators import Actuators
from newton_like.importers.usd.build import SceneBuilder, UsdOptions
from newton_like.importers.usd.constraints import Constraints
from newton_like.importers.usd.frames import restore_frames
from newton_like.importers.usd.mujoco import MujocoSettings, declare_stated
from newton_like.importers.usd.own import Restorer, arrange, world_prims
from newton_like.importers.usd.records import Scene, below


@dataclass
class Part:
    """Records below one prim, and their entities in the builder; ``world`` is the prim of a world, or ``None``, and ``index`` the number of
    that world."""

    world: object
    scene: Scene
    made: SceneBuilder | None = None
    index: int = -1


def add_parts(builder, stage, root_path: str, parse, options: UsdOptions) -> list[Part]:
    """Adds a stage to a builder, and begins a world for each prim of a world.

    If a world is open already, or the stage is added to a body, all entities are added there. An error leaves the builder unchanged.

    Args:
        builder: the model builder.
        stage: the stage.
        root_path: path of the prim whose descendants are added.
        parse: function from a path and a set of paths to leave out to the ``Scene`` below that path.
        options: options of the user.

    Returns:
        The parts, the shared one first.
    """
    alone = builder.current_world < 0 and options.parent_body < 0
    worlds = world_prims(stage, root_path) if alone else []
    parts = [Part(None, parse(root_path, frozenset(str(prim.GetPath()) for prim in worlds)))]
    parts += [Part(prim, parse(str(prim.GetPath()), frozenset())) for prim in worlds]
    for part in parts:
        arrange(stage, part.scene)
    across = _take_filters_across(parts) if worlds else []
    with unchanged_by_errors(builder):
        for part in parts:
            prefix = ""
            if part.world is not None:
                label, prefix = (
                    part.world.GetAttribute(f"newtonLike:{name}").Get() for name in ("label", "labelPrefix")
                )
                builder.begin_world(label=label)
            part.index = builder.current_world
            declare_stated(builder, part.scene)
            part.made = SceneBuilder(builder, part.scene, options)
            part.made.build()
            Restorer(builder, part.scene, part.made, stage, part.scene.reader, prefix or "").restore()
            tops = _tops(stage, root_path, worlds) if part.world is None else [part.world]
            restore_frames(builder, part.scene, part.made, tops, prefix or "")
            before = [other.made for other in parts[: parts.index(part)][:1]]
            constraints = Constraints(builder, part.scene, part.made, before, prefix or "")
            constraints.add()
            Actuators(constraints).add()
            MujocoSettings(constraints).add()
            if part.world is not None:
                builder.end_world()
        _filter_across(builder, parts, across)
    return parts


def _tops(stage, root_path: str, worlds: list) -> list:
    """The prims of a scene that may have frames of the world: that of the path and its children, and worlds that are not parts."""
    root = stage.GetPrimAtPath(root_path)
    tops = [root, *root.GetChildren()] if root else []
    parts = {prim.GetPath() for prim in worlds}
    return [prim for prim in [*tops, *world_prims(stage, root_path)] if prim.GetPath() not in parts]


def _take_filters_across(parts: list[Part]) -> list[tuple[str, str]]:
    """Removes the filtered pairs of the shared scene with shapes in worlds from its records, and returns them."""
    roots = {str(part.world.GetPath()) for part in parts[1:]}
    depth = next(iter(roots)).count("/")
    shared = parts[0].scene

    def is_inside(path: str) -> bool:
        return "/".join(path.split("/")[: depth + 1]) in roots

    across = [pair for pair in shared.filters if any(map(is_inside, pair))]
    shared.filters = [pair for pair in shared.filters if not any(map(is_inside, pair))]
    return across


def _filter_across(builder, parts: list[Part], across: list[tuple[str, str]]) -> None:
    if not across:
        return
    shapes = {path: indices for part in parts for path, indices in part.made.shapes.items()}
    paths = sorted(shapes)

    def at(path: str) -> list[int]:
        return [shape for found in (path, *below(path, paths)) for shape in shapes.get(found, ())]

    pairs = [(a, b) for first, second in across for a in at(first) for b in at(second) if a != b]
    builder.shape_collision_filter_pairs.update(pairs)
