"""The trace has each state of a group of KIP-848, the last one, too, in which nobody waits."""

from sim.trace.rows.clients import Groups
from tests.kips.table import Table, places, settled_pair


def states_of(table):
    rows = [row[1:] for row in table.rows if row[0] == "groups"]
    return [(row[Groups.STATE - 1], row[Groups.REASON - 1]) for row in rows]


def test_a_group_is_stable_in_the_trace_once_its_last_member_has_what_it_is_to_have():
    """``ConsumerGroup.maybeUpdateGroupState``."""
    table = settled_pair()
    assert table.group.state.value == "Stable"
    assert states_of(table)[-2:] == [
        ("Reconciling", "assignment committed"),
        ("Stable", "members reconciled"),
    ]


def test_a_group_whose_next_epoch_is_being_written_has_no_row_of_being_stable():
    table = Table()
    table.join("a")
    table.beat("a", 1, places(0, 1, 2))
    table.join("b")
    table.beat("a", 1)
    table.beat("a", 1, places(0, 1))
    table.holds_writes = True
    table.beat("b", 2)
    table.join("c")
    before = states_of(table)
    table.settle(0)
    assert table.machine.consumer_group("g").state.value != "Stable"
    assert states_of(table) == before


def test_rows_of_a_group_have_the_epoch_that_is_committed_not_the_one_that_is_being_written():
    """Whoever coordinates the group next knows no other one."""
    table = Table()
    table.holds_writes = True
    for member in ("a", "b", "c"):
        table.join(member)
    assert table.group.epoch == 3
    for epoch in (1, 2, 3):
        table.settle(0)
        row = [row[1:] for row in table.rows if row[0] == "groups"][-1]
        assert (row[Groups.REASON - 1], row[Groups.GENERATION - 1]) == (
            "assignment committed",
            epoch,
        )
