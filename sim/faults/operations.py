"""What an administrator does while the cluster runs, as an entry of the calendar.

Source: ``kafka-topics``, ``kafka-configs``, ``kafka-reassign-partitions``,
``kafka-leader-election``, ``kafka-delete-records``,
``AdminClient.alterReplicaLogDirs``, ``kafka-metadata-quorum``; of Redpanda
``rpk redpanda admin brokers decommission``.
"""

from sim.faults.action import Evidence
from sim.faults.spec import OperationSpec
from sim.faults.surface import Administrator, Broker, Operation, World
from sim.protocol.messages import (
    AddRaftVoterRequest,
    AlterReplicaLogDirsRequest,
    DecommissionBrokerRequest,
    RemoveRaftVoterRequest,
)


def evidence_of(operation: Operation | None) -> Evidence:
    """Whether the server that was asked has done it."""
    if operation is None:
        return Evidence(took_effect=False, effect="it never began")
    return Evidence(operation.accepted, operation.outcome)


class Administer:
    """Asked for in an instant; there is nothing to heal.

    Kafka answers without an error when what is asked for is so already; that changes nothing.
    """

    def __init__(self, world: World, administrator: Administrator, asked: OperationSpec) -> None:
        self._world = world
        self._administrator = administrator
        self._asked = asked
        self._operation: Operation | None = None
        self._was_so = False

    def begin(self) -> None:
        """Send the request."""
        self._was_so = self._world.is_no_op(self._asked.request)
        self._operation = self._administrator.operate(self._asked.request, self._asked.broker)

    def heal(self) -> bool:
        """Nothing to do."""
        return True

    def evidence(self) -> Evidence:
        """Whether the server that was asked has done it, and it was not so before."""
        found = evidence_of(self._operation)
        if found.took_effect and self._was_so:
            return Evidence(took_effect=False, effect=f"{found.effect}, and it was so before")
        return found


class MoveReplica(Administer):
    """A replica goes to another log directory: not the answer counts, but that it arrives.

    Args:
        world: The cluster.
        administrator: Who asks.
        asked: For what; its request names one partition.
        broker: Whose replica it is.
    """

    def __init__(
        self, world: World, administrator: Administrator, asked: OperationSpec, broker: Broker
    ) -> None:
        super().__init__(world, administrator, asked)
        self._broker = broker
        self._before = 0

    def begin(self) -> None:
        """Send the request."""
        self._before = self._arrivals()
        super().begin()

    def evidence(self) -> Evidence:
        """Whether the replica has arrived since."""
        found = super().evidence()
        if not found.took_effect:
            return found
        if self._arrivals() > self._before:
            return Evidence(took_effect=True, effect="the replica has arrived")
        return Evidence(took_effect=False, effect="on its way, or nothing to move")

    def _arrivals(self) -> int:
        request = self._asked.request
        assert isinstance(request, AlterReplicaLogDirsRequest), "nothing else moves replicas"
        ((partition, _),) = request.directories
        return self._broker.arrivals(partition, self._asked.directory)


class ChangeVoters:
    """A controller gets a vote on metadata, or loses it.

    The tool is given a directory id: to add, that of the disk the controller has now; to remove,
    that of the vote, which ``kafka-metadata-quorum describe`` shows.

    Args:
        world: Where both are looked up, when it begins.
        administrator: Who asks.
        controller: Whose vote it is.
        adds: Whether it gets one.
    """

    def __init__(
        self, world: World, administrator: Administrator, controller: str, *, adds: bool
    ) -> None:
        self._world = world
        self._administrator = administrator
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
        self._operation = self._administrator.operate(request)

    def heal(self) -> bool:
        """Nothing to do."""
        return True

    def evidence(self) -> Evidence:
        """Whether the leader of the quorum has done it."""
        return evidence_of(self._operation)


class AddBroker:
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

    def heal(self) -> bool:
        """Nothing to do."""
        return True

    def evidence(self) -> Evidence:
        """Whether it has registered, and had not before."""
        if not self._was_spare:
            return Evidence(took_effect=False, effect=f"{self._name} was added before")
        if self._world.is_member(self._name):
            return Evidence(took_effect=True, effect=f"{self._name} is a member")
        return Evidence(took_effect=False, effect=f"{self._name} has not registered")


class Decommission:
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

    def heal(self) -> bool:
        """Nothing to do."""
        return True

    def evidence(self) -> Evidence:
        """Whether it is a member no more."""
        found = evidence_of(self._operation)
        if not found.took_effect:
            return found
        if self._world.is_member(self._broker.name):
            return Evidence(took_effect=False, effect="it still holds replicas")
        return Evidence(took_effect=True, effect=f"{self._broker.name} has left")
