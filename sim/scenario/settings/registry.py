"""Kafka's settings: which there are, what they may be, and which of them are modelled.

A name outside the tables is unknown and refused with its nearest spelling. A name in them that is
not modelled is refused as such unless it is given Kafka's own default: nothing is ever ignored.
Types, defaults and bounds are those of Kafka's released jars (:mod:`sim.scenario.settings.facts`);
the modules of each scope say which settings are modelled, and where we are narrower.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Final

from sim.scenario.behaviours.versions import DEFAULT, is_since
from sim.scenario.settings.broker import BROKER_SETTINGS
from sim.scenario.settings.clients import CONSUMER_SETTINGS, PRODUCER_SETTINGS
from sim.scenario.settings.connect import CONNECT_SETTINGS
from sim.scenario.settings.groups import GROUP_SETTINGS, broker_synonym
from sim.scenario.settings.kafka import defined, difference, summary
from sim.scenario.settings.mirrors import MIRROR_SETTINGS
from sim.scenario.settings.overlay import Overlay, declared
from sim.scenario.settings.resolved import Config, SettingValue
from sim.scenario.settings.streams import STREAMS_SETTINGS
from sim.scenario.settings.topic import TOPIC_SETTINGS, broker_settings
from sim.scenario.settings.types import Scope, Setting, as_kafka_writes, shown
from sim.scenario.settings.zookeeper import OF_KRAFT
from sim.scenario.text.problems import Problem, gather, nearest

_OVERLAYS: Final[Mapping[Scope, Sequence[Overlay | Setting]]] = {
    "broker": BROKER_SETTINGS,
    "topic": TOPIC_SETTINGS,
    "group": GROUP_SETTINGS,
    "producer": PRODUCER_SETTINGS,
    "consumer": CONSUMER_SETTINGS,
    "streams": STREAMS_SETTINGS,
    "mirror": MIRROR_SETTINGS,
    "connect": CONNECT_SETTINGS,
}


KRAFT_SINCE: Final = "2.8"
"""The first version with KRaft, as a preview."""

BEFORE_KRAFT: Final = "3.3"
"""Version whose KRaft those have that had none: the first for production (KIP-833)."""


class _Tables(Mapping[Scope, Mapping[str, Setting]]):
    """The settings of each scope in a version, made of Kafka's facts when they are first used."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._made: dict[Scope, Mapping[str, Setting]] = {}

    def __getitem__(self, scope: Scope) -> Mapping[str, Setting]:
        if scope not in self._made:
            self._made[scope] = {
                each.name: _setting(scope, each, self._version) for each in _OVERLAYS[scope]
            }
        return self._made[scope]

    def __iter__(self) -> Iterator[Scope]:
        return iter(_OVERLAYS)

    def __len__(self) -> int:
        return len(_OVERLAYS)


def _setting(scope: Scope, overlay: Overlay | Setting, version: str) -> Setting:
    if isinstance(overlay, Setting):
        return overlay
    if overlay.name in OF_KRAFT and not is_since(version, KRAFT_SINCE):
        version = BEFORE_KRAFT
    return declared(scope, overlay, version)


@cache
def settings_at(version: str) -> Mapping[Scope, Mapping[str, Setting]]:
    """Every known setting of a version of Kafka, by scope and name.

    Without ZooKeeper, versions before :data:`KRAFT_SINCE` have the settings of KRaft in 3.3.
    """
    return _Tables(version)


SETTINGS: Final[Mapping[Scope, Mapping[str, Setting]]] = settings_at(DEFAULT)
"""Those of a scenario that names no version. Controllers share the broker's scope, as in Kafka."""


def overlays(scope: Scope) -> tuple[Overlay, ...]:
    """Differences of ours in the settings that are Kafka's, in the order of the table."""
    return tuple(each for each in _OVERLAYS[scope] if isinstance(each, Overlay))


_PLACES: Final[Mapping[Scope, str]] = {
    "broker": "cluster.config",
    "topic": "topics.NAME.config",
    "group": "groups.NAME.config",
    "producer": "producers[].config",
    "consumer": "consumers[].config",
    "streams": "processors[].config",
    "mirror": "mirrors[].config",
    "connect": "connectors[].config",
}


def resolve(
    scope: Scope,
    given: Mapping[str, object],
    inherited: Config | None = None,
    version: str = DEFAULT,
) -> Config:
    """The modelled settings of a scope: as given, else inherited, else the version's default.

    Args:
        scope: Whose settings these are.
        given: Names and values as the scenario has them.
        inherited: A topic's or a group's broker settings, from which Kafka's synonyms are taken.
        version: Kafka's, unless they are inherited, and so of the brokers' version.

    Raises:
        Problem: For an unknown or unmodelled setting, one that the version lacks, or a value out of
            range; its path is the name.
    """
    version = version if inherited is None else inherited.version
    known = settings_at(version)[scope]
    values: dict[str, SettingValue] = {
        name: _inherited(scope, name, inherited, setting.default)
        for name, setting in known.items()
        if setting.is_modelled
    }
    parsed = gather(partial(_parsed, scope, name, raw, version) for name, raw in given.items())
    values |= {name: value for name, value in parsed if known[name].is_modelled}
    for name in values:
        if known[name].like:
            values[name] = values[known[name].like]
    missing = {name: values.pop(name) for name in tuple(values) if known[name].missing}
    return Config(values, version, missing)


def default_of(scope: Scope, name: str, version: str) -> SettingValue:
    """The default of a setting in a version; of one that it lacks, what it did."""
    return settings_at(version)[scope][name].default


def _parsed(scope: Scope, name: str, raw: object, version: str) -> tuple[str, SettingValue]:
    setting = settings_at(version)[scope].get(name)
    if setting is None:
        raise _unknown(scope, name, version)
    if setting.missing:
        raise _missing(name, setting.missing, version)
    value = setting.parse(raw)
    if not setting.is_modelled and value != setting.default:
        raise Problem(
            (name,),
            f"{shown(raw)} given, but {name} is known and not modelled: {setting.absent}",
            f"Kafka's default, {as_kafka_writes(setting.default)}",
            "leave it out",
        )
    return name, value


def _inherited(
    scope: Scope, name: str, broker: Config | None, default: SettingValue
) -> SettingValue:
    if broker is None:
        return default
    if scope == "group":
        return broker.get(broker_synonym(name), default)
    for synonym, factor in broker_settings(name):
        given = broker[synonym]
        if given is not None:
            return given if factor == 1 else max(broker.number(synonym) * factor, -1)
    return default


def _missing(name: str, why: str, version: str) -> Problem:
    return Problem(
        (name,),
        f"{name} {why}; this cluster runs Kafka {version}",
        f"settings of Kafka {version}",
        "leave it out, or name another version in cluster.kafka",
    )


def _unknown(scope: Scope, name: str, version: str) -> Problem:
    kafkas = defined(scope, name, version)
    if kafkas is not None and (why := kafkas.absence(version)):
        return _missing(name, why, version)
    if kafkas is not None:
        return Problem(
            (name,),
            f"{name} is Kafka's and not simulated here ({summary(kafkas, version)}): "
            f"{difference(scope, name)}",
            "settings that are modelled (logquake list settings)",
            "leave it out",
        )
    for other, table in SETTINGS.items():
        if other != scope and name in table:
            return Problem(
                (name,),
                f"{name} is a {other} setting",
                f"{scope} settings",
                f"write it under {_PLACES[other]}",
            )
    return Problem(
        (name,),
        f"unknown {scope} setting {name}",
        "Kafka's own setting names (logquake list settings)",
        nearest(name, tuple(SETTINGS[scope])),
    )
