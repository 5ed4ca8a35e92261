"""Producers of an imported scenario: one for each topic, as heavy as was measured or is guessed.

Left out: keys, transactions and how many processes share a load, which no broker knows.
"""

from collections.abc import Mapping
from typing import Any, Final

from sim.importer.settings import NEEDLESS, CarriedOver, kept
from sim.importer.sources import Load, Sources
from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.model.clients import RECORD_SIZE_MIN
from sim.scenario.rules.zookeeper import LAST_VERSION
from sim.scenario.settings.registry import SETTINGS, default_of
from sim.scenario.settings.resolved import SettingValue

GUESS: Final = "100/s"
"""Load of each topic where nothing else is known."""

BATCH_BYTES: Final = 61
"""Head of a record batch (message format 2)."""

RECORD_BYTES: Final = 9
"""Lengths and deltas of a record without key and headers."""

_KEYS: Final = {"keys": "uniform"}


def settings_of_producers(sources: Sources) -> CarriedOver:
    """Settings of the first file of producer's properties; of others a line."""
    if not sources.producers:
        return CarriedOver()
    first, *others = sources.producers
    found = kept("producer", first.values, skip=NEEDLESS)
    lines = [f"{other.file}: a second producer's properties" for other in others]
    return CarriedOver(found.config, [*lines, *(f"producer: {line}" for line in found.absent)])


def producers(
    sources: Sources,
    rate: str | None,
    topics: Mapping[str, Any],
    cluster: Mapping[str, Any],
    config: Mapping[str, SettingValue],
) -> list[dict[str, Any]]:
    """One for each topic that takes records; for every topic if none does.

    A compacted topic takes no record without a key (``INVALID_RECORD``), so its producer has
    keys.

    Args:
        sources: With loads, if these were measured.
        rate: Of topics without a load; ``None``: they have no producer.
        topics: Of the scenario.
        cluster: Of the scenario.
        config: Settings of every producer.
    """
    loads = sources.loads or {}
    whole = {**_defaults(cluster), **config}
    usual = cluster.get("config", {}).get("log.cleanup.policy", "")
    other = rate or (None if loads else GUESS)
    made = []
    for topic, parts in topics.items():
        load = loads.get(topic)
        if load is None and other is None:
            continue
        policy = parts.get("config", {}).get("cleanup.policy", usual)
        has_keys = "compact" in str(policy).split(",")
        plain: dict[str, Any] = {"name": f"to-{topic}"[:200], "topic": topic}
        plain |= (
            {"rate": other} if load is None else _measured(load, whole, parts, has_keys=has_keys)
        )
        made.append(
            plain | (_KEYS if has_keys else {}) | ({"config": dict(config)} if config else {})
        )
    return made


def _measured(
    load: Load, config: Mapping[str, SettingValue], parts: Mapping[str, Any], *, has_keys: bool
) -> dict[str, Any]:
    found: dict[str, Any] = {"rate": f"{load.per_s}/s"}
    if load.bytes_per_record is not None:
        # Without keys a batch takes all that comes while it waits (KIP-794).
        share = load.per_s / (parts["partitions"] if has_keys else 1)
        found["record.size"] = f"{value_size(load.bytes_per_record, share, config)}B"
    return found


def value_size(bytes_per_record: float, per_s: float, config: Mapping[str, SettingValue]) -> int:
    """Size of a value with which a simulated producer writes as many bytes a second.

    Args:
        bytes_per_record: As measured on disk, with its part of the head of a batch.
        per_s: Records that a batch may take a second.
        config: Of the producer.
    """
    in_batch = 1 + int(per_s * _number("linger.ms", config) / 1_000)
    most = _number("batch.size", config) / max(bytes_per_record, 1.0)
    in_batch = max(1, min(in_batch, int(most)))
    return max(RECORD_SIZE_MIN, round(bytes_per_record - BATCH_BYTES / in_batch - RECORD_BYTES))


def _defaults(cluster: Mapping[str, Any]) -> dict[str, SettingValue]:
    """Defaults of the cluster's version that decide how many records a batch has."""
    version = cluster.get("kafka", LAST_VERSION if "zookeeper" in cluster else DEFAULT)
    return {name: default_of("producer", name, version) for name in ("batch.size", "linger.ms")}


def _number(name: str, config: Mapping[str, SettingValue]) -> float:
    value = config.get(name, SETTINGS["producer"][name].default)
    assert isinstance(value, int | float)
    return value
