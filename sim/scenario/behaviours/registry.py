"""Historic behaviours of Kafka that a scenario may name, or all at once by version.

``behaviours:`` moves single switches; ``cluster.kafka`` moves every switch to what it was in that
version. Only the switches whose other sides are built may be moved; the rest are known by name and
refused as such.

Source: the failure catalogue, section 0.5; KIP-966, KIP-101, KIP-279, KIP-320.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.behaviours.producers import BEHAVIOURS_OF_PRODUCERS
from sim.scenario.behaviours.races import RACES
from sim.scenario.behaviours.types import Behaviour, Choice
from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.behaviours.zookeeper import BEHAVIOURS_IN_ZOOKEEPER_MODE
from sim.scenario.text.problems import Problem, nearest, one_of

_LOSSY: Final = (
    "nothing-committed-truncated",
    "leader-complete",
    "in-sync-complete",
    "logs-match",
    "batch-epochs-ordered",
    "follower-watermark-behind-leader",
    "reads-advance",
)

BEHAVIOURS: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "recovery",
        "KIP-966",
        "who may lead when the ISR is empty: eligible leader replicas, or only the last member of "
        "the ISR",
        (
            Choice("elr", "4.1", "whoever left the ISR below min.insync.replicas may lead"),
            Choice("isr", changes="the last member of the ISR stays in it and alone may lead"),
        ),
    ),
    Behaviour(
        "truncation",
        "KIP-101, KIP-279, KIP-320",
        "how a follower finds where its log parts from the leader's",
        (
            Choice(
                "kip320",
                "2.1",
                "fetches carry leader epochs and their answers say where to cut (as since 2.7)",
            ),
            Choice("kip279", "2.0", "the answer names its epoch; nothing is fenced", waives=_LOSSY),
            Choice(
                "kip101",
                "0.11",
                "the follower asks first where its last epoch ends at the leader",
                waives=_LOSSY,
            ),
            Choice(
                "hw",
                changes="a follower cuts at its own high watermark, and then takes a batch that "
                "begins below its end, if only it ends above",
                waives=(*_LOSSY, "offsets-contiguous"),
            ),
        ),
    ),
    Behaviour(
        "follower.out_of_range",
        "KAFKA-2143, KAFKA-4039",
        "what a follower does that is ahead of its leader when it fetches",
        (
            Choice("truncate", "2.1", "it cuts its log to the leader's end"),
            Choice("halt", changes="its process ends, unless unclean elections are on"),
            Choice(
                "restart",
                "",
                "before 0.9; the same, and if the leader's end has passed its own meanwhile, it "
                "deletes its log and fetches everything anew",
                waives=("nothing-committed-truncated",),
            ),
        ),
    ),
    Behaviour(
        "follower.later_epochs",
        "KAFKA-18723",
        "what a follower does with fetched batches of a leader epoch after its own",
        (
            Choice(
                "skip",
                "4.1",
                "it leaves them and all behind them, and asks for them again at once (as since "
                "3.9.1 and 4.0.1)",
            ),
            Choice("append", changes="it appends them"),
        ),
    ),
    Behaviour(
        "isr_expand",
        "KAFKA-7128",
        "when a follower may join the ISR",
        (
            Choice("reach_epoch_start", "2.1", "at the start of the leader's epoch"),
            Choice(
                "reach_hw",
                changes="at the leader's high watermark, which a new leader may not know yet",
                waives=("nothing-committed-truncated", "leader-complete", "in-sync-complete"),
            ),
        ),
    ),
    Behaviour(
        "isr.caught_up",
        "KAFKA-7152",
        "whether a follower that has all of an idle partition stays in the ISR between its fetches",
        (
            Choice("same_end", "2.1", "who has the leader's log end is in sync, whenever it asks"),
            Choice(
                "fetched",
                changes="it must also have asked within replica.lag.time.max.ms",
            ),
        ),
    ),
    Behaviour(
        "high_watermark.gate",
        "KAFKA-15583",
        "whether the high watermark stands still while the ISR is below min.insync.replicas",
        (
            Choice("min_isr", "3.7", "it stands still"),
            Choice(
                "none",
                changes="it moves on whoever is left in the ISR",
                waives=("high-watermark-needs-min-in-sync",),
            ),
        ),
    ),
    Behaviour(
        "isr.eligibility",
        "KIP-841",
        "whether fenced brokers are kept out of the ISR",
        (
            Choice("kip841", "3.3", "fenced brokers stay out"),
            Choice(
                "none",
                changes="anyone who fetches may join, and a broker that shuts down may lead",
                waives=("fenced-are-not-in-sync",),
            ),
        ),
    ),
    Behaviour(
        "kraft.check_quorum",
        "KAFKA-15489",
        "whether a controller cut from its quorum resigns",
        (
            Choice("on", "3.7", "it resigns after 1.5 fetch timeouts"),
            Choice("off", changes="it believes that it leads until it hears of another"),
        ),
    ),
    Behaviour(
        "kraft.fetch_wakeup",
        "KIP-1166, KAFKA-14145",
        "what answers a fetch of the metadata log that waits at the leader, at most 500 ms",
        (
            Choice(
                "high_watermark",
                "4.1",
                "records, and each move of the high watermark: members know at once that records "
                "are committed",
            ),
            Choice(
                "records",
                changes="records only: members learn that records are committed with the next "
                "ones, or when a later fetch has waited in vain",
            ),
        ),
    ),
    Behaviour(
        "client.leader_hints",
        "KIP-951",
        "whether a refusal names the new leader",
        (
            Choice("on", "3.7", "clients go to the leader that the refusal names"),
            Choice("off", changes="clients ask for metadata, and wait their back-off"),
        ),
    ),
    Behaviour(
        "client.metadata",
        "KIP-232, KAFKA-6262, KAFKA-7738",
        "whether a client goes back to an older leader when a broker that is behind names it",
        (
            Choice("newest", "2.2", "an older leader epoch than the known one is ignored"),
            Choice(
                "last",
                changes="the last answer is believed; it knows no leader epochs, and its requests "
                "carry none",
                waives=("reads-advance",),
            ),
        ),
    ),
    Behaviour(
        "client.truncation_detection",
        "KIP-320",
        "whether a consumer asks a new leader if its position is in that leader's log",
        (
            Choice("kip320", "2.3", "it goes back to where the logs part"),
            Choice(
                "none",
                changes="it reads on where it stood, or is out of range and begins by policy",
            ),
            Choice(
                "unaware",
                "",
                "the same, and its fetches name no leader epoch: a client of another make, which a "
                "former leader serves as a follower",
            ),
        ),
    ),
    Behaviour(
        "client.committed_epoch",
        "KIP-320, KAFKA-19902",
        "whether a commit names the leader epoch of what was read last",
        (
            Choice("kip320", "2.3", "whoever goes on from it can ask if the log still has it"),
            Choice("none", changes="it is a number, which other records may have come to lie at"),
        ),
    ),
    Behaviour(
        "client.generation",
        "KIP-792",
        "whether a consumer that joins again names the generation it is in",
        (
            Choice("kip792", "3.4", "so that a coordinator takes it for one that has changed"),
            Choice(
                "none", changes="a retry is like the first attempt, and is answered as that was"
            ),
        ),
    ),
    Behaviour(
        "group.coordinator",
        "KIP-848, KAFKA-14048",
        "when a group coordinator's write counts",
        (
            Choice(
                "new",
                "4.0",
                "when the high watermark has passed it, however late; it needs no "
                "min.insync.replicas, and whoever fetches stable offsets waits for it",
            ),
            Choice(
                "classic",
                changes="with acks=all within offsets.commit.timeout.ms; what is committed later "
                "is not known until the partition is loaded anew",
            ),
        ),
    ),
    Behaviour(
        "group.missing_sync",
        "KAFKA-9752, KAFKA-10134, KAFKA-12890",
        "what ends the wait of a classic group for a member that never asks for its assignment",
        (
            Choice("rebalance_timeout", "3.0", "the rebalance timeout, if not its session before"),
            Choice("heartbeats", "2.7", "its session only, which its heartbeats prolong"),
            Choice("session", "2.6", "its session, whatever heartbeats it sends meanwhile"),
            Choice(
                "new_members_stay",
                "2.2",
                "nothing, if it is new and silent: its session begins when it is next heard of",
            ),
            Choice("session", changes="before 2.2 as in 2.6"),
        ),
    ),
    Behaviour(
        "rebalance",
        "KIP-429, KIP-345",
        "how members of a classic group hand over partitions, where their settings do not say it",
        (
            Choice("eager", changes="every member gives up everything"),
            Choice("cooperative", "", "cooperative-sticky: only what moves is given up"),
            Choice("static", "", "instance ids: a member that restarts keeps its partitions"),
        ),
    ),
    Behaviour(
        "offsets.expiry",
        "KIP-211, KAFKA-4682",
        "when offsets.retention.minutes of a committed offset begin",
        (
            Choice("group_empty", "2.1", "when the group becomes empty"),
            Choice("per_offset", changes="with its commit, though its consumer is alive"),
        ),
    ),
    *BEHAVIOURS_OF_PRODUCERS,
    Behaviour(
        "cleaner.delete_horizon",
        "KAFKA-4545, KAFKA-8522, KIP-534",
        "how long a cleaner lets tombstones and markers stay",
        (
            Choice("batch", "3.1", "delete.retention.ms from the first cleaning that sees them"),
            Choice(
                "segment_mtime",
                changes="until their segment is delete.retention.ms older than the last clean one, "
                "whenever a cleaner first saw them",
                waives=("tombstones-stay-their-time",),
            ),
        ),
    ),
    Behaviour(
        "cleaner.bound_by_hw",
        "KAFKA-13194",
        "whether a cleaner stops at the high watermark",
        (
            Choice("on", "3.1", "what is not committed replaces nothing"),
            Choice(
                "off",
                changes="it goes as far as the active segment, or to an open transaction",
                waives=("cleaner-keeps-last-values",),
            ),
        ),
    ),
    Behaviour(
        "cleaner.errors",
        "KIP-346",
        "what a segment that cannot be read ends: the cleaning of its partition, or of all",
        (
            Choice("partition", "2.1", "the partition is left alone, and the cleaner goes on"),
            Choice("thread", changes="the cleaner ends, until its broker is started again"),
        ),
    ),
    Behaviour(
        "retention.bound_by_hw",
        "KAFKA-5634",
        "whether retention stops at the high watermark",
        (
            Choice("on", "1.0", "a segment that reaches beyond it stays"),
            Choice(
                "off",
                changes="only size and age are looked at",
                waives=("log-start-is-committed",),
            ),
        ),
    ),
    Behaviour(
        "quota.throttle",
        "KIP-219",
        "how a client above its quota is made to wait",
        (
            Choice(
                "kip219",
                "2.0",
                "it is answered at once, told for how long to wait, and not heard meanwhile",
            ),
            Choice("delay", changes="its answer waits, fetched records and all"),
        ),
    ),
    Behaviour(
        "client.quota_errors",
        "KIP-599",
        "whether an administrator's client knows that a quota may refuse a change",
        (
            Choice("kip599", "2.7", "it is refused, waits as long as it is told, and asks again"),
            Choice("none", changes="it is never refused, but waits before its next change"),
        ),
    ),
    Behaviour(
        "placement",
        "KIP-36",
        "whether replicas are spread over racks",
        (
            Choice("rack_aware", changes="racks take turns"),
            Choice("plain", "", "racks are not looked at"),
        ),
    ),
    Behaviour(
        "mirror.translation",
        "KAFKA-12468, KAFKA-12635, KAFKA-14666",
        "how a mirror translates committed offsets",
        (
            Choice(
                "syncs",
                "3.5",
                "at most to the copy behind the last one that is known, of 64 kept",
            ),
            Choice(
                "extrapolated",
                changes="on from the newest at the source's pace, and as it is without any",
            ),
        ),
    ),
    *RACES,
    *BEHAVIOURS_IN_ZOOKEEPER_MODE,
)
"""Every known switch."""

DEFAULTS: Final[Mapping[str, str]] = {item.name: item.default for item in BEHAVIOURS}
"""Positions of the version that a scenario has which names none."""


def resolve(given: Mapping[str, str], version: str = DEFAULT) -> Mapping[str, str]:
    """Every switch's position: as given, else that of the version.

    Raises:
        Problem: For an unknown switch, an unknown position, or one that is not built, whether it is
            given or follows from the version.
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
    positions = {item.name: given.get(item.name, item.at(version)) for item in BEHAVIOURS}
    for item in BEHAVIOURS:
        if positions[item.name] not in item.modelled:
            raise Problem(
                (item.name,),
                f"Kafka {version} had {positions[item.name]!r}, which is known and not modelled",
                one_of(item.modelled),
                f"behaviours: {{{item.name}: {item.default}}} takes the version without it",
            )
    return positions


def waived(positions: Mapping[str, str]) -> dict[str, str]:
    """Invariants that the positions break on purpose, each with the reason."""
    reasons: dict[str, str] = {}
    for item in BEHAVIOURS:
        for choice in item.positions:
            if positions[item.name] == choice.name:
                for invariant in choice.waives:
                    reasons.setdefault(invariant, f"{item.name}: {choice.name}")
    return reasons
