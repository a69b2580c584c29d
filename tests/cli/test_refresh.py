"""`edgeveil refresh` and `edgeveil ledger renew`: the weekly job as a curator gives it."""

from __future__ import annotations

import json
import re
import stat
from itertools import combinations
from pathlib import Path

import pytest

from edgeveil.ledger import Ledger
from edgeveil.results.release_folder import ReleaseFolder

WEEKLY = "refresh week{}.csv --nodes members.txt --label friends --ledger f.ledger --epsilon 1"


@pytest.fixture
def weeks(folder):
    """Three weeks of a small network, in which somebody joins."""
    names = [f"member{i}" for i in range(40)]
    circles = [names[i : i + 12] for i in range(0, 36, 4)]
    edges = sorted({pair for circle in circles for pair in combinations(circle, 2)})
    for number, share in ((1, 0.8), (2, 0.9), (3, 1.0)):
        some = edges[: int(share * len(edges))]
        (folder / f"week{number}.csv").write_text("".join(f"{u},{v}\n" for u, v in some))
    (folder / "members.txt").write_text("\n".join(names) + "\n")
    Ledger.create("f.ledger", epsilon=2)
    return folder


def charged(member: str = "member1") -> float:
    return Ledger.open("f.ledger").account(member).charged


def test_a_member_pays_once_for_the_lists_of_all_weeks(weeks, run):
    for number in (1, 2, 3):
        done = run(f"{WEEKLY.format(number)} --out lists --date 2026-11-0{number}")
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"lists/000{number}\n"
        assert f"Snapshot {number}: 40 members have lists." in done.stderr
        assert ("40 members joined" in done.stderr) == (number == 1)
        assert "Lowest remaining budget: epsilon = 1." in done.stderr
        assert charged() == 1.0
    folders = [ReleaseFolder.open(f"lists/000{number}") for number in (1, 2, 3)]
    assert [len(lists) for lists in folders] == [40, 40, 40]
    assert {lists.guarantee.epsilon for lists in folders} == {1.0}
    assert len(folders[0].only("member1").for_member("member1")) == 20


def test_refresh_charges_newcomers_once_and_nobody_else(weeks, run):
    run(f"{WEEKLY.format(1)} --date 2026-11-01")
    (weeks / "members.txt").write_text((weeks / "members.txt").read_text() + "newcomer\n")
    done = run(f"{WEEKLY.format(2)} --date 2026-11-08")
    assert "1 member joined the series now, charged 1 each" in done.stderr
    assert (charged("newcomer"), charged()) == (1.0, 1.0)


def test_a_file_cut_short_is_refused_with_a_code_of_its_own(weeks, run):
    run(f"{WEEKLY.format(3)} --date 2026-11-01")
    done = run(f"{WEEKLY.format(1)} --date 2026-11-08 --out lists")
    assert (done.returncode, done.stdout) == (5, "")
    assert "over 10% fewer edges than snapshot 1" in done.stderr
    assert not (weeks / "lists").exists()
    done = run(f"{WEEKLY.format(1)} --date 2026-11-08 --accept-loss")
    assert (done.returncode, charged()) == (0, 1.0)


def test_series_guarantee_names_nodes_read_off_the_edges(weeks, run):
    run(f"{WEEKLY.format(1)} --out listed")
    line = f"{WEEKLY.format(1)} --out found".replace("--nodes members.txt --label friends", "")
    for more in ("", " --dry-run"):
        done = run(line + more)
        assert (done.returncode, "--nodes-from-edges" in done.stderr) == (2, True), done.stderr
        assert (charged(), (weeks / "found").exists()) == (1.0, False)
    run(f"{line} --nodes-from-edges")
    listed, from_edges = (
        ReleaseFolder.open(f"{name}/0001").guarantee for name in ("listed", "found")
    )
    assert listed.promise == ""
    assert "the end of the last one show exactly" in from_edges.promise


def test_what_was_written_before_is_not_replaced_silently(weeks, run):
    line = f"{WEEKLY.format(1)} --date 2026-11-01 --out lists"
    run(line)
    before = (weeks / "lists" / "0001" / "release.json").read_bytes()
    done = run(f"{line} -k 5")
    assert done.returncode == 0
    assert "lists/0001 exists and stays as it is" in done.stderr
    assert (weeks / "lists" / "0001" / "release.json").read_bytes() == before
    assert run(f"{line} -k 5 --overwrite").returncode == 0
    assert len(ReleaseFolder.open("lists/0001").only("member1").for_member("member1")) == 5


def test_overwrite_leaves_what_is_no_release(weeks, run):
    """Files of others in the folder of a snapshot, and beside the members' files."""
    for folder in ("lists", "mail"):
        (weeks / folder / "0001").mkdir(parents=True)
        (weeks / folder / "0001" / "thesis.txt").write_text("mine")
    line = f"{WEEKLY.format(1)} --date 2026-11-01 --overwrite"
    done = run(f"{line} --out lists")
    assert (done.returncode, charged()) == (2, 1.0)
    assert "lists/0001 exists and is not a release" in done.stderr
    assert run(f"{line} --per-member mail").returncode == 0
    assert (weeks / "lists" / "0001" / "thesis.txt").read_text() == "mine"
    assert (weeks / "mail" / "0001" / "thesis.txt").read_text() == "mine"
    assert len(list((weeks / "mail" / "0001").glob("member*.csv"))) == 40


def test_every_member_gets_a_file_of_its_own(weeks, run):
    line = f"{WEEKLY.format(1)} --per-member mail --date 2026-11-01"
    assert run(line).stdout == "mail/0001\n"
    files = sorted((weeks / "mail" / "0001").iterdir())
    assert len(files) == 40
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert files[0].read_text().splitlines()[0].startswith("member,rank,node")
    assert "exists and stays as it is" in run(line).stderr


def test_the_price_is_shown_before_and_asked_for_on_a_terminal(weeks, run, on_a_terminal):
    done = run(f"{WEEKLY.format(1)} --dry-run --format json")
    [row] = json.loads(done.stdout)["rows"]
    assert row == {
        "members": 40, "newcomers": 40, "left_out": 0, "epsilon_each": 1.0, "least_left": 2.0,
    }  # fmt: skip
    assert not (weeks / "f.ledger.series").exists()
    assert "40 of 40 members would be charged, once." in " ".join(done.stderr.split())
    line = f"{WEEKLY.format(1)} --date 2026-11-01"
    code, said = on_a_terminal(line, "n\n")
    assert (code, charged()) == (1, 0.0)
    assert "charged epsilon = 1 each, once" in " ".join(said.split())
    assert on_a_terminal(line, "y\n")[0] == 0
    assert charged() == 1.0
    assert "Nobody would be charged." in run(f"{WEEKLY.format(2)} --dry-run").stderr
    code, said = on_a_terminal(f"{WEEKLY.format(2)} --date 2026-11-08", "")
    assert (code, "Go on?" in said) == (0, False), "nobody would be charged"


def test_ctrl_c_reports_the_charge_and_the_retry_resumes(weeks, run, monkeypatch):
    line = f"{WEEKLY.format(1)} --date 2026-11-01 --out lists"

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for place, told in (
        ("steps.Steps.run", "nothing was charged; the same command again goes on"),
        ("refreshed.Refreshed.write", "40 of 40 members are charged: the same command again"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"edgeveil.series.{place}", interrupted)
            done = run(line)
        assert done.returncode == 130
        assert f"edgeveil: interrupted; {told}" in done.stderr
    assert run(line).stdout == "lists/0001\n"
    assert charged() == 1.0


def test_ctrl_c_at_the_question_charges_nobody(weeks, on_a_terminal):
    code, said = on_a_terminal(WEEKLY.format(1), "\x03")
    assert code == 130
    assert "interrupted; nothing was charged" in said
    assert charged() == 0.0


def test_members_without_budget_are_left_out_and_counted(weeks, run):
    assert run("suggest week1.csv --nodes members.txt --ledger f.ledger --label other "
               "--epsilon 1.5 --member member3").returncode == 0  # fmt: skip
    assert "left_out" in run(f"{WEEKLY.format(1)} --dry-run --format csv").stdout
    done = run(f"{WEEKLY.format(1)} --out lists")
    assert "39 members have lists; 1 member was left out" in done.stderr
    assert "member3" not in ReleaseFolder.open("lists/0001").sources
    assert charged("member3") == 1.5


def test_renew_charges_again_and_is_refused_beyond_budget(weeks, run, on_a_terminal):
    run(f"{WEEKLY.format(1)} --date 2026-11-01")
    assert run("ledger advance f.ledger friends").returncode == 2
    assert run(f"{WEEKLY.format(1).replace('epsilon 1', 'epsilon 0.5')}").returncode == 2
    assert charged() == 1.0
    code, said = on_a_terminal("ledger renew f.ledger friends", "n\n")
    assert (code, "40 of 40 members have as much left" in " ".join(said.split())) == (1, True)
    assert "Nobody was charged" in run(f"{WEEKLY.format(2)} --date 2026-11-02").stderr
    for _ in range(2):  # a second renewal changes nothing
        assert "charges epsilon = 1 again" in run("ledger renew f.ledger friends").stderr
    done = run(f"{SINGLE} --member member3")
    assert (done.returncode, "has no list yet" in done.stderr) == (1, True), done.stderr
    assert charged("member3") == 1.0
    assert "40 members joined" in run(f"{WEEKLY.format(3)} --date 2026-11-03").stderr
    assert charged() == 2.0
    done = run("ledger renew f.ledger friends")
    assert done.returncode == 3
    assert "the series continues" in done.stderr
    assert run(f"{WEEKLY.format(3)} --date 2026-11-04").returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--epsilon 1", "--ledger is required"),
        ("--ledger f.ledger", "--epsilon is required"),
        ("--ledger f.ledger --epsilon 1 --insecure-seed 1", "leave --insecure-seed out"),
        ("--ledger f.ledger --epsilon 1 --out lists.csv", "--out is a folder"),
        ("--ledger f.ledger --epsilon 1 -k 0", "-k"),
        ("--ledger f.ledger --epsilon 1 --label ../x", "a label of letters"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_charged(weeks, run, words, told):
    done = run(f"refresh week1.csv --nodes members.txt {words}")
    assert done.returncode == 2
    assert told in done.stderr
    assert charged() == 0.0


def test_lists_that_were_made_one_by_one_are_no_series(weeks, run):
    run("suggest week1.csv --ledger f.ledger --label friends --epsilon 0.5 --member member3")
    done = run(WEEKLY.format(1))
    assert done.returncode == 1
    assert "were made one by one" in done.stderr
    assert "become a series" in run("ledger renew f.ledger friends").stderr
    assert run(WEEKLY.format(1)).returncode == 0


SINGLE = "suggest week1.csv --nodes members.txt --label friends --ledger f.ledger --epsilon 1"


def test_suggest_gives_the_list_of_the_series_for_nothing(weeks, run):
    run(f"{WEEKLY.format(1)} --date 2026-11-01 --out lists")
    done = run(f"{SINGLE} --member member3 --format json")
    assert done.returncode == 0, done.stderr
    assert "From the series of friends, as of its snapshot 1 (2026-11-01)" in done.stderr
    shown = [row["node"] for row in json.loads(done.stdout)["rows"]]
    kept = ReleaseFolder.open("lists/0001").only("member3").for_member("member3")
    assert shown == [place.node for place in kept]
    assert charged("member3") == 1.0
    assert run(f"{SINGLE} --all --out lists.parquet").returncode == 0
    assert run(f"{SINGLE} --all --out folder").returncode == 2
    assert "nobody is charged" in run(f"{SINGLE} --member member3 --dry-run").stderr
    assert charged("member3") == 1.0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("--member newcomer", 3, "is not in the series: the next refresh"),
        ("--member member3 --epsilon 0.5", 2, "a series with epsilon 1"),
        ("--member nobody", 2, "nobody"),
    ],
)
def test_suggest_from_a_series_refuses_what_it_does_not_have(weeks, run, words, code, told):
    run(f"{WEEKLY.format(1)} --date 2026-11-01")
    (weeks / "members.txt").write_text((weeks / "members.txt").read_text() + "newcomer\n")
    line = SINGLE.replace("--epsilon 1", "") if "--epsilon" in words else SINGLE
    done = run(f"{line} {words}")
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    assert charged("newcomer") == 0.0


def test_other_releases_under_the_label_of_a_series_are_refused(weeks, run):
    run(f"{WEEKLY.format(1)} --date 2026-11-01")
    done = run(
        "rank week1.csv --nodes members.txt --label friends --ledger f.ledger --epsilon 0.5 "
        "--source member3"
    )
    assert done.returncode == 1
    assert "are a series" in done.stderr
    assert charged("member3") == 1.0


def test_serve_without_a_series_says_what_makes_one(weeks, run):
    assert run(f"{WEEKLY.format(1)} --out lists").returncode == 0
    assert run("token member3 --keys keys.json").returncode == 0
    serve = "serve week1.csv --ledger f.ledger --label friends --keys keys.json"
    assert run("ledger renew f.ledger friends").returncode == 0
    for words in (serve, serve.replace("friends", "others")):
        done = run(words)
        assert done.returncode == 1
        assert "has no lists yet: edgeveil refresh makes them" in done.stderr
    assert charged("member3") == 1.0


REPORT = "report --label friends --ledger f.ledger --out page.html --overwrite"


def _page() -> dict:
    text = Path("page.html").read_text("utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))


def test_report_of_a_series_needs_no_graph_and_charges_nobody(weeks, run):
    run(f"{WEEKLY.format(1)} --date 2026-11-01 --out lists")
    done = run(REPORT)
    assert done.returncode == 0, done.stderr
    page = _page()
    assert page["lists"] == []
    assert "as of its snapshot 1 (2026-11-01)" in page["summary"][0]
    assert [row[-4] for row in page["charges"]["rows"]] == [40]
    done = run(f"{REPORT} --member member3 --epsilon 1 -k 5 --per-member pages")
    assert done.returncode == 0, done.stderr
    [shown] = _page()["lists"]
    kept = ReleaseFolder.open("lists/0001").only("member3").for_member("member3")
    assert [row[0] for row in shown["rows"]] == [place.node for place in kept[:5]]
    assert (shown["private"], shown["epsilon"]) == (True, 1.0)
    assert Path("pages/member3.html").is_file()
    assert charged("member3") == 1.0


def test_report_of_a_series_adds_accuracy_from_a_graph(weeks, run):
    run(f"{WEEKLY.format(1)} --date 2026-11-01")
    line = REPORT.replace("report", "report week1.csv --nodes members.txt")
    done = run(f"{line} --member member3 --accuracy")
    assert done.returncode == 0, done.stderr
    assert [entry["private"] for entry in _page()["lists"]] == [True, False, False]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("--member member3 --epsilon 0.5", 2, "a series with epsilon 1"),
        ("--member nobody", 2, "nobody"),
        ("--member member3 --accuracy", 2, "name it"),
        ("--per-member pages", 2, "say for whom"),
    ],
)
def test_report_of_a_series_refuses_what_it_does_not_have(weeks, run, words, code, told):
    run(f"{WEEKLY.format(1)} --date 2026-11-01")
    done = run(f"{REPORT} {words}")
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    assert not Path("page.html").exists()


def test_a_second_refresh_in_a_day_is_dated_to_the_minute(weeks, run):
    for number in (1, 2):
        run(WEEKLY.format(number))
    when = re.compile(r"snapshot 2 \(\d{4}-\d\d-\d\d \d\d:\d\d UTC\)")
    assert when.search(" ".join(run(f"{SINGLE} --member member3").stderr.split()))
    run(REPORT)
    assert when.search(_page()["summary"][0])


def test_report_without_a_graph_or_a_series_says_what_is_missing(weeks, run):
    for words in ("--member member3 --epsilon 1", ""):
        done = run(f"{REPORT} {words}")
        assert done.returncode == 2
        assert "the ledger has no series 'friends': name the graph" in done.stderr


def test_excluded_pairs_are_on_no_list_that_is_shown(weeks, run):
    Path("blocks.csv").write_text("member,other\nmember3,member30\nmember3,somebody else\n")
    Path("among.txt").write_text("member3\nmember28\nmember30\n")
    shown = "--exclude blocks.csv --candidates among.txt"
    done = run(f"{WEEKLY.format(1)} --out lists --per-member members {shown}")
    assert done.returncode == 0
    assert "1 of 2 pairs names somebody who is not in the node list" in done.stderr
    assert "member30" not in Path("members/0001/member3.csv").read_text()
    unblocked = run(f"{SINGLE} --member member3 --candidates among.txt --format json")
    assert "member30" in {row["node"] for row in json.loads(unblocked.stdout)["rows"]}
    listing = run(f"{SINGLE} --member member3 --member member30 {shown} --format json")
    rows = json.loads(listing.stdout)["rows"]
    listed = {name: {row["node"] for row in rows if row["member"] == name} for name in
              ("member3", "member30")}  # fmt: skip
    assert listed["member3"] <= {"member28"}
    assert "member3" not in listed["member30"]
    page = run(f"report --ledger f.ledger --label friends --member member3 {shown} --out page.html")
    assert page.returncode == 0
    assert "member30" not in Path("page.html").read_text("utf-8")
    assert run(f"{SINGLE} --member member3 --exclude among.txt").returncode == 4
