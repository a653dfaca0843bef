"""Specialised evaluation: the stages of a step as straight-line native code for one robot.

Each stage of `kernels.solvers.step` is traced once (`compiler.trace`) and emitted as C++: SIMD registers on a CPU, plain numbers
on a GPU thread. Stages hand values over through the worker's memory; what no other stage reads is not written. Rows of contacts
and of limits are traced once for each body or degree of freedom they can act on, and chosen by a switch.
"""

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import warp as wp

from newton_like.compiler.trace import Index, Trace
from newton_like.kernels.dynamics.tendons import ITEM, ITEM_NUMBERS, TENDON
from newton_like.kernels.layout import KINEMATICS, STEP
from newton_like.kernels.solvers.actuators import ACTUATOR_TABLE
from newton_like.kernels.solvers.stages import general_stages
from newton_like.kernels.solvers.tendons import PARTS
from newton_like.kernels.tree import FRICTION, MASSIVE, POSITION, PRESCRIBED, VELOCITY
from newton_like.programs.tracing import known_parameters, known_tree, traced_programs

BUDGET = 60_000
"""Operations of all stages of a robot beyond which it is not specialised."""


def _once(T) -> dict:
    return {0: ()}


def _contact_pairs(T) -> list[tuple[int, int]]:
    """Bodies and planes that may touch."""
    return sorted({(T.collider_body[i], T.collider_plane[i]) for i in range(T.colliders)})


def _planes(T) -> int:
    return 1 + max((plane for _, plane in _contact_pairs(T)), default=0)


def _frictional(T) -> list[int]:
    return [i for i in range(T.dofs) if T.dof_limits[i] & FRICTION]


def _closed(T) -> dict:
    return _once(T) if T.loop_rows else {}


def _untied(T) -> dict:
    """Rows of tendons are general code."""
    return _once(T) if T.loop_rows and not T.loop_tied else {}


def _pulled(T) -> dict:
    return _once(T) if T.tendons else {}


def _each_tendon(T) -> dict:
    return {n: (n,) for n in range(T.tendons)}


def _visits_of_tendons(T) -> dict:
    """Visits of tendons by ``PARTS * n + parts``."""
    return {PARTS * n + parts: (n, parts) for n in range(T.tendons) for parts in range(PARTS)}


def _dof_rows(T) -> dict:
    """Rows of dofs by ``2 * i + full``: of friction alone, and of limits too."""
    rows = [(i, 0) for i in _frictional(T)]
    rows += [(i, 1) for i in range(T.dofs) if T.dof_limits[i] & (VELOCITY | POSITION)]
    return {2 * i + full: (i, full) for i, full in rows}


_ACTIVE, _CANDIDATE, _COLLIDER = (Index(0, ((name, 1),)) for name in "acs")


@dataclass(frozen=True)
class Stage:
    """How a stage is traced.

    Attributes:
        integers: names of its integer arguments.
        selector: C++ expression of these whose value says which trace is run; ``{planes}`` is the number of planes. Empty: there is one.
        cases: function of the tree that gives, by values of the selector, the integers with which the stage is traced.
    """

    integers: tuple[str, ...] = ()
    selector: str = ""
    cases: Callable = _once


STAGES = {
    "smooth": Stage(),
    "wrenches": Stage(),
    "predict": Stage(),
    "saturate": Stage(),
    "recheck": Stage(),
    "finish": Stage(),
    "friction_sweep": Stage(cases=lambda T: _once(T) if _frictional(T) else {}),
    "closure_rows": Stage(cases=_untied),
    "closure_build": Stage(cases=_untied),
    "closure_sweep": Stage(cases=_closed),
    "closure_correct": Stage(cases=_untied),
    "contact_build": Stage(
        ("a", "c", "s", "k", "pl"),
        "k * {planes} + pl",
        lambda T: {k * _planes(T) + p: (_ACTIVE, _CANDIDATE, _COLLIDER, k, p) for k, p in _contact_pairs(T)},
    ),
    "contact_sweep": Stage(("a", "c", "k"), "k", lambda T: {k: (_ACTIVE, _CANDIDATE, k) for k, _ in _contact_pairs(T)}),
    "detect": Stage(("s",), "s", lambda T: {s: (s,) for s in range(T.first_guarded, T.first_hull)}),
    "dof_build": Stage(("i", "full"), "2 * i + full", _dof_rows),
    "dof_sweep": Stage(("i", "full"), "2 * i + full", _dof_rows),
    "tendon_forces": Stage(cases=_pulled),
    "tendon_build": Stage(("n",), "n", _each_tendon),
    "tendon_hold": Stage(("n",), "n", _each_tendon),
    "tendon_sweep": Stage(("n", "parts"), f"{PARTS} * n + parts", _visits_of_tendons),
}
"""The stages that are traced."""


LARGE_CUT = 2000
"""Limit of the operations of one C++ function of robots beyond the budget with all stages: the compiler needs a third of the time."""

SHARED = ("contact_build", "dof_build", "closure_rows", "closure_build", "closure_correct")
"""Stages that are general code for robots beyond the budget with them. They run once a step for each active row."""

OF_TENDONS = ("tendon_forces", "tendon_build", "tendon_hold", "tendon_sweep")
"""The same, of tendons: they are the first to become general code."""


OPTIONS = ("dt", "inverse_dt", "restitution_speed", "push_speed", "spin_share")
"""The settings of a step that code reads by name."""


class Specialiser:
    """Traces and emits the stages of one workspace.

    Args:
        workspace: the :class:`newton_like.programs.workspace.Workspace` of a step.
        accelerations: whether the step writes accelerations.
        items: numbers of the items of tendons that are constants of the code; None: the code reads them.

    Attributes:
        operations: number of operations of all stages.
        tendon_loads: how many numbers of tendons the code reads in memory, from the first one on.
        level: of optimisation of plain numbers. CUDA's compiler needs a quarter of the time at 2 that it needs at its own 3.
    """

    level = 2

    def __init__(
        self,
        workspace,
        accelerations: bool = False,
        items: np.ndarray | None = None,
    ):
        self.work, self._accelerations, self._items = workspace, accelerations, items
        self.m = workspace.m
        self.emitter = workspace.emitter(cut=BUDGET)
        self._name = self.emitter.name
        self.T, self.P = known_tree(workspace), known_parameters(workspace)
        self.planes = _planes(self.T)
        self.L = types.SimpleNamespace(**workspace.layout)
        # programs of tendons read their numbers as in the dynamics library
        self.L.tendon = self.L.tendon_record
        self.o = types.SimpleNamespace(**{name: name for name in OPTIONS}, iterations=None)
        self._traces = {
            name: {case: self._trace(name, *integers) for case, integers in stage.cases(self.T).items()}
            for name, stage in STAGES.items()
        }
        self.operations = self._count()
        # the general code serves any body, dof and tendon; that of ties reads rows of tendons
        self.shared_tendons = bool(self.T.loop_tied or (self.T.tendons and self.operations > BUDGET))
        self._leave_out(OF_TENDONS if self.shared_tendons else ())
        self.shared_build = bool(self.T.loop_tied) or self.operations > BUDGET
        self._leave_out(SHARED if self.shared_build else ())
        loaded = TENDON * self.T.tendons + (0 if items is not None else ITEM_NUMBERS * len(self.T.tendon_item) // ITEM)
        self.tendon_loads = 0 if self.shared_tendons else loaded
        if self.shared_build:
            self.emitter.cut = LARGE_CUT

    def _leave_out(self, names: tuple) -> None:
        for name in names:
            self._traces[name] = {}
        self.operations = self._count()

    def _count(self) -> int:
        return sum(len(t) for cases in self._traces.values() for t in cases.values())

    def _trace(self, name: str, *args) -> Trace:
        trace = Trace()
        real = np.float32 if self.m.real is wp.float32 else np.float64
        programs = traced_programs(trace, self.emitter.parameter, real)
        stages = general_stages(programs, closed=self.T.loop_rows > 0, tensed=self.T.tendons > 0)
        first = self.L.tendon + TENDON * self.T.tendons
        for i, x in enumerate(() if self._items is None else self._items):
            trace.memory[first + i] = programs.fill(x)
        getattr(stages, name)("b", "t", *args, self.o, self.T, self.P, self.L, None)
        return trace

    # ------------------------------------------------------------------------------------------------ liveness

    def _live(self) -> tuple[set, set]:
        """Memory that some stage or the kernel reads: single places, and whole arrays by name."""
        T = self.T
        readers = {"kernel"}
        readers |= {"hulls"} if T.first_hull < T.colliders else set()
        readers |= {"carriers"} if (np.array(T.dof_limits) & PRESCRIBED).any() else set()
        readers |= {"couplings"} if T.couplings or (T.loop_rows and self.shared_build) else set()
        readers |= {"loops"} if T.loop_rows and self.shared_build else set()
        readers |= {"tendons"} if self.shared_tendons else set()
        readers |= {"accelerations"} if self._accelerations else set()
        readers |= {"massive"} if self.shared_tendons and MASSIVE in list(T.tendon_item)[::ITEM] else set()
        readers |= {"actuators"} if T.actuators else set()
        readers |= {"adhesion"} if T.adhesive else set()
        # integers of ranges follow those of actuators
        summed = len(getattr(T, "actuator_table", ())) > ACTUATOR_TABLE * T.actuators
        readers |= {"ranges"} if summed else set()
        readers |= {"pairs"} if T.pairs or self.shared_build else set()
        readers |= {"polish"} if T.polished else set()
        readers |= {"laws"} if T.laws and (T.pairs or self.shared_build) else set()
        arrays = {row.name for row in (*KINEMATICS, *STEP) if readers & set(row.read_by.split())}
        places = set()
        for cases in self._traces.values():
            for trace in cases.values():
                for place in trace.loads:
                    if isinstance(place, Index):
                        arrays.add(self._name(place))
                    else:
                        places.add(place)
        return places, arrays

    # ------------------------------------------------------------------------------------------------ emission

    def _emit(self, trace: Trace, places: set, arrays: set) -> str:
        """Statements of one trace."""
        stores = self.emitter.stores(trace, lambda place: place in places or self._name(place) in arrays)
        return self.emitter.statements(trace, stores)

    def _code(self, name: str, places: set, arrays: set) -> str:
        cases, selector = self._traces[name], STAGES[name].selector.format(planes=self.planes)
        if not cases:
            return ""
        if not selector:
            return self.emitter.head() + self._emit(cases[0], places, arrays)
        body = "\n".join(f"case {k}: {{ {self._emit(t, places, arrays)} break; }}" for k, t in cases.items())
        return f"{self.emitter.head()} switch ({selector}) {{ {body} }}"

    def stages(self) -> types.SimpleNamespace:
        """The stages as Warp functions, instead of `general_stages`."""
        m, live = self.m, self._live()
        arguments = dict(o=m.Options, T=m.Tree, P=m.Params, L=m.Layout, mem=m.memory)
        stages = {}
        for name, stage in STAGES.items():
            stages[name] = native(
                name, self._code(name, *live), dict.fromkeys(("b", "t", *stage.integers), int) | arguments
            )
        # general code that no world of this robot needs is not compiled
        T, end = self.T, dict(T=m.Tree, P=m.Params, L=m.Layout, mem=m.memory)
        no_hull = native("no_hull", "", dict(b=int, t=int, s=int, dt=m.lane) | end)
        no_build = native("no_build", "", dict(b=int, t=int, e=int, o=m.Options) | end)
        no_sweep = native("no_sweep", "", dict(t=int, e=int, T=m.Tree, L=m.Layout, mem=m.memory))
        for name in (
            "closure_load",
            "tendon_load",
            "tendon_report",
            "actuate",
            "actuator_forces",
            "adhere",
            "relieve",
            "find_pairs",
            "pair_build",
            "recall_feature",
            "keep_feature",
            "forget_feature",
        ):
            stages[name] = getattr(m, name)
        shared = (SHARED if self.shared_build else ()) + (OF_TENDONS if self.shared_tendons else ())
        if shared:
            general = general_stages(m, tensed=T.tendons > 0)
            stages.update((name, getattr(general, name)) for name in shared)
        stages["detect_hull"] = m.detect if T.first_hull < T.colliders else no_hull
        stages["coupling_build"] = m.coupling_build if T.couplings else no_build
        stages["coupling_sweep"] = m.coupling_sweep if T.couplings else no_sweep
        return types.SimpleNamespace(**stages)


def native(name: str, code: str, arguments: dict[str, type]):
    """A Warp function of the given name and arguments with a body in C++."""

    def function(): ...

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__name__, function.__annotations__ = name, arguments
    function.__signature__ = inspect.Signature(
        [inspect.Parameter(argument, kind, annotation=a) for argument, a in arguments.items()]
    )
    return wp.func_native(code)(function)
