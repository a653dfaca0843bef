"""Runs unit tests of Newton's wheel on newton_like: ``python -m tests.support.newton_shim test_kinematics ...`` prints their outcomes.

With ``test_rigid_contact:SolverMuJoCo``, the tests of Newton's solver of that name run with ``SolverFeatherstone`` at its default settings,
those for CUDA devices on the CPU; with ``test_joint_drive:SolverMuJoCo=SolverXPBD``, they run with ``SolverXPBD``.

The tests import ``newton``. Here that name is a module whose attributes are those of newton_like. Test modules, their helpers and their
assets are read where the wheel has them; no code of Newton's engine is imported. Names of Newton that newton_like does not have are
attributes whose use raises :class:`Missing`, so that a module with one test of another solver is still run.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import json
import os
import sys
import types
import unittest
import warnings

import warp as wp

import newton_like
from newton_like import selection, sensors, solvers, usd, viewer
from newton_like.geometry.transforms import quat_between
from tests.support.newton_primitives import MAXVAL, primitives


class Missing(Exception):
    """A name of Newton that newton_like lacks was used."""


class _MissingType(type):
    """Metaclass of placeholders for missing classes of Newton: tests may name them, but not use them."""

    def __call__(cls, *args, **kwargs):
        raise Missing(cls.__name__)

    def __getattr__(cls, name: str):
        # Warp asks types of arguments for attributes of its own
        if name.startswith(("__", "_wp_")):
            raise AttributeError(name)
        return _MissingType(f"{cls.__name__}.{name}", (), {})


class _Shim(types.ModuleType):
    """A module of Newton, with the names of some objects of newton_like."""

    def __init__(self, name: str, *sources, **names):
        super().__init__(name)
        self.__path__ = []
        self._sources = sources
        vars(self).update(names)

    def __getattr__(self, name: str):
        # Warp asks globals of kernels for attributes of its own
        if name.startswith(("__", "_wp_")):
            raise AttributeError(name)
        for source in self._sources:
            if hasattr(source, name):
                return getattr(source, name)
        return _MissingType(f"{self.__name__}.{name}", (), {})


class _ViewType(type):
    """Metaclass of views: Newton's tests may name missing attributes, but not use them."""

    def __getattr__(cls, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return _MissingType(f"ArticulationView.{name}", (), {})


class _View(selection.ArticulationView, metaclass=_ViewType):
    """Views of newton_like."""


@wp.kernel
def centres_of_mass(
    body_q: wp.array[wp.transform],
    body_com: wp.array[wp.vec3],
    body_world: wp.array[int],
    offsets: wp.array[wp.vec3],
    frame: wp.transform,
    visible: wp.array[int],
    # out:
    centres: wp.array[wp.vec3],
):
    """A replacement of a kernel of Newton's viewer that its tests use, without offsets and hidden worlds."""
    i = wp.tid()
    centres[i] = wp.transform_point(frame * body_q[i], body_com[i])


class _ShapeConfig(newton_like.ShapeConfig):
    """The configuration of shapes, whose attributes may have any name, as in Newton: its tests set some that have no effect there."""

    __slots__ = ("__dict__",)


class _Model(newton_like.Model):
    """Models of newton_like, with an attribute that tests set, although it has no effect in Newton."""

    ground = None


class _Builder(newton_like.ModelBuilder):
    """Builders of newton_like, with such configurations and models, and with velocities whose numbers may be set one by one."""

    ShapeConfig = _ShapeConfig

    def add_link(self, *args, **options) -> int:
        index = super().add_link(*args, **options)
        self.body_qd[index] = list(self.body_qd[index])
        return index

    def finalize(self, *args, **options):
        model = super().finalize(*args, **options)
        model.__class__ = _Model
        return model


class _StandIn(solvers.SolverFeatherstone):
    """SolverFeatherstone with the name of another solver, whose options have no effect.

    Attributes:
        mj_model: the number of tendons of a world, which tests of SolverMuJoCo ask for.
    """

    def __init__(self, model, **options):
        super().__init__(model)
        self.mj_model = types.SimpleNamespace(ntendon=len(model.tendons) // max(model.world_count, 1))


class _MaximalStandIn(solvers.SolverXPBD):
    """SolverXPBD with the name of another solver, whose options have no effect.

    Attributes:
        use_mujoco_cpu: what tests of SolverMuJoCo ask for.
    """

    use_mujoco_cpu = True

    def __init__(self, model, **options):
        super().__init__(model)


_STAND_INS = {"SolverFeatherstone": _StandIn, "SolverXPBD": _MaximalStandIn}


def test_body_state(model, state, test_name: str, test_fn, indices=None, **options) -> None:
    """Raises ValueError unless the function holds for poses and velocities of some bodies."""
    poses, velocities = state.body_q.numpy(), state.body_qd.numpy()
    for i in range(model.body_count) if indices is None else indices:
        if not test_fn(wp.transform(*poses[i].tolist()), wp.spatial_vector(*velocities[i].tolist())):
            raise ValueError(f"{test_name}: body {i} at {poses[i]} with the velocity {velocities[i]}")


class _ViewerNull:
    """A viewer whose methods do nothing."""

    def __init__(self, *args, **options):
        pass

    def __getattr__(self, name: str):
        return lambda *args, **options: None


def quat_between_axes(*axes):
    """The rotation from the first axis to the last one, by way of those between."""
    q = wp.quat_identity()
    for a, b in itertools.pairwise(axes):
        q = wp.quat(*quat_between(a.to_vector(), b.to_vector()).tolist()) * q
    return q


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of Newton that have no equivalent here: modules whose names are all missing. Modules of tests are found as usual."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith("newton.") and not fullname.startswith("newton.tests."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Shim(spec.name)

    def exec_module(self, module):
        pass


def newton_folder() -> str:
    """The folder of the installed Newton."""
    return importlib.util.find_spec("newton").submodule_search_locations[0]


def install(folder: str, stand_in: str = "") -> None:
    """Adds the modules that Newton's tests import to ``sys.modules``. SolverFeatherstone is also Newton's solver `stand_in`, or, with
    ``SolverMuJoCo=SolverXPBD``, the solver of the second name is that of the first one."""
    stand_in, _, own = stand_in.partition("=")
    kind = _STAND_INS[own or "SolverFeatherstone"]

    def asset(name: str) -> str:
        return os.path.join(folder, "examples", "assets", name)

    examples = _Shim("newton.examples", get_asset=asset, test_body_state=test_body_state)
    tests = _Shim("newton.tests")
    tests.__path__ = [os.path.join(folder, "tests")]
    own_solvers = _Shim("newton.solvers", solvers, **({stand_in: kind} if stand_in else {}))
    geometry = _Shim("newton.geometry", newton_like.geometry, **primitives())
    modules = [
        _Shim(
            "newton",
            newton_like,
            geometry=geometry,
            solvers=own_solvers,
            examples=examples,
            tests=tests,
            ModelBuilder=_Builder,
            viewer=_Shim("newton.viewer", viewer, ViewerNull=_ViewerNull),
        ),
        geometry,
        _Shim("newton.sensors", sensors),
        own_solvers,
        _Shim("newton.selection", selection, ArticulationView=_View),
        _Shim("newton.usd", usd),
        _Shim("newton.viewer", viewer, ViewerNull=_ViewerNull),
        _Shim("newton.actuators"),
        examples,
        tests,
        _Shim("newton._src"),
        _Shim("newton._src.core", newton_like, quat_between_axes=quat_between_axes),
        _Shim("newton._src.core.types", newton_like, MAXVAL=MAXVAL),
        _Shim("newton._src.geometry"),
        _Shim("newton._src.geometry.flags", newton_like),
        _Shim("newton._src.solvers"),
        _Shim("newton._src.solvers.kamino"),
        _Shim("newton._src.solvers.kamino._src"),
        _Shim("newton._src.solvers.kamino._src.geometry"),
        _Shim("newton._src.usd"),
        _Shim("newton._src.usd.utils"),
        _Shim("newton._src.utils", is_graph_capture_allocation_enabled=lambda device: False),
        _Shim("newton._src.utils.import_urdf", parse_urdf=newton_like.ModelBuilder.add_urdf),
        _Shim("newton._src.utils.import_utils"),
        _Shim("newton._src.utils.selection", selection, ArticulationView=_View),
        _Shim("newton._src.viewer"),
        _Shim("newton._src.viewer.kernels", compute_com_positions=centres_of_mass),
    ]
    for module in modules:
        sys.modules[module.__name__] = module
        parent, _, name = module.__name__.rpartition(".")
        if parent:
            vars(sys.modules[parent])[name] = module
    if not any(isinstance(finder, _Absent) for finder in sys.meta_path):
        sys.meta_path.append(_Absent())


class _Outcomes(unittest.TestResult):
    """The first line of the error of each test, or an empty text."""

    def __init__(self):
        super().__init__()
        self.outcomes: dict[str, str] = {}

    def startTest(self, test):
        super().startTest(test)
        self.outcomes[_name(test)] = ""

    def _failed(self, test, error) -> None:
        kind, value, _ = error
        self.outcomes[_name(test)] = f"{kind.__name__}: {value}"[:600]

    def addError(self, test, err):
        super().addError(test, err)
        self._failed(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcomes[_name(test)] = "skipped"


def _name(test) -> str:
    return ".".join(test.id().split(".")[-2:])


def run(folder: str, module: str) -> dict[str, str]:
    """Outcomes of the tests of one module of Newton: an empty text for each that passed, else the error or ``skipped``."""
    path = os.path.join(folder, "tests", f"{module}.py")
    spec = importlib.util.spec_from_file_location(f"newton.tests.{module}", path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    if module == "test_collision_primitives":
        # functions of newton_like for contacts have no gradients
        wp.set_module_options({"enable_backward": False}, module=loaded)
    result = _Outcomes()
    unittest.defaultTestLoader.loadTestsFromModule(loaded).run(result)
    return result.outcomes


def main(modules: list[str]) -> None:
    folder = newton_folder()
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr
    outcomes = {}
    try:
        for each in modules:
            module, _, stand_in = each.partition(":")
            install(folder, stand_in)
            if stand_in:
                importlib.import_module("newton.tests.unittest_utils").get_cuda_test_devices = lambda mode=None: [
                    wp.get_device("cpu")
                ]
            outcomes[each] = run(folder, module)
    finally:
        sys.stdout = out
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])
