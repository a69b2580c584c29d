"""A plan never adds up to more than is left, and what it names can really be charged."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.errors import BudgetError, ParameterError
from edgeveil.graph.datasets import social_network
from edgeveil.ledger import Ledger
from edgeveil.ledger.accounts import Account
from edgeveil.ledger.plan import days_of, plan
from edgeveil.mechanisms import Suggest
from edgeveil.series.suggesting import suggest


def account(cap, charged=0, pooled_cap=None, pooled=0):
    return Account("ann", cap, charged, 0, pooled_cap, pooled)


@pytest.mark.parametrize(
    ("text", "days"),
    [("day", 1), ("Weeks", 7), ("2 weeks", 14), ("90d", 90), ("6m", 365.25 / 2), ("1.5y", 547.875)],
)
def test_times_are_read_as_people_write_them(text, days):
    assert math.isclose(days_of(text), days)


@pytest.mark.parametrize("text", ["", "soon", "0d", "-1d", "1", "week week", "1e3d", "fortnight"])
def test_what_is_no_time_is_said(text):
    with pytest.raises(ParameterError, match="expected a time"):
        days_of(text)


@given(
    cap=st.integers(1, 10**12),
    charged=st.integers(0, 10**12),
    every=st.sampled_from(["day", "week", "month", "5d", "quarter"]),
    lasting=st.sampled_from(["100d", "1y", "3y", "370d"]),
)
def test_all_releases_of_a_plan_fit_into_what_is_left(cap, charged, every, lasting):
    if charged >= cap:
        with pytest.raises(BudgetError):
            plan(account(cap, charged), every, lasting)
        return
    found = plan(account(cap, charged), every, lasting)
    assert found[0].every == every
    assert len({p.every for p in found}) == len(found)
    for one in found:
        nano = round(one.epsilon * 10**9)
        assert nano * one.releases <= cap - charged
        assert (nano + 1) * one.releases > cap - charged  # and no more would
        assert one.releases == math.ceil(days_of(lasting) / days_of(one.every) - 1e-9)


@given(st.integers(1, 1000), st.integers(10**6, 10**11))
def test_the_cap_for_all_who_pool_is_kept(members, pooled_cap):
    def pooled(epsilon):
        return Suggest(epsilon=epsilon).guarantee(members).pooled_epsilon if epsilon else 0.0

    for one in plan(account(10**10, pooled_cap=pooled_cap), "week", "1y", pooled=pooled):
        assert pooled(one.epsilon) * one.releases <= pooled_cap / 10**9 * (1 + 1e-12)


def test_a_release_seldom_than_the_whole_time_is_refused():
    with pytest.raises(ParameterError, match="no room"):
        plan(account(10**9), "year", "month")


def test_a_plan_can_be_carried_out_to_its_end_and_not_further(tmp_path):
    graph = social_network(150).graph
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1)
    [weekly, *_] = plan(ledger.account(), "week", "30d")
    assert weekly.releases == 5
    for week in range(weekly.releases):
        if week:
            ledger.advance()
        suggest(graph, [3], epsilon=weekly.epsilon, ledger=ledger)
    ledger.advance()
    with pytest.raises(BudgetError):
        suggest(graph, [3], epsilon=weekly.epsilon, ledger=ledger)
