"""Not a test: one coordinator of consumer groups whose writes a test settles."""

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition, uuid_text
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.log import AppendRecords, PartitionElected, RecordsAppended
from sim.protocol.effects import Emit, Reply
from sim.protocol.events import RequestReceived
from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from sim.protocol.messages.group import OffsetCommitRequest
from sim.protocol.metadata.image import MetadataImage
from sim.units import MINUTE

HOME = partition_for_group("g")


def places(*numbers):
    return tuple(TopicPartition("t", number) for number in numbers)


class Table:
    """One coordinator, whose writes are committed at once unless it is told otherwise."""

    def __init__(self, partitions=3, **config):
        self.image = MetadataImage()
        self.image.topic_ids = {"t": uuid_text("t")}
        self.image.topic_names = {uuid_text("t"): "t"}
        self.image.partition_counts = {"t": partitions}
        self.machine = GroupCoordinator(
            1, 1, GroupConfig(append_linger_us=0, **config), lambda: self.image
        )
        self.log = []
        self.rows = []
        self.holds_writes = False
        self.error = ErrorCode.NONE
        self.answers = {}
        self.open = []
        self.give(PartitionElected(HOME, 0, ()), 0)
        self._token = 0

    def give(self, event, now):
        for effect in self.machine.handle(event, now):
            if isinstance(effect, Reply):
                self.answers[effect.token] = effect.response
            elif isinstance(effect, Emit):
                self.rows.append((effect.table, *effect.row))
            elif isinstance(effect, AppendRecords):
                self.open.append(effect)
        while self.open and not self.holds_writes:
            self.settle(now)

    def settle(self, now, error=None):
        effect = self.open.pop(0)
        error = self.error if error is None else error
        if error is ErrorCode.NONE:
            self.log += effect.records
        self.give(RecordsAppended(effect.token, error), now)

    def ask(self, request, now=0):
        self._token += 1
        self.give(RequestReceived(self._token, request.member_id, request), now)
        return self.answers.get(self._token)

    def beat(self, member, epoch, owned=None, now=0, **more):
        return self.ask(ConsumerGroupHeartbeatRequest("g", member, epoch, owned=owned, **more), now)

    def join(self, member, now=0, **more):
        said = {"rebalance_timeout_us": 5 * MINUTE, "topics": ("t",)} | more
        return self.beat(member, 0, (), now, **said)

    def commit(self, member, epoch, offset=5):
        offsets = ((TopicPartition("t", 0), offset, 0),)
        return self.ask(OffsetCommitRequest("g", member, epoch, offsets)).error

    @property
    def group(self):
        return self.machine.consumer_group("g")


def settled_pair():
    """a and b, reconciled: a has 0 and 1, b has 2; the group is in epoch 2."""
    table = Table()
    table.join("a")
    table.beat("a", 1, places(0, 1, 2))
    table.join("b")
    table.beat("a", 1)
    table.beat("a", 1, places(0, 1))
    table.beat("b", 2)
    return table
