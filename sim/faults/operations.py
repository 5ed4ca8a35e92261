"""What an administrator does while the cluster runs, as an entry of the calendar.

Source: ``kafka-topics``, ``kafka-configs``, ``kafka-reassign-partitions``,
``kafka-leader-election``.
"""

from sim.faults.action import Evidence
from sim.faults.surface import Administrator, Operation
from sim.protocol.messages import Request


class Administer:
    """Asked for in an instant; there is nothing to heal."""

    def __init__(self, administrator: Administrator, request: Request) -> None:
        self._administrator = administrator
        self._request = request
        self._operation: Operation | None = None

    def begin(self) -> None:
        """Send the request."""
        self._operation = self._administrator.operate(self._request)

    def heal(self) -> bool:
        """Nothing to do."""
        return True

    def evidence(self) -> Evidence:
        """Whether the controller has committed it."""
        operation = self._operation
        if operation is None:
            return Evidence(took_effect=False, effect="it never began")
        return Evidence(operation.accepted, operation.outcome)
