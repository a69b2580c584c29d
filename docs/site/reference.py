"""The references: made from the commands' own help and the functions' own docstrings."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from cyclopts import App

import edgeveil
from edgeveil.cli.app import COMMANDS, make_app

__all__ = ["api_directives", "api_table", "cli_sections"]

_ROOT = Path(__file__).resolve().parents[2]

# The order in which people meet things; what is not named here follows, so nothing is lost.
_GROUPS = {
    "Reading graphs": "as_graph read_graph open_graph save_graph graph.building.build_graph Graph "
    "NodeSet History series.history.Snapshot",
    "Releasing": "refresh suggest classify aggregate rank embed release release_to price "
    "recommended PrivateEmbedding PrivateNodeClassifier",
    "Results": "Suggestions Predictions Release Guarantee results.release_folder.ReleaseFolder",
    "The budget": "Ledger NoiseSource",
    "For the curator only": "evaluate audit flow.personalized_pagerank flow.push_flow "
    "flow.push_flow_cap",
    "Mechanisms": "mechanisms.Suggest mechanisms.TwoHop mechanisms.NodeClasses "
    "mechanisms.Aggregation mechanisms.OwnListEmbedding "
    "mechanisms.DegreePrior mechanisms.DPPushFlowCap "
    "mechanisms.DPPushFlow mechanisms.DPSparsePPR mechanisms.DPInstantEmbedding "
    "mechanisms.DPEmbeddingSparse mechanisms.EdgeFlipping "
    "mechanisms.OwnNeighbours mechanisms.NonPrivate mechanisms.Mechanism",
    "Data sets": "graph.datasets.LabelledGraph graph.datasets.social_network "
    "graph.datasets.load_blogcatalog graph.datasets.load_pos",
    "Errors": "errors.EdgeveilError errors.BudgetError errors.InputError errors.LedgerError "
    "errors.LossError errors.ParameterError errors.PromiseError errors.UnknownNodeError",
}


def cli_sections() -> str:
    """One section of Markdown per command, from the help that the command prints."""
    app = make_app()
    return "\n\n".join(
        section for name in COMMANDS for section in _sections(app[name], f"edgeveil {name}")
    )


def _sections(app: App, words: str) -> list[str]:
    inner = [name for name in app if not name.startswith("-")]
    if inner:
        return [part for name in inner for part in _sections(app[name], f"{words} {name}")]
    text = app.generate_docs(heading_level=2, usage_name=words)
    # The tool's own heading says only the last word of the command.
    text = re.sub(r"\A#+ .*", f"## {words}", text.strip())
    text = text.replace(" *[default: False]*", "")  # a flag that is not given
    return [re.sub(r"Example: (edgeveil .*)", r"Example: `\1`", text)]


def api_directives() -> str:
    """The public names in groups, each as a directive for mkdocstrings."""
    parts = []
    for title, names in _groups().items():
        parts.append(f"## {title}")
        parts += [f"::: edgeveil.{name}" for name in names]
    return "\n\n".join(parts)


def _groups() -> dict[str, list[str]]:
    public = set(edgeveil.__all__)
    groups = {title: names.split() for title, names in _GROUPS.items()}
    named = {name for names in groups.values() for name in names}
    if rest := sorted(public - named):
        groups["More"] = rest
    return groups


def api_table() -> str:
    """Every public name with its signature, one sentence and its file, for the repository."""
    parts = ["<!-- generated: api -->"]
    for title, names in _groups().items():
        parts += ["", f"## {title}", "", "| name | what it is | file |", "|---|---|---|"]
        parts += [_row(name) for name in names]
    return "\n".join([*parts, "<!-- end -->"])


def _row(name: str) -> str:
    found: Any = edgeveil
    for part in name.split("."):
        found = getattr(found, part, None) or import_module(f"{found.__name__}.{part}")
    sentence = (inspect.getdoc(found) or "").partition("\n\n")[0].replace("\n", " ")
    signature = _parameters(found).replace("|", "\\|")
    file = Path(inspect.getsourcefile(inspect.unwrap(found)) or "").relative_to(_ROOT).as_posix()
    sentence = sentence.replace("|", "\\|")
    return f"| `{name}{signature}` | {sentence} | [{Path(file).name}](../{file}) |"


def _parameters(found: Any) -> str:
    """The names of the parameters, with a default where there is one; "" for an error class."""
    if isinstance(found, type) and issubclass(found, Exception):
        return ""
    shown = []
    keyword_only = False
    for parameter in inspect.signature(found).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            shown.append("*")
        default = parameter.default
        simple = isinstance(default, str | int | float | None)
        given = "" if default is parameter.empty else f"={default!r}" if simple else "=..."
        star = {parameter.VAR_KEYWORD: "**", parameter.VAR_POSITIONAL: "*"}
        shown.append(star.get(parameter.kind, "") + parameter.name + given)
    return f"({', '.join(shown)})"
