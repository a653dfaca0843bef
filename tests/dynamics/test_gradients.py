"""Reverse mode through the dynamics library: every function against central differences, in double precision.

NumPy evaluates the functions, so that no compilation is needed: each program of a public function is recorded, and its adjoint is compared
with differences of its outputs. Kernels outside of programs must be differentiable themselves, and are listed here.
"""

import inspect
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

import newton_like.dynamics as dynamics
from newton_like import JointType, ModelBuilder
from newton_like.model.tendons import Tendon
from newton_like.programs.run import run
from newton_like.types import VelRepr
from tests.conftest import SEED
from tests.support.loops import add_loop
from tests.support.random_trees import random_state, random_transform, random_tree
from tests.support.traced import BACKWARD, FORWARD, differences, run_by_numpy, run_traced_adjoint

pytestmark = pytest.mark.slow

NO_DERIVATIVE = {
    "names and numbers of things, which do not vary": (
        "base_link frame_index frame_indices frame_link frame_names frame_offset is_floating_base joint_coords joint_dofs "
        "joint_index joint_indices joint_names joint_position_limits link_bodies link_index link_indices link_names"
    ),
    "random numbers, of which nothing but a seed is the source": (
        "rand_configuration rand_velocity random_joint_positions random_state"
    ),
    "constants of the model": "zero_configuration",
    "bools": "in_contact",
    "host functions, from NumPy arrays to NumPy arrays": (
        "convert_acceleration convert_force convert_velocity to_angular_first to_linear_first velocity_transform wxyz_to_xyzw "
        "xyzw_to_wxyz"
    ),
    "edits of a builder or a model": "reduce set_inertial_parameters set_link_inertia set_link_mass",
    "a choice of constants, made once on the host": "estimate_soft_contact_parameters",
}
"""Functions without gradients, by the reason."""

OWN_KERNELS = (
    "inertial_parameters", "joint_positions", "joint_velocities", "joint_forces", "set_joint_positions", "set_joint_velocities",
    "set_joint_forces",
)  # fmt: skip
"""Functions without a program, whose kernels Warp differentiates; see test_momentum and test_joint_values."""

KINKS = """
Piecewise smooth functions, whose derivative is that of the piece they are on: joint_limit_forces (at a limit), joint_friction_forces
(at +-friction_speed), contact (at touching, at sliding, and over heightfields at the edges of cells), principal_value and
local_coordinates (at half turns). Random inputs are further from such places than the step of the differences.
"""


VARIANTS = {
    "forward_dynamics": [{"method": "aba"}, {"method": "crb"}],
    "integrate": [{"method": m} for m in ("explicit", "semi_implicit", "heun", "rk4")],
    "soft_contact_forces": [{}, {"contact": "square roots"}],
    "frame_forces": [{}, {"replace": True}],
    "inertial_parameters": [{}, {"linear": True}],
    "potential_energy": [{}, {"link": 2}],
    "relative_twist": [{}, {"axes": "world", "repr": VelRepr.INERTIAL}],
}
"""Options that select other programs, besides representations."""

POSE = (0.1, -0.2, 0.3, 0.0, 0.6, 0.0, 0.8)


def add_tendons(tree: ModelBuilder, rng) -> None:
    """Adds a fixed tendon along all joints that are lengths and angles, and two through four sites and over a pulley.

    One of these two wraps around a shape, the other inside of a shape.
    """
    lone = (JointType.REVOLUTE, JointType.PRISMATIC)
    simple = [j for j in range(tree.joint_count) if tree.joint_type[j] in lone and tree.joint_articulation[j] >= 0]
    if simple:
        tree.add_tendon(Tendon(label="along", joints=tuple((j, 0, rng.normal()) for j in simple), offset=rng.normal()))
    for label, size in ("through", 0.2), ("inside", 0.05):
        sites = [tree.add_site(int(b), xform=random_transform(rng, 1.0)) for b in rng.permutation(tree.body_count)[:4]]
        xform = random_transform(rng, 0.3)
        if rng.random() < 0.5:
            around = tree.add_shape_sphere(2, xform=xform, radius=size)
        else:
            around = tree.add_shape_cylinder(2, xform=xform, radius=size, half_height=1.0)
        beside = tree.add_site(2, xform=xform) if label == "inside" else -1
        path = [("site", sites[0]), ("site", sites[1]), ("geom", around, beside), ("site", sites[2])]
        path += [("pulley", 2.0), ("site", sites[2]), ("site", sites[3])]
        tree.add_tendon(Tendon(label=label, path=tuple(path)))


class Case:
    """A model of random trees in two worlds, a state, and arguments for functions by their names."""

    def __init__(self, rng):
        types: set = set()
        while types < set(JointType):
            trees = [
                random_tree(rng, joints=n, floating=f, stiffness=True, friction=True, limits=True, label=f"tree_{n}")
                for n, f in ((7, True), (6, False))
            ]
            types = {t for tree in trees for t in tree.joint_type}
        for tree in trees:
            tree.add_site(3, xform=random_transform(rng, 0.3), label="tool")
        # five rows of a link that floats, and one across a joint that moves: all of them ask for something else
        add_loop(trees[0], rng, JointType.REVOLUTE, -1, 4)
        for tree in trees:
            moving = [j for j in range(1, 6) if tree.joint_parent[j] >= 0 and sum(tree.joint_dof_dim[j])]
            for j in moving[:1]:
                add_loop(tree, rng, JointType.D6, tree.joint_parent[j], tree.joint_child[j], 2, 3)
            add_tendons(tree, rng)
        scene = ModelBuilder()
        for _ in range(2):
            scene.begin_world()
            for tree in trees:
                scene.add_builder(tree)
            scene.end_world()
        self.rng = rng
        self.scene = scene
        self.model = model = scene.finalize("cpu", dtype=wp.float64, requires_grad=True)
        # limits are far exceeded here, and should not be all that is felt
        model.joint_limit_ke.fill_(10.0)
        q, qd = random_state(model, rng)
        self.checked: set = set()
        # nor near zero, where dry friction changes sign
        qd += 0.01 * np.sign(qd)
        self.state = SimpleNamespace(joint_q=self.array(q), joint_qd=self.array(qd))

    def array(self, numbers) -> wp.array:
        return wp.array(np.asarray(numbers), dtype=wp.float64, device="cpu")

    def numbers(self, *shape: int) -> wp.array:
        return self.array(self.rng.normal(size=shape))

    def contact(self, exponents=(0.4, 0.7), rigid: bool = False):
        """Points of bodies on a slope, above and below it, and not near it, where forces bend sharply."""
        slope = dynamics.PlaneTerrain(0.1 * self.rng.normal(size=3) + [0.0, 0.0, 1.0])
        law = dynamics.SoftContactParameters(100.0, 20.0, 0.5, *exponents)
        while True:
            bodies = range(0, self.model.body_count, 3 if rigid else 1)
            places = {b: self.rng.normal(size=(1 if rigid else 2, 3)) for b in bodies}
            points = dynamics.ContactPoints(self.model, places)
            height = dynamics.contact_point_positions(self.model, self.state, points).numpy() @ slope.normal
            if np.abs(height[points.link >= 0]).min() > 0.02:
                break
        if rigid:
            # every sweep is differentiated alike: a few will do
            parameters = dynamics.RelaxedRigidContactParameters(time_constant=0.5, width=2.0)
            return dynamics.RigidContact(self.model, points, slope, parameters, sweeps=4)
        return dynamics.SoftContact(self.model, points, slope, law)

    def arguments(self, name: str, options: dict) -> dict:
        """All that a function can be given."""
        parameters = inspect.signature(getattr(dynamics, name)).parameters
        model, n = self.model, self.model.articulation_count
        known = {
            "model": model, "state": self.state, "state_in": self.state, "state_out": model.state(), "dt": 0.01,
            "link": 2, "frame": (2, POSE), "frames": ["tool", (1, POSE)], "source": (3, POSE), "target": (1, POSE),
            "links": [1, 3], "points": self.numbers(2, 3),
            "joint_acceleration": self.numbers(model.joint_dof_count), "joint_forces": self.numbers(model.joint_dof_count),
            "link_forces": self.numbers(n, model.max_joints_per_articulation, 6),
            "forces": self.numbers(n, 2, 3 if name.startswith("point") else 6),
            "q0": self.array(random_state(model, self.rng)[0]), "phi": self.numbers(model.joint_dof_count),
            "rate": self.numbers(model.joint_coord_count), "velocity": self.numbers(model.joint_dof_count),
        }  # fmt: skip
        if name.startswith("set_"):
            # without joints: no program reads the written values
            known |= {"state": model.state(), "values": self.numbers(n, 0), "joints": []}
        known["control"] = model.control()
        if "contact" in parameters or name.startswith("contact"):
            rigid = name == "impact" or name.startswith("rigid")
            contact = self.contact((0.5, 0.5) if options.get("contact") else (0.4, 0.7), rigid)
            slips = self.array(0.1 * self.rng.normal(size=contact.shape))
            known |= {"contact": contact, "contact_state": slips}
            if name.startswith("contact"):
                known["points"] = contact.points
            if name == "link_contact_forces":
                # those of soft contact depend on nothing else
                known.pop("joint_forces")
        needed = [p.name for p in parameters.values() if p.default is p.empty and p.kind != p.VAR_KEYWORD]
        assert set(needed) <= set(known), f"say in Case.arguments what {name} is to be given"
        given = {key: value for key, value in known.items() if key in parameters}
        for key in ("repr", "out_repr", "link_forces_repr"):
            if key in parameters:
                given[key] = VelRepr(int(self.rng.integers(1, 5)))
        names = list(parameters)
        if {"repr", "out_repr"} <= given.keys() and names.index("out_repr") < names.index("repr"):
            # two names of one argument
            given.pop("out_repr" if "repr" in options else str(self.rng.choice(["repr", "out_repr"])))
        return {**given, **{key: value for key, value in options.items() if key != "contact"}}


def differentiable() -> list:
    """Public functions with their variants."""
    constant = {name for names in NO_DERIVATIVE.values() for name in names.split()}
    functions = [name for name in dynamics.__all__ if inspect.isfunction(getattr(dynamics, name))]
    assert constant <= set(functions)
    return [(n, options) for n in functions if n not in constant for options in VARIANTS.get(n, [{}])]


@pytest.fixture(scope="module")
def case():
    return Case(np.random.default_rng([SEED, 1]))


@pytest.fixture
def recorded(monkeypatch) -> list:
    """Programs that are run, by NumPy, with their inputs."""
    calls: list = []

    def record(model, program, arrays, mask=None):
        inputs = [None if a is None else a.numpy().copy() for a in arrays[: len(program.inputs)]]
        calls.append((program, inputs, None if mask is None else mask.numpy()))
        run_by_numpy(model, program, arrays, mask)

    for name, module in list(sys.modules.items()):
        if name.startswith("newton_like.") and getattr(module, "run", None) is run:
            monkeypatch.setattr(module, "run", record)
    return calls


def check_adjoint(model, program, inputs, mask, rng) -> None:
    """Directional derivatives with respect to every input, to masses, centres of mass and inertias, and to gravity."""
    inputs = [
        np.zeros(f.length(model)) if a is None else a.ravel() for f, a in zip(program.inputs, inputs, strict=True)
    ]
    seeds = [rng.normal(size=f.length(model)) for f in program.outputs]
    ways = [
        rng.normal(size=size)
        for size in (*(a.size for a in inputs), 10 * model.body_count, 3 * model.articulation_count)
    ]
    gradients = run_traced_adjoint(model, program, inputs, seeds, mask)
    # where a kink is near, shorter steps stay on this side of it; they lose digits, and where loops are close to a singular pose too
    # many of them: then a long step, whose truncation is far below the tolerance too
    near, far = (differences(model, program, inputs, seeds, ways, mask, step) for step in (2e-6, 3e-5))
    names = [*(f.row for f in program.inputs), "masses, centres of mass and inertias", "gravity"]
    for i, (name, gradient, way, *expected) in enumerate(zip(names, gradients, ways, near, far, strict=True)):
        # bools as numbers do not vary
        if name != "point_on":
            scale = max(np.abs(gradient * way).max(initial=0.0) + np.abs(expected[1]), 1.0)
            # truncation error of the step's fourth power, and cancellation of 1e-16 / step times the size of the function
            tolerances = [1e-6, 1e-7]
            if not _within(gradient @ way, expected, scale, tolerances):
                expected.append(differences(model, program, inputs, seeds, ways, mask, 1e-3)[i])
                tolerances.append(1e-7)
            if not _within(gradient @ way, expected, scale, tolerances):
                # a force at the edge of its friction cone, where nothing pushes it in or out, is a kink: the gradient is that of one side
                for side in (FORWARD, BACKWARD):
                    expected.append(differences(model, program, inputs, seeds, ways, mask, 2e-6, side)[i])
                    tolerances.append(1e-6)
            close = _within(gradient @ way, expected, scale, tolerances)
            assert close, f"{program.name} by {name}: {gradient @ way}, and not {expected}"


def _within(actual: float, expected, scale: float, tolerances) -> bool:
    return bool((np.abs(actual - np.array(expected)) < scale * np.array(tolerances)).any())


@pytest.mark.parametrize(("name", "options"), differentiable(), ids=str)
def test_every_function_against_central_differences(case, recorded, rng, name, options):
    """All inputs of the programs that a function runs: coordinates, velocities, forces, accelerations, points, parameters."""
    arguments = case.arguments(name, options)
    recorded.clear()
    getattr(dynamics, name)(**arguments)
    programs = {}
    for program, inputs, mask in recorded:
        programs.setdefault((program.key, program.adjoint), (program, inputs, mask))
    assert programs or name in OWN_KERNELS
    for key in programs.keys() - case.checked:
        check_adjoint(case.model, *programs[key], rng)
        case.checked.add(key)
