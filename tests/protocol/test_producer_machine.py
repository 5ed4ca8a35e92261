"""The whole producer against a small cluster: order, uniqueness, outcomes, time limits."""

import importlib.util
from pathlib import Path

import pytest

from sim.error_codes import ErrorCode as E
from sim.errors import SimulationError
from sim.protocol.messages import LeaderHint
from sim.protocol.producer import Producer
from sim.protocol.producer_batch import ProducerBatch
from sim.protocol.producer_config import ProducerConfig
from sim.protocol.producer_outcomes import Outcomes
from sim.protocol.producer_sequences import ProducerSequences
from sim.units import MS, SECOND


def _kit():
    spec = importlib.util.spec_from_file_location(
        "producer_kit", Path(__file__).parent / "producer_kit.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


kit = _kit()

EVERY_MS = list(range(100_000, 1_100_000, 1_000))


def world(
    instants=EVERY_MS, *, keys=None, seed=1, value_bytes=100, block=64, args=None, **settings
):
    config = ProducerConfig(**settings.pop("config", {}))
    source = kit.ListSource(instants, keys=keys, value_bytes=value_bytes, block=block)
    return kit.World(args or {}, config, source, seed=seed, **settings)


def check_exactly_once(run, total):
    told = run.outcomes()
    assert len(told) == total
    for p, log in enumerate(run.logs):
        assert log.records == list(range(len(log.records))), f"gap or reorder in partition {p}"
        for (partition, number), outcome in told.items():
            if partition == p:
                assert outcome == "ok"
                assert number < len(log.records)


def check_honest(run):
    """``ok`` is there once, ``failed`` is not there."""
    for (p, number), outcome in run.outcomes().items():
        copies = run.logs[p].records.count(number) if p >= 0 else 0
        if outcome == "ok":
            assert copies == 1
        elif outcome == "failed":
            assert copies == 0, f"record {number} of partition {p} was called failed"


# -- the plain case -------------------------------------------------------------------------------


def test_every_record_is_acknowledged_once_and_in_order():
    run = world().run(5 * SECOND)
    check_exactly_once(run, len(EVERY_MS))


def test_outcomes_tell_intended_instants_in_order():
    run = world().run(5 * SECOND)
    intended = sorted(i for _, done in run.done for i in done.intended_us.tolist())
    assert intended == EVERY_MS


def test_a_lone_record_waits_for_linger_and_no_longer():
    run = world([200_000], config={"linger_us": 7 * MS}).run(5 * SECOND)
    assert [at for at, _ in run.sent] == [207_000]


def test_without_linger_a_record_goes_at_its_instant():
    run = world([200_000, 300_000], config={"linger_us": 0}).run(5 * SECOND)
    assert [at for at, _ in run.sent] == [200_000, 300_000]


def test_a_full_batch_does_not_wait_for_linger():
    instants = [200_000 + 10 * k for k in range(20)]
    run = world(instants, config={"batch_size": 1_000, "linger_us": SECOND}).run(5 * SECOND)
    assert run.sent[0][0] < 200_200


def test_keyed_records_keep_their_partition_and_order():
    keys = [k * 7 % 40 for k in range(len(EVERY_MS))]
    run = world(keys=keys, partitions=7).run(5 * SECOND)
    check_exactly_once(run, len(EVERY_MS))
    assert sum(1 for log in run.logs if log.records) == 7


def test_one_request_carries_a_broker_s_partitions_one_batch_each():
    keys = [k * 7 % 40 for k in range(len(EVERY_MS))]
    run = world(keys=keys, partitions=6, brokers=1).run(5 * SECOND)
    largest = max(run.sent, key=lambda sent: len(sent[1].drafts))[1]
    partitions = [draft.partition.partition for draft in largest.drafts]
    assert len(partitions) > 1
    assert len(partitions) == len(set(partitions))


def test_a_request_stays_below_its_largest_size():
    keys = list(range(100))
    instants = [200_000] * 100
    config = {"max_request_size": 3_000, "batch_size": 2_000}
    run = world(instants, keys=keys, partitions=8, brokers=1, config=config).run(5 * SECOND)
    assert len(run.sent) > 1
    for _, sent in run.sent:
        assert sum(100 * len(d.intended_us) for d in sent.drafts) <= 3_000
    check_exactly_once(run, 100)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_requests_in_flight_stay_within_their_limit(limit):
    instants = [100_000 + 50 * k for k in range(4_000)]
    config = {"max_in_flight_requests_per_connection": limit, "batch_size": 1_000}
    run = world(instants, brokers=1, config=config, latency=(2_000, 4_000)).run(20 * SECOND)
    assert run.max_open == limit
    check_exactly_once(run, 4_000)


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


def test_a_leader_hint_spares_the_back_off():
    def answer(run, p, draft):
        if run.leaders[p] != 3:
            run.leaders[p], run.epochs[p] = 3, run.epochs[p] + 1
            return E.NOT_LEADER_OR_FOLLOWER, -1, LeaderHint(3, run.epochs[p])
        return None

    run = world([200_000, 900_000], partitions=1, latency=(100, 100))
    run.answer = answer
    run.run(10 * SECOND)
    assert run.sent[1][1].to == 3
    assert run.sent[1][0] - run.sent[0][0] < 5 * MS


def test_a_hint_of_an_older_epoch_does_not():
    def answer(run, p, draft):
        if run.now < 250_000:
            return E.NOT_LEADER_OR_FOLLOWER, -1, LeaderHint(3, -1)
        return None

    run = world([200_000], partitions=1, latency=(100, 100))
    run.answer = answer
    run.run(10 * SECOND)
    assert run.sent[1][1].to == 1
    assert run.sent[1][0] - run.sent[0][0] >= 80 * MS


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


def test_a_batch_too_large_for_the_broker_goes_in_parts():
    def answer(run, p, draft):
        return (E.MESSAGE_TOO_LARGE, -1, None) if len(draft.intended_us) > 3 else None

    run = world([200_000] * 20, partitions=1)
    run.answer = answer
    run.run(5 * SECOND)
    check_exactly_once(run, 20)
    assert max(done.record_count for _, done in run.done) <= 3


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


# -- acks -----------------------------------------------------------------------------------------


def test_acks_0_is_done_when_written_and_knows_no_offset():
    run = world([200_000], config={"acks": 0}).run(5 * SECOND)
    [(at, done)] = run.done
    assert (done.outcome, done.base_offset, done.answered_by) == ("ok", -1, -1)
    assert at == run.sent[0][0] + 5


@pytest.mark.parametrize("acks", [0, 1])
def test_idempotence_is_silently_off_without_acks_all(acks):
    config = ProducerConfig(acks=acks)
    assert not config.idempotent
    run = world([200_000], config={"acks": acks}).run(5 * SECOND)
    assert run.sent[0][1].drafts[0].producer_id == -1


def test_impossible_settings_are_refused():
    with pytest.raises(SimulationError, match="at most 5"):
        ProducerConfig(max_in_flight_requests_per_connection=6)
    ProducerConfig(max_in_flight_requests_per_connection=6, enable_idempotence=False)
    with pytest.raises(SimulationError, match=r"delivery\.timeout\.ms"):
        ProducerConfig(delivery_timeout_us=SECOND)


# -- memory and blocking --------------------------------------------------------------------------


def test_a_full_buffer_blocks_the_application_and_loses_nothing():
    instants = [200_000 + 20 * k for k in range(3_000)]
    config = {"buffer_memory": 8_000, "batch_size": 1_000}
    run = world(instants, latency=(5_000, 9_000), config=config).run(60 * SECOND)
    check_exactly_once(run, 3_000)
    late = [done for _, done in run.done if done.created_us > done.intended_us[0]]
    assert late
    assert run.mind.accumulator.free_bytes == 8_000


def test_a_send_blocked_for_too_long_is_refused():
    config = {
        "buffer_memory": 1_000,
        "batch_size": 1_000,
        "max_block_us": 2 * SECOND,
        "delivery_timeout_us": 100 * SECOND,
    }
    run = world([200_000 + k for k in range(20)], partitions=1, config=config)
    run.at(190_000, lambda: setattr(run, "silent", (1,)))
    run.run(6 * SECOND)
    refused = [(at, done) for at, done in run.done if done.error == "BUFFER_EXHAUSTED"]
    assert [at for at, _ in refused] == sorted(at for at, _ in refused)
    assert len(refused) == 2
    assert all(done.outcome == "failed" and done.attempts == 0 for _, done in refused)
    assert all(done.partition == -1 for _, done in refused)
    assert refused[1][0] - refused[0][0] == 2 * SECOND


def test_records_wait_for_metadata_and_keep_their_intended_instants():
    run = world([1_000, 2_000], latency=(20_000, 20_000)).run(5 * SECOND)
    check_exactly_once(run, 2)
    done = run.done[0][1]
    assert done.intended_us.tolist() == [1_000, 2_000]
    assert done.created_us == 80_000


def test_a_record_larger_than_a_request_may_be_is_refused_at_once():
    config = {"max_request_size": 1_000}
    run = world([200_000, 300_000], value_bytes=2_000, config=config).run(5 * SECOND)
    assert [(at, done.error) for at, done in run.done] == [
        (200_000, "MESSAGE_TOO_LARGE"),
        (300_000, "MESSAGE_TOO_LARGE"),
    ]


def test_records_meant_for_a_pause_are_sent_at_its_end_with_later_timestamps():
    run = world([200_000, 300_000, 400_000, 900_000], partitions=1)
    run.at(250_000, run.pause)
    run.at(500_000, run.resume)
    run.run(5 * SECOND)
    created = [done.created_us for _, done in run.done]
    assert created == [200_000, 500_000, 900_000]
    check_exactly_once(run, 4)


# -- the end --------------------------------------------------------------------------------------


def test_the_end_tells_what_was_open():
    run = world([100_000, 200_000, 300_000], partitions=1, config={"linger_us": 20 * MS})
    run.at(190_000, lambda: setattr(run, "silent", (1,)))
    run.run(310_000)
    first, second = sorted(run.mind.finish(310_000), key=lambda done: done.first_record)
    assert (first.outcome, first.attempts) == ("unknown", 1)
    assert (second.outcome, second.attempts) == ("failed", 0)
    assert run.mind.next_record_numbers == (3,)


def test_the_end_refuses_what_the_application_could_not_send():
    run = world([200_000, 300_000])
    run.dead = (1, 2, 3)
    run.run(SECOND)
    [done] = run.mind.finish(SECOND)
    assert (done.partition, done.record_count, done.outcome) == (-1, 2, "failed")
    assert done.error == "REQUEST_TIMED_OUT"


def test_the_next_process_numbers_on():
    run = world([200_000], partitions=2, args={"next_records": (5, 9)}).run(5 * SECOND)
    done = run.done[0][1]
    assert done.first_record == (5, 9)[done.partition]


def test_a_moved_clock_moves_timestamps_not_intended_instants():
    run = world([200_000], partitions=1, args={"clock_offset": lambda: -50_000})
    run.run(5 * SECOND)
    draft = run.sent[0][1].drafts[0]
    assert draft.intended_us.tolist() == [200_000]
    assert draft.timestamps_ms[0] % 1_000 == 150


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
        lambda self, batch: self._accumulator.queues[batch.partition].batches.append(batch),
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


# -- the shortcut ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"linger_us": 0, "max_in_flight_requests_per_connection": 2},
        {"batch_size": 1_000, "buffer_memory": 6_000},
        {"max_in_flight_requests_per_connection": 1, "batch_size": 700},
    ],
)
def test_answers_that_change_nothing_are_told_from_those_that_do(config, monkeypatch):
    def story(seed, keys):
        run = world(
            keys=keys,
            seed=seed,
            trouble=0.3,
            trouble_until=600_000,
            config=dict(config),
            latency=(500, 6_000),
        ).run(20 * SECOND)
        return [
            (at, done.partition, done.first_record, done.created_us, done.outcome, done.attempts)
            for at, done in run.done
        ]

    cases = [(1, None), (2, [k * 7 % 40 for k in range(len(EVERY_MS))])]
    short = [story(*case) for case in cases]
    monkeypatch.setattr(Producer, "_changes_nothing", lambda self, *rest: False)
    assert [story(*case) for case in cases] == short


def test_taking_every_success_for_one_that_changes_nothing_is_caught(monkeypatch):
    honest = Producer._changes_nothing

    def careless(self, event, now, offset):
        self._held = False
        return honest(self, event, now, offset)

    config = {"max_in_flight_requests_per_connection": 1, "batch_size": 700}
    good = world(config=dict(config), latency=(500, 6_000)).run(20 * SECOND)
    monkeypatch.setattr(Producer, "_changes_nothing", careless)
    bad = world(config=dict(config), latency=(500, 6_000)).run(20 * SECOND)
    assert [at for at, _ in good.sent] != [at for at, _ in bad.sent]
