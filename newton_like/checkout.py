"""Import hook for checkouts, in which ``kernels/`` and ``assets/`` are beside the package and not inside it."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_BESIDE = ("newton_like.kernels", "newton_like.assets")


class FinderBeside:
    """A finder of these packages beside the package, which finds no other modules."""

    @staticmethod
    def find_spec(name: str, path=None, target=None):
        """The spec of one of these packages, None for all others."""
        return PathFinder.find_spec(name, [_ROOT], target) if name in _BESIDE else None


_HERE = os.path.dirname(os.path.abspath(__file__))

if not os.path.isfile(os.path.join(_HERE, "kernels", "__init__.py")):
    # one that an earlier import of this module put there would be a second one
    _earlier = [finder for finder in sys.meta_path if getattr(finder, "__module__", None) == __name__]
    for _finder in _earlier:
        sys.meta_path.remove(_finder)
    # empty folders, of an earlier build, are packages to Python's own finder, which is asked after this one then
    _left = any(os.path.isdir(os.path.join(_HERE, name.rpartition(".")[2])) for name in _BESIDE)
    sys.meta_path.insert(0 if _left else len(sys.meta_path), FinderBeside)
