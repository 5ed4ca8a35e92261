"""Leaving a cluster of Raft groups for good.

Source: Redpanda v25.1, admin API ``PUT /v1/brokers/{id}/decommission``.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol.messages.base import Request, Response


@dataclass(frozen=True, slots=True)
class DecommissionBrokerRequest(Request):
    """An administrator's request that a broker give up its replicas, and then its membership."""

    broker: NodeId

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return DecommissionBrokerResponse(error)


@dataclass(frozen=True, slots=True)
class DecommissionBrokerResponse(Response):
    """The beginning is committed, or why not."""

    error: ErrorCode

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return (("", self.error),)
