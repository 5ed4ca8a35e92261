"""Mechanisms that the facts of a story show, the decisive one first.

Each looks for its own evidence in the trace. More than one may hold: an acknowledgement that one
replica could give alone, and a power loss that took this one.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from sim.ids import server_name
from sim.suite.explain.consumers import dead_consumer, ended_consumer, rebalance, silent_fetch
from sim.suite.explain.run_facts import COPIES_TAKEN, DAMAGES, LOOK_BACK_US, Story
from sim.suite.explain.subject import is_storage_loss
from sim.suite.explain.waits import (
    dark_machine,
    forgotten_batch,
    late_end_txn,
    no_leader,
    silent_leader,
)
from sim.units import show_duration, show_instant

_ENDED: Final = ("crashed", "powered_off", "stopped")
"""States in which a process does no work."""

Mechanism = Callable[[Story], Iterator[str]]
"""Sentences about one way in which things go wrong; none if it left no evidence."""


def causes(story: Story) -> list[str]:
    """Sentences, the decisive mechanism first; none if the trace shows none that is known."""
    found = [line for mechanism in _MECHANISMS[story.subject.kind] for line in mechanism(story)]
    return list(dict.fromkeys(found))


def mechanisms(story: Story) -> list[str]:
    """Names of the mechanisms that left evidence, in the same order: the same in every run.

    They are part of capsules: one that is renamed is no longer recognised in an older file.
    """
    return [
        mechanism.__name__.strip("_").replace("_", "-")
        for mechanism in _MECHANISMS[story.subject.kind]
        if any(True for _ in mechanism(story))
    ]


def _unacknowledged(story: Story) -> Iterator[str]:
    if story.batch is not None and story.batch["acks"] == 0:
        yield "acks=0: the producer asked for no acknowledgement and took sending for writing"


def _acks_1(story: Story) -> Iterator[str]:
    names = _sole_holder(story)
    if names and story.batch is not None and story.batch["acks"] == 1:
        yield (
            f"acks=1: {names} answered after its own append, before any follower had fetched "
            "the record"
        )


def _only_replica(story: Story) -> Iterator[str]:
    names = _sole_holder(story)
    if names and story.batch is not None and story.batch["acks"] != 1 and len(story.replicas) == 1:
        yield f"acks=all meant {names} alone: the partition has no other replica"


def _isr_of_one(story: Story) -> Iterator[str]:
    names = _sole_holder(story)
    if names and story.batch is not None and story.batch["acks"] != 1 and len(story.replicas) != 1:
        yield (
            f"acks=all meant {names} alone: the ISR had shrunk to it, and min.insync.replicas "
            "allowed that"
        )


def _sole_holder(story: Story) -> str:
    """Name of the one broker that had the record when it was acknowledged; else empty."""
    row = story.batch
    if row is None or row["outcome"] != "ok" or row["acks"] == 0:
        return ""
    holders = dict.fromkeys(copy.name for copy in story.copies if copy.holds_at(row["t_us"]))
    return next(iter(holders)) if len(holders) == 1 else ""


def _deposed(story: Story) -> Iterator[str]:
    row = story.batch
    if row is None or row["answered_by"] < 0:
        return
    answered = row["answered_by"]
    late = [
        other["record_count"]
        for other in story.facts.rows("client_batches", story.subject)
        if other["outcome"] == "ok"
        and other["answered_by"] == answered
        and story.leader_at(other["t_us"]) not in (-1, answered)
    ]
    if late:
        yield (
            f"{server_name(answered)} was a zombie leader: it acknowledged {sum(late):,} records "
            "after the controller had made another broker leader"
        )


def _unclean(story: Story) -> Iterator[str]:
    for row in story.changes:
        # What no log had any more at that instant is not lost by the choice of a leader.
        is_before = any(copy.holds_at(row["t_us"] - 1) for copy in story.copies)
        is_its = is_before or story.subject.kind == "divergent"
        if row["unclean"] and row["leader"] >= 0 and row["t_us"] > story.meant_us and is_its:
            yield (
                f"an unclean election at {show_instant(row['t_us'])} made "
                f"{server_name(row['leader'])} leader, which was not in sync"
            )
            return


def _forgotten_segments(story: Story) -> Iterator[str]:
    """A leader begins at the first remote segment it knows of (``findLogStartOffset``)."""
    for copy in story.copies:
        if copy.ended_by == "log start:remote":
            at = show_instant(copy.until_us or 0)
            yield (
                f"forgotten in the object store: at {at} {copy.name} led, had no entry of "
                "__remote_log_metadata for the record's segment, and moved its log start above it"
            )
            return


def _power(story: Story) -> Iterator[str]:
    dark = [
        copy.name
        for copy in story.copies
        if is_storage_loss(copy) and story.damage_of(copy) is None and story.went_dark(copy)
    ]
    if dark:
        names = ", ".join(dict.fromkeys(dark))
        yield (
            f"power loss: {names} had the record in the page cache only, not flushed to the platter"
        )


def _damaged(story: Story) -> Iterator[str]:
    """Bytes that were on the platter, and are not what was written."""
    for copy in story.copies:
        fault = story.damage_of(copy)
        if fault is None or fault["kind"] not in DAMAGES or not is_storage_loss(copy):
            continue
        cut = next(
            (
                row["to_offset"]
                for row in story.truncations
                if row["broker"] == copy.broker and row["t_us"] == copy.until_us
            ),
            None,
        )
        where = "" if cut is None else f" at offset {cut}"
        yield (
            f"damaged bytes: {DAMAGES[fault['kind']]} on {copy.name} at "
            f"{show_instant(fault['began_us'])} (faults[{fault['fault']}]), and recovery cut its "
            f"log{where}, before the first batch that its CRC denies"
        )


def _empty_disk(story: Story) -> Iterator[str]:
    lost = [f for f in story.faults if f["kind"] in COPIES_TAKEN]
    for fault in lost:
        at = fault["began_us"]
        if at is None or at < story.meant_us or not fault["took_effect"]:
            continue
        yield (
            f"empty disk: {fault['resolved'] or fault['target']} lost its files and came back "
            "without them"
        )


def _own_watermark(story: Story) -> Iterator[str]:
    """A follower that cut at its own high watermark, although its leader had the record then."""
    if story.facts.scenario.behaviours.get("truncation") != "hw":
        return
    for row in story.truncations:
        if row["t_us"] > story.meant_us and row["to_offset"] == row["high_watermark"]:
            yield (
                f"{server_name(row['broker'])} truncated to its own high watermark "
                f"{row['to_offset']}, not to where its leader's log parts from its own"
            )
            return


def _truncated(story: Story) -> Iterator[str]:
    leader = story.final_leader
    for copy in story.copies:
        if copy.ended_by.startswith("truncation:") and not is_storage_loss(copy):
            until = copy.until_us or 0
            took_over = next(
                (
                    row
                    for row in story.changes
                    if copy.since_us < row["t_us"] <= until
                    and row["leader"] not in (-1, copy.broker)
                    and not story.holds(row["leader"], row["t_us"])
                ),
                None,
            )
            if took_over is None:
                continue
            # Who was elected first need not be who led when the log was cut.
            cut = next(
                row["leader_epoch"]
                for row in story.truncations
                if row["broker"] == copy.broker and row["t_us"] == until
            )
            later = "" if cut == took_over["leader_epoch"] else f" in leader epoch {cut}"
            yield (
                f"election of a leader without the record: {server_name(took_over['leader'])} took "
                f"over in leader epoch {took_over['leader_epoch']}, and {copy.name} truncated what "
                f"it alone had{later}"
            )
            return
    if leader >= 0 and not any(copy.broker == leader for copy in story.copies):
        yield f"election of a leader without the record: {server_name(leader)} never had it"


def _cleaned(story: Story) -> Iterator[str]:
    if any(copy.ended_by.startswith("cleaner:") for copy in story.copies):
        yield (
            "the log cleaner removed it: a tombstone went before delete.retention.ms had passed, "
            "or a later record of its key was never committed"
        )


def _retried(story: Story) -> Iterator[str]:
    row = story.batch
    is_idempotent = any(
        producer.config.flag("enable.idempotence")
        for producer in story.facts.scenario.producers
        if story.subject.producer in producer.client_names
    )
    if row is None or is_idempotent:
        return
    if story.subject.kind == "duplicated":
        yield (
            f"retry without idempotence: the answer did not come, the batch was sent "
            f"{row['attempts']} times, and the leader could not know it again"
        )
    else:
        yield (
            "retry without idempotence, with several requests in flight: a batch that was refused "
            "was written behind later ones"
        )


def _forgotten(story: Story) -> Iterator[str]:
    """A snapshot of producers keeps each one's last batch: ``ProducerStateManager``."""
    written = [copy for copy in story.copies if copy.as_leader]
    for first, again in pairwise(written):
        for row in story.recoveries:
            if row["broker"] == again.broker and first.since_us < row["t_us"] < again.since_us:
                yield (
                    f"{again.name} was restarted in between, and of what a producer wrote before "
                    "that it remembers the last batch only: what was sent again was out of order, "
                    "and new in the producer's next epoch"
                )
                return


def _parted(story: Story) -> Iterator[str]:
    epochs = list(dict.fromkeys(copy.epoch for copy in story.copies))
    if len(epochs) > 1:
        held = [f"{c.name} has leader epoch {c.epoch}" for c in story.copies if c.until_us is None]
        yield (
            f"divergence: two leaders wrote this offset, in leader epochs "
            f"{', '.join(map(str, epochs))}; {'; '.join(dict.fromkeys(held))}"
        )


def _heaps(story: Story) -> Iterator[str]:
    """Brokers whose heap was too small: those that ended, and those that collected all the time."""
    start, end = story.window
    rows = [row for row in story.facts.rows("heaps") if row["t_us"] <= end]
    exhausted = {row["broker"]: row for row in rows if row["event"] == "out_of_memory"}
    for broker, row in exhausted.items():
        yield (
            f"{server_name(broker)} ran out of heap at {show_instant(row['t_us'])}: its logs knew "
            f"{row['producers']:,} producer ids, and {row['connections']:,} connections were open"
        )
    stopped: dict[int, list[int]] = {}
    for row in rows:
        if row["event"] == "collection" and row["t_us"] + row["pause_us"] > start:
            stopped.setdefault(row["broker"], []).append(row["pause_us"])
    for broker, pauses in stopped.items():
        yield (
            f"{server_name(broker)} stood still for collections of a heap that was nearly full: "
            f"{len(pauses):,}, of {show_duration(sum(pauses))} in all"
        )


def _halted(story: Story) -> Iterator[str]:
    """Replicas that ended by themselves, but for those whose heap was full."""
    begin, end = story.window
    if story.subject.kind == "lost_acked":
        # Who ended later could not give it back.
        end = story.facts.end_us
    else:
        begin -= LOOK_BACK_US
    of_heaps = {
        (row["t_us"], server_name(row["broker"]))
        for row in story.facts.rows("heaps")
        if row["event"] == "out_of_memory"
    }
    for row in story.halts:
        where = (row["t_us"], row["node"])
        is_near = begin <= row["t_us"] <= end and row["node"] in story.replicas
        if is_near and where not in of_heaps:
            yield f"{row['node']} halted at {show_instant(row['t_us'])}: {row['reason']}"


def _below_min_isr(story: Story) -> Iterator[str]:
    start, end = story.window
    needed = max((row["min_in_sync"] for row in story.watermarks), default=0)
    for row in story.changes:
        count = len([word for word in row["in_sync"].split(",") if word])
        if start - 1_000_000 <= row["t_us"] <= end and 0 < count < needed:
            yield (
                f"the ISR [{row['in_sync']}] was below min.insync.replicas {needed}: the leader "
                "refused writes with NOT_ENOUGH_REPLICAS"
            )
            return


def _waited_for_follower(story: Story) -> Iterator[str]:
    start, end = story.window
    for before, row in zip(story.changes, story.changes[1:], strict=False):
        is_shrunk = len(row["in_sync"]) < len(before["in_sync"])
        if start < row["t_us"] <= end and is_shrunk and row["leader"] == before["leader"]:
            yield (
                f"acks=all waited for a follower that did not answer, until the ISR shrank to "
                f"[{row['in_sync']}] at {show_instant(row['t_us'])}"
            )
            return


def _committed_early(story: Story) -> Iterator[str]:
    """An input whose offset was committed while no output of it was there."""
    first = story.commits[0] if story.commits else None
    if first is None or any(row["t_us"] <= first["t_us"] for row in story.outputs):
        return
    yield (
        f"offsets committed before processing: {first['consumer']} had offset {first['offset']} "
        f"committed at {show_instant(first['t_us'])}, before it made an output of the record"
    )
    for row in story.states:
        if (
            row["node"] == first["consumer"]
            and row["state"] in _ENDED
            and row["t_us"] > story.meant_us
        ):
            yield (
                f"{row['node']} {row['state'].replace('powered_off', 'lost power')} at "
                f"{show_instant(row['t_us'])} with the record unprocessed; its heir went on behind"
            )
            return


def _processed_again(story: Story) -> Iterator[str]:
    """An input of which outputs were made again: by a task that lives on, or by its heir."""
    if len(story.outputs) < 2:
        return
    first, last = story.outputs[0], story.outputs[-1]
    is_dead = any(
        row["node"] == first["task"]
        and row["state"] in _ENDED
        and first["t_us"] <= row["t_us"] <= last["t_us"]
        for row in story.states
    )
    times = f"at {show_instant(first['t_us'])} and at {show_instant(last['t_us'])}"
    if first["task"] != last["task"] and not is_dead:
        yield (
            f"zombie task: {first['task']} and {last['task']} both made outputs of the record, "
            f"{times}, and nothing kept the one that had lost its partition from committing them"
        )
    else:
        yield (
            f"processed before it was committed: outputs were made {times}, for the offset behind "
            "the record was not committed in between"
        )


_LOSS: Final[tuple[Mechanism, ...]] = (
    *(_unacknowledged, _forgotten_segments, _deposed, _acks_1, _only_replica, _isr_of_one),
    *(_unclean, _empty_disk),
    *(_power, _damaged, _own_watermark, _cleaned, _truncated, _halted),
)
_OUTAGE: Final[tuple[Mechanism, ...]] = (
    *(_heaps, _halted, late_end_txn, forgotten_batch, silent_leader),
    *(dark_machine, no_leader),
    *(_below_min_isr, _waited_for_follower),
)
_MECHANISMS: Final[dict[str, tuple[Mechanism, ...]]] = {
    "lost_acked": _LOSS,
    "divergent": (_own_watermark, _parted, _unclean, _power),
    "duplicated": (_retried, _forgotten),
    "reordered": (_retried,),
    "unprocessed": (_committed_early,),
    "reprocessed": (_processed_again,),
    "late": _OUTAGE,
    "outage": _OUTAGE,
    "unread": (
        *(_heaps, _halted, dead_consumer, ended_consumer, silent_fetch, rebalance, no_leader),
    ),
    "aborted": (late_end_txn,),
    "wait": (),
    "ok": (late_end_txn,),
}
"""By what is to be explained: which ways are looked for, the decisive ones first."""
