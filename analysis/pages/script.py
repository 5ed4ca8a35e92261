"""The page's own style and JavaScript: plain files beside this one, put together and allowed.

A page fetches nothing and runs nothing but this text: its content security policy names the SHA-256
of the script, so that a script which came in with a name from a scenario would not run even if it
were not escaped.
"""

import base64
import hashlib
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent / "browser"

TABLES: Final = ("base", "sort")
"""Scripts of every page: tables that sort."""

TIMELINE: Final = (*TABLES, "lanes", "latency", "space", "cursor")
"""Scripts of the page of one run."""


def text(parts: tuple[str, ...]) -> str:
    """The script of a page, in a scope of its own."""
    files = "\n".join((_HERE / f"{part}.js").read_text(encoding="utf-8") for part in parts)
    return f"(function () {{\n{files}}})();\n"


def style() -> str:
    """The style of every page."""
    return (_HERE / "style.css").read_text(encoding="utf-8")


def digest(script: str) -> str:
    """The script's digest in a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
