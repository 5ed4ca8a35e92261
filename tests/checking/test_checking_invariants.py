"""Every invariant passes on a correct history it has seen, and breaks on a planted violation.

One case per violation: rows that lead up to it, then the one row that must raise.
"""

import pytest

from sim.checking import rows as row_types
from sim.checking.invariants.registry import INVARIANTS, Watch
from sim.errors import InvariantBroken, SimulationError
from sim.trace.schema import BY_NAME
from sim.trace.writer import Trace
from tests.checking import planted_members, planted_shares  # noqa: F401 - they add their cases
from tests.checking.planted_rows import CASES, transactional_life


def ordinary(facts):
    """A partition's quiet life: elected, replicated, acknowledged, read, led by another."""
    facts.quorum(3001, "candidate", 1, voted_for=3001)
    facts.quorum(3002, "follower", 1, leader=3001, voted_for=3001)
    facts.quorum(3001, "leader", 1, leader=3001)
    for broker in (1, 2, 3):
        facts.broker_state(broker, "registered", 10 + broker)
        facts.broker_state(broker, "unfenced", 10 + broker)
    facts.change(1, 0, 0)
    facts.lead(1, 0)
    facts.lead(2, 0, role="follower")
    facts.assign("c-0", 1, "orders-0")
    facts.assign("c-1", 1, "orders-1")
    facts.group(1)
    for n in range(4):
        facts.replicate(10)
        facts.watermark(10 * n + 10)
        facts.follower_watermark(10 * n, sent=10 * n)
        facts.acknowledge(10 * n, 10 * n + 9, 10 * n + 10)
        facts.told(10 * n)
        facts.read(10 * n, 10 * n + 9)
    facts.acknowledge(-1, -1, 40, error="NOT_ENOUGH_REPLICAS")
    facts.commit(1)
    facts.move_start(1, 20)
    facts.move_start(2, 20, "leader")
    transactional_life(facts)
    facts.append(1, 5)
    facts.change(2, 1, 1, "2,3")
    facts.group(1, reason="assignment committed")
    facts.group(1, reason="loaded")
    facts.group(1, group="ledger")
    facts.member("m-0", 1, "orders-0", group="ledger")
    facts.commit(1, consumer="m-0", group="ledger")
    facts.lead(2, 1, hw=40)
    facts.watermark(40, end=45)
    facts.append(2, 10, epoch=1, leader=True)
    facts.truncate(1, 40)
    facts.append(1, 10, epoch=1, leader=False)
    facts.append(3, 10, epoch=1, leader=False)
    facts.keys(20, [1, 2, 1, 3], tombstones=[3])
    facts.contents(1, 20, 23, [21, 22, 23])
    facts.contents(1, 20, 23, [21, 22], t=facts.t + 2_000_000)
    facts.watermark(50, broker=2, epoch=1)
    facts.change(2, 1, 2)
    facts.share(0, reason="loaded")
    facts.acquire(0, 9)
    facts.state(0, 9, "ACKNOWLEDGED", "accept")
    facts.share(10)


def test_a_correct_history_breaks_nothing_and_every_invariant_saw_its_subject(facts):
    ordinary(facts)
    assert {r.name: r.checked for r in facts.watch.reports() if not r.checked} == {}
    assert all(r.suspended == {} and r.outcome == "held" for r in facts.watch.reports())


def test_before_any_row_every_invariant_says_that_it_checked_nothing(facts):
    reports = facts.watch.reports()
    assert {(r.checked, r.outcome) for r in reports} == {(0, "nothing to check")}
    assert len({r.name for r in reports}) == len(reports) == len(INVARIANTS) >= 20
    assert all(r.sentence.endswith((".", ")")) and r.source and r.conditions for r in reports)


@pytest.mark.parametrize("case", CASES)
def test_a_planted_violation_breaks_its_invariant(case, facts):
    name, plant = CASES[case]
    violate = plant(facts)
    with pytest.raises(InvariantBroken, match=f"^invariant {name} broken at "):
        violate()


@pytest.mark.parametrize("case", CASES)
def test_a_waived_invariant_is_not_held_and_says_so(case, make_facts):
    name, plant = CASES[case]
    facts = make_facts(waived={kind.name: "old Kafka" for kind in INVARIANTS})
    plant(facts)()
    report = facts.report(name)
    assert report.checked == 0
    assert report.suspended == {"waived: old Kafka": 1}
    assert report.outcome == "set aside"


def test_every_invariant_has_a_planted_violation():
    assert {name for name, _ in CASES.values()} == {kind.name for kind in INVARIANTS}


def test_an_unknown_name_cannot_be_waived():
    with pytest.raises(SimulationError, match=r"no invariant 'offsets'; they are offsets-contig"):
        Watch(Trace(None), waived={"offsets": "why"})


def test_a_broken_invariant_tells_instant_node_partition_values_and_the_last_six_rows(facts):
    for _ in range(9):
        facts.append(1, 10)
    with pytest.raises(InvariantBroken) as caught:
        facts.append(1, 10, base=7)
    (text,) = caught.value.args
    assert text.startswith(
        "invariant offsets-contiguous broken at 0.010000 s on broker-1, orders-0: "
        "offsets 7 to 16 appended to a log that ends at 90."
    )
    assert "A batch is appended exactly at the end of the replica's log; only a copy" in text
    assert "Last 6 rows for orders-0" in text
    assert text.count("appends: t_us=") == 6
    assert "base_offset=7, last_offset=16" in text


def test_the_shapes_of_rows_agree_with_the_schema():
    tables = {
        "AppendRow": "appends", "WatermarkRow": "high_watermarks",
        "FollowerWatermarkRow": "follower_watermarks", "AcknowledgementRow": "acknowledgements",
        "TruncationRow": "truncations", "RecoveryRow": "recoveries", "LeadershipRow": "leadership",
        "ChangeRow": "partition_changes", "QuorumRow": "quorum",
        "BrokerStateRow": "broker_states", "NodeStateRow": "node_states", "ReadRow": "reads",
        "PositionRow": "positions", "CommitRow": "commits", "GroupRow": "groups",
        "AssignmentRow": "assignments", "MemberRow": "group_members",
        "ClientBatchRow": "client_batches", "TransactionRow": "transactions",
        "MarkerRow": "markers", "StableRow": "stable_offsets", "LogStartRow": "log_starts",
        "KeysRow": "record_keys", "ContentsRow": "log_contents", "HoleRow": "log_holes",
            "DeletionRow": "topic_deletions",
        "ControllerRow": "controllers", "FaultRow": "faults",
        "TransactionOutcomeRow": "transaction_outcomes",
        "TransactionRecordsRow": "transaction_records", "CommittedReaderRow": "committed_readers",
        "ConfigurationRow": "raft_configurations", "MirroredRow": "mirrored",
        "LagRow": "lag", "ThrottleRow": "throttles", "TaskRow": "tasks", "OutputsRow": "outputs",
        "ShareConsumerRow": "share_consumers", "SharePartitionRow": "share_partitions",
        "ShareStateRow": "share_states", "ConnectorTaskRow": "connector_tasks",
        "ExternalLogRow": "external_logs", "SourcedRow": "sourced",
        "ExternalWriteRow": "external_writes", "HeapRow": "heaps",
    }  # fmt: skip
    kinds = {"string": str, "bool": bool, "int8": int, "int32": int, "int64": int}
    for name, table in tables.items():
        given = getattr(row_types, name).__args__
        assert len(given) == len(BY_NAME[table].columns), name
        for kind, column in zip(given, BY_NAME[table].columns, strict=True):
            assert column.type == "list<int32>" or kind is kinds[column.type], (name, column.name)
    assert set(tables) == {n for n in vars(row_types) if n.endswith("Row")}


def test_a_deposed_leader_may_truncate_a_tail_that_others_have_overwritten_with_committed_records(
    facts,
):
    f = facts
    f.replicate(10)
    f.watermark(10)
    f.append(1, 10)  # acknowledged with acks=1 at best
    f.change(2, 1, 1)
    f.replicate(30, epoch=1, leader=2, brokers=(2, 3))
    f.watermark(40, broker=2, epoch=1)
    f.truncate(1, 10)
    assert f.checked("nothing-committed-truncated") == 1
