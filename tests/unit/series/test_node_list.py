"""A series needs a node list, or the word that who appears at all is public."""

from __future__ import annotations

import pytest

import edgeveil as ev
from edgeveil.errors import ParameterError
from edgeveil.series import prepare_refresh

WEEKS = ["a,b\nb,c\nc,d\nx,y\n", "a,b\nb,c\nc,d\n"]  # the only edge of x and y ends


@pytest.fixture
def read(tmp_path):
    def read(week, nodes=None):
        (tmp_path / "friends.csv").write_text(WEEKS[week])
        return ev.read_graph(tmp_path / "friends.csv", nodes=nodes)

    return read


@pytest.fixture
def options(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=2)
    return {"ledger": ledger, "epsilon": 1.0, "most_loss": 1}


def names(refreshed):
    return {row.node for row in refreshed.suggestions(["a"]).for_member("a")} | {"a", "b"}


def test_refresh_without_a_node_list_is_refused(read, options, tmp_path):
    price = {"ledger": options["ledger"], "epsilon": 1.0}
    for call in (lambda: ev.refresh(read(0), **options), lambda: prepare_refresh(read(0), **price)):
        with pytest.raises(ParameterError, match=r"--nodes FILE.*nodes_from_edges=True"):
            call()
    assert options["ledger"].charges() == []
    history = ev.History.create(tmp_path / "history")
    with pytest.raises(ParameterError, match="nodes_from_edges=True"):
        history.add(read(0))
    assert history.add(read(0), nodes_from_edges=True) == 1


def test_nodes_from_edges_is_stated_in_the_guarantee(read, options):
    refreshed = ev.refresh(read(0), **options, nodes_from_edges=True, date="2026-01-01")
    assert names(refreshed) == set("abcdxy")
    said = str(refreshed.suggestions(["a"]).guarantee)
    assert "the start of somebody's first connection and the end of the last one show" in said
    refreshed = ev.refresh(read(1), **options, nodes_from_edges=True, date="2026-01-08")
    assert names(refreshed) == set("abcd"), "this is what the word allows"


def test_a_node_list_hides_the_end_of_a_last_edge(read, options):
    for week in (0, 1):
        refreshed = ev.refresh(read(week, [*"abcdxy"]), **options, date=f"2026-01-0{week + 1}")
        assert names(refreshed) == set("abcdxy")
    assert refreshed.suggestions(["a"]).guarantee.promise == ""


def test_history_of_nodes_from_edges_keeps_needing_the_option(read, options):
    ev.refresh(read(0), **options, nodes_from_edges=True, date="2026-01-01")
    with pytest.raises(ParameterError, match="nodes_from_edges=True"):
        ev.refresh(read(1, [*"abcdxy"]), **options, date="2026-01-08")
