"""Lane operations against NumPy, over the whole range of numbers, at every width and scalar type."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.lanes import extended, lane_math
from newton_like.kernels.spatial import spatial_algebra

from tests.support.kinematic_cases import LANES, PRECISIONS

COUNT = 4096

NUMPY = {wp.float32: np.float32, wp.float64: np.float64}

# One more precision than that of the lanes, to measure errors with.
EXACT = {wp.float32: np.float64, wp.float64: np.longdouble}

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e38, -1e38, 3.0, np.pi, 1e-20]

OPERATIONS = (
    "add", "sub", "mul", "div", "neg", "fma", "fnma", "rcp", "sqrt", "smaller", "larger", "where_lt", "sin", "cos", "atan2",
    "exp", "log", "fill", "shrink",
)  # fmt: skip


@pytest.fixture(scope="module", params=LANES)
def lanes(request):
    return Lanes(*request.param)


class Lanes:
    """All operations of one width and scalar type, as functions of NumPy arrays."""

    def __init__(self, width, dtype):
        self.width, self.dtype, self.real, self.exact = width, dtype, NUMPY[dtype], EXACT[dtype]
        self.m = lane_math(width, dtype)
        self.arithmetic = arithmetic_kernel(self.m)
        if np.finfo(self.exact).eps >= np.finfo(self.real).eps:
            pytest.skip("long double is no more than double on this machine")

    def array(self, values):
        values = np.asarray(values, self.real)
        blocks = values if self.width == 1 else values.reshape(-1, self.width)
        return wp.array(blocks, dtype=self.m.lane, device="cpu")

    def __call__(self, a, b=None, c=None):
        """Results of all operations by name, and of ``any_lt`` by block."""
        a, b, c = (np.zeros_like(a) if x is None else x for x in (a, b, c))
        blocks = len(a) // self.width
        out = wp.zeros((len(OPERATIONS), blocks), dtype=self.m.lane, device="cpu")
        found = wp.zeros(blocks, dtype=wp.int32, device="cpu")
        inputs = [self.array(x) for x in (a, b, c)]
        wp.launch(self.arithmetic, blocks, [*inputs, self.dtype(0.1)], [out, found], device="cpu")
        results = out.numpy().reshape(len(OPERATIONS), -1)
        return dict(zip(OPERATIONS, results, strict=True)), found.numpy()

    def numbers(self, rng):
        """Numbers of all sizes and signs, special ones among them."""
        info = np.finfo(self.real)
        exponents = rng.uniform(np.log10(info.tiny) - 5.0, np.log10(info.max), COUNT)
        with np.errstate(under="ignore"):
            x = (rng.choice([-1.0, 1.0], COUNT) * 10.0**exponents).astype(self.real)
        x[rng.choice(COUNT, 200, replace=False)] = rng.choice(SPECIAL, 200)
        return x

    def error(self, actual, expected):
        """Distance in units in the last place of the expected number."""
        spacing = np.spacing(np.abs(expected).astype(self.real)).astype(self.exact)
        return (np.abs(actual.astype(self.exact) - expected) / spacing).max()


def arithmetic_kernel(m):
    real = m.real

    @wp.kernel(module="unique", enable_backward=False)
    def kernel(
        a_in: wp.array[m.lane],
        b_in: wp.array[m.lane],
        c_in: wp.array[m.lane],
        tenth: real,
        out: m.memory,
        found: wp.array[int],
    ):
        i = wp.tid()
        a = a_in[i]
        b = b_in[i]
        c = c_in[i]
        out[0, i] = m.add(a, b)
        out[1, i] = m.sub(a, b)
        out[2, i] = m.mul(a, b)
        out[3, i] = m.div(a, b)
        out[4, i] = m.neg(a)
        out[5, i] = m.fma(a, b, c)
        out[6, i] = m.fnma(a, b, c)
        out[7, i] = m.rcp(a)
        out[8, i] = m.sqrt(a)
        out[9, i] = m.smaller(a, b)
        out[10, i] = m.larger(a, b)
        out[11, i] = m.where_lt(a, b, c, a)
        out[12, i] = m.sin(a)
        out[13, i] = m.cos(a)
        out[14, i] = m.atan2(a, b)
        out[15, i] = m.exp(a)
        out[16, i] = m.log(a)
        out[17, i] = m.fill(tenth)
        out[18, i] = m.shrink(a, b)
        if m.any_lt(a, b):
            found[i] = 1

    return kernel


def same_bits(actual, expected):
    """Equal bits, where NaNs of different signs are equal, and zeros of different signs are not."""
    np.testing.assert_array_equal(actual, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(expected[known]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arithmetic_is_correctly_rounded(rng, lanes):
    a, b, c = (lanes.numbers(rng) for _ in range(3))
    got, found = lanes(a, b, c)
    same_bits(got["add"], a + b)
    same_bits(got["sub"], a - b)
    same_bits(got["mul"], a * b)
    same_bits(got["div"], a / b)
    np.testing.assert_array_equal(got["neg"], -a)  # Warp negates by subtracting from zero: -0 comes out as 0
    same_bits(got["rcp"], lanes.real(1.0) / a)
    same_bits(got["sqrt"], np.sqrt(a))
    same_bits(got["smaller"], np.where(a < b, a, b))
    same_bits(got["larger"], np.where(a > b, a, b))
    same_bits(got["where_lt"], np.where(a < b, c, a))
    same_bits(got["fill"], np.full_like(a, 0.1))
    np.testing.assert_array_equal(found, (a < b).reshape(-1, lanes.width).any(axis=1))
    np.testing.assert_array_equal(got["shrink"], np.where(a < np.sqrt(b), a / np.sqrt(b), lanes.real(1.0)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_shrink_is_a_quotient_but_at_most_one(rng, lanes):
    """Also in blocks of lanes without a quotient below one, and where bound and root are neighbours."""
    square = (10.0 ** rng.uniform(-30, 6, COUNT)).astype(lanes.real)
    root = np.sqrt(square)
    near = root * (1.0 + np.finfo(lanes.real).eps * rng.integers(-3, 4, COUNT)).astype(lanes.real)
    bounds = [near, 2.0 * root, np.where(rng.random(COUNT) < 0.5, 0.0, 2.0 * root), np.zeros(COUNT), 0.5 * root]
    block = np.arange(COUNT) // 16
    bound = np.choose(block % len(bounds), bounds).astype(lanes.real)
    got, _ = lanes(bound, square, square)
    same_bits(got["shrink"], np.where(bound < root, bound / root, lanes.real(1.0)))


def test_products_and_sums_round_once_or_twice(rng, lanes):
    a, b = (rng.normal(size=COUNT).astype(lanes.real) for _ in range(2))
    # from sums that cancel to sums that do not
    c = (-a * b * (1.0 + 10.0 ** rng.uniform(-9, 3, COUNT))).astype(lanes.real)
    got, _ = lanes(a, b, c)
    product, c = a.astype(lanes.exact) * b, c.astype(lanes.exact)
    for actual, exact in ((got["fma"], product + c), (got["fnma"], c - product)):
        # half a unit in the last place of the product, and of the sum
        bound = 0.5 * (np.spacing(np.abs(product).astype(lanes.real)) + np.spacing(np.abs(exact).astype(lanes.real)))
        assert (np.abs(actual.astype(lanes.exact) - exact) <= 1.0001 * bound).all()


def angles(lanes, rng):
    """Small ones, some of every size, and the neighbours of multiples of a quarter turn on both sides of 8192."""
    quarters = np.concatenate([rng.integers(-5216, 5217, 1500), rng.integers(-(10**6), 10**6, 500)])
    near = (quarters * (np.pi / 2)).astype(lanes.real)
    near = near + rng.integers(-3, 4, near.size) * np.spacing(near)
    x = np.concatenate([near, rng.uniform(-10, 10, 2000), rng.uniform(-8192, 8192, 2000), lanes.numbers(rng)])
    x = x[np.isfinite(x)].astype(lanes.real)
    return x[: len(x) // 16 * 16]


def test_sines_and_cosines_are_accurate_for_every_angle(rng, lanes):
    x = angles(lanes, rng)
    got, _ = lanes(x)
    exact = x.astype(lanes.exact)
    # as stated in lanes.py
    bound = {wp.float32: 1.2e-7, wp.float64: 3e-16}[lanes.dtype]
    assert np.abs(got["sin"] - np.sin(exact)).max() < bound
    assert np.abs(got["cos"] - np.cos(exact)).max() < bound
    # small angles keep their relative accuracy
    small = np.abs(x) < 1e-3
    assert small.any()
    assert lanes.error(got["sin"][small], np.sin(exact[small])) < 1.0
    assert not got["sin"][x == 0].any()


def test_infinite_angles_have_no_sine(lanes):
    x = np.tile(np.array([np.inf, -np.inf, np.nan, 1.0], lanes.real), 4)
    got, _ = lanes(x)
    for values, exact in ((got["sin"], np.sin(1.0)), (got["cos"], np.cos(1.0))):
        assert np.isnan(values.reshape(4, 4)[:, :3]).all()
        # nor do they disturb their neighbours
        np.testing.assert_allclose(values.reshape(4, 4)[:, 3], exact, rtol=3e-7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arc_tangents_know_their_quadrant(rng, lanes):
    y, x = lanes.numbers(rng), lanes.numbers(rng)
    near = 2000
    y[:near] = x[:near] * rng.uniform(-3.0, 3.0, near)
    finite = ~(np.isnan(x) | np.isnan(y))
    got, _ = lanes(y, x)
    with np.errstate(under="ignore"):
        expected = np.arctan2(y[finite].astype(lanes.exact), x[finite].astype(lanes.exact))
    # the scalar library promises no more than a few units in the last place
    assert lanes.error(got["atan2"][finite], expected) < 3.0
    np.testing.assert_array_equal(np.signbit(got["atan2"][finite]), np.signbit(y[finite]))
    assert np.isnan(got["atan2"][~finite]).all()


def test_exponentials_and_logarithms(rng, lanes):
    info = np.finfo(lanes.real)
    x = rng.uniform(np.log(info.tiny), np.log(info.max) - 0.01, COUNT).astype(lanes.real)
    assert lanes.error(lanes(x)[0]["exp"], np.exp(x.astype(lanes.exact))) < 2.0
    x = np.abs(lanes.numbers(rng))
    x[~np.isfinite(x) | (x < info.tiny)] = 1.0
    x[::7] = 1.0 + rng.normal(size=x[::7].size) * 1e-3
    got, exact = lanes(x)[0]["log"], np.log(x.astype(lanes.exact))
    assert lanes.error(got, exact) < 2.0
    edges = np.tile(np.array([0.0, np.inf, -1.0, 1e9], lanes.real), 4)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(lanes(edges)[0]["log"][:3], [-np.inf, np.inf, np.nan])
        np.testing.assert_allclose(lanes(edges)[0]["exp"][:4], [1.0, np.inf, np.exp(-1.0), np.inf], rtol=2e-7)


@pytest.mark.parametrize("varies", [0, 1])
def test_parameters_are_one_for_all_worlds_or_one_for_each(rng, varies):
    for width, dtype in PRECISIONS:
        m = lane_math(width, dtype)
        kernel = parameter_kernel(m)
        uniform = rng.normal(size=5).astype(NUMPY[dtype])
        varying = rng.normal(size=(3, 5, width)).astype(NUMPY[dtype])
        numbers = varying[..., 0] if width == 1 else varying
        out = wp.zeros((3, 5), dtype=m.lane, device="cpu")
        arrays = [wp.array(uniform, dtype=dtype, device="cpu"), wp.array(numbers, dtype=m.lane, device="cpu")]
        wp.launch(kernel, (3, 5), [*arrays, varies], [out], device="cpu")
        expected = varying if varies else np.broadcast_to(uniform[None, :, None], varying.shape)
        np.testing.assert_array_equal(out.numpy().reshape(varying.shape), expected)


def rows_kernel(m):
    @wp.kernel(module="unique", enable_backward=False)
    def kernel(n: int, factor: wp.array[m.lane], mem: m.memory):
        i = wp.tid()
        m.clear(i, 0, n, mem)
        m.copy(i, n, 3 * n, n, mem)
        m.put_sums(i, 2 * n, 3 * n, 4 * n, n, mem)
        m.scale_rows(i, 5 * n, n, factor[0], mem)
        mem[6 * n, i] = m.squared_distance(i, 3 * n, 4 * n, n, mem)

    return kernel


@pytest.mark.parametrize(("real", "width"), [(wp.float32, 1), (wp.float32, 8), (wp.float32, 16), (wp.float64, 8)])
def test_loops_over_rows(rng, real, width):
    """Rows beside those that are named stay as they are."""
    n = 5
    m = extended(lane_math(width, real), (spatial_algebra,))
    old = rng.normal(size=(7 * n, width)).astype(wp.dtype_to_numpy(real))
    factor = rng.normal(size=width).astype(old.dtype)
    block = (1,) if width == 1 else (1, width)
    mem = wp.array(old.reshape(7 * n, *block), dtype=m.lane, device="cpu")
    factors = wp.array(factor.reshape(block), dtype=m.lane, device="cpu")
    wp.launch(rows_kernel(m), 1, [n, factors, mem], device="cpu")
    got = mem.numpy().reshape(7 * n, width)
    first, second = old[3 * n : 4 * n], old[4 * n : 5 * n]
    np.testing.assert_array_equal(got[:n], 0.0)
    np.testing.assert_array_equal(got[n : 2 * n], first)
    np.testing.assert_array_equal(got[2 * n : 3 * n], first + second)
    np.testing.assert_array_equal(got[3 * n : 5 * n], old[3 * n : 5 * n])
    np.testing.assert_array_equal(got[5 * n : 6 * n], factor * old[5 * n : 6 * n])
    np.testing.assert_allclose(got[6 * n], np.square(first.astype(np.float64) - second).sum(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(got[6 * n + 1 :], old[6 * n + 1 :])


def parameter_kernel(m):
    @wp.kernel(module="unique", enable_backward=False)
    def kernel(uniform: wp.array[m.real], varying: m.memory, varies: int, out: m.memory):
        b, i = wp.tid()
        out[b, i] = m.param(uniform, varying, varies, b, i)

    return kernel
