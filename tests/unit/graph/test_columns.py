"""Names of columns: the likely pair of ids, headers of ids, and what is asked about."""

from __future__ import annotations

import pytest

from edgeveil.errors import InputError, ReadingWarning
from edgeveil.graph.columns import likely_pair
from edgeveil.graph.node_lists import read_nodes
from edgeveil.graph.read import read_graph


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        ("timestamp,sender_account,receiver_account,amount", "sender_account receiver_account"),
        ("call_id,start_time,caller_number,callee_number", "caller_number callee_number"),
        ("step,type,amount,nameOrig,oldbalanceOrg,nameDest,newbalanceDest", "nameOrig nameDest"),
        ("from_bank,from_account,to_bank,to_account", "from_account to_account"),
        ("source_name,source_id,target_name,target_id", "source_id target_id"),
        ("id,followee,follower", "follower followee"),
        ("when,user_id,friend_id", "user_id friend_id"),
        ("when,account,counterparty_account", "account counterparty_account"),
        ("day,msisdn_a,msisdn_b", "msisdn_a msisdn_b"),
        ("FromNodeId,ToNodeId", "FromNodeId ToNodeId"),
        ("start,end,score_a,score_b", None),
        ("when,amount,a,b", None),
    ],
)
def test_likely_pair_is_found_by_the_words_of_names(names, pair):
    suggested = likely_pair(names.split(","))
    assert suggested == (None if pair is None else tuple(pair.split()))


@pytest.mark.parametrize(
    ("head", "row", "pair"),
    [
        (
            "timestamp,sender_account,receiver_account,amount",
            "2026-01-01,a,b,3.5",
            "sender_account",
        ),
        ("amount,sender,receiver", "5,7,8", "sender,receiver"),
        ("timestamp,ref,member id,other id", "2026-01-01,x,ann,bob", "'member id,other id'"),
        ("at,amount,x_key,y_key", "2026-01-01,3.5,ann,bob", "x_key,y_key"),
        ("", "2026-01-01,3.5,ann,bob", "2,3"),
    ],
)
def test_question_about_columns_suggests_the_likely_pair(tmp_path, head, row, pair):
    path = tmp_path / "e.csv"
    path.write_text(f"{head}\n{row}\n" if head else f"{row}\n")
    with pytest.raises(InputError, match=f"Which two are the ids.*--columns {pair}"):
        read_graph(path)


@pytest.mark.parametrize("head", ["sender_account,receiver_account,day", "payer,payee,note"])
def test_first_two_columns_with_roles_as_names_are_taken(tmp_path, head):
    path = tmp_path / "e.csv"
    path.write_text(f"{head}\nann,bob,2026-01-01\nbob,cem,2026-01-02\n")
    assert list(read_graph(path).nodes) == ["ann", "bob", "cem"]


@pytest.mark.parametrize("head", ["sender_account,receiver_account", "userId,friendId"])
def test_header_of_roles_above_text_ids_is_no_edge(tmp_path, head):
    path = tmp_path / "e.csv"
    path.write_text(f"{head}\nann,bob\nbob,cem\n")
    assert list(read_graph(path).nodes) == ["ann", "bob", "cem"]


@pytest.mark.parametrize("head", ["user_id,item_id", "customer,product", "userId\tmovieId\trating"])
def test_header_of_two_kinds_above_text_ids_is_refused(tmp_path, head):
    path = tmp_path / "e.tsv"
    mark = "\t" if "\t" in head else ","
    path.write_text("\n".join([head, mark.join(("ann", "soap", "5")[: len(head.split(mark))])]))
    with pytest.raises(InputError, match="two kinds of nodes"):
        read_graph(path)


def test_ids_that_look_like_a_header_are_edges_if_they_recur(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("user1,user2\nuser2,user3\n")
    assert read_graph(path).n_edges == 2
    path.write_text("user1,user2\n" + "ann,bob\n" * 30 + "user2,user3\n")
    with pytest.warns(ReadingWarning, match="line 1 was read as a header but may be an edge"):
        assert read_graph(path).n_edges == 2
    assert read_graph(path, header=False).n_edges == 3


@pytest.mark.parametrize("head", ["user_id", "memberId", "account number", "member", "ID"])
def test_header_of_a_node_list_of_text_is_no_member(tmp_path, head):
    path = tmp_path / "n.csv"
    path.write_text(f"{head},since\nann,2026-01-01\nbob,2026-01-02\n")
    assert list(read_nodes(path)) == ["ann", "bob"]
    path.write_text("ann_id,x\nuser_7,y\n")
    assert list(read_nodes(path)) == ["ann_id", "user_7"]
