"""A process that answers requests: Kafka's socket server, request queue and request handlers.

One request per connection is served at a time: the connection is muted from receipt until its
response has been handed to the socket, so a pipelining client's next request waits in the socket. A
request costs a network thread and a request handler, and one event of the kernel.

Source: ``kafka.network.SocketServer``, ``KafkaRequestHandlerPool``.
"""

from collections import deque
from collections.abc import Iterable

from sim.ids import NodeId, Offset, TopicPartition
from sim.kernel import Call as Scheduled
from sim.log.store.page_cache import ColdRead
from sim.nodes.process.acceptor import Acceptor, ServerSockets, Sockets
from sim.nodes.process.authentication import Authentication
from sim.nodes.process.base import Node
from sim.nodes.process.call import Call, ServerLink
from sim.nodes.process.codec_costs import ProduceCosts
from sim.nodes.process.cold_reads import ColdReads
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.dispatcher import TRY_AGAIN_US
from sim.nodes.process.idle import UNLIMITED, IdleConnections
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.nodes.process.request_guard import RequestGuard
from sim.nodes.process.request_queue import RequestQueue
from sim.nodes.process.throttling import Throttling
from sim.protocol import effects as fx
from sim.protocol.acls import Acl
from sim.protocol.events import RequestReceived
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.data import FetchRequest, FetchResponse
from sim.protocol.quotas.client import Throttle
from sim.substrate.disk import Disk
from sim.substrate.distributions import Delays
from sim.substrate.host import Host
from sim.substrate.links import Envelope
from sim.substrate.network import Connection, Endpoint, Message
from sim.trace.rows.cluster import Halts
from sim.trace.rows.run import RequestsRow
from sim.trace.writer import TableWriter
from sim.units import LONG_AGO, Bytes, Micros


class ServerNode(Node):
    """A broker, controller or ZooKeeper server: listens, queues, decides, answers."""

    def __init__(self, node_id: NodeId, name: str, host: Host, world: World, cpu: CpuSpec) -> None:
        super().__init__(name, host, world)
        self.node_id = node_id
        self.cpu = cpu
        self.teardown_us, self.start_us = cpu.teardown_us, cpu.start_us
        self.routes: dict[type[Request], Port] = {}
        self.codec_costs: ProduceCosts | None = None
        """Codec costs of request handlers; ``None`` if no batch is ever compressed."""
        self.throttling: Throttling | None = None
        """Client quotas; ``None`` if the scenario has none."""
        self.guard: RequestGuard | None = None
        """Rights of clients; ``None`` without an authorizer."""
        self.acceptor: Acceptor | None = None
        """Connection quotas; ``None`` if the scenario has none."""
        self.authentication: Authentication | None = None
        """Authentication of clients; ``None`` without ``cluster.security``."""
        self.sockets: Sockets = ServerSockets(
            self.accepted, self.drop, self.last_used, self.serve_next
        )
        self._idle = IdleConnections(self, self.sockets, host.idle_us)
        self.idle_us, self.never_idle = host.idle_us, UNLIMITED
        self.listening = True
        """True if the port of clients and brokers is open; connections are refused before."""
        self.served_before: tuple[type[Request], ...] = ()
        """Requests that are served before: they arrive on another port of the process."""
        self.requests_answered = 0
        self.rows_end: Offset = 0
        """Offset up to which this process's controller wrote rows of committed records; 0 in a
        process without one."""
        self.performers[fx.Reply] = self._reply
        self._links: dict[Connection, ServerLink] = {}
        self._calls: dict[int, Call] = {}
        self._backlog: dict[Connection, bool] = {}
        self._slowed: deque[tuple[Scheduled, Call]] = deque()
        """Calls that a slow CPU delays, in order of completion."""
        self._tokens = 0
        self._young = Delays(cpu.young_pause, self.streams.named(f"collector/{name}").unit)
        self._young_left: Bytes = cpu.young_bytes
        """Bytes until the next young collection."""
        self._cold = ColdReads(host)
        self._waiting = RequestQueue(host)
        self._unread: deque[Call] = deque()
        """Requests in the sockets of a process whose request queue is jammed."""
        self._requests: TableWriter[RequestsRow] = world.trace.table("requests")

    def route(self, port: Port, *requests: type[Request]) -> None:
        """Routes requests of these types to that machine."""
        for request in requests:
            self.routes[request] = port

    def halt(self, reason: str) -> None:
        """Ends the process at once, as Kafka's ``Exit.halt``; the trace has the reason."""
        if not self.running:
            return
        for disk in self.host.disks:
            # The run's directory is no part of it.
            reason = reason.replace(f"{disk.store.root.parent}/", "")
        self.trace.write(self.kernel.time, Halts.row(self.name, reason=reason))
        self.crash()

    def open_port(self) -> None:
        """Opens the client port: the broker is in service.

        Source: ``SocketServer.enableRequestProcessing``, ``Acceptor.start`` (3.5), which open the
        port when ``BrokerServer`` has seen the broker unfenced.
        """
        self.listening = True
        self.note_state("running")

    def address_of(self, peer: NodeId) -> Endpoint | None:
        """Servers reach each other by another listener's name."""
        return self.world.server(peer)

    def open_connections(self) -> list[Connection]:
        """Every connection of this process, outgoing and accepted."""
        return [*super().open_connections(), *self._links]

    def _forget(self) -> None:
        super()._forget()
        self.routes = {}
        self.served_before = ()
        self._links = {}
        self._calls = {}
        self._backlog = {}
        self._slowed.clear()
        self._cold.pending.clear()
        self._waiting.clear()
        self._unread.clear()
        self._idle.reset()
        if self.acceptor is not None:
            self.acceptor.reset()

    # -- arrival ----------------------------------------------------------------------------------

    def on_accept(self, link: Connection) -> None:
        """A client connected; its requests wait in the backlog until the connection is accepted."""
        if not self.listening and not self.served_before:
            link.reset(self)
            return
        waits = not self.host.accepts or self.acceptor is not None
        self._links[link] = ServerLink(self.kernel.time, muted=waits)
        self._idle.watch()
        if self.authentication is not None:
            self.authentication.opened(link)
        if waits:
            self._backlog[link] = False
        if not self.host.accepts:
            self.host.connections_refused += 1
        elif self.acceptor is not None:
            self.acceptor.arrived(link, protected=isinstance(link.client, ServerNode))

    def accept_again(self) -> None:
        """There are file descriptors again: serves the backlog."""
        for link in list(self._backlog):
            if self.acceptor is None:
                self.accepted(link)
            else:
                self.acceptor.arrived(link, protected=isinstance(link.client, ServerNode))

    def accepted(self, link: Connection) -> None:
        """A connection leaves the backlog: serves its requests."""
        said_hello = self._backlog.pop(link, False)
        state = self._links.get(link)
        if state is not None:
            state.used_us = self.kernel.time
            self._next(state)
            if said_hello:
                self.on_hello(link)

    def drop(self, link: Connection) -> None:
        """Closes a connection."""
        if self._links.pop(link, None) is not None:
            self._backlog.pop(link, None)
            link.close(self)
            self._connection_closed(link)

    def _connection_closed(self, link: Connection) -> None:
        if self.authentication is not None:
            self.authentication.closed(link)
        if self.acceptor is not None:
            self.acceptor.closed(link)

    def on_hello(self, link: Connection) -> None:
        """A client begins the TLS handshake: a network thread does this server's part."""
        if link in self._backlog:
            self._backlog[link] = True
        elif self.frozen:
            self._held.append((self.on_hello, (link,)))
        elif self.authentication is not None and not self.authentication.greets(link):
            self.drop(link)
        elif link.tls is not None:
            now = self.kernel.time
            done = self.host.network_threads.take(now, link.tls.handshake_us)
            self.call_at(done, link.answer_hello)

    def last_used(self) -> list[tuple[Micros, Connection]]:
        """Accepted connections, and when each was last used, in the order of accepting."""
        links, backlog = self._links, self._backlog
        return [(state.used_us, link) for link, state in links.items() if link not in backlog]

    def connection_of(self, token: int) -> Connection | None:
        """Connection of a request that is not answered yet."""
        call = self._calls.get(token)
        return None if call is None else call.link

    def on_closed(self, link: Connection) -> None:
        """A client has disconnected, or a server of an outgoing connection."""
        if self._links.pop(link, None) is None:
            super().on_closed(link)
        else:
            self._connection_closed(link)

    def _receive_message(
        self, link: Connection, message: Message, correlation: int, sent_us: Micros
    ) -> None:
        state = self._links.get(link)
        # A broker that connects to itself holds both ends of the connection.
        if state is None or not isinstance(message, Request):
            super()._receive_message(link, message, correlation, sent_us)
            return
        if not self.listening and type(message) not in self.served_before:
            # The request was for a port that is closed: as if its connection were refused.
            self.drop(link)
            return
        if self.acceptor is not None:
            self.acceptor.used(link)
        now = state.used_us = self.kernel.time
        call = Call(link, message, correlation, sent_us, now)
        if state.muted:
            state.waiting.append(call)
        else:
            state.muted = True
            self._queue(call)

    def _queue(self, call: Call) -> None:
        """Reads a request, unless the request queue is jammed."""
        if self.authentication is not None and self.authentication.takes(call):
            return
        if not self._unread and not self._waiting.is_jammed(self.kernel.time):
            self._read_request(call)
            return
        self._unread.append(call)
        if len(self._unread) == 1:
            self._block()

    def _block(self) -> None:
        """Blocks network threads with unread requests until the queue is looked at again."""
        until = self.kernel.time + TRY_AGAIN_US
        threads = self.host.network_threads
        threads.block(min(len(self._unread), threads.count), until)
        self.call_at(until, self._read_again)

    def _read_again(self) -> None:
        """Reads requests from sockets as far as the queue has places."""
        while self._unread and not self._waiting.is_jammed(self.kernel.time):
            self._read_request(self._unread.popleft())
        if self._unread:
            self._block()

    def _read_request(self, call: Call) -> None:
        """Pays: a network thread reads the request, then a handler takes its time."""
        now = self.kernel.time
        request = call.request
        size = request.size_bytes
        self._young_left -= size + self.cpu.young_request_bytes
        if self._young_left < 0:
            self._collect_young()
        transfer = self.cpu.transfer_us(size, call.link.tls)
        received = self.host.network_threads.take(now, transfer)
        service = self.cpu.service_us(request, size, self.codec_costs)
        handlers = self.host.request_handlers
        waits = handlers.free_at() > received
        call.finished_us = handlers.take(received, service)
        call.started_us = call.finished_us - service
        if waits:
            self._waiting.put(received, call.finished_us - service * handlers.factor)
        scheduled = self.call_at(call.finished_us, self._decide, call)
        if handlers.factor != 1:
            self._slowed.append((scheduled, call))
            while self._slowed[0][1].finished_us < now:
                self._slowed.popleft()

    def _collect_young(self) -> None:
        """Collects the young generation; the request that filled it is in hand already."""
        if self.cpu.young_bytes:
            self._young_left = self.cpu.young_bytes
            self.stop_for(self._young.draw())

    def speed_up(self, by: int) -> None:
        """Calls that wait for a handler are decided sooner, in the same order."""
        now = self.kernel.time
        for scheduled, call in self._slowed:
            if call.finished_us > now:
                scheduled.cancel()
                call.finished_us = now + (call.finished_us - now) // by
                call.started_us = min(call.started_us, call.finished_us)
                self.call_at(call.finished_us, self._decide, call)
        self._slowed.clear()
        self._waiting.speed_up(now, by)

    def may_decide_at(self, request: Request) -> Micros:  # noqa: ARG002 - brokers look at it
        """Instant until which a handler waits for the disk; long past if it does not."""
        return LONG_AGO

    def disk_under(self, partition: TopicPartition) -> Disk | None:  # noqa: ARG002 - brokers know
        """Disk of a partition's log; ``None`` if there is none that works."""
        return None

    # -- decision and response ---------------------------------------------------------------------

    def _decide(self, call: Call) -> None:
        """A handler's work is done; its connection may be closed by now.

        Source: ``KafkaRequestHandler``, which does not check that the connection is still open;
        ``SocketServer.processNewResponses`` then drops the response.
        """
        now = self.kernel.time
        until = self.may_decide_at(call.request)
        if until > now:
            self._waiting.delay(call)
            self.call_at(min(until, now + TRY_AGAIN_US), self._decide, call)
            return
        self._waiting.end_delay(call)
        call.decided_us = now
        if now > call.finished_us:
            self.host.request_handlers.hold(call.finished_us, now)
        port = self.routes.get(type(call.request))
        assert port is not None, f"{self.name} cannot answer {type(call.request).__name__}"
        self._tokens += 1
        self._calls[self._tokens] = call
        if self.throttling is not None:
            self.throttling.begin(self._tokens, call)
        if self.authentication is not None:
            self.authentication.admitted(call)
        if self.guard is None:
            self.deliver(port, RequestReceived(self._tokens, call.link.client.name, call.request))
        else:
            self._decide_authorized(self.guard, port, call)

    def _decide_authorized(self, guard: RequestGuard, port: Port, call: Call) -> None:
        token = self._tokens
        admitted = guard.admit(token, call)
        if isinstance(admitted, fx.Reply):
            self._reply(port, admitted)
        else:
            self.deliver(port, RequestReceived(token, call.link.client.name, admitted))
        guard.note(self.kernel.time)

    def update_acls(self, acls: Iterable[Acl]) -> None:
        """Applies the ACLs of new metadata, if there is an authorizer."""
        if self.guard is not None:
            self.guard.update(acls, self._tokens, self.kernel.time)
            self.guard.settle(self._calls, self._links, self.kernel.time)

    def _reply(self, port: Port, effect: fx.Reply) -> None:  # noqa: ARG002
        call = self._calls.pop(effect.token, None)
        if call is None:
            return
        if self.guard is not None:
            effect = self.guard.complete(effect)
            if not self.guard.is_settled:
                self.guard.settle(self._calls, self._links, self.kernel.time)
        response = effect.response
        if response is not None:
            response = response.answering(call.request)
        throttling, throttle = self.throttling, None
        if throttling is not None:
            throttle = throttling.of(effect.token, call, response, self.now())
        state = self._links.get(call.link)
        if state is None:
            return
        self.requests_answered += 1
        if effect.close:
            self.drop(call.link)
        elif throttling is not None and throttle is not None:
            throttling.note(throttle, call, self.kernel.time)
            self._answer_throttled(throttle, call, response)
        else:
            self._answer(call, state, response)

    def _answer_throttled(self, throttle: Throttle, call: Call, response: Response | None) -> None:
        """Answers now and mutes the connection, or answers later."""
        now = self.kernel.time
        if throttle.answer_after_us:
            self.call_at(now + throttle.answer_after_us, self._answer_late, call, response)
            return
        size = 0
        if response is not None:
            size = response.size_bytes
            write_us = self.cpu.transfer_us(size, call.link.tls)
            written = self.host.network_threads.take(now, write_us)
            throttled = Envelope(response, throttle.throttle_time_us)
            call.link.to_client.send(throttled, call.correlation, written)
        self._note_request(call, now, size)
        self.call_at(now + throttle.unmute_after_us, self.serve_next, call.link)

    def _answer_late(self, call: Call, response: Response | None) -> None:
        """Sends a delayed response, unless its connection is closed."""
        state = self._links.get(call.link)
        if state is not None:
            self._answer(call, state, response)

    def serve_next(self, link: Connection) -> None:
        """Handles a connection's next requests, if it is still open."""
        state = self._links.get(link)
        if state is not None:
            self._next(state)

    def _answer(self, call: Call, state: ServerLink, response: Response | None) -> None:
        now = self.kernel.time
        size = 0
        if response is not None:
            size = response.size_bytes
            write_us = self.cpu.transfer_us(size, call.link.tls)
            if self._cold.pending and type(response) is FetchResponse:
                reads = self._cold.of(response)
                if reads:
                    observer, request = self._cold.observer, call.request
                    if observer is not None and type(request) is FetchRequest:
                        observer.begun(request, response)
                    self._read(reads, write_us, call, state, response)
                    return
            call.link.to_client.send(
                response, call.correlation, self.host.network_threads.take(now, write_us)
            )
        self._note_request(call, now, size)
        self._next(state)

    def _read(
        self,
        reads: dict[TopicPartition, ColdRead],
        write_us: Micros,
        call: Call,
        state: ServerLink,
        response: Response,
    ) -> None:
        """Delays a response until its cold reads are done."""
        disks = {partition: self.disk_under(partition) for partition in reads}
        at = self._cold.read(reads, disks, self.kernel.time, write_us)
        if reads:
            self.call_at(at, self._read, reads, write_us, call, state, response)
        else:
            self.call_at(at, self._hand_over, call, state, response)

    def _hand_over(self, call: Call, state: ServerLink, response: Response) -> None:
        """Sends a response whose cold reads are done."""
        observer, request = self._cold.observer, call.request
        if observer is not None and type(request) is FetchRequest:
            assert type(response) is FetchResponse
            observer.done(request, response)
        if call.link not in self._links:
            return
        call.link.to_client.send(response, call.correlation)
        self._note_request(call, self.kernel.time, response.size_bytes)
        self._next(state)

    def _next(self, state: ServerLink) -> None:
        """The connection's response is in the socket: takes the next request."""
        state.used_us = self.kernel.time
        if state.waiting:
            self._queue(state.waiting.popleft())
        else:
            state.muted = False

    def _note_request(self, call: Call, now: Micros, response_bytes: Bytes) -> None:
        """Writes a row for an answered request."""
        if self._requests.leaves_out():
            return
        request = call.request
        kind = type(request).__name__[:-7]
        if type(request) is FetchRequest and request.replica_id >= 0:
            kind = "FetchFollower"
        self._requests.add(
            (
                now,
                self.node_id,
                kind,
                call.link.client.name,
                call.correlation,
                call.sent_us,
                call.arrived_us,
                call.started_us,
                call.decided_us,
                request.size_bytes,
                response_bytes,
            )
        )
