"""PyTorch functions from functions of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache

import warp as wp

from newton_like.interop.bridge import COORDINATES, Bridge


def torch_function(model, function: Callable, inputs: Sequence[str] = COORDINATES, **options) -> Callable:
    """A function of the dynamics library as a function of PyTorch tensors, which autograd differentiates.

    Tensors and Warp arrays share memory, for inputs and results. Autograd stores Warp's tape of a call, so the backward pass needs no
    second evaluation. Second derivatives are not supported.

    Args:
        model: the :class:`Model`.
        function: ``function(model, state, **arguments)``, such as :func:`newton_like.dynamics.forward_dynamics`, that gives one Warp
            array or several; or one of your own that calls several. `state` has ``joint_q`` and ``joint_qd``.
        inputs: which tensors there will be, in this order: ``"joint_q"`` and ``"joint_qd"`` (by default those of the model),
            ``"inertial_parameters"`` (see :func:`newton_like.dynamics.set_inertial_parameters`; the model keeps them), and names of
            arguments.
        **options: further arguments, the same in every call.

    Returns:
        A function of tensors of the model's scalar type on its device. ``joint_q`` and ``joint_qd`` may have any shape, such as
        ``[worlds, coordinates]``; other arguments have the shapes that `function` takes. It gives a tensor, or a tuple of them.

    Raises:
        ImportError: PyTorch is not installed.
        TypeError: `function` cannot be called; when called: the number of tensors, their type or their scalar type is wrong.
        KeyError: `function` has no such argument.
        ValueError: an input twice; inertial parameters of a model without gradients; when called: a wrong shape or device.
    """
    bridge, apply = Bridge(model, function, inputs, options), _function().apply

    def call(*tensors):
        bridge.check(len(tensors))
        results = apply(bridge, *tensors)
        return results[0] if len(results) == 1 else results

    return call


def _torch():
    try:
        import torch
    except ImportError:
        raise ImportError("torch_function needs PyTorch: pip install 'newton-like[torch]'") from None
    return torch


def _array(bridge: Bridge, name: str, tensor, grad: bool) -> wp.array:
    """The memory of a tensor as a Warp array."""
    torch, model = _torch(), bridge.model
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
    if tensor.dtype != wp.dtype_to_torch(model.dtype):
        raise TypeError(f"{name} has the type {tensor.dtype}; this model needs {wp.dtype_to_torch(model.dtype)}")
    if wp.device_from_torch(tensor.device) != model.device:
        raise ValueError(f"{name} is on {tensor.device} and the model on {model.device}")
    shape = bridge.shape(name, tuple(tensor.shape))
    array = wp.from_torch(tensor.detach().reshape(shape).contiguous(), requires_grad=False)
    array.requires_grad = grad
    return array


def _on_stream(model):
    """Context manager that runs Warp on PyTorch's CUDA stream; on a CPU it does nothing."""
    if model.device.is_cuda:
        return wp.ScopedStream(wp.stream_from_torch(wp.device_to_torch(model.device)))
    return nullcontext()


@cache
def _function():
    """The autograd function. The class is created on demand, because PyTorch is optional."""
    torch = _torch()

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, bridge, *tensors):
            needed = ctx.needs_input_grad[1:]
            arrays = [_array(bridge, n, t, g) for n, t, g in zip(bridge.names, tensors, needed, strict=True)]
            ctx.set_materialize_grads(False)
            with _on_stream(bridge.model):
                if any(needed):
                    tape, results = bridge.record(arrays)
                    ctx.kept = (bridge, tape, arrays, results)
                else:
                    results = bridge.call(arrays)
            ctx.shapes = [t.shape for t in tensors]
            return tuple(wp.to_torch(r, requires_grad=False) for r in results)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *seeds):
            bridge, tape, arrays, results = ctx.kept
            given = []
            for result, seed in zip(results, seeds, strict=True):
                given.append(None if seed is None else wp.from_torch(seed.contiguous(), dtype=result.dtype))
            with _on_stream(bridge.model):
                bridge.backward(tape, arrays, results, given)
                # copied, because the next backward pass overwrites them
                gradients = [
                    wp.to_torch(a.grad).reshape(shape).clone() if a.requires_grad else None
                    for a, shape in zip(arrays, ctx.shapes, strict=True)
                ]
            return None, *gradients

    return Function
