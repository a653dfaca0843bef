"""The table of memory rows: rows that specialised code does not write are never read."""

import ast
import re
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from newton_like.kernels.collision.pairs.records import PAIR_COUNTS
from newton_like.kernels.layout import KEPT, KINEMATICS, LIBRARY, LIBRARY_ROWS, ROWS, STEP, STEP_ROWS, sizes, stack

from newton_like.solvers.featherstone.specialise import OF_TENDONS, SHARED, STAGES
from tests.support.paths import ROOT

KERNELS = ROOT / "kernels"
COUNTS = dict(
    coords=7, dofs=6, bodies=2, entries=21, reach=6, candidates=3, colliders=2, contact_rows=3, couplings=1, limit_rows=18,
    given=0, contact_numbers=12, dof_numbers=7, coupling_numbers=4, ledger_numbers=6, trees=1, pairs=0, shapes=0, first_paired=3,
    surface_pairs=0, surface_numbers=0, loop_rows=2, loop_block=1, loop_soft=1, loop_numbers=12, law_numbers=8, bounded_numbers=3, packed=1,
    polished=1, newton_numbers=0, slotted=1, slot_numbers=18, slot_work_numbers=13, more_numbers=11, gathered_numbers=11,
    tendons=2, tendon_numbers=9, tendon_records=50, bonds=7, actuators=2,
    **PAIR_COUNTS,
)  # fmt: skip


@cache
def functions() -> dict[str, list[ast.FunctionDef]]:
    """Device functions of all kernels by name; kernels, which no function calls, only if they have names of their own."""
    found: dict[str, list[ast.FunctionDef]] = {}
    for path in sorted(KERNELS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and not any("kernel" in ast.unparse(d) for d in node.decorator_list):
                found.setdefault(node.name, []).append(node)
    return found


def rows_in(node: ast.AST) -> set[str]:
    """Rows that a piece of code names as ``L.row``."""
    named = {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "L"
    }
    return named & set(ROWS)


def calls_in(node: ast.AST) -> set[str]:
    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {c.attr if isinstance(c, ast.Attribute) else c.id for c in calls if isinstance(c, ast.Attribute | ast.Name)}


def rows_of(name: str, seen: set[str] | None = None) -> set[str]:
    """Rows that a device function and all that it calls name."""
    seen = set() if seen is None else seen
    if name in seen:
        return set()
    seen.add(name)
    return set().union(
        *(rows_in(f).union(*(rows_of(c, seen) for c in calls_in(f))) for f in functions().get(name, ())), set()
    )


def read_by(reader: str) -> set[str]:
    """Rows that one of these readers reads."""
    return {row.name for row in (*KINEMATICS, *STEP) if set(reader.split()) & set(row.read_by.split())}


@pytest.mark.slow
def test_the_kernel_of_a_step_reads_what_the_table_says():
    """Functions of the kernel are not traced: traced stages must write the rows that they read."""
    (kernel,) = functions()["step_kernel"]
    named = rows_in(kernel)
    assert {"impulse", "over", "near"} <= named
    assert named <= read_by("kernel")


@pytest.mark.parametrize(
    ("reader", "entries"),
    [
        ("hulls", ["detect"]),
        (
            "pairs laws",
            [
                "find_pairs_and_surfaces",
                "pair_build",
                "contact_build",
                "recall_feature",
                "keep_feature",
                "forget_feature",
            ],
        ),
        ("couplings", ["coupling_build", "coupling_sweep"]),
        ("carriers", ["set_aside", "bring_back", "work_on_carriers"]),
    ],
)
def test_general_functions_of_specialised_steps_read_what_the_table_says(reader, entries):
    named = set().union(*(rows_of(name) for name in entries))
    assert len(named) > 3
    assert named <= read_by(reader) | read_by("kernel")


LOOP_ROWS = {"loop_gram", "loop_row", "loop_step", "loop_want", "loop_compliance", "loop_bounded"}
TENDONS = (*OF_TENDONS, "tendon_report")


@pytest.mark.parametrize(
    ("reader", "entries", "own", "general"),
    [
        # robots beyond the budget, with loop joints
        ("loops couplings pairs", SHARED, LOOP_ROWS | {"turn", "dof_row", "dof_y"}, (*SHARED, *OF_TENDONS)),
        ("tendons massive", TENDONS, {"tendon_row", "tendon_length", "tendon_j"}, OF_TENDONS),
        # `adhere` copies z into `trial`; the other rows are inputs of a step
        ("adhesion", ("adhere", "relieve"), {"trial", "wrench"}, ()),
        # `push` is read where sums of forces have ranges, and "ranges" is a reader, too
        ("actuators", ("actuate", "actuator_forces"), {"force", "target_v", "push"}, ()),
    ],
)
def test_general_functions_read_from_traced_stages_what_the_table_says(reader, entries, own, general):
    """A row that traced stages name, and that this code reads, is in the table; `own`: rows that the code sets before it reads them;
    `general`: stages that are not traced where it runs."""
    traced = set().union(*(rows_of(name) for name in STAGES if name not in general))
    named = traced & set().union(*(rows_of(name) for name in entries))
    needed = named - read_by("kernel") - own
    assert needed and needed <= read_by(reader)
    assert own <= named


def test_steps_of_newton_read_what_the_table_says():
    """They are native code."""
    text = (KERNELS / "solvers" / "polish.py").read_text()
    named = set(re.findall(r"\bL\.(\w+)", text)) & set(ROWS)
    traced = set().union(*(rows_of(name) for name in STAGES))
    needed = named & traced - read_by("kernel")
    assert needed and needed <= read_by("polish pairs carriers")


def test_the_balance_of_energy_reads_what_the_table_says():
    """The kernel is general code of every specialised step. It computes poses of all bodies itself, and reads the same entries of `h` as
    `predict`."""
    own = {
        "origin",
        "quat",
        "rot",
        "pos",
        "com",
        "subspace",
        "twist",
        "turn",
        "drift",
        "h",
        "middle",
        "tau",
        "target_v",
    }
    named = rows_of("balance") | rows_of("slow_down")
    assert {"bias", "root", "target_q"} <= named
    assert named - own <= read_by("kernel")


def test_rows_have_names_of_their_own_and_sizes():
    rows = (*KINEMATICS, *STEP, *LIBRARY)
    assert len(ROWS) == len(rows)
    layout = stack(sizes((*KINEMATICS, *STEP), SimpleNamespace(**COUNTS)))
    starts = np.array([layout[row.name] for row in (*KINEMATICS, *STEP)])
    assert (np.diff(starts) >= 0).all()
    assert layout["size"] > starts[-1]


def test_impulses_follow_each_other():
    """They are scaled, set aside and forgotten as one run of numbers."""
    counts = SimpleNamespace(**COUNTS)
    layout = stack(sizes((*KINEMATICS, *STEP), counts))
    names = ["impulse", "coupling_impulse", "dof_impulse"]
    for a, b in pairwise(names):
        assert layout[b] - layout[a] == ROWS[a].size(counts)
    assert [row.name for row in KEPT[:3]] == names
    assert ROWS["first_impulse"].size(counts) == sum(ROWS[name].kept(counts) for name in names)


@pytest.mark.slow
def test_programs_of_the_library_name_rows_that_it_knows():
    """Rows in kernels outside of solvers and collision are rows of the library, or shared."""
    own = [p for p in KERNELS.rglob("*.py") if not {"solvers", "collision"} & set(p.relative_to(KERNELS).parts)]
    named = set().union(*(rows_in(ast.parse(p.read_text())) for p in own))
    assert named <= set(LIBRARY_ROWS)
    others = [p for p in KERNELS.rglob("*.py") if p not in own]
    assert set().union(*(rows_in(ast.parse(p.read_text())) for p in others)) <= set(STEP_ROWS)
