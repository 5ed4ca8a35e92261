"""Waits of a partition, or a transaction: each part with the row that shows it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from sim.ids import server_name
from sim.suite.explain.control import down_at, reigns, session_end, ungoverned
from sim.suite.explain.endings import ending_of, late_endings
from sim.suite.explain.run_facts import OUTAGE_US, Row, Story
from sim.units import MS, Micros, show_duration, show_instant

_SESSION: Final = "zookeeper.session.timeout.ms"

_REMEMBERED: Final = 5
"""Batches of each producer in a log's memory: ``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``."""


def no_leader(story: Story) -> Iterator[str]:
    """Waits of the partition until another broker led it, part by part."""
    start, end = story.window
    old = story.leader_at(start)
    elected = next(
        (r for r in story.changes if start < r["t_us"] <= end and r["leader"] not in (-1, old)),
        None,
    )
    until = end if elected is None else elected["t_us"]
    yield from _without_leader(story, start, end)
    gaps = ungoverned(story.facts, start, until)
    if elected is not None or old < 0 or story.is_down(old, start, end):
        for low, high in gaps:
            down = ", ".join(down_at(story.facts, low))
            yield (
                f"no controller was active from {show_instant(low)} to {show_instant(high)}"
                f"{f' ({down} down)' if down else ''}: nobody could elect a leader"
            )
    if elected is None:
        return
    words = (
        f"{server_name(elected['leader'])} was made leader "
        f"{show_duration(until - start)} into the outage"
    )
    ended = session_end(story.facts, old, start, until)
    if ended is None:
        yield words
        return
    what = f"the session of {server_name(old)} to end"
    at = show_instant(ended["t_us"])
    if story.facts.scenario.cluster.zookeeper is not None:
        length = story.facts.scenario.cluster.config.number(_SESSION)
        yield f"{words}: ZooKeeper waited for {what} until {at} ({_SESSION} {length:,})"
        return
    length = story.facts.scenario.cluster.config.number("broker.session.timeout.ms")
    name = server_name(ended["controller"])
    since = max(r.from_us for r in reigns(story.facts) if r.from_us <= ended["t_us"])
    after = ""
    if since > start:
        after = f", {show_duration(ended['t_us'] - since)} after it had become the controller"
    yield (
        f"{words}: {name} waited for {what} (broker.session.timeout.ms {length:,}), and fenced it "
        f"at {at}{after}"
    )


def _without_leader(story: Story, start: Micros, end: Micros) -> Iterator[str]:
    """The longest stretch in which the controller had nobody to elect."""
    stretches = [
        (after["t_us"] - before["t_us"], before)
        for before, after in pairwise([*story.changes, {"t_us": story.facts.end_us}])
        if before["leader"] < 0 and before["t_us"] <= end and after["t_us"] > start
    ]
    if not stretches:
        return
    length, row = max(stretches, key=lambda each: each[0])
    # A controller that takes office may fence the old leader first and elect in its next step.
    if length * 2 >= min(OUTAGE_US, end - start):
        yield (
            f"the partition was offline from {show_instant(row['t_us'])} on for "
            f"{show_duration(length)}: of its ISR [{row['in_sync']}] and its ELR "
            f"[{row['eligible']}] nobody was alive"
        )


def forgotten_batch(story: Story) -> Iterator[str]:
    """A batch whose retries are out of sequence until they are given up.

    A producer sends new batches to a new leader while an older one waits for an answer of the
    former leader (``RecordAccumulator.shouldStopDrainBatchesForPartition``); a retry that is not
    among the last batches in the leader's memory, or that the new leader never had, is no duplicate
    for it (``ProducerAppendInfo.checkSequence``), and for the producer a reason to try again
    (``TransactionManager.canRetry``).
    """
    start, end = story.window
    for row in story.facts.rows("client_batches", story.subject):
        if row["first_sent_us"] < end and start < row["t_us"] <= end:
            words = _refused_for_good(story, row)
            if words:
                yield words
                return


def _refused_for_good(story: Story, batch: Row) -> str:
    """Refusal of a batch behind which its leader has later ones; empty if there was none."""
    if batch["outcome"] == "ok" or batch["attempts"] < 2:
        return ""
    leader = story.leader_at(batch["last_sent_us"])
    written = [
        row
        for row in story.appends
        if row["broker"] == leader
        and row["producer_index"] == batch["producer_index"]
        and row["base_sequence"] >= 0
        and row["t_us"] <= batch["last_sent_us"]
    ]
    own = [row for row in written if row["first_record"] == batch["first_record"]]
    refused = (
        f"{batch['producer']} sent record {batch['first_record']} {batch['attempts']} times, until "
        f"{show_instant(batch['last_sent_us'])}; {server_name(leader)}, the leader then, had"
    )
    if not own:
        newer = [row for row in written if row["first_record"] > batch["first_record"]]
        return _overtaken(newer[0], refused) if newer else ""
    later = {row["base_offset"] for row in written if row["base_offset"] > own[0]["base_offset"]}
    if len(later) < _REMEMBERED:
        return ""
    return (
        f"retry of a batch that is forgotten: {refused} it at offset {own[0]['base_offset']} and "
        f"{len(later):,} later batches of {batch['producer']} behind it, and remembers "
        f"{_REMEMBERED} of a producer: OUT_OF_ORDER_SEQUENCE_NUMBER"
    )


def _overtaken(newer: Row, refused: str) -> str:
    return (
        f"retry of a batch that a later one has overtaken: {refused} record "
        f"{newer['first_record']} of the same producer at offset {newer['base_offset']}, since "
        f"{show_instant(newer['t_us'])}, and not this one: OUT_OF_ORDER_SEQUENCE_NUMBER"
    )


def silent_leader(story: Story) -> Iterator[str]:
    """A leader that is cut off or paused, of which clients learn nothing: not even that it is away.

    A client looks for another leader when a connection breaks, or when a request has had no answer
    for ``request.timeout.ms``: ``NetworkClient.handleTimedOutRequests``.
    """
    for row, timeout in _silences(story):
        if row["last_sent_us"] - row["first_sent_us"] < timeout:
            continue
        old = story.leader_at(row["first_sent_us"])
        yield (
            f"request.timeout.ms: {row['producer']} sent record {row['first_record']} to "
            f"{server_name(old)} at {show_instant(row['first_sent_us'])} and got no answer, for "
            f"{timeout // MS:,} ms; only then it looked for another leader, "
            f"and sent it again at {show_instant(row['last_sent_us'])}: {_ready(story, row)}"
        )
        return


def dark_machine(story: Story) -> Iterator[str]:
    """A leader whose machine lost power: nothing resets its connections until it is up again.

    A client that waits for an answer learns of it when a retransmission of its own reaches the
    machine that has started again (RFC 9293, 3.5.2), or after ``request.timeout.ms``.
    """
    for row, timeout in _silences(story):
        old, sent = story.leader_at(row["first_sent_us"]), row["first_sent_us"]
        silent = row["last_sent_us"] - sent
        started = _started_after_power_loss(story, old, sent, row["last_sent_us"])
        if silent >= timeout or started is None:
            continue
        yield (
            f"a machine without power resets no connection: {row['producer']} sent record "
            f"{row['first_record']} to {server_name(old)} at {show_instant(sent)} and got no "
            f"answer for {show_duration(silent)}, until {server_name(old)}, started again at "
            f"{show_instant(started)}, refused a retransmission; request.timeout.ms is "
            f"{timeout // MS:,}: {_ready(story, row)}"
        )
        return


def _started_after_power_loss(
    story: Story, broker: int, sent: Micros, until: Micros
) -> Micros | None:
    """The instant at which a broker without power started again; ``None`` if it did not.

    Nor if it had power 100 ms after ``sent``: what was sent may have arrived then.
    """
    rows = [row for row in story.states if row["node"] == server_name(broker)]
    before = [row["state"] for row in rows if row["t_us"] <= sent + 100 * MS][-1:]
    if before != ["powered_off"]:
        return None
    back = (r["t_us"] for r in rows if sent < r["t_us"] <= until and r["state"] == "started")
    return next(back, None)


def _silences(story: Story) -> Iterator[tuple[Row, Micros]]:
    """Batches of the outage that were sent again after a silence, with ``request.timeout.ms``."""
    start, end = story.window
    for row in story.facts.rows("client_batches", story.subject):
        silent = row["last_sent_us"] - row["first_sent_us"]
        is_its = row["attempts"] > 1 and row["first_sent_us"] < end
        if not is_its or row["last_sent_us"] <= start or row["t_us"] > end:
            continue
        if _refused_for_good(story, row):
            continue
        config = next(
            p.config for p in story.facts.scenario.producers if row["producer"] in p.client_names
        )
        # Refusals come at once, and are followed by a pause of at most this, with its jitter.
        pauses = (row["attempts"] - 1) * config.micros("retry.backoff.max.ms") * 6 // 5
        timeout = config.micros("request.timeout.ms")
        if silent > pauses or silent >= timeout > pauses:
            yield row, timeout


def _ready(story: Story, row: Row) -> str:
    """Another leader that there was when a batch was sent again."""
    old = story.leader_at(row["first_sent_us"])
    for change in story.changes:
        is_new = change["leader"] not in (-1, old)
        if is_new and row["first_sent_us"] < change["t_us"] <= row["last_sent_us"]:
            led = show_duration(row["last_sent_us"] - change["t_us"])
            return f"{server_name(change['leader'])} had been leader for {led} by then"
    return "no other broker led meanwhile"


def late_end_txn(story: Story) -> Iterator[str]:
    """The end of a transaction that took long to reach its coordinator, or came too late."""
    for ending, held in late_endings(story):
        decision = ending.decision
        assert decision is not None, "a late one has been decided"
        if ending.by_end_txn:
            yield (
                f"late EndTxn: {server_name(decision['broker'])}, the coordinator, decided "
                f"{ending.name} at {show_instant(decision['t_us'])}, "
                f"{show_duration(ending.waited_us)} after the last answer to its records; until "
                f"then {held['producer']} could send nothing of the next one, such as record "
                f"{held['first_record']}{_held(story, ending.answered_us, decision['t_us'])}"
            )
    if story.transaction is None:
        return
    ending = ending_of(story.facts, story.transaction)
    decision = ending.decision
    if decision is None or ending.by_end_txn or decision["state"] != "PrepareAbort":
        return
    outcome = story.transaction
    late = ""
    if outcome["t_us"] > decision["t_us"]:
        late = (
            f"; what {outcome['producer']} asked for was answered with {outcome['error']} at "
            f"{show_instant(outcome['t_us'])}"
        )
    yield (
        f"no EndTxn in time: {server_name(decision['broker'])}, the coordinator, aborted "
        f"{ending.name} at {show_instant(decision['t_us'])} ({decision['reason']}), "
        f"{show_duration(ending.waited_us)} after the last answer to its records{late}"
        f"{_held(story, ending.answered_us, decision['t_us'])}"
    )


def _held(story: Story, low: Micros, high: Micros) -> str:
    """The fault that kept an EndTxn on its way, if there was one."""
    for fault in story.faults:
        is_its = "EndTxn" in fault["resolved"].partition(":")[0] and fault["took_effect"]
        healed = fault["healed_us"]
        if is_its and fault["began_us"] < high and (healed is None or healed > low):
            return f"; faults[{fault['fault']}] at work: {fault['effect']}, {fault['resolved']}"
    return ""
