"""A consumer process over the simulated network: what it leaves in the trace, and how it ends."""

from dataclasses import dataclass

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.kernel import Kernel
from sim.nodes.clients.consumer import ConsumerConfig, ConsumerNode
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.server import ServerNode
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.requests import GROUP_REQUESTS
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    RecordsAppended,
)
from sim.protocol.effects import Reply, SetTimer
from sim.protocol.events import TimerFired
from sim.protocol.messages.data import (
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from sim.protocol.messages.group import FindCoordinatorRequest, FindCoordinatorResponse
from sim.protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sim.protocol.messages.metadata import MetadataRequest, MetadataResponse, PartitionMetadata
from sim.rng import Streams
from sim.substrate.host import Host, HostSpec
from sim.substrate.network import Network, NetworkSpec
from sim.trace.rows.clients import Assignments, Reads
from sim.trace.rows.cluster import NodeStates
from sim.trace.schema import BY_NAME
from sim.trace.writer import Trace
from sim.units import MS, SECOND

P0 = TopicPartition("orders", 0)


@dataclass(frozen=True)
class FakeBatch:
    base_offset: int
    record_count: int
    producer_index: int = 5
    leader_epoch: int = 2
    is_control: bool = False
    size_bytes: int = 1_000

    @property
    def last_offset(self):
        return self.base_offset + self.record_count - 1

    @property
    def first_record(self):
        return 100 + self.base_offset

    def valid(self):
        return True


class Answers:
    """A mind that leads one partition with two batches, and knows no more than a consumer asks."""

    def __init__(self):
        self.parked = []

    def handle(self, event, now):
        if isinstance(event, TimerFired):
            parked, self.parked = self.parked, []
            return [Reply(token, FetchResponse(ErrorCode.NONE, 1, ())) for token in parked]
        request, token = event.request, event.token
        match request:
            case MetadataRequest():
                topics = {"orders": (PartitionMetadata(0, 1, 2, (1,), (1,)),)}
                return [Reply(token, MetadataResponse((1,), topics))]
            case FindCoordinatorRequest():
                return [Reply(token, FindCoordinatorResponse(ErrorCode.NONE, 1))]
            case ListOffsetsRequest():
                return [Reply(token, ListOffsetsResponse(P0, ErrorCode.NONE, 0, 2))]
            case OffsetForLeaderEpochRequest():
                end = OffsetForLeaderEpochResponse(P0, ErrorCode.NONE, 2, 5)
                return [Reply(token, end)]
            case FetchRequest() if request.session_epoch == 0 and request.partitions:
                start = request.partitions[0].fetch_offset
                batches = tuple(
                    b for b in (FakeBatch(0, 3), FakeBatch(3, 2)) if b.last_offset >= start
                )
                result = FetchResult(P0, ErrorCode.NONE, 5, 0, batches)
                return [Reply(token, FetchResponse(ErrorCode.NONE, 1, (result,)))]
            case FetchRequest():
                self.parked.append(token)
                return [SetTimer("fetch", now + request.max_wait_us)]
        raise AssertionError(request)


class FakeBroker(ServerNode):
    """A broker of those answers and of a real group coordinator, whose appends never fail."""

    def boot(self):
        data = self.add_machine("data", Answers())
        self.route(data, MetadataRequest, FindCoordinatorRequest, ListOffsetsRequest, FetchRequest)
        self.route(data, OffsetForLeaderEpochRequest)
        self.performers[AppendRecords] = self._append
        self.coordinator = GroupCoordinator(1, self.incarnation)
        groups = self.add_machine("groups", self.coordinator)
        self.route(groups, *GROUP_REQUESTS)
        self.deliver(groups, PartitionElected(partition_for_group("g"), 0, ()))

    def _append(self, port, effect):
        event = RecordsAppended(effect.token, ErrorCode.NONE)
        self.call_at(self.kernel.now() + MS, self.deliver, port, event)


class World:
    def __init__(self, **settings):
        self.kernel = Kernel()
        self.streams = Streams(7)
        self.network = Network(self.kernel, self.streams, NetworkSpec())
        self.trace = Trace(None)
        self.rows = {}
        for name in ("reads", "commits", "assignments", "groups", "node_states"):
            self.trace.table(name).listeners.append(self.rows.setdefault(name, []).append)
        self.broker = FakeBroker(1, "broker-1", self._host("b1"), self, CpuSpec())
        told = {"topics": ("orders",), "group_id": "g", "auto_offset_reset": "earliest"}
        config = ConsumerConfig(**(told | settings))
        self.consumer = ConsumerNode("reader-1", self._host("c1"), self, config, (1,))

    def _host(self, name):
        return Host(name, "", self.network, HostSpec())

    def advertised(self, node):
        return self.server(node)

    def server(self, node):
        return {1: self.broker}.get(node)

    def run(self, until):
        self.kernel.run(until)

    def states(self, node="reader-1"):
        return [
            row[NodeStates.STATE]
            for row in self.rows["node_states"]
            if row[NodeStates.NODE] == node
        ]


def started(**settings):
    world = World(**settings)
    world.broker.start()
    world.consumer.start()
    return world


def test_what_a_poll_returned_is_in_the_trace_as_the_schema_says():
    world = started()
    world.run(6 * SECOND)
    columns = BY_NAME["reads"].column_names
    rows = [dict(zip(columns, row, strict=True)) for row in world.rows["reads"]]
    assert [(row["base_offset"], row["last_offset"]) for row in rows] == [(0, 2), (3, 4)]
    last = rows[-1]
    assert (last["consumer"], last["group"], last["topic"]) == ("reader-1", "g", "orders")
    assert (last["producer_index"], last["first_record"], last["record_count"]) == (5, 103, 2)
    assert (last["high_watermark"], last["read_from"], last["leader_epoch"]) == (5, 1, 2)
    world.trace.digest()  # every row fits its table


def test_the_process_knows_its_position_and_what_it_committed():
    world = started()
    world.run(2 * SECOND)
    assert (world.consumer.position(P0), world.consumer.committed(P0)) == (-1, -1)
    world.run(12 * SECOND)
    assert world.consumer.assignment() == (P0,)
    assert (world.consumer.position(P0), world.consumer.committed(P0)) == (5, 5)
    assert world.broker.coordinator.committed("g", P0) == 5


def test_closing_leaves_the_group_and_ends_the_process():
    world = started()
    world.run(6 * SECOND)
    world.consumer.close()
    world.run(7 * SECOND)
    assert world.states() == ["started", "running", "stopped"]
    assert world.consumer.error is ErrorCode.NONE
    assert world.broker.coordinator.group("g").members == {}
    world.run(100 * SECOND)
    assert max(row[0] for rows in world.rows.values() for row in rows) < 7 * SECOND


def test_a_killed_process_leaves_the_group_only_when_its_session_ends():
    world = started()
    world.run(6 * SECOND)
    world.consumer.crash()
    world.run(40 * SECOND)
    assert len(world.broker.coordinator.group("g").members) == 1
    world.run(56 * SECOND)
    assert world.broker.coordinator.group("g").members == {}


def test_a_process_that_starts_again_is_a_new_member_and_reads_on():
    world = started(session_timeout_us=10 * SECOND)
    world.run(12 * SECOND)
    world.consumer.crash()
    world.consumer.start()
    world.run(40 * SECOND)
    ids = {row[Assignments.MEMBER_ID] for row in world.rows["assignments"]}
    assert len(ids) == 2
    assert world.consumer.position(P0) == 5
    assert [row[Reads.BASE_OFFSET] for row in world.rows["reads"]] == [0, 3]


def test_a_pause_longer_than_the_session_costs_the_membership():
    world = started(session_timeout_us=10 * SECOND)
    world.run(6 * SECOND)
    world.consumer.pause()
    world.run(30 * SECOND)
    assert world.broker.coordinator.group("g").members == {}
    world.consumer.resume()
    world.run(45 * SECOND)
    assert world.consumer.assignment() == (P0,)
    assert len({row[Assignments.MEMBER_ID] for row in world.rows["assignments"]}) == 2


def test_a_broker_that_restarts_is_found_again():
    world = started()
    world.run(6 * SECOND)
    world.broker.crash()
    world.run(8 * SECOND)
    world.broker.start()
    world.run(30 * SECOND)
    # Its coordinator has forgotten the group, so the member joins anew.
    assert world.consumer.assignment() == (P0,)
    assert world.states() == ["started", "running"]


@pytest.mark.parametrize("group", ["", "g"])
def test_a_poll_that_raises_ends_the_process(group):
    world = started(group_id=group, auto_offset_reset="none")
    world.run(10 * SECOND)
    assert world.consumer.error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert world.states()[-1] == "stopped"


def test_two_runs_of_one_seed_leave_the_same_trace():
    digests = []
    for _ in range(2):
        world = started()
        world.run(15 * SECOND)
        digests.append(world.trace.digest())
    assert digests[0] == digests[1]
