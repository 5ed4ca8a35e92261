"""Share groups in a whole cluster: a leader dies, a member sleeps past its locks, work fails.

Source: KIP-932.
"""

import pytest

from sim.errors import InvariantBroken
from sim.protocol.broker.share import partition
from sim.protocol.broker.share.leadership import LedShare
from sim.protocol.messages.share_records import RecordState
from sim.wire.record_batch import parse_batches
from sim.wire.schemas import decode_share_state
from tests.scenarios.run_kit import S, go

BROKERS = {
    "group.share.record.lock.duration.ms": 2_000,
    "group.share.min.record.lock.duration.ms": 1_000,
    "group.share.delivery.count.limit": 2,
}
WORKERS = {
    "group": "workers",
    "group.type": "share",
    "topics": ["orders"],
    "count": 4,
    "processing": "2ms",
    "release": "10%",
    "reject": "2%",
    "config": {
        "share.acknowledgement.mode": "explicit",
        "share.auto.offset.reset": "earliest",
        "max.poll.records": 50,
    },
}
# The first heartbeat brings no partitions: they are being initialized. The second, after
# group.share.heartbeat.interval.ms of 5 s, brings them.
FAULTS = (
    {"at": "7s", "do": "pause", "target": "workers-1", "for": "4s"},
    {"at": "9s", "do": "controlled-shutdown", "target": "leader of orders-0", "for": "2s"},
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return go(
        tmp_path_factory.mktemp("share"), topic={"partitions": 1}, config=BROKERS,
        consumers=[WORKERS], faults=FAULTS, lasts="13s",
    )  # fmt: skip


def test_every_record_is_accepted_rejected_or_given_up_at_the_limit(ran):
    sharing = ran.verdict["sharing"]
    done = sharing["accepted"] + sharing["rejected"] + sharing["archived"]
    assert (done, sharing["unfinished"]) == (ran.records["acked"], 0)
    assert ran.verdict["readers"]["undelivered"] == 0
    assert min(sharing["accepted"], sharing["rejected"], sharing["archived"]) > 0
    assert ran.verdict["readers"]["delivered_twice"] > 0
    assert max(row["delivery_count"] for row in ran.rows("share_states")) == 2


def test_a_sleeping_members_records_go_to_others_when_their_locks_are_over(ran):
    late = ran.rows("share_states", reason="lock timeout", consumer="workers-1")
    assert late
    assert all(8 * S < row["t_us"] <= 9.5 * S for row in late)
    taken = {(row["first_offset"], row["consumer"]) for row in ran.rows("share_states")
             if row["state"] == "ACQUIRED" and row["t_us"] >= late[0]["t_us"]}  # fmt: skip
    assert {who for at, who in taken if at == late[0]["first_offset"]} - {"workers-1"}


def test_the_next_leader_goes_on_where_the_last_one_stood(ran):
    loaded = ran.rows("share_partitions", reason="loaded")
    assert [row["leader_epoch"] for row in loaded[:2]] == [0, 1]
    assert loaded[1]["start_offset"] > 0
    for name in ("records-have-one-holder", "acknowledged-is-not-delivered",
                 "deliveries-are-limited", "share-starts-advance"):  # fmt: skip
        assert ran.checked(name) > 0


def test_a_share_group_has_no_states_of_rebalancing(ran):
    """``ShareGroup.maybeUpdateGroupState``: with members it is stable."""
    states = {row["state"] for row in ran.rows("groups", group="workers")}
    assert states == {"Empty", "Stable", "Dead"}  # the last where it is no longer coordinated


def test_the_states_lie_in_kafkas_bytes_on_the_disks(ran):
    names = set()
    for path in ran.log_dirs("broker"):
        for log in sorted(path.glob("__share_group_state-*/*.log")):
            for batch in parse_batches(log.read_bytes()):
                if not batch.is_control:
                    names |= {decode_share_state(r.key, r.value)[0].name for r in batch.records()}
    assert names == {"ShareSnapshotKey", "ShareUpdateKey"}


HEARTBEAT = 5 * S
"""``group.share.heartbeat.interval.ms``."""


def first_of(ran, table, **where):
    return min(row["t_us"] for row in ran.rows(table, **where))


def test_members_get_partitions_with_the_heartbeat_after_their_states_are_made(ran):
    made = first_of(ran, "groups", reason="share partitions initialized")
    created = first_of(ran, "groups", group="workers", reason="created")
    assert created < made < created + S
    assert created + HEARTBEAT <= first_of(ran, "share_states") < created + HEARTBEAT + S
    asked = ran.rows("requests", kind="InitializeShareGroupState")
    assert len(asked) == 1


ONE_STATE = {
    **BROKERS,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}
"""The share coordinator is one broker, and no other can take its place."""


def slow_to_begin(directory, lasts, faults=()):
    worker = WORKERS | {"count": 1, "start": "1s"}
    return go(
        directory, topic={"partitions": 1}, producer={"rate": "20/s"}, config=ONE_STATE,
        consumers=[worker], faults=faults, lasts=lasts,
    )  # fmt: skip


def test_nobody_gets_a_record_while_the_share_coordinator_is_down(tmp_path):
    keeper = slow_to_begin(tmp_path, "2s").leader_at(S, topic="__share_group_state")
    down = {"at": "500ms", "do": "crash", "target": f"broker-{keeper}", "for": "40s"}
    ran = slow_to_begin(tmp_path, "65s", (down,))
    created = first_of(ran, "groups", group="workers", reason="created")
    failed = "share partitions not initialized: COORDINATOR_NOT_AVAILABLE"
    # Five attempts, 1, 2, 4 and 8 s apart, each up to a fifth longer or shorter.
    assert created + 12 * S <= first_of(ran, "groups", reason=failed) <= created + 19 * S
    back = 40.5 * S
    made = first_of(ran, "groups", reason="share partitions initialized")
    assert back < made < first_of(ran, "share_states")
    # Its last wait is of 8 s and a fifth; then heartbeats: one asks, the next has the partition.
    assert first_of(ran, "share_states") < back + 10 * S + 2 * HEARTBEAT
    assert ran.verdict["readers"]["undelivered"] == 0


@pytest.mark.slow
def test_planted_a_leader_that_forgets_what_was_written_is_found_out(tmp_path, monkeypatch):
    real = LedShare.begin
    monkeypatch.setattr(LedShare, "begin", lambda self, epoch, _start, _: real(self, epoch, 0, ()))
    with pytest.raises(InvariantBroken, match="acknowledged-is-not-delivered"):
        go(tmp_path, topic={"partitions": 1}, config=BROKERS, consumers=[WORKERS], faults=FAULTS,
           lasts="13s")  # fmt: skip


@pytest.mark.slow
def test_planted_a_lock_that_holds_nobody_off_is_found_out(tmp_path, monkeypatch):
    held = (RecordState.AVAILABLE, RecordState.ACQUIRED)
    monkeypatch.setattr(partition._Run, "is_free", lambda run: run.state in held and not run.token)
    with pytest.raises(InvariantBroken, match="records-have-one-holder"):
        go(tmp_path, topic={"partitions": 1}, config=BROKERS, consumers=[WORKERS], lasts="8s")
