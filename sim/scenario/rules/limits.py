"""Limits of size: rejects scenarios that are too large to finish before they run.

The numbers are far beyond what anybody waits for, and below what memory or 64 bits would end
with; a mistyped unit or a zero too many meets them in the first second.
"""

from collections.abc import Sequence
from typing import Final

from sim.faults.fault import Fault
from sim.faults.load import LoadSurge
from sim.scenario.model.clients import ProducerSpec
from sim.scenario.scenario import Scenario
from sim.scenario.schema.file import ScenarioModel
from sim.scenario.text.problems import Problem
from sim.scenario.text.quantities import show_duration
from sim.units import HOUR, SECOND, Micros

RUN_US_MAX: Final[Micros] = 366 * 24 * HOUR
"""Simulated time, and the longest wait of the drain: a year of a quiet cluster takes hours."""

RECORDS_MAX: Final = 1_000_000_000
"""Records that all producers mean to send: hours, and as many rows to judge."""

BROKERS_MAX: Final = 1_000
CLIENTS_MAX: Final = 100_000
REPLICAS_MAX: Final = 100_000
"""Replicas of all partitions, internal ones included: each is a directory of real files."""

FAULTS_MAX: Final = 10_000
THREADS_MAX: Final = 10_000
"""Of one kind in one server."""

_THREADS: Final = (
    "num.network.threads",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.alter.log.dirs.threads",
    "num.replica.fetchers",
    "log.cleaner.threads",
)
_INTERNAL: Final = ("offsets.topic", "transaction.state.log")


def check_counts(model: ScenarioModel) -> None:
    """Check that there are not too many of anything, before each of them is built.

    Raises:
        Problem: For the first limit that it is beyond.
    """
    for key, duration in (("for", model.run.for_us), ("drain.timeout", model.run.drain_timeout_us)):
        if duration > RUN_US_MAX:
            allowed = f"at most {RUN_US_MAX // (24 * HOUR)}d, a year"
            raise Problem(("run", key), show_duration(duration), allowed, "shorten it")
    brokers = sum((model.cluster.rack_counts or {}).values())
    if brokers > BROKERS_MAX:
        found = f"{brokers:,} brokers in all"
        raise Problem(("cluster", "racks"), found, f"at most {BROKERS_MAX:,}")
    clients = 0
    for key, entries in (
        ("producers", model.producers),
        ("consumers", model.consumers),
        ("processors", model.processors),
    ):
        clients += sum(entry.count for entry in entries)
        if clients > CLIENTS_MAX:
            raise Problem((key,), f"{clients:,} clients in all", f"at most {CLIENTS_MAX:,}")
    replicas = 0
    for name, topic in model.topics.items():
        replicas += topic.partitions * topic.replication_factor
        if replicas > REPLICAS_MAX:
            raise _too_many(("topics", name, "partitions"), replicas)


def check(scenario: Scenario) -> None:
    """Check that servers and producers can do what the scenario gives them.

    Raises:
        Problem: For the first limit that it is beyond.
    """
    config = scenario.cluster.config
    for name in _THREADS:
        count = config.optional_number(name)
        if count is not None and count > THREADS_MAX:
            found = f"{count:,} threads"
            raise Problem(("cluster", "config", name), found, f"at most {THREADS_MAX:,} here")
    for prefix in _INTERNAL:
        partitions = config.number(f"{prefix}.num.partitions")
        replicas = partitions * config.number(f"{prefix}.replication.factor")
        if replicas > REPLICAS_MAX:
            raise _too_many(("cluster", "config", f"{prefix}.num.partitions"), replicas)
    _check_records(scenario)


def check_length(faults: int) -> None:
    """Check that a calendar holds so many faults.

    Raises:
        Problem: With an empty path, if it has not.
    """
    if faults > FAULTS_MAX:
        raise Problem((), f"{faults:,} faults up to here", f"at most {FAULTS_MAX:,}")


def check_failures(fault: Fault, end_us: Micros) -> None:
    """Components that fail again and again: how often they are expected to.

    Raises:
        Problem: With a path below the fault, if that is too often.
    """
    forms = fault.choices or (fault,)
    again = fault.for_us is not None or any(form.is_instant() for form in forms)
    if not fault.mtbf_us or not again:
        return
    expected = len(fault.components) * end_us // (fault.mtbf_us + (fault.for_us or 0))
    if expected > FAULTS_MAX:
        found = f"about {expected:,} failures in the run"
        raise Problem(("mtbf",), found, f"at most {FAULTS_MAX:,}", "a longer mtbf")


def _too_many(path: tuple[str, ...], replicas: int) -> Problem:
    found = f"{replicas:,} replicas of partitions in all"
    return Problem(path, found, f"at most {REPLICAS_MAX:,}", "fewer partitions or replicas")


def records_at_most(scenario: Scenario) -> int:
    """Records that all producers mean to send, with surges of load."""
    return sum(_records(p) + more_in_surges(p, scenario.faults) for p in scenario.producers)


def _check_records(scenario: Scenario) -> None:
    total = 0
    for place, producer in enumerate(scenario.producers):
        total += _records(producer) + more_in_surges(producer, scenario.faults)
        if total > RECORDS_MAX:
            raise Problem(
                ("producers", place, "rate"),
                f"{total:,} records in all",
                f"at most {RECORDS_MAX:,}",
                "lower rate or count, or shorten run.for",
            )


def _records(producer: ProducerSpec) -> int:
    """Records that producers alike mean to send, bursts and peaks as if they never ended."""
    peak = producer.rate_per_s
    if producer.curve is not None:
        peak = round(peak * producer.curve.peak)
    if producer.burst is not None:
        peak = max(peak, producer.burst.peak_per_s)
    return producer.count * peak * (producer.stop_us - producer.start_us) // SECOND


def more_in_surges(producer: ProducerSpec, faults: Sequence[Fault]) -> int:
    """Records of surges beyond the ordinary ones, of producers alike together."""
    total = 0
    for fault in faults:
        if not isinstance(fault, LoadSurge):
            continue
        until = producer.stop_us if fault.until_us is None else fault.until_us
        surging = max(0, min(until, producer.stop_us) - max(fault.at_us, producer.start_us))
        named = [name for target in fault.targets for name in target.names]
        count = sum(name in named for name in producer.client_names)
        total += count * producer.rate_per_s * (fault.factor - 1) * surging // SECOND
    return total
