"""KIP-966, part 2, a proposal: the longest log of the live replicas leads, once they answered."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import NO_LEADER
from sim.protocol.broker.replication.log_ends import ends_of_logs
from sim.protocol.controller.elections import PartitionChange
from sim.protocol.controller.partitions import RECOVERY_MANAGER
from sim.protocol.controller.types import ControllerConfig
from sim.protocol.controller.unclean_recovery import RETRY_US
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.kraft.types import LeadershipChanged
from sim.protocol.messages.admin import ElectLeadersRequest, IncrementalAlterConfigsRequest
from sim.protocol.messages.leader_epochs import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
)
from sim.protocol.metadata.image import PartitionRegistration, merged
from sim.protocol.metadata.server_configs import ServerFile
from tests.protocol.broker.replica_kit import Bench, P, ToyLog, state
from tests.protocol.controller.controller_kit import ORDERS, SECOND, Desk

ON = ServerFile(-1, {RECOVERY_MANAGER: "true"})
STRATEGY = "unclean.recovery.strategy"
TIMEOUT_US = ControllerConfig().unclean_recovery_timeout_us


def aggressive(*, file=ON, allowed="true", elr=False, configs=(), **config):
    """Broker 1 leads alone, 2 and 3 are alive and not in the ISR; then 1 goes away."""
    desk = Desk(elr=elr, file=file, **config)
    desk.create(configs=(("unclean.leader.election.enable", allowed), *configs))
    for broker in (2, 3):
        desk.beat(broker, want_fence=True)
        desk.join(broker, incarnation=f"b{broker}", previous=desk.epochs[broker])
    if desk.state().leader != 1:
        raise AssertionError(desk.state())
    desk.beat(1, want_fence=True)
    return desk


def answer(desk, broker, end, epoch=0, *, error=E.NONE, process=None):
    """The broker answers the request that it was sent last."""
    send = [s for s in desk.sends if s.to == broker][-1]
    assert isinstance(send.request, GetReplicaLogInfoRequest)
    process = desk.epochs[broker] if process is None else process
    found = tuple(ReplicaLogInfo(p, error, epoch, 0, end) for p in send.request.partitions)
    response = GetReplicaLogInfoResponse(process, found)
    desk.feed(ResponseReceived(broker, send.correlation, response))


def fire(desk, at):
    desk.now = at
    desk.feed(TimerFired("unclean-recovery"))


def asked(desk):
    taken, desk.sends = [s.to for s in desk.sends], []
    return taken


# -- Aggressive: unclean.leader.election.enable ----------------------------------------------------


def test_the_longest_log_of_the_live_replicas_leads_and_not_the_first():
    desk = aggressive()
    assert desk.state().leader == NO_LEADER
    assert [s.to for s in desk.sends] == [2, 3]
    answer(desk, 2, 1_000)
    assert desk.state().leader == NO_LEADER  # the other one has not answered
    answer(desk, 3, 2_000)
    assert (desk.state().leader, desk.state().in_sync) == (3, (3,))
    assert [row.row[-1] for row in desk.facts if row.table == "partition_changes"][-1] is True


def test_without_it_the_first_live_replica_leads_and_nobody_is_asked():
    desk = aggressive(file=ServerFile())
    assert (desk.state().leader, desk.sends) == (2, [])


def test_a_later_epoch_counts_for_more_than_a_longer_log():
    desk = aggressive()
    answer(desk, 2, 1_000, epoch=3)
    answer(desk, 3, 2_000, epoch=2)
    assert desk.state().leader == 2


def test_of_equal_logs_the_first_of_the_assignment_leads():
    desk = aggressive()
    answer(desk, 3, 1_000)
    answer(desk, 2, 1_000)
    assert desk.state().leader == 2


def test_a_replica_whose_disk_has_failed_never_leads():
    desk = aggressive()
    answer(desk, 2, 10)
    answer(desk, 3, -1, error=E.KAFKA_STORAGE_ERROR)
    assert desk.state().leader == 2


def test_a_broker_that_does_not_answer_is_asked_again_and_after_the_timeout_the_others_will_do():
    desk = aggressive()
    answer(desk, 2, 1_000)
    (late,) = [s for s in desk.sends if s.to == 3]
    asked(desk)
    desk.feed(RequestFailed(3, late.correlation, E.REQUEST_TIMED_OUT))
    assert asked(desk) == []
    fire(desk, desk.now + RETRY_US)
    assert asked(desk) == [3]
    fire(desk, TIMEOUT_US - 1)
    assert desk.state().leader == NO_LEADER
    fire(desk, desk.now + TIMEOUT_US)
    assert desk.state().leader == 2


def test_a_broker_that_has_not_opened_the_log_yet_is_asked_again():
    desk = aggressive()
    answer(desk, 2, 1_000)
    answer(desk, 3, -1, error=E.UNKNOWN_TOPIC_OR_PARTITION)
    asked(desk)
    fire(desk, desk.now + RETRY_US)
    assert asked(desk) == [3]


def test_an_answer_of_another_process_than_the_registered_one_does_not_count():
    desk = aggressive()
    answer(desk, 2, 1_000)
    answer(desk, 3, 5_000, process=desk.epochs[3] - 1)
    assert desk.state().leader == NO_LEADER
    answer(desk, 3, 500)
    assert desk.state().leader == 2


def test_a_fenced_replica_is_not_waited_for():
    desk = aggressive()
    desk.beat(3, want_fence=True)
    answer(desk, 2, 1_000)
    assert desk.state().leader == 2


def test_a_clean_leader_that_returns_ends_the_recovery():
    desk = aggressive()
    answer(desk, 2, 1_000)
    desk.beat(1)
    assert desk.state().leader == 1
    answer(desk, 3, 2_000)
    assert desk.state().leader == 1


def test_another_controller_begins_again():
    desk = aggressive()
    answer(desk, 2, 1_000)
    asked(desk)
    end = desk.controller.committed.offset
    desk.feed(LeadershipChanged(2, 3002, is_leader=False, log_end_offset=end))
    desk.feed(LeadershipChanged(3, 3001, is_leader=True, log_end_offset=end))
    assert asked(desk) == [2, 3]


# -- without leave: nobody, or an administrator ----------------------------------------------------


def test_without_elr_and_leave_nobody_is_asked_until_an_administrator_requests_it():
    desk = aggressive(allowed="false")
    assert asked(desk) == []
    done = desk.ask(ElectLeadersRequest("unclean", (ORDERS,)))
    assert done.errors == ((ORDERS, E.NONE),)
    assert asked(desk) == [2, 3]


# -- unclean.recovery.strategy ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "strategy", "queried"),
    [
        ("false", "Aggressive", [2, 3]),
        ("true", "Balanced", []),
        ("true", "None", []),
        ("true", "", [2, 3]),
        ("false", "", []),
    ],
)
def test_the_strategy_of_a_topic_counts_instead_of_its_unclean_election(allowed, strategy, queried):
    desk = aggressive(allowed=allowed, configs=((STRATEGY, strategy),))
    assert asked(desk) == queried


def test_a_topic_without_a_strategy_has_the_brokers():
    file = ServerFile(-1, {**ON.settings, STRATEGY: "None"})
    assert asked(aggressive(file=file)) == []
    assert asked(aggressive(file=file, configs=((STRATEGY, "Aggressive"),))) == [2, 3]


def test_a_strategy_that_becomes_aggressive_begins_a_recovery():
    desk = aggressive(allowed="false", configs=((STRATEGY, "None"),))
    assert asked(desk) == []
    desk.ask(IncrementalAlterConfigsRequest("orders", ((STRATEGY, "Aggressive"),)))
    assert asked(desk) == [2, 3]


def test_the_timeout_of_a_recovery_is_a_setting():
    desk = aggressive(unclean_recovery_timeout_us=7 * SECOND)
    begun = desk.now
    answer(desk, 2, 1_000)
    fire(desk, begun + 7 * SECOND - 1)
    assert desk.state().leader == NO_LEADER
    fire(desk, begun + 7 * SECOND)
    assert desk.state().leader == 2


# -- Balanced: ISR and ELR are lost ----------------------------------------------------------------


def lost_everywhere(**configs):
    """All three die at once; 1 is back first, then 2, and each may have lost data."""
    desk = Desk(file=ON)
    desk.create(configs=(("min.insync.replicas", "2"), *configs.items()))
    desk.pass_time(13 * SECOND)
    desk.join(1, incarnation="b")
    desk.join(2, incarnation="b")
    return desk


def test_balanced_waits_for_the_whole_last_known_elr():
    desk = lost_everywhere()
    assert (desk.state().eligible, asked(desk)) == ((3,), [])
    desk.join(3, incarnation="b")
    found = desk.state()
    assert (found.in_sync, found.eligible, sorted(found.last_known_eligible)) == ((), (), [2, 3])
    assert [s.to for s in desk.sends] == [1, 2, 3]
    answer(desk, 3, 700)
    answer(desk, 2, 900)
    answer(desk, 1, 800)
    assert (desk.state().leader, desk.state().last_known_eligible) == (2, ())


def test_none_leaves_lost_replicas_to_an_administrator():
    desk = lost_everywhere(**{STRATEGY: "None"})
    desk.join(3, incarnation="b")
    found = desk.state()
    assert (found.leader, found.in_sync, found.eligible) == (NO_LEADER, (), ())
    assert asked(desk) == []
    desk.ask(ElectLeadersRequest("unclean", (ORDERS,)))
    assert asked(desk) == [1, 2, 3]


def test_an_aggressive_recovery_does_not_wait_for_an_eligible_replica():
    desk = lost_everywhere(**{STRATEGY: "Aggressive"})
    assert desk.state().eligible == (3,)
    assert {s.to for s in desk.sends} == {1, 2}


def test_balanced_begins_again_when_a_member_of_the_last_known_elr_does_not_answer_in_time():
    desk = lost_everywhere()
    desk.join(3, incarnation="b")
    answer(desk, 1, 900)
    answer(desk, 2, 800)
    fire(desk, desk.now + TIMEOUT_US)
    assert desk.state().leader == NO_LEADER
    answer(desk, 3, 700)
    assert desk.state().leader == 1


def test_an_eligible_replica_that_is_back_leads_without_a_question():
    desk = Desk(file=ON)
    desk.create(configs=(("min.insync.replicas", "2"),))
    last = desk.epochs[3]
    desk.pass_time(13 * SECOND)
    desk.join(3, incarnation="b", previous=last)
    assert (desk.state().leader, desk.sends) == (3, [])


@pytest.mark.parametrize(("asks", "known"), [(True, (2, 3)), (False, (3,))])
def test_the_last_known_elr_has_its_members_only_where_replicas_are_asked(asks, known):
    """PartitionChangeBuilder with useLastKnownLeaderInBalancedRecovery off, and on."""
    held = PartitionRegistration("t", (1, 2, 3), (3,), 3, 0, 0, eligible=(2,))
    for lost in ((), (2,), (3,)):
        change = PartitionChange(
            held, lambda _: False, 2, True, (), unclean_shutdown=lost, queries_logs=asks
        )
        record = change.record(0)
        held = held if record is None else merged(held, record)
    assert (held.in_sync, held.eligible) == ((), ())
    assert tuple(sorted(held.last_known_eligible)) == known


# -- brokers ---------------------------------------------------------------------------------------


def test_a_broker_answers_for_its_logs_whoever_leads():
    bench = Bench(log=lambda: ToyLog([(0, 0), (2, 7)], 9))
    bench.apply(state(leader=1, epoch=4))
    hosted = bench.managers[2].hosted
    elsewhere = type(P)("clicks", 0)
    response = ends_of_logs(hosted, GetReplicaLogInfoRequest(2, (P, elsewhere)))
    assert response.broker_epoch == 102
    assert response.replicas == (
        ReplicaLogInfo(P, E.NONE, 2, 4, 9),
        ReplicaLogInfo(elsewhere, E.UNKNOWN_TOPIC_OR_PARTITION),
    )
    hosted.offline[P] = None
    assert ends_of_logs(hosted, GetReplicaLogInfoRequest(2, (P,))).replicas == (
        ReplicaLogInfo(P, E.KAFKA_STORAGE_ERROR),
    )


def test_an_epoch_of_which_no_record_was_written_is_not_the_last_written_one():
    """A process that starts leads in its own view, where its former session still lasts."""
    bench = Bench(log=lambda: ToyLog([(0, 0), (2, 9)], 9))
    bench.apply(state(leader=1, epoch=4))
    response = ends_of_logs(bench.managers[2].hosted, GetReplicaLogInfoRequest(2, (P,)))
    assert response.replicas == (ReplicaLogInfo(P, E.NONE, 0, 4, 9),)
