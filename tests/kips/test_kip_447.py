"""KIP-447: offsets in a transaction name the member that read them, so that its heir is not misled.

The group's coordinator takes them from a member of its present generation, or epoch, alone; one
producer serves all partitions of a task, whichever had them before. A task commits what it read of
a partition before that moves.
"""

import pytest

from sim.error_codes import ErrorCode
from sim.protocol.coordinator.log import TransactionVerified, VerifyTransaction
from sim.protocol.messages.transaction import TxnOffsetCommitRequest
from sim.units import SECOND
from tests.kips.test_kip_848 import Table, places
from tests.protocol.apps.task_bench import COOPERATIVE, MODERN, Tasks


class Verifying:
    """A coordinator whose transactions are all verified at once."""

    def __init__(self, machine):
        self._machine = machine

    def __getattr__(self, name):
        return getattr(self._machine, name)

    def handle(self, event, now):
        effects = []
        for effect in self._machine.handle(event, now):
            if isinstance(effect, VerifyTransaction):
                verified = TransactionVerified(effect.token, ErrorCode.NONE, 1)
                effects += self.handle(verified, now)
            else:
                effects.append(effect)
        return effects


def two_members(**config):
    """``a`` has gone from epoch 1 to 2 and kept partitions 0 and 1; ``b`` has 2 since epoch 2."""
    table = Table(**config)
    table.machine = Verifying(table.machine)
    table.join("a")
    table.beat("a", 1, places(0, 1, 2))
    table.join("b")
    table.beat("a", 1)
    table.beat("a", 1, places(0, 1))
    table.beat("b", 2)
    return table


def commit(table, member, epoch, *numbers):
    offsets = tuple((place, 5, 0) for place in places(*numbers))
    return table.ask(TxnOffsetCommitRequest("till", "g", 7, 1, member, epoch, offsets)).error


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        ("a", 2, ErrorCode.NONE),
        ("a", 1, ErrorCode.ILLEGAL_GENERATION),
        ("a", 3, ErrorCode.ILLEGAL_GENERATION),
        ("x", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_stale_member_epoch_is_an_illegal_generation_to_a_producer(member, epoch, error):
    """``OffsetMetadataManager.validateTransactionalOffsetCommit``: producers know no epochs."""
    assert commit(two_members(), member, epoch, 0) is error


def test_since_4_3_an_older_epoch_is_enough_for_partitions_that_the_member_had_then():
    """KIP-1251, which holds for offsets in transactions, too."""
    table = two_members(fences_by_assignment=True)
    assert commit(table, "a", 1, 0, 1) is ErrorCode.NONE
    assert commit(table, "a", 1, 0, 2) is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("way", [COOPERATIVE, MODERN], ids=["cooperative", "modern"])
def test_the_heir_of_a_partition_begins_where_the_task_that_had_it_has_committed(way):
    bench = Tasks("a", "b", way=way)
    bench.run(8 * SECOND)
    bench.feed(30 * SECOND)
    before = bench.shares()
    bench.task("c", 10 * SECOND)
    bench.run(40 * SECOND)
    after = bench.shares()
    for name in ("a", "b"):
        (moved,) = set(before[name]) - set(after[name])
        last = max(at for at, who, place in bench.taken if (who, place) == (name, moved))
        first = min(at for at, who, place in bench.taken if (who, place) == ("c", moved))
        commits = {row[0] for row in bench.rows_of("commits", name) if row[-1] == "NONE"}
        assert any(last < at < first for at in commits)
    assert bench.read_twice() == 0
