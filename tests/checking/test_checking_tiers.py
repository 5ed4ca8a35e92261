"""What the checks of tiered storage let pass."""


def test_a_follower_may_know_of_a_copy_whose_broker_has_no_answer(facts):
    """The event is in the topic, and the answer to its writer was lost."""
    facts.remote(0, 9)
    facts.remote(10, 19, "COPY_SEGMENT_STARTED", name="b", broker=2)
    facts.local(3, 0, 20)
    assert facts.checked("copied-before-deleted") == 1


def test_a_leader_that_lost_its_log_may_delete_copies_of_epochs_that_it_does_not_know(facts):
    """RemoteLogManager deletes what is below its earliest epoch (KIP-405)."""
    facts.append(2, 20)
    facts.watermark(20)
    facts.remote(0, 9)
    facts.local(2, 0, 10)
    facts.truncate(2, 0, reason="wiped")
    facts.remote(0, 9, "DELETE_SEGMENT_STARTED")
    assert len(facts.report("remote-log-without-hole").suspended) == 1
    facts.local(3, 0, 10)
    assert len(facts.report("copied-before-deleted").suspended) == 1
