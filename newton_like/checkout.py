"""Imports in a checkout, where ``kernels/`` and ``assets/`` are beside the package, and not in it as in a wheel."""

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


if not os.path.isdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels")):
    sys.meta_path.append(FinderBeside)
