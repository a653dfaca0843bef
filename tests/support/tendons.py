"""Random chains with tendons, as MJCF that MuJoCo reads too."""

import mujoco
import numpy as np


def text(numbers) -> str:
    """Numbers as an attribute."""
    return " ".join(repr(float(x)) for x in numbers)


def chain(rng, joints: int = 6, wraps: int = 8, inside: bool = True) -> str:
    """A chain of hinges and slides without contacts, with a fixed tendon, one through sites, one with pulleys, and `wraps` around spheres
    and cylinders, without side sites, and with some outside and (if `inside`) inside."""
    bodies = ""
    for i in range(joints):
        kind = "hinge" if i % 3 else "slide"
        bodies += f'<body name="b{i}" pos="{text(rng.uniform(-0.3, 0.3, 3))}">'
        bodies += f'<joint name="j{i}" type="{kind}" axis="{text(rng.normal(size=3))}"/><geom size=".02" contype="0" conaffinity="0"/>'
        bodies += f'<site name="s{i}" pos="{text(rng.uniform(-0.2, 0.2, 3))}"/>'
        shape = f'type="{"sphere" if i % 2 else "cylinder"}" size="{rng.uniform(0.05, 0.1)} .1"'
        where = rng.uniform(-0.1, 0.1, 3)
        bodies += f'<geom name="g{i}" {shape} pos="{text(where)}" euler="{text(rng.uniform(-90, 90, 3))}" contype="0" conaffinity="0"/>'
        bodies += f'<site name="in{i}" pos="{text(where + rng.uniform(-0.02, 0.02, 3))}"/>'
        bodies += f'<site name="out{i}" pos="{text(where + rng.choice([-1.0, 1.0], 3) * rng.uniform(0.1, 0.2, 3))}"/>'
    tendons = '<fixed name="f"><joint joint="j0" coef="2"/><joint joint="j3" coef="-1.5"/></fixed>'
    tendons += '<spatial name="a"><site site="s0"/><site site="s3"/><site site="w"/></spatial>'
    tendons += (
        '<spatial name="p"><site site="s0"/><site site="s2"/><pulley divisor="2"/><site site="s2"/><site site="s4"/>'
    )
    tendons += '<pulley divisor="3"/><site site="s2"/><site site="s1"/></spatial>'
    for k in range(wraps):
        i, j, around = rng.integers(0, joints, 3)
        side = ["", f'sidesite="out{around}"', f'sidesite="{"in" if inside else "out"}{around}"'][k % 3]
        end = "w" if i == j else f"s{j}"
        tendons += (
            f'<spatial name="t{k}"><site site="s{i}"/><geom geom="g{around}" {side}/><site site="{end}"/></spatial>'
        )
    return (
        f'<mujoco><worldbody><site name="w" pos="{text(rng.uniform(-0.3, 0.3, 3))}"/>{bodies}{"</body>" * joints}</worldbody>'
        f"<tendon>{tendons}</tendon></mujoco>"
    )


def dense_jacobian(model, data) -> np.ndarray:
    """MuJoCo's derivatives of the lengths of tendons, ``[tendons, dofs]``."""
    dense = np.zeros((model.ntendon, model.nv))
    if data.ten_J.shape == dense.shape:
        return data.ten_J.copy()
    of = model if hasattr(model, "ten_J_rownnz") else data
    mujoco.mju_sparse2dense(dense, data.ten_J.ravel(), of.ten_J_rownnz, of.ten_J_rowadr, of.ten_J_colind.ravel())
    return dense


def two_bars(tendons: str, option: str = "", actuators: str = "", joint: str = "") -> str:
    """A double pendulum without contacts, with sites on both bars and one in the world."""
    geom = '<geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="1" contype="0" conaffinity="0"/>'
    return (
        f'<mujoco><option integrator="implicitfast" {option}/><worldbody><site name="w" pos="0 0 .5"/><body pos="0 0 1">'
        f'<joint name="a" axis="0 1 0" {joint}/>{geom}<site name="sa" pos=".2 0 .05"/><body pos=".4 0 0">'
        f'<joint name="b" axis="0 1 0" {joint}/>{geom}<site name="sb" pos=".2 0 .05"/></body></body></worldbody>'
        f"<tendon>{tendons}</tendon><actuator>{actuators}</actuator></mujoco>"
    )
