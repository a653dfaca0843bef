"""The parameters of a batch, gathered from the arrays of a model: the blocks of numbers that `newton_like.kernels.tree` lists.

Arrays of a model are read as numbers in a row. What does not depend on the state is worked out here, in double precision: rotations of
anchors and axes, drive gains by target mode, contact softness. A thread writes the block of one joint, degree of freedom, body, collider or
plane of one articulation.

Kernels get a `Target`, which says where numbers go, the `Batch`, tables of the batch, and arrays of the model.
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.parameters.contacts import contact_kernels
from newton_like.kernels.parameters.gains import gain_kernels
from newton_like.kernels.parameters.gather import gather_functions
from newton_like.kernels.parameters.trees import tree_kernels
from newton_like.kernels.simd import GENERAL_FLAGS, module_options


@cache
def parameter_kernels(real) -> types.SimpleNamespace:
    """For the scalar type `real`: the structs and the kernels over the articulations of a batch and their joints, dofs, bodies, colliders,
    planes, or nothing (`gravities`); `copies` over numbers that do not differ between articulations."""
    f = gather_functions(real)
    Target, lane_of, give = f.Target, f.lane_of, f.give

    def of(what: str) -> wp.Module:
        """A module of kernels that are needed together: they compile at once in half the time."""
        module = wp.get_module(f"newton_like.parameters.{what}.{real.__name__}")
        # sums and products are rounded one by one, on all devices
        module.options.update(enable_backward=False, fuse_fp=False, **module_options(GENERAL_FLAGS, 8))
        return module

    module = of("trees")

    @wp.kernel(module=module, enable_backward=False)
    def copies(G: Target, start: int, first: wp.array[real]):
        at_lane, share = wp.tid()
        thread = G.first_lane + at_lane
        lane = lane_of(G, thread)
        for k in range(share, G.items, G.sharing):
            give(G, lane, start + k, wp.float64(first[start + k]))

    parts = tree_kernels(real, module), gain_kernels(real, module), contact_kernels(real, of("colliders"), of("pairs"))
    found = {name: each for part in parts for name, each in vars(part).items()}
    return types.SimpleNamespace(Target=Target, Batch=f.Batch, copies=copies, **found)
