"""Authentication of a broker process's clients by its network threads, and its rows of the trace.

Requests of an exchange reach neither the request queue nor a handler. A connection that fails is
closed after a delay, in which it is muted.

Source: ``Selector``, ``KafkaChannel``, ``SocketServer.Processor``; KIP-306.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.nodes.process.acceptor import Sockets
from sim.nodes.process.call import Call
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.process import Process
from sim.protocol.messages.security import TlsAlert
from sim.protocol.metadata.records import DelegationTokenRecord
from sim.protocol.security.config import ListenerSecurity, is_tls
from sim.protocol.security.server import ServerAuthenticator, Verdict
from sim.protocol.security.tokens import TokenCache
from sim.substrate.network import Connection
from sim.trace.rows.cluster import AdmittedRequestsRow, Authentications, DelegationTokens
from sim.trace.writer import TableWriter
from sim.units import EPOCH_MS, MS, NEVER, Micros


@dataclass(slots=True)
class _Session:
    """One connection of a client."""

    number: int
    authenticator: ServerAuthenticator
    is_noted: bool = False
    """True if the trace knows its principal."""


class Authentication:
    """Authenticates the connections of a broker's clients.

    Args:
        process: The broker.
        node_id: Its id.
        sockets: Its connections.
        cpu: Costs of messages.
        listener: The clients' listener.
    """

    def __init__(
        self,
        process: Process,
        node_id: NodeId,
        sockets: Sockets,
        cpu: CpuSpec,
        listener: ListenerSecurity,
    ) -> None:
        self._process = process
        self._node_id = node_id
        self._sockets = sockets
        self._cpu = cpu
        self._listener = listener
        self._sessions: dict[Connection, _Session] = {}
        self._opened = 0
        self._tokens = TokenCache(listener.token_secret)
        self._has_tokens = False
        """True once the trace knows the tokens of this process."""
        self._started_us = process.kernel.time
        self._chance = process.streams.named(f"authentication/{process.name}").unit
        self._admitted: TableWriter[AdmittedRequestsRow] = process.trace.table("admitted_requests")

    def opened(self, link: Connection) -> None:
        """Notes a connection, if it is a client's."""
        if link.client.name not in self._listener.clients:
            return
        self._opened += 1
        nonce = f"{int(self._chance() * (1 << 53)):x}"
        encrypted = link.tls is not None
        client = self._listener.clients[link.client.name]
        authenticator = ServerAuthenticator(
            self._listener,
            client.certificate,
            nonce,
            self._tokens,
            encrypted=encrypted,
            valid_until=link.validity.client_us,
        )
        session = self._sessions[link] = _Session(self._opened, authenticator)
        self._note(link, session, "opened")

    def closed(self, link: Connection) -> None:
        """Notes the end of a connection."""
        self._sessions.pop(link, None)

    def update_tokens(self, tokens: Mapping[str, DelegationTokenRecord]) -> None:
        """Applies the delegation tokens of new metadata.

        Connections that were authenticated with one that is not there any more live on.

        Source: ``DelegationTokenPublisher``.
        """
        update = self._tokens.update(tokens)
        if update.applied and not self._has_tokens:
            # Those that a process before this one knew are known to nobody now.
            self._has_tokens = True
            self._note_token("none", None)
        for record in update.removed:
            self._note_token("removed", record)
        for record in update.applied:
            self._note_token("applied", record)

    def greets(self, link: Connection) -> bool:
        """Presents the broker's certificate; false if the handshake fails.

        A TLS hello is no request to a listener without TLS. Another broker's certificate is looked
        at here, where a client's is with its first request: brokers hear of no alert.
        """
        is_client = link in self._sessions
        certificate = self._listener.certificate if is_client else self._listener.inter_broker
        if certificate is not None:
            now = self._process.kernel.time
            link.validity.server_us = certificate.valid_until(self._started_us, now)
        if is_client:
            return is_tls(self._listener.protocol)
        return self._process.now() < link.validity.client_us

    def takes(self, call: Call) -> bool:
        """True if a request is of an exchange, or comes before one has ended well."""
        session = self._sessions.get(call.link)
        if session is None:
            return False
        verdict = session.authenticator.receive(
            call.request, self._process.kernel.time, self._process.host.clock_offset_us
        )
        if verdict.token is not None:
            self._note_token("named", verdict.token, call.link.client.name, session.number)
        if verdict.logs_in or (session.authenticator.principal and not session.is_noted):
            session.is_noted = True
            self._note(call.link, session, "authenticated")
        if verdict.passes:
            return False
        if verdict.expired:
            # Source: ``SocketServer.Processor.processCompletedReceives``.
            self._note(call.link, session, "expired")
            self._sockets.drop(call.link)
            return True
        spent = self._cpu.transfer_us(call.request.size_bytes, call.link.tls)
        done = self._process.host.network_threads.take(self._process.kernel.time, spent)
        self._process.call_at(done, self._perform, call, session, verdict)
        return True

    def admitted(self, call: Call) -> None:
        """Writes that a handler has a client's request."""
        session = self._sessions.get(call.link)
        if session is not None:
            name = type(call.request).__name__[:-7]
            now = self._process.kernel.time
            client, number = call.link.client.name, session.number
            self._admitted.add((now, self._node_id, client, number, name, call.arrived_us))

    def _perform(self, call: Call, session: _Session, verdict: Verdict) -> None:
        if call.link not in self._sessions:
            return
        if verdict.error is ErrorCode.NONE:
            self._answer(call, verdict)
            self._sockets.serve_next(call.link)
            return
        self._note(call.link, session, "failed", verdict.error)
        if verdict.alerts:
            call.link.to_client.send(TlsAlert(), call.correlation)
        at = self._process.kernel.time + self._listener.failure_delay_us
        self._process.call_at(at, self._end, call, verdict)

    def _end(self, call: Call, verdict: Verdict) -> None:
        if call.link in self._sessions:
            self._answer(call, verdict)
            self._sockets.drop(call.link)

    def _answer(self, call: Call, verdict: Verdict) -> None:
        if verdict.response is not None:
            size = verdict.response.size_bytes
            spent = self._cpu.transfer_us(size, call.link.tls)
            at: Micros = self._process.host.network_threads.take(self._process.kernel.time, spent)
            call.link.to_client.send(verdict.response, call.correlation, at)

    def _note_token(
        self,
        change: str,
        record: DelegationTokenRecord | None,
        client: str = "",
        connection: int = -1,
    ) -> None:
        token, owner, expires = "", "", -1
        if record is not None:
            token, owner = record.token_id, record.owner
            wall = (record.expiry_ms - EPOCH_MS) * MS
            expires = wall - self._process.host.clock_offset_us
        row = DelegationTokens.row(
            self._node_id,
            change=change,
            token=token,
            owner=owner,
            expires_us=expires,
            client=client,
            connection=connection,
        )
        self._process.trace.write(self._process.kernel.time, row)

    def _note(
        self, link: Connection, session: _Session, event: str, error: ErrorCode = ErrorCode.NONE
    ) -> None:
        authenticator, until = session.authenticator, session.authenticator.session_until
        row = Authentications.row(
            self._node_id,
            client=link.client.name,
            connection=session.number,
            event=event,
            protocol=self._listener.protocol,
            mechanism=authenticator.mechanism,
            principal=authenticator.principal,
            error=error.name,
            expires_us=until if until < NEVER else -1,
        )
        self._process.trace.write(self._process.kernel.time, row)
