"""Where hosts stand: racks behind a core, clients on a switch of their own, and other regions.

The distance of two hosts decides how long a message takes from one to the other.
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
        """Connect a host to a switch, and the switch to the core."""
        self._graph.add_edge(host, switch)
        self._graph.add_edge(switch, "core")

    def place_far(self, host: str, spread: Spread) -> None:
        """A host is in another region: this is how long its messages take, either way."""
        self._far[host] = spread

    def racks_between(self, sender: str, receiver: str) -> int:
        """Links on the shortest path: 0 on one host, 2 in one rack, 4 across racks."""
        return int(nx.shortest_path_length(self._graph, sender, receiver))

    def spread(self, sender: str, receiver: str) -> Spread:
        """How long a message takes from one host to another."""
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
