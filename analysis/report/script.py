"""The page's own JavaScript: plain files beside this one, put together and allowed by their digest.

A page fetches nothing and runs nothing but this text: its content security policy names the SHA-256
of the script, so that a script which came in with a name from a scenario would not run even if it
were not escaped.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent / "browser"

TABLES: Final = ("base", "sort")
"""Scripts of every page: tables that sort."""

TIMELINE: Final = (*TABLES, "lanes", "latency", "space", "cursor")
"""Scripts of the page of one run."""


def text(parts: tuple[str, ...]) -> str:
    """The script of a page; its names stay its own."""
    files = "\n".join((_HERE / f"{part}.js").read_text(encoding="utf-8") for part in parts)
    return f"(function () {{\n{files}}})();\n"


def digest(script: str) -> str:
    """The script's digest in a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def embedded(value: object) -> str:
    """JSON that is safe inside of a ``script`` element, with any strings."""
    compact = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return compact.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
