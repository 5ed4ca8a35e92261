"""Historic behaviours of the metadata quorum and of its controller.

Source: KIP-595, KIP-996, KIP-1166; ``org.apache.kafka.raft.KafkaRaftClient`` (3.0 to 4.1).
"""

from typing import Final

from sim.scenario.behaviours.types import Behaviour, Choice

BEHAVIOURS_OF_CONTROL: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "kraft.check_quorum",
        "KAFKA-15489",
        "whether a controller cut from its quorum resigns",
        (
            Choice("on", "3.7", "it resigns after 1.5 fetch timeouts"),
            Choice(
                "off",
                changes="it believes that it leads until it hears of another",
                risk="who asks the former controller waits, and sees old metadata",
            ),
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
                risk="none for data; brokers learn of changes up to 500 ms later",
            ),
        ),
    ),
    Behaviour(
        "kraft.pre_vote",
        "KIP-996, KAFKA-16164",
        "whether a voter asks if it would be elected before it begins an epoch",
        (
            Choice("on", "4.0", "a majority has to grant it a pre-vote"),
            Choice(
                "off",
                changes="it begins one when it has heard nothing for a fetch timeout",
                risk="no controller for a while, each time a voter that was cut off comes back",
            ),
        ),
    ),
    Behaviour(
        "kraft.pre_vote_refusal",
        "KIP-996",
        "whom a follower refuses a pre-vote (kraft.pre_vote: on)",
        (
            Choice("hears_leader", changes="everyone, while it has fetched from its leader"),
            Choice(
                "log_only",
                "",
                "those whose logs end before its own, as by KIP-595; no release",
                risk="no controller for a while, when a voter that was cut off comes back",
            ),
        ),
    ),
    Behaviour(
        "kraft.leader_balance",
        "KAFKA-13682",
        "whether a KRaft controller gives leaderships back to preferred leaders on its own "
        "(auto.leader.rebalance.enable)",
        (
            Choice("periodic", "3.2", "yes, each leader.imbalance.check.interval.seconds"),
            Choice(
                "none",
                changes="no, whatever the setting says; an administrator may (elect-leader)",
                risk="leaders stay on few brokers after restarts",
            ),
        ),
        is_quiet=True,
    ),
    Behaviour(
        "kraft.metadata_version",
        "KIP-778",
        "whether a KRaft cluster finalizes a metadata.version",
        (
            Choice(
                "finalized",
                "3.3",
                "the first record of its metadata log, which decides the form of the others",
            ),
            Choice(
                "none",
                "2.8",
                "no, and brokers register without features; records and elections are those of its "
                "release: FenceBrokerRecord and UnfenceBrokerRecord, no recovery state before 3.2 "
                "(KIP-704), no unclean elections in 2.8 (KAFKA-12803)",
            ),
            Choice("finalized", changes="there was no KRaft; the simulation has 3.3's"),
        ),
        side="level",
        is_quiet=True,
    ),
    Behaviour(
        "kraft.unfencing",
        "KAFKA-13959",
        "which metadata a broker needs before it is unfenced",
        (
            Choice("registration", "3.3", "up to its own registration"),
            Choice(
                "committed",
                "2.8",
                "all that is committed when its heartbeat comes",
                risk="unavailable: it stays fenced while records come faster than its heartbeats",
            ),
            Choice("registration", changes="there was no KRaft; the simulation has 3.3's"),
        ),
        is_quiet=True,
    ),
    Behaviour(
        "kraft.admin_requests",
        "KAFKA-12365, KAFKA-12471, KAFKA-12803",
        "which requests of an administrator a KRaft cluster knows",
        (
            Choice(
                "all", "3.0", "CreatePartitions, AlterPartitionReassignments, ElectLeaders, too"
            ),
            Choice(
                "no_moves",
                "2.8",
                "none of these three: UnsupportedVersionException",
            ),
            Choice("all", changes="there was no KRaft; the simulation has 3.3's"),
        ),
        is_quiet=True,
    ),
    Behaviour(
        "broker.resend",
        "KAFKA-19294, #19061",
        "how long a broker waits after an error of the controller before it registers, or sends a "
        "heartbeat, again",
        (
            Choice("interval", "4.1", "broker.heartbeat.interval.ms", backports=("3.9.2", "4.0.1")),
            Choice(
                "backoff_half_session",
                "4.0",
                "100 ms, twice as long after each error, at most half of "
                "broker.session.timeout.ms, with 2 % of jitter",
                risk="none for data; a broker may be fenced after a wait and a request that lasts",
            ),
            Choice(
                "backoff",
                changes="100 ms, twice as long after each error, at most "
                "broker.session.timeout.ms, with 2 % of jitter",
                risk="none for data; a broker is fenced if its last wait is a whole session",
            ),
        ),
        is_quiet=True,
    ),
    Behaviour(
        "broker.request_timeout",
        "KAFKA-19294, KAFKA-14392",
        "how long a broker waits for a controller that is silent before it gives the registration "
        "or the heartbeat up and, after a wait, sends the next",
        (
            Choice("interval", "4.1", "broker.heartbeat.interval.ms", backports=("3.9.2", "4.0.1")),
            Choice(
                "half_session",
                "3.4",
                "half of broker.session.timeout.ms",
                backports=("3.3.2",),
                risk="none for data; one lost request is half of a session, a second fences",
            ),
            Choice(
                "socket",
                changes="controller.socket.timeout.ms (30 s); a request whose connection is lost "
                "is sent again until broker.session.timeout.ms",
                risk="none for data; a broker is fenced, though its next heartbeat would arrive",
            ),
        ),
        is_quiet=True,
    ),
    Behaviour(
        "tokens.sweep",
        "KAFKA-17793",
        "how many expired delegation tokens the active controller removes at once",
        (
            Choice("thousand", "4.0", "1,000; more wait for a sweep that follows at once"),
            Choice(
                "all",
                changes="all, in one event of the controller",
                risk="none for data; the controller does nothing else meanwhile",
            ),
        ),
        is_quiet=True,
    ),
    Behaviour(
        "metadata.first_publish",
        "#13344",
        "when a broker that starts first applies metadata: begins to lead and to follow",
        (
            Choice(
                "high_watermark",
                "3.5",
                "when it has read the metadata log up to the high watermark, registered or not",
                "none for data; a process whose former session still lasts leads in its own view, "
                "and an empty log directory moves its leaderships before the session ends",
            ),
            Choice(
                "registered",
                changes="when it is registered, and the controller has acknowledged that it has "
                "caught up",
            ),
        ),
    ),
    Behaviour(
        "directories.broker_epoch",
        "KAFKA-17190",
        "which broker epoch AssignReplicasToDirs has (KIP-858)",
        (
            Choice(
                "image",
                "3.9",
                "that of the broker in the metadata: a process that is not registered yet assigns "
                "directories for the one before it",
            ),
            Choice(
                "registration",
                changes="that of its own registration: without one the controller refuses it",
            ),
        ),
    ),
    Behaviour(
        "leader_epoch.isr_shrink",
        "KAFKA-15021",
        "whether the controller begins a leader epoch when a member leaves an ISR",
        (
            Choice("kept", "3.6", "no: the leader stays in its epoch"),
            Choice(
                "bumped",
                "3.0",
                "yes, by the same leader: each follower begins to fetch again",
                risk="none for data; requests of the former epoch fail and are sent again",
            ),
            Choice(
                "by_controller",
                changes="if the controller removes it, as its broker is fenced or shuts down; not "
                "if the leader does, as it lags",
                risk="none for data; requests of the former epoch fail and are sent again",
            ),
        ),
        side="level",
    ),
)
"""Switches that mean something with KRaft only."""
