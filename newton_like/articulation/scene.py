"""Scenes: several assets of the same worlds that are stepped and reset together."""

from __future__ import annotations

import copy
from typing import Never

import numpy as np

from newton_like.articulation.articulation import Articulation
from newton_like.articulation.asset import Asset
from newton_like.articulation.chosen import as_device, choose
from newton_like.articulation.names import near
from newton_like.articulation.rigid_object import RigidObject, RigidObjectCollection
from newton_like.articulation.simulation import SimulationContext
from newton_like.coercion import as_number
from newton_like.model.builder import ModelBuilder
from newton_like.model.builder.worlds import grid_offsets
from newton_like.options import refuse_options


class InteractiveScene:
    """Assets of all worlds by name, with origins of the worlds.

    Names give assets: ``scene["robot"]``. A step of an environment is ``sim.advance(scene)``.

    Args:
        sim: the :class:`newton_like.articulation.SimulationContext`, or a model.
        assets: articulations, rigid objects and collections by name.
        env_spacing: distance of neighbouring worlds along x and y [m], as the worlds were made by
            :meth:`newton_like.ModelBuilder.replicate` with ``spacing=(env_spacing, env_spacing, 0)``.
        env_origins: origins of the worlds [m], ``[num_envs, 3]``, instead of `env_spacing`.

    Attributes:
        sim: the context.
        env_origins: origins of the worlds [m], ``[num_envs, 3]``.
        articulations, rigid_objects, rigid_object_collections: the assets of each kind by name.

    Raises:
        TypeError: an asset is of another kind.
        ValueError: an asset acts on another context; origins and a spacing; origins of another shape.
    """

    def __init__(self, sim, assets: dict | None = None, *, env_spacing: float = 0.0, env_origins=None, **others: Never):
        if others:
            refuse_options(InteractiveScene.__init__, others)
        self.sim = SimulationContext.of(sim)
        model = self.sim.model
        spacing = as_number(env_spacing, "env_spacing")
        if env_origins is not None and spacing:
            raise ValueError("give env_spacing or env_origins, not both")
        if env_origins is None:
            env_origins = grid_offsets(model.world_count, (spacing, spacing, 0.0), model.up_axis)
        every = choose(None, model.world_count, model.device, "env_ids")
        self.env_origins = as_device(env_origins, every, (3,), model.dtype, model.device, "env_origins")
        self.articulations: dict[str, Articulation] = {}
        self.rigid_objects: dict[str, RigidObject] = {}
        self.rigid_object_collections: dict[str, RigidObjectCollection] = {}
        for name, asset in (assets or {}).items():
            self.add(name, asset)

    @classmethod
    def replicate(
        cls,
        builder: ModelBuilder,
        num_envs: int,
        *,
        env_spacing: float = 0.0,
        shared: ModelBuilder | None = None,
        device=None,
        **options,
    ) -> InteractiveScene:
        """A scene of copies of a world.

        Args:
            builder: one world.
            num_envs: number of copies.
            env_spacing: distance of neighbouring worlds along x and y [m].
            shared: what all worlds share, such as the ground; None: nothing.
            device: Warp device.
            options: further arguments of :class:`newton_like.articulation.SimulationContext`.

        Returns:
            The scene, without assets; see :meth:`add`.

        Raises:
            ValueError, TypeError: see :meth:`newton_like.ModelBuilder.replicate`, ``finalize`` and the context.
        """
        whole = ModelBuilder() if shared is None else copy.deepcopy(shared)
        whole.replicate(builder, num_envs, spacing=(env_spacing, env_spacing, 0.0))
        return cls(SimulationContext(whole.finalize(device), **options), env_spacing=env_spacing)

    def add(self, name: str, asset):
        """Adds an asset, and returns it.

        Raises:
            TypeError: not an asset.
            ValueError: the name exists, or the asset acts on another context.
        """
        kinds = (
            (RigidObjectCollection, self.rigid_object_collections),
            (RigidObject, self.rigid_objects),
            (Articulation, self.articulations),
        )
        home = next((home for kind, home in kinds if isinstance(asset, kind)), None)
        if home is None:
            raise TypeError(
                f"asset {name!r} must be an Articulation, a RigidObject or a RigidObjectCollection, not {type(asset).__name__}"
            )
        if name in self.keys():
            raise ValueError(f"the scene already has an asset {name!r}")
        if asset.sim is not self.sim:
            raise ValueError(f"asset {name!r} acts on another SimulationContext; make it with scene.sim")
        home[name] = asset
        return asset

    def keys(self) -> list[str]:
        """Names of assets."""
        return [*self.articulations, *self.rigid_objects, *self.rigid_object_collections]

    def __getitem__(self, name: str):
        for home in (self.articulations, self.rigid_objects, self.rigid_object_collections):
            if name in home:
                return home[name]
        raise KeyError(f"the scene has no asset {name!r}{near(str(name), self.keys())}")

    def _assets(self) -> list:
        return [self[name] for name in self.keys()]

    @property
    def num_envs(self) -> int:
        """Number of worlds."""
        return self.sim.model.world_count

    @property
    def physics_dt(self) -> float:
        """Length of a physics step [s]."""
        return self.sim.dt

    def write_data_to_sim(self) -> None:
        """Applies the commands of all assets. Call it before every physics step."""
        for asset in self._assets():
            asset.write_data_to_sim()

    def update(self, dt: float) -> None:
        """Tells all assets that the simulation went on.

        Args:
            dt: time since the last call [s].
        """
        for asset in self._assets():
            asset.update(dt)

    def reset(self, env_ids=None) -> None:
        """Clears the data that all assets keep between steps for worlds; see their ``reset``.

        Args:
            env_ids: worlds: None (all), a slice, indices, or a mask of bools.
        """
        for asset in self._assets():
            asset.reset(env_ids)

    def get_state(self, is_relative: bool = False) -> dict:
        """The state of all articulations and rigid objects, as copies.

        Args:
            is_relative: whether positions are relative to the origins of the worlds.

        Returns:
            ``{"articulation": {name: {"root_pose", "root_velocity", "joint_position", "joint_velocity"}}, "rigid_object": {name:
            {"root_pose", "root_velocity"}}}`` of arrays of NumPy; velocities of roots are those of centres of mass.
        """
        origins = self.env_origins.numpy()
        found: dict = {"articulation": {}, "rigid_object": {}}
        for name, asset in (*self.articulations.items(), *self.rigid_objects.items()):
            pose = asset.data.root_pose_w.numpy().copy()
            if is_relative:
                pose[:, :3] -= origins
            state = {"root_pose": pose, "root_velocity": asset.data.root_vel_w.numpy().copy()}
            if name in self.articulations:
                state["joint_position"] = asset.data.joint_pos.numpy().copy()
                state["joint_velocity"] = asset.data.joint_vel.numpy().copy()
            found["articulation" if name in self.articulations else "rigid_object"][name] = state
        return found

    def reset_to(self, state: dict, env_ids=None, is_relative: bool = False) -> None:
        """Writes a state, and resets the assets; see :meth:`get_state`.

        Args:
            state: as :meth:`get_state` gives it, of the chosen worlds.
            env_ids: worlds: None (all), a slice, indices, or a mask of bools.
            is_relative: whether positions are relative to the origins of the worlds.

        Raises:
            KeyError: the state has an asset that the scene lacks.
        """
        rows = choose(env_ids, self.num_envs, self.sim.device, "env_ids")
        origins = self.env_origins.numpy()[rows.indices]
        for name, numbers in {**state.get("articulation", {}), **state.get("rigid_object", {})}.items():
            asset: Asset = self[name]
            pose = np.array(numbers["root_pose"], dtype=float)
            if is_relative:
                pose[:, :3] += origins
            root = np.concatenate([pose, numbers["root_velocity"]], axis=1)
            if isinstance(asset, Articulation):
                moves = None if asset.is_fixed_base else root
                if asset.is_fixed_base and asset.root_is_fixed:
                    asset.write_root_pose_to_sim(pose, rows)
                asset.reset_to(rows, moves, numbers["joint_position"], numbers["joint_velocity"])
            else:
                asset.reset_to(rows, root)

    def __repr__(self) -> str:
        return f"InteractiveScene({self.num_envs} worlds, {', '.join(self.keys()) or 'no assets'})"
