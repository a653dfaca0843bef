"""The MJCF importer: files written elsewhere, against MuJoCo itself."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.paths import SCENES

pytest.importorskip("mujoco")

import mujoco

from tests.support.mjcf_peer import MjcfPeer


@pytest.mark.parametrize("name", ["nv_ant.xml", "humanoid.xml"])
def test_scenes_written_elsewhere_agree_with_mujoco(rng, name):
    if not SCENES.is_dir():
        pytest.skip(f"{SCENES} is not there")
    peer = MjcfPeer(SCENES / name)
    peer.check(rng, 1.0e-9)
    limits = np.array([peer.mj.jnt_range[j] for j in range(peer.mj.njnt) if peer.mj.jnt_limited[j]])
    dofs = [peer.report.dofs[peer.joint_name(j)] for j in range(peer.mj.njnt) if peer.mj.jnt_limited[j]]
    np.testing.assert_allclose(np.array(peer.builder.joint_limit_lower)[dofs], limits[:, 0], rtol=1e-12)
    np.testing.assert_allclose(np.array(peer.builder.joint_limit_upper)[dofs], limits[:, 1], rtol=1e-12)
    for theirs, ours in (("dof_armature", "armature"), ("dof_damping", "damping"), ("dof_frictionloss", "friction")):
        wanted = getattr(peer.mj, theirs)[
            [peer.mj.jnt_dofadr[j] for j in range(peer.mj.njnt) if peer.mj.jnt_limited[j]]
        ]
        np.testing.assert_allclose(np.array(getattr(peer.builder, f"joint_{ours}"))[dofs], wanted, rtol=1e-12)


def installed(package, *patterns):
    """Files of an installed package that MuJoCo can load and this engine is to read."""
    try:
        root = Path(__import__(package).__file__).parent
    except ImportError:
        return []
    return sorted(path for pattern in patterns for path in root.glob(pattern))


LEFT_OUT = ("flex", "sdf", "n_humanoid", "armature.xml", "box100", "primitives")
"""Features that are reported as missing (flexes, plugins, attached models, inertia of tendons), and two large scenes."""

ELSEWHERE = [
    path
    for path in [
        *installed("mujoco_warp", "test_data/**/*.xml"),
        *installed("newton", "examples/assets/*.xml", "tests/assets/*.xml"),
        *installed("mujoco", "testdata/model.xml"),
    ]
    if not any(word in str(path) for word in LEFT_OUT)
]


@pytest.mark.parametrize("path", ELSEWHERE, ids=lambda path: path.name)
def test_files_of_other_packages_agree_with_mujoco(rng, path):
    try:
        mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        pytest.skip("MuJoCo itself refuses the file")
    MjcfPeer(path).check(rng, 3.0e-6)
