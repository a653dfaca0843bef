"""Lane widths, workers and views of arrays."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

from newton_like import eval_fk
from newton_like.arrays import flat
from newton_like.programs.device import WIDTHS, lane_width
from newton_like.threads import Command, cut, load_together, run_shared, worker_count
from tests.support.kinematic_cases import forest, real_array
from tests.support.random_trees import random_state


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    monkeypatch.delenv("NEWTON_LIKE_WIDTH", raising=False)
    monkeypatch.delenv("NEWTON_LIKE_THREADS", raising=False)


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_the_width_is_chosen_by_argument_then_environment_then_processor(monkeypatch, dtype):
    assert lane_width("cpu", dtype) in (8, 16)
    for width in WIDTHS:
        monkeypatch.setenv("NEWTON_LIKE_WIDTH", str(width))
        assert lane_width("cpu", dtype) == width
        assert lane_width("cpu", dtype, 1) == 1


@pytest.mark.parametrize("wrong", ["abc", "0", "7", "-8", "8.0", ""])
def test_wrong_widths_are_named_with_the_right_ones(monkeypatch, wrong):
    monkeypatch.setenv("NEWTON_LIKE_WIDTH", wrong)
    with pytest.raises(ValueError, match=r"\(1, 8, 16\).*NEWTON_LIKE_WIDTH"):
        lane_width("cpu")


def test_threads_are_chosen_by_argument_then_environment_then_cores(monkeypatch):
    assert worker_count() >= 1
    monkeypatch.setenv("NEWTON_LIKE_THREADS", "3")
    assert worker_count() == 3
    assert worker_count(5) == 5


@pytest.mark.parametrize("wrong", ["abc", "0", "-1", "1.5", ""])
def test_wrong_numbers_of_threads_are_named(monkeypatch, wrong):
    monkeypatch.setenv("NEWTON_LIKE_THREADS", wrong)
    with pytest.raises(ValueError, match=r"1.*NEWTON_LIKE_THREADS"):
        worker_count()


@pytest.mark.parametrize("dtype", [wp.transform, wp.vec3, wp.float32])
def test_flat_shows_the_same_numbers_in_place(rng, dtype):
    size = wp.types.type_size_in_bytes(dtype) // 4
    values = rng.normal(size=(5, size)).astype(np.float32)
    array = wp.array(values if size > 1 else values[:, 0], dtype=dtype, device="cpu")
    row = flat(array, wp.float32)
    assert row.numpy().tobytes() == values.tobytes()
    row.fill_(2.0)
    assert (array.numpy() == 2.0).all()


def test_flat_refuses_strided_arrays():
    with pytest.raises(ValueError, match="contiguous"):
        flat(wp.zeros(10, dtype=wp.vec3, device="cpu")[::2], wp.float32)


@pytest.mark.parametrize("threads", [1, 3])
def test_every_piece_runs_once_and_errors_come_through(threads):
    done = []

    class Piece:
        def __init__(self, i):
            self.i = i

        def launch(self):
            done.append(self.i)

    class Broken:
        def launch(self):
            raise RuntimeError("broken")

    run_shared([[Piece(i) for i in range(7)]] * threads)
    assert sorted(done) == list(range(7))
    with pytest.raises(RuntimeError, match="broken"):
        run_shared([[Piece(0), Broken(), Piece(2)]] * threads)


def test_kernels_load_once_and_errors_come_through(monkeypatch):
    modules, loaded, broken = [f"module {i}" for i in range(7)], [], set()

    def load(device, chosen, max_workers):
        loaded.extend(chosen)
        if broken & {*chosen}:
            raise RuntimeError("broken")

    monkeypatch.setattr(wp, "force_load", load)
    kernels, cpu = [SimpleNamespace(module=module) for module in (*modules, modules[0])], wp.get_device("cpu")
    for threads, expected in ((1, []), (3, modules)):
        # one thread loads a kernel when it is launched
        monkeypatch.setenv("NEWTON_LIKE_THREADS", str(threads))
        loaded.clear()
        load_together(kernels, cpu)
        assert sorted(loaded) == expected
    for wrong in (modules[:1], modules[3:4], modules):
        broken.update(wrong)
        with pytest.raises(RuntimeError, match="broken"):
            load_together(kernels, cpu)


def test_pieces_cover_all_blocks():
    for blocks in (0, 1, 5, 64):
        for threads in (1, 2, 3):
            pieces = cut(blocks, threads)
            assert [i for first, n in pieces for i in range(first, first + n)] == list(range(blocks))
            assert all(n > 0 for _, n in pieces)


@pytest.mark.slow
def test_memory_laid_out_as_on_a_gpu_gives_the_same_bits(rng, monkeypatch):
    """Neighbouring threads read neighbouring words there, and numbers of every world lie in columns."""
    scene, results = forest(rng, worlds=5), []
    model = scene.finalize("cpu", dtype=wp.float64)
    (q, qd), com = random_state(model, rng), rng.normal(size=(model.body_count, 3))
    monkeypatch.setenv("NEWTON_LIKE_WIDTH", "1")
    for side_by_side in (False, True):
        monkeypatch.setattr("newton_like.programs.device.STAND_IN", side_by_side)
        model = scene.finalize("cpu", dtype=wp.float64)
        model.body_com.assign(com)
        model.notify_changed()
        # the second time with other arrays
        for start in (np.zeros_like(qd), qd):
            state = model.state()
            eval_fk(model, real_array(model, q), real_array(model, start), state)
        results.append(np.concatenate([state.body_q.numpy().ravel(), state.body_qd.numpy().ravel()]))
    np.testing.assert_array_equal(*results)
    assert np.abs(results[0]).max() > 0.1


@wp.kernel
def multiply(numbers: wp.array[float], factor: float):
    i = wp.tid()
    numbers[i] = numbers[i] * factor


def test_a_command_takes_new_arguments_and_is_captured():
    numbers = wp.array([1.0, 2.0, 5.0], dtype=wp.float32, device="cpu")
    command = Command(wp.launch(multiply, dim=3, inputs=[numbers, 2.0], device="cpu", record_cmd=True))
    command.launch()
    command.launch()
    assert numbers.numpy().tolist() == [4.0, 8.0, 20.0]
    command.set_param_by_name("factor", -1.0)
    command.launch()
    assert numbers.numpy().tolist() == [-4.0, -8.0, -20.0]
    with wp.ScopedCapture("cpu") as capture:
        command.launch_in_graph()
    assert numbers.numpy().tolist() == [-4.0, -8.0, -20.0]
    wp.capture_launch(capture.graph)
    assert numbers.numpy().tolist() == [4.0, 8.0, 20.0]
