"""Addresses of a rehearsal's nodes, and the links between them.

All of 127.0.0.0/8 belongs to this machine. A rehearsal takes one /16 of it. Each node has an
address, and for each ordered pair of nodes there is a second one, at which that pair's proxy
listens. A node's Java process gets a file of names of its own (``jdk.net.hosts.file``): its own
name is its address, and the name of another node is the address of the pair's proxy. So Kafka
advertises one name to all, and each reader of it gets to another proxy.

Left out: systems where only 127.0.0.1 is an address of the machine.
"""

import itertools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final, cast

from sim.errors import SimulationError
from sim.rehearsal import launcher, proxy
from sim.substrate.links import LinkRule

_TRIES: Final = 50
_PREFIXES: Final = 250
_PORTS: Final = range(20_000, 32_000)
"""Below those that Linux chooses for processes that name none (``ip_local_port_range`` begins at
32,768): another process would have one of them between the search for it and its use."""

NODES_MAX: Final = 250


class Addresses:
    """Addresses and ports of the nodes, by their names.

    Args:
        servers: Brokers and controllers, which listen.
        clients: Processes of clients, which do not.
    """

    def __init__(self, servers: Sequence[str], clients: Sequence[str]) -> None:
        self.servers = tuple(servers)
        self._numbers = {name: place for place, name in enumerate((*servers, *clients), start=1)}
        assert len(self._numbers) <= NODES_MAX, "limits hold it"
        self._prefix, self.ports = self._free()

    def _free(self) -> tuple[str, tuple[int, int]]:
        """A part of the network, and two ports that nobody listens on there."""
        for attempt in range(_TRIES):
            number = os.getpid() + attempt * 7
            prefix = f"127.{2 + number % _PREFIXES}"
            first = _PORTS.start + 2 * number % len(_PORTS)
            ports = first, first + 1
            nodes = [f"{prefix}.0.{node}" for node in self._numbers.values()]
            try:
                for place in itertools.product((*nodes, f"{prefix}.1.1"), ports):
                    socket.create_server(place).close()
            except OSError:
                continue
            return prefix, ports
        raise SimulationError("no free ports on 127.0.0.0/8; end what listens there")

    def address(self, name: str) -> str:
        """The node's own address."""
        return f"{self._prefix}.0.{self._numbers[name]}"

    def seen(self, source: str, target: str) -> str:
        """The address at which one node sees another one."""
        if source == target:
            return self.address(target)
        return f"{self._prefix}.{self._numbers[source]}.{self._numbers[target]}"

    def hosts(self, source: str | None) -> str:
        """The file of names of a node; of ``None``, which no fault is to reach, without proxies."""
        lines = [
            f"{self.address(name) if source is None else self.seen(source, name)} {name}"
            for name in self._numbers
        ]
        return "\n".join([*lines, f"127.0.0.1 localhost {socket.gethostname()}", ""])

    def pairs(self) -> list[dict[str, object]]:
        """Every proxy: where it listens, whose it is, and where it leads."""
        return [
            {
                "source": source, "target": target, "host": self.seen(source, target),
                "port": port, "to": self.address(target),
            }
            for source in self._numbers
            for target in self.servers
            if source != target
            for port in self.ports
        ]  # fmt: skip


class Handle:
    """A rule in force on links."""

    def __init__(self, links: "Links", number: int) -> None:
        self._links = links
        self._number = number
        self._affected: int | None = None

    @property
    def affected(self) -> int:
        """Pieces of data that were held back, delayed or slowed down because of it."""
        if self._affected is None:
            return self._links.order(do="affected", rule=self._number)
        return self._affected

    @affected.setter
    def affected(self, count: int) -> None:
        self._affected = count

    def remove(self) -> None:
        """Removes the rule."""
        self._affected = self._links.order(do="remove", rule=self._number)


class Links:
    """The proxies' process; used as a context manager.

    Args:
        addresses: Of the nodes.
        log: File for what it says.
    """

    def __init__(self, addresses: Addresses, log: Path) -> None:
        self._addresses = addresses
        self._rules = 0
        program = [sys.executable, "-I", "-S", proxy.__file__]
        with log.open("wb") as said:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                launcher.command(program),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        try:
            self.order(do="listen", pairs=addresses.pairs())
        except SimulationError:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def order(self, **what: object) -> int:
        """Gives an order; returns its number.

        Raises:
            SimulationError: If it cannot be carried out.
        """
        into, out = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        try:
            into.write(json.dumps(what) + "\n")
            into.flush()
            line = out.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SimulationError("the proxies of the rehearsal have ended; see real/proxies.log")
        answer: Mapping[str, object] = json.loads(line)
        if "error" in answer:
            raise SimulationError(f"the proxies of the rehearsal: {answer['error']}")
        return int(str(answer["answer"]))

    def add_rule(self, rule: LinkRule) -> Handle:
        """Adds a rule on the links from its senders to its receivers."""
        links = [[one, other] for one in sorted(rule.senders) for other in sorted(rule.receivers)]
        self._rules += 1
        self.order(
            do="add",
            rule=self._rules,
            links=links,
            cut=rule.cut,
            delay_us=rule.delay_us,
            bytes_per_s=rule.bandwidth_bits // 8,
        )
        return Handle(self, self._rules)

    def close(self) -> None:
        """Ends the proxies."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
