"""A long run: ``python -m tests.fuzz --count 100000 --seed 1``.

The inputs are tried in a second process, which is started again where a library's compiled code
crashed or hung. Input number i of a seed is always the same: ``--only i`` repeats it.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HANGS_AFTER = 60  # seconds
MEMORY = 6 << 30  # of addresses
# A thread for each of many processors would reserve more than that.
os.environ.setdefault("POLARS_MAX_THREADS", "4")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, help="repeat one input and show it")
    parser.add_argument("--kinds", nargs="*", help="only these kinds")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only is not None:
        given.first, given.count = given.only, 1
    return work(given) if given.worker or given.only is not None else watch(given)


def watch(given: argparse.Namespace) -> int:
    """Run workers until all inputs are tried; count what happened."""
    outcomes: Counter[str] = Counter()
    findings: list[str] = []
    crashes: Counter[str] = Counter()
    at, end, start = given.first, given.first + given.count, time.monotonic()
    while at < end:
        command = [sys.executable, "-m", "tests.fuzz", "--worker", "--seed", str(given.seed)]
        command += ["--first", str(at), "--count", str(end - at)]
        command += ["--kinds", *given.kinds] if given.kinds else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        kind, why = "", ""
        for line in _lines(process):
            word, _, rest = line.partition(" ")
            if word == "try":
                number, _, kind = rest.partition(" ")
                at = int(number)
            elif word == "code":
                outcomes[rest] += 1
                at += 1
            elif word == "found":
                findings.append(rest)
                print(f"FOUND {rest}", flush=True)
            if at % 5000 == 0 and word == "code":
                print(f"{at:,} after {time.monotonic() - start:.0f} s", flush=True)
        else:
            why = "" if process.poll() is not None else "hangs"
        if why:
            process.kill()
        code = process.wait()
        if at < end:
            why = why or f"dies with {code}"
            crashes[f"{kind} {why}"] += 1
            last = (process.stderr.read() if process.stderr else b"").decode(errors="replace")
            print(f"CRASH seed {given.seed} number {at} {kind} {why}: {last[-200:]!r}", flush=True)
            at += 1
    print(f"{given.count:,} inputs, seed {given.seed}, {time.monotonic() - start:.0f} s")
    for name, number in sorted(outcomes.items()):
        print(f"  {name}: {number:,}")
    for name, number in sorted(crashes.items()):
        print(f"  CRASH {name}: {number:,}")
    print(f"{len(findings)} findings")
    return 1 if findings or crashes else 0


def _lines(process: subprocess.Popen[bytes]):
    """Lines of the worker until it ends, or says nothing for too long."""
    assert process.stdout is not None
    pending = b""
    while select.select([process.stdout], [], [], HANGS_AFTER)[0]:
        part = os.read(process.stdout.fileno(), 65536)
        if not part:
            process.wait()
            return
        *lines, pending = (pending + part).split(b"\n")
        yield from (line.decode() for line in lines)


def work(given: argparse.Namespace) -> int:
    """Try inputs one after the other, saying each one's number first."""
    from tests.fuzz.malformed import KINDS, check_case, make_case, samples

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    voice = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")

    def tell(*words: object) -> None:
        text = " ".join(map(str, words)).replace("\n", "\\n")
        voice.write(text + "\n")
        voice.flush()

    kinds = given.kinds or KINDS
    with tempfile.TemporaryDirectory() as folder:
        good = Path(folder, "good")
        good.mkdir()
        good_files = samples(good)
        for number in range(given.first, given.first + given.count):
            rng = random.Random(f"{given.seed} {number}")
            kind = rng.choice(kinds)
            tell("try", number, kind)
            with tempfile.TemporaryDirectory(dir=folder) as place:
                os.chdir(place)
                case = make_case(kind, good_files, Path(place), rng)
                if given.only is not None:
                    tell("words", case.words)
                    for path in case.inputs:
                        tell(path.name, path.read_bytes()[:3000] if path.is_file() else "(folder)")
                code, finding = check_case(case)
                os.chdir(folder)
            if finding:
                tell("found", f"seed {given.seed} number {number} {kind}: {finding}")
            tell("code", f"{kind} exit {code}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
