"""``python -m edgeveil``."""

import sys

from edgeveil.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
