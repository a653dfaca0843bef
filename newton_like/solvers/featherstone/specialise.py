"""Specialised evaluation: the stages of a step as straight-line native code for one robot.

Each stage of `kernels.solvers.step` is traced once (`compiler.trace`) and emitted as C++: SIMD registers on a CPU, plain numbers
on a GPU thread. Stages hand values over through the worker's memory; what no other stage reads is not written. Rows of contacts
and of limits are traced once for each body or degree of freedom they can act on, and chosen by a switch.
"""

import types

import numpy as np
import warp as wp

from newton_like.compiler.trace import Index, Trace
from newton_like.kernels.layout import KINEMATICS, STEP
from newton_like.kernels.solvers.step import general_stages
from newton_like.kernels.tree import FRICTION, POSITION, VELOCITY
from newton_like.programs.tracing import known_parameters, known_tree, traced_programs

BUDGET = 60_000
"""Operations of all stages of a robot beyond which it is not specialised."""


class Specialiser:
    """Traces and emits the stages of one workspace.

    Attributes:
        operations: number of operations of all stages.
        level: of optimisation of plain numbers. CUDA's compiler needs a quarter of the time at 2 that it needs at its own 3.
    """

    level = 2

    def __init__(self, workspace, options: tuple[str, ...] = ("dt", "inverse_dt", "restitution_speed", "push_speed")):
        self.work = workspace
        self.m = workspace.m
        self.emitter = workspace.emitter(cut=BUDGET)
        self._name = self.emitter.name
        self.T, self.P = known_tree(workspace), known_parameters(workspace)
        self.L = types.SimpleNamespace(**workspace.layout)
        self.o = types.SimpleNamespace(**{name: name for name in options}, iterations=None)
        self._traces: dict[str, dict] = {}
        self._trace_all()
        self.operations = sum(len(t) for cases in self._traces.values() for t in cases.values())

    def _trace(self, name: str, *args) -> Trace:
        trace = Trace()
        stages = general_stages(
            traced_programs(trace, self.emitter.parameter, np.float32 if self.m.real is wp.float32 else np.float64)
        )
        getattr(stages, name)("b", "t", *args, self.o, self.T, self.P, self.L, None)
        return trace

    def _trace_all(self) -> None:
        T = self.T
        for name in ("smooth", "wrenches", "predict", "saturate", "recheck", "finish"):
            self._traces[name] = {0: self._trace(name)}
        a, c, s = (Index(0, ((name, 1),)) for name in "acs")
        pairs = sorted({(T.collider_body[i], T.collider_plane[i]) for i in range(T.colliders)})
        planes = 1 + max((p for _, p in pairs), default=0)
        self.planes = planes
        self._traces["contact_build"] = {k * planes + p: self._trace("contact_build", a, c, s, k, p) for k, p in pairs}
        self._traces["contact_sweep"] = {
            k: self._trace("contact_sweep", a, c, k) for k in sorted({k for k, _ in pairs})
        }
        self._traces["detect"] = {i: self._trace("detect", i) for i in range(T.first_guarded, T.first_hull)}
        rows = [2 * i for i in range(T.dofs) if T.dof_limits[i] & FRICTION]
        rows += [2 * i + 1 for i in range(T.dofs) if T.dof_limits[i] & (VELOCITY | POSITION)]
        if any(T.dof_limits[i] & FRICTION for i in range(T.dofs)):
            self._traces["friction_sweep"] = {0: self._trace("friction_sweep")}
        for name in ("dof_build", "dof_sweep"):
            self._traces[name] = {i: self._trace(name, i // 2, i % 2) for i in rows}

    # ------------------------------------------------------------------------------------------------ liveness

    def _live(self) -> tuple[set, set]:
        """Memory that some stage or the kernel reads: single places, and whole arrays by name."""
        T = self.T
        readers = {"kernel"}
        readers |= {"hulls"} if T.first_hull < T.colliders else set()
        readers |= {"couplings"} if T.couplings else set()
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

    def _code(self, name: str, places: set, arrays: set, selector: str | None = None) -> str:
        head = self.emitter.head()
        cases = self._traces[name]
        if selector is None:
            return head + self._emit(cases[0], places, arrays)
        body = "\n".join(f"case {k}: {{ {self._emit(t, places, arrays)} break; }}" for k, t in cases.items())
        return f"{head} switch ({selector}) {{ {body} }}" if cases else head

    def stages(self) -> types.SimpleNamespace:
        """The stages as Warp functions, in place of `general_stages`."""
        m = self.m
        live = self._live()
        smooth_code, wrenches_code, predict_code, saturate_code, recheck_code, finish_code = (
            self._code(name, *live) for name in ("smooth", "wrenches", "predict", "saturate", "recheck", "finish")
        )
        build_code = self._code("contact_build", *live, f"k * {self.planes} + pl")
        sweep_code = self._code("contact_sweep", *live, "k")
        detect_code = self._code("detect", *live, "s")
        dof_build_code = self._code("dof_build", *live, "2 * i + full")
        dof_sweep_code = self._code("dof_sweep", *live, "2 * i + full")
        friction_sweep_code = self._code("friction_sweep", *live) if "friction_sweep" in self._traces else ""

        @wp.func_native(smooth_code)
        def smooth(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

        @wp.func_native(wrenches_code)
        def wrenches(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

        @wp.func_native(predict_code)
        def predict(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

        @wp.func_native(saturate_code)
        def saturate(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

        @wp.func_native(recheck_code)
        def recheck(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

        @wp.func_native(finish_code)
        def finish(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

        @wp.func_native(build_code)
        def contact_build(
            b: int,
            t: int,
            a: int,
            c: int,
            s: int,
            k: int,
            pl: int,
            o: m.Options,
            T: m.Tree,
            P: m.Params,
            L: m.Layout,
            mem: m.memory,
        ): ...

        @wp.func_native(sweep_code)
        def contact_sweep(
            b: int, t: int, a: int, c: int, k: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory
        ): ...

        @wp.func_native(detect_code)
        def detect(b: int, t: int, s: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

        @wp.func_native("")
        def no_hull(b: int, t: int, s: int, dt: m.lane, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

        @wp.func_native("")
        def no_build(b: int, t: int, e: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

        @wp.func_native("")
        def no_sweep(t: int, e: int, T: m.Tree, L: m.Layout, mem: m.memory): ...

        # code that no world of this robot needs is not compiled
        detect_hull = m.detect if self.T.first_hull < self.T.colliders else no_hull
        coupling_build = m.coupling_build if self.T.couplings else no_build
        coupling_sweep = m.coupling_sweep if self.T.couplings else no_sweep

        @wp.func_native(dof_build_code)
        def dof_build(
            b: int, t: int, i: int, full: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory
        ): ...

        @wp.func_native(friction_sweep_code)
        def friction_sweep(b: int, t: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory): ...

        @wp.func_native(dof_sweep_code)
        def dof_sweep(
            b: int, t: int, i: int, full: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory
        ): ...

        own = ("self", "m", "live", "no_hull", "no_build", "no_sweep")
        return types.SimpleNamespace(**{k: v for k, v in locals().items() if k not in own and not k.endswith("_code")})
