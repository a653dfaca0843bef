"""Rigid objects: free bodies, one or several in each world."""

from __future__ import annotations

import re

import numpy as np
import warp as wp

from newton_like.arrays import is_captured
from newton_like.articulation.asset import Asset
from newton_like.articulation.chosen import Chosen, as_device, choose
from newton_like.articulation.data.assigning import Assigned, no_attribute
from newton_like.articulation.data.body_data import BodyData
from newton_like.articulation.data.foreign import NumpyViews, TorchViews
from newton_like.articulation.drawing import DebugVisCfg, checked_cfg
from newton_like.articulation.names import find_names
from newton_like.articulation.wrenches import CollectionWrenchComposer
from newton_like.geometry.markers import Markers
from newton_like.kernels.articulation.scatter import scatter_kernels


class RigidObject(Asset):
    """A single body with a free joint (or fixed to the world) in each world, with the interface of Isaac Lab's ``RigidObject``.

    Args:
        model: a :class:`newton_like.Model` or a :class:`newton_like.articulation.SimulationContext`.
        pattern: pattern of the labels of articulations.

    Attributes:
        data: the :class:`newton_like.articulation.data.body_data.BodyData`.

    Raises:
        KeyError: no articulation matches.
        ValueError: the pattern matches several articulations of a world, or one with several bodies.
    """

    def __init__(self, model, pattern):
        super().__init__(model, pattern)
        if self.num_bodies != 1:
            raise ValueError(
                f"'{self._layout.label}' has {self.num_bodies} bodies ({', '.join(map(repr, self.body_names[:4]))}); a RigidObject has"
                " one: use an Articulation"
            )
        self.data.close()

    def _make_data(self) -> BodyData:
        return BodyData(self.sim, self._layout)

    def reset(self, env_ids=None) -> None:
        """Clears what is remembered of instances: external wrenches, accelerations, and contact forces that steps start from. The state
        stays; :meth:`reset_to` writes it, too.

        Args:
            env_ids: instances: None (all), a slice, indices, or a mask of bools.

        Raises:
            IndexError: an instance does not exist.
        """
        super().reset(env_ids)

    def reset_to(self, env_ids=None, root_state=None, frame: str = "state") -> None:
        """Resets instances to the default state, or to a given one.

        Args:
            env_ids: instances: None (all), a slice, indices, or a mask of bools.
            root_state: ``[instances, 13]``; None: ``data.default_root_state``.
            frame: see :meth:`newton_like.articulation.Articulation.reset_to`.

        Raises:
            ValueError: an unknown frame; see :meth:`write_root_state_to_sim`.
            IndexError: an instance does not exist.
        """
        rows = self._rows(env_ids)
        self._put_reset(self._checked_root(rows, root_state, frame), rows, frame)

    def _put_reset(self, root: wp.array | None, rows: Chosen, frame: str) -> None:
        """Writes what ``_checked_root`` gave."""
        self._put_root(root, rows, frame)
        self.reset(rows)


class RigidObjectCollectionData(Assigned):
    """States of the objects of a :class:`RigidObjectCollection`, as of bodies: ``[num_instances, num_objects, ...]``.

    ``object_*`` are the properties ``root_*`` of each object (``object_link_pose_w``, ``object_com_vel_w``, ``object_lin_vel_b``,
    ``projected_gravity_b``, ``heading_w``, ``object_acc_w``, ...). They are copies, gathered when they are read.

    Args:
        objects: the rigid objects.

    Attributes:
        object_names: names of the objects.
        default_object_state: ``[n, objects, 13]``.
        default_mass: ``[n, objects, 1]``. default_inertia: ``[n, objects, 9]``.
    """

    def __init__(self, objects: dict[str, RigidObject]):
        self._objects = list(objects.values())
        self.object_names = list(objects)
        self._kept: dict[str, tuple[int, wp.array]] = {}
        self.default_object_state = self._stacked("default_root_state")
        self.default_mass = self._stacked("default_mass")
        inertia = self._stacked("default_inertia")
        self.default_inertia = inertia.reshape((*inertia.shape[:2], 9))
        self.close()

    @property
    def numpy(self) -> NumpyViews:
        """The same attributes as arrays of NumPy, in place on a CPU: ``data.numpy.joint_pos``."""
        return NumpyViews(self)

    @property
    def torch(self) -> TorchViews:
        """The same attributes as tensors of torch, in place: ``data.torch.joint_pos``."""
        return TorchViews(self)

    def _stacked(self, name: str, out: wp.array | None = None) -> wp.array:
        parts = [getattr(each.data, name) for each in self._objects]
        if name.startswith("body_"):
            parts = [_without_bodies(part) for part in parts]
        shape = (parts[0].shape[0], len(parts), *parts[0].shape[1:])
        if out is None:
            out = wp.empty(shape, dtype=parts[0].dtype, device=parts[0].device)
        for k, part in enumerate(parts):
            if is_captured(part.device):
                self._copy_in_graph(_item(out, k), part)
            else:
                wp.copy(_item(out, k), part)
        return out

    def _copy_in_graph(self, target: wp.array, part: wp.array) -> None:
        """A copy between arrays with gaps that a graph records, which is not so with one of Warp on a CPU."""
        every = wp.zeros(0, dtype=wp.int32, device=part.device)
        wp.launch(
            scatter_kernels(part.dtype).scatter, dim=(part.shape[0], 1), inputs=[every, every, False, _in_rows(part)],
            outputs=[_in_rows(target)], device=part.device,
        )  # fmt: skip

    def __dir__(self):
        names = [name for name in dir(BodyData) if not name.startswith("_")]
        objects = [f"object_{name.split('_', 1)[1]}" for name in names if name.startswith(("root_", "body_"))]
        return sorted({*super().__dir__(), "projected_gravity_b", "heading_w", *objects})

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        own = _property_of_objects(name)
        if own is None:
            raise no_attribute(self, name)
        stamp = self._objects[0].sim.stamp
        kept = self._kept.get(name)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        result = self._stacked(own, None if kept is None else kept[1])
        self._kept[name] = (stamp, result)
        return result


def _property_of_objects(name: str) -> str | None:
    """The property of an object that a collection has under a name."""
    base = name.removesuffix("_wxyz")
    for own in (base.replace("object_", "root_", 1), base.replace("object_", "body_", 1), base):
        if (own != base or base in ("projected_gravity_b", "heading_w")) and hasattr(BodyData, own):
            return own + name[len(base) :]
    return None


def _without_bodies(array: wp.array) -> wp.array:
    """Numbers of one body ``[n, 1, ...]`` as ``[n, ...]``, in place."""
    part = wp.array(
        ptr=array.ptr, dtype=array.dtype, shape=(array.shape[0], *array.shape[2:]),
        strides=(array.strides[0], *array.strides[2:]), device=array.device,
    )  # fmt: skip
    part._ref = array
    return part


def _item(array: wp.array, k: int) -> wp.array:
    """The numbers of one object, in place."""
    step = array.strides[1]
    part = wp.array(
        ptr=array.ptr + k * step, dtype=array.dtype, shape=(array.shape[0], *array.shape[2:]),
        strides=(array.strides[0], *array.strides[2:]), device=array.device,
    )  # fmt: skip
    part._ref = array
    return part


def _in_rows(array: wp.array) -> wp.array:
    """An array ``[n, ...]`` as ``[n, 1, k]``, in place. Only rows may have gaps."""
    size, count = wp.types.type_size_in_bytes(array.dtype), int(np.prod(array.shape[1:]))
    rows = wp.array(
        ptr=array.ptr, dtype=array.dtype, shape=(array.shape[0], 1, count), strides=(array.strides[0], size, size),
        device=array.device,
    )  # fmt: skip
    rows._ref = array
    return rows


def _by_pattern(patterns) -> dict:
    """Patterns by their text.

    Raises:
        ValueError: a pattern twice.
    """
    named = {}
    for pattern in patterns:
        if str(pattern) in named:
            raise ValueError(f"patterns contains {pattern!r} twice; give each object its own pattern")
        named[str(pattern)] = pattern
    return named


class RigidObjectCollection:
    """Several rigid objects of each world that are read and written together, with the interface of Isaac Lab's ``RigidObjectCollection``.

    Args:
        model: a :class:`newton_like.Model` or a :class:`newton_like.articulation.SimulationContext`.
        patterns: patterns of the labels of articulations by names of objects, or a list of labels.

    Attributes:
        objects: the :class:`RigidObject` by name.
        data: the :class:`RigidObjectCollectionData`.
        permanent_wrench_composer, instantaneous_wrench_composer: the :class:`newton_like.articulation.wrenches.CollectionWrenchComposer`
            of wrenches that act until they are reset, and of those of the next physics step.

    Raises:
        KeyError, ValueError: see :class:`RigidObject`.
        ValueError: there are no objects, or two of them are the same.
        TypeError: a single pattern instead of several.
    """

    def __init__(self, model, patterns):
        if isinstance(patterns, str | re.Pattern):
            raise TypeError(
                f"patterns must be a dictionary or a list of patterns, not {patterns!r}; use [{patterns!r}], or a RigidObject"
            )
        named = dict(patterns) if isinstance(patterns, dict) else _by_pattern(patterns)
        if not named:
            raise ValueError("a RigidObjectCollection needs at least one object")
        self.objects = {name: RigidObject(model, pattern) for name, pattern in named.items()}
        self._refuse_twice()
        self.debug_vis_cfg = DebugVisCfg()
        first = next(iter(self.objects.values()))
        self.sim, self.model, self.device = first.sim, first.model, first.device
        self.data = RigidObjectCollectionData(self.objects)
        self.permanent_wrench_composer = CollectionWrenchComposer(self, "permanent_wrench_composer")
        self.instantaneous_wrench_composer = CollectionWrenchComposer(self, "instantaneous_wrench_composer")

    def _refuse_twice(self) -> None:
        owner: dict[int, str] = {}
        for name, each in self.objects.items():
            first = owner.setdefault(int(each._layout.bodies[0, 0]), name)
            if first != name:
                raise ValueError(
                    f"objects {first!r} and {name!r} are both '{each._layout.label}'; give each object its own pattern"
                )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.object_names))}; {self.num_instances} worlds)"

    @property
    def num_instances(self) -> int:
        """Number of instances: one in each world."""
        return next(iter(self.objects.values())).num_instances

    @property
    def num_objects(self) -> int:
        """Number of objects."""
        return len(self.objects)

    @property
    def object_names(self) -> list[str]:
        """Names of objects."""
        return list(self.objects)

    def find_objects(self, name_keys, preserve_order: bool = False) -> tuple[list[int], list[str]]:
        """Objects whose names match regular expressions; see :meth:`newton_like.articulation.Articulation.find_bodies`."""
        return find_names(name_keys, self.object_names, "object", preserve_order)

    @property
    def has_debug_vis_implementation(self) -> bool:
        """True: assets have debug drawing."""
        return True

    @property
    def debug_vis_cfg(self) -> DebugVisCfg:
        """What debug drawing shows of all objects, :class:`newton_like.articulation.DebugVisCfg`. It can be replaced."""
        return next(iter(self.objects.values())).debug_vis_cfg

    @debug_vis_cfg.setter
    def debug_vis_cfg(self, cfg: DebugVisCfg) -> None:
        for each in self.objects.values():
            each.debug_vis_cfg = checked_cfg(cfg, "a RigidObjectCollection")

    def markers(self, poses=None, worlds: list[int] | None = None) -> Markers:
        """What the debug drawing shows of all objects; see :meth:`newton_like.articulation.Articulation.markers`."""
        result = Markers()
        for each in self.objects.values():
            result.add(each.markers(poses, worlds))
        return result

    def set_debug_vis(self, debug_vis: bool) -> bool:
        """Turns debug drawing of all objects on or off; see :meth:`newton_like.articulation.Articulation.set_debug_vis`."""
        return all([each.set_debug_vis(debug_vis) for each in self.objects.values()])

    def set_visibility(self, visible: bool, env_ids=None, object_ids=None) -> None:
        """Shows or hides objects of instances; see :meth:`newton_like.articulation.Articulation.set_visibility`."""
        for each, rows, _ in self._each(None, env_ids, object_ids, 0, "visible"):
            each.set_visibility(visible, rows)

    def _each(self, values, env_ids, object_ids, width: int, name: str):
        """Chosen objects, each with its values."""
        objects = list(self.objects.values())
        columns = choose(object_ids, len(objects), self.device, "object_ids")
        rows = objects[0]._rows(env_ids)
        given = None
        if values is not None:
            at = {13: 3, 7: 3}.get(width)
            given = as_device(
                values, rows, (columns.count, width), self.model.dtype, self.device, name, quaternion_at=at
            )
        for a, k in enumerate(columns.indices):
            yield objects[k], rows, None if given is None else _item(given, a)

    def write_object_state_to_sim(self, object_state, env_ids=None, object_ids=None) -> None:
        """Writes poses of links and velocities of centres of mass, ``[instances, objects, 13]``; arguments and errors are those of
        :meth:`newton_like.articulation.Articulation.write_root_state_to_sim`, with `object_ids` (None: all)."""
        for each, rows, values in self._each(object_state, env_ids, object_ids, 13, "object_state"):
            each.write_root_state_to_sim(values, rows)

    def write_object_link_state_to_sim(self, object_state, env_ids=None, object_ids=None) -> None:
        """The same with velocities of link frames."""
        for each, rows, values in self._each(object_state, env_ids, object_ids, 13, "object_state"):
            each.write_root_link_state_to_sim(values, rows)

    def write_object_com_state_to_sim(self, object_state, env_ids=None, object_ids=None) -> None:
        """The same with poses and velocities of centres of mass."""
        for each, rows, values in self._each(object_state, env_ids, object_ids, 13, "object_state"):
            each.write_root_com_state_to_sim(values, rows)

    def write_object_pose_to_sim(self, object_pose, env_ids=None, object_ids=None) -> None:
        """Writes poses of links, ``[instances, objects, 7]``."""
        for each, rows, values in self._each(object_pose, env_ids, object_ids, 7, "object_pose"):
            each.write_root_pose_to_sim(values, rows)

    def write_object_velocity_to_sim(self, object_velocity, env_ids=None, object_ids=None) -> None:
        """Writes velocities of centres of mass, ``[instances, objects, 6]``."""
        for each, rows, values in self._each(object_velocity, env_ids, object_ids, 6, "object_velocity"):
            each.write_root_velocity_to_sim(values, rows)

    def write_object_link_pose_to_sim(self, object_pose, env_ids=None, object_ids=None) -> None:
        """As :meth:`write_object_pose_to_sim`."""
        self.write_object_pose_to_sim(object_pose, env_ids, object_ids)

    def write_object_com_pose_to_sim(self, object_pose, env_ids=None, object_ids=None) -> None:
        """Writes poses of centres of mass along principal axes, ``[instances, objects, 7]``."""
        for each, rows, values in self._each(object_pose, env_ids, object_ids, 7, "object_pose"):
            each.write_root_com_pose_to_sim(values, rows)

    def write_object_link_velocity_to_sim(self, object_velocity, env_ids=None, object_ids=None) -> None:
        """Writes velocities of the origins of links, ``[instances, objects, 6]``."""
        for each, rows, values in self._each(object_velocity, env_ids, object_ids, 6, "object_velocity"):
            each.write_root_link_velocity_to_sim(values, rows)

    def write_object_com_velocity_to_sim(self, object_velocity, env_ids=None, object_ids=None) -> None:
        """As :meth:`write_object_velocity_to_sim`."""
        self.write_object_velocity_to_sim(object_velocity, env_ids, object_ids)

    def set_external_force_and_torque(
        self, forces, torques, positions=None, object_ids=None, env_ids=None, is_global: bool = False
    ) -> None:
        """Sets wrenches on objects, ``[instances, objects, 3]`` each; see
        :meth:`newton_like.articulation.wrenches.CollectionWrenchComposer.set_forces_and_torques`."""
        self.permanent_wrench_composer.set_forces_and_torques(
            forces, torques, positions, object_ids, env_ids, is_global
        )

    def write_data_to_sim(self) -> None:
        """Applies external wrenches. Call it before every physics step."""
        for each in self.objects.values():
            each.write_data_to_sim()

    def _members(self) -> list:
        """The collection and its objects."""
        return [self, *self.objects.values()]

    def update(self, dt: float) -> None:
        """See :meth:`newton_like.articulation.Articulation.update`."""
        for each in self.objects.values():
            each.update(dt)

    def reset(self, env_ids=None, object_ids=None) -> None:
        """Clears what is remembered of objects; see :meth:`RigidObject.reset`."""
        for each, rows, _ in self._each(None, env_ids, object_ids, 0, ""):
            each.reset(rows)

    def reset_to(self, env_ids=None, object_ids=None, object_state=None) -> None:
        """Resets objects to ``data.default_object_state`` or a given state, ``[instances, objects, 13]``; see
        :meth:`RigidObject.reset_to`."""
        if object_state is None:
            rows = next(iter(self.objects.values()))._rows(env_ids)
            columns = choose(object_ids, self.num_objects, self.device, "object_ids")
            start = self.data.default_object_state.numpy()[rows.indices][:, columns.indices]
            given = list(self._each(start, rows, columns, 13, "default_object_state"))
            given = [
                (each, rows, each._default_root(rows, values.numpy()) if each.is_fixed_base else values)
                for each, rows, values in given
            ]
        else:
            given = list(self._each(object_state, env_ids, object_ids, 13, "object_state"))
        checked = [each._checked_root(rows, values, "state") for each, rows, values in given]
        for (each, rows, _), values in zip(given, checked, strict=True):
            each._put_reset(values, rows, "state")
