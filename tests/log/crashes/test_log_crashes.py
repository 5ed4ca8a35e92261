"""A crash at every step of a log's life: what is found is a prefix, with all that was flushed.

A step is one operation on the files: an append, a truncation, a flush, a replacement, a rename, a
deletion, a new file. The same life is lived again and again, each time one step longer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sim.log.config import LogConfig
from sim.log.directory.manager import LogManager
from sim.log.partition.log import PartitionLog
from sim.log.store.files import FileStore
from sim.log.store.stored_file import StoredFile
from tests.log.log_kit import NOW, TOPIC_ID, TP, batch, contents, manager

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100)

STEPS = (
    (StoredFile, "append"),
    (StoredFile, "truncate"),
    (StoredFile, "flush"),
    (FileStore, "create"),
    (FileStore, "replace"),
    (FileStore, "rename"),
    (FileStore, "delete"),
    (FileStore, "make_directory"),
    (FileStore, "rename_directory"),
    (FileStore, "delete_directory"),
)


class Crashed(BaseException):
    """The process ended here."""


@dataclass
class Life:
    """What was done to a log so far, as a simple list."""

    batches: list[bytes] = field(default_factory=list)
    """Appended and not truncated; what is being done now counts as done and as not done."""
    flushed: int = 0
    """How many of them are surely on the platter."""
    written: int = 0
    """How many of them are surely in the page cache at least."""

    def append(self, log: PartitionLog, epoch: int) -> None:
        made = batch(2 * len(self.batches), 2, at_ms=len(self.batches), pid=4)
        self.batches.append(made.stamped(log.log_end_offset, epoch).data)
        log.append_as_leader(made, epoch, NOW)
        self.written = len(self.batches)

    def flush(self, log: PartitionLog) -> None:
        log.flush()
        self.flushed = len(self.batches)

    def truncate(self, log: PartitionLog, count: int) -> None:
        self.flushed = min(self.flushed, count)
        self.written = count
        log.truncate_to(2 * count)
        del self.batches[count:]


def live(logs: LogManager, life: Life) -> None:
    """Appends over several segments, flushes, epochs, checkpoints, a truncation, a shutdown."""
    log = logs.create(TP, TOPIC_ID)
    for number in range(6):
        life.append(log, number // 3)
    life.flush(log)
    logs.checkpoint_recovery_points()
    logs.checkpoint_high_watermarks({TP: 8})
    for _ in range(5):
        life.append(log, 2)
    life.truncate(log, 7)
    log.begin_epoch(3)
    for _ in range(5):
        life.append(log, 3)
    life.flush(log)
    logs.checkpoint_recovery_points()
    life.append(log, 4)
    logs.shutdown(5)
    life.flushed = len(life.batches)
    logs.finish()


def crash_after(
    steps: int, monkeypatch, root: Path, lived=None, config=CONFIG
) -> tuple[FileStore, Life, bool]:
    """Live until so many steps are done; whether the life ended before that."""
    store, life = FileStore(root), Life()
    logs = manager(store, config=config)
    with counting_steps(monkeypatch, steps):
        try:
            (lived or live)(logs, life)
        except Crashed:
            return store, life, False
    return store, life, True


@contextmanager
def counting_steps(monkeypatch, steps: int) -> Iterator[None]:
    """Within it the step after so many raises :class:`Crashed`, and so does every later one."""
    left = [steps]

    def counted(original: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object) -> object:
            if left[0] == 0:
                raise Crashed
            left[0] -= 1
            return original(*arguments)

        return step

    with monkeypatch.context() as patch:
        for owner, name in STEPS:
            patch.setattr(owner, name, counted(getattr(owner, name)))
        yield


def found_again(store: FileStore) -> tuple[list[int], list[bytes], list[int]]:
    """What a new process finds, which must be able to go on from there.

    Returns:
        Numbers of the batches up to the log end, those that are there, and the numbers that a hole
        between segments lacks.
    """
    logs = manager(store, config=CONFIG)
    found = [one for one in logs.load() if one.partition == TP]
    if not found:
        return [], [], []
    [one] = found
    log, kept = one.log, contents(one.log)
    holes = lacking(one.recovery.holes)
    end = log.log_end_offset // 2
    assert end == len(kept) + len(holes)
    # Where the log has a hole, the producer may be known by what lay before it.
    producer, sequence = (5, 0) if holes else (4, 2 * end)
    answer = log.append_as_leader(batch(sequence, 2, at_ms=90, pid=producer), 9, NOW)
    assert (answer.error.name, answer.duplicate) == ("NONE", False)
    return list(range(end)), kept, holes


def lacking(holes) -> list[int]:
    """Numbers of the batches, of two records each, that lay in the holes."""
    return [number for begin, end in holes for number in range(begin // 2, end // 2)]


LOSSES = {
    "the process is killed": None,
    "power is lost, nothing more reached the platter": 0.0,
    "power is lost, half of it reached the platter": 0.5,
    "power is lost, nearly all of it reached the platter": 0.999,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_crash_at_any_step_leaves_everything_flushed_and_loses_ends_of_segments_only(
    tmp_path, monkeypatch, loss
) -> None:
    steps, ended, lengths = 0, False, {0}
    while not ended:
        store, life, ended = crash_after(steps, monkeypatch, tmp_path / str(steps))
        draw = LOSSES[loss]
        if draw is not None:
            store.power_loss(lambda value=draw: value)
        numbers, kept, holes = found_again(store)
        wanted = [life.batches[n] for n in numbers if n not in holes]
        assert kept == wanted, f"step {steps}: not what was written"
        sound = min(holes, default=len(numbers))
        assert sound >= life.flushed, f"step {steps}: something flushed is gone"
        if draw is None:
            assert holes == []
            assert len(kept) >= life.written, f"step {steps}: a kill lost what was written"
        lengths.add(len(kept))
        store.close()
        steps += 1
    assert steps > 100
    assert len(lengths) > 3


def test_planted_a_recovery_point_ahead_of_the_flush_is_found(tmp_path, monkeypatch) -> None:
    """The checkpoint says that all is flushed, and recovery trusts it."""
    flush = PartitionLog.flush

    def lying(log: PartitionLog, up_to: int | None = None) -> int:
        log.recovery_point = log.log_end_offset
        return 0 if log.recovery_point == 12 else flush(log, up_to)

    monkeypatch.setattr(PartitionLog, "flush", lying)
    with pytest.raises(AssertionError, match="something flushed is gone"):
        test_a_crash_at_any_step_leaves_everything_flushed_and_loses_ends_of_segments_only(
            tmp_path, monkeypatch, "power is lost, nothing more reached the platter"
        )
