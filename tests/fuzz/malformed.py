"""Malformed input for the command line: good files damaged, odd words; and what must hold.

An input is made from a `random.Random` alone, so a seed and a number name it for ever.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgeveil.cli.app import main

EDGES = "alice,bob\nbob,carol\ncarol,alice\ndave,alice\ndave,bob\nerin,dave\n"
NUMBERS = "0 1\n1 2\n2 0\n3 0\n3 1\n4 3\n"
NODES = "alice\nbob\ncarol\ndave\nerin\nfay\n"
MTX = (
    "%%MatrixMarket matrix coordinate integer symmetric\n% a comment\n5 5 6\n"
    "2 1 1\n3 2 1\n3 1 1\n4 1 1\n4 2 1\n5 4 1\n"
)
TOML = (
    '[rank]\nepsilon = 1.0\ntop = 3\nsource = ["alice"]\nformat = "json"\ndirected = true\n'
    '[embed]\ndim = 8\nmechanism = "instant-embedding"\n'
)

# Pieces that have broken readers before, ours or others'.
PIECES = [
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x1b[2J", b"\r", b"\r\n", b"\n\n"),
    *(b'"', b'""', b"'", b",", b";", b"\t", b" ", b"#", b"%", b"=", b"[", b"]", b"{", b"}", b"\\"),
    *(b"-1", b"0", b"1e400", b"nan", b"inf", b"-inf", b"true", b"null", b"1_000", b"0x10"),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"9" * 5000),
    *("\u202e".encode(), "\u0660\u0661".encode(), "\U0001f600".encode(), b"a" * 3000),
]
WORDS = [
    *("rank", "embed", "ledger", "create", "show", "verify", "convert", "mechanisms", "audit"),
    *("evaluate", "completion", "demo", "help", "--help", "--version", "--", "-"),
    *("classify", "aggregate", "--labels", "--features", "--targets", "--values", "--threshold"),
    *("good.csv", "good.mtx", "good.graph", "nodes.txt", "no.csv", ".", "", "/", "new.graph"),
    *("--source", "--sources", "--epsilon", "--top", "--out", "--mechanism", "--model", "--sigma"),
    *("--restart", "--promised-min-degree", "--ledger", "--dry-run", "--yes", "--nodes", "--dim"),
    *("--directed", "--header", "--no-header", "--verbose", "--format", "--insecure-seed"),
    *("--config", "--pooled-epsilon", "--known-head", "--overwrite", "--confidence"),
    *("alice", "bob", "1", "0", "-1", "nan", "inf", "1e-320", "1e308", "9" * 400, "json", "csv"),
    *("table", "joint", "public", "two-hop", "push-flow", "non-private", "own-neighbours"),
    *("bash", "good.toml", "good.ledger", "out.parquet", "out.csv", "x.json", "\x00", "\udcff"),
    *("\x1b[2J", "a\nb", "[/red]", "postgresql://a:b@/x", "--epsilon=1", "--source=alice"),
]
# These take minutes or write where they stand; their own parameters are tried by their tests.
SLOW = {"demo", "evaluate", "audit"}


def samples(folder: Path) -> dict[str, Path]:
    """Write one good file of each kind; gives kind -> path."""
    files = {
        kind: folder / f"good.{kind}"
        for kind in ("csv", "tsv", "txt", "csv.gz", "mtx", "mtx.gz", "mat", "parquet", "toml")
    }
    files |= {"graph": folder / "good.graph", "ledger": folder / "good.ledger"}
    files |= {"nodes": folder / "nodes.txt"}
    files["csv"].write_text(f"follower,followed\n{EDGES}")
    files["tsv"].write_text(EDGES.replace(",", "\t"))
    files["txt"].write_text(NUMBERS)
    files["nodes"].write_text(NODES)
    files["csv.gz"].write_bytes(gzip.compress(EDGES.encode(), mtime=0))
    files["mtx"].write_text(MTX)
    files["mtx.gz"].write_bytes(gzip.compress(MTX.encode(), mtime=0))
    files["toml"].write_text(TOML)
    _write_tables(files)
    with quiet():
        assert main(["convert", str(files["csv"]), str(files["graph"])]) == 0
        assert main(["ledger", "create", str(files["ledger"]), "--epsilon", "4"]) == 0
        spend = ["rank", str(files["csv"]), "--source", "bob", "--epsilon", "1"]
        assert main([*spend, "--ledger", str(files["ledger"])]) == 0
    return files


def _write_tables(files: dict[str, Path]) -> None:
    import polars as pl
    import scipy.io
    import scipy.sparse as sp

    pairs = [line.split(",") for line in EDGES.split()]
    pl.DataFrame({"a": [p[0] for p in pairs], "b": [p[1] for p in pairs]}).write_parquet(
        files["parquet"]
    )
    ends = np.array([line.split() for line in NUMBERS.splitlines()], dtype=int)
    half = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(5, 5))
    scipy.io.savemat(files["mat"], {"network": sp.csc_matrix(half + half.T)})


def damage(content: bytes, rng: random.Random) -> bytes:
    """A few random edits."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(7):
            case 0 if data:  # a bit
                data[at % len(data)] ^= 1 << rng.randrange(8)
            case 1 if data:  # a byte
                data[at % len(data)] = rng.randrange(256)
            case 2:  # cut off
                del data[at:]
            case 3:  # a hole
                del data[at : at + rng.choice([1, 2, 8, 64])]
            case 4:  # something that is not wanted here
                data[at:at] = rng.choice(PIECES)
            case 5:  # twice
                data[at:at] = data[at : at + rng.choice([1, 4, 32, 256])]
            case _:  # instead
                piece = rng.choice(PIECES)
                data[at : at + len(piece)] = piece
    return bytes(data)


@dataclass
class Case:
    """One malformed input: the words to give, and the files that must stay as they are."""

    kind: str
    words: list[str]
    inputs: list[Path]


KINDS = (
    *("csv", "tsv", "txt", "csv.gz", "mtx", "mtx.gz", "mat", "parquet", "toml", "graph"),
    *("ledger", "nodes", "sources", "words", "gz inside"),
)


def make_case(kind: str, good: dict[str, Path], work: Path, rng: random.Random) -> Case:
    """Make one input in the empty folder `work`, which is also the working folder."""
    rank = ["--source", rng.choice(["alice", "0", "1"]), "--epsilon", "1", "--format"]
    rank.append(rng.choice(["json", "csv", "table"]))
    if rng.random() < 0.5:
        rank += ["--mechanism", "own-neighbours"]
        rank[2:4] = []
    if kind == "words":
        for path in good.values():
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, work / path.name)
        words = [rng.choice(WORDS) for _ in range(rng.randrange(9))]
        if rng.random() < 0.6:
            words = ["rank", "good.csv", *rank, *words]
        words = [word for word in words if word not in SLOW]
        return Case(kind, words, [work / good[k].name for k in ("csv", "mtx", "toml", "nodes")])
    bad = work / f"bad.{kind}"
    if kind == "graph":
        shutil.copytree(good["graph"], bad)
        victim = rng.choice(sorted(bad.iterdir()))
        victim.write_bytes(damage(victim.read_bytes(), rng))
        return Case(kind, ["rank", str(bad), *rank], [bad])
    if kind == "gz inside":
        bad = work / rng.choice(["bad.csv.gz", "bad.mtx.gz"])
        plain = EDGES if "csv" in bad.name else MTX
        bad.write_bytes(gzip.compress(damage(plain.encode(), rng), compresslevel=1, mtime=0))
        return Case(kind, ["rank", str(bad), *rank], [bad])
    if kind in ("nodes", "sources"):
        bad = work / rng.choice(["bad.txt", "bad.csv", "bad.nodes"])
        bad.write_bytes(damage(good["nodes"].read_bytes(), rng))
        source = ["rank", str(good["csv"]), *rank, f"--{kind}", str(bad)]
        return Case(kind, source, [bad])
    bad.write_bytes(damage(good[kind].read_bytes(), rng))
    if kind == "ledger":
        words = rng.choice([["ledger", "show"], ["ledger", "verify"], []])
        if words:
            return Case(kind, [*words, str(bad)], [])
        spend = ["rank", str(good["csv"]), "--source", rng.choice(["alice", "bob"])]
        return Case(kind, [*spend, "--epsilon", "1", "--ledger", str(bad)], [])
    if kind == "toml":
        return Case(kind, ["rank", str(good["csv"]), "--config", str(bad)], [bad])
    words = ["rank", str(bad), *rank]
    if rng.random() < 0.2:
        words = ["convert", str(bad), str(work / "out.graph")]
    if rng.random() < 0.2:
        words += rng.choice([["--directed", "keep"], ["--header"], ["--no-header"]])
    return Case(kind, words, [bad])


def check_case(case: Case) -> tuple[int, str]:
    """Give the command and hold the outcome against what is promised.

    Returns
    -------
    code, finding
        The exit code, and what is wrong in words, or "".
    """
    before = fingerprint(case.inputs)
    with quiet() as said:
        code = main(case.words)
    words = said()
    lines = words.splitlines()
    if code not in (0, 1, 2, 3, 4):
        return code, f"exit code {code}"
    if "Traceback" in words or "should not happen" in words:
        return code, words
    if code and not (lines and lines[-1].startswith("edgeveil: ")):
        return code, f"exit code {code} without a sentence: {words!r}"
    strange = [line for line in lines[:-1] if not _known(line)]
    if code and strange:
        return code, f"more than one sentence: {words!r}"
    if fingerprint(case.inputs) != before:
        return code, "an input file was changed"
    return code, ""


def _known(line: str) -> bool:
    """Whether a line is one of those that may stand before an error."""
    said = (
        " sets --",
        "Dry run",
        "Charged",
        "(exact counts: do not publish)",
        "No node list",
        "costs nothing",
        "may be a header",
    )
    return any(part in line for part in said)


def fingerprint(paths: list[Path]) -> list[str]:
    """A hash of each file, or of all files in a folder."""
    digests = []
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        whole = hashlib.sha256()
        for file in files:
            whole.update(file.name.encode() + file.read_bytes() if file.is_file() else b"-")
        digests.append(whole.hexdigest())
    return digests


@contextmanager
def quiet() -> Iterator[Callable[[], str]]:
    """Catch what goes to standard output and error, compiled code's words too.

    Gives a function that says, after the block, what was on standard error.
    """
    words = ""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        kept, streams = (os.dup(1), os.dup(2)), (sys.stdout, sys.stderr)
        for stream, file, place in zip(streams, (out, err), (1, 2), strict=True):
            stream.flush()
            os.dup2(file.fileno(), place)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  (closed below)
        sys.stderr = open(  # noqa: SIM115  (closed below)
            2, "w", encoding="utf-8", errors="backslashreplace", closefd=False
        )
        try:
            yield lambda: words
        finally:
            sys.stdout.close()
            sys.stderr.close()
            sys.stdout, sys.stderr = streams
            for place, old in enumerate(kept, 1):
                os.dup2(old, place)
                os.close(old)
            err.seek(0)
            words = err.read().decode(errors="replace")
