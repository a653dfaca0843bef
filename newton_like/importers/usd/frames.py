"""Reads the named frames that :func:`newton_like.usd.write` writes."""

from __future__ import annotations

import numpy as np
from pxr import Usd, UsdGeom

from newton_like.importers.usd.values.pose import transform, transform_multiply
from newton_like.importers.usd.values.units import placement


def restore_frames(builder, scene, made, tops, prefix: str) -> None:
    """Adds the named frames of a scene to a builder, in the order in which the model had them.

    Args:
        builder: the builder with the added stage.
        scene: the records.
        made: the ``SceneBuilder`` that added them.
        tops: prims of the scene as a whole, which may have frames of the world.
        prefix: prefix of labels.

    Raises:
        ImportFileError: the attributes of a prim do not fit each other, or it has no pose.
    """
    found = []
    for path, (body, pose) in made.frames.items():
        for index, label, own in _frames_of(scene, scene.prim_at(path)):
            found.append((index, label, body, -1, transform_multiply(pose, own)))
    fixed = {path: articulation for path, articulation in made.articulations.items() if path not in made.frames}
    fixed = {str(top.GetPath()): -1 for top in tops if str(top.GetPath()) not in made.frames} | fixed
    for path, articulation in fixed.items():
        prim = scene.prim_at(path)
        for index, label, own in _frames_of(scene, prim):
            pose = made.in_world(transform_multiply(_pose_of(scene, prim), own), path)
            found.append((index, label, -1, articulation, pose))
    found.sort(key=lambda each: each[0])
    _, labels, bodies, articulations, poses = zip(*found, strict=True) if found else ((),) * 5
    builder.frames.extend([prefix + label for label in labels], bodies, poses, articulations)


def _frames_of(scene, prim) -> list[tuple[int, str, np.ndarray]]:
    """Index, name and pose [m] of each frame of a prim."""
    # the root of a stage has no attributes, and USD warns of a question for one
    attribute = prim.GetAttribute("newtonLike:frames") if prim and not prim.IsPseudoRoot() else None
    labels = attribute.Get() if attribute else None
    if not labels:
        return []
    indices, numbers = (scene.reader.numbers(prim, f"newtonLike:{name}") for name in ("frameIndices", "framePoses"))
    count = len(labels)
    if indices is None or numbers is None or np.size(indices) != count or np.size(numbers) != 7 * count:
        raise scene.reader.error(
            prim,
            f"newtonLike:frames has {count} names, which need {count} newtonLike:frameIndices and {7 * count} newtonLike:framePoses",
        )
    poses = np.reshape(numbers, (count, 7)).astype(np.float64)
    lengths = np.linalg.norm(poses[:, 3:], axis=1)
    if not np.isfinite(poses).all() or not (np.abs(lengths - 1.0) < 1.0e-3).all():
        raise scene.reader.error(
            prim, "newtonLike:framePoses has a number that is not finite, or a quaternion that is not of unit length"
        )
    poses[:, :3] *= scene.units.meters
    poses[:, 3:] /= lengths[:, None]
    return [(int(i), str(label), pose) for i, label, pose in zip(np.ravel(indices), labels, poses, strict=True)]


def _pose_of(scene, prim) -> np.ndarray:
    """Pose of a prim in its stage [m]."""
    transformable = UsdGeom.Xformable(prim)
    if not transformable:
        return transform()
    place = placement(transformable.ComputeLocalToWorldTransform(Usd.TimeCode.Default()), scene.units.meters)
    if place is None:
        raise scene.reader.error(prim, "its frame has a scale of 0 or a number that is not finite; correct it")
    return place.pose
