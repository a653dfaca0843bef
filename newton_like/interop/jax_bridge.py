"""JAX functions from functions of a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import warp as wp

from newton_like.interop.bridge import COORDINATES, Bridge
from newton_like.model.arguments import check_choice


def jax_function(
    model, function: Callable, inputs: Sequence[str] = COORDINATES, *, mode: str = "reverse", **options
) -> Callable:
    """A function of the dynamics library as a function of JAX arrays, for ``jax.jit`` and ``jax.grad``, or ``jax.jvp``.

    Warp reads and writes the buffers of XLA in place (``warp.jax_callable``); results are copied to them once. The backward
    pass evaluates the function again, because JAX stores numbers and not Warp's tape. Second derivatives are not supported;
    ``jax.vmap`` makes sequential calls.

    JAX differentiates a function of callbacks in one direction only. With ``mode="reverse"`` it has gradients (``jax.grad``, ``jax.vjp``,
    ``jax.jacrev``); with ``mode="forward"`` directional derivatives (``jax.jvp``, ``jax.jacfwd``), which are exact and cost an adjoint for
    each number that an articulation has in the results.

    Arguments and errors as for :func:`torch_function`, and ``mode``; ``ImportError`` if JAX is not installed, ``ValueError`` for an unknown
    mode.

    Returns:
        A function of arrays of the model's scalar type (float64 needs ``jax.config.update("jax_enable_x64", True)``). ``joint_q`` and
        ``joint_qd`` may have any shape, such as ``[worlds, coordinates]``; other arguments have the shapes that `function` takes. It
        gives an array, or a tuple of them.
    """
    jax = _jax()
    check_choice(mode, "mode", ("reverse", "forward"))
    bridge, calls = Bridge(model, function, inputs, options), {}

    def calls_for(arrays) -> tuple[Callable, Callable, Callable]:
        """Functions for arrays of these shapes, see :func:`_calls`."""
        shapes = tuple(bridge.shape(n, a.shape) for n, a in zip(bridge.names, arrays, strict=True))
        if shapes not in calls:
            calls[shapes] = _calls(bridge, shapes)
        return calls[shapes]

    def results_of(*arrays):
        return calls_for(arrays)[0](*arrays)

    def forward(*arrays):
        return evaluate(*arrays), arrays

    def backward(arrays, seeds):
        return tuple(g.reshape(a.shape) for a, g in zip(arrays, calls_for(arrays)[1](*arrays, *seeds), strict=True))

    def along(arrays, ways):
        return evaluate(*arrays), calls_for(arrays)[2](*arrays, *ways)

    if mode == "reverse":
        evaluate = jax.custom_vjp(results_of)
        evaluate.defvjp(forward, backward)
    else:
        evaluate = jax.custom_jvp(results_of)
        evaluate.defjvp(along)

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
        raise TypeError(f"{name} has the type {array.dtype}; this model needs {name_of}{hint}")
    return array


def _calls(bridge: Bridge, shapes) -> tuple[Callable, Callable, Callable]:
    """Functions of JAX arrays for given shapes: results; gradients of the inputs, from inputs and gradients of results; tangents of the
    results, from inputs and tangents of inputs."""
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

    def along(*arrays):
        given, ways, outs = arrays[:count], arrays[count : 2 * count], arrays[2 * count :]
        for array in given:
            array.requires_grad = True
        for out, change in zip(outs, bridge.forward(given, ways), strict=True):
            out.assign(change)

    forward, backward = _callable(forward, inputs, kinds), _callable(backward, [*inputs, *kinds], inputs)
    along = _callable(along, [*inputs, *inputs], kinds)
    flat = lambda arrays: [a.reshape(s) for a, s in zip(arrays, shapes, strict=True)]  # noqa: E731
    return (
        lambda *arrays: tuple(forward(*flat(arrays))),
        lambda *arrays: tuple(backward(*flat(arrays[:count]), *arrays[count:])),
        lambda *arrays: tuple(along(*flat(arrays[:count]), *flat(arrays[count:]))),
    )


def _callable(function: Callable, inputs, outputs) -> Callable:
    """A function of Warp arrays (inputs, then outputs) as a function of JAX arrays.

    Args:
        inputs, outputs: type and shape of every array.
    """
    kinds = {f"a{i}": wp.array(dtype=t, ndim=len(shape)) for i, (t, shape) in enumerate((*inputs, *outputs))}
    # Warp reads the types of arguments from the signature and the annotations
    function.__signature__ = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in kinds]
    )
    function.__annotations__ = kinds
    return wp.jax_callable(
        function,
        num_outputs=len(outputs),
        # functions check arrays on the host, which CUDA graphs do not support
        graph_mode=wp.JaxCallableGraphMode.NONE,
        vmap_method="sequential",
        output_dims={f"a{len(inputs) + i}": shape for i, (_, shape) in enumerate(outputs)},
        has_side_effect=False,
    )
