"""``edgeveil theory``: the pages with the proofs, which come with the package."""

from __future__ import annotations

import sys
from pathlib import Path

from edgeveil._internal.words import did_you_mean
from edgeveil.errors import EdgeveilError, ParameterError


def theory(page: str | None = None, /) -> None:
    """Print the proof that a guarantee names, as Markdown; without a name, list all.

    Example: edgeveil theory suggestions

    Parameters
    ----------
    page : str, optional
        The page's name: "suggestions" is the one that a guarantee calls docs/theory/suggestions.md.
    """
    texts = _pages()
    if page is None:
        width = max(map(len, texts))
        for name, path in texts.items():
            sys.stdout.write(f"{name:{width}}  {_title(path)}\n")
        return
    name = page.rpartition("/")[2].removesuffix(".md")  # the whole path is understood, too
    if name not in texts:
        near = did_you_mean(name, texts) or "."
        raise ParameterError(f'there is no page "{name}"{near} There are: {", ".join(texts)}')
    sys.stdout.write(texts[name].read_text("utf-8"))


def _pages() -> dict[str, Path]:
    """The pages by name: of the installed package, or of the checkout that it is run from."""
    package = Path(__file__).parents[1]
    for folder in (package / "theory", package.parents[1] / "docs" / "theory"):
        if pages := {path.stem: path for path in sorted(folder.glob("*.md"))}:
            return pages
    raise EdgeveilError("the pages of theory are missing from this installation")


def _title(path: Path) -> str:
    return path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
