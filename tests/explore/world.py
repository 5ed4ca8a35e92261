"""A whole cluster as a search sees it: brokers, wires, a controller, and what was ever committed.

Broker machines, elections and the controller's answers to ISR wishes are the real ones; wires keep
each connection's order; the controller is one process that never fails. A state is a tuple of
plain values, compared whole. What may happen is bounded by a budget that is part of the state.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from sim.protocol.controller.partitions import alter_partition, leader_and_isr_updates
from sim.protocol.messages.cluster import AlterPartitionRequest
from sim.protocol.metadata.image import BrokerRegistration, PartitionRegistration, merged
from sim.protocol.metadata.records import PartitionChangeRecord
from tests.explore.brokers import EMPTY, Brokers, Metadata, P, Step, View

CONTROLLER = 3001


@dataclass(frozen=True)
class Bounds:
    """How much may happen. ``loss`` counts the crashes that take what was not flushed."""

    brokers: int = 2
    records: int = 1
    moves: int = 1
    crashes: int = 0
    losses: int = 0
    restarts: int = 0
    min_in_sync: int = 1
    elr: bool = False
    in_sync: tuple[int, ...] = ()
    """At the beginning; empty for everyone."""
    unnoticed: bool = False
    """A process that comes back within its session keeps its place in the ISR (ZooKeeper mode)."""

    def __str__(self) -> str:
        return (
            f"{self.brokers} brokers, {self.records} records, {self.moves} moves, "
            f"{self.crashes} crashes, {self.losses} losses, {self.restarts} restarts"
        )


class Budget(NamedTuple):
    """What is left of the bounds."""

    records: int
    moves: int
    crashes: int
    losses: int
    restarts: int


_TO_READ = ("request", "left")
"""Kinds of message that wait for their receiver."""


class Wire(NamedTuple):
    """One message on a connection: a request, or its answer, or the news that there is none.

    A request that is ``left`` is of a connection that its sender has closed.
    """

    kind: str
    asked: object
    answer: object = None


class State(NamedTuple):
    """Everything; ``brokers`` are numbers of states in :class:`Brokers`."""

    brokers: tuple[int, ...]
    metadata: Metadata
    pending: tuple[tuple[Metadata, ...], ...]
    """Committed metadata that each broker has not applied yet."""
    wires: tuple[tuple[Wire, ...], ...]
    """From broker i to broker j at i * n + j, then from each broker to the controller."""
    committed: tuple[tuple[int, int], ...]
    """(epoch, record) of every offset that was ever below a leader's high watermark."""
    lossy: tuple[int, ...]
    """Brokers that lost records and have not been registered since."""
    left: Budget


class Violation(Exception):
    """A property does not hold."""

    def __init__(self, name: str, found: str, words: str) -> None:
        super().__init__(f"{name}: {found}")
        self.words = words


class World:
    """What may happen in a state, and what the state is afterwards."""

    def __init__(self, brokers: Brokers, bounds: Bounds, *, forgives: bool = False) -> None:
        """``forgives``: records that were committed may be replaced, as after a loss of power."""
        self.machines = brokers
        self.bounds = bounds
        self._forgives = forgives
        self.ids = tuple(range(1, bounds.brokers + 1))

    # -- the beginning ----------------------------------------------------------------------------

    def initial(self) -> State:
        """Every broker is up, in sync and empty; the first one leads."""
        bounds, ids = self.bounds, self.ids
        metadata = Metadata(
            PartitionRegistration("t" * 22, ids, bounds.in_sync or ids, 1, 0, 0),
            tuple(BrokerRegistration(b, 100 + b, "", "", False, False) for b in ids),
            bounds.min_in_sync,
            bounds.elr,
        )
        state = State(
            tuple(self.machines.dead(b, EMPTY) for b in ids),
            metadata,
            ((),) * len(ids),
            ((),) * (len(ids) * (len(ids) + 1)),
            (),
            (),
            Budget(bounds.records, bounds.moves, bounds.crashes, bounds.losses, bounds.restarts),
        )
        for broker in ids:
            state, _ = self._started(state, broker)
        return state

    def view(self, state: State, broker: int) -> View:
        return self.machines.views[state.brokers[broker - 1]]

    # -- what may happen --------------------------------------------------------------------------

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        """Every next state, each with what happened in words.

        Raises:
            Violation: When a leader's high watermark moves over other records than before.
        """
        for broker in self.ids:
            if self.view(state, broker).alive:
                yield from self._broker(state, broker)
            else:
                yield from self._dead(state, broker)
        yield from self._controller(state)
        yield from self._network(state)

    def _broker(self, state: State, broker: int) -> Iterator[tuple[str, State]]:
        view = self.view(state, broker)
        left = state.left
        if view.is_leader and left.records:
            record = self.bounds.records - left.records + 1
            after = state._replace(left=left._replace(records=left.records - 1))
            yield self._stepped(after, broker, ("produce", record), f"record {record} is written")
        if state.pending[broker - 1]:
            metadata, *rest = state.pending[broker - 1]
            after = state._replace(pending=_with(state.pending, broker - 1, tuple(rest)))
            partition = metadata.partition
            what = f"learns: leader {partition.leader}, epoch {partition.leader_epoch}"
            yield self._stepped(after, broker, ("apply", metadata), what)
        if left.crashes:
            after = state._replace(left=left._replace(crashes=left.crashes - 1))
            yield f"broker {broker} is killed", self._stopped(after, broker, view.disk)
        if left.losses:
            for start in range(view.end):
                after = state._replace(
                    left=left._replace(losses=left.losses - 1),
                    lossy=tuple(sorted({*state.lossy, broker})),
                )
                what = f"broker {broker} loses power and all records from offset {start} on"
                yield what, self._stopped(after, broker, view.disk.without(start))

    def _dead(self, state: State, broker: int) -> Iterator[tuple[str, State]]:
        left, registration = state.left, self._registration(state, broker)
        if not registration.fenced:
            yield (
                f"the controller fences broker {broker}",
                self._changed(state, broker, remove=broker, fenced=True),
            )
        if not left.restarts:
            return
        state = state._replace(left=left._replace(restarts=left.restarts - 1))
        if not (self.bounds.unnoticed and not registration.fenced):
            # A new incarnation: out of ISR and ELR if it was not shut down cleanly, then unfenced.
            state = self._changed(state, broker, unclean=broker, fenced=True, epoch=True)
            state = self._changed(state, broker, add=broker, fenced=False)
        state = state._replace(lossy=tuple(b for b in state.lossy if b != broker))
        state, step = self._started(state, broker)
        words = _words(f"broker {broker} starts", step)
        yield words, self._checked(state, broker, words)

    def _controller(self, state: State) -> Iterator[tuple[str, State]]:
        partition, left = state.metadata.partition, state.left
        if left.moves and partition.leader >= 0:
            for broker in partition.in_sync:
                if broker != partition.leader and not self._registration(state, broker).fenced:
                    after = state._replace(left=left._replace(moves=left.moves - 1))
                    record = PartitionChangeRecord(0, partition.topic_id, leader=broker)
                    what = f"the controller moves the leadership to {broker}"
                    yield what, self._committed(after, (record,))

    def _network(self, state: State) -> Iterator[tuple[str, State]]:
        n = len(self.ids)
        for at, queue in enumerate(state.wires):
            if not queue:
                continue
            sender = at // n + 1 if at < n * n else at - n * n + 1
            to = at % n + 1 if at < n * n else CONTROLLER
            first = queue[0]
            if first.kind not in _TO_READ:
                yield self._returned(state, at, sender, to, first)
            waiting = next((i for i, w in enumerate(queue) if w.kind in _TO_READ), -1)
            if waiting < 0:
                continue
            wire = queue[waiting]
            if to == CONTROLLER:
                yield self._asked_controller(state, at, waiting, wire)
            elif self.view(state, to).alive:
                yield self._asked(state, at, waiting, sender, to, wire)
            elif wire.kind == "left":
                kept = _with(state.wires, at, (*queue[:waiting], *queue[waiting + 1 :]))
                yield f"broker {to} never reads it", state._replace(wires=kept)
            else:
                broken = wire._replace(kind="failure")
                yield (
                    f"broker {sender} finds broker {to} dead",
                    self._returned(
                        state._replace(wires=_with(state.wires, at, (*queue[:waiting], broken))),
                        at,
                        sender,
                        to,
                        broken,
                    )[1],
                )

    # -- messages ---------------------------------------------------------------------------------

    def _asked(
        self, state: State, at: int, index: int, sender: int, to: int, wire: Wire
    ) -> tuple[str, State]:
        epoch = self._epoch_of(state, sender)
        step = self.machines.step(state.brokers[to - 1], ("request", sender, epoch, wire.asked))
        queue = _with(state.wires[at], index, Wire("response", wire.asked, step.reply))
        if wire.kind == "left":
            queue = (*queue[:index], *queue[index + 1 :])
        state = state._replace(wires=_with(state.wires, at, queue))
        what = f"broker {to} is asked by {sender}: {_ask(wire.asked)}"
        words = _words(what, step)
        return words, self._checked(self._took(state, to, step), to, words)

    def _returned(
        self, state: State, at: int, sender: int, to: int, wire: Wire
    ) -> tuple[str, State]:
        state = state._replace(wires=_with(state.wires, at, state.wires[at][1:]))
        if wire.kind == "failure":
            event: tuple = ("failure", to, wire.asked)
        else:
            event = ("response", to, wire.asked, wire.answer)
        step = self.machines.step(state.brokers[sender - 1], event)
        what = (
            f"broker {sender} has the answer of {to}"
            if wire.kind == "response"
            else (f"broker {sender} has no answer of {to}")
        )
        words = _words(what, step)
        return words, self._checked(self._took(state, sender, step), sender, words)

    def _asked_controller(self, state: State, at: int, index: int, wire: Wire) -> tuple[str, State]:
        assert isinstance(wire.asked, AlterPartitionRequest)
        decision = alter_partition(state.metadata.image(), wire.asked)
        queue = _with(state.wires[at], index, Wire("response", wire.asked, decision.response))
        state = state._replace(wires=_with(state.wires, at, queue))
        wish = [m.broker for m in wire.asked.items[0].in_sync]
        what = f"the controller is asked by {wire.asked.broker} for the ISR {wish}"
        return what, self._committed(state, decision.records)

    def _took(self, state: State, broker: int, step: Step) -> State:
        """The broker is in its next state, and what it sends is on the wires."""
        wires = list(state.wires)
        n = len(self.ids)
        for to in step.closed:
            # What was sent arrives all the same, or not; nobody waits for an answer.
            at = (broker - 1) * n + to - 1
            wires[at] = tuple(Wire("left", w.asked) for w in wires[at] if w.kind in _TO_READ)
        for to, message in step.sends:
            at = n * n + broker - 1 if to == CONTROLLER else (broker - 1) * n + to - 1
            wires[at] = (*wires[at], Wire("request", message))
        return state._replace(
            brokers=_with(state.brokers, broker - 1, step.state), wires=tuple(wires)
        )

    def _stepped(self, state: State, broker: int, event: tuple, what: str) -> tuple[str, State]:
        step = self.machines.step(state.brokers[broker - 1], event)
        words = _words(f"broker {broker}: {what}", step)
        return words, self._checked(self._took(state, broker, step), broker, words)

    # -- processes --------------------------------------------------------------------------------

    def _started(self, state: State, broker: int) -> tuple[State, Step]:
        disk = self.view(state, broker).disk
        step = _start(self.machines, broker, disk, state.metadata)
        state = state._replace(pending=_with(state.pending, broker - 1, ()))
        return self._took(state, broker, step), step

    def _stopped(self, state: State, broker: int, disk) -> State:
        """The process is gone: its messages with it, and every answer that it owes."""
        n = len(self.ids)
        wires = list(state.wires)
        for other in self.ids:
            wires[(broker - 1) * n + other - 1] = ()
            owed = wires[(other - 1) * n + broker - 1]
            wires[(other - 1) * n + broker - 1] = tuple(
                Wire("failure", wire.asked) for wire in owed if wire.kind != "left"
            )
        wires[n * n + broker - 1] = ()
        return state._replace(
            brokers=_with(state.brokers, broker - 1, self.machines.dead(broker, disk)),
            pending=_with(state.pending, broker - 1, ()),
            wires=tuple(wires),
        )

    # -- the controller ---------------------------------------------------------------------------

    def _registration(self, state: State, broker: int) -> BrokerRegistration:
        return state.metadata.brokers[broker - 1]

    def _epoch_of(self, state: State, broker: int) -> int:
        return self.view(state, broker).broker_epoch

    def _changed(
        self,
        state: State,
        broker: int,
        *,
        fenced: bool,
        epoch: bool = False,
        remove: int = -1,
        add: int = -1,
        unclean: int = -1,
    ) -> State:
        """A broker comes or goes, and the partition follows, in one batch of records."""
        image = state.metadata.image()
        records = tuple(leader_and_isr_updates(image, [P], remove=remove, add=add, unclean=unclean))
        old = self._registration(state, broker)
        new = replace(old, fenced=fenced, epoch=old.epoch + 10 * epoch)
        brokers = _with(state.metadata.brokers, broker - 1, new)
        return self._committed(
            state._replace(metadata=state.metadata._replace(brokers=brokers)), records, always=True
        )

    def _committed(self, state: State, records: tuple, *, always: bool = False) -> State:
        if not records and not always:
            return state
        partition = state.metadata.partition
        for record in records:
            partition = merged(partition, record)
        metadata = state.metadata._replace(partition=partition)
        pending = tuple(
            (*queue, metadata) if self.view(state, broker).alive else queue
            for broker, queue in zip(self.ids, state.pending, strict=True)
        )
        return state._replace(metadata=metadata, pending=pending)

    # -- what was ever committed ------------------------------------------------------------------

    def _checked(self, state: State, broker: int, words: str) -> State:
        """Note what a leader has below its high watermark.

        Raises:
            Violation: If it is other than what was there before.
        """
        view = self.view(state, broker)
        if not view.is_leader:
            return state
        records = view.disk.records[: view.high_watermark]
        known = state.committed
        shared = min(len(records), len(known))
        if records[:shared] != known[:shared]:
            if self._forgives:
                return state._replace(committed=records)
            raise Violation(
                "committed records stay",
                f"broker {broker} commits {records} over {known}",
                words,
            )
        return state if len(records) <= len(known) else state._replace(committed=records)


@lru_cache(maxsize=100_000)
def _start(machines: Brokers, broker: int, disk, metadata: Metadata) -> Step:
    return machines.start(broker, disk, metadata)


def _with(items: tuple, at: int, value: object) -> tuple:
    return (*items[:at], value, *items[at + 1 :])


def _words(what: str, step: Step) -> str:
    return f"{what}: {', '.join(step.facts)}" if step.facts else what


def _ask(asked: object) -> str:
    if hasattr(asked, "fetch_offset"):
        return f"fetch at {asked.fetch_offset} (epoch {asked.leader_epoch})"
    if hasattr(asked, "timestamp"):
        return "where the log ends" if asked.timestamp == -1 else "where the log begins"
    return f"where epoch {asked.leader_epoch} ends"
