"""Pulling arrivals gives what appending record by record gives."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.protocol.clients.producer.accumulator import Accumulator
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.partitioner import key_of, partition_of
from sim.rng import Stream
from sim.units import EPOCH_MS, NEVER
from tests.protocol.clients import producer_kit as kit


def ready(queue_lengths_and_head, linger, now, exhausted):
    length, created, full = queue_lengths_and_head
    return length > 1 or full or now >= created + linger or exhausted


def run_naive(
    config, instants, keys, partitions, led, value_bytes, hold,
    dead=None, headers=(0, 0), ratio=None, grow=None,
):  # fmt: skip
    """A sender's turn after every instant at which anything could be ready.

    ``grow``: at an instant, after its sends, the topic has so many partitions, led as given.
    """
    naive = kit.NaiveAccumulator(
        config, Stream(7, "p").unit, partitions, led, value_bytes, keys is not None, headers, ratio
    )
    sent = []
    position, floor, blocked = 0, -(1 << 60), False
    held = []  # (release instant, bytes)
    answered = False
    while True:
        arrival = max(instants[position], floor) if position < len(instants) else NEVER
        if blocked:
            arrival = NEVER
        lingers = [q[0].created + config.linger_us for q in naive.queues if q]
        more = [grow[0]] if grow and min([arrival, *lingers]) < NEVER else []
        now = min([arrival, *lingers, *(at for at, _ in held), *more])
        if now >= NEVER:
            return sent, position
        while not blocked and position < len(instants) and instants[position] <= now:
            instant = max(instants[position], floor)
            key = None if keys is None else keys[position]
            gone = dead is not None and dead[position]
            if naive.append(instants[position], instant, key, gone):
                position += 1
            else:
                blocked = True
        # A sender looks after each answer, whatever else makes it look.
        answered |= any(at <= now for at, _ in held)
        for at, size in [h for h in held if h[0] <= now]:
            naive.free += size
            held.remove((at, size))
        if grow and now >= grow[0]:
            naive.grow(*grow[1:])
            grow = None
        waits = position < len(instants) and dead is not None and dead[position]
        if blocked and naive.free >= naive.capacity(waits):
            blocked, floor = False, now
            continue
        looks, answered = answered, False
        if looks:
            naive.note_loads()
        for p, queue in enumerate(naive.queues):
            while queue and ready(
                (len(queue), queue[0].created, queue[0].full), config.linger_us, now, blocked
            ):
                batch = queue.popleft()
                sent.append((now, p, batch.created, batch.size, tuple(batch.records)))
                held.append((now + hold, batch.capacity))


def run_pulled(
    config, instants, keys, partitions, led, value_bytes, hold, block, extra,
    dead=None, headers=(0, 0), ratio=None, grow=None,
):  # fmt: skip
    source = kit.ListSource(
        instants, keys=keys, value_bytes=value_bytes, block=block, dead=dead, headers=headers
    )
    accumulator = Accumulator(config, source, Stream(7, "p").unit)
    if ratio is not None:
        accumulator.estimator.ratio = ratio
    accumulator.learn_partitions(partitions)
    accumulator.led = led
    sent = []
    held = []
    extra = sorted(extra)
    while True:
        lingers = [
            q.batches[0].created_us + config.linger_us for q in accumulator.queues if q.batches
        ]
        wake = accumulator.next_instant(lambda _: True)
        if accumulator.blocked:
            wake = NEVER  # max.block.ms plays no part here
        more = [extra[0]] if extra and wake < NEVER else []
        if grow and min([wake, *lingers]) < NEVER:
            more.append(grow[0])
        now = min([wake, *lingers, *(at for at, _ in held), *more])
        if now >= NEVER:
            return sent
        while extra and extra[0] <= now:
            extra.pop(0)
        accumulator.absorb(now)
        answered = any(at <= now for at, _ in held)
        for at, batch in [h for h in held if h[0] <= now]:
            accumulator.release(batch)
            held.remove((at, batch))
        if grow and now >= grow[0]:
            accumulator.learn_partitions(grow[1])
            accumulator.led = grow[2]
            grow = None
        if accumulator.blocked:
            accumulator.absorb(now)
        if answered:
            accumulator.note_loads()
        for queue in accumulator.queues:
            while queue.batches and ready(
                (len(queue.batches), queue.batches[0].created_us, queue.batches[0].is_full),
                config.linger_us,
                now,
                accumulator.exhausted,
            ):
                batch = queue.batches.popleft()
                batch.closed = True
                intended, stamps, _, _ = batch.records()
                records = tuple(zip(intended.tolist(), (stamps - EPOCH_MS).tolist(), strict=True))
                row = (now, queue.partition, batch.created_us, batch.size_bytes, records)
                sent.append(row)
                assert batch.record_count == len(records)
                held.append((now + hold, batch))


@settings(deadline=None)
@given(st.data())
def test_pulling_equals_appending_record_by_record(data):
    draw = data.draw
    gaps = draw(
        st.lists(
            st.sampled_from([0, 0, 1, 40, 200, 900, 3_000, 70_000, 9_000_000]),
            min_size=1,
            max_size=300,
        )
    )
    instants, at = [], 0
    for gap in gaps:
        at += gap
        instants.append(at)
    keyed = draw(st.booleans())
    keys = [draw(st.integers(0, 20)) for _ in instants] if keyed else None
    partitions = draw(st.integers(1, 5))
    led = tuple(p for p in range(partitions) if draw(st.booleans()))
    batch_size = draw(st.sampled_from([0, 200, 700, 3_000, 16_384]))
    value_bytes = draw(st.sampled_from([24, 50, 100, 130]))
    capacity = max(batch_size, 61 + 21 + 15 + 2 + value_bytes + 32)
    config = ProducerConfig(
        batch_size=batch_size,
        linger_us=draw(st.sampled_from([0, 500, 5_000])),
        buffer_memory=capacity * draw(st.sampled_from([1, 2, 3, 1_000])),
        partitioner_adaptive_partitioning_enable=draw(st.booleans()),
    )
    headers = draw(st.sampled_from([(0, 0), (2, 30)]))
    sizes = st.sampled_from([24, 24 + (value_bytes - 24) // 2, value_bytes])
    kinds = st.booleans() | sizes if keyed else sizes
    dead = draw(st.none() | st.lists(kinds, min_size=len(instants), max_size=len(instants)))
    ratio = draw(st.none() | st.sampled_from([0.015625, 0.1, 0.355, 0.5, 0.995, 1.0, 1.05, 1.4]))
    if ratio is not None:
        config = replace(config, compression_type="gzip")
    hold = draw(st.sampled_from([1, 700, 20_000]))
    block = draw(st.sampled_from([1, 7, 64, 10_000]))
    extra = draw(st.lists(st.integers(0, at), max_size=10))
    grow = None
    if draw(st.booleans()):
        count = partitions + draw(st.integers(1, 3))
        grow = (draw(st.integers(0, at)), count, tuple(range(count)))
    how = {"dead": dead, "headers": headers, "ratio": ratio, "grow": grow}
    naive, taken = run_naive(config, instants, keys, partitions, led, value_bytes, hold, **how)
    pulled = run_pulled(
        config, instants, keys, partitions, led, value_bytes, hold, block, extra, **how
    )
    assert taken == len(instants)
    assert sorted(pulled) == sorted(naive)


def test_the_comparison_notices_a_record_in_the_wrong_batch():
    config = ProducerConfig(batch_size=300, linger_us=500)
    naive, _ = run_naive(config, [0, 10, 20, 30], None, 1, (0,), 100, 10)
    shifted = run_pulled(config, [0, 10, 20, 31], None, 1, (0,), 100, 10, 10, [])
    assert sorted(naive) != sorted(shifted)


def test_the_comparison_notices_growth_at_another_instant():
    config = ProducerConfig(batch_size=300, linger_us=500)
    moving = [k for k in range(50) if partition_of(key_of(k), 3) == 1][:4]
    args = (config, [0, 1_000, 2_000, 3_000], moving, 1, (0,), 100, 10)
    naive, _ = run_naive(*args, grow=(1_500, 3, (0, 1, 2)))
    assert {partition for _, partition, *_ in naive} == {0, 1}
    assert sorted(naive) == sorted(run_pulled(*args, 10, [], grow=(1_500, 3, (0, 1, 2))))
    assert sorted(naive) != sorted(run_pulled(*args, 10, [], grow=(2_500, 3, (0, 1, 2))))
    assert sorted(naive) != sorted(run_pulled(*args, 10, []))


def test_the_comparison_notices_a_tombstone_taken_for_a_value():
    config = ProducerConfig(batch_size=300, linger_us=500)
    instants, keys = [0, 10, 20, 30], [1, 1, 1, 1]
    args = (config, instants, keys, 1, (0,), 100, 10)
    naive, _ = run_naive(*args, dead=[True, False, False, False])
    pulled = run_pulled(*args, 10, [], dead=[False, False, False, True])
    assert sorted(naive) != sorted(pulled)


def test_the_comparison_notices_another_ratio():
    config = ProducerConfig(batch_size=1_000, linger_us=500, compression_type="lz4")
    args = (config, list(range(60)), None, 1, (0,), 100, 10)
    naive, _ = run_naive(*args, ratio=0.5)
    assert sorted(naive) == sorted(run_pulled(*args, 10, [], ratio=0.5))
    assert sorted(naive) != sorted(run_pulled(*args, 10, [], ratio=0.45))


@pytest.mark.parametrize("batch_size", [200, 16_384])
def test_a_batch_is_as_large_as_its_records_and_no_larger_than_its_limit(batch_size):
    config = ProducerConfig(batch_size=batch_size)
    instants = list(range(0, 400_000, 400))
    for _, _, _, size, records in run_pulled(config, instants, None, 3, (0, 1, 2), 100, 10, 64, []):
        assert size <= max(batch_size, 61 + 21 + 1 + 2 + 100 + 1)
        assert size >= 61 + 100 * len(records)


@pytest.mark.parametrize("looks_again", [False, True])
def test_the_partitioner_knows_the_queues_as_the_sender_found_them_at_its_last_look(looks_again):
    """What was drained since then still counts; without a difference the choice is uniform."""
    source = kit.ListSource([0, 0, 1_000], value_bytes=900, block=10)
    config = ProducerConfig(batch_size=1_000, linger_us=1_000_000)
    # Of weights 1, 3, 3 the number 0.15 falls on the second, of three alike on the first.
    accumulator = Accumulator(config, source, lambda: 0.15)
    accumulator.learn_partitions(3)
    accumulator.led = (0, 1, 2)
    for queue in accumulator.queues:
        queue.used = True
    accumulator.absorb(0)
    assert [len(queue.batches) for queue in accumulator.queues] == [2, 0, 0]
    accumulator.note_loads()
    accumulator.queues[0].batches.clear()
    if looks_again:
        accumulator.note_loads()
    accumulator.absorb(1_000)
    chosen = [queue.partition for queue in accumulator.queues if queue.batches]
    assert chosen == [0 if looks_again else 1]
