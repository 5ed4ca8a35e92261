"""Not a test: writes the disks of one broker with transactions behind it, and says what it wrote.

Usage: transaction_history.py DIRECTORY VERSION, where VERSION is 2 (KIP-890) or 0 (KIP-98). Prints
JSON: ``seen``, the values that a reader of committed data gets, as (topic, partition, values), and
``transactions``, the number of rows of the table of that name.
"""

import json
import sys
from pathlib import Path

from tests.nodes.transaction_cluster import P0, P1, TransactionCluster, commit_offsets, raw_offsets

ONE = (
    "transaction.state.log.replication.factor: 1, transaction.state.log.min.isr: 1, "
    "transaction.state.log.num.partitions: 3"
)


def history(root, version):
    """One broker with committed, aborted and open transactions behind it; stopped in good order."""
    cluster = TransactionCluster(root, brokers=1, version=version, config=ONE)
    cluster.version = version
    ids = cluster.init("done")
    for number, committed in enumerate((True, False, True)):
        values = [f"{number}{letter}".encode() for letter in "abc"]
        ids = transact(cluster, "done", ids, values, 3 * number, committed=committed)
    if version:
        assert commit_offsets(cluster, "done", "g", ids, [(P0, 5)]) == 0
        cluster.end("done", ids)
        cluster.settled("done")
        assert raw_offsets(cluster, "g", (P0,)).offsets[0][1] == 5
    # Five seconds from its start, by anyone's clock: whoever boots here aborts it.
    ids = cluster.init("open", timeout=5_000_000)
    if not version:
        cluster.add("open", ids, P1)
    assert cluster.produce("open", ids, 0, partition=P1, value=b"never").error == 0
    cluster.seen = {place: cluster.values(place) for place in (P0, P1)}
    assert [len(seen) for seen in cluster.seen.values()] == [6, 6]
    cluster.shut_down()
    return cluster


def transact(cluster, name, ids, values, first, *, committed):
    if cluster.version == 0:
        cluster.add(name, ids, P0, P1)
    base = first if cluster.version == 0 else 0
    for place in (P0, P1):
        for number, value in enumerate(values):
            result = cluster.produce(name, ids, base + number, partition=place, value=value)
            assert result.error == 0, result
    answer = cluster.end(name, ids, committed=committed)
    cluster.settled(name)
    return (answer.producer_id, answer.producer_epoch) if cluster.version else ids


if __name__ == "__main__":
    written = history(Path(sys.argv[1]), int(sys.argv[2]))
    seen = [(*place, [v.decode() for v in vs]) for place, vs in written.seen.items()]
    told = {"seen": seen, "transactions": len(written.rows["transactions"])}
    sys.stdout.write(json.dumps(told))
