"""Misspelt settings: errors name the setting, and the one that was meant."""

import copy
import pickle
import re
from dataclasses import dataclass

import pytest

import newton_like as nl
from newton_like import articulation as art
from newton_like import usd
from newton_like.articulation import multirotor
from newton_like.dynamics import RigidContactParameters, SoftContactParameters
from newton_like.model.actuators import Actuator
from newton_like.model.tendons import Tendon
from newton_like.options import unknown_option
from newton_like.selection import ArticulationView
from newton_like.sensors import SensorContact
from newton_like.solvers import SolverFeatherstone, SolverXPBD

CONFIGURATIONS = {
    nl.ShapeConfig: ("muu", "mu"),
    nl.JointDofConfig: ("armatur", "armature"),
    nl.ModelBuilder.CustomAttribute: ("usd_atribute_name", "usd_attribute_name"),
    nl.ModelBuilder.CustomFrequency: ("usd_prim_filtr", "usd_prim_filter"),
    art.ImplicitActuatorCfg: ("stifness", "stiffness"),
    art.IdealPDActuatorCfg: ("effort_limt", "effort_limit"),
    art.DCMotorCfg: ("saturation_efort", "saturation_effort"),
    art.DelayedPDActuatorCfg: ("max_dely", "max_delay"),
    art.RemotizedPDActuatorCfg: ("joint_parameter_lockup", "joint_parameter_lookup"),
    art.NetworkActuatorCfg: ("netwrk", "network"),
    art.InitialStateCfg: ("joint_poss", "joint_pos"),
    art.DebugVisCfg: ("frame", "frames"),
    multirotor.ThrusterCfg: ("rotor_inerta", "rotor_inertia"),
    multirotor.BodyDrag: ("quadratik", "quadratic"),
    multirotor.GroundEffect: ("hight", "height"),
    multirotor.MultirotorCfg: ("rotor_direction", "rotor_directions"),
}
"""Configurations, a misspelt setting, and the one that is meant."""

NEEDED = {
    nl.ModelBuilder.CustomAttribute: {"name": "a", "dtype": float, "frequency": "body"},
    nl.ModelBuilder.CustomFrequency: {"name": "a"},
}


@pytest.mark.parametrize("kind", CONFIGURATIONS, ids=lambda kind: kind.__name__)
def test_misspelt_settings_of_configurations_are_refused(kind):
    """As arguments and as attributes."""
    wrong, right = CONFIGURATIONS[kind]
    needed = NEEDED.get(kind, {})
    message = rf"{kind.__name__}.*'{wrong}'.*'{right}'"
    with pytest.raises(TypeError, match=message):
        kind(**needed, **{wrong: 1.0})
    made = kind(**needed)
    with pytest.raises(AttributeError, match=message) as error:
        setattr(made, wrong, 1.0)
    assert (error.value.name, error.value.obj) == (wrong, made)
    assert not hasattr(made, wrong)
    # what dataclasses do otherwise
    setattr(made, right, getattr(made, right))
    assert made == copy.deepcopy(made) == pickle.loads(pickle.dumps(made))
    assert repr(made).startswith(f"{kind.__qualname__}(")


@pytest.mark.parametrize("kind", [Tendon, Actuator, SoftContactParameters, RigidContactParameters])
def test_misspelt_settings_of_frozen_configurations_are_refused(kind):
    needed = {Tendon: {"label": "t"}, Actuator: {"label": "a", "transmission": "joint", "target": 0}}.get(kind, {})
    wrong, right = ("stifness", "stiffness") if hasattr(kind, "stiffness") else ("gainn", "gain")
    if kind is RigidContactParameters:
        wrong, right = "time_constan", "time_constant"
    with pytest.raises(TypeError, match=rf"{kind.__name__}\(\).*'{wrong}'.*'{right}'"):
        kind(**needed, **{wrong: 1.0})
    with pytest.raises(AttributeError, match=wrong):
        setattr(kind(**needed), wrong, 1.0)


def test_other_errors_of_configurations_stay():
    with pytest.raises(TypeError, match=r"\bmu\b.*number"):
        nl.ModelBuilder().add_ground_plane(cfg=nl.ShapeConfig(mu="rough"))
    with pytest.raises(TypeError, match="armature"):
        nl.JointDofConfig(armature="much")
    with pytest.raises(AttributeError, match="target_mode"):
        nl.JointDofConfig().target_mode = 1
    with pytest.raises(TypeError, match="required"):
        nl.ModelBuilder.CustomFrequency()
    for kind, name in ((nl.ShapeConfig, "muu"), (nl.JointDofConfig, "armatur")):
        with pytest.raises(TypeError, match=f"{kind.__name__}.*'{name}'.*"):
            kind().copy(**{name: 1.0})


def test_copies_of_configurations_have_all_settings_and_are_checked():
    cfg = nl.ShapeConfig(mu=0.3, gap=0.1)
    assert cfg.copy() == cfg != cfg.copy(mu=0.4) == nl.ShapeConfig(mu=0.4, gap=0.1)
    axis = nl.JointDofConfig(axis="y", armature=2, target_q=1)
    assert axis.copy(axis=(0, 0, 3)) == nl.JointDofConfig(axis="z", armature=2.0, target_q=1.0)
    assert isinstance(axis.copy(damping=1).damping, float)
    with pytest.raises(ValueError, match="axis"):
        axis.copy(axis=(0, 0, 0))

    @dataclass(kw_only=True)
    class Sticky(nl.ShapeConfig):
        glue: float = 1.0

    sticky = Sticky(mu=0.2, glue=3.0)
    sticky.colour = "red"
    assert sticky.copy(mu=0.5) == Sticky(mu=0.5, glue=3.0)


BUILDER = {
    "add_link": ({}, "mas", "mass"),
    "add_body": ({}, "mas", "mass"),
    "add_joint": ({"joint_type": nl.JointType.FIXED, "parent": -1, "child": 0}, "lable", "label"),
    "add_joint_revolute": ({"parent": -1, "child": 0}, "armatur", "armature"),
    "add_joint_prismatic": ({"parent": -1, "child": 0}, "limit_uper", "limit_upper"),
    "add_joint_ball": ({"parent": -1, "child": 0}, "stifness", "stiffness"),
    "add_joint_fixed": ({"parent": -1, "child": 0}, "parent_xfrom", "parent_xform"),
    "add_joint_free": ({"child": 0}, "parrent", "parent"),
    "add_joint_distance": ({"parent": -1, "child": 0}, "max_distanc", "max_distance"),
    "add_joint_d6": ({"parent": -1, "child": 0}, "linear_axis", "linear_axes"),
    "add_articulation": ({"joints": [0]}, "lable", "label"),
    "add_shape": ({"body": 0, "type": nl.GeoType.SPHERE}, "opacty", "opacity"),
    "add_shape_plane": ({}, "widht", "width"),
    "add_ground_plane": ({}, "heigth", "height"),
    "add_shape_box": ({}, "bodyy", "body"),
    "add_shape_sphere": ({"body": 0}, "raduis", "radius"),
    "add_shape_mesh": ({"body": 0}, "mseh", "mesh"),
    "add_site": ({"body": 0}, "typ", "type"),
    "begin_world": ({}, "gravty", "gravity"),
    "add_world": ({"builder": None}, "xfrom", "xform"),
    "add_builder": ({"builder": None}, "label_prefx", "label_prefix"),
    "replicate": ({"builder": None}, "spaceing", "spacing"),
    "finalize": ({}, "devise", "device"),
    "add_urdf": ({"source": "nowhere"}, "xfrom", "xform"),
    "add_mjcf": ({"source": "nowhere"}, "xfrom", "xform"),
    "add_usd": ({"source": "nowhere"}, "xfrom", "xform"),
}


@pytest.mark.parametrize("method", BUILDER)
def test_misspelt_arguments_of_the_builder_are_refused(method):
    needed, wrong, right = BUILDER[method]
    builder = nl.ModelBuilder()
    builder.add_link(mass=1.0)
    with pytest.raises(TypeError, match=rf"{method}\(\).*'{wrong}'.*'{right}'"):
        getattr(builder, method)(**needed, **{wrong: 1.0})
    counts = (builder.body_count, builder.joint_count, builder.shape_count, builder.world_count)
    assert counts == (1, 0, 0, 0)


def test_misspelt_arguments_of_other_objects_are_refused():
    builder = nl.ModelBuilder()
    builder.add_body(mass=1.0, inertia=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    model = builder.finalize("cpu")
    for function, arguments, wrong, right in (
        (nl.ModelBuilder, (), "gravty", "gravity"),
        (nl.CollisionPipeline, (model,), "broad_phse", "broad_phase"),
        (SolverFeatherstone, (model,), "iteration", "iterations"),
        (SolverXPBD, (model,), "substep", "substeps"),
        (SensorContact, (model,), "sensing_body", "sensing_bodies"),
        (ArticulationView, (model, "*"), "include_link", "include_links"),
        (art.Articulation, (model, "*"), "actuator", "actuators"),
        (art.InteractiveScene, (model,), "env_spaceing", "env_spacing"),
        (usd.Simulation, ("nowhere",), "sover", "solver"),
        (usd.Simulation, ("nowhere",), "scene_gravty", "scene_gravity"),
        (nl.Mesh, ([(0, 0, 0)], [0, 0, 0]), "is_sold", "is_solid"),
        (nl.Heightfield, ([0] * 4, 2, 2), "min_zz", "min_z"),
        (model.state, (), "requires_gradd", "requires_grad"),
        (model.control, (), "requires_gradd", "requires_grad"),
        (model.contacts, (), "rigid_contacts_max", "rigid_contact_max"),
    ):
        with pytest.raises(TypeError, match=rf"{function.__name__}\(\).*'{wrong}'.*'{right}'"):
            function(*arguments, **{wrong: 1})
    pipeline = nl.CollisionPipeline(model)
    with pytest.raises(AttributeError, match=r"requires_gradd.*'requires_grad'"):
        pipeline.requires_gradd = True


def test_errors_name_all_near_settings_or_what_there_is():
    own = ["limit_lower", "limit_upper", "damping"]
    assert re.search("'limit_upper'.*'limit_lower'", str(unknown_option("f", "limit_uper", own)))
    assert ", ".join(own) in str(unknown_option("f", "mass", own))


def test_misspelt_arguments_of_contexts_and_of_their_solvers_are_refused():
    model = nl.ModelBuilder().finalize("cpu")
    with pytest.raises(TypeError, match=r"SimulationContext\(\).*'decimaton'.*'decimation'"):
        art.SimulationContext(model, decimaton=2)
    with pytest.raises(TypeError, match=r"'iterationz'.*'iterations'"):
        _ = art.SimulationContext(model, iterationz=2).solver
