"""Pages in a real browser. Without Chromium these tests are skipped; with it they must run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from edgeveil.report import PageData, write_page
from tests.browser.sample import sample_page


@dataclass
class Visit:
    """An open page, with all that it asked for and complained about."""

    page: Any
    file: Path
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@contextmanager
def visiting(browser, folder: Path) -> Iterator[Callable[..., Visit]]:
    """Write a page and open it, one at a time; no page may ask for anything but its file."""
    visits: list[Visit] = []

    def go(data: PageData, *, width: int = 1440, height: int = 900, **options: Any) -> Visit:
        if visits:
            visits[-1].page.context.close()
        file = folder / f"report-{len(visits)}.html"
        write_page(file, data)
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        page = context.new_page()
        page.set_default_timeout(60_000)
        seen = Visit(page, file)
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("console", lambda message: seen.complaints.append(message.text))
        page.goto(file.as_uri())
        visits.append(seen)
        return seen

    yield go
    for seen in visits:
        seen.page.context.close()
        foreign = [
            u for u in seen.requests if u != seen.file.as_uri() and not u.startswith("data:")
        ]
        assert not foreign, "the page asked for something"
        assert not seen.complaints, "the page complained on the console"


@pytest.fixture
def visit(browser, tmp_path) -> Iterator[Callable[..., Visit]]:
    """Pages of one test."""
    with visiting(browser, tmp_path) as go:
        yield go


@pytest.fixture(scope="module")
def sample(browser, tmp_path_factory) -> Iterator[Any]:
    """The sample, opened once for all tests that only look at it."""
    with visiting(browser, tmp_path_factory.mktemp("sample")) as go:
        yield go(sample_page()).page
