"""A producer as Kafka's Java client: batches, sends, retries, and reports each batch's outcome.

One topic per producer. The application's sends come from an :class:`ArrivalSource`; see
``accumulator`` for how they are pulled. The sender's loop (resolve, ready, drain, send) runs after
every event until nothing more can be sent.

Left out: ``flush()``, ``close()`` with a time limit; the handshake of a new connection is one empty
metadata request instead of ApiVersions. Transactions: see ``transactional_producer``.

Source: ``clients/producer/internals/{Sender,RecordAccumulator}.java``; KIP-91, KIP-98, KIP-580,
KIP-951.
"""

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol.clients.producer.accumulator import Accumulator
from sim.protocol.clients.producer.batch import NO_SEQUENCE, ProducerBatch
from sim.protocol.clients.producer.config import ProducerSetup
from sim.protocol.clients.producer.events import (
    ApplicationPaused,
    ApplicationResumed,
    ApplicationSends,
    ArrivalSource,
    BatchDone,
    BatchesCompressed,
    ProducerEvent,
    ProduceWritten,
    SendProduce,
    ServerThrottles,
)
from sim.protocol.clients.producer.metadata import Backoff, ProducerMetadata
from sim.protocol.clients.producer.network import OpenRequest, Peer, ProducerNetwork
from sim.protocol.clients.producer.outcomes import Outcomes, ProducerEffect, result_of
from sim.protocol.clients.producer.partitioned import PartitionedAccumulator
from sim.protocol.clients.producer.queues import PartitionQueue
from sim.protocol.clients.producer.sequences import ProducerSequences
from sim.protocol.effects import SetTimer
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.data import ProduceResponse
from sim.protocol.messages.metadata import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    MetadataResponse,
)
from sim.units import LONG_AGO, NEVER, Micros

_WAKE = "sender"


class Producer:
    """One producer of one topic.

    Args:
        setup: Where its records go, its settings, and where its process begins.
        source: What the application sends, and when.
        accumulator: Instead of one of its own.
        sequences: Likewise, with an identity that a subclass requests.
    """

    def __init__(
        self,
        setup: ProducerSetup,
        source: ArrivalSource,
        *,
        accumulator: Accumulator | None = None,
        sequences: ProducerSequences | None = None,
    ) -> None:
        self._config = config = setup.config
        self._clock_offset = setup.clock_offset
        topic, unit = setup.topic, setup.unit
        backoff = Backoff(config.retry_backoff_us, config.retry_backoff_max_us, unit)
        self.metadata = ProducerMetadata(topic, setup.bootstrap, config, backoff)
        self.accumulator = accumulator or _accumulator(setup, source)
        self.sequences = sequences or (ProducerSequences() if config.idempotent else None)
        self._topic = topic
        self._partitions: list[TopicPartition] = []
        self._network = ProducerNetwork(
            setup.connections,
            unit,
            in_flight_max=config.max_in_flight_requests_per_connection,
            timeout_us=config.request_timeout_us,
            first_correlation=setup.first_correlation,
        )
        self._outcomes = Outcomes(
            config, self.accumulator, self.sequences, backoff, setup.refused_records
        )
        self._out: list[ProducerEffect] = []
        self._now: Micros = 0
        self._timer_at: Micros = NEVER
        self._look_at: Micros = NEVER
        self._identity_at: Micros = LONG_AGO
        self._paused_at: Micros | None = None
        self._held = True
        self._identifying = False

    @property
    def next_record_numbers(self) -> tuple[int, ...]:
        """By partition, the first record number not used yet."""
        return self.accumulator.next_record_numbers

    @property
    def is_idle(self) -> bool:
        """True if the workload has ended and no batch waits or is in flight."""
        accumulator = self.accumulator
        return accumulator.is_spent and not self._network.open and not accumulator.backlog.queues()

    @property
    def refused_records(self) -> int:
        """Records refused so far by ``send()``; their numbers are those of partition -1."""
        return self._outcomes.refused_records

    def handle(self, event: ProducerEvent, now: Micros) -> list[ProducerEffect]:
        """Handles an event; returns effects in order. ``now`` is the host's clock."""
        out = self._out = self._outcomes.out = []
        self._now = now
        accumulator = self.accumulator
        offset = self._clock_offset()
        if self._network.throttled:
            self._network.unthrottle(now)
        if self._changes_nothing(event, now, offset):
            self._dispatch(event)
            return out
        if offset != accumulator.offset_us:
            accumulator.set_clock_offset(offset)
        limit = now - offset
        self._continue(event, limit)
        accumulator.absorb(limit)
        if type(event) is ApplicationPaused:
            self._paused_at = limit
        self._dispatch(event)
        if now >= self._outcomes.expiry_at:
            self._outcomes.expire(self._network.open.values(), now)
        if accumulator.blocked:
            accumulator.absorb(limit)
        if accumulator.is_denied and accumulator.blocked:
            self.metadata.request()
        while self._take_turn():
            pass
        if accumulator.refused:
            self._outcomes.report_refused()
        if now >= self.metadata.due_at():
            self._send_metadata_request()
        self._set_wake(offset)
        return out

    def _continue(self, event: ProducerEvent, limit: Micros) -> None:
        """The application continues, or sends more than was known."""
        if type(event) is ApplicationResumed:
            self._paused_at = None
            self.accumulator.resume_at(limit)
        elif type(event) is ApplicationSends:
            self.accumulator.fetch_more()

    def finish(self, now: Micros) -> list[BatchDone]:
        """Ends the run, or the process: outcomes of open batches stay unknown.

        Batches that were never sent, or whose every attempt ended with a definite error, are
        ``failed``; the others ``unknown``. Sends that the application could not finish are refused.
        """
        out = self._out = self._outcomes.out = []
        self._now = now
        limit = now - self.accumulator.offset_us
        if self._paused_at is not None:
            limit = self._paused_at
        self.accumulator.absorb(limit)
        self._outcomes.give_up_all(self._network.open.values())
        self._network.open.clear()
        self.accumulator.abandon(limit)
        self._outcomes.report_refused()
        return [effect for effect in out if isinstance(effect, BatchDone)]

    def _changes_nothing(self, event: ProducerEvent, now: Micros, offset: Micros) -> bool:
        """True if an event leaves the sender nothing to do before its timer.

        So it is with a success while nothing waits for it: sends since the last turn are appended
        later, with the same result.
        """
        if self._held or now >= self._timer_at or offset != self.accumulator.offset_us:
            return False
        if type(event) is not ResponseReceived:
            return False
        response = event.response
        if type(response) is not ProduceResponse:
            return False
        return all(result.error is ErrorCode.NONE for result in response.results)

    # -- events -----------------------------------------------------------------------------------

    def _dispatch(self, event: ProducerEvent) -> None:
        kind = type(event)
        if kind is ResponseReceived:
            self._on_response(event)  # type: ignore[arg-type]  # narrowed above
        elif kind is TimerFired:
            self._timer_at = NEVER
        elif kind is RequestFailed:
            self._on_failed(event)  # type: ignore[arg-type]  # narrowed above
        elif kind is ProduceWritten:
            self._on_written(event)  # type: ignore[arg-type]  # narrowed above
        elif kind is ServerThrottles:
            self._network.throttle(event.node, event.until)  # type: ignore[union-attr]  # narrowed above
        elif kind is BatchesCompressed:
            self._outcomes.on_compressed(self._network.open, event)  # type: ignore[arg-type]  # narrowed above

    def _on_response(self, event: ResponseReceived) -> None:
        request = self._network.end(event.correlation)
        if request is None:
            return
        self._network.on_answer(request)
        response = event.response
        if isinstance(response, ProduceResponse):
            self._on_produce_response(request, response)
        elif request.kind == "metadata":
            assert isinstance(response, MetadataResponse)
            if self.metadata.on_response(response, self._now):
                self._learn_leaders()
            if self.metadata.is_denied:
                self.accumulator.deny(self._now - self.accumulator.offset_us)
            else:
                self.accumulator.is_denied = False
        elif request.kind == "identify":
            assert isinstance(response, InitProducerIdResponse)
            self._on_identity(response)

    def _on_produce_response(self, request: OpenRequest, response: ProduceResponse) -> None:
        news = False
        metadata = self.metadata
        for batch in request.batches:
            result = result_of(response, batch)
            batch.in_flight = False
            batch.answered_by = request.peer.node
            if result.error is ErrorCode.NONE:
                self._outcomes.succeed(batch, result.base_offset)
                continue
            self._outcomes.on_error(batch, result.error, self._now)
            if result.error.refreshes_metadata:
                hint = result.hint
                if hint is not None:
                    news |= metadata.on_hint(batch.partition, hint.leader, hint.leader_epoch)
                metadata.request()
        if news:
            self._learn_leaders()

    def _on_failed(self, event: RequestFailed) -> None:
        request = self._network.end(event.correlation)
        if request is None:
            return
        self._network.on_failure(request, self._now)
        if request.kind == "metadata":
            self.metadata.on_failed(self._now)
        elif request.kind == "identify":
            self._identifying = False
            is_fatal = event.error.is_authentication
            self._identity_at = NEVER if is_fatal else self._now + self._config.retry_backoff_us
        error = self._outcomes.on_disconnect(request, event.error, self._now, self.metadata)
        for batch in request.batches:
            batch.in_flight = False
            self._outcomes.on_error(batch, error, self._now)
        # The disconnect may be the result of stale metadata.
        self.metadata.request()

    def _on_written(self, event: ProduceWritten) -> None:
        request = self._network.end(event.correlation)
        if request is None:
            return
        for batch in request.batches:
            batch.in_flight = False
            self._outcomes.succeed(batch, -1)

    def _on_identity(self, response: InitProducerIdResponse) -> None:
        self._identifying = False
        assert self.sequences is not None
        if response.error is ErrorCode.NONE:
            self.sequences.identify(response.producer_id, response.producer_epoch)
        else:
            self._identity_at = self._outcomes.on_identity_refused(response.error, self._now)

    def _learn_leaders(self) -> None:
        metadata = self.metadata
        self.accumulator.learn_partitions(len(metadata.leaders))
        self.accumulator.led = metadata.led()
        known, count = self._partitions, len(metadata.leaders)
        known += [TopicPartition(self._topic, p) for p in range(len(known), count)]
        for leader in metadata.leaders:
            if leader != NO_LEADER:
                self._network.peer(leader)
        for peer in self._network.peers.values():
            peer.parts = metadata.partitions_of(peer.node)

    # -- the sender's turn ------------------------------------------------------------------------

    def _take_turn(self) -> bool:
        """One turn of the sender's loop; true if it sent a request."""
        sequences = self.sequences
        self._held = self.accumulator.blocked
        if sequences is not None:
            sequences.settle()
            self._held |= sequences.is_doubtful
            if not sequences.has_identity:
                self._held = True
                self._send_init_producer_id()
        sent = False
        for node in self._ready_nodes():
            peer = self._network.peer(node)
            if self._client_ready(peer) and self._drain(peer):
                sent = True
            else:
                self._held = True
        return sent

    def _ready_nodes(self) -> list[NodeId]:
        """Leaders with something to send; notes the next end of a linger.

        Source: ``RecordAccumulator.ready``.
        """
        now = self._now
        ready: list[NodeId] = []
        look_at = oldest = NEVER
        outcomes = self._outcomes
        exhausted = self.accumulator.exhausted
        self.accumulator.note_loads()
        metadata = self.metadata
        for queue in self.accumulator.backlog.queues():
            batches = queue.batches
            head = batches[0]
            partition = queue.partition
            oldest = min(oldest, head.created_us)
            leader = metadata.leaders[partition]
            head.note_leader_epoch(metadata.epochs[partition])
            if leader == NO_LEADER:
                metadata.request()
                continue
            if partition in outcomes.muted:
                self._held = True
                continue
            if leader in ready:
                continue
            at = head.backing_off_until()
            if now >= at:
                if len(batches) > 1 or exhausted or head.is_full:
                    ready.append(leader)
                    continue
                at = head.last_attempt_us + self._config.linger_us
                if now >= at:
                    ready.append(leader)
                    continue
            look_at = min(look_at, at)
        self._look_at = look_at
        if not self._config.times_delivery:
            outcomes.watch_unsent()
        elif oldest < NEVER:
            expiry_at = oldest + self._config.delivery_timeout_us
            outcomes.expiry_at = min(outcomes.expiry_at, expiry_at)
        return ready

    def _drain(self, peer: Peer) -> bool:
        """Sends the heads of the broker's queues in one request; true if there were any.

        A head that may not be sent yet ends the round, as in Kafka.

        Source: ``RecordAccumulator.drainBatchesForOneNode``.
        """
        parts = peer.parts
        if not parts:
            return False
        index = start = peer.drain_index % len(parts)
        size = 0
        drained: list[ProducerBatch] = []
        queues = self.accumulator.queues
        while True:
            peer.drain_index = index
            queue = queues[parts[index]]
            index = (index + 1) % len(parts)
            if queue.batches and queue.partition not in self._outcomes.muted:
                head = queue.batches[0]
                head.note_leader_epoch(self.metadata.epochs[queue.partition])
                if self._now >= head.backing_off_until():
                    size += head.size_bytes
                    if size > self._config.max_request_size and drained:
                        break
                    if self.sequences is not None and not self.sequences.may_drain(head):
                        break
                    drained.append(self._take(queue))
            if index == start:
                break
        if drained:
            self._send_produce(peer, tuple(drained))
        return bool(drained)

    def _take(self, queue: PartitionQueue) -> ProducerBatch:
        batch = queue.batches.popleft()
        batch.closed = True
        if self.sequences is not None and batch.base_sequence == NO_SEQUENCE:
            self.sequences.number(batch)
        if self._outcomes.mutes:
            self._outcomes.muted[batch.partition] = True
        return batch

    def _send_produce(self, peer: Peer, batches: tuple[ProducerBatch, ...]) -> None:
        now = self._now
        correlation = self._network.begin("produce", peer, batches)
        partitions = self._partitions
        for batch in batches:
            batch.in_flight = True
            batch.sends += 1
            batch.correlation = correlation
            batch.last_sent_us = now
            if batch.first_sent_us is None:
                batch.first_sent_us = now
        drafts = tuple(batch.draft(partitions[batch.partition]) for batch in batches)
        self._out.append(
            SendProduce(
                peer.node, correlation, drafts, self._config.acks, self._config.request_timeout_us
            )
        )

    def _is_sendable(self, partition: int) -> bool:
        """True if a batch of the partition could be sent at once; if not, a response matters."""
        leader = self.metadata.leaders[partition]
        if leader == NO_LEADER:
            return True
        if partition in self._outcomes.muted or not self._network.has_capacity(
            self._network.peer(leader)
        ):
            self._held = True
            return False
        return True

    # -- metadata and producer ids -----------------------------------------------------------------

    def _client_ready(self, peer: Peer) -> bool:
        """True if a produce request can be sent; makes the connection if there is none."""
        network = self._network
        if peer.ready and not network.is_connected(peer):
            # The disconnect may be the result of stale metadata.
            self.metadata.request()
        if not peer.ready:
            handshake = network.connect(peer, self._now)
            if handshake is not None:
                self._out.append(handshake)
            elif not peer.connecting:
                self._look_at = min(self._look_at, network.connectable_at(peer))
            return False
        return network.has_capacity(peer)

    def _least_loaded(self) -> Peer | None:
        """Least loaded server; of ``bootstrap.servers`` if no known broker is usable (KIP-899)."""
        network = self._network
        peer = network.least_loaded(self.metadata.brokers, self._now)
        if peer is None and network.retry_at < NEVER:
            self.metadata.forget_brokers()
            peer = network.least_loaded(self.metadata.brokers, self._now)
        return peer

    def _send_metadata_request(self) -> None:
        peer = self._least_loaded()
        if peer is not None:
            self.metadata.in_progress = True
            self._out.append(self._network.send("metadata", peer, MetadataRequest((self._topic,))))

    def _send_init_producer_id(self) -> None:
        if self._identifying or self._now < self._identity_at:
            return
        peer = self._least_loaded()
        if peer is not None:
            self._identifying = True
            self._out.append(self._network.send("identify", peer, InitProducerIdRequest()))

    def _set_wake(self, offset: Micros) -> None:
        now = self._now
        wake = min(
            self._look_at,
            self._outcomes.expiry_at,
            self.accumulator.next_instant(self._is_sendable) + offset,
        )
        due = self.metadata.due_at()
        if due <= now:
            self._held = True
        wake = min(wake, due if due > now else self._network.retry_at)
        needs_identity = self.sequences is not None and not self.sequences.has_identity
        if needs_identity and not self._identifying:
            waits = now < self._identity_at
            wake = min(wake, self._identity_at if waits else self._network.retry_at)
        wake = max(min(wake, self._network.throttle_ends()), now + 1)
        if wake != self._timer_at and wake < NEVER:
            self._timer_at = wake
            self._out.append(SetTimer(_WAKE, wake))


def _accumulator(setup: ProducerSetup, source: ArrivalSource) -> Accumulator:
    config, unit = setup.config, setup.unit
    if config.partitioner_class is None:
        return Accumulator(config, source, unit, setup.next_records)
    chosen = config.partitioner_class(unit)
    return PartitionedAccumulator(config, source, unit, setup.next_records, chosen)
