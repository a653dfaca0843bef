"""What a reset clears: impulses that steps start from, and what steps know of poses before."""

from __future__ import annotations

import warp as wp

from newton_like.kernels.solvers.xpbd.between import forget_kernels
from newton_like.kernels.solvers.xpbd.bodies import forget_poses
from newton_like.kernels.solvers.xpbd.joints import JOINT_WORK
from newton_like.kernels.solvers.xpbd.order import order_kernels
from newton_like.kernels.solvers.xpbd.trees import forget_motion
from newton_like.solvers.xpbd.tables import fixed_places, pose_places, worlds_of_bodies
from newton_like.solvers.xpbd.trees import motion_places


def forget_worlds(solver, mask: wp.array) -> None:
    """Clears the numbers of the worlds that `mask` names, ``[world_count]`` bool."""
    model, device, lists = solver.model, solver.device, solver._lists
    bodies, fixed = forget_poses(model.dtype)
    inputs = [*pose_places(model, solver._slots, solver._array), mask, solver._bodies["numbers"]]
    wp.launch(bodies, dim=model.body_count, inputs=inputs, device=device)
    inputs = [*fixed_places(solver._slots, solver._array), mask, solver._bodies["numbers"]]
    wp.launch(fixed, dim=model.world_count, inputs=inputs, device=device)
    joints, lines = forget_kernels(model.dtype)
    if solver._joint_world.size:
        shape = (solver._joint_world.shape[0], JOINT_WORK, solver.width)
        inputs = [solver._joint_world, mask, solver._as_numbers(solver._joints["work"], shape)]
        wp.launch(joints, dim=solver._joint_world.shape, inputs=inputs, device=device)
    if solver._trees:
        inputs = [*motion_places(solver._slots, solver._array), solver._array(worlds_of_bodies(model)), mask]
        inputs.append(solver._trees["body"])
        wp.launch(forget_motion(model.dtype), dim=model.body_count, inputs=inputs, device=device)
    if solver._lines:
        work = solver._lines["work"]
        numbers = solver._as_numbers(work, (work.size, solver.width))
        inputs = [solver._lines["blocks"], solver._line_world, mask, numbers]
        wp.launch(lines, dim=solver._line_world.shape, inputs=inputs, device=device)
    if lists is None:
        return
    N = solver._structs[2]()
    kept = lists["banks"][1 - lists["now"]]
    N.shape_body, N.body_world = lists["fixed"]["shape_body"], lists["fixed"]["body_world"]
    N.kept_start, N.kept_shape0, N.kept_shape1, N.kept_force = (kept[n] for n in ("start", "shape0", "shape1", "force"))
    forget = order_kernels(model.dtype)[2]
    wp.launch(forget, dim=kept["force"].size, inputs=[N, mask, kept["turn"]], device=device)
