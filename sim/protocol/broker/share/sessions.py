"""Share sessions: a member's partitions at a leader, between its requests.

A member has one session with each broker that leads some of its partitions. Each request carries
the next epoch; the first opens a new session, the last closes it.

Source: ``ShareSessionCache``, ``SharePartitionManager.newContext``, ``acknowledgeSessionUpdate``.
"""

from dataclasses import dataclass, field

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.share import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)

_LAST_EPOCH = (1 << 31) - 1


@dataclass(slots=True, eq=False)
class ShareSession:
    """One member's session with this broker."""

    group: str
    member_id: str
    client: str
    """Printed name of the member's process."""
    epoch: int = 1
    """Epoch of the next request."""
    partitions: dict[TopicPartition, None] = field(default_factory=dict)

    def rotated(self) -> list[TopicPartition]:
        """Its partitions in the order of this fetch.

        Source: ``PartitionRotateStrategy``, by the session's epoch.
        """
        places = list(self.partitions)
        turn = self.epoch % len(places) if places else 0
        return places[turn:] + places[:turn]


class ShareSessions:
    """All share sessions of a broker."""

    def __init__(self, sessions_max: int) -> None:
        self._sessions_max = sessions_max
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def get(self, group: str, member_id: str) -> ShareSession | None:
        """The member's session, if there is one."""
        return self._sessions.get((group, member_id))

    def close(self, session: ShareSession) -> None:
        """Closes the session of a member that has left or is leaving."""
        key = session.group, session.member_id
        if self._sessions.get(key) is session:
            del self._sessions[key]

    def fetch(self, client: str, request: ShareFetchRequest) -> ShareSession | ErrorCode:
        """Session of a ShareFetch, updated with the request's partitions."""
        key = request.group, request.member_id
        if request.session_epoch == INITIAL_EPOCH:
            if request.acknowledgements:
                return ErrorCode.INVALID_REQUEST
            self._sessions.pop(key, None)
            if len(self._sessions) >= self._sessions_max:
                return ErrorCode.SHARE_SESSION_LIMIT_REACHED
            session = ShareSession(request.group, request.member_id, client)
            self._sessions[key] = session
        else:
            known = self._next(key, request.session_epoch)
            if isinstance(known, ErrorCode):
                return known
            session = known
        for partition in request.partitions:
            session.partitions[partition] = None
        for partition in request.forgotten:
            session.partitions.pop(partition, None)
        return session

    def acknowledge(self, request: ShareAcknowledgeRequest) -> ShareSession | ErrorCode:
        """Session of a ShareAcknowledge."""
        if request.session_epoch == INITIAL_EPOCH:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        return self._next((request.group, request.member_id), request.session_epoch)

    def _next(self, key: tuple[str, str], epoch: int) -> ShareSession | ErrorCode:
        known = self._sessions.get(key)
        if known is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == FINAL_EPOCH:
            return known
        if epoch != known.epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        known.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        return known
