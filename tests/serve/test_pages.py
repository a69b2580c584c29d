"""The two pages in a real browser, as they are served."""

from __future__ import annotations

import pytest

from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.saved import save_graph
from tests.serve.running import Service


@pytest.fixture
def visit(browser):
    """Open a page of the service; it may ask its own server only and complain of nothing."""
    contexts = []

    def go(url, **options):
        context = browser.new_context(**options)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.asked, page.complaints = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.goto(url)
        contexts.append(context)
        return page

    yield go
    for context in contexts:
        context.close()


def test_member_page_shows_words_and_numbers_on_click(visit, service, network):
    member = network.nodes[30]
    home = f"http://127.0.0.1:{service.port}/"
    page = visit(f"{home}#token={service.token(member)}")
    page.wait_for_selector("#budget:not([hidden])")
    lines = page.locator("#people li")
    assert lines.count() == 10
    tops = [page.locator(f"#{part}").bounding_box()["y"] for part in ("protection", "people")]
    assert tops == sorted(tops), "protection is said before the names"
    served = service.get(member=member).json["list"]["suggestions"]
    for at, line in enumerate(served):
        text = lines.nth(at).inner_text()
        assert line["node"] in text
        assert line["strength"] in text
        assert (line["why"] in text) or line["strength"] == "popular"
        assert "by chance" not in text
    assert "epsilon" not in page.locator("main").inner_text()
    lines.first.locator("summary").click()
    assert lines.first.locator(".numbers").is_visible()
    assert "do not show whether two other" in page.locator("#short").inner_text()
    page.locator("#protection summary").click()
    assert "factor of at most 2.72" in page.locator("#odds").inner_text()
    assert "50 %" in page.locator("#used").inner_text()
    page.locator("#budget summary").click()
    assert "1 of 2" in page.locator("#charged").inner_text()
    assert page.url == home  # the token is gone from the address
    assert all(url.startswith(home) for url in page.asked)
    assert not page.complaints
    page.reload()  # and kept for this tab
    page.wait_for_selector("#people li")


def test_the_page_works_by_keyboard_on_a_phone_and_in_the_dark(visit, service, network):
    url = f"http://127.0.0.1:{service.port}/#token={service.token(network.nodes[31])}"
    page = visit(url, viewport={"width": 360, "height": 740}, color_scheme="dark")
    page.wait_for_selector("#protection:not([hidden])")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.wait_for_selector("#people li")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#full").is_visible()
    assert "every edge that does not touch" in page.locator("#full").inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#people .numbers").first.is_visible()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = visit(f"http://127.0.0.1:{service.port}/").evaluate(
        "getComputedStyle(document.body).backgroundColor"
    )
    assert dark != light


def test_a_member_dismisses_a_name_undoes_it_and_opts_out(visit, own_service, network):
    running, member = own_service.start(), network.nodes[30]
    running.wait_for_list(member)
    page = visit(f"http://127.0.0.1:{running.port}/#token={running.token(member)}")
    page.wait_for_selector("#choices:not([hidden])")
    assert not page.locator("#not-interested").is_visible()
    name = page.locator("#people .who").first.evaluate("node => node.firstChild.data")
    page.get_by_role("button", name=f"Not interested in {name}", exact=True).click()
    page.locator("#dismissed", has_text=name).wait_for()
    page.wait_for_function("name => !document.getElementById('people').innerText.includes(name)",
                           arg=name)  # fmt: skip
    assert page.locator("#people li").count() == 10
    assert f"{name} is off your list" in page.locator("#done").inner_text()
    page.get_by_label("Suggest me to others").uncheck()
    page.locator("#done", has_text="not suggested to others any more").wait_for()
    assert running.get("/me/choices", member).json["suggest_me"] is False
    page.reload()
    page.wait_for_selector("#dismissed li")
    assert not page.get_by_label("Suggest me to others").is_checked()
    page.get_by_role("button", name=f"Undo: not interested in {name}").click()
    page.locator("#people", has_text=name).wait_for()
    assert not page.locator("#not-interested").is_visible()
    assert not page.complaints


def test_without_a_token_the_page_says_so(visit, service):
    page = visit(f"http://127.0.0.1:{service.port}/")
    page.wait_for_selector("#about.alarm")
    assert "this needs a valid token of a member" in page.locator("#about").inner_text()
    assert page.locator("#people li").count() == 0


def test_names_that_look_like_html_stay_names(visit, tmp_path):
    names = [f"<img src=x onerror=alert({i})>" for i in range(40)]
    u, v = zip(*[(i, (i + s) % 40) for i in range(40) for s in (1, 2, 3)], strict=True)
    running = Service(tmp_path, Graph.from_edges(u, v, NodeSet.of(names))).start()
    try:
        running.wait_for_list(names[0])
        page = visit(f"http://127.0.0.1:{running.port}/#token={running.token(names[0])}")
        page.wait_for_selector("#people li")
        assert page.locator("#people img").count() == 0
        assert "onerror" in page.locator("#people").inner_text()
        assert not page.complaints
    finally:
        running.stop()


def test_the_curator_sees_charges_requests_and_times(visit, service, network):
    service.get(member=network.nodes[32])
    home = f"http://127.0.0.1:{service.curator_port}/"
    page = visit(f"{home}#key={service.key}")
    page.wait_for_selector("#renewals td")
    assert "400" in page.locator("#facts").inner_text()
    assert "400" in page.locator("#series").inner_text()
    assert page.locator("#latency svg polyline").count() == 1
    assert "/me/suggestions" in page.locator("#requests").inner_text()
    assert page.url == home
    assert not page.complaints


def test_the_curator_without_the_key_sees_nothing(visit, service):
    page = visit(f"http://127.0.0.1:{service.curator_port}/")
    page.wait_for_selector("#about.alarm")
    assert page.locator("#facts dd").count() == 0


def test_a_newcomer_is_told_when_its_first_list_comes(visit, service):
    page = visit(f"http://127.0.0.1:{service.port}/#token={service.token('somebody new')}")
    page.wait_for_selector("#about.alarm")
    assert "first one with the next refresh" in page.locator("#about").inner_text()


def test_the_curator_refreshes_after_confirming_the_price(visit, own_service, network):
    running = own_service.start()
    running.wait_for_list(network.nodes[3])
    names = [*network.nodes, "somebody new"]
    u, v = network.adjacency().nonzero()
    save_graph(Graph.from_edges(u, v, NodeSet.of(names)), running.graph, overwrite=True)
    page = visit(f"http://127.0.0.1:{running.curator_port}/#key={running.key}")
    page.wait_for_selector("#series td")
    assert page.locator("#series tr").count() == 2  # the heads, and one series
    assert "400" in page.locator("#series").inner_text()
    assert page.locator("#renewals td").count() == 4
    assert not page.locator("#windows").is_visible()
    page.locator("summary", has_text="Windows by snapshot").click()
    assert page.locator("#windows").is_visible()
    assert page.locator("text=Exact counts: do not publish").is_visible()
    page.locator("#refresh").click()
    page.wait_for_selector("#confirm[open]")
    asked = page.locator("#confirm").inner_text()
    assert "Charges epsilon 1 to 1 newcomer, once for all their lists to come" in asked
    assert "nothing for everybody else" in asked
    page.locator("#cancel").click()
    assert running.open_ledger().account("somebody new").charged == 0
    page.locator("#refresh").click()
    page.locator("#charge").click()
    page.locator("#done", has_text="The refresh has begun").wait_for()
    running.wait_for_list("somebody new", 2)
    page.locator("#facts", has_text="Snapshot 2: 401 members have lists").wait_for()
    assert running.open_ledger().account("somebody new").charged == 1.0
    assert not page.complaints
