"""``python -m benchmarks [PART ...] [--json FILE]``: run all parts, or those named."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path

from benchmarks.measure import machine_facts

PARTS = ("flow", "noise")


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {sorted(unknown)[0]!r}; choose from {', '.join(PARTS)}")
    figures = {"machine": machine_facts()}
    for part in arguments.parts or PARTS:
        figures[part] = import_module(f"benchmarks.{part}").run()
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
