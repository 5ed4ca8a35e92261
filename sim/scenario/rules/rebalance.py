"""Rules of consumers that share a group's partitions, and what a scenario may leave out.

``behaviours: {rebalance: cooperative}`` is short for cooperative assignors, ``static`` for instance
ids, of all consumers that do not say it themselves, those of tasks included. ``eager`` leaves each
what its release has, so that tasks of Kafka Streams cooperate since 2.4.

Source: ``ConsumerConfig``, ``AbstractStickyAssignor``,
``StreamsPartitionAssignor.supportedProtocols``; KIP-345, KIP-429.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.clients import ConsumerSpec
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem

STRATEGY = "partition.assignment.strategy"
INSTANCE = "group.instance.id"
COOPERATIVE: Final = "cooperative-sticky"
REFUSED_TWICE: Final = ("3.1", "4.2")
"""From the first, and before the second, a client refuses an assignor that is named twice."""
STREAMS_COOPERATE_SINCE: Final = "2.4"
"""Before that its assignor knows the eager protocol alone."""


def with_rebalance(given: Mapping[str, object], rebalance: str, name: str) -> dict[str, object]:
    """A consumer's settings as given, with what the behaviour ``rebalance`` means.

    Args:
        given: As the file has them.
        rebalance: ``eager``, which leaves Kafka's defaults, ``cooperative`` or ``static``.
        name: Of the consumers, which is their instance id with ``static``.
    """
    settings = dict(given)
    if rebalance == "cooperative":
        _cooperate(settings)
    elif rebalance == "static":
        settings.setdefault(INSTANCE, name)
    return settings


def with_streams_rebalance(given: Mapping[str, object], release: str) -> dict[str, object]:
    """A task's consumer settings as given, with what Streams of that release does otherwise."""
    settings = dict(given)
    if is_since(release, STREAMS_COOPERATE_SINCE):
        _cooperate(settings)
    return settings


def _cooperate(settings: dict[str, object]) -> None:
    if settings.get("group.protocol") != "consumer":  # there the coordinator decides
        settings.setdefault(STRATEGY, COOPERATIVE)


def with_each_assignor_once(config: Config) -> Config:
    """A consumer's settings with one entry for each assignor.

    Since 4.2 the client leaves out what it has already, and before 3.1 a group is not changed by
    a protocol that its members offer twice.

    Raises:
        Problem: For one that is named twice where the client refuses it, with the setting's name as
            its path.

    Source: ``ConsumerPartitionAssignor.getAssignorInstances`` (3.1 to 4.3); ``ConfigDef.ValidList``
        (4.2, KIP-1161).
    """
    words = config.words(STRATEGY)
    once = tuple(dict.fromkeys(words))
    if once == words:
        return config
    first, last = REFUSED_TWICE
    if is_since(config.version, first) and not is_since(config.version, last):
        twice = next(word for word in once if words.count(word) > 1)
        found = f"{twice} twice, with a client of Kafka {config.version}"
        raise Problem((STRATEGY,), found, f"each assignor once, or Kafka {last} or newer")
    return config.changed({STRATEGY: ",".join(once)})


def check_instances(consumers: tuple[ConsumerSpec, ...]) -> None:
    """Check that every static member has an instance id of its own; two with one fence each other.

    Members that follow each other, one after the other's ``stop``, may have the same.

    Raises:
        Problem: With a path that starts at the consumer's place in the file.
    """
    taken: dict[tuple[str, str], list[tuple[str, ConsumerSpec]]] = {}
    for at, consumer in enumerate(consumers):
        for name, instance in zip(consumer.client_names, consumer.instance_ids, strict=True):
            if not instance:
                continue
            others = taken.setdefault((consumer.group, instance), [])
            for other, spec in others:
                if not _follows(consumer, spec) and not _follows(spec, consumer):
                    raise Problem(
                        (at, "config", INSTANCE),
                        f"{instance!r} is {other} already",
                        "an id of its own in its group",
                        "or let one start after the other's stop",
                    )
            others.append((name, consumer))


def _follows(later: ConsumerSpec, earlier: ConsumerSpec) -> bool:
    return earlier.stop_us is not None and later.start_us > earlier.stop_us
