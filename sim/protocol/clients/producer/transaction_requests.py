"""The states of a transactional producer, and its requests to coordinators by their priority.

Source: ``TransactionManager.{State,Priority,TxnRequestHandler}`` (4.1).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from sim.protocol.messages.base import Request
from sim.units import Micros

CoordinatorKind: TypeAlias = Literal["group", "transaction"]


class TransactionState(Enum):
    """Kafka's names (``TransactionManager.State``)."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    COMMITTING_TRANSACTION = "committing transaction"
    ABORTING_TRANSACTION = "aborting transaction"
    ABORTABLE_ERROR = "abortable error"
    FATAL_ERROR = "fatal error"


class Priority(Enum):
    """Priority of waiting requests: the smaller value first."""

    FIND_COORDINATOR = 0
    INIT_PRODUCER_ID = 1
    ADD_PARTITIONS_OR_OFFSETS = 2
    END_TXN = 3
    EPOCH_BUMP = 4


@dataclass(slots=True, eq=False)
class CoordinatorRequest:
    """A request to a coordinator, or for one."""

    priority: Priority
    request: Request
    coordinator: CoordinatorKind | None
    """Type of its receiver; ``None``: any broker."""
    is_retry: bool = False
    backoff_us: Micros = 0
    """Back-off of a retry."""
