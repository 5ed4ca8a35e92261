"""Which settings Kafka itself has, and what a run does not show where one of them is not simulated.

Source: the released ConfigDefs, in ``kafka_settings.tsv`` (see ``tools/kafka_settings.py``).
"""

import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from sim.scenario.settings.types import Scope

TABLE: Final = Path(__file__).with_name("kafka_settings.tsv")
"""The data file: scope, name, type, default, releases."""

_LISTENER: Final = re.compile(r"listener\.name\.[^.]+\.(?:[^.]+\.(?=sasl\.))?")

_IDENTITY: Final = (
    "there are no identities: nobody is refused, and logging in takes no time; what TLS costs is "
    "cluster.cpu"
)
_METRICS: Final = "metrics are not reported; makes no difference to records and leaders"
_TIERED: Final = (
    "there is no tiered storage: all that is retained stays on the brokers' disks, and old records "
    "are read from there"
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
    (r"(.*\.)?(ssl|sasl|password\.encoder|delegation\.token)\..*", _IDENTITY),
    (r"(authorizer\.class\.name|super\.users|allow\.everyone\.if\.no\.acl\.found)", _IDENTITY),
    (r"(principal\.builder\.class|security\.(protocol|providers))", _IDENTITY),
    (r"connections\.max\.reauth\.ms", _IDENTITY),
    (r"(kafka\.)?(metrics?)\..*|auto\.include\.jmx\.reporter|telemetry\..*", _METRICS),
    (r"enable\.metrics\.push|controller\.performance\..*|log\.cleaner\.hash.*", _METRICS),
    (r"remote\..*|log\.local\..*|local\..*|follower\.fetch\.last\.tiered\..*", _TIERED),
    (r"inter\.broker\.protocol\.version|.*message\.format\.version", _VERSION),
    (r".*downconversion\.enable|.*timestamp\.difference\.max\.ms", _VERSION),
    (r"group\.coordinator\.new\.enable|group\.share\.enable|unstable\..*", _VERSION),
    (r"eligible\.leader\.replicas\.enable", _VERSION),
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
    (r"cordoned\.log\.dirs", "no log directory is closed to new replicas"),
    (r"(broker\.id\.generation\.enable|reserved\.broker\.max\.id)", "ids are the scenario's"),
)


class Defined(NamedTuple):
    """A setting as Kafka defines it."""

    type: str
    """``ConfigDef.Type`` in small letters."""
    default: str | None
    """As a file would have it; ``None``: it must be given."""
    releases: tuple[str, ...]
    """Those that were looked at and have it."""


@cache
def table() -> dict[tuple[str, str], Defined]:
    """Every setting by scope and name."""
    found: dict[tuple[str, str], Defined] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            scope, name, kind, default, releases = line.split("\t")
            found[scope, name] = Defined(kind, default or None, tuple(releases.split(",")))
    # Read by Kafka's StandardAuthorizer, so no ConfigDef has them.
    for name in ("super.users", "allow.everyone.if.no.acl.found"):
        found["broker", name] = Defined("string", None, ())
    return found


def defined(scope: Scope, name: str) -> Defined | None:
    """What Kafka says of a setting; ``None``: it is not Kafka's.

    A broker's setting may be given for one listener: ``listener.name.NAME.MECHANISM.sasl.*``.
    """
    known = table()
    plain = _LISTENER.sub("", name) if scope == "broker" else name
    return known.get((scope, name)) or known.get((scope, plain))


def difference(name: str) -> str:
    """What a run does not show because the setting is not simulated."""
    for pattern, words in _DIFFERENCES:
        if re.fullmatch(pattern, name) is not None:
            return words
    return "what it changes is not simulated"
