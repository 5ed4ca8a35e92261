"""Historic behaviours of Kafka that a scenario may ask for by name.

Each stands at what Kafka 4.1 does. Only the switches whose other sides are built may be moved; the
rest are known by name and refused as such.

Source: the failure catalogue, section 0.5; KIP-966, KIP-101, KIP-279, KIP-320.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.scenario.problems import Problem, nearest, one_of


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One switch: ``choices[0]`` is what Kafka 4.1 does, ``modelled`` the sides that are built."""

    name: str
    choices: tuple[str, ...]
    modelled: tuple[str, ...]
    meaning: str

    @property
    def default(self) -> str:
        """What Kafka 4.1 does."""
        return self.choices[0]


BEHAVIOURS: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "recovery",
        ("elr", "isr"),
        ("elr", "isr"),
        "who may lead when the ISR is empty: eligible leader replicas (KIP-966), or only the last "
        "member of the ISR",
    ),
    Behaviour(
        "truncation",
        ("kip320", "kip279", "kip101", "hw"),
        ("kip320",),
        "how a follower finds where its log parts from the leader's",
    ),
    Behaviour(
        "isr_expand",
        ("reach_epoch_start", "reach_hw"),
        ("reach_epoch_start",),
        "when a follower may join the ISR (KAFKA-7128)",
    ),
    Behaviour(
        "isr.eligibility",
        ("kip841", "none"),
        ("kip841",),
        "whether fenced brokers are kept out of the ISR (KIP-841)",
    ),
    Behaviour(
        "kraft.check_quorum",
        ("on", "off"),
        ("on",),
        "whether a controller cut from its quorum resigns (KAFKA-15489)",
    ),
    Behaviour(
        "client.leader_hints",
        ("on", "off"),
        ("on",),
        "whether a refusal names the new leader (KIP-951)",
    ),
    Behaviour(
        "rebalance",
        ("eager", "cooperative", "static"),
        ("eager",),
        "how members of a classic group hand over partitions",
    ),
    Behaviour(
        "transactions",
        ("kip890", "kip98"),
        ("kip890", "kip98"),
        "how partitions join a transaction and what fences its producer: through their leaders and "
        "with an epoch of its own for each transaction (transaction.version 2), or by the client",
    ),
    Behaviour(
        "placement",
        ("rack_aware", "plain"),
        ("rack_aware",),
        "whether replicas are spread over racks (KIP-36)",
    ),
)
"""Every known switch."""

DEFAULTS: Final[Mapping[str, str]] = {item.name: item.default for item in BEHAVIOURS}
"""What Kafka 4.1 does."""


def resolve(given: Mapping[str, str]) -> Mapping[str, str]:
    """Every switch's position: as given, else Kafka 4.1's.

    Raises:
        Problem: For an unknown switch, an unknown position, or one that is not built.
    """
    known = {item.name: item for item in BEHAVIOURS}
    for name, choice in given.items():
        behaviour = known.get(name)
        if behaviour is None:
            raise Problem((name,), f"unknown behaviour {name}", one_of(known), nearest(name, known))
        if choice not in behaviour.choices:
            raise Problem(
                (name,), repr(choice), one_of(behaviour.choices), nearest(choice, behaviour.choices)
            )
        if choice not in behaviour.modelled:
            raise Problem(
                (name,),
                f"{choice!r} is known and not modelled",
                one_of(behaviour.modelled),
                "leave it out",
            )
    return {**DEFAULTS, **given}
