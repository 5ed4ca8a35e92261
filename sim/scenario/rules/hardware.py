"""From ``cluster.hardware`` to figures: those of all servers, and of each one that differs.

What is said of all servers takes the place of the defaults of ``cluster.disk`` and
``cluster.network``. What is said of a server counts before what is said of its rack, and that
before what is said of all brokers or all controllers.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from sim.log.directory.names import directory_name
from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.cluster import ClusterModel, ClusterSpec, ServerSpec
from sim.scenario.model.hardware import (
    ComputerModel,
    DiskFigures,
    HardwareModel,
    InterfaceFigures,
)
from sim.scenario.model.machines import DiskModel, NetworkModel
from sim.scenario.model.presets import preset
from sim.scenario.model.types import Strict
from sim.scenario.text.problems import Problem, nearest, one_of
from sim.units import MIB

S = TypeVar("S", bound=Strict)
CORDONED: Final = "cordoned.log.dirs"
"""Log directories that get no new replicas (KIP-1066)."""

_ZONES: Final = 3
_DIRECTORIES_SINCE: Final = "3.7"
_CLASS, _RACK, _NAME = range(3)
"""Ranks of what servers are called by: a higher one counts before a lower one."""


def with_presets(model: ClusterModel) -> ClusterModel:
    """The cluster's disks and network with the figures that its hardware gives all servers.

    Raises:
        Problem: For a figure that is given twice; with a path below ``cluster``.
    """
    hardware = model.hardware
    if hardware is None:
        return model
    disk, network = model.disk, model.network
    if hardware.disk is not None:
        disk = _overlaid("disk", disk, hardware.disk.figures, "hardware.disk")
    if hardware.network is not None:
        figures = hardware.network.figures
        network = _overlaid("network", network, figures, "hardware.network")
    if hardware.zones is not None:
        _check_zones(model, hardware.zones)
        figures = dict(preset("zones", hardware.zones).figures)
        network = _overlaid("network", network, figures, "hardware.zones")
    return model.model_copy(update={"disk": disk, "network": network})


def of_servers(hardware: HardwareModel | None, cluster: ClusterSpec) -> HardwareModel | None:
    """Cores of all servers, and the figures of each server that has others than the cluster.

    Raises:
        Problem: With a path below ``cluster``.
    """
    if hardware is None:
        return None
    known = _known(cluster)
    for key in hardware.servers:
        if " ".join(key.split()) not in known:
            allowed = ", ".join(known)
            path = ("hardware", "servers", key)
            raise Problem(path, f"no server {key!r}", allowed, nearest(key, known))
    found = {server.name: _computer(server, hardware, known) for server in cluster.servers}
    servers = {name: computer for name, computer in found.items() if computer.plain()}
    if not servers and hardware.cores is None:
        return None
    return HardwareModel.model_construct(cores=hardware.cores, servers=servers)


def _overlaid(key: str, model: S, figures: Mapping[str, Any], by: str) -> S:
    """A part of the cluster with figures in the place of defaults."""
    for name in figures:
        if name in model.model_fields_set:
            alias = type(model).model_fields[name].alias or name
            raise Problem(
                (key, alias),
                f"{alias} beside {by}, which sets it too",
                "one of the two",
                f"remove it, or write {by}: {{preset: ..., {alias}: ...}}"
                if by != "hardware.zones"
                else f"remove it, or {by}",
            )
    return model.model_copy(update=dict(figures))


def _check_zones(model: ClusterModel, zones: str) -> None:
    racks = model.rack_counts or {}
    if zones == "three" and len(racks) != _ZONES:
        raise Problem(
            ("hardware", "zones"),
            f"three zones with {len(racks)} racks",
            "three racks, each of which is a zone",
            "write racks: {a: 1, b: 1, c: 1} instead of brokers, or zones: one",
        )


def _known(cluster: ClusterSpec) -> dict[str, tuple[int, tuple[ServerSpec, ...]]]:
    """Rank and servers of everything that servers may be called by."""
    classes = {"all brokers": cluster.brokers, "all controllers": cluster.controllers}
    return {
        **{server.name: (_NAME, (server,)) for server in cluster.servers},
        **{f"rack {rack}": (_RACK, cluster.servers_in(rack)) for rack in cluster.racks},
        **{name: (_CLASS, servers) for name, servers in classes.items() if servers},
    }


def _computer(
    server: ServerSpec,
    hardware: HardwareModel,
    known: Mapping[str, tuple[int, tuple[ServerSpec, ...]]],
) -> ComputerModel:
    """Figures that are said of one server."""
    said: dict[tuple[str, str], tuple[int, str, object]] = {}
    ranked = [(*known[" ".join(key.split())], key) for key in hardware.servers]
    for rank, servers, key in sorted(ranked, key=lambda each: -each[0]):
        model = hardware.servers[key]
        for figure, value in _figures(model).items() if server in servers else ():
            before, other, _ = said.get(figure, (-1, "", None))
            if rank == before:
                raise Problem(
                    ("hardware", "servers", key, figure[0]),
                    f"{server.name} is among {other} as well, which sets it too",
                    "one of the two for a server",
                    f"say it of {server.name} by its name",
                )
            if rank > before:
                said[figure] = rank, key, value
    parts: dict[str, dict[str, Any]] = {"disk": {}, "network": {}, "cores": {}}
    for (part, name), (_, _, value) in said.items():
        parts[part][name] = value
    return ComputerModel.model_construct(
        disk=DiskFigures.model_construct(**parts["disk"]) if parts["disk"] else None,
        network=InterfaceFigures.model_construct(**parts["network"]) if parts["network"] else None,
        cores=parts["cores"].get("cores"),
    )


def _figures(model: ComputerModel) -> dict[tuple[str, str], object]:
    """Figures by their part and field."""
    found: dict[tuple[str, str], object] = {}
    for part, figures in (("disk", model.disk), ("network", model.network)):
        if figures is not None:
            found |= {(part, name): value for name, value in figures.figures.items()}
    if model.cores is not None:
        found["cores", "cores"] = model.cores
    return found


def network(model: NetworkModel) -> NetworkModel:
    """Delays and bandwidth, those of clients filled in."""
    return model.model_copy(update={"client": model.client or model.same_rack})


def check_directories(disk: DiskModel, kafka: str, cordoned: str) -> None:
    """Check that the version's KRaft has as many log directories, and those that are cordoned.

    Raises:
        Problem: With a path below ``cluster``.

    Source: KIP-858; ``MetadataVersion.isDirectoryAssignmentSupported``.
    """
    if disk.directories > 1 and not is_since(kafka, _DIRECTORIES_SINCE):
        raise Problem(
            ("disk", "directories"),
            f"{disk.directories} with Kafka {kafka}, whose KRaft knows no log directories",
            f"1, or Kafka {_DIRECTORIES_SINCE} and newer",
            "leave it out, or give a newer cluster.kafka",
        )
    try:
        check_cordoned(cordoned, disk.directories)
    except Problem as problem:
        raise problem.below("config") from None


def check_cordoned(value: object, directories: int) -> None:
    """Check that cordoned log directories are some of a broker's, or ``*`` for all.

    Raises:
        Problem: With the setting's name as its path.

    Source: ``KafkaConfig.validateCordonedLogDirs`` (4.3).
    """
    words = [word for word in str(value or "").split(",") if word]
    names = [directory_name(number) for number in range(directories)]
    if words == ["*"]:
        return
    for word in words:
        if word not in names:
            raise Problem(
                (CORDONED,), repr(word), f"{one_of(names)}, or * alone", nearest(word, names)
            )
    if len(set(words)) < len(words):
        raise Problem((CORDONED,), f"{value}", "each directory once")


def check_disk(disk: DiskModel) -> None:
    """Check disks and page cache.

    Raises:
        Problem: With a path below ``cluster``.
    """
    for key, duration in (
        ("dirty.expire", disk.dirty_expire_us),
        ("dirty.writeback", disk.dirty_writeback_us),
    ):
        if duration == 0:
            raise Problem(("disk", key), "0us", "more than zero")
    if disk.dirty_background_bytes > disk.dirty_limit_bytes:
        raise Problem(("disk", "dirty.background"), "more than dirty.limit", "at most dirty.limit")
    if disk.page_cache_bytes < disk.dirty_limit_bytes:
        raise Problem(("disk", "cache"), "less than dirty.limit", "at least dirty.limit")
    if disk.capacity_bytes is not None and disk.capacity_bytes < MIB:
        raise Problem(("disk", "capacity"), f"{disk.capacity_bytes} bytes", "at least 1MiB")
