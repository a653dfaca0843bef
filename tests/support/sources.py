"""Syntax trees of the repository's files, parsed once for all tests of a file."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the tree."""
    return tuple(ast.walk(tree_of(path)))


def forget_sources() -> None:
    """Frees the trees, whose millions of objects the garbage collector would visit."""
    tree_of.cache_clear()
    nodes_of.cache_clear()
