"""The file itself: no browser needed."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import edgeveil.report
from edgeveil.errors import ParameterError
from edgeveil.evaluation.measurements import Result
from edgeveil.report import ListedNode, MemberList, PageData, render_page, write_page
from tests.browser.sample import sample_page

ASSETS = Path(edgeveil.report.__file__).parent
SOURCE = Path(__file__).parents[2] / "report-page"
LIMIT = 1_000_000


class _Reader(HTMLParser):
    """Elements that can load or run something, and the embedded data."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def _embedded(text: str) -> dict:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(match.group(1))


def test_the_page_is_small_and_names_no_other_file(tmp_path, figure):
    path = tmp_path / "report.html"
    write_page(path, sample_page())
    size = path.stat().st_size
    figure("report page, full sample", f"{size / 1000:.0f} kB")
    assert size < LIMIT
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    for tag, attributes in reader.elements:
        assert tag not in {"iframe", "object", "embed", "base", "img", "video", "audio"}
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "data:image/svg+xml,"))
    style = (ASSETS / "page.css").read_text(encoding="utf-8")
    assert not re.search(r"url\(|@import|@font-face", style)


def test_data_cannot_leave_its_element():
    hostile = "</script><script>alert(1)</script><!-- ]]> & \u2028\u2029 \ud800"
    plain = render_page(PageData(title="t"))
    text = render_page(PageData(title="t", notes=[hostile], summary=[hostile]))
    assert _embedded(text)["notes"] == [hostile]
    assert text.count("<script") == plain.count("<script")
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1)
    assert data.isascii()
    assert not set("<>&") & set(data)


def test_placeholders_in_the_data_stay_as_they_are():
    text = render_page(PageData(title="$data ${script}", notes=["$title"]))
    assert "<h1>$data ${script}</h1>" in text
    assert _embedded(text)["notes"] == ["$title"]


def test_page_takes_numpy_numbers():
    row = Result.of(
        0.5, experiment="e", dataset="d", mechanism="m", epsilon=np.float64(1), metric="r",
        scope="s", n_sources=np.int64(3), repeats=np.int32(2),
    )  # fmt: skip
    node = ListedNode(
        node=np.int64(7), score=np.float32(0.25), first=np.int64(2), last=np.int32(9),
        right=np.bool_(True), chance=np.float64(0.5), strength="weak",
    )  # fmt: skip
    member_list = MemberList(
        dataset="d", member=np.int64(1), mechanism="m", epsilon=1, private=np.True_, rows=[node]
    )
    exact = replace(row, epsilon=float("inf"))
    data = _embedded(render_page(PageData(title="t", results=[row, exact], lists=[member_list])))
    assert data["results"]["rows"] == [
        ["e", "d", "m", epsilon, "r", "s", 0.5, 0.5, 0.5, 3, 2, None] for epsilon in (1.0, None)
    ]
    assert data["lists"][0]["rows"] == [["7", 0.25, 2, 9, "", True, 0.5, "weak"]]


def test_page_refuses_nan_and_infinity():
    row = sample_page().results[0]
    for mean in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON"):
            render_page(PageData(title="t", results=[replace(row, mean=mean)]))


def test_a_wrong_list_is_refused():
    member_list = sample_page().lists[0]
    with pytest.raises(ParameterError, match="set private=False"):
        replace(member_list, epsilon=None)
    for epsilon in (-1.0, float("inf")):
        with pytest.raises(ParameterError, match="epsilon must be None or a finite number"):
            replace(member_list, epsilon=epsilon)
    with pytest.raises(ParameterError, match="score must be a finite number"):
        replace(member_list.rows[0], score=float("nan"))


def _contrast(first: str, second: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (
            c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_have_enough_contrast(dark):
    style = (ASSETS / "page.css").read_text(encoding="utf-8")
    colour = {
        name: (second if dark else first)
        for name, first, second in re.findall(
            r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style
        )
    }
    series = [name for name in colour if name.startswith("series-")]
    assert len(series) == 8
    for ground in ("surface", "ground"):
        for name in ("ink", "muted", "accent", "warn"):
            assert _contrast(colour[name], colour[ground]) >= 4.5, (name, ground)
    for name in series:
        assert _contrast(colour[name], colour["surface"]) >= 4.5, name
    for name in ("ink", "muted", "accent"):
        assert _contrast(colour[name], colour["accent-soft"]) >= 4.5, name
    for name in ("ink", "warn"):
        assert _contrast(colour[name], colour["warn-soft"]) >= 4.5, name
    assert _contrast(colour["line-strong"], colour["surface"]) >= 3  # frames of controls


def _stamp() -> str:
    """As report-page/build.mjs computes it."""
    names = ["build.mjs", "package-lock.json", "package.json"]
    names += [f"src/{file.name}" for file in (SOURCE / "src").iterdir()]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(f"{name}\0".encode() + (SOURCE / name).read_bytes() + b"\0")
    return digest.hexdigest()


def test_the_bundle_was_built_from_this_source():
    first = (ASSETS / "page.js").read_text(encoding="utf-8").split("\n", 1)[0]
    assert first == f"/*! edgeveil report page, source {_stamp()}", (
        "report-page/ changed: npm ci && npm run check && npm run build in that folder"
    )


def test_the_source_builds_the_bundle(tmp_path):
    node = shutil.which("node")
    if not node or not (SOURCE / "node_modules" / "esbuild").exists():
        pytest.skip("needs node, and npm ci in report-page/")
    built = tmp_path / "page.js"
    subprocess.run([node, str(SOURCE / "build.mjs"), str(built)], check=True, timeout=60)
    assert built.read_bytes() == (ASSETS / "page.js").read_bytes()


def test_bundle_carries_licences_and_source_parses_no_html():
    bundle = (ASSETS / "page.js").read_text(encoding="utf-8")
    packages = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))
    plot = packages["dependencies"]["@observablehq/plot"]
    assert f"@observablehq/plot {plot}" in bundle
    assert "Permission to use, copy, modify, and/or distribute this software" in bundle
    for file in (SOURCE / "src").iterdir():
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


def test_versions_are_exact_and_no_registry_is_named():
    packages = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))
    for version in (packages["dependencies"] | packages["devDependencies"]).values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    lock = (SOURCE / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert "://" not in lock
