"""A Kafka setting: its type, default and range, and how a value of it is read.

Values keep Kafka's own plain notation: ``linger.ms: 5`` is five milliseconds; ``5ms`` is
refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sim.scenario.settings.resolved import SettingValue
from sim.scenario.text.problems import Problem, nearest

Scope: TypeAlias = Literal[
    "broker", "topic", "group", "producer", "consumer", "streams", "mirror", "connect"
]
"""Owner of a setting; a controller's settings are a broker's."""

SettingType: TypeAlias = Literal["int", "double", "boolean", "string", "list"]
"""Kafka's ``ConfigDef.Type``, INT and LONG taken together."""

INT_MAX: Final = 2**31 - 1
"""Kafka's ``Integer.MAX_VALUE``."""

LONG_MAX: Final = 2**63 - 1
"""Kafka's ``Long.MAX_VALUE``."""

DOUBLE_MAX: Final = 1.7976931348623157e308
"""Kafka's ``Double.MAX_VALUE``."""

_CLIENTS: Final = "org.apache.kafka.clients.consumer."

_GROUPS: Final = "org.apache.kafka.coordinator.group.assignor."

_REPLICAS: Final = "org.apache.kafka.common.replica."

_MIRRORS: Final = "org.apache.kafka.connect.mirror."

_PRODUCERS: Final = "org.apache.kafka.clients.producer."

SHORT_NAMES: Final[Mapping[str, str]] = {
    f"{_CLIENTS}RangeAssignor": "range",
    f"{_CLIENTS}RoundRobinAssignor": "roundrobin",
    f"{_CLIENTS}StickyAssignor": "sticky",
    f"{_CLIENTS}CooperativeStickyAssignor": "cooperative-sticky",
    f"{_GROUPS}UniformAssignor": "uniform",
    f"{_GROUPS}RangeAssignor": "range",
    **{f"{_REPLICAS}{name}": name for name in ("RackAwareReplicaSelector", "LeaderSelector")},
    **{
        f"{_MIRRORS}{kind}ReplicationPolicy": f"{kind}ReplicationPolicy"
        for kind in ("Default", "Identity")
    },
    **{
        f"{_PRODUCERS}{name}": name.removeprefix("internals.")
        for name in (
            "RoundRobinPartitioner",
            "UniformStickyPartitioner",
            "internals.DefaultPartitioner",
        )
    },
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer": "StandardAuthorizer",
}
"""Class names of configurations, and what we call them."""

_UNITS: Final[tuple[tuple[str, str], ...]] = (
    (".ms", "milliseconds"),
    ("_ms", "milliseconds"),
    (".seconds", "seconds"),
    (".minutes", "minutes"),
    (".hours", "hours"),
    ("bytes", "bytes"),
    (".size", "bytes"),
    ("memory", "bytes"),
)

REPLICA_SELECTORS: Final = ("RackAwareReplicaSelector", "LeaderSelector")
"""Values of ``replica.selector.class``; of Kafka's package ``common.replica``."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``absent`` says why it is not modelled; it is modelled if that is empty."""

    name: str
    type: SettingType
    default: SettingValue
    low: int | None = None
    """Smallest value allowed."""
    high: int | None = None
    """Largest value allowed; ``None``: Kafka's own limit of the type."""
    choices: tuple[str, ...] = ()
    """Values allowed, for a string or the members of a list."""
    absent: str = ""
    because: str = ""
    """Reason why it takes less than Kafka does; empty if it is as Kafka has it."""
    missing: str = ""
    """Reason why the version does not have it, as in ``came with 2.1``; empty if it has it."""
    like: str = ""
    """Of a missing one: the setting whose value the version took instead."""

    @property
    def is_modelled(self) -> bool:
        """True if a value other than the default is accepted."""
        return not self.absent

    @property
    def allowed(self) -> str:
        """Values that it may have, in words."""
        if self.type == "boolean":
            return "true or false"
        if self.choices:
            return ("a list of " if self.type == "list" else "") + ", ".join(self.choices)
        if self.type in {"string", "list"}:
            return "a text"
        kind = "a number" if self.type == "double" else "a whole number"
        unit = next((f" of {word}" for suffix, word in _UNITS if self.name.endswith(suffix)), "")
        low = "" if self.low is None else f" from {self.low}"
        high = "" if self.high is None else f" to {self.high}"
        return f"{kind}{unit}{low}{high}"

    def parse(self, raw: object) -> SettingValue:
        """The value as Kafka would understand it.

        Raises:
            Problem: If the value is of the wrong type or out of range; its path is the name.
        """
        if raw is None and self.default is None:
            return None
        if self.type == "boolean":
            return self._boolean(raw)
        if self.type in {"int", "double"}:
            return self._number(raw)
        return self._text(raw)

    def _boolean(self, raw: object) -> bool:
        if not isinstance(raw, bool):
            raise self._refused(raw)
        return raw

    def _number(self, raw: object) -> int | float:
        whole = isinstance(raw, int) and not isinstance(raw, bool)
        real = self.type == "double" and isinstance(raw, float)
        if not (whole or real):
            raise self._refused(raw)
        assert isinstance(raw, int | float)
        if (self.low is not None and raw < self.low) or raw > self._ceiling():
            raise self._refused(raw)
        return raw

    def _ceiling(self) -> int | float:
        if self.high is not None:
            return self.high
        return DOUBLE_MAX if self.type == "double" else LONG_MAX

    def _text(self, raw: object) -> str:
        if isinstance(raw, list) and self.type == "list":
            words = [str(word) for word in raw]
        elif isinstance(raw, bool) or not isinstance(raw, str | int):
            raise self._refused(raw)
        else:
            words = str(raw).split(",") if self.type == "list" else [str(raw)]
        words = [SHORT_NAMES.get(word.strip(), word.strip()) for word in words]
        for word in words:
            if self.choices and word not in self.choices:
                raise self._refused(raw, nearest(word, self.choices))
        return ",".join(words)

    def _refused(self, raw: object, remedy: str = "") -> Problem:
        if isinstance(raw, str) and self.type == "int" and raw[:1].isdigit():
            remedy = f"Kafka's settings keep Kafka's plain numbers, as in {self.name}: 5"
        return Problem((self.name,), f"{shown(raw)}", self.allowed, remedy)


def shown(raw: object) -> str:
    """A value as the scenario has it, for a message."""
    if raw is None:
        return "nothing"
    if isinstance(raw, bool):
        return as_kafka_writes(raw)
    return repr(raw)


def as_kafka_writes(value: SettingValue) -> str:
    """A setting's value as Kafka's documentation writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
