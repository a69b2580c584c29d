"""The built site in a real browser without a network: nothing is asked for, search works."""

from __future__ import annotations

import pytest


@pytest.fixture
def offline(browser):
    context = browser.new_context(offline=True)
    yield context
    context.close()


def test_pages_ask_for_nothing_but_their_own_files(offline, site):
    page = offline.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    for name in ("index", "tutorial", "choosing", "how-it-works", "api", "theory/noise"):
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_load_state("networkidle")
        assert page.locator("h1").count() == 1
        for picture in page.locator("article img").all():
            assert picture.evaluate("image => image.complete && image.naturalWidth > 0")
    page.close()
    assert asked
    assert [url for url in asked if not url.startswith(site.as_uri()) and url[:5] != "data:"] == []
    assert complaints == []


def test_the_browser_is_told_to_refuse_everything_from_elsewhere(offline, site):
    page = offline.new_page()
    page.goto((site / "index.html").as_uri())
    refused = page.evaluate(
        """new Promise(done => {
            document.addEventListener("securitypolicyviolation", e => done(e.blockedURI))
            document.body.append(Object.assign(new Image(), {src: "https://cdn.example/x.png"}))
        })"""
    )
    page.close()
    assert refused.startswith("https://cdn.example")


def test_search_finds_pages_from_disk(offline, site):
    page = offline.new_page()
    page.goto((site / "index.html").as_uri())
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Control+k")
    page.wait_for_timeout(500)  # the search's own animation; its parts cannot be waited for
    page.keyboard.type("collude", delay=50)
    page.wait_for_timeout(1000)
    page.keyboard.press("Enter")
    page.wait_for_url("**/faq.html*", timeout=10_000)
    assert page.url.endswith("#what-if-members-collude")
    page.close()
