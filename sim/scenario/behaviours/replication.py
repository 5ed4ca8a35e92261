"""Historic behaviours of replication: truncation, the ISR, high watermarks, elections.

Source: the failure catalogue, section 0.5; KIP-966, KIP-101, KIP-279, KIP-320.
"""

from typing import Final

from sim.scenario.behaviours.types import Behaviour, Choice

_LOSSY: Final = (
    "nothing-committed-truncated",
    "leader-complete",
    "in-sync-complete",
    "logs-match",
    "batch-epochs-ordered",
    "follower-watermark-behind-leader",
    "reads-advance",
)

BEHAVIOURS_OF_REPLICATION: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "recovery",
        "KIP-966",
        "who may lead when the ISR is empty: eligible leader replicas, or only the last member of "
        "the ISR",
        (
            Choice("elr", "4.1", "whoever left the ISR below min.insync.replicas may lead"),
            Choice(
                "isr",
                changes="the last member of the ISR stays in it and alone may lead",
                risk="acknowledged records lost when the last member returns with less",
            ),
        ),
        side="level",
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
            Choice(
                "kip279",
                "2.0",
                "the answer names its epoch; nothing is fenced",
                waives=_LOSSY,
                risk="a fetch of a former epoch may be served: replicas may differ",
            ),
            Choice(
                "kip101",
                "0.11",
                "the follower asks first where its last epoch ends at the leader",
                waives=_LOSSY,
                risk="replicas differ after two quick elections",
            ),
            Choice(
                "hw",
                changes="a follower cuts at its own high watermark, and then takes a batch that "
                "begins below its end, if only it ends above",
                waives=(*_LOSSY, "offsets-contiguous"),
                risk="acknowledged records lost, replicas differ, after two failures",
            ),
        ),
        side="level",
    ),
    Behaviour(
        "follower.out_of_range",
        "KAFKA-2143, KAFKA-4039",
        "what a follower does that is ahead of its leader when it fetches",
        (
            Choice("truncate", "2.1", "it cuts its log to the leader's end"),
            Choice(
                "halt",
                changes="its process ends, unless unclean elections are on",
                risk="one broker less for each follower that is ahead",
            ),
            Choice(
                "restart",
                "",
                "before 0.9; the same, and if the leader's end has passed its own meanwhile, it "
                "deletes its log and fetches everything anew",
                waives=("nothing-committed-truncated",),
                risk="a whole log is fetched again; with another failure, it is lost",
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
                "it leaves them and all behind them, and asks for them again at once",
                backports=("3.9.1", "4.0.1"),
            ),
            Choice(
                "append",
                changes="it appends them",
                risk="replicas may differ after a truncation at the leader",
            ),
        ),
    ),
    Behaviour(
        "isr_expand",
        "KAFKA-7128",
        "when a follower may join the ISR",
        (
            Choice(
                "reach_epoch_start",
                "2.1",
                "at the start of the leader's epoch",
                backports=("2.0.1",),
            ),
            Choice(
                "reach_hw",
                changes="at the leader's high watermark, which a new leader may not know yet",
                waives=("nothing-committed-truncated", "leader-complete", "in-sync-complete"),
                risk="acknowledged records lost in clean elections",
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
                risk="writes refused below min.insync.replicas though nothing lacks",
            ),
        ),
    ),
    Behaviour(
        "high_watermark.gate",
        "KAFKA-15583",
        "whether the high watermark stands still while the ISR is below min.insync.replicas",
        (
            Choice(
                "min_isr",
                "3.7",
                "it stands still",
                risk="consumers wait while the ISR is too small",
            ),
            Choice(
                "none",
                changes="it moves on whoever is left in the ISR",
                waives=("high-watermark-needs-min-in-sync",),
                risk="consumers read, and ELR counts, what one power loss may take",
            ),
        ),
    ),
    Behaviour(
        "follower.new_epoch",
        "KAFKA-7164",
        "at which leader epochs a follower truncates that follows this leader already",
        (
            Choice("each", "2.1", "at each new one: it begins to follow again"),
            Choice(
                "missed",
                "",
                "if it has not heard of the one before, in which another one may have led",
                risk="replicas differ if a leader that leads again has truncated",
                backports=("2.0.1",),
                waives=_LOSSY,
            ),
            Choice(
                "another_leader",
                changes="at none: it fetches on, though another one may have led meanwhile",
                risk="replicas differ after a quick change of leaders and back",
                waives=_LOSSY,
            ),
        ),
    ),
    Behaviour(
        "isr.eligibility",
        "KIP-841, KAFKA-13916, KAFKA-14140",
        "whether fenced brokers are kept out of the ISR",
        (
            Choice("kip841", "3.3", "fenced brokers stay out, and those that shut down"),
            Choice(
                "none",
                changes="anyone who fetches may join, and a broker that shuts down may lead",
                waives=("fenced-are-not-in-sync",),
                risk="unavailable while a broker that stops or is fenced leads",
            ),
        ),
        side="level",
    ),
    Behaviour(
        "isr.broker_epochs",
        "KIP-903, KAFKA-14617",
        "whether processes of brokers join an ISR, or their ids",
        (
            Choice(
                "kip903",
                "3.5",
                "fetches and ISR changes carry broker epochs: what a former process fetched does "
                "not count for the next one",
            ),
            Choice(
                "none",
                changes="ids, whichever process fetched",
                risk="acknowledged records lost if a follower comes back at once without its tail",
                waives=("nothing-committed-truncated", "leader-complete", "in-sync-complete"),
            ),
        ),
        side="level",
    ),
    Behaviour(
        "fetch.former_process",
        "KAFKA-15221",
        "what a leader does with a late fetch of a follower's former process (kip903)",
        (
            Choice("refuse", "3.7", "it refuses it"),
            Choice(
                "count",
                changes="it takes its offset for the follower's log end, until the next fetch",
                risk="the high watermark passes a follower that has lost its tail",
                waives=("nothing-committed-truncated", "leader-complete", "in-sync-complete"),
            ),
        ),
    ),
    Behaviour(
        "high_watermark.waits_for",
        "KAFKA-15021",
        "for whom outside the ISR the high watermark waits",
        (
            Choice("eligible", "3.6", "for those that have caught up and may join"),
            Choice(
                "caught_up",
                changes="for those that have caught up, though they are fenced or shut down",
                risk="acks=all writes wait replica.lag.time.max.ms for a broker that has stopped",
            ),
        ),
    ),
    Behaviour(
        "shutdown.metadata",
        "KAFKA-13858",
        "whether a broker that shuts down listens to metadata",
        (
            Choice("applied", "3.3", "it ceases to lead, and to follow, as it hears of it"),
            Choice(
                "ignored",
                "2.8",
                "it leads, as it thinks, until its process ends",
                risk="unavailable for 5 s, or more, with each broker that stops",
            ),
            Choice("applied", changes="before KRaft a request of the controller ended it"),
        ),
    ),
    Behaviour(
        "isr.slow_leader",
        "KIP-501",
        "what a leader thinks of followers whose fetches it has not answered yet",
        (
            Choice(
                "lag",
                changes="they lag",
                risk="unavailable when a leader with a slow disk fails: it is alone in its ISR",
            ),
            Choice(
                "kip501",
                "",
                "they are in sync while a fetch at the last log end that they knew is pending",
                proposed=True,
                risk="writes with acks=all wait as long as the disk of a slow leader",
            ),
        ),
    ),
    Behaviour(
        "recovery.unclean",
        "KIP-966",
        "which replica an unclean election takes",
        (
            Choice(
                "first_alive",
                changes="the first that is alive, in the order of the assignment",
                risk="acknowledged records lost that another replica has",
            ),
            Choice(
                "longest_log",
                "",
                "the one with the longest log, for which the controller asks all (part 2)",
                proposed=True,
                risk="acknowledged records lost that no replica has which is alive",
            ),
        ),
    ),
)
"""Switches of how replicas agree on a log, and on who has it."""
