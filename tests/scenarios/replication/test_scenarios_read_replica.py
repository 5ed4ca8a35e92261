"""Readers in another region, beside a replica of their own (KIP-392)."""

import pytest
import yaml

from tests.scenarios.compiled import run_beside
from tests.scenarios.run_kit import SHIPPED, Ran, S

WEST = {"broker-3", "reports"}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Ten seconds of the shipped scenario with a cut, and the same with readers of the leader."""
    root = tmp_path_factory.mktemp("replica")
    parts = yaml.safe_load(SHIPPED["read-replica"].read_text())
    parts["faults"][0] |= {"at": "5s", "for": "2s"}
    parts["run"] = {"for": "10s", "seed": 1}
    parts["expect"] = {}
    found = []
    for name in ("closest", "leader"):
        out = root / name
        run_beside(yaml.safe_dump(parts, sort_keys=False), out)
        found.append(Ran(out))
        for reader in parts["consumers"]:
            reader["config"].pop("client.rack", None)
    return found


def read_from(ran, reader):
    return {row["read_from"] for row in ran.rows("reads", consumer=reader)}


def across(ran, receiver=""):
    """Bytes that went from one region to the other."""
    return sum(
        row["size_bytes"]
        for row in ran.rows("messages")
        if (row["sender"] in WEST) != (row["receiver"] in WEST)
        and receiver in {"", row["receiver"]}
    )


def test_each_region_reads_from_a_replica_of_its_own(both):
    closest, leader = both
    assert read_from(closest, "reports") == {3}
    assert read_from(closest, "billing") <= {1, 2}
    assert read_from(leader, "reports") == {1, 2}


def test_records_cross_the_wan_for_the_replica_and_not_for_its_readers(both):
    closest, leader = both
    assert across(closest, "reports") < across(leader, "reports") / 5
    saved = across(leader) - across(closest)
    values = 500 * closest.records["acked"]
    assert 0.8 * values < saved < 1.6 * values, "once the records, which are the reader's share"


def test_the_other_region_reads_later_and_nothing_while_the_wan_is_cut(both):
    closest, _ = both
    cut = [row for row in closest.rows("reads") if 5.3 * S < row["t_us"] < 7 * S]
    assert {row["consumer"] for row in cut} <= {"billing"}
    assert closest.verdict["readers"]["by_reader"]["reports"]["undelivered"] == 0
    first = {
        reader: min(row["t_us"] for row in closest.rows("reads", consumer=reader, partition=0))
        for reader in ("billing", "reports")
    }
    assert first["reports"] > first["billing"]
