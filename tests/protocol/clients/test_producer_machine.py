"""The whole producer against a small cluster: order, sizes, memory, the end, the shortcut."""

import pytest

from sim.errors import SimulationError
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.producer import Producer
from sim.units import MS, SECOND
from tests.protocol.clients.producer_kit import EVERY_MS, check_exactly_once, world

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


def test_a_batch_in_the_buffer_of_a_producer_that_dies_failed_because_it_was_never_sent():
    """No broker refused it, so no error of a broker explains it, and success explains it least."""
    run = world([100_000, 200_000, 300_000], partitions=1, config={"linger_us": 20 * MS})
    run.at(190_000, lambda: setattr(run, "silent", (1,)))
    run.run(310_000)
    in_flight, buffered = sorted(run.mind.finish(310_000), key=lambda done: done.first_record)
    assert (in_flight.outcome, in_flight.error) == ("unknown", "NONE")
    assert (buffered.outcome, buffered.error) == ("failed", "NEVER_SENT")


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
