"""TCP proxies between the nodes of a rehearsal, one for each ordered pair of them.

Run as a script, in a process of its own. Lines of JSON on standard input direct it, each is
answered by one on standard output, and it ends with its input. A connection that a node opens to
another one passes through that pair's proxy, and the rules of both directions hold for its bytes:

* *cut*: bytes that were sent wait until the rule is removed, as TCP sends them again and again. Who
  begins to connect meanwhile gets no answer: the listening socket's queue is full, for which Linux
  drops the first segment of a connection, and the client repeats it.
* *delay*: bytes arrive so much later, in their order.
* *bandwidth*: so many bytes a second pass, over all links of the rule.

A connection whose other side is not there is reset. The end of a connection is held and delayed as
its bytes are. Left out: loss of packets below TCP.

Source: listen(2), ``tcp_conn_request`` of Linux: a full accept queue drops the SYN.
"""

import asyncio
import json
import socket
import struct
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

CHUNK: Final = 65_536
HELD_MAX: Final = 64 * CHUNK
"""Bytes of one direction of a connection that wait here; then its sender's socket fills."""

BACKLOG: Final = 128
_RESET: Final = struct.pack("ii", 1, 0)
_SETTLE_S: Final = 0.02

Link = tuple[str, str]
"""Sender and receiver."""


@dataclass(slots=True)
class Rule:
    """Fault of some links."""

    links: frozenset[Link]
    cut: bool
    delay_s: float
    bytes_per_s: int
    affected: int = 0
    """Pieces of data that were held, delayed or slowed down."""
    free_at: float = 0.0
    """Instant at which the last byte of a narrow link has passed."""


class Rules:
    """Rules in force."""

    def __init__(self) -> None:
        self._rules: dict[int, Rule] = {}
        self._changed = asyncio.Event()

    def add(self, number: int, rule: Rule) -> None:
        """Adds a rule."""
        self._rules[number] = rule
        self._wake()

    def remove(self, number: int) -> int:
        """Removes a rule; returns how many pieces it has affected."""
        rule = self._rules.pop(number)
        self._wake()
        return rule.affected

    def affected(self, number: int) -> int:
        """Number of pieces that a rule has affected so far."""
        return self._rules[number].affected

    def is_cut(self, *links: Link) -> bool:
        """True if nothing passes on one of the links."""
        return any(
            rule.cut and link in rule.links for rule in self._rules.values() for link in links
        )

    def due(self, link: Link, size: int, now: float) -> float:
        """Instant at which data sent now on a link arrives, cuts left aside."""
        at = now
        for rule in self._rules.values():
            if link not in rule.links or rule.cut:
                continue
            rule.affected += 1
            at += rule.delay_s
            if rule.bytes_per_s:
                rule.free_at = max(rule.free_at, now) + size / rule.bytes_per_s
                at = max(at, rule.free_at)
        return at

    async def open(self, link: Link) -> None:
        """Waits until nothing cuts a link."""
        first = True
        while self.is_cut(link):
            if first:
                first = False
                for rule in self._rules.values():
                    rule.affected += rule.cut and link in rule.links
            changed = self._changed
            await changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


@dataclass(slots=True)
class Pair:
    """A listening socket: whose connections it takes, and to whom it leads."""

    source: str
    target: str
    address: tuple[str, int]
    to: tuple[str, int]
    listening: socket.socket
    fillers: list[socket.socket] = field(default_factory=list)
    """Connections of our own that fill its queue while the pair is cut."""

    @property
    def both_ways(self) -> tuple[Link, Link]:
        """Both directions."""
        return (self.source, self.target), (self.target, self.source)


class Proxies:
    """All pairs."""

    def __init__(self) -> None:
        self.rules = Rules()
        self._pairs: list[Pair] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def listen(self, pairs: Sequence[Mapping[str, Any]]) -> None:
        """Listens for every pair."""
        for each in pairs:
            address = (each["host"], each["port"])
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen(BACKLOG)
            made.settimeout(0)
            pair = Pair(each["source"], each["target"], address, (each["to"], each["port"]), made)
            self._pairs.append(pair)
            self._accept_again(pair)

    def refresh(self) -> None:
        """Lets pairs accept connections, or none, as the rules are now."""
        for pair in self._pairs:
            is_cut = self.rules.is_cut(*pair.both_ways)
            if is_cut and not pair.fillers:
                self._fill(pair)
            elif pair.fillers and not is_cut:
                self._empty(pair)

    def _fill(self, pair: Pair) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(pair.listening)
        self._accept(pair)
        pair.listening.listen(0)
        filler = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        filler.settimeout(_SETTLE_S)
        with suppress(OSError):  # somebody else was quicker, and the queue is full all the same
            filler.connect(pair.address)
        pair.fillers.append(filler)

    def _empty(self, pair: Pair) -> None:
        for filler in pair.fillers:
            filler.close()
        pair.fillers.clear()
        pair.listening.listen(BACKLOG)
        self._accept_again(pair)

    def _accept_again(self, pair: Pair) -> None:
        asyncio.get_running_loop().add_reader(pair.listening, self._accept, pair)

    def _accept(self, pair: Pair) -> None:
        while True:
            try:
                accepted, _ = pair.listening.accept()
            except (BlockingIOError, ConnectionError):
                return
            accepted.settimeout(0)
            task = asyncio.get_running_loop().create_task(self._carry(pair, accepted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, pair: Pair, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        onward = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        onward.settimeout(0)
        for each in (accepted, onward):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there, back = pair.both_ways
        try:
            await loop.sock_connect(onward, pair.to)
            async with asyncio.TaskGroup() as group:
                group.create_task(_Stream(self.rules, there, accepted, onward).run())
                group.create_task(_Stream(self.rules, back, onward, accepted).run())
        except* OSError:
            for each in (accepted, onward):
                with suppress(OSError):
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        finally:
            accepted.close()
            onward.close()


class _Stream:
    """One direction of a connection."""

    def __init__(
        self, rules: Rules, link: Link, source: socket.socket, sink: socket.socket
    ) -> None:
        self._rules = rules
        self._link = link
        self._source = source
        self._sink = sink
        self._waiting: deque[tuple[float, bytes | OSError]] = deque()
        self._held = 0
        self._more = asyncio.Event()
        self._less = asyncio.Event()

    async def run(self) -> None:
        """Passes everything on until the source has closed; raises what broke the source."""
        reading = asyncio.create_task(self._read())
        try:
            await self._write()
        finally:
            reading.cancel()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                data: bytes | OSError = await loop.sock_recv(self._source, CHUNK)
            except OSError as error:
                data = error
            size = 0 if isinstance(data, OSError) else len(data)
            self._waiting.append((self._rules.due(self._link, size, loop.time()), data))
            self._held += size
            self._more.set()
            if size == 0:
                return
            while self._held > HELD_MAX:
                self._less.clear()
                await self._less.wait()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._waiting:
                self._more.clear()
                await self._more.wait()
            at, data = self._waiting.popleft()
            if at > loop.time():
                await asyncio.sleep(at - loop.time())
            await self._rules.open(self._link)
            if isinstance(data, OSError):
                raise data
            if not data:
                with suppress(OSError):
                    self._sink.shutdown(socket.SHUT_WR)
                return
            await loop.sock_sendall(self._sink, data)
            self._held -= len(data)
            self._less.set()


def obey(proxies: Proxies, order: Mapping[str, Any]) -> object:
    """Carries out one order; returns the answer."""
    match order["do"]:
        case "listen":
            proxies.listen(order["pairs"])
            return len(order["pairs"])
        case "add":
            rule = Rule(
                frozenset((one, other) for one, other in order["links"]),
                order["cut"],
                order["delay_us"] / 1_000_000,
                order["bytes_per_s"],
            )
            proxies.rules.add(order["rule"], rule)
            proxies.refresh()
            return 0
        case "remove":
            affected = proxies.rules.remove(order["rule"])
            proxies.refresh()
            return affected
        case "affected":
            return proxies.rules.affected(order["rule"])
        case other:
            raise ValueError(f"no order {other!r}")


async def serve() -> None:
    """Obeys until the input ends."""
    proxies = Proxies()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        try:
            answer: object = {"answer": obey(proxies, json.loads(line))}
        except OSError as error:
            answer = {"error": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve())
