"""Every invariant passes on a correct history it has seen, and breaks on a planted violation.

One case per violation: rows that lead up to it, then the one row that must raise.
"""

import ast
from pathlib import Path

import pytest

from sim.checking.durability import Judge
from sim.checking.invariants.raft import RAFT_INVARIANTS
from sim.checking.invariants.registry import INVARIANTS, Watch
from sim.checking.invariants.zookeeper import ZOOKEEPER_INVARIANTS
from sim.checking.outcomes.slices import Slice
from sim.checking.scope import EVERYTHING
from sim.errors import InvariantBroken, SimulationError
from sim.trace.schema import TABLES
from sim.trace.writer import Trace
from tests.checking import (
    planted_members,  # noqa: F401 - it adds its cases
    planted_rights,
    planted_shares,  # noqa: F401 - it adds its cases
    planted_tiers,  # noqa: F401 - it adds its cases
)
from tests.checking.planted_rows import CASES, transactional_life
from tools.trace_rows import class_name

ROOT = Path(__file__).parents[2]


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
    rights = ("User:shop", "Write", "orders"), ("User:billing", "Read", "orders")
    planted_rights.guarded(facts, *rights)
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
    facts.renew(0, 9, facts.t + 30_000_000)
    facts.state(0, 9, "ACKNOWLEDGED", "accept")
    facts.share(10)
    facts.remote(20, 29)
    facts.remote(25, 29, name="again")
    facts.local(2, 0, 30, log_start=20)
    facts.remote(25, 29, "DELETE_SEGMENT_STARTED", name="again")


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


def takes(listener) -> str:
    """The annotation of a check's last parameter, from its source: compiled code has none."""
    for owner in type(listener.__self__).__mro__:
        source = ROOT / f"{owner.__module__.replace('.', '/')}.py"
        tree = ast.parse(source.read_text(encoding="utf-8")) if source.is_file() else ast.Module([])
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == owner.__name__:
                for method in node.body:
                    if getattr(method, "name", "") == listener.__name__:
                        return ast.unparse(method.args.args[-1].annotation)
    raise AssertionError(listener)


def test_each_check_takes_the_rows_of_the_table_that_it_listens_to():
    # Rows have any shape where they are handed over: no type checker sees this.
    trace = Trace(None)
    Judge(trace, Watch(trace, more=(*RAFT_INVARIANTS, *ZOOKEEPER_INVARIANTS)))
    Judge(trace)
    Slice(trace, EVERYTHING, keep_latencies=True)
    listened = 0
    for table in TABLES:
        for listener in trace.table(table.name).listeners:
            assert takes(listener) == f"{class_name(table.name)}Row", listener
            listened += 1
    assert listened > len(TABLES)


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
