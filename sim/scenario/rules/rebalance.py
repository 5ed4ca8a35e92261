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
    if settings.get("group.protocol") == "consumer":
        return settings  # the coordinator decides
    if rebalance == "cooperative":
        settings.setdefault(STRATEGY, "cooperative-sticky")
    elif rebalance == "static":
        settings.setdefault(INSTANCE, name)
    return settings


def check_protocol(given: Mapping[str, object]) -> None:
    """Check that a static member speaks the classic protocol; others are not modelled.

    Raises:
        Problem: With the setting's name as its path.
    """
    if given.get(INSTANCE) is not None and given.get("group.protocol") == "consumer":
        raise Problem(
            (INSTANCE,), "a static member with group.protocol: consumer", "dynamic members"
        )


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

    Raises:
        Problem: With a path that starts at the consumer's place in the file.
    """
    taken: dict[tuple[str, str], str] = {}
    for at, consumer in enumerate(consumers):
        for name, instance in zip(consumer.client_names, consumer.instance_ids, strict=True):
            if not instance:
                continue
            if (consumer.group, instance) in taken:
                raise Problem(
                    (at, "config", INSTANCE),
                    f"{instance!r} is {taken[consumer.group, instance]} already",
                    "an id of its own in its group",
                )
            taken[consumer.group, instance] = name
