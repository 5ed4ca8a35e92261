"""Settings as texts, of a file or a tool, to what a scenario may say; the rest with its reason."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sim.scenario.config import SettingValue
from sim.scenario.problems import Problem
from sim.scenario.settings import SETTINGS
from sim.scenario.settings_types import Scope, Setting

NEEDLESS: Final = (
    *("broker.id", "node.id", "broker.rack", "process.roles", "log.dir", "log.dirs"),
    *("metadata.log.dir", "listeners", "advertised.listeners", "port", "host.name"),
    *("advertised.host.name", "advertised.port", "listener.security.protocol.map"),
    *("inter.broker.listener.name", "controller.listener.names", "control.plane.listener.name"),
    *("controller.quorum.voters", "controller.quorum.bootstrap.servers", "zookeeper.connect"),
    *("broker.id.generation.enable", "reserved.broker.max.id", "bootstrap.servers", "client.id"),
    *("key.serializer", "value.serializer", "zookeeper.connection.timeout.ms"),
)
"""Names and addresses: what they say is said otherwise in a scenario, or has no meaning there."""


@dataclass(slots=True)
class Kept:
    """What is carried over, and what is not."""

    config: dict[str, SettingValue] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    """Lines: the setting, its value, and why it is not simulated."""


def kept(scope: Scope, values: Mapping[str, str], where: str, *, skip: Iterable[str] = ()) -> Kept:
    """The settings that a scenario may have.

    Args:
        scope: Whose settings they are.
        values: By name.
        where: Told in lines about what is not carried over: ``topic orders``.
        skip: Names whose meaning has been taken already.
    """
    found = Kept()
    passed = frozenset(skip)
    for name, text in values.items():
        if name in passed or text == "null":
            continue
        setting = SETTINGS[scope].get(name)
        if setting is None:
            found.absent.append(f"{where}: {name}={text}: unknown in Kafka 4.1, or not a {scope}'s")
            continue
        try:
            value = setting.parse(_typed(setting, text))
        except Problem as problem:
            allowed = f"; allowed: {problem.allowed}" if problem.allowed else ""
            found.absent.append(f"{where}: {name}={text}: not a value that it takes{allowed}")
            continue
        if setting.is_modelled:
            # Also Kafka's default: a topic may say it where its brokers say something else.
            found.config[name] = value
        elif value != setting.default:
            found.absent.append(f"{where}: {name}={text}: {setting.absent}")
    return found


def _typed(setting: Setting, text: str) -> object:
    """The text as YAML would give it; what is no number or no truth stays a text and is refused."""
    word = text.strip()
    if setting.type == "boolean":
        return {"true": True, "false": False}.get(word.lower(), word)
    if setting.type in ("int", "double"):
        for kind in (int, float) if setting.type == "double" else (int,):
            try:
                return kind(word)
            except ValueError:
                continue
    return word
