"""What a person is told and asked about the budget: dry runs, the question, Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import time

import numpy as np
import pytest

from edgeveil.errors import BudgetError
from edgeveil.ledger import Campaign, Ledger
from edgeveil.privacy.guarantee import Guarantee
from tests.forks import EDGEVEIL

RANK = "rank follows.csv --source alice --epsilon 1 --ledger f.ledger"


@pytest.fixture
def ledger(folder):
    return Ledger.create(folder / "f.ledger", epsilon=3)


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04", "ja\n"])
def test_without_a_yes_nothing_is_charged(ledger, answer, on_a_terminal):
    code, said = on_a_terminal(RANK, answer)
    assert code == 1
    assert "f.ledger: Charges 1 to member 'alice'. Remaining budget: 3. Go on? [y/N]" in said
    assert "nothing was charged" in said
    assert ledger.charges() == []


def test_ctrl_c_at_the_question_charges_nothing(ledger, on_a_terminal):
    code, said = on_a_terminal(RANK, "\x03")
    assert code == 130
    assert "interrupted; nothing was charged" in said
    assert ledger.charges() == []


def test_yes_charges_once_and_a_repeat_is_not_asked(ledger, on_a_terminal):
    code, said = on_a_terminal(RANK, "y\n")
    assert code == 0
    assert (
        "f.ledger: Charged 1 to member 'alice'. Remaining budget: 2, enough for 2 more like" in said
    )
    code, said = on_a_terminal(RANK, "n\n")
    assert code == 0
    assert "[y/N]" not in said
    assert "stored already: to get it again costs nothing" in said
    assert len(ledger.charges()) == 1


def test_a_new_generation_is_charged_anew(ledger, run):
    assert run(RANK).returncode == 0
    assert run("ledger advance f.ledger").stdout == "2\n"
    assert run(RANK).returncode == 0
    assert "stored already" in run(f"{RANK} --dry-run").stderr
    assert [charge.generation for charge in ledger.charges()] == [1, 2]
    refused = run("ledger advance f.ledger another")
    assert refused.returncode == 1
    assert "nothing was released under the label 'another'" in refused.stderr


def test_advance_looks_once_whether_it_is_a_series(ledger, run, monkeypatch):
    assert run(RANK).returncode == 0
    connect, calls = sqlite3.connect, []
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: calls.append(a) or connect(*a, **o))
    assert run("ledger advance f.ledger").stdout == "2\n"
    assert len(calls) == 1


def test_only_new_members_are_charged(folder, ledger, run):
    lists = "suggest follows.csv --epsilon 1 --ledger f.ledger --out lists.csv"
    assert run(f"{lists} --member alice --member bob").returncode == 0
    lists += " --overwrite"
    again = run(f"{lists} --member bob")
    assert "stored already: to get it again costs nothing" in again.stderr
    dry = run(f"{lists} --all --dry-run --format json")
    assert "2 rows cost nothing: charged before" in dry.stderr
    said = run(f"{lists} --all --purpose weekly --operator ann").stderr
    assert "f.ledger: Charged 1 to each of 3 members. Lowest remaining budget: 2 (member" in said
    assert "), enough for 2 more like it. 2 rows cost nothing: charged before." in said
    assert [charge.n_rows for charge in ledger.charges()] == [2, 3]
    assert ledger.charges()[-1].note["purpose"] == "weekly"
    assert ledger.charges()[-1].note["operator"] == "ann"


def test_a_folder_can_be_written_again_elsewhere_for_nothing(folder, ledger, run):
    embed = "embed follows.csv --mechanism instant-embedding --epsilon 1 --ledger f.ledger --out"
    assert run(f"{embed} first").returncode == 0
    for place in ("second", "first"):
        again = run(f"{embed} {place}")
        assert again.returncode == 0
        assert "stored already" in again.stderr
    assert len(ledger.charges()) == 1


@pytest.mark.parametrize("dry", ["", " --dry-run"])
def test_a_changed_graph_is_refused_until_a_generation_is_declared(folder, ledger, run, dry):
    assert run(RANK).returncode == 0
    with (folder / "follows.csv").open("a") as file:
        file.write("erin,alice\n")
    refused = run(RANK + dry)
    assert refused.returncode == 1
    assert "public schedule" in refused.stderr
    assert run("ledger advance f.ledger").returncode == 0
    assert run(RANK + dry).returncode == 0
    assert len(ledger.charges()) == (1 if dry else 2)


def test_missing_node_list_is_named_before_a_new_generation(folder, ledger, run):
    (folder / "members.txt").write_text("alice\nbob\ncarol\ndave\nerin\nfay\n")
    lists = "suggest follows.csv --all --epsilon 1 --ledger f.ledger --out x.csv --overwrite"
    assert run(f"{lists} --nodes members.txt").returncode == 0
    refused = run(lists)
    assert refused.returncode == 1
    asked = "the node set differs (5 nodes here, 6 there). Did you forget --nodes (nodes=)?"
    advised = "charged anew (this release: epsilon = 1 to each of 5 members)"
    assert 0 < refused.stderr.index(asked) < refused.stderr.index(advised)
    with (folder / "follows.csv").open("a") as file:
        file.write("erin,alice\n")
    refused = run(f"{lists} --nodes members.txt")
    assert refused.returncode == 1
    assert "node set differs" not in refused.stderr
    assert "(this release: epsilon = 1 to each of 6 members)" in refused.stderr
    assert len(ledger.charges()) == 1


def test_skip_exhausted_counts_them_and_serves_newcomers(folder, run):
    Ledger.create(folder / "f.ledger", epsilon=1)
    lists = "suggest follows.csv --all --epsilon 1 --ledger f.ledger --out x.csv --overwrite"
    assert run(lists).returncode == 0
    with (folder / "follows.csv").open("a") as file:
        file.write("fay,alice\n")
    assert run("ledger advance f.ledger").returncode == 0
    refused = run(lists)
    assert refused.returncode == 3
    assert "5 of 6 members have nothing left; their stored lists stay readable." in refused.stderr
    assert "--skip-exhausted" in refused.stderr
    dry = run(f"{lists} --skip-exhausted --dry-run --format json")
    assert [row["for_whom"] for row in json.loads(dry.stdout)["rows"]] == ["fay"]
    done = run(f"{lists} --skip-exhausted")
    assert done.returncode == 0, done.stderr
    assert (
        "5 of 6 members were left out, because their budget does not allow it; their stored lists "
        "stay readable." in done.stderr
    )
    assert "x.csv: 1 list." in done.stderr
    assert {row.split(",")[0] for row in (folder / "x.csv").read_text().splitlines()[1:]} == {"fay"}
    again = run(f"{lists} --skip-exhausted")
    assert again.returncode == 0, "the newcomer's list is stored"
    assert "stored already" in again.stderr
    nobody = run(f"{lists} --skip-exhausted".replace("--epsilon 1", "--epsilon 0.5"))
    assert nobody.returncode == 3
    assert "no member's budget allows this: nothing was charged" in nobody.stderr


@pytest.mark.parametrize(
    "line",
    [
        "rank follows.csv --source alice --source bob --epsilon 1 --format csv",
        "embed follows.csv --mechanism instant-embedding --epsilon 1 --dim 4 --out e --overwrite",
        "report follows.csv --member alice --member bob --epsilon 1 --overwrite",
    ],
)
def test_every_command_that_releases_can_leave_out_the_exhausted(folder, run, line):
    ledger = Ledger.create(folder / "f.ledger", epsilon=1)
    assert run("suggest follows.csv --member alice --epsilon 1 --ledger f.ledger").returncode == 0
    line += " --ledger f.ledger --label other"
    assert run(line).returncode == 3
    done = run(f"{line} --skip-exhausted")
    assert done.returncode == 0, done.stderr
    assert re.search(r"1 of \d members was left out", done.stderr)
    assert ledger.account("alice").left == ledger.account("bob").left == 0
    assert len(ledger.charges("alice")) == 1


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        (
            "embed follows.csv --epsilon 2 --mechanism instant-embedding --out e.csv "
            "--ledger f.ledger",
            "Charges 2 to each of 5 members. Lowest remaining budget: 3 (member 'alice'). Charges "
            "10 to all members together. Remaining for them: 20.",
        ),
        (
            "rank follows.csv --source alice --epsilon 2 --model public --ledger f.ledger",
            "Charges 2 to everybody. Remaining budget: 3.",
        ),
    ],
)
def test_the_question_names_whose_budget_it_is(folder, line, asked, on_a_terminal):
    Ledger.create(folder / "f.ledger", epsilon=3, pooled_epsilon=20)
    assert asked in on_a_terminal(line, "n\n")[1]


@pytest.mark.parametrize(("extra", "expected"), [("--epsilon 1 --yes", 0), ("--epsilon 5", 3)])
def test_nothing_is_asked_with_yes_or_if_it_is_refused_anyway(
    ledger, extra, expected, on_a_terminal
):
    code, said = on_a_terminal(RANK.replace("--epsilon 1", extra), "n\n")
    assert "[y/N]" not in said
    assert code == expected


def test_a_terminal_sees_how_far_it_is_and_a_file_does_not(run_process, on_a_terminal):
    line = "audit two-hop --trials 300 --confidence 0.9999999"
    code, said = on_a_terminal(line, "")
    assert code == 0
    assert re.search(r"releases .*600/600 elapsed 0:\d\d:\d\d left 0:00:00", said)
    # At most whole lines, now and then, where it takes long.
    assert not re.search("[\x1b\r]|elapsed", run_process(line).stderr)


def test_scripts_are_not_asked(run_process, ledger):
    done = run_process(RANK)
    assert done.returncode == 0
    assert "f.ledger: Charged 1 to member 'alice'. Remaining budget: 2, enough for 2" in done.stderr


def test_a_dry_run_prints_the_price_and_charges_nothing(run, folder, ledger):
    before = (folder / "f.ledger").read_bytes()
    dry = run(f"{RANK} --dry-run --format json")
    assert dry.returncode == 0
    [row] = json.loads(dry.stdout)["rows"]
    assert row == {"for_whom": "alice", "epsilon": 1.0, "left_before": 3.0, "left_after": 2.0}
    assert "nothing was charged or drawn" in dry.stderr
    assert (folder / "f.ledger").read_bytes() == before
    assert run(RANK).returncode == 0
    again = run(f"{RANK} --dry-run --format json")
    assert json.loads(again.stdout)["charged_before"]
    assert json.loads(again.stdout)["rows"][0]["epsilon"] == 0
    refused = run(f"{RANK} --dry-run --format csv --epsilon 2.5".replace("--epsilon 1 ", ""))
    assert refused.returncode == 3
    assert "alice,2.5,2.0," in refused.stdout


@pytest.mark.parametrize("nano", [1, 10**9, 3 * 10**9, 3 * 10**9 + 1])
@pytest.mark.parametrize("model", ["joint", "public"])
@pytest.mark.parametrize("members", [("alice",), ("alice", "bob", "carol")])
def test_a_price_says_what_a_charge_will_do(folder, nano, model, members):
    ledger = Ledger.create(folder / "f.ledger", epsilon=3, pooled_epsilon=5)

    def guarantee(n):
        return Guarantee(epsilon=nano / 10**9, model=model, n_members=n, theorem="test")

    campaign = Campaign(identity="q", guarantee=guarantee)
    price = ledger.price(campaign, members)
    assert price.n_new == len(members)
    assert ledger.charges() == []
    if price.refusal:
        with pytest.raises(BudgetError, match=re.escape(price.refusal)):
            ledger.charge(campaign, members)
        return
    ledger.charge(campaign, members)
    assert ledger.account(price.whom).left == (price.left_nano - price.needs_nano) / 10**9
    again = ledger.price(campaign, members)
    assert (again.n_new, again.n_open) == (0, len(members))
    assert (again.epsilon, again.refusal) == (0, "")


def test_a_dry_run_needs_no_ledger_and_writes_nothing(run, folder):
    line = "embed follows.csv --epsilon 1 --mechanism instant-embedding --out e.parquet --dry-run"
    dry = run(f"{line} --format csv")
    assert dry.returncode == 0
    assert dry.stdout.splitlines()[1:] == ["each member,1.0,,", "all members together,5.0,,"]
    assert not (folder / "e.parquet").exists()
    public = run(f"{line} --model public --format csv").stdout.splitlines()
    assert public[1:] == ["everybody,5.0,,"], "the price is for all rows together"


def test_a_dry_run_does_not_tell_whether_a_promise_holds(run, ledger):
    asked = f"{RANK} --mechanism push-flow --dry-run --format json --promised-min-degree"
    holds, broken = run(f"{asked} 1"), run(f"{asked} 50")
    assert (holds.stdout, holds.stderr) == (broken.stdout, broken.stderr)
    assert holds.returncode == broken.returncode == 0


def test_ctrl_c_during_release_resumes_at_no_further_charge(folder, forks, run):
    random = np.random.default_rng(0)
    np.savetxt(folder / "g.csv", random.integers(0, 3000, (60_000, 2)), "%d", delimiter=",")
    ledger = Ledger.create(folder / "f.ledger", epsilon=4)
    line = (
        "embed g.csv --mechanism instant-embedding --epsilon 1 --dim 16 --out e.parquet "
        "--ledger f.ledger"
    )
    process = forks.start(EDGEVEIL, *line.split(), folder=folder, stderr="stderr")
    while not ledger.charges() and process.poll() is None:
        time.sleep(0.02)
    secret = _secret(folder)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert said.splitlines()[-1] == (
        "edgeveil: interrupted; the release is charged: the same command again costs nothing "
        "and goes on with the same noise"
    )
    assert not (folder / "e.parquet").exists()
    [charge] = ledger.charges()
    assert not charge.released
    assert ledger.verify()
    assert secret[charge.key] == _secret(folder)[charge.key], "the noise comes from this alone"
    again = run(line)
    assert again.returncode == 0
    assert "going on costs nothing" in again.stderr
    [charge] = ledger.charges()
    assert charge.released
    assert ledger.account("7").left == 3
    assert ledger.verify()


def _secret(folder) -> dict[str, str]:
    connection = sqlite3.connect(folder / "f.ledger")
    try:
        return dict(connection.execute("SELECT key, secret FROM secrets"))
    finally:
        connection.close()


@pytest.mark.parametrize(("place", "option"), [("write", " --out r.parquet"), ("ranking", "")])
def test_ctrl_c_while_a_charged_ranking_is_put_out_says_so(ledger, run, monkeypatch, place, option):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"edgeveil.results.release.Release.{place}", interrupted)
        done = run(f"{RANK}{option}")
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1].startswith("edgeveil: interrupted; the release is charged")
    assert len(ledger.charges()) == 1
    assert run(f"{RANK}{option}").returncode == 0
    assert len(ledger.charges()) == 1
