"""The chain of events of one record, or of an outage, in plain sentences in order of time."""

from collections.abc import Iterator
from typing import Final

from sim.ids import server_name
from sim.suite.explain.endings import ending_of
from sim.suite.explain.run_facts import DAMAGES, LOOK_BACK_US, Row, Story
from sim.suite.explain.subject import GAPS, Copy
from sim.units import SECOND, Micros, show_duration, show_instant

Line = tuple[Micros, str]
"""An instant, and what happened at it."""

_LOUD: Final = ("crashed", "powered_off", "paused", "resumed", "stopped", "started")

_ENDS: Final = {
    "truncation:diverging_epoch": "truncated it, following its new leader's epochs",
    "truncation:out_of_range": "truncated it: its leader's log ended before it",
    "truncation:recovery": "lost it in recovery: its log was cut before it",
    "truncation:unrecovered": "stays down, and its disk does not have it",
    "truncation:wiped": "lost it with its disk",
    "truncation:overwritten": "lost it to a write that was meant for another file",
    "hole": "lost it in recovery, which keeps what lies behind: a hole between two segments",
    "recovery": "came back with a log that ends before it",
}


def lines(story: Story) -> list[Line]:
    """Every event that matters, each with its instant."""
    subject = story.subject
    is_gap = subject.kind in GAPS
    start = subject.from_us if is_gap else story.meant_us
    found = [*_client(story), *_copies(story), *_commit(story), *_transaction(story)]
    # What happened after the last thing that became of the record is no part of its story.
    end = max((at for at, _ in found), default=start + subject.for_us)
    end = max(end, start + subject.for_us) + SECOND
    found += _changes(story, start - LOOK_BACK_US, end)
    found += _states(story, start - LOOK_BACK_US, end)
    found += _faults(story, start - LOOK_BACK_US, end)
    if is_gap:
        verb = "delivered" if subject.kind == "unread" else "acknowledged"
        begins = f"no record of {subject} is {verb} from here on, for "
        found.append((start, begins + show_duration(subject.for_us)))
        found.append((start + subject.for_us, f"records of {subject} are {verb} again"))
    found.sort(key=lambda line: line[0])
    return found


def ending(story: Story) -> str:
    """Copies that are left in the end."""
    subject = story.subject
    if subject.kind in GAPS:
        return ""
    held = list(dict.fromkeys(c.name for c in story.copies if c.until_us is None))
    leader = server_name(story.final_leader) if story.final_leader >= 0 else "nobody"
    who = f"{', '.join(held)} still hold{'s' if len(held) == 1 else ''} it"
    if story.final_leader >= 0:
        leader += f" leads in leader epoch {story.changes[-1]['leader_epoch']}"
    else:
        leader += " leads"
    return f"in the end {leader}; {who if held else 'no log holds it'}"


def _client(story: Story) -> Iterator[Line]:
    row = story.batch
    if row is None:
        return
    size = row["record_count"]
    batch = f"in a batch of {size}" if size > 1 else "alone in its batch"
    yield story.meant_us, f"{row['producer']} means to send {story.subject}, {batch}"
    acks = {-1: "all"}.get(row["acks"], str(row["acks"]))
    if row["first_sent_us"] >= 0:
        yield row["first_sent_us"], f"{row['producer']} sends it with acks={acks}"
    if row["attempts"] > 1:
        yield row["last_sent_us"], f"{row['producer']} sends it again, for time {row['attempts']}"
    words = {
        "ok": "is told that it is written",
        "failed": f"is told that it is not written: {row['error']}",
        "unknown": f"gives it up without knowing: {row['error']}",
    }[row["outcome"]]
    if row["answered_by"] >= 0:
        words += f", by {server_name(row['answered_by'])}"
    if row["base_offset"] >= 0:
        words += f", offset {row['base_offset'] + story.subject.record - row['first_record']}"
    yield row["t_us"], f"{row['producer']} {words}"
    if row["outcome"] == "ok":
        yield row["t_us"], _who_had_it(story, row)


def _who_had_it(story: Story, row: Row) -> str:
    at = row["t_us"]
    names = list(dict.fromkeys(copy.name for copy in story.copies if copy.holds_at(at)))
    in_sync = ", ".join(server_name(broker) for broker in story.in_sync_at(at))
    return (
        f"at that instant {', '.join(names) or 'nobody'} has it; in sync, as committed: {in_sync}"
    )


def _copies(story: Story) -> Iterator[Line]:
    for copy in story.copies:
        what = "appends it as leader" if copy.as_leader else "copies it"
        yield (
            copy.since_us,
            f"{copy.name} {what} at offset {copy.offset}, leader epoch {copy.epoch}",
        )
        if copy.until_us is not None:
            yield copy.until_us, f"{copy.name} {end_in_words(story, copy)}"


def end_in_words(story: Story, copy: Copy) -> str:
    """End of a copy."""
    if copy.ended_by == "truncation:recovery":
        fault = story.damage_of(copy)
        if fault is not None and fault["kind"] in DAMAGES:
            return f"lost it in recovery: {DAMAGES[fault['kind']]}, and the log is cut there"
        if fault is None and story.went_dark(copy):
            return "lost it in recovery: the bytes were not on the platter"
    if copy.ended_by == "log start:remote":
        return "moved its log start above it: it knows no remote segment that has it"
    if copy.ended_by.startswith("log start:"):
        return f"moved its log start above it ({copy.ended_by.partition(':')[2]})"
    if copy.ended_by.startswith("cleaner:"):
        return "has it no longer: the log cleaner took it"
    return _ENDS.get(copy.ended_by, f"no longer has it ({copy.ended_by})")


def _commit(story: Story) -> Iterator[Line]:
    for row in story.watermarks:
        at, broker = row["t_us"], row["broker"]
        if any(
            copy.broker == broker and copy.holds_at(at) and row["high_watermark"] > copy.offset
            for copy in story.copies
        ):
            with_isr = f"an ISR of {row['in_sync_count']}"
            needed = f"min.insync.replicas {row['min_in_sync']}"
            name = server_name(broker)
            yield at, f"{name} moves the high watermark over it, with {with_isr} ({needed})"
            return


def _transaction(story: Story) -> Iterator[Line]:
    """The record's transaction at its coordinator, at its partition and at its producer."""
    outcome = story.transaction
    if outcome is None:
        return
    ending = ending_of(story.facts, outcome)
    yield outcome["begun_us"], f"{outcome['producer']} begins {ending.name}"
    for row in ending.steps:
        name = server_name(row["broker"])
        yield row["t_us"], f"{name}, the coordinator: {row['state']} ({row['reason']})"
    decision = ending.decision
    if decision is not None:
        yield from _marker(story, decision)
    error = "" if outcome["error"] == "NONE" else f": {outcome['error']}"
    yield (
        outcome["t_us"],
        f"{outcome['producer']} learns the end of {ending.name}: {outcome['outcome']}{error}",
    )


def _marker(story: Story, decision: Row) -> Iterator[Line]:
    for row in story.facts.rows("markers", story.subject):
        if row["producer_id"] == decision["producer_id"] and row["t_us"] >= decision["t_us"]:
            kind = "COMMIT" if row["committed"] else "ABORT"
            name = server_name(row["broker"])
            yield row["t_us"], f"{name} appends the {kind} marker at offset {row['offset']}"
            return


def _changes(story: Story, low: Micros, high: Micros) -> Iterator[Line]:
    before: Row | None = None
    for row in story.changes:
        if low <= row["t_us"] <= high and before is not None:
            words = []
            if row["leader"] != before["leader"]:
                who = server_name(row["leader"]) if row["leader"] >= 0 else "nobody"
                kind = ", uncleanly: it was neither in sync nor eligible" if row["unclean"] else ""
                words.append(f"makes {who} leader, leader epoch {row['leader_epoch']}{kind}")
            elif row["leader_epoch"] != before["leader_epoch"]:
                words.append(f"begins leader epoch {row['leader_epoch']} under the same leader")
            if row["in_sync"] != before["in_sync"]:
                words.append(f"ISR [{before['in_sync']}] becomes [{row['in_sync']}]")
            if words:
                yield row["t_us"], f"the controller: {'; '.join(words)}"
        before = row


def _states(story: Story, low: Micros, high: Micros) -> Iterator[Line]:
    replicas = story.replicas
    why = {(row["t_us"], row["node"]): row["reason"] for row in story.halts}
    for row in story.states:
        if low <= row["t_us"] <= high and row["node"] in replicas and row["state"] in _LOUD:
            words = row["state"].replace("powered_off", "loses power")
            if row["state"] == "crashed" and (row["t_us"], row["node"]) in why:
                words = f"halts: {why[row['t_us'], row['node']]}"
            yield row["t_us"], f"{row['node']} {words}"


def _faults(story: Story, low: Micros, high: Micros) -> Iterator[Line]:
    for fault in story.faults:
        what = f"fault {fault['fault']}, {fault['kind']} of {fault['target']}"
        for edge, words in (("began_us", "begins"), ("healed_us", "is over")):
            at = fault[edge]
            if at is not None and low <= at <= high:
                idle = "" if fault["took_effect"] else f", without effect: {fault['effect']}"
                yield at, f"{what}, {words}{idle}"


def show(line: Line) -> str:
    """One line as people read it."""
    return f"{show_instant(line[0]):>14}  {line[1]}"
