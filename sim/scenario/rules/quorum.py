"""Voters of the metadata quorum: static or dynamic, in processes of their own or in brokers'.

Source: KIP-853; ``kafka-storage format --initial-controllers``; ``process.roles``.
"""

from typing import Final

from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.cluster import ServerSpec
from sim.scenario.text.problems import Problem

_DYNAMIC_SINCE: Final = "3.9"


def initial_controllers(quorum: str, count: int | None, controllers: int, version: str) -> int:
    """Number of controllers that vote from the start in a dynamic quorum; 0 if it is static.

    Raises:
        Problem: With the key as its path.
    """
    if quorum == "static":
        if count is not None:
            raise Problem(
                ("initial.controllers",),
                "initial.controllers with cluster.quorum: static, where all controllers vote",
                "cluster.quorum: dynamic beside it",
                "leave it out, or set cluster.quorum: dynamic",
            )
        return 0
    if not is_since(version, _DYNAMIC_SINCE):
        raise Problem(
            ("quorum",),
            f"dynamic with cluster.kafka {version}, which has kraft.version 0 only",
            f"static, or cluster.kafka {_DYNAMIC_SINCE} and newer",
        )
    if count is not None and count > controllers:
        raise Problem(
            ("initial.controllers",),
            f"{count} initial controllers of {controllers}",
            f"1 to {controllers} (cluster.controllers)",
        )
    return count or controllers


def combined(
    count: int, brokers: tuple[ServerSpec, ...], racks: tuple[str, ...]
) -> tuple[ServerSpec, ...]:
    """The brokers that are controllers as well: one rack after the other, by number.

    Raises:
        Problem: With the key as its path.
    """
    if count > len(brokers):
        raise Problem(
            ("combined",),
            f"{count} of {len(brokers)} brokers",
            f"1 to {len(brokers)}",
            "add brokers",
        )
    places: dict[str, int] = dict.fromkeys((*racks, ""), 0)
    rounds: list[tuple[int, ServerSpec]] = []
    for broker in brokers:
        rounds.append((places[broker.rack], broker))
        places[broker.rack] += 1
    rounds.sort(key=lambda entry: (entry[0], entry[1].node))
    chosen = [broker for _, broker in rounds[:count]]
    return tuple(sorted(chosen, key=lambda broker: broker.node))
