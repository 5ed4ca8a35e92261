"""What each kind of fault may break of what Kafka promises.

Said for a topic of three replicas with ``acks=all``, ``min.insync.replicas=2`` and no unclean
election, and for the fault by itself. Two at a time may do more: whoever ends without having been
shut down in good order uses up what ``min.insync.replicas`` - 1 allows for (KIP-966).

Source: Kafka's documentation, section "Replication"; the failure catalogue.
"""

from typing import Final

from sim.faults.spec import FaultKind

_NOTHING = "nothing that is acknowledged; service stops until another leads"
_LATE = "nothing; records are late, and may reach their time-out"
_ONE_COPY = "one replica's copy: nothing while another in-sync one stands"
_UNFLUSHED = (
    "what was not flushed there: nothing while another in-sync replica stands; "
    "with acks=1 acknowledged records"
)
_MEANT = "what was meant: an administrator's doing breaks no promise"

MAY_BREAK: Final[dict[FaultKind, str]] = {
    "crash": f"{_NOTHING}; with acks=1 acknowledged records",
    "restart": f"{_NOTHING}; with acks=1 acknowledged records",
    "controlled-shutdown": "nothing: leadership is handed over first",
    "rolling-restart": "nothing: leadership is handed over first, each time",
    "pause": f"{_NOTHING}; with acks=1 acknowledged records",
    "power-loss": _UNFLUSHED,
    "partition": f"{_NOTHING}; with acks=1 what a leader that is cut off goes on acknowledging",
    "delay": _LATE,
    "loss": _LATE,
    "bandwidth": _LATE,
    "hold": _LATE,
    "drop": f"{_LATE}; without idempotence a retry makes duplicates, or another order",
    "clock-jump": "times: of records, of retention, of sessions that are compared by the clock",
    "slow-disk": _LATE,
    "stalled-disk": _LATE,
    "failed-disk": _ONE_COPY,
    "full-disk": _NOTHING,
    "lying-flush": "that what is flushed is kept: a later power loss takes it all the same",
    "wiped-disk": _ONE_COPY,
    "no-file-descriptors": _NOTHING,
    "slow-cpu": _LATE,
    "load-surge": f"{_LATE}, where the cluster cannot keep up",
    "lost-replica": _ONE_COPY,
    "corrupt-replica": _ONE_COPY,
    "torn-write": "nothing: nobody was told of that batch",
    "misdirected-write": f"{_ONE_COPY}; in an older segment it is found when somebody reads it",
    "create-topic": _MEANT,
    "delete-topic": _MEANT,
    "create-partitions": "that a key stays in its partition, and with it the order of its records",
    "alter-config": _MEANT,
    "reassign": _MEANT,
    "cancel-reassignment": _MEANT,
    "elect-leader": "with an unclean election acknowledged records; else nothing",
    "delete-records": _MEANT,
    "alter-replica-log-dirs": _MEANT,
    "one-of": "what the fault that was drawn may break",
    "alter-client-quotas": _MEANT,
    "add-controller": _MEANT,
    "remove-controller": _MEANT,
    "add-broker": _MEANT,
    "decommission": _MEANT,
}
"""By kind, in words."""
