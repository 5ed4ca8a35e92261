"""Rights that each request needs at a broker, and the responses without them.

A request for several topics is carried out for those that its client may use, and the response gets
the error of the others. The servers and the administrator are super users and pass unchecked.

The table is closed: a client's request of a type that is not in it closes the connection, as one
of an API that the listener does not have.

Left out: rights of administrators.

Source: ``kafka.server.{KafkaApis,AuthHelper}`` (4.1); KIP-679 (IdempotentWrite), KIP-932 (share
groups), KAFKA-18813 (the topics of heartbeats of groups).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.protocol.acls import Authorizer
from sim.protocol.messages.base import Request
from sim.protocol.rights.caller import (
    HEARTBEATS,
    Caller,
    Check,
    ClientIdentity,
    Denial,
    Ruling,
    of_servers,
)
from sim.protocol.rights.data import DATA_CHECKS
from sim.protocol.rights.groups import GROUP_CHECKS
from sim.protocol.rights.producers import PRODUCER_CHECKS


@dataclass(frozen=True, slots=True)
class AuthorizerConfig:
    """Settings of a broker's authorizer."""

    clients: Mapping[str, ClientIdentity]
    """By printed name; all others are super users."""
    super_users: tuple[str, ...] = ()
    """``super.users``."""
    allows_by_default: bool = False
    """``allow.everyone.if.no.acl.found``."""
    topics_checked: tuple[str, ...] = HEARTBEATS
    """Heartbeats in which Describe on named topics is needed (``rights.heartbeat_topics``)."""
    checks: bool = True
    """False: the planted defect of a broker that lets everything pass."""


class ApiAuthorizer:
    """Checks the requests that one broker receives.

    Args:
        config: Settings, and the clients' identities.
    """

    def __init__(self, config: AuthorizerConfig) -> None:
        self._config = config
        default = config.allows_by_default or not config.checks
        self.authorizer = Authorizer(config.super_users, allows_by_default=default)
        self.denials: list[Denial] = []
        """Denials that are not in the trace yet."""

    def may_read(self, client: str, topic: str, request: str = "Fetch") -> bool:
        """True if a consumer may fetch from a topic; checked when its fetch arrives."""
        identity = self._config.clients.get(client)
        if identity is None or not self._config.checks:
            return True
        return self._caller(client, identity, request).has("Read", "topic", topic)

    def rule(self, client: str, request: Request) -> Ruling:
        """Checks a request; fetches are checked by partition, in their sessions."""
        identity = self._config.clients.get(client)
        if identity is None or not self._config.checks:
            return Ruling(request)
        check = CHECKS.get(type(request), of_servers)
        ruling = check(self._caller(client, identity, type(request).__name__[:-7]), request)
        return Ruling(request) if ruling is None else ruling

    def _caller(self, client: str, identity: ClientIdentity, request: str) -> Caller:
        topics = self._config.topics_checked
        return Caller(self.authorizer, self.denials, client, identity, request, topics)


CHECKS: Final[dict[type[Request], Check]] = {**DATA_CHECKS, **GROUP_CHECKS, **PRODUCER_CHECKS}
"""By the type of request; one of any other type is a server's. Topics of fetches are checked in
their sessions."""
