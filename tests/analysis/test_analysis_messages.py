"""The sample of messages: what it promises, on floods, votes and rows of chance."""

import random
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.report import messages
from sim.trace.columns import arrow_schema
from sim.trace.schema import BY_NAME
from sim.units import MS
from tests.analysis.synthetic import S, row

FLOW = ["sender", "receiver", "kind"]


def sent(at, kind, receiver="broker-2", sender="broker-1"):
    return row("messages", t_us=at + 90, sent_us=at, sender=sender, receiver=receiver, kind=kind)


def write(directory, rows, rows_per_group):
    """The one table, with more than one row group."""
    place = directory / "trace" / "messages"
    place.mkdir(parents=True, exist_ok=True)
    names = BY_NAME["messages"].column_names
    columns = {name: [each[name] for each in rows] for name in names}
    table = pa.table(columns, schema=arrow_schema(BY_NAME["messages"]))
    pq.write_table(table, place / "part-00000.parquet", row_group_size=rows_per_group)
    return directory


@pytest.fixture
def few(monkeypatch):
    """Room for few messages."""
    monkeypatch.setattr(messages, "MOST", 900)
    monkeypatch.setattr(messages, "_NOTABLE_SHARE", 80)
    monkeypatch.setattr(messages, "_CALM", 300)


def test_a_rare_vote_is_not_drowned_by_fetches(tmp_path, few):
    """Thirty seconds of a flood; one vote in a calm second, one second that is of note."""
    flood = [sent(n * 10 * MS, "FetchRequest") for n in range(3_000)]
    rows = [*flood, sent(20 * S + 7, "VoteRequest"), sent(-5, "x")]
    run = write(tmp_path, rows, 700)
    seen = messages.nodes(run)
    kept = messages.kept(run, seen, [7], 30 * S)
    assert list(seen["node"]) == ["broker-1", "broker-2"]
    assert list(seen["messages"]) == [3_002, 3_002]
    assert (kept["kind"] == "VoteRequest").sum() == 1
    counts = kept["second"].value_counts()
    assert counts[7] == 80
    assert set(counts.drop(7)) == {300 // 31}
    assert set(kept["total"]) == {100, 101}
    assert kept["sent_us"].min() >= 0
    pd.testing.assert_frame_equal(kept, messages.kept(run, seen, [7], 30 * S))


def test_a_short_run_is_kept_whole_but_for_other_nodes_and_times(tmp_path, few):
    rows = [sent(n * MS, "FetchRequest", f"broker-{2 + n % 3}") for n in range(800)]
    outside = [sent(-1, "early"), sent(S + 1, "late"), sent(5, "other", "shop-9")]
    run = write(tmp_path, [*rows, *outside, sent(S, "last")], 100)
    seen = messages.nodes(run).query("node != 'shop-9'")
    kept = messages.kept(run, seen, [], S)
    assert len(kept) == 801
    assert Counter(kept["second"]) == Counter({0: 800, 1: 1})
    assert list(kept["sent_us"]) == sorted(kept["sent_us"])
    assert dict(zip(kept["second"], kept["total"], strict=True)) == {0: 800, 1: 1}


def test_nodes_are_servers_first_then_those_with_most_messages(tmp_path):
    rows = [sent(n, "x", f"shop-{n % 40}", "shop-7") for n in range(400)]
    rows += [sent(0, "x", f"controller-{n}", "broker-1") for n in (3001, 3000)]
    seen = messages.nodes(write(tmp_path, rows, 90))
    assert len(seen) == messages.MOST_NODES
    assert list(seen["node"][:5]) == [
        "broker-1", "controller-3000", "controller-3001", "shop-7", "shop-0",
    ]  # fmt: skip
    assert list(seen["messages"][:5]) == [2, 1, 1, 410, 10]


def test_a_run_whose_messages_were_not_traced_has_none(tmp_path):
    seen = messages.nodes(tmp_path)
    kept = messages.kept(tmp_path, seen, [], S)
    assert len(seen) == len(kept) == 0
    assert list(kept) == [
        "second", "sent_us", "t_us", *FLOW, "delayed_by", "total",
    ]  # fmt: skip


def test_seconds_with_faults_are_of_note_before_those_with_changes():
    spans = pd.DataFrame({"from_us": [0, 3 * S, 3 * S + 1, 5 * S, 3 * S + 2]})
    assert messages.notable(spans, [9 * S + 1, -S]) == [9, 3, 5]
    many = pd.DataFrame({"from_us": [n * S for n in range(1, 500)]})
    assert len(messages.notable(many, [])) == messages.MOST_NOTABLE


# --- taking turns -----------------------------------------------------------------------------


def of_chance(seed):
    """A table of flows, a few of which are a flood, in no order of seconds; each row is one."""
    chance = random.Random(seed)
    flows = [(f"n-{i}", f"n-{chance.randint(0, 4)}", f"k-{i % 3}") for i in range(12)]
    drawn = chance.choices(flows, weights=[2.0 ** (i % 9) for i in range(12)], k=3_000)
    instants = [chance.randint(-S, 9 * S) for _ in drawn]
    columns = dict(zip(FLOW, map(list, zip(*drawn, strict=True)), strict=True))
    return pa.table({"sent_us": instants, "row": list(range(len(drawn))), **columns})


def cut(table, size):
    """The table as parts, with dictionaries as a row group has them, and one without rows."""
    yield table.slice(0, 0)
    for begin in range(0, table.num_rows, size):
        part = table.slice(begin, size)
        for name in FLOW:
            place = part.column_names.index(name)
            part = part.set_column(place, name, part[name].dictionary_encode())
        yield part


def check(size, most=37, larger={2: 90, 5: 0, 7: 5_000}):  # noqa: B006 - it is only read
    """Each promise, by counting; and what was found, in its order."""
    table = of_chance(3)
    rows = table.to_pandas().assign(second=lambda each: each["sent_us"] // S)
    found = messages.taking_turns(cut(table, size), "sent_us", FLOW, most, larger)
    assert found["row"].is_unique
    own = rows.set_index("row").loc[found["row"], ["sent_us", *FLOW, "second"]]
    assert own.values.tolist() == found[["sent_us", *FLOW, "second"]].values.tolist()
    for second, here in rows.groupby("second"):
        chosen = found[found["second"] == second]
        assert len(chosen) == min(larger.get(second, most), len(here))
        assert set(chosen["total"]) <= {len(here)}
        assert list(chosen["place"]) == list(range(1, len(chosen) + 1))
        there = Counter(here[FLOW].itertuples(index=False, name=None))
        taken: Counter = Counter()
        for flow in chosen[FLOW].itertuples(index=False, name=None):
            taken[flow] += 1
            behind = [each for each in there if taken[each] < min(there[each], taken[flow] - 1)]
            assert not behind, f"{flow} comes for the {taken[flow]}. time before {behind}"
    return found


@pytest.fixture
def often(monkeypatch):
    """Rows are compared with those that have a place again and again."""
    monkeypatch.setattr(messages, "_PENDING", 40)


@pytest.mark.parametrize("size", [13, 100, 999])
def test_every_flow_of_a_second_comes_once_before_any_comes_twice(often, size):
    """And the choice does not depend on how the rows are read."""
    pd.testing.assert_frame_equal(check(size), check(3_000))


def test_a_flood_is_not_shown_by_its_first_rows_alone(often):
    """What is drawn of a flow is from all of its second."""
    second = pa.table({"sent_us": np.arange(0, S, 100), "flow": ["flood"] * 10_000})
    found = messages.taking_turns([second], "sent_us", ["flow"], 400)
    tenths = Counter(found["sent_us"] * 10 // S)
    assert len(found) == 400
    assert min(tenths[tenth] for tenth in range(10)) > 20


def same_flow(rows, flow):
    return np.zeros(rows.num_rows, np.int64)


def one_row_fewer(rows, flow, most, larger, real=messages._first):
    return real(rows, flow, most - 1, larger)


DEFECTS = {
    "flows are not known apart": ("_flows", same_flow),
    "a place stays empty": ("_first", one_row_fewer),
    "turns are not counted": ("_counted", lambda *keys: np.ones(len(keys[0]), np.int64)),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_count_finds_a_planted_defect(monkeypatch, often, defect):
    monkeypatch.setattr(messages, *DEFECTS[defect])
    with pytest.raises(AssertionError):
        check(100)


def test_a_draw_by_the_part_would_be_seen(monkeypatch, often):
    """A hash of the row's number in its part makes the choice depend on the parts."""
    real = messages.pd.util.hash_array
    whole = check(3_000)
    monkeypatch.setattr(messages.pd.util, "hash_array", lambda numbers: real(numbers % 13))
    with pytest.raises(AssertionError):
        pd.testing.assert_frame_equal(check(13), whole)
