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
FAULTS = (
    {"at": "2s", "do": "pause", "target": "workers-1", "for": "4s"},
    {"at": "4s", "do": "controlled-shutdown", "target": "leader of orders-0", "for": "2s"},
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return go(
        tmp_path_factory.mktemp("share"), topic={"partitions": 1}, config=BROKERS,
        consumers=[WORKERS], faults=FAULTS, lasts="8s",
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
    assert all(3 * S < row["t_us"] <= 4.5 * S for row in late)
    taken = {(row["first_offset"], row["consumer"]) for row in ran.rows("share_states")
             if row["state"] == "ACQUIRED" and row["t_us"] > late[0]["t_us"]}  # fmt: skip
    assert {who for at, who in taken if at == late[0]["first_offset"]} - {"workers-1"}


def test_the_next_leader_goes_on_where_the_last_one_stood(ran):
    loaded = ran.rows("share_partitions", reason="loaded")
    assert [row["leader_epoch"] for row in loaded[:2]] == [0, 1]
    assert loaded[1]["start_offset"] > 0
    for name in ("records-have-one-holder", "acknowledged-is-not-delivered",
                 "deliveries-are-limited", "share-starts-advance"):  # fmt: skip
        assert ran.checked(name) > 0


def test_the_states_lie_in_kafkas_bytes_on_the_disks(ran):
    names = set()
    for path in ran.log_dirs("broker"):
        for log in sorted(path.glob("__share_group_state-*/*.log")):
            for batch in parse_batches(log.read_bytes()):
                if not batch.is_control:
                    names |= {decode_share_state(r.key, r.value)[0].name for r in batch.records()}
    assert names == {"ShareSnapshotKey", "ShareUpdateKey"}


@pytest.mark.slow
def test_planted_a_leader_that_forgets_what_was_written_is_found_out(tmp_path, monkeypatch):
    real = LedShare.begin
    monkeypatch.setattr(LedShare, "begin", lambda self, epoch, _start, _: real(self, epoch, 0, ()))
    with pytest.raises(InvariantBroken, match="acknowledged-is-not-delivered"):
        go(tmp_path, topic={"partitions": 1}, config=BROKERS, consumers=[WORKERS], faults=FAULTS)


@pytest.mark.slow
def test_planted_a_lock_that_holds_nobody_off_is_found_out(tmp_path, monkeypatch):
    held = (RecordState.AVAILABLE, RecordState.ACQUIRED)
    monkeypatch.setattr(partition._Run, "is_free", lambda run: run.state in held and not run.token)
    with pytest.raises(InvariantBroken, match="records-have-one-holder"):
        go(tmp_path, topic={"partitions": 1}, config=BROKERS, consumers=[WORKERS], lasts="3s")
