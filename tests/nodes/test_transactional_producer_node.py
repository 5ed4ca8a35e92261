"""A transactional producer's process: what it writes into batches, requests and the trace."""

from types import SimpleNamespace

from sim.error_codes import ErrorCode
from sim.kernel import Kernel
from sim.nodes.clients.producer import ProducerClient
from sim.nodes.clients.transactional_producer import TransactionalProducerNode, TransactionSpec
from sim.nodes.clients.workload import Rate, Steady, WorkloadSpec
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.events import ResponseReceived
from sim.protocol.messages.data import ProduceRequest
from sim.protocol.messages.group import FindCoordinatorRequest, FindCoordinatorResponse
from sim.protocol.messages.metadata import InitProducerIdRequest, InitProducerIdResponse
from sim.protocol.messages.transaction import EndTxnRequest, EndTxnResponse
from sim.rng import Streams
from sim.trace.schema import BY_NAME
from sim.units import MS, SECOND
from tests.nodes.test_producer_node import FakeChannel, FakeTrace


class TillChannel(FakeChannel):
    """As the plain one, and the coordinator of every transactional id."""

    def send(self, port, correlation, request, timeout_us):
        node = self.node
        if isinstance(request, FindCoordinatorRequest):
            response = FindCoordinatorResponse(ErrorCode.NONE, 1)
        elif isinstance(request, InitProducerIdRequest):
            node.epoch += 1
            response = InitProducerIdResponse(ErrorCode.NONE, 1_000, node.epoch)
        elif isinstance(request, EndTxnRequest):
            if node.fenced:
                response = EndTxnResponse(ErrorCode.PRODUCER_FENCED)
            else:
                node.epoch += 1
                response = EndTxnResponse(ErrorCode.NONE, 1_000, node.epoch)
        else:
            if isinstance(request, ProduceRequest):
                node.produced.append(request)
            super().send(port, correlation, request, timeout_us)
            return
        event = ResponseReceived(self.peer, correlation, response)
        node.call_at(node.kernel.now() + MS, node.deliver, port, event)


class TestedNode(TransactionalProducerNode):
    """A transactional producer whose network is a :class:`TillChannel`."""

    __test__ = False

    def channel(self, peer, label=""):
        if peer not in self.fakes:
            self.fakes[peer] = TillChannel(self, peer, self.logs)
        return self.fakes[peer]


def build(*, records=100, abort_ppm=0, seed=1):
    world = SimpleNamespace(
        kernel=Kernel(-SECOND), network=None, trace=FakeTrace(), streams=Streams(seed), server=None
    )
    host = SimpleNamespace(name="h", nodes=[], clock_offset_us=0, clock_ppm=0, wakeups=None)
    spec = WorkloadSpec("orders", Steady(Rate(1_000, SECOND)), 100, end_us=SECOND)
    client = ProducerClient(3, ProducerConfig(transactional_id="till"), (1,))
    transactions = TransactionSpec(records, 0, abort_ppm, 2)
    node = TestedNode("till-1", host, world, client, spec, transactions)
    node.fakes, node.logs, node.produced = {}, {}, []
    node.epoch, node.fenced, node.limit = -1, False, 1 << 30
    node.start()
    return node


def rows(node, table):
    names = BY_NAME[table].column_names
    return [dict(zip(names, row, strict=True)) for row in node.trace.table(table).rows]


def test_every_transaction_is_told_with_its_records():
    node = build()
    node.kernel.run(5 * SECOND)
    told = rows(node, "transaction_outcomes")
    assert [row["transaction"] for row in told] == list(range(10))
    assert {row["outcome"] for row in told} == {"committed"}
    assert {row["transactional_id"] for row in told} == {"till"}
    assert [row["producer_epoch"] for row in told] == list(range(10))
    held = rows(node, "transaction_records")
    for row in told:
        mine = [h for h in held if h["transaction"] == row["transaction"]]
        assert sum(h["last_record"] - h["first_record"] + 1 for h in mine) == row["records"] == 100
        assert {h["producer_index"] for h in mine} == {3}
        assert row["begun_us"] < row["t_us"]


def test_batches_and_requests_say_that_they_belong_to_a_transaction():
    node = build()
    node.kernel.run(5 * SECOND)
    assert node.produced
    assert {request.transactional_id for request in node.produced} == {"till"}
    batches = [batch for request in node.produced for _, batch in request.batches]
    assert all(batch.is_transactional for batch in batches)


def test_the_share_of_aborts_is_drawn_from_a_stream_of_its_own():
    outcomes = []
    for _ in range(2):
        node = build(records=10, abort_ppm=300_000)
        node.kernel.run(20 * SECOND)
        outcomes.append([row["outcome"] for row in rows(node, "transaction_outcomes")])
    assert outcomes[0] == outcomes[1]
    assert 15 < outcomes[0].count("aborted") < 45
    other = build(records=10, abort_ppm=300_000, seed=2)
    other.kernel.run(20 * SECOND)
    assert [row["outcome"] for row in rows(other, "transaction_outcomes")] != outcomes[0]


def test_a_fenced_process_stops_and_tells_all_it_had_open():
    node = build()
    node.kernel.run(350 * MS)
    node.fenced = True
    node.kernel.run(5 * SECOND)
    assert not node.running
    assert rows(node, "transaction_outcomes")[-1]["outcome"] == "fenced"
    assert rows(node, "node_states")[-1]["state"] == "stopped"
    told = sum(row["record_count"] for row in rows(node, "client_batches"))
    assert told == sum(row["records"] for row in rows(node, "transaction_outcomes"))
    node.finish()
    assert sum(row["record_count"] for row in rows(node, "client_batches")) == told


def test_a_crash_in_a_transaction_leaves_it_uncommitted_and_the_next_process_numbers_on():
    node = build()
    node.kernel.run(350 * MS)
    node.finish()
    node.running = False
    node._forget()
    last = rows(node, "transaction_outcomes")[-1]
    assert (last["outcome"], last["error"]) == ("aborted", "NONE")
    node.fakes.clear()
    node.start()
    node.kernel.run(5 * SECOND)
    told = rows(node, "transaction_outcomes")
    assert [row["transaction"] for row in told] == list(range(len(told)))
    spans = [
        (row["partition"], number)
        for row in rows(node, "transaction_records")
        for number in range(row["first_record"], row["last_record"] + 1)
    ]
    assert len(spans) == len(set(spans))
