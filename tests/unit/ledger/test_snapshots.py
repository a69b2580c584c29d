"""Labels and snapshots: declared, never detected; windows over them."""

from dataclasses import replace

import pytest

from edgeveil.errors import BudgetError, LedgerError
from edgeveil.ledger import campaigns


@pytest.fixture
def ledger(place):
    return place.create(epsilon=4)


def test_another_graph_is_refused_until_a_snapshot_is_declared(ledger, joint, reserve):
    first = reserve(ledger, "q", joint(1, "ann"), fingerprint="monday")
    for question in ("q", "another question"):
        with pytest.raises(LedgerError, match="public schedule"):
            reserve(ledger, question, joint(1, "ann"), fingerprint="tuesday")
    assert len(ledger.spends()) == 1
    assert reserve(ledger, "q", joint(1, "ann"), fingerprint="monday") == first
    assert ledger.advance() == 2
    second = reserve(ledger, "q", joint(1, "ann"), fingerprint="tuesday")
    assert second.secret != first.secret
    assert [(s.snapshot, s.fingerprint) for s in ledger.spends()] == [(1, "monday"), (2, "tuesday")]
    assert ledger.account("ann").spent == 2
    with pytest.raises(LedgerError, match="snapshot 2"):
        reserve(ledger, "q", joint(1, "ann"), fingerprint="monday")
    assert "the graph: snapshot 2, in use since" in ledger.show()
    ledger.verify()


def test_a_call_that_began_before_an_advance_does_not_go_on_after_it(ledger, joint, reserve):
    reserve(ledger, "q", joint(1, "ann"), snapshot=1)
    ledger.advance()
    with pytest.raises(LedgerError, match="nothing more is drawn from a state that is over"):
        reserve(ledger, "q", joint(1, "bob"), snapshot=1)
    assert len(ledger.spends()) == 1
    assert "snapshot 2, declared" in ledger.show(), "its graph is not fixed by the old one"


def test_the_same_graph_may_be_a_new_snapshot(ledger, joint, reserve):
    reserve(ledger, "q", joint(1, "ann"), fingerprint="same")
    ledger.advance()
    reserve(ledger, "q", joint(1, "ann"), fingerprint="same")
    assert ledger.account("ann").spent == 2, "whether it has changed does not show"


def test_a_snapshot_that_nothing_was_released_from_stays_the_next(place, ledger, joint, reserve):
    with pytest.raises(LedgerError, match="its first snapshot is still to come"):
        ledger.advance()
    reserve(ledger, "q", joint(1, "ann"))
    assert [ledger.advance(), place.open().advance(), ledger.advance()] == [2, 2, 2]
    assert "snapshot 2, declared" in ledger.show()
    reserve(ledger, "q", joint(1, "ann"), fingerprint="new")
    assert ledger.advance() == 3


def test_each_label_has_snapshots_of_its_own(ledger, joint, reserve):
    reserve(ledger, "q", joint(1, "ann"), label="friends", fingerprint="f")
    reserve(ledger, "q", joint(1, "ann"), label="papers", fingerprint="p")
    assert len(ledger.spends()) == 2, "the same question of two graphs"
    ledger.advance("papers")
    reserve(ledger, "q", joint(1, "ann"), label="  Friends ", fingerprint="f")
    with pytest.raises(LedgerError, match="another one than snapshot 1 of 'FRIENDS'"):
        reserve(ledger, "q", joint(1, "ann"), label="FRIENDS", fingerprint="p")
    reserve(ledger, "q", joint(1, "ann"), label="papers", fingerprint="p2")
    assert ledger.account("ann").spent == 3


def test_a_refused_charge_fixes_no_graph(ledger, joint, reserve):
    with pytest.raises(BudgetError):
        reserve(ledger, "q", joint(9, "ann"), fingerprint="wrong")
    reserve(ledger, "q", joint(1, "ann"), fingerprint="right")


def test_a_snapshot_can_not_be_exchanged(place, ledger, joint, reserve):
    reserve(ledger, "q", joint(1, "ann"), fingerprint="f")
    for statement in ("UPDATE snapshots SET fingerprint = ''", "DELETE FROM snapshots"):
        with pytest.raises(Exception, match="snapshots is append-only"):
            place.raw(statement)
    place.drop_triggers("snapshots")
    place.raw("UPDATE snapshots SET number = 5")
    with pytest.raises(LedgerError, match="snapshot 1 was changed"):
        ledger.verify()


# --- Windows --------------------------------------------------------------------------------


def test_over_any_window_the_sum_is_at_most_the_cap(place, joint, public, reserve):
    ledger = place.create(epsilon=2, window=3)
    spent = {}
    for week in range(1, 9):
        for attempt in range(3):
            try:
                reserve(ledger, f"q{attempt}", joint(1, "ann", "bob"), fingerprint=str(week))
                spent[week] = spent.get(week, 0) + 1
            except BudgetError:
                assert sum(spent.get(w, 0) for w in (week - 2, week - 1, week)) == 2
        if not spent.get(week):
            reserve(ledger, "free", joint(0, "ann"), fingerprint=str(week))
        ledger.advance()
    for last in range(3, 9):
        assert sum(spent.get(week, 0) for week in range(last - 2, last + 1)) <= 2
    assert sum(spent.values()) > 4, "more than the cap over all time"
    ledger.verify()


def test_public_spends_and_rows_share_a_window(place, joint, public, reserve):
    ledger = place.create(epsilon=2, pooled_epsilon=3, window=2)
    reserve(ledger, "1", joint(1, "ann"), fingerprint="1")
    reserve(ledger, "2", public(1), fingerprint="1")
    with pytest.raises(BudgetError, match="'ann' has the least"):
        reserve(ledger, "3", public(0.5), fingerprint="1")
    ledger.advance()
    with pytest.raises(BudgetError, match="left for recipient 'ann'"):
        reserve(ledger, "3", joint(0.5, "ann"), fingerprint="2")
    reserve(ledger, "3", joint(1, "bob"), fingerprint="2")
    assert ledger.account("ann").left == ledger.account("bob").left == 0
    with pytest.raises(BudgetError, match="all recipients together"):
        reserve(ledger, "4", joint(1, "carol"), fingerprint="2")
    ledger.advance()
    assert (ledger.account("ann").left, ledger.account("bob").left) == (2, 1)
    assert ledger.account().recipient == "bob"
    assert ledger.account().pooled_left == 2
    reserve(ledger, "4", public(1), fingerprint="3")
    ledger.verify()


def test_a_ledger_with_a_window_is_for_one_label_and_says_what_it_protects(place, joint, reserve):
    ledger = place.create(epsilon=2, window=4)
    reserve(ledger, "q", joint(1, "ann"), label="friends")
    with pytest.raises(LedgerError, match="a window is for one label"):
        reserve(ledger, "q", joint(1, "ann"), label="papers")
    assert place.open().window == 4
    assert "may learn 2 within any 4 snapshots" in ledger.show()
    assert "not one that stays for ever" in ledger.show()


@pytest.mark.parametrize(
    "change", ["public_total = 3000000000 WHERE seq = 4", "snapshot = 2 WHERE seq = 6"]
)
def test_what_has_left_a_window_is_not_believed_either(place, public, reserve, change):
    ledger = place.create(epsilon=2, window=2)
    for week in "1234":  # two spends each: what all rows share, and a row
        ledger.advance() if week > "1" else None
        reserve(ledger, "q", public(1), fingerprint=week)
    place.drop_triggers("spends")
    place.raw(f"UPDATE spends SET {change}")  # more seems to have left than has
    with pytest.raises(LedgerError, match="was changed"):
        reserve(ledger, "more", public(1), fingerprint="4")


def test_a_window_can_not_be_changed(place, joint, reserve):
    ledger = place.create(epsilon=2, window=4)
    reserve(ledger, "q", joint(1, "ann"))
    place.drop_triggers("ledger")
    place.raw("UPDATE ledger SET window_size = 1")
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.account()
    with pytest.raises(LedgerError, match="spend 1 was changed"):
        place.open().verify()


def test_verify_finds_a_window_that_was_exceeded(place, joint, reserve, monkeypatch):
    ledger, original = place.create(epsilon=2, window=2), campaigns._priced

    def never_short(*asked):
        cost, before, price = original(*asked)
        return cost, before, replace(price, short="")

    monkeypatch.setattr(campaigns, "_priced", never_short)
    for week in range(4):
        reserve(ledger, "q", joint(1, "ann"), fingerprint=str(week))
        ledger.advance()
    ledger.verify()
    reserve(ledger, "1", joint(1.5, "bob"), fingerprint="4")
    ledger.advance()
    reserve(ledger, "1", joint(1, "bob"), fingerprint="5")
    with pytest.raises(LedgerError, match="more is spent than the cap allows"):
        ledger.verify()
