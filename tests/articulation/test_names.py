"""Names of bodies and joints by regular expressions."""

import pytest

from newton_like.articulation.names import by_name, find_names, names_of_dofs, names_of_labels

NAMES = ["left_hip", "left_knee", "right_hip", "right_knee"]


def test_patterns_match_whole_names_in_the_order_of_the_names_or_of_the_patterns():
    assert find_names(["right_.*", "left_hip"], NAMES, "joint") == ([0, 2, 3], ["left_hip", "right_hip", "right_knee"])
    assert find_names(["right_.*", "left_hip"], NAMES, "joint", preserve_order=True)[0] == [2, 3, 0]
    assert find_names("hip", ["hip", "hip_2"], "joint") == ([0], ["hip"])
    assert find_names(".*_knee", NAMES, "joint", subset=["right_knee", "left_hip"]) == ([0], ["right_knee"])


def test_patterns_without_a_match_name_near_ones():
    with pytest.raises(ValueError, match=r"'left_hop'.*'left_hip'"):
        find_names("left_hop", NAMES, "joint")
    with pytest.raises(ValueError, match=r"'left_hip'.*'left_.\*'.*'.\*_hip'"):
        find_names(["left_.*", ".*_hip"], NAMES, "joint")
    joints = [
        f"{side}_{part}_joint"
        for part in ("ankle", "wrist", "hip")
        for side in ("left", "right", "mid", "upper", "lower")
    ]
    for pattern in (".*hipp.*", r"\w+_HIPS?_link", "(left|right|.*)_hap_.*"):
        with pytest.raises(ValueError, match=r"did you mean 'left_hip_joint' or 'right_hip_joint' or"):
            find_names(pattern, joints, "joint")
    with pytest.raises(ValueError, match=r"matches no joint \(there are 'left_ankle_joint'"):
        find_names(".*elbow.*", joints, "joint")
    with pytest.raises(ValueError, match=r"'\('"):
        find_names("(", NAMES, "joint")
    with pytest.raises(TypeError, match=r"\b3\b"):
        find_names([3], NAMES, "joint")
    with pytest.raises(ValueError, match=r"'elbow'.*subset"):
        find_names(".*", NAMES, "joint", subset=["elbow"])


def test_numbers_by_pattern_leave_the_default_of_other_names():
    assert by_name({".*_hip": 3.0, "left_knee": 1.0}, NAMES, "joint", 2.0, "stiffness").tolist() == [3.0, 1.0, 3.0, 2.0]
    assert by_name(None, NAMES, "joint", 2.0, "stiffness").tolist() == [2.0] * 4
    with pytest.raises(ValueError, match="'left_hip'"):
        by_name({".*_hip": 3.0, "left.*": 1.0}, NAMES, "joint", 2.0, "stiffness")
    with pytest.raises(TypeError, match="stiffness"):
        by_name("stiff", NAMES, "joint", 2.0, "stiffness")


def test_names_are_last_parts_of_labels_or_longer_where_these_are_not_enough():
    assert names_of_labels(["robot/base", "robot/left/arm"]) == ["base", "arm"]
    assert names_of_labels(["robot/base", "robot/left/arm", "robot/right/arm"]) == ["base", "left/arm", "right/arm"]
    assert names_of_labels([]) == [] and names_of_labels(["arm"]) == ["arm"]
    assert names_of_dofs(["robot/x+y", "robot/wrist", "robot/hip"], [2, 3, 1]) == [
        "x",
        "y",
        "wrist:0",
        "wrist:1",
        "wrist:2",
        "hip",
    ]
    sides = ["robot/left/x+left/y", "robot/right/x+right/y", "robot/neck"]
    assert names_of_dofs(sides, [2, 2, 1]) == ["left/x", "left/y", "right/x", "right/y", "neck"]
    assert names_of_dofs(["a+b", "c"], [1, 0]) == ["a+b"]
