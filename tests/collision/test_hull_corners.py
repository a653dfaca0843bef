"""The vertices of a hull that a step considers on a plane, against their definition in NumPy."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.programs import programs

BLOCKS = 6


def corner_kernel(m):
    """Kernel over blocks: the corners of one hull for each direction, distance of the plane and thickness."""
    find = m.find_corners

    @wp.kernel(module="unique", enable_backward=False)
    def run(uniform: wp.array[m.real], varying: m.memory, varies: int, count: int, task: m.memory, mem: m.memory):
        b = wp.tid()
        down = m.vec(task[b, 0], task[b, 1], task[b, 2])
        # the memory of a worker has a row for each number; this one has the rows of all blocks
        find(uniform, varying, varies, b, 3, count, down, task[b, 3], task[b, 4], task[b, 5], mem, 12 * b, 0)

    return run


def corners_by_definition(vertices, down, above, thick):
    """The four vertices ``[4, 3]``."""
    low = vertices @ down
    first = vertices[low.argmax()]
    weight = np.maximum(low - (low.max() - thick), 0.0) + np.where(low > above, 64.0 * thick, 0.0)
    e = vertices - first
    far = weight * (e * e).sum(axis=1)
    second = vertices[far.argmax()] if far.max() > 0.0 else first
    along = second - first
    side = np.cross(along, down)
    corners = [first, second]
    for sign in (1.0, -1.0):
        area = weight * (e @ (sign * side - 0.1 * along))
        corners.append(vertices[area.argmax()] if area.max() > 1.0e-4 * far.max() else first)
    return np.array(corners)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize(("count", "varies"), [(8, 0), (64, 1), (100, 0)])
def test_corners_are_those_of_the_definition(rng, width, count, varies):
    m = programs(width, wp.float64)
    worlds = BLOCKS * width
    vertices = rng.normal(size=(worlds, count, 3)) * [1.0, 0.7, 0.4]
    # flat at the bottom, so that several vertices may touch
    vertices[:, : count // 2, 2] = -0.4 + 0.01 * rng.normal(size=(worlds, count // 2))
    if not varies:
        vertices[:] = vertices[0]
    down = [0.0, 0.0, -1.0] + 0.1 * rng.normal(size=(worlds, 3))
    down /= np.linalg.norm(down, axis=1, keepdims=True)
    above = 0.4 + 0.05 * rng.normal(size=worlds)
    thick = rng.uniform(0.02, 0.2, size=worlds)

    def lanes(values):
        """``[block, number]`` of lanes from ``[world, number]``."""
        rows = values.reshape(BLOCKS, width, -1).transpose(0, 2, 1)
        return wp.array(np.ascontiguousarray(rows if width > 1 else rows[..., 0]), dtype=m.lane, device="cpu")

    uniform = wp.array(np.concatenate([np.zeros(3), vertices[0].ravel()]), dtype=wp.float64, device="cpu")
    varying = lanes(np.concatenate([np.zeros((worlds, 3)), vertices.reshape(worlds, -1)], axis=1))
    # the last block is too far away in all of its worlds; of the others, one world is near enough
    distance = above - np.einsum("wij,wj->wi", vertices, down).max(axis=1)
    reach = distance - 0.1
    reach[: worlds - width : width] += 0.2
    task = lanes(np.concatenate([down, above[:, None], thick[:, None], reach[:, None]], axis=1))
    mem = wp.zeros((12 * BLOCKS, 1), dtype=m.lane, device="cpu")
    wp.launch(corner_kernel(m), dim=BLOCKS, inputs=[uniform, varying, varies, count, task, mem], device="cpu")
    found = mem.numpy().reshape(BLOCKS, 4, 3, width).transpose(0, 3, 1, 2).reshape(worlds, 4, 3)
    expected = [corners_by_definition(*x) for x in zip(vertices, down, above, thick, strict=True)]
    np.testing.assert_array_equal(found[:-width], expected[:-width])
    assert not found[-width:].any()
    # directions have different corners
    assert len(np.unique(np.reshape(expected, (worlds, -1)), axis=0)) > 1
