"""What is charged, to whom, and when it is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeveil.errors import BudgetError, LedgerError, ParameterError
from edgeveil.ledger import Campaign, Ledger
from edgeveil.ledger.prices import price_of_growth
from edgeveil.privacy.guarantee import Guarantee


def test_price_is_epsilon_rounded_up_to_nano_epsilons(public):
    for written in ("1.0", "0.1", "0.3", "0.3333333333333333", "1e-12", "2.5e-9", "7.000000001"):
        nano = price_of_growth(public(float(written)).guarantee, 0, 1).epsilon_nano
        assert nano - 1 < Fraction(written) * 10**9 <= nano
    assert price_of_growth(public(0.0).guarantee, 0, 1).epsilon_nano == 0


def test_ten_releases_at_a_tenth_fit_under_a_cap_of_one(place, public, reserve):
    ledger = place.create(epsilon=1)
    for i in range(10):
        reserve(ledger, str(i), public(0.1))
    assert ledger.account().left == 0


def test_a_cap_of_x_admits_one_charge_of_x(new_place, public, reserve):
    for epsilon in (0.1, 0.3, 0.333333333, 0.7, 1.1):
        ledger = new_place().create(epsilon=epsilon)
        reserve(ledger, "all", public(epsilon))
        assert ledger.account().left == 0


def test_a_cap_is_rounded_down(sqlite_place, public, reserve):
    ledger = sqlite_place.create(epsilon=1 / 3, pooled_epsilon=2.9999999999)
    assert ledger.epsilon == 0.333333333
    assert ledger.pooled_epsilon == 2.999999999
    with pytest.raises(BudgetError, match=r"needs epsilon 0\.333333334, 0\.333333333 of"):
        reserve(ledger, "a third is more than the cap", public(1 / 3))


@pytest.mark.parametrize("caps", [{"epsilon": 1e-10}, {"epsilon": 1, "pooled_epsilon": 9e-10}])
def test_a_cap_below_a_nano_epsilon_is_refused(sqlite_place, caps, tmp_path):
    with pytest.raises(ParameterError, match="must be at least 1e-9"):
        sqlite_place.create(**caps)
    assert list(tmp_path.iterdir()) == []


def test_members_are_charged_apart_public_releases_together(place, public, joint, reserve):
    ledger = place.create(epsilon=4)
    reserve(ledger, "1", joint(1.5, "alice", "bob"))
    reserve(ledger, "2", joint(1, "alice"))
    reserve(ledger, "3", public(0.25))
    assert ledger.account("alice").left == 1.25
    assert ledger.account("bob").charged == 1.75
    assert ledger.account("carol").charged == ledger.account("carol").public == 0.25
    assert ledger.account().charged == ledger.account("alice").charged
    assert ledger.account().pooled_charged == 4.25
    assert ledger.account().pooled_left == float("inf")
    assert [account.member for account in ledger.accounts()] == ["alice", "bob"]
    shown = ledger.show()
    assert "'alice': 2.75 charged, 1.25 left" in shown
    assert "anybody else: 0.25 charged, 3.75 left" in shown
    assert "all members together: 4.25 charged" in shown
    assert "3 charges, head" in shown
    assert shown.endswith(ledger.verify())


# --- Campaigns ------------------------------------------------------------------------------


def test_a_row_is_charged_once_however_it_is_asked_for(place, joint, charge):
    ledger = place.create(epsilon=1)
    everybody = [f"member {i}" for i in range(500)]
    first = charge(ledger, "lists", joint(1, *everybody)).batches
    assert len(first) == 1
    for asked in (everybody[7:8], everybody[:-1], everybody[::-1]):
        assert charge(ledger, "lists", joint(1, *asked)).batches == first
    assert len(ledger.charges()) == 1
    more = charge(ledger, "lists", joint(1, *everybody, "one more")).batches
    assert more[0] == first[0]
    assert more[1].members == ("one more",)
    assert more[1].secret != first[0].secret
    assert [entry.n_rows for entry in ledger.charges()] == [500, 1]
    assert ledger.account().left == 0
    ledger.verify()


def test_shared_part_is_charged_once_over_all_calls(place, joint, charge):
    ledger = place.create(epsilon=4)
    price = {"shared_epsilon": 0.25}
    for names in (["a"], ["b", "c"], ["a", "c"], ["d"]):
        charge(ledger, "lists", joint(1, *names, **price))
    assert ledger.account().pooled_charged == 0.25 + 4 * 0.75
    assert {account.member: account.charged for account in ledger.accounts()} == dict.fromkeys(
        "abcd", 1
    )
    for names in (["a"], ["b", "c"]):
        charge(ledger, "flipped", joint(1, *names, collusion="shared"))
    assert ledger.account().pooled_charged == 3.25 + 1
    ledger.verify()


def test_a_public_campaign_pays_for_its_growth(place, charge):
    ledger = place.create(epsilon=4)

    def per_row(n):
        return Guarantee(epsilon=0.5 * n, model="public", n_members=n, theorem="test")

    def at_once(n):
        return Guarantee(epsilon=0.5, model="public", n_members=n, theorem="test")

    for names in (["a"], ["b", "c"], ["c"]):
        ledger.charge(Campaign(identity="each", guarantee=per_row), names)
    assert ledger.account("anybody").charged == 1.5
    for names in (["a"], ["b", "c"], ["c"]):
        ledger.charge(Campaign(identity="all", guarantee=at_once), names)
    assert ledger.account("a").charged == ledger.account().pooled_charged == 2
    assert ledger.accounts() == []
    assert [(entry.epsilon_nano, entry.n_rows) for entry in ledger.charges()] == [
        *((5 * 10**8, 1), (10**9, 2)),
        *((5 * 10**8, 1), (0, 2)),
    ]
    ledger.verify()


def test_row_price_depending_on_row_count_is_refused(place):
    ledger = place.create(epsilon=4)

    def cheaper(n):
        return Guarantee(epsilon=1 / n, model="joint", n_members=n, theorem="test")

    ledger.charge(Campaign(identity="q", guarantee=cheaper), ["a"])
    with pytest.raises(ParameterError, match="must not depend on how many rows"):
        ledger.charge(Campaign(identity="q", guarantee=cheaper), ["b"])


def test_price_has_new_members_rest_and_repeats_left(place, joint, charge):
    ledger = place.create(epsilon=4, pooled_epsilon=12)
    stored = charge(ledger, "lists", joint(1, "a", "b")).batches[0]
    stored.store(lambda path: path.write_text("rows"))
    charge(ledger, "lists", joint(1, "c"))
    asked = joint(1, "a", "b", "c", "d", "e")
    price = ledger.price(Campaign(identity="lists", guarantee=asked.guarantee), asked.members)
    assert (price.n_new, price.n_open, price.n_stored) == (2, 1, 2)
    assert (price.epsilon, price.left, price.repeats_left) == (1, 4, 3)
    assert price.whom in ("d", "e")
    assert (price.pooled_needs_nano, price.pooled_left_nano) == (2 * 10**9, 9 * 10**9)
    free = ledger.price(Campaign(identity="lists", guarantee=asked.guarantee), ["a", "c"])
    assert (free.epsilon, free.left, free.repeats_left, free.refusal) == (0, 3, math.inf, "")
    assert len(ledger.charges()) == 2


def test_used_up_budget_keeps_rows_and_charges_nothing_new(place, joint, charge):
    ledger = place.create(epsilon=1)
    charge(ledger, "lists", joint(1, "a"))
    charge(ledger, "others", joint(1, "b"))
    with pytest.raises(BudgetError, match="1 of 2 members has nothing left; their stored lists"):
        charge(ledger, "lists", joint(1, "a", "b"))
    assert charge(ledger, "lists", joint(1, "a")).batches[0].secret
    assert len(ledger.charges()) == 2


def test_a_batch_that_other_code_began_is_not_finished(place, joint, charge):
    ledger = place.create(epsilon=2)
    first = charge(ledger, "lists", joint(1, "a", "b"), code="old", note={"version": "0.9"})
    for asked in (joint(1, "a"), joint(1, "c")):
        with pytest.raises(LedgerError, match=r"never finished. To finish them without a charge"):
            charge(ledger, "lists", asked, code="new")
    first.shared.store(lambda path: path.write_text("shared"))
    charge(ledger, "lists", joint(1, "c"), code="new")
    with pytest.raises(LedgerError, match=r"edgeveil 0\.9"):
        charge(ledger, "lists", joint(1, "a", "d"), code="new")
    assert [entry.n_rows for entry in ledger.charges()] == [2, 1], "d was not charged"
    first.batches[0].store(lambda path: path.write_text("rows"))
    charge(ledger, "lists", joint(1, "a", "d"), code="new")


def test_a_charge_tells_what_a_report_needs(place, public, joint, reserve):
    ledger = place.create(epsilon=3)
    note = {"mechanism": "suggest", "purpose": "ünïcode", "operator": "ann"}
    reserve(ledger, "lists", joint(1, "a", "b"), label="friends", note=note, fingerprint="f")
    (charge,) = ledger.charges()
    assert (charge.note, charge.label, charge.generation) == (note, "friends", 1)
    assert (charge.n_rows, charge.fingerprint, charge.released) == (2, "f", False)
    assert charge.created.startswith("20")
    reserve(ledger, "more", joint(1, "b"), label="friends", fingerprint="f")
    assert len(ledger.charges("b")) == 2
    assert ledger.charges("a") == [charge]
    assert ledger.charges("c") == []
    reserve(ledger, "all", public(0.5), label="friends", fingerprint="f")
    assert [sum(c.epsilon_nano for c in ledger.charges(name)) for name in "abc"] == [
        ledger.account(name).charged_nano for name in "abc"
    ], "public releases count for everybody"


# --- Refusals -------------------------------------------------------------------------------


def test_a_refusal_says_what_was_asked_what_is_left_and_for_whom(place, public, joint, reserve):
    ledger = place.create(epsilon=4, pooled_epsilon=5)
    reserve(ledger, "1", joint(3.5, "alice"))
    for charge, words in (
        (
            joint(1, "alice", "bob"),
            "needs epsilon 1, 0.5 of 4 is left for member 'alice'. 1 of 2 members has too little "
            "left; their stored lists stay readable. Leave them out with --skip-exhausted "
            "(skip_exhausted=True)",
        ),
        (
            public(0.75),
            "needs epsilon 0.75, 0.5 of 4 is left for everybody "
            "(for the member with the least left)",
        ),
        (joint(1, "bob", "carol"), "needs epsilon 2, 1.5 of 5 is left for all members together"),
    ):
        with pytest.raises(BudgetError) as refusal:
            reserve(ledger, "2", charge)
        assert str(refusal.value) == f"the budget does not allow this: it {words}"
    assert len(ledger.charges()) == 1
    assert place.raw("SELECT count(*) FROM secrets") == [(1,)]
    assert place.raw("SELECT count(*) FROM charge_members") == [(1,)]


@pytest.mark.parametrize("member", [7, np.int64(7), "7"])
def test_account_of_an_integer_id_is_that_of_its_text(sqlite_place, joint, reserve, member):
    """It was 0 for numpy's integers, as of a member who was never charged."""
    ledger = sqlite_place.create(epsilon=4)
    reserve(ledger, "lists", joint(1, "7", "8"))
    assert ledger.account(member).charged == len(ledger.charges(member)) == 1


@pytest.mark.parametrize("member", [7.0, True, b"7", ["7"], "7\0", "\ud800"])
def test_account_of_what_is_no_id_is_refused(sqlite_place, member):
    ledger = sqlite_place.create(epsilon=4)
    for look_up in (ledger.account, ledger.charges):
        with pytest.raises(ParameterError, match="a member's name must be text"):
            look_up(member)


@pytest.mark.parametrize("cap", ["1", True, None, b"1"])
def test_cap_that_is_no_number_is_refused(cap, tmp_path):
    with pytest.raises(ParameterError, match="epsilon must be a positive number"):
        Ledger.create(tmp_path / "l.ledger", epsilon=cap)


def test_the_same_rows_keep_their_secret(place, public, reserve):
    ledger = place.create(epsilon=1)
    first = reserve(ledger, "1", public(1), note={"why": "ünïcode"})
    again = reserve(ledger, "1", public(1), note={"why": "something else"})
    assert first == again
    assert len(first.secret) == 32
    assert not first.stored
    assert [charge.note for charge in ledger.charges()] == [{"why": "ünïcode"}]
    assert first.secret.hex() not in repr(first)


def test_two_questions_have_different_secrets(place, public, charge):
    ledger = place.create(epsilon=1)
    charged = [charge(ledger, str(i), public(0.25)) for i in range(4)]
    assert len({batch.secret for c in charged for batch in (c.shared, *c.batches)}) == 8


def test_a_stored_batch_gives_its_artifact_and_charges_nothing(place, public, reserve):
    ledger = place.create(epsilon=1)
    batch = reserve(ledger, "1", public(1))
    stored = batch.store(lambda path: path.write_text("values"))
    assert stored.stored
    assert stored.secret == b""
    again = reserve(place.open(), "1", public(1))
    assert again == stored
    assert again.artifact == place.artifacts / again.key
    assert again.artifact.read_text() == "values"
    assert ledger.charges()[0].released


def test_to_store_a_batch_again_leaves_the_first_as_it_is(place, public, reserve):
    ledger = place.create(epsilon=1)
    batch = reserve(ledger, "1", public(1))
    batch.store(lambda path: path.write_text("first"))
    late = batch.store(lambda path: path.write_text("second"))
    assert late.artifact.read_text() == "first"
    assert late.store(lambda path: path.write_text("third")).artifact.read_text() == "first"
    assert len(list(place.artifacts.iterdir())) == 2
    ledger.verify()


def test_failed_or_empty_store_leaves_the_batch_open(place, public, charge):
    ledger = place.create(epsilon=1)
    (batch,) = charge(ledger, "1", public(1)).batches
    with pytest.raises(ZeroDivisionError):
        batch.store(lambda path: path.write_text(str(1 / 0)))
    with pytest.raises(LedgerError, match="wrote no file"):
        batch.store(lambda path: None)
    with pytest.raises(LedgerError, match="not stored yet"):
        batch.artifact  # noqa: B018
    (again,) = charge(ledger, "1", public(1)).batches
    assert (again.stored, again.secret) == (False, batch.secret)
    assert not [path for path in place.artifacts.iterdir() if path.is_file()]


def test_slower_of_two_writers_gets_the_stored_artifact(place, public, charge):
    ledger = place.create(epsilon=1)
    (slow,), (fast,) = (charge(ledger, "1", public(1)).batches for _ in range(2))

    def overtaken(path):  # the faster one clears all drafts away
        fast.store(lambda first: first.write_text("same"))
        path.write_text("same")

    assert slow.store(overtaken).artifact.read_text() == "same"
    ledger.verify()


def test_a_lost_artifact_is_an_error_not_a_second_draw(place, public, reserve):
    ledger = place.create(epsilon=1)
    stored = reserve(ledger, "1", public(1)).store(lambda path: path.write_text("x"))
    stored.artifact.unlink()
    with pytest.raises(LedgerError, match="is gone"):
        reserve(ledger, "1", public(1)).artifact  # noqa: B018
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
def test_no_budget_covers_a_release_without_protection(guarantee, sqlite_place):
    ledger = sqlite_place.create(epsilon=1)
    with pytest.raises(BudgetError, match="not private"):
        ledger.charge(Campaign(identity="q", guarantee=lambda n: guarantee), ["a"])
    assert ledger.charges() == []


def test_wrong_arguments_are_named_and_charge_nothing(sqlite_place, public, joint, reserve):
    ledger = sqlite_place.create(epsilon=1)
    loose = Guarantee(epsilon=1, model="public", theorem="test", delta=1e-6)
    for wrong in (
        lambda: reserve(ledger, "1", public(1), note={"a": 1}),
        lambda: reserve(ledger, "1", public(1), note={"a": "b" * 20_000}),
        lambda: reserve(ledger, "1", public(1), fingerprint="a\0b"),
        lambda: reserve(ledger, "1", joint(1, "\ud800")),
        lambda: reserve(ledger, "1", joint(1)),
        lambda: ledger.charge(Campaign(identity="q", guarantee=lambda n: loose), ["a"]),
        lambda: Ledger.create(sqlite_place.location + "2", epsilon=0),
        lambda: Ledger.create(sqlite_place.location + "2", epsilon=float("inf")),
        lambda: Ledger.create(sqlite_place.location + "2", epsilon=1, pooled_epsilon=-1),
    ):
        with pytest.raises(ParameterError):
            wrong()
    assert ledger.charges() == []


names = st.sampled_from(["alice", "bob", "carol"])
releases = st.tuples(
    st.integers(0, 3),  # which question: some come again
    st.sampled_from(["public", "additive", "shared"]),
    st.lists(names, min_size=1, max_size=4),
    st.integers(0, 8).map(lambda eighths: eighths / 8),
    st.integers(0, 4).map(lambda n: n == 0),  # whether a new generation is declared before
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    cap=st.integers(1, 4),
    pooled_cap=st.none() | st.integers(1, 6),
    sequence=st.lists(releases, max_size=12),
)
def test_any_sequence_is_accepted_and_refused_as_by_plain_sums(
    new_place, public, joint, charge, cap, pooled_cap, sequence
):
    """Against a model that adds up what every row has cost."""
    ledger = new_place().create(epsilon=cap, pooled_epsilon=pooled_cap)
    everybody = ("alice", "bob", "carol")
    rows: dict[tuple, set[str]] = {}
    book: list[tuple[str, float]] = []  # whose ("" for all, "pool"), epsilon
    now, used = 1, False

    def charged(who):
        return sum(e for name, e in book if name == who)

    for number, kind, members, epsilon, advance in sequence:
        if advance and book:
            now, used = now + used, False
            assert ledger.advance() == now
        question = f"{number} {kind} {epsilon}"
        there = rows.setdefault((question, now), set())
        new = set(members) - there
        if kind == "public":
            asked = joint(0, *members)._replace(guarantee=public(epsilon).guarantee)
            costs = [("", epsilon)] if not there else []
        else:
            asked = joint(epsilon, *members, collusion=kind)
            costs = [(name, epsilon) for name in new]
        pooled = epsilon * len(new) if kind == "additive" else epsilon * (not there)
        after = charged("") + sum(e for name, e in costs if not name)
        paying = everybody if kind == "public" else new
        worst = max((after + charged(n) + dict(costs).get(n, 0) for n in paying), default=0)
        too_much = pooled_cap is not None and charged("pool") + pooled > pooled_cap
        if new and (worst > cap or too_much):
            with pytest.raises(BudgetError):
                charge(ledger, question, asked)
            continue
        charge(ledger, question, asked)
        used = True
        if new:
            there |= new
            book += [*costs, ("pool", pooled)]
    for name in everybody:
        assert ledger.account(name).charged == charged("") + charged(name)
    assert ledger.account().pooled_charged == charged("pool")
    assert ledger.account().public == charged("")
    assert ledger.account().charged <= cap
    ledger.verify()
