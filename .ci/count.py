"""Lines of code in each part of the package: ``./run check`` prints them.

Docstrings, comments and blank lines do not count.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "edgeveil"
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}
_HAS_DOCS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> int:
    """Lines that hold code."""
    code, docs = set[int](), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _HAS_DOCS) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docs.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(code - docs)


def main() -> None:
    """Print the lines of every subpackage, of the modules on top, and of all."""
    lines = Counter[str]()
    for path in PACKAGE.rglob("*.py"):
        inside = path.relative_to(PACKAGE).parts
        lines[inside[0] if len(inside) > 1 else "(top)"] += code_lines(path.read_text("utf-8"))
    for name, count in lines.most_common():
        print(f"{count:>7,}  {name}")
    print(f"{lines.total():>7,}  lines of code in src/edgeveil")


if __name__ == "__main__":
    main()
