"""One suite that every mechanism has to pass, private or not."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeveil.errors import BudgetError, ParameterError, PromiseError, UnknownNodeError
from edgeveil.estimate.lists import Evidence
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs import release
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import (
    MECHANISMS,
    Aggregation,
    DegreePrior,
    DPEmbeddingSparse,
    DPInstantEmbedding,
    DPPushFlow,
    DPPushFlowCap,
    DPSparsePPR,
    EdgeFlipping,
    Mechanism,
    NonPrivate,
    OwnListEmbedding,
    OwnNeighbours,
    Suggest,
    TwoHop,
)
from edgeveil.mechanisms.base import local_views
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.privacy.noise import NoiseSource
from edgeveil.results.release import Release
from edgeveil.results.release_folder import read_result
from edgeveil.results.suggestions import Suggestions
from edgeveil.testing.conformance import Conformance
from experiments.forward_cap import DPForwardCap
from experiments.graph_diffusion import GraphDiffusion
from tests.seam import run
from tests.strategies import graphs_with_source

# Of the experiments, checked like the others: figures stand on their guarantees.
BASELINES = (DPForwardCap, GraphDiffusion)

# A new mechanism needs a line here (and `test_every_mechanism_is_in_this_suite` says so).
INSTANCES: dict[str, Mechanism] = {
    "cap-joint": DPPushFlowCap(epsilon=1),
    "cap-public": DPPushFlowCap(epsilon=0.3, sigma=1e-3, model="public", rounds=7),
    "cap-prepush": DPPushFlowCap(epsilon=2.5, sigma=0.01, prepush=True, restart=0.4),
    "cap-uncapped": DPPushFlowCap(epsilon=50, sigma=3.0),
    "cap-paper": DPPushFlowCap(epsilon=1, rounds=100, bound="paper"),
    "cap-fixed-point": DPPushFlowCap(epsilon=1, rounds=None, model="public"),
    "forward-joint": DPForwardCap(epsilon=1),
    "forward-public": DPForwardCap(epsilon=0.6, sigma=0.02, model="public", rounds=5),
    "flow-joint": DPPushFlow(epsilon=0.7, promised_min_degree=1),
    "flow-public": DPPushFlow(epsilon=3, promised_min_degree=1, model="public", rounds=20),
    "sparse-joint": DPSparsePPR(epsilon=1),
    "sparse-public": DPSparsePPR(epsilon=300, sigma=1.0, model="public"),
    "sparse-prepush": DPSparsePPR(epsilon=4.1, prepush=True),
    "embedding-joint": DPInstantEmbedding(epsilon=1, dimension=16),
    "embedding-public": DPInstantEmbedding(epsilon=0.1, dimension=1, sigma=0.1, model="public"),
    "embedding-prepush": DPInstantEmbedding(epsilon=2, dimension=300, prepush=True, hash_key="ü"),
    "embedding-sparse-joint": DPEmbeddingSparse(epsilon=1, dimension=16),
    "embedding-sparse-public": DPEmbeddingSparse(epsilon=6, dimension=3, sigma=1, model="public"),
    "embedding-sparse-prepush": DPEmbeddingSparse(epsilon=0.2, dimension=64, prepush=True),
    "flipping-joint": EdgeFlipping(epsilon=1),
    "flipping-public": EdgeFlipping(epsilon=2.2, model="public", restart=0.3, tol=1e-9),
    "diffusion": GraphDiffusion(epsilon=1, steps=20),
    "diffusion-paper": GraphDiffusion(epsilon=3, eta=1e-3, bound="paper", steps=2),
    "degrees-joint": DegreePrior(epsilon=1),
    "degrees-public": DegreePrior(epsilon=0.2, model="public", restart=0.3, score="lift"),
    "two-hop": TwoHop(epsilon=1),
    "two-hop-degrees-only": TwoHop(epsilon=0.25, restart=0.4),
    "two-hop-lift": TwoHop(epsilon=5, score="lift"),
    "suggest": Suggest(epsilon=1),
    "suggest-densely": Suggest(epsilon=0.3, densely=True),
    "own": OwnNeighbours(),
    "own-restart": OwnNeighbours(restart=0.5),
    "aggregation": Aggregation(epsilon=1, dimension=16),
    "aggregation-narrow": Aggregation(epsilon=0.2, dimension=1, hash_key="ü"),
    "own-list": OwnListEmbedding(dimension=16, hash_key="ü"),
    "exact": NonPrivate(),
    "exact-coarse": NonPrivate(restart=0.5, tol=1e-3),
}
# What all members get rests on the same randomness.
SHARED = (Aggregation, DegreePrior, EdgeFlipping, OwnNeighbours, OwnListEmbedding)
NOISELESS = (OwnNeighbours, OwnListEmbedding, NonPrivate)
NOISY = {name: m for name, m in INSTANCES.items() if not isinstance(m, NOISELESS)}
CHARGED = {name: m for name, m in INSTANCES.items() if not isinstance(m, NonPrivate)}


def each(instances: dict[str, Mechanism]):
    return pytest.mark.parametrize("mechanism", instances.values(), ids=instances.keys())


def a_graph(n: int = 23, seed: int = 5, p: float = 0.25) -> Graph:
    """A random graph in which every node has a neighbour (the path sees to that)."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(n), 2)))
    chosen = (rng.random(len(pairs)) < p) | (pairs[:, 1] == pairs[:, 0] + 1)
    return graph_of_pairs(n, pairs[chosen])


def keeps_promise(mechanism: Mechanism, graph: Graph) -> bool:
    promised = getattr(mechanism, "promised_min_degree", 0)
    return bool(graph.degrees.min() >= promised)


def check_rows(mechanism: Mechanism, rows: np.ndarray, graph: Graph, n_members: int) -> None:
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == np.float64
    width = mechanism.dimension if mechanism.output == "embeddings" else graph.n_nodes
    assert rows.shape == (n_members, width)
    if mechanism.output == "lists":  # NaN: nothing is stored about this node
        assert not np.isinf(rows).any()
    else:
        assert np.isfinite(rows).all()


def values_of(released: Release | Suggestions) -> np.ndarray:
    """The values of a release; of lists the scores, with the nodes that have them."""
    if isinstance(released, Release):
        return released.values
    return np.stack([released.lists.nodes.astype(np.float64), released.lists.scores])


class TestEveryMechanism(Conformance):
    """What holds for all of them, and for those from outside: `edgeveil.testing.conformance`."""

    mechanisms = tuple(INSTANCES.values())


# --- The list ------------------------------------------------------------------------------------


def test_every_mechanism_is_in_this_suite():
    assert {type(m) for m in INSTANCES.values()} == {*MECHANISMS, *BASELINES}


def test_a_mechanism_has_at_most_two_base_classes_of_ours():
    for cls in (*MECHANISMS, *BASELINES):
        ours = [base.__name__ for base in cls.__mro__[1:] if base.__module__.startswith("edgeveil")]
        assert len(ours) <= 2, f"{cls.__name__}: {ours}"


def test_every_mechanism_with_a_model_is_here_with_both_models():
    seen = {(type(m), m.model) for m in INSTANCES.values() if hasattr(m, "model")}
    for cls in (*MECHANISMS, *BASELINES):
        if "model" in cls.__dataclass_fields__:
            assert (cls, "joint") in seen
            mechanism = next(m for m in INSTANCES.values() if type(m) is cls)
            try:
                dataclasses.replace(mechanism, model="public")
            except ParameterError:
                continue  # joint only
            assert (cls, "public") in seen


def test_names_are_distinct():
    assert len({cls.name for cls in MECHANISMS}) == len(MECHANISMS)


# --- Frozen parameters ---------------------------------------------------------------------------


NOT_A_POSITIVE_NUMBER = [
    *(math.nan, math.inf, -math.inf, 0, 0.0, -0.0, -1, -1e-300, 5e-324, True, False, "1", "", None),
    *(1j, np.complex128(1), 10**400, [1.0], (1,), np.nan, np.float32("inf"), np.array([1.0]), {}),
]
BAD = {
    "epsilon": NOT_A_POSITIVE_NUMBER,
    "sigma": NOT_A_POSITIVE_NUMBER,
    "model": ["", "Joint", "none", None, True, 1, ["joint"], b"joint"],
    "restart": [0, 1, -0.1, 1.5, math.nan, math.inf, True, False, "0.15", None, [0.15], 0.5j],
    "rounds": [0, -1, 1.0, 1.5, math.nan, True, "100", [100], 100_001],
    "steps": [0, 1, -1, 2.0, math.nan, True, "100", None, [100], 100_001],
    "bound": ["", "Tight", None, True, 1, ["tight"], b"tight"],
    "eta": NOT_A_POSITIVE_NUMBER,
    "degree_epsilon": [v for v in NOT_A_POSITIVE_NUMBER if v is not None],
    "score": ["", "Lift", None, True, 1, ["lift"], b"lift"],
    "hashed": ["no", "", 0, 1, None],
    "prepush": ["no", "", 0, 1, None],
    "directed": ["no", "", 0, 1, None],
    "knows_followers": ["no", "", 0, 1, None],
    "densely": ["no", "", 0, 1, None],
    "values": [0, "x", [1.0], {}],
    "dimension": [0, -1, 2.0, math.nan, math.inf, True, "8", None, [8]],
    "hash_key": [None, 3, b"key", "\ud800", ["key"]],
    "promised_min_degree": [0, -1, 1.0, math.nan, math.inf, True, "2", None, [2]],
    "tol": [0, -1, 1e-14, math.nan, math.inf, True, "1e-6", None, [1e-6], 1e-6j],
}


@pytest.mark.parametrize("cls", [*MECHANISMS, *BASELINES])
def test_bad_parameter_is_refused_at_construction(cls):
    good = dataclasses.asdict(next(m for m in INSTANCES.values() if type(m) is cls))
    assert set(good) <= set(BAD), "a field without bad values is a field nobody checks"
    for name in good:
        for value in BAD[name]:
            with pytest.raises(ParameterError, match=rf"^{name} must be .*, got ") as caught:
                cls(**{**good, name: value})
            shown = value.item() if isinstance(value, np.generic) else value
            assert repr(shown) in str(caught.value)


@pytest.mark.parametrize(
    "cls", [cls for cls in MECHANISMS if "prepush" in cls.__dataclass_fields__]
)
def test_prepush_is_refused_in_the_public_model(cls):
    with pytest.raises(ParameterError, match="prepush shows the source's own edges"):
        cls(epsilon=1, model="public", prepush=True)


# --- The guarantee -------------------------------------------------------------------------------


@each(INSTANCES)
def test_release_has_the_guarantee_of_its_mechanism(mechanism):
    dense, path = a_graph(p=0.9), a_graph(p=0.0)
    for sources in ([0], [3, 0, 9]):
        said = mechanism.guarantee(len(sources))
        assert release(dense, mechanism, sources).guarantee == said
        assert release(path, mechanism, sources).guarantee == said


@each(INSTANCES)
def test_epsilon_adds_over_public_rows_not_over_shared_noise(mechanism):
    for k in [1, 3, 10]:
        guarantee = mechanism.guarantee(k)
        if isinstance(mechanism, NonPrivate):
            assert (guarantee.model, guarantee.epsilon) == ("none", math.inf)
            continue
        assert guarantee.model == getattr(mechanism, "model", "joint")
        assert guarantee.collusion == ("shared" if isinstance(mechanism, SHARED) else "additive")
        per_row = Fraction(repr(float(getattr(mechanism, "epsilon", 0))))
        if isinstance(mechanism, SHARED):
            assert guarantee.epsilon == guarantee.pooled_epsilon == float(per_row)
        elif guarantee.model == "public":
            assert guarantee.epsilon == guarantee.pooled_epsilon == float(k * per_row)
        else:
            assert guarantee.epsilon == float(per_row)
            # Of two-hop and lists, the degrees are shared: docs/theory/two-hop.md
            shared = Fraction(0)
            if hasattr(mechanism, "split"):
                shared = mechanism.split[0]
            assert guarantee.shared_epsilon == float(shared)
            expected = float(shared + k * (per_row - shared))
            assert guarantee.pooled_epsilon == pytest.approx(expected, rel=1e-15)


@each(INSTANCES)
def test_the_proof_that_a_guarantee_names_exists(mechanism):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    assert os.path.exists(os.path.join(root, mechanism.guarantee(1).theorem))


def test_only_push_flow_states_a_promise():
    for mechanism in INSTANCES.values():
        promise = mechanism.guarantee(1).promise
        assert bool(promise) == isinstance(mechanism, DPPushFlow)


# --- Shapes and the absence of surprises ---------------------------------------------------------


@given(graphs_with_source(max_nodes=10), st.integers(0, 2**32), st.data())
@settings(max_examples=30)
def test_no_graph_or_neighbour_makes_a_mechanism_raise(drawn, seed, data):
    # Warnings are errors in this suite (pyproject.toml), and the shapes must not differ.
    graph, source = drawn
    pair = [graph]
    if graph.n_nodes > 1:
        ends = st.integers(0, graph.n_nodes - 1)
        x, y = data.draw(st.lists(ends, min_size=2, max_size=2, unique=True))
        pair.append(graph.with_edge_flipped(x, y))
    for mechanism in INSTANCES.values():
        for each_graph in pair:
            if keeps_promise(mechanism, each_graph):
                rows = run(mechanism, each_graph, [source], seed)
                check_rows(mechanism, rows, graph, 1)


@each(NOISY)
def test_epsilon_in_the_supported_range_works(mechanism, tmp_path):
    graph = a_graph()
    for epsilon in [1e-9, 1, 50, np.float64(0.1), np.float32(0.1), np.int64(2)]:
        at = dataclasses.replace(mechanism, epsilon=epsilon)
        released = release(graph, at, [0, 7])
        if mechanism.output == "lists":
            assert np.isfinite(values_of(released)).all()
        else:
            check_rows(at, released.values, graph, 2)
        released.write(tmp_path / "release.json")
        assert read_result(tmp_path / "release.json", at.output).guarantee == at.guarantee(2)


@each({name: m for name, m in NOISY.items() if hasattr(m, "sigma")})
def test_sigma_in_the_supported_range_works(mechanism):
    graph = a_graph()
    for sigma in [1e-100, 1e-12, 1, 1.5, 1e6, 1e100]:
        rows = run(dataclasses.replace(mechanism, sigma=sigma), graph, [0, 7])
        check_rows(mechanism, rows, graph, 2)


@each(INSTANCES)
def test_broken_promise_is_refused_before_the_draw(mechanism):
    """The message quotes no number of the data."""
    graph = graph_of_pairs(5, [(0, 1), (1, 2), (2, 3)])
    if keeps_promise(mechanism, graph):
        return
    with pytest.raises(PromiseError, match="at least 1 neighbours; nothing was drawn") as caught:
        next(mechanism.measure(graph, None, local_views(graph, [1], mechanism.guarantee(1).model)))
    assert "4" not in str(caught.value)


# --- Where the noise comes from ------------------------------------------------------------------


@each(NOISY)
def test_two_secure_releases_differ(mechanism):
    graph = a_graph()
    first, second = (release(graph, mechanism, graph.nodes) for _ in range(2))
    assert not np.array_equal(values_of(first), values_of(second))


@each({name: m for name, m in NOISY.items() if not isinstance(m, SHARED)})
def test_noise_of_two_sources_is_not_the_same(mechanism):
    # In a cycle all nodes look alike: rows differ by a shift, and by their noise.
    n = 16
    graph = graph_of_pairs(n, [(v, (v + 1) % n) for v in range(n)])
    if mechanism.output == "lists":
        first, second = run(mechanism, graph, [0, 1])
        assert not np.array_equal(first, np.roll(second, -1), equal_nan=True)
    elif mechanism.output == "scores":
        first, second = run(mechanism, graph, [0, 1])
        assert not np.allclose(first, np.roll(second, -1), rtol=1e-14, atol=0)
    else:  # nothing reaches 1/n here, so the embedding is noise alone
        first, second = run(
            dataclasses.replace(mechanism, sigma=1e-9, prepush=False), graph, [0, 1]
        )
        assert not np.array_equal(first, second)


FORKS = """
import hashlib, os, sys
sys.path.insert(0, {root!r})
from tests.conformance.test_every_mechanism import NOISY, a_graph, values_of
from edgeveil.jobs import release

graph = a_graph()


def digests():
    # Everybody's lists: two lists at a small epsilon are equal by chance in one of 600 pairs.
    made = [values_of(release(graph, m, graph.nodes)).tobytes() for m in NOISY.values()]
    return [hashlib.sha256(m).hexdigest() for m in made]


parts = [digests()]  # also: everything is compiled, and has been used, before the fork
pipes = []
for _ in range(3):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, " ".join(digests()).encode())
        os._exit(0)
    os.close(writer)
    pipes.append(reader)
for reader in pipes:
    with os.fdopen(reader) as stream:
        parts.append(stream.read().split())
    os.wait()
parts.append(digests())
import json
print(json.dumps(parts))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_workers_do_not_repeat_noise():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS.format(root=root)],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    parts = json.loads(done.stdout)
    assert [len(part) for part in parts] == [len(NOISY)] * 5
    for name, column in zip(NOISY, zip(*parts, strict=True), strict=True):
        assert len(set(column)) == 5, f"{name} repeated its noise"


def test_secure_noise_source_is_refused_by_release():
    # The same labels give the same stream: two such releases could be subtracted.
    noise = NoiseSource.secure()
    for source in (noise, noise.derive("again"), NoiseSource.from_secret(bytes(32))):
        with pytest.raises(ParameterError, match="noise= takes a seeded source"):
            release(a_graph(), DPPushFlowCap(epsilon=1), [0], noise=source)


@each(INSTANCES)
def test_a_seeded_release_is_marked_not_private_everywhere(mechanism, tmp_path):
    released = release(a_graph(), mechanism, [0, 4], noise=NoiseSource.insecure(1))
    for suffix in [".parquet", ".json"]:
        released.write(tmp_path / f"r{suffix}")
        later = [released, read_result(tmp_path / f"r{suffix}", mechanism.output)]
        if mechanism.output == "scores":
            embedded = later[1].embed(dimension=8)
            embedded.write(tmp_path / f"e{suffix}")
            later += [released.embed(dimension=8), embedded, Release.read(tmp_path / f"e{suffix}")]
        for marked in later:
            assert marked.guarantee.private is False
            assert marked.provenance.noise == "insecure seed"
            for text in (str(marked), repr(marked), str(marked.guarantee)):
                assert "NOT PRIVATE" in text
                assert "epsilon =" not in text


@each(INSTANCES)
def test_a_release_with_fresh_noise_is_not_marked_so(mechanism):
    released = release(a_graph(), mechanism, [0])
    assert released.guarantee.private
    assert released.provenance.noise == "secure"
    assert ("NOT PRIVATE" in str(released)) == isinstance(mechanism, NonPrivate)


# --- What comes out ------------------------------------------------------------------------------


@each(INSTANCES)
def test_provenance_gives_the_mechanism_back(mechanism, tmp_path):
    released = release(a_graph(), mechanism, [0])
    for suffix in [".parquet", ".json"]:
        released.write(tmp_path / f"r{suffix}")
        for provenance in (
            released.provenance,
            read_result(tmp_path / f"r{suffix}", mechanism.output).provenance,
        ):
            cls = {cls.name: cls for cls in (*MECHANISMS, *BASELINES)}[provenance.mechanism]
            assert cls(**provenance.parameters) == mechanism


@each(INSTANCES)
def test_unknown_source_is_named_in_the_error(mechanism):
    for bad in ["ann", 23, -1, 0.0, None, True, ("a", 1)]:
        with pytest.raises(UnknownNodeError, match="is not one of the 23 public nodes") as caught:
            release(a_graph(), mechanism, [0, bad])
        assert repr(bad) in str(caught.value)


# --- The ledger ----------------------------------------------------------------------------------


def observed(mechanism: Mechanism, on_ask=None, on_rows=None) -> Mechanism:
    """The same mechanism, which tells when it is called (and what it is about to give).

    Whatever is told, it is the same class to the ledger: module, name and source are the same.
    """
    kind = type(mechanism)

    class Observed(kind):
        name = kind.name

        def shared(self, graph):
            if on_ask:
                on_ask()
            return super().shared(graph)

        def measure(self, graph, shared, views):
            if on_ask:
                on_ask()
            return super().measure(graph, shared, views)

        def estimate(self, noised, shared, views):
            rows = super().estimate(noised, shared, views)
            if on_rows:
                on_rows(rows.dense(len(views.nodes)) if isinstance(rows, Evidence) else rows.copy())
            return rows

    return Observed(**dataclasses.asdict(mechanism))


@each(CHARGED)
def test_the_charge_is_on_disk_before_anything_is_drawn(mechanism, tmp_path):
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=10_000)
    seen = []

    def look(*_):
        charges = Ledger.open(path).charges()
        seen.append([(charge.released, charge.note["mechanism"]) for charge in charges])

    released = release(a_graph(), observed(mechanism, look, look), [0, 4], ledger=ledger)
    assert len(seen) >= 3
    assert all(charged == [(False, mechanism.name)] for charged in seen)
    (charge,) = Ledger.open(path).charges()
    assert charge.released
    guarantee = mechanism.guarantee(2)
    assert charge.epsilon_nano == round(guarantee.epsilon * 1e9)
    assert charge.pooled_nano == math.ceil(guarantee.pooled(2) * 10**9)  # never rounded down
    assert released.provenance.ledger
    assert released.guarantee == guarantee


@each(NOISY)
def test_refused_budget_never_calls_the_mechanism(mechanism, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=mechanism.epsilon * 0.99)
    called = []

    def note(*_):
        called.append(1)

    with pytest.raises(BudgetError):
        release(a_graph(), observed(mechanism, note, note), [0], ledger=ledger)
    assert called == []
    assert ledger.charges() == []


@each(NOISY)
def test_crash_keeps_the_charge_and_retry_the_same_noise(mechanism, tmp_path):
    path, graph = tmp_path / "ledger", a_graph()
    ledger = Ledger.create(path, epsilon=10_000)
    lost = []

    def crash(rows):
        lost.append(rows)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            release(graph, observed(mechanism, on_rows=crash), [0, 4], ledger=ledger)
        (charge,) = Ledger.open(path).charges()
        assert not charge.released
    kept = []
    finished = observed(mechanism, on_rows=kept.append)
    released = release(graph, finished, [0, 4], ledger=Ledger.open(path))
    np.testing.assert_array_equal(kept[0], lost[0])
    np.testing.assert_array_equal(lost[0], lost[1])
    if mechanism.output != "lists":
        np.testing.assert_array_equal(released.values, lost[0])
    (charge,) = Ledger.open(path).charges()
    assert charge.released
    # In another generation it is another draw.
    ledger.advance()
    release(graph, finished, [0, 4], ledger=ledger)
    assert not np.array_equal(kept[1], kept[0], equal_nan=True)
    assert len(ledger.charges()) == 2


def test_non_private_release_is_refused_with_a_ledger(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1e9)
    with pytest.raises(BudgetError, match="not private"):
        release(a_graph(), NonPrivate(), [0], ledger=ledger)
    assert ledger.charges() == []


def test_string_ids_work_with_every_mechanism():
    names = ["node", "source", "", "1", "é,\n", "score of a"]
    graph = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], NodeSet.of(names))
    for mechanism in INSTANCES.values():
        released = release(graph, mechanism, ["1", "source"], noise=NoiseSource.insecure(1))
        assert released.sources == ("1", "source")
        if mechanism.output == "lists":
            assert {line.node for line in released.for_member("1")} <= set(names) - {"1"}
        else:
            np.testing.assert_array_equal(released.values, run(mechanism, graph, [3, 1]))
