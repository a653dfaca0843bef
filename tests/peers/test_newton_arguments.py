"""Arguments of Newton's functions: the default of each is accepted here, and so is what a script passes by name."""

import inspect
from importlib.util import find_spec

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import assets
from tests.importers.test_newton_options import ARTICULATED, ROOTS, URDF_ROBOT, stage_of
from tests.support.random_trees import random_transform

if find_spec("newton") is None:
    pytest.skip("newton is not installed", allow_module_level=True)

import newton
import newton.solvers

FILES = {
    "add_urdf": '<robot name="r"><link name="a"><inertial><mass value="1"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link></robot>',
    "add_mjcf": '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>',
    "add_usd": str(assets.path("warehouse.usda")),
}


def one_body() -> nl.ModelBuilder:
    builder = nl.ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    return builder


def defaults(function) -> dict:
    """The optional arguments of a function with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


@pytest.mark.parametrize("method", sorted(FILES))
def test_defaults_of_importers_are_accepted(method):
    options = defaults(getattr(newton.ModelBuilder, method))
    assert options
    for name, value in options.items():
        builder = nl.ModelBuilder()
        getattr(builder, method)(FILES[method], **{name: value})
        assert builder.body_count > 0


@pytest.mark.parametrize("name", ["eval_fk", "eval_ik", "eval_jacobian", "eval_mass_matrix"])
def test_arguments_of_functions_have_one_order(name):
    """Also those of the methods of views."""
    pairs = [(getattr(nl, name), getattr(newton, name))]
    if name in ("eval_jacobian", "eval_mass_matrix"):
        pairs.append(tuple(getattr(module.selection.ArticulationView, name) for module in (nl, newton)))
    for mine, theirs in pairs:
        assert list(inspect.signature(mine).parameters) == list(inspect.signature(theirs).parameters)


def test_defaults_of_models_and_solvers_are_accepted():
    builder = one_body()
    for name, value in defaults(newton.ModelBuilder.finalize).items():
        assert builder.finalize(**{name: value}).body_count == 1
    model = builder.finalize("cpu")
    for name, value in defaults(newton.Model.control).items():
        assert model.control(**{name: value}).joint_f.size == 6
    for name, value in defaults(newton.solvers.SolverFeatherstone.__init__).items():
        assert nl.solvers.SolverFeatherstone(model, **{name: value}).model is model
    for name, value in defaults(newton.CollisionPipeline.__init__).items():
        assert nl.CollisionPipeline(model, **{name: value}).model is model
    pipeline = nl.CollisionPipeline(model)
    for name, value in defaults(newton.CollisionPipeline.collide).items():
        pipeline.collide(model.state(), pipeline.contacts(), **{name: value})
    for name, value in {
        **defaults(newton.ModelBuilder.color),
        **defaults(newton.ModelBuilder.approximate_meshes),
    }.items():
        method = builder.color if name in defaults(newton.ModelBuilder.color) else builder.approximate_meshes
        if name in inspect.signature(method).parameters:
            method(**{name: value})


def body_poses(engine, source, method: str, pose, **options) -> dict[str, np.ndarray]:
    """Poses of bodies by the last part of their labels, from the joint coordinates."""
    builder = engine.ModelBuilder()
    getattr(builder, method)(source, xform=wp.transform(*pose.tolist()), **options)
    model = builder.finalize("cpu")
    state = model.state()
    engine.eval_fk(model, state.joint_q, state.joint_qd, state)
    labels = [str(label).rpartition("/")[2] for label in model.body_label]
    return dict(zip(labels, state.body_q.numpy(), strict=True))


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("format", ["mjcf", "urdf", "usd"])
def test_roots_of_files_are_where_newton_has_them(format, replaced, rng):
    """With `override_root_xform`, and with `collapse_massless_fixed_root`."""
    cases = {
        "mjcf": (ROOTS.format(*rng.uniform(0.1, 1.0, 5), more="", keys=""), {"floating": False}),
        "urdf": (URDF_ROBOT.format(a=0.3, b=0.4), {"floating": True}),
        "usd": (ARTICULATED.replace("metersPerUnit = 0.01", "metersPerUnit = 1"), {}),
    }
    text, options = cases[format]
    if format == "usd" and find_spec("newton_usd_schemas") is None:
        pytest.skip("newton-usd-schemas is not installed")
    merged = {"collapse_massless_fixed_root": True, "floating": None if format == "mjcf" else True}
    for given in ({}, options, *([] if format == "usd" else [merged])):
        pose = random_transform(rng)
        mine, theirs = (
            body_poses(
                engine,
                stage_of(text) if format == "usd" else text,
                f"add_{format}",
                pose,
                override_root_xform=replaced,
                **given,
            )
            for engine in (nl, newton)
        )
        assert mine.keys() == theirs.keys()
        for name, found in mine.items():
            size = max(1.0, np.abs(found[:3]).max())
            # rounding of four poses of float32 one after the other; 2e-6 with 150 seeds
            np.testing.assert_allclose(found[:3], theirs[name][:3], atol=1e-5 * size)
            np.testing.assert_allclose(abs(found[3:] @ theirs[name][3:]), 1.0, atol=1e-5)
