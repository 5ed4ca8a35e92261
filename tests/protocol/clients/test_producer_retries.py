"""The producer in trouble: retries, hints, outcomes kept apart; and planted defects."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.clients.producer.batch import ProducerBatch
from sim.protocol.clients.producer.outcomes import Outcomes
from sim.protocol.clients.producer.sequences import ProducerSequences
from sim.units import MS, NEVER, SECOND
from tests.protocol.clients.producer_kit import EVERY_MS, check_exactly_once, check_honest, world

# -- retries --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_an_idempotent_producer_leaves_no_gap_duplicate_or_reorder(seed):
    run = world(seed=seed, trouble=0.3, trouble_until=1_500_000, config={"batch_size": 1_500})
    run.run(60 * SECOND)
    check_exactly_once(run, len(EVERY_MS))
    assert any(done.attempts > 1 for _, done in run.done)


def test_a_written_batch_older_than_the_last_five_is_never_acknowledged():
    stuck = 0
    for seed in range(8):
        run = world(
            seed=seed,
            trouble=0.3,
            trouble_until=1_500_000,
            config={"batch_size": 1_500},
            window=5,
        ).run(60 * SECOND)
        check_honest(run)
        stuck += len(run.outcomes()) < len(EVERY_MS)
    assert stuck


def test_a_broker_without_state_takes_a_later_batch_first_and_order_is_lost():
    broken = 0
    for seed in range(8):
        run = world(
            seed=seed,
            trouble=0.3,
            trouble_until=1_500_000,
            config={"batch_size": 1_500},
            forgiving=True,
        ).run(60 * SECOND)
        broken += any(
            log.records != sorted(log.records) or 0 not in log.records
            for log in run.logs
            if log.records
        )
    assert broken


@pytest.mark.parametrize("seed", range(10))
def test_keyed_idempotent_producer_likewise(seed):
    keys = [k * 7 % 40 for k in range(len(EVERY_MS))]
    run = world(keys=keys, seed=seed, trouble=0.3, trouble_until=1_500_000, partitions=5)
    run.run(60 * SECOND)
    check_exactly_once(run, len(EVERY_MS))


def test_without_idempotence_retries_duplicate_and_reorder():
    duplicated = reordered = False
    for seed in range(6):
        config = {"enable_idempotence": False, "batch_size": 1_500}
        run = world(seed=seed, trouble=0.3, trouble_until=1_500_000, config=config)
        run.run(60 * SECOND)
        for log in run.logs:
            duplicated |= len(log.records) != len(set(log.records))
            reordered |= log.records != sorted(log.records)
    assert duplicated
    assert reordered


def test_one_in_flight_keeps_order_without_idempotence():
    for seed in range(6):
        run = world(
            seed=seed,
            trouble=0.3,
            trouble_until=1_500_000,
            config={
                "enable_idempotence": False,
                "batch_size": 1_500,
                "max_in_flight_requests_per_connection": 1,
            },
        ).run(60 * SECOND)
        for log in run.logs:
            first_copies = list(dict.fromkeys(log.records))
            assert first_copies == sorted(first_copies)


@pytest.mark.parametrize("seed", range(25))
def test_outcomes_are_honest_when_batches_run_out_of_time(seed):
    run = world(
        seed=seed,
        trouble=0.7,
        trouble_until=4 * SECOND,
        config={
            "batch_size": 1_500,
            "delivery_timeout_us": 400 * MS,
            "request_timeout_us": 200 * MS,
        },
    ).run(60 * SECOND)
    check_honest(run)
    assert set(run.outcomes().values()) - {"ok"}


def test_a_retry_waits_a_tenth_of_a_second_then_longer():
    def answer(run, p, draft):
        return (E.NOT_ENOUGH_REPLICAS, -1, None) if run.now < 2 * SECOND else None

    run = world([200_000], latency=(100, 100))
    run.answer = answer
    run.run(10 * SECOND)
    gaps = [b - a for (a, _), (b, _) in zip(run.sent, run.sent[1:], strict=False)]
    assert 80 * MS <= gaps[0] < 121 * MS
    assert 160 * MS <= gaps[1] < 241 * MS
    assert max(gaps) <= 1_001 * MS
    check_exactly_once(run, 1)


def test_a_refusing_broker_gets_nothing_and_its_records_fail_for_certain():
    run = world([200_000], partitions=1, config={"delivery_timeout_us": 31 * SECOND})
    run.go(0)
    run.dead = (1,)
    run.run(60 * SECOND)
    assert run.sent == []
    [(at, done)] = run.done
    assert (done.outcome, done.attempts, done.error) == ("failed", 0, "REQUEST_TIMED_OUT")
    assert at == 200_000 + 31 * SECOND
    assert done.first_sent_us is None


def test_a_silent_broker_leaves_them_unknown():
    config = {"delivery_timeout_us": 31 * SECOND}
    run = world([100_000, 200_000], partitions=1, config=config)
    run.at(190_000, lambda: setattr(run, "silent", (1,)))
    run.run(60 * SECOND)
    [_, (at, done)] = run.done
    assert done.outcome == "unknown"
    assert done.attempts == 1
    assert at == 200_000 + 31 * SECOND


def before_kip_91(retries=0, **config):
    """Settings of releases without ``delivery.timeout.ms``."""
    return {
        "delivery_timeout_us": NEVER,
        "retries": retries,
        "retry_backoff_max_us": 100_000,
        "acks": 1,
        "enable_idempotence": False,
        "linger_us": 0,
        **config,
    }


def test_before_kip_91_a_batch_that_waits_longer_than_a_request_may_last_fails():
    run = world([200_000], partitions=1, config=before_kip_91())
    run.go(0)
    run.dead = (1,)
    run.run(60 * SECOND)
    assert run.sent == []
    [(at, done)] = run.done
    assert (done.outcome, done.attempts, done.error) == ("failed", 0, "REQUEST_TIMED_OUT")
    assert at == 200_000 + 30 * SECOND


def test_before_kip_91_nothing_in_flight_expires_and_retries_bound_the_attempts():
    def answer(run, p, draft):
        return (E.NOT_ENOUGH_REPLICAS, -1, None)

    attempts = {}
    for retries in (0, 3):
        run = world([200_000], latency=(100, 100), config=before_kip_91(retries))
        run.answer = answer
        run.run(200 * SECOND)
        [(_, done)] = run.done
        assert done.outcome == "failed"
        attempts[retries] = done.attempts
        gaps = [b - a for (a, _), (b, _) in zip(run.sent, run.sent[1:], strict=False)]
        assert all(100 * MS <= gap < 102 * MS for gap in gaps)
    assert attempts == {0: 1, 3: 4}


def test_before_kip_91_a_batch_may_take_longer_than_two_minutes():
    def answer(run, p, draft):
        return (E.NOT_ENOUGH_REPLICAS, -1, None) if run.now < 150 * SECOND else None

    run = world([200_000], config=before_kip_91(1 << 30))
    run.answer = answer
    run.run(200 * SECOND)
    [(at, done)] = run.done
    assert done.outcome == "ok"
    assert at > 150 * SECOND


def test_an_error_that_means_not_written_ends_as_failed():
    run = world([200_000], partitions=1)
    run.answer = lambda run, p, draft: (E.INVALID_RECORD, -1, None)
    run.run(5 * SECOND)
    assert [done.outcome for _, done in run.done] == ["failed"]
    assert run.done[0][1].error == "INVALID_RECORD"


def test_the_same_after_an_uncertain_attempt_is_unknown():
    answers = [(E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1, None), (E.INVALID_RECORD, -1, None)]
    run = world([200_000], partitions=1)
    run.answer = lambda run, p, draft: answers.pop(0)
    run.run(5 * SECOND)
    assert [done.outcome for _, done in run.done] == ["unknown"]


def test_a_duplicate_sequence_is_a_success_without_offset():
    run = world([200_000], partitions=1)
    run.answer = lambda run, p, draft: (E.DUPLICATE_SEQUENCE_NUMBER, -1, None)
    run.run(5 * SECOND)
    assert [(done.outcome, done.base_offset) for _, done in run.done] == [("ok", -1)]


def test_a_batch_too_large_for_the_broker_goes_in_parts():
    def answer(run, p, draft):
        return (E.MESSAGE_TOO_LARGE, -1, None) if len(draft.intended_us) > 3 else None

    run = world([200_000] * 20, partitions=1)
    run.answer = answer
    run.run(5 * SECOND)
    check_exactly_once(run, 20)
    assert max(done.record_count for _, done in run.done) <= 3


@pytest.mark.parametrize(
    ("config", "outcome", "error"),
    [
        ({"halves_parts": False}, "unknown", "REQUEST_TIMED_OUT"),  # expired while it was in flight
        ({"splits_batches": False}, "failed", "MESSAGE_TOO_LARGE"),
    ],
)
def test_before_4_2_records_of_a_batch_above_the_topics_limit_and_within_batch_size_fail(
    config, outcome, error
):
    """KAFKA-8350: it is sent as it is, again and again. Before KIP-126 its first answer ends it."""
    asked = []

    def answer(run, p, draft):
        asked.append(len(draft.intended_us))
        return (E.MESSAGE_TOO_LARGE, -1, None) if len(draft.intended_us) > 3 else None

    limits = {"delivery_timeout_us": SECOND, "request_timeout_us": SECOND // 2}
    run = world([200_000] * 20, partitions=1, config={**config, **limits})
    run.answer = answer
    run.run(5 * SECOND)
    assert sum(done.record_count for _, done in run.done) == 20
    assert {(done.outcome, done.error, done.record_count) for _, done in run.done} == {
        (outcome, error, 20)
    }
    assert set(asked) == {20}
    assert (len(asked) == 1) == (outcome == "failed")
    assert len(asked) == 1 or len(asked) > 100


def test_a_single_record_too_large_for_the_broker_fails():
    run = world([200_000], partitions=1)
    run.answer = lambda run, p, draft: (E.MESSAGE_TOO_LARGE, -1, None)
    run.run(5 * SECOND)
    assert [(done.outcome, done.error) for _, done in run.done] == [("failed", "MESSAGE_TOO_LARGE")]


def test_sizes_of_split_batches_are_those_of_their_records():
    def answer(run, p, draft):
        return (E.MESSAGE_TOO_LARGE, -1, None) if len(draft.intended_us) > 70 else None

    run = world([200_000] * 140, partitions=1)
    run.answer = answer
    run.run(5 * SECOND)
    whole = world([200_000] * 70, partitions=1).run(5 * SECOND)
    assert run.done[0][1].size_bytes == whole.done[0][1].size_bytes
    assert run.done[0][1].record_count == 70


# -- planted defects ------------------------------------------------------------------------------


def _fails(seeds, **settings):
    for seed in seeds:
        run = world(
            seed=seed,
            trouble=0.3,
            trouble_until=1_500_000,
            config={"batch_size": 1_500},
            **settings,
        )
        try:
            run.run(60 * SECOND)
            check_exactly_once(run, len(EVERY_MS))
        except (AssertionError, IndexError):
            return True
    return False


def test_reusing_a_sequence_is_caught(monkeypatch):
    number = ProducerSequences.number

    def reuse(self, batch):
        number(self, batch)
        if batch.first_record > 100:
            self.of(batch.partition).next_sequence = batch.base_sequence

    monkeypatch.setattr(ProducerSequences, "number", reuse)
    assert _fails(range(3))


def test_sending_a_later_batch_before_a_retried_one_is_caught(monkeypatch):
    monkeypatch.setattr(ProducerSequences, "may_drain", lambda self, batch: self.has_identity)
    monkeypatch.setattr(
        Outcomes,
        "_requeue",
        lambda self, batch: self._accumulator.backlog.put(batch, 1 << 30),
    )
    monkeypatch.setattr(
        ProducerBatch, "give_sequence", lambda self, producer_id, epoch, sequence: None
    )
    assert _fails(range(3))


def test_calling_an_unknown_batch_failed_is_caught(monkeypatch):
    end = Outcomes.end
    monkeypatch.setattr(
        Outcomes,
        "end",
        lambda self, batch, outcome, base_offset=-1: end(
            self, batch, "failed" if outcome == "unknown" else outcome, base_offset
        ),
    )
    caught = False
    for seed in range(5):
        run = world(
            seed=seed,
            trouble=0.7,
            trouble_until=4 * SECOND,
            config={
                "batch_size": 1_500,
                "delivery_timeout_us": 400 * MS,
                "request_timeout_us": 200 * MS,
            },
        ).run(60 * SECOND)
        try:
            check_honest(run)
        except AssertionError:
            caught = True
    assert caught
