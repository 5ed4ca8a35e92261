"""The administrator's process: creates the scenario's topics before zero, and operates later.

Its own host is in no rack, and faults cannot name it.
"""

from collections.abc import Sequence

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, server_name
from sim.nodes.process.base import Node
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.protocol.acls import Acl
from sim.protocol.clients.admin.bootstrap import Admin, TopicsExist, TopicsRequested
from sim.protocol.clients.admin.client import AdminClient, OperationDone, OperationRequested
from sim.protocol.clients.admin.group_tool import GroupCommand, GroupCommandGiven, GroupTool
from sim.protocol.controller.mutation_quotas import MUTATION_RATE
from sim.protocol.messages.admin import (
    AlterClientQuotasRequest,
    IncrementalAlterConfigsRequest,
    QuotaAlteration,
)
from sim.protocol.messages.base import Request
from sim.protocol.messages.cluster import NewTopic
from sim.protocol.messages.delete_records import DeleteRecordsRequest
from sim.protocol.messages.security import CreateAclsRequest, CreateDelegationTokenRequest
from sim.substrate.host import Host
from sim.units import MINUTE

_GROUP_TOOL = "group-tool"


class Operation:
    """A request of the administrator, and its outcome.

    Args:
        server: The server that has to answer, as text.
        done: The completed action, as text.
    """

    def __init__(self, server: str = "the controller", done: str = "committed") -> None:
        self._server = server
        self._done = done
        self.errors: tuple[tuple[str, ErrorCode], ...] | None = None
        """``None`` until it is done."""

    @property
    def is_done(self) -> bool:
        """True if a server has answered, or none did in time."""
        return self.errors is not None

    @property
    def accepted(self) -> bool:
        """True if a server has carried out any of it."""
        return any(error is ErrorCode.NONE for _, error in self.errors or ())

    @property
    def outcome(self) -> str:
        """Outcome as text."""
        if self.errors is None:
            return f"{self._server} has not answered"
        refused = self.refused
        if not refused:
            return self._done if self.errors else "nothing was needed"
        return f"refused: {', '.join(refused)}"

    @property
    def refused(self) -> list[str]:
        """Refused parts, each with its reason."""
        return [f"{what} {error.name}".strip() for what, error in self.errors or () if error.value]


def _outcomes(operations: Sequence[Operation]) -> str:
    """Outcomes of operations that failed."""
    failed = [each for each in operations if each.refused or not each.accepted]
    return "; ".join(operation.outcome for operation in failed)


class AdminNode(Node):
    """The administrator; runs from the creation of the topics to the end."""

    def __init__(
        self,
        host: Host,
        world: World,
        controllers: tuple[NodeId, ...],
        topics: tuple[NewTopic, ...],
        brokers: tuple[NodeId, ...] = (),
        quotas: tuple[QuotaAlteration, ...] = (),
        acls: tuple[Acl, ...] = (),
        configs: tuple[IncrementalAlterConfigsRequest, ...] = (),
        tokens: tuple[CreateDelegationTokenRequest, ...] = (),
    ) -> None:
        super().__init__("admin", host, world)
        self.idle_us = 5 * MINUTE  # ``connections.max.idle.ms``, AdminClientConfig
        # The scenario's own topics are made before anything limits how fast.
        self._late = tuple(q for q in quotas if any(k == MUTATION_RATE for k, _ in q.changes))
        self._quotas = tuple(quota for quota in quotas if quota not in self._late)
        self._acls = acls
        self._acls_set: Operation | None = None
        self._configs = configs
        self._configs_set: list[Operation] = []
        self._tokens = tokens
        self._tokens_set: list[Operation] = []
        self._quotas_set: list[Operation] = []
        self.admin = Admin(controllers, topics)
        self._controllers = controllers
        self._brokers = brokers
        self._operations: list[Operation] = []
        self.performers[OperationDone] = self._done
        self.performers[TopicsExist] = self._topics_exist

    def boot(self) -> None:
        """Requests the topics."""
        self.deliver(self.add_machine("admin", self.admin), TopicsRequested())
        self._client = self.add_machine("operations", AdminClient(self._controllers, self._brokers))
        self._set_quotas(self._quotas)
        if self._acls:
            self._acls_set = self.operate(CreateAclsRequest(self._acls))
        self._configs_set = [self.operate(request) for request in self._configs]

    @property
    def has_tokens(self) -> bool:
        """True if there are delegation tokens from the start."""
        return bool(self._tokens)

    def make_tokens(self) -> None:
        """Requests the first delegation tokens, whose life begins with the response."""
        self._tokens_set = [self.operate(request) for request in self._tokens]

    @property
    def refusals(self) -> tuple[tuple[str, str], ...]:
        """Errors of all that is to be there at first besides topics; "" if it is there."""
        return (
            ("ACLs", self.acls_refused),
            ("quotas", self.quotas_refused),
            ("groups", _outcomes(self._configs_set)),
            ("delegation tokens", _outcomes(self._tokens_set)),
        )

    @property
    def acls_refused(self) -> str:
        """Errors of the scenario's first ACLs; "" if they are there."""
        made = self._acls_set
        return "" if made is None or (made.accepted and not made.refused) else made.outcome

    @property
    def quotas_refused(self) -> str:
        """Errors of the scenario's initial quotas; "" if all are set."""
        return _outcomes(self._quotas_set)

    def operate(self, request: Request, broker: NodeId = NO_LEADER) -> Operation:
        """Sends a request to the controller, a leader or one broker; the outcome comes later."""
        operation = Operation()
        if isinstance(request, DeleteRecordsRequest):
            operation = Operation("the leader", "deleted")
        elif broker != NO_LEADER:
            operation = Operation(server_name(broker), "agreed")
        number = len(self._operations)
        self._operations.append(operation)
        self.deliver(self._client, OperationRequested(number, request, broker))
        return operation

    def run_group_tool(self, command: GroupCommand) -> Operation:
        """Runs ``kafka-consumer-groups``; the outcome comes later."""
        operation = Operation("the group coordinator", "done")
        number = len(self._operations)
        self._operations.append(operation)
        tool = self.ports.get(_GROUP_TOOL)
        if tool is None:
            tool = self.add_machine(_GROUP_TOOL, GroupTool(self._brokers, self.name))
        self.deliver(tool, GroupCommandGiven(number, command))
        return operation

    def _set_quotas(self, quotas: tuple[QuotaAlteration, ...]) -> None:
        if quotas:
            self._quotas_set.append(self.operate(AlterClientQuotasRequest(quotas)))

    def _topics_exist(self, _port: Port, _effect: TopicsExist) -> None:
        self._set_quotas(self._late)

    def _done(self, _port: Port, effect: OperationDone) -> None:
        self._operations[effect.number].errors = effect.errors
