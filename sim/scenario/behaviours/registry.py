"""Historic behaviours of Kafka that a scenario may name, or all at once by version.

``behaviours:`` moves single switches; ``cluster.kafka`` moves every switch to what it was in that
version: in the first release of its line, so that ``"3.4"`` is 3.4.0 and lacks what came in 3.4.1.
Only the switches whose other sides are built may be moved; the rest are known by name and refused
as such.

Source: the failure catalogue, section 0.5; the commits that each release's tag contains.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.behaviours.clients import BEHAVIOURS_OF_CLIENTS
from sim.scenario.behaviours.control import BEHAVIOURS_OF_CONTROL
from sim.scenario.behaviours.logs import BEHAVIOURS_OF_LOGS
from sim.scenario.behaviours.producers import BEHAVIOURS_OF_PRODUCERS
from sim.scenario.behaviours.races import RACES
from sim.scenario.behaviours.recent import BEHAVIOURS_OF_RECENT_RELEASES
from sim.scenario.behaviours.replication import BEHAVIOURS_OF_REPLICATION
from sim.scenario.behaviours.tiered import BEHAVIOURS_OF_TIERED_STORAGE
from sim.scenario.behaviours.types import Behaviour, Side
from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.behaviours.zookeeper import BEHAVIOURS_IN_ZOOKEEPER_MODE
from sim.scenario.text.problems import Problem, nearest, one_of

BEHAVIOURS: Final[tuple[Behaviour, ...]] = (
    *BEHAVIOURS_OF_REPLICATION,
    *BEHAVIOURS_OF_CONTROL,
    *BEHAVIOURS_OF_CLIENTS,
    *BEHAVIOURS_OF_PRODUCERS,
    *BEHAVIOURS_OF_LOGS,
    *BEHAVIOURS_OF_RECENT_RELEASES,
    *RACES,
    *BEHAVIOURS_OF_TIERED_STORAGE,
    *BEHAVIOURS_IN_ZOOKEEPER_MODE,
)
"""Every known switch."""

DEFAULTS: Final[Mapping[str, str]] = {item.name: item.default for item in BEHAVIOURS}
"""Positions of the version that a scenario has which names none."""


def resolve(
    given: Mapping[str, str], version: str = DEFAULT, *, preempted: bool = False
) -> Mapping[str, str]:
    """Every switch's position: as given, else that of the version.

    Args:
        given: Positions by the names of their switches.
        version: One of ``VERSIONS``.
        preempted: True if threads are interrupted, which shows the version's races.

    Raises:
        Problem: For an unknown switch, an unknown position, or one that is not built, whether it is
            given or follows from the version.
    """
    known = {item.name: item for item in BEHAVIOURS}
    for name, choice in given.items():
        _check_given(known, name, choice)
    positions = {
        item.name: given.get(item.name, item.at(version, preempted=preempted))
        for item in BEHAVIOURS
    }
    if positions["group.coordinator"] == "classic" and "group.unload" not in given:
        positions["group.unload"] = "at_once"
    for item in BEHAVIOURS:
        if positions[item.name] not in item.modelled:
            raise Problem(
                (item.name,),
                f"Kafka {version} had {positions[item.name]!r}, which is known and not modelled",
                one_of(item.modelled),
                f"behaviours: {{{item.name}: {item.default}}} takes the version without it",
            )
    return positions


def at_release(
    positions: Mapping[str, str],
    founded: str,
    release: str,
    side: Side,
    *,
    preempted: bool = False,
) -> Mapping[str, str]:
    """Positions of a process of another release than that with which the cluster began.

    Its own release decides what belongs to its side; feature levels stay those of the cluster, and
    so does a position that is not the one of the cluster's release: the scenario has chosen it.

    Args:
        positions: Those of the scenario.
        founded: Release with which the cluster began.
        release: That of the process.
        side: ``server`` or ``client``.
        preempted: As for :func:`resolve`.
    """
    if release == founded:
        return positions
    found = dict(positions)
    for item in BEHAVIOURS:
        is_usual = found[item.name] == item.at(founded, preempted=preempted)
        if item.side in (side, "both") and is_usual:
            found[item.name] = item.at(release, preempted=preempted)
    return found


def _check_given(known: Mapping[str, Behaviour], name: str, choice: str) -> None:
    behaviour = known.get(name)
    if behaviour is None:
        raise Problem((name,), f"unknown behaviour {name}", one_of(known), nearest(name, known))
    if choice not in behaviour.choices:
        raise Problem(
            (name,), repr(choice), one_of(behaviour.choices), nearest(choice, behaviour.choices)
        )
    if choice not in behaviour.modelled:
        is_proposed = any(c.name == choice and c.proposed for c in behaviour.positions)
        known_how = "proposed, in no release" if is_proposed else "known"
        raise Problem(
            (name,),
            f"{choice!r} is {known_how} and not modelled",
            one_of(behaviour.modelled),
            "leave it out",
        )


def waived(positions: Mapping[str, str]) -> dict[str, str]:
    """Invariants that the positions break on purpose, each with the reason."""
    reasons: dict[str, str] = {}
    for item in BEHAVIOURS:
        for choice in item.positions:
            if positions[item.name] == choice.name:
                for invariant in choice.waives:
                    reasons.setdefault(invariant, f"{item.name}: {choice.name}")
    return reasons
