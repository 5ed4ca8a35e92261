"""Settings in ZooKeeper: how they are changed, announced, and read by every broker.

A change is written to the entity's node; a sequential node announces it. Each broker watches the
announcements, and reads the entities that new ones name: one change after the other, and always
what the node holds by then. A broker that starts reads every entity.

Approximate: a topic's node is created by its first change; until then its settings are those of its
creation, which come with the controller's requests. Announcements stay; Kafka's brokers delete
those that are older than 15 minutes. The controller's thread changes settings, where any broker
does.

Source: ``kafka.server.ZkConfigManager`` (``DynamicConfigManager``), ``TopicConfigHandler``,
``kafka.common.ZkNodeChangeNotificationListener``, ``kafka.zk.AdminZkClient`` (3.9).
"""

from collections.abc import Callable, Generator

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId
from sim.protocol.messages.admin import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from sim.protocol.zk_mode.broker_types import ConfigsRead
from sim.protocol.zk_mode.states import StateMachines, Steps
from sim.protocol.zk_mode.znodes import (
    BROKER_CONFIGS,
    CONFIG_CHANGES,
    DEFAULT_ENTITY,
    TOPIC_CONFIGS,
    Configs,
)
from sim.protocol.zookeeper.session import ZkOperation
from sim.protocol.zookeeper.tree import (
    Create,
    GetChildren,
    GetData,
    SetData,
    ZkCode,
    ZkOutcome,
)

UNCLEAN = "unclean.leader.election.enable"

_ANNOUNCEMENT = f"{CONFIG_CHANGES}/config_change_"

Submission = tuple[int, list[ZkOperation]]
"""Operations to submit, and their tag."""

_Reads = Generator[list[ZkOperation], list[ZkOutcome], None]


def alter_configs(
    states: StateMachines,
    request: IncrementalAlterConfigsRequest,
    answer: Callable[[IncrementalAlterConfigsResponse], None],
) -> Steps:
    """Changes an entity's settings, and announces it even if they were the same before."""
    topic = request.topic
    if topic and (topic not in states.facts or topic in states.to_delete):
        answer(IncrementalAlterConfigsResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return
    path = f"{TOPIC_CONFIGS}/{topic}"
    if not topic:
        name = DEFAULT_ENTITY if request.broker == NO_LEADER else str(request.broker)
        path = f"{BROKER_CONFIGS}/{name}"
    while True:
        (known,) = yield [ZkOperation(GetData(path))]
        configs = dict(states.facts[topic].configs if topic else ())
        if known.node is not None:
            configs = dict(configs_in(known))
        for name, value in request.changes:
            if value is None:
                configs.pop(name, None)
            else:
                configs[name] = value
        data = tuple(configs.items())
        write = Create(path, data) if known.node is None else SetData(path, data)
        (done,) = yield [ZkOperation(write)]
        if done.code is ZkCode.OK:
            break
    yield [ZkOperation(Create(_ANNOUNCEMENT, path, sequential=True))]
    answer(IncrementalAlterConfigsResponse(ErrorCode.NONE))


def configs_in(outcome: ZkOutcome) -> Configs:
    """Settings in a node; none if there is no node."""
    if outcome.node is None:
        return ()
    assert isinstance(outcome.node.data, tuple)
    return outcome.node.data


class ConfigManager:
    """Reader of settings in one broker process, on a thread of its own.

    Args:
        node: ``broker.id``.
        tag: Numbers for submissions, all different.
    """

    def __init__(self, node: NodeId, tag: Callable[[], int]) -> None:
        self._node = node
        self._tag = tag
        self._reads: _Reads | None = None
        self._current = 0
        self._open: dict[int, None] = {}
        self._is_due = False
        self._is_loaded = False
        self._last = ""
        """The last announcement that was handled."""
        self._read: list[ConfigsRead] = []
        self._of_server: dict[str, dict[str, str]] = {}

    def owns(self, tag: int) -> bool:
        """True if a submission is this part's."""
        return tag in self._open

    def setting(self, name: str) -> str | None:
        """This server's value in ZooKeeper: its own, or every broker's; ``None`` without one."""
        for entity in (str(self._node), DEFAULT_ENTITY):
            value = self._of_server.get(entity, {}).get(name)
            if value is not None:
                return value
        return None

    def started(self) -> Submission | None:
        """A session has begun: watches, and reads what was announced without this broker."""
        self._reads = None
        self._is_due = True
        return self._next()

    def announced(self) -> Submission | None:
        """There are announcements; they are read after those at hand."""
        self._is_due = True
        return self._next() if self._reads is None else None

    def answered(self, tag: int, outcome: ZkOutcome) -> tuple[Submission | None, list[ConfigsRead]]:
        """Handles an outcome; returns the next operation, and the settings that were read."""
        del self._open[tag]
        if outcome.code is ZkCode.SESSION_EXPIRED or self._reads is None or tag != self._current:
            self._reads = None  # the next session begins again
            return None, []
        submission = self._submit(self._reads, [outcome])
        read, self._read = self._read, []
        return submission, read

    def _next(self) -> Submission | None:
        while self._is_due:
            self._is_due = False
            self._reads = self._announcements()
            submission = self._submit(self._reads, None)
            if submission is not None:
                return submission
        return None

    def _submit(self, reads: _Reads, outcomes: list[ZkOutcome] | None) -> Submission | None:
        try:
            asks = next(reads) if outcomes is None else reads.send(outcomes)
        except StopIteration:
            self._reads = None
            return self._next()
        assert len(asks) == 1, "one operation after the other"
        self._current = self._tag()
        self._open[self._current] = None
        return self._current, asks

    def _announcements(self) -> _Reads:
        """Source: ``ZkNodeChangeNotificationListener.processNotifications``."""
        (names,) = yield [ZkOperation(GetChildren(CONFIG_CHANGES), watch=True)]
        for name in sorted(names.children):
            if name > self._last:
                (change,) = yield [ZkOperation(GetData(f"{CONFIG_CHANGES}/{name}"))]
                if change.node is not None:
                    assert isinstance(change.node.data, str)
                    yield from self._entity(change.node.data)
                self._last = name
        if self._is_loaded:
            return
        self._is_loaded = True
        for root in (TOPIC_CONFIGS, BROKER_CONFIGS):
            (entities,) = yield [ZkOperation(GetChildren(root))]
            for name in entities.children:
                yield from self._entity(f"{root}/{name}")

    def _entity(self, path: str) -> _Reads:
        """Reads an entity's settings."""
        (found,) = yield [ZkOperation(GetData(path))]
        root, _, name = path.rpartition("/")
        configs = configs_in(found)
        if root == TOPIC_CONFIGS:
            if found.node is not None:
                self._read.append(ConfigsRead(name, configs))
            return
        self._of_server[name] = dict(configs)
        broker = NO_LEADER if name == DEFAULT_ENTITY else int(name)
        self._read.append(ConfigsRead("", configs, broker))
