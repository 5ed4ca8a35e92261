"""Releases in one cluster: those of clients beside that of the brokers.

Source: KIP-35, KIP-896; the compatibility table of Kafka's upgrade notes.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.apps import ConnectorSpec, ProcessorSpec
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.text.problems import Problem

OLDEST_CLIENT: Final = "2.1"
"""The oldest release that talks to brokers of 4.0, which removed older versions (KIP-896)."""

OLDEST_BROKER: Final = "2.5"
"""The oldest brokers beside clients of another release: before it requests that clients of later
releases need were others."""

_EPOCHS_SINCE: Final = "4.0"
"""The first clients that know ``transaction.version`` 2 (KIP-890)."""


def client_release(kafka: str | None, cluster: ClusterSpec) -> str:
    """The release of a client: its own, or that of the brokers.

    Args:
        kafka: As its entry has it; ``None``: that of the brokers.
        cluster: The cluster.

    Raises:
        Problem: If the two do not talk to each other, or their talk is not modelled.
    """
    if kafka is None or kafka == cluster.kafka:
        return cluster.kafka
    if not is_since(kafka, OLDEST_CLIENT):
        raise Problem(
            ("kafka",),
            f"a client of {kafka} beside brokers of {cluster.kafka}",
            f"the release of the brokers, or one from {OLDEST_CLIENT} on",
            "requests that only older clients send are not modelled (KIP-896)",
        )
    if not is_since(cluster.kafka, OLDEST_BROKER):
        raise Problem(
            ("kafka",),
            f"a client of {kafka} beside brokers of {cluster.kafka}",
            f"the release of the brokers; another one where those have {OLDEST_BROKER} or newer",
            f"leave it out, or set cluster.kafka: {OLDEST_BROKER!r}",
        )
    return kafka


def check_transactions(
    cluster: ClusterSpec,
    positions: Mapping[str, str],
    producers: Sequence[ProducerSpec],
    processors: Sequence[ProcessorSpec],
    connectors: Sequence[ConnectorSpec],
) -> None:
    """Check that transactional clients know the cluster's ``transaction.version``.

    Args:
        cluster: The cluster.
        positions: Every switch's position.
        producers: Of the file, as those that follow.
        processors: Tasks.
        connectors: Connectors.

    Raises:
        Problem: With a path from the top of the file.
    """
    if positions["transactions"] != "kip890":
        return
    clients: list[tuple[str, int, ProducerSpec | ProcessorSpec | ConnectorSpec]] = [
        *(("producers", place, each) for place, each in enumerate(producers)),
        *(("processors", place, each) for place, each in enumerate(processors)),
        *(("connectors", place, each) for place, each in enumerate(connectors)),
    ]
    for key, place, client in clients:
        release = client.kafka or cluster.kafka
        if client.transactional_ids and not is_since(release, _EPOCHS_SINCE):
            raise Problem(
                (key, place, "kafka"),
                f"transactions of {release} where transaction.version is 2",
                f"{_EPOCHS_SINCE} or newer",
                "leave it out, or set behaviours: {transactions: kip98}, which is version 0",
            )


def check_groups(consumers: Sequence[ConsumerSpec], since: Mapping[str, str]) -> None:
    """Check that members of the newer kinds of groups have a release that is one of them.

    Args:
        consumers: The consumers of the file.
        since: First release of each kind: ``consumer`` (KIP-848) and ``share`` (KIP-932).

    Raises:
        Problem: With a path below ``consumers``.
    """
    for place, consumer in enumerate(consumers):
        kind = "share" if consumer.is_share else consumer.config.text("group.protocol")
        if consumer.kafka is None or kind not in since or is_since(consumer.kafka, since[kind]):
            continue
        known = "group.type: share" if kind == "share" else f"group.protocol: {kind}"
        raise Problem(
            (place, "kafka"),
            f"a client of {consumer.kafka} with {known}",
            f"{since[kind]} or newer",
            "leave it out",
        )
