"""KIP-1228: a marker says the version of its transaction, so that a late one cannot end the next.

With version 2 each transaction has an epoch of its own, and its marker has the next one. So
a marker of the epoch of open records is a late one, of the transaction before.
"""

import pytest

from sim.error_codes import ErrorCode
from sim.log.producers.state import ProducerStates
from sim.wire.control_batch import Marker, end_transaction_marker
from sim.wire.record_batch import NewRecord, build_batch

FENCED, NONE = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.NONE


def states(epoch, *, ended=False):
    """A producer's open transaction of an epoch; ``ended``: by a marker of the next one."""
    found = ProducerStates()
    found.update(
        build_batch(
            [NewRecord(0, b"k", b"v")],
            producer_id=7,
            producer_epoch=epoch,
            base_sequence=0,
            transactional=True,
        )
    )
    if ended:
        found.update(end_transaction_marker(Marker(True, 7, epoch + 1, 0), 0))
    return found


@pytest.mark.parametrize(("version", "error"), [(0, NONE), (2, FENCED)])
def test_a_marker_of_the_epoch_of_open_records_ends_them_only_before_version_2(version, error):
    assert states(4).check_marker(7, 4, 0, version) is error


@pytest.mark.parametrize("version", [0, 2])
def test_a_marker_of_the_next_epoch_is_taken_and_one_of_an_older_epoch_is_not(version):
    assert states(4).check_marker(7, 5, 0, version) is NONE
    assert states(4).check_marker(7, 3, 0, version) is FENCED


def test_a_marker_that_is_repeated_when_its_transaction_has_ended_is_taken():
    assert states(4, ended=True).check_marker(7, 5, 0, 2) is NONE


def test_the_last_epoch_that_there_is_can_be_ended_by_itself():
    assert states((1 << 15) - 1).check_marker(7, (1 << 15) - 1, 0, 2) is NONE
