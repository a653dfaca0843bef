"""Scenes: several assets of the same worlds that are stepped and reset together."""

from __future__ import annotations

import copy
from typing import Never

import numpy as np

from newton_like.arrays import host_array
from newton_like.articulation.articulation import Articulation
from newton_like.articulation.chosen import Chosen, as_device, choose
from newton_like.articulation.names import near
from newton_like.articulation.rigid_object import RigidObject, RigidObjectCollection
from newton_like.articulation.simulation import SimulationContext
from newton_like.coercion import as_count, as_number
from newton_like.model.builder import ModelBuilder
from newton_like.model.builder.worlds import grid_offsets
from newton_like.options import did_you_mean, named_arguments, refuse_options, unknown_option
from newton_like.solvers.featherstone import SolverFeatherstone
from newton_like.types import Axis

_ROOT = {"root_pose": ("root_pose_w", (7,)), "root_velocity": ("root_vel_w", (6,))}
_JOINTS = {"joint_position": ("joint_pos", ("num_joints",)), "joint_velocity": ("joint_vel", ("num_joints",))}
STATES = {
    "articulation": {**_ROOT, **_JOINTS},
    "rigid_object": _ROOT,
    "rigid_object_collection": {
        "object_pose": ("object_pose_w", ("num_objects", 7)),
        "object_velocity": ("object_vel_w", ("num_objects", 6)),
    },
}
"""Arrays of the states of assets by kind: the data that they are, and the shape of a row."""


class InteractiveScene:
    """Assets of all worlds by name, with origins of the worlds.

    Names give assets: ``scene["robot"]``. A step of an environment is ``sim.advance(scene)``.

    Args:
        sim: the :class:`newton_like.articulation.SimulationContext`, or a model.
        assets: articulations, rigid objects and collections by name.
        env_spacing: distance of neighbouring worlds along both horizontal axes [m], as the worlds were made by
            :meth:`newton_like.ModelBuilder.replicate` with ``spacing=(env_spacing, env_spacing, 0)`` (z is up).
        env_origins: origins of the worlds [m], ``[num_envs, 3]``, instead of `env_spacing`.

    Attributes:
        sim: the context.
        env_origins: origins of the worlds [m], ``[num_envs, 3]``.
        articulations, rigid_objects, rigid_object_collections: the assets of each kind by name.

    Raises:
        TypeError: an asset is of another kind.
        ValueError: an asset acts on another context; origins and a spacing; a negative spacing, or another one than that of the worlds;
            origins of another shape.
    """

    def __init__(self, sim, assets: dict | None = None, *, env_spacing: float = 0.0, env_origins=None, **others: Never):
        if others:
            refuse_options(InteractiveScene.__init__, others)
        self.sim = SimulationContext.of(sim)
        model = self.sim.model
        spacing = as_number(env_spacing, "env_spacing")
        if spacing < 0.0:
            raise ValueError(f"env_spacing {spacing:g} must be at least 0")
        if env_origins is not None and spacing:
            raise ValueError("give env_spacing or env_origins, not both")
        if env_origins is None:
            env_origins = grid_offsets(model.world_count, _in_plane(spacing, model.up_axis), model.up_axis)
            if spacing:
                _refuse_another_spacing(model, spacing, env_origins)
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
            env_spacing: distance of neighbouring worlds along both horizontal axes [m].
            shared: what all worlds share, such as the ground; None: nothing.
            device: Warp device.
            options: further arguments of :class:`newton_like.articulation.SimulationContext`.

        Returns:
            The scene, without assets; see :meth:`add`.

        Raises:
            ValueError, TypeError: no worlds, a negative spacing, unknown options; see :meth:`newton_like.ModelBuilder.replicate`,
                ``finalize`` and the context.
        """
        own, known = (
            named_arguments(cls.replicate),
            {
                *named_arguments(SimulationContext.__init__),
                *named_arguments(SolverFeatherstone.__init__),
            },
        )
        for name in options:
            if name not in known and did_you_mean(name, own):
                raise unknown_option("InteractiveScene.replicate", name, own, known)
        as_count(num_envs, "num_envs")
        if as_number(env_spacing, "env_spacing") < 0.0:
            raise ValueError(f"env_spacing {env_spacing:g} must be at least 0")
        whole = ModelBuilder(up_axis=builder.up_axis) if shared is None else copy.deepcopy(shared)
        whole.replicate(builder, num_envs, spacing=_in_plane(env_spacing, whole.up_axis))
        return cls(SimulationContext(whole.finalize(device), **options), env_spacing=env_spacing)

    def add(self, name: str, asset):
        """Adds an asset, and returns it.

        Raises:
            TypeError: not an asset.
            ValueError: the name exists, the asset is there under another name, or it acts on another context.
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
        for first in self.keys():
            if self[first] is asset:
                raise ValueError(f"assets {first!r} and {name!r} are one and the same; add it once")
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

    def _members(self) -> list:
        """All assets, also those of collections."""
        return [part for asset in self._assets() for part in asset._members()]

    def update(self, dt: float) -> None:
        """Tells all assets that the simulation went on.

        Args:
            dt: time since the last call [s], at least 0.

        Raises:
            TypeError, ValueError: see :meth:`newton_like.articulation.Articulation.update`.
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
        """The state of all assets, as copies. Speeds of rotors and memories of actuators are not part of it.

        Args:
            is_relative: whether positions are relative to the origins of the worlds.

        Returns:
            ``{"articulation": {name: {"root_pose", "root_velocity", "joint_position", "joint_velocity"}}, "rigid_object": {name:
            {"root_pose", "root_velocity"}}, "rigid_object_collection": {name: {"object_pose", "object_velocity"}}}`` of arrays of NumPy,
            ``[num_envs, ...]`` and ``[num_envs, objects, ...]``; velocities are those of centres of mass.
        """
        origins = self.env_origins.numpy() if is_relative else np.zeros((self.num_envs, 3))
        found: dict = {kind: {} for kind in self._homes()}
        for kind, home in self._homes().items():
            for name, asset in home.items():
                found[kind][name] = state = {
                    key: getattr(asset.data, source).numpy().copy() for key, (source, _) in STATES[kind].items()
                }
                pose = next(iter(state.values()))
                pose[..., :3] -= origins.reshape((-1, *(1,) * (pose.ndim - 2), 3)).astype(pose.dtype)
        return found

    def reset_to(self, state: dict, env_ids=None, is_relative: bool = False) -> None:
        """Writes a state, and resets the assets in it; see :meth:`get_state`. Other assets stay as they are. After an error nothing has
        changed.

        Args:
            state: as :meth:`get_state` gives it, of the chosen worlds (for a mask also of all worlds).
            env_ids: worlds: None (all), a slice, indices, or a mask of bools.
            is_relative: whether positions are relative to the origins of the worlds.

        Raises:
            KeyError: the state has an asset or a kind of assets that the scene lacks, or an asset without one of its arrays.
            ValueError: an array of another shape; numbers that are not finite; a zero quaternion.
        """
        rows = choose(env_ids, self.num_envs, self.sim.device, "env_ids")
        origins = self.env_origins.numpy()[rows.indices] if is_relative else np.zeros((rows.count, 3))
        pending = []
        for kind, assets in state.items():
            if kind not in STATES:
                raise KeyError(f"states have no kind of assets {kind!r}{near(str(kind), list(STATES))}")
            home = self._homes()[kind]
            for name, numbers in assets.items():
                if name not in home:
                    raise KeyError(f"the scene has no {kind} {name!r}{near(str(name), list(home))}")
                pose, velocity, *joints = (
                    _rows_of(numbers, name, key, rows, self._inner(home[name], sizes))
                    for key, (_, sizes) in STATES[kind].items()
                )
                pose = pose.copy()
                pose[..., :3] += origins.reshape((-1, *(1,) * (pose.ndim - 2), 3))
                pending += _checked(home[name], pose, velocity, joints, rows)
        for asset, checked in pending:
            asset._put_reset(checked, rows, "state")

    def _homes(self) -> dict[str, dict]:
        """Assets by the names of kinds in states."""
        homes = (self.articulations, self.rigid_objects, self.rigid_object_collections)
        return dict(zip(STATES, homes, strict=True))

    @staticmethod
    def _inner(asset, sizes: tuple) -> tuple[int, ...]:
        """Shape of a row of a state: numbers, and names of attributes that count."""
        return tuple(size if isinstance(size, int) else getattr(asset, size) for size in sizes)

    def __repr__(self) -> str:
        return f"InteractiveScene({self.num_envs} worlds, {', '.join(self.keys()) or 'no assets'})"


def _in_plane(spacing: float, up_axis) -> tuple[float, float, float]:
    """A spacing along both horizontal axes."""
    return tuple(0.0 if axis == Axis.from_any(up_axis) else spacing for axis in Axis)


def _refuse_another_spacing(model, spacing: float, origins: np.ndarray) -> None:
    """Raises ValueError if bodies of all worlds show that these were made elsewhere."""
    world = model.body_world.numpy()
    rows = [np.flatnonzero(world == w) for w in range(model.world_count)]
    if not len(rows[0]) or any(len(each) != len(rows[0]) for each in rows):
        return
    places = model.body_q.numpy()[np.array(rows), :3].astype(float)
    moved = places - places[0]
    where = moved.mean(axis=1)
    room = 1.0e-3 * spacing + 1.0e-5 * abs(places).max()
    if abs(moved - where[:, None]).max() > room:
        # worlds differ otherwise, too
        return
    wanted = origins - origins[0]
    wrong = abs(where - wanted).max(axis=1) > room
    if wrong.any():
        w = int(np.argmax(wrong))
        told = [f"({', '.join(f'{x:g}' for x in (each[w] + 0.0).round(4))})" for each in (where, wanted)]
        raise ValueError(
            f"env_spacing {spacing:g} is not that of the worlds: world {w} is {told[0]} from world 0, not {told[1]}; give the spacing of"
            " ModelBuilder.replicate, or env_origins"
        )


def _rows_of(state: dict, name: str, key: str, rows: Chosen, inner: tuple[int, ...]) -> np.ndarray:
    """An array of the state of an asset for chosen worlds, ``[rows, *inner]``.

    Raises:
        KeyError: it is not there.
        ValueError: another shape.
    """
    if key not in state:
        raise KeyError(f"the state of {name!r} has no {key!r}{near(key, list(state))}")
    numbers = host_array(state[key], f"{key} of {name!r}").astype(float)
    if rows.masked and numbers.shape == (rows.size, *inner):
        numbers = numbers[rows.indices]
    if numbers.shape != (rows.count, *inner):
        raise ValueError(
            f"the state of {name!r}: {key} has shape {numbers.shape}; it must be {(rows.count, *inner)}, that of the chosen worlds"
        )
    return numbers


def _checked(asset, pose: np.ndarray, velocity: np.ndarray, joints: list[np.ndarray], rows: Chosen) -> list[tuple]:
    """Assets, and what a reset writes to each of them, looked at."""
    if isinstance(asset, RigidObjectCollection):
        each = enumerate(asset.objects.values())
        return [found for k, one in each for found in _checked(one, pose[:, k], velocity[:, k], [], rows)]
    root = None
    if not asset.is_fixed_base:
        root = np.concatenate([pose, velocity], axis=1)
    elif asset.root_is_fixed:
        root = np.concatenate([pose, np.zeros_like(velocity)], axis=1)
    if isinstance(asset, Articulation):
        return [(asset, asset._checked_reset(rows, root, *joints, "state"))]
    return [(asset, asset._checked_root(rows, root, "state"))]
