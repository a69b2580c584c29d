"""How much code there is, and how far a call goes in it: ``./run check`` prints it."""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "edgeveil"
CHANGES = {"mechanism": 8, "format": 3, "output column": 4}  # files that one may touch, at most


def main() -> None:
    """Print all counts."""
    texts = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    lines = {_name(path): text.count("\n") for path, text in texts.items()}
    print(f"src/edgeveil: {sum(lines.values()):,} lines in {len(lines)} files (goal: 16,500 lines)")
    _print("modules above 400 lines", {name: n for name, n in lines.items() if n > 400})
    kernels = {_name(path) for path, text in texts.items() if _has_kernels(path, text)}
    functions = {
        f"{name}.{node.name}": length
        for name, tree in ((_name(path), ast.parse(text)) for path, text in texts.items())
        if name not in kernels
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and (length := _length(node)) > 60
    }
    _print("functions above 60 lines (docstrings apart), outside of kernels", functions)
    way, names = _way_to_a_kernel(kernels)
    print(f"names in edgeveil.__all__: {names} (goal: about 20)")
    print(f"hops from edgeveil.rank to a kernel: {len(way) - 1} (goal: 8)")
    print("    " + " > ".join(step.removeprefix("edgeveil.") for step in way))
    for what, goal in CHANGES.items():
        print(f"files for a new {what}, by CONTRIBUTING.md: {_steps(what)} (goal: {goal})")


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _print(what: str, found: dict[str, int]) -> None:
    print(f"{what}: {len(found)} (goal: 0)")
    for name, count in sorted(found.items(), key=lambda item: -item[1]):
        print(f"    {name.removeprefix('edgeveil.')}: {count}")


def _has_kernels(path: Path, text: str) -> bool:
    return path.name.startswith("_") and ("compiled" in text or "njit" in text)


def _length(function: ast.FunctionDef) -> int:
    first = function.body[0]
    docs = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(function) else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docs


def _way_to_a_kernel(kernels: set[str]) -> tuple[list[str], int]:
    """The longest chain of calls of our own from `rank` to a compiled loop, which is run as Python.

    Also the number of public names.
    """
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    sys.path.insert(0, str(PACKAGE.parent))
    import edgeveil

    graph = edgeveil.datasets.social_network(60, average_degree=6).graph
    rank, longest = edgeveil.rank, list[str]()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal longest
        if event == "call" and _module(frame) in kernels and _module(frame.f_back) not in kernels:
            way: list[str] = []
            caller: FrameType | None = frame
            while caller is not None:
                # Comprehensions and bodies of classes are no calls to follow.
                if _module(caller).startswith("edgeveil") and caller.f_code.co_name[0] != "<":
                    way.insert(0, f"{_module(caller)}.{caller.f_code.co_name}")
                caller = caller.f_back
            if way[0].endswith(".rank") and len(way) > len(longest):
                longest = way

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whole numbers that wrap around do so on purpose
        sys.setprofile(watch)
        rank(graph, 7, 1.0)
        sys.setprofile(None)
    return longest, len(edgeveil.__all__)


def _module(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


def _steps(what: str) -> str:
    """Numbered steps under a heading of CONTRIBUTING.md that speaks of adding this."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    found = re.search(rf"^#+ .*\b(?:add|new)\w* .*{what}.*$", text, re.MULTILINE | re.IGNORECASE)
    if found is None:
        return "not written"
    section = re.split(r"^#", text[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    return str(len(re.findall(r"^\d+\. ", section, re.MULTILINE)))


if __name__ == "__main__":
    main()
