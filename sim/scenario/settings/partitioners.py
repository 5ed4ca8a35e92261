"""Values of ``partitioner.class``: Kafka's own classes by version, or a class of a user's.

``FILE.py:CLASS`` names a class in a file beside the scenario's own, ``NAME`` one that an installed
distribution offers as an entry point, and ``NAME@DISTRIBUTION==VERSION`` that of one release of it.
Files and entry points are read with the scenario and not run before a run: that a scenario can be
loaded says nothing about what the class does.

Source: KIP-369, KIP-480, KIP-794; ``ProducerConfig.PARTITIONER_CLASS_CONFIG``.
"""

import ast
import re
from importlib.metadata import EntryPoint, entry_points
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
_PINNED: Final = re.compile(r"([^@\s]+)@([A-Za-z0-9][\w.-]*)==(\S+)", re.ASCII)
_ALLOWED: Final = (
    f"{', '.join(_VERSIONS)}, FILE.py:CLASS beside the scenario's file, or a name of the "
    "entry-point group {group}"
)
GROUP: Final = "logquake.partitioners"
"""Group of entry points in which installed distributions offer partitioners."""
_METHOD: Final = "partition"


class OwnClass(NamedTuple):
    """A class in a file beside the scenario."""

    file: str
    name: str


class Offered(NamedTuple):
    """A class that a distribution offers as an entry point."""

    name: str
    distribution: str
    version: str

    @property
    def value(self) -> str:
        """``partitioner.class`` that names it and its release."""
        return f"{self.name}@{self.distribution}=={self.version}"


def offered(given: str) -> Offered | None:
    """The entry point that a value with its release names; ``None`` for any other value."""
    match = _PINNED.fullmatch(given)
    return None if match is None else Offered(match[1], _normal(match[2]), match[3])


def pinned(config: Config) -> Config:
    """The settings with the release of an entry point that is named without it.

    Raises:
        Problem: If no installed distribution offers it, or another release, or more than one.
    """
    given = config[NAME]
    if not isinstance(given, str) or not given or given in _VERSIONS or own_class(given):
        return config
    found = offered(given) or _only(given)
    entry_of(found)
    return config.changed({NAME: found.value})


def entry_of(sought: Offered) -> EntryPoint:
    """The installed entry point.

    Raises:
        Problem: If it is not installed, or in another release.
    """
    known = _known()
    entry = known.get(sought)
    if entry is not None:
        return entry
    others = [each for each in known if each.name == sought.name]
    found = f"no {sought.name} of {sought.distribution} {sought.version} is installed"
    allowed = ", ".join(each.value for each in others or known) or "none: no distribution has any"
    raise Problem((NAME,), found, allowed, f"pip install {sought.distribution}=={sought.version}")


def _only(given: str) -> Offered:
    known = _known()
    same = [each for each in known if each.name == given]
    if not same:
        names = (*_VERSIONS, *(each.name for each in known))
        raise Problem((NAME,), f"no partitioner {given!r}", allowed(), nearest(given, names))
    if len(same) > 1:
        raise Problem(
            (NAME,),
            f"{given!r}, which {len(same)} distributions offer",
            ", ".join(each.value for each in same),
        )
    return same[0]


def _known() -> dict[Offered, EntryPoint]:
    """Every entry point of the group, in the order of its value."""
    found = {}
    for entry in entry_points(group=GROUP):
        if entry.dist is not None:
            found[Offered(entry.name, _normal(entry.dist.name), entry.dist.version)] = entry
    return dict(sorted(found.items(), key=lambda item: item[0]))


def _normal(distribution: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def allowed() -> str:
    """Values that ``partitioner.class`` takes."""
    names = ", ".join(each.name for each in _known()) or "none is installed"
    return _ALLOWED.format(group=f"{GROUP} ({names})")


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
    if offered(given) is not None:
        return ""
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
        raise Problem((NAME,), f"{own.file} beside a scenario that is no file", allowed())
    file = directory / own.file
    if file.resolve().parent != directory.resolve():
        raise Problem((NAME,), f"{own.file} is a link to another directory", allowed())
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
