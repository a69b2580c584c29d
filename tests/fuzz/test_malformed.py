"""Malformed input, a little of it: an exit code, one sentence, and no file is changed.

``python -m tests.fuzz`` tries as many as one likes, Parquet and .mat among them, in a process
that may crash.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeveil.cli.app import main
from edgeveil.errors import InputError
from edgeveil.graph.read import read_graph
from tests.fuzz.malformed import KINDS, WORDS, Case, check_case, damage, make_case, quiet, samples

ROOT = Path(__file__).parents[2]
SAFE = [kind for kind in KINDS if kind != "parquet"]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return samples(tmp_path_factory.mktemp("good"))


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDGEVEIL_CONFIG", raising=False)


@pytest.mark.parametrize("kind", SAFE)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_damaged_files_get_one_sentence(good, kind, seed):
    with tempfile.TemporaryDirectory() as place:
        case = make_case(kind, good, Path(place), random.Random(seed))
        code, finding = check_case(case)
        assert not finding, (code, finding)


def test_the_long_run_tries_all_it_was_asked_for():
    command = [sys.executable, "-m", "tests.fuzz", "--count", "4", "--seed", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()[1:-1]) == 4


@settings(max_examples=60)
@given(words=st.lists(st.sampled_from(["rank", "embed", "convert", "ledger", *WORDS]), max_size=8))
def test_odd_words_get_one_sentence(words):
    words = [word for word in words if word not in ("demo", "evaluate", "audit")]
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        code, finding = check_case(Case("words", words, []))
        assert not finding, (code, finding)


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), packed=st.booleans())
def test_a_damaged_mat_file_never_reaches_the_compiled_reader(seed, packed):
    """scipy's own reader dies on about one in a hundred of these."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "bad.mat")
        matrix = sp.csc_array(([1.0, 1, 1, 1], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
        scipy.io.savemat(path, {"other": [1.5], "network": matrix}, do_compression=packed)
        path.write_bytes(damage(path.read_bytes(), random.Random(seed)))
        try:
            graph = read_graph(path, directed="ignore")
        except InputError:
            return
        assert graph.n_nodes >= 0


def test_the_checks_of_the_fuzzer_can_fail(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("a,b\n")
    rank = ["rank", str(path), "--source", "a", "--mechanism", "own-neighbours"]
    assert check_case(Case("csv", rank, [path])) == (0, "")
    overwrite = [*rank, "--overwrite", "--out", str(tmp_path / "r.csv")]
    (tmp_path / "r.csv").write_text("old")
    assert check_case(Case("csv", overwrite, [tmp_path / "r.csv"]))[1].endswith("was changed")
    with quiet() as said:
        assert main(["rank"]) == 2
    assert said().startswith("edgeveil: ")
