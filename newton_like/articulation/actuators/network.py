"""Actuators whose efforts a function of the user computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded


class Network:
    """Inputs of a function from histories of errors and velocities, and its efforts.

    Args:
        name: of the actuator, for error messages.
        cfg: a :class:`newton_like.articulation.actuators.NetworkActuatorCfg`.
        table: the :class:`newton_like.articulation.actuators.table.ActuatorTable`.
        joints: the joints.

    Raises:
        ValueError: see :class:`newton_like.articulation.actuators.groups.NetworkActuator`.
        TypeError: the network is no function.
    """

    def __init__(self, name: str, cfg, table, joints: list[int]):
        self._name, self._cfg, self._table, self._joints = name, cfg, table, joints
        self._steps = [int(i) for i in cfg.input_idx]
        if not self._steps or min(self._steps) < 0:
            raise ValueError(f"actuator {name!r}: input_idx {cfg.input_idx!r} must be numbers of steps, at least 0")
        if cfg.input_order not in ("pos_vel", "vel_pos"):
            raise ValueError(f"actuator {name!r}: input_order {cfg.input_order!r} must be 'pos_vel' or 'vel_pos'")
        if cfg.network is None:
            raise ValueError(f"actuator {name!r} needs a network: a torch module, a path, or a function of an array")
        if cfg.on_reset is not None and not callable(cfg.on_reset):
            raise ValueError(
                f"actuator {name!r}: on_reset {cfg.on_reset!r} must be a function of an array of indices, or None"
            )
        self._call, self._torch = _function(name, cfg.network)
        self._length = 1 + max(self._steps)
        # errors and velocities of each step, [step, 2, instance, joint]; the entry of now is at _now
        self._past, self._now = None, 0
        self._fresh = np.ones(table.shape[0], dtype=bool)

    def reset(self, chosen) -> None:
        """Forgets the histories of instances: they begin with the next entry. Calls ``on_reset``."""
        self._fresh[chosen.indices] = True
        if self._cfg.on_reset is not None and chosen.count:
            self._cfg.on_reset(chosen.indices.copy())

    def compute(self) -> None:
        """Writes efforts into the table.

        Raises:
            RuntimeError: a graph is being captured, which would repeat the efforts of now.
        """
        table, cfg = self._table, self._cfg
        check_recorded(table.network.device, f"the network of actuator {self._name!r}")
        q, qd, target = (self._taken(x) for x in (table.joint_q, table.joint_qd, table.target_q))
        xp = _library(q)
        entry = xp.stack([(target - q) * cfg.pos_scale, qd * cfg.vel_scale])
        if self._past is None:
            self._past = xp.stack([entry] * self._length)
        self._now = (self._now + 1) % self._length
        self._past[self._now] = entry
        if self._fresh.any():
            rows = np.flatnonzero(self._fresh)
            self._past[:, :, rows] = entry[None, :, rows]
            self._fresh[:] = False
        parts = [self._past[(self._now - i) % self._length] for i in self._steps]
        first, second = (0, 1) if cfg.input_order == "pos_vel" else (1, 0)
        columns = [p[first] for p in parts] + [p[second] for p in parts]
        rows = xp.stack(columns, -1).reshape((-1, len(columns)))
        result = self._run(rows)
        shape = (table.shape[0], len(self._joints))
        if int(np.prod(result.shape)) != shape[0] * shape[1]:
            raise ValueError(
                f"actuator {self._name!r}: the network gave an array of shape {tuple(result.shape)} for {shape[0] * shape[1]} rows; it must"
                " give one effort for each row"
            )
        table.put_network(self._joints, result.reshape(shape) * cfg.torque_scale)

    def _taken(self, array: wp.array):
        """Columns of the joints, as a tensor for torch modules, else of NumPy."""
        return (wp.to_torch(array) if self._torch else array.numpy())[:, self._joints]

    def _run(self, rows):
        if not self._torch:
            return np.asarray(self._call(rows))
        import torch

        with torch.no_grad():
            return self._call(rows)


def _library(array):
    """NumPy or torch."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def _function(name: str, network):
    """A function, and whether it takes torch tensors."""
    if isinstance(network, str | Path):
        path = Path(network)
        if not path.is_file():
            raise ValueError(f"actuator {name!r}: there is no file {str(path)!r} for its network")
        return (_onnx(path), False) if path.suffix == ".onnx" else (_script(path), True)
    if not callable(network):
        raise TypeError(f"actuator {name!r}: its network must be a function, a torch module or a path, not {network!r}")
    return network, any(base.__module__.split(".")[0] == "torch" for base in type(network).__mro__)


def _onnx(path: Path):
    try:
        import onnxruntime
    except ImportError:
        raise ImportError(f"the network {path.name} needs onnxruntime: pip install newton-like[onnx]") from None
    session = onnxruntime.InferenceSession(str(path))
    source = session.get_inputs()[0].name
    return lambda rows: session.run(None, {source: rows.astype(np.float32)})[0]


def _script(path: Path):
    try:
        import torch
    except ImportError:
        raise ImportError(f"the network {path.name} needs torch: pip install 'newton-like[torch]'") from None
    return torch.jit.load(str(path)).eval()
