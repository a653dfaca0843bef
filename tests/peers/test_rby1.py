"""A URDF as rby1-sdk reads it: poses of the links, masses, mass matrix and weight, on random trees and the quadruped."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import assets
from tests.support.reference import pose_matrix

dynamics = pytest.importorskip("rby1_sdk.dynamics", reason="rby1-sdk is not installed (extra 'peers')")

# Limits of continuous joints, which rby1-sdk requires and newton_like does not use.
pytestmark = pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")

GRAVITY = 9.81
KINDS = ("revolute", "prismatic", "continuous", "fixed")


def random_urdf(rng, links: int = 8) -> str:
    """A tree of revolute, prismatic, continuous and fixed joints, with random frames, axes and inertias."""

    def numbers(values) -> str:
        return " ".join(repr(float(x)) for x in values)

    def origin() -> str:
        return f'<origin xyz="{numbers(rng.normal(scale=0.3, size=3))}" rpy="{numbers(rng.uniform(-1.5, 1.5, 3))}"/>'

    lines = ['<robot name="tree">']
    for i in range(links):
        # Points of mass make an inertia that a body can have.
        points = rng.normal(scale=0.1, size=(5, 3))
        moments = sum(np.dot(p, p) * np.eye(3) - np.outer(p, p) for p in points)
        entries = " ".join(f'i{"xyz"[a]}{"xyz"[b]}="{float(moments[a, b])!r}"' for a in range(3) for b in range(a, 3))
        lines.append(
            f'<link name="l{i}"><inertial>{origin()}<mass value="{float(rng.uniform(0.5, 5.0))!r}"/>'
            f"<inertia {entries}/></inertial></link>"
        )
    for i in range(1, links):
        # Each kind at least once.
        kind = KINDS[i - 1] if i <= len(KINDS) else rng.choice(KINDS)
        axis = rng.normal(size=3)
        # rby1-sdk requires axis and limit in every joint.
        lines.append(
            f'<joint name="j{i}" type="{kind}"><parent link="l{rng.integers(i)}"/><child link="l{i}"/>{origin()}'
            f'<axis xyz="{numbers(axis / np.linalg.norm(axis))}"/>'
            '<limit lower="-3" upper="3" effort="100" velocity="100"/></joint>'
        )
    return "\n".join([*lines, "</robot>"])


def bare_quadruped() -> str:
    """The project's quadruped without shapes, and with axes also on fixed joints, which rby1-sdk requires."""
    root = ElementTree.parse(assets.path("quadruped.urdf")).getroot()
    for link in root.findall("link"):
        for shape in link.findall("visual") + link.findall("collision"):
            link.remove(shape)
    for joint in root.findall("joint"):
        if joint.find("axis") is None:
            ElementTree.SubElement(joint, "axis", xyz="1 0 0")
    return ElementTree.tostring(root, "unicode")


class Rby1:
    """A robot in rby1-sdk, with its root link at the origin."""

    def __init__(self, text: str, root: str, joints: list[str]):
        self.robot = dynamics.Robot(dynamics.load_robot_from_urdf_data(text, root))
        self.links = [root, *sorted(set(self.robot.get_link_names()) - {root})]
        self.state = self.robot.make_state(self.links, joints)

    def pose(self, link: str) -> np.ndarray:
        """Of a link in the root, ``[4, 4]``, at the coordinates of the last call of `forces`."""
        return self.robot.compute_transformation(self.state, 0, self.links.index(link))

    def mass(self) -> float:
        """Of all links."""
        return sum(self.robot.compute_mass(self.state, i) for i in range(len(self.links)))

    def forces(self, q: np.ndarray, qdd: np.ndarray, gravity: float) -> np.ndarray:
        """Of the joints, which give a robot at rest these accelerations."""
        robot, state = self.robot, self.state
        # Angular first there.
        state.set_gravity(np.array([0.0, 0.0, 0.0, 0.0, 0.0, -gravity]))
        state.set_q(q)
        state.set_qdot(np.zeros_like(q))
        state.set_qddot(qdd)
        robot.compute_forward_kinematics(state)
        robot.compute_diff_forward_kinematics(state)
        robot.compute_2nd_diff_forward_kinematics(state)
        robot.compute_inverse_dynamics(state)
        return np.array(state.get_tau())


@pytest.mark.parametrize("which", ["tree", "quadruped"])
def test_rby1_reads_the_same_robot(rng, which):
    text, root = (random_urdf(rng), "l0") if which == "tree" else (bare_quadruped(), "trunk")
    builder = nl.ModelBuilder()
    robot = builder.add_urdf(text)
    model = builder.finalize("cpu", dtype=wp.float64)
    dofs = {name: builder.joint_qd_start[j] for name, j in robot.joints.items() if builder.joint_dof_dim[j] != (0, 0)}
    joints = sorted(dofs, key=dofs.get)
    theirs = Rby1(text, root, joints)
    assert theirs.mass() == pytest.approx(sum(builder.body_mass), rel=1e-12)

    state = model.state()
    for _ in range(3):
        q = rng.uniform(-1.5, 1.5, len(joints))
        state.joint_q.assign(q)
        nl.eval_fk(model, state.joint_q, state.joint_qd, state)
        weight = theirs.forces(q, np.zeros_like(q), GRAVITY)
        poses = state.body_q.numpy()
        # Chains of at most eight frames of a size of one, in double precision: some 1e-15.
        for link, body in robot.links.items():
            np.testing.assert_allclose(pose_matrix(poses[body]), theirs.pose(link), atol=1e-12, err_msg=link)
        columns = [theirs.forces(q, unit, 0.0) for unit in np.eye(len(q))]
        mass_matrix = nl.eval_mass_matrix(model, state).numpy()[0]
        np.testing.assert_allclose(mass_matrix, np.transpose(columns), atol=1e-12 * np.abs(columns).max())
        # The joint forces that support the weight: m g at the centres of mass, through the transposed Jacobian.
        jacobian = nl.eval_jacobian(model, state).numpy()[0].reshape(-1, 6, len(q))
        carried = GRAVITY * np.einsum("b,bq->q", model.body_mass.numpy(), jacobian[:, 2])
        np.testing.assert_allclose(carried, weight, atol=1e-12 * np.abs(weight).max())
