"""Links, joints, capsules, wheels and files of newton_like.robot against the vendor's library of the robot SDK."""

import warnings

import numpy as np
import pytest

from newton_like import robot as rd
from newton_like.robot.structure.tree import count_joints, name_order, survey
from tests.support.random_robots import adjoint, link_poses, random_pose, random_robot
from tests.support.segments import segment_distance

vendor = pytest.importorskip("rby1_sdk.dynamics", reason="rby1-sdk is not installed (extra 'peers')")

I = np.eye(4)


def state_of(configuration, links):
    """A robot of the vendor, and a state with the links in this order."""
    robot = vendor.Robot(configuration)
    return robot, robot.make_state([link.name for link in links], [])


def tree_of(link):
    """Names, limits and shapes of a tree, breadth-first, by calls that both libraries have."""
    found, waiting = [], [link]
    for link in waiting:
        shapes = [
            (
                c.get_origin().tolist(),
                g.get_start_point().tolist(),
                g.get_end_point().tolist(),
                g.get_radius(),
                g.get_coltype(),
                g.get_colaffinity(),
            )
            for c in link.get_collisions()
            for g in c.get_geoms()
        ]
        found.append((link.get_name(), shapes))
        for joint in link.get_child_joint_list():
            limits = [
                getattr(joint, f"get_limit_{name}_{end}")()
                for name in ("q", "qdot", "qddot")
                for end in ("lower", "upper")
            ]
            assert joint.get_parent_link().get_name() == link.get_name()
            found.append((joint.get_name(), joint.is_fixed(), limits, joint.get_limit_torque()))
            waiting.append(joint.get_child_link())
    return found


def check_robot(ours, theirs, rng):
    """Order of joints, poses at random coordinates, masses and inertias of two configurations."""
    links, joints = survey(ours.base_link)
    robot, state = state_of(theirs, links)
    moving = [joint.name for joint in joints if not joint.is_fixed()]
    assert state.get_joint_names() == moving
    q = rng.normal(size=len(moving))
    state.set_q(q)
    robot.compute_forward_kinematics(state)
    poses = link_poses(ours.base_link, dict(zip(moving, q, strict=True)))
    for i, link in enumerate(links):
        assert np.allclose(robot.compute_transformation(state, 0, i), poses[link.name], atol=1e-9)
        assert np.isclose(robot.compute_mass(state, i), link.mass, rtol=1e-12)
    total = np.zeros((6, 6))
    for link in links:
        Ad = adjoint(np.linalg.inv(poses[link.name]))
        total += Ad.T @ link.inertia @ Ad
    assert np.allclose(robot.compute_total_inertial(state, 0), total, atol=1e-9)


@pytest.mark.parametrize("joints", [1, 4, 12])
def test_random_robots(rng, joints):
    seed = rng.integers(2**31)
    ours, theirs = random_robot(rd, seed, joints)[0], random_robot(vendor, seed, joints, fold=True)[0]
    assert tree_of(ours[0]) == tree_of(theirs[0])
    check_robot(rd.RobotConfiguration("robot", ours[0]), vendor.RobotConfiguration("robot", theirs[0]), rng)
    for link in range(joints + 1):
        for fixed in (False, True):
            assert count_joints(ours[link], fixed) == vendor.Robot.count_joints(theirs[link], fixed)


def test_the_vendor_ignores_the_child_frames_of_joints_that_move(rng):
    """The definition is ``T_pc = T_pj exp([S] q) T_jc``; the vendor's library uses T_jc of fixed joints only."""
    T, poses = random_pose(rng), []
    for make in (vendor.Joint.make_fixed, vendor.Joint.make_revolute):
        base, link, joint = vendor.Link("base"), vendor.Link("link"), make("joint")
        joint.connect_links(base, link, I, T)
        robot = vendor.Robot(vendor.RobotConfiguration("robot", base))
        state = robot.make_state(["base", "link"], [])
        poses.append(robot.compute_transformation(state, 0, 1))
    assert np.allclose(poses[0], T) and np.allclose(poses[1], I)
    base, link, joint = rd.Link("base"), rd.Link("link"), rd.Joint.make_revolute("joint")
    joint.connect_links(base, link, I, T)
    assert np.allclose(link_poses(base, {"joint": 0.0})["link"], T)


def test_order_of_joints_with_listed_names(rng):
    seed = rng.integers(2**31)
    ours, theirs = (random_robot(lib, seed, 12)[0] for lib in (rd, vendor))
    moving = [joint.name for joint in survey(ours[0])[1] if not joint.is_fixed()]
    for _ in range(5):
        listed = [str(name) for name in rng.permutation(moving)[: rng.integers(len(moving))]]
        state = vendor.Robot(vendor.RobotConfiguration("robot", theirs[0])).make_state([], listed)
        assert state.get_joint_names() == [moving[i] for i in name_order(moving, listed)]


def test_new_joints_and_results_have_the_same_defaults():
    for make in ("make_revolute", "make_prismatic", "make_fixed"):
        ours, theirs = getattr(rd.Joint, make)("joint"), getattr(vendor.Joint, make)("joint")
        names = [name for name in dir(theirs) if name.startswith("get_")] + ["is_fixed"]
        assert {name: getattr(ours, name)() for name in names} == {name: getattr(theirs, name)() for name in names}
    ours, theirs = rd.CollisionResult(), vendor.CollisionResult()
    for name in ("link1", "link2", "distance"):
        assert getattr(ours, name) == getattr(theirs, name)
    for enum in ("GeomType", "MobileBaseType"):
        members = {
            name: (int(x), x.name, x.value, str(x), repr(x)) for name, x in getattr(vendor, enum).__members__.items()
        }
        assert {
            name: (int(x), x.name, x.value, str(x), repr(x)) for name, x in getattr(rd, enum).__members__.items()
        } == members


def distance_of(lib, a, b, T_a, T_b):
    first, second = (lib.GeomCapsule(start, end, radius, 1, 1) for start, end, radius in (a, b))
    return first.compute_minimum_distance(T_a, second, T_b)


def test_distances_of_random_capsules(rng):
    """About one of ten thousand distances of the vendor's library is too large; the points are not the nearest ones then."""
    for _ in range(300):
        a, b = (
            (start, start + rng.choice([0.01, 1.0, 5.0]) * rng.normal(size=3), rng.uniform(0.0, 0.3))
            for start in rng.normal(size=(2, 3))
        )
        T = random_pose(rng), random_pose(rng)
        ours, theirs = (distance_of(lib, a, b, *T) for lib in (rd, vendor))
        if theirs.distance > ours.distance + 1e-13:
            ends = [t[:3, :3] @ x + t[:3, 3] for t, segment in zip(T, (a, b), strict=True) for x in segment[:2]]
            assert np.isclose(ours.distance, segment_distance(*ends) - a[2] - b[2], atol=1e-9)
            continue
        assert np.isclose(ours.distance, theirs.distance, atol=1e-9)
        assert np.allclose(ours.position1, theirs.position1, atol=1e-5)
        assert np.allclose(ours.position2, theirs.position2, atol=1e-5)


def test_distances_of_nearly_parallel_capsules(rng):
    """Some distances of the vendor's library are too large by up to some millimetres, about one of two hundred."""
    wrong = 0
    for _ in range(2000):
        along, start = rng.normal(scale=0.2, size=3), rng.normal(scale=0.3, size=3)
        other = start + rng.normal(scale=0.3, size=3)
        ends = start, start + along, other, other + along + rng.normal(scale=0.02, size=3)
        a, b = (*ends[:2], 0.0), (*ends[2:], 0.0)
        ours, theirs = (distance_of(lib, a, b, I, I).distance for lib in (rd, vendor))
        if abs(theirs - ours) > 1e-9:
            assert theirs > ours and np.isclose(ours, segment_distance(*ends), atol=1e-9)
            wrong += 1
    assert wrong


def test_distances_of_parallel_capsules(rng):
    """The points are not unique, and may differ."""
    for start, end in [(0, 1), (1, 0), (0.5, 3), (-3, -2), (2, 5), (-1, 0.2)]:
        for apart in (0.0, 0.5):
            a, b = ((0, 0, 0), (0, 0, 1), 0.1), ((apart, 0, start), (apart, 0, end), 0.2)
            ours, theirs = (distance_of(lib, a, b, I, I) for lib in (rd, vendor))
            assert np.isclose(ours.distance, theirs.distance, atol=1e-12)


def test_capsules_of_length_zero(rng):
    """The vendor's library measures from the start of the first capsule if the second one has the length 0; the other order is right."""
    for _ in range(20):
        a, point, T = (*rng.normal(size=(2, 3)), 0.1), rng.normal(size=3), random_pose(rng)
        b = (point, point, 0.2)
        right = distance_of(vendor, b, a, T, T)
        ours = distance_of(rd, a, b, T, T)
        assert np.isclose(ours.distance, right.distance, atol=1e-12)
        assert np.allclose(ours.position1, right.position2, atol=1e-12)
        assert np.isclose(distance_of(rd, b, a, T, T).distance, right.distance, atol=1e-12)
        assert np.isclose(distance_of(vendor, a, b, T, T).distance, np.linalg.norm(a[0] - point) - 0.3, atol=1e-12)


def test_filters(rng):
    for bits in rng.integers(0, 16, (100, 4)).tolist():
        ours, theirs = ([lib.GeomCapsule(0.1, 0.1, *pair) for pair in (bits[:2], bits[2:])] for lib in (rd, vendor))
        assert ours[0].filter(ours[1]) == theirs[0].filter(theirs[1])


def wheels_file(kind: str, rng, axis: str) -> str:
    """A base with wheels in random order, and a joint that is no wheel."""
    count = {"differential": 2, "mecanum": 4}[kind]
    names = [f"wheel_{i}" for i in rng.permutation(count)]
    params = " ".join(map(str, rng.uniform(0.1, 1.0, {"differential": 2, "mecanum": 3}[kind])))
    lines = ['<robot name="car"><link name="base"/>']
    for i, name in enumerate(["head", *sorted(names)]):
        lines.append(
            f'<link name="{name}"/><joint name="{name}" type="continuous"><parent link="base"/><child link="{name}"/>'
            f'<origin xyz="{i} 0 0" rpy="0 0 0.7"/><axis xyz="{axis}"/><limit effort="1" velocity="1"/></joint>'
        )
    x, y, z = rng.normal(size=3)
    lines.append(
        f'<mobile type="{kind}" xyz="{x} {y} {z}" rpy="0 0 0.7" joints="{" ".join(names)}" params="{params}"/></robot>'
    )
    return "".join(lines)


@pytest.mark.parametrize(("kind", "axis"), [("differential", "0 -1 0"), ("mecanum", "0 1 0")])
def test_wheels_both_ways(rng, kind, axis):
    """The vendor's library expects these axes of the wheels."""
    text = wheels_file(kind, rng, axis)
    ours, theirs = rd.load_robot_from_urdf_data(text, "base"), vendor.load_robot_from_urdf_data(text, "base")
    base = ours.mobile_base
    assert base.joints == theirs.mobile_base.joints and base.params == theirs.mobile_base.params
    assert np.allclose(base.T, theirs.mobile_base.T) and base.type.name == theirs.mobile_base.type.name
    axes = rd.wheel_axes(base, ours.base_link)
    robot = vendor.Robot(theirs)
    state = robot.make_state([], base.joints)
    velocity, rates = rng.normal(size=3), rng.normal(size=len(base.joints))
    robot.compute_mobility_inverse_diff_kinematics(state, velocity)
    assert np.allclose(
        state.get_qdot()[: len(base.joints)], rd.wheel_matrix(base, axes, range(len(axes))) @ velocity, atol=1e-9
    )
    state.set_qdot(np.append(rates, 0.0))
    found = robot.compute_mobility_diff_kinematics(state)
    assert np.allclose(found, rd.velocity_matrix(base, axes, range(len(axes))) @ rates, atol=1e-9)


def test_wheels_of_the_other_sign_turn_backwards(rng):
    """The vendor's library ignores the axes of the wheels; here a wheel with the opposite axis has the opposite velocity."""
    velocity = rng.normal(size=3)
    seed = rng.integers(2**31)
    rates = {}
    for axis in ("0 -1 0", "0 1 0"):
        text = wheels_file("differential", np.random.default_rng(seed), axis)
        configuration = rd.load_robot_from_urdf_data(text, "base")
        axes = rd.wheel_axes(configuration.mobile_base, configuration.base_link)
        rates[axis] = rd.wheel_matrix(configuration.mobile_base, axes, range(len(axes))) @ velocity
        robot = vendor.Robot(vendor.load_robot_from_urdf_data(text, "base"))
        state = robot.make_state([], configuration.mobile_base.joints)
        robot.compute_mobility_inverse_diff_kinematics(state, velocity)
        assert np.allclose(state.get_qdot()[:2], rates["0 -1 0"], atol=1e-9)
    assert np.allclose(rates["0 -1 0"], -rates["0 1 0"], atol=1e-12)


EMPTY = '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
"""No mass. The vendor's library does not initialise the inertia of a link without ``<inertial>``."""


def random_file(rng, links: int = 10) -> str:
    """A robot of all types of joints with inertias, limits and capsules."""

    def numbers(*values) -> str:
        return " ".join(repr(float(x)) for x in values)

    def origin() -> str:
        return f'<origin xyz="{numbers(*rng.normal(size=3))}" rpy="{numbers(*rng.uniform(-1.5, 1.5, 3))}"/>'

    lines = ['<robot name="tree">']
    for i in range(links):
        entries = zip(
            ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"),
            (*rng.uniform(1, 2, 3), *rng.normal(scale=0.1, size=3)),
            strict=True,
        )
        inertia = " ".join(f'{name}="{float(x)!r}"' for name, x in entries)
        inertial = f'<inertial>{origin()}<mass value="{rng.uniform(0.5, 5.0)}"/><inertia {inertia}/></inertial>'
        shape = (
            f'<collision>{origin()}<geometry><capsule radius="{rng.uniform(0.1, 1.0)}" length="{rng.uniform(0.1, 1.0)}"'
            f' coltype="{rng.integers(9)}" colaffinity="{rng.integers(9)}"/></geometry></collision>'
        )
        lines.append(f'<link name="l{i}">{inertial if i % 4 else EMPTY}{shape * (i % 3)}</link>')
    kinds = rng.permutation(
        ["revolute", "prismatic", "continuous", "fixed", "floating", "planar", "revolute", "fixed", "prismatic"]
    )
    for i, kind in enumerate(kinds[: links - 1], 1):
        axis = rng.normal(size=3)
        position = (
            f'lower="{-rng.uniform(1, 2)}" upper="{rng.uniform(1, 2)}"' if kind in ("revolute", "prismatic") else ""
        )
        lines.append(
            f'<joint name="j{i}" type="{kind}"><parent link="l{rng.integers(i)}"/><child link="l{i}"/>{origin()}'
            f'<axis xyz="{numbers(*axis / np.linalg.norm(axis))}"/>'
        )
        if kind in ("revolute", "prismatic", "continuous"):
            acceleration = f'acceleration="{rng.uniform(1, 5)}"' if i % 2 else ""
            lines.append(
                f'<limit {position} velocity="{rng.uniform(1, 5)}" effort="{rng.uniform(1, 5)}" {acceleration}/>'
            )
        lines.append("</joint>")
    return "".join([*lines, "</robot>"])


def test_random_files(rng):
    for base in ("l0", "l1"):
        text = random_file(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = rd.load_robot_from_urdf_data(text, base)
        theirs = vendor.load_robot_from_urdf_data(text, base)
        assert ours.name == theirs.name
        for mine, other in zip(tree_of(ours.base_link), tree_of(theirs.base_link), strict=True):
            if len(mine) == 2:
                assert mine[0] == other[0] and len(mine[1]) == len(other[1])
                for shape, peer in zip(mine[1], other[1], strict=True):
                    assert all(np.allclose(x, y, atol=1e-12) for x, y in zip(shape, peer, strict=True))
            else:
                assert mine == other
        check_robot(ours, theirs, rng)


WRONG = [
    ("base link", lambda lib: lib.load_robot_from_urdf_data('<robot name="r"><link name="a"/></robot>', "b")),
    ("no file", lambda lib: lib.load_robot_from_urdf("/there/is/none.urdf", "a")),
    ("no XML", lambda lib: lib.load_robot_from_urdf_data("text", "a")),
    ("no text", lambda lib: lib.load_robot_from_urdf_data(None, "a")),
    ("broken", lambda lib: lib.load_robot_from_urdf_data("<robot>", "a")),
    ("link without name", lambda lib: lib.load_robot_from_urdf_data('<robot name="r"><link/></robot>', "a")),
    ("screw", lambda lib: lib.Joint.make("j", np.ones(5))),
    ("axis", lambda lib: lib.Joint.make_revolute("j", np.eye(4), np.ones(4))),
    ("pose", lambda lib: lib.Joint.make_revolute("j", np.eye(3))),
    ("link", lambda lib: lib.Joint.make_fixed("j").connect_links("a", "b")),
    ("name", lambda lib: lib.Link(3)),
    ("inertia", lambda lib: lib.Link("a", np.eye(5))),
    ("limit", lambda lib: lib.Joint.make_fixed("j").set_limit_q_lower("a")),
    ("constructor", lambda lib: lib.Joint()),
    ("constructor of a base", lambda lib: lib.MobileBase()),
    ("configuration", lambda lib: lib.RobotConfiguration("a", "b")),
    ("capsule", lambda lib: lib.GeomCapsule(0.1, 0.1)),
    ("negative bits", lambda lib: lib.GeomCapsule(0.1, 0.1, -1, 1)),
    ("many bits", lambda lib: lib.GeomCapsule(0.1, 0.1, 2**32, 1)),
    ("geom", lambda lib: lib.Geom(1, 1).get_type()),
    ("origin", lambda lib: lib.Collision("c").set_origin(np.eye(3))),
    ("result", lambda lib: setattr(lib.CollisionResult(), "distance", 1.0)),
    ("enumeration", lambda lib: lib.GeomType("x")),
]


@pytest.mark.parametrize("call", [call for _, call in WRONG], ids=[name for name, _ in WRONG])
def test_errors_are_of_the_kinds_of_the_vendor(call):
    with pytest.raises(Exception) as theirs:
        call(vendor)
    with pytest.raises(theirs.type):
        call(rd)
