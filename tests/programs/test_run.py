"""Programs over articulations: the two evaluators agree bit by bit, and follow the numbers of the model."""

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

from newton_like import eval_fk, eval_ik, eval_jacobian, eval_mass_matrix
from newton_like.compiler import cpp
from newton_like.dynamics import kinetic_energy
from newton_like.programs.run import _numbers_of
from tests.support.kinematic_cases import forest, use_width
from tests.support.random_trees import random_state


def everything(model, q, qd) -> list[np.ndarray]:
    """The results of all functions for a state."""
    state, again = model.state(), model.state()
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    eval_ik(model, state, again.joint_q, again.joint_qd)
    matrices = [eval_jacobian(model, state), eval_mass_matrix(model, state)]
    return [a.numpy() for a in (state.body_q, state.body_qd, again.joint_q, again.joint_qd, *matrices)]


@pytest.mark.slow
def test_recorded_launches_keep_no_state_alive(rng):
    model = forest(rng, worlds=1, joints=3, floating=True).finalize("cpu")
    alive = []
    for _ in range(2):
        state = model.state()
        energy = kinetic_energy(model, state)
        alive += [weakref.ref(a) for a in (state.joint_q, energy)]
    del state, energy
    gc.collect()
    assert not any(one() for one in alive)


def by_both(model, q, qd) -> list[list[np.ndarray]]:
    """The same by both evaluators."""
    results = []
    for model.evaluator in ("general", "specialised"):
        results.append(everything(model, q, qd))
    return results


@pytest.mark.parametrize(
    ("dtype", "robots", "joints"), [(wp.float32, 1, 5), pytest.param(wp.float64, 2, 9, marks=pytest.mark.slow)]
)
def test_evaluators_give_the_same_bits(rng, dtype, robots, joints):
    model = forest(rng, worlds=19, robots=robots, joints=joints).finalize("cpu", dtype=dtype)
    for general, specialised in zip(*by_both(model, *random_state(model, rng)), strict=True):
        np.testing.assert_array_equal(general, specialised)
        assert np.abs(general).max() > 0.0


@pytest.mark.slow
def test_evaluators_agree_without_lanes(rng, monkeypatch):
    """At width 1, as on GPUs, compilers fuse operations of the general kernel as they like: rounding differs."""
    use_width(monkeypatch, 1)
    model = forest(rng, worlds=2, robots=1, joints=9).finalize("cpu", dtype=wp.float64)
    for general, specialised in zip(*by_both(model, *random_state(model, rng)), strict=True):
        # a few dozen roundings of numbers of up to ten
        np.testing.assert_allclose(general, specialised, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_specialised_code_follows_the_model(rng):
    """Numbers that were constants of the code, then edited: for all worlds alike, and for one."""
    model = forest(rng, worlds=18, robots=1, joints=5).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    before = by_both(model, q, qd)
    kernels = []
    for change in (slice(None), slice(0, 3), slice(0, 2)):
        for name in ("body_mass", "joint_X_p"):
            values = getattr(model, name).numpy()
            values[change] = values[change] * (1.5 if name == "body_mass" else 1.0)
            if name == "joint_X_p":
                values[change, :3] += 0.25
            getattr(model, name).assign(values)
        model.notify_changed()
        after = by_both(model, q, qd)
        for general, specialised in zip(*after, strict=True):
            np.testing.assert_array_equal(general, specialised)
        for i in (0, 4, 5):
            assert not np.array_equal(before[0][i], after[0][i])
        kernels.append({id(k.kernel) for r in _numbers_of(model).robots for k in r.kernels.values()})
    # edited groups are looked up from then on, and nothing is compiled a third time
    assert kernels[1] == kernels[2]


@pytest.mark.slow
def test_long_programs_are_cut(rng, monkeypatch):
    """A long program becomes several functions, with the same bits."""
    monkeypatch.setattr(cpp, "CUT", 60)
    model = forest(rng, worlds=16, robots=1, joints=4).finalize("cpu")
    general, specialised = by_both(model, *random_state(model, rng))
    robot = _numbers_of(model).robots[0]
    assert max(k.operations for k in robot.kernels.values()) > 2 * cpp.CUT
    for a, b in zip(general, specialised, strict=True):
        np.testing.assert_array_equal(a, b)


def test_auto_specialises_large_batches_only(rng, monkeypatch):
    monkeypatch.setattr("newton_like.programs.robot.WORTHWHILE", 20)
    for worlds, special in ((19, False), (20, True)):
        model = forest(rng, worlds=worlds, robots=1, joints=3, floating=True).finalize("cpu")
        assert model.evaluator == "auto"
        state = model.state()
        eval_fk(model, state.joint_q, state.joint_qd, state)
        assert bool(_numbers_of(model).robots[0].kernels) == special
    monkeypatch.setattr("newton_like.programs.robot.BUDGET", 10)
    model = forest(rng, worlds=20, robots=1, joints=3, floating=True).finalize("cpu")
    state = model.state()
    eval_fk(model, state.joint_q, state.joint_qd, state)
    assert all(k.kernel is None for k in _numbers_of(model).robots[0].kernels.values())


def test_unknown_evaluators_are_named(rng):
    model = forest(rng, worlds=1, robots=1, joints=2).finalize("cpu")
    with pytest.raises(ValueError, match="fastest"):
        model.evaluator = "fastest"


def test_every_call_writes_to_its_own_array(rng):
    """Launches are recorded once and write to the caller's arrays: results of earlier calls do not change."""
    model = forest(rng, worlds=2, robots=2, joints=4).finalize("cpu", dtype=wp.float64)
    state, results, copies = model.state(), [], []
    q, _ = random_state(model, rng)
    for i in range(4):
        state.joint_q.assign(q * (1.0 + 0.1 * i))
        results.append(eval_mass_matrix(model, state))
        copies.append(results[-1].numpy().copy())
    recorded = len(_numbers_of(model).recorded)
    assert recorded == 1
    for result, copy in zip(results, copies, strict=True):
        np.testing.assert_array_equal(result.numpy(), copy)
    assert not any(np.array_equal(copies[0], c) for c in copies[1:])


@pytest.mark.slow
def test_packed_results_of_selected_worlds_only(rng):
    """Equal numbers are written once in specialised code, and shared out to the worlds that are asked for, of a short block too."""
    model = forest(rng, worlds=19, robots=1, joints=6).finalize("cpu", dtype=wp.float64)
    n, state = model.max_dofs_per_articulation, model.state()
    state.joint_q.assign(random_state(model, rng)[0])
    mask = rng.random(model.articulation_count) < 0.5
    # a whole block, where all worlds go at once
    mask[:16] = True
    results = []
    for model.evaluator in ("general", "specialised"):
        H = wp.full((model.articulation_count, n, n), 7.0, dtype=wp.float64, device="cpu")
        results.append(eval_mass_matrix(model, state, H, mask=wp.array(mask, dtype=wp.bool, device="cpu")).numpy())
    np.testing.assert_array_equal(*results)
    assert (results[0][~mask] == 7.0).all() and (results[0][mask] != 7.0).any()
    # checks the precondition: a symmetric matrix has at most n (n + 1) / 2 different numbers
    (kernel,) = _numbers_of(model).robots[0].kernels.values()
    assert len(set(kernel.places["matrix"])) <= n * (n + 1) // 2 + 1


def test_least_recently_used_launches_are_forgotten_first(rng, monkeypatch):
    monkeypatch.setattr("newton_like.programs.run._RECORDED", 2)
    model = forest(rng, worlds=2, robots=1, joints=3, floating=True).finalize("cpu", dtype=wp.float64)
    masks = [wp.array([True, False], dtype=wp.bool, device="cpu") for i in range(3)]
    for i in (0, 1, 0, 2):
        eval_mass_matrix(model, model.state(), mask=masks[i])
    recorded = {ptr for key in _numbers_of(model).recorded for ptr in key}
    assert [mask.ptr in recorded for mask in masks] == [True, False, True]


@pytest.mark.slow
def test_recorded_launches_read_what_they_are_given_and_tapes_go_back_to_it(rng):
    """New arrays in every call, more of them than recordings; gradients of calls in between are those of their own arrays."""
    model = forest(rng, worlds=2, robots=2, joints=4).finalize("cpu", dtype=wp.float64)
    states, tapes, results = [], [], []
    for _ in range(3):
        q, qd = random_state(model, rng)
        states.append(SimpleNamespace(**{
            name: wp.array(x, dtype=wp.float64, device="cpu", requires_grad=True)
            for name, x in (("joint_q", q), ("joint_qd", qd))
        }))  # fmt: skip
        tapes.append(wp.Tape())
        with tapes[-1]:
            results.append(kinetic_energy(model, states[-1]))
    assert len(_numbers_of(model).recorded) == 2
    for state, tape, energy in zip(states, tapes, results, strict=True):
        np.testing.assert_array_equal(kinetic_energy(model, state).numpy(), energy.numpy())
        tape.backward(grads={energy: wp.ones_like(energy)})
        # v.dE/dv = 2 E, to the rounding of sums of some hundred terms
        along = (state.joint_qd.grad.numpy() * state.joint_qd.numpy()).sum()
        assert along == pytest.approx(2.0 * energy.numpy().sum(), rel=1e-12)
