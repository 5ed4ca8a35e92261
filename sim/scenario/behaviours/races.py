"""Historic behaviours that were races of two threads of one broker.

A version that had the race has it where ``cluster.cpu.preempted`` is given, which says for how long
a thread is interrupted; without it threads do not meet there, as they seldom did. Named in
``behaviours``, a race is met each time, where Kafka had its window open for microseconds: a run
shows what could happen, not how often.

Source: the failure catalogue, E10, F8, B12 and C14.
"""

from typing import Final

from sim.scenario.behaviours.types import Behaviour, Choice

RACES: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "fetch.stable_bound",
        "KAFKA-9807",
        "how often a read of committed data looks at the high watermark",
        (
            Choice("read_once", "2.5", "once"),
            Choice(
                "read_twice",
                "0.11",
                "to see that no open transaction lies below it, and again for the end of the read",
                risk="read_committed consumers read open and aborted transactions",
                is_race=True,
            ),
            Choice("read_once", changes="before 0.11 nothing was read so"),
        ),
    ),
    Behaviour(
        "transaction.completion",
        "KAFKA-10080",
        "how many threads write that a transaction is complete when its markers are written",
        (
            Choice("once", changes="one"),
            Choice(
                "twice",
                "",
                "each that sees that nothing is missing before another one has begun to write it; "
                "only builds between KAFKA-9777 and 2.6 had it, and no release",
                risk="transactions hang: read_committed consumers wait",
                is_race=True,
            ),
        ),
    ),
    Behaviour(
        "follower.diverging",
        "KAFKA-14704",
        "what a follower does first whose leader tells it where their logs part",
        (
            Choice("truncate", "3.5", "it cuts its log, and asks again", backports=("3.4.1",)),
            Choice(
                "adopt_watermark",
                "2.7",
                "it adopts the leader's high watermark, and cuts its log after that",
                risk="consumers at followers read what is then truncated",
                is_race=True,
                waives=("reads-advance",),
            ),
            Choice("truncate", changes="before 2.7 a request of its own asked where to cut"),
        ),
    ),
    Behaviour(
        "group.unload",
        "KAFKA-20634",
        "when a group coordinator lets go of a partition that is led elsewhere",
        (
            Choice(
                "late",
                "4.0",
                "in a thread of its own; until then a high watermark that passes its offsets "
                "commits them, whoever wrote what lies there (group.coordinator: new)",
                risk="acknowledged offset commits lost: records read again",
                is_race=True,
            ),
            Choice("at_once", changes="in the instant in which the log does"),
        ),
    ),
)
"""Switches that give a broker's threads another order."""
