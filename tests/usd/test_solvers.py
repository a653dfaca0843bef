"""Stages that are simulated by the solver that fits: a falling wall, recorded in a file."""

import logging

import numpy as np
import pytest

pytest.importorskip("pxr")
from pxr import Usd, UsdGeom, UsdPhysics, UsdValidation

from newton_like.solvers import SolverFeatherstone, SolverXPBD
from newton_like.usd import Simulation
from tests.support.usd_scenes import wall_stage


@pytest.mark.slow
def test_a_falling_wall_is_recorded(tmp_path, caplog):
    """Bricks that lean over fall; the file has a sample for each frame of each brick, where the simulation had it."""
    source = wall_stage(tmp_path / "wall.usda", rows=4, columns=6, lean=0.35)
    with caplog.at_level(logging.INFO, logger="newton_like.usd"):
        simulation = Simulation(source, solver="auto", solver_options={"xpbd": {"width": 8}})
    assert isinstance(simulation.solver, SolverXPBD)
    assert "24 free bodies" in simulation.choice.reason
    assert "SolverXPBD" in caplog.text
    simulation.step(24)
    simulation.save(tmp_path / "motion.usda")
    stage = Usd.Stage.Open(str(tmp_path / "motion.usda"))
    bricks = [p for p in stage.Traverse() if p.HasAPI(UsdPhysics.RigidBodyAPI)]
    assert len(bricks) == 24
    cache = UsdGeom.XformCache(Usd.TimeCode(stage.GetEndTimeCode()))
    poses = simulation.state.body_q.numpy()
    for prim in bricks:
        body, _ = simulation.report.frames[str(prim.GetPath())]
        place = np.array(cache.GetLocalToWorldTransform(prim))[3, :3]
        assert place == pytest.approx(poses[body, :3], abs=1e-5)
    # the upper bricks fell, and nothing sank into the ground by more than the softness of contacts
    assert poses[:, 2].max() < 0.6
    assert poses[:, 2].min() > 0.05
    # all checks that USD brings along
    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    assert not UsdValidation.ValidationContext(validators).Validate(stage)


def test_solvers_may_be_named(tmp_path):
    source = wall_stage(tmp_path / "wall.usda", rows=1, columns=2)
    assert isinstance(Simulation(source, solver="auto").solver, SolverFeatherstone)
    assert isinstance(Simulation(source, solver="xpbd").solver, SolverXPBD)
    simulation = Simulation(source, solver=SolverXPBD, solver_options={"substeps": 4})
    assert simulation.solver.substeps == 4
    assert "asked" in simulation.choice.reason
    with pytest.raises(ValueError, match=r"'substeps'.*featherstone, xpbd"):
        Simulation(source, solver="auto", solver_options={"substeps": 4})
    with pytest.raises(ValueError, match="solver_options"):
        Simulation(source, solver={"iterations": 4}, solver_options={"iterations": 4})
    with pytest.raises(TypeError, match="dictionary"):
        Simulation(source, solver_options=4)
