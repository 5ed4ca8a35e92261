"""A partition's Raft group as a search sees it: frozen members, messages, the next state.

The machines are the real ``RaftGroup``s over ``ListLog``s. Time stands still, and an election
timeout is zero: who stands for election, and when, is the search's choice, without asking first
(pre-vote only forbids). A vote is durable as soon as it is given, as its effect stands before the
answer; a log is durable when the search lets the fsync end. Where a target is given, every member
knows it, and whoever leads goes on towards it as soon as it may.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sim.ids import TopicPartition
from sim.protocol.broker.raft_storage import CommittedMembership, Membership
from sim.protocol.messages.raft_groups import (
    RaftAppendRequest,
    RaftTimeoutNowRequest,
    RaftVoteRequest,
)
from sim.protocol.metadata.image import PartitionRegistration
from sim.protocol.raft_groups import types as rs
from sim.protocol.raft_groups.group import RaftGroup
from sim.protocol.raft_groups.replica import RaftReplica
from tests.explore.world import Violation
from tests.log.list_log import ListBatch, ListLog
from tests.protocol.raft_groups.raft_kit import ListRecords, membership_at, number_of

P = TopicPartition("orders", 0)
NOW = 0
NODES = (1, 2, 3)
OPENING = 0
"""The record with which a leader opens its term."""

CONFIG = rs.RaftConfig(
    heartbeat_interval_us=1, election_timeout_us=0, append_bytes_max=1, recovery_bytes_max=1
)
"""One batch with each append, so that a majority may have the older of two and not the newer."""


class Bounds(NamedTuple):
    """How far the search goes."""

    terms: int = 2
    records: int = 1
    kills: int = 0
    losses: int = 0
    """Of power: what was not flushed is gone."""
    instant: bool = True
    """A request is answered as soon as it arrives, and an fsync takes no time."""
    nodes: tuple[int, ...] = NODES
    founders: tuple[int, ...] = NODES
    target: tuple[int, ...] = ()
    """Members in the end; nobody: they do not change."""


class Disk(NamedTuple):
    """What a process leaves behind."""

    records: tuple[tuple[int, int], ...] = ()
    """(term, record)."""
    durable: int = 0
    vote: rs.RaftVote = rs.RaftVote()
    high_watermark: int = 0


class Member(NamedTuple):
    """One member between two steps."""

    machine: int
    """Number of the machine's state; -1 if the process does not run."""
    disk: Disk
    flush: tuple[int, int] | None = None
    """The fsync under way: up to where, and of which generation."""


class State(NamedTuple):
    """Everything."""

    members: tuple[Member, ...]
    wire: tuple[int, ...]
    """Numbers of what is on its way, in rising order: see ``MESSAGES``."""
    left: tuple[int, int, int]
    """Records, kills and losses of power that may still happen."""
    committed: tuple[tuple[int, int], ...] = ()
    """The longest prefix that any leader called committed."""
    leaders: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Machine:
    """What is known of one state of a machine."""

    key: tuple
    blob: bytes
    role: rs.RaftRole
    term: int
    commit: int
    may_send: bool


class _Unit:
    def __call__(self) -> float:
        return 0.0


class Records(ListRecords):
    """A record's number says which membership it holds: OPENING the founders', below it another."""

    def __init__(self, founders):
        self.founders = Membership(founders)

    def configuration(self, membership, now_ms):
        known = OPENING if membership == self.founders else number_of(membership)
        return ListBatch(is_control=True, crc=known)

    def membership_of(self, batch):
        return self.founders if batch.crc == OPENING else membership_at(batch.crc)


class RaftWorld:
    """The successors of a state; ``view`` and ``ids`` are for the properties."""

    def __init__(self, bounds: Bounds, rules: rs.RaftRules = rs.RULES) -> None:
        self.bounds = bounds
        self.rules = rules
        self.nodes = bounds.nodes
        self.records = Records(bounds.founders)
        self.machines: list[Machine] = []
        self._numbers: dict[tuple, int] = {}
        self._steps: dict[tuple, tuple] = {}

    def initial(self) -> State:
        bounds = self.bounds
        members = tuple(self._start(node, Disk()) for node in self.nodes)
        return State(members, (), (bounds.records, bounds.kills, bounds.losses))

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        for index, member in enumerate(state.members):
            node = self.nodes[index]
            if member.machine < 0:
                started = self._start(node, member.disk)
                yield f"{node} starts", self._with(state, index, started)
                continue
            yield from self._of(state, index, node, member, self.machines[member.machine])
        for number in state.wire:
            yield self._deliver(state, number)

    def _of(self, state, index, node, member, machine) -> Iterator[tuple[str, State]]:
        records, kills, losses = state.left
        if machine.role is rs.RaftRole.LEADER:
            if records:
                left = (records - 1, kills, losses)
                after = state._replace(left=left)
                event = ("write", self.bounds.records - records + 1)
                yield self._step(after, index, event, f"{node} writes record {event[1]}")
            if machine.may_send:
                yield self._step(state, index, ("look",), f"{node} looks after its followers")
        elif machine.term < self.bounds.terms:
            term = machine.term + 1
            yield self._step(state, index, ("stand",), f"{node} stands in term {term}")
        if member.flush is not None:
            yield self._step(state, index, ("flushed", *member.flush), f"{node} has flushed")
        if kills:
            after = state._replace(left=(records, kills - 1, losses))
            yield f"{node} is killed", self._down(after, index, member.disk)
        if losses:
            disk = member.disk
            kept = disk._replace(
                records=disk.records[: disk.durable],
                high_watermark=min(disk.high_watermark, disk.durable),
            )
            after = state._replace(left=(records, kills, losses - 1))
            yield f"{node} loses power", self._down(after, index, kept)

    def _down(self, state: State, index: int, disk: Disk) -> State:
        node = self.nodes[index]
        wire = [n for n in state.wire if MESSAGES[n][1] != node or MESSAGES[n][3] is not None]
        group = pickle.loads(self.machines[state.members[index].machine].blob)
        # What it has not answered, its leader will learn is lost.
        wire += [_numbered((node, *TOKENS[p.token], None)) for p in group._open_appends]
        state = state._replace(wire=tuple(sorted(wire)))
        return self._with(state, index, Member(-1, disk))

    def _deliver(self, state: State, number: int) -> tuple[str, State]:
        to, sender, request, answer = MESSAGES[number]
        state = state._replace(wire=tuple(n for n in state.wire if n != number))
        index = self.nodes.index(to)
        if state.members[index].machine < 0:
            if answer is not None or not isinstance(request, RaftAppendRequest):
                return f"a message to {to} is lost", state
            other = self.nodes.index(sender)
            if state.members[other].machine < 0:
                return f"a message to {to} is lost", state
            event = ("failed", to, request.append)
            return self._step(state, other, event, f"{sender} does not reach {to}")
        if answer is None:
            words = f"{to} is asked by {sender}: {_words(request)}"
            return self._step(state, index, ("request", sender, request), words)
        words = f"{to} has the answer of {sender}"
        return self._step(state, index, ("answer", sender, request, answer), words)

    # -- machines ---------------------------------------------------------------------------------

    def _start(self, node: int, disk: Disk) -> Member:
        log = ListLog()
        log.batches = [
            ListBatch(base_offset=at, leader_epoch=term, crc=record, is_control=record <= OPENING)
            for at, (term, record) in enumerate(disk.records)
        ]
        log.log_end_offset = len(disk.records)
        for at, (term, _) in enumerate(disk.records):
            log._assign(term, at)
        replica = RaftReplica(P, node, log, disk.high_watermark)
        bounds, records = self.bounds, self.records
        replica.adopt(PartitionRegistration("id", bounds.nodes, bounds.nodes, -1, 0, 0))
        said = tuple(
            CommittedMembership(batch.base_offset, records.membership_of(batch))
            for batch in log.batches
            if batch.is_control
        )
        memory = rs.PersistedState(disk.vote, later=said)
        founders = bounds.founders if node in bounds.founders else ()
        group = RaftGroup(replica, founders, CONFIG, records, _Unit(), memory, self.rules)
        group.target = bounds.target
        return Member(self._number(group), disk)

    def _number(self, group: RaftGroup) -> int:
        key = key_of(group)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.machines)
            may_send = any(
                not f.open
                and (
                    f.next_offset < group.replica.log.log_end_offset or f.flushed < group.quorum_end
                )
                for f in group.followers.values()
            )
            may_send |= bool(group.target) and group.membership != Membership(group.target)
            blob = pickle.dumps(group, 5)
            self.machines.append(Machine(key, blob, group.role, group.term, group.commit, may_send))
        return number

    def _step(self, state: State, index: int, event: tuple, words: str) -> tuple[str, State]:
        member = state.members[index]
        known = self._steps.get((member.machine, event))
        if known is None:
            group = pickle.loads(self.machines[member.machine].blob)
            effects = _perform(group, event)
            led = any(isinstance(e, rs.Led) for e in effects)
            if led:
                effects += group.open_term(NOW)
            while self.bounds.instant and (due := _flush_of(effects)) is not None:
                effects.remove(due)
                effects += group.flushed(due.up_to, due.generation, NOW)
            due = _flush_of(effects)
            flush = None if due is None else (due.up_to, due.generation)
            asks = tuple((e.to, e.request) for e in effects if isinstance(e, rs.SendToMember))
            answers = tuple(
                (e.token, e.response) for e in effects if isinstance(e, rs.ReplyToMember)
            )
            votes = [e.vote for e in effects if isinstance(e, rs.PersistVote)]
            known = self._steps[member.machine, event] = (
                self._number(group),
                _records(group),
                group.flushed_end,
                group.replica.high_watermark,
                votes[-1] if votes else None,
                flush,
                asks,
                answers,
                led,
            )
        number, records, durable, visible, vote, flush, asks, answers, led = known
        disk = Disk(records, durable, vote or member.disk.vote, visible)
        flushing = None if event[0] == "flushed" else member.flush
        state = self._with(state, index, Member(number, disk, flush or flushing))
        state = self._told(state, index, event, asks, answers)
        return words, self._judged(state, index, led, words)

    def _told(self, state, index, event, asks, answers) -> State:
        """Put what was said on the wire; ``token`` of an answer tells which request it is of."""
        node = self.nodes[index]
        wire = [*state.wire, *(_numbered((to, node, request, None)) for to, request in asks)]
        for token, response in answers:
            sender, request = TOKENS[token]
            wire.append(_numbered((sender, node, request, response)))
        state = state._replace(wire=tuple(sorted(dict.fromkeys(wire))))
        if self.bounds.instant:
            for number in state.wire:
                if MESSAGES[number][3] is not None:
                    state = self._deliver(state, number)[1]
        return state

    def _judged(self, state: State, index: int, led: bool, words: str) -> State:
        member = state.members[index]
        machine = self.machines[member.machine]
        if led:
            leaders = dict(state.leaders)
            node = self.nodes[index]
            if leaders.setdefault(machine.term, node) != node:
                raise Violation("election safety", f"two leaders in term {machine.term}", words)
            state = state._replace(leaders=tuple(sorted(leaders.items())))
        if machine.role is rs.RaftRole.LEADER and machine.commit > len(state.committed):
            state = state._replace(committed=member.disk.records[: machine.commit])
        return state

    def _with(self, state: State, index: int, member: Member) -> State:
        members = (*state.members[:index], member, *state.members[index + 1 :])
        return state._replace(members=members)


MESSAGES: list[tuple] = []
"""(to, from, request, answer or None), by number."""
_MESSAGE_NUMBERS: dict[tuple, int] = {}


def _numbered(message: tuple) -> int:
    number = _MESSAGE_NUMBERS.setdefault(message, len(MESSAGES))
    if number == len(MESSAGES):
        MESSAGES.append(message)
    return number


TOKENS: dict[int, tuple] = {}
"""Requests that wait for their answers, by a number that equal requests share."""
_NUMBERS: dict[tuple, int] = {}


def _token(sender: int, request: object) -> int:
    number = _NUMBERS.setdefault((sender, request), len(_NUMBERS))
    TOKENS[number] = (sender, request)
    return number


def _flush_of(effects: list) -> rs.FlushLog | None:
    return next((e for e in effects if isinstance(e, rs.FlushLog)), None)


def _perform(group: RaftGroup, event: tuple) -> list:
    match event:
        case ("stand",):
            return group.timeout_now(group.term, NOW)
        case ("write", record):
            batch = ListBatch(crc=record)
            group.replica.leader_write(batch, NOW, NOW)
            return group.written(NOW, durable=True)
        case ("look",):
            return group.heartbeats(NOW)[1]
        case ("flushed", up_to, generation):
            return group.flushed(up_to, generation, NOW)
        case ("failed", sender, append):
            group.failed(sender, append)
            return []
        case ("request", sender, RaftVoteRequest() as request):
            return group.on_vote_request(_token(sender, request), request, NOW)
        case ("request", _, RaftTimeoutNowRequest() as request):
            return group.timeout_now(request.term, NOW)
        case ("request", sender, request):
            return group.on_append_request(_token(sender, request), sender, request.append, NOW)
        case ("answer", sender, RaftVoteRequest() as request, answer):
            return group.voted(sender, request, answer, NOW)
        case ("answer", sender, request, answer):
            return group.answered(sender, request.append, answer.answer, NOW, heartbeat=False)
    raise AssertionError(event)


def _records(group: RaftGroup) -> tuple[tuple[int, int], ...]:
    return tuple((b.leader_epoch, b.crc) for b in group.replica.log.batches)


def _words(request: object) -> str:
    if isinstance(request, RaftVoteRequest):
        return f"vote in term {request.term} (has {request.last_offset} to {request.last_term})"
    if isinstance(request, RaftTimeoutNowRequest):
        return f"stand after term {request.term}"
    append = request.append
    records = [(b.leader_epoch, b.crc) for b in append.batches]
    return f"append {records} at {append.prev_offset} in term {append.term}"


def key_of(group: RaftGroup) -> tuple:
    """Everything that the machine's future depends on."""
    followers = tuple(
        (v, f.next_offset, f.match, f.flushed, f.open, f.failed) for v, f in group.followers.items()
    )
    election = group._election
    votes = None
    if election is not None:
        votes = tuple(sorted(election.granted)), tuple(sorted(election.rejected))
    return (
        group.node,
        group.role,
        group.term,
        group.voted_for,
        group.leader,
        _records(group),
        tuple(group.replica.log.epochs),
        group.replica.high_watermark,
        group.commit,
        group.flushed_end,
        group.quorum_end,
        group._term_start,
        group._flushing,
        group._flush_to,
        group._generation,
        tuple(group._open_appends),
        followers,
        votes,
        group._has_waited,
        group.heir,
        group.settled,
        tuple(group.later),
    )


# -- properties -----------------------------------------------------------------------------------


def log_matching(world: RaftWorld, state: State) -> str:
    """Two logs with a record of one term at one place are the same up to it."""
    logs = [m.disk.records for m in state.members]
    for i, one in enumerate(logs):
        for two in logs[i + 1 :]:
            shared = [at for at, pair in enumerate(zip(one, two, strict=False)) if _same(*pair)]
            upto = shared[-1] + 1 if shared else 0
            if one[:upto] != two[:upto]:
                return f"{one} and {two}"
    return ""


def _same(one: tuple[int, int], two: tuple[int, int]) -> bool:
    return one[0] == two[0]


def leader_completeness(world: RaftWorld, state: State) -> str:
    """The leader of the newest term has all that any leader committed."""
    if not state.leaders:
        return ""
    term, node = state.leaders[-1]
    member = state.members[world.nodes.index(node)]
    if member.machine < 0 or world.machines[member.machine].term != term:
        return ""
    if world.machines[member.machine].role is not rs.RaftRole.LEADER:
        return ""
    if member.disk.records[: len(state.committed)] != state.committed:
        return f"leader {node} has {member.disk.records}, committed {state.committed}"
    return ""


def committed_stay(world: RaftWorld, state: State) -> str:
    """What a member lets consumers read is what was committed."""
    for node, member in zip(world.nodes, state.members, strict=True):
        visible = member.disk.records[: member.disk.high_watermark]
        if visible != state.committed[: len(visible)]:
            return f"{node} shows {visible}, committed {state.committed}"
    return ""


PROPERTIES = {
    "log matching": log_matching,
    "leader completeness": leader_completeness,
    "committed records stay": committed_stay,
}
