"""Release: frozen, kept whole on disk, ranked in a stable order."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
import stat

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeveil._internal.files import write_atomically
from edgeveil.errors import InputError, ParameterError, UnknownNodeError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs import release
from edgeveil.mechanisms import NonPrivate, TwoHop
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.provenance import Provenance
from edgeveil.results.release import Release

SUFFIXES = (".parquet", ".json")
GUARANTEE = Guarantee(epsilon=0.1, model="joint", theorem="docs/a.md", n_members=2)
PROVENANCE = Provenance(
    mechanism="push-flow-cap",
    parameters={"epsilon": 0.1, "model": "joint", "prepush": False, "key": "ü", "rounds": 100},
    version="0.1.0",
    noise="secure",
    ledger=True,
)


def of(values, sources, columns=None, output="scores", **changes) -> Release:
    values = np.asarray(values, dtype=np.float64)
    if columns is None:
        columns = NodeSet.range(values.shape[1])
    return Release(
        values=values,
        sources=tuple(sources),
        columns=columns,
        output=output,
        guarantee=dataclasses.replace(GUARANTEE, **changes),
        provenance=PROVENANCE,
    )


def assert_same(actual: Release, expected: Release) -> None:
    assert actual.values.tobytes() == expected.values.tobytes()  # every bit, also of -0.0
    assert actual.values.shape == expected.values.shape
    assert actual.sources == expected.sources
    assert [type(s) for s in actual.sources] == [type(s) for s in expected.sources]
    assert actual.columns == expected.columns
    assert actual.output == expected.output
    assert actual.guarantee == expected.guarantee
    assert actual.provenance == expected.provenance
    assert str(actual) == str(expected)


# --- Frozen ---------------------------------------------------------------------------------


def test_a_release_is_frozen_and_its_values_are_read_only():
    released = of([[1.0, 2.0], [3.0, 4.0]], [0, 1])
    for name in ("values", "sources", "columns", "output", "guarantee", "provenance"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(released, name, None)
    for array in (released.values, released.values[0], released.row(1), released.values.T):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        released.provenance.noise = "x"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_release_that_was_read_is_read_only_too(suffix, tmp_path):
    of([[1.0, 2.0]], [0]).write(tmp_path / f"r{suffix}")
    with pytest.raises(ValueError, match="read-only"):
        Release.read(tmp_path / f"r{suffix}").values[0, 0] = 5


@pytest.mark.parametrize(
    ("shape", "sources", "columns"), [((2, 3), [0], 3), ((2, 3), [0, 1], 4), ((3, 2), [0, 1], 3)]
)
def test_rows_and_columns_must_fit(shape, sources, columns):
    with pytest.raises(ParameterError, match="one row per source and one value per column"):
        of(np.zeros(shape), sources, NodeSet.range(columns))


# --- Files ----------------------------------------------------------------------------------

NASTY = ["node", "source", "x0", "score of x0", "", " ", ",", 'a"b', "a,b\n", "ünï", "日本", "😀"]
LOOK_LIKE_INTS = ["1", "01", "-1", "1.0", "1e3", "nan", "null", "None", "true"]
FLOATS = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 0.1, 1 / 3, -1e-300, math.pi]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("ids", "sources"),
    [
        (range(9), [8, 0]),
        ([10, 3, -5, 2**63 - 1, -(2**63), 0, 1, 2, 4], [2**63 - 1, -5]),
        (LOOK_LIKE_INTS, ["1", "01"]),
        (NASTY[:9], ["node", ""]),
        (NASTY[3:], ["日本", "a,b\n"]),
    ],
)
def test_what_is_written_comes_back_bit_for_bit(suffix, ids, sources, tmp_path):
    released = of([FLOATS, FLOATS[::-1]], sources, NodeSet.of(ids))
    released.write(tmp_path / f"r{suffix}")
    assert_same(Release.read(tmp_path / f"r{suffix}"), released)
    embedded = of([FLOATS[:4], FLOATS[-4:]], sources, output="embeddings")
    embedded.write(tmp_path / f"e{suffix}")
    assert_same(Release.read(tmp_path / f"e{suffix}"), embedded)


text_ids = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
int_ids = st.integers(-(2**63), 2**63 - 1)


@given(
    st.one_of(
        st.lists(text_ids, unique=True, min_size=1, max_size=6),
        st.lists(int_ids, unique=True, min_size=1, max_size=6),
    ),
    st.sampled_from(SUFFIXES),
    st.data(),
)
@settings(max_examples=60)
def test_any_ids_and_any_floats_survive_a_file(tmp_path_factory, ids, suffix, data):
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    sources = data.draw(st.lists(st.sampled_from(ids), unique=True, min_size=1))
    row = st.lists(st.floats(allow_nan=False), min_size=len(ids), max_size=len(ids))
    values = data.draw(st.lists(row, min_size=len(sources), max_size=len(sources)))
    released = of(values, sources, NodeSet.of(ids))
    released.write(path)
    assert_same(Release.read(path), released)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"private": False},
        {"epsilon": math.inf, "model": "none"},
        {"model": "public", "epsilon": 1e-9},
        {"collusion": "shared", "promise": "every node has at least 3 neighbours"},
        {"delta": 1e-9},
        {"shared_epsilon": 0.04},
    ],
)
def test_the_guarantee_travels_with_the_file(suffix, changes, tmp_path):
    released = of([[0.5]], [0], **changes)
    released.write(tmp_path / f"r{suffix}")
    read_back = Release.read(tmp_path / f"r{suffix}").guarantee
    assert read_back == released.guarantee
    assert str(read_back) == str(released.guarantee)


def test_the_statement_can_be_read_by_people_without_edgeveil(tmp_path):
    released = of([[0.5, 0.25]], ["b"], NodeSet.of(["a", "b"]))
    released.write(tmp_path / "r.json")
    label = json.loads((tmp_path / "r.json").read_text())["edgeveil"]
    assert label["statement"] == str(released.guarantee)
    released.write(tmp_path / "r.parquet")
    frame = pl.read_parquet(tmp_path / "r.parquet")
    assert frame.to_dict(as_series=False) == {"node": ["a", "b"], "score of b": [0.5, 0.25]}
    assert "Not covered" in pl.read_parquet_metadata(tmp_path / "r.parquet")["edgeveil"]


@pytest.mark.parametrize("name", ["r.tsv", "r", "r.parquet.gz", "r.JSON", ".json"])
def test_an_unknown_suffix_is_refused_and_leaves_nothing(name, tmp_path):
    with pytest.raises(ParameterError, match=r"to \.parquet, \.json or \.csv"):
        of([[0.5]], [0]).write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_write_leaves_what_was_there_and_nothing_else(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"r{suffix}"
    first = of([[0.5]], [0])
    first.write(path)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        of([[0.7]], [0]).write(path)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == [path.name]
    assert_same(Release.read(path), first)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_write_to_a_missing_folder_fails_and_creates_nothing(suffix, tmp_path):
    with pytest.raises(OSError, match="No such file"):
        of([[0.5]], [0]).write(tmp_path / "no" / f"r{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_named(suffix, tmp_path):
    with pytest.raises(InputError, match=f"there is no file .*gone{suffix}"):
        Release.read(tmp_path / f"gone{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("output", ["scores", "embeddings"])
def test_a_file_cut_short_or_not_a_release_is_an_input_error(suffix, output, tmp_path):
    path = tmp_path / f"r{suffix}"
    of([[0.5, 0.1], [1, 2]], [0, 1], output=output).write(path)
    whole = path.read_bytes()
    for damaged in (
        b"",
        b"{}",
        b"[]",
        b"null",
        b"3",
        b"PAR1",
        os.urandom(500),
        whole[: len(whole) // 2],
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="is not a release, or is damaged"):
            Release.read(path)


def test_an_ordinary_table_is_not_a_release(tmp_path):
    pl.DataFrame({"node": [1, 2], "score of 1": [0.5, 0.5]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="is not a release"):
        Release.read(tmp_path / "t.parquet")
    (tmp_path / "t.json").write_text('{"columns": {"node": [1]}}')
    with pytest.raises(InputError, match="is not a release"):
        Release.read(tmp_path / "t.json")


def _paths(tree, at=()):
    yield at
    if isinstance(tree, dict):
        for name in tree:
            yield from _paths(tree[name], (*at, name))
    elif isinstance(tree, list):
        for i in range(len(tree)):
            yield from _paths(tree[i], (*at, i))


def _set(tree, at, value, *, delete=False):
    tree = copy.deepcopy(tree)
    inner = tree
    for step in at[:-1]:
        inner = inner[step]
    if delete:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return tree


@pytest.mark.parametrize("output", ["scores", "embeddings"])
def test_damaged_json_raises_only_input_errors(output, tmp_path):
    path = tmp_path / "r.json"
    released = of([[0.5, 0.1], [1, 2]], [0, 1], output=output)
    released.write(path)
    whole = json.loads(path.read_text())
    wrong = [
        None,
        0,
        -7,
        1.5,
        math.nan,
        math.inf,
        1e300,
        10**30,
        True,
        "x",
        "",
        [],
        {},
        [[]],
        [1, "a"],
    ]
    for at in _paths(whole):
        if not at:
            continue
        trees = [_set(whole, at, value) for value in wrong] + [_set(whole, at, None, delete=True)]
        for tree in trees:
            path.write_text(json.dumps(tree))
            try:
                read_back = Release.read(path)
            except InputError:
                continue
            # What still can be read is a release in its own right.
            assert read_back.values.shape == (len(read_back.sources), len(read_back.columns))
            assert read_back.output in ("scores", "embeddings")
            assert isinstance(read_back.guarantee.private, bool)


# (`known_edges` and `scope` are in a file only if they are not their defaults, which promise less)
@pytest.mark.parametrize(
    "field",
    [f.name for f in dataclasses.fields(Guarantee) if f.name not in ("known_edges", "scope")],
)
def test_a_guarantee_that_lost_a_field_does_not_get_its_default(field, tmp_path):
    # `private` defaults to True: a file without the mark must not be taken for a private one.
    path = tmp_path / "r.json"
    of([[0.5]], [0], private=False).write(path)
    path.write_text(
        json.dumps(
            _set(json.loads(path.read_text()), ("edgeveil", "guarantee", field), 0, delete=True)
        )
    )
    with pytest.raises(InputError):
        Release.read(path)


def test_json_columns_in_another_order_read_the_same(tmp_path):
    path = tmp_path / "r.json"
    of([[0.5, 0.1], [1, 2]], [0, 1]).write(path)
    whole = json.loads(path.read_text())
    names = list(whole["columns"])
    whole["columns"] = {name: whole["columns"][name] for name in [names[0], names[2], names[1]]}
    path.write_text(json.dumps(whole))
    np.testing.assert_array_equal(Release.read(path).row(0), [0.5, 0.1])
    np.testing.assert_array_equal(Release.read(path).row(1), [1, 2])


def test_a_newer_format_is_refused_with_the_reason(tmp_path):
    path = tmp_path / "r.json"
    of([[0.5]], [0]).write(path)
    path.write_text(json.dumps(_set(json.loads(path.read_text()), ("edgeveil", "format"), 3)))
    with pytest.raises(InputError, match="written by another version of edgeveil"):
        Release.read(path)


def test_a_name_with_wildcards_is_a_name(tmp_path):
    for name in ("a[1].parquet", "a*.parquet", "a?.parquet"):
        released = of([[len(name)]], [0])
        released.write(tmp_path / name)
    for name in ("a[1].parquet", "a*.parquet", "a?.parquet"):
        assert Release.read(tmp_path / name).values[0, 0] == len(name)


# --- Ranking --------------------------------------------------------------------------------


def test_top_is_best_first_and_ties_go_by_place_in_the_node_set():
    released = of([[0.2, 0.5, 0.2, -1.0, 0.5]], ["e"], NodeSet.of(["z", "e", "a", "q", "b"]))
    assert released.top(5) == [("e", 0.5), ("b", 0.5), ("z", 0.2), ("a", 0.2), ("q", -1.0)]
    assert released.top(3) == released.top(5)[:3]
    for node, score in released.top(5):
        assert type(node) is str
        assert type(score) is float


@given(st.lists(st.sampled_from([0.0, -0.0, 0.25, 1.0, -3.0]), min_size=1, max_size=30))
def test_top_is_a_stable_sort(row):
    expected = sorted(range(len(row)), key=lambda i: (-row[i], i))
    assert [node for node, _ in of([row], [0]).top(len(row))] == expected


def test_top_beyond_the_size_gives_all_and_of_none_nothing():
    released = of([[0.1, 0.2]], [0])
    assert len(released.top(100)) == len(released.top()) == 2
    assert released.top(0) == released.top(-1) == []


def test_top_needs_to_know_whose_row():
    released = of([[0.1, 0.2], [0.4, 0.3]], [1, 0])
    with pytest.raises(ParameterError, match="name one with source="):
        released.top(1)
    assert released.top(1, source=0) == [(0, 0.4)]
    assert released.top(1, source=1) == [(1, 0.2)]
    with pytest.raises(UnknownNodeError, match="no row for 7"):
        released.top(1, source=7)


def test_embeddings_have_no_ranking():
    with pytest.raises(ParameterError, match="an embedding has no ranking"):
        of([[0.1, 0.2]], [0], output="embeddings").top(1)
    with pytest.raises(ParameterError, match="embeddings already"):
        of([[0.1, 0.2]], [0], output="embeddings").embed()


# --- What it says, and post-processing ------------------------------------------------------


def test_str_names_mechanism_shape_and_guarantee():
    text = str(of([[0.1, 0.2]], [0]))
    assert text.startswith("push-flow-cap: 1 row, scores of 2 nodes. ")
    assert str(GUARANTEE) in text
    assert repr(of([[0.1, 0.2]], [0])) == text
    many = str(of(np.zeros((2, 5)), [0, 1], output="embeddings"))
    assert many.startswith("push-flow-cap: 2 rows, embeddings in 5 dimensions. ")
    assert "0.1," not in text, "the values are not part of the sentence"


def test_post_processing_keeps_the_guarantee_and_adds_its_step():
    released = of(np.abs(np.random.default_rng(1).normal(size=(2, 30))), [3, 4], private=False)
    embedded = released.embed(dimension=5, hash_key="k")
    assert embedded.guarantee == released.guarantee
    assert embedded.sources == released.sources
    assert embedded.values.shape == (2, 5)
    assert embedded.output == "embeddings"
    assert embedded.provenance.mechanism == (
        "push-flow-cap > instant-embedding(dimension=5, hash_key='k')"
    )
    assert embedded.provenance.parameters == released.provenance.parameters
    assert released.provenance.mechanism == "push-flow-cap"
    with pytest.raises(ValueError, match="read-only"):
        embedded.values[0, 0] = 1


def test_a_ranking_can_leave_nodes_out_or_keep_to_candidates():
    graph = graph_of_pairs(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    released = release(graph, NonPrivate(), [2])
    everybody = [node for node, _ in released.top(6)]
    assert [n for n, _ in released.top(6, without=[2, 1])] == [
        n for n in everybody if n not in (1, 2)
    ]
    assert {n for n, _ in released.top(6, candidates=[0, 5, 2], without=[2])} == {0, 5}
    assert len(released.top(1, candidates=[0, 5])) == 1
    with pytest.raises(UnknownNodeError, match="public nodes"):
        released.top(3, without=["stranger"])


# --- Uncertainty ----------------------------------------------------------------------------


def uncertain(half, output="scores", sources=(0, 1)) -> Release:
    released = of([[0.9, 0.5, 0.45], [0.1, 0.3, 0.2]][: len(sources)], sources, output=output)
    return dataclasses.replace(released, uncertainty=np.asarray(half, dtype=np.float64))


PER_SCORE = [[0.1, 0.03, 0.04], [0.0, 0.2, 0.1]]
PER_ROW = [[0.1], [0.2]]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("half", [PER_SCORE, PER_ROW])
def test_uncertainty_travels_and_is_read_only(half, suffix, tmp_path):
    released = uncertain(half)
    released.write(tmp_path / f"r{suffix}")
    read_back = Release.read(tmp_path / f"r{suffix}")
    for each in (released, read_back):
        np.testing.assert_array_equal(each.uncertainty, half)
        with pytest.raises(ValueError, match="read-only"):
            each.uncertainty[0, 0] = 1
    np.testing.assert_array_equal(read_back.only(1).uncertainty, half[1:])
    assert read_back.only(1).ranking(3) == read_back.ranking(3, source=1)
    assert read_back.embed(dimension=4).uncertainty is None
    assert of([[0.5]], [0]).uncertainty is None


@pytest.mark.parametrize("half", [[[0.1, 0.2], [0.1, 0.2]], [0.1, 0.2], [[0.1]], [[0.1, 0.1, 0.1]]])
def test_uncertainty_must_fit(half):
    with pytest.raises(ParameterError, match="one value per score, or one per row"):
        uncertain(half)
    with pytest.raises(ParameterError, match="one value per score"):
        uncertain(PER_ROW, output="embeddings")


@pytest.mark.parametrize("bad", [-0.1, math.nan])
def test_uncertainty_is_not_negative(bad):
    with pytest.raises(ParameterError, match="must not be negative"):
        uncertain([[bad], [0.1]])


def test_a_file_that_lost_part_of_its_uncertainty_is_damaged(tmp_path):
    path = tmp_path / "r.json"
    uncertain(PER_SCORE).write(path)
    at = ("columns", "uncertainty of 1")
    path.write_text(json.dumps(_set(json.loads(path.read_text()), at, 0, delete=True)))
    with pytest.raises(InputError, match="damaged"):
        Release.read(path)


def test_a_ranking_tells_places_and_what_the_noise_leaves_open():
    released = uncertain(PER_SCORE)
    ranking = released.ranking(3, source=0)
    assert [(p.rank, p.node, p.score) for p in ranking] == [(1, 0, 0.9), (2, 1, 0.5), (3, 2, 0.45)]
    # 0.4 > hypot(0.1, 0.03): apart; 0.05 <= hypot(0.03, 0.04): not
    assert [(p.first, p.last) for p in ranking] == [(1, 1), (2, 3), (2, 3)]
    assert [(p.first, p.last) for p in released.ranking(1, source=0, without=[0])] == [(1, 2)]
    assert released.ranking(0, source=0) == released.ranking(-3, source=0) == []
    assert [p[1:3] for p in released.ranking(9, source=0)] == released.top(9, source=0)
    unknown = of([[0.1, 0.2]], [0]).ranking(1)[0]
    assert (unknown.uncertainty, unknown.first, unknown.last) == (None, None, None)


def test_shown_must_fit_and_narrows():
    released = of([[0.3, 0.2, 0.1]], [0])
    for bad in ([True, False], [1, 0, 1], [[True, True, True]]):
        with pytest.raises(ParameterError, match="one truth value per node"):
            dataclasses.replace(released, shown=np.array(bad))
    narrowed = released.showing(without=[0]).showing(candidates=[0, 2])
    assert narrowed.top(3) == [(2, 0.1)]
    np.testing.assert_array_equal(narrowed.values, released.values)
    with pytest.raises(ValueError, match="read-only"):
        narrowed.shown[0] = True


def test_file_of_other_format_or_missing_field_is_refused(tmp_path):
    path = tmp_path / "r.json"
    of([[0.5], [0.4]], [0, 1], shared_epsilon=0.04).write(path)
    whole = json.loads(path.read_text())
    without = _set(whole, ("edgeveil", "guarantee", "shared_epsilon"), 0, delete=True)
    for changed in (without, _set(whole, ("edgeveil", "format"), 1)):
        path.write_text(json.dumps(changed))
        with pytest.raises(InputError):
            Release.read(path)


# --- Files nobody else can read, even while they are written -----------------------------------


def test_temporary_file_is_private_with_a_random_name(tmp_path):
    seen = []

    def write(path):
        seen.append((path.name, stat.S_IMODE(path.stat().st_mode)))
        path.write_text("rows")

    for _ in range(2):
        write_atomically(tmp_path / "r.csv", write)
    assert [mode for _, mode in seen] == [0o600, 0o600]
    assert seen[0][0] != seen[1][0]
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]


def test_infinity_is_valid_json_and_comes_back(tmp_path):
    graph = Graph.from_edges([0, 1], [1, 2], NodeSet.range(3))
    released = release(graph, NonPrivate(), [0])
    released.write(tmp_path / "r.json")

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    json.loads((tmp_path / "r.json").read_text(), parse_constant=refuse)
    again = Release.read(tmp_path / "r.json")
    assert again.guarantee == released.guarantee
    assert not again.guarantee.protects


def test_showing_without_is_refused_for_several_rows():
    graph = Graph.from_edges([0, 1], [1, 2], NodeSet.range(3))
    released = release(graph, TwoHop(epsilon=1.0), [0, 1])
    with pytest.raises(ParameterError, match="several rows"):
        released.showing(without=[1])
    # Which of the two comes first is up to the noise.
    assert {node for node, _ in released.only(0).showing(without=[1]).top(3)} == {0, 2}


def test_embeddings_come_as_a_sparse_matrix_and_scores_do_not():
    values = np.array([[0.0, 0.5, 0.0], [-1.0, 0.0, 0.0]])
    released = of(values, ["b", "a"], output="embeddings").to_scipy()
    assert released.nnz == 2
    np.testing.assert_array_equal(released.toarray(), values)
    with pytest.raises(ParameterError, match="holds scores"):
        of(values, ["b", "a"]).to_scipy()
