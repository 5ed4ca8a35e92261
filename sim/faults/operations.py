"""What an administrator does while the cluster runs, as an entry of the calendar.

Source: ``kafka-topics``, ``kafka-configs``, ``kafka-reassign-partitions``,
``kafka-leader-election``, ``kafka-delete-records``.
"""

from sim.faults.action import Evidence
from sim.faults.spec import OperationSpec
from sim.faults.surface import Administrator, Operation


class Administer:
    """Asked for in an instant; there is nothing to heal."""

    def __init__(self, administrator: Administrator, asked: OperationSpec) -> None:
        self._administrator = administrator
        self._asked = asked
        self._operation: Operation | None = None

    def begin(self) -> None:
        """Send the request."""
        self._operation = self._administrator.operate(self._asked.request, self._asked.broker)

    def heal(self) -> bool:
        """Nothing to do."""
        return True

    def evidence(self) -> Evidence:
        """Whether the server that was asked has done it."""
        operation = self._operation
        if operation is None:
            return Evidence(took_effect=False, effect="it never began")
        return Evidence(operation.accepted, operation.outcome)
