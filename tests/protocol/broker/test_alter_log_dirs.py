"""Replicas between log directories: what is refused, copied, cut and asked, and when it ends."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.errors import CorruptRecord, StorageFailed
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.log_dirs import Doomed, FutureReplica, Promoted
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.directories.alter_log_dirs import LOOK_AGAIN_US
from sim.protocol.broker.replication.events import (
    AlterLogDirsTurn,
    ControllerChanged,
    CopyTurn,
    DirectoryFailed,
    FutureBroke,
    MetadataApplied,
    RegisteredWithEpoch,
)
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.events import RequestReceived, ResponseReceived
from sim.protocol.messages.cluster import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from sim.protocol.messages.log_dirs import AlterReplicaLogDirsRequest
from tests.protocol.broker.replica_kit import P, ToyLog, image, state

OTHERS = tuple(TopicPartition("orders", number) for number in (1, 2))
LONG = TopicPartition("x" * 240, 0)
IDS = {"data-0": "id-0", "data-1": "id-1", "data-2": "id-2"}


class ToyDirs:
    """Three directories; every log lies in the first until it is moved."""

    def __init__(self, logs):
        self.logs = logs
        self.lies_in = dict.fromkeys(logs, "data-0")
        self.futures = {}
        self.offline = []
        self.wanted = {}
        self.refuses = False

    def has_directory(self, directory):
        return directory in IDS

    def is_cordoned(self, _directory):
        return False

    def is_directory_online(self, directory):
        return directory not in self.offline

    def has_failed_directory(self):
        return bool(self.offline)

    def directory_name_of(self, partition):
        return self.lies_in[partition]

    def directory_id_of(self, partition):
        return IDS[self.lies_in[partition]]

    def may_open(self, partition, directory):
        return True

    def may_have_future(self, partition):
        return partition != LONG

    def prefer(self, partition, directory):
        self.wanted[partition] = directory

    def future_of(self, partition):
        return self.futures.get(partition)

    def future_watermark(self, partition):
        return 0

    def create_future(self, partition, directory):
        if self.refuses:
            raise StorageFailed("no space")
        made = FutureReplica(ToyLog(), directory, IDS[directory])
        self.futures[partition] = made
        return made

    def remove_future(self, partition):
        gone = self.futures.pop(partition)
        return Doomed(int(gone.directory[-1]), f"{partition}.x-delete")

    def replace_current(self, partition):
        if self.refuses:
            raise StorageFailed("input/output error")
        future = self.futures.pop(partition)
        source = int(self.lies_in[partition][-1])
        self.lies_in[partition] = future.directory
        self.logs[partition] = future.log
        return Promoted(future.log, Doomed(source, "x-delete"), "", source)


class Mover:
    """One broker that leads three partitions and whose threads get their turns by hand."""

    def __init__(self, ends=(5, 5, 5), threads=1, leader=1, epochs=((0, 0),)):
        self.partitions = (P, *OTHERS)
        self.logs = {tp: ToyLog(epochs, end) for tp, end in zip(self.partitions, ends, strict=True)}
        self.dirs = ToyDirs(self.logs)
        config = ReplicaManagerConfig(alter_log_dirs_threads=threads)
        self.manager = ReplicaManager(
            1, config, lambda tp, *_: self.logs[tp], {}, self.dirs, self.dirs
        )
        self.now = 0
        self.out = []
        self.tell(RegisteredWithEpoch(11))
        self.tell(ControllerChanged(3001))
        self.apply(leader=leader)

    def apply(self, **changes):
        made = image()
        for tp in self.partitions:
            made.partitions[tp] = state(**changes)
        self.tell(MetadataApplied(made, self.partitions))

    def tell(self, event):
        self.out += self.manager.handle(event, self.now)

    def take(self, kind):
        found = [e for e in self.out if isinstance(e, kind)]
        self.out = [e for e in self.out if not isinstance(e, kind)]
        return found

    def ask(self, *wanted):
        request = AlterReplicaLogDirsRequest(tuple(wanted))
        self.tell(RequestReceived(9, "admin", request))
        (reply,) = self.take(fx.Reply)
        return [error for _, error in reply.response.errors]

    def turns(self, count=1):
        """Give the threads that are due their turns; returns what they did."""
        done = []
        for _ in range(count):
            due = self.take(CopyTurn)
            done += due
            for turn in due:
                self.now += turn.pause_us
                self.tell(AlterLogDirsTurn(turn.thread))
        return done

    def asked(self):
        """Directories that the controller was asked to note, by partition."""
        sends = [s for s in self.take(fx.Send)
                 if isinstance(s.request, AssignReplicasToDirsRequest)]  # fmt: skip
        self.sent = sends[-1] if sends else None
        return {i.partition: i.directory for s in sends for i in s.request.items}

    def agree(self):
        items = tuple((item.partition, E.NONE) for item in self.sent.request.items)
        response = AssignReplicasToDirsResponse(E.NONE, items)
        self.tell(ResponseReceived(3001, self.sent.correlation, response))

    def settle(self):
        """Answer what the broker has told of its directories at the start."""
        while self.asked():
            self.agree()

    def phases(self):
        rows = [e.row for e in self.take(fx.Emit) if e.table == "log_dir_moves"]
        return [row[3] for row in rows]


@pytest.fixture
def mover():
    made = Mover()
    made.settle()
    return made


def test_a_replica_is_copied_the_controller_asked_and_the_log_changed(mover):
    assert mover.ask((P, "data-1")) == [E.NONE]
    former = mover.logs[P]
    mover.turns(2)
    assert mover.asked() == {P: "id-1"}
    assert mover.manager.replicas[P].log is former
    mover.agree()
    mover.turns(2)
    assert mover.manager.replicas[P].log is mover.logs[P] is not former
    assert mover.logs[P].batches == former.batches
    assert mover.phases() == ["began", "caught_up", "swapped"]
    assert mover.take(Doomed) == [Doomed(0, "x-delete")]
    assert mover.manager.moves.moves == {}
    assert mover.turns(3) == []


def test_what_is_appended_before_consent_is_copied_before_the_change(mover):
    mover.ask((P, "data-1"))
    mover.turns(2)
    mover.asked()
    log = mover.logs[P]
    log.append_as_follower([log.batches[-1].__class__(5, 5, 0)])
    mover.agree()
    assert mover.manager.replicas[P].log is log
    mover.turns(3)
    assert mover.manager.replicas[P].log is not log
    assert mover.logs[P].log_end_offset == 6


def test_while_the_controller_is_silent_a_thread_looks_again_every_millisecond(mover):
    mover.ask((P, "data-1"))
    mover.turns(2)
    assert {turn.pause_us for turn in mover.turns(5)} == {LOOK_AGAIN_US}
    assert mover.manager.replicas[P].log is mover.logs[P]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ((P, "data-9"), E.LOG_DIR_NOT_FOUND),
        ((P, "data-2"), E.KAFKA_STORAGE_ERROR),
        ((P, "data-1"), E.KAFKA_STORAGE_ERROR),
        ((P, "data-0"), E.NONE),
        ((LONG, "data-1"), E.INVALID_TOPIC_EXCEPTION),
        ((TopicPartition("orders", 9), "data-1"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_refusals_are_kafkas(mover, wanted, error):
    """The third: as long as any directory is offline, nobody knows what it holds."""
    mover.dirs.offline = ["data-2"]
    assert mover.ask(wanted) == [error]
    assert mover.take(CopyTurn) == []


def test_a_replica_that_is_not_here_yet_is_made_where_it_was_wanted(mover):
    elsewhere = TopicPartition("orders", 5)
    mover.manager.image.partitions[elsewhere] = state(leader=2, replicas=(2, 3))
    assert mover.ask((elsewhere, "data-1")) == [E.REPLICA_NOT_AVAILABLE]
    assert mover.dirs.wanted == {elsewhere: "data-1"}


def test_a_full_disk_refuses_the_move(mover):
    mover.dirs.refuses = True
    assert mover.ask((P, "data-1")) == [E.KAFKA_STORAGE_ERROR]
    assert mover.manager.moves.moves == {}


def test_one_thread_moves_one_replica_at_a_time_in_the_order_of_names(mover):
    mover.ask((OTHERS[1], "data-1"), (P, "data-1"), (OTHERS[0], "data-1"))
    seen = []
    for _ in range(40):
        seen += [turn.partition for turn in mover.turns() if turn.partition is not None]
        if mover.asked():
            mover.agree()
    assert seen == [P, *OTHERS]
    assert {mover.dirs.lies_in[tp] for tp in mover.partitions} == {"data-1"}


def test_several_threads_move_several_at_once():
    """The twin."""
    mover = Mover(threads=3)
    mover.settle()
    mover.ask(*((tp, "data-1") for tp in mover.partitions))
    assert len(mover.turns(1)) == 3
    assert sorted(str(turn.partition) for turn in mover.take(CopyTurn)) == [
        "orders-0", "orders-1", "orders-2",
    ]  # fmt: skip


def test_a_large_log_is_copied_in_bites():
    mover = Mover(ends=(50, 0, 0))
    mover.settle()
    read = ToyLog.read
    mover.logs[P].read = lambda start, end, size: read(mover.logs[P], start, end, size)[:20]
    mover.ask((P, "data-1"))
    sizes = [turn.size_bytes for turn in mover.turns(4) if turn.size_bytes]
    assert sizes == [2_000, 2_000, 1_000]


# -- what happens meanwhile ------------------------------------------------------------------------


def test_a_follower_that_truncates_takes_the_future_log_along():
    mover = Mover(leader=2, epochs=((0, 0), (3, 3)))
    mover.settle()
    mover.ask((P, "data-1"))
    mover.turns(2)
    mover.asked()
    replica = mover.manager.replicas[P]
    assert mover.dirs.futures[P].log.log_end_offset == 5
    mover.manager.follower.truncate_or_fail(replica, 3, "diverging_epoch", [])
    replica.log.append_as_follower([replica.log.batches[-1].__class__(3, 3, 7)])
    mover.agree()
    mover.turns(4)
    assert [b.leader_epoch for b in mover.logs[P].batches] == [0, 0, 0, 7]
    assert mover.dirs.lies_in[P] == "data-1"


def test_without_the_mark_the_future_log_would_keep_what_was_cut(monkeypatch):
    """The planted defect: equal ends of different logs."""
    monkeypatch.setattr(
        "sim.protocol.broker.replication.directories.alter_log_dirs.AlterLogDirs.truncated",
        lambda *_: None,
    )
    mover = Mover(leader=2, epochs=((0, 0), (3, 3)))
    mover.settle()
    mover.ask((P, "data-1"))
    mover.turns(2)
    mover.asked()
    replica = mover.manager.replicas[P]
    mover.manager.follower.truncate_or_fail(replica, 4, "diverging_epoch", [])
    replica.log.append_as_follower([replica.log.batches[-1].__class__(4, 4, 7)])
    mover.agree()
    mover.turns(4)
    assert [b.leader_epoch for b in mover.logs[P].batches] == [0, 0, 0, 3, 3]


class DamagedLog(ToyLog):
    def truncate_to(self, offset):
        raise CorruptRecord("orders-0: the batch at 0 declares -1 bytes")


def test_a_future_log_that_cannot_be_cut_fails_until_metadata_of_its_partition_are_applied_again():
    """Its directory stays online, and its thread moves others meanwhile (KIP-461)."""
    mover = Mover(leader=2)
    mover.settle()
    mover.dirs.futures[P] = FutureReplica(DamagedLog(((0, 0),), 3), "data-1", "id-1")
    mover.apply(leader=2, partition_epoch=1)
    mover.settle()
    assert [turn.pause_us for turn in mover.turns(5)] == [0]
    mover.ask((OTHERS[0], "data-1"))
    mover.turns(2)
    assert mover.asked() == {OTHERS[0]: "id-1"}
    assert not mover.take(FutureBroke)
    mover.agree()
    mover.turns(3)
    assert mover.dirs.lies_in[OTHERS[0]] == "data-1"
    assert mover.turns(3) == [], "with nothing left but what has failed the thread rests"
    mover.dirs.futures[P].log.__class__ = ToyLog
    mover.apply(leader=2, partition_epoch=2)
    mover.settle()
    mover.turns(4)
    assert mover.dirs.futures[P].log.log_end_offset == 5
    assert mover.asked()[P] == "id-1"


def test_a_future_log_ahead_of_the_current_one_that_cannot_be_cut_is_tried_again():
    mover = Mover(leader=2)
    mover.settle()
    mover.ask((P, "data-1"))
    mover.turns(2)
    mover.asked()
    mover.logs[P].batches = mover.logs[P].batches[:3]
    future = mover.dirs.futures[P].log
    future.__class__ = DamagedLog
    assert {turn.pause_us for turn in mover.turns(3)[1:]} == {1_000_000}
    future.__class__ = ToyLog
    mover.turns(2)
    assert future.log_end_offset == 3
    assert not mover.take(FutureBroke)


def test_a_future_log_found_at_the_start_is_cut_where_the_current_one_parts_from_it():
    mover = Mover(leader=2, epochs=((0, 0), (4, 3)), ends=(6, 5, 5))
    mover.settle()
    future = ToyLog(((0, 0), (2, 4)), 8)
    mover.dirs.futures[P] = FutureReplica(future, "data-1", "id-1")
    mover.apply(leader=2, partition_epoch=1)
    assert mover.phases()[-1] == "resumed"
    mover.turns(3)
    assert future.epochs == [(0, 0), (4, 3)]
    assert [b.base_offset for b in future.batches] == list(range(6))
    assert future.batches[3].leader_epoch == 4


def test_a_log_that_begins_later_is_copied_from_there():
    mover = Mover()
    mover.settle()
    log = mover.logs[P]
    log.log_start_offset, log.batches = 3, log.batches[3:]
    mover.ask((P, "data-1"))
    future = mover.dirs.futures[P].log
    started = []
    future.truncate_fully_and_start_at = started.append
    mover.turns(1)
    assert started == [3]


def test_a_new_state_of_the_partition_asks_the_controller_anew(mover):
    mover.ask((P, "data-1"))
    mover.turns(2)
    assert mover.asked() == {P: "id-1"}
    mover.agree()
    mover.apply(leader=1, partition_epoch=5)
    mover.turns(1)
    assert mover.asked()[P] == "id-1"
    mover.agree()
    mover.turns(2)
    assert mover.dirs.lies_in[P] == "data-1"


def test_a_failed_directory_ends_the_move_and_takes_back_what_the_controller_was_told(mover):
    mover.ask((P, "data-1"))
    mover.turns(2)
    assert mover.asked() == {P: "id-1"}
    mover.dirs.futures.pop(P)
    mover.dirs.offline = ["data-1"]
    mover.tell(DirectoryFailed(()))
    mover.agree()
    assert mover.asked() == {P: "id-0"}
    assert mover.phases()[-1] == "failed"
    assert mover.manager.replicas[P].log is mover.logs[P]


def test_another_directory_ends_the_former_move_and_begins_a_new_one(mover):
    mover.ask((P, "data-1"))
    mover.turns(1)
    assert mover.ask((P, "data-2")) == [E.NONE]
    assert mover.take(Doomed) == [Doomed(1, "orders-0.x-delete")]
    assert mover.dirs.futures[P].directory == "data-2"
    assert mover.phases() == ["began", "cancelled", "began"]


def test_asked_twice_for_the_same_nothing_changes(mover):
    """The twin."""
    mover.ask((P, "data-1"))
    future = mover.dirs.futures[P]
    assert mover.ask((P, "data-1")) == [E.NONE]
    assert mover.dirs.futures[P] is future


def test_a_topic_that_is_deleted_takes_its_future_log_along(mover):
    mover.ask((P, "data-1"))
    mover.turns(2)
    made = image()
    for tp in OTHERS:
        made.partitions[tp] = state()
    mover.tell(MetadataApplied(made, (P,)))
    assert mover.take(Doomed) == [Doomed(1, "orders-0.x-delete")]
    assert mover.dirs.futures == {}
    assert mover.manager.moves.moves == {}


def test_a_damaged_batch_is_read_again_after_a_while(mover):
    read = ToyLog.read
    log = mover.logs[P]
    broken = [True]

    def damaged(start, end, size):
        if broken[0]:
            raise CorruptRecord("bad")
        return read(log, start, end, size)

    log.read = damaged
    mover.ask((P, "data-1"))
    (first, second) = mover.turns(1) + mover.take(CopyTurn)
    assert (first.pause_us, second.pause_us) == (0, 1_000_000)
    broken[0] = False
    mover.out.append(second)
    mover.turns(2)
    assert mover.dirs.futures[P].log.log_end_offset == 5


def test_a_disk_that_refuses_the_future_log_is_told_of(mover):
    mover.ask((P, "data-1"))

    def refuse(batches):
        raise StorageFailed("no space")

    mover.dirs.futures[P].log.append_as_follower = refuse
    mover.turns(2)
    assert mover.take(FutureBroke) == [FutureBroke(P, "no space")]
