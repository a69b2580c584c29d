"""Words for graphs of accounts and payments: reasons, remarks, summaries; nothing stored."""

from __future__ import annotations

import numpy as np
import pytest

import edgeveil as ev
from edgeveil.errors import ParameterError
from edgeveil.estimate.lists import Lists, Reason
from edgeveil.results.nouns import Nouns, singular
from edgeveil.results.suggestions import Suggestions

GRAPH = ev.datasets.social_network(200, average_degree=10, seed=1).graph


@pytest.fixture(scope="module")
def made():
    return ev.suggest(GRAPH, [7, 8], epsilon=4.0, noise=ev.NoiseSource.insecure(0))


def everything_said(suggestions: Suggestions) -> str:
    lines = [line.why for member in suggestions.members for line in suggestions.for_member(member)]
    remarks = map(suggestions.remark, suggestions.members)
    return " ".join([*lines, *remarks, suggestions.summary, suggestions._repr_html_()])


def test_in_words_no_sentence_speaks_of_friends(made):
    said = everything_said(made)
    assert "common friend" in said
    assert "2 members" in said
    said = everything_said(made.in_words("accounts,payments"))
    assert "common account" in said
    assert "2 accounts" in said
    assert "distinct accounts" in said
    for word in ("friend", "people", "2 members"):
        assert word not in said.partition("Show each list")[0]
    assert everything_said(made.in_words("accounts,payments").in_words(None)) == everything_said(
        made
    )


def test_in_words_changes_no_number_and_no_file(made, tmp_path):
    other = made.in_words("numbers,calls,contacts")
    assert "contact" in other.for_member(7)[0].why
    for name, suggestions in (("a", made), ("b", other)):
        suggestions.write(tmp_path / f"{name}.json")
        suggestions.write(tmp_path / f"{name}.csv")
    for suffix in (".json", ".csv"):
        a, b = (tmp_path / f"{name}{suffix}" for name in "ab")
        assert a.read_bytes() == b.read_bytes()
    assert other.guarantee == made.guarantee
    assert other.only(7).nouns == other.nouns == Suggestions.joined([other, other.only(8)]).nouns


@pytest.mark.parametrize(
    ("words", "reasons", "own"),
    [
        (None, ["follows you", "popular", "followed by about 3 whom you follow"], "1 friend"),
        (
            "accounts,payments",
            [
                "has payments to you",
                "popular",
                "payments from about 3 accounts that you have payments to",
            ],
            "1 linked account",
        ),
    ],
)
def test_in_words_reasons_of_directed_lists(made, words, reasons, own):
    kinds = [Reason.FOLLOWS_YOU, Reason.POPULAR, Reason.COMMON_FRIENDS, *[Reason.POPULAR] * 2]
    columns = [np.arange(5.0)[::-1], np.array([0.0, 0.0, 3.0, 0.0, 0.0]), np.ones(5)]
    suggestions = Suggestions(
        members=(0,),
        nodes=GRAPH.nodes,
        lists=Lists(np.array([0, 5]), np.arange(1, 6), *columns, np.array(kinds, np.int8)),
        friends=np.array([1]),
        k=5,
        guarantee=made.guarantee,
        provenance=ev.suggest(ev.as_graph([(0, 1), (1, 2)], directed="keep"), [0], 1.0).provenance,
    ).in_words(words)
    assert [line.why for line in suggestions.for_member(0)][:3] == reasons
    assert f"with {own}" in suggestions.remark(0)


@pytest.mark.parametrize(
    "wrong",
    ["accounts", "a,b,c,d", "accounts,", "accounts,<b>", "accounts,pay\nments", "a" * 41 + ",b"],
)
def test_words_that_are_no_nouns_are_refused(made, wrong):
    with pytest.raises(ParameterError, match="words are"):
        made.in_words(wrong)


def test_nouns_are_counted_in_both_numbers():
    nouns = Nouns.of("trading companies, trades")
    assert nouns.counted_members(1, "were left") == "1 trading company was left"
    assert nouns.counted_members(1200, "were") == "1,200 trading companies were"
    assert Nouns().counted_members(1, "have") == "1 member has"
    assert (nouns.common(1), nouns.common(2)) == (
        "about 1 common trading company",
        "about 2 common trading companies",
    )
    assert singular("addresses") == "address"


def test_refresh_summary_is_in_words(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "f.ledger", epsilon=2)
    done = ev.refresh(GRAPH, epsilon=1.0, ledger=ledger)
    assert "200 members have lists. 200 members joined" in done.summary
    said = done.summary_in("accounts,payments")
    assert "200 accounts have lists. 200 accounts joined" in said
    assert "member" not in said
