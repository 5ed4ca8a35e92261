"""AssignReplicasToDirs over the channel to the controller: who sends again, and when."""

from sim.error_codes import ErrorCode as E
from sim.ids import TopicPartition
from sim.protocol.broker.replication.directories.assignments import DirectoryAssignments
from sim.protocol.effects import Send, SetTimer
from sim.protocol.messages.cluster import AssignReplicasToDirsResponse, DirectoryAssignment

MS, SECOND = 1_000, 1_000_000
ITEM = DirectoryAssignment(TopicPartition("orders", 0), "t", "d")


def sent(assignments, now, correlation=1):
    out = []
    assignments.send(1, 17, 3001, correlation, now, out)
    return out


def one():
    assignments = DirectoryAssignments()
    assignments.add(ITEM)
    (first,) = sent(assignments, 0)
    assert isinstance(first, Send)
    assert first.timeout_us == 30 * SECOND
    return assignments


def test_a_lost_request_is_sent_again_after_50_ms_for_a_minute_and_then_as_its_sender_waits():
    assignments = one()
    for now in (30 * SECOND, 45 * SECOND):
        assert assignments.failed(1, now)
        assert sent(assignments, now) == [SetTimer("assignments", now + 50 * MS)]
        assert isinstance(sent(assignments, now + 50 * MS)[0], Send)
    assert assignments.failed(1, 60 * SECOND)
    assert sent(assignments, 60 * SECOND) == [SetTimer("assignments", 60 * SECOND + 100 * MS)]


def test_a_node_that_is_not_the_controller_is_no_error_of_the_request():
    assignments = one()
    for now in (1 * SECOND, 2 * SECOND, 3 * SECOND):
        assignments.answered(1, AssignReplicasToDirsResponse(E.NOT_CONTROLLER, ()), now)
        assert sent(assignments, now) == [SetTimer("assignments", now + 50 * MS)]
        sent(assignments, now + 50 * MS)
