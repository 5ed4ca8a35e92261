"""Changes of membership: voters of the metadata quorum, and brokers of the cluster.

Source: ``kafka-metadata-quorum``, ``kafka-cluster unregister``; of Redpanda ``rpk redpanda admin
brokers decommission``.
"""

from typing import ClassVar, Final

from sim.faults.action import Action, Evidence, Instant
from sim.faults.fault import Fault, Hits, Span, TargetFault
from sim.faults.operations import AS_MEANT, evidence_of
from sim.faults.resolve import Site
from sim.faults.surface import Broker, Operation, World
from sim.protocol.messages.admin import UnregisterBrokerRequest
from sim.protocol.messages.raft_membership import DecommissionBrokerRequest
from sim.protocol.messages.voters import AddRaftVoterRequest, RemoveRaftVoterRequest


class VoterRequest(Instant):
    """Adds a controller to the voters of the metadata quorum, or removes it.

    The tool takes a directory id: to add, that of the controller's present disk; to remove, that of
    the voter, which ``kafka-metadata-quorum describe`` shows.

    Args:
        world: Source of both ids, when it begins.
        controller: The voter.
        adds: True to add it.
    """

    def __init__(self, world: World, controller: str, *, adds: bool) -> None:
        self._world = world
        self._controller = controller
        self._adds = adds
        self._operation: Operation | None = None

    def begin(self) -> None:
        """Sends the request."""
        if self._adds:
            voter = self._world.voter_key(self._controller)
            request: AddRaftVoterRequest | RemoveRaftVoterRequest = AddRaftVoterRequest(*voter)
        else:
            request = RemoveRaftVoterRequest(*self._world.vote_of(self._controller))
        self._operation = self._world.administrator.operate(request)

    def evidence(self) -> Evidence:
        """True if the leader of the quorum has done it."""
        return evidence_of(self._operation)


class FirstStart(Instant):
    """Starts a spare broker for the first time; it registers.

    Args:
        world: The cluster.
        name: Its printed name.
    """

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._was_spare = False

    def begin(self) -> None:
        """Starts it; without power it starts when its host boots."""
        process = self._world.nodes[self._name]
        self._was_spare = process.spare
        if process.spare:
            process.spare = False
            if self._world.host_of(self._name).powered:
                process.start()

    def evidence(self) -> Evidence:
        """True if it is registered, and was not before."""
        if not self._was_spare:
            return Evidence(took_effect=False, effect=f"{self._name} was added before")
        if self._world.is_member(self._name):
            return Evidence(took_effect=True, effect=f"{self._name} is a member")
        return Evidence(took_effect=False, effect=f"{self._name} has not registered")


class Decommissioning(Instant):
    """Decommissions a broker: it counts as done when the broker has left, not at the response.

    Args:
        world: The cluster.
        broker: The broker.
    """

    def __init__(self, world: World, broker: Broker) -> None:
        self._world = world
        self._broker = broker
        self._operation: Operation | None = None

    def begin(self) -> None:
        """Sends the request."""
        request = DecommissionBrokerRequest(self._broker.node_id)
        self._operation = self._world.administrator.operate(request)

    def evidence(self) -> Evidence:
        """True if it is no longer a member."""
        found = evidence_of(self._operation)
        if not found.took_effect:
            return found
        if self._world.is_member(self._broker.name):
            return Evidence(took_effect=False, effect="it still holds replicas")
        return Evidence(took_effect=True, effect=f"{self._broker.name} has left")


class Unregistering(Instant):
    """Removes a broker's registration.

    Args:
        world: The cluster.
        broker: The broker.
    """

    def __init__(self, world: World, broker: Broker) -> None:
        self._world = world
        self._broker = broker
        self._operation: Operation | None = None

    def begin(self) -> None:
        """Sends the request."""
        request = UnregisterBrokerRequest(self._broker.node_id)
        self._operation = self._world.administrator.operate(request)

    def evidence(self) -> Evidence:
        """True if the controller has removed it."""
        return evidence_of(self._operation)


class _MemberChange(TargetFault):
    """A change of one server's membership."""

    may_break = AS_MEANT
    span: ClassVar[Span] = "operation"


class AddController(_MemberChange):
    """The administrator adds a controller, with its disk, to the voters of a dynamic quorum."""

    kind = "add-controller"
    proof = "the record with it is committed"
    hits: ClassVar[Hits] = "controller"

    def on(self, names: tuple[str, ...], site: Site) -> VoterRequest:
        """Action on this controller."""
        return VoterRequest(site.world, names[0], adds=True)


class RemoveController(_MemberChange):
    """The administrator removes a controller from the voters."""

    kind = "remove-controller"
    proof = "the record without it is committed"
    hits: ClassVar[Hits] = "controller"

    def on(self, names: tuple[str, ...], site: Site) -> VoterRequest:
        """Action on this controller."""
        return VoterRequest(site.world, names[0], adds=False)


class AddBroker(_MemberChange):
    """The administrator starts a broker beyond `initial.brokers` for the first time."""

    kind = "add-broker"
    proof = "the broker has registered"
    hits: ClassVar[Hits] = "spare broker"

    def on(self, names: tuple[str, ...], site: Site) -> FirstStart:
        """Action on this broker."""
        return FirstStart(site.world, names[0])


class Decommission(_MemberChange):
    """The administrator decommissions a broker: its replicas move, then it leaves (`raft`)."""

    kind = "decommission"
    proof = "the broker holds no replica and is no member any more"
    hits: ClassVar[Hits] = "broker"
    absent_with: ClassVar[tuple[str, ...]] = ("isr",)

    def on(self, names: tuple[str, ...], site: Site) -> Action | None:
        """Action on this broker."""
        broker = site.world.broker(names[0])
        return None if broker is None else Decommissioning(site.world, broker)


class Unregister(_MemberChange):
    """The administrator removes a broker's registration; its process runs on unaware."""

    kind = "unregister"
    proof = "the broker was registered, and the record that removes it is committed"
    may_break = (
        "nothing that is acknowledged; a broker that runs is no replica of anything until it is "
        "restarted"
    )
    hits: ClassVar[Hits] = "broker"
    absent_with: ClassVar[tuple[str, ...]] = ("raft", "zookeeper")

    def on(self, names: tuple[str, ...], site: Site) -> Action | None:
        """Action on this broker."""
        broker = site.world.broker(names[0])
        return None if broker is None else Unregistering(site.world, broker)


MEMBERSHIP: Final[tuple[type[Fault], ...]] = (
    AddController, RemoveController, AddBroker, Decommission, Unregister,
)  # fmt: skip
