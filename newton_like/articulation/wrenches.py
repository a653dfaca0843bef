"""External wrenches on the bodies of an asset."""

from __future__ import annotations

from weakref import WeakSet, finalize

import warp as wp

from newton_like.articulation.chosen import as_device, choose
from newton_like.kernels.articulation.wrenches import COMPOSED, wrench_kernels


class Pressing:
    """The assets of the same bodies: of those that apply forces between two steps, the first one writes ``body_f``, and the others add.

    Attributes:
        assets: the assets, held weakly.
        left: whether ``body_f`` may have forces of an asset that is gone.
    """

    def __init__(self):
        self.assets: WeakSet = WeakSet()
        self._step, self._writers = -1, set()
        self.left, self._acted = False, False

    def add(self, asset) -> None:
        """Takes an asset in."""
        self.assets.add(asset)
        finalize(asset, self._leave).atexit = False

    def _leave(self) -> None:
        self.left = self._acted

    def is_first(self, asset, step: int) -> bool:
        """Notes that an asset applies its forces now, before a step; returns whether it is the first one. An asset that applies them again
        begins anew."""
        self._acted = True
        if len(self.assets) < 2:
            self.left = False
            return True
        if step != self._step or id(asset) in self._writers:
            self._step, self._writers = step, set()
        self._writers.add(id(asset))
        if len(self._writers) > 1:
            return False
        self.left = False
        return True


class WrenchComposer:
    """Sums of external forces and torques on bodies.

    A wrench in link axes turns with its body, and a wrench in world axes does not. Both are turned into the pose that the body has when
    ``write_data_to_sim`` applies them. With the force f, the torque n and the point r or P:

    * in link axes: force f at the centre of mass and torque ``n + r x f``, with r from the centre of mass, in link axes;
    * in world axes: force F and torque ``n + (P - x) x F`` about the centre of mass x of that moment, with P in the world.

    Wrenches that are set replace all wrenches of these bodies, and wrenches that are added come on top.

    Args:
        asset: the asset, with ``num_instances``, ``num_bodies`` and ``device``.

    Attributes:
        active: whether there may be a wrench other than zero.
        composed: the sums, ``[num_instances, num_bodies, 18]``, see ``newton_like.kernels.articulation.wrenches``.
    """

    def __init__(self, asset):
        self._asset = asset
        model = asset.model
        shape = (asset.num_instances, asset.num_bodies, COMPOSED)
        self.composed = wp.zeros(shape, dtype=model.dtype, device=model.device)
        self._none = wp.zeros((0, 0, 0), dtype=model.dtype, device=model.device)
        self.active = False

    def set_forces_and_torques(
        self, forces=None, torques=None, positions=None, body_ids=None, env_ids=None, is_global: bool = False
    ) -> None:
        """Replaces the wrenches of bodies.

        Args:
            forces: [N], ``[instances, bodies, 3]`` or broadcast to it; None: zeros.
            torques: [N m], likewise.
            positions: points of the forces [m], likewise; None: centres of mass. In link axes from the centre of mass, or in the world.
            body_ids: bodies; None: all.
            env_ids: instances, see :meth:`newton_like.articulation.Articulation.reset`; None: all.
            is_global: whether these are in world axes.

        Raises:
            ValueError: a shape; positions without forces; neither forces nor torques; numbers that are not finite.
            IndexError: a body or an instance does not exist.
        """
        self._compose(forces, torques, positions, body_ids, env_ids, is_global, False)

    def add_forces_and_torques(
        self, forces=None, torques=None, positions=None, body_ids=None, env_ids=None, is_global: bool = False
    ) -> None:
        """Adds to the wrenches of bodies. Arguments and errors are those of :meth:`set_forces_and_torques`."""
        self._compose(forces, torques, positions, body_ids, env_ids, is_global, True)

    def reset(self, env_ids=None, *, always: bool = False) -> None:
        """Clears the wrenches of instances; None: all. With `always`, also where no wrench was set, as in a graph."""
        rows = choose(env_ids, self._asset.num_instances, self._asset.device, "env_ids")
        if not (self.active or always) or not rows.count:
            return
        kernel = wrench_kernels(self.composed.dtype).clear
        shape = (rows.count, self._asset.num_bodies)
        wp.launch(kernel, dim=shape, inputs=[rows.array], outputs=[self.composed], device=self._asset.device)
        if rows.everything and not always:
            self.active = False

    def __repr__(self) -> str:
        return f"WrenchComposer({self._asset!r}, {'active' if self.active else 'no wrenches'})"

    def _compose(self, forces, torques, positions, body_ids, env_ids, is_global, add: bool) -> None:
        asset = self._asset
        if forces is None and torques is None:
            raise ValueError("give forces, torques or both")
        if positions is not None and forces is None:
            raise ValueError("positions are the points of forces; give forces, too")
        rows = choose(env_ids, asset.num_instances, asset.device, "env_ids")
        items = choose(body_ids, asset.num_bodies, asset.device, "body_ids")
        given = [
            self._none if x is None else self._array(x, rows, items, name)
            for x, name in ((forces, "forces"), (torques, "torques"), (positions, "positions"))
        ]
        if not rows.count or not items.count:
            return
        wp.launch(
            wrench_kernels(self.composed.dtype).compose,
            dim=(rows.count, items.count),
            inputs=[rows.array, items.array, *given, bool(is_global), add],
            outputs=[self.composed],
            device=asset.device,
        )
        self.active = True

    def _array(self, values, rows, items, name: str) -> wp.array:
        """Values of chosen instances and bodies, ``[rows, bodies, 3]``."""
        return as_device(values, rows, (items.count, 3), self.composed.dtype, self._asset.device, name)


class CollectionWrenchComposer:
    """The wrenches of all objects of a :class:`newton_like.articulation.RigidObjectCollection`, as one :class:`WrenchComposer`.

    Args:
        collection: the collection.
        name: attribute of its objects with their composers.
    """

    def __init__(self, collection, name: str):
        self._collection, self._name = collection, name

    @property
    def active(self) -> bool:
        """Whether there may be a wrench other than zero."""
        return any(getattr(each, self._name).active for each in self._collection.objects.values())

    def set_forces_and_torques(
        self, forces=None, torques=None, positions=None, body_ids=None, env_ids=None, is_global: bool = False
    ) -> None:
        """Replaces the wrenches of objects.

        Args:
            forces, torques, positions: as for :meth:`WrenchComposer.set_forces_and_torques`, ``[instances, objects, 3]``.
            body_ids: objects; None: all.
            env_ids: instances; None: all.
            is_global: whether these are in world axes.

        Raises:
            ValueError, IndexError: see :meth:`WrenchComposer.set_forces_and_torques`.
        """
        self._compose("set_forces_and_torques", forces, torques, positions, body_ids, env_ids, is_global)

    def add_forces_and_torques(
        self, forces=None, torques=None, positions=None, body_ids=None, env_ids=None, is_global: bool = False
    ) -> None:
        """Adds to the wrenches of objects. Arguments and errors are those of :meth:`set_forces_and_torques`."""
        self._compose("add_forces_and_torques", forces, torques, positions, body_ids, env_ids, is_global)

    def reset(self, env_ids=None) -> None:
        """Clears the wrenches of instances; None: all."""
        for each in self._collection.objects.values():
            getattr(each, self._name).reset(env_ids)

    def _compose(self, method: str, forces, torques, positions, body_ids, env_ids, is_global: bool) -> None:
        given = ((forces, "forces"), (torques, "torques"), (positions, "positions"))
        parts = [list(self._collection._each(x, env_ids, body_ids, 3, name)) for x, name in given]
        for (each, rows, f), (_, _, n), (_, _, p) in zip(*parts, strict=True):
            own = [None if x is None else x.contiguous().reshape((rows.count, 1, 3)) for x in (f, n, p)]
            getattr(getattr(each, self._name), method)(*own, None, rows, is_global)
