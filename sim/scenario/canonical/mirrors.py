"""Other clusters and mirrors, written out with every default filled in."""

from collections.abc import Callable, Sequence
from typing import Final

from sim.scenario.model.mirrors import MirrorSpec, OtherCluster
from sim.scenario.text.plain import Plain
from sim.scenario.text.quantities import show_duration

_KEYS: Final = ("cluster", "topics", "producers", "consumers", "faults", "expect")
"""What another cluster has of its own."""


def regions(
    clusters: Sequence[OtherCluster],
    mirrors: Sequence[MirrorSpec],
    document: Callable[[OtherCluster], dict[str, Plain]],
) -> dict[str, Plain]:
    """The keys ``clusters`` and ``mirrors``; a scenario of one cluster has neither.

    Args:
        clusters: Beside the scenario's own.
        mirrors: Between them.
        document: Writes another cluster's scenario out.
    """
    plain: dict[str, Plain] = {}
    if clusters:
        plain["clusters"] = {each.alias: _other(each, mirrors, document) for each in clusters}
    if mirrors:
        plain["mirrors"] = [_mirror(mirror) for mirror in mirrors]
    return plain


def _other(
    other: OtherCluster,
    mirrors: Sequence[MirrorSpec],
    document: Callable[[OtherCluster], dict[str, Plain]],
) -> Plain:
    whole = document(other)
    plain: dict[str, Plain] = {key: whole[key] for key in _KEYS}
    topics = plain["topics"]
    assert isinstance(topics, dict)
    made = [mirror.target_topic for mirror in mirrors if mirror.target == other.alias]
    plain["topics"] = {name: topic for name, topic in topics.items() if name not in made}
    plain["distance"] = other.distance.plain()
    return plain


def _mirror(mirror: MirrorSpec) -> Plain:
    plain: dict[str, Plain] = {"name": mirror.name, "topic": mirror.topic, "to": mirror.target}
    if mirror.groups:
        plain["groups"] = list(mirror.groups)
    plain["at"] = mirror.at
    plain["start"] = show_duration(mirror.start_us)
    plain["config"] = dict(mirror.settings())
    return plain
