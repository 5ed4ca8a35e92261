"""Surges of load among the faults of a scenario: each producer knows its own ahead."""

from collections.abc import Sequence

from sim.faults.fault import Fault
from sim.faults.load import LoadSurge
from sim.nodes.clients.surges import Surge
from sim.units import Micros


def surges_of(faults: Sequence[Fault], producer: str, end_us: Micros) -> tuple[Surge, ...]:
    """The surges of one producer, in the order of time, until it sends no more."""
    return tuple(
        sorted(
            Surge(fault.at_us, end_us if fault.until_us is None else fault.until_us, fault.factor)
            for fault in faults
            if isinstance(fault, LoadSurge)
            and any(producer in target.names for target in fault.targets)
        )
    )
