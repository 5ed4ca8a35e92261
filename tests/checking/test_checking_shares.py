"""What the checks of share groups let pass, and how their records are counted."""

import pytest

from sim.checking.outcomes.sharing import Sharing


def test_a_record_may_go_on_when_it_was_given_back_and_under_another_leader(facts):
    facts.share(0, reason="loaded")
    facts.acquire(0, 9, consumer="w-0")
    facts.state(0, 4, "AVAILABLE", "lock timeout")
    facts.acquire(0, 4, count=2, consumer="w-1")
    facts.share(0, epoch=1, reason="loaded")
    facts.acquire(0, 9, epoch=1, consumer="w-2")
    facts.acquire(10, 12, consumer="w-0")
    assert facts.checked("records-have-one-holder") == 4


def test_a_deposed_leader_may_give_out_what_its_successor_has_done_with(facts):
    facts.acquire(0, 4, epoch=1)
    facts.state(0, 4, "ACKNOWLEDGED", "accept", epoch=1)
    facts.acquire(0, 4, epoch=0)
    assert facts.checked("acknowledged-is-not-delivered") == 2


def test_when_states_were_lost_records_may_come_back(facts):
    facts.acquire(0, 4)
    facts.state(0, 4, "ACKNOWLEDGED", "accept")
    facts.append(1, 5, topic="__share_group_state")
    facts.watermark(5, topic="__share_group_state")
    facts.truncate(1, 0, topic="__share_group_state", reason="recovery")
    facts.share(0, epoch=1, reason="loaded")
    facts.acquire(0, 4, epoch=1)
    assert len(facts.report("acknowledged-is-not-delivered").suspended) == 1


def test_members_of_a_share_group_may_have_the_same_partition_and_read_in_any_order(facts):
    facts.row("share_consumers", "c-0", "billing")
    facts.append(1, 20)
    facts.watermark(20)
    facts.assign("c-0", 1, "orders-0")
    facts.assign("c-1", 1, "orders-0")
    facts.group(1, reason="created")
    facts.member("c-0", 1, "orders-0")
    facts.member("c-1", 1, "orders-0")
    facts.read(10, 14, hw=20)
    facts.read(0, 4, hw=20)
    for name in ("assignments-disjoint", "partitions-have-one-owner", "reads-advance"):
        assert facts.checked(name) == 0


def row(first, last, reason, topic="orders"):
    return (0, 1, "jobs", topic, 0, 0, first, last, "ANY", 1, "w-0", reason)


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        ([row(0, 9, "acquired"), row(0, 9, "accept")], (10, 0, 0, 0)),
        ([row(0, 9, "acquired"), row(0, 3, "accept"), row(4, 5, "reject")], (4, 2, 0, 4)),
        ([row(0, 1, "acquired"), row(0, 0, "lock timeout"), row(1, 1, "limit")], (0, 0, 1, 1)),
        ([row(0, 9, "acquired"), row(0, 8, "accept"), row(9, 9, "gap")], (9, 0, 0, 0)),
        ([row(0, 1, "limit"), row(0, 1, "acquired"), row(0, 0, "accept")], (1, 0, 0, 1)),
        (
            [
                row(0, 3, "acquired"),
                row(0, 0, "reject"),
                row(0, 1, "found accepted"),
                row(2, 2, "found at the limit"),
                row(3, 3, "found rejected"),
            ],
            (1, 2, 1, 0),
        ),
        ([row(5, 6, "accept"), row(0, 0, "accept", "bills")], (3, 0, 0, 0)),
    ],
)
def test_what_was_said_last_of_a_record_counts(rows, counts):
    sharing = Sharing()
    for each in rows:
        sharing.state(each)
    found = sharing.verdict()
    assert tuple(found[name] for name in ("accepted", "rejected", "archived", "unfinished")) == (
        counts
    )
    assert sum(found["groups"]["jobs"].values()) == sum(counts)
