"""Kafka's settings: which there are, what they may be, and which of them are modelled.

A name outside the tables is unknown and refused with its nearest spelling. A name in them that is
not modelled is refused as such unless it is given Kafka's own default: nothing is ever ignored.
Left out: settings of ZooKeeper, and of Connect those that have nothing to do with delivery.

Source: Kafka 4.1 ``AbstractKafkaConfig``, ``TopicConfig``, ``ProducerConfig``, ``ConsumerConfig``.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.settings.broker import BROKER_SETTINGS
from sim.scenario.settings.clients import CONSUMER_SETTINGS, PRODUCER_SETTINGS
from sim.scenario.settings.connect import CONNECT_SETTINGS
from sim.scenario.settings.kafka import defined, difference
from sim.scenario.settings.mirrors import MIRROR_SETTINGS
from sim.scenario.settings.resolved import Config, SettingValue
from sim.scenario.settings.streams import STREAMS_SETTINGS
from sim.scenario.settings.topic import BROKER_DURATIONS, BROKER_SYNONYMS, TOPIC_SETTINGS
from sim.scenario.settings.types import Scope, Setting, as_kafka_writes, shown
from sim.scenario.text.problems import Problem, nearest

SETTINGS: Final[Mapping[Scope, Mapping[str, Setting]]] = {
    "broker": {setting.name: setting for setting in BROKER_SETTINGS},
    "topic": {setting.name: setting for setting in TOPIC_SETTINGS},
    "producer": {setting.name: setting for setting in PRODUCER_SETTINGS},
    "consumer": {setting.name: setting for setting in CONSUMER_SETTINGS},
    "streams": {setting.name: setting for setting in STREAMS_SETTINGS},
    "mirror": {setting.name: setting for setting in MIRROR_SETTINGS},
    "connect": {setting.name: setting for setting in CONNECT_SETTINGS},
}
"""Every known setting, by scope and name. Controllers share the broker's scope, as in Kafka."""

_PLACES: Final[Mapping[Scope, str]] = {
    "broker": "cluster.config",
    "topic": "topics.NAME.config",
    "producer": "producers[].config",
    "consumer": "consumers[].config",
    "streams": "processors[].config",
    "mirror": "mirrors[].config",
    "connect": "connectors[].config",
}


def resolve(scope: Scope, given: Mapping[str, object], inherited: Config | None = None) -> Config:
    """The modelled settings of a scope: as given, else inherited, else Kafka's default.

    Args:
        scope: Whose settings these are.
        given: Names and values as the scenario has them.
        inherited: A topic's broker settings, from which Kafka's synonyms are taken.

    Raises:
        Problem: For an unknown or unmodelled setting or a value out of range; its path is the name.
    """
    known = SETTINGS[scope]
    values: dict[str, SettingValue] = {
        name: _inherited(name, inherited, setting.default)
        for name, setting in known.items()
        if setting.is_modelled
    }
    for name, raw in given.items():
        setting = known.get(name)
        if setting is None:
            raise _unknown(scope, name)
        value = setting.parse(raw)
        if setting.is_modelled:
            values[name] = value
        elif value != setting.default:
            raise Problem(
                (name,),
                f"{shown(raw)} given, but {name} is known and not modelled: {setting.absent}",
                f"Kafka's default, {as_kafka_writes(setting.default)}",
                "leave it out",
            )
    return Config(values)


def _inherited(name: str, broker: Config | None, default: SettingValue) -> SettingValue:
    if broker is None:
        return default
    for duration, unit in BROKER_DURATIONS.get(name, ()):
        given = broker.optional_number(duration)
        if given is not None:
            return given * unit if given >= 0 else -1
    synonym = BROKER_SYNONYMS.get(name)
    return default if synonym is None else broker[synonym]


def _unknown(scope: Scope, name: str) -> Problem:
    for other, table in SETTINGS.items():
        if other != scope and name in table:
            return Problem(
                (name,),
                f"{name} is a {other} setting",
                f"{scope} settings",
                f"write it under {_PLACES[other]}",
            )
    if defined(scope, name) is not None:
        return Problem(
            (name,),
            f"{name} is Kafka's and not simulated here: {difference(name)}",
            "settings that are modelled (logquake list settings)",
            "leave it out",
        )
    return Problem(
        (name,),
        f"unknown {scope} setting {name}",
        "Kafka's own setting names (logquake list settings)",
        nearest(name, tuple(SETTINGS[scope])),
    )
