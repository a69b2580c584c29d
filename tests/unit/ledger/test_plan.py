"""What is left, as a price: it never adds up to more, and can really be charged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeveil.ledger.accounts import Account
from edgeveil.ledger.prices import to_nano
from edgeveil.mechanisms import Suggest


def account(cap, charged=0, pooled_cap=None, pooled=0):
    return Account("ann", cap, charged, 0, pooled_cap, pooled)


@given(cap=st.integers(1, 10**12), used=st.floats(0, 1), count=st.integers(1, 400))
def test_shares_fit_into_what_is_left_and_no_more_would(cap, used, count):
    charged = int(cap * used)
    nano = round(account(cap, charged).highest_price(count) * 10**9)
    assert nano * count <= cap - charged < (nano + 1) * count


@given(st.integers(1, 1000), st.integers(10**6, 10**11), st.floats(0, 1), st.integers(1, 60))
def test_shares_keep_the_cap_for_all_members_together(members, pooled_cap, used, count):
    """In the whole nano-epsilons that the ledger charges, rounded up."""

    def pooled(epsilon):
        return Suggest(epsilon=epsilon).guarantee(members).pooled_epsilon if epsilon else 0.0

    charged = int(pooled_cap * used)
    account_ = account(10**10, pooled_cap=pooled_cap, pooled=charged)
    share = account_.highest_price(count, pooled=pooled)
    assert to_nano(pooled(share)) * count <= pooled_cap - charged
