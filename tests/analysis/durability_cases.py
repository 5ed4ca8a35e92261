"""Tiny logs and what producers were told of them, each with the numbers that are right."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crc32c import crc32c

from sim.wire.control_batch import Marker, end_transaction_marker
from sim.wire.record_batch import RecordBatch
from tests.analysis.synthetic import S, batch, change, row, sent

Log = bytes | Sequence[RecordBatch]


@dataclass(frozen=True)
class Case:
    """What a producer was told, what lies on each broker, and the numbers that are not zero."""

    told: Sequence[dict]
    logs: Mapping[int, Log]
    expected: Mapping[str, int]
    changes: Sequence[dict] = (change(1),)
    starts: Sequence[dict] = ()
    watermarks: Sequence[dict] = ()
    leadership: Sequence[dict] = ()
    deletions: Sequence[dict] = ()
    keys: Sequence[dict] = ()
    contents: Sequence[dict] = ()
    transactions: Sequence[dict] = ()
    endings: Sequence[dict] = ()
    reads: Sequence[dict] = ()


def three(*batches) -> dict[int, Log]:
    return dict.fromkeys((1, 2, 3), batches)


def start(broker, to, reason="retention.ms", **values) -> dict:
    """A row of ``log_starts``."""
    given = {"t_us": 9000, "broker": broker, "to_offset": to, "reason": reason}
    return row("log_starts", **(given | values))


def high(to, **values) -> dict:
    """A row of ``high_watermarks`` of broker 1."""
    return row("high_watermarks", **({"t_us": 2000, "broker": 1, "high_watermark": to} | values))


def lead(broker, epoch, log_end, **values) -> dict:
    """A row of ``leadership``: the broker begins to lead."""
    given = {"broker": broker, "role": "leader", "leader": broker, "leader_epoch": epoch}
    return row("leadership", log_end_offset=log_end, **(given | values))


def keys(first, *ids, tombstones=(), **values) -> dict:
    """A row of ``record_keys``."""
    given = {"first_record": first, "record_count": len(ids), "keys": ids}
    return row("record_keys", tombstones=tombstones, **(given | values))


EARLY = {
    "sent": 6, "acked": 6, "survived": 2, "removed": 3, "lost_acked": 1, "early_tombstones": 1,
}  # fmt: skip
"""Of six records one is a tombstone that went before its time."""


def cleaned(end, t_us=5 * S, retention_ms=1_000, **values) -> dict:
    """A row of ``log_contents``: a cleaner came up to an offset."""
    given = {"t_us": t_us, "broker": 1, "last_offset": end - 1, "how": "cleaned"}
    given |= {"started_us": t_us, "delete_retention_ms": retention_ms}
    return row("log_contents", **(given | values))


def transactional(one, pid=7) -> bytes:
    """The batch as part of a transaction of a producer id."""
    data = bytearray(one.data)
    data[22] |= 0x10
    data[43:51] = pid.to_bytes(8, "big")
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def marker(offset, *, committed=True, pid=7) -> bytes:
    said = Marker(committed, pid, 0, 0)
    return end_transaction_marker(said, 0, base_offset=offset, leader_epoch=0).data


def transaction(number, first, last, **values) -> dict:
    """A row of ``transaction_records``."""
    given = {"producer": "shop-1", "transaction": number, "first_record": first}
    return row("transaction_records", last_record=last, **(given | values))


def ending(number, outcome="committed") -> dict:
    """A row of ``transaction_outcomes``."""
    given = {"transaction": number, "producer_id": 7, "outcome": outcome}
    return row("transaction_outcomes", producer="shop-1", **given)


def joined(*parts) -> bytes:
    return b"".join(part if isinstance(part, bytes) else part.data for part in parts)


def all_three(*parts) -> dict[int, Log]:
    return dict.fromkeys((1, 2, 3), joined(*parts))


def ones(*places, **values):
    """Single records, each at the offset that is its number."""
    return [batch(place, 1, **values) for place in places]


def flipped(*batches) -> bytes:
    data = bytearray(b"".join(one.data for one in batches))
    data[-1] ^= 8
    return bytes(data)


TWO = (batch(0, 4), batch(4, 4, offset=4))
CASES = {
    "what is acknowledged and there has survived": Case(
        [sent(0, 10), sent(10, 5)],
        three(batch(0, 10), batch(10, 5)),
        {"sent": 15, "acked": 15, "survived": 15},
    ),
    "an acknowledged record that is not there is lost": Case(
        [sent(0, 10), sent(10, 5)],
        three(batch(0, 10)),
        {"sent": 15, "acked": 15, "survived": 10, "lost_acked": 5},
    ),
    "a batch that survives in part is lost in part": Case(
        [sent(0, 10)],
        three(batch(0, 4)),
        {"sent": 10, "acked": 10, "survived": 4, "lost_acked": 6},
    ),
    "only the final leader is asked": Case(
        [sent(0, 10)],
        three(batch(0, 10)) | {2: []},
        {"sent": 10, "acked": 10, "lost_acked": 10},
        [change(1), change(2, t_us=5, leader_epoch=1), change(-1, t_us=9, leader_epoch=2)],
    ),
    "without a leader in the trace the highest epoch, then the longest log is asked": Case(
        [sent(0, 9)],
        {
            1: [batch(0, 9)],
            2: [batch(0, 2), batch(2, 1, offset=2, epoch=1)],
            3: [batch(0, 2, epoch=1), batch(2, 3, offset=2, epoch=1)],
        },
        {"sent": 9, "acked": 9, "survived": 5, "lost_acked": 4, "divergent": 3},
        [],
    ),
    "failed and unknown records that are there are unasked for": Case(
        [sent(0, 3, outcome="failed"), sent(3, 4, outcome="unknown"), sent(7, 2)],
        three(batch(0, 9)),
        {"sent": 9, "acked": 2, "failed": 3, "unknown": 4, "survived": 9, "unacked_present": 7},
    ),
    "an unknown record that is not there is not lost": Case(
        [sent(0, 3, outcome="unknown")], three(), {"sent": 3, "unknown": 3}
    ),
    "second copies are duplicates and not reordered": Case(
        [sent(0, 8)],
        three(*TWO, batch(2, 4, offset=8)),
        {"sent": 8, "acked": 8, "survived": 8, "duplicated": 4},
    ),
    "records behind later ones are reordered": Case(
        [sent(0, 10)],
        three(batch(4, 4, offset=0), batch(0, 4, offset=4), batch(8, 2, offset=8)),
        {"sent": 10, "acked": 10, "survived": 10, "reordered": 4},
    ),
    "records of two producers may lie in any order": Case(
        [sent(4, 4), sent(0, 4, producer_index=1)],
        three(batch(4, 4, offset=0), batch(0, 4, producer=1, offset=4)),
        {"sent": 8, "acked": 8, "survived": 8},
    ),
    "replicas that differ below the smallest end diverge": Case(
        [sent(0, 12)],
        three(*TWO, batch(8, 4, offset=8)) | {2: [TWO[0], batch(4, 4, offset=4, epoch=1)]},
        {"sent": 12, "acked": 12, "survived": 12, "divergent": 4},
    ),
    "a replica whose first segment is lost diverges": Case(
        [sent(0, 8)],
        three(*TWO) | {2: TWO[1:]},
        {"sent": 8, "acked": 8, "survived": 8, "divergent": 4},
    ),
    "a replica diverges in a hole at its start only above the highest log start": Case(
        [sent(0, 8)],
        three(*TWO) | {2: TWO[1:]},
        {"sent": 8, "acked": 8, "survived": 8, "divergent": 1},
        starts=[start(3, 3)],
    ),
    "a replica from whose start retention deleted does not diverge": Case(
        [sent(0, 8)],
        three(*TWO) | {2: TWO[1:]},
        {"sent": 8, "acked": 8, "survived": 8},
        starts=[start(2, 4)],
    ),
    "a replica that is only behind does not diverge": Case(
        [sent(0, 8)], three(*TWO) | {2: TWO[:1]}, {"sent": 8, "acked": 8, "survived": 8}
    ),
    "a corrupt batch of the leader is lost": Case(
        [sent(0, 8)],
        three(*TWO) | {1: flipped(*TWO)},
        {"sent": 8, "acked": 8, "survived": 4, "lost_acked": 4},
    ),
    "what retention took below the high watermark is removed": Case(
        [sent(0, 4), sent(4, 4)],
        three(TWO[1]),
        {"sent": 8, "acked": 8, "survived": 4, "removed": 4},
        starts=[start(1, 4)],
        watermarks=[high(8)],
    ),
    "bytes below the log start are there and nobody can read them": Case(
        [sent(0, 4), sent(4, 4)],
        three(*TWO),
        {"sent": 8, "acked": 8, "survived": 2, "removed": 6},
        starts=[start(1, 6, "delete_records"), start(2, 6, "leader")],
        watermarks=[high(8)],
    ),
    "a deleted topic takes its records lawfully": Case(
        [sent(0, 4), sent(4, 4, base_offset=-1)],
        {},
        {"sent": 8, "acked": 8, "removed": 8},
        deletions=[row("topic_deletions", t_us=9000)],
    ),
    "what a shorter leader never had stays lost when the topic is deleted": Case(
        [sent(0, 4), sent(4, 4)],
        {},
        {"sent": 8, "acked": 8, "removed": 4, "lost_acked": 4},
        leadership=[lead(1, 0, 0, t_us=-5), lead(2, 1, 4, t_us=3000)],
        deletions=[row("topic_deletions", t_us=9000)],
    ),
    "a topic made anew answers for its own records": Case(
        [sent(0, 4), sent(4, 4, t_us=20_000, base_offset=0), sent(8, 4, t_us=20_001)],
        three(batch(4, 4, offset=0)),
        {"sent": 12, "acked": 12, "survived": 4, "removed": 4, "lost_acked": 4},
        [change(1), change(1, t_us=10_000)],
        deletions=[row("topic_deletions", t_us=9000)],
    ),
    "what retention took above the high watermark is lost": Case(
        [sent(0, 4), sent(4, 4)],
        three(),
        {"sent": 8, "acked": 8, "removed": 5, "lost_acked": 3},
        starts=[start(1, 8, "retention.bytes")],
        watermarks=[high(3), high(5, t_us=8000), high(8, t_us=9001)],
    ),
    "a log start that moved for no policy's sake excuses nothing": Case(
        [sent(0, 4), sent(4, 4)],
        three(TWO[1]),
        {"sent": 8, "acked": 8, "survived": 4, "lost_acked": 4},
        starts=[start(1, 4, "truncation")],
        watermarks=[high(8)],
    ),
    "what a shorter leader never had stays lost when retention passes": Case(
        [sent(0, 4), sent(4, 4), sent(8, 4, t_us=5000, base_offset=4, answered_by=2)],
        three(),
        {"sent": 12, "acked": 12, "removed": 8, "lost_acked": 4},
        [change(1), change(2, leader_epoch=1)],
        starts=[start(2, 8)],
        watermarks=[high(8)],
        leadership=[lead(1, 0, 0, t_us=-5), lead(2, 1, 4, t_us=3000)],
    ),
    "a leader that comes back long enough has lost nothing": Case(
        [sent(0, 4), sent(4, 4)],
        three(),
        {"sent": 8, "acked": 8, "removed": 8},
        starts=[start(1, 8)],
        watermarks=[high(8)],
        leadership=[lead(1, 0, 0, t_us=-5), lead(2, 1, 8, t_us=3000)],
    ),
    "records without a told offset are removed up to the lowest that survived": Case(
        [sent(0, 4, base_offset=-1), sent(4, 4, base_offset=-1), sent(8, 2, base_offset=-1)],
        three(TWO[1]),
        {"sent": 10, "acked": 10, "survived": 4, "removed": 4, "lost_acked": 2},
        starts=[start(1, 4)],
        watermarks=[high(8)],
    ),
    "what a later record of its key replaces is removed": Case(
        [sent(0, 6)],
        three(*ones(3, 4, 5)),
        {"sent": 6, "acked": 6, "survived": 3, "removed": 3},
        keys=[keys(0, 5, 6, 5, 7, 6, 5)],
        contents=[cleaned(6)],
    ),
    "the last record of a key is lost if it is gone, and only that": Case(
        [sent(0, 6)],
        three(*ones(3, 4)),
        {"sent": 6, "acked": 6, "survived": 2, "removed": 3, "lost_acked": 1},
        keys=[keys(0, 5, 6, 5, 7, 6, 5)],
        contents=[cleaned(6)],
    ),
    "what no cleaner reached is lost if it is gone": Case(
        [sent(0, 6)],
        three(*ones(2, 3, 4, 5)),
        {"sent": 6, "acked": 6, "survived": 4, "removed": 1, "lost_acked": 1},
        keys=[keys(0, 5, 6, 5, 7, 6, 5)],
        contents=[cleaned(1)],
    ),
    "a tombstone goes when its time is over, with what it deleted": Case(
        [sent(0, 6)],
        three(*ones(3, 4)),
        {"sent": 6, "acked": 6, "survived": 2, "removed": 4},
        keys=[keys(0, 5, 6, 5, 7, 6, 5, tombstones=[5])],
        contents=[cleaned(6), cleaned(6, t_us=6 * S, broker=2)],
    ),
    "a tombstone that went too early is lost and counted": Case(
        [sent(0, 6)],
        three(*ones(3, 4)),
        EARLY,
        keys=[keys(0, 5, 6, 5, 7, 6, 5, tombstones=[5])],
        contents=[cleaned(6), cleaned(6, t_us=5 * S + 990_000)],
    ),
    "a tombstone that went too early is lost, however often cleaners came by later": Case(
        [sent(0, 6)],
        three(*ones(3, 4)),
        EARLY,
        keys=[keys(0, 5, 6, 5, 7, 6, 5, tombstones=[5])],
        contents=[
            cleaned(6, t_us=2 * S, kept=[3, 4, 5]),
            cleaned(6, t_us=2 * S + 500_000, kept=[3, 4]),
            cleaned(6, t_us=9 * S, kept=[3, 4]),
        ],
    ),
    "a tombstone is gone in time if one replica's cleaner waited": Case(
        [sent(0, 6)],
        three(*ones(3, 4)),
        {"sent": 6, "acked": 6, "survived": 2, "removed": 4},
        keys=[keys(0, 5, 6, 5, 7, 6, 5, tombstones=[5])],
        contents=[
            cleaned(6, t_us=2 * S, kept=[3, 4]),
            cleaned(6, t_us=2 * S, broker=2, kept=[3, 4, 5]),
            cleaned(6, t_us=9 * S, broker=2, kept=[3, 4]),
        ],
    ),
    "a record that an election took is lost even if its key lives on": Case(
        [sent(0, 4), sent(4, 2), sent(6, 2, t_us=5000, base_offset=4, answered_by=2)],
        three(*ones(0, 1, 2, 3), batch(6, 2, offset=4)),
        {"sent": 8, "acked": 8, "survived": 6, "lost_acked": 2},
        [change(1), change(2, leader_epoch=1)],
        leadership=[lead(1, 0, 0, t_us=-5), lead(2, 1, 4, t_us=3000)],
        keys=[keys(0, 1, 2, 3, 4), keys(4, 1, 2), keys(6, 1, 2)],
        contents=[cleaned(6)],
    ),
    "records without a told offset are removed if their key has a record": Case(
        [sent(0, 3, base_offset=-1)],
        three(batch(2, 1)),
        {"sent": 3, "acked": 3, "survived": 1, "removed": 1, "lost_acked": 1},
        keys=[keys(0, 1, 2, 1)],
        contents=[cleaned(3)],
    ),
    "cleaned replicas may have other bytes and gaps, but no other records": Case(
        [sent(0, 6)],
        three(*ones(0, 1, 2, 3, 4, 5))
        | {
            2: [batch(0, 6)],
            3: [*ones(3, 5), batch(9, 1, offset=6)],
            1: [*ones(0, 1, 2, 3, 4, 5), batch(8, 1, offset=6)],
        },
        {"sent": 6, "acked": 6, "survived": 7, "unacked_present": 1},
        keys=[keys(0, 5, 6, 5, 7, 6, 5)],
        contents=[cleaned(6)],
    ),
    "another record at an offset of a cleaned log diverges": Case(
        [sent(0, 6)],
        {1: ones(0, 1, 2, 3, 4, 5), 2: [*ones(3), *ones(8, offset=4), *ones(5)]},
        {"sent": 6, "acked": 6, "survived": 6, "divergent": 1},
        keys=[keys(0, 5, 6, 5, 7, 6, 5)],
        contents=[cleaned(6)],
    ),
    "aborted records are neither lost nor there": Case(
        [sent(0, 4), sent(4, 4, base_offset=5)],
        all_three(
            transactional(batch(0, 4)),
            marker(4),
            transactional(batch(4, 4, offset=5)),
            marker(9, committed=False),
            marker(10, pid=8),
        ),
        {"sent": 8, "acked": 8, "survived": 4, "aborted": 4},
        transactions=[transaction(100, 0, 3), transaction(101, 4, 7)],
        endings=[ending(100), ending(101, "aborted")],
    ),
    "a committed transaction behind an abort marker is lost": Case(
        [sent(0, 4)],
        all_three(transactional(batch(0, 4)), marker(4, committed=False)),
        {"sent": 4, "acked": 4, "lost_acked": 4},
        transactions=[transaction(110, 0, 3)],
        endings=[ending(110)],
    ),
    "an aborted transaction behind a commit marker is visible": Case(
        [sent(0, 4)],
        all_three(transactional(batch(0, 4)), marker(4)),
        {"sent": 4, "acked": 4, "survived": 4, "aborted": 4, "aborted_visible": 4},
        transactions=[transaction(120, 0, 3)],
        endings=[ending(120, "fenced")],
    ),
    "without its marker a transaction is undecided": Case(
        [sent(0, 4)],
        all_three(marker(0), transactional(batch(0, 4, offset=1)), marker(5, pid=8)),
        {"sent": 4, "acked": 4, "survived": 4, "undecided": 4},
        transactions=[transaction(130, 0, 3)],
        endings=[ending(130)],
    ),
    "a transaction whose end nobody learned promises nothing": Case(
        [sent(0, 4)],
        all_three(),
        {"sent": 4, "acked": 4},
        transactions=[transaction(140, 0, 3)],
    ),
    "a transaction that is there in part is torn": Case(
        [sent(0, 4), sent(4, 4)],
        all_three(transactional(batch(0, 4)), marker(4)),
        {"sent": 8, "acked": 8, "survived": 4, "lost_acked": 4, "torn_transactions": 1},
        transactions=[transaction(150, 0, 7)],
        endings=[ending(150)],
    ),
    "a reader of committed data must not get what aborted": Case(
        [sent(0, 4)],
        all_three(transactional(batch(0, 4)), marker(4, committed=False)),
        {"sent": 4, "acked": 4, "aborted": 4, "aborted_read": 2},
        transactions=[transaction(160, 0, 3)],
        endings=[ending(160, "aborted")],
        reads=[
            row("reads", consumer="careful", first_record=1, record_count=2),
            row("reads", consumer="careless", first_record=0, record_count=4),
        ],
    ),
    "an aborted record that is sent again is no duplicate": Case(
        [sent(0, 4)],
        all_three(
            transactional(batch(0, 4)),
            marker(4, committed=False),
            transactional(batch(0, 4, offset=5)),
            marker(9),
        ),
        {"sent": 4, "acked": 4, "survived": 4},
        transactions=[transaction(170, 0, 3)],
        endings=[ending(170)],
    ),
    "offsets that only one of two logs still has cannot diverge": Case(
        [sent(0, 8)],
        three(*TWO) | {1: [batch(0, 4, epoch=1), TWO[1]]},
        {"sent": 8, "acked": 8, "survived": 8},
        starts=[start(2, 4, "leader"), start(3, 4, "leader")],
    ),
    "a corrupt batch of a follower is not": Case(
        [sent(0, 8)], three(*TWO) | {2: flipped(*TWO)}, {"sent": 8, "acked": 8, "survived": 8}
    ),
}


def drawn_by_lot() -> Case:
    """Ranges of records at random; what is right is counted record by record."""
    chance = random.Random(5)
    told, kept, place = [], [], 0
    fates = {"ok": set(), "failed": set(), "unknown": set()}
    for first in range(0, 400, 8):
        outcome = chance.choice(["ok", "ok", "failed", "unknown"])
        told.append(sent(first, 8, outcome=outcome))
        fates[outcome].update(range(first, first + 8))
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            start = first + chance.randrange(4)
            kept.append(batch(start, 4, offset=place))
            place += 4
    there = [one.first_record + i for one in kept for i in range(4)]
    present, highest, late = set(), -1, 0
    for number in there:
        late += number not in present and number < highest
        highest = max(highest, number)
        present.add(number)
    expected = {
        "sent": 400, "acked": len(fates["ok"]), "failed": len(fates["failed"]),
        "unknown": len(fates["unknown"]), "survived": len(present),
        "lost_acked": len(fates["ok"] - present), "unacked_present": len(present - fates["ok"]),
        "duplicated": len(there) - len(present), "reordered": late,
    }  # fmt: skip
    return Case(told, {1: kept}, expected)


CASES["ranges agree with a list of records"] = drawn_by_lot()
