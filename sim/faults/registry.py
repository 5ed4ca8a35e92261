"""Registry of fault kinds; lists, readers and documents are derived from it."""

from collections.abc import Mapping
from typing import Final

from sim.faults.broker_configs import CONFIGURATION
from sim.faults.consumers import CONSUMER_FAULTS
from sim.faults.disks import DISK_FAULTS
from sim.faults.fault import Fault, OneOf
from sim.faults.hosts import HOST_FAULTS
from sim.faults.links import LINK_FAULTS
from sim.faults.load import LOAD_FAULTS, TRANSACTION_FAULTS
from sim.faults.members import MEMBERSHIP
from sim.faults.objects import OBJECT_FAULTS
from sim.faults.operations import ADMINISTRATION
from sim.faults.process import PROCESS_FAULTS
from sim.faults.replicas import REPLICA_FAULTS

_FAMILIES: Final[tuple[type[Fault], ...]] = (
    *PROCESS_FAULTS, *HOST_FAULTS, *LINK_FAULTS, *DISK_FAULTS, *REPLICA_FAULTS,
    *OBJECT_FAULTS, *LOAD_FAULTS, *CONSUMER_FAULTS, *ADMINISTRATION, *CONFIGURATION,
    *TRANSACTION_FAULTS, *MEMBERSHIP, OneOf,
)  # fmt: skip

KINDS: Final[Mapping[str, type[Fault]]] = {kind.kind: kind for kind in _FAMILIES}
"""Kinds by the word after ``do:``, in the order in which they are listed."""
