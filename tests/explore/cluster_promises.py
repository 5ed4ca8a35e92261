"""What is looked at after each event of a whole cluster: metadata first, then the partition.

The partition's promises are those of ``properties.py``; here stand those of the metadata log, and
that nobody is told of a decision before the quorum has committed it.
"""

from typing import NamedTuple

from sim.error_codes import ErrorCode
from sim.protocol.kraft.types import Committed, Role
from sim.protocol.messages.cluster import (
    AlterPartitionResponse,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
)
from sim.protocol.messages.data import ProduceResponse
from sim.protocol.messages.quorum import VoteResponse
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from tests.explore.brokers import Disk, P, View, _disk
from tests.explore.properties import METADATA_PROPERTIES, PROPERTIES


class Broken(Exception):
    """A promise does not hold."""

    def __init__(self, name: str, found: object) -> None:
        super().__init__(f"{name}: {found}")
        self.name = name


class _Metadata(NamedTuple):
    partition: PartitionRegistration


class _State(NamedTuple):
    """As much of a state of ``world.py`` as the properties look at."""

    metadata: _Metadata
    committed: tuple[tuple[int, int], ...]
    lossy: tuple[int, ...]


class Promises:
    """All that was ever promised, and the nodes that must keep it."""

    def __init__(self, nodes: dict) -> None:
        self.nodes = nodes
        self.ids = tuple(number for number in nodes if number < 1_000)
        self.voters = tuple(number for number in nodes if number >= 1_000)
        self.image = MetadataImage()
        """What the quorum has committed, as soon as one member was told."""
        self.log: list = []
        """Committed metadata records with their places."""
        self.registrations: dict[int, PartitionRegistration] = {}
        """The partition as committed, by partition epoch."""
        self.epochs: dict[tuple[int, int], bool] = {}
        """Committed registrations (broker, broker epoch): whether they were ever unfenced."""
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[int, int], int] = {}
        self.records: tuple[tuple[int, int], ...] = ()
        """(epoch, record) of every offset that was ever below a leader's high watermark."""
        self.lossy: dict[int, int] = {}
        """Brokers that lost records, and the broker epoch under which they did."""
        self.unclean = False
        """Whether a leader was elected that may lack records: of them nothing is promised then."""
        self.saw: dict[str, int] = {}

    @property
    def partition(self) -> PartitionRegistration:
        return self.image.partitions[P]

    def view(self, state: object, broker: int) -> View:
        return self.nodes[broker].view

    def note(self, kind: str) -> None:
        self.saw[kind] = self.saw.get(kind, 0) + 1

    # -- the quorum -------------------------------------------------------------------------------

    def quorum_decided(self, node) -> None:
        """A quorum machine has handled an event."""
        quorum = node.quorum
        if quorum.role is Role.LEADER and quorum.epoch not in self.leaders:
            self.note("elected")
            self.leaders[quorum.epoch] = node.id
            own = [tuple(r) for r in node.metadata_log.records_between(0, len(self.log))]
            if own != self.log:
                name = "metadata leader completeness"
                raise Broken(name, f"leader of epoch {quorum.epoch} lacks committed records")
        elif quorum.role is Role.LEADER and self.leaders[quorum.epoch] != node.id:
            raise Broken("one leader per epoch", f"two lead epoch {quorum.epoch}")

    def persisted(self, node, state) -> None:
        """A member's state is durable; a vote for itself counts from then on, and is told then."""
        if state.voted_for >= 0:
            self._voted(node.id, state.epoch, state.voted_for)

    def _voted(self, voter: int, epoch: int, candidate: int) -> None:
        former = self.votes.setdefault((voter, epoch), candidate)
        if former != candidate:
            words = f"{voter} votes for {candidate} in epoch {epoch}, and has for {former}"
            raise Broken("one vote per epoch", words)

    def committed(self, node, effect: Committed) -> None:
        """A member of the quorum was told of commits."""
        if effect.base_offset != node.told:
            raise Broken("metadata commits in order", f"{node.id} at {effect.base_offset}")
        node.told = effect.end_offset
        for record in effect.records:
            if record.offset >= len(self.log):
                self.log.append(tuple(record))
                self._replay(*record)
            elif self.log[record.offset] != tuple(record):
                words = f"{node.id}: {tuple(record)} over {self.log[record.offset]}"
                raise Broken("committed metadata stays", words)

    def _replay(self, offset: int, epoch: int, record: object) -> None:
        image = self.image
        image.replay(offset, epoch, record)
        image.changed.clear()
        for number, broker in image.brokers.items():
            key = number, broker.epoch
            self.epochs[key] = self.epochs.get(key, False) or not broker.fenced
            if self.lossy.get(number, broker.epoch) < broker.epoch:
                del self.lossy[number]
                self.note("came back with less")
        partition = image.partitions.get(P)
        if partition is not None and partition.partition_epoch not in self.registrations:
            self.registrations[partition.partition_epoch] = partition
            self.note("partition changed")
            if partition.leader >= 0 and partition.eligible:
                self.note("elr")
            if partition.recovering:
                self.unclean = True
                self.note("unclean")

    # -- answers ----------------------------------------------------------------------------------

    def answered(self, node, request, response) -> None:
        """A request is being answered."""
        match response:
            case VoteResponse() if response.granted and not request.pre_vote:
                self._voted(node.id, request.epoch, request.candidate)
            case AlterPartitionResponse():
                for result in response.results:
                    if result.error is ErrorCode.NONE:
                        self._must_be_committed(result)
            case BrokerRegistrationResponse() if response.error is ErrorCode.NONE:
                if (request.broker, response.broker_epoch) not in self.epochs:
                    raise Broken("answers tell what is committed", response)
            case BrokerHeartbeatResponse() if response.error is ErrorCode.NONE:
                if response.is_fenced or self.epochs.get((request.broker, request.broker_epoch)):
                    return
                raise Broken("answers tell what is committed", response)
            case ProduceResponse():
                self._acknowledged(request, response)

    def _must_be_committed(self, result) -> None:
        known = self.registrations.get(result.partition_epoch)
        said = (result.leader, result.leader_epoch, result.in_sync)
        if known is None or (known.leader, known.leader_epoch, known.in_sync) != said:
            raise Broken("answers tell what is committed", result)
        self.note("isr changed")

    def _acknowledged(self, request, response) -> None:
        result = response.results[0]
        if result.error is not ErrorCode.NONE:
            self.note("refused")
            return
        self.note("acknowledged")
        self._note_records(request)

    def _note_records(self, request) -> None:
        """The machine that answers has moved its high watermark in this very event."""
        for node in (self.nodes[b] for b in self.ids):
            if node.is_up:
                self._look_at(node)
        record = request.batches[0][1].first_record
        if not self.unclean and all(record != known for _, known in self.records):
            raise Broken("acknowledged records are committed", record)

    # -- the partition ----------------------------------------------------------------------------

    def lost_records(self, broker: int, process: int) -> None:
        """A broker has lost a part of its log with its power."""
        self.lossy[broker] = max(process, self.image.brokers[broker].epoch)
        self.note("lost records")

    def look(self, node) -> None:
        """The partition's promises, after an event of the node."""
        if P not in self.image.partitions:
            return
        if node.id in self.ids:
            self._look_at(node)
        if self.unclean:
            return
        state = _State(_Metadata(self.partition), self.records, tuple(self.lossy))
        for name, holds in PROPERTIES.items():
            wrong = holds(self, state)
            if wrong:
                raise Broken(name, wrong)

    def look_at_logs(self) -> None:
        """The metadata log's promises; dearer, so not after each event."""
        for name, holds in METADATA_PROPERTIES.items():
            wrong = holds(self)
            if wrong:
                raise Broken(name, wrong)

    def _look_at(self, node) -> None:
        view = node.view = view_of(node)
        if not view.is_leader or self.unclean:
            return
        records = view.disk.records[: view.high_watermark]
        shared = min(len(records), len(self.records))
        if records[:shared] != self.records[:shared]:
            raise Broken("committed records stay", f"{node.id}: {records} over {self.records}")
        if len(records) > len(self.records):
            self.records = records


def view_of(node) -> View:
    """A broker as the properties see it."""
    if not node.is_up or P not in node.replicas.replicas:
        log = node.log
        records = tuple((b.leader_epoch, b.first_record) for b in log.batches)
        disk = Disk(records, tuple(log.epochs), node.checkpoint)
        return View((), disk, node.is_up)
    replica = node.replicas.replicas[P]
    ends = tuple((b, r.log_end_offset, r.broker_epoch) for b, r in replica.remotes.items())
    return View(
        (),
        _disk(replica),
        True,
        replica.is_leader and node.serves,
        replica.leader_epoch,
        replica.in_sync,
        replica.maximal_in_sync,
        ends,
        node.epoch,
    )
