"""Text on its way to a terminal or a pipe: nothing in it acts on the terminal, and all of it fits.

Texts of files (header keys, names, values, messages with them) may hold escape sequences, or
characters that turn the order of what is read. Those are written out; line breaks and tabs stay.
"""

import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import count
from json import dumps
from typing import Final

import typer
from rich.console import Console
from rich.markup import escape

from sim.progress import Step, as_line, is_requested

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


def console() -> Console:
    """Standard output, made for each call so that it follows a redirection."""
    return Console(soft_wrap=True, highlight=False)


def say_step(step: Step) -> None:
    """A line of progress for the program that started this process, if it requests them."""
    if is_requested():
        say(as_line(step), err=True)


@contextmanager
def step_bar(name: str) -> Iterator[Callable[[str], None]]:
    """A spinner with the present step on a terminal; silence elsewhere."""
    err = Console(stderr=True)
    if not err.is_terminal:
        steps = count(1)
        say_step(Step(0, None, name))
        yield lambda step: say_step(Step(next(steps), None, f"{name}: {step}"))
        return
    with err.status(escaped(name)) as status:
        yield lambda step: status.update(f"{escaped(name)}: {escaped(step)}")
