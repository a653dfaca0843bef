"""Registration of functions and kernels: what Warp would do for nothing, and is kept from."""

import gc

import pytest
import warp as wp
from newton_like.kernels import registration
from newton_like.kernels.programs import programs

from newton_like.programs.robot import general_kernel


def test_functions_of_programs_list_no_modules():
    """Fails where a release of Warp looks for references under another name; programs would be right, and made in three times the time."""
    programs(8, wp.float32)
    module = registration.func.keywords["module"]
    assert len(module.functions) > 100
    assert module.references == set()


@pytest.mark.skipif(wp.is_cuda_available(), reason="kernels are launched on a GPU")
def test_kernels_are_hashed_once_on_a_cpu():
    kernel = general_kernel("eval_fk", 8, wp.float32)
    kernel.module.load(wp.get_device("cpu"), 1)
    assert list(kernel.module.hashers) == [1]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_it_was(enabled):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with registration.collection_paused():
            with registration.collection_paused():
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
        with pytest.raises(ZeroDivisionError), registration.collection_paused():
            raise ZeroDivisionError
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
