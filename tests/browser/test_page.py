"""What a person does with the page, in a real browser.

That nothing but the file is asked for and that the console stays empty is checked at the end
of every test here, by the `visit` and `sample` fixtures.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import socket
from dataclasses import replace

import pytest

from edgeveil.evaluation.measurements import Result
from edgeveil.report import ListedNode, MemberList, PageData
from tests.browser.sample import EPSILONS, TOP, sample_page

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<!--<script>",
    "<img src=x onerror='window.hacked = 2'>",
    "\u2028window.hacked = 3\u2029",
    '"];window.hacked = 4;//',
    "${window.hacked = 5}$title",
    "\u202eright to left",
    "&lt;b&gt; &amp;",
    "\ud800 alone",
    "x" * 300,
]


def _ids(page, zone: str) -> list[str]:
    return page.locator(f".{zone} .part").evaluate_all("all => all.map(one => one.id)")


def test_all_sections_are_there_and_the_two_parts_are_apart(sample):
    page = sample
    heads = page.locator("h2").all_inner_texts()
    assert heads == ["For 7 alone", *["For the curator only: not private"] * 2]
    assert _ids(page, "releasable") == ["list"]
    assert _ids(page, "curator") == ["accuracy", "truth", "notes", "numbers"]
    assert page.locator(".chart svg").count() == 2  # one for each data set
    frames = page.locator(".zone").evaluate_all("all => all.map(e => getComputedStyle(e).border)")
    assert frames[0] != frames[1] == frames[2]


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 800)])
def test_the_first_screen_shows_a_list_and_the_picture(visit, width, height):
    data = sample_page()
    short = [replace(member_list, rows=member_list.rows[:10]) for member_list in data.lists]
    rows = [r for r in data.results if (r.experiment, r.dataset) == ("ranking", "POS")]
    rows = [r for r in rows if (r.metric, r.scope) == ("Recall@100", "all nodes")]
    page = visit(replace(data, lists=short, results=rows), width=width, height=height).page
    page.locator(".chart svg").first.wait_for()
    for what in ("#list tbody", ".chart svg"):
        box = page.locator(what).first.bounding_box()
        assert box["y"] > 0
        assert box["y"] + box["height"] <= height, what
    left, right = (page.locator(f"#{part}").bounding_box() for part in ("list", "accuracy"))
    assert left["x"] + left["width"] <= right["x"], "they stand side by side"


def test_releasable_part_shows_the_release_and_no_truth(sample):
    data, page = sample_page(), sample
    part = page.locator(".releasable")
    rows = part.locator("tbody tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    first_list = data.lists[0]
    assert rows == [
        [str(i), str(row.node), f"{row.strength} {row.why}" if row.chance < 0.5 else row.why]
        for i, row in enumerate(first_list.rows, 1)
    ]
    assert first_list.remark in part.inner_text()
    shown = part.inner_text()
    assert "%" not in shown
    assert "of 100" not in shown, "numbers are behind a click"
    assert "could be rank" not in shown
    part.locator(".sure summary").click()
    assert f"{first_list.rows[3].node}: about 16 of 100 such names are there by chance." in (
        part.locator(".sure").inner_text()
    )
    part.locator(".sure summary").click()
    tip = part.locator(".strength").nth(3).get_attribute("title")
    assert tip == "about 16 of 100 such names are there by chance"
    words = part.text_content().lower()
    assert "✓" not in words
    assert "hidden friend" not in words
    assert "accuracy" not in words


def test_a_ranking_shows_the_ranks_that_noise_leaves_open(visit):
    data = sample_page()
    [ranking] = [
        member_list
        for member_list in data.lists
        if (member_list.member, member_list.mechanism, member_list.epsilon) == (7, "two hops", 1)
    ]
    page = visit(replace(data, lists=[ranking])).page
    shown = page.locator("#list td.places").all_inner_texts()
    assert shown == [f"{row.first} to {row.last}" for row in ranking.rows]
    assert "could be rank" in page.locator("#list thead").inner_text()
    assert page.locator(".sure, .strength").count() == 0


def test_the_exact_promise_can_be_opened(sample):
    data, page = sample_page(), sample
    covered, rest = data.lists[0].promise.split(" Not covered: ")
    promise = page.locator(".promise")
    assert promise.locator("p").first.inner_text() == "In short."
    assert covered not in promise.inner_text()
    assert rest not in promise.inner_text()
    promise.locator("summary").click()
    assert covered in promise.inner_text()
    assert rest in promise.inner_text()
    total = sum(2 * EPSILONS)
    assert f"learns up to ε = {total:g}, not ε = {EPSILONS[0]:g}" in promise.inner_text()
    promise.locator("summary").click()


def test_a_seeded_list_is_not_shown_as_releasable(visit):
    data = sample_page()
    seeded = [replace(member_list, private=False) for member_list in data.lists]
    for lists in (seeded, [seeded[0], *data.lists[1:]]):
        page = visit(replace(data, lists=lists)).page
        assert page.locator(".releasable").count() == 0
        assert page.locator("h2").first.inner_text() == "Not private: do not pass it on"
    page.locator("main > .controls").get_by_role("radio", name="0.2", exact=True).check()
    assert page.locator(".releasable h2").inner_text() == "For 7 alone"


def test_epsilon_mechanism_and_member_are_chosen_for_both_parts(visit):
    data = sample_page()
    page = visit(data).page
    wanted = {"member": 7, "mechanism": "suggest", "epsilon": EPSILONS[0]}
    for name, value in [("epsilon", 5.0), ("mechanism", "two hops"), ("member", 412)]:
        text = f"{value:g}" if name == "epsilon" else str(value)
        radio = page.locator("main > .controls").get_by_role("radio", name=text, exact=True)
        radio.check()
        assert radio.evaluate("radio => radio === document.activeElement"), "focus was lost"
        wanted[name] = value
        chosen = next(
            member_list
            for member_list in data.lists
            if all(getattr(member_list, n) == v for n, v in wanted.items())
        )
        shown = [str(row.node) for row in chosen.rows]
        for part in ("#list", "#truth"):
            table = page.locator(f"{part} table").first
            assert table.locator("td:nth-child(2)").all_inner_texts() == shown
        caption = page.locator("#list caption").inner_text()
        assert caption.startswith(f"For {chosen.member}")
        assert page.locator("#list h3").inner_text() == f"Private list, ε = {chosen.epsilon:g}"


def test_the_truth_is_marked_on_every_list_of_the_member(sample):
    data, page = sample_page(), sample
    assert "✓ is one of 5 hidden friends." in page.locator("#truth").inner_text()
    for i, member_list in enumerate([data.lists[0], *data.lists[16:18]]):
        table = page.locator("#truth table").nth(i)
        marks = table.locator("td.right").evaluate_all("all => all.map(e => e.textContent)")
        assert marks == ["✓" if row.right else "" for row in member_list.rows]
        assert table.locator("caption").inner_text().endswith(f": {marks.count('✓')} of {TOP}")
    assert page.locator("#truth table").count() == 3


def test_switches_change_the_charts(visit):
    page = visit(sample_page()).page
    charts = page.locator(".panels")
    page.locator(".chart svg").first.wait_for()
    pictures = [charts.inner_html()]
    for option in ["NDCG@100", "non-neighbours", "classification"]:
        radio = page.locator("#accuracy").get_by_role("radio", name=option, exact=True)
        radio.check()
        assert radio.evaluate("radio => radio === document.activeElement"), "focus was lost"
        page.locator(".chart svg").first.wait_for()
        pictures.append(charts.inner_html())
    assert len(set(pictures)) == len(pictures)
    assert "Micro-F1" in charts.inner_text()
    assert "Hollow markers" in page.locator("#accuracy .key").inner_text()
    assert page.locator(".chart svg").count() == 1


def test_mechanisms_can_be_hidden(visit):
    page = visit(sample_page()).page
    label = page.locator(".chart svg").first.get_by_text("edge flipping")
    label.wait_for()
    button = page.locator(".legend").get_by_role("button", name="edge flipping")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert label.count() == 0
    button.click()
    assert label.count() == 1


def test_numbers_appear_by_mouse_and_by_keyboard(visit):
    page = visit(sample_page()).page
    chart = page.locator(".chart").first
    chart.locator("svg").wait_for()
    chart.focus()
    page.keyboard.press("ArrowRight")
    tip = chart.locator("svg").get_by_text("80 sources")
    tip.first.wait_for()
    assert "80 sources × " in chart.locator("[aria-live]").inner_text()
    page.keyboard.press("Escape")
    assert tip.count() == 0
    chart.locator('svg [class*="series-mark-"] path').last.hover()
    tip.first.wait_for()


def test_a_phone_needs_no_sideways_scrolling(visit):
    long_names = replace(
        sample_page(mark="a-rather-long-member-name-without-any-space-"),
        title="Pneumonoultramicroscopicsilicovolcanoconiosis " * 3,
    )
    for data in (sample_page(), long_names):
        page = visit(data, width=390, height=844, has_touch=True, is_mobile=True).page
        page.locator(".chart svg").first.wait_for()
        page.locator(".promise summary").click()
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
        assert page.evaluate("innerWidth") == 390


def test_chart_labels_do_not_overlap_and_dashes_differ(visit):
    data = sample_page()
    close = [
        replace(row, epsilon=1.05, mean=row.mean, low=row.low, high=row.high)
        for row in data.results
        if row.epsilon == 1.0
    ]
    for width in (390, 1280):
        page = visit(replace(data, results=[*data.results, *close]), width=width, height=844).page
        chart = page.locator(".chart svg").first
        chart.wait_for()
        boxes = chart.locator("text").evaluate_all(
            """all => all.filter(e => e.textContent.trim()).map(e => {
                const b = e.getBoundingClientRect();
                return [e.textContent, b.left, b.right, b.top, b.bottom];
            })"""
        )
        assert len(boxes) > 6
        for (first_label, *a), (second_label, *b) in itertools.combinations(boxes, 2):
            apart = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] + 2 or b[3] <= a[2] + 2
            assert apart, f"{first_label} and {second_label} overlap at width {width}"
        lines = page.locator(".legend button").evaluate_all(
            "all => all.map(b => b.querySelector('[stroke-dasharray]')"
            "?.getAttribute('stroke-dasharray') ?? 'none')"
        )
        assert len(lines) == 8
        assert len(set(lines)) == 8


def test_dark_and_light(visit):
    ground = "getComputedStyle(document.body).backgroundColor"
    grounds = {}
    for scheme in ("light", "dark"):
        page = visit(sample_page(), color_scheme=scheme).page
        grounds[scheme] = page.evaluate(ground)
        page.locator("#theme").click()
        grounds[f"{scheme}, switched"] = page.evaluate(ground)
    assert grounds["light"] != grounds["dark"]
    assert grounds["light, switched"] == grounds["dark"]
    assert grounds["dark, switched"] == grounds["light"]


def test_reduced_motion_is_respected(visit):
    page = visit(sample_page(), reduced_motion="reduce").page
    page.locator(".chart svg").first.wait_for()
    moving = page.evaluate(
        "[...document.querySelectorAll('*')].filter(e => getComputedStyle(e).transitionDuration"
        ".split(',').some(d => parseFloat(d) > 0)).length"
    )
    assert moving == 0


def test_controls_have_names_and_headings_are_in_order(sample):
    page = sample
    page.locator(".chart svg").first.wait_for()
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, a, input, select, [tabindex], [role=img]')]
        .filter(e => !(e.ariaLabel || e.labels?.[0]?.innerText || e.textContent.trim()))
        .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map(e => +e.tagName[1])")
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


def _downloaded(page) -> list[dict[str, str]]:
    with page.expect_download() as download:
        page.locator("#numbers a[download]").click()
    assert download.value.suggested_filename == "edgeveil-numbers.csv"
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(io.StringIO(file.read())))


def test_the_csv_holds_the_numbers(visit):
    data = sample_page()
    strange = replace(data.results[0], dataset='=1+1, "quoted"\nline', mean=0.1 + 0.2)
    page = visit(replace(data, results=[strange, *data.results[1:]])).page
    rows = _downloaded(page)
    assert len(rows) == len(data.results)
    assert rows[0]["dataset"] == '\'=1+1, "quoted"\nline'  # no spreadsheet runs it
    assert float(rows[0]["mean"]) == 0.1 + 0.2
    assert rows[0]["paper_value"] == ""
    last, given = rows[-1], data.results[-1]
    assert (last["mechanism"], last["epsilon"], float(last["paper_value"])) == (
        given.mechanism, "", given.paper_value,
    )  # fmt: skip
    page.locator("#numbers").get_by_role("radio", name="POS").check()
    page.locator("#numbers").get_by_role("radio", name="NDCG@100").check()
    expected = [r for r in data.results if (r.dataset, r.metric) == ("POS", "NDCG@100")]
    rows = _downloaded(page)
    assert [float(row["mean"]) for row in rows] == [row.mean for row in expected]


def test_the_table_sorts_and_shows_all(visit):
    data = sample_page()
    page = visit(data).page
    table = page.locator("#numbers table")
    head = table.get_by_role("button", name="mean")
    means = sorted(row.mean for row in data.results)
    for extreme, order in [(means[0], "ascending"), (means[-1], "descending")]:
        head.click()
        assert table.locator(f"th[aria-sort={order}]").inner_text().startswith("mean")
        assert float(table.locator("tbody tr").first.locator("td").nth(6).inner_text()) == (
            pytest.approx(extreme, abs=0.06)
        )
    page.get_by_role("button", name="Show all").click()
    assert table.locator("tbody tr").count() == len(data.results)


def _hostile_page() -> PageData:
    rows = [
        ListedNode(node=text, score=-1e-7 * i, first=1, last=i, why=f"{text}", right=i % 2 == 0)
        for i, text in enumerate([*HOSTILE, 2**63 - 1], 1)
    ]
    return PageData(
        title=HOSTILE[0],
        summary=HOSTILE,
        notes=HOSTILE,
        lists=[
            MemberList(
                dataset=text, member=text, mechanism=text, epsilon=1.0, private=True, rows=rows,
                promise=text, remark=text, truth=text,
            )
            for text in HOSTILE
        ],
        results=[
            Result.of(
                0.5, experiment="e", dataset=text, mechanism=text, epsilon=epsilon, metric="m",
                scope="s", n_sources=1, repeats=1,
            )
            for text in HOSTILE for epsilon in (None, 1.0)
        ],
    )  # fmt: skip


def test_hostile_ids_are_text(visit):
    page = visit(_hostile_page()).page
    page.locator(".chart svg").first.wait_for()
    assert page.locator("h1").text_content() == HOSTILE[0]
    shown = page.locator("#list tbody td:nth-child(2)").evaluate_all(
        "all => all.map(cell => cell.textContent)"
    )
    assert shown[:8] == HOSTILE[:8]
    assert shown[9] == HOSTILE[9]
    assert shown[10] == "9223372036854775807"
    page.locator("main > .controls select").first.select_option(index=2)
    assert page.evaluate("window.hacked") is None
    assert page.locator("script").count() == 2
    assert page.locator("img, b:not(.right, .track b)").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_content_policy_forbids_requests_and_other_scripts(visit):
    seen = visit(PageData(title="policy"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        outcome = seen.page.evaluate(
            """async (address) => {
                const script = document.createElement('script');
                script.textContent = 'window.hacked = 1';
                document.body.append(script);
                const image = new Image();
                image.src = address;
                await new Promise((done) => (image.onerror = done));
                try { await fetch(address); return 'sent'; }
                catch { return window.hacked ? 'ran' : 'refused'; }
            }""",
            address,
        )
        assert outcome == "refused"
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()
    refused = [words for words in seen.complaints if "Content Security Policy" in words]
    assert {"script-src", "img-src", "connect-src"} <= set(
        re.findall(r"[a-z]+-src", "".join(refused))
    )
    seen.complaints.clear()
    seen.requests.clear()  # attempts, stopped by the policy


def test_sections_without_data_are_left_out(visit):
    page = visit(PageData(title="Nothing yet")).page
    assert page.locator("h1").inner_text() == "Nothing yet"
    assert page.locator("section").count() == 0
    assert page.locator(".controls").count() == 0
    data = sample_page()
    some = [
        (("notes",), ["notes"]),
        (("results",), ["accuracy", "numbers"]),
        (("lists",), ["list", "truth"]),
    ]
    for names, parts in some:
        page = visit(PageData(title="some", **{name: getattr(data, name) for name in names})).page
        shown_parts = page.locator(".part").evaluate_all("all => all.map(one => one.id)")
        assert shown_parts == parts, names


def test_one_point_levels_only_and_missing_intervals_are_drawn(visit):
    common = {"experiment": "e", "metric": "m", "scope": "s", "n_sources": 1, "repeats": 1}
    rows = [
        Result.of(0.5, dataset="one point", mechanism="a", epsilon=1.0, **common),
        Result.of(0.5, dataset="level", mechanism="b", epsilon=None, **common),
        Result.of(0.0, dataset="zero", mechanism="c", epsilon=0.0, **common),
        Result.of(-3.0, dataset="both", mechanism="d", epsilon=0.0, **common),
        Result.of(300.0, dataset="both", mechanism="d", epsilon=9.0, **common),
    ]
    page = visit(PageData(title="few", results=rows)).page
    page.locator(".chart svg").nth(3).wait_for()
    assert "NaN" not in page.locator(".panels").inner_html()


def test_the_chart_opens_on_the_degree_group_of_the_member(visit):
    data = sample_page()
    rows = [r for r in data.results if (r.experiment, r.metric) == ("ranking", "Recall@100")]
    groups = {7: "non-neighbours", 412: "lift"}
    lists = [replace(member_list, group=groups[member_list.member]) for member_list in data.lists]
    page = visit(replace(data, lists=lists, results=rows)).page

    def shown() -> str:
        page.locator(".chart svg").first.wait_for()
        return page.locator(".panel figcaption span").first.inner_text()

    assert shown() == "Recall@100 · non-neighbours"
    controls = page.locator("main > .controls")
    page.locator("#accuracy").get_by_role("radio", name="all nodes", exact=True).check()
    controls.get_by_role("radio", name="5", exact=True).check()
    assert shown() == "Recall@100 · all nodes", "another epsilon of the same member changes nothing"
    controls.get_by_role("radio", name="412", exact=True).check()
    assert shown() == "Recall@100 · lift"


def test_empty_column_is_not_drawn_but_stays_in_the_csv(visit):
    data = sample_page()
    rows = [replace(row, paper_value=None) for row in data.results]
    page = visit(replace(data, results=rows)).page
    heads = page.locator("#numbers th").all_inner_texts()
    assert "paper" not in " ".join(heads)
    assert len(heads) == 11
    assert page.locator("#numbers tbody tr").first.locator("td").count() == 11
    assert "paper_value" in _downloaded(page)[0]
