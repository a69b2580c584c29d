"""Tails drawn lazily: distributed as the dense definition, and a function of the key alone."""

from __future__ import annotations

import dataclasses
import math
import time
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

from edgeveil.errors import ParameterError
from edgeveil.privacy import _sampler, _tail, _tail_counts
from edgeveil.privacy._tail import draw_tail, threshold_in_steps
from edgeveil.privacy.noise import Calibration, NoiseSource, calibrate
from tests.seam import noisy_row

# Every seed is fixed, so a p-value below this is a defect and not bad luck.
P_VALUE = 1e-3


def lattice(scale, n):
    """Steps of 1 and noise of this scale; epsilon does not matter here."""
    return Calibration(
        step_log2=0, scale=scale, epsilon=2.0 * n, coordinates=n, sensitivity=Fraction(1)
    )


def streams(count, seed=1):
    return NoiseSource.insecure(seed).rows(range(count))


def words_of(noises, i, count):
    return noises.row(i).take(count)[1]


def equal_rows(positions, values, rows):
    """The same row many times."""
    starts = np.arange(rows + 1, dtype=np.int64) * len(positions)
    return (
        np.tile(np.array(positions, np.int32), rows),
        np.tile(np.array(values, float), rows),
        starts,
    )


def some_rows(lengths, n, seed=0):
    rng = np.random.default_rng(seed)
    positions = [np.sort(rng.choice(min(n, 10**6), size, replace=False)) for size in lengths]
    starts = np.cumsum([0, *lengths], dtype=np.int64)
    flat = np.concatenate(positions).astype(np.int32)
    return flat, rng.geometric(0.3, len(flat)).astype(float), starts


def same(first, second):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


# --- The distribution ------------------------------------------------------------------------

UNIT = 1000  # steps: at small scales many dense draws are "-0" and go the slow way

CONFIGURATIONS = [
    # n, scale, threshold, positions, values, all but n and positions in units
    (60, 1, 3, [], []),
    (60, 2, 6, [0, 7, 59], [6.0, 3.0, -4.0]),
    (400, 2, 7, [5, 6, 300], [7.0, 8.0, 1.0]),
    (400, 3, 9, list(range(0, 400, 2)), [2.0] * 200),
    (1000, 5, 20, [999], [20.0]),
    (3000, 2, 11, list(range(0, 3000, 2)), [0.5, 1.0, 0.25] * 500),  # all of them small
    (3000, 1, 6, list(range(0, 3000, 2)), [1.0, 0.5, 3.0] * 500),  # two in three
]


def p_values(first, second, n, threshold):
    """Two samples of tails: how many a row, where, by how much, and whether these go together."""
    values = []
    for count in (
        lambda tail: np.diff(tail[2]),
        lambda tail: tail[0] * 30 // n,
        lambda tail: np.minimum((tail[1] / UNIT - threshold) * 2, 20),
        lambda tail: (tail[0] % 3) * 4 + np.minimum(tail[1] / UNIT - threshold, 3),
    ):
        samples = [count(tail).astype(int) for tail in (first, second)]
        most = max(s.max() for s in samples) + 1
        table = np.array([np.bincount(s, minlength=most) for s in samples])
        order = np.argsort(table.sum(axis=0))
        rare = np.cumsum(table.sum(axis=0)[order]) < 40  # thin cells together
        cells = np.column_stack([table[:, order[rare]].sum(axis=1), table[:, order[~rare]]])
        cells = cells[:, cells.sum(axis=0) > 0]
        values.append(float(stats.chi2_contingency(cells).pvalue))
    return values


def both_ways(n, scale, threshold, positions, values, rows=3000):
    calibration = lattice(scale * UNIT, n)
    given = equal_rows(positions, np.array(values) * UNIT, rows)
    return [
        draw_tail(given, n, calibration, float(threshold * UNIT), streams(rows, seed), densely=way)
        for seed, way in ((1, True), (2, False))
    ]


@pytest.mark.parametrize(("n", "scale", "threshold", "positions", "values"), CONFIGURATIONS)
def test_lazy_and_dense_have_one_distribution(n, scale, threshold, positions, values):
    dense, lazy = both_ways(n, scale, threshold, positions, values)
    assert min(p_values(dense, lazy, n, threshold)) > P_VALUE


def test_the_comparison_notices_a_wrong_probability(monkeypatch):
    """Control: an error of 12 % in p, and nothing else."""
    original = _tail_counts._chance

    def a_little_more(*given):
        return tuple(p * 28 / 25 for p in original(*given))

    monkeypatch.setattr(_tail_counts, "_chance", a_little_more)
    law = _tail_counts.count_law.__wrapped__(400, 2 * UNIT, 7 * UNIT)
    monkeypatch.setattr(_tail, "count_law", lambda *_: law)
    dense, lazy = both_ways(400, 2, 7, [], [])
    assert min(p_values(dense, lazy, 400, 7)) < 1e-6


def test_the_comparison_notices_a_wrong_excess(monkeypatch):
    """Control: the excess has the scale 2.25 instead of 2."""
    original = _tail._exceedances

    def wider(law, calibration, *rest):
        return original(law, lattice(2250, 400), *rest)

    monkeypatch.setattr(_tail, "_exceedances", wider)
    dense, lazy = both_ways(400, 2, 7, [], [])
    assert min(p_values(dense, lazy, 400, 7)) < 1e-6


def test_the_comparison_notices_zeros_that_stay_on_values(monkeypatch):
    """Control: a zero that exceeds the threshold at a position with a value is kept beside it."""
    original = _tail.merge_rows

    def keep_all(positions, *rest):
        original(positions - 2000, *rest)  # no position meets a value

    monkeypatch.setattr(_tail, "merge_rows", keep_all)
    dense, lazy = both_ways(400, 3, 9, list(range(0, 400, 2)), [2.0] * 200, rows=1000)
    lazy = (lazy[0] % 2000, *lazy[1:])
    assert min(p_values(dense, lazy, 400, 9)) < 1e-6


def law_p_value(tail, n, scale, threshold):
    """Counts of exceedances and their excesses against the laws they should have."""
    _, values, starts = tail
    q = math.exp(-1 / scale)
    p, counts = q**threshold / (1 + q), np.diff(starts)
    result = []
    for sample, chances in (
        (counts, stats.binom.pmf(np.arange(40), n, p)),
        ((values - threshold).astype(int), (1 - q) * q ** np.arange(40)),
    ):
        seen = np.bincount(np.clip(sample, 0, 40), minlength=41)
        expected = np.append(chances, 1 - chances.sum()) * len(sample)
        thin = expected < 10
        cells = (
            np.append(seen[~thin], seen[thin].sum()),
            np.append(expected[~thin], expected[thin].sum()),
        )
        result.append(float(stats.chisquare(*cells).pvalue))
    return min(result)


@pytest.mark.parametrize(("n", "scale", "threshold"), [(400, 1, 4), (400, 2, 7), (3000, 3, 19)])
def test_exceedances_follow_their_laws_to_a_single_step(n, scale, threshold, monkeypatch):
    """With a control: the laws of a threshold one step higher do not fit."""
    given, rows = equal_rows([], [], 3000), 3000
    drawn = draw_tail(given, n, lattice(scale, n), float(threshold), streams(rows), densely=False)
    assert law_p_value(drawn, n, scale, threshold) > P_VALUE
    law = _tail_counts.count_law(n, scale, threshold + 1)
    monkeypatch.setattr(_tail, "count_law", lambda *_: law)
    shifted = draw_tail(given, n, lattice(scale, n), float(threshold), streams(rows), densely=False)
    assert law_p_value(shifted, n, scale, threshold) < 1e-6


@pytest.mark.parametrize("n", [10**5, 10**8])
def test_exceedances_of_a_long_row_follow_their_laws(n):
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=0.5)
    at_least, rows = math.log(n / 400) * calibration.noise_scale, 1000
    given = equal_rows([], [], rows)
    positions, values, starts = draw_tail(given, n, calibration, at_least, streams(rows))
    t = calibration.scale
    p = math.exp(-threshold_in_steps(at_least, calibration) / t) / (1 + math.exp(-1 / t))
    counts = np.diff(starts)
    ranks = stats.binom.cdf(counts, n, p) - stats.binom.pmf(counts, n, p) * np.random.default_rng(
        0
    ).random(rows)
    assert stats.kstest(ranks, "uniform").pvalue > P_VALUE
    assert stats.kstest(positions / n, "uniform").pvalue > P_VALUE
    excess = (values - at_least) / calibration.noise_scale
    assert stats.kstest(excess, "expon").pvalue > P_VALUE
    assert (excess >= 0).all()
    # Neighbours in the list are independent.
    assert abs(np.corrcoef(excess[1:], excess[:-1])[0, 1]) < 4 / math.sqrt(len(excess))


def test_places_are_uniform_where_words_cannot_be_divided_evenly():
    """Words beyond the last multiple of n must be passed over: the positions are control enough."""
    given, calibration = equal_rows([], [], 400), lattice(1, HUGE)
    positions, _, _ = draw_tail(given, HUGE, calibration, 40.0, streams(400), densely=False)
    assert len(positions) > 5000
    assert stats.kstest(positions / HUGE, "uniform").pvalue > P_VALUE
    words = np.concatenate([words_of(streams(400), i, 20) for i in range(400)])
    assert stats.kstest((words % np.uint64(HUGE)) / HUGE, "uniform").pvalue < 1e-6


def test_values_are_kept_exactly_from_the_threshold_on():
    """Noise of scale 1 on a value at the threshold: P(Z >= 0) = 1 / (1 + q)."""
    n, rows = 5000, 4000
    given = equal_rows([17], [12.0], rows)
    positions, values, _ = draw_tail(given, n, lattice(1, n), 12.0, streams(rows), densely=False)
    mine = values[positions == 17]
    assert mine.min() == 12.0
    q = math.exp(-1)
    assert stats.binomtest(len(mine), rows, 1 / (1 + q)).pvalue > P_VALUE
    assert stats.binomtest(int((mine == 12.0).sum()), len(mine), 1 - q).pvalue > P_VALUE


def test_a_threshold_between_two_steps_is_the_upper_one():
    n, given = 5000, some_rows([40, 0, 3], 5000)
    for way in (True, False):
        upper, between = (
            draw_tail(given, n, lattice(2 * UNIT, n), x, streams(3), densely=way)
            for x in (12_000.0, 11_999.25)
        )
        same(upper, between)


# --- A function of the key -------------------------------------------------------------------


def test_dense_rows_are_filtered_rows_of_add_laplace():
    n, given = 3000, some_rows([50, 0, 700], 3000)
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=1)
    positions, values, starts = draw_tail(given, n, calibration, 3.5, streams(3), densely=True)
    for i in range(3):
        full = np.zeros(n)
        part = slice(given[2][i], given[2][i + 1])
        full[given[0][part]] = given[1][part]
        noisy = noisy_row(full, calibration, streams(3), i)
        kept = np.flatnonzero(noisy >= 3.5)
        np.testing.assert_array_equal(positions[starts[i] : starts[i + 1]], kept)
        np.testing.assert_array_equal(values[starts[i] : starts[i + 1]], noisy[kept])


def test_given_values_get_the_noise_of_add_laplace():
    """For any number of values."""
    n, lengths = 10**6, [3, 40_000, 0, 2000]  # more words than one call of the cipher gives
    given = some_rows(lengths, n)
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=1)
    positions, values, starts = draw_tail(given, n, calibration, 8.0, streams(4), densely=False)
    seen = 0
    for i in range(4):
        part = slice(given[2][i], given[2][i + 1])
        noisy = noisy_row(given[1][part], calibration, streams(4), i)
        mine = slice(starts[i], starts[i + 1])
        drawn = dict(zip(positions[mine], values[mine], strict=True))
        assert len(drawn) == starts[i + 1] - starts[i]
        for position, value in zip(given[0][part].tolist(), noisy.tolist(), strict=True):
            assert drawn.get(position) == (value if value >= 8.0 else None)
            seen += value >= 8.0
        assert (np.diff(positions[mine]) > 0).all()
    assert seen > 100


HUGE = 3 * 2**61 + 1  # one word in four is beyond a multiple of it
LAWS = [(60, 1, 3), (10**4, 2, 15), (10**5, (2**24 + 1) << 3, (2**24 + 1) << 6), (HUGE, 1, 40)]


@pytest.mark.parametrize(("n", "scale", "threshold"), LAWS)
def test_compiled_loops_equal_the_definition(n, scale, threshold):
    calibration, law = lattice(scale, n), _tail_counts.count_law(n, scale, threshold)
    T, a = _tail._split(scale)
    positions, values, starts = draw_tail(
        equal_rows([], [], 5), n, calibration, float(threshold), streams(5), densely=False
    )
    for i in range(5):
        stream = streams(5).row(i)
        words = words_of(streams(5), i, 8 * law.words).tolist()
        exact, used = _tail_counts.exact_positions(law, streams(5), i, 0)
        drawn = [
            _sampler.exact_draw(words[j] & ~1, words[j + 1], T, a, stream.further_bits(j))
            for j in range(used, used + 2 * len(exact), 2)
        ]
        wanted = [float(threshold + (high << a) + low) for high, low, _ in drawn]
        assert positions[starts[i] : starts[i + 1]].tolist() == exact
        assert values[starts[i] : starts[i + 1]].tolist() == wanted


@pytest.mark.parametrize(("n", "scale", "threshold"), LAWS)
def test_rare_paths_give_the_same_bits(n, scale, threshold, monkeypatch):
    """Too few words, no room for exceedances, an undecided count, undecided draws."""
    calibration, (positions, values, starts) = lattice(scale, n), some_rows([3, 0, 9, 20], n)
    given = positions, values * scale, starts  # small ones and others

    def drawn():
        return draw_tail(given, n, calibration, float(threshold), streams(4), densely=False)

    wanted, law = drawn(), _tail_counts.count_law(n, scale, threshold)
    for change in ({"words": 2}, {"words": law.words // 6 * 2}, {"most": 0}):
        other = dataclasses.replace(law, **change)
        monkeypatch.setattr(_tail, "count_law", lambda *_, other=other: other)
        same(drawn(), wanted)
    monkeypatch.undo()
    monkeypatch.setattr(_sampler, "add_noise", partial(_sampler.add_noise, margin=0.5))
    same(drawn(), wanted)


def test_a_word_on_a_limit_goes_the_exact_way_in_the_loops_too(monkeypatch):
    law, given = _tail_counts.count_law(10**4, 2, 15), equal_rows([], [], 3)
    tie = int(words_of(streams(3), 1, 1)[0])
    limits = np.sort(np.append(law.limits, np.uint64(tie)))
    tied = dataclasses.replace(law, limits=limits, first=law.first - 7)
    monkeypatch.setattr(_tail, "count_law", lambda *_: tied)
    _, _, starts = draw_tail(given, 10**4, lattice(2, 10**4), 15.0, streams(3), densely=False)
    # Not from the table, whose numbers are wrong here.
    assert np.diff(starts)[1] == law.exactly(tie, streams(3).row(1).further_bits(0))


def test_any_grouping_gives_the_same_rows(monkeypatch):
    n, lengths = 20_000, [5, 19_990, 0, 2000, 300, 1, 12_000, 40]  # lazy and dense ones
    positions, values, starts = given = some_rows(lengths, n)
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=1)
    wanted = draw_tail(given, n, calibration, 6.0, streams(8))
    monkeypatch.setattr(_tail, "BATCH_WORDS", 3000)
    same(draw_tail(given, n, calibration, 6.0, streams(8)), wanted)
    for i in range(8):
        part = slice(starts[i], starts[i + 1])
        alone = positions[part], values[part], np.array([0, lengths[i]])
        drawn = draw_tail(alone, n, calibration, 6.0, streams(8)[i : i + 1])
        mine = slice(wanted[2][i], wanted[2][i + 1])
        same(drawn[:2], (wanted[0][mine], wanted[1][mine]))


def test_another_key_gives_other_exceedances():
    n, calibration = 10**5, lattice(3, 10**5)
    first, second = (
        draw_tail(equal_rows([], [], 1), n, calibration, 20.0, streams(1, seed)) for seed in (1, 2)
    )
    assert first[0].tolist() != second[0].tolist()


# --- Ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_least", [0.0, -3.0, -1e9, 3.0])
def test_a_threshold_that_much_reaches_is_drawn_densely(at_least):
    n, given = 5000, some_rows([30, 0], 5000)
    drawn, dense = (
        draw_tail(given, n, lattice(2 * UNIT, n), at_least * UNIT, streams(2), densely=way)
        for way in (False, True)
    )
    same(drawn, dense)
    if at_least < -1e6:
        np.testing.assert_array_equal(np.diff(drawn[2]), [n, n])


def test_no_rows_and_no_coordinates():
    calibration = calibrate(coordinates=10, sensitivity=1, epsilon=1)
    none = np.empty(0, dtype=np.int32), np.empty(0), np.zeros(1, dtype=np.int64)
    assert [x.tolist() for x in draw_tail(none, 10, calibration, 5.0, streams(0))] == [[], [], [0]]
    empty = (*none[:2], np.zeros(3, dtype=np.int64))
    drawn = draw_tail(empty, 0, calibration, 5.0, streams(2))
    assert [x.tolist() for x in drawn] == [[], [], [0, 0, 0]]


def test_a_row_of_a_hundred_million_is_fast():
    n = 10**8
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=1)
    given = some_rows([2000], 10**6)
    at_least = math.log(n / 500) * calibration.noise_scale
    draw_tail(given, n, calibration, at_least, streams(1))
    start = time.process_time()
    positions, values, _ = draw_tail(given, n, calibration, at_least, streams(1, 2))
    assert time.process_time() - start < 0.1  # all of its noise takes a second
    assert 150 < len(positions) < 350
    assert values.min() >= at_least


def test_threshold_beyond_float_steps_is_drawn_densely():
    calibration = calibrate(coordinates=10**9, sensitivity=1, epsilon=1e-9)
    steps = threshold_in_steps(15 * calibration.noise_scale, calibration)
    assert steps > 2**53
    assert _tail_counts.count_law(10**9, calibration.scale, steps) is None


def test_what_is_not_finite_counts_as_zero():
    n = 10**4
    drawn = [
        draw_tail(equal_rows([3, 4], v, 1), n, lattice(1, n), 4.0, streams(1), densely=False)
        for v in ([np.nan, -np.inf], [0.0, 0.0])
    ]
    same(*drawn)


@pytest.mark.parametrize(
    ("positions", "starts", "at_least", "width", "message"),
    [
        ([3, 2], [0, 2], 1.0, 9, "must increase"),
        ([2, 2], [0, 2], 1.0, 9, "must increase"),
        ([-1, 2], [0, 2], 1.0, 9, "must increase"),
        ([2, 9], [0, 2], 1.0, 9, "must increase"),
        ([1, 2], [0, 1], 1.0, 9, "starts must rise"),
        ([1, 2], [1, 2], 1.0, 9, "starts must rise"),
        ([1, 2], [0, 2, 1, 2], 1.0, 9, "starts must rise"),
        ([1], [0, 2], 1.0, 9, "a value for each position"),
        ([1, 2], [0, 2], math.nan, 9, "finite threshold"),
        ([1, 2], [0, 2], math.inf, 9, "finite threshold"),
        ([1, 2], [0, 2], 1.0, 10, "calibrated"),
    ],
)
def test_wrong_arguments_are_refused(positions, starts, at_least, width, message):
    rows = np.array(positions), np.ones(2), np.array(starts)
    with pytest.raises(ParameterError, match=message):
        draw_tail(rows, width, lattice(1, 9), at_least, streams(len(starts) - 1))


def test_every_row_needs_a_stream():
    rows = some_rows([1, 1], 9)
    for noises in (streams(1), streams(3), [NoiseSource.insecure(1)] * 2):
        with pytest.raises(ParameterError, match="as many streams"):
            draw_tail(rows, 9, lattice(1, 9), 3.0, noises)


def test_array_layout_does_not_matter():
    n, (positions, values, starts) = 5000, some_rows([30, 7], 5000)
    wanted = draw_tail((positions, values, starts), n, lattice(2, n), 20.0, streams(2))
    wide = positions.astype(np.int64).repeat(2)[::2], values.repeat(3)[::3], starts.astype(np.int32)
    wide[1].flags.writeable = False
    same(draw_tail(wide, n, lattice(2, n), 20.0, streams(2)), wanted)
