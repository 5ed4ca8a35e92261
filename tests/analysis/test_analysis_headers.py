"""What headers say of the replicas' logs without Spark, held to the cases of durability."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.spark import tables
from analysis.verify import policy, survivors
from analysis.verify.headers import Headers
from analysis.verify.places import Levels, Offsets, Records, together
from tests.analysis.durability_cases import CASES
from tests.analysis.synthetic import batch, change, row, write_run

PLAIN = {claim: case for claim, case in CASES.items() if not case.contents}
"""Without cleanings, whose logs are compared by their records."""


def headers_of(run, logs, starts=()):
    moved = [one | {"topic": "orders"} for one in starts]
    rows = {"log_starts": moved, "partition_changes": [change(1)]}
    write_run(run, rows, {(broker, "orders", 0): log for broker, log in logs.items()})
    survivors.decode_here(survivors.replicas(run), run / "survivors.parquet")
    return Headers(run / "survivors.parquet", policy.starts(tables.small(run, "log_starts")))


@pytest.mark.parametrize("claim", PLAIN)
def test_logs_differ_where_they_are_to_diverge_and_nowhere_else(tmp_path, claim):
    case = PLAIN[claim]
    found = headers_of(tmp_path, case.logs, case.starts).do_logs_differ()
    assert found == (case.expected.get("divergent", 0) > 0)


@pytest.mark.parametrize("claim", PLAIN)
def test_a_batch_is_behind_later_numbers_where_records_are_to_be_reordered(tmp_path, claim):
    case = PLAIN[claim]
    headers = headers_of(tmp_path, case.logs, case.starts)
    leaders = headers.leaders(pd.DataFrame(case.changes or [], columns=list(change(1))))
    present, is_behind = headers.led(leaders, Records())
    # Second copies, and those of an aborted record, begin below the numbers before them, too:
    # which of them count, Spark says.
    reasons = ("reordered", "duplicated")
    assert is_behind or not case.expected.get("reordered", 0)
    if not case.transactions:
        assert not is_behind or any(case.expected.get(each, 0) for each in reasons)
        held = sum(end - begin for begin, end in zip(*present.ranges(), strict=True))
        assert held == case.expected.get("survived", 0)


@pytest.mark.parametrize("crc_of", [3, 40])
def test_one_batch_of_other_bytes_is_a_difference(tmp_path, crc_of):
    log = [batch(10 * n, 10) for n in range(50)]
    other = [*log]
    other[crc_of] = batch(10 * crc_of, 10, value_size=25)
    assert not headers_of(tmp_path / "same", {1: log, 2: log}).do_logs_differ()
    assert headers_of(tmp_path / "other", {1: log, 2: other}).do_logs_differ()


def test_batches_of_another_order_in_the_table_are_no_difference(tmp_path):
    log = [batch(10 * n, 10) for n in range(4)]
    headers = headers_of(tmp_path, {1: log, 2: log})
    table = pq.read_table(headers.place)
    (headers.place / "part-0.parquet").unlink()
    for number, rows in enumerate((table.slice(6), table.slice(0, 6))):
        pq.write_table(rows, headers.place / f"part-{number}.parquet")
    assert not headers.do_logs_differ()


def test_logs_keep_their_owners_in_the_order_in_which_they_came():
    logs = Offsets()
    kinds = {"topic": "a", "partition": 7, "broker": 3, "base_offset": 0}
    others = {"topic": "b", "partition": 0, "broker": 1, "base_offset": 0}
    rows = pa.Table.from_pylist([kinds, others, kinds])
    assert logs.logs(rows).tolist() == [1, 0, 1] or logs.logs(rows).tolist() == [0, 1, 0]
    assert [logs.owners()[number] for number in logs.logs(rows)] == [
        ("a", 7, 3), ("b", 0, 1), ("a", 7, 3),
    ]  # fmt: skip


RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12)


def levels_of(parts):
    found = Levels()
    for ranges in parts:
        begin, count = np.array(ranges, np.int64).reshape(-1, 2).T
        found.add(begin, count)
    return found


def listed(parts):
    return [sum(b <= at < b + n for ranges in parts for b, n in ranges) for at in range(40)]


@given(st.lists(RANGES, max_size=3), st.lists(RANGES, max_size=3))
def test_levels_agree_with_a_list_of_places(one, two):
    found = together({"one": levels_of(one), "two": levels_of(two)})
    numbers = {"one": [0] * 40, "two": [0] * 40}
    for begin, count, *levels in zip(*found.values(), strict=True):
        for name, level in zip(numbers, levels, strict=True):
            numbers[name][begin : begin + count] = [level] * count
    assert numbers == {"one": listed(one), "two": listed(two)}
    begin, end = levels_of(one).ranges()
    held = [place for b, e in zip(begin, end, strict=True) for place in range(b, e)]
    assert held == [place for place, number in enumerate(listed(one)) if number]


def test_the_longest_log_of_the_latest_epoch_leads_where_no_leader_was_committed(tmp_path):
    old, new = batch(0, 10, epoch=1), batch(0, 5, epoch=2)
    headers = headers_of(tmp_path, {1: [old], 2: [new], 3: [new, batch(5, 1, epoch=2)]})
    nobody = pd.DataFrame([row("partition_changes", leader=-1)])
    assert headers.leaders(nobody).to_dict("records") == [
        {"topic": "orders", "partition": 0, "leader": 3}
    ]
