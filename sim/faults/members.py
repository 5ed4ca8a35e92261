"""Changes of membership: who votes on metadata, and which brokers belong to the cluster.

Source: ``kafka-metadata-quorum``; of Redpanda ``rpk redpanda admin brokers decommission``.
"""

from typing import ClassVar, Final

from sim.faults.action import Action, Evidence, Instant
from sim.faults.fault import Fault, Hits, Span, TargetFault
from sim.faults.operations import AS_MEANT, evidence_of
from sim.faults.resolve import Site
from sim.faults.surface import Broker, Operation, World
from sim.protocol.messages.raft_membership import DecommissionBrokerRequest
from sim.protocol.messages.voters import AddRaftVoterRequest, RemoveRaftVoterRequest


class VoterRequest(Instant):
    """A controller gets a vote on metadata, or loses it.

    The tool is given a directory id: to add, that of the disk the controller has now; to remove,
    that of the vote, which ``kafka-metadata-quorum describe`` shows.

    Args:
        world: Where both are looked up, when it begins.
        controller: Whose vote it is.
        adds: Whether it gets one.
    """

    def __init__(self, world: World, controller: str, *, adds: bool) -> None:
        self._world = world
        self._controller = controller
        self._adds = adds
        self._operation: Operation | None = None

    def begin(self) -> None:
        """Send the request."""
        if self._adds:
            wanted = self._world.voter_key(self._controller)
            request: AddRaftVoterRequest | RemoveRaftVoterRequest = AddRaftVoterRequest(*wanted)
        else:
            request = RemoveRaftVoterRequest(*self._world.vote_of(self._controller))
        self._operation = self._world.administrator.operate(request)

    def evidence(self) -> Evidence:
        """Whether the leader of the quorum has done it."""
        return evidence_of(self._operation)


class FirstStart(Instant):
    """A broker that was spare until now is started, and registers by itself.

    Args:
        world: Where it is looked up.
        name: Its printed name.
    """

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._was_spare = False

    def begin(self) -> None:
        """Start it for the first time; without power it starts when its host boots."""
        process = self._world.nodes[self._name]
        self._was_spare = process.spare
        if process.spare:
            process.spare = False
            if self._world.host_of(self._name).powered:
                process.start()

    def evidence(self) -> Evidence:
        """Whether it has registered, and had not before."""
        if not self._was_spare:
            return Evidence(took_effect=False, effect=f"{self._name} was added before")
        if self._world.is_member(self._name):
            return Evidence(took_effect=True, effect=f"{self._name} is a member")
        return Evidence(took_effect=False, effect=f"{self._name} has not registered")


class Removal(Instant):
    """A broker gives up its replicas, and then its membership: not the answer counts, but the end.

    Args:
        world: Where it is looked up.
        broker: Whom it concerns.
    """

    def __init__(self, world: World, broker: Broker) -> None:
        self._world = world
        self._broker = broker
        self._operation: Operation | None = None

    def begin(self) -> None:
        """Send the request."""
        request = DecommissionBrokerRequest(self._broker.node_id)
        self._operation = self._world.administrator.operate(request)

    def evidence(self) -> Evidence:
        """Whether it is a member no more."""
        found = evidence_of(self._operation)
        if not found.took_effect:
            return found
        if self._world.is_member(self._broker.name):
            return Evidence(took_effect=False, effect="it still holds replicas")
        return Evidence(took_effect=True, effect=f"{self._broker.name} has left")


class _MemberChange(TargetFault):
    """One server gets or loses its place."""

    may_break = AS_MEANT
    span: ClassVar[Span] = "operation"


class AddController(_MemberChange):
    """The administrator lets a controller vote in a dynamic quorum, with the disk that it has."""

    kind = "add-controller"
    proof = "the record with it is committed"
    hits: ClassVar[Hits] = "controller"

    def on(self, names: tuple[str, ...], site: Site) -> VoterRequest:
        """At work on this controller."""
        return VoterRequest(site.world, names[0], adds=True)


class RemoveController(_MemberChange):
    """The administrator takes a controller's vote away."""

    kind = "remove-controller"
    proof = "the record without it is committed"
    hits: ClassVar[Hits] = "controller"

    def on(self, names: tuple[str, ...], site: Site) -> VoterRequest:
        """At work on this controller."""
        return VoterRequest(site.world, names[0], adds=False)


class AddBroker(_MemberChange):
    """The administrator starts a broker beyond `initial.brokers` for the first time."""

    kind = "add-broker"
    proof = "the broker has registered"
    hits: ClassVar[Hits] = "spare broker"

    def on(self, names: tuple[str, ...], site: Site) -> FirstStart:
        """At work on this broker."""
        return FirstStart(site.world, names[0])


class Decommission(_MemberChange):
    """The administrator lets a broker give up its replicas, and then its membership (`raft`)."""

    kind = "decommission"
    proof = "the broker holds no replica and is no member any more"
    hits: ClassVar[Hits] = "broker"
    absent_with: ClassVar[tuple[str, ...]] = ("isr",)

    def on(self, names: tuple[str, ...], site: Site) -> Action | None:
        """At work on this broker."""
        broker = site.world.broker(names[0])
        return None if broker is None else Removal(site.world, broker)


MEMBERSHIP: Final[tuple[type[Fault], ...]] = (
    AddController, RemoveController, AddBroker, Decommission,
)  # fmt: skip
