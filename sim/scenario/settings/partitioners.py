"""Values of ``partitioner.class``: Kafka's own classes by version, or a class in a file.

``FILE.py:CLASS`` names a class in a file beside the scenario's own. It is read with the scenario
and not run before a run: that a scenario can be loaded says nothing about what the class does.

Source: KIP-369, KIP-480, KIP-794; ``ProducerConfig.PARTITIONER_CLASS_CONFIG``.
"""

import ast
import re
from pathlib import Path
from typing import Final, NamedTuple

from sim.scenario.behaviours.versions import VERSIONS, is_since
from sim.scenario.settings.registry import default_of
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem, nearest

NAME: Final = "partitioner.class"
ROUND_ROBIN: Final = "RoundRobinPartitioner"
UNIFORM_STICKY: Final = "UniformStickyPartitioner"
DEFAULT: Final = "DefaultPartitioner"

ASKS_AGAIN: Final = ("2.4", "4.0")
"""From the first, and before the second, a record that opens a batch gets a second partition."""

_VERSIONS: Final = {
    ROUND_ROBIN: ("2.4", ""),
    UNIFORM_STICKY: ("2.4", "4.0"),
    DEFAULT: (VERSIONS[0], "4.0"),
}
"""Since when each class is there, and since when it is not; empty: it is there."""

_OWN: Final = re.compile(r"([A-Za-z_]\w*\.py):([A-Za-z_]\w*)", re.ASCII)
_ALLOWED: Final = f"{', '.join(_VERSIONS)}, or FILE.py:CLASS beside the scenario's file"
_METHOD: Final = "partition"


class OwnClass(NamedTuple):
    """A class in a file beside the scenario."""

    file: str
    name: str


def own_class(given: str) -> OwnClass | None:
    """The class that a value names in a file; ``None`` for Kafka's own."""
    match = _OWN.fullmatch(given)
    return None if match is None else OwnClass(match[1], match[2])


def is_chosen(config: Config) -> bool:
    """True if a producer has another partitioner than its version gives it."""
    return config[NAME] != default_of("producer", NAME, config.version)


def asks_again(kafka: str) -> bool:
    """True if a record that opens a batch is given a second partition (KAFKA-9965).

    Since 4.0 ``Partitioner.onNewBatch`` is removed (KAFKA-18295), and with it the second question.
    """
    first, last = ASKS_AGAIN
    return is_since(kafka, first) and not is_since(kafka, last)


def source_of(given: str, kafka: str, directory: Path | None) -> str:
    """The text of the file that a value names; empty for a class of Kafka's, and for none.

    Args:
        given: ``partitioner.class``; empty for null.
        kafka: ``cluster.kafka``.
        directory: That of the scenario's file; ``None`` if it has none.

    Raises:
        Problem: With the setting's name as its path.
    """
    if not given:
        return ""
    own = own_class(given)
    if own is not None:
        return _source(own, directory)
    if given not in _VERSIONS:
        raise Problem((NAME,), f"no partitioner {given!r}", _ALLOWED, nearest(given, _VERSIONS))
    first, last = _VERSIONS[given]
    if not is_since(kafka, first):
        raise Problem((NAME,), f"{given} with cluster.kafka {kafka}", f"Kafka {first} or newer")
    if last and is_since(kafka, last):
        raise Problem(
            (NAME,),
            f"{given} with cluster.kafka {kafka}, which does not have it",
            f"Kafka before {last}",
            "leave it out: the built-in partitioner took its place (KIP-794)",
        )
    return ""


def _source(own: OwnClass, directory: Path | None) -> str:
    if directory is None:
        raise Problem((NAME,), f"{own.file} beside a scenario that is no file", _ALLOWED)
    file = directory / own.file
    if file.resolve().parent != directory.resolve():
        raise Problem((NAME,), f"{own.file} is a link to another directory", _ALLOWED)
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError) as error:
        raise Problem((NAME,), f"{own.file} cannot be read: {error}", "a Python file") from None
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == own.name:
            if any(
                isinstance(each, ast.FunctionDef) and each.name == _METHOD for each in node.body
            ):
                return text
            raise Problem(
                (NAME,), f"{own.name} has no method {_METHOD}", f"def {_METHOD}(self, ...)"
            )
    known = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    raise Problem(
        (NAME,), f"{own.file} has no class {own.name}", ", ".join(known), nearest(own.name, known)
    )
