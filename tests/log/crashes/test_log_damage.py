"""What is done to the files of a replica, to the byte."""

import pytest

from sim.ids import TopicPartition
from sim.log.directory.damage import flip_a_bit, misdirect_a_write, remove_replica, tear_a_write
from sim.log.store.files import FileStore
from sim.wire.record_batch import RecordBatch
from tests.log.log_kit import batch

P = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
LOG = "orders-0/00000000000000000000.log"
NEXT = "orders-0/00000000000000000003.log"


def draws(*values):
    rest = list(values)
    return lambda: rest.pop(0)


@pytest.fixture
def store(tmp_path):
    made = FileStore(tmp_path)
    made.make_directory("orders-0")
    return made


def written(store, name, *chunks):
    file = store.create(name)
    for chunk in chunks:
        file.append(chunk)
    return store.read_whole(name)


def test_a_torn_write_is_the_beginning_of_the_next_batch_and_takes_nothing_away(store):
    first, last = batch(0, 3), batch(3, 2)
    before = written(store, LOG, first.data, last.data)
    assert tear_a_write(store, P, draws(0.999))
    after = store.read_whole(LOG)
    assert after.startswith(before)
    torn = after[len(before) :]
    assert len(torn) == len(last.data) - 1
    assert int.from_bytes(torn[:8], "big") == last.last_offset + 1
    assert torn[8:] == last.data[8:-1]


def test_the_shortest_torn_write_is_one_byte(store):
    before = written(store, LOG, batch(0, 3).data)
    assert tear_a_write(store, P, draws(0.0))
    assert len(store.read_whole(LOG)) == len(before) + 1


def test_nothing_is_torn_on_a_full_disk(store):
    before = written(store, LOG, batch(0, 3).data)
    refused = []
    store.on_refusal = lambda: refused.append("")
    store.full = True
    assert not tear_a_write(store, P, draws(0.5))
    assert store.read_whole(LOG) == before
    assert not refused, "a fault that finds no room is no proof that the full disk was felt"
    store.full = False
    assert tear_a_write(store, P, draws(0.5))


def test_only_the_newest_segment_is_torn(store):
    old = written(store, LOG, batch(0, 3).data)
    new = written(store, NEXT, batch(3, 1).data)
    assert tear_a_write(store, P, draws(0.5))
    assert store.read_whole(LOG) == old
    assert len(store.read_whole(NEXT)) > len(new)


def test_a_flipped_bit_is_one_bit_wherever_it_lies(store):
    before = written(store, LOG, batch(0, 3).data)
    store.write_back_all()
    store.open(LOG).append(batch(3, 3).data)
    whole = store.read_whole(LOG)
    for at in (len(before) - 1, len(before)):
        assert flip_a_bit(store, P, draws((at + 0.5) / len(whole), 3 / 8))
        changed = store.read_whole(LOG)
        assert [i for i, (a, b) in enumerate(zip(whole, changed, strict=True)) if a != b] == [at]
        assert whole[at] ^ changed[at] == 1 << 3
        store.flip_bit(LOG, at, 3)


@pytest.mark.parametrize("clean", [0, 5_000, 9_000])
def test_a_misdirected_write_puts_a_page_of_another_log_over_one_of_this(store, clean):
    own, foreign = bytes(9_000), b"x" * 9_000
    file = store.create(LOG)
    file.append(own[:clean])
    store.write_back_all()
    file.append(own[clean:])
    store.make_directory("orders-1")
    written(store, "orders-1/00000000000000000000.log", foreign)
    assert misdirect_a_write(store, P, draws(0.0, 0.5, 0.4))
    expected = bytes(4_096) + b"x" * 4_096 + bytes(9_000 - 8_192)
    assert store.read_whole(LOG) == expected
    store.write_back_all()
    assert store.read_whole(LOG) == expected
    assert store.read_whole("orders-1/00000000000000000000.log") == foreign


def test_a_page_over_one_that_is_the_same_changes_nothing(store):
    written(store, LOG, bytes(8_192))
    assert misdirect_a_write(store, P, draws(0.9, 0.0)) is None


@pytest.mark.parametrize(("place", "page"), [(0.0, 0), (0.5, 4_096)])
def test_a_misdirected_write_says_from_which_batch_on_another_s_bytes_may_lie_there(
    store, place, page
):
    own = [batch(0, 1).stamped(offset, 0).data for offset in range(5, 45)]
    size = len(own[0])
    assert 4_096 < 40 * size <= 8_192
    written(store, LOG, *own)
    store.make_directory("orders-1")
    written(store, "orders-1/00000000000000000000.log", b"x" * 8_000)
    assert misdirect_a_write(store, P, draws(0.0, 0.0, place)) == (5 + page // size, 45)


@pytest.mark.parametrize("work", [flip_a_bit, tear_a_write, misdirect_a_write])
def test_without_bytes_there_is_nothing_to_damage(store, work):
    assert not work(store, OTHER, draws())
    written(store, LOG)
    assert not work(store, P, draws())


def test_a_torn_tail_is_not_torn_again(store):
    written(store, LOG, batch(0, 3).data, batch(3, 3).data[:20])
    assert tear_a_write(store, P, draws(0.5))
    assert RecordBatch.parse(store.read_whole(LOG)).last_offset == 2


def test_a_removed_replica_leaves_no_directory(store):
    written(store, LOG, batch(0, 3).data)
    assert remove_replica(store, P)
    assert store.directories() == ()
    assert not remove_replica(store, P)
