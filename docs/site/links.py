"""Check a built site as a reader without a network would meet it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["complaints"]

# Tags whose address the browser fetches by itself.
_FETCHED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "link": "href",
}
_NOT_FETCHED = {"canonical", "alternate", "prev", "next", "author"}  # rel= of links that only say


class _Page(HTMLParser):
    """The anchors of a page, and the addresses that it names or loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "__skip"}
        self.named: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        for name in ("id", "name"):
            if found.get(name):
                self.anchors.add(found[name])
        if tag == "a" and "href" in found:
            self.named.append(found["href"])
        address = found.get(_FETCHED.get(tag, ""), "")
        if address and not (tag == "link" and found.get("rel") in _NOT_FETCHED):
            self.loaded.append(address)


def complaints(site: Path) -> list[str]:
    """What is wrong with the site: broken links, anchors and pictures, or foreign resources.

    Parameters
    ----------
    site : Path
        Folder with the built pages.
    """
    site = site.resolve()
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its addresses are absolute: it is shown at any path
        where = path.relative_to(site)
        found += [f"{where} loads {a} from elsewhere" for a in page.loaded if _is_foreign(a)]
        found += [
            f"{where}: {problem}"
            for address in page.loaded + page.named
            if not _is_foreign(address) and (problem := _problem(address, path, site, pages))
        ]
    for style in sorted(site.rglob("*.css")):
        text = style.read_text("utf-8")
        if "url(http" in text.replace('"', "").replace("'", "") or "url(//" in text:
            found.append(f"{style.relative_to(site)} loads from elsewhere")
    return found


def _is_foreign(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in ("http", "https", "mailto") or bool(parts.netloc)


def _problem(address: str, path: Path, site: Path, pages: dict[Path, _Page]) -> str:
    """Say what is wrong with an address inside the site; "" if nothing is."""
    parts = urlsplit(address)
    if parts.scheme in ("data", "javascript"):
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site) or not target.exists():
        return f"{address} does not exist"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return f"{address} has no such anchor"
    return ""
