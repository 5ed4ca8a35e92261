"""What machines are like, and the wires between them: from checked keys to frozen parts."""

from sim.scenario.model.parts import CpuSpec, DiskSpec, NetworkSpec, Quantiles, YoungSpec
from sim.scenario.schema import file as schema
from sim.scenario.text.problems import Problem
from sim.units import MIB


def _quantiles(model: schema.QuantilesModel) -> Quantiles:
    return Quantiles(model.p50, model.p99)


def network(model: schema.NetworkModel) -> NetworkSpec:
    """Delays and bandwidth."""
    return NetworkSpec(
        _quantiles(model.same_rack),
        _quantiles(model.cross_rack),
        _quantiles(model.client or model.same_rack),
        model.bandwidth,
    )


def disk(model: schema.DiskModel) -> DiskSpec:
    """Disks and page cache.

    Raises:
        Problem: With a path below ``cluster``.
    """
    for key, duration in (
        ("dirty.expire", model.dirty_expire),
        ("dirty.writeback", model.dirty_writeback),
    ):
        if duration == 0:
            raise Problem(("disk", key), "0us", "more than zero")
    if model.dirty_background > model.dirty_limit:
        raise Problem(("disk", "dirty.background"), "more than dirty.limit", "at most dirty.limit")
    if model.cache < model.dirty_limit:
        raise Problem(("disk", "cache"), "less than dirty.limit", "at least dirty.limit")
    if model.capacity is not None and model.capacity < MIB:
        raise Problem(("disk", "capacity"), f"{model.capacity} bytes", "at least 1MiB")
    return DiskSpec(
        model.write,
        model.read,
        model.access,
        _quantiles(model.flush),
        model.dirty_expire,
        model.dirty_writeback,
        model.dirty_background,
        model.dirty_limit,
        model.cache,
        model.directories,
        model.capacity or 0,
    )


def cpu(model: schema.CpuModel) -> CpuSpec:
    """What threads need for their work."""
    return CpuSpec(
        model.network_request,
        model.handler_request,
        model.handler_produce_partition,
        model.handler_fetch_partition,
        model.handler_produce_bytes,
        model.handler_fetch_bytes,
        model.tls_bytes,
        model.tls_handshake,
        _quantiles(model.preempted),
        _quantiles(model.metadata_load),
        _quantiles(model.metadata_publish),
        model.metadata_partition,
        _quantiles(model.wakeup),
        model.teardown,
        YoungSpec(model.young_generation, model.young_per_request, _quantiles(model.young_pause)),
    )
