"""A producer's process: the mind's decisions become bytes, requests and trace rows.

A process that crashes loses what was not acknowledged: those batches are told as ``failed`` or
``unknown`` at that instant. The next process gets a new producer id, and numbers its records on
from the last one used.
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
        client: Its number and its settings.
        spec: What it sends.
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
        self._mind: Producer | None = None
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
        """Begin: the workload's sends from this instant on."""
        self._compressor_free_at = LONG_AGO
        source = Workload(self.spec, self.streams, self.name, self.kernel.now())
        self.begin(self.make_mind(source, self.setup()))

    def begin(self, mind: Producer) -> None:
        """Starts a client library."""
        self._mind = mind
        self._port = self.add_machine("producer", mind)
        self.deliver(self._port, ProducerStarted())

    def make_mind(self, source: ArrivalSource, setup: ProducerSetup) -> Producer:
        """The client library of a new process."""
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
        """Whether the connection to the server is established."""
        return self.channel(node).is_open

    def connectable_at(self, node: NodeId) -> Micros:
        """The instant before which no connection is attempted, by the host's clock."""
        return self.channel(node).connectable_at + self.host.clock_offset_us

    @property
    def records_taken(self) -> int:
        """Records that the application has given to the client library, over all its processes."""
        mind = self._mind
        if mind is None:
            return sum(self._next_records) + self._refused_records
        return sum(mind.next_record_numbers) + mind.refused_records

    @property
    def is_idle(self) -> bool:
        """Whether everything that was meant to be sent is done with."""
        return self._mind is None or self._mind.is_idle

    def crash(self) -> None:
        """Die at once; what was not acknowledged is told."""
        self.finish()
        super().crash()

    def lose_power(self) -> None:
        """Go dark; what was not acknowledged is told."""
        self.finish()
        super().lose_power()

    def pause(self) -> None:
        """Stop sending; what is meant for the time of the pause is sent at its end."""
        if self._port is not None and self.running and not self.paused:
            self.deliver(self._port, ApplicationPaused())
        super().pause()

    def resume(self) -> None:
        """Send what waited, then read what the sockets hold."""
        self.paused = self.still = False
        if self._port is not None and self.running:
            self.deliver(self._port, ApplicationResumed())
        super().resume()

    def throttled(self, port: Port, server: NodeId, until: Micros) -> None:
        """A server's quotas make the client library wait; what it would send it collects."""
        self.deliver(port, ServerThrottles(server, until + self.host.clock_offset_us))

    def finish(self) -> None:
        """Tell what is still open, at the end of the run or of the process; once is enough."""
        mind, self._mind = self._mind, None
        if mind is None or self._port is None:
            return
        for done in mind.finish(self.now()):
            self._batch_done(self._port, done)
        self.remember(mind)

    def remember(self, mind: Producer) -> None:
        """Keep what the next process begins with; this one's client library is at its end."""
        self._next_records = mind.next_record_numbers
        self._refused_records = mind.refused_records

    # -- effects ----------------------------------------------------------------------------------

    def _send_produce(self, port: Port, effect: SendProduce) -> None:
        batches = []
        cost: Micros = 0
        for draft in effect.drafts:
            encoded = draft.encoded
            if encoded is None:
                made = self._encode(draft)
                if self._keys is not None:
                    self._tell_keys(draft, self._keys)
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
            tombstones=draft.tombstones,
            transactional=self._transactional,
        )

    def _tell_keys(self, draft: ProducerBatchDraft, table: TableWriter[RecordKeysRow]) -> None:
        keys, dead = draft.key_ids, draft.tombstones
        if keys is None:
            return
        places = np.zeros(0, np.int32) if dead is None else np.flatnonzero(dead).astype(np.int32)
        where = (draft.partition.topic, draft.partition.partition)
        table.add(
            (self.kernel.now(), self.index, *where, draft.first_record, len(keys),
             keys.astype(np.int32), places)
        )  # fmt: skip

    def _compressed(
        self, port: Port, effect: SendProduce, request: ProduceRequest, cost: Micros
    ) -> None:
        """Tell the batches' sizes, and send them when the one thread that compresses is done."""
        now = self.kernel.now()
        sizes = []
        for _, batch in request.batches:
            assert isinstance(batch, RecordBatch), "a real producer makes real batches"
            sizes.append((batch.size_bytes, batch.raw_bytes))
        told = BatchesCompressed(effect.correlation, tuple(sizes))
        self.call_at(now, self.deliver, port, told)
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
