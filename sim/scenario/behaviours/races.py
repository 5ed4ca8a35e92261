"""Historic behaviours that were races of two threads of one broker.

No version chooses them: they open the window each time, for ``cluster.cpu.preempted``, where Kafka
had it open for microseconds and met it seldom. So they show what could happen, not how often.

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
            Choice("read_once", changes="once"),
            Choice(
                "read_twice",
                "",
                "to see that no open transaction lies below it, and again for the end of the read",
                raced_in="0.11 to 2.5",
            ),
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
                "each that sees that nothing is missing before another one has begun to write it",
                raced_in="builds between KAFKA-9777 and 2.6",
            ),
        ),
    ),
    Behaviour(
        "follower.diverging",
        "KAFKA-14704",
        "what a follower does first whose leader tells it where their logs part",
        (
            Choice("truncate", changes="it cuts its log, and asks again"),
            Choice(
                "adopt_watermark",
                "",
                "it adopts the leader's high watermark, and cuts its log after that",
                raced_in="2.7 to 3.4",
                waives=("reads-advance",),
            ),
        ),
    ),
    Behaviour(
        "group.unload",
        "KAFKA-20634",
        "when a group coordinator lets go of a partition that is led elsewhere; Kafka 4.1 does it "
        "late, which is asked for by name here, as all races are",
        (
            Choice("at_once", changes="in the instant in which the log does"),
            Choice(
                "late",
                "",
                "in a thread of its own; until then a high watermark that passes its offsets "
                "commits them, whoever wrote what lies there",
                raced_in="4.0 and later, until KAFKA-20634",
            ),
        ),
    ),
)
"""Switches that give a broker's threads another order."""
