"""The administrator's process: creates the scenario's topics before its zero, and operates later.

Its own host is in no rack, and no fault can name it.
"""

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.nodes.node import Node, World
from sim.nodes.port import Port
from sim.protocol.admin import Admin, TopicsWanted
from sim.protocol.admin_client import AdminClient, OperationDone, OperationWanted
from sim.protocol.messages import NewTopic, Request
from sim.substrate.host import Host


class Operation:
    """One thing the administrator was asked to do, and what came of it."""

    def __init__(self) -> None:
        self.errors: tuple[tuple[str, ErrorCode], ...] | None = None
        """``None`` until it is done."""

    @property
    def accepted(self) -> bool:
        """Whether the controller has committed something of it."""
        return any(error is ErrorCode.NONE for _, error in self.errors or ())

    @property
    def outcome(self) -> str:
        """What the controller said, in words."""
        if self.errors is None:
            return "the controller has not answered"
        refused = [f"{what} {error.name}".strip() for what, error in self.errors if error.value]
        if not refused:
            return "committed" if self.errors else "nothing was needed"
        return f"refused: {', '.join(refused)}"


class AdminNode(Node):
    """Runs from the creation of the topics to the end."""

    def __init__(
        self,
        host: Host,
        world: World,
        controllers: tuple[NodeId, ...],
        topics: tuple[NewTopic, ...],
    ) -> None:
        super().__init__("admin", host, world)
        self.admin = Admin(controllers, topics)
        self._controllers = controllers
        self._operations: list[Operation] = []
        self.performers[OperationDone] = self._done

    def boot(self) -> None:
        """Ask for the topics."""
        self.deliver(self.add_machine("admin", self.admin), TopicsWanted())
        self._client = self.add_machine("operations", AdminClient(self._controllers))

    def operate(self, request: Request) -> Operation:
        """Ask the controller for something; the answer comes later."""
        operation = Operation()
        self._operations.append(operation)
        self.deliver(self._client, OperationWanted(len(self._operations) - 1, request))
        return operation

    def _done(self, _port: Port, effect: OperationDone) -> None:
        self._operations[effect.number].errors = effect.errors
