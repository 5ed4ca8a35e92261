"""Tables of share groups (KIP-932)."""

from typing import Final

from sim.trace.schema_types import BROKER, CONSUMER, PLACE, Column, Table, facts

_GROUP: Final = Column("group", "string", "share group")
_EPOCH: Final = Column("leader_epoch", "int32", "under which the broker leads the partition")
_FIRST: Final = Column("first_offset", "int64", "of the first record")
_LAST: Final = Column("last_offset", "int64", "of the last record, inclusive")

SHARE_TABLES: Final[tuple[Table, ...]] = (
    facts(
        "share_consumers", "a consumer began that is a member of a share group", CONSUMER, _GROUP
    ),
    facts(
        "share_partitions",
        "the bounds of a share partition at its leader",
        BROKER,
        _GROUP,
        *PLACE,
        _EPOCH,
        Column("start_offset", "int64", "SPSO: the group has done with all below"),
        Column("end_offset", "int64", "SPEO: nothing from here on was delivered"),
        Column("delivery_limit", "int32", "group.share.delivery.count.limit"),
        Column("reason", "string", "loaded (at a new leader), moved, or given up"),
    ),
    facts(
        "share_states",
        "records came into another state at the leader of their share partition",
        BROKER,
        _GROUP,
        *PLACE,
        _EPOCH,
        _FIRST,
        _LAST,
        Column("state", "string", "AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED"),
        Column("delivery_count", "int32", "how often they were delivered"),
        Column("consumer", "string", "their present or last consumer"),
        Column(
            "reason",
            "string",
            "acquired; accept, release, reject, gap (sent by the consumer, and written); "
            "session closed, lock timeout, limit (of deliveries), removed from the log; found "
            "accepted, found rejected, found at the limit (by a new leader)",
        ),
    ),
    facts(
        "share_renewals",
        "a member of a share group renewed the acquisition locks of records (KIP-1222)",
        BROKER,
        _GROUP,
        *PLACE,
        _EPOCH,
        _FIRST,
        _LAST,
        Column("consumer", "string", "whose locks they are"),
        Column("until_us", "int64", "instant at which the renewed locks expire"),
    ),
    facts(
        "share_acknowledgements",
        "a member of a share group got the outcome of its acknowledgement of records",
        CONSUMER,
        _GROUP,
        *PLACE,
        _FIRST,
        _LAST,
        Column("types", "string", "accept, release, reject, renew, gap; joined by commas"),
        Column("error", "string", "Kafka's error name"),
    ),
)
"""Tables of leaders and members of share groups."""
