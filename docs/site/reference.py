"""The references: made from the commands' own help and the functions' own docstrings."""

from __future__ import annotations

import re

from cyclopts import App

import edgeveil
from edgeveil.cli.app import COMMANDS, make_app

__all__ = ["api_directives", "cli_sections"]

# The order in which people meet things; what is not named here follows, so nothing is lost.
_GROUPS = {
    "Reading graphs": "as_graph read_graph open_graph save_graph io.build_graph Graph NodeSet "
    "History history.Snapshot",
    "Releasing": "refresh suggest rank embed release release_to price recommended PrivateEmbedding",
    "Results": "Suggestions Release Guarantee release_folder.ReleaseFolder",
    "The budget": "Ledger NoiseSource",
    "For the curator only": "evaluate audit flow.personalized_pagerank flow.push_flow "
    "flow.push_flow_cap",
    "Mechanisms": "mechanisms.Suggest mechanisms.TwoHop mechanisms.OwnListEmbedding "
    "mechanisms.DegreePrior mechanisms.DPForwardCap mechanisms.DPPushFlowCap "
    "mechanisms.DPPushFlow mechanisms.DPSparsePPR mechanisms.DPInstantEmbedding "
    "mechanisms.DPEmbeddingSparse mechanisms.EdgeFlipping mechanisms.GraphDiffusion "
    "mechanisms.OwnNeighbours mechanisms.NonPrivate mechanisms.Mechanism",
    "Data sets": "datasets.LabelledGraph datasets.social_network "
    "datasets.load_blogcatalog datasets.load_pos",
    "Errors": "errors.EdgeveilError errors.BudgetError errors.InputError errors.LedgerError "
    "errors.ParameterError errors.PromiseError errors.UnknownNodeError",
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
    public = set(edgeveil.__all__)
    groups = {title: names.split() for title, names in _GROUPS.items()}
    named = {name for names in groups.values() for name in names}
    if rest := sorted(public - named):
        groups["More"] = rest
    parts = []
    for title, names in groups.items():
        parts.append(f"## {title}")
        parts += [f"::: edgeveil.{name}" for name in names]
    return "\n\n".join(parts)
