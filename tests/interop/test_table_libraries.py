"""Tables of other libraries, all the way: their edges -> private result -> their table."""

from __future__ import annotations

import json

import duckdb
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import edgeveil as ev

EDGES = pd.DataFrame(
    [(f"m{u}", f"m{v}") for u, v in nx.karate_club_graph().edges], columns=["u", "v"]
)
MEMBERS = [f"m{i}" for i in range(34)]
SEED = ev.NoiseSource.insecure


def ranking(graph: ev.Graph, **rest) -> ev.Release:
    return ev.release(graph, ev.mechanisms.TwoHop(epsilon=50.0), ["m0", "m33"], **rest)


def expected() -> pd.DataFrame:
    released = ranking(ev.as_graph(EDGES, nodes=MEMBERS), noise=SEED(0))
    return pd.DataFrame(
        {
            "source": ["m0"] * 34 + ["m33"] * 34,
            "node": MEMBERS * 2,
            "score": np.concatenate([released.row("m0"), released.row("m33")]),
        }
    )


def test_pandas_edges_to_pandas_scores():
    scores = ranking(ev.as_graph(EDGES, nodes=MEMBERS), noise=SEED(0))
    frame = scores.to_pandas()
    pd.testing.assert_frame_equal(frame[["source", "node", "score"]], expected())
    best = frame.sort_values("score", ascending=False).groupby("source").head(1)
    assert dict(zip(best["source"], best["node"], strict=True)) == {"m0": "m0", "m33": "m33"}
    frame.loc[0, "score"] = 9.0  # a table of the user's own
    assert scores.values[0, 0] != 9.0


def test_pandas_attrs_carry_the_guarantee_through_parquet(tmp_path):
    scores = ranking(ev.as_graph(EDGES, nodes=MEMBERS), noise=SEED(0))
    frame = scores.to_pandas()
    assert frame.attrs["edgeveil"]["guarantee"] == scores.guarantee.as_dict()
    assert frame.attrs["edgeveil"]["statement"].startswith("NOT PRIVATE")
    assert frame.query("score > 0.1").attrs == frame.attrs
    frame.to_parquet(tmp_path / "scores.parquet")
    assert pd.read_parquet(tmp_path / "scores.parquet").attrs == frame.attrs


def test_polars_edges_to_polars_scores():
    frame = ranking(ev.as_graph(pl.DataFrame(EDGES), nodes=MEMBERS), noise=SEED(0)).to_polars()
    assert frame.schema["node"] == pl.String
    pl.testing.assert_frame_equal(frame.select("source", "node", "score"), pl.DataFrame(expected()))


def test_pyarrow_edges_give_scores_with_guarantee_in_schema(tmp_path):
    scores = ranking(ev.as_graph(pa.Table.from_pandas(EDGES), nodes=MEMBERS))
    table = scores.to_arrow()
    assert table.schema.field("node").type == pa.string()
    pq.write_table(table, tmp_path / "scores.parquet")
    label = json.loads(pq.read_schema(tmp_path / "scores.parquet").metadata[b"edgeveil"])
    assert label["guarantee"] == scores.guarantee.as_dict()
    assert label["statement"] == str(scores.guarantee)
    assert label["provenance"]["mechanism"] == "two-hop"
    assert pq.read_table(tmp_path / "scores.parquet").num_rows == 68


def test_duckdb_edges_to_a_query_over_the_release():
    with duckdb.connect() as db:
        db.execute("create table follows as select * from EDGES")
        scores = ranking(ev.as_graph(db.sql("select u, v from follows"), nodes=MEMBERS))
        assert scores.guarantee.protects
        best = db.sql(
            "select source, arg_max(node, score) as best, count(*) as n from scores group by source"
        )
        assert sorted(best.fetchall()) == [("m0", "m0", 34), ("m33", "m33", 34)]


def test_duckdb_reads_what_write_wrote(tmp_path):
    scores = ev.rank(ev.as_graph(EDGES, nodes=MEMBERS), "m0", epsilon=50.0)
    scores.write(tmp_path / "r.parquet")
    scores.write(tmp_path / "r.csv")
    with duckdb.connect() as db:
        path = str(tmp_path / "r.parquet")
        best = db.execute('select node from read_parquet(?) order by "score of m0" desc', [path])
        assert best.fetchone() == ("m0",)
        path = str(tmp_path / "r.csv")
        best = db.execute(
            "select node, guarantee from read_csv(?) order by score desc", [path]
        ).fetchone()
        assert best == ("m0", "joint, epsilon = 50")


@pytest.mark.parametrize("take", [pl.DataFrame, pa.table, pd.DataFrame.from_arrow])
def test_a_release_is_an_arrow_stream(take):
    embeddings = ev.embed(ev.as_graph(EDGES, nodes=MEMBERS), dimension=4)
    table = take(embeddings)
    names = table.column_names if isinstance(table, pa.Table) else list(table.columns)
    assert names == ["source", "x0", "x1", "x2", "x3"]
    assert [str(s) for s in table["source"]] == MEMBERS
    np.testing.assert_array_equal(np.asarray(table["x3"]), embeddings.values[:, 3])


@pytest.mark.parametrize("read", [pd.read_csv, pl.read_csv])
def test_a_csv_file_is_read_by_everybody_and_says_its_guarantee(read, tmp_path):
    graph = ev.as_graph(EDGES, nodes=MEMBERS)
    ev.rank(graph, "m0", epsilon=0.5).write(tmp_path / "r.csv")
    assert set(read(tmp_path / "r.csv")["guarantee"]) == {"joint, epsilon = 0.5"}
    scores = ev.rank(graph, "m0", epsilon=0.5, noise=SEED(0))
    scores.write(tmp_path / "r.csv")
    table = read(tmp_path / "r.csv")
    assert set(table["guarantee"]) == {"NOT PRIVATE"}
    np.testing.assert_array_equal(np.asarray(table["score"]), scores.row("m0"))
