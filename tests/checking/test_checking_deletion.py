"""A topic that is deleted takes its records lawfully; what was lost before stays lost."""

from sim.checking.outcomes.verdict import COUNTS

ZERO = dict.fromkeys(COUNTS, 0)


def three_batches(facts):
    """Thirty acknowledged records on three replicas."""
    facts.change(1, 0, 0)
    for n in range(3):
        facts.replicate(10)
        facts.told(10 * n)
    facts.watermark(30)
    return facts


def delete(facts):
    facts.row("topic_deletions", 3001, "orders", "id")


def let_go(facts, *brokers):
    for broker in brokers:
        facts.row("leadership", broker, "orders", 0, "removed", -1, 0, 0, "", 0, 0)
        facts.ends.pop((broker, 0), None)


def make_anew(facts):
    """Another topic of the name: its own chain of batches."""
    facts.crcs.clear()
    facts.change(1, 0, 0)


def test_records_of_a_deleted_topic_are_removed(make_facts):
    facts = three_batches(make_facts(watched=False))
    delete(facts)
    let_go(facts, 1, 2, 3)
    assert facts.records() == ZERO | {"sent": 30, "acked": 30, "removed": 30}


def test_brokers_that_never_learned_of_it_do_not_keep_its_records(make_facts):
    facts = three_batches(make_facts(watched=False))
    delete(facts)
    let_go(facts, 1)
    assert facts.records() == ZERO | {"sent": 30, "acked": 30, "removed": 30}


def test_a_replica_that_moves_away_takes_nothing_with_it(make_facts):
    """Without a deletion a removed replica is one copy fewer, and no excuse."""
    facts = three_batches(make_facts(watched=False))
    let_go(facts, 2, 3)
    assert facts.records() == ZERO | {"sent": 30, "acked": 30, "survived": 30}
    let_go(facts, 1)
    assert facts.records() == ZERO | {"sent": 30, "acked": 30, "lost_acked": 30}


def test_what_was_truncated_before_the_deletion_is_lost(make_facts):
    facts = three_batches(make_facts(watched=False))
    for broker in (1, 2, 3):
        facts.truncate(broker, 20)
    delete(facts)
    let_go(facts, 1, 2, 3)
    assert facts.records() == ZERO | {"sent": 30, "acked": 30, "removed": 20, "lost_acked": 10}


def test_a_topic_made_anew_keeps_its_own_records_and_not_the_old_ones(make_facts):
    facts = three_batches(make_facts(watched=False))
    delete(facts)
    let_go(facts, 1, 2, 3)
    make_anew(facts)
    facts.replicate(10, first=30)
    facts.told(30, offset=0)
    assert facts.records() == ZERO | {"sent": 40, "acked": 40, "survived": 10, "removed": 30}


def test_records_that_the_new_topic_loses_are_lost(make_facts):
    facts = three_batches(make_facts(watched=False))
    delete(facts)
    let_go(facts, 1, 2, 3)
    make_anew(facts)
    for first in (30, 40):
        facts.replicate(10, first=first)
        facts.told(first, offset=first - 30)
    for broker in (1, 2, 3):
        facts.truncate(broker, 10)
    found = facts.records()
    assert (found["removed"], found["survived"], found["lost_acked"]) == (30, 10, 10)


def test_an_old_log_put_aside_does_not_bind_the_new_topic(make_facts):
    """The broker slept through deletion and creation; its recovery tells of the old log."""
    facts = three_batches(make_facts())
    delete(facts)
    let_go(facts, 1, 2)
    make_anew(facts)
    facts.row("recoveries", 3, "orders", 0, False, 0, 30, 0, 0)
    let_go(facts, 3)
    facts.replicate(10, first=30)
    facts.told(30, offset=0)
    assert facts.records()["removed"] == 30
    assert facts.records()["survived"] == 10
