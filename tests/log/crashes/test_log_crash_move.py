"""A crash at every step of a life in which a log moves to another directory and back.

What a new process finds is a prefix of what was written, holds everything that was flushed where it
is found, and is one log: but for the one step at which the new log has its name and the old one
still has it, where a broker refuses to start, as Kafka does. Steps are counted as in
``test_log_crashes``.
"""

import pytest

from sim.log.config import LogConfig
from sim.log.directory.future_logs import Replaced
from sim.log.directory.manager import LogManager, TwoLogs
from sim.log.partition.log import PartitionLog
from sim.log.partition.recovery import load_log
from sim.log.store import checkpoints
from sim.log.store.files import FileStore
from tests.log.crashes.test_log_crashes import LOSSES, Crashed, Life, counting_steps
from tests.log.log_kit import TOPIC_ID, TP, contents, manager

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100)


def copy(logs: LogManager, life: Life, count: int) -> None:
    """The future log gets so many more batches of the current one."""
    future = logs.futures.get(TP)
    current = logs.get(TP)
    for found in list(current.batches(future.log_end_offset))[:count]:
        future.append_as_follower((found,))


def move(logs: LogManager, life: Life, to: int) -> None:
    """Copy while more is written, swap, and let the old files go."""
    logs.futures.create(TP, to)
    copy(logs, life, 3)
    logs.checkpoint_recovery_points()
    logs.checkpoint_high_watermarks({TP: 4}, {TP: 2})
    life.cut = life.batches[-1:]
    life.truncate(logs.get(TP), len(life.batches) - 1)
    logs.futures.get(TP).truncate_to(2 * len(life.batches))
    life.cut = []
    life.append(logs.get(TP), 5 + to)
    copy(logs, life, 99)
    life.swapping = True
    replaced = logs.replace_current(TP)
    life.swapping = False
    assert replaced.failure is None
    # Nothing is flushed for the change: only what the future log had rolled is surely there.
    life.flushed = min(life.flushed, logs.get(TP).recovery_point // 2)
    logs.checkpoint_log_starts()
    life.append(logs.get(TP), 5 + to)
    logs.remove_deleted(replaced.directory, replaced.doomed)


def live(logs: LogManager, life: Life) -> None:
    life.cut, life.swapping = [], False
    log = logs.create(TP, TOPIC_ID, 0)
    for number in range(6):
        life.append(log, number // 3)
    life.flush(log)
    logs.checkpoint_recovery_points()
    move(logs, life, 1)
    life.flush(logs.get(TP))
    move(logs, life, 0)
    logs.shutdown(5)
    life.flushed = len(life.batches)
    logs.finish()


def crash_after(steps, monkeypatch, root) -> tuple[tuple[FileStore, ...], Life, bool]:
    stores, life = (FileStore(root / "0"), FileStore(root / "1")), Life()
    life.cut, life.swapping = [], False
    logs = manager(*stores, config=CONFIG)
    with counting_steps(monkeypatch, steps):
        try:
            live(logs, life)
        except Crashed:
            return stores, life, False
    return stores, life, True


def kept_in(log: PartitionLog, life: Life, step: int) -> int:
    """How many batches a log holds, which must be a prefix of what was written."""
    kept = contents(log)
    assert kept == (life.batches + life.cut)[: len(kept)], f"step {step}: no prefix"
    return len(kept)


def check(tmp_path, monkeypatch, loss) -> tuple[int, int]:
    """Crash at each step; at how many two logs were found, and at how many a future log."""
    steps, ended, twice, futures = 0, False, 0, 0
    draw = LOSSES[loss]
    while not ended:
        stores, life, ended = crash_after(steps, monkeypatch, tmp_path / str(steps))
        if draw is not None:
            for store in stores:
                store.power_loss(lambda value=draw: value)
        logs = manager(*stores, config=CONFIG)
        floor = life.written if draw is None else life.flushed
        try:
            found = logs.load()
        except TwoLogs:
            found = ()
            twice += 1
            assert life.swapping, f"step {steps}: two logs"
            for store in stores:
                alone, _ = load_log(store, str(TP), TP, CONFIG, clean=False, recovery_point=0)
                assert kept_in(alone, life, steps) >= (floor if draw is None else 0)
        else:
            log = logs.get(TP)
            assert len([one for one in found if not one.is_future]) == (log is not None)
            assert log is not None or not life.written, f"step {steps}: the log is gone"
            # Between the two names, what was flushed where the log was may not be where it is.
            if log is not None and not (life.swapping and draw is not None):
                assert kept_in(log, life, steps) >= floor, f"step {steps}: something is gone"
        for one in found:
            if one.is_future:
                futures += 1
                kept_in(one.log, life, steps)
                assert one.directory != logs.directory_of(TP)
        for store in stores:
            store.close()
        steps += 1
    assert steps > 100
    return twice, futures


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(loss, marks=[pytest.mark.slow] if "nothing" in loss or "all" in loss else [])
        for loss in LOSSES
    ],
)
def test_a_crash_at_any_step_of_a_move_leaves_one_log_that_lost_nothing(
    tmp_path, monkeypatch, loss
) -> None:
    twice, futures = check(tmp_path, monkeypatch, loss)
    assert twice == 2, "once for each of the two moves"
    assert futures > 30


def test_planted_the_old_log_given_up_first_leaves_a_moment_without_any(
    tmp_path, monkeypatch
) -> None:
    """Kafka names the new log before it renames the old one: in between there are two, not none."""

    def given_up_first(logs, partition) -> Replaced:
        source = logs.directory_of(partition)
        doomed = logs.delete(partition)
        honest(logs, partition)
        return Replaced(source, doomed, None)

    honest = LogManager.replace_current
    monkeypatch.setattr(LogManager, "replace_current", given_up_first)
    with pytest.raises(AssertionError, match="the log is gone"):
        check(tmp_path, monkeypatch, "the process is killed")


def test_what_was_cleaned_and_the_checkpoints_go_along(tmp_path) -> None:
    stores = FileStore(tmp_path / "0"), FileStore(tmp_path / "1")
    logs, life = manager(*stores, config=CONFIG), Life()
    log = logs.create(TP, TOPIC_ID, 0)
    for _ in range(4):
        life.append(log, 0)
    checkpoints.write_offsets(stores[0], checkpoints.CLEANER_OFFSETS, {TP: 4})
    logs.futures.create(TP, 1)
    copy(logs, life, 99)
    logs.checkpoint_recovery_points()
    assert TP in checkpoints.read_offsets(stores[1], checkpoints.RECOVERY_POINTS)
    replaced = logs.replace_current(TP)
    assert checkpoints.read_offsets(stores[0], checkpoints.RECOVERY_POINTS) == {}
    assert checkpoints.read_offsets(stores[0], checkpoints.CLEANER_OFFSETS) == {}
    assert checkpoints.read_offsets(stores[1], checkpoints.CLEANER_OFFSETS) == {TP: 4}
    assert logs.directory_of(TP) == 1
    assert (replaced.directory, replaced.doomed in stores[0].directories()) == (0, True)
    life.append(logs.get(TP), 1)
    logs.get(TP).roll()
    life.append(logs.get(TP), 1)
    assert logs.shutdown(1) > 0
    assert manager(*stores, config=CONFIG).load()[0].log.epochs == ((0, 0), (1, 8))


def test_a_disk_that_fails_under_the_old_log_does_not_keep_the_new_one_back(tmp_path) -> None:
    stores = FileStore(tmp_path / "0"), FileStore(tmp_path / "1")
    logs, life = manager(*stores, config=CONFIG), Life()
    life.append(logs.create(TP, TOPIC_ID, 0), 0)
    logs.futures.create(TP, 1)
    copy(logs, life, 1)
    stores[0].failed = True
    replaced = logs.replace_current(TP)
    assert replaced.failure.root == stores[0].root
    assert logs.directory_of(TP) == 1
    assert logs.take_offline(0, "failed") == ()
    assert contents(logs.get(TP)) == life.batches


def test_a_disk_that_fails_under_the_new_log_leaves_the_old_one(tmp_path) -> None:
    """The twin."""
    stores = FileStore(tmp_path / "0"), FileStore(tmp_path / "1")
    logs, life = manager(*stores, config=CONFIG), Life()
    life.append(logs.create(TP, TOPIC_ID, 0), 0)
    logs.futures.create(TP, 1)
    copy(logs, life, 1)
    stores[1].failed = True
    with pytest.raises(Exception, match="input/output error"):
        logs.replace_current(TP)
    logs.take_offline(1, "failed")
    assert logs.futures.logs == {}
    assert logs.directory_of(TP) == 0
