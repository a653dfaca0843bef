"""Functions of a model as functions of JAX arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import warp as wp

from newton_like.interop.bridge import COORDINATES, Bridge


def jax_function(model, function: Callable, inputs: Sequence[str] = COORDINATES, **options) -> Callable:
    """A function of the dynamics library as one of JAX arrays, for ``jax.jit`` and ``jax.grad``.

    XLA calls back with its own buffers, which Warp reads and writes in place (``warp.jax_callable``); results are copied there once. Going
    backward evaluates the function once more, as JAX keeps numbers and no tape. Second derivatives and forward mode are not supported;
    under ``jax.vmap`` calls are made one after the other.

    Arguments and errors as for :func:`torch_function`; ``ImportError`` if JAX is not installed.

    Returns:
        A function of arrays of the model's scalar type (float64 needs ``jax.config.update("jax_enable_x64", True)``). ``joint_q`` and
        ``joint_qd`` may have any shape, such as ``[worlds, coordinates]``; other arguments have the shapes that `function` takes. It
        gives an array, or a tuple of them.
    """
    jax = _jax()
    bridge, calls = Bridge(model, function, inputs, options), {}

    def calls_for(arrays) -> tuple[Callable, Callable]:
        """Functions of arrays of these shapes, forward and backward."""
        shapes = tuple(bridge.shape(n, a.shape) for n, a in zip(bridge.names, arrays, strict=True))
        if shapes not in calls:
            calls[shapes] = _calls(bridge, shapes)
        return calls[shapes]

    @jax.custom_vjp
    def evaluate(*arrays):
        return calls_for(arrays)[0](*arrays)

    def forward(*arrays):
        return evaluate(*arrays), arrays

    def backward(arrays, seeds):
        return tuple(g.reshape(a.shape) for a, g in zip(arrays, calls_for(arrays)[1](*arrays, *seeds), strict=True))

    evaluate.defvjp(forward, backward)

    def call(*arrays):
        bridge.check(len(arrays))
        results = evaluate(*(_checked(bridge, n, a) for n, a in zip(bridge.names, arrays, strict=True)))
        return results[0] if len(results) == 1 else results

    return call


def _jax():
    try:
        import jax
    except ImportError:
        raise ImportError("jax_function needs JAX: pip install 'newton-like[jax]'") from None
    return jax


def _checked(bridge: Bridge, name: str, array):
    array, wanted = _jax().numpy.asarray(array), wp.dtype_to_jax(bridge.model.dtype)
    if array.dtype != wanted:
        name_of = _jax().numpy.dtype(wanted).name
        hint = "; call jax.config.update('jax_enable_x64', True) first" if name_of == "float64" else ""
        raise TypeError(f"{name} holds {array.dtype}; this model needs {name_of}{hint}")
    return array


def _calls(bridge: Bridge, shapes) -> tuple[Callable, Callable]:
    """Functions of JAX arrays for a set of shapes: results, and gradients of the inputs from inputs and gradients of results."""
    model, count = bridge.model, len(bridge.names)
    kinds = [(r.dtype, r.shape) for r in bridge.results_like(shapes)]
    inputs = [(model.dtype, shape) for shape in shapes]

    def forward(*arrays):
        for out, result in zip(arrays[count:], bridge.call(arrays[:count]), strict=True):
            wp.copy(out, result)

    def backward(*arrays):
        given, seeds, outs = arrays[:count], arrays[count:-count], arrays[-count:]
        for array in given:
            array.requires_grad = True
        tape, results = bridge.record(given)
        bridge.backward(tape, given, results, seeds)
        for out, array in zip(outs, given, strict=True):
            wp.copy(out, array.grad)

    forward, backward = _callable(forward, inputs, kinds), _callable(backward, [*inputs, *kinds], inputs)
    flat = lambda arrays: [a.reshape(s) for a, s in zip(arrays, shapes, strict=True)]  # noqa: E731
    return (
        lambda *arrays: tuple(forward(*flat(arrays))),
        lambda *arrays: tuple(backward(*flat(arrays[:count]), *arrays[count:])),
    )


def _callable(function: Callable, inputs, outputs) -> Callable:
    """A function of Warp arrays, inputs first and then outputs to write, as one of JAX arrays.

    Args:
        inputs, outputs: type and shape of every array.
    """
    kinds = {f"a{i}": wp.array(dtype=t, ndim=len(shape)) for i, (t, shape) in enumerate((*inputs, *outputs))}
    # Warp reads the types of arguments there
    function.__signature__ = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in kinds]
    )
    function.__annotations__ = kinds
    return wp.jax_callable(
        function,
        num_outputs=len(outputs),
        # functions look at arrays on the host, which graphs cannot
        graph_mode=wp.JaxCallableGraphMode.NONE,
        vmap_method="sequential",
        output_dims={f"a{len(inputs) + i}": shape for i, (_, shape) in enumerate(outputs)},
        has_side_effect=False,
    )
