"""The rules of the house (docs and design: architecture): floors, no circles, file sizes, docstrings, no atomics."""

import ast
import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest
import warp as wp
from newton_like.kernels.articulation.multirotor import step as multirotor
from newton_like.kernels.pieces import piece_moves
from newton_like.kernels.programs import LAYERS
from newton_like.kernels.registration import collection_paused
from newton_like.kernels.solvers.xpbd import step as maximal

import newton_like
from tests.support.paths import ROOT
from tests.support.sources import forget_sources, nodes_of, tree_of

MAX_LINES = 600

FLOORS = {
    0: "callers checkout threads types coercion options arrays geometry compiler"
    " kernels.registration kernels.simd kernels.lanes kernels.layout kernels.spatial kernels.tree kernels.interpreter",
    1: "model kernels.edits kernels.joints kernels.kinematics kernels.rows kernels.spans",
    2: "programs launch kinematics kernels.batched kernels.branches kernels.parameters kernels.pieces",
    3: "importers exporters urdf usd.export",
    4: "dynamics mechanism collision kernels.dynamics kernels.collision",
    5: "solvers specialise kernels.solvers",
    6: "articulation kernels.articulation robot kernels.robot interop usd selection kernels.selection sensors kernels.sensors",
    7: "viewer cli __main__",
}

# The sanctioned looks upward: methods of the model and its builder that import when they are called.
UPWARD = {"newton_like.model": ("newton_like.importers", "newton_like.collision")}

# kernels/ and assets/ stand at the top of the repository and are mapped into the package.
FOLDERS = {"newton_like": "newton_like", "kernels": "newton_like.kernels", "assets": "newton_like.assets"}


def module_files() -> dict[str, Path]:
    """Every module of the package by its import name; kernels/ and assets/ are mapped into it."""
    modules = {}
    for top, name in (
        ("newton_like", "newton_like"),
        ("kernels", "newton_like.kernels"),
        ("assets", "newton_like.assets"),
    ):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT / top).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            modules[".".join([name, *parts])] = path
    return modules


MODULES = module_files()


def python_files() -> list[Path]:
    """All Python of the repository."""
    return [p for folder in (*FOLDERS, "examples", "tests") for p in sorted((ROOT / folder).rglob("*.py"))]


@pytest.fixture(scope="module", autouse=True)
def sources():
    # syntax trees are millions of objects, which the collector would look at again and again
    with collection_paused():
        yield
        forget_sources()


def _names_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


@cache
def imports_of(module: str) -> list[tuple[str, bool, int]]:
    """Imports of a module from the package: (module, whether in a function, line)."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = []

    def visit(node, in_function):
        for child in ast.iter_child_nodes(node):
            # expressions hold no imports
            if isinstance(child, ast.expr) or (isinstance(child, ast.If) and _names_type_checking(child.test)):
                continue
            names = []
            if isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    up = package.split(".")[: len(package.split(".")) - child.level + 1]
                    base = ".".join([*up, *([child.module] if child.module else [])])
                names = [n if (n := f"{base}.{alias.name}") in MODULES else base for alias in child.names]
            found.extend(
                (n, in_function, child.lineno) for n in names if n.split(".")[0] in ("newton_like", "kernels", "assets")
            )
            visit(child, in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(tree_of(path), False)
    return found


def floor_of(module: str) -> int | None:
    """The floor of a module; None for packages that only collect names."""
    name = module.removeprefix("newton_like").lstrip(".")
    for floor, names in FLOORS.items():
        if any(name == n or name.startswith(f"{n}.") for n in names.split()):
            return floor
    return None


def is_sanctioned(module: str, target: str, lazy: bool) -> bool:
    return lazy and any(
        (module == low or module.startswith(f"{low}.")) and target.startswith(high) for low, high in UPWARD.items()
    )


def assigned(statement: ast.Assign):
    """Names that an assignment sets, each with its value."""
    for target in statement.targets:
        if isinstance(target, ast.Name):
            yield target.id, statement.value
        elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            yield from zip((ast.unparse(x) for x in target.elts), statement.value.elts, strict=True)


def makers_of(module: str) -> list[ast.FunctionDef]:
    """Functions of a file that take the namespace of programs."""
    functions = [f for f in tree_of(MODULES[module]).body if isinstance(f, ast.FunctionDef)]
    return [f for f in functions if any(a.arg == "m" for a in f.args.args)]


def programs_of(module: str) -> set[str]:
    """Names that a file of kernels adds to the namespace of programs by definitions."""
    return {n.name for f in makers_of(module) for n in f.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def values_of(module: str) -> set[str]:
    """Names that it adds by assignments, without those that it takes from the namespace (``real = m.real``)."""
    pairs = [pair for f in makers_of(module) for n in f.body if isinstance(n, ast.Assign) for pair in assigned(n)]
    return {name for name, value in pairs if ast.unparse(value) != f"m.{name}"}


# Namespaces of programs, by the folder whose programs they have: the files that extend each, in order. In the general one, functions that
# copy pieces come last, and are for kernels only.
NAMESPACES = {
    folder: list(dict.fromkeys(layer.__module__ for layer in layers))
    for folder, layers in {
        "newton_like.kernels.solvers.xpbd.": maximal.PROGRAMS,
        "newton_like.kernels.articulation.multirotor.": multirotor.PROGRAMS,
        "": (*LAYERS, piece_moves),
    }.items()
}


def namespace_of(module: str) -> str:
    """The folder of the namespace that a file of kernels reads."""
    return next(folder for folder in NAMESPACES if module.startswith(folder))


@cache
def file_of_program(folder: str) -> dict[str, str]:
    """The module that adds each name to the namespace of a folder; the first one that assigns a value."""
    files = NAMESPACES[folder]
    found = {name: module for module in reversed(files) for name in values_of(module)}
    found |= {name: module for module in files for name in programs_of(module)}
    # these two are those of the lanes, to which kernels.tree adds the annotations of arguments
    return {name: module for name, module in found.items() if name not in ("func", "shared")}


def calls_of(module: str) -> list[tuple[str, str, int]]:
    """Uses of the namespace of programs in a file of kernels: (name, module that adds it, line)."""
    if not module.startswith("newton_like.kernels."):
        return []
    files = file_of_program(namespace_of(module))
    return [
        (node.attr, files[node.attr], node.lineno)
        for node in nodes_of(MODULES[module])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "m"
        if node.attr in files
    ]


def test_every_module_has_a_floor():
    # the second one gathers the programs of all floors: whoever runs one takes it from there
    gather_only = {"newton_like", "newton_like.kernels.programs", "newton_like.kernels", "newton_like.assets"}
    assert [m for m in MODULES if floor_of(m) is None and m not in gather_only] == []


def test_modules_import_only_from_their_own_floor_and_below():
    wrong = [
        f"{module}:{line} (floor {floor_of(module)}) imports {target} (floor {floor_of(target)})"
        for module in MODULES
        for target, lazy, line in imports_of(module)
        if floor_of(module) is not None
        and floor_of(target) is not None
        and floor_of(target) > floor_of(module)
        and not is_sanctioned(module, target, lazy)
    ]
    assert wrong == []


def test_only_two_files_take_the_programs_of_all_floors():
    """`kernels.programs` has no floor, because it gathers the programs of all: one file makes namespaces of them, one traces them."""
    takers = {m for m in MODULES for target, _, _ in imports_of(m) if target == "newton_like.kernels.programs"}
    assert takers == {"newton_like.programs.robot", "newton_like.programs.tracing"}


def test_only_the_top_package_gathers_names_of_all_floors():
    wrong = [
        f"{module}:{line} imports {target}"
        for module in MODULES
        for target, _, line in imports_of(module)
        if target == "newton_like" and module != "newton_like"
    ]
    assert wrong == []


def test_no_modules_import_each_other():
    """Nor call each other's programs."""
    graph = {
        module: {t for t, lazy, _ in imports_of(module) if t in MODULES and not is_sanctioned(module, t, lazy)}.union(
            target for _, target, _ in calls_of(module)
        )
        - {module}
        for module in MODULES
    }
    circles, done = [], set()

    def walk(module, path):
        if module in path:
            circles.append(" -> ".join([*path[path.index(module) :], module]))
        elif module not in done:
            for target in sorted(graph[module]):
                walk(target, [*path, module])
            done.add(module)

    for module in sorted(graph):
        walk(module, [])
    assert circles == []


def test_kernels_see_no_python_object_of_ours():
    wrong = [
        f"{module}:{line} imports {target}"
        for module in MODULES
        if module.startswith("newton_like.kernels")
        for target, _, line in imports_of(module)
        if not target.startswith("newton_like.kernels")
    ]
    assert wrong == []


def test_no_variable_of_a_kernel_has_the_name_of_a_constant_of_warp():
    """Warp takes ``e.x`` of a function that was not compiled yet for its constant ``e``: the key of the kernel then depends on the order
    in which kernels were compiled, and the cache misses."""
    constants = {name for name in dir(wp) if isinstance(getattr(wp, name), int | float)}
    assert {"e", "pi", "tau"} <= constants
    wrong = [
        f"{module}:{node.lineno} {ast.unparse(node)}"
        for module in MODULES
        if module.startswith("newton_like.kernels")
        for node in nodes_of(MODULES[module])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in constants
    ]
    assert wrong == []


def nested_uses(node: ast.AST, path: tuple = ()):
    """Names that a function reads, in order: the name, whether ``real`` casts it, and the choices and loops around the place."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name):
        return  # a constant of its own
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
        cast = ast.unparse(node.func).rpartition(".")[2] in ("real", "float64", "int64", "uint64")
        yield node.args[0].id, cast, path
    elif isinstance(node, ast.Name):
        yield node.id, False, path
    elif isinstance(node, ast.BoolOp):
        for k, value in enumerate(node.values):
            yield from nested_uses(value, (*path, (node, k)) if k else path)
    elif isinstance(node, ast.If | ast.IfExp | ast.For | ast.While):
        yield from nested_uses(node.iter if isinstance(node, ast.For) else node.test, path)
        for part in ("body", "orelse"):
            held = getattr(node, part)
            for each in held if isinstance(held, list) else [held]:
                yield from nested_uses(each, (*path, (node, part)))
    else:
        for child in ast.iter_child_nodes(node):
            yield from nested_uses(child, path)


def uninitialised_constants(function: ast.FunctionDef) -> list[str]:
    """Constants from outside of a kernel's function of which Warp makes variables that are read before they are set."""
    own = {a.arg for a in function.args.args}
    own |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    uses: dict[str, list] = {}
    for statement in function.body:
        for name, cast, path in nested_uses(statement):
            uses.setdefault(name, []).append((cast, path))
    return [
        name
        for name, ways in uses.items()
        if name not in own
        and any(cast for cast, _ in ways)
        and not (ways[0][0] and all(path[: len(ways[0][1])] == ways[0][1] for _, path in ways))
        and len(ways) > 1
    ]


def test_casts_of_constants_set_them_before_they_are_read():
    """Warp turns a constant K into a variable of double precision at the first ``real(K)`` of a function: other uses of K before it, or on
    ways around it, read a variable that nothing has set. Literals, and ``real(K)`` ahead of all other uses, are safe."""
    bad = "def f(a):\n    n = int(K)\n    if a:\n        x = real(L)\n    y = real(L)\n    return real(K)"
    good = "def f(a):\n    n = int(K)\n    x = real(n)\n    y = real(L)\n    if a:\n        y = real(L)\n    return -L"
    assert uninitialised_constants(ast.parse(bad).body[0]) == ["K", "L"]
    assert uninitialised_constants(ast.parse(good).body[0]) == []
    wrong = [
        f"{module}:{node.lineno} {node.name} {names}"
        for module in MODULES
        if module.startswith("newton_like.kernels")
        for node in nodes_of(MODULES[module])
        if isinstance(node, ast.FunctionDef)
        if any(
            ast.unparse(d) in ("m.func", "m.shared", "wp.func", "inlined") or "kernel" in ast.unparse(d)
            for d in node.decorator_list
        )
        if (names := uninitialised_constants(node))
    ]
    assert wrong == []


def test_programs_call_what_is_made_on_their_own_floor_and_below():
    """A call through the namespace of programs (``m.x``) counts as an import of the file that defines ``x``."""
    floors = [floor_of(layer.__module__) for layer in LAYERS]
    assert floors == sorted(floors)
    for files in NAMESPACES.values():
        made = [(name, module) for module in files for name in programs_of(module)]
        assert [(name, module) for name, module in made if dict(made)[name] != module] == []
    wrong = []
    for module in MODULES:
        files = NAMESPACES[namespace_of(module)]
        known = files[: files.index(module) + 1] if module in files else files
        for name, target, line in calls_of(module):
            if target not in known or (floor_of(target) or 0) > (floor_of(module) or 0):
                wrong.append(f"{MODULES[module].relative_to(ROOT)}:{line} calls m.{name} of {target}")
    assert wrong == []


def test_layers_of_programs_call_their_namespace_m_and_nothing_else():
    """Required by the test above, to find all calls: ``m`` is used by attribute, or as an argument of a function."""
    assert [layer.__name__ for layer in LAYERS if list(inspect.signature(layer).parameters) != ["m"]] == []
    wrong = []
    for module in {layer.__module__ for layer in LAYERS}:
        seen = set()
        for node in nodes_of(MODULES[module]):
            if isinstance(node, ast.Attribute):
                seen.add(node.value)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id not in ("getattr", "vars")
            ):
                seen.update(node.args)
        wrong += [
            f"{MODULES[module].relative_to(ROOT)}:{node.lineno}"
            for node in nodes_of(MODULES[module])
            if isinstance(node, ast.Name) and node.id == "m" and isinstance(node.ctx, ast.Load) and node not in seen
        ]
    assert wrong == []


def test_files_of_kernels_give_the_namespace_no_other_name():
    takers = {MODULES[module] for module in MODULES if module.startswith("newton_like.kernels") and makers_of(module)}
    wrong = [
        f"{MODULES[module].relative_to(ROOT)}:{node.lineno}"
        for module in MODULES
        if module.startswith("newton_like.kernels")
        for node in nodes_of(MODULES[module])
        if isinstance(node, ast.Assign | ast.NamedExpr | ast.AnnAssign)
        if isinstance(node.value, ast.Name) and node.value.id == "m" and MODULES[module] in takers
    ]
    assert wrong == []


def test_imports_are_statements():
    """The tests above see no others. The top package may import all."""
    wrong = [
        f"{path.relative_to(ROOT)}:{i}"
        for name, path in MODULES.items()
        for i, line in enumerate(path.read_text().splitlines(), 1)
        if name != "newton_like" and ("import_module(" in line or "__import__(" in line)
    ]
    assert wrong == []


@pytest.mark.slow
def test_mapped_folders_are_imported_under_their_package_name():
    """`import kernels` works from the repository root by accident, and nowhere else."""
    wrong = []
    for path in python_files():
        for node in nodes_of(path):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            if any(n.split(".")[0] in ("kernels", "assets") for n in names):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert wrong == []


def test_files_stay_small():
    sizes = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in python_files()}
    assert sizes
    assert {p: n for p, n in sizes.items() if n > MAX_LINES} == {}


def private_names_of_others(path: Path) -> list[str]:
    """Uses of private names in a file that does not define them: as a function, or by an assignment to a name or an attribute."""
    nodes = nodes_of(path)
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    # methods of named tuples, whose names are private so that they are not those of fields
    own |= {"_replace", "_asdict", "_fields"}
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if ast.unparse(node.value) not in ("self", "cls") and node.attr not in own
    ]


def test_files_of_the_robot_package_share_no_private_names():
    files = [MODULES[m] for m in MODULES if m.startswith("newton_like.robot")]
    assert len(files) > 20
    assert [use for path in files for use in private_names_of_others(path)] == []


def test_kernels_use_no_atomics():
    """Sums by atomics depend on the order of threads; results must not."""
    used = [
        f"{MODULES[m].relative_to(ROOT)}:{i}"
        for m in MODULES
        for i, line in enumerate(MODULES[m].read_text().splitlines(), 1)
        # a barrier of the threads of a world counts those that have arrived
        if re.search(r"(?<!__)\batomic_\w+", line)
    ]
    assert used == []


def names_joint_type(test: ast.AST) -> bool:
    kinds = {"PRISMATIC", "REVOLUTE", "BALL", "FIXED", "FREE", "DISTANCE", "D6"}
    names = {getattr(n, "attr", None) or getattr(n, "id", "") for n in ast.walk(test)}
    if isinstance(test, ast.Compare) and any("joint_type" in name for name in names):
        # a bare number
        parts = [test.left, *test.comparators]
        if any(isinstance(x, ast.Constant) and type(x.value) is int for x in parts):
            return True
    return any(name in kinds or name.removeprefix("JOINT_").removeprefix("TYPE_") in kinds for name in names)


def decisions(tree: ast.AST):
    """Expressions of choices: conditions, comparisons, memberships (also of arrays) and keys of tables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs
        elif isinstance(node, ast.match_case):
            yield node.pattern
        elif isinstance(node, ast.Dict):
            yield from (key for key in node.keys if key is not None)
        elif isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and ast.unparse(node.func) == "np.isin"):
            yield node


def test_joint_types_are_told_apart_in_one_place():
    """Only kernels/joints (device) and model/joint_types (host) depend on joint types. Other files use the properties of a row."""
    tables = ("newton_like.types", "newton_like.model.joint_types", "newton_like.kernels.joints")
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for module, path in MODULES.items()
        if not module.startswith(tables)
        for node in decisions(tree_of(path))
        if names_joint_type(node)
    ]
    assert wrong == []


def public_objects():
    """(path, object) of all that the package and its sub-packages export."""
    packages = [newton_like]
    for info in pkgutil.iter_modules(newton_like.__path__, "newton_like."):
        if not info.name.rpartition(".")[2].startswith("_"):
            packages.append(importlib.import_module(info.name))
    for package in packages:
        for name in getattr(package, "__all__", ()):
            value = getattr(package, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                yield f"{package.__name__}.{name}", value


def test_public_names_are_exported_once():
    assert hasattr(newton_like, "__all__")
    assert len(set(newton_like.__all__)) == len(newton_like.__all__)
    assert [n for n in newton_like.__all__ if not hasattr(newton_like, n)] == []


def test_public_names_have_docstrings():
    silent = []
    for path, value in public_objects():
        if not (vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__):
            silent.append(path)
        for name, member in vars(value).items() if inspect.isclass(value) else ():
            function = getattr(member, "__func__", getattr(member, "fget", member))
            # An overriding method may inherit its docstring.
            if not name.startswith("_") and inspect.isfunction(function) and not inspect.getdoc(getattr(value, name)):
                silent.append(f"{path}.{name}")
    assert sorted(set(silent)) == []


def test_modules_say_what_they_are():
    assert [m for m in MODULES if not ast.get_docstring(tree_of(MODULES[m]))] == []


def test_the_reference_shares_no_code_with_the_engine():
    tree = ast.parse((ROOT / "tests" / "support" / "reference.py").read_text())
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or ".").split(".")[0])
    assert imported == {"__future__", "dataclasses", "numpy", "scipy"}


def test_seeds_seen_lists_all_files_of_tests():
    """A test file that is renamed would keep the default seed in CI, without a word."""
    words = (ROOT / "tests" / "seeds_seen.txt").read_text().split()
    listed = [word.removeprefix("tests/") for word in words if re.fullmatch(r"[\w/]+\.py", word)]
    files = [path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(listed) == sorted(files)
