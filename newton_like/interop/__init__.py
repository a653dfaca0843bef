"""Differentiable PyTorch and JAX functions from functions of a model."""

from newton_like.interop.jax_bridge import jax_function
from newton_like.interop.torch_bridge import torch_function

__all__ = ["jax_function", "torch_function"]
