"""A broker advertises an address that is another broker's, or nobody's."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

ONE = {"partitions": 1, "replicas": [["broker-1", "broker-2", "broker-3"]]}
CLEAN = {"at": "2500ms", "do": "controlled-shutdown", "target": "broker-1", "for": "500ms"}
"""Ends the connections of clients; the preferred leader comes back by an election that is asked."""
AGAIN = {"at": "6s", "do": "elect-leader", "partition": "orders-0", "election": "preferred"}
QUICK = {"broker.session.timeout.ms": 2_000, "broker.heartbeat.interval.ms": 300}


def wrong(at="2s", **more):
    return {"at": at, "do": "wrong-advertised-name", "target": "broker-1", **more}


def acked(ran, start, end):
    """Records that were acknowledged between two instants."""
    rows = ran.rows("client_batches", outcome="ok")
    return sum(row["record_count"] for row in rows if start * S < row["t_us"] <= end * S)


@pytest.mark.parametrize("means", [{}, {"means": "broker-2"}], ids=["nobody", "another"])
def test_clients_do_not_reach_a_leader_whose_name_is_wrong_until_it_is_right(means, tmp_path):
    """Its followers do: they fetch by the listener between brokers.

    A connection that led to another broker stays until that one ends it.
    """
    faults = [wrong(**means, **{"for": "10s"}), CLEAN, AGAIN]
    if means:
        faults.append(CLEAN | {"at": "12500ms", "target": "broker-2"})
    ran = go(
        tmp_path, faults=faults, topic=ONE, config=QUICK, lasts="16s", producer={"rate": "50/s"}
    )
    assert ran.faults[0]["took_effect"], ran.faults[0]["effect"]
    assert ran.faults[0]["effect"].endswith("nobody" if not means else "broker-2")
    assert ran.leader_at(10 * S) == 1, "for the others it is a broker as any"
    assert ran.rows("partition_changes", topic="orders")[-1]["in_sync"] == "1,2,3"
    assert acked(ran, 7, 12) == 0
    assert acked(ran, 13, 16) > 0
    assert ran.records["lost_acked"] == 0
    assert ran.records["acked"] == ran.records["sent"]


def test_connections_that_are_there_already_stay(tmp_path):
    """Nobody looks up a name again while its connection is open."""
    ran = go(tmp_path, faults=[wrong(**{"for": "2s"})], topic=ONE, lasts="5s")
    assert not ran.faults[0]["took_effect"]
    assert ran.faults[0]["effect"] == "0 connections of clients led to nobody"
    assert acked(ran, 2, 4) > 0


@pytest.mark.parametrize("target", ["controller-1", "shop", "all brokers"])
def test_only_a_broker_advertises_a_name_to_clients(target):
    with pytest.raises(ScenarioError, match="target"):
        load_text(text_of(faults=[wrong() | {"target": target}]))


def test_a_name_that_means_a_broker_means_one_of_the_cluster():
    with pytest.raises(ScenarioError, match="no broker 'broker-9'"):
        load_text(text_of(faults=[wrong(means="broker-9")]))
