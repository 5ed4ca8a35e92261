"""The single faults that ``logquake verdict`` tries, on the cluster that a scenario describes.

What fails is one thing at a time: a process, a host's power with everything on its circuit, a
link, a disk, or a restart that is nobody's accident. A cluster without racks, or with one, has one
failure domain, and its power fails as a whole. Each fault strikes at an instant that the seed
draws, and the rest of the scenario is left as it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from sim.errors import ScenarioError
from sim.faults.disks import SlowDisk
from sim.faults.hosts import PowerLoss
from sim.faults.links import NetworkPartition
from sim.faults.process import Crash, Pause, RollingRestart
from sim.scenario.loader import load, load_text
from sim.scenario.model.cluster import ServerSpec
from sim.scenario.scenario import Scenario
from sim.scenario.text.quantities import show_duration
from sim.units import SECOND, Micros

STRIKES: Final = ("8s..10s", 10 * SECOND)
"""The window of each fault, and its end: groups are balanced and batches are full by then."""

LASTS_US: Final[Micros] = 15 * SECOND
"""Duration of a fault: longer than a broker's session, with time for an election."""

AFTER_US: Final[Micros] = 8 * SECOND
"""Duration of the workload after a fault."""

_REACH: Final = 16
"""Records for each partition during a fault, and keys for each: of four million partitions one
would get none by chance."""

SESSION: Final = "broker.session.timeout.ms"


@dataclass(frozen=True, slots=True)
class SingleFault:
    """One thing that goes wrong."""

    name: str
    """A file's name: ``power-loss-rack-b``."""
    words: str
    """The fault, to begin a sentence with: ``A power loss of rack b``."""
    entry: dict[str, object]
    """The entry of ``faults:``, without its instant."""


def single_faults(scenario: Scenario, lasts_us: Micros) -> list[SingleFault]:
    """Faults to try, the first of every kind first, so that a small budget sees every kind.

    Args:
        scenario: Whose cluster and topics they strike.
        lasts_us: How long they last.
    """
    kinds = [
        list(kind)
        for kind in (
            _power(scenario, lasts_us),
            _leaders("isolation", scenario, lasts_us),
            _brokers(scenario, lasts_us),
            _leaders(Pause.kind, scenario, lasts_us),
            _control_plane(scenario, lasts_us),
            _leaders(SlowDisk.kind, scenario, lasts_us),
            _rolling(),
        )
    ]
    most = max(len(kind) for kind in kinds)
    return [kind[place] for place in range(most) for kind in kinds if place < len(kind)]


def lasting(scenario: Scenario) -> Micros:
    """Duration of a fault in this cluster: brokers are missed meanwhile, and replaced."""
    session = 0
    if scenario.cluster.zookeeper is None:
        session = scenario.cluster.config.number(SESSION) * 1_000
    return max(LASTS_US, session + 6 * SECOND)


def _power(scenario: Scenario, lasts_us: Micros) -> Iterator[SingleFault]:
    racks = scenario.cluster.racks
    for rack in racks:
        alone = " (the only one)" if len(racks) == 1 else ""
        yield _of(
            f"power-loss-rack-{rack}", f"A power loss of rack {rack}{alone}", lasts_us,
            do=PowerLoss.kind, target=f"rack {rack}",
        )  # fmt: skip
    if not racks:
        yield _of(
            "power-loss-all-brokers",
            "A power loss of all brokers (without racks they share a circuit)",
            lasts_us,
            do=PowerLoss.kind,
            target="all brokers",
        )


def _brokers(scenario: Scenario, lasts_us: Micros) -> Iterator[SingleFault]:
    for broker in scenario.cluster.brokers:
        name = broker.name
        yield _of(f"crash-{name}", f"A crash of {name}", lasts_us, do=Crash.kind, target=name)


def _control_plane(scenario: Scenario, lasts_us: Micros) -> Iterator[SingleFault]:
    yield _of(
        "crash-controller",
        "A crash of the controller",
        lasts_us,
        do=Crash.kind,
        target="controller leader",
    )
    if scenario.cluster.zookeeper is not None:
        yield _of(
            "crash-zookeeper-leader",
            "A crash of ZooKeeper's leader",
            lasts_us,
            do=Crash.kind,
            target="zookeeper leader",
        )


def _leaders(kind: str, scenario: Scenario, lasts_us: Micros) -> Iterator[SingleFault]:
    """One for each topic that somebody writes to: its first partition's leader represents all."""
    servers = ["all brokers", *_names(scenario.cluster.controllers)]
    servers += [server.name for server in scenario.cluster.zookeepers]
    written = dict.fromkeys(producer.topic for producer in scenario.producers)
    for topic in written:
        leader = f"leader of {topic}-0"
        if kind == "isolation":
            words = f"Isolation of the {leader} from all other servers"
            entry: dict[str, object] = {
                "do": NetworkPartition.kind,
                "between": leader,
                "and": servers,
            }
        elif kind == Pause.kind:
            words = f"A pause of the {leader}"
            entry = {"do": Pause.kind, "target": leader}
        else:
            words = f"A slow disk (a hundred times) of the {leader}"
            entry = {"do": SlowDisk.kind, "target": leader, "factor": 100}
        yield _of(f"{kind}-{topic}", words, lasts_us, **entry)


def _names(servers: Sequence[ServerSpec]) -> list[str]:
    """Controllers that are no brokers; the others are named with the brokers."""
    return [server.name for server in servers if not server.name.startswith("broker-")]


def _rolling() -> Iterator[SingleFault]:
    yield SingleFault(
        RollingRestart.kind,
        "A rolling restart of all brokers",
        {"do": RollingRestart.kind, "target": "all brokers", "down": "1s"},
    )


def _of(name: str, words: str, lasts_us: Micros, **entry: object) -> SingleFault:
    return SingleFault(name, words, {**entry, "for": show_duration(lasts_us)})


# -- scenarios -------------------------------------------------------------------------------------


def text_of(base: dict[str, Any], fault: SingleFault | None, run_us: Micros, source: str) -> str:
    """The scenario with one fault and nothing else that goes wrong, as a file.

    Args:
        base: The scenario's data, as the file has it.
        fault: What strikes; ``None`` for nothing.
        run_us: How long the workload lasts.
        source: The scenario's file, for the comment above.
    """
    words = "Nothing going wrong" if fault is None else fault.words
    data = {key: value for key, value in base.items() if key not in ("faults", "expect")}
    data["claim"] = f"{words} loses no acknowledged record and writes none twice."
    run = data.get("run")
    data["run"] = {**(run if isinstance(run, dict) else {}), "for": show_duration(run_us)}
    data["run"].pop("then", None)
    if fault is not None:
        data["faults"] = [{"at": STRIKES[0], **fault.entry}]
    data["expect"] = {"lost_acked": 0, "duplicated": 0}
    body = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    return (
        f"# Made by logquake verdict of {source}: the same cluster and clients, one fault.\n{body}"
    )


def reaching_all(base: dict[str, Any], scenario: Scenario, lasts_us: Micros) -> dict[str, Any]:
    """The scenario with a producer more for each topic, whose keys reach all of its partitions.

    Without it a fault would look harmless because no record met it: a producer with three keys
    writes to three partitions, and one without keys may rest on others. The client is configured
    as the first one of the topic, but writes each record by its key, and in no transaction.

    Args:
        base: The scenario's data, as the file has it.
        scenario: The same, loaded.
        lasts_us: How long faults last.
    """
    own = base.get("producers")
    partitions = {topic.name: topic.partitions for topic in scenario.topics}
    added: list[dict[str, Any]] = []
    for entry in own if isinstance(own, list) else ():
        topic = entry["topic"]
        if topic not in partitions or any(topic == each["topic"] for each in added):
            continue
        config = {
            name: value
            for name, value in (entry.get("config") or {}).items()
            if name != "transactional.id" and not name.startswith("partitioner.")
        }
        added.append(
            {
                "name": _free_name(f"reach-{topic}", scenario),
                "topic": topic,
                "rate": f"{-(-_REACH * partitions[topic] * SECOND // lasts_us)}/s",
                "record.size": "100B",
                "keys": "uniform",
                "key.count": _REACH * partitions[topic],
                **({"rack": entry["rack"]} if "rack" in entry else {}),
                "config": config,
            }
        )
    return {**base, "producers": [*own, *added]} if added and isinstance(own, list) else base


def _free_name(name: str, scenario: Scenario) -> str:
    taken = [n for p in scenario.producers for n in (p.name, *p.client_names)]
    while name in taken:
        name += "-x"
    return name


def run_length(
    base: dict[str, Any], scenario: Scenario, lasts_us: Micros, directory: Path | None = None
) -> Micros:
    """Duration of the runs: as long as a fault and its end need, if clients allow it.

    A scenario whose clients start or stop later keeps its own length, if that is longer.

    Raises:
        ScenarioError: If neither can be run.
    """
    needed = STRIKES[1] + lasts_us + AFTER_US
    try:
        text = text_of(base, None, needed, scenario.name)
        load_text(text, scenario.name, directory=directory)
    except ScenarioError:
        return max(needed, scenario.run.for_us)
    return needed


def loaded(path: str, overrides: Sequence[str]) -> Scenario:
    """The scenario that is judged.

    Raises:
        ScenarioError: If it cannot be run, or nobody writes in it.
    """
    scenario = load(path, overrides)
    if not scenario.producers:
        raise ScenarioError(
            f"{path}: producers: none; allowed: at least one; without producers nothing can be lost"
        )
    return scenario
