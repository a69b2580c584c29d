"""./run bench [PART ...]: run all parts, or those named; `docs` writes the page."""

from __future__ import annotations

from benchmarks.settings import Settings, pin_threads

pin_threads()  # before any library is loaded

import argparse
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measure import load_average, machine_facts

PARTS = (
    *("exact", "capped", "one-source", "two-hop", "threads", "noise"),
    *("reading", "startup", "scale"),
)
# Run when named: they need a cluster, much disk, or the right to set a memory limit; or have a
# file of figures of their own.
MORE = (
    *("streaming", "cluster", "beyond-memory"),
    *("tail", "lists", "billion", "ledger", "service", "history", "series", "classify"),
)
HOME = Path(__file__).resolve().parent


def main(words: list[str] | None = None) -> None:
    """Read the command line and do what it says."""
    arguments = _parser().parse_args(words)
    if arguments.parts == ["docs"]:
        from benchmarks.page import write_pages

        write_pages()
        return
    for part in arguments.parts:
        if part not in (*PARTS, *MORE):
            raise SystemExit(
                f"there is no part {part!r}; choose from {', '.join(PARTS + MORE)}, docs"
            )
    settings = Settings(
        work=arguments.work,
        data=arguments.data,
        rounds=arguments.rounds,
        rounds_large=arguments.rounds_large,
        max_edges=arguments.max_edges,
        edges=arguments.edges,
        memory=arguments.memory,
        members=arguments.members,
        paper_rounds=arguments.paper_rounds,
        tiny=arguments.tiny,
    )
    figures = _earlier_figures(arguments.json)
    for part in arguments.parts or PARTS:
        load = load_average()
        figures["parts"][part] = {
            "load_at_start": load,
            **import_module(f"benchmarks.{part.replace('-', '_')}").run(settings),
        }
        if arguments.json:  # after every part: a long run that is stopped loses nothing
            arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


def _earlier_figures(file: Path | None) -> dict[str, Any]:
    """The figures so far: of this machine and these versions, or of none."""
    facts = machine_facts()
    text = file.read_text() if file is not None and file.exists() else ""
    if file is None or not text.strip():  # an empty file holds no figures (mktemp makes such)
        return {"machine": facts, "parts": {}}
    try:
        figures: dict[str, Any] = json.loads(text)
        figures["machine"], figures["parts"]
    except (ValueError, TypeError, KeyError):
        raise SystemExit(f"{file.name} holds no figures of ./run bench; choose another") from None
    if figures["machine"] != facts or "note" in figures:
        raise SystemExit(
            f"{file.name} holds figures of another machine or of other versions, or provisional "
            "ones; delete it or choose another file"
        )
    return figures


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./run bench",
        description=__doc__,
        epilog="./run bench --install-peers gets the libraries to compare with, into .run/peers",
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; {', '.join(MORE)}; docs"
    )
    parser.add_argument("--json", type=Path, help="file for the figures; parts are added to it")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("EDGEVEIL_DATA"),
        help="folder with blogcatalog.mat (or EDGEVEIL_DATA); else a generated graph",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=HOME.parent / ".run" / "bench",
        help="folder for generated graphs (default: .run/bench)",
    )
    parser.add_argument("--rounds", type=int, default=7, help="how often all are measured")
    parser.add_argument(
        "--rounds-large", type=int, default=3, help="the same on the large graph; 0: leave it out"
    )
    parser.add_argument("--max-edges", type=int, default=100_000_000, help="limit of scale")
    parser.add_argument("--edges", type=int, default=10**9, help="largest graph of billion")
    parser.add_argument("--memory", type=int, default=8 * 10**9, help="bytes to build it in")
    parser.add_argument("--members", type=int, default=1_000_000, help="of the part service")
    parser.add_argument(
        "--paper-rounds", type=int, default=8, help="rounds of the paper's algorithm in Python"
    )
    parser.add_argument("--tiny", action="store_true", help="tiny graphs, to try the harness")
    return parser


if __name__ == "__main__":
    main()
