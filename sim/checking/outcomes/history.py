"""Each replica's log, and the outcomes that clients got, rebuilt from rows of the trace alone.

Within a leader epoch offsets are assigned once, so the batches of an epoch are one chain, kept once
however many replicas hold them: 28 bytes a batch. A replica's log is a list of stretches of chains.
Client outcomes are ranges of record numbers. No file is ever read.

Batches below a log's start are kept here, but not returned.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import takewhile

from sim.checking.interval_set import IntervalSet
from sim.checking.outcomes.compaction import Compaction, RemovedRecord, cut_out, missing_from
from sim.checking.outcomes.policy import POLICIES, Expired, Held, RemoteCopies, shown
from sim.checking.outcomes.transactions import Outcomes, PartitionTransactions
from sim.ids import LeaderEpoch, NodeId, Offset
from sim.trace.rows.log import (
    Acknowledgements,
    AcknowledgementsRow,
    Appends,
    AppendsRow,
    ClientBatches,
    ClientBatchesRow,
    LogContents,
    LogContentsRow,
    LogStarts,
    LogStartsRow,
)
from sim.trace.rows.tiered import (
    RemoteSegments,
    RemoteSegmentsRow,
)


class EpochBatches:
    """Batches of one epoch in order of offset, each once."""

    __slots__ = ("bases", "checksums", "counts", "epoch", "firsts", "is_first", "producers")

    def __init__(self, epoch: LeaderEpoch, *, is_first: bool) -> None:
        self.epoch = epoch
        self.is_first = is_first
        """True if new batches of the epoch are added here; other chains hold contradicting ones."""
        self.bases = array("q")
        self.counts = array("i")
        self.checksums = array("I")
        self.producers = array("i")
        self.firsts = array("q")

    def end(self, place: int) -> Offset:
        """Offset behind the batch at that place."""
        return self.bases[place] + self.counts[place]

    def is_at(self, place: int, row: AppendsRow) -> bool:
        """True if the batch at that place is the one of the row."""
        # The checksum covers the number of offsets, so the end need not be compared.
        return (
            place < len(self.bases)
            and self.bases[place] == row[Appends.BASE_OFFSET]
            and self.checksums[place] == row[Appends.CRC]
        )

    def take(self, row: AppendsRow) -> None:
        """Appends the row's batch."""
        base = row[Appends.BASE_OFFSET]
        self.bases.append(base)
        self.counts.append(row[Appends.LAST_OFFSET] - base + 1)
        self.checksums.append(row[Appends.CRC])
        self.producers.append(row[Appends.PRODUCER_INDEX])
        self.firsts.append(row[Appends.FIRST_RECORD])


class Stretch:
    """Consecutive batches of a chain: places from ``start`` up to ``stop``, exclusive."""

    __slots__ = ("chain", "start", "stop")

    def __init__(self, chain: EpochBatches, start: int, stop: int) -> None:
        self.chain = chain
        self.start = start
        self.stop = stop

    @property
    def offsets(self) -> tuple[Offset, Offset]:
        """First offset, and the one behind the last."""
        return self.chain.bases[self.start], self.chain.end(self.stop - 1)

    def covered(self) -> list[tuple[Offset, Offset]]:
        """Ranges of offsets that its batches cover; compaction leaves gaps."""
        chain, places = self.chain, range(self.start, self.stop)
        return list(IntervalSet((chain.bases[place], chain.end(place)) for place in places))


class TracedLog:
    """One replica's log."""

    __slots__ = ("holes", "local", "remote", "start", "stretches")

    def __init__(self) -> None:
        self.stretches: list[Stretch] = []
        self.start: Offset = 0
        """Log start offset: batches below it are deleted."""
        self.holes = IntervalSet()
        """Offsets at which a cleaner left no record."""
        self.local: Offset = 0
        """Local log start of a tiered replica: its batches below are in the remote log."""
        self.remote: RemoteCopies | None = None
        """The remote log; ``None`` of a topic without one."""

    def truncate(self, end: Offset) -> None:
        """Drops every batch that reaches beyond the offset."""
        self.start = max(0, min(self.start, end))
        self.local = max(0, min(self.local, end))
        self.holes.cut(max(0, end))
        while self.stretches:
            last = self.stretches[-1]
            places = range(last.start, last.stop)
            last.stop = last.start + bisect_right(places, end, key=last.chain.end)
            if last.stop > last.start:
                return
            self.stretches.pop()

    def lose(self, begin: Offset, end: Offset) -> None:
        """Drops the batches of [begin, end), and keeps those behind them."""
        kept: list[Stretch] = []
        for stretch in self.stretches:
            bases = stretch.chain.bases
            low = bisect_left(bases, begin, stretch.start, stretch.stop)
            high = bisect_left(bases, end, low, stretch.stop)
            if low == high:
                kept.append(stretch)
                continue
            if stretch.start < low:
                kept.append(Stretch(stretch.chain, stretch.start, low))
            if high < stretch.stop:
                kept.append(Stretch(stretch.chain, high, stretch.stop))
        self.stretches = kept

    def batches(self, start: Offset | None = None) -> Iterator[Held]:
        """Batches in order of offset, from the log's start on, or from another offset.

        A batch that begins before it is cut, and one with gaps left by a cleaner comes in parts.
        """
        if not self.holes:
            yield from self._whole_batches(self.start if start is None else start)
            return
        for held in self._whole_batches(self.start if start is None else start):
            base = held.base_offset
            for begin, end in self.holes.missing(base, base + held.record_count):
                yield held.part(begin, end)

    def places(self, base: Offset, last: Offset) -> list[Stretch]:
        """Parts of chains with a first offset in [base, last]; near the log's end this is quick."""
        found: list[Stretch] = []
        for stretch in reversed(self.stretches):
            bases = stretch.chain.bases
            start = bisect_left(bases, base, stretch.start, stretch.stop)
            stop = bisect_right(bases, last, start, stretch.stop)
            if start < stop:
                found.append(Stretch(stretch.chain, start, stop))
            if bases[stretch.start] <= base:
                break
        return found

    def _whole_batches(self, begin: Offset) -> Iterator[Held]:
        if self.remote is not None and begin < self.local:
            yield from self.remote.batches(begin, self.local)
        for stretch in self.stretches:
            chain = stretch.chain
            places = range(stretch.start, stretch.stop)
            first = stretch.start + bisect_right(places, begin, key=chain.end)
            part = slice(first, stretch.stop)
            columns = (chain.bases, chain.counts, chain.producers, chain.firsts)
            for held in map(Held, *(column[part] for column in columns)):
                if held.base_offset >= begin:
                    yield held
                else:
                    yield held.part(begin, held.base_offset + held.record_count)

    @property
    def extent(self) -> tuple[Offset, Offset] | None:
        """Log start offset, and the offset behind the last batch; ``None`` for an empty log.

        The first batch may lie above the start: a lost segment leaves a hole, and does not move it.
        """
        if not self.stretches or self.stretches[-1].offsets[1] <= self.start:
            return None
        return max(self.start, self.local), self.stretches[-1].offsets[1]

    @property
    def rank(self) -> tuple[LeaderEpoch, Offset]:
        """Last epoch and last offset, by which logs of a partition without a leader are ranked."""
        if not self.stretches:
            return (-1, -1)
        return self.stretches[-1].chain.epoch, self.stretches[-1].offsets[1] - 1


class PartitionHistory:
    """One partition: all its batches, its replicas' logs, and the outcomes that clients got."""

    __slots__ = (
        "_chains",
        "_leader",
        "acked",
        "answered",
        "compaction",
        "expired",
        "failed",
        "is_deleted",
        "logs",
        "name",
        "number",
        "remote",
        "topic",
        "transactions",
        "unknown",
        "without_offset",
    )

    def __init__(self, topic: str, number: int) -> None:
        self.topic = topic
        self.number = number
        self.name = f"{topic}-{number}"
        self.logs: dict[NodeId, TracedLog] = {}
        self.acked: dict[int, IntervalSet] = {}
        """Record numbers by producer index; so are the other two."""
        self.failed: dict[int, IntervalSet] = {}
        self.unknown: dict[int, IntervalSet] = {}
        self.answered: dict[int, IntervalSet] = {}
        """Records that a leader acknowledged, by its log; the response may be lost."""
        self.without_offset: dict[int, IntervalSet] = {}
        """Acknowledged records without an offset in the response."""
        self.expired = Expired()
        self.remote: RemoteCopies | None = None
        """Set for a tiered topic, from its first row on."""
        self.is_deleted = False
        """True if the topic was deleted, and not created again."""
        self.compaction: Compaction | None = None
        """Set for a compacted topic, from its first row on."""
        self.transactions: PartitionTransactions | None = None
        """Set for a topic with transactional producers."""
        self._chains: dict[LeaderEpoch, list[EpochBatches]] = {}
        self._leader: NodeId = -1

    def log(self, broker: NodeId) -> TracedLog:
        """The replica's log on a broker; a new empty one if it has none."""
        log = self.logs.get(broker)
        if log is None:
            log = self.logs[broker] = TracedLog()
            log.remote = self.remote
        return log

    def remove(self, broker: NodeId) -> None:
        """Drops the broker's replica."""
        log = self.logs.pop(broker, None)
        if log is not None and self.is_deleted:
            self.expired.take_all(log.batches())

    def end(self) -> None:
        """Drops all logs of a topic that was deleted, or replaced under its name."""
        self.is_deleted = True
        for broker in list(self.logs):
            self.remove(broker)
        self._chains.clear()
        self._leader = -1
        self.compaction = None
        self.remote = None

    def start_over(self) -> None:
        """Starts another topic of the same name at offset 0."""
        if self.is_deleted:
            self.end()
            self.is_deleted = False
            self.expired.start_over()

    def lead(self, broker: NodeId) -> None:
        """Sets the leader that the controller committed."""
        self._leader = broker

    @property
    def final_leader(self) -> NodeId:
        """Last leader the controller committed; without one, the broker of the greatest log end."""
        if self._leader >= 0 or not self.logs:
            return self._leader
        return min(self.logs, key=lambda b: (*(-part for part in self.logs[b].rank), b))

    def append(self, row: AppendsRow) -> None:
        """Appends a batch to one replica's log."""
        log = self.logs.get(row[Appends.BROKER]) or self.log(row[Appends.BROKER])
        stretches = log.stretches
        if stretches:
            last = stretches[-1]
            chain, place = last.chain, last.stop
            if chain.is_first and chain.epoch == row[Appends.LEADER_EPOCH]:
                if place == len(chain.bases):
                    chain.take(row)
                    last.stop = place + 1
                    return
                is_base = chain.bases[place] == row[Appends.BASE_OFFSET]
                if is_base and chain.checksums[place] == row[Appends.CRC]:
                    last.stop = place + 1
                    return
        chain, place = self._find(row)
        if stretches and stretches[-1].chain is chain and stretches[-1].stop == place:
            stretches[-1].stop = place + 1
        else:
            stretches.append(Stretch(chain, place, place + 1))

    def add_outcome(self, row: ClientBatchesRow) -> None:
        """Adds the outcome of a producer's batch, known or not."""
        outcome, producer = row[ClientBatches.OUTCOME], row[ClientBatches.PRODUCER_INDEX]
        first = row[ClientBatches.FIRST_RECORD]
        stop = first + row[ClientBatches.RECORD_COUNT]
        outcomes = {"ok": self.acked, "failed": self.failed, "unknown": self.unknown}[outcome]
        numbers = outcomes.get(producer)
        if numbers is None:
            numbers = outcomes[producer] = IntervalSet()
        numbers.add(first, stop)
        if row[ClientBatches.BASE_OFFSET] < 0 and outcome == "ok":
            self.without_offset.setdefault(producer, IntervalSet()).add(first, stop)

    def answer(self, row: AcknowledgementsRow) -> None:
        """Adds offsets that a leader has acknowledged to a producer."""
        log, base = self.logs.get(row[Acknowledgements.BROKER]), row[Acknowledgements.BASE_OFFSET]
        if log is None or row[Acknowledgements.ERROR] != "NONE" or base < 0:
            return
        for part in log.places(base, row[Acknowledgements.LAST_OFFSET]):
            chain = part.chain
            for place in range(part.start, part.stop):
                producer = chain.producers[place]
                if producer >= 0:
                    answered = self.answered.get(producer)
                    if answered is None:
                        answered = self.answered[producer] = IntervalSet()
                    first = chain.firsts[place]
                    answered.add(first, first + chain.counts[place])

    def move_start(self, row: LogStartsRow, committed: Offset) -> None:
        """Moves a replica's log start; ``committed`` is the true high watermark at that instant."""
        log, start = self.log(row[LogStarts.BROKER]), row[LogStarts.TO_OFFSET]
        log.start = start
        lawful = min(start, committed)
        if row[LogStarts.REASON] in POLICIES and lawful > self.expired.below:
            self.expired.advance(lawful, log.batches(self.expired.below))

    def copy(self, row: RemoteSegmentsRow) -> None:
        """Applies the event of a remote segment."""
        if self.remote is None:
            self.remote = RemoteCopies()
            for each in self.logs.values():
                each.remote = self.remote
        broker = row[RemoteSegments.BROKER]
        log = self.log(broker) if broker >= 0 else TracedLog()

        def held(start: Offset, end: Offset) -> list[Held]:
            return list(takewhile(lambda batch: batch.base_offset < end, log.batches(start)))

        self.remote.apply(row, held)

    def move_local_start(self, broker: NodeId, start: Offset) -> None:
        """Moves a tiered replica's local log start: what is below is not in its log any longer."""
        log = self.log(broker)
        log.lose(0, start)
        log.local = start

    def compacted(self) -> Compaction:
        """State of cleanings; makes the topic count as compacted."""
        if self.compaction is None:
            self.compaction = Compaction()
        return self.compaction

    def transacted(self, outcomes: Outcomes) -> PartitionTransactions:
        """State of transactions here."""
        if self.transactions is None:
            self.transactions = PartitionTransactions(outcomes)
        return self.transactions

    def truncate(self, broker: NodeId, end: Offset) -> None:
        """Truncates a replica's log; -1 for all of it."""
        self.log(broker).truncate(end)
        if self.compaction is not None:
            self.compaction.cut(broker)

    def restart(self, broker: NodeId, start: Offset) -> None:
        """Drops a replica's log, which restarts at the leader's log start."""
        self.truncate(broker, -1)
        self.log(broker).start = start

    def refill(self, row: LogContentsRow, committed: Offset) -> list[RemovedRecord]:
        """Reduces a stretch of a replica's log to these offsets.

        Returns:
            What the cleaner removed; nothing for a copy of a batch that another replica's cleaner
            rewrote.
        """
        broker = row[LogContents.BROKER]
        compaction, log = self.compacted(), self.log(broker)
        gaps = missing_from(row)
        taken: list[RemovedRecord] = []
        if row[LogContents.HOW] != "fetched":
            base, last = row[LogContents.BASE_OFFSET], row[LogContents.LAST_OFFSET]
            stretch = takewhile(lambda held: held.base_offset <= last, log.batches(base))
            removed = [held for held in cut_out(stretch, gaps) if held.producer_index >= 0]
            behind = log.batches(compaction.seen(broker))
            hidden = IntervalSet()
            if self.transactions is not None:
                hidden = self.transactions.settle(log.batches()).hidden
                behind = shown(behind, hidden)
            taken = list(compaction.take(row, removed, behind, committed, hidden))
        for start, stop in gaps:
            log.holes.add(start, stop)
        return taken

    def offset_of(self, producer: int, record: int) -> Offset:
        """An offset that the record had in any log at any time; -1 if it was never appended."""
        for chains in self._chains.values():
            for chain in chains:
                places = zip(chain.producers, chain.firsts, chain.counts, chain.bases, strict=True)
                for index, first, count, base in places:
                    if index == producer and first <= record < first + count:
                        return base + record - first
        return -1

    def differing(self, brokers: Sequence[int] = ()) -> IntervalSet:
        """Offsets at which two logs hold different batches, or one of them holds none.

        From the highest log start up to the lowest end of the logs that hold any batch. Batches
        differ by leader epoch or checksum. With brokers given only their logs are compared.
        """
        logs = []
        low, high = 0, 1 << 62
        for broker, log in self.logs.items():
            extent = log.extent
            if extent is not None and (not brokers or broker in brokers):
                logs.append(log)
                low, high = max(low, extent[0]), min(high, extent[1])
        if len(logs) < 2:
            return IntervalSet()
        compacted = self.compaction is not None and self.compaction.reached > 0
        found = []
        for chain in [chain for chains in self._chains.values() for chain in chains]:
            if compacted:
                lacking = _other_than(chain, logs)
            else:
                held = [
                    IntervalSet((s.start, s.stop) for s in log.stretches if s.chain is chain)
                    for log in logs
                ]
                everywhere = held[0].union(*held[1:])
                places = [gap for of_log in held for gap in everywhere.minus(of_log)]
                lacking = [(chain.bases[start], chain.end(stop - 1)) for start, stop in places]
            found += [(max(low, start), min(high, stop)) for start, stop in lacking]
        return IntervalSet(sorted(found))

    def _find(self, row: AppendsRow) -> tuple[EpochBatches, int]:
        base, epoch = row[Appends.BASE_OFFSET], row[Appends.LEADER_EPOCH]
        chains = self._chains.setdefault(epoch, [])
        for chain in chains:
            place = bisect_left(chain.bases, base)
            if chain.is_at(place, row):
                return chain, place
        if self.compaction is not None and base < self.compaction.reached:
            # A copy of a batch that a cleaner rewrote: the same place, other bytes.
            for chain in chains:
                place = bisect_left(chain.bases, base)
                if place < len(chain.bases) and chain.bases[place] == base:
                    return chain, place
        for chain in chains:
            if not chain.bases or chain.end(len(chain.bases) - 1) <= base:
                chain.take(row)
                return chain, len(chain.bases) - 1
        # Another batch of the same epoch is there: a defect, which has to show as divergence.
        chain = EpochBatches(epoch, is_first=not chains)
        chains.append(chain)
        chain.take(row)
        return chain, 0


def _other_than(chain: EpochBatches, logs: Sequence[TracedLog]) -> list[tuple[Offset, Offset]]:
    """Offsets at which one log has a record of the chain and another one has another record."""
    own: list[IntervalSet] = []
    others: list[IntervalSet] = []
    for log in logs:
        for into, of_chain in ((own, True), (others, False)):
            ranges = (s.covered() for s in log.stretches if (s.chain is chain) is of_chain)
            held = IntervalSet(sorted(each for some in ranges for each in some))
            into.append(IntervalSet(held.minus(log.holes)))
    anywhere = own[0].union(*own[1:])
    return [
        part for other in others for start, stop in other for part in anywhere.within(start, stop)
    ]
