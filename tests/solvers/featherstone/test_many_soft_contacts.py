"""Bodies between pads with many soft contacts, where extrapolated sweeps in one direction diverge and plain ones converge."""

import numpy as np

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone

DT = 0.002
SIDE, RADIUS, PITCH = 5, 0.005, 0.008
"""Spheres along a side of a pad, their radius and distance [m]."""
SOFT = 'solref="0.02 1" solimp="0.9 0.95 0.001"'
"""MuJoCo's defaults, stated."""


def pad(side: float, settings: str) -> str:
    """A grid of spheres on the inner side of a finger."""
    places = PITCH * (np.arange(SIDE) - 0.5 * (SIDE - 1))
    return "".join(
        f'<geom type="sphere" size="{RADIUS}" pos="{x:.4f} {-0.006 * side} {z:.4f}" {settings}/>'
        for x in places
        for z in places
    )


def grasp(finger: float, cube: float, friction: float) -> str:
    """Two fingers on slides, on either side of a cube of 40 mm, with their masses and their friction, without gravity."""
    settings = f'{SOFT} friction="{friction} 0.005 0.0001"'
    fingers = "".join(
        f'<body name="{name}" pos="0 {0.04 * side} 0"><joint name="{name}" type="slide" axis="0 1 0" damping="2"/>'
        f'<inertial pos="0 0 0" mass="{finger}" diaginertia="1e-4 1e-4 1e-4"/>{pad(side, settings)}</body>'
        for name, side in (("left", 1), ("right", -1))
    )
    return f"""<mujoco><option gravity="0 0 0"/><worldbody>
      <body name="hand"><joint type="slide" axis="0 0 1" damping="5"/>
        <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>{fingers}</body>
      <body name="cube"><freejoint/><geom type="box" size="0.02 0.02 0.02" mass="{cube}" {settings}/></body>
    </worldbody></mujoco>"""


def test_default_sweeps_over_many_soft_contacts_come_near_the_solution(rng):
    """One step of fingers that press a cube, from states on the way to rest. Extrapolated sweeps ended up to 0.3 m/s away from the
    converged step, plain ones 0.04 m/s."""
    count = 16
    worlds = ModelBuilder()
    for _ in range(count):
        one = ModelBuilder()
        SolverFeatherstone.register_custom_attributes(one)
        one.add_mjcf(grasp(rng.uniform(0.05, 0.2), rng.uniform(0.1, 0.5), rng.uniform(0.2, 1.0)))
        worlds.add_world(one)
    model = worlds.finalize("cpu")
    push, zero = rng.uniform(10.0, 20.0, count), np.zeros(count)
    control = model.control()
    control.joint_f.assign(np.stack([zero, -push, push, *[zero] * 6], axis=1).ravel())
    converged = SolverFeatherstone(model, evaluator="general", iterations=128, tolerance=0.0)
    start = model.state()
    for _ in range(16):
        converged.step(start, start, control, dt=DT)
    speeds = []
    for options in ({"iterations": 500, "tolerance": 0.0}, {}):
        solver, state = SolverFeatherstone(model, evaluator="general", **options), model.state()
        solver.step(start, state, control, dt=DT)
        speeds.append(state.joint_qd.numpy().reshape(count, -1)[:, :6].copy())
    assert abs(speeds[0] - speeds[1]).max() < 0.06
