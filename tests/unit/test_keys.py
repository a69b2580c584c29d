"""What stands for a question and for the code that answers it: whatever matters, nothing else."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import types
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs import drawing, keys, price, rank, release, release_to, request
from edgeveil.jobs.aggregating import aggregation
from edgeveil.jobs.classifying import classifier
from edgeveil.jobs.keys import code_of, describe
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import (
    DegreePrior,
    DPEmbeddingSparse,
    DPInstantEmbedding,
    DPPushFlowCap,
    EdgeFlipping,
    OwnListEmbedding,
    TwoHop,
    edge_flipping,
)
from edgeveil.mechanisms.hard_pairs import graph_of_pairs

GRAPH = graph_of_pairs(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)])


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", epsilon=1000)


# --- Classes from outside ------------------------------------------------------------------

OURS_AGAIN = '''
"""A module from outside."""
import edgeveil.mechanisms as ours


class DPPushFlowCap(ours.DPPushFlowCap):
    """The same name and the same fields."""

    name = "push-flow-cap"
    factor = 1.0

    def estimate(self, noised, shared, views):
        return scaled(super().estimate(noised, shared, views), self.factor)


def scaled(rows, factor):
    return rows * factor  # a remark
'''


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A module with this source, as if a process had imported it; another one each time."""

    def load(source: str, name: str = "from_outside"):
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        keys._class_digest.cache_clear()
        return module

    return load


def key(mechanism) -> str:
    return describe(mechanism)


def test_an_outside_class_with_our_name_has_another_key(written, ledger):
    ours, theirs = DPPushFlowCap(epsilon=1), written(OURS_AGAIN).DPPushFlowCap(epsilon=1)
    assert ours.name == theirs.name
    assert key(ours) != key(theirs)
    first, second = (release(GRAPH, m, [0], ledger=ledger) for m in (ours, theirs))
    assert len(ledger.charges()) == 2
    assert not np.isclose(first.values, second.values, rtol=1e-9, atol=0).any()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rows * factor", "2 * rows * factor"),  # what the class calls, not the class itself
        ("self.factor)", "-self.factor)"),
        ("factor = 1.0", "factor = 3.0"),
    ],
)
def test_a_corrected_class_has_another_key(old, new, written):
    assert OURS_AGAIN.count(old) == 1
    before = key(written(OURS_AGAIN).DPPushFlowCap(epsilon=1))
    after = key(written(OURS_AGAIN.replace(old, new)).DPPushFlowCap(epsilon=1))
    assert before != after


def test_a_corrected_class_does_not_resume_with_the_old_noise(written, ledger, monkeypatch):
    """The difference of the two releases would show private numbers exactly."""
    old = written(OURS_AGAIN).DPPushFlowCap(epsilon=1)
    lost = []

    def crash(path, rows):
        lost.append(rows.rows.copy())
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(drawing, "write_rows", crash)
        with pytest.raises(KeyboardInterrupt):
            release(GRAPH, old, [0], ledger=ledger)
    new = written(OURS_AGAIN.replace("rows * factor", "rows * factor + 0")).DPPushFlowCap(epsilon=1)
    released = release(GRAPH, new, [0], ledger=ledger)
    assert not (released.values == lost[0]).any()
    assert len(ledger.charges()) == 2


def test_outside_class_comments_and_layout_keep_its_key(written):
    edited = OURS_AGAIN.replace("  # a remark", "").replace("The same name and", "One name,")
    edited = edited.replace("from outside", "from elsewhere").replace("\n\n\n", "\n\n\n\n")
    assert edited != OURS_AGAIN
    keys_of = [key(written(text).DPPushFlowCap(epsilon=1)) for text in (OURS_AGAIN, edited)]
    assert keys_of[0] == keys_of[1]


def test_the_module_is_part_of_the_key(written):
    modules = [written(OURS_AGAIN, name) for name in ("one_place", "another_place")]
    distinct = {key(module.DPPushFlowCap(epsilon=1)) for module in modules}
    assert len(distinct) == 2


TYPED = """
from edgeveil.mechanisms import DPPushFlowCap


class Typed(DPPushFlowCap):
    pass
"""


def test_class_without_a_file_is_refused_before_the_charge(ledger):
    session = types.ModuleType("a_session")  # as typed into a prompt
    sys.modules["a_session"] = session
    exec(TYPED, session.__dict__)
    mechanism = session.Typed(epsilon=1)
    for call in (price, release):
        with pytest.raises(ParameterError, match="put it into a module and import it"):
            call(GRAPH, mechanism, [0], ledger=ledger)
    assert ledger.charges() == []
    assert release(GRAPH, mechanism, [0]).sources == (0,)


# --- Our own code --------------------------------------------------------------------------


parsed_once = cache(keys._meaning)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of our code."""
    place = tmp_path_factory.mktemp("copy") / "edgeveil"
    original = Path(keys.__file__).parents[1]
    shutil.copytree(original, place, ignore=shutil.ignore_patterns("__pycache__", "*.woff2"))
    return place


@pytest.fixture
def edited(copy, monkeypatch):
    """The digest of our code after an edit of a copy of it."""
    monkeypatch.setattr(keys, "__file__", str(copy / "jobs" / "keys.py"))
    monkeypatch.setattr(keys, "_meaning", parsed_once)

    def digest(name: str, old: str = "", new: str = "") -> str:
        path = copy / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1) if old else text + new)
        edited_digest = keys._our_code.__wrapped__()
        path.write_text(text)
        return edited_digest

    yield digest
    keys._our_code.cache_clear()


def test_docstrings_comments_and_layout_of_our_code_do_not_count(edited):
    plain = edited("mechanisms/two_hop.py")
    assert plain == keys._our_code.__wrapped__()
    words = '"""At any epsilon."""'
    assert plain == edited("mechanisms/two_hop.py", words, '"""Any."""')
    assert plain == edited("mechanisms/two_hop.py", words, '"""All of them."""  # !')
    assert plain == edited("privacy/noise.py", '"""', '"""Other words. ')
    assert plain == edited("estimate/rows.py", new="\n\n# The end.\n")


def test_code_that_makes_no_values_keeps_the_digest(edited):
    plain = edited("mechanisms/two_hop.py")
    for name in (
        "jobs/choice.py",
        "cli/rank.py",
        "jobs/ranking.py",
        "testing/verdict.py",
        "results/release.py",
    ):
        assert plain == edited(name, new="\nX = 1\n"), name


@pytest.mark.parametrize(
    "name",
    [
        *(
            "mechanisms/two_hop.py",
            "mechanisms/run.py",
            "estimate/rows.py",
            "flow/common_neighbours.py",
        ),
        *(
            "privacy/noise.py",
            "privacy/statistic.py",
            "estimate/hashing.py",
            "graph/graph.py",
            "graph/nodes.py",
        ),
        "jobs/tasks.py",
        "_internal/flat_rows.py",
    ],
)
def test_code_that_makes_values_changes_the_digest(name, edited):
    assert edited(name, new="\nX = 1\n") != edited(name)


def test_our_own_code_is_not_part_of_the_identity(monkeypatch):
    """An upgrade would charge everybody again."""
    before = describe(TwoHop(epsilon=1)), code_of(TwoHop(epsilon=1))
    monkeypatch.setattr(keys, "_our_code", lambda: "another version")
    after = describe(TwoHop(epsilon=1)), code_of(TwoHop(epsilon=1))
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


@pytest.mark.parametrize("secret_of", ["labels", "features", "roles", "values"])
def test_other_public_data_has_other_noise_and_identity(secret_of):
    if secret_of == "values":
        first, other = (aggregation(GRAPH, {0: x, 1: 1}, epsilon=1.0) for x in (0.5, 1))
    else:
        given = {"labels": {0: 0, 1: 0, 2: 1, 3: 1}, "epsilon": 1.0, "features": np.arange(6.0)}
        changed = {
            "labels": {"labels": {0: 0, 1: 1, 2: 1, 3: 0}},
            "features": {"features": np.arange(6.0) ** 2},
            "roles": {"targets": [5]},
        }
        first, other = classifier(GRAPH, **given), classifier(GRAPH, **given | changed[secret_of])
    assert describe(first) != describe(other)
    words = [
        keys.noise_for(bytes(32), "shared", mechanism, GRAPH).words(4).tolist()
        for mechanism in (first, first, other)
    ]
    assert words[0] == words[1] != words[2]


def test_every_mechanism_has_a_code_of_its_own():
    mechanisms = [DPPushFlowCap(epsilon=1), DegreePrior(epsilon=1), TwoHop(epsilon=1)]
    assert len({code_of(m) for m in mechanisms}) == 3
    assert code_of(TwoHop(epsilon=1)) == code_of(TwoHop(epsilon=2))


# --- Said twice ----------------------------------------------------------------------------


def test_two_epsilons_two_models_or_two_dimensions_are_an_error(ledger):
    with pytest.raises(ParameterError, match=r"epsilon is given twice: 0\.1 here and 5 by two-hop"):
        rank(GRAPH, 0, epsilon=0.1, mechanism=TwoHop(epsilon=5), ledger=ledger)
    with pytest.raises(ParameterError, match="model is given twice"):
        rank(GRAPH, 0, mechanism=TwoHop(epsilon=5), model="public", ledger=ledger)
    assert ledger.charges() == []
    assert rank(GRAPH, 0, epsilon=5, mechanism=TwoHop(epsilon=5)).guarantee.epsilon == 5
    assert rank(GRAPH, 0, model="joint", mechanism=TwoHop(epsilon=5)).guarantee.epsilon == 5


# --- What can never be made costs nothing --------------------------------------------------

HUGE = 10**14
UNKNOWN = {
    "degrees": TwoHop(epsilon=1, degree_epsilon=1e-19),
    "all degrees": DegreePrior(epsilon=1e-19),
    "dimension": DPInstantEmbedding(epsilon=1, dimension=HUGE),
    "dimension of a sparse one": DPEmbeddingSparse(epsilon=1, dimension=HUGE),
    "dimension of an own list": OwnListEmbedding(dimension=HUGE),
    "no hash and another width": OwnListEmbedding(dimension=7, hashed=False),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_public_reasons_fail_before_the_charge(case, ledger, tmp_path):
    for call in (
        lambda: release(GRAPH, UNKNOWN[case], [0, 1], ledger=ledger),
        lambda: release_to(tmp_path / "out", GRAPH, UNKNOWN[case], [0, 1], ledger=ledger),
        lambda: price(GRAPH, UNKNOWN[case], [0, 1], ledger=ledger),
    ):
        with pytest.raises(ParameterError):
            call()
        assert ledger.charges() == []
    assert not (tmp_path / "out").exists()


def test_edge_flipping_beyond_memory_fails_before_the_charge(ledger, monkeypatch):
    nodes = NodeSet.range(100_000)
    graph = Graph.from_edges([0], [1], nodes)
    for module in (edge_flipping, request):
        monkeypatch.setattr(module, "total_memory", lambda: 2**33)
    with pytest.raises(ParameterError, match=r"pairs of nodes, which takes .* GiB of memory"):
        release(graph, EdgeFlipping(epsilon=1), [0], ledger=ledger)
    assert ledger.charges() == []
    price(graph, EdgeFlipping(epsilon=10), [0])  # few flips: nothing to refuse


def test_rows_beyond_memory_are_refused_except_to_a_folder(ledger, tmp_path, monkeypatch):
    graph, mechanism = Graph.from_edges([0], [1], NodeSet.range(400)), DegreePrior(epsilon=1)
    monkeypatch.setattr(request, "total_memory", lambda: 8 * 400 * 300)
    with pytest.raises(ParameterError, match=r"edgeveil\.release_to writes them to a folder"):
        release(graph, mechanism, range(400), ledger=ledger)
    assert ledger.charges() == []
    release(graph, mechanism, range(300), ledger=ledger)
    release_to(tmp_path / "folder", graph, mechanism, range(400), ledger=ledger)
