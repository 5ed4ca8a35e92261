"""Machines of a cluster, and the wires between them.

Source of the defaults: section 5.3 of the semantics (network, disk and CPU figures).
"""

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from sim.scenario.model.types import (
    Bandwidth,
    Duration,
    Fields,
    Pairs,
    Size,
    Strict,
    refuse,
)
from sim.units import GIB, KIB, MIB, MS, SECOND, Micros


class QuantilesModel(Strict, frozen=True):
    """A delay known by its median and its 99th percentile."""

    p50_us: Duration = Field(alias="p50")
    p99_us: Duration = Field(alias="p99")

    @model_validator(mode="after")
    def _ordered(self) -> "QuantilesModel":
        if self.p50_us > self.p99_us:
            raise refuse("p50 above p99", "p50 at most p99")
        return self


class LatencyModel(Strict, frozen=True):
    """A latency by its median, and its 99th percentile if that is another one."""

    p50_us: Duration = Field(alias="p50")
    p99_us: Duration | None = Field(None, alias="p99", description="default: as p50")


def quantiles(p50_us: Micros, p99_us: Micros) -> QuantilesModel:
    """A delay of numbers: those of a file are texts."""
    return QuantilesModel.model_construct(p50_us=p50_us, p99_us=p99_us)


class NetworkModel(Strict, frozen=True):
    """One-way delays of a message, and what each host's interface carries each way."""

    same_rack: QuantilesModel = Field(quantiles(100, 250), alias="same-rack")
    cross_rack: QuantilesModel = Field(quantiles(400, 1_000), alias="cross-rack")
    client: QuantilesModel | None = Field(None, description="default: as same-rack")
    bandwidth_bytes_per_s: Bandwidth = Field(1_250_000_000, alias="bandwidth")
    switch_buffer_bytes: Annotated[Size, Field(ge=16 * KIB)] | None = Field(
        None,
        alias="switch.buffer",
        description="of the port to each host: what finds it full is dropped; default: never full",
    )


class DiskModel(Strict, frozen=True):
    """Every log directory's disk; the page cache above it is written back as Linux does."""

    behind: ClassVar[Pairs] = (("capacity_bytes", "directories"),)

    write_bytes_per_s: Bandwidth = Field(1_000_000_000, alias="write")
    read_bytes_per_s: Bandwidth = Field(1_000_000_000, alias="read")
    access_us: Duration = Field(100, alias="access")
    """Until the first byte of a read that does not continue where the last one ended."""
    flush: QuantilesModel = quantiles(1_000, 10_000)
    dirty_expire_us: Duration = Field(30 * SECOND, alias="dirty.expire")
    """``vm.dirty_expire_centisecs``: a page that is dirty for longer is written back."""
    dirty_writeback_us: Duration = Field(5 * SECOND, alias="dirty.writeback")
    """``vm.dirty_writeback_centisecs``: how often such pages are looked for."""
    dirty_background_bytes: Size = Field(256 * MIB, alias="dirty.background")
    """``vm.dirty_background_bytes``: above this, write-back begins at once."""
    dirty_limit_bytes: Size = Field(GIB, alias="dirty.limit")
    """``vm.dirty_bytes``: above this, writers wait."""
    page_cache_bytes: Size = Field(
        8 * GIB, alias="cache", description="each server's memory for file pages"
    )
    capacity_bytes: Size | None = Field(
        None, alias="capacity", description="default: as much as is written"
    )
    directories: Annotated[int, Field(ge=1, le=64)] = 1


class CpuModel(Strict, frozen=True):
    """Costs of a server's threads for each message, request, partition and byte."""

    quiet: ClassVar[Fields] = (
        *("preempted", "wakeup", "teardown_us", "start_us"),
        *("young_bytes", "young_request_bytes", "young_pause"),
    )
    """Modelling choices: ``preempted`` is the wait for a busy server of a thread that is
    interrupted in a race; ``wakeup`` is log-normal with a sigma of 0.6; ``teardown`` is how long
    the kernel takes to free a killed JVM's heap of some GiB before it closes its sockets; the young
    generation is that of a heap of 1 GiB, as ``kafka-server-start.sh`` has it, under G1."""
    behind: ClassVar[Pairs] = (("preempted", "metadata_partition_us"),)

    network_request_us: Duration = Field(10, alias="network.request")
    handler_request_us: Duration = Field(20, alias="handler.request")
    handler_produce_partition_us: Duration = Field(5, alias="handler.produce.partition")
    """Of a produce request, or of fetched data to append."""
    handler_fetch_partition_us: Duration = Field(2, alias="handler.fetch.partition")
    handler_produce_bytes_per_s: Bandwidth = Field(3_300_000_000, alias="handler.produce.bytes")
    """Copy and CRC."""
    handler_fetch_bytes_per_s: Bandwidth = Field(20_000_000_000, alias="handler.fetch.bytes")
    """Sent from the page cache."""
    tls_bytes_per_s: Bandwidth = Field(1_000_000_000, alias="tls.bytes")
    tls_handshake_us: Duration = Field(1_000, alias="tls.handshake")
    preempted: QuantilesModel = quantiles(2_000, 20_000)
    metadata_load: QuantilesModel = Field(
        quantiles(40_000, 70_000),
        alias="metadata.load",
        description="a broker's way from committed records to a new image",
    )
    metadata_publish: QuantilesModel = Field(
        quantiles(50_000, 75_000),
        alias="metadata.publish",
        description="from the image to changed roles",
    )
    metadata_partition_us: Duration = Field(20, alias="metadata.partition")
    wakeup: QuantilesModel = quantiles(30, 121)
    teardown_us: Duration = Field(60 * MS, alias="teardown")
    start_us: Duration = Field(0, alias="start")
    young_bytes: Size = Field(256 * MIB, alias="young.generation")
    young_request_bytes: Size = Field(16 * KIB, alias="young.per.request")
    young_pause: QuantilesModel = Field(quantiles(5_000, 20_000), alias="young.pause")


class ObjectStoreModel(Strict, frozen=True):
    """The object store of tiered storage: its answers' first byte, and the speed of one stream."""

    latency: QuantilesModel = quantiles(30_000, 200_000)
    bandwidth_bytes_per_s: Bandwidth = Field(100_000_000, alias="bandwidth")


class HeapModel(Strict, frozen=True):
    """Every broker's heap, and what things take of it; without it memory has no end."""

    size_bytes: Size = Field(alias="size")
    used_bytes: Size = Field(
        GIB, alias="used", description="what lives there before a client comes"
    )
    producer_bytes: Size = Field(
        264, alias="per.producer.id", description="for each log that knows the producer"
    )
    connection_bytes: Size = Field(64 * KIB, alias="per.connection")
    request_bytes: Size = Field(64 * KIB, alias="per.request", description="garbage")
    collected_bytes_per_s: Bandwidth = Field(
        1_000_000_000,
        alias="collection",
        description="how fast a collection gets through what lives",
    )
