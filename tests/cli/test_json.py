"""JSON output is what its published schema says, and nothing else."""

from __future__ import annotations

import json
import random
from importlib.resources import files

import jsonschema
import pytest

SCHEMA = json.loads((files("edgeveil") / "output.schema.json").read_text("utf-8"))
MEMBERS = [f"m{i}" for i in range(120)]
GRAPH = "friends.csv --nodes members.txt"
LEDGER = "friends.ledger"

COMMANDS = {
    f"suggest {GRAPH} --member m1 --epsilon 1 -k 3 --ledger {LEDGER}": "suggest",
    f"suggest {GRAPH} --member m1 --member m2 --epsilon 1 -k 3": "suggest",
    f"suggest {GRAPH} --member m1 --epsilon 1 --dry-run": "price",
    f"suggest {GRAPH} --member m1 --epsilon 1 --dry-run --ledger {LEDGER}": "price",
    f"refresh {GRAPH} --label friends --ledger {LEDGER} --epsilon 1 --dry-run": "refresh",
    f"rank {GRAPH} --source m1 --epsilon 1": "rank",
    f"rank {GRAPH} --source m1 --mechanism non-private": "rank",
    f"rank {GRAPH} --source m1 --epsilon 1 --mechanism push-flow-cap": "rank",
    f"classify {GRAPH} --labels labels.csv --epsilon 1": "classify",
    f"classify {GRAPH} --labels labels.csv --epsilon 1 --dry-run": "price",
    f"evaluate {GRAPH} --epsilon 1": "evaluate",
    f"evaluate {GRAPH} --epsilon 1 --protocol rankings -k 5 --min-degree 2": "evaluate",
    f"ledger show {LEDGER}": "ledger show",
    f"ledger report {LEDGER}": "ledger report",
    f"ledger plan {LEDGER}": "ledger plan",
    f"ledger plan {LEDGER} --graph {GRAPH}": "ledger plan",
    "mechanisms": "mechanisms",
    "audit two-hop --trials 200 --confidence 0.9999999": "audit",
    "doctor": "doctor",
}


def validator(name: str, *, closed: bool = True) -> jsonschema.Draft202012Validator:
    """Of one command's output; closed: what the schema does not name is an error, too."""
    schema = json.loads(json.dumps(SCHEMA))

    def close(part):
        if isinstance(part, dict):
            if "properties" in part:
                part.setdefault("additionalProperties", False)
            for inner in part.values():
                close(inner)

    if closed:
        close(schema)
    whole = {"$ref": f"#/$defs/{name.replace(' ', '%20')}", "$defs": schema["$defs"]}
    return jsonschema.Draft202012Validator(whole)


@pytest.fixture
def network(folder, run):
    draws = random.Random(1)
    pairs = {tuple(sorted(draws.sample(range(120), 2))) for _ in range(700)}
    (folder / "friends.csv").write_text("".join(f"m{a},m{b}\n" for a, b in sorted(pairs)))
    (folder / "members.txt").write_text("\n".join(MEMBERS) + "\n")
    labels = "".join(f"{member},{'ab'[i % 2]}\n" for i, member in enumerate(MEMBERS[:60]))
    (folder / "labels.csv").write_text(f"node,label\n{labels}")
    assert run(f"ledger create {LEDGER} --epsilon 4").returncode == 0
    assert run(f"suggest {GRAPH} --member m5 --epsilon 1 --ledger {LEDGER}").returncode == 0
    return folder


def test_published_schema_is_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(("line", "name"), COMMANDS.items())
def test_command_output_matches_the_schema(network, run, line, name):
    done = run(f"{line} --format json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    validator(name).validate(printed)
    jsonschema.Draft202012Validator(SCHEMA).validate(printed)
    for key in printed:  # without any of these it would not do
        needed = {other: value for other, value in printed.items() if other != key}
        if key not in ("member", "source", "warning"):
            assert not validator(name).is_valid(needed)


@pytest.mark.parametrize(
    "line",
    [
        f"embed {GRAPH} --dim 4",
        f"suggest {GRAPH} --member m1 --epsilon 1",
        f"rank {GRAPH} --source m1 --epsilon 1",
        f"classify {GRAPH} --labels labels.csv --epsilon 1",
    ],
)
def test_written_file_matches_the_schema(network, run, line):
    done = run(f"{line} --out release.json")
    assert done.returncode == 0, done.stderr
    written = json.loads((network / "release.json").read_text())
    validator("file").validate(written)
    assert len({len(column) for column in written["columns"].values()}) == 1


def test_history_output_matches_the_schema(network, run):
    assert run("history create friends.history").returncode == 0
    assert run(f"history add friends.history {GRAPH} --date 2024-01-01").returncode == 0
    for more in ("", "--counts"):
        done = run(f"history show friends.history --format json {more}")
        assert done.returncode == 0, done.stderr
        validator("history show").validate(json.loads(done.stdout))


def test_schema_allows_added_entries_only():
    price = {"dry_run": True, "charged_before": False, "rows": [], "later": 1}
    assert validator("price", closed=False).is_valid(price)
    assert not validator("price").is_valid(price)
    assert not validator("price", closed=False).is_valid({**price, "rows": None})


def test_plan_hits_warn_not_private_in_every_format(network, run):
    plan = f"ledger plan {LEDGER} --graph {GRAPH}"
    assert "NOT PRIVATE" in json.loads(run(f"{plan} --format json").stdout)["warning"]
    assert "NOT PRIVATE" in run(f"{plan} --format csv").stdout.splitlines()[0]
    assert "NOT PRIVATE" in run(plan).stdout
    assert "warning" not in json.loads(run(f"ledger plan {LEDGER} --format json").stdout)
