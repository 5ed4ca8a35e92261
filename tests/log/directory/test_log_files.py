"""The page cache over real files: what is read, what is durable, what a power loss leaves."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sim.log.store.files import DiskFailed, DiskFull, FileStore
from sim.log.store.platter import surviving_sizes


def on_platter(store: FileStore, name: str) -> bytes:
    return (store.root / name).read_bytes()


def scripted(*draws: float):
    left = list(draws)
    return lambda: left.pop(0)


def test_appends_are_read_back_at_once_and_reach_the_platter_only_by_flush(tmp_path) -> None:
    store = FileStore(tmp_path)
    file = store.create("a")
    file.append(b"hello ")
    file.append(b"world")
    assert file.read(3, 5) == b"lo wo"
    assert (on_platter(store, "a"), store.dirty_bytes) == (b"", 11)
    assert store.flush("a") == 11
    assert (on_platter(store, "a"), store.dirty_bytes) == (b"hello world", 0)
    assert store.flush("a") == 0


@given(st.lists(st.tuples(st.sampled_from("artwmb"), st.integers(0, 60)), max_size=40))
@example([("a", 1), ("w", 0), ("m", 0), ("t", 0), ("a", 1), ("b", 0)])
def test_a_file_is_always_the_bytes_that_were_written(steps) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = FileStore(Path(directory))
        file, model, marks, old = store.create("a"), bytearray(), [], 0
        for what, amount in steps:
            match what:
                case "a":
                    chunk = bytes((amount + i) % 251 for i in range(amount))
                    file.append(chunk)
                    model += chunk
                case "r":
                    assert file.read(amount, 37) == model[amount : amount + 37]
                case "t":
                    file.truncate(amount)
                    del model[amount:]
                    old = min(old, len(model))
                    # A mark promises nothing of what is written again where the file was cut.
                    marks = [(mark, min(size, len(model))) for mark, size in marks]
                case "w":
                    store.write_back_all()
                    marks.clear()
                case "m":
                    marks.append((store.mark(), len(model)))
                case "b" if marks:
                    mark, size = marks.pop()
                    old = min(size, len(model))
                    store.write_back(mark)
                    marks.clear()
            assert file.size == len(model)
            assert store.dirty_bytes == len(model) - len(on_platter(store, "a"))
            assert on_platter(store, "a") == model[: len(on_platter(store, "a"))]
            assert len(on_platter(store, "a")) >= min(old, len(model))
        assert file.read(0, 10_000) == model
        store.close()


def test_write_back_moves_what_was_dirty_at_the_mark_and_no_more(tmp_path) -> None:
    store = FileStore(tmp_path)
    one, two = store.create("one"), store.create("two")
    one.append(b"old")
    early = store.mark()
    one.append(b"new")
    two.append(b"new")
    late = store.mark()
    assert store.write_back(early) == 3
    assert (on_platter(store, "one"), on_platter(store, "two")) == (b"old", b"")
    assert store.write_back(early) == 0
    assert store.write_back(late) == 6
    assert store.dirty_bytes == 0


def test_power_loss_keeps_what_was_flushed_and_drops_the_rest(tmp_path) -> None:
    store = FileStore(tmp_path)
    file = store.create("a")
    file.append(b"safe")
    file.flush()
    file.append(bytes(10_000))
    assert store.power_loss(lambda: 0.0) == 10_000
    assert (file.size, on_platter(store, "a"), store.dirty_bytes) == (4, b"safe", 0)


def test_power_loss_on_a_lying_disk_loses_what_was_flushed(tmp_path) -> None:
    store = FileStore(tmp_path)
    store.lies = True
    file = store.create("a")
    file.append(b"safe?")
    assert file.flush() == 5
    assert store.power_loss(lambda: 0.0) == 5
    assert on_platter(store, "a") == b""


def test_every_page_prefix_and_every_torn_sector_can_survive(tmp_path) -> None:
    clean, size = 5_000, 14_000
    groups = surviving_sizes(clean, size)
    assert [group[0] for group in groups] == [5_000, 8_192, 12_288, 14_000]
    assert groups[1][1:] == (5_120, 5_632, 6_144, 6_656, 7_168, 7_680)
    assert groups[3][1:] == (12_800, 13_312, 13_824)
    data = bytes(i % 251 for i in range(size))
    seen = []
    for number, group in enumerate(groups):
        for torn, expected in enumerate(group):
            store = FileStore(tmp_path / f"{number}-{torn}")
            file = store.create("a")
            file.append(data[:clean])
            file.flush()
            file.append(data[clean:9_000])
            file.append(data[9_000:])
            which = (number + 0.5) / len(groups)
            how = 0.5 + (torn + 0.5) / len(group) / 2
            assert store.power_loss(scripted(which, how)) == size - expected
            assert file.read(0, size) == on_platter(store, "a") == data[:expected]
            store.close()
            seen.append(expected)
    assert sorted(seen) == sorted(size for group in groups for size in group)


def test_half_of_the_last_pages_are_whole(tmp_path) -> None:
    store = FileStore(tmp_path)
    file = store.create("a")
    file.append(bytes(4_096))
    store.power_loss(scripted(0.99, 0.49))
    assert file.size == 4_096


def test_a_disk_with_a_capacity_is_filled_by_what_is_written_and_freed_by_what_is_deleted(tmp_path):
    store = FileStore(tmp_path)
    store.create("old").append(bytes(100))
    store.write_back_all()
    store.capacity = 200
    file = store.create("a")
    file.append(bytes(60))
    file.flush()
    file.append(bytes(40))
    assert store.used_bytes == 200
    refusals = []
    store.on_refusal = lambda: refusals.append(store.used_bytes)
    for act in (lambda: file.append(b"x"), lambda: store.replace("c", b"x")):
        with pytest.raises(DiskFull, match="no space left"):
            act()
    assert refusals == [200, 200]
    assert store.refuses_writes
    file.truncate(70)
    file.truncate(50)
    assert store.used_bytes == 150
    store.replace("old", bytes(10))
    assert store.used_bytes == 60
    store.rename("old", "a")
    assert store.used_bytes == 10
    store.delete("a")
    assert store.used_bytes == 0
    store.create("b").append(bytes(200))
    with pytest.raises(DiskFull):
        store.open("b").append(b"x")
    store.mount()
    assert not store.refuses_writes, "a process that starts finds out for itself"
    store.capacity = 0
    store.open("b").append(b"x")
    assert not store.is_guarded


def test_a_power_loss_and_an_empty_disk_leave_room(tmp_path):
    store = FileStore(tmp_path)
    store.capacity = 10_000
    store.create("a").append(bytes(8_192))
    store.power_loss(scripted(0, 0))
    assert store.used_bytes == 0
    store.open("a").append(bytes(8_192))
    store.wipe()
    store.mount()
    assert store.used_bytes == 0
    store.create("a").append(bytes(8_192))
    store.write_back_all()
    again = FileStore(tmp_path)
    assert again.used_bytes == 8_192, "what lies there counts"


def test_a_failed_disk_refuses_everything_and_a_full_one_only_writes(tmp_path) -> None:
    store = FileStore(tmp_path)
    file = store.create("a")
    file.append(b"x")
    store.full = True
    for act in (
        lambda: file.append(b"y"),
        lambda: store.create("b"),
        lambda: store.replace("c", b""),
    ):
        with pytest.raises(DiskFull, match="no space left"):
            act()
    assert file.read(0, 1) == b"x"
    store.failed = True
    for act in (
        lambda: file.append(b"y"), lambda: file.read(0, 1), lambda: file.truncate(0), file.flush,
        lambda: store.open("a"), lambda: store.delete("a"), lambda: store.replace("c", b""),
    ):  # fmt: skip
        with pytest.raises(DiskFailed, match="input/output error"):
            act()
    store.failed = store.full = False
    file.append(b"y")
    assert file.read(0, 9) == b"xy"


def test_an_error_of_the_real_machine_is_not_part_of_the_simulation(tmp_path) -> None:
    store = FileStore(tmp_path)
    store.create("a").append(b"x")
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError):
        store.write_back_all()


def test_a_replaced_disk_comes_back_empty_and_healthy_to_who_mounts_it(tmp_path) -> None:
    store = FileStore(tmp_path)
    store.make_directory("t-0")
    former = store.create("t-0/a")
    former.append(b"x")
    store.failed = True
    store.wipe()
    assert (store.names("t-0"), store.directories(), store.dirty_bytes) == ((), (), 0)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DiskFailed):
        former.append(b"y")
    with pytest.raises(DiskFailed):
        store.create("b")
    store.mount()
    store.create("b").append(b"fresh")


def test_mounting_mends_no_disk_that_is_broken_still(tmp_path) -> None:
    store = FileStore(tmp_path)
    store.failed = True
    store.wipe()
    store.failed = True
    store.mount()
    with pytest.raises(DiskFailed):
        store.create("b")


@pytest.mark.parametrize("flushed", [True, False])
def test_a_flipped_bit_is_read_wherever_the_byte_is(tmp_path, flushed: bool) -> None:
    store = FileStore(tmp_path)
    file = store.create("a")
    file.append(b"abc")
    if flushed:
        file.flush()
    store.flip_bit("a", 1, 0)
    assert file.read(0, 3) == b"acc"


def test_replacing_a_file_is_durable_at_once_and_deleting_forgets_its_dirt(tmp_path) -> None:
    store = FileStore(tmp_path)
    store.replace("c", b"one")
    store.replace("c", b"two")
    assert (on_platter(store, "c"), store.read_whole("c")) == (b"two", b"two")
    assert store.read_whole("missing") is None
    store.create("d").append(b"dirty")
    store.delete("d")
    store.delete("d")
    assert (store.dirty_bytes, store.names()) == (0, ("c",))


def test_renamed_files_and_directories_keep_their_dirty_bytes(tmp_path) -> None:
    store = FileStore(tmp_path)
    store.make_directory("t-0")
    file = store.create("t-0/a")
    file.append(b"clean")
    file.flush()
    file.append(b" dirty")
    store.rename("t-0/a", "t-0/b")
    store.rename_directory("t-0", "t-0.gone")
    assert store.read_whole("t-0.gone/b") == b"clean dirty"
    store.write_back_all()
    assert on_platter(store, "t-0.gone/b") == b"clean dirty"
    store.delete_directory("t-0.gone")
    assert list(tmp_path.iterdir()) == []


def test_more_files_than_open_descriptors_are_written_back(tmp_path) -> None:
    store = FileStore(tmp_path)
    for i in range(100):
        store.create(f"f{i}").append(b"%d" % i)
    assert store.write_back_all() == 190
    assert len(store.real._descriptors) <= 6
    assert all(on_platter(store, f"f{i}") == b"%d" % i for i in range(100))
    store.close()
    assert store.real._descriptors == {}


def test_a_new_store_finds_the_files_of_an_old_one(tmp_path) -> None:
    FileStore(tmp_path).replace("c", b"one")
    store = FileStore(tmp_path)
    assert store.read_whole("c") == b"one"
