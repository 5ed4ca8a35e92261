"""Rules of the built site: every link leads somewhere, and nothing is loaded from elsewhere."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag

_LOADED: Final = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "use": ("href",),
    "image": ("href",),
}
"""Attributes whose address a browser fetches when it shows the page."""

_FOREIGN: Final = re.compile(r"(?:[a-z]+:)?//", re.IGNORECASE)
_IN_STYLES: Final = re.compile(
    r"(?:url\(|@import)\s*[\"']?\s*((?:[a-z]+:)?//[^\"')\s]*)", re.IGNORECASE
)
_IN_SCRIPTS: Final = re.compile(
    r"https?://(?:unpkg|cdn|cdnjs|fonts|esm|ajax)\b[\w.-]*/?", re.IGNORECASE
)
_NO_PLACE: Final = ("mailto:", "javascript:", "data:")


class _Page(HTMLParser):
    """Links of a page, addresses that it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif tag == "a" and name == "href":
                self.links.append(value)
            elif name in _LOADED.get(tag, ()):
                self.loaded.append(value)
            elif name == "style":
                self.loaded += _IN_STYLES.findall(value)


def _pages(site: Path) -> dict[Path, _Page]:
    pages = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    return pages


def broken_links(site: Path) -> Iterator[str]:
    """Links and files of the site's pages that are not in the site."""
    pages = _pages(site)
    for path, page in pages.items():
        for target in (*page.links, *page.loaded):
            if _FOREIGN.match(target) or target.startswith(_NO_PLACE):
                continue
            place, anchor = urldefrag(target)
            file = (path.parent / unquote(place)).resolve() if place else path
            if file.is_dir():
                file /= "index.html"
            where = path.relative_to(site)
            if not file.is_file():
                yield f"{where}: {target}: no such file"
            elif anchor and file in pages and unquote(anchor) not in pages[file].anchors:
                yield f"{where}: {target}: no such place on the page"


def foreign_addresses(site: Path) -> Iterator[str]:
    """Addresses outside the site that a page, a style or a script would load."""
    for path, page in _pages(site).items():
        yield from (f"{path.relative_to(site)}: {u}" for u in page.loaded if _FOREIGN.match(u))
    for pattern, endings in ((_IN_STYLES, ("css", "svg")), (_IN_SCRIPTS, ("js",))):
        for path in sorted(each for ending in endings for each in site.rglob(f"*.{ending}")):
            found = pattern.findall(path.read_text(encoding="utf-8"))
            yield from (f"{path.relative_to(site)}: {address}" for address in found)


def lonely_pages(site: Path) -> Iterator[str]:
    """Pages that no other page leads to."""
    pages = _pages(site)
    led_to = {site / "index.html"}
    for path, page in pages.items():
        for target in page.links:
            place, _ = urldefrag(target)
            if place and not _FOREIGN.match(place):
                file = (path.parent / unquote(place)).resolve()
                led_to.add(file / "index.html" if file.is_dir() else file)
    yield from (str(path.relative_to(site)) for path in pages if path not in led_to)
