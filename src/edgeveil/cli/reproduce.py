"""``edgeveil reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from edgeveil.cli.options import Flag, default
from edgeveil.cli.output import counted, say

__all__ = ["reproduce"]


def reproduce(
    experiment: Literal[
        "table1",
        "figure1",
        "figure2",
        "sigma",
        "residual",
        "tightness",
        "beyond",
        "embeddings",
        "all",
    ],
    /,
    *,
    data: Path = Path("data"),
    out: Path = Path("results"),
    quick: Flag = False,
    sources: Annotated[int | None, default("as many as the experiment has")] = None,
) -> None:
    """Repeat the paper's experiments and our own; write tables and figures.

    Stopped in the middle, the same command goes on where it stopped.
    Example: edgeveil reproduce figure1 --data data --out results --quick

    Parameters
    ----------
    experiment
        Which table or figure, or all of them.
    data
        Folder with POS.mat and blogcatalog.mat.
    out
        Folder for the results: OUT/EXPERIMENT/results.csv, figures, machine.json.
    quick
        Less of everything: each in under two minutes on a quiet machine.
    sources
        At most so many sources, where an experiment has any. A later run with more goes on
        from these.
    """
    from edgeveil.datasets import load_blogcatalog, load_pos
    from edgeveil.evaluation.experiments import EXPERIMENTS
    from edgeveil.evaluation.experiments import reproduce as run
    from edgeveil.report import write_page
    from edgeveil.report.reproduction import reproduction_page

    chosen = list(EXPERIMENTS) if experiment == "all" else [experiment]
    datasets = {}
    if any(EXPERIMENTS[name].needs_data for name in chosen):
        datasets = {"POS": load_pos(data), "BlogCatalog": load_blogcatalog(data)}
    for name in chosen:
        limited = sources is not None and "sources" in EXPERIMENTS[name].settings(quick)
        settings = {"sources": sources} if limited else None
        try:
            results = run(name, datasets, out, quick=quick, settings=settings)
        except KeyboardInterrupt:
            say(f"{name}: stopped; the same command goes on from here")
            raise
        say(f"{name}: {counted(len(results), 'result')} in {out / name}")
    write_page(out / "page.html", reproduction_page(out, datasets))
    say(f"the page: {out / 'page.html'}")
