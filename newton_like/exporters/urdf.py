"""Exports robots of models as URDF files."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from newton_like.coercion import as_index
from newton_like.geometry.transforms import IDENTITY, quat_rotate, quat_to_matrix, transform_inverse, transform_multiply
from newton_like.importers.urdf.build import plane_axes
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.model import Model, resting_body
from newton_like.types import MAXVAL, BodyFlags, GeoType, ShapeFlags

ALIGNED = 1.0e-6
"""Largest difference of directions that count as equal, for float32 models."""


class UrdfExportWarning(UserWarning):
    """Warning about properties of a robot that URDF cannot represent."""


@dataclass(frozen=True)
class UrdfExport:
    """Result of :func:`write`.

    Attributes:
        name: name of the robot.
        floating: whether its root is free; for ``add_urdf(..., floating=...)``.
        xform: pose of the root link in the world for a fixed base; for ``add_urdf(..., xform=...)``.
        links, joints: names in the file, by index in the model.
        meshes: mesh files that were written.
        remarks: statements about properties that are not in the file, with the labels concerned.
    """

    name: str
    floating: bool
    xform: np.ndarray
    links: dict[int, str]
    joints: dict[int, str]
    meshes: list[Path]
    remarks: dict[str, list[str]] = field(default_factory=dict)


def write(model: Model, path, *, articulation: int = 0) -> UrdfExport:
    """Saves one robot of a model as a URDF file, which ``ModelBuilder.add_urdf`` reads back with all digits.

    The file has links with their masses, joints with axes, limits, damping, friction and mimics, shapes with their colours, and
    armatures as transmissions with a rotor (``drake:rotor_inertia``). Meshes are OBJ files in the folder
    ``<name of the file>_meshes``. The frame of a link is the frame of its joint. A free or fixed base joint is not part of a URDF; another
    base joint connects the robot with an additional link ``world``.

    URDF does not have drives, springs, tendons, entries of ``model.actuators``, contact settings, collision filters, gravity, initial
    coordinates, sites, kinematic bodies, disabled joints, and shapes other than boxes, spheres, cylinders, capsules and meshes. The report
    and one warning list those of the robot, except gravity, filters, contact settings and coordinates. Named frames of merged links
    (``model.frames``) are not written.

    Args:
        model: the model.
        path: the file. An existing file is replaced.
        articulation: index of the robot.

    Raises:
        TypeError: ``model`` is not a :class:`Model`, or ``path`` is not a path.
        IndexError: the articulation does not exist.
        ValueError: a body has no joint, a joint is of a kind that URDF does not have (BALL, DISTANCE, most D6), or closes a loop,
            or a name occurs twice.
        OSError: the file cannot be written.
    """
    if not isinstance(model, Model):
        raise TypeError(f"{model!r} is not a Model; a ModelBuilder makes one by finalize()")
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a string or a path, not {path!r}")
    path, rests = Path(path), resting_body(model)
    if rests is not None:
        raise ValueError(
            f"{rests} has no joint; URDF cannot represent such bodies: fix the body to the world with add_joint_fixed"
        )
    writer = _Writer(model, as_index(articulation, "articulation", model.articulation_count), path)
    report = writer.write()
    if report.remarks:
        told = "; ".join(f"{statement}: {', '.join(names[:5])}" for statement, names in report.remarks.items())
        warnings.warn(UrdfExportWarning(f"{path.name}: {told}"), stacklevel=2)
    return report


class _Writer:
    def __init__(self, model: Model, articulation: int, path: Path):
        self.model, self.path = model, path
        self.name = model.articulation_label[articulation] or path.stem
        start, end = (int(getattr(model, f"articulation_{which}").numpy()[articulation]) for which in ("start", "end"))
        self.range = range(start, end)
        self._arrays: dict[str, np.ndarray] = {}
        self.links, self.joints, self.frames = {}, {}, {}
        self.remarks: dict[str, list[str]] = {}
        self.meshes: dict[int, Path] = {}
        self.root = ElementTree.Element("robot", name=self.name, version="1.1")

    def __getattr__(self, name: str) -> np.ndarray:
        """An array of the model on the CPU."""
        if name.split("_")[0] not in ("joint", "body", "shape"):
            raise AttributeError(name)
        if name not in self._arrays:
            self._arrays[name] = getattr(self.model, name).numpy()
        return self._arrays[name]

    def write(self) -> UrdfExport:
        self._refuse_loops()
        base = self.range[0]
        kind = JOINT_TYPES[self.joint_type[base]]
        floating, pose = not kind.anchored and self.joint_parent[base] < 0, IDENTITY
        carried = self.joint_parent[base] >= 0 or (kind.anchored and not kind.fixed)
        if carried:
            self._link("world", None)
        elif kind.fixed:
            pose = self.joint_X_p[base]
        for joint in self.range:
            child = int(self.joint_child[joint])
            self.links[child] = self._named(self.model.body_label[child], self.links)
            self.frames[child] = IDENTITY if joint == base and floating else self.joint_X_c[joint]
            self._link(self.links[child], child)
        for joint in self.range[0 if carried else 1 :]:
            self.joints[joint] = self._named(self.model.joint_label[joint], self.joints)
        for joint in self.joints:
            self._joint(joint)
        for joint in self.range:
            self._remark_rest(joint)
        for label in self._tendons():
            self._remark("tendons are not written", label)
        for actuator in filter(self._is_moved_by, self.model.actuators):
            self._remark("actuators are not written", actuator.label)
        for key in self.model.custom_attributes:
            self._remark("custom attributes are not written", key)
        ElementTree.indent(self.root)
        self.path.write_text(ElementTree.tostring(self.root, encoding="unicode") + "\n", encoding="utf-8")
        return UrdfExport(
            self.name, floating, np.array(pose), self.links, self.joints, list(self.meshes.values()), self.remarks
        )

    def _tendons(self) -> list[str]:
        """Labels of the tendons of the robot."""
        return [tendon.label for tendon in self.model.tendons if self._carries(tendon)]

    def _carries(self, tendon) -> bool:
        """Whether a tendon runs through links of the robot."""
        shapes = [i for kind, *ids in tendon.path if kind != "pulley" for i in ids if i >= 0]
        bodies = {int(self.shape_body[i]) for i in shapes} | {int(self.joint_child[j]) for j, _, _ in tendon.joints}
        return not bodies.isdisjoint(self.links)

    def _is_moved_by(self, actuator) -> bool:
        """Whether an actuator acts on the robot."""
        if actuator.transmission == "tendon":
            return self._carries(self.model.tendons[actuator.target])
        bodies = {actuator.target}
        if actuator.pulls_sites:
            bodies = {int(self.shape_body[i]) for i in (actuator.target, actuator.reference) if i >= 0}
        elif actuator.transmission != "body":
            bodies = {int(self.joint_child[actuator.target])}
        return not bodies.isdisjoint(self.links)

    def _named(self, label: str, taken: dict[int, str]) -> str:
        name = label.removeprefix(f"{self.name}/")
        if not name or name in taken.values():
            raise ValueError(f"the name {name!r} of {label!r} is empty or used twice; URDF needs unique names")
        return name

    def _remark(self, statement: str, label: str) -> None:
        self.remarks.setdefault(statement, []).append(label)

    def _refuse_loops(self) -> None:
        bodies = {int(self.joint_child[joint]) for joint in self.range}
        for joint in np.flatnonzero(self.joint_articulation < 0):
            if bodies & {int(self.joint_parent[joint]), int(self.joint_child[joint])}:
                raise ValueError(
                    f"joint {self.model.joint_label[joint]!r} (index {joint}) closes a loop; URDF is a tree: write the robot "
                    "as USD, or build it without this joint"
                )

    # ------------------------------------------------------------------------------------------------ links

    def _link(self, name: str, body: int | None) -> None:
        link = _sub(self.root, "link", name=name)
        if body is None:
            return
        to_link = transform_inverse(self.frames[body])
        mass, inertia = float(self.body_mass[body]), self.body_inertia[body]
        if mass > 0.0:
            inertial = _sub(link, "inertial")
            turn = quat_to_matrix(to_link[3:])
            com = self.body_com[body]
            if np.any(to_link != IDENTITY):
                com = to_link[:3] + quat_rotate(to_link[3:], com)
            _sub(inertial, "origin", xyz=_text(com), rpy="0 0 0")
            _sub(inertial, "mass", value=_text(self.body_mass[body]))
            matrix = turn @ inertia @ turn.T if np.any(to_link[3:] != IDENTITY[3:]) else inertia
            names = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
            _sub(inertial, "inertia", **{key: _text(matrix[place]) for key, place in names.items()})
        shapes = np.flatnonzero(self.shape_body == body).tolist()
        colliding = {shape for shape in shapes if self.shape_flags[shape] & ShapeFlags.COLLIDE_SHAPES}
        for shape in shapes:
            if shape in colliding or self.shape_flags[shape] & ShapeFlags.VISIBLE:
                self._shape(link, shape, "collision" if shape in colliding else "visual", to_link)
            else:
                self._remark("sites and hidden shapes", self.model.shape_label[shape])
        if self.body_flags[body] & BodyFlags.KINEMATIC:
            self._remark("kinematic bodies", self.model.body_label[body])

    def _shape(self, link, shape: int, tag: str, to_link: np.ndarray) -> None:
        label, kind = self.model.shape_label[shape], GeoType(self.shape_type[shape])
        sizes = self.shape_scale[shape]
        geometry = ElementTree.Element("geometry")
        if kind == GeoType.BOX:
            _sub(geometry, "box", size=_text(2 * sizes))
        elif kind == GeoType.SPHERE:
            _sub(geometry, "sphere", radius=_text(sizes[0]))
        elif kind in (GeoType.CYLINDER, GeoType.CAPSULE):
            _sub(geometry, kind.name.lower(), radius=_text(sizes[0]), length=_text(2 * sizes[1]))
        elif self.model.shape_source[shape] is not None and kind != GeoType.HFIELD:
            _sub(geometry, "mesh", filename=self._mesh(self.model.shape_source[shape]), scale=_text(sizes))
        else:
            self._remark("shapes that URDF does not have", label)
            return
        piece = _sub(link, tag, name=label.rpartition("/")[2] or f"shape_{shape}")
        _sub(piece, "origin", **_place(_moved(to_link, self.shape_transform[shape])))
        piece.append(geometry)
        material = _sub(piece, "material", name=f"color_{shape}")
        _sub(material, "color", rgba=_text([*self.shape_color[shape], self.shape_opacity[shape]]))

    def _mesh(self, mesh) -> str:
        """Name of the file of a mesh. The first call for a mesh writes the file."""
        if id(mesh) not in self.meshes:
            folder = self.path.with_name(f"{self.path.stem}_meshes")
            folder.mkdir(exist_ok=True)
            stem = re.sub(r"\W", "_", Path(mesh.path).stem if mesh.path else "mesh")
            file = folder / f"{stem}_{len(self.meshes)}.obj"
            lines = [f"v {_text(point)}" for point in mesh.vertices]
            lines += [f"f {a} {b} {c}" for a, b, c in (mesh.indices.reshape(-1, 3) + 1).tolist()]
            file.write_text("\n".join(lines) + "\n")
            self.meshes[id(mesh)] = file
        return f"{self.path.stem}_meshes/{self.meshes[id(mesh)].name}"

    # ------------------------------------------------------------------------------------------------ joints

    def _joint(self, joint: int) -> None:
        parent, child = int(self.joint_parent[joint]), int(self.joint_child[joint])
        dofs = range(*self.joint_qd_start[joint : joint + 2])
        kind, axis = self._kind(joint, dofs)
        element = _sub(self.root, "joint", name=self.joints[joint], type=kind)
        inside = parent in self.frames
        _sub(element, "parent", link=self.links[parent] if inside else "world")
        _sub(element, "child", link=self.links[child])
        place = self.joint_X_p[joint]
        _sub(element, "origin", **_place(_moved(transform_inverse(self.frames[parent]), place) if inside else place))
        if axis is None:
            return
        _sub(element, "axis", xyz=_text(axis))
        dof, label = dofs[0], self.model.joint_label[joint]
        limit = {"effort": self.joint_effort_limit[dof], "velocity": self.joint_velocity_limit[dof]}
        lower, upper = self.joint_limit_lower[dof], self.joint_limit_upper[dof]
        if kind in ("revolute", "prismatic") or (kind == "planar" and max(-lower, upper) < MAXVAL):
            limit |= {"lower": lower, "upper": upper}
        _sub(element, "limit", **{key: _text(value) for key, value in limit.items()})
        _sub(element, "dynamics", damping=_text(self.joint_damping[dof]), friction=_text(self.joint_friction[dof]))
        leader = int(self.joint_mimic_joint[joint])
        if leader >= 0:
            offset, factor = self.joint_mimic_coeffs[joint]
            _sub(element, "mimic", joint=self.joints[leader], multiplier=_text(factor), offset=_text(offset))
        if self.joint_armature[dof] > 0.0 and kind != "planar":
            self._rotor(self.joints[joint], self.joint_armature[dof])
        elif np.any(self.joint_armature[dofs]):
            self._remark("armatures of planar joints", label)
        if 0.0 in (limit["effort"], limit["velocity"]):
            self._remark("limits of 0, which readers interpret as no limit", label)
        if np.any(self.joint_stiffness[dofs]):
            self._remark("springs", label)
        if np.any((self.joint_friction_ratio[dofs] != 1.0) & (self.joint_friction[dofs] > 0.0)):
            self._remark("other dry friction in motion than at rest", label)
        if np.any(self.joint_target_ke[dofs]) or np.any(self.joint_target_kd[dofs]):
            self._remark("gains of drives", label)

    def _remark_rest(self, joint: int) -> None:
        """Adds remarks for properties of the joint that URDF cannot represent."""
        label, dofs = self.model.joint_label[joint], slice(*self.joint_qd_start[joint : joint + 2])
        kind = JOINT_TYPES[self.joint_type[joint]]
        passive = [array[dofs] for array in (self.joint_damping, self.joint_friction, self.joint_armature)]
        if not self.joint_enabled[joint]:
            self._remark("disabled joints", label)
        if not kind.anchored and np.any(passive):
            self._remark("damping, friction and armature of free joints", label)
        if kind.compound and len(passive[0]) == 3:
            limits = (
                self.joint_limit_lower,
                self.joint_limit_upper,
                self.joint_effort_limit,
                self.joint_velocity_limit,
            )
            along = np.array([array[dofs][:2] for array in limits])
            if np.any(along[:, 0] != along[:, 1]) or np.any(np.ptp(passive[:2], axis=1)):
                self._remark("settings of planar joints that differ between their axes", label)
            if np.any(np.abs([array[dofs][2] for array in limits[:2]]) < MAXVAL):
                self._remark("limits of the rotations of planar joints", label)

    def _kind(self, joint: int, dofs: range) -> tuple[str, np.ndarray | None]:
        """URDF's type of a joint, and its axis."""
        kind, counts = JOINT_TYPES[self.joint_type[joint]], tuple(self.joint_dof_dim[joint].tolist())
        if counts == (0, 0):
            return "fixed", None
        if not kind.anchored:
            return "floating", None
        axes = self.joint_axis[dofs]
        if counts == (1, 0):
            return "prismatic", axes[0]
        if counts == (0, 1):
            free = self.joint_limit_lower[dofs[0]] <= -MAXVAL and self.joint_limit_upper[dofs[0]] >= MAXVAL
            return ("continuous" if free else "revolute"), axes[0]
        if counts == (2, 1) and np.abs(axes[:2] - plane_axes(axes[2])).max() < ALIGNED:
            return "planar", axes[2]
        raise ValueError(
            f"joint {self.model.joint_label[joint]!r} (index {joint}) is a {kind.type.name} joint with {counts[0]} linear and "
            f"{counts[1]} angular axes, which URDF does not have; write the robot as USD, or build it of joints with one axis"
        )

    def _rotor(self, joint: str, inertia: float) -> None:
        self.root.set("xmlns:drake", "https://drake.mit.edu")
        element = _sub(self.root, "transmission", name=f"{joint}_transmission")
        _sub(element, "type").text = "transmission_interface/SimpleTransmission"
        _sub(element, "joint", name=joint)
        actuator = _sub(element, "actuator", name=f"{joint}_actuator")
        _sub(actuator, "mechanicalReduction").text = "1"
        _sub(actuator, "drake:rotor_inertia", value=_text(inertia))


def _sub(parent, tag: str, **attributes):
    return ElementTree.SubElement(parent, tag, attributes)


def _text(numbers) -> str:
    """Numbers with the shortest exact digits of their type: a float32 0.1 is written as 0.1."""
    return " ".join(str(number) for number in np.ravel(numbers) + np.float32(0.0))  # no -0.0


def _moved(frame: np.ndarray, pose: np.ndarray) -> np.ndarray:
    return transform_multiply(frame, pose) if np.any(frame != IDENTITY) else pose


def _place(pose: np.ndarray) -> dict[str, str]:
    return {"xyz": _text(pose[:3]), "rpy": _text(_rpy(pose[3:]))}


def _rpy(q: np.ndarray) -> tuple[float, float, float]:
    """Roll, pitch, yaw about the fixed axes x, y, z. The yaw is computed from the rotation without the roll, so that both are consistent
    for a pitch near a quarter turn, where only their combination is determined."""
    R = quat_to_matrix(q)
    roll = np.arctan2(R[2, 1], R[2, 2])
    sine, cosine = np.sin(roll), np.cos(roll)
    yaw = np.arctan2(sine * R[0, 2] - cosine * R[0, 1], cosine * R[1, 1] - sine * R[1, 2])
    return roll, np.arctan2(-R[2, 0], np.hypot(R[2, 1], R[2, 2])), yaw
