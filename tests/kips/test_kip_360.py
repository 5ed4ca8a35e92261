"""KIP-360: a producer whose batch is refused takes the next epoch instead of giving up.

An idempotent producer begins the epoch by its own count, a transactional one asks its coordinator,
which lets it do so if nobody else has taken over. A leader keeps what it knows of a producer when
its records have been deleted.
"""

from sim.error_codes import ErrorCode as E
from sim.units import SECOND
from tests.log.log_kit import NOW, batch, new_log
from tests.protocol.clients.producer_kit import check_exactly_once, world
from tests.protocol.coordinator.transaction_bench import Desk


def test_a_producer_asks_for_its_next_epoch_and_may_ask_again():
    desk = Desk()
    pid, epoch = desk.ids(desk.init())
    assert desk.ids(desk.init(pid, epoch)) == (pid, epoch + 1)
    assert desk.ids(desk.init(pid, epoch)) == (pid, epoch + 1)  # the answer was lost
    assert desk.init(pid, epoch - 1).error is E.PRODUCER_FENCED
    assert desk.init(pid + 1, epoch + 1).error is E.PRODUCER_FENCED


def test_a_retry_after_somebody_else_took_over_is_fenced():
    desk = Desk()
    pid, epoch = desk.ids(desk.init())
    desk.init(pid, epoch)
    desk.init()
    assert desk.init(pid, epoch).error is E.PRODUCER_FENCED


def test_a_gap_at_the_next_sequence_begins_a_new_epoch_from_zero():
    refused = []

    def answer(run, p, draft):
        if draft.base_sequence > 0 and not refused:
            refused.append(draft)
            return E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, None
        return None

    run = world([200_000, 400_000, 600_000], partitions=1)
    run.answer = answer
    run.run(5 * SECOND)
    drafts = [draft for _, sent in run.sent for draft in sent.drafts]
    assert [(d.producer_epoch, d.base_sequence) for d in drafts] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    check_exactly_once(run, 3)


def test_a_producer_is_known_after_its_records_have_been_deleted(tmp_path):
    log = new_log(tmp_path)
    for sequence in (0, 1):
        log.append_as_leader(batch(sequence, pid=7, sequence=sequence), 0, NOW)
    log.raise_log_start(2)
    again = log.append_as_leader(batch(9, pid=7, sequence=9), 0, NOW)
    assert again.error is E.OUT_OF_ORDER_SEQUENCE_NUMBER
    next_one = log.append_as_leader(batch(2, pid=7, sequence=2), 0, NOW)
    assert (next_one.error, next_one.base_offset) == (E.NONE, 2)
