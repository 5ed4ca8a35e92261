"""What a log that cannot be read does to its cleaner: today, and before KIP-346."""

from sim.errors import CorruptRecord
from sim.ids import TopicPartition
from sim.log.cleaning.uncleanable import Uncleanable

BAD, GOOD = TopicPartition("accounts", 0), TopicPartition("accounts", 1)


def test_a_log_that_cannot_be_read_is_left_alone_and_its_cleaner_goes_on():
    uncleanable = Uncleanable(ends_cleaner=False)
    assert uncleanable.mark(BAD, CorruptRecord("bad checksum"))
    assert BAD in uncleanable
    assert GOOD not in uncleanable


def test_before_2_1_the_cleaner_ended_and_nothing_was_marked():
    uncleanable = Uncleanable(ends_cleaner=True)
    assert not uncleanable.mark(BAD, CorruptRecord("bad checksum"))
    assert BAD not in uncleanable
