"""Settings of brokers that an administrator changes while they run.

Source: ``kafka-configs --entity-type brokers``; KIP-226.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

from sim.faults.action import Action, Evidence
from sim.faults.fault import Fault, key
from sim.faults.operations import Administer, Administration
from sim.faults.resolve import Site
from sim.faults.surface import Broker, World
from sim.ids import NO_LEADER, NodeId, server_name
from sim.protocol.messages.admin import IncrementalAlterConfigsRequest

_EVERY_BROKER: Final = "every broker"


class BrokerConfigChange(NamedTuple):
    """A setting and its new value; ``None`` removes the one that was set before."""

    name: str
    value: object
    text: str | None
    """In Kafka's notation."""


class ChangedSettings(Administer):
    """Changes settings: done when a running broker has applied one of them.

    Args:
        fault: The settings.
        world: The cluster.
        brokers: Whose they are.
    """

    def __init__(self, fault: "AlterBrokerConfig", world: World, brokers: Sequence[Broker]) -> None:
        super().__init__(world, world.administrator, fault.request())
        self._texts = {change.name: change.text for change in fault.config}
        self._brokers = brokers
        self._before: list[int] = []

    def begin(self) -> None:
        """Sends the request."""
        self._before = [len(broker.setting_changes) for broker in self._brokers]
        super().begin()

    def evidence(self) -> Evidence:
        """True if a broker works with another value now."""
        found = super().evidence()
        if not found.took_effect:
            return found
        changed = [
            text
            for broker, before in zip(self._brokers, self._before, strict=True)
            for text in self._changes_of(broker, before)
        ]
        if changed:
            return Evidence(took_effect=True, effect="; ".join(changed))
        return Evidence(
            took_effect=False,
            effect="committed, but no broker works with another value: it was the same before, "
            "every topic has its own, or none runs",
        )

    def _changes_of(self, broker: Broker, before: int) -> list[str]:
        """The first change of each setting to the requested value."""
        first: dict[str, str] = {}
        for change in broker.setting_changes[before:]:
            if self._texts.get(change.name, "") in (None, change.after):
                text = f"{broker.name}: {change.name} {change.before} -> {change.after}"
                first.setdefault(change.name, text)
        return list(first.values())


@dataclass(frozen=True, kw_only=True)
class AlterBrokerConfig(Administration):
    """The administrator changes settings of one broker, or of all, while they run."""

    kind = "alter-broker-config"
    proof = "a running broker works with another value"
    may_break = "what the setting promises: retention, the minimum ISR, unclean elections"
    absent_with: ClassVar[tuple[str, ...]] = ("raft",)
    broker: NodeId | None = field(
        default=None, metadata=key("broker", "broker", "default: the whole cluster's default")
    )
    config: tuple[BrokerConfigChange, ...] = field(metadata=key("config", "broker config"))

    @property
    def target_text(self) -> str:
        """The broker, or all."""
        return _EVERY_BROKER if self.broker is None else server_name(self.broker)

    def request(self) -> IncrementalAlterConfigsRequest:
        """The changes."""
        changes = tuple((change.name, change.text) for change in self.config)
        broker = NO_LEADER if self.broker is None else self.broker
        return IncrementalAlterConfigsRequest("", changes, broker)

    def action(self, site: Site) -> tuple[Action | None, str]:
        """Action that sends the request, and whose settings they are."""
        names = [name for name in site.world.servers if site.world.broker(name) is not None]
        names = names if self.broker is None else [server_name(self.broker)]
        found = [broker for name in names if (broker := site.world.broker(name)) is not None]
        return ChangedSettings(self, site.world, found), self.target_text


CONFIGURATION: Final[tuple[type[Fault], ...]] = (AlterBrokerConfig,)
