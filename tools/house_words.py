"""The vocabulary of the house: words of a private dialect that Kafka's words have replaced.

:func:`lost_words` looks into docstrings, comments and the names that a module defines. Text between
backticks is ignored, which leaves names of Kafka and of users alone, and so are other strings.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tools.house import Finding, Function, Source

SAY: dict[str, str] = {
    r"tell|tells|told": "a row, a message or a response has it",
    r"stand|stands|stood": "is, or represents",
    r"anew": "again, or rebuild",
    r"gone": "deleted, removed, lost or missing",
    r"go on|goes on|went on": "continue, resume",
    r"whoever": "the caller, the owner, or a passive",
    r"(?:is|are|was|were) over": "ends",
    r"let go|lets go|in the air|by itself": "say what happens",
    r"wish|wishes|wished|(?:ask|asks|asked) for|want|wants|wanted": "request, require, expect",
    r"minds?": "machine",
    r"shells?": "node, process",
    r"rooms?": "package, module; capacity, space",
    r"desks?": "context, API",
    r"moulds?": "template",
    r"strangers?": "unknown",
}
"""The lost words, and what to say instead."""

ONLY_IN_NAMES: dict[str, str] = {"ask|asked": "request, expect"}
"""In prose a process may ask its machine."""

KAFKAS_NAMES = frozenset({"want_fence", "want_shut_down"})
"""Fields of Kafka's messages, which are called so there."""

_LOST = {
    re.compile(rf"\b(?:{words})\b".replace(" ", r"\s+"), re.IGNORECASE): instead
    for words, instead in SAY.items()
}
_LOST_NAMES = _LOST | {
    re.compile(rf"\b(?:{words})\b", re.IGNORECASE): instead
    for words, instead in ONLY_IN_NAMES.items()
}
_OPENING = re.compile(r"(?:What|Whether|How|Who|Whose|Whoever|When|Where|Which|Why)\b")
_CODE = re.compile(r"``?[^`]*``?")
_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")


def lost_words(source: Source) -> Iterator[Finding]:
    """No lost word in docstrings, comments and names; no docstring that begins like a question."""
    for line, text in _docstrings(source.tree):
        if _OPENING.match(text.lstrip()):
            opening = text.split(maxsplit=1)[0]
            yield Finding(source.path, line, f"begins with {opening}; begin with a verb or a noun")
        yield from _found(source.path, line, text, _LOST)
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield from _found(source.path, token.start[0], token.string, _LOST)
    for line, name in _names(source.tree):
        if name in KAFKAS_NAMES:
            continue
        yield from _found(source.path, line, _WORD_ENDS.sub(" ", name), _LOST_NAMES)


def _found(path: str, line: int, text: str, lost: dict[re.Pattern[str], str]) -> Iterator[Finding]:
    """Lost words in a text, which may have several lines, the first of them at the given one."""
    text = _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    for words, instead in lost.items():
        for match in words.finditer(text):
            at = line + text.count("\n", 0, match.start())
            yield Finding(path, at, f"{' '.join(match[0].split())!r} is a lost word: {instead}")


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Strings that are statements, those below names among them, with their first lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield node.lineno, text


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names that the module defines: of functions, classes, arguments, variables, attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | Function):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
