"""A transaction coordinator and partition leaders in a few lines, for the client's side alone."""

from sim.error_codes import ErrorCode as E
from sim.ids import TopicPartition
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.events import BatchDone, ProducerStopped, TransactionDone
from sim.protocol.clients.producer.transaction_workload import TransactionPlan
from sim.protocol.clients.producer.transactional_producer import TransactionalProducer
from sim.protocol.events import TimerFired
from sim.protocol.messages.group import FindCoordinatorRequest, FindCoordinatorResponse
from sim.protocol.messages.metadata import InitProducerIdRequest, InitProducerIdResponse
from sim.protocol.messages.transaction import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
)
from sim.units import MS, SECOND
from tests.protocol.clients.producer_kit import EVERY_MS, ListSource, Log, World

ID = "till"


class Coordinator:
    """One transactional id. ``serial`` numbers its transactions; ``results`` tells their ends."""

    def __init__(self, version, completion_us=5 * MS):
        self.version = version
        self.completion_us = completion_us
        self.producer_id = -1
        self.epoch = -1
        self.state = "Empty"
        self.partitions = []
        self.serial = 0
        self.results = {}
        self.complete_at = None
        self.last_end = None
        self.ends = []  # every EndTxn that was heard
        self.adds = []  # every AddPartitionsToTxn

    def settle(self, now):
        if self.complete_at is not None and now >= self.complete_at:
            self.complete_at = None
            self.state = "Complete"

    def identify(self, request, now):
        self.settle(now)
        given = (request.producer_id, request.producer_epoch)
        if given != (-1, -1) and given != (self.producer_id, self.epoch):
            return InitProducerIdResponse(E.PRODUCER_FENCED)
        if self.state == "Prepare":
            return InitProducerIdResponse(E.CONCURRENT_TRANSACTIONS)
        if self.state == "Ongoing":
            self.epoch += 1
            self.finish(False, now)
            return InitProducerIdResponse(E.CONCURRENT_TRANSACTIONS)
        if self.producer_id < 0:
            self.producer_id = 1_000
        self.epoch += 1
        self.state = "Empty"
        return InitProducerIdResponse(E.NONE, self.producer_id, self.epoch)

    def add(self, producer_id, epoch, partitions, now):
        self.settle(now)
        if producer_id != self.producer_id:
            return E.INVALID_PRODUCER_ID_MAPPING
        if epoch != self.epoch:
            return E.PRODUCER_FENCED
        if self.state == "Prepare":
            return E.CONCURRENT_TRANSACTIONS
        if self.state != "Ongoing":
            self.state = "Ongoing"
            self.serial += 1
            self.partitions = []
        self.partitions += [p for p in partitions if p not in self.partitions]
        return E.NONE

    def end(self, request, now):
        self.settle(now)
        self.ends.append((now, request))
        identity = (request.producer_id, request.producer_epoch)
        if self.version == 2 and self.last_end == (identity, request.committed):
            return EndTxnResponse(E.NONE, self.producer_id, self.epoch)
        if identity != (self.producer_id, self.epoch):
            return EndTxnResponse(E.PRODUCER_FENCED)
        if self.state == "Prepare":
            return EndTxnResponse(E.CONCURRENT_TRANSACTIONS)
        if self.state == "Complete" and self.last_end == (identity, request.committed):
            return EndTxnResponse(E.NONE)
        if self.state != "Ongoing" and (self.version < 2 or request.committed):
            return EndTxnResponse(E.INVALID_TXN_STATE)
        self.last_end = (identity, request.committed)
        if self.version == 2:
            self.epoch += 1
        if self.state == "Ongoing":
            self.finish(request.committed, now)
        if self.version == 2:
            return EndTxnResponse(E.NONE, self.producer_id, self.epoch)
        return EndTxnResponse(E.NONE)

    def finish(self, committed, now):
        self.results[self.serial] = committed
        self.state = "Prepare"
        self.complete_at = now + self.completion_us


class Bank(World):
    """The producer's small world with a transactional producer in it."""

    def __init__(self, config, source, *, plan, version=2, completion_us=5 * MS, **settings):
        super().__init__({}, config, ListSource([]), **settings)
        self.coordinator = Coordinator(version, completion_us)
        self.coordinator_at = 1
        self.version = version
        self.placed = {}  # (partition, record number) -> serials of the transactions it lies in
        self.told = []  # (now, TransactionDone)
        self.stopped = []
        self.sent_plain = []  # (now, node, request)
        self.plain = None  # hook: (world, node, request) -> response or None
        self.mind = TransactionalProducer(self.setup, source, plan, version)

    def deliver(self, event):
        for effect in self.mind.handle(event, self.now):
            self.take(effect)

    def take(self, effect):
        if isinstance(effect, TransactionDone):
            self.told.append((self.now, effect))
        elif isinstance(effect, ProducerStopped):
            self.stopped.append((self.now, effect.error))
        elif isinstance(effect, BatchDone):
            self.done.append((self.now, effect))
        elif hasattr(effect, "at"):
            self.timer = effect.at
            self.at(effect.at, self.fire, effect.at)
        else:
            if hasattr(effect, "request"):
                self.sent_plain.append((self.now, effect.to, effect.request))
            self.send(effect)

    def fire(self, at):
        if self.timer == at:
            self.timer = None
            self.deliver(TimerFired("sender"))

    def serve(self, node, generation, effect):
        self.serving = node
        super().serve(node, generation, effect)

    def answer_plain(self, request):
        if self.plain is not None:
            answer = self.plain(self, self.serving, request)
            if answer is not None:
                return answer
        coordinator = self.coordinator
        if isinstance(request, FindCoordinatorRequest):
            assert (request.key, request.kind) == (ID, "transaction")
            return FindCoordinatorResponse(E.NONE, self.coordinator_at)
        here = self.serving == self.coordinator_at
        if isinstance(request, InitProducerIdRequest):
            if not here:
                return InitProducerIdResponse(E.NOT_COORDINATOR)
            return coordinator.identify(request, self.now)
        if isinstance(request, EndTxnRequest):
            if not here:
                return EndTxnResponse(E.NOT_COORDINATOR)
            return coordinator.end(request, self.now)
        if isinstance(request, AddPartitionsToTxnRequest):
            if not here:
                return AddPartitionsToTxnResponse(E.NOT_COORDINATOR)
            coordinator.adds.append((self.now, request))
            identity = (request.producer_id, request.producer_epoch)
            error = coordinator.add(*identity, request.partitions, self.now)
            return AddPartitionsToTxnResponse(error)
        return super().answer_plain(request)

    def decide(self, node, p, draft):
        """A leader: what is appended is noted with the transaction that it belongs to."""
        log, before = self.logs[p], len(self.logs[p].records)
        coordinator = self.coordinator
        # A batch that is in the log already is answered before the coordinator is asked.
        again = [(draft.base_sequence, draft.base_sequence + len(draft.intended_us) - 1)]
        is_new = log.epoch != (draft.producer_id, draft.producer_epoch) or again[0] not in [
            (first, last) for first, last, _ in log.known
        ]
        coordinator.settle(self.now)
        if is_new:
            partition = TopicPartition("t", p)
            if self.version == 2:
                identity = (draft.producer_id, draft.producer_epoch)
                error = coordinator.add(*identity, (partition,), self.now)
                if error is E.PRODUCER_FENCED:
                    error = E.INVALID_PRODUCER_EPOCH
                if error is not E.NONE:
                    return error, -1, None
            elif coordinator.state != "Ongoing" or partition not in coordinator.partitions:
                return E.INVALID_TXN_STATE, -1, None
            elif draft.producer_epoch != coordinator.epoch:
                return E.INVALID_PRODUCER_EPOCH, -1, None
        answer = super().decide(node, p, draft)
        for number in log.records[before:]:
            self.placed.setdefault((p, number), []).append(coordinator.serial)
        return answer

    # -- what must hold ---------------------------------------------------------------------------

    def check(self):
        """What the client was told of each transaction is what the coordinator decided."""
        batches = self.outcomes()
        for _, done in self.told:
            numbers = [(p, n) for p, first, last in done.records for n in range(first, last + 1)]
            serials = {s for number in numbers for s in self.placed.get(number, [])}
            results = {self.coordinator.results.get(serial) for serial in serials}
            if done.outcome == "committed":
                assert results == {True}, f"transaction {done.transaction}: {results}"
                assert len(serials) == 1
                for number in numbers:
                    assert batches[number] == "ok"
                    assert len(self.placed[number]) == 1
            elif done.outcome in ("aborted", "fenced"):
                assert True not in results, f"transaction {done.transaction} was committed"
            else:
                assert done.outcome == "unknown"
        numbers = [done.transaction for _, done in self.told]
        assert numbers == list(range(len(numbers)))
        spans = [(p, n) for _, d in self.told for p, a, b in d.records for n in range(a, b + 1)]
        assert len(spans) == len(set(spans)), "a record of two transactions"
        return self

    def told_outcomes(self):
        return [done.outcome for _, done in self.told]


def never():
    return False


def bank(
    instants=EVERY_MS,
    *,
    records=0,
    every_us=0,
    aborts=never,
    keys=None,
    value_bytes=100,
    block=64,
    config=None,
    **settings,
):
    if not records and not every_us:
        records = 100
    settled = ProducerConfig(transactional_id=ID, **(config or {}))
    source = ListSource(instants, keys=keys, value_bytes=value_bytes, block=block)
    plan = TransactionPlan(records, every_us, aborts)
    return Bank(settled, source, plan=plan, **settings)


__all__ = ["EVERY_MS", "ID", "MS", "SECOND", "Bank", "Log", "bank", "never"]
