"""Verdict at the end of a run, as in ``verdict.json``, from rows of the trace alone.

Durability (:mod:`sim.checking.outcomes.verdict` has the definitions), availability, latency, and
the reports of the invariants. Rows are processed as they come; only ranges and arrays are kept.
"""

from dataclasses import asdict
from typing import TypedDict, cast

from sim.checking.fault_windows import Outage
from sim.checking.invariants.registry import Watch
from sim.checking.outcomes.balance import Balance
from sim.checking.outcomes.connecting import Connecting
from sim.checking.outcomes.deliveries import Deliveries
from sim.checking.outcomes.heaps import Heaps
from sim.checking.outcomes.history import PartitionHistory
from sim.checking.outcomes.key_readers import KeyReaders
from sim.checking.outcomes.latency import Latency
from sim.checking.outcomes.offline import OfflinePartitions, longest
from sim.checking.outcomes.processing import Processing
from sim.checking.outcomes.refusals import RaisedErrors, Refusals
from sim.checking.outcomes.service import PartitionService
from sim.checking.outcomes.sharing import Sharing
from sim.checking.outcomes.slices import Lost
from sim.checking.outcomes.transactions import Outcomes
from sim.checking.outcomes.verdict import Verdict
from sim.ids import Offset
from sim.trace.rows.clients import (
    CommittedReaders,
    CommittedReadersRow,
    Markers,
    MarkersRow,
    Positions,
    PositionsRow,
    Reads,
    ReadsRow,
    TransactionRecords,
    TransactionRecordsRow,
)
from sim.trace.rows.cluster import (
    BrokerStatesRow,
    Leadership,
    LeadershipRow,
    NodeStatesRow,
    PartitionChanges,
    PartitionChangesRow,
    Throttles,
    ThrottlesRow,
    TopicDeletions,
    TopicDeletionsRow,
)
from sim.trace.rows.log import (
    Acknowledgements,
    AcknowledgementsRow,
    Appends,
    AppendsRow,
    ClientBatches,
    ClientBatchesRow,
    HighWatermarks,
    HighWatermarksRow,
    LogContents,
    LogContentsRow,
    LogHoles,
    LogHolesRow,
    LogStarts,
    LogStartsRow,
    RecordKeys,
    RecordKeysRow,
    Recoveries,
    RecoveriesRow,
    Truncations,
    TruncationsRow,
)
from sim.trace.rows.tiered import (
    LocalLogStarts,
    LocalLogStartsRow,
    RemoteSegments,
    RemoteSegmentsRow,
)
from sim.trace.writer import Listener, Trace
from sim.units import Micros


class Throttled(TypedDict):
    """Throttling of one client-id: number of waits, their sum and maximum."""

    count: int
    total_us: int
    max_us: int


class Judge:
    """Listens to a trace from its first row, and judges it at the end of the run.

    Args:
        trace: Trace to judge; attached before the first row.
        watch: Invariants, whose reports become ``checks`` of the verdict.
        controller_elects: Whether a controller elects leaders; else offline partitions are not
            reported.
    """

    def __init__(
        self, trace: Trace, watch: Watch | None = None, *, controller_elects: bool = True
    ) -> None:
        self._watch = watch
        self._offline = OfflinePartitions() if controller_elects else None
        self._files: dict[tuple[str, int], _File] = {}
        self._latency = Latency()
        self._refusals = Refusals()
        self._raised = RaisedErrors()
        self._producers: dict[int, str] = {}
        self.lost: Lost = {}
        """Set with the verdict."""
        self._outcomes = Outcomes()
        self._processing = Processing()
        self._balance = Balance()
        self._heaps = Heaps()
        self._sharing = Sharing()
        self._connecting = Connecting()
        listeners: dict[str, object] = {
            "appends": self._append,
            "acknowledgements": self._acknowledgement,
            "client_batches": self._client_batch,
            "truncations": self._truncation,
            "recoveries": self._recovery,
            "log_holes": self._hole,
            "log_starts": self._log_start,
            "local_log_starts": self._local_start,
            "remote_segments": self._remote_segment,
            "record_keys": self._keys,
            "log_contents": self._contents,
            "partition_changes": self._change,
            "leadership": self._leadership,
            "topic_deletions": self._deletion,
            "reads": self._read,
            "positions": self._position,
            "markers": self._marker,
            "transaction_outcomes": self._outcomes.add,
            "transaction_records": self._transaction,
            "committed_readers": self._committed_reader,
            "consumer_errors": self._raised.raised,
            "throttles": self._throttle,
            "heaps": self._heaps.heap,
            "tasks": self._processing.task,
            "outputs": self._processing.outputs,
            "broker_states": self._registration,
            "node_states": self._node_state,
            "share_states": self._sharing.state,
            "connector_tasks": self._connecting.task,
            "external_logs": self._connecting.log,
            "sourced": self._connecting.sourced,
            "external_writes": self._connecting.written,
        }
        self._throttles: dict[str, Throttled] = {}
        self._committed: dict[tuple[str, int], Offset] = {}
        if watch is None:
            listeners["high_watermarks"] = self._watermark
        for name, listener in listeners.items():
            # The schema gives each row its shape; the trace itself carries rows of any.
            trace.table(name).listeners.append(cast("Listener", listener))

    def verdict(self, end_us: Micros) -> dict[str, object]:
        """The verdict of a run that ended at the instant, as in ``verdict.json``.

        Returns:
            ``end_us``; ``records``, ``topics`` and ``partitions`` (counts); ``failed_by_error``
            (failed records by topic and error); ``consumer_errors`` (consumers that ended with an
            error, see :mod:`sim.checking.outcomes.refusals`); ``divergence`` (offsets at which two
            brokers' logs differ, by their names); ``readers`` (``resurrected``: keys deleted and
            kept by readers of compacted topics; deliveries of records to all readers, and to each
            in ``by_reader``); ``processing`` (of tasks, see
            :mod:`sim.checking.outcomes.processing`);
            ``sharing`` (of share groups, see :mod:`sim.checking.outcomes.sharing`); ``connecting``
            (where there are connectors, see :mod:`sim.checking.outcomes.connecting`);
            ``availability`` (the longest gaps ``produce_max_us`` and ``fetch_max_us``, and all
            ``partitions``; those whose first delivery took long, ``started``; the longest time
            without a leader that served, ``offline_max_us``, and the partitions, ``offline``, see
            :mod:`sim.checking.outcomes.offline`); ``latency_us``
            (``produce``, ``end_to_end``: percentiles within 0.4 %, the maximum exact);
            ``throttling`` (``max_us``, and of each client-id that a quota made wait ``count``,
            ``total_us`` and ``max_us``); ``balance`` (of each broker in service at the end its
            ``replicas`` and ``leaders``, and how far the largest is from the smallest:
            ``replicas_spread``, ``leaders_spread``); ``heaps`` (where they have an end, see
            :mod:`sim.checking.outcomes.heaps`); ``checks``; ``examples``; ``internal_divergent``,
            of topics that no producer of the scenario writes to; ``unsent_present``: records in a
            final leader's log without a row of their producer; ``ok_unanswered`` and
            ``answered_untold``: records that only the producer, or only the leader, calls
            acknowledged; all three are a defect.
        """
        verdict = Verdict(self._producers)
        for key in sorted(self._files):
            history = self._files[key].history
            if history.is_deleted:
                history.end()
            verdict.judge(history, self._files[key].deliveries)
        self.lost = verdict.lost
        checks = self._watch.reports() if self._watch is not None else []
        return {
            "end_us": end_us,
            "records": verdict.totals(),
            "topics": verdict.topics,
            "partitions": verdict.partitions,
            "failed_by_error": self._refusals.report(),
            "consumer_errors": self._raised.report(),
            "divergence": verdict.divergence,
            "readers": self._readers() | verdict.readers(),
            "processing": self._processing.verdict(f.history for f in self._files.values()),
            "sharing": self._sharing.verdict(),
            **self._connecting.verdict(f.history for f in self._files.values()),
            "availability": self._availability(end_us),
            "latency_us": self._latency.report(),
            "throttling": self._throttling(),
            "balance": self._balance.report(),
            **self._heaps.report(),
            "checks": [asdict(report) for report in checks],
            "examples": verdict.examples,
            "internal_divergent": verdict.internal_divergent,
            "unsent_present": verdict.unsent_present,
            "ok_unanswered": verdict.ok_unanswered,
            "answered_untold": verdict.answered_untold,
        }

    def outages(self) -> list[Outage]:
        """Stretches in which a partition acknowledged nothing that waited, of every partition."""
        return [each for key in sorted(self._files) for each in self._files[key].service.outages()]

    def histories(self, topic: str) -> list[PartitionHistory]:
        """Files of a topic's partitions, in their order; of all topics, if it is empty."""
        keys = [key for key in sorted(self._files) if topic in ("", key[0])]
        return [self._files[key].history for key in keys]

    def _throttle(self, row: ThrottlesRow) -> None:
        client, took_us = row[Throttles.CLIENT_ID], row[Throttles.THROTTLE_US]
        known = self._throttles.get(client)
        if known is None:
            known = self._throttles[client] = Throttled(count=0, total_us=0, max_us=0)
        known["count"] += 1
        known["total_us"] += took_us
        known["max_us"] = max(known["max_us"], took_us)

    def _throttling(self) -> dict[str, object]:
        clients = {name: self._throttles[name] for name in sorted(self._throttles)}
        longest = max([client["max_us"] for client in clients.values()], default=0)
        return {"max_us": longest, "clients": clients}

    def _file(self, topic: str, partition: int) -> "_File":
        file = self._files.get((topic, partition))
        if file is None:
            file = self._files[topic, partition] = _File(topic, partition)
        return file

    def _append(self, row: AppendsRow) -> None:
        topic, number = row[Appends.TOPIC], row[Appends.PARTITION]
        file = self._files.get((topic, number)) or self._file(topic, number)
        file.history.append(row)

    def _acknowledgement(self, row: AcknowledgementsRow) -> None:
        file = self._files.get((row[Acknowledgements.TOPIC], row[Acknowledgements.PARTITION]))
        if file is not None:
            file.history.answer(row)

    def _client_batch(self, row: ClientBatchesRow) -> None:
        self._producers[row[ClientBatches.PRODUCER_INDEX]] = row[ClientBatches.PRODUCER]
        file = self._file(row[ClientBatches.TOPIC], row[ClientBatches.PARTITION])
        file.history.add_outcome(row)
        file.service.batch(row)
        self._latency.batch(row)
        self._refusals.batch(row)

    def _truncation(self, row: TruncationsRow) -> None:
        history = self._file(row[Truncations.TOPIC], row[Truncations.PARTITION]).history
        broker, end = row[Truncations.BROKER], row[Truncations.TO_OFFSET]
        if row[Truncations.REASON] == "tiered":
            start = history.log(broker).start
            history.restart(broker, start)
        elif end <= row[Truncations.FROM_OFFSET]:
            history.truncate(broker, end)
        else:
            history.restart(broker, end)

    def _recovery(self, row: RecoveriesRow) -> None:
        history = self._file(row[Recoveries.TOPIC], row[Recoveries.PARTITION]).history
        history.truncate(row[Recoveries.BROKER], row[Recoveries.LOG_END_OFFSET])

    def _hole(self, row: LogHolesRow) -> None:
        history = self._file(row[LogHoles.TOPIC], row[LogHoles.PARTITION]).history
        log = history.log(row[LogHoles.BROKER])
        log.lose(row[LogHoles.FROM_OFFSET], row[LogHoles.TO_OFFSET])

    def _watermark(self, row: HighWatermarksRow) -> None:
        key = row[HighWatermarks.TOPIC], row[HighWatermarks.PARTITION]
        self._committed[key] = max(row[HighWatermarks.HIGH_WATERMARK], self._committed.get(key, 0))

    def _log_start(self, row: LogStartsRow) -> None:
        topic, number = row[LogStarts.TOPIC], row[LogStarts.PARTITION]
        committed = self._committed_below(topic, number)
        self._file(topic, number).history.move_start(row, committed)

    def _local_start(self, row: LocalLogStartsRow) -> None:
        history = self._file(row[LocalLogStarts.TOPIC], row[LocalLogStarts.PARTITION]).history
        history.move_local_start(row[LocalLogStarts.BROKER], row[LocalLogStarts.TO_OFFSET])

    def _remote_segment(self, row: RemoteSegmentsRow) -> None:
        history = self._file(row[RemoteSegments.TOPIC], row[RemoteSegments.PARTITION]).history
        history.copy(row)

    def _committed_below(self, topic: str, partition: int) -> Offset:
        if self._watch is not None:
            return self._watch.observer.partition(topic, partition).watermark
        return self._committed.get((topic, partition), 0)

    def _keys(self, row: RecordKeysRow) -> None:
        history = self._file(row[RecordKeys.TOPIC], row[RecordKeys.PARTITION]).history
        history.compacted().keys.add(row)

    def _contents(self, row: LogContentsRow) -> None:
        topic, number = row[LogContents.TOPIC], row[LogContents.PARTITION]
        committed = self._committed_below(topic, number)
        taken = self._file(topic, number).history.refill(row, committed)
        if self._watch is not None:
            self._watch.observer.taken(topic, number, taken)

    def _change(self, row: PartitionChangesRow) -> None:
        self._balance.change(row)
        if self._offline is not None:
            self._offline.change(row)
        file = self._file(row[PartitionChanges.TOPIC], row[PartitionChanges.PARTITION])
        if row[PartitionChanges.PARTITION_EPOCH] == 0:
            if file.history.is_deleted:
                file.deliveries = None
            file.history.start_over()
        if row[PartitionChanges.LEADER] >= 0:
            file.history.lead(row[PartitionChanges.LEADER])

    def _registration(self, row: BrokerStatesRow) -> None:
        self._balance.state(row)
        if self._offline is not None:
            self._offline.registration(row)

    def _node_state(self, row: NodeStatesRow) -> None:
        if self._offline is not None:
            self._offline.state(row)

    def _leadership(self, row: LeadershipRow) -> None:
        if row[Leadership.ROLE] == "removed":
            history = self._file(row[Leadership.TOPIC], row[Leadership.PARTITION]).history
            history.remove(row[Leadership.BROKER])

    def _deletion(self, row: TopicDeletionsRow) -> None:
        self._balance.deletion(row)
        if self._offline is not None:
            self._offline.deletion(row)
        for (topic, _), file in self._files.items():
            if topic == row[TopicDeletions.TOPIC]:
                file.history.is_deleted = True

    def _marker(self, row: MarkersRow) -> None:
        history = self._file(row[Markers.TOPIC], row[Markers.PARTITION]).history
        history.transacted(self._outcomes).marker(row)

    def _transaction(self, row: TransactionRecordsRow) -> None:
        topic, number = row[TransactionRecords.TOPIC], row[TransactionRecords.PARTITION]
        self._file(topic, number).history.transacted(self._outcomes).records(row)

    def _committed_reader(self, row: CommittedReadersRow) -> None:
        self._outcomes.readers[row[CommittedReaders.CONSUMER]] = True

    def _read(self, row: ReadsRow) -> None:
        file = self._file(row[Reads.TOPIC], row[Reads.PARTITION])
        file.service.read(row)
        deliveries = file.deliveries
        if deliveries is None:
            deliveries = file.deliveries = Deliveries()
        deliveries.read(row)
        compaction = file.history.compaction
        if compaction is not None:
            if file.readers is None:
                file.readers = KeyReaders()
            file.readers.read(row, compaction.keys)
        if row[Reads.CONSUMER] in self._outcomes.readers:
            file.history.transacted(self._outcomes).read(row)
        self._latency.read(row)

    def _position(self, row: PositionsRow) -> None:
        file = self._file(row[Positions.TOPIC], row[Positions.PARTITION])
        if file.deliveries is None:
            file.deliveries = Deliveries()
        file.deliveries.move(row)

    def _readers(self) -> dict[str, int]:
        counts = []
        for file in self._files.values():
            history = file.history
            leader = history.logs.get(history.final_leader)
            if file.readers is not None and leader is not None:
                deleted = history.compacted().deleted(leader.batches())
                counts.append(file.readers.resurrected(deleted))
        return {"resurrected": sum(counts)} if counts else {}

    def _availability(self, end_us: Micros) -> dict[str, object]:
        services = {f"{t}-{p}": self._files[t, p].service for t, p in sorted(self._files)}
        reports = {name: found for name, each in services.items() if (found := each.report())}
        total: dict[str, object] = {}
        for name in ("produce", "fetch"):
            gaps = [report[f"{name}_us"] for report in reports.values() if f"{name}_us" in report]
            if gaps:
                total[f"{name}_max_us"] = max(gaps)
        if self._offline is not None:
            offline = self._offline.report(end_us)
            total |= {"offline_max_us": longest(offline), "offline": offline}
        started = {name: found for name, each in services.items() if (found := each.start())}
        return {**total, "partitions": reports, "started": started}


class _File:
    """State of one partition."""

    __slots__ = ("deliveries", "history", "readers", "service")

    def __init__(self, topic: str, partition: int) -> None:
        self.history = PartitionHistory(topic, partition)
        self.deliveries: Deliveries | None = None
        """Set from the first reader on."""
        self.readers: KeyReaders | None = None
        """Set from the first read of a compacted topic on."""
        self.service = PartitionService()
