"""Sources from a running cluster, by questions and a measurement: all of ``--bootstrap``."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sim.errors import SimulationError
from sim.importer.live.client_config import ClientConfig, read
from sim.importer.live.connection import Connection, NoAnswer
from sim.importer.live.reading import read_cluster
from sim.importer.live.sampling import measure
from sim.importer.live.translate import sources_of
from sim.importer.sources import Sources
from sim.units import SECOND, Micros

_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


def live_sources(
    servers: str,
    command_config: Path | None,
    for_us: Micros,
    files: Sources,
    say: Callable[[str], None],
) -> Sources:
    """Query a cluster, measure its load, and translate; nothing is written to it.

    Args:
        servers: ``HOST:PORT``, several joined by commas.
        command_config: A client's properties, for TLS and SASL.
        for_us: Real time between the two looks at the offsets.
        files: Producers' properties, and nothing else.
        say: Called with the present step, for people.

    Raises:
        SimulationError: If nobody answers, or there are no topics.
    """
    if files.servers or files.topics or files.configs:
        raise SimulationError("beside --bootstrap only a producer's properties are read")
    config = ClientConfig() if command_config is None else read(command_config)
    hosts = [host.strip() for host in servers.split(",")]
    if not all(_HOST.fullmatch(host) for host in hosts):
        raise SimulationError("--bootstrap: allowed: HOST:PORT, several joined by commas")
    say("connecting")
    with Connection(hosts, config.options) as connection:
        try:
            facts = read_cluster(connection, say)
        except NoAnswer as error:
            raise SimulationError(f"the cluster does not say its topics: {error}") from None
        measure(connection, facts, for_us / SECOND, say)
    facts.gaps += [f"--command-config: {name}: not used here" for name in config.unused]
    return sources_of(facts, files)
