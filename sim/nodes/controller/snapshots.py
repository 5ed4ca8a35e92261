"""Writes snapshots of the metadata.

Source: ``org.apache.kafka.image.publisher.SnapshotEmitter``.
"""

from sim.nodes.process.process import Process
from sim.nodes.storage.metadata_log import FileMetadataLog
from sim.nodes.storage.snapshot_files import file_name
from sim.protocol.kraft.metadata_snapshot import WriteSnapshot
from sim.protocol.metadata.records import Voter
from sim.units import timestamp_ms


def write_snapshot(
    process: Process, log: FileMetadataLog, effect: WriteSnapshot, voters: tuple[Voter, ...]
) -> None:
    """Pays for the file in the background, then keeps it beside the log.

    Nothing waits for it. A process that ends before, or a disk that stalls, leaves no file; the
    next snapshot is taken when it is due.
    """
    snapshot = effect.snapshot
    data = log.snapshot_bytes(snapshot, effect.records, timestamp_ms(process.now()), voters)
    disk = process.host.disks[0]
    if data is None or disk.stalled:
        return
    name = f"{log.log.directory}/{file_name(snapshot)}"
    process.call_at(disk.fsync(len(data), name), log.keep_snapshot, snapshot, data)
