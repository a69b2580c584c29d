"""Stage the pages, call zensical strictly, then check what came out.

Pages are staged because two things must hold at once: the Markdown files read well where the
repository is browsed, and the site has what only a program can write (the references) or what
lies outside of ``docs/`` (figures and pages of results, the examples, pages about the project).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from docs.site.links import complaints
from docs.site.reference import api_directives, cli_sections

__all__ = ["ROOT", "BuildError", "build", "pages_in_nav", "stage"]

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
CONFIG = HERE / "zensical.toml"

# What a page of the repository says where the site shows something generated.
_CLI_MARK = re.compile(r"<!-- generated: cli -->.*?<!-- end -->", re.DOTALL)
_API_MARK = re.compile(r"<!-- generated: api -->.*?<!-- end -->", re.DOTALL)
_EXAMPLE = re.compile(r"<!-- example: (?P<file>[\w.]+) -->")
_NAV_ENTRY = re.compile(r'^ *\{ "[^"]+" = "(?P<page>[^"]+\.md)" \},$')
_OUTSIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class BuildError(Exception):
    """The site could not be built, or is not as it should be."""


def build(work: Path) -> Path:
    """Build the site in `work` and give its folder.

    Parameters
    ----------
    work : Path
        Folder for the staged pages and the site; made anew.

    Raises
    ------
    BuildError
        If a link or anchor is broken, a page is left out, or a page would load anything from
        elsewhere.
    """
    work.mkdir(parents=True, exist_ok=True)
    for part in ("pages", "site", "theme", ".cache"):
        shutil.rmtree(work / part, ignore_errors=True)
    shutil.copytree(HERE / "theme", work / "theme")
    stage(work / "pages")
    (work / "zensical.toml").write_text(_config(work / "pages"), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=work,
        env=os.environ | {"PYTHONPATH": str(ROOT)},  # our extension of griffe is found there
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = _COLOUR.sub("", done.stdout + done.stderr)
        raise BuildError(said.partition("Traceback")[0] or said)
    if found := complaints(work / "site"):
        raise BuildError("\n".join(found))
    return work / "site"


def stage(pages: Path) -> None:
    """Copy the pages and what they show to `pages`, with the generated parts filled in."""
    docs = ROOT / "docs"
    for source in sorted(docs.rglob("*.md")):
        place = pages / source.relative_to(docs)
        place.parent.mkdir(parents=True, exist_ok=True)
        depth = len(place.relative_to(pages).parents) - 1
        place.write_text(_fill(source.read_text("utf-8"), depth), "utf-8")
    for source in (*ROOT.glob("results/**/README.md"), ROOT / "benchmarks/results/README.md"):
        place = pages / source.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text("utf-8")
        place.write_text(re.sub(r"\]\(((?:\.\./)+)docs/", r"](\1", text), "utf-8")
    left_out = {p.relative_to(pages).as_posix() for p in pages.rglob("*.md")} - pages_in_nav()
    if left_out:
        raise BuildError(f"the navigation in {CONFIG.relative_to(ROOT)} lacks {sorted(left_out)}")
    for name in _OUTSIDE:
        text = (ROOT / name).read_text("utf-8")
        (pages / name).write_text(text.replace("](docs/", "]("), "utf-8")
    shutil.copytree(docs / "images", pages / "images")
    for picture in (ROOT / "results").glob("*/*.png"):
        place = pages / picture.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, place)
    (pages / "examples").mkdir()
    for example in (ROOT / "examples").glob("*.py"):
        shutil.copy(example, pages / "examples")
    (pages / "assets").mkdir()
    for asset in ("iframe-worker.js", "site.css"):
        shutil.copy(HERE / asset, pages / "assets")


def pages_in_nav() -> set[str]:
    """The pages that the navigation names."""

    def leaves(entry: Any) -> set[str]:
        if isinstance(entry, str):
            return {entry}
        children = entry.values() if isinstance(entry, dict) else entry
        return set().union(*(leaves(child) for child in children))

    everything = leaves(tomllib.loads(CONFIG.read_text("utf-8"))["project"]["nav"])
    return everything - set(_OUTSIDE)


def _config(pages: Path) -> str:
    """The configuration for these pages; a line of the navigation whose page is not there goes."""
    lines = [
        line
        for line in CONFIG.read_text("utf-8").splitlines(keepends=True)
        if not (entry := _NAV_ENTRY.match(line)) or (pages / entry["page"]).exists()
    ]
    return "".join(lines).replace("@SOURCES@", (ROOT / "src").as_posix())


def _fill(text: str, depth: int) -> str:
    """Put the generated parts in, and point links out of docs/ at where the site has the files."""
    text = _CLI_MARK.sub(lambda _: cli_sections(), text)
    text = _API_MARK.sub(lambda _: api_directives(), text)
    text = _EXAMPLE.sub(lambda found: _code(ROOT / "examples" / found["file"]), text)
    return text.replace("](" + "../" * (depth + 1), "](" + "../" * depth)


def _code(path: Path) -> str:
    return f"```python\n{path.read_text('utf-8').rstrip()}\n```"
