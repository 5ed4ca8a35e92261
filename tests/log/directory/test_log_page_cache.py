"""What of the files is in memory: the clean extents that were used last, and all that is dirty."""

from hypothesis import given
from hypothesis import strategies as st

from sim.log.store.files import FileStore
from sim.log.store.page_cache import EXTENT, ColdRead, PageCache, together
from tests.log.log_kit import NOW, TP, batch, new_log

KB = 1024


def file_of(store, name, extents):
    file = store.create(name)
    file.append(bytes(extents * EXTENT))
    return file


def test_what_was_written_is_in_memory_dirty_or_clean(tmp_path):
    store = FileStore(tmp_path)
    file = file_of(store, "a", 3)
    assert file.use(0, file.size) is None
    file.write_back(EXTENT + 5)
    assert file.use(0, file.size) is None
    store.write_back_all()
    assert file.use(0, file.size) is None
    assert store.cache.clean_bytes == 3 * EXTENT


def test_a_file_found_at_the_start_is_cold_until_it_is_read(tmp_path):
    (tmp_path / "a").write_bytes(bytes(2 * EXTENT + 7))
    file = FileStore(tmp_path).open("a")
    cold = file.use(10, 20)
    assert cold.bytes == EXTENT, "readahead brings the whole extent"
    assert file.use(0, EXTENT) is None
    assert file.use(EXTENT - 1, file.size) == ColdRead(EXTENT + 7, 1, cold.last, cold.last + 2)


def test_the_extent_that_was_used_longest_ago_makes_room(tmp_path):
    store = FileStore(tmp_path, PageCache(3 * EXTENT))
    file = file_of(store, "a", 3)
    store.write_back_all()
    assert file.use(0, EXTENT) is None, "used again: now the second one is the oldest"
    file_of(store, "b", 1)
    store.write_back_all()
    assert file.use(0, EXTENT) is None
    assert file.use(2 * EXTENT, 3 * EXTENT) is None
    assert file.use(EXTENT, 2 * EXTENT).bytes == EXTENT
    assert store.cache.clean_bytes == 3 * EXTENT


def test_dirty_pages_take_room_from_clean_ones(tmp_path):
    cache = PageCache(3 * EXTENT)
    store, other = FileStore(tmp_path / "0", cache), FileStore(tmp_path / "1", cache)
    clean = file_of(store, "a", 2)
    store.write_back_all()
    file_of(other, "b", 2)
    trigger = file_of(store, "c", 1)
    trigger.write_back()
    assert clean.use(0, EXTENT) is not None
    assert other.open("b").use(0, 2 * EXTENT) is None, "dirty: in memory by definition"


def test_power_loss_empties_it_and_a_deleted_or_cut_file_leaves_it(tmp_path):
    store = FileStore(tmp_path)
    cache = store.cache
    for name in "abc":
        file_of(store, name, 2)
    store.write_back_all()
    store.delete("a")
    assert cache.clean_bytes == 4 * EXTENT
    store.open("b").truncate(EXTENT + 10)
    assert cache.clean_bytes == 3 * EXTENT + 10
    assert store.open("b").use(0, EXTENT + 10) is None
    cache.drop()
    assert cache.clean_bytes == 0
    assert store.open("c").use(0, 1).bytes == EXTENT


def test_a_rename_keeps_what_is_in_memory(tmp_path):
    store = FileStore(tmp_path)
    file_of(store, "a", 1)
    store.write_back_all()
    store.rename("a", "b")
    assert store.open("b").use(0, EXTENT) is None


def test_reads_that_follow_each_other_are_one_run_and_others_are_not():
    one, next_, far = ColdRead(5, 1, 7, 8), ColdRead(6, 1, 8, 9), ColdRead(1, 2, 20, 31)
    assert together(one, next_) == ColdRead(11, 1, 7, 9)
    assert together(one, far) == ColdRead(6, 3, 7, 31)


class Listed:
    """The same rules by brute force: a list of (file, extent), the one used last at the end."""

    def __init__(self, room):
        self.room, self.kept = room, []

    def use(self, file, extents):
        missed = 0
        for place in [(file, extent) for extent in extents]:
            if place in self.kept:
                self.kept.remove(place)
            else:
                missed += 1
            self.kept.append(place)
        del self.kept[: max(len(self.kept) - self.room, 0)]
        return missed


USES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5), st.integers(1, 3)), max_size=40)


@given(room=st.integers(3, 6), uses=USES)
def test_it_agrees_with_a_list_of_extents(room, uses):
    cache, listed = PageCache(room * EXTENT), Listed(room)
    for file, first, count in uses:
        read = cache.read(file, first * EXTENT, (first + count) * EXTENT, 9 * EXTENT)
        missed = listed.use(file, range(first, first + count))
        assert (read.bytes if read else 0) == missed * EXTENT
        assert cache.clean_bytes == len(listed.kept) * EXTENT


def filled(tmp_path, count=60):
    log = new_log(tmp_path)
    for number in range(count):
        log.append_as_leader(batch(number, size=64 * KB), 0, NOW)
    return log


def test_a_log_says_what_a_reader_far_behind_did_not_find_in_memory(tmp_path):
    log = filled(tmp_path)
    cache = log.store.cache
    log.store.write_back_all()
    log.read(0, 60, EXTENT // 2)
    assert not cache.pending
    cache.drop()
    log.read(0, 60, EXTENT // 2)
    assert cache.pending[TP].bytes == EXTENT
    assert log.read(59, 60, EXTENT)
    assert cache.pending[TP].bytes == EXTENT, "the tail needs no file at all"
