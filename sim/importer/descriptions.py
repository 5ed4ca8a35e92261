"""Output of ``kafka-topics --describe`` and ``kafka-configs --describe``, of Kafka 0.10 to 4.x.

Only what the tools print on standard output is read; lines that are neither are refused by number,
so that a file of another kind is not taken for an empty cluster.

Source: ``TopicCommand``, ``ConfigCommand``; output of both was looked at for 2.x, 3.x and 4.x.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Entity: TypeAlias = Literal["topic", "broker", "brokers", "other"]
"""Owner of settings: a topic, a broker, all brokers' defaults, or one that is not carried over."""

_FIELD: Final = re.compile(
    r"(?:^|\s)([A-Z][A-Za-z]*(?: Replicas)?):[ \t]*(.*?)(?=\s+[A-Z][A-Za-z]*(?: Replicas)?:|\s*$)"
)
_SETTING: Final = re.compile(r",(?=[A-Za-z][A-Za-z0-9._-]*=)")
_HEAD: Final = re.compile(
    r"(?P<kind>Dynamic|All|Default|Quota|SCRAM credential)?\s*configs? for (?P<whom>.+?)"
    r"\s+(?:in the cluster )?are:?\s*(?P<rest>.*)",
    re.IGNORECASE,
)
_ENTRY: Final = re.compile(
    r"\s+(?P<name>[A-Za-z0-9._-]+)=(?P<value>.*?)"
    r"(?: sensitive=(?:true|false))?(?: synonyms=\{(?P<synonyms>.*)\})?\s*$"
)
_OWN: Final[dict[Entity, tuple[str, ...]]] = {
    "topic": ("DYNAMIC_TOPIC_CONFIG",),
    "brokers": ("DYNAMIC_DEFAULT_BROKER_CONFIG",),
    "broker": ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "STATIC_BROKER_CONFIG"),
}
"""Source of a setting that was set for the entity, and not left at a default."""

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_NOTE: Final = re.compile(r"[0-9]{1,9}|true|false")
_ONE: Final = re.compile(r"(?P<what>topic|broker) '?(?P<name>[^',\s]+)'?")


@dataclass(slots=True)
class DescribedTopic:
    """One topic, as ``kafka-topics --describe`` prints it."""

    name: str
    partitions: int = 0
    """As the topic's own line says; 0 if only its partitions are there."""
    configs: dict[str, str] = field(default_factory=dict)
    replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Broker ids of each partition, the preferred leader first."""
    notes: list[str] = field(default_factory=list)
    """Unfinished changes: a reassignment, a deletion."""


@dataclass(frozen=True, slots=True)
class ConfigDescription:
    """Settings of one entity that were set for it, not inherited."""

    entity: Entity
    name: str
    configs: dict[str, str]


class UnreadableError(ValueError):
    """A line that the tool does not print. ``args``: its number, and the line."""


def parse_topics(text: str) -> dict[str, DescribedTopic]:
    """Topics by name, in the order of the text.

    Raises:
        UnreadableError: For the first line that is neither a topic nor one of its partitions.
    """
    found: dict[str, DescribedTopic] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        fields = dict(_FIELD.findall(line))
        name = fields.get("Topic", "")
        if not name or not ("Partition" in fields or "PartitionCount" in fields):
            raise UnreadableError(number, line)
        topic = found.setdefault(name, DescribedTopic(name))
        if "PartitionCount" in fields:
            topic.partitions = _number(fields["PartitionCount"], number, line)
            topic.configs = _settings(fields.get("Configs", ""))
        else:
            _partition(topic, fields, number, line)
    return found


def _partition(topic: DescribedTopic, fields: dict[str, str], number: int, line: str) -> None:
    partition, replicas = fields["Partition"], fields.get("Replicas", "")
    topic.replicas[_number(partition, number, line)] = tuple(
        _number(word, number, line) for word in replicas.split(",")
    )
    for name in ("Adding Replicas", "Removing Replicas", "MarkedForDeletion", "MarkedForDelete"):
        if fields.get(name):
            what = " ".join(_NOTE.findall(fields[name]))
            topic.notes.append(f"{topic.name}-{partition}: {name}: {what}")


def _number(word: str, number: int, line: str) -> int:
    if _NUMBER.fullmatch(word.strip()) is None:
        raise UnreadableError(number, line)
    return int(word)


def parse_configs(text: str) -> list[ConfigDescription]:
    """Settings of topics and brokers; quotas, users and others come as entity ``other``.

    With ``--all`` the tool prints defaults as well: only what was set for the entity is kept.

    Raises:
        UnreadableError: For the first line that belongs to no entity.
    """
    found: list[ConfigDescription] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        head = _HEAD.fullmatch(line.strip())
        if head is not None:
            found.append(_entity(head))
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None or not found:
            raise UnreadableError(number, line)
        if _is_own(found[-1].entity, entry["synonyms"]):
            found[-1].configs[entry["name"]] = entry["value"]
    return found


def _entity(head: re.Match[str]) -> ConfigDescription:
    whom = head["whom"]
    one = _ONE.fullmatch(whom)
    configs = _settings(head["rest"])
    if (head["kind"] or "").lower() in ("quota", "scram credential"):
        return ConfigDescription("other", whom, configs)
    if one is not None:
        return ConfigDescription(
            "topic" if one["what"] == "topic" else "broker", one["name"], configs
        )
    is_default = whom.lower() in ("brokers", "the default broker", "brokers in the cluster")
    return ConfigDescription("brokers" if is_default else "other", whom, configs)


def _is_own(entity: Entity, synonyms: str | None) -> bool:
    """True if a setting was set for the entity; without synonyms the tool prints nothing else."""
    if synonyms is None or entity == "other":
        return True
    first = synonyms.partition(":")[0].strip()
    return first in _OWN[entity]


def _settings(text: str) -> dict[str, str]:
    """``a=1,b=compact,delete``: a comma parts two settings only where a name follows it."""
    return dict(_pairs(_SETTING.split(text.strip())))


def _pairs(words: Iterable[str]) -> Iterable[tuple[str, str]]:
    for word in words:
        name, equals, value = word.strip().partition("=")
        if equals:
            yield name, value
