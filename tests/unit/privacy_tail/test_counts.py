"""The binomial count: its table, and what is done where a word does not decide."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from edgeveil.privacy import _tail_counts
from edgeveil.privacy._tail_counts import count_law


def chance(scale, threshold):
    """P(Z >= threshold) to 150 digits: from a sum of the law of Z, not from its formula."""
    with localcontext() as context:
        context.prec = 150
        q = (Decimal(-1) / scale).exp()
        below = sum(q ** abs(z) for z in range(-200 * scale, threshold))
        return 1 - below * (1 - q) / (1 + q)


def distribution(n, p):
    """F(0), ..., F(n) to 150 digits."""
    with localcontext() as context:
        context.prec = 150
        total, result = Decimal(0), []
        for k in range(n):
            total += math.comb(n, k) * p**k * (1 - p) ** (n - k)
            result.append(Fraction(total))
    return [*result, Fraction(1)]


@pytest.mark.parametrize(
    ("n", "scale", "threshold"), [(1, 1, 3), (7, 1, 3), (40, 2, 7), (40, 5, 15), (60, 1, 30)]
)
def test_limits_are_those_of_the_binomial_law(n, scale, threshold):
    law = count_law(n, scale, threshold)
    exact = [math.floor(f * 2**64) for f in distribution(n, chance(scale, threshold))]
    for k, limit in enumerate(law.limits.tolist(), start=law.first):
        assert limit == exact[k]
    # A number that is left out has no word of its own.
    assert all(limit == 0 for limit in exact[: law.first])
    assert law.first + len(law.limits) in (n, exact.index(2**64 - 1) + 1 if n > 7 else n)


@pytest.mark.parametrize(
    ("n", "scale", "mean"),
    [(10**5, 2**30, 250), (10**8, 2**39, 250), (10**9, 7, 100), (10**6, 12345, 5000)],
)
def test_large_tables_agree_with_floating_point(n, scale, mean):
    threshold = math.ceil(scale * math.log(n / 2 / mean))
    law = count_law(n, scale, threshold)
    p = math.exp(-threshold / scale) / (1 + math.exp(-1 / scale))
    wanted = stats.binom.cdf(law.first + np.arange(len(law.limits)), n, p)
    np.testing.assert_allclose(law.limits / 2.0**64, wanted, atol=1e-9)
    assert (np.diff(law.limits.astype(object)) >= 0).all()
    assert law.limits[-1] == 2**64 - 1


class NoMoreBitsError(Exception):
    pass


def from_list(numbers):
    rest = list(numbers)

    def bits(count):
        if not rest:
            raise NoMoreBitsError
        return rest.pop(0)

    return bits


@pytest.mark.parametrize(("n", "scale", "threshold"), [(5, 1, 3), (30, 2, 6), (200, 1, 5)])
def test_all_short_words_are_decided_as_the_law_says(n, scale, threshold):
    """Words of three bits, up to three of them: every uniform with nine bits."""
    law, size = count_law(n, scale, threshold), 3
    exact = [Fraction(0), *distribution(n, chance(scale, threshold))]
    undecided, mass = 0, [0] * (n + 1)
    for words in product(range(2**size), repeat=3):
        prefix = (words[0] << size | words[1]) << size | words[2]
        try:
            k = law.exactly(words[0], from_list(words[1:]), size)
        except NoMoreBitsError:
            undecided += 1
            continue
        mass[k] += 1
        # The whole interval belongs to k.
        assert exact[k] <= Fraction(prefix, 2**9)
        assert Fraction(prefix + 1, 2**9) <= exact[k + 1]
    assert sum(mass) + undecided == 2**9
    # At most one undecided prefix for each jump of the distribution.
    assert 0 < undecided <= n
    for k in range(n + 1):
        assert abs(Fraction(mass[k], 2**9) - (exact[k + 1] - exact[k])) <= Fraction(2, 2**9)


@pytest.mark.parametrize(("n", "scale", "threshold"), [(5, 1, 3), (30, 2, 6), (200, 1, 5)])
def test_short_limits_and_the_exact_way_agree(n, scale, threshold):
    law, size = count_law(n, scale, threshold), 6
    first, limits = _tail_counts._limits(n, scale, threshold, size)
    for word in range(2**size):
        at = int(np.searchsorted(limits, word, side="right"))
        tie = at > 0 and limits[at - 1] == word
        try:
            assert law.exactly(word, from_list([]), size) == first + at
            assert not tie
        except NoMoreBitsError:
            assert tie


def test_a_word_on_a_limit_is_decided_by_further_ones():
    law = count_law(1000, 2, 9)
    exact = distribution(1000, chance(2, 9))
    for i in (0, 1, len(law.limits) // 2):
        k, limit = law.first + i, int(law.limits[i])
        rest = math.floor(exact[k] * 2**128) - (limit << 64)
        assert law.exactly(limit, from_list([rest - 1])) == k
        assert law.exactly(limit, from_list([rest + 1])) == k + 1
        assert law.exactly(limit, from_list([rest, 0])) == k  # the third word decides
        assert law.exactly(limit, from_list([rest, 2**64 - 1])) == k + 1


def test_counts_sharing_a_first_word_differ_by_the_second():
    """The last word of all belongs to all numbers in the upper tail, the first to the lower."""
    law = count_law(1000, 2, 9)
    last = [law.exactly(2**64 - 1, from_list([w])) for w in (5, 2**64 - 2**40, 2**64 - 2**9)]
    assert law.most - 1 <= last[0] < last[1] < last[2]
    many = count_law(10**6, 2, 15)
    least = [many.exactly(0, from_list([w])) for w in (2**20, 2**40, 2**63)]
    assert least[0] < least[1] < least[2] <= many.first + 1


def test_too_narrow_bounds_are_made_finer(monkeypatch):
    wanted = count_law(1000, 2, 9)
    monkeypatch.setattr(_tail_counts, "SPARE_BITS", -60)
    law = count_law.__wrapped__(1000, 2, 9)
    np.testing.assert_array_equal(law.limits, wanted.limits)
    assert law.exactly(12345, from_list([])) == wanted.exactly(12345, from_list([]))


def test_count_law_is_none_where_it_does_not_pay():
    assert count_law(10**6, 5, 9) is None  # T < 2 t
    assert count_law(10**6, 5, 0) is None
    assert count_law(10**6, 5, -7) is None
    assert count_law(10**8, 5, 16) is None  # a million exceedances
    assert count_law(0, 5, 20) is None
    assert count_law(10**8, 5, 2**53) is None  # no float holds all such numbers


def test_threshold_that_nothing_reaches_counts_zero():
    law = count_law(10**8, 5, 10**15)
    assert (law.first, law.limits.tolist()) == (0, [2**64 - 1])
