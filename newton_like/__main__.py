"""``python -m newton_like`` is the command ``newton-like``."""

import sys

from newton_like.cli import main

if __name__ == "__main__":
    sys.exit(main())
