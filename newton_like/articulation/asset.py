"""The base class of assets: bodies, root state, external wrenches and reset."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, host_array, is_captured
from newton_like.articulation.activations import Activations
from newton_like.articulation.chosen import Chosen, as_device, choose, write
from newton_like.articulation.drawing import Drawing
from newton_like.articulation.launching import Repeated
from newton_like.articulation.layout import Layout
from newton_like.articulation.names import find_names
from newton_like.articulation.simulation import SimulationContext
from newton_like.articulation.wrenches import WrenchComposer
from newton_like.coercion import as_number
from newton_like.geometry.transforms import transform_inverse, transform_multiply
from newton_like.kernels.articulation.poses import pose_kernels
from newton_like.kernels.articulation.wrenches import wrench_kernels
from newton_like.model.editing.edit_checks import check_masses
from newton_like.types import ModelFlags


class Asset(Drawing):
    """One articulation of each world. Use :class:`newton_like.articulation.Articulation` or :class:`newton_like.articulation.RigidObject`.

    A subclass may override :meth:`write_data_to_sim`, :meth:`update` and :meth:`reset`, and call those of this class. Forces on bodies of
    its own are added in :meth:`add_wrenches`, with :attr:`adds_wrenches` true.

    Args:
        model: a :class:`newton_like.Model`, or the :class:`newton_like.articulation.SimulationContext` to act on; of a model, that which
            was made for it, or a new one.
        pattern: pattern of the labels of articulations: shell-style (``"walk*"``), a compiled regular expression, or a list.

    Attributes:
        sim: the :class:`newton_like.articulation.SimulationContext`.
        model, device: the model and its device.
        data: the data.
        permanent_wrench_composer: wrenches that act until they are reset.
        instantaneous_wrench_composer: wrenches of the next physics step only.
    """

    adds_wrenches = False
    """Whether :meth:`add_wrenches` adds forces to bodies in every physics step."""

    def __init__(self, model, pattern):
        self.sim = SimulationContext.of(model)
        self.model, self.device = self.sim.model, self.sim.device
        check_recorded(self.device, f"{type(self).__name__}(model)")
        self._layout = Layout(self.model, pattern)
        self._every = Chosen(None, self._layout.count, self.device)
        self._every_body = Chosen(None, self._layout.bodies.shape[1], self.device)
        state, layout = self.sim.state, self._layout
        self._pushed = layout.view(state.body_f, layout.bodies)
        self._world_of = wp.array(layout.worlds, dtype=wp.int32, device=self.device)
        self._root_joint = wp.array(layout.root_joints, dtype=wp.int32, device=self.device)
        if layout.is_floating:
            self._root_q = layout.root_view(state.joint_q, layout.root_coords, 7)
            self._root_qd = layout.root_view(state.joint_qd, layout.root_dofs, 6)
            self._root_qdd = layout.root_view(state.joint_qdd, layout.root_dofs, 6)
        self.permanent_wrench_composer = WrenchComposer(self)
        self.instantaneous_wrench_composer = WrenchComposer(self)
        self._activations = Activations(self.sim, layout.articulations)
        self._wrench_launches: dict[bool, Repeated] = {}
        self._pressing = self.sim.pressing(self, layout.bodies)
        self._pressed = False
        self._start_drawing()
        self.data = self._make_data()
        self._first_pose = self.data.default_root_state.numpy()[:, :7].copy()

    def _make_data(self):
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------------- names

    @property
    def num_instances(self) -> int:
        """Number of instances: one in each world."""
        return self._layout.count

    @property
    def num_bodies(self) -> int:
        """Number of bodies."""
        return self._layout.bodies.shape[1]

    @property
    def body_names(self) -> list[str]:
        """Names of bodies, the root first."""
        return self._layout.body_names

    @property
    def is_fixed_base(self) -> bool:
        """Whether the root has no free joint."""
        return not self._layout.is_floating

    @property
    def is_initialized(self) -> bool:
        """True: an asset is ready when it is made."""
        return True

    def find_bodies(self, name_keys, preserve_order: bool = False) -> tuple[list[int], list[str]]:
        """Bodies whose names match regular expressions as a whole.

        Args:
            name_keys: a regular expression, or several.
            preserve_order: results are in the order of the expressions.

        Returns:
            Indices and names.

        Raises:
            ValueError: an expression matches nothing, or two match one name.
            TypeError: not regular expressions.
        """
        return find_names(name_keys, self.body_names, "body", preserve_order)

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self._layout.label}', {self.num_instances} worlds, {self.num_bodies} bodies)"

    def _rows(self, env_ids) -> Chosen:
        """Chosen instances."""
        return choose(env_ids, self.num_instances, self.device, "env_ids", self._every)

    # ------------------------------------------------------------------------------------------------------- mass

    def write_body_mass_to_sim(self, mass, body_ids=None, env_ids=None) -> None:
        """Writes masses [kg], ``[instances, bodies]`` or broadcast to it. Inertias stay.

        Args:
            mass: at least 0.
            body_ids, env_ids: None (all), a slice, indices, or a mask of bools.

        Raises:
            ValueError: another shape; numbers that the solver refuses.
            IndexError: a body or an instance does not exist.
        """
        self._write_bodies(self.data._mass, mass, body_ids, env_ids, "mass")

    def write_body_com_to_sim(self, com, body_ids=None, env_ids=None) -> None:
        """Writes centres of mass in link frames [m], ``[instances, bodies, 3]``; see :meth:`write_body_mass_to_sim`."""
        target = self._layout.view(self.model.body_com, self._layout.bodies)
        self._write_bodies(target, com, body_ids, env_ids, "com")

    def write_body_inertia_to_sim(self, inertia, body_ids=None, env_ids=None) -> None:
        """Writes inertias about the centres of mass in link axes [kg m^2], ``[instances, bodies, 9]`` by rows, or matrices ``[..., 3, 3]``;
        see :meth:`write_body_mass_to_sim`."""
        whole = self.data._inertia
        shape = tuple(getattr(inertia, "shape", None) or np.shape(inertia))
        if shape[-2:] == (3, 3):
            inertia = host_array(inertia, "inertia")
            inertia = inertia.reshape((*inertia.shape[:-2], 9))
        size = wp.types.type_size_in_bytes(whole.dtype)
        flat = wp.array(
            ptr=whole.ptr, dtype=whole.dtype, shape=(*whole.shape[:2], 9), strides=(*whole.strides[:2], size), device=self.device
        )  # fmt: skip
        self._write_bodies(flat, inertia, body_ids, env_ids, "inertia")

    def _write_bodies(self, target: wp.array, values, body_ids, env_ids, name: str) -> None:
        check_recorded(self.device, f"{name} of bodies")
        rows, before = self._rows(env_ids), target.numpy().copy()
        write(target, rows, choose(body_ids, self.num_bodies, self.device, "body_ids"), values, name)
        try:
            check_masses(self.model)
        except ValueError:
            every = choose(None, self.num_bodies, self.device, "body_ids")
            write(target, self._every, every, before, name)
            raise
        self.sim.notify(ModelFlags.BODY_INERTIAL_PROPERTIES, rows, self._layout.worlds)

    # -------------------------------------------------------------------------------------------- external wrenches

    def set_external_force_and_torque(
        self, forces, torques, positions=None, body_ids=None, env_ids=None, is_global: bool = False
    ) -> None:
        """Sets wrenches that act until they are set again or reset.

        Arguments and errors are those of :meth:`newton_like.articulation.WrenchComposer.set_forces_and_torques`.
        """
        self.permanent_wrench_composer.set_forces_and_torques(forces, torques, positions, body_ids, env_ids, is_global)

    def add_wrenches(self) -> None:
        """Adds forces of a subclass to ``sim.state.body_f``: force [N] and torque about the centre of mass [N m], world axes. Called in
        every physics step if :attr:`adds_wrenches` is true, after ``body_f`` of the bodies got the wrenches of both composers (or
        zeros)."""

    def renew(self) -> None:
        """Renews numbers that are computed on the host after edits, before a graph reads them."""

    def _apply_wrenches(self) -> None:
        """Writes the wrenches of both composers in the poses of now."""
        if self.sim.graph is not None:
            self.sim.graph.reads(self)
        lasting, once = self.permanent_wrench_composer, self.instantaneous_wrench_composer
        # a graph applies what will be set later
        captured = is_captured(self.device)
        active = lasting.active or once.active or captured
        if active or self._pressed or self.adds_wrenches or self._pressing.left:
            self.sim.forward()
            adds = not self._pressing.is_first(self, self.sim.steps)
            launch = self._wrench_launches.get(adds)
            if launch is None:
                state, data = self.sim.state, self.data
                arguments = [
                    self.num_bodies, data._body_of, lasting.composed, once.composed, self.model.body_com, state.body_q, adds, state.body_f
                ]  # fmt: skip
                count = self.num_instances * self.num_bodies
                kernel = wrench_kernels(self.model.dtype).apply
                launch = self._wrench_launches[adds] = Repeated(kernel, count, arguments, self.device, 3 * count)
            launch.launch()
            self._pressed = active
            if self._shows:
                self._keep_wrenches()
            once.reset(always=captured)
        if self.adds_wrenches:
            self.add_wrenches()

    # ------------------------------------------------------------------------------------------------- root state

    def write_root_state_to_sim(self, root_state, env_ids=None) -> None:
        """Writes poses of root links and velocities of their centres of mass.

        Args:
            root_state: position [m], quaternion x y z w, linear velocity [m/s], angular velocity [rad/s], world axes: ``[instances,
                13]``, or broadcast to it.
            env_ids: instances: None (all), a slice, indices, or a mask of bools. With a mask, rows are those of chosen or of all instances.

        Raises:
            ValueError: another shape; numbers that are not finite and zero quaternions (Warp arrays are not looked at); velocities of a
                root without a free joint, unless they are zero, those of now, or the default ones; another pose of a root on a joint than
                that of now and the default one.
            IndexError: an instance does not exist.
        """
        self._write_state(root_state, env_ids, False, False)

    def write_root_link_state_to_sim(self, root_state, env_ids=None) -> None:
        """Writes poses and velocities of root links; see :meth:`write_root_state_to_sim`."""
        self._write_state(root_state, env_ids, False, True)

    def write_root_com_state_to_sim(self, root_state, env_ids=None) -> None:
        """Writes poses and velocities of the centres of mass of roots; see :meth:`write_root_state_to_sim`."""
        self._write_state(root_state, env_ids, True, False)

    def write_root_link_pose_to_sim(self, root_pose, env_ids=None) -> None:
        """Writes poses of root links, ``[instances, 7]``. The velocity of the centre of mass stays. A root without a free joint is moved
        with its anchor in the world; see :meth:`write_root_state_to_sim`."""
        self._write_pose(root_pose, self._rows(env_ids), False)

    def write_root_com_pose_to_sim(self, root_pose, env_ids=None) -> None:
        """Writes poses of the centres of mass of roots along their principal axes; see :meth:`write_root_link_pose_to_sim`."""
        self._write_pose(root_pose, self._rows(env_ids), True)

    def write_root_link_velocity_to_sim(self, root_velocity, env_ids=None) -> None:
        """Writes velocities of the origins of root links, ``[instances, 6]``; see :meth:`write_root_state_to_sim`."""
        self._write_velocity(root_velocity, self._rows(env_ids), True)

    def write_root_com_velocity_to_sim(self, root_velocity, env_ids=None) -> None:
        """Writes velocities of the centres of mass of roots, ``[instances, 6]``; see :meth:`write_root_state_to_sim`."""
        self._write_velocity(root_velocity, self._rows(env_ids), False)

    def write_root_pose_to_sim(self, root_pose, env_ids=None) -> None:
        """As :meth:`write_root_link_pose_to_sim`."""
        self.write_root_link_pose_to_sim(root_pose, env_ids)

    def write_root_velocity_to_sim(self, root_velocity, env_ids=None) -> None:
        """As :meth:`write_root_com_velocity_to_sim`."""
        self.write_root_com_velocity_to_sim(root_velocity, env_ids)

    def _write_state(self, state, env_ids, pose_of_com: bool, velocity_of_link: bool) -> None:
        rows = self._rows(env_ids)
        self._put_state(
            self._checked_state(state, rows, pose_of_com, velocity_of_link), rows, pose_of_com, velocity_of_link
        )

    def _checked_state(self, state, rows: Chosen, pose_of_com: bool, velocity_of_link: bool) -> wp.array:
        """A state ``[rows, 13]`` on the device that can be written. Nothing is written."""
        values = as_device(state, rows, (13,), self.model.dtype, self.device, "root_state", quaternion_at=3)
        if rows.count and not self._layout.is_floating:
            numbers = values.numpy()
            if not self.root_is_fixed:
                self._refuse_another_pose(numbers[:, :7], rows, pose_of_com)
            self._refuse_another_velocity(numbers[:, 7:], rows, velocity_of_link)
        return values

    def _put_state(self, values: wp.array, rows: Chosen, pose_of_com: bool, velocity_of_link: bool) -> None:
        """Writes what :meth:`_checked_state` gave."""
        if not rows.count:
            return
        if self._layout.is_floating or self.root_is_fixed:
            self._write_pose(values[:, :7], rows, pose_of_com)
        if self._layout.is_floating:
            self._write_velocity(values[:, 7:], rows, velocity_of_link)

    def _write_pose(self, pose, rows: Chosen, of_com: bool) -> None:
        values = as_device(pose, rows, (7,), self.model.dtype, self.device, "root_pose", quaternion_at=3)
        kernels, model = pose_kernels(self.model.dtype), self.model
        if not rows.count:
            return
        inputs = [rows.array, values, of_com, self.data._frames(), self._root_joint]
        if self._layout.is_floating:
            wp.launch(
                kernels.put_poses, dim=rows.count, inputs=[*inputs, model.joint_X_p, model.joint_X_c], outputs=[self._root_q],
                device=self.device,
            )  # fmt: skip
        else:
            if not self.root_is_fixed:
                self._refuse_another_pose(values.numpy(), rows, of_com)
                return
            wp.launch(
                kernels.put_anchors,
                dim=rows.count,
                inputs=[*inputs, model.joint_X_c],
                outputs=[model.joint_X_p],
                device=self.device,
            )
            self.sim.notify(ModelFlags.JOINT_PROPERTIES, rows, self._layout.worlds)
        self.sim.joints_written(rows.array, rows.count, self._world_of)

    def _write_velocity(self, velocity, rows: Chosen, of_link: bool) -> None:
        values = as_device(velocity, rows, (6,), self.model.dtype, self.device, "root_velocity")
        if not rows.count:
            return
        if not self._layout.is_floating:
            self._refuse_another_velocity(values.numpy(), rows, of_link)
            return
        model = self.model
        inputs = [
            rows.array, values, of_link, self.data._frames(), self._root_joint, model.joint_X_p, model.joint_X_c, self._root_q
        ]  # fmt: skip
        kernel = pose_kernels(model.dtype).put_velocities
        wp.launch(kernel, dim=rows.count, inputs=inputs, outputs=[self._root_qd], device=self.device)
        self.sim.joints_written(rows.array, rows.count, self._world_of)

    def _refuse_another_velocity(self, numbers: np.ndarray, rows: Chosen, of_link: bool) -> None:
        """Raises ValueError unless a root without a free joint has these velocities, in the state or by default, or they are zero."""
        if not numbers.any():
            return
        data = self.data
        now = (data.root_link_vel_w if of_link else data.root_com_vel_w).numpy()[rows.indices]
        if _same(numbers, now, data.default_root_state.numpy()[rows.indices, 7:]):
            return
        raise ValueError(
            f"'{self._layout.label}' has no free joint at its root, so that its root has no velocity to write; give zeros, or write the"
            " velocities of joints"
        )

    @property
    def root_is_fixed(self) -> bool:
        """Whether a joint without dofs holds the root in the world."""
        joint = int(self._layout.root_joints[0])
        start = self.model.joint_qd_start.numpy()
        return bool(start[joint + 1] == start[joint] and self.model.joint_parent.numpy()[joint] < 0)

    def _refuse_another_pose(self, numbers: np.ndarray, rows: Chosen, of_com: bool) -> None:
        """Raises ValueError unless a root that moves on a joint has these poses, in the state or by default."""
        data, joint = self.data, int(self._layout.root_joints[0])
        now = (data.root_com_pose_w if of_com else data.root_link_pose_w).numpy()[rows.indices]
        if _same(numbers, now, data.default_root_state.numpy()[rows.indices, :7]):
            return
        raise ValueError(
            f"the root of '{self._layout.label}' moves on joint '{self.model.joint_label[joint]}', so that its pose follows from that"
            " joint: write the joint's position (the pose of now and the default pose are accepted, and change nothing)"
        )

    def _checked_root(self, rows: Chosen, root_state, frame: str) -> wp.array | None:
        """The state that a reset writes, looked at: the default one, or a given one in a frame; None: the root stays.

        Raises:
            ValueError: an unknown frame; see :meth:`write_root_state_to_sim`.
        """
        if frame not in ("state", "link", "com"):
            raise ValueError(f"frame {frame!r} must be 'state', 'link' or 'com'")
        if root_state is None:
            start = self.data.default_root_state
            if self._layout.is_floating:
                root_state = start if rows.everything else start.numpy()[rows.indices]
            else:
                root_state, frame = self._default_root(rows, start.numpy()[rows.indices]), "state"
            if root_state is None:
                return None
        return self._checked_state(root_state, rows, frame == "com", frame == "link")

    def _default_root(self, rows: Chosen, start: np.ndarray) -> np.ndarray | None:
        """Default states that a reset writes to roots without a free joint; None: they stay. Roots that are fixed to the world stay where
        they are unless their default poses were set."""
        if not self.root_is_fixed or not rows.count:
            return None
        now = self.data.root_link_pose_w.numpy()[rows.indices]
        lost = ~np.isfinite(now).all(axis=1)
        if lost.any():
            # a solver of maximal coordinates moves roots on fixed joints, too, so that they may be NaN
            model, joints = self.model, self._layout.root_joints[rows.indices[lost]]
            now[lost] = transform_multiply(
                model.joint_X_p.numpy()[joints], transform_inverse(model.joint_X_c.numpy()[joints])
            )
        is_set = (start[:, :7] != self._first_pose[rows.indices]).any(axis=1)
        poses = np.where(is_set[:, None], start[:, :7], now)
        if _same(poses, now):
            return None
        return np.concatenate([poses, start[:, 7:]], axis=1)

    def _put_root(self, values: wp.array | None, rows: Chosen, frame: str) -> None:
        """Writes what :meth:`_checked_root` gave."""
        if values is not None:
            self._put_state(values, rows, frame == "com", frame == "link")

    # ------------------------------------------------------------------------------------------------------- steps

    def write_data_to_sim(self) -> None:
        """Applies external wrenches. Call it before every physics step."""
        self._apply_wrenches()

    def _members(self) -> list:
        """The assets that are written and updated with this one: itself."""
        return [self]

    def update(self, dt: float) -> None:
        """Lets data be computed again at their next use, after steps that other code took.

        Args:
            dt: time since the last call [s], at least 0.

        Raises:
            TypeError: not a number.
            ValueError: negative.
        """
        if as_number(dt, "dt") < 0.0:
            raise ValueError(f"dt {dt!r} must be at least 0, the seconds since the last call")
        self.sim.touch()

    def reset(self, env_ids=None) -> None:
        """Clears what is remembered of instances: external wrenches, contact forces that steps start from, accelerations, activations and
        controls of actuators of the model.

        Args:
            env_ids: instances: None (all), a slice, indices, or a mask of bools.

        Raises:
            IndexError: an instance does not exist.
        """
        check_recorded(self.device, f"reset of '{self._layout.label}'")
        rows = self._rows(env_ids)
        self.permanent_wrench_composer.reset(rows)
        self.instantaneous_wrench_composer.reset(rows)
        self._activations.reset(rows)
        if rows.count:
            # what the last write_data_to_sim applied
            write(self._pushed, rows, self._every_body, 0.0, "zeros")
            if self._layout.is_floating:
                write(self._root_qdd, rows, choose(None, 6, self.device, "dofs"), 0.0, "zeros")
                self.sim.calm(self._layout.root_dofs[rows.indices, None] + np.arange(6))
            self.sim.calm(self._layout.dofs[rows.indices])
            self.sim.forget(None if rows.everything else self._layout.worlds[rows.indices])
            self.sim.touch()


def _same(numbers: np.ndarray, *others: np.ndarray) -> bool:
    """Whether numbers, or quaternions of the other sign behind three of them, are those of an array, up to rounding."""

    def near(other: np.ndarray) -> bool:
        other = other.copy()
        if other.shape[1] == 7:
            turned = np.einsum("ni,ni->n", numbers[:, 3:], other[:, 3:]) < 0.0
            other[turned, 3:] *= -1.0
        return np.allclose(numbers, other, rtol=1.0e-5, atol=1.0e-5)

    return any(near(other) for other in others)
