"""Mixtures of the results of sweeps, see `kernels.solvers.mixing`, against linear maps in the place of sweeps."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.layout import STEP_ROWS
from newton_like.kernels.simd import GENERAL_FLAGS, module_options
from newton_like.kernels.solvers.mixing import FRESH

from newton_like.programs.robot import namespace

WIDTH, DOFS, CONTACTS = 8, 7, 4
IMPULSES = 3 * CONTACTS
# the places of rows in memory; the impulses of dofs follow those of contacts
ROWS = dict(z=DOFS, sweep_z=DOFS, swept_z=DOFS, mix_residual=DOFS, mix_change=DOFS, mix_way=DOFS, pace=1, impulse=IMPULSES,
            dof_impulse=3 * DOFS, swept_impulse=IMPULSES + 3 * DOFS, start_impulse=IMPULSES + 3 * DOFS)  # fmt: skip
PLACES = dict(zip(ROWS, np.cumsum([0, *ROWS.values()]).tolist(), strict=False))
# dofs 1 and 4 have friction alone, dof 5 has hard limits, too
LISTED = [2, 8, 11]
LIMITS = len(LISTED)


class Mixer:
    """``mix_sweeps`` of a block of worlds, whose memory is NaN at first."""

    def __init__(self):
        self.m = m = namespace(WIDTH, wp.float64, STEP_ROWS)
        self.memory = np.full((sum(ROWS.values()), WIDTH), np.nan)
        self["pace"] = FRESH
        self.T, self.L = m.Tree(), m.Layout()
        self.T.dofs, self.T.contact_rows, self.T.candidates = DOFS, 3, CONTACTS
        for name, at in PLACES.items():
            setattr(self.L, name, at)
        for name in ("impulse", "swept", "start"):
            setattr(self.L, f"packed_{name}", getattr(self.L, "impulse" if name == "impulse" else f"{name}_impulse"))
        listed = np.array([*range(CONTACTS), *LISTED], dtype=np.int32)[:, None]
        self.active = wp.array(listed, dtype=wp.int32, device="cpu")

        @wp.kernel(module="unique", enable_backward=False, module_options=module_options(GENERAL_FLAGS, WIDTH))
        def kernel(T: m.Tree, L: m.Layout, mem: m.memory, active: wp.array2d[int]):
            m.mix_sweeps(CONTACTS, CONTACTS, LIMITS, T, L, mem, active)

        self.kernel = kernel

    def __getitem__(self, name: str) -> np.ndarray:
        return self.memory[PLACES[name] : PLACES[name] + ROWS[name]]

    def __setitem__(self, name: str, value) -> None:
        self[name][:] = value

    def mix(self) -> None:
        mem = wp.array(self.memory[:, None], dtype=self.m.lane, device="cpu")
        wp.launch(self.kernel, dim=1, inputs=[self.T, self.L, mem, self.active], device="cpu")
        self.memory[:] = mem.numpy().reshape(self.memory.shape)


@pytest.mark.parametrize("count", [1, 2])
def test_linear_maps_are_solved(count, rng):
    """Of a linear map with one eigenvalue, the mixture with one known change is the solution, and with two eigenvalues that with two.
    The impulses are mixed as the velocities are, and nothing depends on what memory held before. World 0 starts from the solution, and
    all changes of world 1 are parallel."""
    of_dofs = [3, 12, 15, 16, 17]  # impulses of friction of dofs 1, 4 and 5, and of both limits of dof 5
    mixer = Mixer()
    basis = np.linalg.qr(rng.normal(size=(WIDTH, DOFS, DOFS)))[0]
    pair = rng.choice([-1.0, 1.0], (WIDTH, 1)) * rng.uniform([0.3, -0.8], [0.6, -0.4], (WIDTH, 2))
    values = np.where(np.arange(DOFS) < (3 if count == 2 else 0), pair[:, :1], pair[:, 1:])
    values[1] = values[1, 0]
    turn = np.einsum("wij,wj,wkj->wik", basis, values, basis)
    exact = rng.normal(size=(WIDTH, DOFS))
    weights = rng.normal(size=(IMPULSES + len(of_dofs), DOFS))

    def sweep():
        z = exact + np.einsum("wij,wj->wi", turn, mixer["z"].T - exact)
        p = weights @ z.T
        mixer["z"] = z.T
        mixer["impulse"] = p[:IMPULSES]
        mixer["dof_impulse"][of_dofs] = p[IMPULSES:]

    mixer["z"] = rng.normal(size=(DOFS, WIDTH))
    mixer["z"][:, 0] = exact[0]
    mixer["impulse"] = 0.0
    mixer["dof_impulse"] = 0.0
    mixer["sweep_z"] = mixer["z"]
    for _known in range(count + 1):
        mixer.mix()
        mixer["sweep_z"] = mixer["z"]
        sweep()
    assert np.abs(mixer["z"].T - exact).max() > 0.01
    mixer.mix()
    np.testing.assert_allclose(mixer["z"].T, exact, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(mixer["impulse"], weights[:IMPULSES] @ exact.T, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(mixer["dof_impulse"][of_dofs], weights[IMPULSES:] @ exact.T, rtol=0.0, atol=1e-8)
