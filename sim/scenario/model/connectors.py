"""Connectors of a scenario as frozen data."""

from dataclasses import dataclass
from typing import Literal

from sim.scenario.model.parts import numbered
from sim.scenario.settings.connect import WORKERS
from sim.scenario.settings.resolved import Config, SettingValue
from sim.units import Bytes, Micros


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """``tasks`` tasks alike of one connector, each a process of its own.

    Those of a source read a partition of the external log each; those of a sink are members of one
    group.
    """

    name: str
    kind: Literal["source", "sink"]
    topics: tuple[str, ...]
    """What it writes to (one), or reads."""
    tasks: int
    rate_per_s: int
    """Records that appear in each partition of the external log; 0 for a sink."""
    record_size: Bytes
    """Of each record's value."""
    poll_us: Micros
    batch: int
    stop_us: Micros
    """From then on none appears."""
    processing_us: Micros
    buffer: int
    delivery: Literal["at-least-once", "exactly-once"]
    """Of a sink; that of a source is said by its settings."""
    start_us: Micros
    rack: str
    config: Config
    """Connect's own settings."""
    client: Config
    """Of its producers, or of its consumers."""

    @property
    def is_source(self) -> bool:
        """Whether it writes to Kafka."""
        return self.kind == "source"

    @property
    def group(self) -> str:
        """``group.id`` of a sink's consumers, or under which a source's positions are kept."""
        return f"connect-{self.name}"

    @property
    def count(self) -> int:
        """How many processes it has."""
        return self.tasks

    @property
    def client_names(self) -> tuple[str, ...]:
        """Printed names: the name itself, or ``name-1`` to ``name-N``."""
        return numbered(self.name, self.tasks)

    @property
    def is_exactly_once(self) -> bool:
        """Whether positions of a source are committed in the transactions of its records."""
        return self.is_source and self.config.text("exactly.once.source.support") == "enabled"

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """Of each task (``Worker.taskTransactionalId``); none without transactions."""
        if not self.is_exactly_once:
            return ()
        return tuple(f"{WORKERS}-{self.name}-{task}" for task in range(self.tasks))

    @property
    def reads_committed(self) -> bool:
        """Whether it is a sink that reads committed data only."""
        return not self.is_source and self.client.text("isolation.level") == "read_committed"

    def settings(self) -> dict[str, SettingValue]:
        """All settings that apply, under their names in ``config``."""
        prefix = "producer" if self.is_source else "consumer"
        return {
            **self.config.values,
            **{f"{prefix}.{name}": value for name, value in self.client.values.items()},
        }
