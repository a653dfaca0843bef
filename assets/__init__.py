"""The project's own robots and scenes, as files; README.md in this folder describes them."""

from pathlib import Path


def path(name: str) -> Path:
    """Path of an asset.

    Args:
        name: file name, such as ``"quadruped.urdf"``.

    Raises:
        FileNotFoundError: there is no asset of that name; the message lists those there are.
    """
    folder = Path(__file__).parent
    file = folder / name
    if not file.is_file() or file.parent != folder:
        there = sorted(p.name for p in folder.iterdir() if p.suffix in (".urdf", ".xml", ".usda"))
        raise FileNotFoundError(f"there is no asset {name!r}; there are: {', '.join(there)}")
    return file
