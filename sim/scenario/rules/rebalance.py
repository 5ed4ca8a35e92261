"""Rules of consumers that share a group's partitions, and what a scenario may leave out.

``behaviours: {rebalance: cooperative}`` is short for cooperative assignors, ``static`` for instance
ids, of all consumers that do not say it themselves.

Source: ``ConsumerConfig``, ``AbstractStickyAssignor``; KIP-345, KIP-429.
"""

from collections.abc import Mapping

from sim.scenario.model.clients import ConsumerSpec
from sim.scenario.text.problems import Problem

STRATEGY = "partition.assignment.strategy"
INSTANCE = "group.instance.id"


def with_rebalance(given: Mapping[str, object], rebalance: str, name: str) -> dict[str, object]:
    """A consumer's settings as given, with what the behaviour ``rebalance`` means.

    Args:
        given: As the file has them.
        rebalance: ``eager``, which leaves Kafka's defaults, ``cooperative`` or ``static``.
        name: Of the consumers, which is their instance id with ``static``.
    """
    settings = dict(given)
    if rebalance == "cooperative":
        if settings.get("group.protocol") != "consumer":  # there the coordinator decides
            settings.setdefault(STRATEGY, "cooperative-sticky")
    elif rebalance == "static":
        settings.setdefault(INSTANCE, name)
    return settings


def check_strategy(words: tuple[str, ...]) -> None:
    """Check that assignors are named, each once.

    Raises:
        Problem: With the setting's name as its path.
    """
    for word in words:
        if words.count(word) > 1:
            raise Problem((STRATEGY,), f"{word} twice", "each assignor once")


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
