"""Every public name of the assets that learners know, with the arguments of methods and the shapes of data."""

import inspect
import re
from pathlib import Path

import pytest
import warp as wp

import newton_like as nl
from newton_like.articulation import InitialStateCfg, SimulationContext
from newton_like.articulation.multirotor import Multirotor, MultirotorCfg, ThrusterCfg
from newton_like.model.tendons import Tendon
from tests.articulation.robots import add_robot

WORLDS, ROTORS, FIXED, SPATIAL = 3, 2, 1, 1
ELSEWHERE = {
    "Multirotor.__init__": "docs/articulation.md",
    "Multirotor.root_physx_view": "sim.state, sim.control, sim.model",
    "MultirotorData.__init__": "made by the asset",
    "MultirotorCfg.prim_path": "pattern of labels",
    "MultirotorCfg.spawn": "builder",
    "MultirotorCfg.collision_group": "builder",
    "MultirotorCfg.articulation_root_prim_path": "pattern of labels",
    "MultirotorCfg.soft_joint_pos_limit_factor": "argument of the asset",
    "MultirotorCfg.actuator_value_resolution_debug_print": "repr of an actuator",
}
"""Names that are not here, and what has their place; the tables of docs/articulation.md have them, too."""


def known_names() -> dict[str, dict[str, list[str] | None]]:
    """Names by class: arguments of methods (a star before those with a default), None for others."""
    found, own = {}, None
    for line in (Path(__file__).parents[1] / "support" / "isaac_lab_names.txt").read_text().splitlines():
        if line.startswith("["):
            own = found[line.strip("[]")] = {}
        elif line and not line.startswith("#"):
            name, method, arguments = re.fullmatch(r"(\w+)(\((.*)\))?", line).groups()
            own[name] = re.findall(r"\*?\w+", arguments) if method else None
    return found


@pytest.fixture(scope="module")
def drone(module_rng) -> Multirotor:
    """A multirotor with joints and tendons of both kinds."""
    one = nl.ModelBuilder()
    add_robot(one, module_rng)
    hips = [one.joint_label.index(f"walker/{side}_hip_joint") for side in ("left", "right")]
    one.add_tendon(Tendon(label="both", joints=tuple((j, 0, 1.0) for j in hips), stiffness=1.0))
    ends = [one.add_site(b) for b in (0, one.body_label.index("walker/left_knee"))]
    one.add_tendon(Tendon(label="rope", path=tuple(("site", s) for s in ends), stiffness=1.0))
    one.frames.extend(["hub_0", "hub_1"], [0, 0], [(0.1, 0, 0, 0, 0, 0, 1), (-0.1, 0, 0, 0, 0, 0, 1)])
    scene = nl.ModelBuilder()
    scene.replicate(one, WORLDS)
    sim = SimulationContext(scene.finalize("cpu"), evaluator="general")
    return Multirotor(sim, "walker", MultirotorCfg({"all": ThrusterCfg("hub_.*")}))


OWNERS = {"Multirotor": Multirotor, "MultirotorCfg": MultirotorCfg, "InitialStateCfg": InitialStateCfg}


def test_all_names_are_there_or_listed(drone):
    missing = []
    for owner, names in known_names().items():
        thing = {"MultirotorData": drone.data, "Multirotor": drone}.get(owner) or OWNERS[owner]()
        missing += [f"{owner}.{name}" for name in names if name == "__init__" or name not in dir(thing)]
    assert sorted(missing) == sorted(ELSEWHERE)


def test_methods_have_the_same_arguments(drone):
    """The known arguments come first and in their order; further ones have defaults."""
    for name, wanted in known_names()["Multirotor"].items():
        if wanted is None or f"Multirotor.{name}" in ELSEWHERE:
            continue
        found = list(inspect.signature(getattr(drone, name)).parameters.values())
        given = [("*" if p.default is not p.empty else "") + p.name for p in found]
        assert given[: len(wanted)] == wanted, name
        assert all(p.default is not p.empty for p in found[len(wanted) :]), name


def shape_of(name: str, drone: Multirotor) -> tuple[int, ...]:
    """The shape of data in Isaac Lab, from the name."""
    n, b, j = WORLDS, drone.num_bodies, drone.num_joints
    if "thrust" in name:
        return n, ROTORS
    if "tendon" in name:
        return (
            n,
            FIXED if "fixed" in name else SPATIAL,
            *((2,) if "limit" in name and "stiffness" not in name else ()),
        )
    if name == "heading_w":
        return (n,)
    if name in ("default_mass", "default_inertia"):
        return (n, b) if name == "default_mass" else (n, b, 9)
    if name in ("joint_limits", "default_joint_limits") or name.endswith("pos_limits"):
        return n, j, 2
    if ("joint_" in name and "wrench" not in name) or name in ("gear_ratio", "computed_torque", "applied_torque"):
        return n, j
    sizes = {
        "wrench": 6,
        "pose": 7,
        "pos": 3,
        "quat": 4,
        "state": 13,
        "lin_": 3,
        "ang_": 3,
        "vel": 6,
        "acc": 6,
        "gravity": 3,
    }
    width = next(size for part, size in sizes.items() if part in name)
    return (n, width) if "root" in name or "gravity" in name else (n, b, width)


def test_data_have_the_known_shapes(drone):
    drone.write_data_to_sim()
    for name in known_names()["MultirotorData"]:
        if f"MultirotorData.{name}" in ELSEWHERE:
            continue
        value = getattr(drone.data, name)
        if name.endswith("_names"):
            assert isinstance(value, list) and all(isinstance(each, str) for each in value)
            continue
        assert isinstance(value, wp.array) and value.shape == shape_of(name, drone), name


def test_what_is_not_here_is_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "articulation.md").read_text()
    for name in ELSEWHERE:
        short = name.partition(".")[2]
        assert short == "__init__" or short in page, name
