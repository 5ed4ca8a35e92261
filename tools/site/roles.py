"""Docstrings as Markdown: their Sphinx roles become plain code."""

import re
from typing import Final

from griffe import Extension, Object

_ROLE: Final = re.compile(r":(?:func|class|data|mod|meth|attr|exc|obj):`~?([^`]+)`")


def as_markdown(text: str) -> str:
    """Docstring text without roles.

    ``:func:`run``` is code that names a function.
    """
    return _ROLE.sub(r"`\1`", text)


class Roles(Extension):
    """Rewrites every docstring that is loaded."""

    def on_object(self, *, obj: Object, **_: object) -> None:
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
