"""Writes the named frames of a model, ``model.frames``, as attributes of the prims that carry them."""

from __future__ import annotations

from newton_like.exporters.usd.author import Author
from newton_like.exporters.usd.host import Host, Scope, frame_world


def write_frames(author: Author, host: Host, bodies: list[str], articulations: list[str], whole: list[Scope]) -> None:
    """Writes ``newtonLike:frames`` (names), ``newtonLike:frameIndices`` (places in ``model.frames``) and ``newtonLike:framePoses`` (seven
    numbers each: position [m], quaternion x y z w, relative to the prim).

    Args:
        author: writer of prims.
        host: arrays of the model.
        bodies, articulations: paths of the prims; frames of the world are on the prim of their articulation, or on that of the scene.
        whole: the scopes that are written in full.
    """
    frames, scopes = host.model.frames, {scope.world: scope for scope in whole}
    rows: dict[str, list[int]] = {}
    for i in range(len(frames)):
        scope = scopes.get(frame_world(host, i))
        if scope is not None:
            body, articulation = int(frames.body[i]), int(frames.articulation[i])
            path = bodies[body] if body >= 0 else articulations[articulation] if articulation >= 0 else ""
            rows.setdefault(path or scope.root, []).append(i)
    for path, own in rows.items():
        prim = author.layer.GetPrimAtPath(path)
        scope = scopes[frame_world(host, own[0])]
        author.set(prim, "newtonLike:frames", "string[]", [scope.strip(frames.label[i]) for i in own])
        author.set(prim, "newtonLike:frameIndices", "int[]", own)
        author.set(prim, "newtonLike:framePoses", "double[]", frames.transform[own].ravel())
