"""What other readers of URDF pass over: the file is read, and one remark names what counts."""

import pytest

from newton_like.importers.urdf import UrdfWarning
from tests.importers.urdf.test_importer import INERTIAL, joint, link, load, robot


def test_what_other_readers_pass_over_is_remarked(tmp_path):
    """A mimic of a fixed joint, a second axis, more than three scales of a mesh, empty lines before the XML declaration."""
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    mesh = '<collision><geometry><mesh filename="tetra.obj" scale="1 2 3 4"/></geometry></collision>'
    text = robot(
        link("a"),
        link("b", INERTIAL + mesh),
        link("c"),
        joint("weld", "fixed", "a", "b", '<mimic joint="turn"/>'),
        joint("turn", "continuous", "b", "c", '<axis xyz="0 1 0"/><axis xyz="1 0 0"/>'),
    )
    source = tmp_path / "bot.urdf"
    (tmp_path / "tetra.obj").write_text(corners)
    source.write_text(f'\n \n<?xml version="1.0"?>\n{text}')
    with pytest.warns(UrdfWarning) as caught:
        builder, report = load(source)
    source.write_text('\n \n<?xml version="1.0"?>\n<robot')
    with pytest.raises(ValueError, match="line 4"):
        load(source)
    assert len(caught) == 1
    assert report.remarks["fixed joints have a <mimic>, which is not used"] == ["weld"]
    assert report.remarks["joints have several <axis>, of which the first counts"] == ["turn"]
    assert report.remarks["meshes have a scale of more than three numbers, of which the first three count"] == ["b"]
    assert builder.joint_axis[-1] == (0.0, 1.0, 0.0)
    assert tuple(builder.shape_scale[-1]) == (1.0, 2.0, 3.0)
