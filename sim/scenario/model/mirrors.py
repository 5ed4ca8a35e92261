"""Other clusters of a scenario, and mirrors between clusters, as frozen data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sim.scenario.model.machines import QuantilesModel
from sim.scenario.settings.resolved import Config, SettingValue
from sim.units import Bytes, Micros

if TYPE_CHECKING:
    from sim.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class OtherCluster:
    """A cluster beside the scenario's own, with its clients."""

    alias: str
    distance: QuantilesModel
    """One-way delay of a message between the two regions."""
    scenario: "Scenario"
    """What happens there: topics, clients, faults, expectations; mirrored topics included."""


@dataclass(frozen=True, slots=True)
class MirrorSpec:
    """A mirror of one topic, from the scenario's own cluster to another one."""

    name: str
    topic: str
    target: str
    """Alias of the other cluster."""
    target_topic: str
    """Its name there."""
    partitions: int
    record_size: Bytes
    """Of each record's value."""
    groups: tuple[str, ...]
    """Whose offsets are translated."""
    at: Literal["source", "target"]
    """In whose region it runs."""
    start_us: Micros
    config: Config
    """The mirror's own settings."""
    consumer: Config
    producer: Config

    @property
    def group(self) -> str:
        """``group.id`` under which its own offsets are kept."""
        return self.name

    @property
    def client_names(self) -> tuple[str, ...]:
        """Printed names: one process."""
        return (self.name,)

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """None: it writes outside of transactions."""
        return ()

    def settings(self) -> dict[str, SettingValue]:
        """All settings, under their names in ``config``."""
        return {
            **self.config.values,
            **{f"consumer.{name}": value for name, value in self.consumer.values.items()},
            **{f"producer.{name}": value for name, value in self.producer.values.items()},
        }
