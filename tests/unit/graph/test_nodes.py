from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.errors import InputError, UnknownNodeError
from edgeveil.graph.nodes import NodeSet

some_ids = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=30),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=5), unique=True, max_size=30),
)


@given(some_ids)
def test_every_id_is_found_at_its_place_in_the_order_given(ids):
    nodes = NodeSet.of(ids)
    assert list(nodes) == ids
    assert [nodes.index(i) for i in ids] == list(range(len(ids)))
    assert nodes.take(range(len(ids))) == ids


@given(some_ids, some_ids, st.randoms())
def test_many_ids_are_found_as_one_by_one(ids, others, dice):
    nodes = NodeSet.of(ids)
    asked = dice.choices(ids, k=40) if ids else []
    expected = [nodes.index(i) for i in asked]
    assert nodes.indices(asked).tolist() == expected
    assert nodes.indices(iter(asked)).tolist() == expected
    assert nodes.indices(nodes).tolist() == list(range(len(ids)))
    if nodes.kind != "str":
        assert nodes.indices(np.array(asked, dtype=np.int64)).tolist() == expected
    for stranger in [other for other in others if other not in ids][:3]:
        for among in ([*asked, stranger, *asked], [stranger]):
            with pytest.raises(UnknownNodeError) as many:
                nodes.indices(among)
            with pytest.raises(UnknownNodeError) as single:
                nodes.index(stranger)
            assert str(many.value) == str(single.value)


@pytest.mark.parametrize("stranger", ["2", 2.0, True, None, 2**70, np.uint64(2**63), "b\0"])
@pytest.mark.parametrize("ids", [[0, 1, 2], [5, 1, 2], ["b", "a"]])
def test_among_many_ids_the_wrong_kind_is_unknown(ids, stranger):
    nodes = NodeSet.of(ids)
    for among in ([stranger], [*ids, stranger]):
        with pytest.raises(UnknownNodeError, match="is not one of"):
            nodes.indices(among)


@given(some_ids)
def test_a_set_survives_the_way_through_plain_arrays(ids):
    nodes = NodeSet.of(ids)
    assert NodeSet.from_arrays(nodes.kind, nodes.arrays) == nodes


def test_ids_zero_to_n_need_no_memory():
    assert NodeSet.of(range(10)).kind == NodeSet.of([0, 1, 2]).kind == "range"
    assert NodeSet.of([1, 0]).kind == "int"
    assert NodeSet.of(np.array([5, 7], dtype=np.uint8)).index(7) == 1


@pytest.mark.parametrize("stranger", ["bob", 7, 1.0, None, True, ("a",)])
def test_an_unknown_id_is_named_and_the_set_is_called_public(stranger):
    with pytest.raises(UnknownNodeError, match="is not one of the 3 public nodes"):
        NodeSet.of([1, 2, 3]).index(stranger)
    assert stranger not in NodeSet.of([4, 5])


def test_half_of_a_surrogate_pair_is_an_unknown_id():
    for nodes in (NodeSet.of(["ann", "bob"]), NodeSet.of(["bob", "ann"])):
        assert nodes.find("\ud800") is None


def test_the_wrong_kind_of_id_gets_a_hint():
    with pytest.raises(UnknownNodeError, match="ids here are integers"):
        NodeSet.of([1, 2]).index("1")
    with pytest.raises(UnknownNodeError, match="ids here are strings"):
        NodeSet.of(["1"]).index(1)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([1, "a"], "int, str"),
        ([1.5], "float"),
        ([None], "NoneType"),
        ([True, False], "bool"),
        ([(1, 2)], "tuple"),
        ([1, 1, 2], "1 node id occurs more than once"),
        (["a", "a"], "more than once"),
        ([2**70], "64 bits"),
    ],
)
def test_ids_that_cannot_be_a_node_set_are_refused(ids, words):
    with pytest.raises(InputError, match=words):
        NodeSet.of(ids)


def test_the_set_cannot_be_changed():
    nodes = NodeSet.of([3, 1])
    with pytest.raises(ValueError, match="read-only"):
        nodes.arrays["ids"][0] = 9
    with pytest.raises(IndexError, match="set of 2 nodes"):
        nodes[2]
    assert nodes[-1] == 1


def test_an_unknown_name_is_answered_with_the_nearest_ones():
    nodes = NodeSet.of(["alice", "bob", "Carol", "alina"])
    with pytest.raises(UnknownNodeError, match=r"did you mean 'alice' or 'alina'\?"):
        nodes.index("alie")
    with pytest.raises(UnknownNodeError, match=r"did you mean 'Carol'\?"):
        nodes.index("carol")
    for far in ("zzz", "a" * 10_000):
        with pytest.raises(UnknownNodeError) as unknown:
            nodes.index(far)
        assert "mean" not in str(unknown.value)
    with pytest.raises(UnknownNodeError) as unknown:
        NodeSet.range(20).index(21)
    assert "mean" not in str(unknown.value)


def test_among_many_names_those_next_to_it_are_looked_at():
    nodes = NodeSet.of([f"member {i:06}" for i in range(100_000)])
    with pytest.raises(UnknownNodeError, match="did you mean 'member 0500"):
        nodes.index("member 050000x")
