"""Defects for the tests to plant: each a function that breaks one rule until the test is over.

The names say which rule. Production code knows nothing of them.
"""

from dataclasses import replace

from sim.error_codes import ErrorCode
from sim.log.producers.state import ProducerStates
from sim.log.store.stored_file import StoredFile
from sim.nodes.clients.producer import ProducerNode
from sim.protocol.assignors.registry import ASSIGNORS
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.follower.path import FollowerPath
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.delayed_produces import DelayedProduces
from sim.protocol.broker.replication.leader.fetch import FetchPath
from sim.protocol.broker.replication.leader.produce import ProducePath
from sim.protocol.clients.producer.outcomes import Outcomes
from sim.protocol.clients.producer.sequences import ProducerSequences
from sim.protocol.controller import partitions as controller_partitions
from sim.protocol.controller.elections import Elected, PartitionChange
from sim.protocol.coordinator.group import coordinator
from sim.protocol.kraft import raft as quorum
from sim.protocol.messages.data import ProduceResult
from sim.protocol.metadata import image as metadata
from sim.wire.record_batch import RecordBatch


def high_watermark_without_followers(monkeypatch):
    """The leader takes its own log end for the high watermark."""

    def advance(self, image, now):
        moved = self.log.log_end_offset > self.high_watermark
        self.high_watermark = self.log.log_end_offset
        return moved

    monkeypatch.setattr(Replica, "advance_high_watermark", advance)


def high_watermark_below_min_in_sync(monkeypatch):
    """The gate of KAFKA-15583 is missing."""
    real = Replica.advance_high_watermark

    def advance(self, image, now):
        committed, self.in_sync = self.in_sync, self.assigned
        try:
            return real(self, image, now)
        finally:
            self.in_sync = committed

    monkeypatch.setattr(Replica, "advance_high_watermark", advance)


def acknowledged_at_append(monkeypatch):
    """acks=all is answered as soon as the leader has appended."""

    def wait(self, work, now, out):
        results = list(work.failed)
        for replica, appended in work.appended:
            base, last = appended.base_offset, appended.last_offset
            self._delayed.acknowledge(replica, -1, ErrorCode.NONE, base, last, out)
            results.append(ProduceResult(replica.partition, ErrorCode.NONE, base, 0))
        self._delayed.answer(work.token, results, out)

    monkeypatch.setattr(ProducePath, "_wait", wait)


def followers_are_not_woken(monkeypatch):
    """A leader answers a fetch that waits when its time is over, not when there are records."""
    monkeypatch.setattr(DelayedFetches, "appended", DelayedFetches.changed)


def divergence_is_ignored(monkeypatch):
    """A leader does not tell a follower that their logs part, so nobody truncates."""
    monkeypatch.setattr(Replica, "divergence", lambda self, fetch: None)


def truncated_to_the_high_watermark(monkeypatch):
    """As before KIP-101: who follows a new leader cuts its log to its own high watermark."""
    real = FollowerPath.follow

    def follow(self, replica, out):
        if replica.log.log_end_offset > replica.high_watermark:
            self.truncate_or_fail(replica, replica.high_watermark, "high_watermark", out)
        real(self, replica, out)

    monkeypatch.setattr(FollowerPath, "follow", follow)


def corrupt_batches_are_kept(monkeypatch):
    """Nobody looks at a batch's checksum."""
    monkeypatch.setattr(RecordBatch, "valid", lambda self: True)


def unclean_leader_while_there_is_a_clean_one(monkeypatch):
    """The controller prefers live replicas that are not in sync."""
    real = PartitionChange._elect

    def elect(self, eligible):
        old = self.registration
        if old.leader >= 0 and self.acceptable(old.leader):
            return real(self, eligible)
        for broker in old.replicas:
            if broker not in self.target and self.acceptable(broker):
                return Elected(broker, unclean=True)
        return real(self, eligible)

    monkeypatch.setattr(PartitionChange, "_elect", elect)


def leader_epoch_stays(monkeypatch):
    """Another leader, the same epoch."""
    real = metadata.merged

    def merged(registration, change):
        return replace(real(registration, change), leader_epoch=registration.leader_epoch)

    monkeypatch.setattr(metadata, "merged", merged)
    monkeypatch.setattr(controller_partitions, "merged", merged)


def joins_the_isr_while_behind(monkeypatch):
    """A leader adds a follower to the ISR at its first fetch."""
    real = Replica.expand_isr

    def expand(self, broker, image):
        kept = self.high_watermark, self.epoch_start_offset
        self.high_watermark = self.epoch_start_offset = -1
        try:
            return real(self, broker, image)
        finally:
            self.high_watermark, self.epoch_start_offset = kept

    monkeypatch.setattr(Replica, "expand_isr", expand)


def follower_takes_its_log_end_for_committed(monkeypatch):
    """A follower's high watermark runs ahead of what its leader told."""
    real = Replica.follower_advance
    monkeypatch.setattr(
        Replica, "follower_advance", lambda self, sent: real(self, self.log.log_end_offset)
    )


def consumers_read_to_the_log_end(monkeypatch):
    """A consumer gets what is not committed."""
    real = FetchPath._read

    def read(self, session, known, replica, room):
        if session.replica_id >= 0:
            return real(self, session, known, replica, room)
        committed, replica.high_watermark = replica.high_watermark, replica.log.log_end_offset
        try:
            return real(self, session, known, replica, room)
        finally:
            replica.high_watermark = committed

    monkeypatch.setattr(FetchPath, "_read", read)


def sequence_is_used_twice(monkeypatch):
    """A producer gives every seventh batch the sequence of the batch before it."""
    real = ProducerSequences.number
    drained = []

    def number(self, batch):
        entry = self.of(batch.partition)
        drained.append(batch)
        if len(drained) % 7 == 0 and entry.next_sequence >= batch.record_count:
            entry.next_sequence -= batch.record_count
        real(self, batch)

    monkeypatch.setattr(ProducerSequences, "number", number)


def broker_forgets_producers(monkeypatch):
    """No batch is recognised as a retry."""
    monkeypatch.setattr(ProducerStates, "check", lambda self, batch: ErrorCode.NONE)


def acknowledged_batches_are_answered_with_an_error(monkeypatch, topic=""):
    """The broker writes down that it acknowledged, and the client gets a refusal.

    With a topic given, only its batches.
    """

    def refused(result):
        if topic and result.partition.topic != topic:
            return result
        return replace(result, error=ErrorCode.INVALID_RECORD)

    def answer(self, token, results, out):
        if token >= 0:
            results = [refused(each) for each in results]
        real(self, token, results, out)

    real = DelayedProduces.answer
    monkeypatch.setattr(DelayedProduces, "answer", answer)


def refused_batches_count_as_acknowledged(monkeypatch):
    """The client takes a refusal for a success."""
    monkeypatch.setattr(
        Outcomes, "on_error", lambda self, batch, error, now: self.succeed(batch, 0)
    )


def outcomes_are_not_written_down(monkeypatch):
    """No producer says what became of its batches."""
    monkeypatch.setattr(ProducerNode, "_batch_done", lambda self, port, done: None)


def fsync_lies(monkeypatch):
    """fsync answers and moves nothing, so power loss takes bytes that were flushed."""
    monkeypatch.setattr(StoredFile, "flush", lambda self: self.dirty_bytes)


def everyone_votes_for_everyone(monkeypatch):
    """A voter forgets whom it voted for, and how long its log is."""
    for name in ("grants_vote", "grants_pre_vote", "up_to_date"):
        monkeypatch.setattr(quorum, name, lambda *args, **kwargs: True)


def everyone_gets_every_partition(monkeypatch):
    """The group's leader assigns each partition to all members."""
    real = ASSIGNORS["range"]

    def assign(subscriptions, counts):
        shares = real(subscriptions, counts)
        everything = tuple(sorted(p for share in shares.values() for p in share))
        return dict.fromkeys(shares, everything)

    monkeypatch.setitem(ASSIGNORS, "range", assign)


def commits_of_any_generation_are_taken(monkeypatch):
    """A coordinator does not fence members of former generations."""
    monkeypatch.setattr(coordinator, "commit_error", lambda group, request: ErrorCode.NONE)
