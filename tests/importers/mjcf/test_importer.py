"""The MJCF importer: every feature on a small file, and random trees, against MuJoCo itself."""

import re
from xml.parsers.expat import errors

import numpy as np
import pytest

pytest.importorskip("mujoco")

import mujoco

from newton_like.geometry.transforms import quat_to_matrix
from tests.support.damage import damaged
from tests.support.mjcf_peer import MjcfPeer
from tests.support.mjcf_texts import BOX, TETRA, U_MESH, model, with_mesh
from tests.support.random_mjcf import random_mjcf

DEFAULTS = """<default>
  <geom type="capsule" size=".1 .2" density="300"/><joint axis="0 1 0" armature=".02" damping=".3"/>
  <default class="big"><geom size=".2" density="100"/><joint armature=".1"/>
    <default class="bigger"><geom type="box" size=".3 .3 .3"/></default></default></default>"""

FEATURES = {
    "nested classes": model(
        '<body childclass="big"><joint/><geom/><body><joint class="main"/><geom class="bigger"/>'
        '<body childclass="bigger" pos="1 0 0"><joint type="slide"/><geom size=".4"/><geom class="main"/></body></body></body>',
        DEFAULTS,
    ),
    "two top classes": model(
        f"<body><joint/>{BOX}</body>", '<default><geom density="7"/></default><default><joint armature=".5"/></default>'
    ),
    "radians": model(
        f'<body euler=".1 .2 .3"><joint ref=".4" range="-1 1"/>{BOX}</body>',
        '<compiler angle="radian" eulerseq="XYZ"/>',
    ),
    "orientation forms": model(
        "".join(
            f'<body pos="{i} 0 0" {form}><joint/>{BOX}</body>'
            for i, form in enumerate(
                (
                    'quat="1 2 3 4"',
                    'axisangle="1 2 3 40"',
                    'xyaxes="1 2 3 -1 2 1"',
                    'zaxis="0 0 -2"',
                    'zaxis="1 2 3"',
                    'euler="10 20 30"',
                )
            )
        )
    ),
    "orientation over that of the defaults": model(
        '<body><joint/><geom type="box" size=".1 .2 .3" quat="1 0 1 0"/></body>',
        '<default><geom euler="30 40 50"/></default>',
    ),
    "slides": model(f'<body><joint type="slide" axis="1 1 0" ref=".3"/><joint type="slide" axis="0 1 1"/>{BOX}</body>'),
    "planar root": model(
        f'<body pos="1 2 3" euler="10 20 30"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>'
        f'<joint axis="0 1 0" pos=".1 .2 .3" ref="20"/>{BOX}</body>'
    ),
    "universal": model(
        f'<body><joint axis="1 0 0" pos=".1 0 .2"/><joint axis="0 1 0" pos=".1 0 .2" ref="-30"/>{BOX}</body>'
    ),
    "three turns": model(f'<body><joint axis="1 0 0"/><joint axis="0 0 1"/><joint axis="0 1 0"/>{BOX}</body>'),
    "skew turns": model(f'<body><joint axis="1 0 0"/><joint axis="1 1 0"/>{BOX}</body>'),
    "turns at two places": model(f'<body><joint axis="1 0 0"/><joint axis="0 1 0" pos="0 0 .1"/>{BOX}</body>'),
    "turn before slide": model(f'<body><joint axis="1 0 0"/><joint type="slide" axis="0 1 0"/>{BOX}</body>'),
    "reference of a first turn": model(f'<body><joint axis="1 0 0" ref="40"/><joint axis="0 1 0"/>{BOX}</body>'),
    "ball after slides": model(f'<body><joint type="slide"/><joint type="ball" pos=".1 .2 .3"/>{BOX}</body>'),
    "free joint of a class": model(
        f'<body pos="1 2 3" euler="10 20 30"><joint type="free"/>{BOX}</body>',
        '<default><joint armature="0"/></default>',
    ),
    "joint in a frame": model(
        f'<body><frame pos="1 2 3" euler="10 20 30"><joint axis="1 2 3" pos=".1 0 0"/>{BOX}<site pos="1 0 0"/>'
        f'<body pos="1 0 0"><joint/>{BOX}</body></frame></body>'
    ),
    "nested frames with classes": model(
        '<frame euler="0 30 0"><frame pos="1 0 0" childclass="big"><body><joint/><geom/></body></frame></frame>',
        DEFAULTS,
    ),
    "replicas": model(
        '<replicate count="11" offset=".1 .2 .3" euler="10 0 20"><replicate count="2" offset="1 0 0" sep="_">'
        f'<body name="r" pos=".5 0 0"><joint name="q"/>{BOX}<site name="s" pos="0 0 1"/></body></replicate></replicate>'
    ),
    "fromto": model(
        "".join(
            f'<body><joint/><geom type="{kind}" fromto=".1 .2 .3 {end}" size=".05"/></body>'
            for kind in ("capsule", "cylinder", "box", "ellipsoid")
            for end in ("1 2 3", ".1 .2 2", ".1 .2 -2")
        )
    ),
    "geom masses": model(
        '<body><joint/><geom size=".1" mass="2"/><geom size=".2" density="0" pos="1 0 0"/>'
        '<geom type="box" size=".1 .1 .1" pos="0 1 0" mass="0"/><geom size=".2" density="0" mass="3" pos="0 0 1"/></body>'
    ),
    "shells": model(
        "".join(
            f'<body><joint/><geom type="{kind}" size=".1 .25 .3" shellinertia="true" {mass}/></body>'
            for kind in ("sphere", "capsule", "cylinder", "ellipsoid", "box")
            for mass in ('density="7"', 'mass="2"')
        )
    ),
    "inertial": model(
        '<body><joint/><inertial pos=".1 .2 .3" euler="10 20 30" mass="2" diaginertia=".1 .2 .25"/><geom size="1"/>'
        '<body><joint/><inertial pos="0 0 0" mass="1" fullinertia=".3 .3 .3 .01 .02 -.03"/></body></body>'
    ),
    "inertia from geoms": model(
        '<body><joint/><inertial pos=".1 .2 .3" mass="2" diaginertia="1 1 1"/><geom size=".3"/></body>',
        '<compiler inertiafromgeom="true"/>',
    ),
    "inertia from geoms of some groups": model(
        '<body><joint/><inertial pos=".1 .2 .3" mass="2" diaginertia="1 1 1"/><geom size=".3"/></body>'
        '<body><joint/><geom size=".3" group="2"/><geom size=".2" group="3" pos="1 0 0"/></body>',
        '<compiler inertiafromgeom="true" inertiagrouprange="1 2"/>',
    ),
    "bounds of mass": model(
        f'<body><joint/><geom size=".01"/><body><joint/>{BOX}</body></body><body pos="1 2 3" euler="10 20 30"><joint/></body>'
        '<frame pos="1 2 0" euler="0 0 40"><body pos="1 0 2"><joint/><geom size=".1" mass="0" pos="3 4 5"/></body></frame>',
        '<compiler boundmass=".1" boundinertia=".01"/>',
    ),
    "balanced inertia": model(
        '<body><joint/><inertial pos="0 0 0" mass="1" euler="10 20 30" diaginertia="1 2 7"/></body>',
        '<compiler balanceinertia="true"/>',
    ),
    "total mass": model(f"<body><joint/>{BOX}<body><joint/>{BOX}</body></body>", '<compiler settotalmass="5"/>'),
    "gravity": model(f"<body><joint/>{BOX}</body>", '<option gravity="1 2 3"/>'),
    "no gravity": model(f"<body><joint/>{BOX}</body>", '<option gravity="1 2 3"><flag gravity="disable"/></option>'),
    "welded bodies": model(
        f"<body>{BOX}<body pos='1 0 0'>{BOX}<body><joint/>{BOX}<body>{BOX}</body></body></body></body>"
    ),
    "mesh legacy": with_mesh(U_MESH),
    "mesh exact": with_mesh(U_MESH + ' inertia="exact"'),
    "mesh convex": with_mesh(U_MESH + ' inertia="convex"'),
    "mesh shell": with_mesh(U_MESH + ' inertia="shell"'),
    "mesh of points": with_mesh(TETRA),
    "mesh moved and scaled": with_mesh(U_MESH + ' scale="1 2 .5" refpos=".3 .4 .5" refquat=".5 .1 .2 .3"'),
    "mesh mirrored": with_mesh(U_MESH + ' scale="1 -2 .5" inertia="exact"'),
    "mesh of a default": model(
        '<body><joint/><geom type="mesh" mesh="u"/></body>',
        f'<default><mesh scale=".5 .5 .5" inertia="convex"/></default><asset><mesh name="u" {U_MESH}/></asset>',
    ),
    "classes over child classes": model(
        '<body childclass="big"><joint/><geom/><geom class="bigger"/><body><joint class="bigger"/><geom/></body></body>'
        '<frame childclass="big"><body pos="1 0 0"><joint/><geom/><frame childclass="bigger" pos="0 0 1"><geom/>'
        "<body><joint/><geom/></body></frame></body></frame>",
        DEFAULTS,
    ),
    "places of the defaults": model(
        '<body><joint/><geom/><geom pos="0 0 0"/><geom euler="0 0 5"/></body>',
        '<default><geom type="box" size=".1 .2 .3" pos="1 2 3" quat="1 1 0 0"/><joint pos=".1 .2 .3" ref="10"/></default>',
    ),
    "sections in any order": f"""<mujoco><worldbody><body euler="10 20 30"><joint/><geom/></body></worldbody>
        <default><geom type="box" size=".1 .2 .3" euler="40 50 60"/></default><compiler eulerseq="zYx"/>
        <worldbody><body pos="1 0 0" euler="1 2 3"><joint/>{BOX}</body></worldbody></mujoco>""",
    "mixed and extrinsic eulers": model(
        f'<body euler="10 20 30"><joint axis="1 1 0"/>{BOX}</body>', '<compiler eulerseq="XyZ"/>'
    ),
    "replicas in a body, a frame and a replica": model(
        f'<body name="p"><freejoint/>{BOX}<frame pos="1 0 0" euler="0 45 0"><replicate count="3" euler="0 0 120">'
        '<geom name="g" size=".1" pos="1 0 0"/><frame pos="0 1 0"><body name="leg" pos="1 0 0" euler="0 10 0">'
        f'<joint name="k"/>{BOX}</body></frame></replicate></frame></body>'
    ),
    "joint and inertial in frames": model(
        '<body><frame euler="0 0 90" pos="1 0 0"><frame euler="90 0 0"><joint axis="1 0 0" pos=".2 0 0"/>'
        '<inertial pos="1 2 3" mass="2" diaginertia="1 2 2.5" euler="10 0 0"/></frame></frame></body>'
    ),
    "total mass after bounds": model(
        f'<body><joint/>{BOX}<body><joint/><geom size=".01"/></body></body>'
        '<body pos="1 0 0"><joint/><inertial pos="0 0 1" mass="3" diaginertia="1 1 1"/></body>',
        '<compiler settotalmass="7" boundmass=".5" boundinertia=".2"/>',
    ),
    "shells laid between points in a frame": model(
        '<body euler="3 4 5"><joint/><frame pos="1 2 3" euler="20 30 40">'
        + "".join(
            f'<geom type="{kind}" size=".1" fromto="1 2 3 -1 .5 0" shellinertia="true" density="30"/>'
            for kind in ("capsule", "cylinder", "box", "ellipsoid")
        )
        + "</frame></body>"
    ),
    "static chain with a plane": model(
        '<body pos="0 0 1" euler="10 0 0"><geom type="plane" size="1 1 .1"/><body pos="0 1 0"><body pos="0 0 1" '
        f'euler="90 0 0"><joint/>{BOX}</body></body></body>'
    ),
    "compensated gravity": model(f'<body gravcomp="1"><joint axis="1 0 0"/>{BOX}<geom size=".1" pos="1 0 0"/></body>'),
    "sites": model(
        f'<body><joint/>{BOX}<site name="s" pos="1 2 3" euler="10 20 30"/>'
        '<site name="t" type="capsule" fromto="0 0 0 1 1 1" size=".1"/></body>'
    ),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_feature_agrees_with_mujoco(rng, feature):
    """Masses, poses, mass matrix and bias forces. Meshes are float32 in MuJoCo: 1e-7 of a size of 3 m, squared and summed."""
    peer = MjcfPeer(FEATURES[feature])
    peer.check(rng, 3.0e-6 if "mesh" in feature else 1.0e-9)


@pytest.mark.parametrize("how", ["true", "false"])
@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder", "ellipsoid", "box"])
def test_primitives_around_meshes_agree_with_mujoco(rng, kind, how):
    """Their axes are principal axes, whose signs are free."""
    mesh = U_MESH + ' inertia="exact" scale="1 2 .7"'
    peer = MjcfPeer(with_mesh(mesh, f'type="{kind}" fitscale="1.5"', f'fitaabb="{how}"'))
    peer.check_masses(3.0e-6)
    peer.check_dynamics(rng, 3.0e-6)
    shape = peer.report.shapes["geom_0"]
    np.testing.assert_allclose(peer.builder.shape_transform[shape][:3], peer.mj.geom_pos[0], atol=3e-6)
    np.testing.assert_allclose(peer.builder.shape_scale[shape], peer.mj.geom_size[0], atol=3e-6)
    turned = quat_to_matrix(np.roll(peer.mj.geom_quat[0], -1)).T @ quat_to_matrix(
        peer.builder.shape_transform[shape][3:]
    )
    np.testing.assert_allclose(np.abs(turned), np.eye(3), atol=1e-5)


@pytest.mark.slow
def test_a_rope_of_hundreds_of_bodies_agrees_with_mujoco(rng):
    """Bodies in each other, nearly as deep as MuJoCo reads them (500 elements)."""
    count = 480
    link = '<body pos=".01 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .01 0 0" size=".003"/>'
    peer = MjcfPeer(model(count * link + count * "</body>"))
    assert peer.builder.body_count == count
    peer.check_masses(1.0e-9)
    peer.check_poses(rng)


@pytest.mark.parametrize("number", range(12))
def test_random_trees_agree_with_mujoco(rng, number):
    peer = MjcfPeer(random_mjcf(rng))
    # All sums are of float64 numbers of size 1; 1e-8 leaves room for chains of ten bodies.
    peer.check(rng, 1.0e-8)


WORDS = (
    "0",
    "1",
    "-1",
    ".5",
    "2",
    "90",
    "true",
    "false",
    "auto",
    "1 2 3",
    "0 0 1",
    ".1 .2 .3",
    "1 0 0 0",
    "3 3",
    "-1 1",
)


# Errors of the XML parser, a model without bodies, a second <inertial>, an attribute of one number below 0.
ALLOWED = "|".join([*map(re.escape, errors.codes), "<mujoco>.*<worldbody>", "<inertial>: .*<inertial>", r"='-[\d.]+'"])


@pytest.mark.slow
def test_edited_files_mean_the_same_to_mujoco(rng):
    """Files with lines and values exchanged, where MuJoCo still takes them: the same masses of all bodies."""
    texts = [re.sub(r">\s*<", ">\n<", text).splitlines() for text in FEATURES.values()]
    agreed = 0
    for _ in range(150):
        lines = texts[rng.integers(len(texts))]
        values = sorted(set(re.findall('"([^"]*)"', "\n".join(lines))))
        text = damaged(rng, lines, [*WORDS, *values])
        try:
            mujoco.MjModel.from_xml_string(text)
        except ValueError:
            continue
        try:
            peer = MjcfPeer(text)
        except ValueError as error:
            # MuJoCo accepts text after the end of the model, and an empty model.
            assert re.search(ALLOWED, str(error)), text
            continue
        peer.check_masses(3.0e-6 if "mesh" in text else 1.0e-8)
        agreed += 1
    assert agreed > 15  # of 150; MuJoCo accepts a third of them
