"""The order of the passes over joints: two of them together have real eigenvalues."""

import numpy as np

from newton_like import ModelBuilder
from newton_like.model.tendons import Tendon
from newton_like.solvers.xpbd.colours import LAST, colours_of_joints
from newton_like.solvers.xpbd.lines import LinesOf
from newton_like.solvers.xpbd.tables import make_blocks, make_slots


def random_pairs(rng, bodies: int, base: int) -> np.ndarray:
    """Parent and child of each joint of a random tree; `base`: parent of the first body, -1 for the world."""
    parents = [rng.integers(max(0, i - 4), i) for i in range(1, bodies)]
    pairs = [(a, i) for i, a in enumerate(parents, 1)]
    return np.array([(-1, 0), *pairs] if base < 0 else pairs)


def left_by(pairs: np.ndarray, rng) -> list[np.ndarray]:
    """Of each joint, what it leaves of the velocities of bodies of random masses in random units, from which it takes those along three
    random rows: an orthogonal projection in the metric of the masses."""
    size = 6 * (pairs.max() + 1)
    root = np.sqrt(10.0 ** rng.uniform(-1.5, 1.5, pairs.max() + 1).repeat(6))
    found = []
    for pair in pairs.tolist():
        rows = np.zeros((3, size))
        for k in pair:
            if k >= 0:
                rows[:, 6 * k : 6 * k + 6] = rng.normal(size=(3, 6))
        basis = np.linalg.qr((rows / root).T)[0]
        found.append(np.eye(size) - basis @ basis.T)
    return found


def product(left: list[np.ndarray], order) -> np.ndarray:
    """The operator that solves joints in this order."""
    out = np.eye(len(left[0]))
    for i in order:
        out = left[i] @ out
    return out


def test_joints_of_a_colour_share_no_body(rng):
    """Those of the last colour share none with lines, either."""
    for base in (-1, 0):
        pairs = random_pairs(rng, 16, base)
        assert (colours_of_joints(pairs) == LAST).any()
        lined = rng.choice(16, 3, replace=False)
        colours = colours_of_joints(pairs, lined)
        assert not np.isin(pairs[colours == LAST], lined).any()
        for colour in np.unique(colours):
            bodies = pairs[colours == colour]
            bodies = bodies[bodies >= 0]
            assert len(np.unique(bodies)) == len(bodies)


def test_chains_have_two_colours(rng):
    """Then no joint waits for another one of its colour, and both passes go through all joints."""
    n = int(rng.integers(2, 12))
    colours = colours_of_joints(np.column_stack([np.arange(-1, n - 1), np.arange(n)]))
    assert set(colours) == {0, LAST}


def test_both_passes_together_have_real_eigenvalues(rng):
    """Gaps of joints oscillate more and more where they are complex, as those of two equal passes are."""
    of_equal = 0.0
    for _ in range(6):
        pairs = random_pairs(rng, 9, -1)
        left, colours = left_by(pairs, rng), colours_of_joints(pairs)
        order = np.argsort(colours, kind="stable")
        others, last = order[colours[order] < LAST], order[colours[order] == LAST]
        found = np.linalg.eigvals(product(left, [*others, *last, *others[::-1], *last]))
        assert abs(found.imag).max() < 1e-5
        assert found.real.min() > -1e-5 and found.real.max() < 1.0 + 1e-9
        equal = product(left, range(len(pairs)))
        of_equal = max(of_equal, abs(np.linalg.eigvals(equal @ equal).imag).max())
    assert of_equal > 1e-3


def test_joints_of_the_last_colour_have_no_body_on_which_a_tendon_acts(rng):
    """Also where a tendon runs over sites, and reads no coordinates of joints."""
    count, builder = 9, ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(count)]
    joints = [
        builder.add_joint_revolute(parent, child, child_xform=(0, 0, 1, 0, 0, 0, 1), axis=(0, 1, 0))
        for parent, child in zip([-1, *links], links, strict=False)
    ]
    builder.add_articulation(joints)
    pulled = np.sort(rng.choice(count, 3, replace=False))
    sites = [builder.add_site(int(link), xform=(0.1, 0, 0, 0, 0, 0, 1)) for link in pulled]
    builder.add_tendon(Tendon(label="line", path=tuple(("site", site) for site in sites), stiffness=1.0))
    scene = ModelBuilder()
    scene.replicate(builder, 2)
    model = scene.finalize("cpu")
    lines = LinesOf(model)
    assert not len(lines.joints) and lines.bodies == [*pulled, *(pulled + count)]
    blocks = make_blocks(model, make_slots(model, 8, 4, 64), 8, lines.joints, lines.bodies)
    last = blocks.joint[blocks.colour == LAST]
    last = last[last >= 0]
    assert len(last)
    for side in (model.joint_parent, model.joint_child):
        assert not np.isin(side.numpy()[last], lines.bodies).any()
