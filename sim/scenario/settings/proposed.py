"""Settings of proposals, which no release of Kafka has: each goes with the proposal's switch.

Source: KIP-966, part 2, as accepted.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sim.scenario.settings.types import LONG_MAX, Setting
from sim.scenario.text.problems import Problem

STRATEGY: Final = "unclean.recovery.strategy"
TIMEOUT: Final = "unclean.recovery.timeout.ms"

_SWITCH: Final = "recovery.unclean"
_POSITION: Final = "longest_log"
_WITH: Final = f"a proposal, which no release has: only with {_SWITCH}: {_POSITION}"

_STRATEGY: Final = Setting(
    STRATEGY,
    "string",
    None,
    choices=("None", "Balanced", "Aggressive"),
    because=f"{_WITH}; null: Aggressive with unclean.leader.election.enable, else Balanced",
)

TOPIC_PROPOSALS: Final[tuple[Setting, ...]] = (_STRATEGY,)
BROKER_PROPOSALS: Final[tuple[Setting, ...]] = (
    _STRATEGY,
    Setting(TIMEOUT, "int", 300_000, low=1, high=LONG_MAX, because=_WITH),
)

NAMES: Final = (STRATEGY, TIMEOUT)
"""Every such setting."""


def check(given: Iterable[str], positions: Mapping[str, str]) -> None:
    """Check that no setting of a proposal is given without it.

    Args:
        given: Names that the file itself gives.
        positions: Every switch's position.

    Raises:
        Problem: With the setting's name as its path.
    """
    if positions[_SWITCH] == _POSITION:
        return
    for name in given:
        if name in NAMES:
            raise Problem(
                (name,),
                f"{name}, which no release of Kafka has: KIP-966 proposes it",
                f"behaviours: {{{_SWITCH}: {_POSITION}}} beside it",
                "leave it out, or add the switch",
            )


def check_all(
    cluster: Iterable[str], topics: Mapping[str, Iterable[str]], positions: Mapping[str, str]
) -> None:
    """Check those that the file gives its brokers and its topics.

    Raises:
        Problem: With the whole path.
    """
    places = {("cluster", "config"): cluster} | {
        ("topics", name, "config"): given for name, given in topics.items()
    }
    for path, given in places.items():
        try:
            check(given, positions)
        except Problem as problem:
            raise problem.below(*path) from None


def check_topic(given: Mapping[str, object]) -> None:
    """Check that a topic names its strategy: one that has none leaves the name out.

    Raises:
        Problem: With the setting's name as its path.
    """
    if STRATEGY in given and given[STRATEGY] is None:
        raise Problem(
            (STRATEGY,), "nothing", _STRATEGY.allowed, "leave it out: the brokers' counts then"
        )
