"""Not a test: stream tasks on the table-top cluster, with producers that acknowledge each round."""

from sim.ids import TopicPartition
from sim.protocol.clients.consumer.work import WorkEnded, WorkEnding, WorkTaken
from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from sim.protocol.streams.consumer import TaskConsumer, TaskPlan
from sim.trace.rows.clients import Revocations
from sim.units import MS, SECOND
from tests.protocol.coordinator.group_bench import Bench

PLACES = [TopicPartition("orders", number) for number in range(6)]
EAGER = {"partition_assignment_strategy": ("range",)}
COOPERATIVE = {"partition_assignment_strategy": ("cooperative-sticky",)}
MODERN = {"group_protocol": "consumer"}
FLUSH_US = 50 * MS
"""Time that the producers of the bench take to write what was made in a round."""


class Tasks(Bench):
    """Tasks whose producers acknowledge every round, after a while."""

    def __init__(self, *names, interval_us=60 * SECOND, way=COOPERATIVE, offsets="after", **plan):
        super().__init__({"orders": len(PLACES)})
        self.plan, self.way = TaskPlan(offsets, interval_us, **plan), way
        self.taken = []
        self.ends = []
        for name in names:
            self.task(name, 100 * MS)
        self.elect(1)

    def task(self, name, start_at, processing_us=0):
        self.consumer(
            name, start_at, TaskConsumer, (self.plan,),
            enable_auto_commit=False, processing_us=processing_us, auto_offset_reset="earliest",
            session_timeout_us=10 * SECOND, **self.way,
        )  # fmt: skip

    def perform(self, party, effect):
        if isinstance(effect, WorkTaken):
            self.taken += [(self.now, party.name, piece.partition) for piece in effect.pieces]
        elif isinstance(effect, WorkEnding):
            self.ends.append((self.now, party.name, effect))
            ended = WorkEnded(effect.round, ok=effect.commits)
            self.at(self.now + FLUSH_US, self.give, party, ended)
        else:
            super().perform(party, effect)

    def feed(self, until, but=()):
        """A record to each partition, ten times a second."""
        for at in range(self.now, until, 100 * MS):
            for place in [each for each in PLACES if each not in but]:
                self.at(at, self.produce, place, 1)

    def sent(self, kind, name, since=0):
        """Instants at which the coordinator got requests of a task, and the requests."""
        return [
            (at, what)
            for at, who, what in self.requests
            if who == name and at >= since and isinstance(what, kind)
        ]

    def rows_of(self, table, name):
        return [row for row in self.table(table) if row[Revocations.CONSUMER] == name]

    def worked(self, name, since, until):
        return [at for at, who, _ in self.taken if who == name and since <= at < until]

    def acknowledged(self, name, since):
        """Instants at which a task said what it reads (KIP-848), and that."""
        beats = self.sent(ConsumerGroupHeartbeatRequest, name, since)
        return [(at, what.owned) for at, what in beats if what.owned is not None]

    def read_twice(self):
        """Number of deliveries of a batch that had been delivered before."""
        offsets = [(piece.partition, piece.base_offset) for _, _, piece in self.delivered]
        return len(offsets) - len(set(offsets))
