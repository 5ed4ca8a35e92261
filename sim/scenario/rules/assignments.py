"""Replicas of a topic that the scenario places: a manual assignment, as in CreateTopics.

Source: ``CreatableReplicaAssignment``; ``ReplicationControlManager``.
"""

from collections.abc import Sequence

from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.topics import Assignment
from sim.scenario.text.problems import Problem, nearest, one_of


def assignment(
    given: Sequence[Sequence[str]] | None, partitions: int, factor: int, cluster: ClusterSpec
) -> Assignment:
    """The replicas of each partition, in Kafka's order; empty where the controller places them.

    Args:
        given: Names of brokers, for each partition, the preferred leader first.
        partitions: The topic's number.
        factor: Its ``replication.factor``.
        cluster: Whose brokers they are.

    Raises:
        Problem: With a path that starts below the topic.
    """
    if given is None:
        return ()
    return placed_as(("replicas",), given, partitions, factor, cluster, "or leave replicas out")


def placed_as(
    path: tuple[str, ...],
    given: Sequence[Sequence[str]],
    partitions: int,
    factor: int,
    cluster: ClusterSpec,
    hint: str,
) -> Assignment:
    """Nodes for names, checked against the numbers of partitions and replicas.

    Raises:
        Problem: With this path; ``hint`` is its remedy if the number of partitions is another.
    """
    if len(given) != partitions:
        found = f"replicas of {len(given)} partitions"
        raise Problem(path, found, f"those of all {partitions}", hint)
    known = {server.name: server.node for server in cluster.first_brokers}
    placed = []
    for number, names in enumerate(given):
        unknown = next((name for name in names if name not in known), None)
        if unknown is not None:
            allowed = one_of(tuple(known))
            like = nearest(unknown, tuple(known))
            raise Problem((*path, number), f"no broker {unknown!r}", allowed, like)
        if len(names) != factor or len(dict.fromkeys(names)) != factor:
            found = ", ".join(names) or "nothing"
            allowed = f"{factor} brokers, each once: replication.factor is {factor}"
            raise Problem((*path, number), found, allowed)
        placed.append(tuple(known[name] for name in names))
    return tuple(placed)
