"""An active controller with a quorum that commits at once, or when told to."""

import random

from sim.error_codes import ErrorCode as E
from sim.ids import TopicPartition
from sim.protocol.controller.controller import Controller
from sim.protocol.controller.types import CommittedRows, ControllerConfig
from sim.protocol.effects import CancelTimer, Reply, Send, SetTimer
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.kraft.log import LoggedRecord
from sim.protocol.kraft.types import AppendMetadata, Committed, LeadershipChanged
from sim.protocol.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    NewTopic,
)
from sim.protocol.metadata.records import LeaderChangeMessage

SECOND = 1_000_000
ORDERS = TopicPartition("orders", 0)


class Desk:
    """A controller whose quorum commits at once, or when told to."""

    def __init__(self, brokers=3, **config):
        self.controller = Controller(3001, random.Random(1).random, ControllerConfig(**config))
        self.now = 0
        self.epoch = 1
        self.replies = {}
        self.facts = []
        self.sends = []
        self.timers = {}
        self.token = 0
        self.appended = []
        self.commits = True
        self.feed(Committed(0, 1, (LoggedRecord(0, 1, LeaderChangeMessage(3001, (3001,), ())),)))
        self.feed(LeadershipChanged(1, 3001, is_leader=True, log_end_offset=1))
        self.epochs = {}
        for broker in range(1, brokers + 1):
            self.join(broker)

    def feed(self, event):
        for effect in self.controller.handle(event, self.now):
            match effect:
                case AppendMetadata():
                    self.appended.append(effect)
                case Reply():
                    self.replies[effect.token] = effect.response
                case Send():
                    self.sends.append(effect)
                case SetTimer():
                    self.timers[effect.name] = effect.at
                case CancelTimer():
                    self.timers.pop(effect.name, None)
                case CommittedRows():
                    self.facts.extend(effect.rows)
        if self.commits:
            self.commit()

    def commit(self):
        appended, self.appended = self.appended, []
        for batch in appended:
            end = batch.base_offset + len(batch.records)
            records = tuple(
                LoggedRecord(batch.base_offset + i, batch.epoch, record)
                for i, record in enumerate(batch.records)
            )
            self.feed(Committed(batch.base_offset, end, records))

    def ask(self, request):
        self.token += 1
        self.feed(RequestReceived(self.token, "broker", request))
        return self.replies.get(self.token)

    def register(self, broker, incarnation="a", previous=-1):
        request = BrokerRegistrationRequest(broker, incarnation, "", previous, (f"dir-{broker}",))
        answer = self.ask(request)
        if answer is not None and answer.error is E.NONE:
            self.epochs[broker] = answer.broker_epoch
        return answer

    def beat(self, broker, *, want_fence=False, want_shut_down=False, offset=None, epoch=None):
        offset = self.controller.image.offset - 1 if offset is None else offset
        epoch = self.epochs[broker] if epoch is None else epoch
        return self.ask(BrokerHeartbeatRequest(broker, epoch, offset, want_fence, want_shut_down))

    def join(self, broker, **how):
        self.register(broker, **how)
        return self.beat(broker)

    def create(
        self, name="orders", assignment=((1, 2, 3),), configs=(("min.insync.replicas", "2"),)
    ):
        return self.ask(CreateTopicsRequest((NewTopic(name, 0, 0, configs, assignment),)))

    def state(self, partition=ORDERS):
        return self.controller.image.partitions[partition]

    def pass_time(self, until, alive=()):
        """Fire timers up to the instant; the brokers named beat every two seconds."""
        beat = self.now
        while True:
            name = min(self.timers, key=lambda n: (self.timers[n], n))
            at = min(self.timers[name], beat if alive else until + 1)
            if at > until:
                self.now = until
                return
            self.now = max(self.now, at)
            if alive and at == beat:
                beat += 2 * SECOND
                for broker in alive:
                    self.beat(broker)
            else:
                del self.timers[name]
                self.feed(TimerFired(name))
