"""The armature of a floating base in representations of its velocity other than that of its joint.

The joint's velocities are those of the centre of mass and the angular velocity, along the fixed axes of the anchor. In these the armature
is a diagonal matrix: a mass along each axis and an inertia about it, at the centre of mass. In other representations the motion
subspace projects the wrench of the armature.
"""

import types

from newton_like.kernels.tree import ARMATURE, COM, NATIVE, PARENT_QUAT


def armature_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``base_armature``."""

    @m.func
    def turned_base(T) -> int:
        """1 if the armature of the base is not diagonal, else 0."""
        turned = int(0)
        if T.free_root != 0 and T.base_repr != NATIVE:
            turned = 1
        return turned

    @m.func
    def base_armature(b, t, x: m.Spatial, P, L, mem) -> m.Spatial:
        """The wrench about the origin of the armature times x, a motion with components at the centre of mass in world axes."""
        axes = m.quat_to_matrix(m.joint_quat(P, b, 0, PARENT_QUAT))
        v = m.apply_t(x.v, axes)
        w = m.apply_t(x.w, axes)
        f = m.vec(
            m.mul(m.gain(P, b, 0, ARMATURE), v.x),
            m.mul(m.gain(P, b, 1, ARMATURE), v.y),
            m.mul(m.gain(P, b, 2, ARMATURE), v.z),
        )
        n = m.vec(
            m.mul(m.gain(P, b, 3, ARMATURE), w.x),
            m.mul(m.gain(P, b, 4, ARMATURE), w.y),
            m.mul(m.gain(P, b, 5, ARMATURE), w.z),
        )
        at_com = m.spatial(m.apply(axes, f), m.apply(axes, n))
        return m.wrench_from(COM, at_com, m.get3(mem, L.com, t), axes)

    return locals()
