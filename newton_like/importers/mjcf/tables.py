"""The elements and attributes of MJCF that are read, and those without meaning for a simulation.

Names are those of MuJoCo's XML reference (4.0). The report of an import counts all others.
"""

from __future__ import annotations

from newton_like.importers.mjcf.source import Tables

_ACTUATORS = (
    "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion dcmotor plugin"
)
ACTUATORS = frozenset(_ACTUATORS.split())
"""Kinds of actuators."""

_ORIENTATION = "quat axisangle xyaxes zaxis euler"
_PLACE = f"pos {_ORIENTATION}"
_CONTACT = "contype conaffinity condim priority friction solmix solref solimp margin gap"
_LOOKS = "material rgba user"

PHYSICAL = ("constraint", "equality", "frictionloss", "limit", "spring", "damper", "actuation", "passive")
"""Flags that disable parts of MuJoCo's physics. The importer does not disable these parts."""

_NUMERICAL_FLAGS = (
    "autoreset clampctrl diagexact energy eulerdamp fwdinv invdiscrete ipc island midphase multiccd nativeccd override "
    "refsafe sensor sleep speculative warmstart"
)


def _sets(table: dict[str, str]) -> dict[str, frozenset[str]]:
    return {name: frozenset(text.split()) for name, text in table.items()}


_BODY = "inertial joint freejoint geom site body frame replicate"
_ELEMENTS = {
    "mujoco": "compiler option default asset worldbody contact equality tendon actuator sensor keyframe",
    "option": "flag",
    "default": f"default mesh joint geom site pair equality tendon {' '.join(ACTUATORS - {'plugin'})} material",
    "asset": "mesh hfield material",
    "worldbody": _BODY.replace("inertial joint freejoint ", ""),
    **dict.fromkeys(("body", "frame", "replicate"), _BODY),
    "contact": "pair exclude",
    "equality": "connect weld joint tendon distance",
    "tendon": "fixed spatial",
    "fixed": "joint",
    "spatial": "site geom pulley",
    "actuator": " ".join(ACTUATORS - {"plugin"}),
    "sensor": (
        "touch accelerometer velocimeter gyro force torque magnetometer camprojection rangefinder jointpos jointvel "
        "tendonpos tendonvel actuatorpos actuatorvel actuatorfrc jointactuatorfrc tendonactuatorfrc ballquat ballangvel "
        "jointlimitpos jointlimitvel jointlimitfrc tendonlimitpos tendonlimitvel tendonlimitfrc framepos framequat "
        "framexaxis frameyaxis framezaxis framelinvel frameangvel framelinacc frameangacc subtreecom subtreelinvel "
        "subtreeangmom insidesite distance normal fromto contact e_potential e_kinetic clock tactile user"
    ),
    "keyframe": "key",
}
_UNUSED_ELEMENTS = {
    "mujoco": "visual statistic size custom",
    "compiler": "lengthrange",
    "default": "camera light texture",
    "asset": "texture skin",
    **dict.fromkeys(("worldbody", "body", "frame", "replicate"), "camera light"),
    "material": "layer",
    "mujocoinclude": "",
}
_EQUALITY = "name class active solref solimp"
_SPRING = "stiffness damping frictionloss armature springlength"
_TENDON = f"name class range limited solreflimit solimplimit margin actuatorfrcrange actuatorfrclimited {_SPRING}"
_ACTUATOR = (
    "name class joint jointinparent tendon site body slidersite refsite cranksite cranklength gear ctrlrange ctrllimited "
    "forcerange forcelimited actrange actlimited actearly lengthrange inheritrange armature damping"
)
_SERVO = f"{_ACTUATOR} kp kv dampratio timeconst"
_SHORTCUTS = {
    "general": f"{_ACTUATOR} gaintype biastype dyntype gainprm biasprm dynprm",
    "motor": _ACTUATOR,
    "position": _SERVO,
    "velocity": f"{_ACTUATOR} kv",
    "intvelocity": _SERVO.replace(" timeconst", ""),
    "damper": f"{_ACTUATOR} kv",
    "muscle": f"{_ACTUATOR} timeconst tausmooth range force scale lmin lmax vmax fpmax fvmax",
    "cylinder": f"{_ACTUATOR} area diameter bias timeconst",
    "adhesion": f"{_ACTUATOR} gain",
    "dcmotor": f"{_ACTUATOR} motorconst resistance nominal saturation inductance cogging controller thermal lugre input",
}
_JOINT = (
    "name class type pos axis ref range limited stiffness damping springref springdamper armature frictionloss "
    "actuatorfrcrange actuatorfrclimited actuatorgravcomp solreflimit solimplimit margin"
)
_ATTRIBUTES = {
    "mujoco": "model",
    "compiler": (
        "angle autolimits coordinate meshdir texturedir assetdir inertiafromgeom inertiagrouprange eulerseq balanceinertia "
        "boundmass boundinertia settotalmass fusestatic discardvisual strippath fitaabb"
    ),
    "worldbody": "name",
    "body": f"name childclass mocap gravcomp {_PLACE}",
    "frame": f"name childclass {_PLACE}",
    "replicate": "count offset euler sep childclass",
    "inertial": f"mass diaginertia fullinertia {_PLACE}",
    "joint": _JOINT + " joint coef joint1 joint2 polycoef active solref solimp",
    "freejoint": "name align",
    "geom": (
        f"name class type size fromto mesh hfield mass density shellinertia group fitscale geom sidesite {_PLACE} {_CONTACT} "
        f"{_LOOKS.replace(' user', '')}"
    ),
    "site": f"name class type size fromto rgba material site {_PLACE}",
    "mesh": "name class file scale refpos refquat vertex face inertia maxhullvert",
    "hfield": "name file nrow ncol size elevation",
    "material": "name class rgba",
    "exclude": "name body1 body2",
    "default": "class",
    "option": (
        "timestep gravity integrator solver cone jacobian iterations ls_iterations noslip_iterations ccd_iterations "
        "sdf_iterations sdf_initpoints tolerance ls_tolerance noslip_tolerance ccd_tolerance sleep_tolerance impratio density "
        "viscosity wind magnetic actuatorgroupdisable o_margin o_solref o_solimp o_friction"
    ),
    "flag": f"{' '.join(PHYSICAL)} contact filterparent gravity {_NUMERICAL_FLAGS}",
    "pair": "name class geom1 geom2 condim friction solref solreffriction solimp margin gap adhesion",
    "equality": f"{_EQUALITY} polycoef",
    "connect": f"{_EQUALITY} body1 body2 site1 site2 anchor",
    "weld": f"{_EQUALITY} body1 body2 site1 site2 anchor relpose torquescale",
    "distance": f"{_EQUALITY} geom1 geom2 distance",
    "tendon": f"{_TENDON} tendon1 tendon2 polycoef active solref solimp",
    **dict.fromkeys(("fixed", "spatial"), _TENDON),
    "pulley": "divisor",
    **_SHORTCUTS,
    "key": "name time qpos qvel act ctrl mpos mquat",
}
_UNUSED_ATTRIBUTES = {
    "compiler": "usethread savecompiled savecanonical saveinertial conflict passthrough",
    "body": "user fuse simple sleep",
    "joint": "group user",
    "freejoint": "group",
    "geom": "user castshadow",
    "site": "group user",
    "mesh": "texcoord normal smoothnormal material content_type",
    "hfield": "content_type",
    "worldbody": "",
    **dict.fromkeys(("tendon", "fixed", "spatial"), "group user material rgba width"),
    **dict.fromkeys(_SHORTCUTS, "group user"),
    "material": ("emission metallic reflectance roughness shininess specular texrepeat texture texuniform"),
}

TABLES = Tables(_sets(_ELEMENTS), _sets(_UNUSED_ELEMENTS), _sets(_ATTRIBUTES), _sets(_UNUSED_ATTRIBUTES))
