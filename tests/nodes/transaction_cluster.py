"""Not a test: a whole cluster of real brokers, and a client that asks it what it likes."""

from pathlib import Path

from sim.checking.invariants.registry import Watch
from sim.error_codes import ErrorCode as E
from sim.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from sim.kernel import Kernel
from sim.nodes.process.base import Node
from sim.protocol import effects as fx
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.messages.data import (
    FetchPartition,
    FetchRequest,
    ListOffsetsRequest,
    ProduceRequest,
)
from sim.protocol.messages.group import FindCoordinatorRequest, OffsetFetchRequest
from sim.protocol.messages.metadata import InitProducerIdRequest
from sim.protocol.messages.transaction import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from sim.rng import Streams
from sim.scenario.build.cluster import Builder
from sim.scenario.build.starts import BOOT_AT, TOPICS_AT, start_of
from sim.scenario.loader import load_text
from sim.substrate.host import Host, HostSpec
from sim.trace.schema import BY_NAME
from sim.trace.writer import Trace
from sim.units import MS, SECOND, timestamp_ms
from sim.wire.record_batch import NewRecord, build_batch

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
READ_COMMITTED = "read_committed"

TEXT = """
claim: A cluster for a client of its own.
cluster:
  brokers: {brokers}
  controllers: 1
  config: {{{config}}}
  cpu: {{preempted: {{p50: 10ms, p99: 10ms}}}}
topics:
  orders:
    partitions: 2
    replication.factor: {factor}
    config: {{min.insync.replicas: {minimum}}}
producers:
  - {{name: shop, topic: orders, rate: 1/s, record.size: 100B, start: 999s}}
consumers:
  - {{group: billing, topics: [orders], start: 999s}}
run: {{for: 1000s, seed: {seed}}}
behaviours: {{{behaviours}}}
expect: {{}}
"""


class Asked:
    """Event: send this."""

    def __init__(self, send):
        self.send = send


class Asker:
    """A mind that sends what it is told and remembers the answers."""

    def __init__(self):
        self.answers = {}

    def handle(self, event, now):
        if isinstance(event, Asked):
            return [event.send]
        self.answers[event.correlation] = getattr(event, "response", None)
        return []


class Client(Node):
    """A process of its own."""

    def boot(self):
        self.asker = Asker()
        self.port = self.add_machine("asker", self.asker)


class TransactionCluster:
    """Three brokers after their start; instants are those of the kernel."""

    def __init__(
        self, root: Path, *, brokers=3, version=2, seed=1, config="", watched=True, race=""
    ):
        chosen = ["" if version == 2 else "transactions: kip98", race]
        behaviours = ", ".join(choice for choice in chosen if choice)
        config = f"offsets.topic.num.partitions: 2{config and ', ' + config}"
        if "num.partitions" not in config.removeprefix("offsets.topic.num.partitions"):
            config += ", transaction.state.log.num.partitions: 3"
        if brokers < 3:
            config += f", offsets.topic.replication.factor: {brokers}"
        self.root = root
        self.scenario = load_text(
            TEXT.format(
                brokers=brokers, config=config, factor=brokers, minimum=max(1, brokers - 1),
                seed=seed, behaviours=behaviours,
            ),
            "transactions",
        )  # fmt: skip
        self.kernel = Kernel(BOOT_AT)
        self.trace = Trace(None)
        self.rows = {}
        for name in BY_NAME:
            self.trace.table(name).listeners.append(self.rows.setdefault(name, []).append)
        self.watch = Watch(self.trace) if watched else None
        self.streams = Streams(seed)
        builder = Builder(self.scenario, self.kernel, self.streams, self.trace, root)
        self.cluster = builder.cluster
        builder.servers()
        self.admin = builder.admin()
        self.servers = (*self.cluster.controllers.values(), *self.cluster.brokers.values())
        for server in self.servers:
            at = start_of(server.node_id, server.name, self.streams)
            self.kernel.call_at(at, server.start)
        self.kernel.call_at(TOPICS_AT, self.admin.start)
        self.clients = {}
        self.correlation = 0
        self.kernel.run(0)
        assert self.admin.admin.done

    # -- time --------------------------------------------------------------------------------------

    @property
    def now(self):
        return self.kernel.now()

    def run(self, microseconds):
        self.kernel.run(self.now + microseconds)

    def until(self, condition, limit=60 * SECOND):
        end = self.now + limit
        while not condition():
            assert self.now < end, "it never came to that"
            self.run(5 * MS)

    def table(self, name, **where):
        columns = BY_NAME[name].column_names
        rows = [dict(zip(columns, row, strict=True)) for row in self.rows[name]]
        return [r for r in rows if all(r[key] == value for key, value in where.items())]

    def shut_down(self):
        for broker in self.cluster.brokers.values():
            if broker.running:
                broker.shut_down()
        self.until(lambda: not any(b.running for b in self.cluster.brokers.values()))
        for controller in self.cluster.controllers.values():
            controller.shut_down()
        for server in self.servers:
            for disk in server.host.disks:
                disk.store.write_back_all()
                disk.store.settle()

    # -- asking ------------------------------------------------------------------------------------

    def client(self, name="client"):
        if name not in self.clients:
            host = Host(name, "", self.cluster.network, HostSpec(), in_racks=False)
            node = self.clients[name] = Client(name, host, self.cluster)
            self.cluster.add(node)
            node.start()
        return self.clients[name]

    def begin(self, broker, request, client="client", timeout=30 * SECOND):
        node = self.client(client)
        self.correlation += 1
        node.deliver(
            node.port, Asked(fx.Send(broker, self.correlation, request, timeout, f"{broker}"))
        )
        return node.asker.answers, self.correlation

    def ask(self, broker, request, client="client"):
        answers, correlation = self.begin(broker, request, client)
        self.until(lambda: correlation in answers)
        return answers[correlation]

    def leader(self, partition):
        return self.cluster.image.leader_of(partition)

    def coordinator(self, name):
        """The broker of a transactional id, asked for until there is one."""
        broker = next(n for n, b in self.cluster.brokers.items() if b.running)
        found = []

        def there():
            answer = self.ask(broker, FindCoordinatorRequest(name, "transaction"))
            found.append(answer)
            return answer is not None and answer.error is E.NONE

        while not there():
            self.run(50 * MS)
        return found[-1].coordinator

    def retrying(self, broker_of, request, client="client", final=(), patience=60 * SECOND):
        """Ask again while the answer is one that clients retry; returns the last one."""
        again = {
            E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR,
            E.COORDINATOR_NOT_AVAILABLE, E.NOT_LEADER_OR_FOLLOWER, E.NOT_ENOUGH_REPLICAS,
            E.REQUEST_TIMED_OUT,
        } - set(final)  # fmt: skip
        end = self.now + patience
        while True:
            answer = self.ask(broker_of(), request, client)
            error = E.NETWORK_EXCEPTION if answer is None else error_of(answer)
            if answer is not None and error not in again:
                return answer
            assert self.now < end, f"still {error}"
            self.run(20 * MS)

    # -- as a producer -----------------------------------------------------------------------------

    def init(self, name, timeout=60 * SECOND, ids=(-1, -1), client="client"):
        answer = self.retrying(
            lambda: self.coordinator(name), InitProducerIdRequest(name, timeout, *ids), client
        )
        assert answer.error is E.NONE, answer
        return answer.producer_id, answer.producer_epoch

    def produce(
        self, name, ids, sequence, *, partition=P0, count=1, value=b"v", client="client", final=()
    ):
        batch = self.batch(ids, sequence, count=count, value=value, transactional=bool(name))
        request = ProduceRequest(-1, 30 * SECOND, ((partition, batch),), name)
        answer = self.retrying(lambda: self.leader(partition), request, client, final)
        return answer.results[0]

    def batch(self, ids, sequence, *, count=1, value=b"v", transactional=True):
        stamp = timestamp_ms(self.now)
        return build_batch(
            [NewRecord(stamp, None, value) for _ in range(count)],
            producer_id=ids[0], producer_epoch=ids[1], base_sequence=sequence,
            transactional=transactional,
        )  # fmt: skip

    def add(self, name, ids, *partitions):
        request = AddPartitionsToTxnRequest(name, *ids, partitions)
        return self.retrying(lambda: self.coordinator(name), request).error

    def end(self, name, ids, *, committed=True, client="client", final=()):
        request = EndTxnRequest(name, *ids, committed)
        return self.retrying(lambda: self.coordinator(name), request, client, final)

    def transact(self, name, ids, values, *, committed=True, partitions=(P0, P1)):
        """A whole transaction with a record for each value and partition; the next ids."""
        for partition in partitions:
            for sequence, value in enumerate(values):
                result = self.produce(name, ids, sequence, partition=partition, value=value)
                assert result.error is E.NONE, result
        answer = self.end(name, ids, committed=committed)
        assert answer.error is E.NONE, answer
        return answer.producer_id, answer.producer_epoch

    def settled(self, name):
        """The markers of the id's transaction are written."""
        self.until(lambda: self.states(name)[-1] in ("CompleteCommit", "CompleteAbort", "Empty"))

    def states(self, name):
        return [row["state"] for row in self.table("transactions", transactional_id=name)]

    # -- as a consumer -----------------------------------------------------------------------------

    def fetch(self, partition=P0, offset=0, level=READ_COMMITTED, wait=0, client="reader"):
        asked = FetchPartition(partition, offset, -1)
        request = FetchRequest(-1, -1, wait, 1, 1 << 25, 0, 0, (asked,), isolation_level=level)
        (result,) = self.ask(self.leader(partition), request, client).results or (None,)
        return result

    def values(self, partition=P0, level=READ_COMMITTED):
        """Values a consumer sees, as the Java client filters them."""
        found, offset = [], 0
        while True:
            result = self.fetch(partition, offset, level)
            if result is None or not result.batches:
                return found
            assert result.error is E.NONE, result
            waiting = sorted(result.aborted, key=lambda a: a.first_offset)
            skipped = set()
            for batch in result.batches:
                offset = batch.last_offset + 1
                while waiting and waiting[0].first_offset <= batch.last_offset:
                    skipped.add(waiting.pop(0).producer_id)
                if batch.is_control:
                    if next(batch.records()).key[3] == 0:
                        skipped.discard(batch.producer_id)
                elif not (batch.is_transactional and batch.producer_id in skipped):
                    found += [record.value for record in batch.records()]

    def latest(self, partition=P0, level=READ_COMMITTED):
        request = ListOffsetsRequest(partition, -1, isolation_level=level)
        return self.ask(self.leader(partition), request).offset

    def state_partition(self, name):
        count = self.cluster.image.partition_counts[TRANSACTIONS_TOPIC]
        return TopicPartition(TRANSACTIONS_TOPIC, partition_for_group(name, count))


def error_of(answer):
    results = getattr(answer, "results", None)
    return results[0].error if results else answer.error


def raw_offsets(cluster, group, places, *, stable=True):
    count = cluster.cluster.image.partition_counts[OFFSETS_TOPIC]
    home = TopicPartition(OFFSETS_TOPIC, partition_for_group(group, count))
    request = OffsetFetchRequest(group, places, stable)
    return cluster.retrying(lambda: cluster.leader(home), request)


def commit_offsets(cluster, name, group, ids, offsets, *, final=()):
    count = cluster.cluster.image.partition_counts[OFFSETS_TOPIC]
    home = TopicPartition(OFFSETS_TOPIC, partition_for_group(group, count))
    request = TxnOffsetCommitRequest(
        name, group, *ids, "", -1, tuple((place, offset, 0) for place, offset in offsets)
    )
    return cluster.retrying(lambda: cluster.leader(home), request, final=final).error


__all__ = ["P0", "P1", "TransactionCluster", "commit_offsets", "raw_offsets"]
