"""The trace writer: digests of values, strict columns, Parquet that survives a failure."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.errors import DefectFound, SimulationError
from sim.trace import parquet
from sim.trace.schema import TABLES
from sim.trace.writer import Trace, first_difference


def append_row(n: int, broker: int = 1) -> tuple[object, ...]:
    return (
        n, broker, "orders", n % 3, n * 10, n * 10 + 9, 2, broker == 1, 900, 0xFFFF_FFFF - n,
        0, n * 10, 10, 77, 0, n * 10,
    )  # fmt: skip


def batch_row(n: int, latency: object = (1, 2, 3)) -> tuple[object, ...]:
    return (
        n, "shop-0", 0, "orders", 0, n, 3, 300, -1, n, n, n, 1, "ok", "NONE", n, 1, n, latency,
    )  # fmt: skip


def message_row(n: int) -> tuple[object, ...]:
    return (n, "broker-1", "broker-2", "FetchRequest", 90, n - 1, "")


def filled(directory: Path | None, count: int = 100, **options: object) -> Trace:
    trace = Trace(directory, **options)
    for n in range(count):
        trace.table("appends").add(append_row(n))
        trace.table("client_batches").add(batch_row(n, list(range(n % 4))))
        trace.table("messages").add(message_row(n))
    return trace


def rows_in(directory: Path, table: str) -> list[dict[str, object]]:
    parts = sorted((directory / table).glob("part-*.parquet"))
    return [row for part in parts for row in pq.read_table(part).to_pylist()]


def test_rows_come_back_from_parquet_unchanged_and_in_order(tmp_path):
    trace = filled(tmp_path, rows_per_group=7)
    trace.close()
    names = [c.name for t in TABLES if t.name == "appends" for c in t.columns]
    read = rows_in(tmp_path, "appends")
    assert [tuple(row[name] for name in names) for row in read] == [
        append_row(n) for n in range(100)
    ]
    assert rows_in(tmp_path, "client_batches")[7]["latency_us"] == [0, 1, 2]


def test_a_table_without_rows_can_be_read_and_a_facts_trace_has_no_detail_tables(tmp_path):
    Trace(tmp_path, level="facts").close()
    assert rows_in(tmp_path, "appends") == []
    assert not (tmp_path / "messages").exists()


@pytest.mark.parametrize("rows_per_group", [1, 2, 13, 64, 65_536])
def test_digests_do_not_depend_on_the_row_group_size(rows_per_group):
    assert filled(None, rows_per_group=rows_per_group).digests == filled(None).digests


def test_digest_does_not_depend_on_level_or_directory(tmp_path):
    reference = filled(None).digest()
    for level in ("facts", "detail"):
        trace = filled(tmp_path / level, level=level)
        trace.close()
        assert trace.digest() == reference
    assert filled(None, level="facts").digest() == reference


def test_digest_may_be_asked_in_the_middle_without_moving_the_last_one():
    trace = filled(None)
    early = trace.digest()
    trace.table("appends").add(append_row(100))
    whole = filled(None)
    whole.table("appends").add(append_row(100))
    assert trace.digest() == whole.digest() != early


def test_trace_digest_ignores_detail_tables_but_their_own_digest_does_not():
    plain, more = filled(None), filled(None)
    more.table("messages").add(message_row(5))
    assert more.digest() == plain.digest()
    assert more.digests["messages"] != plain.digests["messages"]


@pytest.mark.parametrize("column", range(16))
def test_each_column_is_part_of_the_digest(column):
    row = list(append_row(3))
    value = row[column]
    row[column] = (
        not value
        if isinstance(value, bool)
        else (
            value + "x" if isinstance(value, str) else value + 1  # type: ignore[operator]
        )
    )
    one, other = Trace(None), Trace(None)
    one.table("appends").add(append_row(3))
    other.table("appends").add(tuple(row))
    assert one.digest() != other.digest()


def test_moving_a_character_or_a_number_to_the_neighbour_row_changes_the_digest():
    def digest(topics: list[str], lists: list[list[int]]) -> str:
        trace = Trace(None)
        for topic, numbers in zip(topics, lists, strict=True):
            row = list(batch_row(0, numbers))
            row[3] = topic
            trace.table("client_batches").add(tuple(row))
        return trace.digest()

    same = digest(["ab", "c"], [[1, 2], [3]])
    assert digest(["a", "bc"], [[1, 2], [3]]) != same
    assert digest(["ab", "c"], [[1], [2, 3]]) != same
    assert digest(["ab", "c"], [[1, 2], [3]]) == same


def test_digest_is_the_same_in_a_process_with_another_hash_seed():
    program = (
        "from sim.trace.writer import Trace; t = Trace(None)\n"
        "for n in range(50): t.table('messages').add((n, 'é', 'b', 'k', 1, n, ''))\n"
        "print(t.digests['messages'])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5), min_size=1, max_size=30))
def test_lists_and_arrays_of_either_width_give_the_same_digest(lists):
    kinds = (list, tuple, lambda x: np.array(x, dtype=np.int32), lambda x: np.array(x, dtype="i8"))
    digests = set()
    for kind in kinds:
        trace = Trace(None, rows_per_group=16)
        for n, numbers in enumerate(lists):
            trace.table("client_batches").add(batch_row(n, kind(numbers)))
        digests.add(trace.digest())
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [(0, 1.5), (0, "1"), (0, None), (1, 2**31), (2, 7), (2, None), (7, 1), (7, None)],
)
def test_a_value_of_the_wrong_type_is_refused_with_table_column_and_row(column, value):
    trace = Trace(None)
    trace.table("appends").add(append_row(0))
    row = list(append_row(1))
    row[column] = value
    trace.table("appends").add(tuple(row))
    name = TABLES[1].columns[column].name
    with pytest.raises(DefectFound, match=rf"table appends: column {name} .*row 1 of its group"):
        trace.close()


@pytest.mark.parametrize("value", [None, 5, [1.5], [None], [2**31], np.zeros(2), "12"])
def test_a_list_that_is_not_of_32_bit_numbers_is_refused(value):
    trace = Trace(None)
    trace.table("client_batches").add(batch_row(0, value))
    with pytest.raises(DefectFound, match="column latency_us"):
        trace.close()


def test_a_row_with_too_many_or_too_few_values_is_refused_with_its_number():
    for row in (append_row(1)[:-1], (*append_row(1), 0)):
        trace = Trace(None)
        trace.table("appends").add(append_row(0))
        trace.table("appends").add(row)
        with pytest.raises(DefectFound, match=r"table appends: .* 16 columns .*row 1 of its group"):
            trace.close()


def test_listeners_hear_every_row_at_once_even_of_a_table_that_is_not_written():
    trace = Trace(None, level="facts")
    heard: list[tuple[object, ...]] = []
    trace.table("messages").listeners.append(heard.append)
    trace.table("messages").add(message_row(1))
    assert heard == [message_row(1)]
    assert trace.counts["messages"] == 1
    assert "messages" not in trace.digests


def test_a_row_that_nobody_keeps_or_hears_is_counted_and_need_not_be_made():
    trace = Trace(None, level="facts")
    messages = trace.table("messages")
    assert messages.leaves_out()
    assert trace.counts["messages"] == 1
    heard: list[tuple[object, ...]] = []
    messages.listeners.append(heard.append)
    assert not messages.leaves_out()
    messages.add(message_row(1))
    assert (heard, trace.counts["messages"]) == ([message_row(1)], 2)
    for kept in (trace.table("appends"), Trace(None).table("messages")):
        assert not kept.leaves_out()
        assert kept.count == 0


def test_the_row_at_which_a_listener_raises_is_still_recorded(tmp_path):
    trace = Trace(tmp_path)

    def refuse(row: tuple[object, ...]) -> None:
        raise RuntimeError

    trace.table("appends").listeners.append(refuse)
    with pytest.raises(RuntimeError):
        trace.table("appends").add(append_row(4))
    trace.close()
    assert [row["t_us"] for row in rows_in(tmp_path, "appends")] == [4]


def test_an_unknown_table_is_refused_with_the_known_names():
    with pytest.raises(SimulationError, match=r"no trace table 'append'; tables are .*appends"):
        Trace(None).table("append")


def test_a_table_with_a_list_column_is_written_in_smaller_groups(tmp_path):
    filled(tmp_path, count=100, rows_per_group=80).close()
    groups = {
        table: pq.ParquetFile(tmp_path / table / "part-00000.parquet").num_row_groups
        for table in ("appends", "client_batches")
    }
    assert groups == {"appends": 2, "client_batches": 10}


def test_row_groups_are_spread_over_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet.PartFiles.__init__, "__defaults__", (4,))
    trace = filled(tmp_path, count=100, rows_per_group=10)
    trace.close()
    parts = sorted((tmp_path / "appends").glob("part-*.parquet"))
    assert [pq.ParquetFile(p).num_row_groups for p in parts] == [4, 4, 2]
    assert [row["t_us"] for row in rows_in(tmp_path, "appends")] == list(range(100))


class FullDisk:
    """Counts the bytes that the part files may still take."""

    def __init__(self, room: int) -> None:
        self.room = room


@pytest.fixture
def full_disk(monkeypatch) -> FullDisk:
    disk = FullDisk(1 << 40)
    original = parquet.Path.open

    class Refusing:
        def __init__(self, file):
            self.file = file

        def write(self, data):
            taken = bytes(data)[: disk.room]
            if not taken:
                raise OSError(28, "No space left on device")
            disk.room -= len(taken)
            return self.file.write(taken)

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

    def limited_open(path, mode="r", **options):
        if "appends" not in path.parts or "r" in mode:
            return original(path, mode, **options)
        if mode == "wb" and path.exists():
            disk.room += path.stat().st_size
        return Refusing(original(path, mode, **options))

    monkeypatch.setattr(parquet.Path, "open", limited_open)
    return disk


def test_what_was_written_before_the_disk_was_full_is_readable(tmp_path, full_disk):
    trace = Trace(tmp_path, rows_per_group=10)
    for n in range(50):
        trace.table("appends").add(append_row(n))
        trace.table("messages").add(message_row(n))
    full_disk.room = 300
    for n in range(50, 59):
        trace.table("appends").add(append_row(n))
    with pytest.raises(OSError, match="No space left"):
        trace.table("appends").add(append_row(59))
    trace.table("appends").add(append_row(60))
    with pytest.raises(OSError, match="no rows are taken after an error"):
        trace.close()
    kept = [row["t_us"] for row in rows_in(tmp_path, "appends")]
    assert kept == list(range(len(kept)))
    assert len(kept) in {10, 20, 30, 40, 50}, "with groups this small the footer costs some"
    assert len(rows_in(tmp_path, "messages")) == 50


def test_a_footer_that_finds_no_room_costs_only_the_last_groups(tmp_path, full_disk):
    trace = Trace(tmp_path, rows_per_group=10)
    for n in range(50):
        trace.table("appends").add(append_row(n))
    full_disk.room = 20
    with pytest.raises(OSError, match="No space left"):
        trace.close()
    kept = [row["t_us"] for row in rows_in(tmp_path, "appends")]
    assert kept == list(range(len(kept)))
    assert 0 < len(kept) < 50


def test_close_finishes_the_other_tables_after_a_bad_row(tmp_path):
    trace = filled(tmp_path)
    trace.table("appends").add((1, 2))
    with pytest.raises(DefectFound, match="table appends"):
        trace.close()
    trace.close()
    assert len(rows_in(tmp_path, "messages")) == 100
    assert rows_in(tmp_path, "appends") == [], "the bad row's group is dropped, the file is whole"


def test_equal_traces_have_no_first_difference_however_they_were_cut(tmp_path):
    filled(tmp_path / "a", rows_per_group=9).close()
    filled(tmp_path / "b", level="facts").close()
    assert first_difference(tmp_path / "a", tmp_path / "b") is None


def test_first_difference_names_table_row_and_both_values(tmp_path):
    filled(tmp_path / "a").close()
    other = Trace(tmp_path / "b")
    for n in range(100):
        other.table("appends").add(append_row(n, broker=2 if n >= 41 else 1))
        other.table("client_batches").add(batch_row(n, list(range(n % 4))))
        other.table("messages").add(message_row(n + 1))
    other.close()
    text = first_difference(tmp_path / "a", tmp_path / "b")
    assert text is not None
    assert text.startswith("table appends, row 41:")
    assert "broker=1" in text
    assert "broker=2" in text


def test_first_difference_finds_a_row_that_one_side_lacks(tmp_path):
    filled(tmp_path / "a", count=5).close()
    filled(tmp_path / "b", count=6).close()
    text = first_difference(tmp_path / "a", tmp_path / "b")
    assert text is not None
    assert "row 5" in text
    assert "no such row" in text


def test_first_difference_refuses_a_directory_without_a_trace(tmp_path):
    with pytest.raises(SimulationError, match="no trace here"):
        first_difference(tmp_path, tmp_path)


def test_writing_a_trace_imports_no_library_for_frames(tmp_path):
    program = (
        "import sys; from pathlib import Path; from sim.trace.writer import Trace\n"
        f"trace = Trace(Path({str(tmp_path / 'trace')!r}))\n"
        "trace.table('messages').add((1, 'a', 'b', 'C', 2, 0, ''))\n"
        "trace.close(); trace.digest()\n"
        "print(sorted({'pandas', 'pyarrow.compute', 'pyarrow.parquet'} & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "['pyarrow.parquet']"
