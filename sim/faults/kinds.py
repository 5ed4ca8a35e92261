"""What ``logquake list faults`` and the documents say of each kind of fault."""

from dataclasses import dataclass, field
from typing import Final

from sim.faults.spec import FaultKind


@dataclass(frozen=True, slots=True)
class KindDescription:
    """What ``logquake list faults`` says of a kind."""

    kind: FaultKind
    meaning: str
    proof: str
    """What must be seen for it to count as having taken effect."""
    keys: tuple[str, ...] = field(default=())
    """Its keys beside ``at`` and ``do``; a trailing ``?`` marks one that may be left out."""


KINDS: Final[tuple[KindDescription, ...]] = (
    KindDescription(
        "crash",
        "kill -9 of a process; the page cache stays; started again after `for`",
        "the process was running",
        ("target", "for?"),
    ),
    KindDescription(
        "restart",
        "start a process at once; one that still runs is killed first",
        "the process runs in a new incarnation",
        ("target",),
    ),
    KindDescription(
        "controlled-shutdown",
        "stop a process as SIGTERM does, with hand-over; started again after `for`",
        "the process was running",
        ("target", "for?"),
    ),
    KindDescription(
        "pause",
        "freeze a process (kill -STOP); its sockets stay open; resumed after `for`",
        "the process was running",
        ("target", "for?"),
    ),
    KindDescription(
        "power-loss",
        "a host or a rack loses power; what was not flushed is dropped or torn, and all of it "
        "dropped with `unflushed: lost`",
        "a host was powered; the bytes that were lost are told",
        ("target", "unflushed?", "for?"),
    ),
    KindDescription(
        "partition",
        "a silent cut of the links between two sides, or one way only",
        "messages were held back",
        ("between", "and?", "one-way?", "for?"),
    ),
    KindDescription(
        "delay",
        "every message on the links takes longer, or every one of some kinds",
        "messages were delayed",
        ("between", "and?", "one-way?", "message?", "by", "for?"),
    ),
    KindDescription(
        "loss",
        "a share of the segments on the links is lost and sent again",
        "messages were retransmitted",
        ("between", "and?", "one-way?", "ratio", "for?"),
    ),
    KindDescription(
        "bandwidth",
        "all messages on the links share this much, in both directions or one",
        "messages were slowed down",
        ("between", "and?", "one-way?", "to", "for?"),
    ),
    KindDescription(
        "hold",
        "one kind of message from some to others waits until healed, and what follows it",
        "a message was held",
        ("message", "from", "to?", "count?", "for?"),
    ),
    KindDescription(
        "drop",
        "one kind of message from some to others is lost, and its connection breaks",
        "a message was lost",
        ("message", "from", "to?", "count?", "for?"),
    ),
    KindDescription(
        "clock-jump",
        "a host's clock jumps forward, or backward, and stays there until healed",
        "a process ran there that could read it",
        ("target", "by", "direction?", "for?"),
    ),
    KindDescription(
        "slow-disk",
        "a log directory's disk takes `factor` times as long",
        "disk operations took longer",
        ("target", "factor", "directory?", "for?"),
    ),
    KindDescription(
        "stalled-disk",
        "a log directory's disk answers nothing until healed",
        "disk operations waited",
        ("target", "directory?", "for?"),
    ),
    KindDescription(
        "failed-disk",
        "a log directory's disk answers with EIO; healing replaces it by an empty one",
        "a disk operation failed",
        ("target", "directory?", "for?"),
    ),
    KindDescription(
        "full-disk",
        "writes to a log directory fail with ENOSPC until healed",
        "a write was refused",
        ("target", "directory?", "for?"),
    ),
    KindDescription(
        "lying-flush",
        "a log directory's disk says that it has flushed, and has not, until healed",
        "an fsync left bytes in the cache",
        ("target", "directory?", "for?"),
    ),
    KindDescription(
        "wiped-disk",
        "one log directory, or all, come back empty: the process dies, and starts on new disks",
        "a log directory held files",
        ("target", "directory?"),
    ),
    KindDescription(
        "no-file-descriptors",
        "a process opens no further file and accepts no further connection until healed",
        "a file could not be made, or a connection was not accepted",
        ("target", "for?"),
    ),
    KindDescription(
        "slow-cpu",
        "network threads and request handlers of a server take `factor` times as long",
        "requests took longer",
        ("target", "factor", "for?"),
    ),
    KindDescription(
        "lost-replica",
        "the files of one replica of one topic partition are gone",
        "the replica was there",
        ("target", "partition?"),
    ),
    KindDescription(
        "corrupt-replica",
        "a bit flips in one replica's files of one topic partition",
        "the replica held bytes",
        ("target", "partition?"),
    ),
    KindDescription(
        "torn-write",
        "kill -9 in the middle of an append to one replica; the process starts again at once",
        "the replica held a batch to tear",
        ("target", "partition?"),
    ),
    KindDescription(
        "misdirected-write",
        "a page meant for another place of the disk lies over a page of one replica",
        "the page was another one",
        ("target", "partition?"),
    ),
    KindDescription(
        "rolling-restart",
        "servers are restarted in good order, one when the one before is in sync again",
        "a process was stopped",
        ("target", "down?", "settle?"),
    ),
    KindDescription(
        "load-surge",
        "producers send `factor` times as many records",
        "records were meant for that time",
        ("target", "factor", "for?"),
    ),
    KindDescription(
        "create-topic",
        "the administrator makes a topic of the scenario anew, after it was deleted",
        "the controller has committed it",
        ("topic",),
    ),
    KindDescription(
        "delete-topic",
        "the administrator deletes a topic",
        "the controller has committed it",
        ("topic",),
    ),
    KindDescription(
        "create-partitions",
        "the administrator gives a topic more partitions, `count` in all",
        "the controller has committed it",
        ("topic", "count"),
    ),
    KindDescription(
        "alter-config",
        "the administrator changes settings of a topic",
        "the controller has committed it, and they were others before",
        ("topic", "config"),
    ),
    KindDescription(
        "reassign",
        "the administrator moves a partition to other replicas, the preferred leader first",
        "the controller has committed its beginning, and it stood elsewhere",
        ("partition", "replicas"),
    ),
    KindDescription(
        "cancel-reassignment",
        "the administrator calls off a reassignment that is under way",
        "the controller has committed it",
        ("partition",),
    ),
    KindDescription(
        "elect-leader",
        "the administrator asks for a preferred election, or an unclean one where nobody leads",
        "the controller has elected another leader",
        ("partition", "election"),
    ),
    KindDescription(
        "delete-records",
        "the administrator deletes a partition's records before an offset, or all committed ones",
        "its leader has deleted some, and every live follower has followed",
        ("partition", "before"),
    ),
    KindDescription(
        "alter-replica-log-dirs",
        "the administrator moves a broker's replica to another of its log directories",
        "the replica has arrived there",
        ("partition", "broker", "to"),
    ),
    KindDescription(
        "one-of",
        "one of the faults in `of`, each as likely, by the seed",
        "the one that was drawn did",
        ("of",),
    ),
    KindDescription(
        "alter-client-quotas",
        "the administrator sets or removes quotas of a client-id, of a user, of both or of an ip",
        "the controller has committed it, and they were others before",
        (
            "client.id?",
            "user?",
            "producer_byte_rate?",
            "consumer_byte_rate?",
            "request_percentage?",
            "ip?",
            "controller_mutation_rate?",
            "connection_creation_rate?",
            "remove?",
        ),
    ),
    KindDescription(
        "add-controller",
        "the administrator lets a controller vote in a dynamic quorum, with the disk that it has",
        "the record with it is committed",
        ("target",),
    ),
    KindDescription(
        "remove-controller",
        "the administrator takes a controller's vote away",
        "the record without it is committed",
        ("target",),
    ),
    KindDescription(
        "add-broker",
        "the administrator starts a broker beyond `initial.brokers` for the first time",
        "the broker has registered",
        ("target",),
    ),
    KindDescription(
        "decommission",
        "the administrator lets a broker give up its replicas, and then its membership (`raft`)",
        "the broker holds no replica and is no member any more",
        ("target",),
    ),
)
"""Every kind, in the order in which it is listed."""
