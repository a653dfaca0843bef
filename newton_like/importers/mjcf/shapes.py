"""Geoms and sites of MJCF as shapes, and their collision filters."""

from __future__ import annotations

import math

import numpy as np

from newton_like.importers.custom import SHAPE, from_element
from newton_like.importers.mjcf.assets import Assets
from newton_like.importers.mjcf.contact import ContactSettings
from newton_like.importers.mjcf.mass import SOLIDS
from newton_like.importers.mjcf.records import Geom, Mjcf, Site

MANY = 500
"""Number of moving shapes from which a collision group disables their collisions, instead of a quadratic number of pairs."""

ROWS = 512
"""Number of shapes whose pairs are computed together."""


class ShapeBuilder:
    """Adds the shapes of a model.

    Attributes:
        shapes: shape index by geom name.
        sites: shape index by site name.
        settings: the :class:`newton_like.importers.mjcf.contact.ContactSettings` of the file.
    """

    def __init__(self, builder, model: Mjcf, assets: Assets, options, paired: set[str]):
        self.builder, self.model, self.assets, self.options = builder, model, assets, options
        self._paired = paired
        self.shapes: dict[str, int] = {}
        self.sites: dict[str, int] = {}
        self._made: list[tuple[Geom, int]] = []
        self._has_visual = {geom.body for geom in model.geoms if self.is_visual(geom)}
        self.weld = weld_groups(model)
        self._tree = tree_groups(model)
        self._group = None
        moving = sum(self.weld[geom.body] > 0 and self._collides(geom) for geom in model.geoms)
        if moving >= MANY and len(set(self._tree) - {0}) == 1 and not options.enable_self_collisions:
            self._group = -2 - builder.shape_count

    def read_settings(self, pairs: list[dict]) -> None:
        """Takes over the settings of contacts of the file."""
        geoms = [geom for geom in self.model.geoms if self._collides(geom)]
        self.settings = ContactSettings(self.builder, self.model, geoms, pairs, self.options.scale)

    def is_visual(self, geom: Geom) -> bool:
        """Whether a geom is visual only."""
        return geom.masks == (0, 0) and geom.name not in self._paired

    def wanted(self, geom: Geom) -> bool:
        """Whether a geom becomes a shape."""
        if geom.kind == "sdf":
            return False
        if self.options.parse_visuals_as_colliders:
            return self.is_visual(geom) or geom.kind in ("plane", "hfield")
        return not self.options.hide_visuals or not self.is_visual(geom)

    def _collides(self, geom: Geom) -> bool:
        if self.model.option.get("flag contact") is False:
            return False
        return self.wanted(geom) and (self.options.parse_visuals_as_colliders or not self.is_visual(geom))

    def add_geom(self, geom: Geom, body: int, pose: np.ndarray, world_pose: np.ndarray) -> None:
        """Adds one geom.

        Args:
            geom: the geom.
            body: link of the geom, -1 for the world.
            pose: pose of the geom in that link [m of the model].
            world_pose: pose of the geom in the world, for planes and height fields, which are fixed to the world.
        """
        builder, scale = self.builder, self.options.scale
        size = tuple(scale * part for part in geom.size)
        settings = {
            "xform": pose,
            "cfg": self._config(geom),
            "label": f"{self.model.name}/{geom.name}",
            "color": None if geom.color is None else geom.color[:3],
            "opacity": None if geom.color is None else geom.color[3],
            "custom_attributes": from_element(builder, geom.element, SHAPE, "mjcf"),
        }
        if self._collides(geom):
            settings["custom_attributes"] |= self.settings.of_geom(geom)
        if geom.kind in ("plane", "hfield") and body >= 0:
            if self.weld[geom.body] > 0:
                raise geom.element.error(f"a {geom.kind} must be on a body that does not move; put it into the world")
            if self.options.parent_body >= 0:
                raise geom.element.error(
                    f"a {geom.kind} cannot be on parent_body; omit parent_body, or remove the {geom.kind} from the file"
                )
            settings["xform"], body = world_pose, -1
        if geom.kind == "plane":
            shape = builder.add_shape_plane(width=0.0, length=0.0, body=body, **settings)
        elif geom.kind == "hfield":
            shape = builder.add_shape_heightfield(heightfield=self.assets.hfield(geom.hfield), scale=scale, **settings)
        elif geom.kind == "mesh":
            shape = builder.add_shape_mesh(body, mesh=self.assets.mesh(geom.mesh), scale=scale, **settings)
        else:
            shape = builder.add_shape(body=body, type=SOLIDS[geom.kind], scale=size, **settings)
        self.shapes[geom.name] = shape
        self._made.append((geom, shape))

    def add_site(self, site: Site, body: int, pose: np.ndarray) -> None:
        """Adds one site."""
        size = tuple(self.options.scale * part for part in site.size)
        label = f"{self.model.name}/{site.name}"
        own = from_element(self.builder, site.element, SHAPE, "mjcf")
        self.sites[site.name] = self.builder.add_site(
            body, xform=pose, type=SOLIDS[site.kind], scale=size, label=label, custom_attributes=own
        )

    def _config(self, geom: Geom):
        contact, findings = geom.contact, self.model.findings
        collides = self._collides(geom)
        changes = {
            "density": 0.0,
            "has_shape_collision": collides,
            "has_particle_collision": collides,
            # filter_pairs applies the collision rules of the file
            "collision_filter_parent": False,
            "is_visible": not collides
            or self.options.force_show_colliders
            or self.options.parse_visuals_as_colliders
            or geom.body not in self._has_visual,
        }
        if "friction" in contact:
            sliding, torsional, rolling = contact["friction"]
            changes["mu"] = sliding
            changes["mu_torsional"] = torsional if contact["condim"] >= 4 else 0.0
            changes["mu_rolling"] = rolling if contact["condim"] >= 6 else 0.0
        if "solref" in contact:
            solref = (*contact["solref"], 1.0)[:2]
            if min(solref) > 0.0:
                # the natural frequency is 1/(t d)
                changes["time_constant"], changes["damping_ratio"] = solref[0] * solref[1], solref[1]
            elif max(solref) < 0.0:
                # -(stiffness, damping) per unit of mass: MuJoCo's 1/(t d)^2 and 2/t.
                stiffness, damping = -solref[0], -solref[1]
                changes["time_constant"] = 1.0 / math.sqrt(stiffness)
                changes["damping_ratio"] = damping / (2.0 * math.sqrt(stiffness))
            else:
                findings.remark("contacts have a solref with a 0 or with two signs, which is ignored", geom.name)
        for name in ("margin", "gap"):
            if name in contact:
                changes[name] = self.options.scale * contact[name]
        gap = self.settings.least_gap(geom)
        if gap > 0.0:
            changes["gap"] = max(gap, changes.get("gap", 0.0))
        if self._group is not None and collides and self.weld[geom.body] > 0:
            changes["collision_group"] = self._group
        return self.builder.default_shape_cfg.copy(**changes)

    def filter_pairs(self, pairs: list[dict], excludes: list[tuple[str, str]]) -> None:
        """Adds the collision filter pairs for the rules of the file.

        Geoms collide if the type of one matches the affinity of the other, and their bodies are neither welded together nor
        parent and child (except for the world) nor excluded; or if the file has an explicit pair.
        """
        made = [(geom, shape) for geom, shape in self._made if self._collides(geom)]
        if not made:
            return
        model, children = self.model, {body.name: i for i, body in enumerate(self.model.bodies)}
        above = [0] + [
            self.weld[self.model.bodies[self.weld[i]].parent] if self.weld[i] else 0 for i in range(1, len(self.weld))
        ]
        body = np.array([geom.body for geom, _ in made])
        shape = np.array([index for _, index in made])
        weld, parent, tree = np.array(self.weld)[body], np.array(above)[body], np.array(self._tree)[body]
        contype, affinity = (np.array([geom.masks[k] & 0xFFFFFFFF for geom, _ in made]) for k in (0, 1))
        if self.options.parse_visuals_as_colliders:
            contype, affinity = np.ones_like(contype), np.ones_like(affinity)
        forbidden = {tuple(sorted((children[a], children[b]))) for a, b in excludes}
        codes = np.array([a * len(model.bodies) + b for a, b in forbidden], dtype=np.int64)
        at = {geom.name: i for i, (geom, _) in enumerate(made)}
        named = {
            tuple(sorted((at[p["geom1"]], at[p["geom2"]]))) for p in pairs if p["geom1"] in at and p["geom2"] in at
        }
        if not self.options.enable_self_collisions:
            for a, b in sorted(named):
                if tree[a] == tree[b] and weld[a] and weld[b] and weld[a] != weld[b]:
                    statement = "contact pairs within one tree are ignored; enable_self_collisions=True keeps them"
                    model.findings.remark(statement, f"{made[a][0].name} and {made[b][0].name}")
        named = np.array([a * len(made) + b for a, b in named], dtype=np.int64)
        parents = model.option.get("flag filterparent") is not False
        columns = np.arange(len(made))
        if self._group is not None:
            columns = columns[weld == 0]
        for start in range(0, len(made), ROWS):
            rows = np.arange(start, min(start + ROWS, len(made)))
            i, j = (grid.reshape(-1) for grid in np.meshgrid(rows, columns, indexing="ij"))
            touch = ((contype[i] & affinity[j]) | (contype[j] & affinity[i])) != 0
            touch &= weld[i] != weld[j]
            if parents:
                touch &= ~((weld[i] != 0) & (weld[j] != 0) & ((parent[i] == weld[j]) | (parent[j] == weld[i])))
            if len(codes):
                low, high = np.minimum(body[i], body[j]), np.maximum(body[i], body[j])
                touch &= ~np.isin(low * len(model.bodies) + high, codes)
            if len(named):
                touch |= np.isin(np.minimum(i, j) * len(made) + np.maximum(i, j), named)
            if not self.options.enable_self_collisions:
                touch &= (tree[i] != tree[j]) | (weld[i] == 0) | (weld[j] == 0)
            if self._group is None:
                keep = ~touch & (i < j)
            else:
                keep = ~touch & (i != j)
            self.builder.shape_collision_filter_pairs.update(np.stack([shape[i[keep]], shape[j[keep]]], axis=-1))


def tree_groups(model: Mjcf) -> list[int]:
    """For each body, the first moving body of its tree; 0 for bodies that do not move."""
    groups = [0]
    for index, body in enumerate(model.bodies[1:], 1):
        groups.append(groups[body.parent] or (index if body.joints else 0))
    return groups


def weld_groups(model: Mjcf) -> list[int]:
    """For each body, the first of the bodies that it is welded to; 0 for bodies that do not move."""
    groups = [0]
    for index, body in enumerate(model.bodies[1:], 1):
        groups.append(index if body.joints else groups[body.parent])
    return groups
