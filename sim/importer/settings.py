"""Settings as texts, of a file or a tool, to what a scenario may say; the rest with its reason."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sim.importer.masking import is_setting_name, shown
from sim.scenario.model.tokens import TOKEN_SETTINGS
from sim.scenario.rules.topic_configs import TOPIC_TIERED_SETTINGS
from sim.scenario.settings.kafka import defined, difference, summary
from sim.scenario.settings.registry import SETTINGS
from sim.scenario.settings.resolved import SettingValue
from sim.scenario.settings.tiered import TIERED_SETTINGS
from sim.scenario.settings.types import Scope, Setting
from sim.scenario.text.problems import Problem

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

RIGHTS: Final = (
    *("authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found"),
    *TOKEN_SETTINGS,
)
"""Settings without meaning beside clients whose principals, ACLs and tokens are not read."""

_TIERED: Final = frozenset((*TOPIC_TIERED_SETTINGS, *(setting.name for setting in TIERED_SETTINGS)))
_NO_STORE: Final = (
    "no file of Kafka's says how quick the object store is; give cluster.object-store, and this"
)


_UNREAD: Final = "principals, ACLs and delegation tokens"


@dataclass(slots=True)
class CarriedOver:
    """Settings that are carried over, and those that are not."""

    config: dict[str, SettingValue] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    """Lines: the setting, its value unless that is secret, and why it is not simulated."""


def kept(scope: Scope, values: Mapping[str, str], *, skip: Iterable[str] = ()) -> CarriedOver:
    """The settings that a scenario may have.

    Args:
        scope: Whose settings they are.
        values: By name.
        skip: Names whose meaning has been taken already.
    """
    found = CarriedOver()
    passed = frozenset(skip)
    no_settings = 0
    for name, text in values.items():
        if name in passed or text == "null":
            continue
        if name in RIGHTS:
            found.absent.append(f"{name}: not carried over: {_UNREAD} are not read")
            continue
        setting = SETTINGS[scope].get(name)
        if setting is None:
            if defined(scope, name) is None and not is_setting_name(name):
                no_settings += 1
            elif line := _not_here(scope, name, text):
                found.absent.append(line)
            continue
        _carry(setting, text, found)
    if no_settings:
        found.absent.append(f"lines that are no settings: {no_settings}, not shown")
    return found


def _carry(setting: Setting, text: str, found: CarriedOver) -> None:
    """Carries a value over, or says why it is not."""
    name = setting.name
    try:
        value = setting.parse(_typed(setting, text))
    except Problem as problem:
        # A value of the wrong kind may be anything, also what belongs elsewhere.
        allowed = f"; allowed: {problem.allowed}" if problem.allowed else ""
        found.absent.append(f"{name}: given is not a value that it takes{allowed}")
        return
    if setting.is_modelled and name not in _TIERED:
        # Also Kafka's default: a topic may say it where its brokers say something else.
        found.config[name] = value
    elif value != setting.default:
        why = setting.absent or _NO_STORE
        found.absent.append(f"{name}={shown(name, text)}: {why}")


def _not_here(scope: Scope, name: str, text: str) -> str:
    """The line of a setting that scenarios do not know; empty if it has Kafka's own default."""
    known = defined(scope, name)
    if known is None:
        other = next((each for each in SETTINGS if defined(each, name) is not None), None)
        if other is None:
            # Not even the value is known to be harmless: licences and tokens are set so.
            return f"{name}: not Kafka's own: not simulated; its value is not shown"
        return f"{name}: a {other}'s in Kafka, not a {scope}'s; without effect there and here"
    default = known.near().default
    if default is not None and _plain(text) == _plain(default):
        return ""
    return (
        f"{name}={shown(name, text)}: Kafka's, not simulated here ({summary(known)}): "
        f"{difference(scope, name)}"
    )


def _plain(text: str) -> str:
    return ",".join(sorted(word.strip() for word in text.lower().split(",")))


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
