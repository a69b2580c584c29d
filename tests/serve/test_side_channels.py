"""What a clock or a scale can see does not depend on others' edges."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from edgeveil.graph import Graph
from edgeveil.nodes import NodeSet
from tests.serve.running import Service


def network(crowd):
    """Member 0 has one friend 1, who has `crowd` friends: the most that 0 must not learn."""
    n = 2000
    u, v = [0], [1]
    u += [1] * crowd
    v += range(2, 2 + crowd)
    u += range(2, n - 1)
    v += range(3, n)
    return Graph.from_edges(u, v, NodeSet.range(n))


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    few = Service(tmp_path_factory.mktemp("few"), network(1), cap=40.0).start(wait=False)
    many = Service(tmp_path_factory.mktemp("many"), network(1800), cap=40.0).start(wait=False)
    few.wait()
    many.wait()
    yield few, many
    few.stop()
    many.stop()


def test_all_answers_have_one_length_whatever_the_graph(pair):
    lengths = {len(one.get(member=i).body) for one in pair for i in (0, 5, 1999)}
    assert len(lengths) == 1


def test_refusals_have_one_length(pair):
    sizes = {len(one.get(token=token).body) for one in pair for token in ("a.b.c", "x" * 300)}
    assert len(sizes) == 1


def first_times(running, count):
    """Seconds until first lists, of the same member in one snapshot after another."""
    times = []
    for number in range(count):
        if number:
            assert running.curator("/advance", "POST").status == 200
        times.append(running.get(member=0).seconds)
    return np.array(times[1:])


def test_the_time_of_a_first_list_does_not_tell_how_many_friends_a_friend_has(pair):
    for one in pair:
        one.get(member=7)  # whatever is loaded once is loaded
    with ThreadPoolExecutor(2) as pool:  # at the same time: whatever else runs disturbs both
        fast, slow = pool.map(first_times, pair, [16, 16])
    # Answers come on the beat, 0.2 s after the question or a multiple of it.
    assert (np.abs(np.concatenate([slow, fast]) / 0.2 % 1) < 0.25).mean() > 0.8
    assert mannwhitneyu(slow, fast).pvalue > 0.001
    # Nor how far off the beat, which one that is missed on a busy machine leaves alone.
    late, early = ((times + 0.1) % 0.2 for times in (slow, fast))
    assert abs(np.median(late) - np.median(early)) < 0.02
