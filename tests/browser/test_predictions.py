"""The page of predicted classes, in a real browser."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from edgeveil.report import PageData

NAMES = ["bank", "person", "shop"]


def predictions(names: list[str] | None = None) -> dict[str, Any]:
    """Made up: what a page of predictions holds."""
    classes = names or NAMES
    n = len(classes)
    confusion = [[20.0 if i == j else float((i + j) % 2) for j in range(n)] for i in range(n)]
    return {
        "classes": classes,
        "predicted": [100 + i for i in range(n)],
        "n_nodes": 1234,
        "n_labelled": 700,
        "n_abstained": 0,
        "threshold": 0.0,
        "epsilon": 0.5,
        "private": True,
        "promise": "Anyone may see this. Protected: every edge of the graph.",
        "in_short": "Anyone may see this page. Not protected: labels.",
        "uses_graph": True,
        "without": "features alone",
        "noise": 2.0,
        "quality": {
            "count": int(sum(map(sum, confusion))),
            "coverage": 1.0,
            "accuracy": 0.84,
            "low": 0.8,
            "high": 0.87,
            "without": 0.52,
            "confusion": confusion,
            "recall": [0.9, None, *[0.5] * (n - 2)],
            "precision": [0.8, 0.7, *[None] * (n - 2)],
            "average_precision": [0.6] * n,
            "average_precision_without": [0.2] * n,
            "calibration": [(0.35, 0.3, 10), (0.95, 0.99, 50)],
        },
        "examples": [
            {"node": f"n{c}-{i}", "predicted": c, "probability": 0.9999, "without": 0.1,
                         "heard": [4.25, -1.5]}
            for c in range(n) for i in range(3)
        ],
    }  # fmt: skip


def test_accuracy_is_beside_features_alone_below_protection(visit):
    page = visit(PageData(title="Accounts", predictions=predictions()), width=1200).page
    page.locator(".bars svg").wait_for()
    assert page.locator(".releasable h2").inner_text() == "Predicted classes, for anyone: ε = 0.5"
    shown = page.locator(".bars svg").text_content()
    for words in ("with the graph: 84 %", "features alone: 52 %"):
        assert words in shown
    assert "labelled nodes set aside" in page.locator("#quality").inner_text()
    promise = page.locator(".promise")
    assert promise.bounding_box()["y"] < page.locator(".bars").bounding_box()["y"]
    assert "Not protected: labels." in promise.inner_text()
    assert "every edge of the graph" not in promise.inner_text()
    promise.locator("summary").click()
    assert "every edge of the graph" in promise.inner_text()


def test_every_class_has_its_mistakes_and_measures(visit):
    page = visit(PageData(title="Accounts", predictions=predictions()), width=1200).page
    page.locator(".matrix svg").wait_for()
    assert page.locator('.matrix [aria-label="cell"] rect').count() == 2 * 3 * 3
    numbers = page.locator(".matrix svg text").all_text_contents()
    assert numbers.count("20") == 3
    assert page.locator('.calibration [aria-label="dot"] circle').count() == 2
    rows = page.locator(".by-class tbody tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert rows[0] == ["bank", "100", "21", "90 %", "80 %", "60 %", "20 %"]
    assert rows[1][3] == "–"
    heads = page.locator(".by-class th").all_inner_texts()
    assert heads[-1] == "average precision, features alone"


def test_class_examples_show_surest_nodes_with_noisy_sums(visit):
    page = visit(PageData(title="Accounts", predictions=predictions())).page
    page.locator("#examples").get_by_role("radio", name="shop", exact=True).check()
    rows = page.locator(".examples tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["n2-0", "n2-1", "n2-2"]
    assert "> 99.9 %" in rows[0]
    assert "4.3 and −1.5" in rows[0]
    assert "The noise is about 2 in each number" in page.locator("#examples").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("classes", [3, 30, 90])
def test_many_classes_on_a_phone_need_no_sideways_scrolling(visit, classes, scheme):
    names = [f"dormitory {i} of a rather long street" for i in range(classes)]
    data = PageData(title="Dormitories", predictions=predictions(names))
    page = visit(data, width=390, height=844, is_mobile=True, color_scheme=scheme).page
    page.locator(".matrix svg").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate("innerWidth") == 390
    assert page.locator(".by-class tbody tr").count() == classes


@pytest.mark.parametrize("count", [4, 10, 12])
def test_names_of_classes_above_the_matrix_do_not_touch(visit, count):
    years = [str(2006 + i) for i in range(count)]
    page = visit(PageData(title="Years", predictions=predictions(years)), width=390).page
    page.locator(".matrix svg").wait_for()
    names = page.locator('.matrix [aria-label="x-axis tick label"] text')
    assert names.all_text_contents() == years
    turned = names.first.evaluate("e => e.getCTM().b !== 0")
    boxes = names.evaluate_all("all => all.map(e => [e.getBBox().width, e.getCTM().e])")
    gap = min(b[1] - a[1] - a[0] for a, b in pairwise(boxes))
    assert turned or gap >= 3


def test_without_a_sample_or_privacy_the_page_says_so(visit):
    few = predictions() | {"quality": None}
    page = visit(PageData(title="Few", predictions=few)).page
    assert "there are too few labels" in page.locator("#quality").inner_text()
    assert page.locator("#mistakes").count() == 0
    seeded = predictions() | {"private": False, "in_short": "", "promise": "NOT PRIVATE: seeded"}
    page = visit(PageData(title="Seeded", predictions=seeded)).page
    assert page.locator(".releasable").count() == 0
    assert page.locator("h2").first.inner_text() == "Not private: do not pass it on"
    assert "may be published" not in page.locator("main").inner_text()
    assert "NOT PRIVATE" in page.locator(".promise").inner_text()


def test_html_in_class_and_node_names_stays_text(visit):
    hostile = "<img src=x onerror='window.hacked = 1'></script>"
    section = predictions([hostile, "b", "c"])
    examples = [section["examples"][0] | {"node": hostile}]
    page = visit(PageData(title="t", predictions=section | {"examples": examples})).page
    page.locator(".matrix svg").wait_for()
    assert page.locator(".by-class td").first.text_content() == hostile
    assert page.locator(".examples td").first.text_content() == hostile
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
