"""Historic behaviours of the control plane that kept its state in ZooKeeper.

Source: the failure catalogue, section 0.5; ``kafka.controller.KafkaController`` (0.10 to 3.9).
"""

from typing import Final

from sim.scenario.behaviours.types import Behaviour, Choice

BEHAVIOURS_IN_ZOOKEEPER_MODE: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "zk.isr_changes",
        "KIP-497",
        "in ZooKeeper mode, who writes the ISR that a leader wants",
        (
            Choice("alter_partition", "2.7", "the controller, asked by AlterPartition"),
            Choice(
                "zookeeper",
                changes="the leader itself, if the version it has cached is right",
                risk="ISRs that no longer change until a restart",
            ),
        ),
        side="level",
    ),
    Behaviour(
        "zk.broker_epoch",
        "KIP-380",
        "in ZooKeeper mode, whether the controller's requests name a broker's process",
        (
            Choice("on", "2.2", "what was meant for a former process is refused"),
            Choice(
                "off",
                changes="they name a number, whichever process has it",
                risk="replicas offline after a quick restart",
            ),
        ),
        side="level",
    ),
    Behaviour(
        "zk.controller_epoch_fencing",
        "KAFKA-6082",
        "in ZooKeeper mode, whether writes of a former controller fail, and its epoch is its own",
        (
            Choice(
                "on",
                "2.1",
                "each write is conditional on the controller's epoch, and who takes the "
                "controller's node counts the epoch with it",
            ),
            Choice(
                "off",
                changes="a former controller may overwrite its successor's decision, and one whose "
                "session ended as it took the node counts on from its successor's epoch",
                risk="two views of who leads: unavailable",
            ),
        ),
    ),
    Behaviour(
        "zk.batching",
        "KAFKA-5642",
        "in ZooKeeper mode, whether the controller works on many partitions at once",
        (
            Choice("on", "1.1", "reads and writes overlap, and requests tell of many partitions"),
            Choice(
                "off",
                changes="one operation after the other, one partition in a request",
                risk="unavailable for minutes where there are many partitions",
            ),
        ),
    ),
    Behaviour(
        "zk.resignation",
        "KAFKA-4447",
        "in ZooKeeper mode, whether a controller without its session forgets that it was one",
        (
            Choice("clean", "0.11", "it forgets everything", backports=("0.10.2.0",)),
            Choice(
                "stale",
                changes="it goes on to act on what it knew",
                risk="two controllers: acknowledged records (acks=1) lost",
            ),
        ),
    ),
    Behaviour(
        "zk.role_changes",
        "KAFKA-9307",
        "in ZooKeeper mode, what a broker does that gets other roles while ZooKeeper is away",
        (
            Choice("whole", changes="it changes its roles, and its coordinators are told"),
            Choice(
                "break_off",
                "",
                "it remembers the leader epoch, fails to read a topic's settings, and its "
                "coordinators hear nothing",
                risk="coordinators unavailable until a restart",
            ),
        ),
    ),
    Behaviour(
        "zk.session_end",
        "KAFKA-2729, KAFKA-3083, KAFKA-5642",
        "in ZooKeeper mode, what becomes of a controller's event when its session ends under way",
        (
            Choice("drop", "1.1", "it is given up, with those that wait behind it"),
            Choice(
                "resume",
                changes="it goes on in the next session, on what was so in the one before",
                risk="two views of who leads: unavailable until a restart",
            ),
        ),
    ),
)
"""Switches that mean something with ``cluster.zookeeper`` only."""
