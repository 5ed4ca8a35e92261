"""Placement of hosts: racks behind a core, clients on a switch of their own, and other regions.

The distance of two hosts determines the delay of a message between them.
"""

import networkx as nx

from sim.substrate.distributions import Spread
from sim.substrate.links import CLIENTS, NetworkSpec


class Topology:
    """A graph of hosts and switches.

    Args:
        spec: Delays by distance.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        self._spec = spec
        self._graph: nx.Graph[str] = nx.Graph()
        self._far: dict[str, Spread] = {}

    def add_host(self, host: str, switch: str) -> None:
        """Connects a host to a switch, and the switch to the core."""
        self._graph.add_edge(host, switch)
        self._graph.add_edge(switch, "core")

    def place_far(self, host: str, spread: Spread) -> None:
        """Places a host in another region, with the delay of its messages, either way."""
        self._far[host] = spread

    def racks_between(self, sender: str, receiver: str) -> int:
        """Links on the shortest path: 0 on one host, 2 in one rack, 4 across racks."""
        return int(nx.shortest_path_length(self._graph, sender, receiver))

    def spread(self, sender: str, receiver: str) -> Spread:
        """Delay of a message from one host to another."""
        if sender == receiver:
            return self._spec.loopback
        far = self._far.get(sender) or self._far.get(receiver)
        if far is not None:
            return far
        if CLIENTS in self._graph[sender] or CLIENTS in self._graph[receiver]:
            return self._spec.client
        if self.racks_between(sender, receiver) <= 2:
            return self._spec.same_rack
        return self._spec.cross_rack
