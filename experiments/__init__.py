"""The paper's experiments and our own, each one module with the same three functions.

settings(quick)                      everything that decides the results, as plain data
measure(datasets, settings, cells)   the results, cell by cell
draw(results)                        the figure, or None
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edgeveil.errors import ParameterError
from edgeveil.evaluation.measurements import Result
from experiments.cells import Cells
from experiments.figures import draw_to_file
from experiments.results import write_machine_facts, write_results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from edgeveil.graph.datasets import LabelledGraph

__all__ = ["EXPERIMENTS", "Experiment", "reproduce"]


@dataclass(frozen=True)
class Experiment:
    """One experiment, loaded when first used."""

    name: str
    summary: str
    data: Literal["labelled", "friends", "attributed", "none"] = (
        "labelled"  # which data sets it needs
    )
    # Settings that choose which cells there are but change none: a larger run goes on from the
    # cells of a smaller one.
    selects: tuple[str, ...] = ()
    module: str = ""  # where it has another name: `time` is Python's own

    def _function(self, name: str) -> Callable[..., Any]:
        module = import_module(f"experiments.{self.module or self.name}")
        function: Callable[..., Any] = getattr(module, name)
        return function

    def settings(self, quick: bool) -> dict[str, Any]:
        """Everything that decides the results."""
        return dict(self._function("settings")(quick))

    def measure(
        self, datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
    ) -> list[Result]:
        """All results; finished cells are not computed again."""
        return list(self._function("measure")(datasets, settings, cells))

    def draw(self, results: list[Result]) -> Figure:
        """The figure."""
        figure: Figure = self._function("draw")(results)
        return figure


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "suggestions",
            "What privacy costs: hidden friends that private lists find, against epsilon.",
            data="friends",
            selects=(),
        ),
        Experiment(
            "time",
            "A year of weekly lists from one budget: hidden friends found, week by week.",
            data="friends",
            module="over_time",
        ),
        Experiment(
            "classification",
            "Classes of nodes, learnt for one epsilon, beside other methods.",
            data="attributed",
            selects=(
                *("datasets", "epsilons", "shares", "splits", "half", "rare"),
                *("peers", "peer_shares", "peer_splits", "embedded"),
                "shuffled_epsilons",
            ),
        ),
        Experiment("table1", "Sizes of the data sets."),
        Experiment(
            "figure1",
            "Accuracy of private rankings against epsilon.",
            selects=("epsilons", "sources", "flipping_sources"),
        ),
        Experiment(
            "figure2",
            "Node classification from private embeddings against epsilon.",
            selects=("datasets", "epsilons", "flipping_epsilons", "splits"),
        ),
        Experiment(
            "sigma",
            "Accuracy against the sensitivity sigma and epsilon.",
            selects=("sigmas", "epsilons"),
        ),
        Experiment(
            "residual",
            "Flow that is never pushed, joint and public, against sigma.",
            selects=("sigmas",),
        ),
        Experiment(
            "beyond",
            "Our mechanisms beside the paper's, at the same epsilon.",
            selects=("epsilons", "sources", "slow_sources"),
        ),
        Experiment(
            "embeddings",
            "The source's own list, which costs nothing, beside the paper's embedding.",
            selects=("datasets", "epsilons", "splits"),
        ),
        Experiment(
            "tightness",
            "Sensitivity of PageRank on cliques.",
            data="none",
            selects=("degrees",),
        ),
    )
}


def reproduce(
    name: str,
    datasets: Mapping[str, LabelledGraph],
    out: Path,
    *,
    quick: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> list[Result]:
    """Run an experiment and write its table, figure and machine facts to ``out/name``.

    After an interruption, the same call resumes.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    datasets : mapping
        Labelled graphs by name.
    out : Path
        Folder for the results.
    quick : bool
        Less of everything: under two minutes.
    settings : mapping, optional
        Replaces some of the experiment's settings.

    Returns
    -------
    list of Result
    """
    if name not in EXPERIMENTS:
        raise ParameterError(f"there is no experiment {name!r}; choose from {list(EXPERIMENTS)}")
    experiment = EXPERIMENTS[name]
    defaults = experiment.settings(quick)
    if strange := sorted(set(settings or ()) - set(defaults)):
        raise ParameterError(f"{name} has no setting {strange[0]!r}")
    used = {**defaults, **(settings or {})}
    identity = {
        **{key: value for key, value in used.items() if key not in experiment.selects},
        "experiment": name,
        "version": version("edgeveil"),
        "datasets": {key: data.graph.fingerprint for key, data in datasets.items()},
    }
    folder = out / name
    cells = Cells(folder / "parts", identity)
    results = experiment.measure(datasets, used, cells)
    write_results(folder / "results.csv", results)
    write_machine_facts(folder / "machine.json", cells.seconds, used)
    draw_to_file(folder / f"{name}.png", lambda: experiment.draw(results))
    return results
