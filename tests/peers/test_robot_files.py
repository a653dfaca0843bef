"""URDF files of robots of other projects, in newton_like.robot and in the vendor's library."""

import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from tests.support import robot_calls
from tests.support.paths import ROBOTS
from tests.support.robot_pair import Pair

pytestmark = [
    pytest.mark.skipif(not ROBOTS.is_dir(), reason="no ../shared/example-robot-data beside the repository"),
    pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning"),
]

FILES = sorted(ROBOTS.glob("*/*/*.urdf"))


def completed(path, rng) -> tuple[str, str]:
    """The text of a file and the name of its root.

    Every joint has an axis, which the vendor's library requires, and all limits: it reads one that is missing as 0. Collision shapes, which
    that library ignores, are replaced by capsules, which only the SDK has.
    """
    root = ElementTree.parse(path).getroot()
    for joint in root.findall("joint"):
        if joint.find("axis") is None:
            ElementTree.SubElement(joint, "axis", xyz="1 0 0")
        if joint.find("limit") is None:
            ElementTree.SubElement(joint, "limit")
        limit = joint.find("limit")
        for name, value in {"lower": "-3", "upper": "3", "effort": "100", "velocity": "10"}.items():
            limit.set(name, limit.get(name, value))
    links = root.findall("link")
    for link in links:
        for shape in link.findall("visual") + link.findall("collision"):
            link.remove(shape)
    for i in rng.permutation(len(links))[:6]:
        collision = ElementTree.SubElement(links[i], "collision")
        numbers = rng.uniform(-0.3, 0.3, 6).tolist()
        ElementTree.SubElement(
            collision, "origin", xyz=" ".join(map(repr, numbers[:3])), rpy=" ".join(map(repr, numbers[3:]))
        )
        ElementTree.SubElement(
            ElementTree.SubElement(collision, "geometry"), "capsule", radius="0.05", length=repr(rng.uniform(0.1, 0.5)),
            coltype="1", colaffinity="1",
        )  # fmt: skip
    children = {joint.find("child").get("link") for joint in root.findall("joint")}
    (base,) = [link.get("name") for link in links if link.get("name") not in children]
    return ElementTree.tostring(root, "unicode"), base


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_robots_of_files(rng, path):
    text, base = completed(path, rng)
    pair = Pair(lambda lib: lib.load_robot_from_urdf_data(text, base).base_link, rng)
    ours, theirs = pair.robots
    every = ElementTree.fromstring(text).iter("joint")
    continuous = [joint.get("name") for joint in every if joint.get("type") == "continuous"]
    assert ours.get_dof() == theirs.get_dof()
    for name in ("q_lower", "q_upper", "qdot_lower", "qdot_upper", "qddot_lower", "qddot_upper", "torque"):
        found, expected = pair.both(lambda robot, state, name=name: getattr(robot, f"get_limit_{name}")(state))
        # a limit of 0 is no limit here, and a continuous joint has no limits of position; the vendor's library reads the numbers
        unlimited = np.abs(found) == sys.float_info.max
        joints = np.array(pair.states[0].joint_names)
        of_continuous = np.isin(joints, continuous) & (name[:2] == "q_")
        np.testing.assert_array_equal(unlimited, of_continuous | (expected == 0.0) & unlimited, err_msg=name)
        found, expected = found[~unlimited], expected[~unlimited]
        np.testing.assert_array_equal(found, expected, err_msg=name)
    pair.check(robot_calls.SHARED, rounds=2)
    pair.check_collisions(1000)
