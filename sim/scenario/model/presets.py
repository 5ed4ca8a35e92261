"""Presets of hardware: figures that have the name of what people run, each with its source.

A preset says what it sets and nothing else. ``source`` has what was published, and where;
``derived`` what was made of it, and what is a modelling choice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sim.scenario.model.machines import DiskModel, NetworkModel, quantiles
from sim.scenario.model.types import Strict
from sim.scenario.text.plain import Plain
from sim.units import MIB, MS

Part: TypeAlias = Literal["disk", "network", "zones"]

_MODELS: Final[Mapping[Part, type[Strict]]] = {
    "disk": DiskModel,
    "network": NetworkModel,
    "zones": NetworkModel,
}


@dataclass(frozen=True, slots=True)
class Preset:
    """One preset of a part of ``cluster.hardware``."""

    part: Part
    name: str
    meaning: str
    figures: Mapping[str, object]
    """By the fields of ``cluster.disk`` or ``cluster.network`` that they set."""
    source: str
    derived: str

    @property
    def plain(self) -> dict[str, Plain]:
        """Its figures as a file has them."""
        model = _MODELS[self.part]
        written = model.model_construct().model_copy(update=self.figures).plain(whole=True)
        keys = [model.written_keys()[name] for name in self.figures]
        return {key: written[key] for key in keys}

    @property
    def text(self) -> str:
        """Its figures in one line."""
        return ", ".join(f"{key} {_text(value)}" for key, value in self.plain.items())


def _text(value: Plain) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)


_GBIT: Final = 125_000_000
"""Bytes a second."""

_SAME_ZONE: Final = quantiles(130, 280)
_ONE_WAY: Final = "one way is half of a round trip; p50 of the averages, p99 of the "
_EC2: Final = (
    "round trips on EC2 by ping, https://orensol.com/2009/05/24/"
    "network-latency-inside-and-across-amazon-ec2-availability-zones/: in a zone 0.26 ms on "
    "average, at most 0.35 ms (0.41 and 0.56 ms in one of three)"
)

PRESETS: Final[tuple[Preset, ...]] = (
    Preset(
        "disk",
        "nvme",
        "an NVMe SSD for data centers, whose cache outlives a power loss",
        {
            "write_bytes_per_s": 5_600_000_000,
            "read_bytes_per_s": 6_800_000_000,
            "access_us": 100,
            "flush": quantiles(60, 200),
        },
        "Micron 7450: up to 6.8 GB/s read and 5.6 GB/s written, https://servethehome.com/?p=59563; "
        "an fsync with power-loss protection takes some tens of microseconds, "
        "http://smalldatum.blogspot.com/2026/01/ssds-power-loss-protection-and-fsync.html",
        "flush.p50 from those tens; flush.p99 and access are modelling choices",
    ),
    Preset(
        "disk",
        "nvme-consumer",
        "an NVMe SSD without protection of its cache, which an fsync empties",
        {
            "write_bytes_per_s": 2_100_000_000,
            "read_bytes_per_s": 3_500_000_000,
            "access_us": 71,
            "flush": quantiles(3_500, 10_000),
        },
        "Samsung 960 Pro: up to 3,500 MB/s read, 2,100 MB/s written, 14,000 random reads a second "
        "one at a time, https://www.ubergizmo.com/reviews/samsung-nvme-ssd-960-pro-review/; an "
        "fsync of one thread takes 3.5 ms, https://www.percona.com/blog/2018/07/18/"
        "why-consumer-ssd-reviews-are-useless-for-database-performance-use-case/",
        "access is 1 s / 14,000; flush.p99 is a modelling choice",
    ),
    Preset(
        "disk",
        "gp3",
        "an Amazon EBS volume of type gp3 as it is without extra IOPS or throughput",
        {
            "write_bytes_per_s": 125 * MIB,
            "read_bytes_per_s": 125 * MIB,
            "access_us": MS,
            "flush": quantiles(2 * MS, 9 * MS),
        },
        "AWS: 125 MiB/s, 3,000 IOPS, single-digit millisecond latency, "
        "https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html",
        "access is the least of single-digit milliseconds, flush.p50 two of them (data, and the "
        "journal's commit), flush.p99 the most; IOPS are not limited; reads and writes share "
        "125 MiB/s, as one queue",
    ),
    Preset(
        "disk",
        "hdd",
        "a disk of 7,200 rpm",
        {
            "write_bytes_per_s": 250_000_000,
            "read_bytes_per_s": 250_000_000,
            "access_us": 11_560,
            "flush": quantiles(12_360, 19_330),
        },
        "Western Digital Ultrastar DC HC310, OEM specification 4.5.1: seek 7.4 ms to read, 8.2 ms "
        "to write, at most 11.0 ms; average latency 4.16 ms, a revolution 8.33 ms, "
        "https://manualshive.com/en/manual/western-digital/ultrastar-dc-hc310/961649?page=23",
        "access is a read's seek and average latency, flush.p50 a write's, flush.p99 the longest "
        "seek and a revolution; write and read are a modelling choice for outer tracks",
    ),
    *(
        Preset(
            "network",
            f"{gbit}gbit",
            f"an interface of {gbit} Gbit/s",
            {"bandwidth_bytes_per_s": gbit * _GBIT},
            f"IEEE {standard}: {gbit} Gbit/s each way",
            "the line rate; headers of Ethernet and TCP take nothing of it",
        )
        for gbit, standard in ((1, "802.3ab"), (10, "802.3ae"), (25, "802.3by"))
    ),
    Preset(
        "zones",
        "one",
        "all racks in one availability zone",
        {"same_rack": _SAME_ZONE, "cross_rack": _SAME_ZONE},
        _EC2,
        f"{_ONE_WAY}largest of all",
    ),
    Preset(
        "zones",
        "three",
        "each of three racks an availability zone of one region",
        {"same_rack": _SAME_ZONE, "cross_rack": quantiles(515, 1_000)},
        f"{_EC2}; between zones 0.94 to 1.13 ms on average; Azure: less than about 2 ms between "
        "zones, https://learn.microsoft.com/azure/reliability/availability-zones-overview "
        "(until February 2025)",
        f"{_ONE_WAY}largest in a zone, and of Azure's 2 ms between zones",
    ),
)
"""Every preset, by parts."""


def preset(part: Part, name: str) -> Preset:
    """The preset of that name.

    Raises:
        KeyError: If the part has none.
    """
    return next(each for each in PRESETS if (each.part, each.name) == (part, name))


def names_of(part: Part) -> tuple[str, ...]:
    """Names of a part's presets."""
    return tuple(each.name for each in PRESETS if each.part == part)
