"""Files of settings for the real processes: brokers, controllers, clients.

Settings of the scenario that differ from Kafka's defaults are written down; of the others the real
process has its own default. What a rehearsal sets beside them is :data:`OURS`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from sim.ids import NodeId
from sim.rehearsal.links import Addresses
from sim.scenario.model.cluster import ServerSpec
from sim.scenario.scenario import Scenario
from sim.scenario.settings.registry import default_of
from sim.scenario.settings.resolved import Config
from sim.scenario.settings.types import SHORT_NAMES, Scope, as_kafka_writes

OURS: Final[Mapping[str, str]] = {
    # Its default of 128 MB does not fit a heap of 256 MB.
    "log.cleaner.dedupe.buffer.size": "8388608",
    "auto.create.topics.enable": "false",
}
"""Settings of servers, where the scenario does not name them."""

_PACKAGES: Final[Mapping[str, str]] = {
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.",
    "partitioner.class": "org.apache.kafka.clients.producer.",
    "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.",
    "replica.selector.class": "org.apache.kafka.common.replica.",
}
"""Settings whose values are classes of Kafka, and where they are."""

BROKERS: Final = "PLAINTEXT"
CONTROLLERS: Final = "CONTROLLER"


def given(scope: Scope, config: Config) -> dict[str, str]:
    """Settings off Kafka's defaults, as Kafka writes them."""
    found = {}
    for name, value in config.items():
        if value is not None and value != default_of(scope, name, config.version):
            found[name] = _classes(name, as_kafka_writes(value))
    return found


def _classes(name: str, value: str) -> str:
    """The value with whole names of classes, where a scenario has short ones."""
    package = _PACKAGES.get(name)
    if package is None:
        return value
    whole = {short: long for long, short in SHORT_NAMES.items() if long.startswith(package)}
    return ",".join(whole.get(word.strip(), word.strip()) for word in value.split(","))


def server(
    scenario: Scenario, spec: ServerSpec, addresses: Addresses, directories: Sequence[Path]
) -> str:
    """The text of ``server.properties`` of a broker, a controller, or both in one.

    Args:
        scenario: Its cluster.
        spec: The server.
        addresses: Of all nodes.
        directories: ``log.dirs``.
    """
    cluster = scenario.cluster
    roles = _roles(scenario, spec.node)
    first, second = addresses.ports
    ports = {BROKERS: first, CONTROLLERS: second}
    own = [BROKERS] * ("broker" in roles) + [CONTROLLERS] * ("controller" in roles)
    voters = [f"{each.node}@{each.name}:{second}" for each in cluster.controllers]
    values = {
        **OURS,
        **given("broker", cluster.config),
        "process.roles": ",".join(roles),
        "node.id": str(spec.node),
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": CONTROLLERS,
        "inter.broker.listener.name": BROKERS,
        "listener.security.protocol.map": f"{BROKERS}:PLAINTEXT,{CONTROLLERS}:PLAINTEXT",
        # A name, not an address: each reader of it gets to the proxy of its own.
        "listeners": ",".join(f"{name}://{spec.name}:{ports[name]}" for name in own),
        "log.dirs": ",".join(str(path.absolute()) for path in directories),
    }
    if spec.rack:
        values["broker.rack"] = spec.rack
    if "broker" not in roles:
        values.pop("inter.broker.listener.name")
    return _text(values)


def _roles(scenario: Scenario, node: NodeId) -> list[str]:
    cluster = scenario.cluster
    roles = ["broker"] * any(each.node == node for each in cluster.brokers)
    return roles + ["controller"] * any(each.node == node for each in cluster.controllers)


def clients(parts: Sequence[Mapping[str, str]]) -> str:
    """The file that names the clients of one process."""
    values = {"clients": str(len(parts))}
    for place, part in enumerate(parts):
        values |= {f"client.{place}.{name}": value for name, value in part.items()}
    return _text(values)


def bootstrap(scenario: Scenario, addresses: Addresses) -> str:
    """``bootstrap.servers``: every broker by its name."""
    port = addresses.ports[0]
    return ",".join(f"{each.name}:{port}" for each in scenario.cluster.brokers)


def _text(values: Mapping[str, str]) -> str:
    return "".join(f"{name}={_escaped(value)}\n" for name, value in values.items())


def _escaped(value: str) -> str:
    return "".join(_characters(value))


def _characters(value: str) -> Iterator[str]:
    """A value as ``java.util.Properties`` reads it back."""
    for place, character in enumerate(value):
        if character == "\\" or (place == 0 and character in " \t"):
            yield f"\\{character}"
        elif character == "\n":
            yield "\\n"
        elif not character.isascii():
            yield f"\\u{ord(character):04x}"
        else:
            yield character
