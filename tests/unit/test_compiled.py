"""Compiled loops: where they cannot be kept, and where the kept ones are old."""

from __future__ import annotations

import runpy
from pathlib import Path

from numba.core import caching

from edgeveil._compiled import compiled

RUN = Path(__file__).parents[2] / "run"


def test_where_nothing_can_be_kept_loops_are_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    doubled = compiled(lambda x: 2 * x)
    assert doubled(21) == 42
    assert not doubled.stats.cache_path


def test_a_change_in_any_loop_throws_all_kept_ones_away_and_no_other_change_does(tmp_path):
    forget = runpy.run_path(str(RUN))["forget_old_loops"]
    forget.__globals__.update(ROOT=tmp_path, STATE=tmp_path)
    package = tmp_path / "src" / "edgeveil" / "estimate"
    kept = package / "__pycache__" / "lists.make-1.py311.1.nbc"
    kept.parent.mkdir(parents=True)
    inner, words = package / "_inner.py", package / "words.py"
    inner.write_text("from edgeveil._compiled import inner")
    words.write_text("nothing compiled")
    forget()
    kept.touch()
    words.write_text("other words")
    forget()
    assert kept.exists()
    inner.write_text("from edgeveil._compiled import inner  # another loop")
    forget()
    assert not kept.exists()
