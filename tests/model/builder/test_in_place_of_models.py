"""Builders in place of models: an error that names the cure."""

import inspect
from enum import EnumMeta

import numpy as np
import pytest

import newton_like as nl
from newton_like import ModelBuilder, dynamics, mechanism, selection, solvers


def functions_of_models() -> dict:
    """The public functions and classes whose first argument is a model, by name."""
    found = {}
    for place in (nl, dynamics, selection, mechanism, solvers):
        for name in place.__all__:
            value = getattr(place, name)
            if not callable(value) or isinstance(value, EnumMeta):
                continue
            first, *others = [*inspect.signature(value).parameters.values(), None]
            needed = [p for p in others if p and p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD]
            # contacts and their points are made of a model themselves
            if first is not None and first.name == "model" and not {"contact", "points"} & {p.name for p in needed}:
                found[name] = value, needed
    return found


STAND_INS = {"names": ["a"], "frames": ["a"], "links": ["a"], "joints": ["a"]}


@pytest.mark.parametrize("name", sorted(functions_of_models()))
def test_builders_in_place_of_models_are_refused_by_name(name):
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    state = builder.finalize("cpu").state()
    function, others = functions_of_models()[name]
    arguments = [state if p.name == "state" else STAND_INS.get(p.name, 0) for p in others]
    with pytest.raises(TypeError, match=r"Model.*ModelBuilder.*builder\.finalize\(\)"):
        function(builder, *arguments)


def test_builders_have_no_attributes_of_models():
    """Attributes that a model has and its builder lacks name the cure; `hasattr` answers; others are unknown."""
    builder = ModelBuilder()
    for name in {*vars(builder.finalize("cpu")), *dir(nl.Model)} - set(dir(builder)):
        if not name.startswith("_"):
            assert not hasattr(builder, name)
            with pytest.raises(TypeError, match=rf"{name}.*builder\.finalize"):
                getattr(builder, name)
    with pytest.raises(AttributeError, match="shape_colour") as caught:
        _ = builder.shape_colour
    assert not isinstance(caught.value, TypeError)
