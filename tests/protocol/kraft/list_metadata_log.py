"""The metadata log as a list of batches, for machines that need no bytes."""

import pickle
from dataclasses import dataclass

from sim.ids import SnapshotId
from sim.protocol.kraft.log import LoggedRecord, SnapshotPart
from sim.protocol.metadata.records import VotersRecord
from sim.protocol.ports import NO_EPOCH_END, EpochEnd


@dataclass(frozen=True)
class FakeBatch:
    """As much of a batch as the quorum machine looks at."""

    base_offset: int
    leader_epoch: int
    records: tuple

    @property
    def last_offset(self):
        return self.base_offset + len(self.records) - 1

    size_bytes = 100


class ListMetadataLog:
    """The metadata log as a list of batches, and snapshots as all records below them, pickled."""

    def __init__(self, formatted_with=()):
        self.batches = []
        self.log_start_offset = 0
        self.snapshots = {}
        self.formatted_with = formatted_with
        if formatted_with:
            self.snapshots[SnapshotId(0, 0)] = pickle.dumps(())

    @property
    def log_end_offset(self):
        return self.batches[-1].last_offset + 1 if self.batches else self.log_start_offset

    @property
    def latest_epoch(self):
        if not self.batches:
            return self.latest_snapshot.epoch if self.latest_snapshot else 0
        return self.batches[-1].leader_epoch

    @property
    def earliest_snapshot(self):
        return next(iter(self.snapshots), None)

    @property
    def latest_snapshot(self):
        return next(reversed(self.snapshots), None)

    def bytes_between(self, start, end):
        return 100 * (end - start)

    def snapshot_records(self, snapshot):
        return pickle.loads(self.snapshots[snapshot])

    def snapshot_voters(self, snapshot):
        sets = [r.record for r in self.snapshot_records(snapshot)]
        sets = [record.voters for record in sets if isinstance(record, VotersRecord)]
        return sets[-1] if sets else self.formatted_with

    def snapshot_part(self, snapshot, position, max_bytes):
        data = self.snapshots.get(snapshot)
        return data and SnapshotPart(len(data), data[position : position + max_bytes])

    def install_snapshot(self, snapshot, data):
        self.snapshots[snapshot] = data
        if self.log_end_offset >= snapshot.offset and self.latest_epoch >= snapshot.epoch:
            return False
        self.batches = []
        self.drop_below(snapshot)
        return True

    def take_snapshot(self, offset, records):
        """What a process does with the state that it was told of."""
        if offset > self.log_start_offset:
            snapshot = SnapshotId(offset, records[-1].epoch)
            self.snapshots[snapshot] = pickle.dumps(records)
            self.drop_below(snapshot)

    def drop_below(self, snapshot):
        self.log_start_offset = snapshot.offset
        self.batches = [b for b in self.batches if b.base_offset >= snapshot.offset]
        for old in [s for s in self.snapshots if s < snapshot]:
            del self.snapshots[old]

    def clean(self, now_ms):
        pass

    def whole(self):
        """Every record: those that the newest snapshot holds, and those of the log."""
        snapshot = self.latest_snapshot
        below = self.snapshot_records(snapshot) if snapshot else ()
        start = snapshot.offset if snapshot else 0
        return (*below, *self.records_between(start, 10**9))

    def append_records(self, records, epoch, now_ms):
        self.batches.append(FakeBatch(self.log_end_offset, epoch, tuple(records)))
        return self.log_end_offset

    def records_bytes(self, records):
        return 72 * len(records)

    def append_batches(self, batches):
        assert batches[0].base_offset == self.log_end_offset
        self.batches.extend(batches)

    def read(self, start, max_bytes):
        return tuple(b for b in self.batches if b.base_offset >= start)[:4]

    def records_between(self, start, end):
        return tuple(
            LoggedRecord(b.base_offset + i, b.leader_epoch, r)
            for b in self.batches
            for i, r in enumerate(b.records)
            if start <= b.base_offset + i < end
        )

    def end_offset_for_epoch(self, epoch):
        best = NO_EPOCH_END
        if self.earliest_snapshot and self.batches and epoch < self.batches[0].leader_epoch:
            best = EpochEnd(self.earliest_snapshot.epoch, self.log_start_offset)
        for b in self.batches:
            if b.leader_epoch <= epoch:
                best = EpochEnd(b.leader_epoch, b.last_offset + 1)
        return best

    def truncate_to(self, offset):
        self.batches = [b for b in self.batches if b.last_offset < offset]
