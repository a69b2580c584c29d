"""Run a Markdown page: its Python and shell blocks in order, its outputs compared.

A ```python block runs in one namespace with those before it; one that begins with the name of a
file (`# mine.py`) becomes that file instead. In a ```shell block every line
that begins with `edgeveil` runs as a command in this process; `# exits 3` says which exit code
is meant. A ```text block is the output of the block before it, with `...` for what differs from
run to run. The working folder is the caller's.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeveil.cli.app import main

_FENCE = re.compile(r"^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")
_EXITS = re.compile(r"\s+# exits (\d)$")
_COMPILING = re.compile(r"^Compiling .* for this machine, once.*\n", re.MULTILINE)  # or not
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    kind: str
    body: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(match["kind"], match["body"], text.count("\n", 0, match.start()) + 2)
        for match in _FENCE.finditer(text)
    ]


def run_page(page: Path) -> int:
    """Run a page and give the number of blocks that ran."""
    names: dict[str, Any] = {"__name__": page.stem}
    said, count = "", 0
    for block in blocks_of(page):
        where = f"{page.name}:{block.line}"
        if block.kind == "python" and (file := _FILE.match(block.body)):
            Path(file[1]).write_text(block.body, "utf-8")
        elif block.kind == "python":
            said = run_python(block, page, names)
        elif block.kind == "shell":
            said = run_shell(block, where)
        elif block.kind == "text":
            assert doctest.OutputChecker().check_output(block.body, said, _FLAGS), (
                f"{where} promises\n{block.body}\nbut this was said:\n{said}"
            )
        else:
            continue
        count += 1
    return count


def run_python(block: Block, page: Path, names: dict[str, Any]) -> str:
    # Blank lines in front, so that a traceback names the line of the page.
    code = compile("\n" * (block.line - 1) + block.body, str(page), "exec")
    with io.StringIO() as out:
        with contextlib.redirect_stdout(out):
            exec(code, names)
        return out.getvalue()


def run_shell(block: Block, where: str) -> str:
    with io.StringIO() as out:
        for line in block.body.replace("\\\n", " ").splitlines():
            if not line.startswith("edgeveil "):
                assert not line.strip() or line.startswith("#"), f"{where} cannot run {line!r}"
                continue
            expected = _EXITS.search(line)
            words = shlex.split(_EXITS.sub("", line))[1:]
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                code = main(words)
            assert code == (int(expected[1]) if expected else 0), f"{where}: {out.getvalue()}"
        return _COMPILING.sub("", out.getvalue())
