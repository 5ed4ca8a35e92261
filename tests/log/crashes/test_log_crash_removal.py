"""A crash at every step of a life in which segments leave the log at its start.

What is found begins nowhere above the log start that was decided, holds everything flushed, and is
whole from there on but for the ends of segments that a power loss took. Steps are counted as in
``test_log_crashes``.
"""

import pytest

from sim.log.config import LogConfig
from sim.log.partition import deletion
from sim.log.partition.deletion import unlink
from sim.log.partition.log import PartitionLog
from sim.log.partition.retention import delete_old_segments
from tests.log.crashes.test_log_crashes import LOSSES, crash_after, lacking
from tests.log.log_kit import NOW, TOPIC_ID, TP, contents, manager

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, retention_bytes=1_500)


def live(logs, life) -> None:
    """Retention by size twice, a log start in the middle of a segment, checkpoints, a shutdown."""
    life.removed = 0
    log = logs.create(TP, TOPIC_ID)
    for number in range(14):
        life.append(log, number // 5)
    life.flush(log)
    retain(log, life)
    logs.checkpoint_log_starts()
    for _ in range(4):
        life.append(log, 3)
    life.removed = max(life.removed, 22)
    log.raise_log_start(22)
    logs.checkpoint_log_starts()
    logs.checkpoint_recovery_points()
    life.flush(log)
    retain(log, life)
    life.append(log, 3)
    logs.shutdown(5)
    life.flushed = len(life.batches)
    logs.finish()


def retain(log: PartitionLog, life) -> None:
    # Decided before it is done: the first survivor of a retention by size.
    left = log.size_bytes - CONFIG.retention_bytes
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        if left < segment.size:
            break
        left -= segment.size
        life.removed = max(life.removed, following.base_offset)
    unlink(log.store, delete_old_segments(log, log.log_end_offset, NOW).doomed)


def check(tmp_path, monkeypatch, loss) -> None:
    steps, ended, starts = 0, False, {}
    while not ended:
        root = tmp_path / str(steps)
        store, life, ended = crash_after(steps, monkeypatch, root, live, CONFIG)
        draw = LOSSES[loss]
        if draw is not None:
            store.power_loss(lambda value=draw: value)
        found = [one for one in manager(store, config=CONFIG).load() if one.partition == TP]
        if found:
            [one] = found
            log, holes = one.log, lacking(one.recovery.holes)
            start, end, kept = log.log_start_offset, log.log_end_offset // 2, contents(log)
            assert start <= life.removed, f"step {steps}: more was removed than was decided"
            assert not (holes and draw is None), f"step {steps}: a kill left a hole"
            window = [life.batches[n] for n in range(start // 2, end) if n not in holes]
            assert kept == window, f"step {steps}: not a window"
            sound = min(holes, default=end)
            assert sound >= life.flushed, f"step {steps}: something flushed is gone"
            starts[start] = None
        assert not [n for n in store.names(str(TP)) if n.endswith((".deleted", ".tmp"))]
        store.close()
        steps += 1
    assert steps > 100
    assert {0, 22} < set(starts)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_crash_at_any_step_of_a_removal_leaves_a_window_that_is_whole(
    tmp_path, monkeypatch, loss
) -> None:
    check(tmp_path, monkeypatch, loss)


def test_planted_segments_renamed_newest_first_leave_a_hole(tmp_path, monkeypatch) -> None:
    honest = deletion.doom_segments
    monkeypatch.setattr(
        "sim.log.partition.retention.doom_segments",
        lambda store, directory, segments: honest(store, directory, segments[::-1]),
    )
    with pytest.raises(AssertionError, match="step"):
        check(tmp_path, monkeypatch, "the process is killed")
