"""Transactions through a whole cluster: real brokers, real logs, a client that asks by hand."""

import pytest
from transaction_cluster import P0, P1, TransactionCluster

from sim.error_codes import ErrorCode as E
from sim.units import MS, SECOND

VERSIONS = pytest.mark.parametrize("version", [0, 2])


def test_a_committed_transaction_is_seen_whole_and_an_aborted_one_not_at_all(tmp_path):
    cluster = TransactionCluster(tmp_path)
    ids = cluster.init("tx-1")
    ids = cluster.transact("tx-1", ids, [b"a", b"b"])
    ids = cluster.transact("tx-1", ids, [b"c"], committed=False)
    ids = cluster.transact("tx-1", ids, [b"d"])
    cluster.settled("tx-1")
    for partition in (P0, P1):
        assert cluster.values(partition) == [b"a", b"b", b"d"]
        assert cluster.values(partition, "read_uncommitted") == [b"a", b"b", b"c", b"d"]
