"""Files that describe a cluster; the kind of each is recognised by its content."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sim.errors import SimulationError
from sim.importer.descriptions import (
    ConfigDescription,
    DescribedTopic,
    UnreadableError,
    parse_configs,
    parse_topics,
)
from sim.importer.properties import parse
from sim.scenario.settings.registry import SETTINGS

BYTES_MAX: Final = 64 << 20
"""A larger file is no description."""

_SERVER: Final = (
    *("broker.id", "node.id", "process.roles", "log.dirs", "log.dir", "zookeeper.connect"),
    *("listeners", "controller.quorum.voters", "controller.quorum.bootstrap.servers"),
)
"""Any of these makes a file of properties a server's."""

_TOPICS: Final = re.compile(r"^Topic:", re.MULTILINE)
_CONFIGS: Final = re.compile(r"^(\w+ )?configs? for .* (is|are)\b", re.IGNORECASE | re.MULTILINE)

ALLOWED: Final = (
    "server.properties, a producer's properties, or the output of kafka-topics --describe or "
    "kafka-configs --describe"
)


@dataclass(frozen=True, slots=True)
class Properties:
    """One file of properties."""

    file: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Load:
    """Records that a topic takes, as measured."""

    per_s: int
    """Whole records a second, at least one."""
    bytes_per_record: float | None
    """On disk; ``None``: not known."""


@dataclass(slots=True)
class Sources:
    """Everything that was read, by kind. What follows ``files`` only a running cluster knows."""

    servers: list[Properties] = field(default_factory=list)
    producers: list[Properties] = field(default_factory=list)
    topics: dict[str, DescribedTopic] = field(default_factory=dict)
    configs: list[ConfigDescription] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    racks: dict[int, str] = field(default_factory=dict)
    """Of brokers whose settings are not known; empty text for none."""
    kafka: str = ""
    """Version, as scenarios name it."""
    voters: tuple[int, ...] = ()
    """Ids of the controllers that vote."""
    is_dynamic: bool = False
    """The quorum's voters are a record of the metadata log."""
    loads: dict[str, Load] | None = None
    """By topic, of those that took records; ``None``: it was not measured."""
    consumers: list[dict[str, Any]] = field(default_factory=list)
    quotas: list[dict[str, Any]] = field(default_factory=list)
    """Both as entries of a scenario."""
    measured: list[str] = field(default_factory=list)
    """Lines: loads and lags."""
    unknown: list[str] = field(default_factory=list)
    """Lines: what the cluster cannot say."""
    absent: list[str] = field(default_factory=list)
    """Lines: what was not answered, and what is not simulated."""


def read_all(paths: Sequence[Path]) -> Sources:
    """Read the files.

    Raises:
        SimulationError: For a file that cannot be read, or is none of these kinds.
    """
    found = Sources()
    for path in paths:
        try:
            if path.stat().st_size > BYTES_MAX:
                raise SimulationError(f"{path}: more than {BYTES_MAX} bytes; allowed: {ALLOWED}")
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise SimulationError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SimulationError(f"{path}: not UTF-8 text; allowed: {ALLOWED}") from None
        _add(found, str(path), text)
        found.files.append(path.name)
    return found


def _add(found: Sources, file: str, text: str) -> None:
    try:
        if _TOPICS.search(text) is not None:
            _merge(found.topics, parse_topics(text), file)
        elif _CONFIGS.search(text) is not None:
            found.configs += parse_configs(text)
        else:
            _add_properties(found, file, parse(text))
    except UnreadableError as error:
        # The line itself is not shown: nobody knows what it holds.
        raise SimulationError(
            f"{file}:{error.args[0]}: this line is not what the tool prints; leave out what else "
            "was on the terminal"
        ) from None


def _add_properties(found: Sources, file: str, values: dict[str, str]) -> None:
    properties = Properties(file, values)
    if any(key in values for key in _SERVER):
        found.servers.append(properties)
    elif values and any(key in SETTINGS["producer"] for key in values) and _is_no_consumer(values):
        found.producers.append(properties)
    else:
        what = "a consumer's properties" if not _is_no_consumer(values) else "nothing that is known"
        raise SimulationError(f"{file}: {what}; allowed: {ALLOWED}")


def _is_no_consumer(values: Mapping[str, str]) -> bool:
    return not any(key in values for key in ("group.id", "key.deserializer", "auto.offset.reset"))


def _merge(known: dict[str, DescribedTopic], more: Mapping[str, DescribedTopic], file: str) -> None:
    for name, topic in more.items():
        if name in known:
            raise SimulationError(f"{file}: topic {name} was described before; give each once")
        known[name] = topic
