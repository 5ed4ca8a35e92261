"""Invariants of authentication and authorisation: who has no right writes and reads nothing.

A right that is withdrawn counts from the instant on at which the broker has applied the change and
has answered every request that it had checked before.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn, TypeAlias

from sim.checking.invariant import NO_LOSS, Invariant
from sim.checking.observer import Observer
from sim.checking.partition import Partition, Replica
from sim.ids import NodeId, Offset, server_name
from sim.trace.rows.clients import Reads, ReadsRow
from sim.trace.rows.cluster import (
    AclChanges,
    AclChangesRow,
    AdmittedRequests,
    AdmittedRequestsRow,
    Authentications,
    AuthenticationsRow,
    DelegationTokens,
    DelegationTokensRow,
    Principals,
    PrincipalsRow,
)
from sim.trace.rows.log import Appends, AppendsRow
from sim.units import MS, NEVER, Micros

_Acl: TypeAlias = tuple[str, str, str, str, str, str, str]
"""Principal, host, operation, permission, type, name and pattern of the resource."""

_ANYBODY: Final = "User:*"


def is_allowed(acls: Iterable[_Acl], client: PrincipalsRow, operation: str, topic: str) -> bool:
    """True if the client may do that to the topic by these ACLs.

    Source: ``StandardAuthorizerData.authorize``, of operations that no other implies.
    """
    if client[Principals.PRIVILEGED]:
        return True
    is_named = grants = False
    for principal, host, what, permission, kind, name, pattern in acls:
        of_prefix = pattern == "prefixed" and topic.startswith(name)
        of_name = pattern == "literal" and name in (topic, "*")
        if kind != "topic" or not (of_prefix or of_name):
            continue
        is_named = True
        if principal not in (client[Principals.PRINCIPAL], _ANYBODY):
            continue
        if host not in (client[Principals.HOST], "*") or what not in (operation, "All"):
            continue
        if permission == "deny":
            return False
        grants = True
    return grants if is_named else client[Principals.DEFAULT_ALLOW]


class Rights:
    """ACLs of each broker by its rows: of the last settled update, and of those since."""

    def __init__(self) -> None:
        self.writers: dict[tuple[NodeId, int], PrincipalsRow] = {}
        """By broker and producer index."""
        self.readers: dict[tuple[NodeId, str], PrincipalsRow] = {}
        """By broker and client."""
        self._states: dict[NodeId, list[tuple[int, dict[_Acl, None]]]] = {}
        self._known: dict[tuple[NodeId, str, str, str], bool] = {}

    def add_client(self, row: PrincipalsRow) -> None:
        """A client of a broker."""
        broker, index = row[Principals.BROKER], row[Principals.PRODUCER_INDEX]
        self._states.setdefault(broker, [(1, {})])
        if index < 0:
            self.readers[broker, row[Principals.CLIENT]] = row
        else:
            self.writers[broker, index] = row

    def change(self, row: AclChangesRow) -> None:
        """A change at a broker, or its settlement."""
        states = self._states.setdefault(row[AclChanges.BROKER], [(1, {})])
        version = row[AclChanges.VERSION]
        self._known.clear()
        if row[AclChanges.CHANGE] == "settled":
            states[:] = [state for state in states if state[0] >= version]
            return
        if states[-1][0] < version:
            states.append((version, dict(states[-1][1])))
        acls = states[-1][1]
        acl: _Acl = (
            row[AclChanges.PRINCIPAL], row[AclChanges.HOST], row[AclChanges.OPERATION],
            row[AclChanges.PERMISSION], row[AclChanges.RESOURCE_TYPE],
            row[AclChanges.RESOURCE_NAME], row[AclChanges.PATTERN],
        )  # fmt: skip
        if row[AclChanges.CHANGE] == "added":
            acls[acl] = None
        else:
            acls.pop(acl, None)

    def may(self, client: PrincipalsRow, operation: str, topic: str) -> bool:
        """True if a request in progress may have been allowed that."""
        broker = client[Principals.BROKER]
        key = (broker, client[Principals.CLIENT], operation, topic)
        known = self._known.get(key)
        if known is None:
            states = self._states[broker]
            known = any(is_allowed(acls, client, operation, topic) for _, acls in states)
            self._known[key] = known
        return known


class WritesAreAuthorized(Invariant):
    """Rule of ``KafkaApis.handleProduceRequest``."""

    name = "writes-are-authorized"
    sentence = (
        "A leader with an authorizer appends no batch of a producer without Write on its topic."
    )
    source = "KIP-11; KafkaApis.handleProduceRequest, StandardAuthorizerData"

    def __init__(self) -> None:
        super().__init__()
        self._rights = Rights()

    def _watch(self, observer: Observer) -> None:
        observer.listen("principals", self._rights.add_client)
        observer.listen("acl_changes", self._rights.change)
        observer.appends.append(self._append)

    def _append(self, partition: Partition, _replica: Replica, row: AppendsRow) -> None:
        index = row[Appends.PRODUCER_INDEX]
        client = self._rights.writers.get((row[Appends.BROKER], index))
        if client is None or not row[Appends.AS_LEADER]:
            return
        self.checked += 1
        if not self._rights.may(client, "Write", row[Appends.TOPIC]):
            found = (
                f"offsets {row[Appends.BASE_OFFSET]} to {row[Appends.LAST_OFFSET]} of "
                f"{client[Principals.CLIENT]}, {client[Principals.PRINCIPAL]}"
            )
            raise self.broken_by(row, found, partition)


class ReadsAreAuthorized(Invariant):
    """Rule of ``KafkaApis.handleFetchRequest``.

    What a consumer had fetched before it lost the right may be returned by a later poll; what its
    broker has appended since may not.
    """

    name = "reads-are-authorized"
    sentence = (
        "A broker with an authorizer gives a consumer without Read on a topic nothing that it has "
        "appended since."
    )
    source = "KIP-11; KafkaApis.handleFetchRequest, StandardAuthorizerData"
    conditions = NO_LOSS

    def __init__(self) -> None:
        super().__init__()
        self._rights = Rights()
        self._partitions: Mapping[tuple[str, int], Partition] = {}
        self._bounds: dict[tuple[NodeId, str, str, int], Offset] = {}
        """End of a broker's log when a consumer lost the right: broker, consumer, partition."""

    def _watch(self, observer: Observer) -> None:
        self._partitions = observer.partitions
        observer.listen("principals", self._rights.add_client)
        observer.listen("acl_changes", self._change)
        observer.reads.append(self._read)

    def _change(self, row: AclChangesRow) -> None:
        self._rights.change(row)
        broker = row[AclChanges.BROKER]
        is_settled = row[AclChanges.CHANGE] == "settled"
        for (at, consumer), client in self._rights.readers.items():
            if at != broker:
                continue
            for (topic, number), partition in self._partitions.items():
                key = (broker, consumer, topic, number)
                if self._rights.may(client, "Read", topic):
                    self._bounds.pop(key, None)
                elif is_settled and key not in self._bounds:
                    self._bounds[key] = partition.replica(broker).log_end

    def _read(self, partition: Partition, row: ReadsRow) -> None:
        broker, consumer = row[Reads.READ_FROM], row[Reads.CONSUMER]
        client = self._rights.readers.get((broker, consumer))
        if client is None:
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        topic, number = row[Reads.TOPIC], row[Reads.PARTITION]
        if self._rights.may(client, "Read", topic):
            return
        bound = self._bounds.get((broker, consumer, topic, number), 0)
        if row[Reads.LAST_OFFSET] >= bound:
            found = (
                f"gets offsets {row[Reads.BASE_OFFSET]} to {row[Reads.LAST_OFFSET]} as "
                f"{client[Principals.PRINCIPAL]}, which has no Read since offset {bound}"
            )
            raise self.broken(row[Reads.T_US], consumer, found, partition)


class ClientsAreAuthenticated(Invariant):
    """Rule of ``SaslServerAuthenticator`` and of TLS with certificates of clients."""

    name = "clients-are-authenticated"
    sentence = (
        "A broker with cluster.security gives its handlers no request of a connection that is not "
        "authenticated, or whose session had ended before."
    )
    source = "KIP-43, KIP-152, KIP-368; SaslServerAuthenticator, SocketServer.Processor"

    def __init__(self) -> None:
        super().__init__()
        self._expiries: dict[tuple[NodeId, int], Micros | None] = {}
        """Ends of sessions by broker and connection; ``None`` before it is authenticated."""

    def _watch(self, observer: Observer) -> None:
        observer.listen("authentications", self._authentication)
        observer.listen("admitted_requests", self._request)

    def _authentication(self, row: AuthenticationsRow) -> None:
        key = row[Authentications.BROKER], row[Authentications.CONNECTION]
        is_done = row[Authentications.EVENT] == "authenticated" and row[Authentications.PRINCIPAL]
        expires = row[Authentications.EXPIRES_US]
        self._expiries[key] = (NEVER if expires < 0 else expires) if is_done else None

    def _request(self, row: AdmittedRequestsRow) -> None:
        self.checked += 1
        broker = row[AdmittedRequests.BROKER]
        connection = row[AdmittedRequests.CONNECTION]
        expires = self._expiries.get((broker, connection))
        if expires is None or row[AdmittedRequests.ARRIVED_US] > expires:
            found = (
                f"handles {row[AdmittedRequests.REQUEST]} of {row[AdmittedRequests.CLIENT]} on "
                f"connection {connection}, "
                + ("which is not authenticated" if expires is None else "whose session has ended")
            )
            raise self.broken(row[AdmittedRequests.T_US], server_name(broker), found)


class TokensLimitSessions(Invariant):
    """Rule of ``ScramServerCallbackHandler`` and ``SaslServerAuthenticator.ReauthInfo``.

    A token that has expired is known until a sweep has removed it, and may be named until then.
    """

    name = "tokens-limit-sessions"
    sentence = (
        "A broker takes a client for the owner of a delegation token only if it knows the token, "
        "and gives its handlers no request of that session after the token's end."
    )
    source = "KIP-48, KIP-368; ScramServerCallbackHandler, SaslServerAuthenticator"

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[NodeId, dict[str, str]] = {}
        """Owners of the tokens that a broker knows, by their ids."""
        self._named: dict[tuple[NodeId, int], tuple[str, Micros]] = {}
        """Owner and end of the token of an exchange that is not complete, by connection."""
        self._ends: dict[tuple[NodeId, int], Micros] = {}
        """End of the token of a connection's session."""

    def _watch(self, observer: Observer) -> None:
        observer.listen("delegation_tokens", self._token)
        observer.listen("authentications", self._authentication)
        observer.listen("admitted_requests", self._request)

    def _token(self, row: DelegationTokensRow) -> None:
        change, token = row[DelegationTokens.CHANGE], row[DelegationTokens.TOKEN]
        broker, owner = row[DelegationTokens.BROKER], row[DelegationTokens.OWNER]
        known = self._known.setdefault(broker, {})
        if change == "none":
            known.clear()
        elif change == "applied":
            known[token] = owner
        elif change == "removed":
            known.pop(token, None)
        else:
            self.checked += 1
            if known.get(token) != owner:
                found = f"takes token {token} of {owner}, which it does not know"
                self._break(row[DelegationTokens.T_US], broker, found)
            key = broker, row[DelegationTokens.CONNECTION]
            self._named[key] = owner, row[DelegationTokens.EXPIRES_US]

    def _authentication(self, row: AuthenticationsRow) -> None:
        broker = row[Authentications.BROKER]
        key = broker, row[Authentications.CONNECTION]
        named = self._named.pop(key, None)
        self._ends.pop(key, None)
        if named is None or row[Authentications.EVENT] != "authenticated":
            return
        owner, self._ends[key] = named
        principal = row[Authentications.PRINCIPAL]
        if principal != owner:
            found = f"takes {row[Authentications.CLIENT]} for {principal} by a token of {owner}"
            self._break(row[Authentications.T_US], broker, found)

    def _request(self, row: AdmittedRequestsRow) -> None:
        broker = row[AdmittedRequests.BROKER]
        end = self._ends.get((broker, row[AdmittedRequests.CONNECTION]))
        if end is None:
            return
        self.checked += 1
        # The broker subtracts whole milliseconds.
        if row[AdmittedRequests.ARRIVED_US] > end + MS:
            found = (
                f"handles {row[AdmittedRequests.REQUEST]} of {row[AdmittedRequests.CLIENT]}, "
                "whose delegation token had expired"
            )
            self._break(row[AdmittedRequests.T_US], broker, found)

    def _break(self, at: Micros, broker: NodeId, found: str) -> NoReturn:
        raise self.broken(at, server_name(broker), found)


RIGHTS_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    WritesAreAuthorized,
    ReadsAreAuthorized,
    ClientsAreAuthenticated,
    TokensLimitSessions,
)
