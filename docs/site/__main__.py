"""``./run docs [--out DIR] [--figures]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docs.site.build import ROOT, BuildError, build


def main() -> int:
    """Build the site, and the pictures too where asked for; the page's path goes to stdout."""
    parser = argparse.ArgumentParser(prog="./run docs", description="Build the documentation.")
    parser.add_argument("--out", type=Path, default=ROOT / ".run" / "docs", help="work folder")
    parser.add_argument("--figures", action="store_true", help="draw docs/images from results/")
    options = parser.parse_args()
    if options.figures:
        from docs.site.figures import draw_all

        draw_all(ROOT / "docs" / "images")
    try:
        site = build(options.out)
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{site / 'index.html'}\n")
    return 0


sys.exit(main())
