"""The engine: charged once per key, ids and not indices, plain data in the records."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.engine import release
from edgeveil.errors import BudgetError, LedgerError, ParameterError, PromiseError
from edgeveil.graph import Graph
from edgeveil.io import read_graph
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import (
    DPInstantEmbedding,
    DPPushFlow,
    DPPushFlowCap,
    EdgeFlipping,
    NonPrivate,
    OwnNeighbours,
)
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.nodes import NodeSet
from edgeveil.privacy.noise import NoiseSource
from edgeveil.releases import Release

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
    assert len(ledger.spends()) == 1
    assert ledger.account("0").spent_nano == 500_000_000


def test_equal_graphs_are_the_same_graph(ledger):
    twin = graph_of_pairs(6, [(4, 1), (5, 0), (4, 5), (3, 4), (2, 3), (1, 2), (0, 1), (1, 0)])
    first = release(GRAPH, CAP, [0], ledger=ledger)
    np.testing.assert_array_equal(release(twin, CAP, [0], ledger=ledger).values, first.values)
    assert len(ledger.spends()) == 1


DIFFERENT = {
    "nonce": {"nonce": "2"},
    "sources": {"sources": [1]},
    "more sources": {"sources": [0, 1]},
    "epsilon": {"mechanism": DPPushFlowCap(epsilon=0.25)},
    "sigma": {"mechanism": DPPushFlowCap(epsilon=0.5, sigma=2e-6)},
    "rounds": {"mechanism": DPPushFlowCap(epsilon=0.5, rounds=99)},
    "mechanism": {"mechanism": EdgeFlipping(epsilon=0.5)},
}


def test_a_changed_graph_does_not_show_by_itself(ledger):
    """New rows just when an edge has changed would tell that one has."""
    changed = GRAPH.with_edge_flipped(2, 5)
    release(GRAPH, CAP, [0], ledger=ledger)
    with pytest.raises(LedgerError, match="public schedule"):
        release(changed, CAP, [0], ledger=ledger)
    assert len(ledger.spends()) == 1
    today = [
        release(g, CAP, [0], ledger=ledger, nonce=f"day {i}")
        for i, g in enumerate([GRAPH, changed])
    ]
    assert len(ledger.spends()) == 3
    assert not (today[0].values == today[1].values).any()


@pytest.mark.parametrize("what", DIFFERENT)
def test_another_question_is_charged_again_and_draws_other_noise(what, ledger):
    call = {"graph": GRAPH, "mechanism": CAP, "sources": [0], "ledger": ledger}
    first = release(**call)
    other = release(**{**call, **DIFFERENT[what]})
    assert len(ledger.spends()) == 2
    # Not a multiple either: the same bits behind two scales could be solved for the truth.
    noise, more = first.values[0, 2:], other.values[0, 2:]
    assert not np.allclose(noise, more, rtol=1e-9, atol=0)
    # (A flipped graph may leave nodes out of reach, with exact zeros, and has no scale at all.)
    if what != "mechanism":
        ratio = noise / more
        assert np.ptp(ratio) > 1e-3 * np.abs(ratio).max()


def test_a_release_that_does_not_fit_any_more_is_refused_and_earlier_ones_stay_free(ledger):
    for nonce in "abcd":
        release(GRAPH, CAP, [0], ledger=ledger, nonce=nonce)
    with pytest.raises(BudgetError):
        release(GRAPH, CAP, [0], ledger=ledger, nonce="e")
    release(GRAPH, CAP, [0], ledger=ledger, nonce="a")
    release(GRAPH, CAP, [1], ledger=ledger)  # another recipient
    assert len(ledger.spends()) == 5


def test_a_public_release_is_charged_for_each_of_its_rows(ledger):
    public = DPPushFlowCap(epsilon=0.5, model="public")
    release(GRAPH, public, [0, 1, 2], ledger=ledger)
    assert ledger.account("anybody").spent_nano == 1_500_000_000
    with pytest.raises(BudgetError):
        release(GRAPH, public, [0, 1], ledger=ledger)


def test_shared_noise_is_charged_once_however_many_sources(ledger):
    release(GRAPH, EdgeFlipping(epsilon=0.5, model="public"), range(6), ledger=ledger)
    (spend,) = ledger.spends()
    assert spend.epsilon_nano == spend.pooled_nano == 500_000_000


def test_a_crash_while_writing_costs_nothing_more_and_repeats_the_noise(ledger, monkeypatch):
    lost = []

    def fail(self, path):
        lost.append(self.values.copy())
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Release, "write", fail)
        with pytest.raises(OSError, match="disk full"):
            release(GRAPH, CAP, [0], ledger=ledger)
    made = release(GRAPH, CAP, [0], ledger=ledger)
    np.testing.assert_array_equal(made.values, lost[0])
    assert len(ledger.spends()) == 1


def test_a_lost_artifact_is_not_drawn_again(ledger, tmp_path):
    release(GRAPH, CAP, [0], ledger=ledger)
    (artifact,) = (tmp_path / "ledger.artifacts").glob("*.parquet")
    artifact.unlink()
    with pytest.raises(LedgerError, match="its noise cannot be drawn again"):
        release(GRAPH, CAP, [0], ledger=ledger)


def test_a_broken_promise_draws_and_releases_nothing(ledger):
    with pytest.raises(PromiseError):
        release(GRAPH, DPPushFlow(epsilon=1, promised_min_degree=3), [0], ledger=ledger)
    assert not any(spend.released for spend in ledger.spends())


def test_seeded_noise_never_meets_a_ledger(ledger):
    for noise in (NoiseSource.insecure(1), NoiseSource.secure()):
        with pytest.raises(ParameterError, match="noise="):
            release(GRAPH, CAP, [0], ledger=ledger, noise=noise)
    assert ledger.spends() == []


def test_without_a_ledger_the_record_says_so():
    assert release(GRAPH, CAP, [0]).provenance.ledger is False


# --- Sources --------------------------------------------------------------------------------


def test_repeated_sources_are_one_source_and_cost_once(ledger):
    made = release(
        GRAPH, DPPushFlowCap(epsilon=0.5, model="public"), [4, 1, 4, 1, 4], ledger=ledger
    )
    assert made.sources == (4, 1)
    assert made.values.shape == (2, 6)
    assert made.guarantee.n_sources == 2
    assert made.guarantee.epsilon == 1.0
    assert ledger.account("anybody").spent_nano == 10**9


@pytest.mark.parametrize("sources", [[], (), iter([]), np.array([], dtype=np.int64), {}])
@pytest.mark.parametrize("model", ["joint", "public"])
def test_no_sources_are_a_parameter_error_and_cost_nothing(sources, model, ledger):
    with pytest.raises(ParameterError, match="sources must name at least one node"):
        release(GRAPH, DPPushFlowCap(epsilon=0.5, model=model), sources, ledger=ledger)
    assert ledger.spends() == []


@pytest.mark.parametrize("sources", [3, "ab", None, 1.5])
def test_a_single_id_is_not_a_list_of_ids(sources):
    letters = Graph.from_edges([0], [1], NodeSet.of(["a", "b"]))
    with pytest.raises(ParameterError, match="sources must be a list of node ids"):
        release(letters, CAP, sources)


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
@pytest.mark.parametrize("sources", [np.array([4, 1]), [np.int32(4), np.uint8(1)], range(4, 0, -3)])
def test_numpy_sources_become_plain_ids(sources, suffix, tmp_path, ledger):
    made = release(GRAPH, CAP, sources, ledger=ledger)
    assert made.sources == (4, 1)
    assert [type(s) for s in made.sources] == [int, int]
    made.write(tmp_path / f"r{suffix}")
    assert Release.read(tmp_path / f"r{suffix}").sources == (4, 1)
    release(GRAPH, CAP, [4, 1], ledger=ledger)
    assert len(ledger.spends()) == 1, "the same sources are the same release"


def test_numpy_parameters_become_plain_data(tmp_path, ledger):
    mechanism = DPInstantEmbedding(
        epsilon=np.float32(0.5), dimension=np.int64(4), rounds=np.int16(9)
    )
    made = release(GRAPH, mechanism, [0], ledger=ledger)
    assert {type(v) for v in made.provenance.parameters.values()} <= {int, float, str, bool}
    plain = DPInstantEmbedding(epsilon=0.5, dimension=4, rounds=9)
    np.testing.assert_array_equal(release(GRAPH, plain, [0], ledger=ledger).values, made.values)
    assert len(ledger.spends()) == 1


@pytest.mark.parametrize("ids", [[30, 10, 20, 5, 0, 1], ["1", "0", "5", "2", "3", "4"]])
def test_sources_are_ids_and_not_indices(ids):
    u, v = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)]).T
    graph = Graph.from_edges(u, v, NodeSet.of(ids))
    by_index = release(GRAPH, NonPrivate(), range(6)).values
    for index, node in enumerate(ids):
        made = release(graph, NonPrivate(), [node])
        assert made.sources == (node,)
        np.testing.assert_array_equal(made.values[0], by_index[index])
        assert made.row(node).argmax() == index
        assert made.top(1)[0][0] == node


def test_the_order_of_sources_is_kept():
    noise = NoiseSource.insecure(1)
    forward, backward = (release(GRAPH, CAP, s, noise=noise) for s in ([0, 5, 2], [2, 5, 0]))
    assert backward.sources == (2, 5, 0)
    np.testing.assert_array_equal(forward.values, backward.values[::-1])


# --- What an attacker tried ----------------------------------------------------------------------


def test_a_node_set_read_off_the_edges_is_named_in_the_guarantee(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("ann,bob\nbob,cem\n")
    made = release(read_graph(path), OwnNeighbours(), ["ann"])
    assert "who appears here at all is not protected" in str(made.guarantee)
    named = release(read_graph(path, nodes=["ann", "bob", "cem"]), OwnNeighbours(), ["ann"])
    assert "who appears" not in str(named.guarantee)


def test_the_name_of_an_artifact_tells_nothing_without_the_ledger(tmp_path):
    graph = graph_of_pairs(6, [(0, 1), (1, 2), (3, 4)])
    names = set()
    for place in ("a", "b"):
        ledger = Ledger.create(tmp_path / f"{place}.ledger", epsilon=1)
        release(graph, DPPushFlowCap(epsilon=1.0), [0], ledger=ledger)
        [artifact] = (tmp_path / f"{place}.ledger.artifacts").glob("*.parquet")
        names.add(artifact.name)
    assert len(names) == 2, "the same question in two ledgers has two names"


def test_what_the_ledger_recorded_is_what_is_returned(tmp_path, monkeypatch):
    """Two workers with different code under one key: both get the first one's values."""
    graph = graph_of_pairs(6, [(0, 1), (1, 2), (3, 4)])
    ledger = Ledger.create(tmp_path / "one.ledger", epsilon=1)
    mechanism = DPPushFlowCap(epsilon=1.0)
    original = DPPushFlowCap.estimate
    firsts = []

    def slow_and_different(self, noised, shared, own):
        if not firsts:
            firsts.append(None)  # while this worker computes, another one finishes
            firsts.append(release(graph, mechanism, [0], ledger=ledger))
            return original(self, noised, shared, own) + 1.0
        return original(self, noised, shared, own)

    monkeypatch.setattr(DPPushFlowCap, "estimate", slow_and_different)
    second = release(graph, mechanism, [0], ledger=ledger)
    np.testing.assert_array_equal(second.values, firsts[1].values)
