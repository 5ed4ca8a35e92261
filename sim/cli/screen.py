"""Text on its way to a terminal or a pipe: nothing in it acts on the terminal, and all of it fits.

Texts of files (header keys, names, values, messages with them) may hold escape sequences, or
characters that turn the order of what is read. Those are written out; line breaks and tabs stay.
"""

import sys
import unicodedata
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from json import dumps
from typing import Final

import typer
from rich.markup import escape

_KEPT: Final = "\n\t"
_ACTING: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of controls, formats (bidi among them), surrogates and separators."""


def visible(text: str) -> str:
    r"""The text with each character that acts instead of being seen written as ``\x1b``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _written(c) if unicodedata.category(c) in _ACTING and c not in _KEPT else c for c in text
    )


def _written(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def escaped(text: str) -> str:
    """The text as rich prints it as it is: visible, and without markup."""
    return escape(visible(text))


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text on standard output, or on standard error."""
    typer.echo(visible(text), err=err, nl=nl)


def json_text(value: Mapping[str, object] | Sequence[object], *, indent: int | None = None) -> str:
    """JSON that standard output can encode; what acts on a terminal is an escape in it."""
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "")
    text = dumps(value, indent=indent, ensure_ascii=encoding != "utf8")
    if text.isascii():
        return text.replace("\x7f", "\\u007f")
    return "".join(
        dumps(c)[1:-1] if unicodedata.category(c) in _ACTING and c != "\n" else c for c in text
    )


def let_streams_degrade() -> None:
    """Write what a stream cannot encode as escapes, instead of ending in a UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
