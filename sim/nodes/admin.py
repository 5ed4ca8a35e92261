"""The administrator's process: creates the scenario's topics before its zero."""

from sim.ids import NodeId
from sim.nodes.node import Node, World
from sim.protocol.admin import Admin, TopicsWanted
from sim.protocol.messages import NewTopic
from sim.substrate.host import Host


class AdminNode(Node):
    """Runs until every topic exists."""

    def __init__(
        self,
        host: Host,
        world: World,
        controllers: tuple[NodeId, ...],
        topics: tuple[NewTopic, ...],
    ) -> None:
        super().__init__("admin", host, world)
        self.admin = Admin(controllers, topics)

    def boot(self) -> None:
        """Ask for the topics."""
        self.deliver(self.add_machine("admin", self.admin), TopicsWanted())
