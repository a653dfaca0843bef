"""Lists of names in messages."""

import pytest

from newton_like.model.labels import some_of


@pytest.mark.parametrize("most", [1, 4, 5])
def test_a_list_leaves_out_two_names_or_more(most):
    """One name more takes no more room than the words that one is left out."""
    names = [f"joint_{i}" for i in range(most + 3)]
    for count in range(most + 4):
        told = some_of(names[:count], most)
        shown = [name for name in names if name in told.replace(",", " ").split()]
        if count <= most + 1:
            assert told == ", ".join(names[:count])
        else:
            assert shown == names[:most]
            assert told.endswith(f", and {count - most} more")
