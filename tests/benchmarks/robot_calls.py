"""Every public call of the robot package against the library whose API it has: ``python -m tests.benchmarks.robot_calls``.

Each row is a piece of code that both libraries run on a robot of 24 joints with two wheels, one capsule on each link and the same numbers.
The two take turns. Times are processor times of the thread [us]. A row with semicolons has several calls, whose times are added.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import deque
from itertools import cycle, repeat

os.environ["NEWTON_LIKE_THREADS"] = "1"

import numpy as np

import newton_like.robot as ours

ALLOWED = 5.0
"""Microseconds that a call may take longer than that of the vendor."""

TURN = 0.004
"""Seconds of a turn."""


def rows() -> list[str]:
    """The calls. NumPy arrays are T and E, poses; I, an inertia; S, a screw; a, an axis; p, a point; q, numbers of joints; g, an
    acceleration. Lists of the same numbers have the same names with an underscore."""
    fresh = "s = robot.make_state(links, joints); s.set_q(q); robot.compute_forward_kinematics(s); robot.compute_transformation(s, 0, 1)"
    found = [
        "sdk.Collision('c')", "col.get_geoms()", "col.get_origin()", "col.set_origin(T)", "col.set_origin(T_)",
        "c = sdk.Collision('c'); c.add_geom(geom)",
        "sdk.CollisionResult()", "near.distance", "near.link1", "near.link2", "near.position1", "near.position2",
        "geom.compute_minimum_distance(E, geom, E)", "geom.compute_minimum_distance(T32, other, T32)",
        "geom.compute_minimum_distance(whole_T, other, whole_T)", "geom.compute_minimum_distance(whole_T_, other, whole_T_)",
        "geom.compute_minimum_distance(robot.compute_transformation(state, 0, 3), other, robot.compute_transformation(state, 0, 5))",
        "geom.compute_minimum_distance(T, other, E)", "geom.compute_minimum_distance(T_, other, E_)", "geom.filter(other)",
        "geom.get_colaffinity()", "geom.get_coltype()", "geom.get_type()", "geom.get_start_point()", "geom.get_end_point()",
        "geom.get_radius()", "sdk.GeomCapsule(0.2, 0.05, 1, 1)", "sdk.GeomCapsule(height=0.2, radius=0.05, coltype=1, colaffinity=1)",
        "sdk.GeomCapsule(p, a, 0.05, 1, 1)", "sdk.GeomCapsule(p_, a_, 0.05, 1, 1)",
        "sdk.GeomCapsule(start_point=p, end_point=a, radius=0.05, coltype=1, colaffinity=1)",
        "sdk.GeomType(0)", "sdk.GeomType.Capsule", "kind.name", "kind.value", "int(kind)",
        "sdk.MobileBaseType(1)", "wheels.T", "wheels.joints", "wheels.params", "wheels.type", "wheels.left_wheel_idx",
        "wheels.right_wheel_idx", "wheels.wheel_base", "wheels.wheel_radius",
    ]  # fmt: skip
    for make in ("sdk.Joint.make_revolute", "sdk.Joint.make_prismatic"):
        found += [f"{make}('j'{x})" for x in ("", ", T", ", T_", ", T, a", ", T_, a_", ", T=T, axis=a", ", axis=a", ", axis=a_",
                                              ", axis=[0, 0, 1]", ", np.eye(4), a", ", T32, a", ", whole_T_, [0, 0, 1]")]  # fmt: skip
    found += ["sdk.Joint.make('j', S)", "sdk.Joint.make('j', S_)", "sdk.Joint.make_fixed('j')"]
    for part in ("", ", T", ", T_", ", T, E", ", T_, E_", ", T_pj=T, T_jc=E"):
        found.append(f"loose.disconnect(); loose.connect_links(one, two{part})")
    found += [f"joint.get_{x}()" for x in ("child_link", "parent_link", "name", "limit_torque")] + ["joint.is_fixed()"]
    for x in ("q", "qdot", "qddot"):
        found += [f"joint.get_limit_{x}_lower()", f"joint.get_limit_{x}_upper()", f"joint.set_limit_{x}(-1.0, 1.0)",
                  f"joint.set_limit_{x}(-1, 1)", f"joint.set_limit_{x}(low, high)", f"joint.set_limit_{x}_lower(-1.0)",
                  f"joint.set_limit_{x}_upper(1.0)", f"joint.set_limit_{x}_upper(high)"]  # fmt: skip
    found += ["joint.set_limit_torque(10.0)", "joint.set_limit_torque(10)", "joint.set_limit_torque(high)"]
    found += [
        "sdk.Link('l', np.zeros((6, 6)))", "sdk.Link('l', point)", "sdk.Link('l', far_point)", "sdk.Link('l', whole_I)",
        "sdk.Link('l', whole_I.tolist())",
        "sdk.Link('l')", "sdk.Link('l', I)", "sdk.Link('l', I_)", "sdk.Link('l', diagonal)", "sdk.Link('l', np.eye(6))",
        "link = sdk.Link('l'); link.add_collision(col)", "link.get_child_joint_list()", "link.get_collisions()", "link.get_name()",
        "link.get_parent_joint()",
        "sdk.RobotConfiguration()", "sdk.RobotConfiguration('r')", "sdk.RobotConfiguration('r', base)",
        "sdk.RobotConfiguration(name='r', base_link=base, mobile_base=wheels)", "conf.base_link", "conf.mobile_base", "conf.name",
        "conf.base_link = base", "conf.mobile_base = wheels", "conf.name = 'r'",
        "Robot(conf)", "sdk.load_robot_from_urdf_data(urdf, 'base')", "sdk.load_robot_from_urdf(path, 'base')",
        "robot.count_joints(base)", "robot.count_joints(base, True)", "robot.count_joints(base, include_fixed=True)",
        "robot.count_joints(base_link=base)", "Robot.count_joints(base)",
        "loose.disconnect(); loose.connect_links(one, two); robot.count_joints(base)",
        "loose.disconnect(); robot.count_joints(base); loose.connect_links(one, two)",
        "last.disconnect(); last.connect_links(above, below); robot.count_joints(root)",
        "frames.count_joints(frames_base)",
        "loose.disconnect(); loose.connect_links(one, two); frames.count_joints(frames_base)",
        "robot.get_base()", "robot.get_dof()", "robot.get_joint_names()", "robot.get_link_names()", "robot.get_number_of_joints()",
        "robot.get_link('l9')", "robot.get_link(name='l9')", "robot.get_link(state, 9)", "robot.get_link(state=state, index=9)",
        "robot.get_link(state, index)", "robot.make_state(links, joints)", "robot.make_state(links[:3], [])",
        "robot.make_state(links[:3], joints[:3])", "robot.make_state([], [])", "robot.make_state(links, [])",
        "robot.make_state([], joints)", "robot.make_state(link_names=links[:3], joint_names=joints)", "robot.make_state(links_, joints_)",
        "robot.get_joint_property(state, sdk.Joint.get_limit_torque)",
        "robot.get_joint_property(state, lambda j: j.get_limit_q_upper())",
    ]  # fmt: skip
    found += [f"robot.get_limit_{x}(state)" for x in (
        "q_lower", "q_upper", "qdot_lower", "qdot_upper", "qddot_lower", "qddot_upper", "torque")]  # fmt: skip
    found += [f"robot.compute_{x}(state)" for x in (
        "forward_kinematics", "diff_forward_kinematics", "2nd_diff_forward_kinematics", "gravity_term", "inverse_dynamics", "mass_matrix",
        "mobility_diff_kinematics")]  # fmt: skip
    for x in ("transformation", "space_jacobian", "body_jacobian", "body_velocity", "reflective_inertia"):
        found += [f"robot.compute_{x}(state, 0, 24)", f"robot.compute_{x}(state, 3, index)"]
        found += [f"robot.compute_{x}(state, reference_link_index=0, target_link_index=24)"]
    for pair in ("0, 5", "10, 12", "4, 3"):
        found += [
            f"robot.compute_reflective_inertia(state, {pair})",
            f"frames.compute_reflective_inertia(frames_state, {pair})",
        ]
    found += [
        "robot.compute_mass(state, 9)", "robot.compute_mass(state, index)", "robot.compute_center_of_mass(state, 0)",
        "robot.compute_center_of_mass(state, 0, 9)", "robot.compute_center_of_mass(state, 0, index)",
        "robot.compute_center_of_mass(state, 0, [3, 4, 5])", "robot.compute_center_of_mass(state, 0, every)",
        "frames.compute_center_of_mass(frames_state, 0, many)", "frames.compute_center_of_mass(frames_state, 0, many_)",
        "robot.compute_center_of_mass(state, 0, some)", "robot.compute_center_of_mass(state, 0, target_links=[3, 4, 5])",
        "robot.compute_center_of_mass_jacobian(state, 0)", "robot.compute_center_of_mass_jacobian(state, 0, 9)",
        "robot.compute_total_inertial(state, 0)", "robot.compute_total_inertial(state, 9)",
        "robot.compute_mobility_inverse_diff_kinematics(state, p2, 0.2)", "robot.compute_mobility_inverse_diff_kinematics(state, p2_, 0.2)",
        "robot.compute_mobility_inverse_diff_kinematics(state, p2, 1)",
        "robot.compute_mobility_inverse_diff_kinematics(state, p[1:], p[0])",
        "robot.compute_mobility_inverse_diff_kinematics(state, [p[1], p[2]], p[0])",
        "robot.compute_mobility_inverse_diff_kinematics(state, p2, np.float32(0.2))",
        "robot.compute_mobility_inverse_diff_kinematics(state, p[:2, None], 0.2)",
        "robot.compute_mobility_inverse_diff_kinematics(state, linear_velocity=p2, angular_velocity=0.2)",
        "robot.compute_mobility_inverse_diff_kinematics(state, p)", "robot.compute_mobility_inverse_diff_kinematics(state, p_)",
        "robot.compute_mobility_inverse_diff_kinematics(state, body_velocity=p)",
        "robot.detect_collisions_or_nearest_links(state)", "robot.detect_collisions_or_nearest_links(state, 1)",
        "robot.detect_collisions_or_nearest_links(state, 10)", "robot.detect_collisions_or_nearest_links(state, collision_threshold=1)",
        "state.base_link_idx", "state.get_base_link_idx()", "state.get_joint_names()", "state.get_link_names()", "state.joint_names",
        "state.link_names",
    ]  # fmt: skip
    for x in ("q", "qdot", "qddot", "tau"):
        found += [
            f"state.get_{x}()",
            f"state.{x}",
            f"state.set_{x}(q)",
            f"state.set_{x}(q_)",
            f"state.{x} = q",
            f"state.{x} = q_",
        ]
        found += [f"state.set_{x}(single)", f"state.set_{x}(column)", f"state.set_{x}(whole)"]
    for x in ("V0", "Vdot0"):
        found += [f"state.{x}", f"state.set_{x}(g)", f"state.set_{x}(g_)", f"state.{x} = g", f"state.{x} = g_"]
    found += ["state.set_gravity(g)", "state.set_gravity(g_)", "state.set_gravity([0, 0, 0, 0, 0, -9.81])"]
    update = "robot.compute_forward_kinematics(state)"
    moving = f"{update}; robot.compute_diff_forward_kinematics(state)"
    found += [
        f"state.set_q(q); {update}; robot.compute_transformation(state, 0, 24)",
        f"state.set_q(q_); {update}; robot.compute_transformation(state, 0, 24)",
        f"state.set_q(q); {update}; robot.compute_body_jacobian(state, 0, 24)",
        f"state.set_q(q); {update}; robot.compute_mass_matrix(state)",
        f"state.set_q(q); {update}; robot.compute_center_of_mass(state, 0)",
        f"state.set_q(q); {update}; robot.detect_collisions_or_nearest_links(state, 1)",
        f"state.set_q(q); state.set_qdot(q); {moving}; robot.compute_body_velocity(state, 0, 24)",
        f"state.set_q(q); state.set_qdot(q); state.set_qddot(q); {moving}; robot.compute_2nd_diff_forward_kinematics(state); "
        "robot.compute_inverse_dynamics(state); state.get_tau()",
        "s = robot.make_state(links, joints); s.set_q(q); robot.compute_forward_kinematics(s); robot.compute_transformation(s, 0, 24)",
        "s = robot.make_state(links, joints); s.set_q(q); robot.compute_forward_kinematics(s); "
        "robot.detect_collisions_or_nearest_links(s, 1)",
        # the hundred last states live
        f"{fresh}; ring.append(s)",
        f"{fresh.replace('joints', 'next(permuted)', 1)}",
    ]  # fmt: skip
    return found


def urdf(frames: int = 0) -> str:
    """A base with two wheels and a chain of 22 joints, and so many fixed frames on each link."""
    inertial = (
        '<inertial><origin xyz="0.02 0.01 0.03"/><mass value="1.5"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.001" ixz="0" iyz="0"/></inertial>'
    )
    shape = (
        '<collision><geometry><capsule radius="0.03" length="0.1" coltype="1" colaffinity="1"/></geometry></collision>'
    )
    text = [f'<robot name="r"><link name="base">{inertial}</link>']
    for i in range(24):
        side = (-0.3 if i == 0 else 0.3) if i < 2 else 0.0
        parent = "base" if i < 3 else f"l{i - 1}"
        where = f'xyz="0 {side} 0"' if i < 2 else 'xyz="0.1 0 0.15" rpy="0.3 0.2 0.1"'
        axis = "0 1 0" if i < 2 else "0 0 1"
        kind = "prismatic" if i % 7 == 6 else "revolute"
        text.append(
            f'<link name="l{i}">{inertial}{shape}</link><joint name="j{i}" type="{kind}"><origin {where}/><parent link="{parent}"/>'
            f'<child link="l{i}"/><axis xyz="{axis}"/><limit lower="-3" upper="3" velocity="10" effort="100"/></joint>'
        )
        for k in range(frames):
            text.append(
                f'<link name="l{i}_{k}"/><joint name="j{i}_{k}" type="fixed"><origin {where}/><parent link="l{i}"/>'
                f'<child link="l{i}_{k}"/><axis xyz="0 0 1"/><limit lower="0" upper="0" velocity="0" effort="0"/></joint>'
            )
    text.append('<mobile type="differential" xyz="0 0 0" rpy="0 0 0" joints="j0 j1" params="0.6 0.1"/></robot>')
    return "".join(text)


def names(sdk, path: str) -> dict:
    """Things that rows use."""
    rng = np.random.default_rng(5)
    text = urdf()
    conf = sdk.load_robot_from_urdf_data(text, "base")
    Robot = sdk.Robot if sdk is ours else sdk.Robot_24
    robot = Robot(conf)
    links, joints = ["base", *(f"l{i}" for i in range(24))], [f"j{i}" for i in range(24)]
    state = robot.make_state(links, joints)
    q, g, c, s = rng.normal(size=24), np.array([0.0, 0.0, 0.0, 0.0, 0.0, -9.81]), np.cos(0.3), np.sin(0.3)
    T = np.array([[c, -s, 0.0, 0.1], [s, c, 0.0, 0.2], [0.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.0, 1.0]])
    C = np.array([[0.0, -0.03, 0.01], [0.03, 0.0, -0.02], [-0.01, 0.02, 0.0]])
    I = np.block([[np.diag([0.02, 0.03, 0.025]) + 1.5 * C @ C.T, 1.5 * C], [1.5 * C.T, 1.5 * np.eye(3)]])
    S, a, p = np.array([0.0, 0.0, 1.0, 0.1, 0.2, 0.0]), np.array([0.36, 0.48, 0.8]), np.array([0.2, 0.5, 0.1])
    state.set_q(q)
    state.set_qdot(q)
    state.set_gravity(g)
    robot.compute_forward_kinematics(state)
    robot.compute_diff_forward_kinematics(state)
    robot.compute_2nd_diff_forward_kinematics(state)
    base = robot.get_base()
    one, two, loose = sdk.Link("one"), sdk.Link("two"), sdk.Joint.make_revolute("loose")
    loose.connect_links(one, two)
    # another tree, whose last joint is taken off and put back
    tree = [sdk.Link(f"l{i}") for i in range(25)]
    for i in range(24):
        last = sdk.Joint.make_revolute(f"j{i}")
        last.connect_links(tree[i], tree[i + 1])
    geom, other = sdk.GeomCapsule(0.2, 0.05, 1, 1), sdk.GeomCapsule(a, p, 0.05, 1, 1)
    col, near = sdk.Collision("c"), robot.detect_collisions_or_nearest_links(state, 1)[0]
    col.add_geom(geom)
    frames = Robot(sdk.load_robot_from_urdf_data(urdf(2), "base"))
    every = [*links, *(f"l{i}_{k}" for i in range(24) for k in range(2))]
    frames_state = frames.make_state(every, joints)
    frames_state.set_q(q)
    frames.compute_forward_kinematics(frames_state)
    far = 2.0 * np.block([[C @ C.T, C], [C.T, np.eye(3)]])
    whole_T = np.eye(4, dtype=int)
    whole_T[0, 3] = 1
    ring, orders = deque(maxlen=100), [rng.permutation(joints).tolist() for _ in range(40)]
    for i in range(200):
        ring.append(robot.make_state(links, joints if i < 100 else orders[i % 40]))
        robot.compute_forward_kinematics(ring[-1])
        robot.compute_transformation(ring[-1], 0, 1)
    known = {
        "frames": frames, "frames_state": frames_state, "frames_base": frames.get_base(), "many": np.arange(73), "many_": list(range(73)),
        "point": np.diag([0.0, 0, 0, 1, 1, 1]), "far_point": far, "whole_I": np.diag([1, 1, 1, 2, 2, 2]), "T32": T.astype(np.float32),
        "whole_T": whole_T, "whole_T_": whole_T.tolist(), "permuted": cycle(orders), "ring": ring,
        "sdk": sdk, "np": np, "conf": conf, "Robot": Robot, "robot": robot, "state": state, "links": links, "joints": joints,
        "links_": tuple(links), "joints_": tuple(joints), "T": T, "E": np.eye(4), "I": I, "S": S,
        "diagonal": np.diag([0.1, 0.1, 0.1, 2.0, 2.0, 2.0]), "a": a, "p": p, "p2": p[:2].copy(), "q": q, "g": g,
        "single": q.astype(np.float32), "column": q[:, None].copy(),
        "whole": np.ones(24, dtype=int), "low": np.float64(-1.0), "high": np.float64(1.0), "index": np.int64(9),
        "every": list(range(25)), "some": np.array([3, 4, 5]), "base": base, "one": one, "two": two, "loose": loose,
        "last": last, "above": tree[-2], "below": tree[-1], "root": tree[0], "geom": geom, "other": other, "col": col, "near": near,
        "kind": geom.get_type(), "wheels": conf.mobile_base, "joint": sdk.Joint.make_revolute("j"), "link": robot.get_link("l9"),
        "urdf": text, "path": path,
    }  # fmt: skip
    for x in ("T", "E", "I", "S", "a", "p", "p2", "q", "g"):
        known[f"{x}_"] = known[x].tolist()
    return known


def repeated(code: str, known: dict):
    """A function that runs a row so many times and returns the processor time for each [us]."""
    lines = (
        "def run(count, clock):",
        " begin = clock()",
        " for _ in repeat(None, count):",
        f"  {code}",
        " return clock() - begin",
    )
    space = {**known, "repeat": repeat}
    exec("\n".join(lines), space)
    return lambda count: space["run"](count, time.thread_time) / count * 1e6


def measured(code: str, theirs: dict, mine: dict, rounds: int) -> tuple[float, ...] | str:
    """Medians and least times of both sides."""
    sides = [repeated(code, known) for known in (theirs, mine)]
    counts, times = [], ([], [])
    for name, side in zip(("vendor", "newton_like"), sides, strict=True):
        try:
            side(1)
            counts.append(max(1, int(TURN * 1e6 / max(side(3), 0.05))))
        except Exception as error:
            return f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:60]}"
    for _ in range(rounds):
        for side, count, found in zip(sides, counts, times, strict=True):
            found.append(side(count))
    return tuple(f(t) for f in (np.median, min) for t in times)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="rows with this text")
    parser.add_argument("--over", type=float, default=-1e9, help="rows whose difference of medians is above this [us]")
    options = parser.parse_args(arguments)
    try:
        import rby1_sdk.dynamics as vendor
    except ImportError:
        sys.exit("rby1_sdk is not installed; install the extra 'peers'")
    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(urdf())
        file.flush()
        theirs, mine = names(vendor, file.name), names(ours, file.name)
        print("| call | vendor | newton_like | difference | difference of the least |\n| --- | --- | --- | --- | --- |")
        for code in rows():
            if options.only not in code:
                continue
            found = measured(code, theirs, mine, options.rounds)
            if isinstance(found, str):
                print(f"| `{code}` | {found} |", flush=True)
                continue
            a, b, least_a, least_b = found
            late = " (!)" if min(b - a, least_b - least_a) > ALLOWED else ""
            if b - a > options.over:
                print(f"| `{code}` | {a:.2f} | {b:.2f} | {b - a:+.2f} | {least_b - least_a:+.2f}{late} |", flush=True)


if __name__ == "__main__":
    main()
