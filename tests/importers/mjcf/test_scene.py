"""The MJCF importer: shapes and which of them touch, options of the import, files, reports."""

import math
import re
import warnings

import numpy as np
import pytest

from tests.support.paths import SCENES

pytest.importorskip("mujoco")

import mujoco

from newton_like.dynamics import tendon_lengths
from newton_like.geometry.transforms import transform_multiply
from newton_like.importers.mjcf import MjcfWarning
from newton_like.importers.xml_source import MissingFileError
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.pairs import may_collide
from newton_like.solvers import SolverFeatherstone
from newton_like.types import BodyFlags, GeoType, JointType, ShapeFlags
from tests.support.mjcf_peer import MjcfPeer
from tests.support.mjcf_texts import BOX, U_FACES, U_MESH, U_POINTS, load, model
from tests.support.random_mjcf import text

# --------------------------------------------------------------------------------------------------- shapes

GEOMS = [
    ('<geom type="sphere" size=".1"/>', GeoType.SPHERE, (0.1, 0.0, 0.0)),
    ('<geom type="capsule" size=".1 .2"/>', GeoType.CAPSULE, (0.1, 0.2, 0.0)),
    ('<geom type="cylinder" size=".1 .2"/>', GeoType.CYLINDER, (0.1, 0.2, 0.0)),
    ('<geom type="ellipsoid" size=".1 .2 .3"/>', GeoType.ELLIPSOID, (0.1, 0.2, 0.3)),
    ('<geom type="box" size=".1 .2 .3"/>', GeoType.BOX, (0.1, 0.2, 0.3)),
    ('<geom type="plane" size="1 2 .1"/>', GeoType.PLANE, (0.0, 0.0, 0.0)),
    ('<geom type="mesh" mesh="u"/>', GeoType.MESH, (1.0, 1.0, 1.0)),
    ('<geom type="hfield" hfield="h"/>', GeoType.HFIELD, (1.0, 1.0, 1.0)),
]
ASSETS = f'<asset><mesh name="u" {U_MESH}/><hfield name="h" nrow="2" ncol="3" size="1 2 3 .1" elevation="0 1 2 3 4 8"/></asset>'


@pytest.mark.parametrize(("geom", "kind", "scale"), GEOMS, ids=[g[1].name for g in GEOMS])
def test_geoms_become_shapes(geom, kind, scale):
    builder, _ = load(model(geom, ASSETS))
    assert builder.shape_type == [kind] and builder.shape_body == [-1]
    assert tuple(builder.shape_scale[0])[: len(scale)] == pytest.approx(scale)


def test_heightfield_is_that_of_mujoco():
    xml = model('<geom type="hfield" hfield="h" pos="0 0 1"/>', ASSETS)
    field = load(xml)[0].shape_source[0]
    mj = mujoco.MjModel.from_xml_string(xml)
    np.testing.assert_allclose(field.data.ravel(), mj.hfield_data)
    assert (field.hx, field.hy, field.min_z, field.max_z) == (1.0, 2.0, 0.0, 3.0)


def test_contact_settings():
    geom = '<geom size=".1" friction=".7 .02 .003" condim="{}" margin=".01" gap=".02" solref=".03 .9" rgba="1 0 0 .5"/>'
    builder, _ = load(model(f"<body><joint/>{geom.format(3)}</body><body><joint/>{geom.format(6)}</body>"))
    assert builder.shape_material_mu == [0.7, 0.7]
    assert builder.shape_material_mu_torsional == [0.0, 0.02] and builder.shape_material_mu_rolling == [0.0, 0.003]
    assert builder.shape_margin[0] == 0.01 and builder.shape_gap[0] == 0.02
    assert (builder.shape_material_time_constant[0], builder.shape_material_damping_ratio[0]) == (0.03 * 0.9, 0.9)
    assert builder.shape_color[0] == (1.0, 0.0, 0.0) and builder.shape_opacity[0] == 0.5


def test_contacts_by_stiffness_and_damping_are_those_by_time_and_ratio(rng):
    """MuJoCo turns both forms of solref into the same reference acceleration."""
    stiffness, damping = rng.uniform(1e3, 1e4), rng.uniform(10.0, 100.0)
    ball = '<geom type="plane" size="1 1 1" solref="{0}"/><body><freejoint/><geom size=".1" solref="{0}"/></body>'
    builder, report = load(model(ball.format(f"{-stiffness!r} {-damping!r}")))
    time, ratio = builder.shape_material_time_constant[0], builder.shape_material_damping_ratio[0]
    laws = []
    for solref in (f"{-stiffness!r} {-damping!r}", f"{time / ratio!r} {ratio!r}"):
        flag = '<option timestep="1e-5"/>'  # MuJoCo's time constants are at least two steps
        mj = mujoco.MjModel.from_xml_string(model(ball.format(solref), flag))
        data = mujoco.MjData(mj)
        mujoco.mj_forward(mj, data)
        laws.append(data.efc_KBIP[0, :2].copy())
    np.testing.assert_allclose(laws[0], laws[1], rtol=1e-12)
    assert report.remarks == {}
    with pytest.warns(MjcfWarning, match=r"solref.*\(2\): geom_0, geom_1"):
        ModelBuilder().add_mjcf(model(ball.format("-100 1")))


def touching(builder, a, b):
    filtered = (min(a, b), max(a, b)) in set(map(tuple, builder.shape_collision_filter_pairs.to_array().tolist()))
    both = all(builder.shape_flags[s] & ShapeFlags.COLLIDE_SHAPES for s in (a, b))
    groups = bool(may_collide(builder.shape_collision_group[a], builder.shape_collision_group[b]))
    return both and groups and not filtered


def random_contact_model(rng):
    """Spheres around one point, so that each pair touches that may."""

    def ball(name):
        masks = "".join(f' {m}="{rng.choice([0, 1, 1, 2, 3])}"' for m in ("contype", "conaffinity"))
        return f'<geom name="{name}" size="1"{masks}/>'

    names = iter(f"g{i}" for i in range(99))

    def body(depth):
        joint = "<joint/>" if rng.random() < 0.7 else ""
        inside = "".join(body(depth - 1) for _ in range(rng.integers(3) if depth else 0))
        number = next(names)
        return f'<body name="{number}">{joint}{ball(number)}{inside}</body>'

    bodies = "".join(body(2) for _ in range(3))
    used = bodies.count("<body")
    pick = lambda: "g" + str(rng.integers(used))  # noqa: E731
    lists = ""
    for tag, one, two in (("exclude", "body1", "body2"), ("pair", "geom1", "geom2")):
        first, second = pick(), pick()
        if first != second:
            lists += f'<{tag} {one}="{first}" {two}="{second}"/>'
    return f"<mujoco><worldbody>{ball('world')}{bodies}</worldbody><contact>{lists}</contact></mujoco>"


@pytest.mark.parametrize("within_trees", [True, False])
@pytest.mark.parametrize("number", range(4))
def test_the_same_pairs_touch_as_in_mujoco(rng, number, within_trees):
    peer = MjcfPeer(random_contact_model(rng), enable_self_collisions=within_trees)
    mujoco.mj_forward(peer.mj, peer.data)
    theirs = set()
    for i, j in peer.data.contact.geom:
        theirs.add(frozenset((peer.mj.geom(i).name, peer.mj.geom(j).name)))
    names = list(peer.report.shapes)
    tree = {name: peer.mj.body_treeid[peer.mj.geom(name).bodyid[0]] for name in names}
    moving = {name for name in names if peer.mj.body_weldid[peer.mj.geom(name).bodyid[0]] != 0}
    ours = set()
    for n, a in enumerate(names):
        for b in names[:n]:
            # Static shapes never collide with each other, independent of the filter.
            if {a, b} & moving and touching(peer.builder, peer.report.shapes[a], peer.report.shapes[b]):
                ours.add(frozenset((a, b)))
    expected = {pair for pair in theirs if pair & moving}
    if not within_trees:
        expected = {pair for pair in expected if len({tree[name] for name in pair}) == 2}
    assert ours == expected


@pytest.mark.slow
def test_shapes_of_one_tree_do_not_touch_each_other_unless_asked():
    chain = f"<body><freejoint/>{BOX}<body><joint/>{BOX}<body><joint axis='1 0 0'/>{BOX}</body></body></body>"
    xml = model(f'<geom name="floor" type="plane" size="0 0 1"/>{chain}<body><freejoint/>{BOX}</body>')
    builder, report = load(xml)
    floor, a, b, c, loose = report.shapes.values()
    assert all(touching(builder, floor, x) and (x == loose or touching(builder, x, loose)) for x in (a, b, c, loose))
    assert not touching(builder, a, b) and not touching(builder, a, c) and not touching(builder, b, c)
    SolverFeatherstone(builder.finalize(device="cpu"))
    builder, _ = load(xml, enable_self_collisions=True)
    assert touching(builder, a, c) and not touching(builder, a, b)  # parent and child never do
    builder, _ = load(model(f'<geom name="floor" type="plane" size="0 0 1"/>{chain}'))
    SolverFeatherstone(builder.finalize(device="cpu"))


def test_many_shapes_of_one_tree_are_kept_apart_by_a_group(monkeypatch):
    monkeypatch.setattr("newton_like.importers.mjcf.shapes.MANY", 3)
    limbs = "".join(f"<body><joint/>{BOX}</body>" for _ in range(3))
    builder, report = load(
        model(f'<geom name="floor" type="plane" size="0 0 1"/><body><freejoint/>{BOX}{limbs}</body>')
    )
    floor, *boxes = report.shapes.values()
    assert all(touching(builder, floor, box) for box in boxes)
    assert not any(touching(builder, a, b) for a in boxes for b in boxes if a != b)
    assert len(builder.shape_collision_filter_pairs.to_array()) == 0


def test_visuals():
    xml = model(f'<body name="a"><joint/>{BOX}<geom name="v" size=".1" contype="0" conaffinity="0" mass="1"/></body>')
    builder, report = load(xml)
    visual, collider = report.shapes["v"], report.shapes["geom_0"]
    assert builder.shape_flags[visual] == ShapeFlags.VISIBLE
    assert builder.shape_flags[collider] & ShapeFlags.COLLIDE_SHAPES
    assert not builder.shape_flags[collider] & ShapeFlags.VISIBLE
    assert load(xml, force_show_colliders=True)[0].shape_flags[collider] & ShapeFlags.VISIBLE
    hidden, report = load(xml, hide_visuals=True)
    assert list(report.shapes) == ["geom_0"] and hidden.body_mass == builder.body_mass
    assert list(load(xml.replace("<worldbody>", '<compiler discardvisual="true"/><worldbody>'))[1].shapes) == ["geom_0"]
    swapped, report = load(xml, parse_visuals_as_colliders=True)
    assert list(report.shapes) == ["v"] and swapped.shape_flags[0] & ShapeFlags.COLLIDE_SHAPES


# --------------------------------------------------------------------------------------------------- the whole

ARM = model(
    '<geom name="floor" type="plane" size="0 0 1" pos="0 0 .1"/><body name="base" pos="0 0 1"><geom size=".1"/>'
    f'<body name="up"><joint name="j" axis="0 1 0" pos="0 0 .2"/>{BOX}<body name="tip" pos=".5 0 0" euler="0 0 40">{BOX}'
    '<site name="s" pos="0 1 0"/></body></body></body>'
)


def test_collapse_keeps_mass_and_motion(rng):
    plain, collapsed = MjcfPeer(ARM), MjcfPeer(ARM, collapse_fixed_joints=True)
    assert collapsed.builder.body_count == 2 and collapsed.builder.joint_type == [JointType.FIXED, JointType.REVOLUTE]
    assert collapsed.report.links["tip"] == collapsed.report.links["up"]
    assert sum(collapsed.builder.body_mass) == pytest.approx(sum(plain.builder.body_mass), rel=1e-12)
    collapsed.check_poses(rng)
    collapsed.check_dynamics(rng, 1e-9)


def test_fusestatic_merges_into_the_world(rng):
    xml = ARM.replace("<worldbody>", '<compiler fusestatic="true"/><worldbody>').replace(
        '<site name="s" pos="0 1 0"/>', ""
    )
    peer = MjcfPeer(xml)
    assert peer.builder.body_count == 1 == peer.mj.nbody - 1
    assert peer.report.links["base"] == -1
    peer.check_masses(1e-9)
    peer.check_dynamics(rng, 1e-9)


def test_pose_of_the_whole(rng):
    builder, report = load(ARM, xform=((1, 2, 3), (0, 0, math.sin(0.3), math.cos(0.3))))
    plain, _ = load(ARM)
    move = np.array([1, 2, 3, 0, 0, math.sin(0.3), math.cos(0.3)])
    for ours, theirs in zip(builder.body_q, plain.body_q, strict=True):
        np.testing.assert_allclose(ours, transform_multiply(move, theirs), atol=1e-12)
    floor = report.shapes["floor"]
    np.testing.assert_allclose(
        builder.shape_transform[floor], transform_multiply(move, plain.shape_transform[floor]), atol=1e-12
    )


def test_other_up_axis_turns_gravity_and_all():
    builder = ModelBuilder(up_axis="y")
    builder.add_mjcf(ARM.replace("<worldbody>", '<option gravity="0 0 -3"/><worldbody>'))
    np.testing.assert_allclose(builder.gravity, [0.0, -3.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(builder.body_q[0][:3], [0.0, 1.0, 0.0], atol=1e-12)


def test_gravity_is_that_of_the_world_that_is_open():
    builder = ModelBuilder()
    builder.begin_world()
    builder.add_mjcf(ARM.replace("<worldbody>", '<option gravity="0 0 -3"/><worldbody>'))
    builder.end_world()
    assert builder.world_gravity == [[0.0, 0.0, -3.0]] and builder.gravity == (0.0, 0.0, -9.81)
    builder.add_mjcf(ARM.replace("<worldbody>", '<option gravity="0 0 -4"/><worldbody>'), parse_mujoco_options=False)
    assert builder.gravity == (0.0, 0.0, -9.81)


def test_scale(rng):
    """Lengths twice as large, the same masses: inertias about joints are four times as large, poses twice as far."""
    arm = ARM.replace('name="j"', 'name="j" armature=".3"')
    plain, large = load(arm)[0], load(arm, scale=2.0)[0]
    assert large.joint_armature == [4.0 * 0.3]
    np.testing.assert_allclose(large.body_mass, plain.body_mass)
    np.testing.assert_allclose(np.array(large.body_inertia), 4.0 * np.array(plain.body_inertia))
    np.testing.assert_allclose(np.array(large.body_q)[:, :3], 2.0 * np.array(plain.body_q)[:, :3])
    np.testing.assert_allclose(np.array(large.shape_scale), 2.0 * np.array(plain.shape_scale))
    np.testing.assert_allclose(np.array(large.joint_X_c)[:, :3], 2.0 * np.array(plain.joint_X_c)[:, :3])


def test_root_is_freed_fixed_or_jointed():
    assert load(ARM, floating=True)[0].joint_type[0] == JointType.FREE
    assert load(ARM, floating=False)[0].joint_type[0] == JointType.FIXED
    free = ARM.replace('<geom size=".1"/>', '<freejoint/><geom size=".1"/>')
    assert load(free)[0].joint_type[0] == JointType.FREE
    assert load(free, floating=False)[0].joint_type[0] == JointType.FIXED
    builder, _ = load(ARM, base_joint={"joint_type": JointType.PRISMATIC, "linear_axes": ["x"]})
    assert builder.joint_type[0] == JointType.PRISMATIC and builder.joint_label[0] == "m/base_joint"


def test_a_model_is_mounted_on_a_body():
    builder, report = load(ARM.replace('<geom name="floor" type="plane" size="0 0 1" pos="0 0 .1"/>', ""))
    tip = report.links["tip"]
    gripper = model(
        f'<body name="g1" pos="0 0 1"><joint/>{BOX}</body><body name="g2"><joint type="slide"/>{BOX}</body>'
    )
    mounted = builder.add_mjcf(gripper, parent_body=tip, xform=((0, 0, 0.5), (0, 0, 0, 1)))
    assert builder.joint_parent[mounted.joints["g1_joint"]] == tip == builder.joint_parent[mounted.joints["g2_joint"]]
    assert builder.articulation_count == 1
    wanted = transform_multiply(builder.body_q[tip], [0, 0, 1.5, 0, 0, 0, 1])
    np.testing.assert_allclose(builder.body_q[mounted.links["g1"]], wanted, atol=1e-12)
    builder.finalize(device="cpu")


def test_breadth_first_order():
    xml = model(
        f'<body name="a">{BOX}<body name="b">{BOX}<body name="c">{BOX}</body></body><body name="d">{BOX}</body></body>'
    )
    assert load(xml)[0].body_label == ["m/a", "m/b", "m/c", "m/d"]
    assert load(xml, joint_ordering="bfs")[0].body_label == ["m/a", "m/b", "m/d", "m/c"]


def test_includes_and_mesh_files(tmp_path, rng):
    (tmp_path / "parts").mkdir()
    (tmp_path / "assets").mkdir()
    lines = [f"v {text(p)}" for p in U_POINTS] + ["f " + " ".join(str(i + 1) for i in f) for f in U_FACES]
    (tmp_path / "assets" / "u.obj").write_text("\n".join(lines))
    (tmp_path / "parts" / "arm.xml").write_text(
        '<mujocoinclude><body name="i"><joint/><geom type="mesh" mesh="u"/></body></mujocoinclude>'
    )
    (tmp_path / "parts" / "assets.xml").write_text(
        '<mujoco><compiler meshdir="assets" angle="radian"/><asset><mesh file="u.obj" scale=".1 .1 .1"/></asset></mujoco>'
    )
    main = tmp_path / "main.xml"
    main.write_text(
        '<mujoco><include file="parts/assets.xml"/><worldbody><body euler="0 0 1"><joint/><geom size=".1"/>'
        '<include file="parts/arm.xml"/></body></worldbody></mujoco>'
    )
    MjcfPeer(main).check(rng, 3e-6)
    main.write_text(main.read_text().replace("<worldbody>", '<compiler strippath="true"/><worldbody>'))
    (tmp_path / "parts" / "assets.xml").write_text(
        (tmp_path / "parts" / "assets.xml").read_text().replace("u.obj", "elsewhere/u.obj")
    )
    MjcfPeer(main).check_masses(3e-6)


@pytest.mark.parametrize("both", [False, True])
def test_includes_of_includes_start_at_the_main_file_then_at_their_own(tmp_path, rng, both):
    body = '<mujocoinclude><body name="{}"><joint/><geom size=".1"/></body></mujocoinclude>'
    (tmp_path / "parts").mkdir()
    (tmp_path / "main.xml").write_text('<mujoco><worldbody><include file="parts/arm.xml"/></worldbody></mujoco>')
    (tmp_path / "parts" / "arm.xml").write_text('<mujocoinclude><include file="leaf.xml"/></mujocoinclude>')
    (tmp_path / "parts" / "leaf.xml").write_text(body.format("inner"))
    if both:
        (tmp_path / "leaf.xml").write_text(body.format("outer"))
    peer = MjcfPeer(tmp_path / "main.xml")
    assert peer.mj.body(1).name == ("outer" if both else "inner")
    peer.check_masses()


def test_mesh_files_of_a_text_come_from_package_dirs(tmp_path):
    (tmp_path / "t.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    xml = model('<body><joint/><geom type="mesh" mesh="t"/></body>', '<asset><mesh file="t.obj"/></asset>')
    builder, _ = load(xml, package_dirs=[tmp_path])
    assert builder.body_mass[0] == pytest.approx(1000.0 / 6.0)


def prism(folder, corners, inertia: str):
    """An MJCF file with a free prism over a polygon ``[n, 2]`` of height 0.1, whose ends are polygons of an OBJ file."""
    n = len(corners)
    loops = [range(n)[::-1], range(n, 2 * n), *([i, (i + 1) % n, (i + 1) % n + n, i + n] for i in range(n))]
    lines = [f"v {x} {y} {z}" for z in (0.0, 0.1) for x, y in corners]
    lines += ["f " + " ".join(str(i + 1) for i in loop) for loop in loops]
    (folder / "prism.obj").write_text("\n".join(lines) + "\n")
    asset = f'<asset><mesh name="m" file="prism.obj" inertia="{inertia}"/></asset>'
    (folder / "prism.xml").write_text(model('<body><joint/><geom type="mesh" mesh="m"/></body>', asset))
    return folder / "prism.xml"


@pytest.mark.parametrize("inertia", ["legacy", "exact"])
@pytest.mark.parametrize("first", [0, 3])
def test_concave_polygons_of_obj_files_have_mujocos_mass(tmp_path, inertia, first):
    corners = [(0.0, 0.0), (0.2, 0.0), (0.2, 0.1), (0.1, 0.1), (0.1, 0.2), (0.0, 0.2)]
    MjcfPeer(prism(tmp_path, corners[first:] + corners[:first], inertia)).check_masses()


def test_prisms_over_concave_polygons_have_their_mass(tmp_path, rng):
    """MuJoCo 4.0 differs for a few of these polygons, which have some corners that point inwards."""
    angle = (np.arange(11) + rng.uniform(0.1, 0.9, 11)) * 2.0 * np.pi / 11
    x, y = rng.uniform(0.05, 0.2, 11) * [np.cos(angle), np.sin(angle)]
    builder, _ = load(prism(tmp_path, np.stack([x, y], axis=1), "exact"))
    assert builder.body_mass[0] == pytest.approx(
        1000.0 * 0.1 * 0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1)), rel=1e-6
    )


def test_worlds_that_read_the_same_file_share_its_meshes():
    xml = model('<geom type="mesh" mesh="u"/>', f'<asset><mesh name="u" {U_MESH}/></asset>')
    (first, _), (second, _), (other, _) = (
        load(xml.replace("<mesh name", f"<mesh {s} name")) for s in ("", "", 'scale="1 1 2"')
    )
    assert first.shape_source[0] is second.shape_source[0] is not other.shape_source[0]


def test_report_names_what_is_left_out():
    xml = model(
        f'<body name="a" foo="1"><joint/>{BOX}<camera/><composite/><plugin/></body><light/>',
        "<visual/><option wind='1 0 0' integrator='RK4'/>text",
    )
    with pytest.warns(MjcfWarning, match="1 body/composite, 1 body/plugin, 1 body@foo"):
        report = ModelBuilder().add_mjcf(xml)
    assert report.not_understood == {"body/composite": 1, "body/plugin": 1, "body@foo": 1, "mujoco/text": 1}
    assert report.unused == {"body/camera": 1, "worldbody/light": 1, "mujoco/visual": 1}
    assert (
        report.option == {"timestep": 0.002, "wind": (1.0, 0.0, 0.0), "integrator": "RK4"} and report.timestep == 0.002
    )


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("", '<actuator><position joint="j" kpp="50"/></actuator>', ["position@kpp"]),
        ("", '<actuator><motor joint="j" delay=".1" nsample="3"/></actuator>', ["motor@delay", "motor@nsample"]),
        ("", '<equality><weld body1="a" bodyy2="b"/></equality>', ["weld@bodyy2"]),
        ("", '<tendon><fixed stifness="3"><joint joint="j" coef="1"/></fixed></tendon>', ["fixed@stifness"]),
        ("", '<keyframe><key qpoz="1"/></keyframe>', ["key@qpoz"]),
        ("", '<contact><pair geom1="g" geom2="g" mu="1"/></contact>', ["pair@mu"]),
        ('<option graviti="1 2 3"><flag gravvity="disable"/></option>', "", ["option@graviti", "flag@gravvity"]),
        ('<default><joint solimpfriction=".9 .95 .001"/></default>', "", ["joint@solimpfriction"]),
    ],
)
def test_attributes_that_are_not_read_are_counted(before, after, names):
    xml = f'<mujoco>{before}<worldbody><body name="a"><joint name="j"/><geom name="g" size=".1"/></body></worldbody>{after}</mujoco>'
    assert load(xml)[1].not_understood == dict.fromkeys(names, 1)


def test_options_and_flags_that_do_not_act_are_named():
    xml = model(
        f"<body><joint/>{BOX}</body>",
        '<option wind="0 0 0" density="1.2"><flag limit="disable" spring="enable" contact="disable"/></option>',
    )
    with pytest.warns(MjcfWarning) as told:
        ModelBuilder().add_mjcf(xml)
    assert re.search(r"\(1\): density; .*\(1\): limit$", str(told[0].message))


@pytest.mark.parametrize(
    ("stated", "named"), [('o_solref=".05 1" o_margin=".01"', "o_solref, o_margin"), ("", "override")]
)
def test_the_override_of_all_contacts_is_named(stated, named):
    with pytest.warns(MjcfWarning, match=rf"override of all contacts.*: {named}$"):
        ModelBuilder().add_mjcf(model(BOX, f'<option {stated}><flag override="enable"/></option>'))


def test_a_clean_file_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = ModelBuilder().add_mjcf(ARM)
    assert not report.remarks and not report.not_understood and not report.unused


def test_mocap_bodies_are_kinematic():
    builder = ModelBuilder()
    report = builder.add_mjcf(model(f'<body name="hand" mocap="true" pos="1 2 3">{BOX}</body>'))
    assert report.mocaps == {"hand": 0} and builder.joint_type == [JointType.FREE]
    assert builder.body_flags == [BodyFlags.KINEMATIC] and builder.joint_q == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("name", ["nv_ant.xml", "humanoid.xml"])
def test_scenes_written_elsewhere_come_to_rest(name):
    """Dropped without drives, a robot lies still on the ground after some seconds."""
    if not SCENES.is_dir():
        pytest.skip(f"{SCENES} is not there")
    # The ant's floor is a wall unless y is up.
    builder, _ = load(SCENES / name, up_axis="y" if name == "nv_ant.xml" else "z")
    built = builder.finalize(device="cpu")
    solver = SolverFeatherstone(built, evaluator="general", iterations=16)
    state = built.state()
    for _ in range(2160):
        solver.step(state, state, None, None, 1.0 / 240.0)
    assert np.all(solver.check(state))
    # Springs of the joints go on rocking the limbs a little.
    assert np.abs(state.joint_qd.numpy()).max() < 0.5
    # No body's frame, which is inside of its shapes, is below the floor.
    assert state.body_q.numpy()[:, 2].min() > 0.0


def test_geoms_of_missing_meshes_can_be_skipped(tmp_path):
    """The error names the option; with it the other geoms stay, those fitted to the mesh go, and bodies lose their mass alone."""
    source = tmp_path / "m.xml"
    source.write_text(
        '<mujoco><compiler meshdir="assets"/><asset><mesh name="hand" file="hand.stl"/></asset><worldbody>'
        '<body name="a"><freejoint/><geom type="mesh" mesh="hand"/><geom name="kept" size="0.1" mass="2"/></body>'
        '<body name="b"><freejoint/><inertial pos="0 0 0" mass="3" diaginertia="1 1 1"/><geom name="fitted" type="box" mesh="hand"/></body>'
        '</worldbody><contact><pair geom1="fitted" geom2="kept"/></contact></mujoco>'
    )
    with pytest.raises(MissingFileError, match=r"hand\.stl.*skip_missing_meshes=True"):
        ModelBuilder().add_mjcf(source)
    builder = ModelBuilder()
    with pytest.warns(MjcfWarning, match=r"missing.*hand"):
        builder.add_mjcf(source, skip_missing_meshes=True)
    assert builder.body_mass == [2.0, 3.0]
    assert [label.split("/")[-1] for label in builder.shape_label] == ["kept"]
    builder.finalize("cpu")


def test_sites_of_tendons_are_kept_without_sites():
    """The sites and the side site that a tendon names, and no others."""
    text = """<mujoco><worldbody><site name="w"/><geom name="g" type="sphere" size=".05" pos="0 0 .5"/><site name="side" pos="0 .2 .5"/>
    <body pos="0 0 1"><joint axis="0 1 0"/><geom size=".1"/><site name="s"/><site name="unused"/></body></worldbody>
    <tendon><spatial name="t"><site site="w"/><geom geom="g" sidesite="side"/><site site="s"/></spatial></tendon></mujoco>"""
    builder = ModelBuilder()
    report = builder.add_mjcf(text, parse_sites=False)
    assert set(report.sites) == {"w", "side", "s"}
    assert len(builder.tendons) == 1


def test_a_side_site_on_another_tree_makes_one_articulation():
    """A tendon is supported within one articulation, and its path depends on the pose of the side site."""
    text = """<mujoco><worldbody><site name="w"/><geom name="g" type="sphere" size=".05" pos="0 0 .5"/>
    <body name="m" mocap="true"><geom size=".1"/><site name="side" pos="0 .2 .5"/></body>
    <body pos="0 0 1"><joint axis="0 1 0"/><geom size=".1"/><site name="s"/></body></worldbody>
    <tendon><spatial name="t"><site site="w"/><geom geom="g"{}/><site site="s"/></spatial></tendon></mujoco>"""
    for side, count in ((' sidesite="side"', 1), ("", 2)):
        builder = ModelBuilder()
        builder.add_mjcf(text.format(side))
        assert builder.articulation_count == count
        model = builder.finalize("cpu")
        tendon_lengths(model, model.state())


def test_contact_pairs_within_a_tree_are_remarked_if_they_are_ignored():
    xml = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
      <body name="a"><freejoint/><geom name="upper" size="0.1"/><body name="b"><joint/><geom name="lower" size="0.1"/></body></body>
    </worldbody><contact><pair geom1="upper" geom2="lower"/><pair geom1="floor" geom2="upper"/></contact></mujoco>"""
    with pytest.warns(UserWarning, match="enable_self_collisions=True keeps them"):
        report = ModelBuilder().add_mjcf(xml)
    assert [statement for statement in report.remarks if "contact pairs" in statement]
    assert not [
        statement
        for statement in ModelBuilder().add_mjcf(xml, enable_self_collisions=True).remarks
        if "contact pairs" in statement
    ]
