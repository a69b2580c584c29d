"""Metrics against values computed by hand, and their properties."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeveil.errors import ParameterError
from edgeveil.evaluation.metrics import hits_at_k, top_k_metrics

EXACT = np.array([0.4, 0.3, 0.2, 0.1])


def recall_at_k(exact, scores, k=100):
    return top_k_metrics(exact, scores, k)[0]


def ndcg_at_k(exact, scores, k=100):
    return top_k_metrics(exact, scores, k)[1]


def test_recall_counts_the_true_top_nodes_that_were_found():
    scores = np.array([[9.0, 1.0, 8.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
    assert recall_at_k(EXACT, scores, 2).tolist() == [0.5, 0.0]
    assert recall_at_k(EXACT, scores, 3).tolist() == [1.0, 2 / 3]


def test_ndcg_by_hand():
    # Order 2, 0, 1, 3: gains 0.2, 0.4 at the first two places; ideal 0.4, 0.3.
    scores = np.array([3.0, 2.0, 4.0, 1.0])
    second = 1 / math.log2(3)
    assert ndcg_at_k(EXACT, scores, 2)[0] == pytest.approx(
        (0.2 + 0.4 * second) / (0.4 + 0.3 * second)
    )


@pytest.mark.parametrize("k", [1, 2, 4, 10])
def test_a_perfect_ranking_scores_one_for_every_k(k):
    assert recall_at_k(EXACT, EXACT * 7 - 1, k)[0] == 1
    assert ndcg_at_k(EXACT, EXACT * 7 - 1, k)[0] == pytest.approx(1)


def test_a_k_beyond_the_number_of_nodes_means_all():
    assert recall_at_k(EXACT, -EXACT, 100)[0] == 1
    assert ndcg_at_k(EXACT, -EXACT, 100)[0] == ndcg_at_k(EXACT, -EXACT, 4)[0] < 1


def test_zero_scores_have_the_recall_of_a_random_order():
    exact = np.zeros(50)
    exact[:5] = [5, 4, 3, 2, 1]
    for order in (exact, exact[::-1]):
        assert recall_at_k(order, np.zeros(50), 5)[0] == pytest.approx(0.1)


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 3), min_size=5, max_size=5),
    st.lists(st.integers(0, 3), min_size=5, max_size=5),
    st.integers(1, 6),
)
def test_ties_count_at_the_mean_over_all_their_orders(exact, scores, k):
    exact, scores = np.array(exact, dtype=float), np.array(scores, dtype=float)
    recalls, gains = [], []
    for order in itertools.permutations(range(5)):
        tie_break = scores + 0.1 * np.array(order) / 5
        recalls.append(recall_at_k(exact, tie_break, k)[0])
        gains.append(ndcg_at_k(exact, tie_break, k)[0])
    assert recall_at_k(exact, scores, k)[0] == pytest.approx(np.mean(recalls))
    assert ndcg_at_k(exact, scores, k)[0] == pytest.approx(np.mean(gains))
    assert -1e-12 <= ndcg_at_k(exact, scores, k)[0] <= 1 + 1e-12


def test_many_rows_give_what_single_rows_give():
    rng = np.random.default_rng(0)
    exact, scores = rng.random(300), rng.random((20, 300)).round(2)
    for metric in (recall_at_k, ndcg_at_k):
        one_by_one = [metric(exact, row, 40)[0] for row in scores]
        assert metric(exact, scores, 40) == pytest.approx(one_by_one)


def test_hits_count_relevant_nodes_only():
    relevant = np.array([True, False, False, False])
    assert hits_at_k(relevant, np.array([0.0, 3.0, 2.0, 1.0]), 3)[0] == 0
    assert hits_at_k(relevant, np.zeros(4), 2)[0] == 0.5


def test_wrong_input_is_refused():
    with pytest.raises(ParameterError, match="k must be"):
        recall_at_k(EXACT, EXACT, 0)
    with pytest.raises(ParameterError, match="one value for each"):
        recall_at_k(EXACT, EXACT[:2])
    with pytest.raises(ParameterError, match="NaN"):
        recall_at_k(EXACT, np.array([np.nan, 0, 0, 0]))
