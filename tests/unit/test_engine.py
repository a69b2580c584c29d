"""The engine: charged once per key, ids and not indices, plain data in the records."""

from __future__ import annotations

import shutil
import sqlite3
from functools import partial

import numpy as np
import pytest

from edgeveil.errors import BudgetError, EdgeveilError, LedgerError, ParameterError, PromiseError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.read import read_graph
from edgeveil.jobs import Local, drawing, keys, prepare, price, release, release_to
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import (
    DegreePrior,
    DPInstantEmbedding,
    DPPushFlow,
    DPPushFlowCap,
    EdgeFlipping,
    NonPrivate,
    OwnNeighbours,
    Suggest,
    TwoHop,
)
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.privacy.noise import NoiseSource
from edgeveil.results.release import Release
from edgeveil.results.suggestions import Suggestions

GRAPH = graph_of_pairs(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)])
CAP = DPPushFlowCap(epsilon=0.5)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", epsilon=2)


# --- One key, one charge --------------------------------------------------------------------


def test_the_same_call_again_gives_the_same_release_for_nothing(ledger):
    first = release(GRAPH, CAP, [0, 3], ledger=ledger)
    again = release(GRAPH, CAP, [0, 3], ledger=Ledger.open(ledger.location))
    assert again.values.tobytes() == first.values.tobytes()
    assert again.sources == first.sources
    assert again.columns == first.columns
    assert again.guarantee == first.guarantee
    assert again.provenance == first.provenance
    assert len(ledger.charges()) == 1
    assert ledger.account("0").charged_nano == 500_000_000


def test_equal_graphs_are_the_same_graph(ledger):
    twin = graph_of_pairs(6, [(4, 1), (5, 0), (4, 5), (3, 4), (2, 3), (1, 2), (0, 1), (1, 0)])
    first = release(GRAPH, CAP, [0], ledger=ledger)
    np.testing.assert_array_equal(release(twin, CAP, [0], ledger=ledger).values, first.values)
    assert len(ledger.charges()) == 1


DIFFERENT = {
    "label": {"label": "another graph"},
    "epsilon": {"mechanism": DPPushFlowCap(epsilon=0.25)},
    "sigma": {"mechanism": DPPushFlowCap(epsilon=0.5, sigma=2e-6)},
    "rounds": {"mechanism": DPPushFlowCap(epsilon=0.5, rounds=99)},
    "mechanism": {"mechanism": EdgeFlipping(epsilon=0.5)},
}


def test_a_changed_graph_does_not_show_by_itself(ledger):
    """New rows just when an edge has changed would tell that one has."""
    changed = GRAPH.with_edge_flipped(2, 5)
    first = release(GRAPH, CAP, [0], ledger=ledger)
    for mechanism in (CAP, DPPushFlowCap(epsilon=0.25)):
        with pytest.raises(LedgerError, match="public schedule"):
            release(changed, mechanism, [0], ledger=ledger)
    assert len(ledger.charges()) == 1
    assert ledger.advance() == 2
    second = release(changed, CAP, [0], ledger=ledger)
    assert ledger.advance() == 3
    third = release(changed, CAP, [0], ledger=ledger)
    assert len(ledger.charges()) == 3
    for earlier, later in ((first, second), (second, third)):
        assert not (earlier.values == later.values).any()


# --- Campaigns ------------------------------------------------------------------------------

ROWS = [
    CAP,
    EdgeFlipping(epsilon=0.5),
    TwoHop(epsilon=0.5),
    DPInstantEmbedding(epsilon=0.5, dimension=4, rounds=9),
    Suggest(epsilon=0.5),
    DPPushFlowCap(epsilon=0.25, model="public"),
    EdgeFlipping(epsilon=0.5, model="public"),
]


def row(released, source):
    if isinstance(released, Suggestions):
        return tuple(released.for_member(source))
    at = released.sources.index(source)
    half = getattr(released, "uncertainty", None)
    return released.values[at].tobytes(), None if half is None else half[at].tobytes()


@pytest.mark.parametrize("mechanism", ROWS, ids=lambda m: f"{m.name} {m.guarantee(1).model}")
def test_a_row_is_the_same_alone_in_any_batch_and_in_a_folder(
    mechanism, ledger, tmp_path, monkeypatch
):
    monkeypatch.setattr(drawing, "_BATCH_ROWS", 2)
    calls = ([3], [0, 1, 2, 3], [5, 3, 0], [1])
    results = [release(GRAPH, mechanism, sources, ledger=ledger) for sources in calls]
    folder = release_to(tmp_path / "out", GRAPH, mechanism, range(6), ledger=ledger)
    results += [folder.read(), release(GRAPH, mechanism, range(6), ledger=ledger)]
    for source in range(6):
        assert len({row(result, source) for result in results if source in result.sources}) == 1
    whole = mechanism.guarantee(6)
    charges = ledger.charges()
    assert sum(charge.n_rows for charge in charges) == 6
    assert max(charge.n_rows for charge in charges) == 2
    assert sum(charge.pooled_nano for charge in charges) == round(whole.pooled_epsilon * 10**9)
    assert ledger.account("3").charged == whole.epsilon
    assert results[-1].guarantee == whole
    ledger.verify()


def test_cache_of_a_ledger_is_not_used_for_its_copy(ledger, tmp_path):
    """The copy has drawn nothing yet: what it shares is its own draw, stored, its secret gone."""
    place = tmp_path / "copy"
    shutil.copy(ledger.location, place)
    release(GRAPH, EdgeFlipping(epsilon=0.5), [0], ledger=ledger)
    copy = Ledger.open(place)
    release(GRAPH, EdgeFlipping(epsilon=0.5), [0], ledger=copy)
    assert len(list(copy.folder.iterdir())) == 2  # what all share, and a row
    with sqlite3.connect(place) as database:
        assert database.execute("SELECT count(*) FROM secrets").fetchone() == (0,)
    database.close()


def test_shared_part_is_drawn_once_for_all_calls(ledger, monkeypatch):
    drawn = []
    original = EdgeFlipping.fit_shared

    def fit_shared(self, noised, nodes):
        drawn.append(noised[0].values.tobytes())
        return original(self, noised, nodes)

    monkeypatch.setattr(EdgeFlipping, "fit_shared", fit_shared)
    for sources in ([0], [1, 2], [0, 3]):
        drawing._recent.clear()  # as in another process
        release(GRAPH, EdgeFlipping(epsilon=0.5), sources, ledger=ledger)
    assert len(drawn) == 3
    assert len(set(drawn)) == 1
    release(GRAPH, EdgeFlipping(epsilon=0.5), [0, 1, 2, 3], ledger=ledger)
    assert len(drawn) == 3, "what is stored is not made again"


def test_no_secret_is_left_when_the_rows_are_stored(ledger):
    release(GRAPH, TwoHop(epsilon=0.5), [0, 1], ledger=ledger)
    release(GRAPH, TwoHop(epsilon=0.5), [2], ledger=ledger)
    with sqlite3.connect(ledger.location) as connection:
        assert connection.execute("SELECT * FROM secrets").fetchall() == []
    connection.close()


def test_upgrade_keeps_charges_but_refuses_open_batches(ledger, monkeypatch):
    first = release(GRAPH, CAP, [0], ledger=ledger)
    with monkeypatch.context() as patch:
        patch.setattr(drawing, "write_rows", lambda path, rows: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            release(GRAPH, CAP, [1], ledger=ledger)
    monkeypatch.setattr(keys, "_our_code", lambda: "another version")
    again = release(GRAPH, CAP, [0, 2], ledger=ledger)
    assert row(again, 0) == row(first, 0)
    assert [charge.n_rows for charge in ledger.charges()] == [1, 1, 1]
    with pytest.raises(LedgerError, match="install that version"):
        release(GRAPH, CAP, [0, 1], ledger=ledger)
    monkeypatch.undo()
    assert row(release(GRAPH, CAP, [0, 1], ledger=ledger), 0) == row(first, 0)
    assert len(ledger.charges()) == 3


def test_the_whole_price_is_checked_before_the_first_batch(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "_BATCH_ROWS", 2)
    for epsilon in (0.5, 0.6, 0.7):
        release(GRAPH, DPPushFlowCap(epsilon=epsilon), [5], ledger=ledger)
    for call in (release, partial(release_to, tmp_path / "out")):
        with pytest.raises(BudgetError, match="left for member '5'"):
            call(GRAPH, DPPushFlowCap(epsilon=0.4), range(6), ledger=ledger)
    assert len(ledger.charges()) == 3
    assert not (tmp_path / "out").exists()


def test_used_up_budget_keeps_the_last_row_readable(ledger):
    full = DPPushFlowCap(epsilon=2)
    first = release(GRAPH, full, [0], ledger=ledger)
    assert first.provenance.created == ledger.charges()[0].created
    with pytest.raises(BudgetError):
        release(GRAPH, CAP, [0], ledger=ledger)
    assert release(GRAPH, full, [0], ledger=ledger).provenance == first.provenance
    with pytest.raises(BudgetError, match="1 of 2 members has too little left"):
        release(GRAPH, DPPushFlowCap(epsilon=2), [0, 1], ledger=_used_up(ledger, 1))


def test_the_exhausted_are_left_out_and_the_others_are_served(ledger, tmp_path):
    full, prior = DPPushFlowCap(epsilon=2), DegreePrior(epsilon=2)
    release(GRAPH, full, [0, 3], ledger=ledger)
    with pytest.raises(BudgetError, match="2 of 6 members have nothing left"):
        release(GRAPH, prior, range(6), ledger=ledger)
    released = release(GRAPH, prior, range(6), ledger=ledger, skip_exhausted=True)
    assert released.sources == (1, 2, 4, 5)
    assert released.guarantee.n_members == 4
    everybody = release(GRAPH, full, [0, 3], ledger=ledger, skip_exhausted=True)
    assert everybody.sources == (0, 3), "what is stored costs nothing"
    again = release_to(tmp_path / "out", GRAPH, prior, range(6), ledger=ledger, skip_exhausted=True)
    assert set(again.sources) == {1, 2, 4, 5}
    with pytest.raises(BudgetError, match="no member's budget allows this"):
        release(GRAPH, prior, [0, 3], ledger=ledger, skip_exhausted=True)
    assert len(ledger.charges()) == 2


def test_skipped_members_do_not_depend_on_edges(tmp_path):
    left_out = []
    for name, graph in (("one", GRAPH), ("other", GRAPH.with_edge_flipped(2, 5))):
        ledger = Ledger.create(tmp_path / name, epsilon=1, pooled_epsilon=3)
        release(graph, DPPushFlowCap(epsilon=1), [1], ledger=ledger)
        released = release(
            graph, DegreePrior(epsilon=1), range(6), ledger=ledger, skip_exhausted=True
        )
        left_out.append(set(range(6)) - set(released.sources))
    assert left_out[0] == left_out[1]
    assert 1 in left_out[0]


def test_budget_used_up_meanwhile_is_refused_by_the_charge(ledger, monkeypatch):
    """Leaving out looks at the ledger first, and the charge checks once more."""
    honest = Ledger.newcomers

    def somebody_else_is_faster(self, *asked):
        newcomers = honest(self, *asked)
        release(GRAPH, DPPushFlowCap(epsilon=2), [4], ledger=self)
        return newcomers

    monkeypatch.setattr(Ledger, "newcomers", somebody_else_is_faster)
    with pytest.raises(BudgetError, match="0 of 2 is left for member '4'"):
        release(GRAPH, DegreePrior(epsilon=1), range(6), ledger=ledger, skip_exhausted=True)
    assert [charge.n_rows for charge in ledger.charges()] == [1], "nobody else was charged"


def test_only_members_of_a_ledger_can_be_left_out(ledger):
    with pytest.raises(ParameterError, match="only a ledger knows"):
        release(GRAPH, CAP, [0], skip_exhausted=True)
    public = DPPushFlowCap(epsilon=0.5, model="public")
    with pytest.raises(ParameterError, match="charged to everybody: nobody can be left out"):
        release(GRAPH, public, [0], ledger=ledger, skip_exhausted=True)


def _used_up(ledger, source):
    release(GRAPH, CAP, [source], ledger=ledger)
    return ledger


def test_a_price_counts_what_is_new(ledger):
    release(GRAPH, CAP, [0, 1], ledger=ledger)
    quoted = price(GRAPH, CAP, [0, 1, 2], ledger=ledger)
    assert (quoted.in_ledger.n_new, quoted.in_ledger.n_stored) == (1, 2)
    assert (quoted.in_ledger.epsilon, quoted.in_ledger.repeats_left) == (0.5, 3)
    assert price(GRAPH, CAP, [0, 1], ledger=ledger).in_ledger.epsilon == 0


def test_purpose_and_operator_are_noted_only_if_given(ledger):
    release(GRAPH, CAP, [0], ledger=ledger, purpose="weekly lists", operator="ann", label="g")
    release(GRAPH, CAP, [1], ledger=ledger, label="g")
    first, second = ledger.charges()
    assert (first.note["purpose"], first.note["operator"]) == ("weekly lists", "ann")
    assert (first.note["mechanism"], first.label, first.generation) == ("push-flow-cap", "g", 1)
    assert "0.5" in first.note["parameters"]
    assert not {"purpose", "operator"} & second.note.keys()


@pytest.mark.parametrize("option", [{"engine": 7}, {"engine": Local}, {"progress": 7}])
def test_option_that_cannot_be_used_is_refused_uncharged(ledger, option):
    with pytest.raises(ParameterError, match=f"{next(iter(option))}= takes"):
        release(GRAPH, CAP, [0], ledger=ledger, **option)
    with pytest.raises(ParameterError, match="noise= takes a seeded source"):
        release(GRAPH, CAP, [0], noise=7)
    assert ledger.charges() == []


def test_a_word_that_is_no_option_is_an_error(ledger):
    with pytest.raises(TypeError, match="nonce"):
        release(GRAPH, CAP, [0], ledger=ledger, nonce="x")
    assert ledger.charges() == []


@pytest.mark.parametrize("what", DIFFERENT)
def test_other_parameters_are_charged_and_draw_other_noise(what, ledger):
    call = {"graph": GRAPH, "mechanism": CAP, "sources": [0], "ledger": ledger}
    first = release(**call)
    other = release(**{**call, **DIFFERENT[what]})
    assert len(ledger.charges()) == 2
    # Not a multiple either: the same bits behind two scales could be solved for the truth.
    noise, more = first.values[0, 2:], other.values[0, 2:]
    assert not np.allclose(noise, more, rtol=1e-9, atol=0)
    # (A flipped graph may leave nodes out of reach, with exact zeros, and has no scale at all.)
    if what != "mechanism":
        ratio = noise / more
        assert np.ptp(ratio) > 1e-3 * np.abs(ratio).max()


def test_release_beyond_budget_is_refused_earlier_stay_free(ledger):
    for epsilon in (0.4, 0.5, 0.6, 0.45):
        release(GRAPH, DPPushFlowCap(epsilon=epsilon), [0], ledger=ledger)
    with pytest.raises(BudgetError):
        release(GRAPH, DPPushFlowCap(epsilon=0.3), [0], ledger=ledger)
    release(GRAPH, CAP, [0], ledger=ledger)
    release(GRAPH, CAP, [1], ledger=ledger)  # another member
    assert len(ledger.charges()) == 5


def test_a_public_release_is_charged_for_each_of_its_rows(ledger):
    public = DPPushFlowCap(epsilon=0.5, model="public")
    release(GRAPH, public, [0, 1, 2], ledger=ledger)
    assert ledger.account("anybody").charged_nano == 1_500_000_000
    with pytest.raises(BudgetError):
        release(GRAPH, public, [3, 4], ledger=ledger)
    assert release(GRAPH, public, [0, 1], ledger=ledger).guarantee.epsilon == 1


def test_shared_noise_is_charged_once_however_many_sources(ledger):
    release(GRAPH, EdgeFlipping(epsilon=0.5, model="public"), range(6), ledger=ledger)
    (charge,) = ledger.charges()
    assert charge.epsilon_nano == charge.pooled_nano == 500_000_000


def test_failed_write_repeats_the_noise_at_no_charge(ledger, monkeypatch):
    lost = []

    def fail(path, rows):
        lost.append(rows.rows.copy())
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(drawing, "write_rows", fail)
        with pytest.raises(OSError, match="disk full"):
            release(GRAPH, CAP, [0], ledger=ledger)
    released = release(GRAPH, CAP, [0], ledger=ledger)
    np.testing.assert_array_equal(released.values, lost[0])
    assert len(ledger.charges()) == 1


def test_a_lost_artifact_is_not_drawn_again(ledger, tmp_path):
    release(GRAPH, CAP, [0], ledger=ledger)
    (tmp_path / "ledger.artifacts" / ledger.charges()[0].key).unlink()
    with pytest.raises(LedgerError, match="its noise cannot be drawn again"):
        release(GRAPH, CAP, [0], ledger=ledger)


def test_a_broken_promise_draws_and_releases_nothing(ledger):
    with pytest.raises(PromiseError):
        release(GRAPH, DPPushFlow(epsilon=1, promised_min_degree=3), [0], ledger=ledger)
    assert not any(charge.released for charge in ledger.charges())


def test_seeded_noise_never_meets_a_ledger(ledger):
    for noise in (NoiseSource.insecure(1), NoiseSource.secure()):
        with pytest.raises(ParameterError, match="noise="):
            release(GRAPH, CAP, [0], ledger=ledger, noise=noise)
    assert ledger.charges() == []


def test_without_a_ledger_the_record_says_so():
    assert release(GRAPH, CAP, [0]).provenance.ledger is False


# --- Sources --------------------------------------------------------------------------------


def test_repeated_sources_are_one_source_and_cost_once(ledger):
    released = release(
        GRAPH, DPPushFlowCap(epsilon=0.5, model="public"), [4, 1, 4, 1, 4], ledger=ledger
    )
    assert released.sources == (4, 1)
    assert released.values.shape == (2, 6)
    assert released.guarantee.n_members == 2
    assert released.guarantee.epsilon == 1.0
    assert ledger.account("anybody").charged_nano == 10**9


@pytest.mark.parametrize("sources", [[], (), iter([]), np.array([], dtype=np.int64), {}])
@pytest.mark.parametrize("model", ["joint", "public"])
def test_no_sources_are_a_parameter_error_and_cost_nothing(sources, model, ledger):
    with pytest.raises(ParameterError, match="sources must name at least one node"):
        release(GRAPH, DPPushFlowCap(epsilon=0.5, model=model), sources, ledger=ledger)
    assert ledger.charges() == []


@pytest.mark.parametrize("sources", [3, "ab", 1.5])
def test_a_single_id_is_not_a_list_of_ids(sources):
    letters = Graph.from_edges([0], [1], NodeSet.of(["a", "b"]))
    with pytest.raises(ParameterError, match="sources must be a list of node ids"):
        release(letters, CAP, sources)


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
@pytest.mark.parametrize("sources", [np.array([4, 1]), [np.int32(4), np.uint8(1)], range(4, 0, -3)])
def test_numpy_sources_become_plain_ids(sources, suffix, tmp_path, ledger):
    released = release(GRAPH, CAP, sources, ledger=ledger)
    assert released.sources == (4, 1)
    assert [type(s) for s in released.sources] == [int, int]
    released.write(tmp_path / f"r{suffix}")
    assert Release.read(tmp_path / f"r{suffix}").sources == (4, 1)
    release(GRAPH, CAP, [4, 1], ledger=ledger)
    assert len(ledger.charges()) == 1, "the same sources are the same release"


def test_numpy_parameters_become_plain_data(tmp_path, ledger):
    mechanism = DPInstantEmbedding(
        epsilon=np.float32(0.5), dimension=np.int64(4), rounds=np.int16(9)
    )
    released = release(GRAPH, mechanism, [0], ledger=ledger)
    assert {type(v) for v in released.provenance.parameters.values()} <= {int, float, str, bool}
    plain = DPInstantEmbedding(epsilon=0.5, dimension=4, rounds=9)
    np.testing.assert_array_equal(release(GRAPH, plain, [0], ledger=ledger).values, released.values)
    assert len(ledger.charges()) == 1


@pytest.mark.parametrize("ids", [[30, 10, 20, 5, 0, 1], ["1", "0", "5", "2", "3", "4"]])
def test_sources_are_ids_and_not_indices(ids):
    u, v = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)]).T
    graph = Graph.from_edges(u, v, NodeSet.of(ids))
    by_index = release(GRAPH, NonPrivate(), range(6)).values
    for index, node in enumerate(ids):
        released = release(graph, NonPrivate(), [node])
        assert released.sources == (node,)
        np.testing.assert_array_equal(released.values[0], by_index[index])
        assert released.row(node).argmax() == index
        assert released.top(1)[0][0] == node


def test_the_order_of_sources_is_kept():
    noise = NoiseSource.insecure(1)
    forward, backward = (release(GRAPH, CAP, s, noise=noise) for s in ([0, 5, 2], [2, 5, 0]))
    assert backward.sources == (2, 5, 0)
    np.testing.assert_array_equal(forward.values, backward.values[::-1])


# --- What an attacker tried ----------------------------------------------------------------------


def test_a_node_set_read_off_the_edges_is_named_in_the_guarantee(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("ann,bob\nbob,cem\n")
    released = release(read_graph(path), OwnNeighbours(), ["ann"])
    assert "who appears here at all is not protected" in str(released.guarantee)
    named = release(read_graph(path, nodes=["ann", "bob", "cem"]), OwnNeighbours(), ["ann"])
    assert "who appears" not in str(named.guarantee)


def test_artifact_name_reveals_nothing_without_the_ledger(tmp_path):
    graph = graph_of_pairs(6, [(0, 1), (1, 2), (3, 4)])
    names = set()
    for place in ("a", "b"):
        ledger = Ledger.create(tmp_path / f"{place}.ledger", epsilon=1)
        release(graph, DPPushFlowCap(epsilon=1.0), [0], ledger=ledger)
        names |= {path.name for path in (tmp_path / f"{place}.ledger.artifacts").iterdir()}
    assert len(names) == 4, "the same question in two ledgers has other names"


def test_release_is_what_the_ledger_stored(tmp_path, monkeypatch):
    """Two workers with different code under one key: both get the first one's values."""
    graph = graph_of_pairs(6, [(0, 1), (1, 2), (3, 4)])
    ledger = Ledger.create(tmp_path / "one.ledger", epsilon=1)
    mechanism = DPPushFlowCap(epsilon=1.0)
    original = DPPushFlowCap.estimate
    firsts = []

    def slow_and_different(self, noised, shared, views):
        if not firsts:
            firsts.append(None)  # while this worker computes, another one finishes
            firsts.append(release(graph, mechanism, [0], ledger=ledger))
            return original(self, noised, shared, views) + 1.0
        return original(self, noised, shared, views)

    monkeypatch.setattr(DPPushFlowCap, "estimate", slow_and_different)
    second = release(graph, mechanism, [0], ledger=ledger)
    np.testing.assert_array_equal(second.values, firsts[1].values)


def test_job_that_runs_to_its_folder_again_charges_nothing(tmp_path):
    ledger = Ledger.create(tmp_path / "one.ledger", epsilon=1)
    job = prepare(GRAPH, DPPushFlowCap(epsilon=1.0), [0, 1], ledger=ledger)
    first = job.run_to(tmp_path / "rows")
    assert job.price.in_ledger.n_new == 2, "as it was shown"
    assert job.run_to(tmp_path / "rows").parts == first.parts
    np.testing.assert_array_equal(job.run().values, next(iter(first)).values)
    assert len(ledger.charges()) == 1


class Faulty:
    """An engine that runs all parts, and gives what `change` makes of their results."""

    def __init__(self, change):
        self.change = change

    def run(self, task, parts):
        results = [(part, task(part, key.source(), lambda: None)) for part, key in parts]
        yield from self.change(results)


def exchanged(results):
    """Every part with the rows of the next one."""
    parts, rows = zip(*results, strict=True)
    return zip(parts, rows[1:] + rows[:1], strict=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda results: results[1:], "lost 1 part"),
        (lambda results: [], "lost 3 parts"),
        (lambda results: results + results[:1], "twice"),
        (exchanged, "other rows than asked for"),
    ],
)
@pytest.mark.parametrize("to", ["memory", "folder"])
def test_engine_that_does_not_give_each_part_once_is_refused(
    tmp_path, monkeypatch, ledger, change, words, to
):
    """Rows that it leaves out would be released as what their memory held before."""
    monkeypatch.setattr(drawing, "_parts", lambda request, indices: zip(indices.tolist()))
    mechanism, sources = DPPushFlowCap(epsilon=1.0), [0, 2, 4]
    for options in ({}, {"ledger": ledger}):
        job = prepare(GRAPH, mechanism, sources, engine=Faulty(change), **options)
        if to == "folder" and change is exchanged and not options:
            continue  # of files only the engine knows what they hold
        with pytest.raises(EdgeveilError, match=words):
            job.run() if to == "memory" else job.run_to(tmp_path / "rows")
    assert not (tmp_path / "rows").exists()
    assert release(GRAPH, mechanism, sources, ledger=ledger).values.shape == (3, 6)
    assert len(ledger.charges()) == 1
