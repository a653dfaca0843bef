"""Real robot files: everything the importer reads, against pinocchio reading the same file."""

import warnings

import numpy as np
import pytest
import warp as wp

from newton_like.importers.urdf import UrdfWarning
from newton_like.model.builder.builder import ModelBuilder
from newton_like.types import MAXVAL, GeoType, JointType
from tests.support.paths import ROBOTS, ROOT
from tests.support.reference import Tree, body_poses, pose_matrix

pin = pytest.importorskip("pinocchio")

FILES = sorted(ROBOTS.rglob("*.urdf"))
ASSETS = sorted((ROOT / "assets").glob("*.urdf"))

pytestmark = pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")

every_robot = pytest.mark.parametrize("path", [*ASSETS, *FILES], ids=lambda path: path.stem)


def test_the_example_robots_are_there():
    if not ROBOTS.is_dir():
        pytest.skip(f"{ROBOTS} is not there; it holds the example robots and comes with the project's workplace")
    assert len(FILES) == 17


def load(path, collapse, floating=True):
    builder = ModelBuilder()
    # hide_visuals: hundreds of visual meshes are read once, in the test about shapes.
    robot = builder.add_urdf(path, floating=floating, collapse_fixed_joints=collapse, hide_visuals=True)
    return builder, robot


def load_pinocchio(path):
    return pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())


@every_robot
def test_links_joints_and_total_mass(path):
    builder, robot = load(path, collapse=False)
    model = load_pinocchio(path)
    bodies = [frame.name for frame in model.frames if frame.type == pin.FrameType.BODY]
    assert sorted(robot.links) == sorted(bodies)
    fixed = [
        frame.name for frame in model.frames if frame.type == pin.FrameType.FIXED_JOINT and frame.name != "universe"
    ]
    # pinocchio's joints start with the universe and the free flyer.
    assert sorted(robot.joints) == sorted([*list(model.names)[2:], *fixed])
    assert builder.body_count == len(bodies) and builder.joint_count == len(robot.joints) + 1
    # Sums of 130 numbers in another order.
    assert sum(builder.body_mass) == pytest.approx(pin.computeTotalMass(model), rel=1e-13)


@every_robot
def test_every_link_has_the_mass_that_its_file_states(path):
    """With the file read by the plain XML parser of Python's library."""
    import xml.etree.ElementTree as ElementTree

    builder, robot = load(path, collapse=False)
    for link in ElementTree.parse(path).getroot().findall("link"):
        mass = link.find("inertial/mass")
        expected = 0.0 if mass is None else float(mass.get("value"))
        assert builder.body_mass[robot.links[link.get("name")]] == expected


@every_robot
def test_welded_bodies_have_the_inertia_of_pinocchio(path):
    """pinocchio always merges the links of fixed joints, so it gives mass, centre and inertia of all collapsed bodies."""
    builder, robot = load(path, collapse=True)
    model = load_pinocchio(path)
    assert builder.body_count == model.njoints - 1
    for joint, theirs in zip(list(model.names)[1:], list(model.inertias)[1:], strict=True):
        body = builder.joint_child[robot.base_joint if joint == "root_joint" else robot.joints[joint]]
        assert builder.body_mass[body] == pytest.approx(theirs.mass, rel=1e-12, abs=1e-15)
        if theirs.mass == 0.0:
            continue
        size = np.sqrt(np.trace(theirs.inertia) / theirs.mass) + np.linalg.norm(theirs.lever)
        assert np.allclose(builder.body_com[body], theirs.lever, atol=1e-12 * size)
        # Moments are differences of terms of size m r^2 with r up to a metre.
        assert np.allclose(builder.body_inertia[body], theirs.inertia, atol=1e-12 * theirs.mass * (size**2 + 1.0))


@every_robot
@pytest.mark.parametrize("collapse", [False, True], ids=["whole", "collapsed"])
def test_link_poses_at_random_configurations(rng, path, collapse):
    """Poses of all links, merged ones included, from the arrays of the finalized model in float64."""
    builder, robot = load(path, collapse)
    model = builder.finalize(device="cpu", dtype=wp.float64)
    tree = Tree.from_model(model)
    reference = load_pinocchio(path)
    data = reference.createData()
    pin.seed(int(rng.integers(2**31)))
    for _ in range(3):
        q_pin = pin.randomConfiguration(
            reference, np.full(reference.nq, -np.pi) * 0.99, np.full(reference.nq, np.pi) * 0.99
        )
        pin.framesForwardKinematics(reference, data, q_pin)
        q = np.array(builder.joint_q)
        q[:7] = q_pin[:7]
        for name in list(reference.names)[2:]:
            theirs = reference.joints[reference.getJointId(name)]
            start = builder.joint_q_start[robot.joints[name]]
            angle = q_pin[theirs.idx_q]
            if theirs.nq == 2:  # continuous joints are cosine and sine there
                angle = np.arctan2(q_pin[theirs.idx_q + 1], q_pin[theirs.idx_q])
            q[start] = angle
        poses = body_poses(tree, q)
        for name, (body, frame) in robot.frames.items():
            expected = data.oMf[reference.getFrameId(name, pin.FrameType.BODY)].homogeneous
            # A chain of 20 products of matrices of size one.
            assert np.allclose(pose_matrix(poses[body]) @ pose_matrix(frame), expected, atol=1e-12), name


@every_robot
def test_limits_and_dynamics(path):
    builder, robot = load(path, collapse=False)
    model = load_pinocchio(path)
    for name in list(model.names)[2:]:
        theirs = model.joints[model.getJointId(name)]
        dof, v = builder.joint_qd_start[robot.joints[name]], theirs.idx_v
        assert builder.joint_damping[dof] == model.damping[v]
        assert builder.joint_friction[dof] == model.friction[v]
        # In these files zero means "not given", and 1e16 means "no limit".
        for ours, limit in (
            (builder.joint_effort_limit[dof], model.effortLimit[v]),
            (builder.joint_velocity_limit[dof], model.velocityLimit[v]),
        ):
            assert ours == (min(limit, MAXVAL) if 0.0 < limit < np.inf else builder.default_joint_cfg.effort_limit)
        lower, upper = model.lowerPositionLimit[theirs.idx_q], model.upperPositionLimit[theirs.idx_q]
        if theirs.nq == 2 or lower == upper == 0.0:
            lower, upper = -np.inf, np.inf
        assert builder.joint_limit_lower[dof] == max(lower, -MAXVAL)
        assert builder.joint_limit_upper[dof] == min(upper, MAXVAL)
        start = builder.joint_q[builder.joint_q_start[robot.joints[name]]]
        assert lower <= start <= upper


@every_robot
def test_collision_shapes(path):
    """Kinds, sizes and places in the link of all collisions."""
    if "<capsule" in path.read_text(encoding="utf-8"):
        pytest.skip("the parser of pinocchio does not know capsules")
    builder, robot = load(path, collapse=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pinocchio warns of package folders given twice
        geometry = pin.buildGeomFromUrdf(
            load_pinocchio(path), str(path), pin.COLLISION, [str(ROBOTS.parents[1]), str(path.parent)]
        )
    ours = {link: shapes for link, shapes in robot.shapes.items() if shapes}
    theirs = {}
    for item in geometry.geometryObjects:
        link, _, number = item.name.rpartition("_")
        theirs.setdefault(link, {})[int(number)] = item
    assert {link: len(shapes) for link, shapes in ours.items()} == {link: len(items) for link, items in theirs.items()}
    model = load_pinocchio(path)
    for link, items in theirs.items():
        for number, shape in enumerate(ours[link]):
            item = items[number]
            frame = model.frames[model.getFrameId(link, pin.FrameType.BODY)].placement
            placement = (frame.inverse() * item.placement).homogeneous
            assert np.allclose(pose_matrix(np.array(builder.shape_transform[shape])), placement, atol=1e-12)
            item.geometry.computeLocalAABB()
            low, high = item.geometry.aabb_local.min_, item.geometry.aabb_local.max_
            reach = np.array([low, high])
            source, scale = builder.shape_source[shape], np.array(builder.shape_scale[shape])
            if source is not None:
                points = source.vertices * scale
            else:
                tall = [scale[0], scale[0], scale[1]]
                half = {
                    "SPHERE": [scale[0]] * 3,
                    "BOX": scale,
                    "CYLINDER": tall,
                    "CAPSULE": tall + scale[0] * np.eye(3)[2],
                }
                kind = type(item.geometry).__name__.upper()
                if kind == "CAPSULE" and builder.shape_type[shape] == GeoType.CYLINDER:
                    # pinocchio converts a cylinder to a capsule if the file has its <collision_checking> element.
                    assert robot.not_understood["link/collision_checking"] == 1
                    continue
                points = np.array([half[kind]]) * [[-1], [1]]
            # pinocchio holds meshes as float32.
            assert np.allclose([points.min(axis=0), points.max(axis=0)], reach, atol=2e-6 * np.abs(reach).max())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_visuals_load_or_are_counted(path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        builder = ModelBuilder()
        robot = builder.add_urdf(path)
    mine = [w for w in caught if issubclass(w.category, UrdfWarning)]
    assert len(mine) <= 1
    missing = [m for m in robot.remarks if "visual meshes" in m]
    assert bool(missing) == (path.stem in ("go2", "panda", "panda_collision"))
    assert all(w.filename == __file__ for w in mine)
    assert builder.joint_type[robot.base_joint] == JointType.FIXED
