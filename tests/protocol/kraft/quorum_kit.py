"""A quorum machine with a log of one-record batches, for tests that go event by event."""

from types import SimpleNamespace

from sim.error_codes import ErrorCode as E
from sim.protocol.effects import Reply, Send, SetTimer
from sim.protocol.events import RequestReceived, ResponseReceived, TimerFired
from sim.protocol.kraft.log import LoggedRecord
from sim.protocol.kraft.raft import Quorum
from sim.protocol.kraft.types import (
    AppendMetadata,
    QuorumConfig,
    QuorumStarted,
    QuorumState,
    Role,
)
from sim.protocol.messages.quorum import QuorumFetchRequest, VoteRequest, VoteResponse
from sim.protocol.metadata.records import NoOpRecord
from sim.protocol.ports import NO_EPOCH_END, EpochEnd

ME, B, C = 3001, 3002, 3003
VOTERS = (ME, B, C)
MS, SECOND = 1_000, 1_000_000
FRESH = QuorumState()


class WithoutSnapshots:
    """A log that has no snapshots and keeps everything."""

    log_start_offset = 0
    earliest_snapshot = latest_snapshot = None

    def bytes_between(self, start, end):
        return 72 * (end - start)

    def snapshot_part(self, snapshot, position, max_bytes):
        return None

    def clean(self, now_ms):
        pass


class OneRecordLog(WithoutSnapshots):
    """A log of one-record batches; the entry's epoch is all that is looked at."""

    def __init__(self, *epochs):
        self.entries = [(epoch, NoOpRecord()) for epoch in epochs]

    @property
    def log_end_offset(self):
        return len(self.entries)

    @property
    def latest_epoch(self):
        return self.entries[-1][0] if self.entries else 0

    def append_records(self, records, epoch, now_ms):
        self.entries += [(epoch, record) for record in records]
        return len(self.entries)

    def records_bytes(self, records):
        return 72 * len(records)

    def append_batches(self, batches):
        for batch in batches:
            assert batch.base_offset == len(self.entries)
            self.entries.append((batch.leader_epoch, NoOpRecord()))

    def read(self, start, max_bytes):
        return tuple(batch(i, self.entries[i][0]) for i in range(start, len(self.entries)))

    def records_between(self, start, end):
        return tuple(LoggedRecord(i, *self.entries[i]) for i in range(start, end))

    def end_offset_for_epoch(self, epoch):
        ends = [(e, i + 1) for i, (e, _) in enumerate(self.entries) if e <= epoch]
        return EpochEnd(*ends[-1]) if ends else NO_EPOCH_END

    def truncate_to(self, offset):
        del self.entries[offset:]


def batch(offset, epoch):
    return SimpleNamespace(
        base_offset=offset, last_offset=offset, leader_epoch=epoch, size_bytes=72
    )


class Member:
    """A machine with a log, and a memory of what it asked for last."""

    def __init__(self, *epochs, state=FRESH, voters=VOTERS, node=ME, unit=lambda: 0.0, **config):
        self.log = OneRecordLog(*epochs)
        settings = QuorumConfig(**config)
        self.quorum = Quorum(node, voters, self.log, unit, config=settings, state=state)
        self.now = 0
        self.tokens = 0
        self.sent = []
        self.timers = {}
        self.feed(QuorumStarted())

    def feed(self, event):
        self.out = self.quorum.handle(event, self.now)
        self.sent += [e for e in self.out if isinstance(e, Send)]
        self.timers |= {e.name: e.at for e in self.out if isinstance(e, SetTimer)}
        return self.out

    def ask(self, request):
        self.tokens += 1
        self.feed(RequestReceived(self.tokens, "x", request))
        return next(
            (e.response for e in self.out if isinstance(e, Reply) and e.token == self.tokens), None
        )

    def answer(self, to, response, of=None):
        sent = next(
            s
            for s in reversed(self.sent)
            if s.to == to and (of is None or isinstance(s.request, of))
        )
        return self.feed(ResponseReceived(to, sent.correlation, response))

    def fire(self, name="role"):
        self.now = max(self.now, self.timers[name])
        return self.feed(TimerFired(name))

    def of(self, kind):
        return [e for e in self.out if isinstance(e, kind)]

    @property
    def role(self):
        return self.quorum.role


def vote(candidate=B, epoch=5, last=(4, 10), *, pre_vote=False):
    return VoteRequest(candidate, epoch, *last, pre_vote)


def fetch(replica, epoch, offset, last_epoch, hw=0):
    return QuorumFetchRequest(replica, epoch, offset, last_epoch, hw, 500 * MS)


def candidate(*epochs, **config):
    member = Member(*epochs, **config)
    member.fire()
    member.answer(B, VoteResponse(E.NONE, True, -1, member.quorum.epoch), VoteRequest)
    assert member.role is Role.CANDIDATE
    return member


def leader(*epochs, **config):
    member = candidate(*epochs, **config)
    member.answer(B, VoteResponse(E.NONE, True, -1, member.quorum.epoch), VoteRequest)
    assert member.role is Role.LEADER
    return member


def follower(*epochs, epoch=5):
    return Member(*epochs, state=QuorumState(epoch, B, -1))


def append(member, *records, epoch=1, after=0):
    """What the active controller does; ``after``: records that wait to be written already."""
    base = member.log.log_end_offset + after
    return member.feed(AppendMetadata(epoch, base, records or (NoOpRecord(),), member.now))


def active(**config):
    """A leader whose epoch is committed; B is at the log end."""
    member = leader(**config)
    member.ask(fetch(B, 1, 1, 1))
    return member
