"""Names of the top-level package."""

import importlib
import inspect
import subprocess
import sys

import pytest

import newton_like as nl
from newton_like.importers.mjcf import add_mjcf
from newton_like.importers.urdf import add_urdf
from newton_like.importers.usd import add_usd


@pytest.mark.slow
def test_packages_are_imported_when_they_are_asked_for():
    script = "import sys, newton_like as nl; before = set(sys.modules); nl.{0}; print(*set(sys.modules) - before)"
    for name in ("selection", "solvers", "usd", "urdf", "viewer"):
        command = [sys.executable, "-c", script.format(name)]
        made = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        assert f"newton_like.{name}" in made
        assert name in dir(nl)
    assert nl.dynamics.mass_matrix
    with pytest.raises(AttributeError, match=r"newton_like.*'solver'"):
        _ = nl.solver


@pytest.mark.parametrize("function", [add_urdf, add_mjcf, add_usd])
def test_importers_show_their_options(function):
    """To ``help`` and to editors."""
    builder, name = nl.ModelBuilder(), function.__name__
    assert getattr(nl.ModelBuilder, name) is function
    method = getattr(builder, name)
    assert list(inspect.signature(method).parameters) == list(inspect.signature(function).parameters)[1:]
    assert method.__doc__ == function.__doc__


def test_warnings_of_imports_name_the_line_that_asked_for_them():
    text = '<robot name="bot"><link name="a"/><gazebo/></robot>'
    for add in (nl.ModelBuilder().add_urdf, lambda text: add_urdf(nl.ModelBuilder(), text)):
        with pytest.warns(UserWarning, match="gazebo") as caught:
            add(text)
        assert [w.filename for w in caught] == [__file__]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("newton_like.launch:lane_width", "newton_like.programs.device"),
        ("newton_like.launch:worker_count", "newton_like.threads"),
        ("newton_like.specialise:BUDGET", "newton_like.solvers.featherstone.specialise"),
        ("newton_like.urdf:write", "newton_like.exporters.urdf"),
        ("newton_like.usd.export:write", "newton_like.exporters.usd"),
    ],
)
def test_old_import_paths_give_the_same_objects(old, new):
    module, name = old.split(":")
    assert getattr(importlib.import_module(module), name) is getattr(importlib.import_module(new), name)
