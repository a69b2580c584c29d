"""One person under two ids would have two budgets: a ledger remembers its node set."""

import pytest

from edgeveil.errors import LedgerError


@pytest.fixture
def ledger(place):
    return place.create(epsilon=4)


def test_the_digest_is_one_of_the_set_and_of_the_ledger(new_place):
    ledger, other = new_place().create(epsilon=1), new_place().create(epsilon=1)
    digest = ledger.node_set_digest(["ann", "bob", "cem"])
    assert ledger.node_set_digest(("cem", "ann", "bob")) == digest
    assert ledger.node_set_digest(["ann", "bob"]) != digest
    assert ledger.node_set_digest(["ann", "bobcem"]) != digest
    assert ledger.node_set_digest(['ann", "bob', "cem"]) != digest
    assert ledger.node_set_digest([1, 2, 10]) == ledger.node_set_digest(["10", "2", "1"])
    assert other.node_set_digest(["ann", "bob", "cem"]) != digest


def test_another_node_set_is_refused_until_it_is_said_to_be_new(ledger, joint, key_of):
    before, after = (ledger.node_set_digest(ids) for ids in (["ann", "bob"], ["ann", "robert"]))
    ledger.reserve(key_of("1"), joint(1, "bob"), node_set=before)
    for ask in (ledger.reserve, ledger.price):
        with pytest.raises(LedgerError, match="another node set"):
            ask(key_of("2"), joint(1, "robert"), node_set=after)
    assert len(ledger.spends()) == 1
    ledger.reserve(key_of("2"), joint(1, "robert"), node_set=after, new_node_set=True)
    ledger.reserve(key_of("3"), joint(1, "ann"), node_set=after)
    with pytest.raises(LedgerError, match="another node set"):
        ledger.reserve(key_of("4"), joint(1, "bob"), node_set=before)
    ledger.verify()


def test_what_was_charged_before_is_given_whatever_the_node_set_is_now(ledger, joint, key_of):
    before, after = (ledger.node_set_digest(ids) for ids in (["ann"], ["bob"]))
    first = ledger.reserve(key_of("1"), joint(1, "ann"), node_set=before)
    ledger.reserve(key_of("2"), joint(1, "bob"), node_set=after, new_node_set=True)
    assert ledger.reserve(key_of("1"), joint(1, "ann"), node_set=before).secret == first.secret


def test_each_label_has_its_own_node_set(ledger, joint, key_of):
    friends, papers = (ledger.node_set_digest(ids) for ids in (["ann"], ["p1"]))
    ledger.reserve(key_of("1"), joint(1, "ann"), label="friends", node_set=friends)
    ledger.reserve(key_of("2"), joint(1, "p1"), label="papers", node_set=papers)
    with pytest.raises(LedgerError, match="another node set"):
        ledger.reserve(key_of("3"), joint(1, "ann"), label="papers", node_set=friends)


def test_a_refused_charge_remembers_no_node_set(ledger, joint, key_of):
    wrong, right = (ledger.node_set_digest(ids) for ids in (["ann"], ["bob"]))
    with pytest.raises(Exception, match="budget does not allow"):
        ledger.reserve(key_of("1"), joint(9, "ann"), node_set=wrong)
    ledger.reserve(key_of("1"), joint(1, "bob"), node_set=right)


def test_a_remembered_node_set_can_not_be_exchanged(place, ledger, joint, key_of):
    ledger.reserve(key_of("1"), joint(1, "ann"), node_set=ledger.node_set_digest(["ann"]))
    for statement in ("UPDATE node_sets SET digest = ''", "DELETE FROM node_sets"):
        with pytest.raises(Exception, match="node_sets is append-only"):
            place.raw(statement)
    place.drop_triggers("node_sets")
    place.raw("UPDATE node_sets SET digest = ''")
    with pytest.raises(LedgerError, match="node set 1 was changed"):
        ledger.verify()
