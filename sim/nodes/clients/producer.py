"""A producer's process: encodes batches, sends requests, writes trace rows.

A process that crashes loses unacknowledged batches: they get the outcome ``failed`` or ``unknown``
at that instant. The next process gets a new producer id, and numbers its records from the last one
used.
"""

from dataclasses import dataclass

import numpy as np

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.nodes.clients.workload import Workload, WorkloadSpec, noise_for
from sim.nodes.process.base import Node
from sim.nodes.process.codec_costs import compress_us
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.protocol.clients.producer.config import ProducerConfig, ProducerSetup
from sim.protocol.clients.producer.events import (
    TOMBSTONE,
    ApplicationPaused,
    ApplicationResumed,
    ArrivalSource,
    BatchDone,
    BatchesCompressed,
    ProducerBatchDraft,
    ProducerStarted,
    ProduceWritten,
    SendProduce,
    ServerThrottles,
)
from sim.protocol.clients.producer.producer import Producer
from sim.protocol.events import RequestFailed
from sim.protocol.messages.data import ProduceRequest
from sim.substrate.host import Host
from sim.trace.rows.log import ClientBatchesRow, RecordKeysRow
from sim.trace.writer import TableWriter
from sim.units import LONG_AGO, Micros
from sim.wire.compression import codec_named
from sim.wire.payload import build_producer_batch
from sim.wire.record_batch import RecordBatch

_LATENCY_MAX = (1 << 31) - 1

_CORRELATIONS_PER_START = 1 << 40


@dataclass(frozen=True, slots=True)
class ProducerClient:
    """A producer of a cluster.

    Attributes:
        index: Its number, written into every record value.
        config: Kafka's settings.
        bootstrap: ``bootstrap.servers``.
        traces_keys: True if the trace gets the key of each record, as for a compacted topic.
    """

    index: int
    config: ProducerConfig
    bootstrap: tuple[NodeId, ...]
    traces_keys: bool = False


class ProducerNode(Node):
    """One producer client with one topic and one workload.

    Args:
        name: Printed name, as in the trace.
        host: Where it runs.
        world: The other processes.
        client: Its number and its bootstrap.
        spec: Its workload config.
    """

    def __init__(
        self, name: str, host: Host, world: World, client: ProducerClient, spec: WorkloadSpec
    ) -> None:
        super().__init__(name, host, world)
        self.index = client.index
        self.spec = spec
        self.config = config = client.config
        self._bootstrap = client.bootstrap
        self._style = spec.style
        self._noise = noise_for(spec, world.streams, name)
        self._codec = codec_named(config.compression_type)
        self._compressor_free_at: Micros = LONG_AGO
        self._machine: Producer | None = None
        self._port: Port | None = None
        self._next_records: tuple[int, ...] = ()
        self._refused_records = 0
        self._transactional = bool(config.transactional_id)
        self._outcomes: TableWriter[ClientBatchesRow] = world.trace.table("client_batches")
        keys: TableWriter[RecordKeysRow] = world.trace.table("record_keys")
        self._keys = keys if client.traces_keys else None
        self.performers[SendProduce] = self._send_produce
        self.performers[BatchDone] = self._batch_done

    def boot(self) -> None:
        """Begins with the workload's records from this instant on."""
        self._compressor_free_at = LONG_AGO
        source = Workload(self.spec, self.streams, self.name, self.kernel.now())
        self.begin(self.make_machine(source, self.setup()))

    def begin(self, machine: Producer) -> None:
        """Starts a client library."""
        self._machine = machine
        self._port = self.add_machine("producer", machine)
        self.deliver(self._port, ProducerStarted())

    def make_machine(self, source: ArrivalSource, setup: ProducerSetup) -> Producer:
        """Creates the client library of a new process."""
        return Producer(setup, source)

    def setup(self, skipped: int = 0) -> ProducerSetup:
        """Makes what a client library begins with; ``skipped`` request numbers are another's."""
        return ProducerSetup(
            self.spec.topic,
            self.config,
            self,
            self.streams.named(f"producer/{self.name}").unit,
            self._bootstrap,
            lambda: self.host.clock_offset_us,
            self._next_records,
            self._refused_records,
            self.incarnation * _CORRELATIONS_PER_START + skipped,
        )

    def is_open(self, node: NodeId) -> bool:
        """True if the connection to the server is established."""
        return self.channel(node).is_open

    def connectable_at(self, node: NodeId) -> Micros:
        """End of the reconnect back-off, by the host's clock."""
        return self.channel(node).connectable_at + self.host.clock_offset_us

    @property
    def records_taken(self) -> int:
        """Records passed to ``send()``, over all processes."""
        machine = self._machine
        if machine is None:
            return sum(self._next_records) + self._refused_records
        return sum(machine.next_record_numbers) + machine.refused_records

    @property
    def is_idle(self) -> bool:
        """True if every intended record is completed."""
        return self._machine is None or self._machine.is_idle

    def crash(self) -> None:
        """Dies at once, with a row for each unacknowledged batch."""
        self.finish()
        super().crash()

    def lose_power(self) -> None:
        """Loses power, with a row for each unacknowledged batch."""
        self.finish()
        super().lose_power()

    def pause(self) -> None:
        """Stops sending; records intended for the pause are sent at its end."""
        if self._port is not None and self.running and not self.paused:
            self.deliver(self._port, ApplicationPaused())
        super().pause()

    def resume(self) -> None:
        """Sends the records that waited, then reads the sockets."""
        self.paused = self.frozen = False
        if self._port is not None and self.running:
            self.deliver(self._port, ApplicationResumed())
        super().resume()

    def throttled(self, port: Port, server: NodeId, until: Micros) -> None:
        """Mutes the client library as a server's quotas demand; it batches records meanwhile."""
        self.deliver(port, ServerThrottles(server, until + self.host.clock_offset_us))

    def finish(self) -> None:
        """Writes outcomes of open batches, at the end of the run or of the process; idempotent."""
        machine, self._machine = self._machine, None
        if machine is None or self._port is None:
            return
        for done in machine.finish(self.now()):
            self._batch_done(self._port, done)
        self.remember(machine)

    def remember(self, machine: Producer) -> None:
        """Keeps the state with which the next process begins."""
        self._next_records = machine.next_record_numbers
        self._refused_records = machine.refused_records

    # -- effects ----------------------------------------------------------------------------------

    def _send_produce(self, port: Port, effect: SendProduce) -> None:
        batches = []
        cost: Micros = 0
        for draft in effect.drafts:
            encoded = draft.encoded
            if encoded is None:
                made = self._encode(draft)
                if self._keys is not None:
                    self._write_keys(draft, self._keys)
                encoded = draft.encoded = made
                if self._codec != "none":
                    cost += compress_us(self._codec, self.config.compression_level, made.raw_bytes)
            batches.append((draft.partition, encoded))
        request = ProduceRequest(
            effect.acks, effect.timeout_us, tuple(batches), self.config.transactional_id
        )
        if self._codec == "none":
            self._transmit(port, effect, request)
        else:
            self._compressed(port, effect, request, cost)

    def _encode(self, draft: ProducerBatchDraft) -> RecordBatch:
        sizes = draft.value_sizes
        return build_producer_batch(
            producer_index=self.index,
            first_record=draft.first_record,
            intended_us=draft.intended_us,
            value_size=self.spec.value_bytes,
            timestamps_ms=draft.timestamps_ms,
            key_ids=draft.key_ids,
            producer_id=draft.producer_id,
            producer_epoch=draft.producer_epoch,
            base_sequence=draft.base_sequence,
            codec=self._codec,
            level=self.config.compression_level,
            style=self._style,
            noise=self._noise,
            tombstones=None if sizes is None else sizes == TOMBSTONE,
            value_sizes=sizes if self.spec.sizes is not None else None,
            transactional=self._transactional,
        )

    def _write_keys(self, draft: ProducerBatchDraft, table: TableWriter[RecordKeysRow]) -> None:
        keys, sizes = draft.key_ids, draft.value_sizes
        if keys is None:
            return
        dead = np.zeros(0) if sizes is None else np.flatnonzero(sizes == TOMBSTONE)
        places = dead.astype(np.int32)
        where = (draft.partition.topic, draft.partition.partition)
        table.add(
            (self.kernel.now(), self.index, *where, draft.first_record, len(keys),
             keys.astype(np.int32), places)
        )  # fmt: skip

    def _compressed(
        self, port: Port, effect: SendProduce, request: ProduceRequest, cost: Micros
    ) -> None:
        """Writes the batches' sizes to the trace, and sends them when they are compressed."""
        now = self.kernel.now()
        sizes = []
        for _, batch in request.batches:
            assert isinstance(batch, RecordBatch), "a real producer makes real batches"
            sizes.append((batch.size_bytes, batch.raw_bytes))
        compressed = BatchesCompressed(effect.correlation, tuple(sizes))
        self.call_at(now, self.deliver, port, compressed)
        self._compressor_free_at = max(self._compressor_free_at, now) + cost
        self.call_at(self._compressor_free_at, self._transmit, port, effect, request)

    def _transmit(self, port: Port, effect: SendProduce, request: ProduceRequest) -> None:
        channel = self.channel(effect.to)
        if effect.acks != 0:
            channel.send(port, effect.correlation, request, effect.timeout_us)
            return
        now = self.kernel.now()
        if channel.is_open:
            channel.send(port, effect.correlation, request, effect.timeout_us)
            channel.no_answer_to(effect.correlation)
            written = ProduceWritten(effect.to, effect.correlation)
            self.call_at(now, self.deliver, port, written)
        else:
            broken = RequestFailed(effect.to, effect.correlation, ErrorCode.NETWORK_EXCEPTION)
            self.call_at(now, self.deliver, port, broken)

    def _batch_done(self, port: Port, done: BatchDone) -> None:  # noqa: ARG002 - a performer
        now = self.kernel.now()
        offset = self.host.clock_offset_us
        latency_us = now - done.intended_us
        if latency_us[0] > _LATENCY_MAX:
            latency_us = np.minimum(latency_us, _LATENCY_MAX)
        first, last = done.first_sent_us, done.last_sent_us
        self._outcomes.add(
            (
                now,
                self.name,
                self.index,
                self.spec.topic,
                done.partition,
                done.first_record,
                done.record_count,
                done.size_bytes,
                self.config.acks,
                done.created_us - offset,
                -1 if first is None else first - offset,
                -1 if last is None else last - offset,
                done.attempts,
                done.outcome,
                done.error,
                done.base_offset,
                done.answered_by,
                done.correlation,
                latency_us.astype(np.int32),
            )
        )
