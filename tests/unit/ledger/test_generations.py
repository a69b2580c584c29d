"""Labels and generations: declared, never detected."""

import pytest

from edgeveil.errors import BudgetError, LedgerError
from edgeveil.ledger import Campaign


@pytest.fixture
def ledger(place):
    return place.create(epsilon=4)


def test_another_graph_is_refused_until_a_generation_is_declared(ledger, joint, reserve):
    first = reserve(ledger, "q", joint(1, "ann"), fingerprint="monday")
    for question in ("q", "another question"):
        with pytest.raises(LedgerError, match="public schedule"):
            reserve(ledger, question, joint(1, "ann"), fingerprint="tuesday")
    assert len(ledger.charges()) == 1
    assert reserve(ledger, "q", joint(1, "ann"), fingerprint="monday") == first
    assert ledger.advance() == 2
    second = reserve(ledger, "q", joint(1, "ann"), fingerprint="tuesday")
    assert second.secret != first.secret
    assert [(s.generation, s.fingerprint) for s in ledger.charges()] == [
        (1, "monday"),
        (2, "tuesday"),
    ]
    assert ledger.account("ann").charged == 2
    with pytest.raises(LedgerError, match="generation 2"):
        reserve(ledger, "q", joint(1, "ann"), fingerprint="monday")
    assert "the graph: generation 2, in use since" in ledger.show()
    ledger.verify()


def test_changed_node_set_is_named_before_a_new_generation(ledger, joint, reserve):
    options = {"fingerprint": "monday", "label": "friends", "note": {"nodes": "1,040 abc"}}
    reserve(ledger, "q", joint(1, "ann"), **options)
    options |= {"fingerprint": "tuesday", "label": "Friends"}
    price = r"charged anew \(this release: epsilon = 1 to each of 2 members\)"
    with pytest.raises(LedgerError, match=f"generation 1 of 'Friends'. If it is .*{price}"):
        reserve(ledger, "q", joint(1, "ann", "bob"), **options)
    options["note"] = {"nodes": "1,039 def"}
    told = r": the node set differs \(1,039 nodes here, 1,040 there\). Did you forget --nodes"
    with pytest.raises(LedgerError, match=f"{told}.*{price}"):
        reserve(ledger, "q", joint(1, "ann", "bob"), **options)
    assert len(ledger.charges()) == 1


def test_price_refuses_another_graph_and_fixes_none(place, ledger, joint, reserve):
    def priced(fingerprint):
        asked = joint(1, "ann")
        more = {"fingerprint": fingerprint, "label": "friends"}
        campaign = Campaign(identity="q", guarantee=asked.guarantee, **more)
        return ledger.price(campaign, asked.members).generation

    assert priced("monday") == 1, "nothing was released yet"
    reserve(ledger, "q", joint(4, "ann"), fingerprint="monday", label="friends")  # all of the cap
    assert priced("monday") == 1
    with pytest.raises(LedgerError, match="not the graph of generation 1 of 'friends'"):
        priced("tuesday")
    before = place.raw("SELECT * FROM snapshots")
    ledger.advance("friends")
    assert priced("tuesday") == 2
    assert len(place.raw("SELECT * FROM snapshots")) == len(before) + 1, "it fixes no graph"


def test_call_begun_before_an_advance_is_refused_after_it(ledger, joint, reserve):
    reserve(ledger, "q", joint(1, "ann"), generation=1)
    ledger.advance()
    with pytest.raises(LedgerError, match="nothing more is drawn in another"):
        reserve(ledger, "q", joint(1, "bob"), generation=1)
    assert len(ledger.charges()) == 1
    assert "generation 2, declared" in ledger.show(), "its graph is not fixed by the old one"


def test_the_same_graph_may_be_a_new_generation(ledger, joint, reserve):
    reserve(ledger, "q", joint(1, "ann"), fingerprint="same")
    ledger.advance()
    reserve(ledger, "q", joint(1, "ann"), fingerprint="same")
    assert ledger.account("ann").charged == 2, "whether it has changed does not show"


def test_advance_without_a_release_keeps_the_next_generation(place, ledger, joint, reserve):
    with pytest.raises(LedgerError, match="its first generation is still to come"):
        ledger.advance()
    reserve(ledger, "q", joint(1, "ann"))
    assert [ledger.advance(), place.open().advance(), ledger.advance()] == [2, 2, 2]
    assert "generation 2, declared" in ledger.show()
    reserve(ledger, "q", joint(1, "ann"), fingerprint="new")
    assert ledger.advance() == 3


def test_each_label_has_generations_of_its_own(ledger, joint, reserve):
    reserve(ledger, "q", joint(1, "ann"), label="friends", fingerprint="f")
    reserve(ledger, "q", joint(1, "ann"), label="papers", fingerprint="p")
    assert len(ledger.charges()) == 2, "the same question of two graphs"
    ledger.advance("papers")
    reserve(ledger, "q", joint(1, "ann"), label="  Friends ", fingerprint="f")
    with pytest.raises(LedgerError, match="not the graph of generation 1 of 'FRIENDS'"):
        reserve(ledger, "q", joint(1, "ann"), label="FRIENDS", fingerprint="p")
    reserve(ledger, "q", joint(1, "ann"), label="papers", fingerprint="p2")
    assert ledger.account("ann").charged == 3


def test_a_refused_charge_fixes_no_graph(ledger, joint, reserve):
    with pytest.raises(BudgetError):
        reserve(ledger, "q", joint(9, "ann"), fingerprint="wrong")
    reserve(ledger, "q", joint(1, "ann"), fingerprint="right")


def test_a_generation_can_not_be_exchanged(place, ledger, joint, reserve):
    reserve(ledger, "q", joint(1, "ann"), fingerprint="f")
    place.raw("UPDATE snapshots SET number = 5")
    with pytest.raises(LedgerError, match="generation 1 was changed"):
        ledger.verify()


def test_verify_finds_a_generation_that_was_removed(place, ledger, joint, reserve):
    """Without it the next release could be from the graph of the one before."""
    reserve(ledger, "q", joint(1, "ann"), fingerprint="monday")
    ledger.advance()
    reserve(ledger, "q", joint(1, "ann"), fingerprint="tuesday")
    ledger.verify()
    place.raw("DELETE FROM snapshots WHERE seq > 1")
    with pytest.raises(LedgerError, match="a generation is missing"):
        ledger.verify()
