"""Specialised evaluation: the stages of a step as straight-line native code for one robot.

Each stage of `kernels.solvers.step` is traced once (`newton_like.trace`) and emitted as C++: SIMD registers on a CPU, plain numbers
on a GPU thread. Stages hand values over through the worker's memory; what no other stage reads is not written. Rows of contacts
and of limits are traced once for each body or degree of freedom they can act on, and chosen by a switch.
"""

import types
from bisect import bisect_right

import numpy as np
import warp as wp

from newton_like.kernels.lanes import FUSE, atan2_code, simd_types, sincos_code
from newton_like.kernels.solvers.step import general_stages
from newton_like.kernels.tree import FRICTION, POSITION, VELOCITY
from newton_like.trace import Index, Trace, traced_programs

BUDGET = 60_000
"""Operations of all stages of a robot beyond which it is not specialised."""

FLAGS = "-march=native -ffp-contract=off -fno-slp-vectorize -fno-vectorize"
"""How specialised code is compiled on a CPU: it is vector code already, and fuses what the programs say and nothing else."""

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


class Specialiser:
    """Traces and emits the stages of one workspace.

    Attributes:
        operations: number of operations of all stages.
    """

    def __init__(self, workspace, options: tuple[str, ...] = ("dt", "inverse_dt", "restitution_speed", "push_speed")):
        self.work = workspace
        self.m = workspace.m
        layout = workspace.layout
        self._names = sorted(layout, key=layout.get)
        self._starts = [layout[name] for name in self._names]
        self.T = types.SimpleNamespace(
            **workspace.numbers, **{k: [int(x) for x in v] for k, v in workspace.arrays.items()}
        )
        at = workspace.parameters.at
        self.P = types.SimpleNamespace(
            uniform=None, varying=None, **{f"{name}_at": at[name] for name in at},
            **{f"{name}_vary": 0 for name in ("joints", "bodies", "gains", "colliders", "planes", "gravity")},
        )  # fmt: skip
        self.L = types.SimpleNamespace(**layout)
        self.o = types.SimpleNamespace(**{name: name for name in options}, iterations=None)
        self._traces: dict[str, dict] = {}
        self._trace_all()
        self.operations = sum(len(t) for cases in self._traces.values() for t in cases.values())

    def _parameter(self, i):
        if isinstance(i, Index):
            return None
        return float(self.work.uniform_values[i]) if self.work.same[i] else None

    def _trace(self, name: str, *args) -> Trace:
        trace = Trace()
        stages = general_stages(
            traced_programs(trace, self._parameter, np.float32 if self.m.real is wp.float32 else np.float64)
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
        for name in ("dof_build", "dof_sweep"):
            self._traces[name] = {i: self._trace(name, i // 2, i % 2) for i in rows}

    # ------------------------------------------------------------------------------------------------ liveness

    def _name(self, place) -> str:
        return self._names[bisect_right(self._starts, place.constant if isinstance(place, Index) else place) - 1]

    def _live(self) -> tuple[set, set]:
        """Memory that some stage or the kernel reads: single places, and whole arrays by name."""
        T = self.T
        arrays = {"q", "v", "u", "near", "clear", "over", "impulse", "dof_impulse", "coupling_impulse", "dof_need", "dof_fresh", "body_q",
                  "body_qd"}  # fmt: skip
        if T.first_hull < T.colliders:
            arrays |= {"origin", "quat", "rot", "pos", "twist", "gap", "point"}
        if T.couplings:
            arrays |= {"subspace", "rot", "pos", "h", "root", "z"}
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

    def _literal(self, x: float) -> str:
        text = repr(float(x))
        if text in ("inf", "-inf", "nan"):
            raise ValueError(f"a constant of the robot is {text}")
        return f"real_t({text})"

    def _ref(self, a) -> str:
        return f"t{a}" if isinstance(a, int) else f"V({self._literal(a)})"

    def _place(self, i) -> str:
        return f"M[{i}]" if self.m.width > 1 else f"M[(size_t)({i}) * S]"

    def _emit(self, trace: Trace, places: set, arrays: set) -> str:
        """Statements of one trace."""
        stores = [
            (place, x)
            for place, x in trace.memory.items()
            if (place in places or self._name(place) in arrays)
            and not (x.node is not None and trace.ops[x.node] == ("load", place))
        ]
        need, stack = set(), [x.node for _, x in stores if x.node is not None]
        while stack:
            n = stack.pop()
            if n not in need:
                need.add(n)
                if trace.ops[n][0] not in ("load", "param", "uniform"):
                    stack += [a for a in trace.ops[n][1:] if isinstance(a, int)]
        text: list[str] = []
        turned: set[int] = set()
        for n in sorted(need):
            text.append(f"const V t{n} = {self._value(trace.ops[n], text, turned)};")
        text += [
            f"{self._place(place)} = {self._ref(x.node if x.constant is None else x.constant)};" for place, x in stores
        ]
        return "\n".join(text)

    def _value(self, op, text: list[str], turned: set) -> str:
        name, *args = op
        width = self.m.width
        if name == "load":
            return self._place(args[0])
        if name == "uniform":
            return f"V(o.{args[0]})"
        if name == "param":
            return self._load_parameter(args[0])
        if name in _INFIX:
            return f"{self._ref(args[0])} {_INFIX[name]} {self._ref(args[1])}"
        if name in ("fma", "fnma"):
            a, b, c = map(self._ref, args)
            minus = "-" if name == "fnma" else ""
            return f"__builtin_elementwise_fma({minus}{a}, {b}, {c})" if width > 1 else f"{c} {minus or '+'} {a} * {b}"
        if name == "neg":
            return f"-{self._ref(args[0])}"
        if name == "rcp":
            return f"real_t(1) / {self._ref(args[0])}"
        if name in ("min", "max"):
            a, b = map(self._ref, args)
            return f"{a} {'<' if name == 'min' else '>'} {b} ? {a} : {b}"
        if name == "where_lt":
            a, b, x, y = map(self._ref, args)
            return f"{a} < {b} ? {x} : {y}"
        if name == "sqrt":
            return (
                f"__builtin_elementwise_sqrt({self._ref(args[0])})" if width > 1 else f"wp::sqrt({self._ref(args[0])})"
            )
        if name in ("sin", "cos"):
            x = args[0]
            if width == 1:
                return f"wp::{name}(t{x})"
            if x not in turned:
                turned.add(x)
                text.append(f"V s{x}, c{x}; " + sincos_code(width, self.m.real, f"t{x}", f"s{x}", f"c{x}"))
            return f"{name[0]}{x}"
        arguments = [self._ref(a) for a in args]
        if name == "atan2" and width > 1:
            y, x = arguments
            code = atan2_code(width, self.m.real)
            return f"[&] {{ {FUSE}const simd y = {y}, x = {x}; simd out; {code} return out; }}()"
        if width == 1:
            return f"wp::{name}({', '.join(arguments)})"
        each = ", ".join(f"({a})[i]" for a in arguments)
        return f"[&] {{ V r; for (int i = 0; i < {width}; ++i) r[i] = wp::{name}({each}); return r; }}()"

    def _load_parameter(self, i) -> str:
        if isinstance(i, Index):
            start = self.work.parameters.at["collider"]
            end = self.work.parameters.at["hull"]
            if bool(self.work.same[start:end].all()):
                return f"V(P.uniform.data[{i}])"
        address = f"(char*)P.varying.data + b * (size_t)P.varying.strides[0] + ({i}) * (size_t)P.varying.strides[1]"
        return f"*(V*)({address})"

    def _code(self, name: str, places: set, arrays: set, selector: str | None = None) -> str:
        real = "float" if self.m.real is wp.float32 else "double"
        if self.m.width > 1:
            head = f"{simd_types(self.m.width, self.m.real)} typedef simd V; V* M = (V*)mem.data;"
        else:
            head = f"typedef {real} real_t; typedef {real} V; {real}* M = mem.data + t; const size_t S = mem.shape[1];"
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

        @wp.func_native(dof_sweep_code)
        def dof_sweep(
            b: int, t: int, i: int, full: int, o: m.Options, T: m.Tree, P: m.Params, L: m.Layout, mem: m.memory
        ): ...

        own = ("self", "m", "live", "no_hull", "no_build", "no_sweep")
        return types.SimpleNamespace(**{k: v for k, v in locals().items() if k not in own and not k.endswith("_code")})
