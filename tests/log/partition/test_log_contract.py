"""The in-memory log and the real one answer alike."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sim.error_codes import ErrorCode
from sim.log.config import LogConfig
from sim.log.partition import results
from sim.log.partition.recovery import load_log
from sim.protocol import ports
from sim.wire.record_batch import NewRecord, build_batch
from tests.log.list_log import ListBatch, ListLog
from tests.log.log_kit import NOW, TP, batch, contents, new_log

SMALL = LogConfig(
    segment_bytes=900, index_interval_bytes=150, tail_bytes=500, tail_batches=1, flush_messages=7,
    max_message_bytes=800,
)  # fmt: skip

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 5)),
        st.tuples(st.just("idempotent"), st.integers(1, 3), st.sampled_from([0, 0, 0, 2])),
        st.tuples(st.just("retry"), st.none(), st.none()),
        st.tuples(st.just("stale epoch"), st.none(), st.none()),
        st.tuples(st.just("bump"), st.none(), st.none()),
        st.tuples(st.just("transact"), st.integers(1, 3), st.sampled_from([0, 0, 0, 2])),
        st.tuples(st.just("end"), st.sampled_from([0, 1]), st.booleans()),
        st.tuples(st.just("zombie"), st.none(), st.none()),
        st.tuples(st.just("follow"), st.integers(1, 3), st.integers(0, 2)),
        st.tuples(st.just("begin"), st.integers(0, 2), st.none()),
        st.tuples(st.just("truncate"), st.integers(0, 6), st.none()),
        st.tuples(st.just("start over"), st.integers(0, 4), st.none()),
        st.tuples(st.just("flush"), st.none(), st.none()),
        st.tuples(st.just("write back"), st.none(), st.none()),
        st.tuples(st.just("restart"), st.none(), st.none()),
    ),
    max_size=30,
)


class Pair:
    """Both logs, driven alike."""

    def __init__(self, root: Path) -> None:
        self.real = new_log(root, SMALL)
        self.model = ListLog(
            max_message_bytes=SMALL.max_message_bytes, flush_messages=SMALL.flush_messages
        )
        self.epoch = 0
        self.record = 0
        self.producer_epoch = 0
        self.sequence = 0
        self.last = None

    def step(self, kind, a, b) -> None:
        if kind == "append":
            self.lead(batch(self.record, a, at_ms=self.record * 10, size=24 + b * 60))
        elif kind == "idempotent":
            made = batch(
                self.record, a, at_ms=self.record, pid=7, epoch=self.producer_epoch,
                sequence=self.sequence + b,
            )  # fmt: skip
            if self.lead(made).error is ErrorCode.NONE:
                self.last, self.sequence = made, self.sequence + b + a
        elif kind == "transact":
            made = self.transactional(a, b)
            guards = [
                log.transactions.verification_guard(
                    made.producer_id, made.producer_epoch, made.base_sequence, NOW, bumps=False
                )
                for log in (self.real, self.model)
            ]
            if self.lead(made, guards=guards).error is ErrorCode.NONE:
                self.last, self.sequence = made, self.sequence + b + a
        elif kind == "zombie":
            self.lead(self.transactional(1, 0))
        elif kind == "end":
            self.producer_epoch += a
            if a:
                self.sequence, self.last = 0, None
            ours, theirs = (
                log.append_marker(7, self.producer_epoch, 3, self.epoch, NOW, committed=b)
                for log in (self.real, self.model)
            )
            assert ours[:5] == theirs[:5]
        elif kind == "retry" and self.last is not None:
            self.lead(self.last)
        elif kind == "stale epoch" and self.producer_epoch:
            self.lead(batch(self.record, 1, pid=7, epoch=self.producer_epoch - 1, sequence=0))
        elif kind == "bump":
            self.producer_epoch, self.sequence, self.last = self.producer_epoch + 1, 0, None
        elif kind == "follow":
            self.epoch += b
            first = self.real.log_end_offset
            made = [
                batch(first + i * a, a, at_ms=first + i).stamped(first + i * a, self.epoch)
                for i in range(2)
            ]
            self.record = max(self.record, first + 2 * a)
            assert self.real.append_as_follower(made) == self.model.append_as_follower(made)
        else:
            self.other(kind, a)

    def other(self, kind, a) -> None:
        if kind == "begin":
            self.epoch += a
            for log in (self.real, self.model):
                log.begin_epoch(self.epoch)
        elif kind == "truncate":
            target = max(self.real.log_end_offset - a, 0)
            for log in (self.real, self.model):
                log.truncate_to(target)
            self.last = None
        elif kind == "start over":
            target = self.real.log_end_offset + a
            for log in (self.real, self.model):
                log.truncate_fully_and_start_at(target)
            self.last, self.sequence = None, 0
        elif kind == "flush":
            for log in (self.real, self.model):
                log.flush()
        elif kind == "write back":
            self.real.store.write_back_all()
        elif kind == "restart":
            log = self.real
            self.real, recovery = load_log(
                log.store, log.directory, TP, SMALL, clean=False,
                recovery_point=log.recovery_point, log_start_offset=log.log_start_offset,
            )  # fmt: skip
            assert recovery.truncated_bytes == 0
            # A load forgets epochs that have no record yet.
            self.model.transactions.guards.clear()
            self.model.epochs = [e for e in self.model.epochs if e[1] < log.log_end_offset]

    def transactional(self, count, ahead):
        return build_batch(
            [NewRecord(NOW, None, b"v")] * count, producer_id=7, transactional=True,
            producer_epoch=self.producer_epoch, base_sequence=self.sequence + ahead,
        )  # fmt: skip

    def lead(self, made, guards=(0, 0)):
        mine = self.real.append_as_leader(made, self.epoch, NOW, guards[0])
        theirs = self.model.append_as_leader(made, self.epoch, NOW, guards[1])
        assert mine[:5] == theirs[:5]
        if mine.batch is not None:
            assert theirs.batch is not None
            assert mine.batch.data == theirs.batch.data
            self.record += made.record_count
        return mine

    def compare(self) -> None:
        real, model = self.real, self.model
        assert real.log_start_offset == model.log_start_offset
        assert real.log_end_offset == model.log_end_offset
        assert real.latest_epoch == model.latest_epoch
        assert list(real.epochs) == model.epochs
        for epoch in range(-1, self.epoch + 2):
            assert real.end_offset_for_epoch(epoch) == model.end_offset_for_epoch(epoch)
        end = real.log_end_offset
        mine, theirs = real.transactions, model.transactions
        assert mine.last_stable_offset(end) == theirs.last_stable_offset(end)
        for start in range(end + 1):
            found = mine.aborted_between(start, end)
            assert found == theirs.aborted_between(start, end)
        starts = [found.base_offset for found in model.batches]
        for start in starts:
            for limit, size in ((end, 1 << 20), (end, 1), (end - 1, 1 << 20), (start, 100)):
                mine = [found.data for found in real.read(start, limit, size)]
                theirs = [found.data for found in model.read(start, limit, size)]
                assert mine == theirs[: len(mine)]
                assert bool(mine) == bool(theirs)
            counted, exact = real.bytes_between(start, end), model.bytes_between(start, end)
            assert abs(counted - exact) <= 150 + 800
            assert (counted > 0) == (exact > 0)


@given(STEPS)
@example(
    [("idempotent", 1, 0), ("transact", 1, 2), ("idempotent", 1, 0), ("idempotent", 2, 0),
     ("transact", 1, 0)]
)  # fmt: skip
def test_both_logs_answer_alike_whatever_happens(steps) -> None:
    with tempfile.TemporaryDirectory() as directory:
        pair = Pair(Path(directory))
        for kind, a, b in steps:
            pair.step(kind, a, b)
        pair.compare()
        assert contents(pair.real) == [found.data for found in pair.model.batches]
        pair.real.store.close()


def test_answers_have_the_fields_of_the_ports() -> None:
    assert results.Appended._fields == ports.Appended._fields
    assert results.EpochEnd._fields == ports.EpochEnd._fields
    names = {name for name in vars(ports.ReplicaLog) if not name.startswith("_")}
    for log in (ListLog(), new_log(Path(tempfile.mkdtemp()))):
        assert all(hasattr(log, name) for name in names)


@pytest.fixture(params=["list", "real"])
def log(request, tmp_path):
    return ListLog() if request.param == "list" else new_log(tmp_path)


def outcome(log, sequence: int, *, count: int = 1, epoch: int = 0):
    answer = log.append_as_leader(batch(0, count, pid=7, epoch=epoch, sequence=sequence), 0, NOW)
    return answer.error.name, answer.duplicate, answer.base_offset


def test_a_retry_of_one_of_the_last_five_batches_gets_its_offset_again(log) -> None:
    for sequence in range(6):
        assert outcome(log, sequence) == ("NONE", False, sequence)
    assert outcome(log, 5) == ("NONE", True, 5)
    assert outcome(log, 1) == ("NONE", True, 1)
    assert log.log_end_offset == 6


def test_a_retry_of_an_older_batch_is_out_of_order(log) -> None:
    for sequence in range(6):
        outcome(log, sequence)
    assert outcome(log, 0) == ("OUT_OF_ORDER_SEQUENCE_NUMBER", False, -1)
    assert outcome(log, 7) == ("OUT_OF_ORDER_SEQUENCE_NUMBER", False, -1)


def test_a_new_producer_epoch_starts_at_zero_and_fences_the_old_one(log) -> None:
    outcome(log, 0)
    assert outcome(log, 1, epoch=1)[0] == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert outcome(log, 0, epoch=1) == ("NONE", False, 1)
    assert outcome(log, 1, epoch=0)[0] == "INVALID_PRODUCER_EPOCH"


def test_sequences_wrap_to_zero(log) -> None:
    top = 2**31 - 1
    assert outcome(log, top - 1, count=3) == ("NONE", False, 0)
    assert outcome(log, top - 1, count=3) == ("NONE", True, 0)
    assert outcome(log, 1) == ("NONE", False, 3)


def test_an_unknown_producer_may_start_anywhere(log) -> None:
    assert outcome(log, 41) == ("NONE", False, 0)


def test_diverging_epochs_are_found_as_in_kip_279(log) -> None:
    for epoch, until in ((0, 6), (2, 9)):
        log.begin_epoch(epoch)
        while log.log_end_offset < until:
            log.append_as_leader(batch(log.log_end_offset), epoch, NOW)
    assert log.end_offset_for_epoch(1) == (0, 6)
    assert log.end_offset_for_epoch(2) == (2, 9)
    assert log.end_offset_for_epoch(3) == (-1, -1)
    log.truncate_to(6)
    assert (log.latest_epoch, log.log_end_offset) == (0, 6)


def test_an_epoch_older_than_all_ends_where_the_first_begins(log) -> None:
    log.truncate_fully_and_start_at(10)
    log.begin_epoch(4)
    log.append_as_leader(batch(), 4, NOW)
    assert log.end_offset_for_epoch(1) == (1, 10)


def test_followers_take_a_gap_that_the_leader_has_compacted_and_refuse_to_go_back(log) -> None:
    log.append_as_follower([batch().stamped(5, 0)])
    assert log.log_end_offset == 6
    with pytest.raises(AssertionError):
        log.append_as_follower([batch().stamped(5, 0)])


def test_the_log_start_only_rises_and_old_epochs_collapse_onto_it(log) -> None:
    for epoch in (0, 1, 2):
        log.append_as_leader(batch(epoch), epoch, NOW)
    assert log.raise_log_start(2)
    assert not log.raise_log_start(1)
    assert (log.log_start_offset, list(log.epochs)) == (2, [(2, 2)])


def test_an_offset_is_found_by_the_time_of_its_record(log) -> None:
    for second in range(5):
        log.append_as_leader(batch(second, at_ms=second * 1_000), 0, NOW)
    found = [log.offset_for_timestamp(NOW + at) for at in (-1, 0, 1, 2_000, 3_999, 4_001)]
    assert found == [0, 0, 1, 2, 4, -1]
    log.raise_log_start(3)
    assert log.offset_for_timestamp(NOW) == 3


def test_a_batch_too_large_or_too_far_in_the_future_is_refused(log) -> None:
    assert log.append_as_leader(batch(size=1_100_000), 0, NOW).error.name == "MESSAGE_TOO_LARGE"
    hour = 3_600_000
    assert log.append_as_leader(batch(at_ms=hour), 0, NOW).error is ErrorCode.NONE
    assert log.append_as_leader(batch(at_ms=hour + 1), 0, NOW).error.name == "INVALID_TIMESTAMP"


def test_machines_may_use_batches_without_bytes_on_the_list() -> None:
    log = ListLog()
    answer = log.append_as_leader(ListBatch(record_count=3), 2, 0)
    assert (answer.base_offset, answer.last_offset, answer.batch.leader_epoch) == (0, 2, 2)
