"""Gaps in service, counted by hand, and held against a search over all instants."""

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.verify import availability
from sim.checking.outcomes.service import PartitionService
from sim.error_codes import RETRIABLE_NAMES
from sim.errors import SimulationError
from sim.trace.columns import arrow_schema
from sim.trace.schema import BY_NAME
from tests.analysis.synthetic import S, row, sent


def write(directory, *, rows_per_group=3, **tables):
    """Both tables of a run, with more than one row group."""
    for name in ("client_batches", "reads"):
        rows = tables.get(name, ())
        columns = {column: [r[column] for r in rows] for column in BY_NAME[name].column_names}
        place = directory / "trace" / name
        place.mkdir(parents=True, exist_ok=True)
        table = pa.table(columns, schema=arrow_schema(BY_NAME[name]))
        pq.write_table(table, place / "part-00000.parquet", row_group_size=rows_per_group)
    return directory


@pytest.fixture
def run(tmp_path):
    def of(**rows):
        return write(tmp_path, **rows)

    return of


def stretches(found):
    """All gaps by partition."""
    return {
        (each.topic, each.partition): list(
            zip(each.from_us.tolist(), each.to_us.tolist(), strict=True)
        )
        for each in found
    }


def of_orders(found):
    return stretches(found)["orders", 0]


def test_a_produce_gap_lasts_while_records_wait_and_none_is_acknowledged(run):
    batches = run(
        client_batches=[
            sent(0, 1, t_us=1 * S, latency_us=[S // 2]),
            sent(1, 1, t_us=4 * S, latency_us=[2 * S]),
            sent(2, 1, t_us=5 * S, latency_us=[S // 2], outcome="failed"),
        ]
    )
    [found] = availability.notable(availability.produce_gaps(batches)).to_dict("records")
    assert found == {
        "side": "produce", "topic": "orders", "partition": 0, "from_us": 2 * S, "to_us": 4 * S,
        "gap_us": 2 * S, "is_longest": True,
    }  # fmt: skip


def test_a_partition_that_is_never_acknowledged_is_one_gap(run):
    batches = run(
        client_batches=[sent(0, 2, t_us=9 * S, latency_us=[8 * S, 2 * S], outcome="unknown")]
    )
    assert of_orders(availability.produce_gaps(batches)) == [(1 * S, 9 * S)]


def test_records_that_never_had_a_partition_wait_beside_the_partitions_of_their_topic(run):
    waited = {"t_us": 9 * S, "latency_us": [8 * S], "outcome": "failed"}
    refused = sent(0, 1, **waited) | {"partition": -1}
    batches = run(client_batches=[sent(0, 1, **waited) | {"topic": "bills"}, refused])
    found = availability.notable(availability.produce_gaps(batches))
    places = list(zip(found["topic"], found["partition"], strict=True))
    assert places == [("bills", 0), ("orders", -1)]


def test_waits_that_touch_or_overlap_are_one_and_an_acknowledgement_cuts_them(run):
    batches = run(
        client_batches=[
            sent(0, 1, t_us=3 * S, latency_us=[2 * S], outcome="failed"),
            sent(1, 1, t_us=5 * S, latency_us=[2 * S], outcome="failed"),
            sent(2, 1, t_us=6 * S, latency_us=[2 * S]),
            sent(3, 1, t_us=7 * S, latency_us=[2 * S], outcome="failed"),
            sent(4, 1, t_us=9 * S, latency_us=[S]),
        ]
    )
    found = of_orders(availability.produce_gaps(batches))
    assert [(begin // S, end // S) for begin, end in found] == [(1, 6), (6, 7), (8, 9)]


def test_an_application_without_retries_waits_until_its_next_record(run):
    failing = {"latency_us": [S // 10], "outcome": "failed"}
    down = {**failing, "error": "NOT_ENOUGH_REPLICAS"}
    rows = [
        *(sent(n, 1, t_us=1 * S + n * S // 2, **down) for n in range(7)),
        sent(7, 1, t_us=4 * S + S // 2, latency_us=[S // 10]),
        sent(8, 1, t_us=6 * S, **down),
        sent(9, 1, t_us=7 * S + S // 2, **down),  # later than a second: between them nobody waits
        *(sent(n, 1, t_us=n * S, **failing, error="MESSAGE_TOO_LARGE") for n in range(10, 13)),
    ]
    service = PartitionService()
    for one in rows:
        service.batch(tuple(one[column.name] for column in BY_NAME["client_batches"].columns))
    [first, *others] = of_orders(availability.produce_gaps(run(client_batches=rows)))
    assert first == (S - S // 10, 4 * S + S // 2)
    assert {end - begin for begin, end in others} == {S // 10}
    assert service.outages() == [first]


def test_fetch_gaps_are_of_partitions_that_somebody_read(run):
    both = run(
        client_batches=[sent(0, 1, t_us=S, latency_us=[S]),
                        sent(0, 1, t_us=S, latency_us=[S], partition=1)],
        reads=[row("reads", t_us=3 * S, topic="orders")],
    )  # fmt: skip
    found = stretches(availability.fetch_gaps(both))
    assert found == {("orders", 0): [(0, 3 * S)]}


def test_a_reader_that_has_nothing_to_read_has_no_gap_and_one_that_lags_has(run):
    both = run(
        client_batches=[sent(0, 4, t_us=S, latency_us=[S // 2] * 4),
                        sent(4, 4, t_us=9 * S, latency_us=[S // 4] * 4),
                        sent(8, 4, t_us=10 * S, latency_us=[S // 4] * 4)],
        reads=[row("reads", t_us=S, topic="orders", last_offset=1),
               row("reads", t_us=3 * S, topic="orders", base_offset=2, last_offset=3),
               row("reads", t_us=9 * S, topic="orders", base_offset=4, last_offset=7)],
    )  # fmt: skip
    quarter = S // 4
    found = of_orders(availability.fetch_gaps(both))
    assert [(begin // quarter, end // quarter) for begin, end in found] == [
        (2, 4), (4, 12), (35, 36), (39, 40),
    ]  # fmt: skip


def test_of_equal_gaps_the_earliest_is_the_longest_and_long_ones_are_listed(run):
    gaps = [sent(n, 1, t_us=10 * n * S, latency_us=[2 * S]) for n in (3, 1, 2)]
    other = sent(0, 1, t_us=5, latency_us=[3], partition=7)
    found = availability.notable(availability.gaps(run(client_batches=[*gaps, other])))
    columns = ["partition", "from_us", "gap_us", "is_longest"]
    assert found[columns].values.tolist() == [
        [0, 8 * S, 2 * S, True], [0, 18 * S, 2 * S, False], [0, 28 * S, 2 * S, False],
        [7, 2, 3, True],
    ]  # fmt: skip


def test_a_run_without_traffic_has_no_gap_and_a_damaged_table_is_refused(run):
    directory = run()
    found = availability.notable(availability.gaps(directory))
    assert len(found) == 0
    numbers = ("partition", "from_us", "to_us", "gap_us", "is_longest")
    assert [str(found[name].dtype) for name in numbers] == [
        "int32", "int64", "int64", "int64", "bool",
    ]  # fmt: skip
    [part] = (directory / "trace" / "reads").iterdir()
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.raises(SimulationError, match="not a readable Parquet file"):
        list(availability.gaps(directory))


# --- against a search over all instants -------------------------------------------------------


def searched(waits, served):
    """Gaps of a partition, by looking at every stretch between two instants.

    Args:
        waits: Since when, until when, and whether a retry might have mended how it ended.
        served: Instants.
    """
    instants = sorted({at for start, stop, _ in waits for at in (start, stop)} | set(served))
    found = []
    for begin, end in pairwise(instants):
        waits_on = any(start <= begin and end <= stop for start, stop, _ in waits)
        has_failed = any(stop == begin and failed for _, stop, failed in waits)
        if not waits_on and not (has_failed and end - begin <= S):
            continue
        if found and found[-1][1] == begin and begin not in served:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def waits_of_producers(batches):
    for each in batches:
        failed = each["outcome"] != "ok" and each["error"] in RETRIABLE_NAMES
        for waited in each["latency_us"]:
            yield each["t_us"] - waited, each["t_us"], failed


def waits_of_readers(batches, reads):
    """Of a partition that was read."""
    acked = [
        (each["base_offset"], each["t_us"] - max(each["latency_us"], default=0))
        for each in batches
        if each["outcome"] == "ok" and each["base_offset"] >= 0
    ]
    for each in reads:
        at_or_before = [one for one in acked if one[0] <= each["base_offset"]]
        meant = max(at_or_before)[1] if at_or_before else each["t_us"]
        yield min(meant, each["t_us"]), each["t_us"], False
    traffic = [each["t_us"] for each in reads]
    traffic += [each["t_us"] for each in batches if each["outcome"] == "ok"]
    traffic += [each["t_us"] - waited for each in batches for waited in each["latency_us"]]
    last = max(each["last_offset"] for each in reads)
    for offset, meant in acked:
        if offset > last and meant < max(traffic):
            yield meant, max(traffic), False


def expected(batches, reads):
    """Both sides by a search."""
    found = {}
    for partition in sorted({each["partition"] for each in (*batches, *reads)}):
        sent_there = [each for each in batches if each["partition"] == partition]
        read_there = [each for each in reads if each["partition"] == partition]
        acked = {each["t_us"] for each in sent_there if each["outcome"] == "ok"}
        produce = searched(list(waits_of_producers(sent_there)), acked)
        found["produce", partition] = produce
        if read_there:
            waits = list(waits_of_readers(sent_there, read_there))
            found["fetch", partition] = searched(waits, {each["t_us"] for each in read_there})
    return {key: gaps for key, gaps in found.items() if gaps}


STEP = S // 3
"""Three steps are a second, so that failures are followed at once, in time, and too late."""
OUTCOMES = ("ok", "ok", "failed", "unknown")
ERRORS = ("NOT_ENOUGH_REPLICAS", "BUFFER_EXHAUSTED", "MESSAGE_TOO_LARGE", "NONE")


def of_chance(seed, partitions=1_200):
    """Batches and reads of many partitions, few of each and at few instants, in no order."""
    chance = random.Random(seed)
    batches, reads = [], []
    for partition in range(partitions):
        steps = chance.choice((5, 12, 30))
        for _ in range(chance.choice((0, 1, 4, 12))):
            waited = [STEP * chance.randint(0, steps // 2) for _ in range(chance.randint(0, 3))]
            batches.append(sent(
                0, len(waited), t_us=STEP * chance.randint(-2, steps), partition=partition,
                latency_us=sorted(waited, reverse=True), outcome=chance.choice(OUTCOMES),
                error=chance.choice(ERRORS), base_offset=chance.randint(-1, 12),
            ))  # fmt: skip
        for _ in range(chance.choice((0, 1, 3, 8))):
            offset = chance.randint(0, 14)  # no batch may be there: the cleaner was
            reads.append(row(
                "reads", t_us=STEP * chance.randint(-2, steps), topic="orders",
                partition=partition, base_offset=offset, last_offset=offset + chance.randint(0, 3),
            ))  # fmt: skip
    chance.shuffle(batches)
    chance.shuffle(reads)
    return batches, reads


@pytest.fixture(scope="module")
def chance(tmp_path_factory):
    """A run, and its gaps by the search."""
    batches, reads = of_chance(7)
    directory = write(
        tmp_path_factory.mktemp("chance"), rows_per_group=500, client_batches=batches, reads=reads
    )
    return directory, expected(batches, reads)


def check(directory, wanted):
    found = {
        (each.side, each.partition): list(
            zip(each.from_us.tolist(), each.to_us.tolist(), strict=True)
        )
        for each in availability.gaps(directory)
    }
    assert {key: gaps for key, gaps in found.items() if gaps} == wanted
    rows = []
    for key in sorted(wanted, key=lambda key: (key[0] == "fetch", key[1])):
        longest = max(wanted[key], key=lambda gap: (gap[1] - gap[0], -gap[0]))
        rows += [
            (*key, begin, end, (begin, end) == longest)
            for begin, end in wanted[key]
            if (begin, end) == longest or end - begin > S
        ]
    listed = availability.notable(availability.gaps(directory))
    columns = ["side", "partition", "from_us", "to_us", "is_longest"]
    assert list(listed[columns].itertuples(index=False, name=None)) == rows


def test_gaps_are_those_that_a_search_over_all_instants_finds(chance):
    directory, wanted = chance
    assert {side for side, _ in wanted} == {"produce", "fetch"}
    assert sum(len(gaps) for gaps in wanted.values()) > 2_000
    check(directory, wanted)
    separate = {}
    for found in (availability.produce_gaps(directory), availability.fetch_gaps(directory)):
        separate |= {
            (each.side, each.partition): list(
                zip(each.from_us.tolist(), each.to_us.tolist(), strict=True)
            )
            for each in found
            if len(each.from_us)
        }
    assert separate == wanted


def one_offset_before(reads, *others, real=availability._readers_waits):
    return real(reads | {"base_offset": reads["base_offset"] - 1}, *others)


def all_were_read(reads, *others, real=availability._readers_waits):
    return real(reads | {"last_offset": np.array([99])}, *others)


def last_latency_twice(lists, real=availability._first_and_last):
    has_any, _, last = real(lists)
    return has_any, last, last


DEFECTS = {
    "a retry might have mended nothing": ("RETRIABLE_NAMES", ("NONE",)),
    "an application waits for two seconds": ("REPORTED_FROM", 2 * S),
    "a batch that begins at the offset is another": ("_readers_waits", one_offset_before),
    "a batch waits as long as its last record": ("_first_and_last", last_latency_twice),
    "nothing cuts": ("_marked", lambda t_us, those: np.zeros(len(t_us), np.bool_)),
    "nobody waits for what no consumer gets": ("_readers_waits", all_were_read),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_search_finds_a_planted_defect(monkeypatch, chance, defect):
    name, planted = DEFECTS[defect]
    monkeypatch.setattr(availability, name, planted)
    with pytest.raises(AssertionError):
        check(*chance)
