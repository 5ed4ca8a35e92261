"""``partitioner.class``: Kafka's own classes by version, a user's, and their accumulator."""

import random
from collections import Counter

import pytest

from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.partitioned import PartitionedAccumulator
from sim.protocol.clients.producer.partitioner import (
    DefaultPartitioner,
    FormerDefaultPartitioner,
    OwnPartitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
    murmur2,
    partition_of,
)
from sim.rng import Stream
from tests.protocol.clients.producer_kit import ListSource


def accumulated(partitioner, instants, *, partitions=4, led=None, keys=None, dead=None, **config):
    """An accumulator that has taken every record, and whose batches were not sent."""
    source = ListSource(instants, keys=keys, dead=dead)
    settings = ProducerConfig(partitioner_class=lambda _: partitioner, **config)
    made = PartitionedAccumulator(settings, source, Stream(7, "p").unit, (), partitioner)
    made.led = tuple(range(partitions)) if led is None else led
    made.learn_partitions(partitions)
    made.absorb(max(instants))
    return made


def counts(accumulator):
    return [sum(batch.record_count for batch in queue.batches) for queue in accumulator.queues]


class Topics:
    """The metadata of one topic, as kafka-python's partitioner reads it."""

    def __init__(self, count):
        self.partitions = range(count)

    def topics(self):
        return ["orders"]

    def partitions_for_topic(self, topic):
        return self.partitions

    available_partitions_for_topic = partitions_for_topic


class Own:
    """Answers from a list, and keeps what it was asked."""

    def __init__(self, answers):
        self.answers = list(answers)
        self.asked = []

    def partition(self, topic, key, value_size, partitions, available):
        self.asked.append((topic, key, value_size, partitions, available))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ten_thousand_keys_go_where_kafka_python_sends_them():
    client = pytest.importorskip("kafka.partitioner.default")
    draw = random.Random(19)
    theirs = client.DefaultPartitioner()
    for _ in range(10_000):
        key = draw.randbytes(draw.randrange(1, 40))
        count = draw.randrange(1, 200)
        cluster = Topics(count)
        assert murmur2(key) & 0xFFFFFFFF == client.murmur2(key) & 0xFFFFFFFF
        assert partition_of(key, count) == theirs.partition(
            "orders", None, key, None, None, cluster
        )


def test_round_robin_takes_every_partition_in_turn_where_it_is_asked_once():
    made = accumulated(RoundRobinPartitioner(asks_again=False), list(range(40)))
    assert counts(made) == [10, 10, 10, 10]


def test_round_robin_that_is_asked_again_skips_a_partition_for_each_batch():
    # The first record is given 0, opens no batch there and goes to 1; the second likewise to 3.
    made = accumulated(RoundRobinPartitioner(asks_again=True), [0, 1])
    assert counts(made) == [0, 1, 0, 1]


def test_round_robin_uses_half_of_an_even_number_of_partitions_if_no_batch_takes_a_second_record():
    made = accumulated(RoundRobinPartitioner(asks_again=True), list(range(40)), batch_size=1)
    assert counts(made) == [0, 20, 0, 20]
    odd = accumulated(
        RoundRobinPartitioner(asks_again=True), list(range(40)), partitions=5, batch_size=1
    )
    assert counts(odd) == [8, 8, 8, 8, 8]


def test_round_robin_takes_partitions_that_have_a_leader_and_all_if_none_has():
    made = accumulated(RoundRobinPartitioner(asks_again=False), list(range(6)), led=(1, 3))
    assert counts(made) == [0, 3, 0, 3]
    made = accumulated(RoundRobinPartitioner(asks_again=False), list(range(4)), led=())
    assert counts(made) == [1, 1, 1, 1]


def test_a_uniform_sticky_partition_changes_with_each_new_batch_whatever_the_key():
    sticky = UniformStickyPartitioner(Stream(7, "p").unit, asks_again=True)
    made = accumulated(sticky, list(range(300)), keys=[3] * 300, batch_size=1_000)
    used = Counter({number: count for number, count in enumerate(counts(made)) if count})
    assert len(used) > 1
    assert sum(used.values()) == 300
    batches = [batch for queue in made.queues for batch in queue.batches]
    assert all(batch.record_count > 1 for batch in batches[:-1])


def test_a_sticky_partition_is_never_drawn_twice_in_a_row():
    sticky = UniformStickyPartitioner(Stream(7, "p").unit, asks_again=True)
    before = sticky.partition(None, 10, 3, (0, 1, 2))
    for _ in range(50):
        sticky.on_new_batch(before, 3, (0, 1, 2))
        after = sticky.partition(None, 10, 3, (0, 1, 2))
        assert after != before
        before = after


def test_a_new_batch_of_another_partition_leaves_the_sticky_one_alone():
    sticky = UniformStickyPartitioner(Stream(7, "p").unit, asks_again=True)
    before = sticky.partition(None, 10, 3, (0, 1, 2))
    sticky.on_new_batch((before + 1) % 3, 3, (0, 1, 2))
    assert sticky.partition(None, 10, 3, (0, 1, 2)) == before


@pytest.mark.parametrize(
    "partitioner",
    [
        DefaultPartitioner(Stream(7, "p").unit, asks_again=True),
        FormerDefaultPartitioner(5, asks_again=False),
    ],
)
def test_the_default_partitioners_of_old_hash_the_key(partitioner):
    for key in (b"21", b"foobar", b"abc"):
        assert partitioner.partition(key, 10, 12, (3, 4)) == partition_of(key, 12)


def test_before_2_4_records_without_a_key_take_turns():
    former = FormerDefaultPartitioner(5, asks_again=False)
    assert [former.partition(None, 10, 4, (0, 1, 2, 3)) for _ in range(5)] == [1, 2, 3, 0, 1]


def test_a_users_partitioner_gets_topic_key_size_and_partitions():
    own = Own([2, 1])
    made = accumulated(
        OwnPartitioner(own, "orders", asks_again=False),
        [0, 1],
        led=(1, 2),
        keys=[7, 8],
        dead=[False, True],
    )
    assert own.asked == [
        ("orders", b"key-00000007", 100, 4, (1, 2)),
        ("orders", b"key-00000008", 0, 4, (1, 2)),
    ]
    assert counts(made) == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (-1, "PARTITION_OUT_OF_RANGE"),
        (4, "PARTITION_OUT_OF_RANGE"),
        ("1", "PARTITION_OUT_OF_RANGE"),
        (True, "PARTITION_OUT_OF_RANGE"),
        (1.0, "PARTITION_OUT_OF_RANGE"),
        (None, "PARTITION_OUT_OF_RANGE"),
        (KeyError("x"), "PARTITIONER_FAILED (KeyError)"),
    ],
)
def test_a_partitioner_that_fails_refuses_that_record_alone(answer, error):
    made = accumulated(
        OwnPartitioner(Own([0, answer, 0]), "orders", asks_again=False), [10, 20, 30]
    )
    (refused,) = made.refused
    assert (refused.error, refused.intended_us.tolist(), refused.at) == (error, [20], 20)
    assert counts(made) == [2, 0, 0, 0]


def test_a_record_that_waits_for_memory_keeps_the_partition_it_was_given():
    own = Own([0, 1, 2])
    made = accumulated(
        OwnPartitioner(own, "orders", asks_again=False),
        [0, 1, 2],
        batch_size=200,
        buffer_memory=400,
    )
    assert made.blocked
    assert counts(made) == [1, 1, 0, 0]
    done = made.queues[0].batches.popleft()
    made.release(done)
    made.absorb(9)
    assert counts(made) == [0, 1, 1, 0]
    assert len(own.asked) == 3
