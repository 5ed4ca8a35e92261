"""Places of the repository's files in the site, and links of documents made to fit there.

A document links to files by their place in the repository, so that a forge shows it too. Pages
outside ``docs`` that a document leads to are in the site under a name of their own.
"""

import posixpath
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

PAGES: Final = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "LICENSE": "project/license.md",
    "changes": "project/changelog.md",
    "sim/scenario/settings/data/README.md": "project/kafka-data.md",
    "scenarios/catalogue/README.md": "gallery/index.md",
    "sim/scenario/schema/logquake.schema.json": "logquake.schema.json",
    "docs/guide": "guide/README.md",
    "docs/decisions": "decisions/README.md",
}
"""Files and folders outside ``docs``, and two folders in it, with the page that shows them."""

_FENCE: Final = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
_TEST: Final = re.compile(r"\[(`\w+`)\]\(tests/[\w/]+\.py\)")
"""A test, which has no page: its name alone is shown."""
_ROW: Final = re.compile(r"^\|.*$", re.MULTILINE)
_CODE: Final = re.compile(r"(`+).+?\1")
_ELSEWHERE: Final = re.compile(r"[a-z]+:|#")


def page_of(path: str) -> str | None:
    """The page, with its anchor, of a file or folder of the repository; ``None`` without one."""
    path = path.rstrip("/")
    if path in PAGES:
        return PAGES[path]
    folder, _, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    if folder == "scenarios/catalogue" and ending == "yaml":
        return f"gallery/{stem[0]}.md#{stem}"
    if folder == "scenarios" and ending == "yaml":
        return f"examples.md#{stem}"
    if folder == "notebooks" and ending == "ipynb":
        return f"notebooks.md#{stem}"
    if path.startswith("docs/") and (ROOT / path).is_file():
        return path.removeprefix("docs/")
    return None


def with_plain_pipes(markdown: str) -> str:
    """A document without the escapes of pipes in code that a forge needs in tables."""
    return _ROW.sub(
        lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown
    )


def fitted(markdown: str, origin: str, page: str) -> str:
    """A document's text with its links as they are in the site.

    Args:
        markdown: Text of the document.
        origin: Its place in the repository, such as ``docs/guide/ci.md``.
        page: Its place in the site, such as ``guide/ci.md``.

    Raises:
        ValueError: If a link leads to a file that no page shows.
    """

    def fit(match: re.Match[str]) -> str:
        target = match.group(1)
        if _ELSEWHERE.match(target):
            return target
        path, _, anchor = target.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        shown = page_of(place)
        if shown is None:
            raise ValueError(f"{origin}: no page of the site shows {target}")
        file, _, own = shown.partition("#")
        found = posixpath.relpath(file, posixpath.dirname(page) or ".")
        heading = anchor or own
        return f"{found}#{heading}" if heading else found

    markdown = _TEST.sub(r"\1", markdown)
    pieces, end = [], 0
    for fence in _FENCE.finditer(markdown):
        pieces += [_LINK.sub(fit, markdown[end : fence.start()]), fence.group(0)]
        end = fence.end()
    return "".join([*pieces, _LINK.sub(fit, markdown[end:])])
