"""Arrivals from lists, and an accumulator that takes one record at a time, for comparison."""

from collections import deque

import numpy as np

from sim.protocol.clients.producer.events import TOMBSTONE, ArrivalBlock
from sim.protocol.clients.producer.partitioner import key_of, load_table, partition_of, pick_by_load
from sim.protocol.clients.producer.record_sizes import varint_width


class ListSource:
    """A workload from plain lists, in blocks of a given size.

    ``dead``: for each record true for a tombstone, false for a value of ``value_bytes``, or a size.
    """

    def __init__(
        self, instants, *, keys=None, value_bytes=100, block=1_000_000, dead=None, headers=(0, 0)
    ):
        self.value_bytes = value_bytes
        self.header_count, self.header_bytes = headers
        self._dead = dead
        self.keyed = keys is not None
        self._instants = instants
        self._keys = keys
        self._block = block
        self._at = 0

    def next_block(self):
        start, self._at = self._at, self._at + self._block
        if start >= len(self._instants):
            return None
        span = slice(start, self._at)
        keys = None if self._keys is None else np.array(self._keys[span], dtype=np.int64)
        sizes = None
        if self._dead is not None:
            kinds = {False: self.value_bytes, True: TOMBSTONE}
            sizes = np.array([kinds.get(each, each) for each in self._dead[span]], dtype=np.int64)
        return ArrivalBlock(np.array(self._instants[span], dtype=np.int64), keys, sizes)


class NaiveBatch:
    def __init__(self, partition, created, base_ms, capacity, ratio=None):
        self.ratio = ratio
        self.raw = 0
        self.partition = partition
        self.created = created
        self.base_ms = base_ms
        self.capacity = capacity
        self.records = []
        self.size = 61
        self.closed = False

    def take(self, size):
        """By how much the batch grows, as ``estimatedBytesWritten`` sees it."""
        self.raw += size
        before = self.size
        if self.ratio is None:
            self.size += size
        else:
            self.size = 61 + int(np.float32(self.raw) * np.float32(self.ratio) * np.float32(1.05))
        return self.size - before

    @property
    def full(self):
        return self.closed or self.size >= self.capacity


class NaiveAccumulator:
    """Kafka's ``append`` in a loop, record by record, with a record's size from its own fields."""

    def __init__(
        self, config, unit, partitions, led, value_bytes, keyed, headers=(0, 0), ratio=None
    ):
        self.ratio = ratio
        self.config = config
        self.unit = unit
        self.count = partitions
        self.led = led
        self.value_bytes = value_bytes
        self.keyed = keyed
        key = 13 if keyed else 1
        count, size = headers
        rest = key + varint_width(count) + size
        self.fields = {n: varint_width(n) + n + rest for n in range(24, value_bytes + 1)}
        self.fields[False] = self.fields[value_bytes]
        self.fields[True] = key + 1 + varint_width(count + 1) + 28 + size
        self.free = config.buffer_memory
        self.queues = [deque() for _ in range(partitions)]
        self.seen = [False] * partitions
        self.sticky = None
        self.produced = 0
        self.loads = None

    def grow(self, partitions, led):
        """The topic has more partitions; load statistics are the sender's, at its next look."""
        self.queues += [deque() for _ in range(partitions - self.count)]
        self.seen += [False] * (partitions - self.count)
        self.count, self.led = partitions, led

    def capacity(self, dead):
        return max(self.config.batch_size, 61 + 21 + self.fields[dead])

    def record_size(self, stamp_delta, offset_delta, dead):
        body = 1 + varint_width(stamp_delta) + varint_width(offset_delta) + self.fields[dead]
        return varint_width(body) + body

    def next_partition(self):
        self.produced = 0
        table = None if self.loads is None else load_table(*self.loads[1:])
        if table is not None:
            self.sticky = self.loads[0][pick_by_load(table, int(self.unit() * table[-1]))]
        elif self.led:
            self.sticky = self.led[int(self.unit() * len(self.led))]
        else:
            self.sticky = int(self.unit() * self.count)

    def update(self, size, switch):
        self.produced += size
        batch = max(1, self.config.batch_size)
        if (self.produced >= batch and switch) or self.produced >= 2 * batch:
            self.next_partition()
            return True
        return False

    def note_loads(self):
        """The sender looks at the queues."""
        if self.config.partitioner_adaptive_partitioning_enable:
            lengths = [len(self.queues[p]) for p in self.led]
            self.loads = (self.led, lengths, self.count) if all(self.seen) else None

    def append(self, intended, instant, key, dead=False):
        """Whether the record went in; False if there was no memory."""
        while True:
            if self.keyed:
                p = partition_of(key_of(key), self.count)
            else:
                if self.sticky is None:
                    self.next_partition()
                p = self.sticky
            self.seen[p] = True
            queue = self.queues[p]
            last = queue[-1] if queue else None
            if not self.keyed and (last is None or last.full) and self.update(0, True):
                continue
            if last is not None and not last.full:
                size = self.record_size(instant // 1000 - last.base_ms, len(last.records), dead)
                if last.size + size <= last.capacity:
                    last.records.append((intended, instant // 1000))
                    grown = last.take(size)
                    if not self.keyed:
                        self.update(grown, last.full)
                    return True
                last.closed = True
                if not self.keyed and self.update(0, True):
                    continue
            if self.free < self.capacity(dead):
                return False
            batch = NaiveBatch(p, instant, instant // 1000, self.capacity(dead), self.ratio)
            batch.records.append((intended, instant // 1000))
            batch.take(self.record_size(0, 0, dead))
            self.free -= self.capacity(dead)
            queue.append(batch)
            if not self.keyed:
                self.update(batch.size, batch.full)
            return True


# -- a small world for the whole producer ---------------------------------------------------------


import heapq  # noqa: E402

from sim.error_codes import ErrorCode as E  # noqa: E402
from sim.ids import TopicPartition  # noqa: E402
from sim.protocol.clients.producer.config import ProducerConfig, ProducerSetup  # noqa: E402
from sim.protocol.clients.producer.events import (  # noqa: E402
    ApplicationPaused,
    ApplicationResumed,
    BatchDone,
    ProducerStarted,
    ProduceWritten,
    SendProduce,
)
from sim.protocol.clients.producer.producer import Producer  # noqa: E402
from sim.protocol.effects import Send, SetTimer  # noqa: E402
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired  # noqa: E402
from sim.protocol.messages.data import LeaderHint, ProduceResponse, ProduceResult  # noqa: E402
from sim.protocol.messages.metadata import (  # noqa: E402
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataResponse,
    PartitionMetadata,
)
from sim.rng import Stream  # noqa: E402


class Log:
    """One partition's log with the broker's check of sequences.

    It remembers every batch; Kafka the last five, which a move of the leader can exceed.
    """

    def __init__(self, *, checks=True, forgiving=False, window=None):
        self.records = []  # (first record number + i)
        self.checks = checks
        self.forgiving = forgiving  # as Kafka: without state for the id, any sequence is taken
        self.epoch = None
        self.known = deque(maxlen=window)

    def append(self, draft):
        count = len(draft.intended_us)
        base = len(self.records)
        if self.checks and draft.producer_id >= 0:
            identity = (draft.producer_id, draft.producer_epoch)
            first, last = draft.base_sequence, draft.base_sequence + count - 1
            if self.epoch == identity:
                for seen_first, seen_last, offset in self.known:
                    if (seen_first, seen_last) == (first, last):
                        return E.NONE, offset
            if self.epoch is not None and identity < self.epoch:
                return E.INVALID_PRODUCER_EPOCH, -1
            if identity != self.epoch:
                if first != 0 and not (self.epoch is None and self.forgiving):
                    return E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
                self.known.clear()
            elif first != self.known[-1][1] + 1:
                return E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            self.epoch = identity
            self.known.append((first, last, base))
        self.records.extend(range(draft.first_record, draft.first_record + count))
        return E.NONE, base


class World:
    """Brokers 1..n, FIFO connections, and a script of misfortunes drawn from a stream."""

    def __init__(
        self,
        producer_args,
        config,
        source,
        *,
        partitions=3,
        brokers=3,
        seed=1,
        trouble=0.0,
        trouble_until=0,
        latency=(300, 3_000),
        metadata_at=None,
        checks=True,
        forgiving=False,
        window=None,
    ):
        self.luck = Stream(seed, "world")
        self.trouble = trouble
        self.trouble_until = trouble_until
        self.latency = latency
        self.partitions = partitions
        self.brokers = brokers
        self.leaders = [1 + p % brokers for p in range(partitions)]
        self.epochs = [0] * partitions
        self.logs = [
            Log(checks=checks, forgiving=forgiving, window=window) for _ in range(partitions)
        ]
        self.config = config
        self.connection = {}  # node -> generation of the connection
        self.not_before = {}  # node -> until when the transport does not reconnect
        self.paused = False
        self.fifo = {}  # node -> instant of the last arrival
        self.answer_fifo = {}
        self.open = {}  # correlation -> node
        self.queue = []
        self.count = 0
        self.now = 0
        self.timer = None
        self.done = []
        self.sent = []  # (now, SendProduce)
        self.answer = None  # hook: (world, partition, draft) -> (error, base, hint) or None
        self.silent = ()  # nodes that never answer
        self.dead = ()  # nodes that refuse
        self.max_open = 0
        unit = Stream(seed, "unit").unit
        known = tuple(range(1, brokers + 1))
        args = {"clock_offset": lambda: 0} | producer_args
        self.setup = ProducerSetup("t", config, self, unit, known, **args)
        self.mind = Producer(self.setup, source)

    def pause(self):
        self.deliver(ApplicationPaused())
        self.paused = True

    def resume(self):
        self.paused = False
        self.deliver(ApplicationResumed())

    def is_open(self, node):
        return node in self.connection

    def connectable_at(self, node):
        return -(1 << 62)

    def at(self, when, fn, *args):
        self.count += 1
        heapq.heappush(self.queue, (when, self.count, fn, args))

    def wait(self):
        return self.luck.between(*self.latency)

    def deliver(self, event):
        for effect in self.mind.handle(event, self.now):
            if isinstance(effect, SetTimer):
                self.timer = effect.at
                self.at(effect.at, self.fire, effect.at)
            elif isinstance(effect, BatchDone):
                self.done.append((self.now, effect))
            else:
                self.send(effect)

    def fire(self, at):
        if self.timer == at:
            self.timer = None
            self.deliver(TimerFired("sender"))

    def send(self, effect):
        node = effect.to
        if isinstance(effect, SendProduce):
            self.sent.append((self.now, effect))
            if effect.acks == 0:
                self.at(self.now + 5, self.written, effect)
        if node in self.dead:
            self.open[effect.correlation] = node
            self.at(self.now + 500, self.fail, effect.correlation, E.NETWORK_EXCEPTION)
            return
        generation = self.connection.setdefault(node, self.count)
        self.open[effect.correlation] = node
        of_node = sum(1 for n in self.open.values() if n == node)
        self.max_open = max(self.max_open, of_node)
        timeout = effect.timeout_us
        self.at(self.now + timeout, self.time_out, effect.correlation, node)
        if node in self.silent:
            return
        arrival = max(
            self.fifo.get((node, generation), 0),
            self.now + self.wait(),
            self.not_before.get(node, 0) + self.wait(),
        )
        self.fifo[node, generation] = arrival
        self.at(arrival, self.serve, node, generation, effect)

    def written(self, effect):
        if self.open.pop(effect.correlation, None) is not None:
            self.deliver(ProduceWritten(effect.to, effect.correlation))

    def time_out(self, correlation, node):
        if correlation in self.open:
            self.drop(node, E.REQUEST_TIMED_OUT)

    def drop(self, node, error):
        """The connection is gone; what was on its way to the broker may still get there."""
        if self.connection.pop(node, None) is not None:
            self.not_before[node] = self.now + 50_000  # reconnect.backoff.ms
        for correlation in [c for c, n in self.open.items() if n == node]:
            self.fail(correlation, error)

    def fail(self, correlation, error):
        node = self.open.pop(correlation, None)
        if node is not None:
            self.deliver(RequestFailed(node, correlation, error))

    def serve(self, node, generation, effect):
        if isinstance(effect, Send):
            response = self.answer_plain(effect.request)
        else:
            response = self.answer_produce(node, effect)
        if self.trouble and self.now < self.trouble_until and self.luck.unit() < self.trouble / 3:
            self.drop(node, E.NETWORK_EXCEPTION)
            return
        back = max(self.answer_fifo.get((node, generation), 0), self.now + self.wait())
        self.answer_fifo[node, generation] = back
        self.at(back, self.respond, node, generation, effect.correlation, response)

    def respond(self, node, generation, correlation, response):
        if self.connection.get(node) == generation and correlation in self.open:
            del self.open[correlation]
            self.deliver(ResponseReceived(node, correlation, response))

    def answer_plain(self, request):
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(E.NONE, 1_000, 0)
        topics = {}
        if request.topics:
            topics["t"] = tuple(
                PartitionMetadata(p, self.leaders[p], self.epochs[p], (), ())
                for p in range(self.partitions)
            )
        return MetadataResponse(tuple(range(1, self.brokers + 1)), topics)

    def answer_produce(self, node, effect):
        results = []
        for draft in effect.drafts:
            p = draft.partition.partition
            error, base, hint = self.decide(node, p, draft)
            results.append(ProduceResult(TopicPartition("t", p), error, base, 0, hint))
        return ProduceResponse(tuple(results))

    def decide(self, node, p, draft):
        if self.answer is not None:
            answer = self.answer(self, p, draft)
            if answer is not None:
                return answer
        troubled = self.trouble and self.now < self.trouble_until
        if troubled and self.luck.unit() < self.trouble:
            kind = self.luck.below(3)
            if kind == 0:
                return E.NOT_ENOUGH_REPLICAS, -1, None
            if kind == 1:
                self.leaders[p] = 1 + self.luck.below(self.brokers)
                self.epochs[p] += 1
            else:
                self.logs[p].append(draft)
                return E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1, None
        if self.leaders[p] != node:
            hint = None
            if self.luck.unit() < 0.5:
                hint = LeaderHint(self.leaders[p], self.epochs[p])
            return E.NOT_LEADER_OR_FOLLOWER, -1, hint
        error, base = self.logs[p].append(draft)
        return error, base, None

    def run(self, until, start=0):
        self.now = start
        self.deliver(ProducerStarted())
        self.go(until)
        return self

    def go(self, until):
        held = []
        while self.queue and self.queue[0][0] <= until:
            self.now, _, fn, args = heapq.heappop(self.queue)
            if self.paused and fn in (self.fire, self.respond, self.fail, self.time_out):
                held.append((fn, args))
                continue
            fn(*args)
            if not self.paused:
                while held:
                    fn, args = held.pop(0)
                    fn(*args)
        self.now = until

    def outcomes(self):
        """(partition, record number) -> outcome; a number told twice is an error."""
        told = {}
        for _, done in self.done:
            for number in range(done.first_record, done.first_record + done.record_count):
                assert (done.partition, number) not in told, "one record, two outcomes"
                told[done.partition, number] = done.outcome
        return told


EVERY_MS = list(range(100_000, 1_100_000, 1_000))


def world(
    instants=EVERY_MS, *, keys=None, seed=1, value_bytes=100, block=64, args=None, **settings
):
    config = ProducerConfig(**settings.pop("config", {}))
    source = ListSource(instants, keys=keys, value_bytes=value_bytes, block=block)
    return World(args or {}, config, source, seed=seed, **settings)


def check_exactly_once(run, total):
    told = run.outcomes()
    assert len(told) == total
    for p, log in enumerate(run.logs):
        assert log.records == list(range(len(log.records))), f"gap or reorder in partition {p}"
        for (partition, number), outcome in told.items():
            if partition == p:
                assert outcome == "ok"
                assert number < len(log.records)


def check_honest(run):
    """``ok`` is there once, ``failed`` is not there."""
    for (p, number), outcome in run.outcomes().items():
        copies = run.logs[p].records.count(number) if p >= 0 else 0
        if outcome == "ok":
            assert copies == 1
        elif outcome == "failed":
            assert copies == 0, f"record {number} of partition {p} was called failed"
