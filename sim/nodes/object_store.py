"""The object store of tiered storage: a server on the network, with its objects as real files.

A request takes the store's latency, and its bytes the time of one stream; streams do not slow each
other, beyond what the interfaces of their hosts carry. An object that was written stays, whatever
happens to brokers; no list of objects is requested.

Source: KIP-405 leaves the store to a plugin; latency and bandwidth are the scenario's.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sim.ids import OBJECT_STORE_ID, server_name
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.nodes.process.server import ServerNode
from sim.protocol import effects as fx
from sim.protocol.events import RequestReceived
from sim.protocol.messages.object_store import (
    NOT_FOUND,
    OBJECT_REQUESTS,
    OK,
    SLOW_DOWN,
    DeleteObject,
    GetObject,
    ObjectResponse,
    PutObject,
)
from sim.substrate.distributions import Delays, Spread
from sim.substrate.host import Host
from sim.trace.rows.tiered import (
    ObjectRequests,
    RemoteSegments,
)
from sim.units import SECOND, Bytes, Micros

_OPERATIONS = {PutObject: "PUT", GetObject: "GET", DeleteObject: "DELETE"}


@dataclass(frozen=True, slots=True)
class ObjectStoreSpec:
    """An object store's speed."""

    latency: Spread
    """From a request to its answer's first byte."""
    bytes_per_s: int
    """Of one request."""


class _Serve(NamedTuple):
    """Effect: a request is to be served."""

    event: RequestReceived


class _Front:
    """Machine of the store: serves every request apart from others."""

    def handle(self, event: object, now: Micros) -> list[_Serve]:
        """Takes a request."""
        del now
        assert isinstance(event, RequestReceived), "the store only answers"
        return [_Serve(event)]


class ObjectStoreNode(ServerNode):
    """The object store's process; its objects outlive it.

    Args:
        host: Where it runs.
        world: The others.
        cpu: What requests cost.
        spec: Its speed.
        root: Directory of its objects.
    """

    def __init__(
        self, host: Host, world: World, cpu: CpuSpec, spec: ObjectStoreSpec, root: Path
    ) -> None:
        super().__init__(OBJECT_STORE_ID, server_name(OBJECT_STORE_ID), host, world, cpu)
        self._spec = spec
        self._root = root
        self._delays = Delays(spec.latency, self.streams.named("object-store/latency").unit)
        self.factor = 1
        """Factor by which it is slower."""
        self.refuses = False
        """True if it answers 503 to everything."""
        self.affected = 0
        """Requests that a fault made slower, or that were refused."""
        self.performers[_Serve] = self._serve

    def boot(self) -> None:
        """Serves."""
        port = self.add_machine("objects", _Front())
        self.route(port, *OBJECT_REQUESTS)
        self.note_state("running")

    def _serve(self, port: Port, effect: _Serve) -> None:
        now, request = self.kernel.time, effect.event.request
        assert isinstance(request, PutObject | GetObject | DeleteObject), "those are routed"
        if self.refuses:
            self.affected += 1
            self.call_at(now + self._delays.draw(), self._answer_with, port, effect, now, None)
            return
        response = self._found(request) if isinstance(request, GetObject) else ObjectResponse(OK)
        size = len(request.data) if isinstance(request, PutObject) else len(response.data)
        took = self._delays.draw() + size * SECOND // self._spec.bytes_per_s
        if self.factor > 1:
            self.affected += 1
        self.call_at(now + took * self.factor, self._answer_with, port, effect, now, response)

    def _answer_with(
        self, port: Port, effect: _Serve, began: Micros, response: ObjectResponse | None
    ) -> None:
        """Changes the object, and answers; ``None``: 503."""
        request = effect.event.request
        assert isinstance(request, PutObject | GetObject | DeleteObject), "those are routed"
        size: Bytes = 0
        if response is None:
            response = ObjectResponse(SLOW_DOWN)
        elif isinstance(request, PutObject):
            size = len(request.data)
            path = self._root / request.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(request.data)
        elif isinstance(request, DeleteObject):
            (self._root / request.name).unlink(missing_ok=True)
        else:
            size = len(response.data)
        operation, status = _OPERATIONS[type(request)], response.status
        row = ObjectRequests.row(
            effect.event.client,
            operation=operation,
            name=request.name,
            size_bytes=size,
            started_us=began,
            status=status,
        )
        self.trace.write(self.kernel.time, row)
        self.perform(port, [fx.Reply(effect.event.token, response)])

    def _found(self, request: GetObject) -> ObjectResponse:
        path = self._root / request.name
        if not path.exists():
            return ObjectResponse(NOT_FOUND)
        with path.open("rb") as file:
            file.seek(request.position)
            return ObjectResponse(OK, file.read(min(request.length, path.stat().st_size)))

    # -- faults -----------------------------------------------------------------------------------

    def lose(self, topic: str, partition: int, place: float) -> str:
        """Loses one segment's objects of a partition, at a place in [0, 1) of all; its name."""
        logs = sorted((self._root / f"{topic}-{partition}").glob("*.log"))
        if not logs:
            return ""
        chosen = logs[int(place * len(logs))]
        for path in sorted(chosen.parent.glob(f"{chosen.stem}.*")):
            path.unlink()
        base, _, segment = chosen.stem.partition("-")
        row = RemoteSegments.row(
            -1,
            topic,
            partition,
            segment=segment,
            state="LOST",
            start_offset=int(base),
            end_offset=-1,
            leader_epochs="",
            size_bytes=0,
        )
        self.trace.write(self.kernel.time, row)
        return f"{topic}-{partition}/{chosen.name}"
