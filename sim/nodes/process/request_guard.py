"""Authorisation of the requests of one broker process, and its rows of the trace.

Source: ``kafka.server.{KafkaApis,AuthHelper}``, ``AclPublisher``.
"""

from collections.abc import Iterable

from sim.ids import NodeId
from sim.nodes.process.call import Call
from sim.protocol import effects as fx
from sim.protocol.acls import Acl
from sim.protocol.authorization import ApiAuthorizer, AuthorizerConfig
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.data import ProduceRequest
from sim.protocol.rights.caller import Merge
from sim.substrate.network import Connection
from sim.trace.rows.cluster import AclChanges, Denials, Principals
from sim.trace.writer import Trace
from sim.units import Micros


class AppliedAcls:
    """ACLs as a broker's trace knows them, over all its processes.

    Args:
        node_id: The broker.
        config: Settings, and the clients' identities.
        trace: Where changes are written.
    """

    def __init__(self, node_id: NodeId, config: AuthorizerConfig, trace: Trace) -> None:
        self._node_id = node_id
        self._config = config
        self._trace = trace
        self._acls: tuple[Acl, ...] = ()
        self.version = 0
        """Number of updates that changed something."""
        self.settled = 0
        """Last of them from before which no request is in progress."""

    def apply(self, acls: tuple[Acl, ...], now: Micros) -> bool:
        """Writes the differences of an update; true if there are any."""
        first = self.version == 0
        lost = [acl for acl in self._acls if acl not in acls]
        new = [acl for acl in acls if acl not in self._acls]
        if not (first or lost or new):
            return False
        if first:
            self._write_principals(now)
        self._acls = acls
        self.version += 1
        for change, changed in (("removed", lost), ("added", new)):
            for acl in changed:
                self._write(change, acl, now)
        return True

    def settle(self, version: int, now: Micros) -> None:
        """Writes that no request from before an update is still in progress."""
        self.settled = version
        row = AclChanges.row(
            self._node_id, change="settled", version=version, principal="", host="",
            operation="", permission="", resource_type="", resource_name="", pattern="",
        )  # fmt: skip
        self._trace.write(now, row)

    def _write(self, change: str, acl: Acl, now: Micros) -> None:
        row = AclChanges.row(
            self._node_id,
            change=change,
            version=self.version,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission=acl.permission,
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            pattern=acl.pattern,
        )
        self._trace.write(now, row)

    def _write_principals(self, now: Micros) -> None:
        config = self._config
        for client, identity in config.clients.items():
            row = Principals.row(
                self._node_id,
                client=client,
                principal=identity.principal,
                host=identity.host,
                producer_index=identity.producer_index,
                privileged=identity.principal in config.super_users,
                default_allow=config.allows_by_default,
            )
            self._trace.write(now, row)


class RequestGuard:
    """Checks of one process, from its first ACLs on.

    Args:
        node_id: The broker.
        config: Settings, and the clients' identities.
        applied: What the trace knows of its ACLs.
        trace: Where denials are written.
    """

    def __init__(
        self, node_id: NodeId, config: AuthorizerConfig, applied: AppliedAcls, trace: Trace
    ) -> None:
        self.api = ApiAuthorizer(config)
        self._node_id = node_id
        self._applied = applied
        self._trace = trace
        self._merges: dict[int, Merge | None] = {}
        """By the tokens of requests that are carried out in part."""
        self._closing: dict[int, None] = {}
        self._is_new = True
        self._unsettled: list[tuple[int, int]] = []
        """Updates with older requests in progress: version, and last token before it."""

    def update(self, acls: Iterable[Acl], last_token: int, now: Micros) -> None:
        """Applies the ACLs of a new metadata image.

        Args:
            acls: All ACLs.
            last_token: Of the newest request that was checked by those before.
            now: The kernel's time.
        """
        new = tuple(acls)
        if new != self.api.authorizer.acls:
            self.api.authorizer.update(new)
        applied = self._applied
        # Requests of a process before this one have ended with it.
        was_left = self._is_new and applied.settled < applied.version
        if applied.apply(new, now) or was_left:
            self._unsettled.append((applied.version, last_token))
        self._is_new = False

    def admit(self, token: int, call: Call) -> Request | fx.Reply:
        """Checks a request: what is carried out of it, or its answer if nothing is."""
        ruling = self.api.rule(call.link.client.name, call.request)
        if ruling.request is None:
            return fx.Reply(token, ruling.response, ruling.closes)
        if ruling.merge is not None:
            self._merges[token] = ruling.merge
            if ruling.closes:
                self._closing[token] = None
        return ruling.request

    def complete(self, effect: fx.Reply) -> fx.Reply:
        """Adds the errors of what was left out to a response."""
        merge = self._merges.pop(effect.token, None)
        if merge is None:
            return effect
        closes = effect.token in self._closing
        self._closing.pop(effect.token, None)
        response: Response | None = effect.response
        return fx.Reply(
            effect.token, None if response is None else merge(response), effect.close or closes
        )

    def note(self, now: Micros) -> None:
        """Writes the denials since the last call."""
        denials = self.api.denials
        for denial in denials:
            self._trace.write(now, Denials.row(self._node_id, **denial._asdict()))
        denials.clear()

    def settle(self, calls: dict[int, Call], links: Iterable[Connection], now: Micros) -> None:
        """Writes which updates are settled, with the requests that are in progress."""
        while self._unsettled:
            version, last = self._unsettled[0]
            for token, call in calls.items():
                if token <= last and (type(call.request) is ProduceRequest or call.link in links):
                    return
            del self._unsettled[0]
            self._applied.settle(version, now)

    @property
    def is_settled(self) -> bool:
        """True if no update has older requests in progress."""
        return not self._unsettled
