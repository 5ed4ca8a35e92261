"""What beats at an interval is met by a fault at any phase, and each broker's beat has its own.

Source: ``BrokerLifecycleManager`` (the next heartbeat is an interval after the last answer) and
``QuorumController`` (``maybeFenceStaleBroker`` every eighth of ``broker.session.timeout.ms``).
"""

import pytest

from sim.scenario.loader import load_text
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.runner import Work
from sim.trace.rows.cluster import BrokerStates
from tests.scenarios.run_kit import S

CRASHED_AT = 1 * S
INTERVAL_US = 2 * S
"""``broker.heartbeat.interval.ms``."""

COMMIT_US = S // 10
"""Allowance for the commit of what the controller decided."""

TWO_DIE = """
claim: Two brokers killed together are fenced one after the other.
cluster: {{{combined}}}
topics: {{orders: {{partitions: 1, replication.factor: 3}}}}
faults:
  - {{at: {at}s, do: crash, target: broker-4}}
  - {{at: {at}s, do: crash, target: broker-3}}
run: {{for: {lasts}s, then: stop}}
expect: {{lost_acked: 0}}
"""


def rows_of(tmp_path, seed, table, cluster="brokers: 4, controllers: 1", lasts=12, at=1):
    text = TWO_DIE.format(combined=cluster, lasts=lasts, at=at)
    work = Work(load_text(text), seed, RunDirectory(tmp_path / str(seed), force=False),
                keeps=False, level="detail")  # fmt: skip
    rows = []
    work.trace.table(table).listeners.append(rows.append)
    work.execute()
    return rows


def test_over_seeds_a_crash_meets_every_phase_of_heartbeat_and_fence_check(tmp_path):
    """Fenced 7 to 10.125 s after the crash: the last beat is 0 to 2 s old, the check 0 to 1.125 s
    late; with heartbeats in step the check alone would make the difference. Of two independent
    beats, 54 pairs in 100 have a check between the ends of their sessions, so of six at least one.
    """
    waits = []
    apart = 0
    for seed in range(1, 7):
        states = rows_of(tmp_path, seed, "broker_states")
        changed = [row[BrokerStates.T_US] for row in states]
        fenced = [at - CRASHED_AT for at in changed if at > CRASHED_AT]
        first, second = fenced
        waits += fenced
        apart += second - first > S
    assert min(waits) >= 7 * S
    assert max(waits) <= 10.125 * S + COMMIT_US
    assert max(waits) - min(waits) > 1.125 * S
    assert apart >= 1


@pytest.mark.parametrize("cluster", ["brokers: 10, controllers: 1", "brokers: 9, combined: 3"])
def test_at_zero_brokers_are_at_any_phase_of_their_heartbeat(cluster, tmp_path):
    """As after a long history: in each quarter of the interval somebody beats."""
    beats = {}
    for at, sender, _receiver, kind, *_ in rows_of(tmp_path, 1, "messages", cluster, lasts=3, at=2):
        if kind == "BrokerHeartbeatRequest" and 0 < at <= INTERVAL_US:
            beats.setdefault(sender, at)
    quarters = {at * 4 // INTERVAL_US for at in beats.values()}
    assert quarters == {0, 1, 2, 3}
