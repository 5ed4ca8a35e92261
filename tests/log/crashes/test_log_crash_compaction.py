"""A crash at every step of a life with compaction: old or new content, never a mixture that loses.

Whatever is found, a reader of the whole log believes of every key what was last written up to the
log end that is found; nothing is made up, and everything flushed is there or outdone. Steps are
counted as in ``test_log_crashes``.
"""

from dataclasses import dataclass, field, replace

import pytest

from sim.log.cleaning.cleanable import cleanable
from sim.log.cleaning.cleaner import Cleaning
from sim.log.directory.cleaner_checkpoint import read_cleaned, write_cleaned
from sim.log.directory.manager import LoadedLog, LogManager
from sim.log.partition import swap
from sim.log.partition.deletion import unlink
from sim.log.partition.log import PartitionLog
from sim.log.partition.segment import Segment
from sim.log.store.files import FileStore
from tests.log.cleaning.cleaner_kit import COMPACT, PLENTY, keyed, last_values, pairs
from tests.log.crashes.test_log_crashes import LOSSES, Crashed, counting_steps
from tests.log.log_kit import NOW, TOPIC_ID, TP, manager

CONFIG = replace(COMPACT, segment_bytes=260, index_interval_bytes=60)


@dataclass
class Life:
    """What was written so far: (offset, key, value); what is being done counts as done and not."""

    written: list[tuple[int, str | None, str | None]] = field(default_factory=list)
    sure: int = 0
    """Log end that a kill cannot take back."""
    flushed: int = 0
    """Log end that a power loss cannot take back."""
    seconds: int = 0

    def append(self, log: PartitionLog, *found: tuple[str, str | None]) -> None:
        base = log.log_end_offset
        self.written += [(base + i, key, value) for i, (key, value) in enumerate(found)]
        sequence = base
        log.append_as_leader(
            keyed(*found, producer_id=4, producer_epoch=0, base_sequence=sequence), 0, NOW
        )
        self.sure = log.log_end_offset

    def flush(self, log: PartitionLog) -> None:
        log.flush()
        self.flushed = log.log_end_offset

    def clean(self, logs: LogManager, log: PartitionLog) -> None:
        self.seconds += 2
        now_ms = NOW + 1_000 * self.seconds
        checkpoint = read_cleaned(log, logs.logs)
        target = cleanable(log, checkpoint, log.log_end_offset, now_ms)
        cleaning = Cleaning(target, PLENTY, now_ms, logs.checkpoint_recovery_points)
        while cleaning.write_group() is not None:
            doomed = cleaning.swap()
            assert doomed is not None
            unlink(log.store, doomed)
        write_cleaned(log, cleaning.end_offset, logs.logs)


def live(logs: LogManager, life: Life) -> None:
    """Keys outdone and deleted over several segments, three cleanings, checkpoints, a shutdown."""
    log = logs.create(TP, TOPIC_ID)
    for i in range(6):
        life.append(log, (f"k{i % 3}", f"v{i}"), ("all", f"v{i}"))
    life.flush(log)
    logs.checkpoint_recovery_points()
    life.append(log, ("k0", None), ("k1", "w"))
    for i in range(3):
        life.append(log, (f"n{i}", "v"), ("all", f"w{i}"))
    for i in range(4):
        life.append(log, ("big", "b" * 100 + str(i)))  # whole segments that will be empty
    life.flush(log)
    life.append(log, ("all", "b"))
    life.clean(logs, log)
    life.append(log, ("k2", None))
    for i in range(4):
        life.append(log, (f"m{i}", "v"), ("all", f"x{i}"))
    life.flush(log)
    life.clean(logs, log)
    logs.checkpoint_recovery_points()
    for i in range(4):
        life.append(log, ("n0", f"y{i}"), ("all", f"y{i}"))
    life.clean(logs, log)
    logs.shutdown(5)
    life.flushed = log.log_end_offset
    logs.finish()


def check(tmp_path, monkeypatch, loss) -> dict[tuple[int, ...], None]:
    """Every crash of the life; returns which sets of segments were found after them."""
    steps, ended = 0, False
    seen: dict[tuple[int, ...], None] = {}
    while not ended:
        store, life = FileStore(tmp_path / str(steps)), Life()
        logs = manager(store, config=CONFIG)
        with counting_steps(monkeypatch, steps):
            try:
                live(logs, life)
                ended = True
            except Crashed:
                pass
        draw = LOSSES[loss]
        if draw is not None:
            store.power_loss(lambda value=draw: value)
        found = [one for one in manager(store, config=CONFIG).load() if one.partition == TP]
        if found:
            believe(found[0], life, steps, killed=draw is None)
            seen[tuple(segment.base_offset for segment in found[0].log.segments)] = None
        else:
            assert life.flushed == 0
        left = [n for n in store.names(str(TP)) if n.endswith((".cleaned", ".swap", ".deleted"))]
        assert left == [], f"step {steps}: {left}"
        store.close()
        steps += 1
    assert steps > 200
    return seen


def believe(one: LoadedLog, life: Life, steps: int, *, killed: bool) -> None:
    log, holes = one.log, one.recovery.holes
    left, end = pairs(log), log.log_end_offset
    sound = min((begin for begin, _ in holes), default=end)
    assert not (holes and killed), f"step {steps}: a kill left a hole"
    assert set(left) <= set(life.written), f"step {steps}: a record was made up"
    offsets = [offset for offset, _, _ in left]
    assert offsets == sorted(dict.fromkeys(offsets)), f"step {steps}: out of order or twice"
    lost = [offset for begin, stop in holes for offset in range(begin, stop)]
    until = [record for record in life.written if record[0] < end and record[0] not in lost]
    assert last_values(left) == last_values(until), f"step {steps}: a key's last value is lost"
    assert sound >= (life.sure if killed else life.flushed), f"step {steps}: the end is lost"
    # Where the log has a hole, the producer may be known by what lay before it.
    producer, number = (5, 0) if holes else (4, end)
    sequence = keyed(("more", "1"), producer_id=producer, producer_epoch=0, base_sequence=number)
    answer = log.append_as_leader(sequence, 9, NOW)
    assert (answer.error.name, answer.duplicate) == ("NONE", False), f"step {steps}: {answer}"


@pytest.mark.parametrize("loss", LOSSES)
def test_a_crash_at_any_step_of_a_compaction_leaves_old_or_new_content(
    tmp_path, monkeypatch, loss
) -> None:
    assert len(check(tmp_path, monkeypatch, loss)) > 5


def test_planted_old_files_that_go_before_the_new_ones_are_complete_lose_values(
    tmp_path, monkeypatch
) -> None:
    honest = swap.replace_segments

    def hasty(log: PartitionLog, cleaned: Segment, old: list[Segment]) -> list[str]:
        for segment in old:
            for name in swap.all_segment_files(log.directory, segment.base_offset):
                log.store.delete(name)
        return honest(log, cleaned, old)

    monkeypatch.setattr("sim.log.cleaning.cleaner.replace_segments", hasty)
    with pytest.raises(AssertionError, match=r"step \d+: (a key's last value|the end) is lost"):
        check(tmp_path, monkeypatch, "the process is killed")


def test_planted_without_a_recovery_point_a_gap_of_the_cleaner_looks_like_a_lost_end(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(Cleaning, "_secure", lambda _: None)
    with pytest.raises(AssertionError, match="step"):
        check(tmp_path, monkeypatch, "the process is killed")


def test_planted_a_cleaned_segment_that_is_not_flushed_is_torn_by_a_power_loss(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("sim.log.cleaning.cleaner.Segment.flush", lambda _: 0)
    with pytest.raises(AssertionError, match="step"):
        check(tmp_path, monkeypatch, "power is lost, nothing more reached the platter")
