"""Three quorum machines under delays, losses, crashes and power cuts, from a seed.

The host of this harness is as bad as it may be: an fsync takes time, a crash may fall between two
effects, a power cut takes what was not flushed, messages are late, lost or answered too late.
"""

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field, replace

from sim.error_codes import ErrorCode
from sim.protocol import effects as fx
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.kraft.log import LoggedRecord
from sim.protocol.kraft.raft import Quorum
from sim.protocol.kraft.types import (
    AppendMetadata,
    Committed,
    Halt,
    LeadershipChanged,
    PersistQuorumState,
    QuorumConfig,
    QuorumStarted,
    QuorumState,
    Role,
    SnapshotLoaded,
    VotersProposed,
)
from sim.protocol.kraft.voter_set import DynamicMember
from sim.protocol.messages.quorum import FetchSnapshotRequest
from sim.protocol.messages.voters import AddRaftVoterRequest, RemoveRaftVoterRequest
from sim.protocol.metadata.records import ConfigRecord, Voter
from tests.protocol.kraft.list_metadata_log import ListMetadataLog

VOTERS = (3001, 3002, 3003)
MEMBERS = (*VOTERS, 3004, 3005)
"""Of a dynamic quorum, which begins with the first three as voters."""
SECOND = 1_000_000
SLICED = tuple(
    QuorumConfig(fetch_max_bytes=700, snapshot_max_bytes=700, append_linger_us=us)
    for us in (0, 25_000)
)
"""Snapshots take several requests; the controller's records wait, or do not, by turns of seeds."""


@dataclass
class Member:
    """A process, its disk, and what its disk has not flushed."""

    node: int
    log: ListMetadataLog = field(default_factory=ListMetadataLog)
    flushed: int = 0
    state: QuorumState = field(default_factory=QuorumState)
    machine: Quorum | None = None
    incarnation: int = 0
    busy: bool = False
    paused_until: int = 0
    backlog: list = field(default_factory=list)
    leading: tuple | None = None
    votes: dict = field(default_factory=dict)
    committed: int = 0
    wiped: int = 0

    @property
    def key(self):
        """Its id and its disk."""
        return Voter(self.node, f"{self.node}/{self.wiped}")


class Broken(Exception):
    """A promise of the quorum did not hold."""


class Cluster:
    """The event loop, the network, and the promises, checked after every event."""

    def __init__(
        self,
        seed,
        *,
        machine=Quorum,
        remembers_vote=True,
        faults=True,
        spite=False,
        snapshots=False,
        dynamic=False,
        wakes_on_commit=True,
    ):
        # With spite, a member often dies just after it granted a vote, and is back at once;
        # and messages are slow.
        self.chance = random.Random(seed)
        self.config = replace(SLICED[seed % 2], wakes_on_commit=wakes_on_commit)
        self.machine, self.remembers_vote = machine, remembers_vote
        # With snapshots, members often drop all that they were told of, and keep a snapshot.
        self.faults, self.spite, self.snapshots = faults, spite, snapshots
        self.now = 0
        self.queue = []
        self.count = 0
        self.members = {n: Member(n) for n in (MEMBERS if dynamic else VOTERS)}
        # In a dynamic quorum disks are lost as well, and an administrator adds and removes voters.
        self.dynamic = dynamic
        if dynamic:
            initial = tuple(self.members[n].key for n in VOTERS)
            for n in VOTERS:
                self.members[n].log = ListMetadataLog(initial)
        self.cut = {}
        self.leaders = {}
        self.granted = {}
        self.committed = []
        self.saw = Counter()
        self.halts = []
        self.tokens = 0
        self.replies = {}
        self.asked = {}
        for member in self.members.values():
            self.at(self.chance.randrange(100_000), self.start, member)

    def at(self, delay, fn, *args):
        self.count += 1
        heapq.heappush(self.queue, (self.now + delay, self.count, fn, args))

    def start(self, member):
        if member.machine is not None:
            return
        state = member.state
        if not self.remembers_vote:
            state = QuorumState(state.epoch)
        member.incarnation += 1
        member.busy, member.backlog, member.leading, member.committed = False, [], None, 0
        member.machine = self.machine(
            member.node,
            () if self.dynamic else VOTERS,
            member.log,
            self.chance.random,
            config=self.config,
            state=state,
            dynamic=DynamicMember(member.key.directory, MEMBERS, always_flushes=True)
            if self.dynamic
            else None,
        )
        self.deliver(member, QuorumStarted())

    def crash(self, member, *, power):
        if member.machine is None:
            return
        self.saw["power cut" if power else "crash"] += 1
        if power:
            end = member.log.log_end_offset
            member.log.truncate_to(self.chance.randint(min(member.flushed, end), end))
        member.machine = None
        member.incarnation += 1
        self.at(
            self.chance.randrange(SECOND // 50 if self.spite else 4 * SECOND), self.start, member
        )

    def deliver(self, member, event):
        if member.machine is None:
            return
        if member.busy:
            member.backlog.append(event)
            return
        before = member.machine.role
        effects = member.machine.handle(event, self.now)
        if member.machine.role is not before and member.machine.role is Role.LEADER:
            self.elected(member)
        stands = (member.machine.epoch, member.node)
        if stands == (member.state.epoch, member.state.voted_for):  # durable: it may be told
            self.voted(member.key, member.machine.epoch, member.key)
        self.perform(member, effects, 0)

    def later(self, member, delay, fn, *args):
        incarnation = member.incarnation
        self.at(delay, lambda: fn(*args) if member.incarnation == incarnation else None)

    def perform(self, member, effects, index):
        for position in range(index, len(effects)):
            effect = effects[position]
            match effect:
                case fx.Send():
                    self.send(member, effect)
                case fx.Reply():
                    self.reply(member, effect)
                case fx.SetTimer():
                    key = ("timer", effect.name)
                    member.votes[key] = effect.at
                    self.later(
                        member,
                        max(0, effect.at - self.now),
                        self.fire,
                        member,
                        effect.name,
                        effect.at,
                    )
                case fx.CancelTimer():
                    member.votes[("timer", effect.name)] = None
                case PersistQuorumState() | fx.Flush():
                    member.busy = True
                    self.later(
                        member,
                        self.chance.randrange(100, 20_000),
                        self.durable,
                        member,
                        effects,
                        position,
                        member.log.log_end_offset,
                    )
                    return
                case Committed():
                    self.commit(member, effect)
                case SnapshotLoaded():
                    self.load(member, effect)
                case LeadershipChanged():
                    member.leading = (
                        (effect.epoch, effect.log_end_offset) if effect.is_leader else None
                    )
                    if effect.is_leader:
                        self.saw["active"] += 1
                        self.later(member, 1000, self.append, member, effect.epoch)
                case VotersProposed():
                    self.write(member, effect.epoch, (effect.record,))
                case Halt():
                    self.halts.append((self.now, member.node, effect.reason))
                    raise Broken(effect.reason)
        member.busy = False
        while member.backlog and not member.busy and member.machine is not None:
            self.deliver(member, member.backlog.pop(0))

    def durable(self, member, effects, position, end):
        effect = effects[position]
        if isinstance(effect, PersistQuorumState):
            member.state = effect.state
        else:
            member.flushed = min(end, member.log.log_end_offset)
        self.perform(member, effects, position + 1)

    def fire(self, member, name, at):
        if member.votes.get(("timer", name)) == at:
            member.votes[("timer", name)] = None
            self.deliver(member, TimerFired(name))

    def append(self, member, epoch):
        if member.leading is None or member.leading[0] != epoch:
            return
        base = member.leading[1]
        records = tuple(
            ConfigRecord(2, "t", "k", f"{epoch}/{base + i}")
            for i in range(self.chance.randint(1, 3))
        )
        self.write(member, epoch, records)
        self.later(member, self.chance.randrange(10_000, 300_000), self.append, member, epoch)

    def write(self, member, epoch, records):
        """What the active controller does: it gives out the offsets of its epoch."""
        if member.leading is not None and member.leading[0] == epoch:
            base = member.leading[1]
            member.leading = (epoch, base + len(records))
            event = AppendMetadata(epoch, base, records, self.now)
            self.later(member, 0, self.deliver, member, event)

    def lost(self, a, b):
        return self.cut.get((a, b), 0) > self.now or (self.faults and self.chance.random() < 0.03)

    def delay(self):
        if self.spite:
            return self.chance.randrange(1_000, 500_000)
        return (
            self.chance.randrange(200, 2_000)
            if self.chance.random() < 0.9
            else self.chance.randrange(2_000, 400_000)
        )

    def send(self, member, effect):
        if isinstance(effect.request, FetchSnapshotRequest):
            self.saw["snapshot fetched" if effect.request.position == 0 else "next slice"] += 1
        peer = self.members[effect.to]
        token = self.tokens = self.tokens + 1
        self.replies[token] = (member, member.incarnation, effect.correlation, effect.request)
        self.later(member, effect.timeout_us, self.fail, member, token, effect.to)
        if not self.lost(member.node, effect.to):
            event = RequestReceived(token, str(member.node), effect.request)
            self.at(self.delay(), self.arrive, peer, event, token)

    def arrive(self, peer, event, token):
        if peer.machine is None:
            asker = self.replies[token][0]
            self.later(asker, 500, self.fail, asker, token, peer.node)
        else:
            self.deliver(peer, event)

    def fail(self, member, token, to):
        asked = self.replies.pop(token, None)
        if asked is not None and asked[1] == member.incarnation:
            self.deliver(member, RequestFailed(to, asked[2], ErrorCode.REQUEST_TIMED_OUT))

    def reply(self, member, effect):
        asked = self.replies.get(effect.token)
        if effect.token in self.asked:
            self.saw[f"{type(effect.response).__name__[:3]} {effect.response.error.name}"] += 1
        if asked is not None and getattr(effect.response, "granted", False):
            if not asked[3].pre_vote:
                self.voted(member.key, asked[3].epoch, self.members[asked[3].candidate].key)
            if self.spite and self.chance.random() < 0.5:
                self.at(0, lambda: self.crash(member, power=False))
        if asked is None or self.lost(member.node, asked[0].node):
            return
        self.at(self.delay(), self.answer, effect, member.node)

    def answer(self, effect, sender):
        asked = self.replies.pop(effect.token, None)
        if asked is not None and asked[0].incarnation == asked[1]:
            self.deliver(asked[0], ResponseReceived(sender, asked[2], effect.response))

    # -- promises

    def voted(self, voter, epoch, candidate):
        if self.granted.setdefault((voter, epoch), candidate) != candidate:
            raise Broken(f"{voter} voted twice in epoch {epoch}")

    def elected(self, member):
        epoch = member.machine.epoch
        self.saw["elected"] += 1
        if self.leaders.setdefault(epoch, member.node) != member.node:
            raise Broken(f"two leaders in epoch {epoch}")
        mine = [tuple(r) for r in member.log.whole()]
        for offset, entry in enumerate(self.committed):
            if offset >= len(mine) or mine[offset] != entry:
                raise Broken(f"leader of epoch {epoch} lacks committed offset {offset}")

    def commit(self, member, effect):
        if effect.base_offset != member.committed:
            raise Broken("commits are told out of order")
        member.committed = effect.end_offset
        assert len(effect.records) == effect.end_offset - effect.base_offset
        machine = member.machine
        if machine.role is Role.LEADER and effect.records[-1].epoch != machine.epoch:
            raise Broken("a leader commits an earlier epoch's record before one of its own")
        for record in effect.records:
            offset = record.offset
            if offset < len(self.committed):
                if self.committed[offset] != tuple(record):
                    raise Broken(f"committed offset {offset} changed")
            else:
                self.committed.append(tuple(record))
                self.saw["committed"] += 1

        if self.snapshots and self.chance.random() < 0.1:
            told = tuple(LoggedRecord(*entry) for entry in self.committed[: member.committed])
            member.log.take_snapshot(member.committed, told)

    def load(self, member, effect):
        if effect.snapshot.offset <= member.committed:
            raise Broken("a snapshot takes a member back")
        if [tuple(r) for r in effect.records] != self.committed[: effect.snapshot.offset]:
            raise Broken("a snapshot is not what was committed below it")
        member.committed = effect.snapshot.offset
        member.flushed = max(member.flushed, effect.snapshot.offset)
        self.saw["snapshot loaded"] += 1

    def logs_match(self):
        logs = [m.log.whole() for m in self.members.values()]
        for a in logs:
            for b in logs:
                same = [i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x.epoch == y.epoch]
                if same and a[: same[-1] + 1] != b[: same[-1] + 1]:
                    raise Broken("logs do not match below a common (offset, epoch)")

    def disturb(self, until, *, power):
        """Plan faults up to the instant: crashes, power cuts of one member at a time, cuts."""
        at = SECOND
        while at < until:
            at += self.chance.randrange(SECOND // 2, 3 * SECOND)
            member = self.members[self.chance.choice(VOTERS)]
            kind = self.chance.random()
            if kind < 0.6:
                self.at(at, lambda m=member: self.crash(m, power=False))
            elif kind < 0.75 and power:
                self.at(at, lambda m=member: self.crash(m, power=True))
            else:
                peer = self.chance.choice(VOTERS)
                length = self.chance.randrange(SECOND, 6 * SECOND)
                self.at(
                    at,
                    lambda a=member.node, b=peer, n=length: self.cut.update(
                        {(a, b): self.now + n, (b, a): self.now + n}
                    ),
                )

    def change_voters(self, until):
        """Plan lost disks, and an administrator who adds and removes voters as they come."""
        at = SECOND
        while at < until:
            at += self.chance.randrange(SECOND // 4, SECOND)
            member = self.members[self.chance.choice(MEMBERS)]
            if self.chance.random() < 0.06:
                self.at(at, self.wipe, member)
            else:
                self.at(at, self.administer, member)

    def wipe(self, member):
        """A member comes back with an empty disk, formatted anew."""
        self.saw["wiped"] += 1
        self.crash(member, power=False)
        member.wiped += 1
        member.log, member.state, member.flushed = ListMetadataLog(), QuorumState(), 0

    def administer(self, member):
        """Every leader there is is asked to let a member vote, or not to."""
        for leader in self.members.values():
            machine = leader.machine
            if machine is not None and machine.role is Role.LEADER:
                held = [v for v in machine.history.latest if v.node == member.node]
                # A lone voter commits what it has not synced, in Kafka as well: two are kept.
                if held and len(machine.history.latest) < 3:
                    continue
                if held:
                    request = RemoveRaftVoterRequest(*held[0])
                else:
                    request = AddRaftVoterRequest(*member.key)
                self.tokens += 1
                self.asked[self.tokens] = None
                self.deliver(leader, RequestReceived(self.tokens, "admin", request))

    def run(self, until):
        while self.queue and self.queue[0][0] <= until:
            self.now, _, fn, args = heapq.heappop(self.queue)
            fn(*args)
        self.now = until
        self.logs_match()
        return self


def swarm(seeds, seconds=20, **how):
    """Run the seeds; the promises broken, by seed."""
    broken = {}
    saw = Counter()
    for seed in seeds:
        cluster = Cluster(seed, **how)
        cluster.disturb(seconds * SECOND, power=True)
        if cluster.dynamic:
            cluster.change_voters(seconds * SECOND)
        try:
            cluster.run(seconds * SECOND)
        except Broken as error:
            broken[seed] = str(error)
        saw.update(cluster.saw)
    return broken, saw
