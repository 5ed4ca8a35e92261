"""Settings that Kafka has, and what a run does not show where one of them is not simulated.

Source: the released ConfigDefs (:mod:`sim.scenario.settings.facts`).
"""

import re
from collections.abc import Mapping
from typing import Final

from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.settings.facts import KafkaSetting, VersionedSetting, settings_of
from sim.scenario.settings.overlay import DEFINITIONS, known
from sim.scenario.settings.types import Scope

_LISTENER: Final = re.compile(r"listener\.name\.[^.]+\.(?:[^.]+\.(?=sasl\.))?")

_IDENTITY: Final = (
    "cluster.security and each client's login say who authenticates, and how; what TLS costs is "
    "cluster.cpu"
)
_METRICS: Final = "metrics are not reported; makes no difference to records and leaders"
_TIERED: Final = (
    "a remote log is copied, read and deleted as by default: this plugin, quota, cache or way to "
    "start is not simulated"
)
_VERSION: Final = "cluster.kafka says which version's behaviour is simulated"
_THREADS: Final = "makes a difference only where this work holds up other work of the broker"
_JAVA: Final = "there are no Java classes here; what such a class would do or forbid is not done"
_GROUPS: Final = "bounds and pace of groups of this kind are not simulated"
_PLACES: Final = "addresses and connections are the scenario's"
_QUORUM: Final = "sizes and pace of the metadata log are fixed; reading it takes less or more time"
_TOPICS: Final = "internal topics keep Kafka's default here; sizes of their files differ"
_ZOOKEEPER: Final = "the ensemble is that of cluster.zookeeper, without TLS, ACLs and migration"

_DIFFERENCES: Final = (
    (r"zookeeper\..*", _ZOOKEEPER),
    (r"(.*\.)?(ssl|sasl|password\.encoder)\..*", _IDENTITY),
    (r"(authorizer\.class\.name|super\.users|allow\.everyone\.if\.no\.acl\.found)", _IDENTITY),
    (r"(principal\.builder\.class|security\.(protocol|providers))", _IDENTITY),
    (r"connections\.max\.reauth\.ms", _IDENTITY),
    (r"(kafka\.)?(metrics?)\..*|auto\.include\.jmx\.reporter|telemetry\..*", _METRICS),
    (r"enable\.metrics\.push|controller\.performance\..*|log\.cleaner\.hash.*", _METRICS),
    (r"remote\..*|log\.local\..*|local\..*", _TIERED),
    (r"inter\.broker\.protocol\.version|.*message\.format\.version", _VERSION),
    (r".*downconversion\.enable", _VERSION),
    (r".*timestamp\.difference\.max\.ms", "timestamps are not bounded by it, as by default"),
    (r"(advertised\.)?(host\.name|port)", _PLACES),
    (r"quota\.(consumer|producer)\.default", "quotas of clients stand under quotas:"),
    (r"block\.on\.buffer\.full|metadata\.fetch\.timeout\.ms", "max.block.ms bounds every wait"),
    (r"timeout\.ms", "request.timeout.ms is the time that a leader has"),
    (r"group\.coordinator\.new\.enable|group\.share\.enable|unstable\..*", _VERSION),
    (r"eligible\.leader\.replicas\.enable", _VERSION),
    (r"alter\.config\.policy\..*", _JAVA),
    (r".*\.(class|class\.name|classes)|config\.providers.*|.*callback\.class", _JAVA),
    (r"(group\.(share|streams|consumer)|share)\..*", _GROUPS),
    (r".*(background\.threads|buffer\.max\.bytes|load\.buffer\.size)", _THREADS),
    (r".*purgatory.*", _THREADS),
    (r"(early\.start\.listeners|control\.plane\..*|.*listener.*)", _PLACES),
    (r"socket\.connection\..*|replica\.socket\.receive\..*|.*\.socket\..*", _PLACES),
    (r"(controller\.quorum|internal|metadata)\..*", _QUORUM),
    (r"offsets\.commit\.required\.acks", "a commit waits for all replicas in sync, as by default"),
    (r".*\.compression\.codec", _TOPICS),
    (r"log\.preallocate", "files hold exactly what was written"),
    (r"(broker\.id\.generation\.enable|reserved\.broker\.max\.id)", "ids are the scenario's"),
)


_OF_SCOPE: Final[Mapping[Scope, str]] = {
    "streams": (
        "a task reads, processes and writes: it has no state, topology and serdes; settings of its "
        "clients stand as consumer. and producer. before their names"
    ),
    "mirror": (
        "a mirror is one task for one topic: no REST, plugins, converters and internal topics; "
        "settings of its clients stand as consumer. and producer. before their names"
    ),
    "connect": (
        "a connector's tasks are processes of their own: no REST, plugins, converters and internal "
        "topics; settings of their clients stand as consumer. and producer. before their names"
    ),
}
UNSAID: Final = "what it changes is not simulated"
"""Of a setting for which nobody has said more."""

_TEXT: Final = VersionedSetting(
    "string", default=None, is_required=True, valid="", importance="low", is_internal=False
)
_AUTHORIZER: Final[Mapping[str, KafkaSetting]] = {
    name: KafkaSetting(name, ("broker",), "0.10", "4.3", {"0.10": _TEXT}, ())
    for name in ("super.users", "allow.everyone.if.no.acl.found")
}
"""Read by Kafka's StandardAuthorizer, so no ConfigDef has them."""


def names(scope: Scope) -> tuple[str, ...]:
    """Every setting that Kafka has in a scope, in any version that was read."""
    tables = (settings_of(each) for each in DEFINITIONS[scope])
    return tuple(dict.fromkeys(name for table in tables for name in table))


def defined(scope: Scope, name: str, version: str = DEFAULT) -> KafkaSetting | None:
    """Kafka's facts of a setting; ``None``: it is not Kafka's.

    A broker's setting may be given for one listener: ``listener.name.NAME.MECHANISM.sasl.*``.
    """
    if scope == "broker":
        plain = _LISTENER.sub("", name)
        named = known(scope, name, version) or known(scope, plain, version)
        return named or _AUTHORIZER.get(plain)
    return known(scope, name, version)


def summary(setting: KafkaSetting, version: str = DEFAULT) -> str:
    """Kafka's default in a version and the versions that have the setting, for a message."""
    facts = setting.near(version)
    default = "no default" if facts.is_required else f"default {_shown(facts.default)}"
    return f"{default}; in Kafka {setting.span}" if setting.span else default


def _shown(default: str | None) -> str:
    return "null" if default is None else default or "empty"


def difference(scope: Scope, name: str) -> str:
    """Differences that a run does not show because the setting is not simulated."""
    for pattern, words in _DIFFERENCES:
        if re.fullmatch(pattern, name) is not None:
            return words
    return _OF_SCOPE.get(scope, UNSAID)
