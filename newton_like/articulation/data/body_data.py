"""Data of the root and the bodies of an asset."""

from __future__ import annotations

import warp as wp

from newton_like.articulation.data.fields import Fresh, Part, View
from newton_like.articulation.data.inertia import principal_frames
from newton_like.articulation.data.reactions import JointReactions
from newton_like.articulation.launching import Repeated
from newton_like.kernels.articulation.root import (
    ANGULAR_VELOCITY_B,
    BODY_SIZE,
    COM_STATE,
    COM_VELOCITY_B,
    GRAVITY_B,
    HEADING,
    LINK_STATE,
    LINK_VELOCITY_B,
    ROOT_SIZE,
    ROOT_STATE,
    state_kernels,
)
from newton_like.model.editing.edits import BODIES, edits_of
from newton_like.types import warp_types


class BodyData(Fresh):
    """Root and bodies of the instances of an asset, with the names and shapes of Isaac Lab.

    Arrays have the shape ``[num_instances, ...]`` or ``[num_instances, num_bodies, ...]`` and the scalar type of the model; ``numpy()``,
    ``wp.to_torch`` and ``__dlpack__`` give views of their memory on a CPU. Numbers of ``*_w`` are in world axes, those of ``*_b`` in the
    axes of the root link (for ``body_com_*_b``: of the body's link). Poses are position [m] and quaternion x y z w; velocities and
    accelerations have the linear part [m/s, m/s^2] first, then the angular one [rad/s, rad/s^2]. ``link`` is the link frame; ``com`` the
    frame of the centre of mass along the principal axes of inertia. The world's origin is not subtracted.

    Properties are computed when they are read, once after each step or write; the next step writes the same memory again. Properties of
    one group (all of the root, all of the bodies) are computed together. Copy what must outlive a step.

    Args:
        sim: the :class:`newton_like.articulation.SimulationContext`.
        layout: the :class:`newton_like.articulation.layout.Layout`.
    """

    def __init__(self, sim, layout):
        super().__init__(sim)
        self._layout = layout
        model, device = sim.model, sim.device
        n, count = layout.bodies.shape
        self._body_of = wp.array(layout.bodies, dtype=wp.int32, device=device)
        self._root_of = wp.array(layout.bodies[:, 0], dtype=wp.int32, device=device)
        self._world_of = wp.array(layout.worlds, dtype=wp.int32, device=device)
        kinds = warp_types(model.dtype)
        self._com = wp.zeros((n, count), dtype=kinds.transform, device=device)
        self._com_version, self._own = None, 0
        view = layout.view
        self._body_q, self._body_qd = view(sim.state.body_q, layout.bodies), view(sim.state.body_qd, layout.bodies)
        self._mass, self._inertia = view(model.body_mass, layout.bodies), view(model.body_inertia, layout.bodies)
        self._root_launch = self._bodies_launch = self._reactions = None
        self._block = 1 if device.is_cuda else 16
        self._kernels = state_kernels(model.dtype, self._block)
        self._heads = self.buffer(n)
        self.body_names = layout.body_names
        self.default_mass = self.copy_of(self._mass)
        self.default_inertia = self.copy_of(self._inertia).reshape((n, count, 9))
        self.default_root_state = self.buffer(n, 13)
        wp.copy(self.default_root_state, self.root_state_w)

    # --------------------------------------------------------------------------------------------------- groups

    def renew(self) -> None:
        """Renews the frames of centres of mass after edits of the model, before a graph reads them."""
        self._frames()

    def _frames(self) -> wp.array:
        """Frames of centres of mass, of now."""
        if self._sim.graph is not None:
            self._sim.graph.reads(self)
        model = self._sim.model
        version = edits_of(model).last[BODIES]
        if version != self._com_version:
            n, count = self._layout.bodies.shape
            rows = self._layout.bodies.ravel()
            frames = principal_frames(model.body_com.numpy()[rows], model.body_inertia.numpy()[rows]).reshape(
                n, count, 7
            )
            self._com.assign(frames)
            self._com_version = version
            alike = bool((frames == frames[:1]).all())
            if self._own is not int(not alike):
                self._own = int(not alike)
                self._root_launch = self._bodies_launch = None
        return self._com

    def _compute_root(self, numbers):
        if numbers is None:
            numbers = self.buffer(self._layout.count, ROOT_SIZE)
        self._launch_root(numbers).launch()
        return numbers

    def _launch_root(self, numbers) -> Repeated:
        """The launch that computes the data of the root."""
        self._frames()
        if self._root_launch is None:
            n, state, model = self._layout.count, self._sim.state, self._sim.model
            arguments = [
                self._root_of, self._world_of, self._own, self._com, model.gravity, state.body_q, state.body_qd, self._heads,
                numbers.flatten(),
            ]  # fmt: skip
            blocks, in_graph = -(-n // self._block), [*arguments[:2], 1, *arguments[3:]]
            of_worlds = (1, self._block) if self._layout.is_every_world else None
            self._root_launch = Repeated(self._kernels.root, blocks, arguments, model.device, n, in_graph, of_worlds)
        return self._root_launch

    def _compute_bodies(self, numbers):
        if numbers is None:
            numbers = self.buffer(*self._layout.bodies.shape, BODY_SIZE)
        self._launch_bodies(numbers).launch()
        return numbers

    def _launch_bodies(self, numbers) -> Repeated:
        """The launch that computes the data of all bodies."""
        self._frames()
        n, count = self._layout.bodies.shape
        if self._bodies_launch is None:
            state, model = self._sim.state, self._sim.model
            arguments = [count, self._body_of, self._own, self._com, state.body_q, state.body_qd, numbers.flatten()]
            in_graph = [*arguments[:2], 1, *arguments[3:]]
            of_worlds = (count, 1) if self._layout.is_every_world else None
            self._bodies_launch = Repeated(
                self._kernels.bodies, n * count, arguments, model.device, None, in_graph, of_worlds
            )
        return self._bodies_launch

    def _compute_accelerations(self, numbers):
        whole = self._sim.link_accelerations()
        return self._of_links(whole) if numbers is None else numbers

    def _of_links(self, whole: wp.array) -> wp.array:
        """The links of this asset among those of all articulations, in place."""
        rows = self._layout.articulations[:, None] * whole.shape[1] + self._layout.links
        return self._layout.view(whole.reshape((-1, 6)), rows)

    def _compute_reactions(self, numbers):
        if self._reactions is None:
            self._reactions = JointReactions(self._sim, self._layout)
        if numbers is None:
            numbers = self.buffer(*self._layout.bodies.shape, 6)
        # contacts are those of the last substep
        last = self._sim.link_accelerations_of_substep()
        acceleration = self.body_com_acc_w if last is None else self._of_links(last)
        self._reactions.compute(acceleration, self._body_of, self._world_of, numbers)
        return numbers

    def _compute_com_frames(self, numbers):
        frames = self._frames()
        if numbers is None:
            size = wp.types.type_size_in_bytes(self._sim.model.dtype)
            numbers = wp.array(
                ptr=frames.ptr,
                dtype=self._sim.model.dtype,
                shape=(*frames.shape, 7),
                strides=(*frames.strides, size),
                device=frames.device,
            )
            numbers._ref = frames
        return numbers

    # ------------------------------------------------------------------------------------------------------ root

    root_link_state_w = Part(
        "root", LINK_STATE, LINK_STATE + 13, "Pose and velocity of the link frame, ``[n, 13]``.", quat=3
    )
    root_link_pose_w = Part("root", LINK_STATE, LINK_STATE + 7, "Pose of the link frame, ``[n, 7]``.", quat=3)
    root_link_pos_w = Part("root", LINK_STATE, LINK_STATE + 3, "Position of the link frame, ``[n, 3]``.")
    root_link_quat_w = Part(
        "root", LINK_STATE + 3, LINK_STATE + 7, "Orientation of the link frame, ``[n, 4]``.", quat=0
    )
    root_link_vel_w = Part("root", LINK_STATE + 7, LINK_STATE + 13, "Velocity of the link frame, ``[n, 6]``.")
    root_link_lin_vel_w = Part(
        "root", LINK_STATE + 7, LINK_STATE + 10, "Linear velocity of the link frame's origin, ``[n, 3]``."
    )
    root_link_ang_vel_w = Part("root", LINK_STATE + 10, LINK_STATE + 13, "Angular velocity, ``[n, 3]``.")
    root_com_state_w = Part(
        "root", COM_STATE, COM_STATE + 13, "Pose and velocity of the centre of mass, ``[n, 13]``.", quat=3
    )
    root_com_pose_w = Part("root", COM_STATE, COM_STATE + 7, "Pose of the centre of mass, ``[n, 7]``.", quat=3)
    root_com_pos_w = Part("root", COM_STATE, COM_STATE + 3, "Position of the centre of mass, ``[n, 3]``.")
    root_com_quat_w = Part(
        "root", COM_STATE + 3, COM_STATE + 7, "Orientation of the principal axes, ``[n, 4]``.", quat=0
    )
    root_com_vel_w = Part("root", COM_STATE + 7, COM_STATE + 13, "Velocity of the centre of mass, ``[n, 6]``.")
    root_com_lin_vel_w = Part(
        "root", COM_STATE + 7, COM_STATE + 10, "Linear velocity of the centre of mass, ``[n, 3]``."
    )
    root_com_ang_vel_w = Part("root", COM_STATE + 10, COM_STATE + 13, "Angular velocity, ``[n, 3]``.")
    root_state_w = Part(
        "root",
        ROOT_STATE,
        ROOT_STATE + 13,
        "Pose of the link frame, velocity of the centre of mass, ``[n, 13]``.",
        quat=3,
    )
    root_pose_w, root_pos_w, root_quat_w = root_link_pose_w, root_link_pos_w, root_link_quat_w
    root_vel_w, root_lin_vel_w, root_ang_vel_w = root_com_vel_w, root_com_lin_vel_w, root_com_ang_vel_w
    root_link_lin_vel_b = Part(
        "root",
        LINK_VELOCITY_B,
        LINK_VELOCITY_B + 3,
        "Linear velocity of the link frame's origin in root axes, ``[n, 3]``.",
    )
    root_link_ang_vel_b = Part(
        "root", ANGULAR_VELOCITY_B, ANGULAR_VELOCITY_B + 3, "Angular velocity in root axes, ``[n, 3]``."
    )
    root_com_lin_vel_b = Part(
        "root", COM_VELOCITY_B, COM_VELOCITY_B + 3, "Velocity of the centre of mass in root axes, ``[n, 3]``."
    )
    root_com_ang_vel_b = root_link_ang_vel_b
    root_lin_vel_b, root_ang_vel_b = root_com_lin_vel_b, root_com_ang_vel_b
    projected_gravity_b = Part(
        "root", GRAVITY_B, GRAVITY_B + 3, "Direction of gravity in root axes, ``[n, 3]``; zeros without gravity."
    )
    heading_w = Part("root", HEADING, None, "Angle of the root's x axis about the world's z axis [rad], ``[n]``.")

    # ---------------------------------------------------------------------------------------------------- bodies

    body_link_pose_w = View("_body_q", "Poses of link frames, ``[n, b, 7]``.", moved=True, quat=3)
    body_link_pos_w = View("_body_q", "Positions of link frames, ``[n, b, 3]``.", moved=True, last=3)
    body_link_quat_w = View(
        "_body_q", "Orientations of link frames, ``[n, b, 4]``.", moved=True, quat=0, first=3, last=7
    )
    body_com_vel_w = View("_body_qd", "Velocities of centres of mass, ``[n, b, 6]``.", moved=True)
    body_com_lin_vel_w = View("_body_qd", "Linear velocities of centres of mass, ``[n, b, 3]``.", moved=True, last=3)
    body_com_ang_vel_w = View("_body_qd", "Angular velocities, ``[n, b, 3]``.", moved=True, first=3, last=6)
    body_link_state_w = Part(
        "bodies", LINK_STATE, LINK_STATE + 13, "Poses and velocities of link frames, ``[n, b, 13]``.", quat=3
    )
    body_link_vel_w = Part("bodies", LINK_STATE + 7, LINK_STATE + 13, "Velocities of link frames, ``[n, b, 6]``.")
    body_link_lin_vel_w = Part(
        "bodies", LINK_STATE + 7, LINK_STATE + 10, "Linear velocities of the origins of link frames, ``[n, b, 3]``."
    )
    body_link_ang_vel_w = Part("bodies", LINK_STATE + 10, LINK_STATE + 13, "Angular velocities, ``[n, b, 3]``.")
    body_com_state_w = Part(
        "bodies", COM_STATE, COM_STATE + 13, "Poses and velocities of centres of mass, ``[n, b, 13]``.", quat=3
    )
    body_com_pose_w = Part("bodies", COM_STATE, COM_STATE + 7, "Poses of centres of mass, ``[n, b, 7]``.", quat=3)
    body_com_pos_w = Part("bodies", COM_STATE, COM_STATE + 3, "Positions of centres of mass, ``[n, b, 3]``.")
    body_com_quat_w = Part(
        "bodies", COM_STATE + 3, COM_STATE + 7, "Orientations of principal axes, ``[n, b, 4]``.", quat=0
    )
    body_state_w = Part(
        "bodies",
        ROOT_STATE,
        ROOT_STATE + 13,
        "Poses of link frames, velocities of centres of mass, ``[n, b, 13]``.",
        quat=3,
    )
    body_pose_w, body_pos_w, body_quat_w = body_link_pose_w, body_link_pos_w, body_link_quat_w
    body_vel_w, body_lin_vel_w, body_ang_vel_w = body_com_vel_w, body_com_lin_vel_w, body_com_ang_vel_w
    body_com_acc_w = Part("accelerations", 0, 6, "Accelerations of centres of mass in the last step, ``[n, b, 6]``.")
    body_com_lin_acc_w = Part(
        "accelerations", 0, 3, "Linear accelerations of centres of mass in the last step, ``[n, b, 3]``."
    )
    body_com_ang_acc_w = Part("accelerations", 3, 6, "Angular accelerations in the last step, ``[n, b, 3]``.")
    body_acc_w, body_lin_acc_w, body_ang_acc_w = body_com_acc_w, body_com_lin_acc_w, body_com_ang_acc_w
    body_incoming_joint_wrench_b = Part(
        "reactions",
        0,
        6,
        "Wrenches of the last step that bodies get from their parents through their joints, drives included, ``[n, b, 6]``: force [N],"
        " and torque about the child's anchor of the joint [N m], axes of the link. Between a reset and the next step: for accelerations of"
        " zero, without contacts and external wrenches.",
    )
    body_com_pose_b = Part("com_frames", 0, 7, "Frames of centres of mass in link frames, ``[n, b, 7]``.", quat=3)
    body_com_pos_b = Part("com_frames", 0, 3, "Centres of mass in link frames, ``[n, b, 3]``.")
    body_com_quat_b = Part("com_frames", 3, 7, "Principal axes of inertia in link axes, ``[n, b, 4]``.", quat=0)
    com_pos_b, com_quat_b = body_com_pos_b, body_com_quat_b
    body_mass = View("_mass", "Masses [kg], ``[n, b]``, of the model itself.")
    body_inertia = View(
        "_inertia", "Inertias about the centres of mass, link axes [kg m^2], ``[n, b, 3, 3]``, of the model itself."
    )
