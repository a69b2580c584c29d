"""What is charged, to whom, and when it is refused."""

import hashlib
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeveil.errors import BudgetError, LedgerError, ParameterError
from edgeveil.ledger import Charge, Ledger
from edgeveil.privacy.guarantee import Guarantee


def test_a_price_is_the_number_as_written_rounded_up_to_whole_nano_epsilons(public):
    for written in ("1.0", "0.1", "0.3", "0.3333333333333333", "1e-12", "2.5e-9", "7.000000001"):
        nano = public(float(written)).epsilon_nano
        assert nano - 1 < Fraction(written) * 10**9 <= nano
    assert public(0.0).epsilon_nano == 0


def test_ten_releases_at_a_tenth_fit_under_a_cap_of_one(place, public, key_of):
    ledger = place.create(epsilon=1)
    for i in range(10):
        ledger.reserve(key_of(str(i)), public(0.1))
    assert ledger.account().left == 0


def test_a_cap_of_x_admits_one_spend_of_x(new_place, public, key_of):
    for epsilon in (0.1, 0.3, 1 / 3, 0.7, 1.1):
        ledger = new_place().create(epsilon=epsilon)
        ledger.reserve(key_of("all"), public(epsilon))
        assert ledger.account().left == 0


def test_the_recipients_spend_apart_and_the_public_spends_for_all(place, public, joint, key_of):
    ledger = place.create(epsilon=4)
    ledger.reserve(key_of("1"), joint(1.5, "alice", "bob"))
    ledger.reserve(key_of("2"), joint(1, "alice"))
    ledger.reserve(key_of("3"), public(0.25))
    assert ledger.account("alice").left == 1.25
    assert ledger.account("bob").spent == 1.75
    assert ledger.account("carol").spent == ledger.account("carol").public == 0.25
    assert ledger.account().recipient == "alice"
    assert ledger.account().pooled_spent == 4.25
    assert ledger.account().pooled_left == float("inf")
    shown = ledger.show()
    assert "'alice': 2.75 spent, 1.25 left" in shown
    assert "anybody else: 0.25 spent, 3.75 left" in shown
    assert "all recipients together: 4.25 spent" in shown
    assert shown.endswith(ledger.verify())


def test_shared_noise_counts_once_in_the_pool_and_somebodys_two_rows_count_twice(joint):
    assert joint(1, "alice", "bob", pooling="shared").pooled_nano == 10**9
    assert joint(1, "alice", "bob").pooled_nano == 2 * 10**9
    twice = joint(1, "alice", "alice", "bob")
    assert twice.per_recipient == {"alice": 2 * 10**9, "bob": 10**9}
    assert twice.pooled_nano == 3 * 10**9
    shared = joint(1, "alice", "alice", "bob", pooling="shared")
    assert shared.per_recipient == {"alice": 10**9, "bob": 10**9}


def test_a_refusal_says_what_was_asked_what_is_left_and_for_whom(place, public, joint, key_of):
    ledger = place.create(epsilon=4, pooled_epsilon=5)
    ledger.reserve(key_of("1"), joint(3.5, "alice"))
    for charge, words in (
        (joint(1, "alice", "bob"), "needs epsilon 1, 0.5 of 4 is left for recipient 'alice'"),
        (
            public(0.75),
            "needs epsilon 0.75, 0.5 of 4 is left for everybody (recipient 'alice' has the least)",
        ),
        (joint(1, "bob", "carol"), "needs epsilon 2, 1.5 of 5 is left for all recipients together"),
    ):
        with pytest.raises(BudgetError) as refusal:
            ledger.reserve(key_of("2"), charge)
        assert str(refusal.value) == f"the budget does not allow this: it {words}"
    assert len(ledger.spends()) == 1
    assert place.raw("SELECT count(*) FROM secrets") == [(1,)]
    assert place.raw("SELECT count(*) FROM recipient_spends") == [(1,)]


def test_the_caps_count_over_all_fingerprints(place, public, key_of):
    ledger = place.create(epsilon=1)
    ledger.reserve(key_of("1"), public(1), fingerprint="monday")
    with pytest.raises(BudgetError):
        ledger.reserve(key_of("2"), public(0.5), fingerprint="tuesday")
    assert ledger.spends()[0].fingerprint == "monday"


def test_the_same_key_is_charged_once_and_keeps_its_secret(place, public, key_of):
    ledger = place.create(epsilon=1)
    first = ledger.reserve(key_of("1"), public(1), {"why": "ünïcode"})
    again = ledger.reserve(key_of("1"), public(1), {"why": "something else"})
    assert first.secret == again.secret
    assert len(first.secret) == 32
    assert first.state == again.state == "reserved"
    assert first.artifact is None
    assert [spend.note for spend in ledger.spends()] == [{"why": "ünïcode"}]
    assert first.secret.hex() not in repr(first)


def test_two_keys_have_different_secrets(place, public, key_of):
    ledger = place.create(epsilon=1)
    secrets = {ledger.reserve(key_of(str(i)), public(0.25)).secret for i in range(4)}
    assert len(secrets) == 4


def test_the_same_key_with_another_charge_or_graph_is_an_error(place, public, joint, key_of):
    ledger = place.create(epsilon=4)
    ledger.reserve(key_of("1"), joint(1, "alice", "bob"))
    ledger.reserve(key_of("1"), joint(1, "bob", "alice"))  # the order does not matter
    for charge in (joint(1, "alice", "carol"), joint(0.5, "alice", "bob"), public(1)):
        with pytest.raises(LedgerError, match="another charge"):
            ledger.reserve(key_of("1"), charge)
    with pytest.raises(LedgerError, match="graph"):
        ledger.reserve(key_of("1"), joint(1, "alice", "bob"), fingerprint="other")
    assert len(ledger.spends()) == 1


def test_a_released_key_returns_its_artifact_and_charges_nothing(place, public, key_of):
    ledger = place.create(epsilon=1)
    reservation = ledger.reserve(key_of("1"), public(1))
    released = reservation.release(lambda path: path.write_text("values"), suffix=".csv")
    assert released.state == "released"
    assert released.secret == b""
    again = place.open().reserve(key_of("1"), public(1))
    assert again == released
    assert again.artifact == place.artifacts / f"{key_of('1')}.csv"
    assert again.artifact.read_text() == "values"
    assert ledger.spends()[0].released


def test_a_second_release_of_a_key_leaves_the_first_as_it_is(place, public, key_of):
    ledger = place.create(epsilon=1)
    reservation = ledger.reserve(key_of("1"), public(1))
    reservation.release(lambda path: path.write_text("first"))
    late = reservation.release(lambda path: path.write_text("second"), suffix=".txt")
    assert late.artifact.read_text() == "first"
    assert late.release(lambda path: path.write_text("third")).artifact.read_text() == "first"
    assert list(place.artifacts.iterdir()) == [late.artifact]
    ledger.verify()


def test_a_writer_that_fails_or_writes_nothing_leaves_the_reservation_open(place, public, key_of):
    ledger = place.create(epsilon=1)
    reservation = ledger.reserve(key_of("1"), public(1))
    with pytest.raises(ZeroDivisionError):
        reservation.release(lambda path: path.write_text(str(1 / 0)))
    with pytest.raises(LedgerError, match="wrote no file"):
        reservation.release(lambda path: None)
    again = ledger.reserve(key_of("1"), public(1))
    assert (again.state, again.secret) == ("reserved", reservation.secret)
    assert not [path for path in place.artifacts.iterdir() if path.is_file()]


def test_a_lost_artifact_is_an_error_not_a_second_draw(place, public, key_of):
    ledger = place.create(epsilon=1)
    released = ledger.reserve(key_of("1"), public(1)).release(lambda path: path.write_text("x"))
    released.artifact.unlink()
    with pytest.raises(LedgerError, match="is gone"):
        ledger.reserve(key_of("1"), public(1))
    with pytest.raises(LedgerError, match="is gone"):
        ledger.verify()
    ledger.verify(artifacts=False)


@pytest.mark.parametrize(
    "guarantee",
    [
        Guarantee(epsilon=float("inf"), model="none", theorem="none"),
        Guarantee(epsilon=1, model="public", theorem="test", private=False),
    ],
)
def test_no_budget_covers_a_release_without_protection(guarantee):
    with pytest.raises(BudgetError, match="not private"):
        Charge.from_guarantee(guarantee)


def test_wrong_arguments_are_named_and_spend_nothing(sqlite_place, public, joint, key_of):
    ledger = sqlite_place.create(epsilon=1)
    for wrong in (
        lambda: ledger.reserve("not a digest", public(1)),
        lambda: ledger.reserve(key_of("1"), public(1), {"a": 1}),
        lambda: ledger.reserve(key_of("1"), public(1), {"a": "b" * 20_000}),
        lambda: ledger.reserve(key_of("1"), public(1), fingerprint="a\0b"),
        lambda: ledger.reserve(key_of("1"), joint(1, "\ud800")),
        lambda: Charge(10**9, "public", ("alice",), 10**9),
        lambda: Charge(10**9, "joint", (), 10**9),
        lambda: Charge(10**9, "joint", ("alice", "bob"), 3 * 10**9),
        lambda: Charge(-1, "public", (), -1),
        lambda: Charge.from_guarantee(
            Guarantee(epsilon=1, model="public", theorem="test", delta=1e-6)
        ),
        lambda: Ledger.create(sqlite_place.location + "2", epsilon=0),
        lambda: Ledger.create(sqlite_place.location + "2", epsilon=float("inf")),
        lambda: Ledger.create(sqlite_place.location + "2", epsilon=1, pooled_epsilon=-1),
        lambda: ledger.reserve(key_of("2"), public(1)).release(print, suffix="/../x"),
    ):
        with pytest.raises(ParameterError):
            wrong()
    assert [spend.key for spend in ledger.spends()] == [key_of("2")]


names = st.sampled_from(["alice", "bob", "carol"])
releases = st.tuples(
    st.integers(0, 11),  # which key: some come again
    st.sampled_from(["public", "adds up", "shared"]),
    st.lists(names, min_size=1, max_size=4),
    st.integers(0, 8).map(lambda eighths: eighths / 8),
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    cap=st.integers(1, 4),
    pooled_cap=st.none() | st.integers(1, 6),
    sequence=st.lists(releases, max_size=12),
)
def test_any_sequence_is_accepted_and_refused_as_by_a_plain_dict(
    new_place, public, joint, cap, pooled_cap, sequence
):
    ledger = new_place().create(epsilon=cap, pooled_epsilon=pooled_cap)
    everybody, pool, own, known = 0.0, 0.0, dict.fromkeys(("alice", "bob", "carol"), 0.0), {}
    for number, kind, recipients, epsilon in sequence:
        key = hashlib.sha256(str(number).encode()).hexdigest()
        costs = dict.fromkeys(own, 0.0)
        for name in recipients:
            costs[name] = epsilon if kind == "shared" else costs[name] + epsilon
        if kind == "public":
            charge, costs, pooled = public(epsilon), {}, epsilon
        else:
            charge = joint(epsilon, *recipients, pooling=kind)
            pooled = epsilon if kind == "shared" else epsilon * len(recipients)
        if key in known:
            if known[key] == charge:
                assert ledger.reserve(key, charge).state == "reserved"
            else:
                with pytest.raises(LedgerError):
                    ledger.reserve(key, charge)
            continue
        # Eighths are exact in floats, so the model may add them up.
        public_after = everybody + (epsilon if kind == "public" else 0)
        paying = [name for name in own if kind == "public" or name in recipients]
        worst = max(public_after + own[name] + costs.get(name, 0) for name in paying)
        if worst > cap or (pooled_cap is not None and pool + pooled > pooled_cap):
            with pytest.raises(BudgetError):
                ledger.reserve(key, charge)
            continue
        ledger.reserve(key, charge)
        known[key] = charge
        everybody, pool = public_after, pool + pooled
        own = {name: own[name] + costs.get(name, 0) for name in own}
    for name, spent in own.items():
        assert ledger.account(name).spent == everybody + spent
    assert ledger.account().pooled_spent == pool
    assert ledger.account().public == everybody
    assert ledger.account().spent <= cap
    ledger.verify()
