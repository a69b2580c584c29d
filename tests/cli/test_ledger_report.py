"""`edgeveil ledger plan` and `edgeveil ledger report`, as a privacy officer uses them."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from edgeveil.cli.app import main
from edgeveil.graph.datasets import social_network
from edgeveil.ledger import Ledger
from edgeveil.series import WindowRule, refresh
from edgeveil.series.suggesting import suggest


@pytest.fixture
def used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = social_network(200).graph
    ledger = Ledger.create("friends.ledger", epsilon=4)
    suggest(graph, [7, 8], epsilon=1.0, ledger=ledger, label="friends", purpose="<b>weekly</b>")
    ledger.advance("friends")
    suggest(graph, [7], epsilon=0.5, ledger=ledger, label="friends", operator="ops")
    return ledger


def test_plan_names_the_price_that_one_more_series_may_have(used, capsys):
    assert main(["ledger", "plan", "friends.ledger", "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["least_left"] == 2.5
    assert plan["rows"] == [
        {"lists": "series", "charges": 1, "epsilon": 2.5},
        {"lists": "series, renewed once", "charges": 2, "epsilon": 1.25},
    ]
    ledger = Ledger.open("friends.ledger")
    suggest(social_network(200).graph, [7], epsilon=2.5, ledger=ledger, label="rest")
    assert main(["ledger", "plan", "friends.ledger"]) == 3
    assert "nothing is left" in capsys.readouterr().err


def test_plan_with_the_graph_says_what_each_epsilon_buys(used, capsys, tmp_path):
    from edgeveil.graph.saved import save_graph

    save_graph(social_network(400, average_degree=20).graph, tmp_path / "graph")
    words = "ledger plan friends.ledger --graph graph --format json"
    assert main(words.split()) == 0
    shown = capsys.readouterr()
    rows = json.loads(shown.out)["rows"]
    columns = [name for name in rows[0] if name.startswith("hits@20, ")]
    assert columns
    assert all(0 <= row[name] <= 1 for row in rows for name in columns)
    assert len({row["epsilon"] for row in rows}) >= 2
    assert rows[-1]["lists"] == "popularity"
    whole = [row["hits@20, all members"] for row in rows]
    assert whole[0] > whole[-1], "a series with the whole budget is better than popularity"
    assert "NOT PRIVATE" in json.loads(shown.out)["warning"]
    useless = [row["epsilon"] for row in rows[:-1] if row["hits@20, all members"] <= whole[-1]]
    assert (f"At epsilon = {max(useless):g} and below" if useless else "At all of") in shown.err


@pytest.fixture
def series(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("series.ledger", epsilon=2)
    for number, members in enumerate((150, 150, 160), 1):
        graph = social_network(members, average_degree=20).graph
        options = {"ledger": ledger, "epsilon": 1.0, "label": "friends", "purpose": "weekly"}
        refresh(graph, date=f"2026-01-{number:02d}", rule=WindowRule(latest=1), **options)
    return ledger


def test_a_series_has_a_row_per_joining_and_none_per_window(series, capsys, tmp_path):
    assert sum(not charge.epsilon_nano for charge in series.charges()) >= 2, "there are windows"
    assert main(["ledger", "report", "series.ledger", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["mechanism"], row["members"]) for row in rows] == [
        ("series of lists", 150),
        ("series of lists, newcomers", 10),
    ]
    assert rows[0]["time"] <= rows[1]["time"]
    assert {(row["epsilon_each"], row["purpose"], row["state"]) for row in rows} == {
        (1.0, "weekly", "stored")
    }
    assert sum(row["epsilon_pooled"] for row in rows) == pytest.approx(0.03 + 160 * 0.97)
    assert main(["ledger", "show", "series.ledger"]) == 0
    assert "\n2 charges, head" in capsys.readouterr().out, "of those who joined first, and later"
    assert main(["ledger", "report", "series.ledger", "--member", "7", "--out", "7.html"]) == 0
    charges = _charges(tmp_path / "7.html")
    assert len(charges["rows"]) == 1
    said = " ".join(charges["words"])
    assert "all lists of 7 together change the odds by a factor of at most 2.72." in said
    assert "A series of lists is charged once" in said


def test_plan_of_a_pooled_cap_asks_how_many_there_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Ledger.create("pooled.ledger", epsilon=4, pooled_epsilon=100)
    assert main(["ledger", "plan", "pooled.ledger"]) == 2
    assert "--members" in capsys.readouterr().err
    assert main(["ledger", "plan", "pooled.ledger", "--members", "50"]) == 0


def test_report_lists_every_charge_with_what_is_known_of_it(used, capsys):
    assert main(["ledger", "report", "friends.ledger", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["members"] for row in rows] == [2, 1]
    assert [row["generation"] for row in rows] == [1, 2]
    assert [row["purpose"] for row in rows] == ["<b>weekly</b>", ""]
    assert [row["operator"] for row in rows] == ["", "ops"]
    assert [row["epsilon_each"] for row in rows] == [1.0, 0.5]
    assert {row["mechanism"] for row in rows} == {"suggest"}
    assert {row["state"] for row in rows} == {"stored"}


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_report_to_a_file_is_the_same_table(used, suffix, tmp_path, capsys):
    assert main(["ledger", "report", "friends.ledger", "--out", f"report{suffix}"]) == 0
    assert capsys.readouterr().out == ""
    text = (tmp_path / f"report{suffix}").read_text("utf-8")
    if suffix == ".csv":
        assert [row["members"] for row in csv.DictReader(io.StringIO(text))] == ["2", "1"]
    else:
        assert len(json.loads(text)["rows"]) == 2


def _charges(file) -> dict:
    match = re.search(r'id="data">(.*?)</script>', file.read_text("utf-8"), re.DOTALL)
    return json.loads(match.group(1))["charges"]


def test_report_of_one_member_names_it_and_nobody_else(used, tmp_path):
    assert main(["ledger", "report", "friends.ledger", "--member", "8", "--out", "eight.html"]) == 0
    charges = _charges(tmp_path / "eight.html")
    assert "8 was charged 1; 3 is left." in charges["words"]
    assert len(charges["rows"]) == 1
    assert [total for _, total in charges["steps"]] == [1.0]


def test_report_page_in_a_browser(used, tmp_path, browser, capsys):
    assert main(["ledger", "report", "friends.ledger", "--out", "report.html"]) == 0
    context = browser.new_context(viewport={"width": 400, "height": 800})
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "report.html").as_uri())
    page.locator(".total path").wait_for()
    picture = page.get_by_role("img", name="Charged over time: 1.5 of 4")
    assert picture.count() == 1
    assert page.locator("tbody tr").count() == 2
    assert "is 1.5 in all; 2.5 is left" in page.locator("#charges").inner_text()
    assert "<b>weekly</b>" in page.locator("#charges").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert [url for url in asked if not url.startswith("data:")] == [
        (tmp_path / "report.html").as_uri()
    ]
    assert not complaints
    context.close()
    assert main(["ledger", "report", "friends.ledger", "--out", "report.pdf"]) == 2
    assert ".html, .csv or .json" in capsys.readouterr().err


def test_an_empty_ledger_has_an_empty_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Ledger.create("new.ledger", epsilon=1)
    assert main(["ledger", "report", "new.ledger", "--out", "report.html"]) == 0
    assert _charges(tmp_path / "report.html")["rows"] == []
