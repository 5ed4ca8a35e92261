"""What the checks of the consumer protocol let pass."""


def test_a_partition_may_go_on_when_it_was_given_up_and_when_its_owner_is_gone(facts):
    facts.group(3)
    facts.member("c-0", 1, "orders-0", revokes="orders-1")
    facts.member("c-0", 2, "orders-0")
    facts.member("c-1", 2, "orders-1")
    facts.member("c-0", -1)
    facts.member("c-1", 3, "orders-0,orders-1")
    assert facts.checked("partitions-have-one-owner") == 5


def test_a_coordinator_that_takes_over_tells_of_every_member_anew(facts):
    facts.group(1)
    facts.member("c-0", 1, "orders-0")
    facts.group(1, reason="loaded")
    facts.member("c-1", 1, "orders-0")
    assert facts.checked("partitions-have-one-owner") == 2


def test_a_member_that_was_fenced_begins_where_its_group_is(facts):
    facts.group(4)
    facts.member("c-0", 4)
    facts.member("c-0", -1)
    facts.member("c-0", 2)
    assert facts.checked("member-epochs-advance") == 2


def test_a_group_whose_records_were_lost_may_set_its_members_back(facts):
    facts.append(1, 5, topic="__consumer_offsets")
    facts.watermark(5, topic="__consumer_offsets")
    facts.group(4)
    facts.member("c-0", 4)
    facts.truncate(1, 0, topic="__consumer_offsets", reason="recovery")
    facts.group(2, reason="loaded")
    facts.member("c-0", 2)
    assert len(facts.report("member-epochs-advance").suspended) == 1


def test_a_commit_may_be_answered_while_its_members_next_epoch_begins(facts):
    facts.group(4)
    facts.member("c-0", 3)
    facts.member("c-0", 4)
    facts.commit(3)
    facts.commit(2, error="STALE_MEMBER_EPOCH")
    assert facts.checked("commits-carry-the-member-epoch") == 1
    assert facts.checked("commits-are-current") == 0


def test_members_of_a_group_that_was_downgraded_commit_by_its_generation(facts):
    facts.group(4)
    facts.member("c-0", 3)
    facts.member("c-0", -1)
    facts.group(4, reason="downgraded")
    facts.commit(3)  # its answer was on the way
    facts.group(5)
    facts.commit(5)
    assert facts.checked("commits-are-current") == 2
    assert facts.checked("commits-carry-the-member-epoch") == 0


def test_a_group_that_is_created_since_its_records_were_lost_knows_no_owners(facts):
    facts.append(1, 5, topic="__consumer_offsets")
    facts.watermark(5, topic="__consumer_offsets")
    facts.group(2)
    facts.member("c-0", 2, "orders-0")
    facts.truncate(1, 0, topic="__consumer_offsets", reason="wiped")
    facts.group(0, reason="created")
    facts.group(1)
    facts.member("c-1", 1, "orders-0")
    assert len(facts.report("partitions-have-one-owner").suspended) == 1
    facts.member("c-0", 1)
    assert len(facts.report("member-epochs-advance").suspended) == 1
