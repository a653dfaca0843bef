"""reduce: a robot with some joints locked moves as the whole robot does with those joints locked."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointType, ModelBuilder, ShapeConfig, dynamics, eval_mass_matrix
from newton_like.model.columns import COLUMNS
from newton_like.types import VelRepr
from tests.support import reference
from tests.support.dynamics_cases import Case
from tests.support.random_trees import random_state, random_transform, random_tree

# Computed in float64 from numbers of order one to a hundred in some hundred operations.
CLOSE = dict(rtol=1e-10, atol=1e-10)


def robot(rng, floating: bool | None = None, joints: int = 9) -> ModelBuilder:
    """A random tree with shapes and sites, at random coordinates."""
    tree = random_tree(rng, joints=joints, floating=floating)
    tree.gravity = tuple(rng.normal(size=3))
    for body in range(joints):
        tree.add_shape_sphere(body, xform=random_transform(rng), cfg=ShapeConfig(density=0), label=f"sphere_{body}")
        tree.add_site(body, xform=random_transform(rng), label=f"site_{body}")
    q, qd = random_state(tree.finalize("cpu", dtype=wp.float64), rng)
    tree.joint_q, tree.joint_qd = q.tolist(), qd.tolist()
    return tree


def coords(builder, joint) -> slice:
    starts = [*builder.joint_q_start, builder.joint_coord_count]
    return slice(starts[joint], starts[joint + 1])


def dofs(builder, joint) -> slice:
    starts = [*builder.joint_qd_start, builder.joint_dof_count]
    return slice(starts[joint], starts[joint + 1])


def picked(builder, joints, span) -> np.ndarray:
    """Indices of all coordinates or dofs of joints."""
    return np.concatenate([np.arange(10**6)[span(builder, j)] for j in joints] + [np.zeros(0, int)]).astype(int)


def frames(builder, q) -> dict[str, np.ndarray]:
    """Poses of all shapes and sites in the world, by label."""
    model = builder.finalize("cpu", dtype=wp.float64)
    poses = [reference.pose_matrix(x) for x in reference.body_poses(reference.Tree.from_model(model), q)] + [np.eye(4)]
    places = [reference.pose_matrix(np.array(x)) for x in builder.shape_transform]
    return {
        label: poses[body] @ place
        for label, body, place in zip(builder.shape_label, builder.shape_body, places, strict=True)
    }


def native_map(whole, less, kept, q, qd):
    """T and drift of ``qd_whole = T qd`` and its derivative ``T qdd + drift``, by the kept joints.

    The velocity of a FREE joint is that of the centre of mass of its link, which has moved.
    """
    T, drift = np.eye(less.joint_dof_count), np.zeros(less.joint_dof_count)
    for new, old in enumerate(kept):
        if whole.joint_type[old] in (JointType.FREE, JointType.DISTANCE):
            shift = np.array(whole.body_com[whole.joint_child[old]]) - less.body_com[less.joint_child[new]]
            turn = Rotation.from_quat(q[coords(whole, old)][3:]) * Rotation.from_quat(whole.joint_X_c[old][3:]).inv()
            at = dofs(less, new).start
            T[at : at + 3, at + 3 : at + 6] = -reference.cross_matrix(turn.apply(shift))
            w = qd[at + 3 : at + 6]
            drift[at : at + 3] = np.cross(w, np.cross(w, turn.apply(shift)))
    return T, drift


@pytest.mark.slow
@pytest.mark.parametrize("floating", [True, False, None])
def test_it_moves_as_the_whole_with_joints_locked(rng, by_numpy, floating):
    """Poses, mass matrix, bias forces, momentum and energy; joints by label or by index, locked at given or initial positions."""
    for _ in range(3):
        whole = robot(rng, floating)
        movable = [j for j in range(9) if whole.joint_type[j] != JointType.FIXED]
        floats = (JointType.FREE, JointType.DISTANCE)
        base = [j for j in movable if whole.joint_type[j] in floats and whole.joint_parent[j] < 0]
        kept = sorted({*base, rng.choice(movable), *(j for j in movable if rng.random() < 0.4)})
        q = np.array(whole.joint_q)
        other, _ = random_state(whole.finalize("cpu", dtype=wp.float64), rng)
        locked = {}
        for j in set(movable) - set(kept):
            if rng.random() < 0.5:
                q[coords(whole, j)] = other[coords(whole, j)]
                value = other[coords(whole, j)]
                locked[j if rng.random() < 0.5 else whole.joint_label[j]] = value[0] if len(value) == 1 else value
        names = [whole.joint_label[j] if rng.random() < 0.5 else j for j in kept if j not in base or rng.random() < 0.5]
        before = everything(whole)
        less = dynamics.reduce(whole, names, locked)
        assert everything(whole) == before
        assert less.joint_label == [whole.joint_label[j] for j in kept]
        children = sorted(whole.joint_child[j] for j in kept)
        assert less.body_label == [whole.body_label[b] for b in children]

        few, free = q[picked(whole, kept, coords)], picked(whole, kept, dofs)
        small, large = frames(less, few), frames(whole, q)
        assert list(small) == list(large)
        for label, pose in large.items():
            np.testing.assert_allclose(small[label], pose, **CLOSE)

        qd = rng.normal(size=less.joint_dof_count)
        T, drift = native_map(whole, less, kept, q, qd)
        all_qd = np.zeros(whole.joint_dof_count)
        all_qd[free] = T @ qd
        a = Case(whole.finalize("cpu", dtype=wp.float64), q, all_qd)
        b = Case(less.finalize("cpu", dtype=wp.float64), few, qd)
        M = a.get(eval_mass_matrix)[np.ix_(free, free)]
        np.testing.assert_allclose(b.get(eval_mass_matrix), T.T @ M @ T, **CLOSE)
        h = a.get(dynamics.bias_forces)[free]
        np.testing.assert_allclose(b.get(dynamics.bias_forces), T.T @ (h + M @ drift), **CLOSE)
        np.testing.assert_allclose(b.get(dynamics.kinetic_energy), a.get(dynamics.kinetic_energy), **CLOSE)
        momenta = (x.get(dynamics.total_momentum, repr=VelRepr.INERTIAL) for x in (a, b))
        np.testing.assert_allclose(*momenta, **CLOSE)


def everything(builder) -> dict:
    """All lists of a builder."""
    return {column.name: list(getattr(builder, column.name)) for column in COLUMNS}


def test_initial_velocities_are_of_the_same_motion(rng):
    """With locked joints at rest, bodies that are left have the velocities they had, seen at the link's origin."""
    whole = robot(rng, True)
    kept = [j for j in range(1, 9) if rng.random() < 0.5 and whole.joint_type[j] != JointType.FIXED]
    for j in range(1, 9):
        if j not in kept:
            whole.joint_qd[dofs(whole, j)] = [0.0] * sum(whole.joint_dof_dim[j])
    less = dynamics.reduce(whole, kept)

    def origins(builder):
        tree = reference.Tree.from_model(builder.finalize("cpu", dtype=wp.float64))
        q, qd = np.array(builder.joint_q), np.array(builder.joint_qd)
        v, w = np.split(reference.body_velocities(tree, q, qd), 2, axis=1)
        arms = Rotation.from_quat(reference.body_poses(tree, q)[:, 3:]).apply(tree.body_com)
        return dict(zip(builder.body_label, np.hstack([v - np.cross(w, arms), w]), strict=True))

    expected = origins(whole)
    for label, velocity in origins(less).items():
        np.testing.assert_allclose(velocity, expected[label], **CLOSE)


def chain() -> ModelBuilder:
    """base - shoulder - elbow - wrist, and a finger that follows the elbow."""
    builder = ModelBuilder()
    parent, joints = -1, []
    for name in ("shoulder", "elbow", "wrist", "finger"):
        link = builder.add_link(mass=1.0, com=(0.1, 0.0, 0.0), inertia=np.eye(3) * 0.01, label=f"{name}_link")
        place = (0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        joints.append(builder.add_joint_revolute(parent, link, axis="z", parent_xform=place, label=name))
        parent = link
    builder.add_articulation(joints, label="arm")
    builder.set_joint_mimic("finger", "elbow", coeffs=(0.1, 2.0))
    return builder


def test_followers_are_locked_where_their_leaders_put_them():
    less = dynamics.reduce(chain(), ["shoulder", "wrist"], {"elbow": 0.5})
    assert less.joint_label == ["shoulder", "wrist"] and less.joint_mimic_joint == [-1, -1]
    # of three links 0.3 m apart, the last one turned by 0.1 + 2 * 0.5
    tip = less.body_com[1]
    c, s = np.cos(1.1), np.sin(1.1)
    np.testing.assert_allclose(tip, [(0.1 + 0.3 + 0.1 * c) / 2, 0.1 * s / 2, 0.0], atol=1e-12)
    with pytest.raises(ValueError, match=r"'finger' \(index 3\).*\[0.0\].*'elbow'.*\[1.1\]"):
        dynamics.reduce(chain(), ["shoulder", "wrist"], {"elbow": 0.5, "finger": 0.0})
    with pytest.raises(ValueError, match=r"'finger' \(index 3\).*'elbow'.*\(index 1\)"):
        dynamics.reduce(chain(), ["elbow"])
    kept = dynamics.reduce(chain(), ["elbow", "finger"])
    assert kept.joint_mimic_joint == [-1, 0] and kept.joint_mimic_coeffs[1] == (0.1, 2.0)


def test_without_a_list_only_what_is_named_is_locked():
    less = dynamics.reduce(chain(), locked_positions={"wrist": 0.3})
    assert less.joint_label == ["shoulder", "elbow", "finger"]
    assert less.joint_q == [0.0] * 3
    np.testing.assert_allclose(less.joint_X_p[2][3:], [0.0, 0.0, np.sin(0.15), np.cos(0.15)], atol=1e-12)


def test_a_label_stands_for_all_its_joints():
    """A scene of two worlds keeps the same joints in both."""
    scene = ModelBuilder()
    scene.replicate(chain(), 2)
    less = dynamics.reduce(scene, ["shoulder"], {"elbow": 0.2})
    assert less.joint_label == ["shoulder"] * 2
    assert less.world_count == 2
    model = less.finalize("cpu")
    assert model.articulation_count == 2 and model.joint_dof_count == 2
    np.testing.assert_array_equal(model.body_mass.numpy(), [4.0, 4.0])


def test_loops_stay_closed():
    """A loop joint connects the bodies that its links were merged into, with the same pose."""
    builder = chain()
    loop = builder.add_joint_ball(
        0, 3, parent_xform=(0, 0.2, 0, 0, 0, 0, 1), child_xform=(0, 0, 0.1, 0, 0, 0, 1), label="rod"
    )
    less = dynamics.reduce(builder, ["shoulder", "elbow", "finger"], {"wrist": 0.0})
    assert less.joint_label == ["shoulder", "elbow", "finger", "rod"]
    assert less.joint_articulation == [0, 0, 0, -1]
    assert (less.joint_parent[3], less.joint_child[3]) == (0, 2)
    assert less.joint_X_c[3] == builder.joint_X_c[loop]
    with pytest.raises(ValueError, match=r"joint 'rod' \(index 4\)"):
        dynamics.reduce(builder, ["shoulder"], {"rod": (0, 0, 0, 1)})


def test_short_names_mean_the_same_as_whole_labels():
    """In every articulation of a scene; ambiguous ones are refused."""
    text = '<robot name="{}"><link name="base"/>' + "".join(
        f'<link name="l{i}"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
        f'<joint name="j{i}" type="continuous"><parent link="{f"l{i - 1}" if i else "base"}"/><child link="l{i}"/></joint>'
        for i in range(3)
    )
    builder = ModelBuilder()
    for name in ("left", "right"):
        builder.add_urdf(text.format(name) + "</robot>")
    for kept, whole in ((["j1"], ["left/j1", "right/j1"]), (["left/j1", "j2"], ["left/j1", "left/j2", "right/j2"])):
        less, same = dynamics.reduce(builder, kept), dynamics.reduce(builder, whole)
        assert less.joint_label == same.joint_label == whole
        assert less.joint_X_p == same.joint_X_p
    turned = dynamics.reduce(builder, ["j1"], {"j2": 0.5})
    assert turned.shape_count == 0
    assert turned.body_inertia == dynamics.reduce(builder, ["j1"], {"left/j2": 0.5, "right/j2": 0.5}).body_inertia
    builder.joint_label[1] = "left/a/j2"
    with pytest.raises(ValueError, match=r"'j2' is ambiguous.*left/a/j2.*left/j2"):
        dynamics.reduce(builder, ["j2"])
    with pytest.raises(KeyError, match="2"):  # no part of a label between slashes
        dynamics.reduce(builder, ["2"])


def test_wrong_arguments_are_refused(rng):
    builder = chain()
    with pytest.raises(KeyError, match=r"joint.*'knee'.*'shoulder'.*'elbow'"):
        dynamics.reduce(builder, ["knee"])
    with pytest.raises(KeyError, match=r"joint.*'knee'"):
        dynamics.reduce(builder, ["shoulder"], {"knee": 0.0})
    with pytest.raises(IndexError, match="joint 4"):
        dynamics.reduce(builder, [4])
    with pytest.raises(TypeError, match=r"joints_to_keep.*'shoulder'"):
        dynamics.reduce(builder, "shoulder")
    with pytest.raises(TypeError, match=r"reduce\(\).*joints_to_keep.*locked_positions"):
        dynamics.reduce(builder)
    with pytest.raises(TypeError, match=r"ModelBuilder.*finalize\(\).*Model"):
        dynamics.reduce(builder.finalize("cpu"), ["shoulder"])
    with pytest.raises(ValueError, match=r"joint 'wrist' \(index 2\).*joints_to_keep.*locked_positions"):
        dynamics.reduce(builder, ["wrist"], {2: 0.0})
    with pytest.raises(ValueError, match=r"position.*'wrist'.*\(index 2\).*1.*2"):
        dynamics.reduce(builder, ["shoulder"], {"wrist": (0.0, 1.0)})
    with pytest.raises(ValueError, match=r"position.*'wrist'.*\(index 2\).*nan"):
        dynamics.reduce(builder, ["shoulder"], {"wrist": np.nan})
    with pytest.raises(TypeError, match="locked_positions"):
        dynamics.reduce(builder, ["shoulder"], [0.0])
    ball = random_tree(rng, joints=2, types=(JointType.BALL,))
    with pytest.raises(ValueError, match=r"quaternion.*length 2\b"):
        dynamics.reduce(ball, [0], {1: (0, 0, 0, 2)})
