"""Tasks of a scenario as frozen data."""

from dataclasses import dataclass
from typing import Literal

from sim.scenario.model.parts import numbered
from sim.scenario.settings.resolved import Config, SettingValue
from sim.units import Bytes, Micros


@dataclass(frozen=True, slots=True)
class ProcessorSpec:
    """``count`` tasks alike, members of one group that has their name."""

    name: str
    topics: tuple[str, ...]
    output: str
    """Topic of the outputs."""
    count: int
    outputs: int
    """Of each input record."""
    processing_us: Micros
    """Time the application takes for each input record."""
    commits: Literal["after", "before", "auto"]
    """When input is committed: after its outputs, before they are made, or by the client itself."""
    record_size: Bytes
    """Of each output's value."""
    start_us: Micros
    stop_us: Micros | None
    """Instant of leaving; ``None``: stays to the end."""
    rack: str
    config: Config
    """Streams' own settings."""
    consumer: Config
    producer: Config

    @property
    def group(self) -> str:
        """``group.id`` of its consumers: Streams' ``application.id``."""
        return self.name

    @property
    def client_names(self) -> tuple[str, ...]:
        """Printed names: the name itself, or ``name-1`` to ``name-N``."""
        return numbered(self.name, self.count)

    @property
    def is_exactly_once(self) -> bool:
        """Whether offsets are committed in the transactions of the outputs."""
        return self.config.text("processing.guarantee") == "exactly_once_v2"

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """Of each task; none without transactions."""
        return self.client_names if self.is_exactly_once else ()

    def settings(self) -> dict[str, SettingValue]:
        """All settings that apply, under their names in ``config``."""
        own = dict(self.config.values)
        if self.commits == "auto":
            del own["commit.interval.ms"]
        return {
            **own,
            **{f"consumer.{name}": value for name, value in self.consumer.values.items()},
            **{f"producer.{name}": value for name, value in self.producer.values.items()},
        }

    @property
    def reads_committed(self) -> bool:
        """Whether they read committed data only."""
        return self.consumer.text("isolation.level") == "read_committed"
