"""How many of n zeros reach a threshold after their noise: Binomial(n, p), sampled exactly.

p = P(Z >= T) = q**T / (1 + q) for q = exp(-1 / t), T >= 1. By inversion: with U uniform on [0, 1),
an infinite string of fair bits, the count is the least k with U < F(k), F the distribution
function. One word of U is drawn, and more only if that word does not decide: decimal arithmetic
with directed rounding bounds F as narrowly as needed. Nothing here is private
(docs/theory/lazy-noise.md).
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from edgeveil.privacy._key_stream import NoiseRows
from edgeveil.privacy._sampler import Bits, _context

WORD = 64
# Precision beyond a word: raising 1 - p to the power n loses at most as many digits as n has.
SPARE_BITS = 200
# Largest expected count: a table has about as many entries.
MOST_EXPECTED = 1 << 16


@dataclass(frozen=True, eq=False)
class CountLaw:
    """The distribution of the binomial count, as a table that a word is looked up in.

    Attributes
    ----------
    n, scale, threshold : int
        Coordinates, t and T in steps.
    first : int
        The count for words below ``limits[0]``.
    limits : array of uint64
        floor(2**64 F(k)) for k = first, first + 1, ...: a word below means at most k, a word
        above means more, and an equal word is undecided.
    most : int
        A count above this has probability at most 2**-64.
    words : int
        Enough for count, positions and excesses, almost always.
    """

    n: int
    scale: int
    threshold: int
    first: int
    limits: NDArray[np.uint64]
    most: int
    words: int

    def for_loops(self) -> tuple[int, NDArray[np.uint64], np.uint64, np.uint64]:
        """``first``, ``limits``, n, and the last word that gives a position."""
        return self.first, self.limits, np.uint64(self.n), np.uint64(self.last_word)

    @property
    def last_word(self) -> int:
        """Words up to this one are divided evenly among the positions; others are skipped."""
        return (1 << WORD) // self.n * self.n - 1

    def exactly(self, word: int, bits: Bits, size: int = WORD) -> int:
        """The count for the uniform whose first ``size`` bits are ``word``."""
        prefix, count = word, size
        while True:
            least = _least_above(self, prefix, count)
            if least is not None:
                return least
            prefix, count = prefix << size | bits(size), count + size


def _least_above(law: CountLaw, prefix: int, count: int) -> int | None:
    """The least k with U < F(k) for every U that begins like this; None if they differ."""
    # m / 2**c = m 5**c / 10**c: the constructor is exact, whatever the context.
    lower, upper = (Decimal(f"{m * 5**count}E-{count}") for m in (prefix, prefix + 1))
    bounds = _distribution(law.n, law.scale, law.threshold, count)
    for k, (least, most) in enumerate(bounds):
        if upper <= least:
            return k
        if lower < most:
            return None
    raise AssertionError("F(n) is 1")


@lru_cache(maxsize=64)
def count_law(n: int, scale: int, threshold: int) -> CountLaw | None:
    """The distribution; None where drawing all coordinates is no slower.

    That is for T < 2 t, where more than one zero in 15 reaches the threshold, and for an expected
    count above 65,536. Nor is there one for T >= 2**53, which a float does not hold exactly.
    """
    if n < 1 or not 2 * scale <= threshold < 2**53:
        return None
    if n * _chance(scale, threshold, WORD)[1] > MOST_EXPECTED:
        return None
    first, limits = _limits(n, scale, threshold, WORD)
    table = np.array(limits, dtype=np.uint64)
    table.flags.writeable = False
    most = first + len(limits)
    # One for the count, one for each position and two for each excess; some positions repeat.
    words = 1 + 3 * most + most // 8 + 16
    words += words % 2  # a block of the stream is two words
    return CountLaw(n, scale, threshold, first, table, most, words)


def _limits(n: int, scale: int, threshold: int, size: int) -> tuple[int, list[int]]:
    """The count below the first limit, and floor(2**size F(k)) until no word is above."""
    spare = size
    while True:
        first, limits = 0, list[int]()
        (down, up), whole = _both(spare), Decimal(1 << size)
        for k, (least, most) in enumerate(_distribution(n, scale, threshold, spare)):
            if k == n:
                return first, limits  # F(n) is 1: above every word
            limit = int(down.multiply(least, whole))
            # F(k) < 1 for k < n, so the limit is below 2**size.
            if limit != min(int(up.multiply(most, whole)), (1 << size) - 1):
                break  # try again with narrower bounds
            if limits == [0] and limit == 0:
                first = k
                continue
            limits.append(limit)
            if limit == (1 << size) - 1:
                return first, limits
        spare *= 2


def _distribution(
    n: int, scale: int, threshold: int, bits: int
) -> Iterator[tuple[Decimal, Decimal]]:
    """Bounds on F(0), F(1), ..., F(n) = 1, much narrower than 2**-bits."""
    down, up = _both(bits)
    one = Decimal(1)
    least_p, most_p = _chance(scale, threshold, bits)
    # P(0) falls with p, and P(k + 1) / P(k) = (n - k) / (k + 1) * p / (1 - p) rises with it.
    least = _power(down.subtract(one, most_p), n, down.multiply)
    most = _power(up.subtract(one, least_p), n, up.multiply)
    least_odds = down.divide(least_p, up.subtract(one, least_p))
    most_odds = up.divide(most_p, down.subtract(one, most_p))
    least_sum, most_sum = least, most
    for k in range(n):
        yield least_sum, min(most_sum, one)
        ways, to = Decimal(n - k), Decimal(k + 1)
        least = down.divide(down.multiply(down.multiply(least, least_odds), ways), to)
        most = up.divide(up.multiply(up.multiply(most, most_odds), ways), to)
        least_sum, most_sum = down.add(least_sum, least), up.add(most_sum, most)
    yield one, one


def _chance(scale: int, threshold: int, bits: int) -> tuple[Decimal, Decimal]:
    """Bounds on p."""
    down, up = _both(bits)
    one = Decimal(1)
    (least, most), (least_q, most_q) = (_exp_minus(x, scale, down, up) for x in (threshold, 1))
    return down.divide(least, up.add(one, most_q)), up.divide(most, down.add(one, least_q))


def _exp_minus(
    numerator: int, denominator: int, down: decimal.Context, up: decimal.Context
) -> tuple[Decimal, Decimal]:
    """Bounds on exp(-numerator / denominator). ``Decimal.exp`` is correctly rounded."""
    x, t = Decimal(-numerator), Decimal(denominator)
    least = down.next_minus(down.exp(down.divide(x, t)))
    return max(least, Decimal(0)), up.next_plus(up.exp(up.divide(x, t)))


def _both(bits: int) -> tuple[decimal.Context, decimal.Context]:
    bits += SPARE_BITS
    return _context(bits, decimal.ROUND_FLOOR), _context(bits, decimal.ROUND_CEILING)


def _power(
    base: Decimal, exponent: int, multiply: Callable[[Decimal, Decimal], Decimal]
) -> Decimal:
    """A bound on the power, on the side to which ``multiply`` rounds: all numbers are >= 0."""
    result = Decimal(1)
    for bit in bin(exponent)[2:]:
        result = multiply(result, result)
        if bit == "1":
            result = multiply(result, base)
    return result


def exact_positions(
    law: CountLaw, noises: NoiseRows, row: int, begin: int
) -> tuple[list[int], int]:
    """Positions, increasing, of the zeros of a row that reach the threshold: the definition.

    Their words are those of the row's stream from word `begin` on. Also gives how many are used.
    """
    first = noises.word(row, begin)
    at = int(np.searchsorted(law.limits, np.uint64(first), side="right"))
    if at and int(law.limits[at - 1]) == first:
        count = law.exactly(first, noises.row(row).further_bits(begin))
    else:
        count = law.first + at
    positions, used = set[int](), 1
    while len(positions) < count:
        word = noises.word(row, begin + used)
        if word <= law.last_word:
            positions.add(word % law.n)
        used += 1
    return sorted(positions), used
