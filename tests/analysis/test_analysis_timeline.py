"""States as spans, messages as a bounded choice, and the file that Perfetto reads."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import perfetto
from analysis.report import findings, latency, timeline
from sim.cli import app
from sim.errors import SimulationError
from sim.units import MS, SECOND
from tests.analysis.synthetic import S, change, row, write_run

END = 20 * S


def partition(t_us, epoch, leader, in_sync, **values):
    return change(
        leader, t_us=t_us, partition_epoch=epoch, leader_epoch=epoch, in_sync=in_sync, **values
    )


def state(node, t_us, what, incarnation=1):
    return row("node_states", node=node, t_us=t_us, state=what, incarnation=incarnation)


def vote(node, t_us, role, epoch):
    return row("quorum", node=node, t_us=t_us, role=role, epoch=epoch)


def member(t_us, what, generation, reason="why"):
    told = {"group": "billing", "generation": generation, "members": 2, "reason": reason}
    return row("groups", t_us=t_us, broker=1, state=what, **told)


def asked(node, at, number, kind="Produce"):
    told = {"sent_us": at - 100, "arrived_us": at, "started_us": at + 5, "decided_us": at + 9}
    return row("requests", node=node, kind=kind, client="shop", correlation=number, t_us=at + 50,
               **told)  # fmt: skip


TABLES = {
    "client_batches": [row("client_batches", t_us=END, topic="orders", outcome="unknown")],
    "node_states": [
        *(state(f"controller-{n}", -S, "running") for n in (1, 2)),
        state("broker-1", -2 * S, "started"), state("broker-1", -S, "running"),
        state("broker-1", 5 * S, "crashed"), state("broker-1", 9 * S, "started", 2),
        state("broker-1", 10 * S, "running", 2), state("broker-2", -S, "running"),
        state("controller-1", 12 * S, "powered_off"), state("shop", 0, "running"),
    ],
    "broker_states": [
        row("broker_states", t_us=-S, broker=1, state="unfenced", broker_epoch=3),
        row("broker_states", t_us=7 * S, broker=1, state="fenced", broker_epoch=3),
        row("broker_states", t_us=10 * S, broker=1, state="unfenced", broker_epoch=8),
    ],
    "quorum": [
        vote(3001, -S, "leader", 1), vote(3002, 14 * S, "candidate", 2),
        vote(3002, 15 * S, "leader", 2), vote(3001, 16 * S, "follower", 2),
    ],
    "high_watermarks": [row("high_watermarks", t_us=0, topic="orders", min_in_sync=2)],
    "partition_changes": [
        partition(-S, 0, 1, "1,2,3"), partition(7 * S, 1, -1, "2"), partition(8 * S, 2, 2, "2"),
        partition(9 * S, 3, 2, "2,3"), partition(11 * S, 4, 2, "1,2,3"),
        partition(0, 0, 2, "2", topic="old", replicas="2"),
        *(partition(n * S, n, n % 2 + 1, "1,2,3", topic="__x") for n in range(3)),
    ],
    "topic_deletions": [row("topic_deletions", t_us=4 * S, topic="old", controller=3001)],
    "groups": [
        member(S, "Empty", 0), member(S, "PreparingRebalance", 0), member(4 * S, "Stable", 1),
        member(6 * S, "PreparingRebalance", 1), member(8 * S, "CompletingRebalance", 2),
        member(8 * S, "Stable", 2),
    ],
    "faults": [
        row("faults", t_us=5 * S, fault=0, kind="cra<sh>", phase="began", took_effect=True,
            target="broker-1", resolved="broker-1"),
        row("faults", t_us=9 * S, fault=0, kind="cra<sh>", phase="healed", took_effect=True),
    ],
    "load": [
        row("load", t_us=second * S, node="broker-2", request_handlers_ratio=250)
        for second in range(1, 4)
    ],
    "requests": [
        *(asked(1, S + n, n) for n in range(300)), asked(3001, 2 * S, 1, "AlterPartition"),
        asked(2, -S, 1),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("timeline"), TABLES)


@pytest.fixture(scope="module")
def exported(run):
    """What the file holds; all that is asked of states is read from it, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(perfetto, "MOST_REQUESTS", 2_100)  # one hundred in a second
        count = perfetto.export(run, run / "trace.json")
    told = json.loads((run / "trace.json").read_text())
    assert len(told["traceEvents"]) == count
    return told


@pytest.fixture(scope="module")
def lanes(exported):
    """Spans by process and thread: from, to, state."""
    events = exported["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found = {}
    for e in events:
        if e["ph"] == "X" and e["cat"] != "fault":
            lane = processes[e["pid"]], names[e["pid"], e["tid"]]
            span = (e["ts"] / S, (e["ts"] + e["dur"]) / S, e["args"]["state"])
            found.setdefault(lane, []).append(span)
    return found


def test_a_server_is_down_from_its_crash_to_its_start(lanes):
    assert lanes["broker-1", "process"] == [
        (0, 5, "running"), (5, 9, "crashed"), (9, 10, "starting"), (10, 20, "running"),
    ]  # fmt: skip
    assert lanes["broker-2", "process"] == [(0, 20, "running")]
    assert ("shop", "process") not in lanes, "clients have no lane"


def test_a_fenced_broker_is_told_apart_from_one_that_is_down(lanes):
    assert lanes["broker-1", "registration"] == [
        (0, 7, "unfenced"), (7, 10, "fenced"), (10, 20, "unfenced"),
    ]  # fmt: skip


def test_nobody_is_the_controller_between_its_end_and_the_next_election(lanes):
    """The old one learns of it later, which changes nothing."""
    assert lanes["control", "controller"] == [
        (0, 12, "controller-1"), (12, 15, "nobody"), (15, 20, "controller-2"),
    ]  # fmt: skip


def test_a_partition_is_told_by_the_worst_that_is_the_case(lanes):
    assert lanes["partitions", "orders-0"] == [
        (0, 7, "all in sync"), (7, 8, "no leader"), (8, 9, "under min.insync.replicas"),
        (9, 11, "some out of sync"), (11, 20, "all in sync"),
    ]  # fmt: skip


def test_a_partition_ends_with_its_topic(lanes):
    assert lanes["partitions", "old-0"] == [(0, 4, "all in sync")]


def test_a_group_rebalances_until_it_is_stable_and_takes_no_time_for_what_is_at_once(lanes):
    assert lanes["groups", "billing"] == [
        (1, 4, "PreparingRebalance"), (4, 6, "Stable"), (6, 8, "PreparingRebalance"),
        (8, 20, "Stable"),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def crowded():
    """Sixty lanes, one of which changes ten thousand times; a bad moment among many good ones."""
    columns = ["track", "lane", "t_us", "step", "state", "level", "value"]
    noisy = [
        ("partition", "noisy", n * 2 * MS, 0, "no leader" if n == 4321 else f"s{n % 2}",
         3 if n == 4321 else 0, n)
        for n in range(10_000)
    ]  # fmt: skip
    calm = [("partition", f"calm-{n:02}", 0, 0, "all in sync", 0, 1) for n in range(59)]
    hidden = [("partition", "__internal-0", 0, 0, "no leader", 3, -1)]
    events = pd.DataFrame(noisy + calm + hidden, columns=columns).assign(detail="why")
    return timeline._most_troubled(timeline._coarse(timeline._between(events, END), END))


def test_a_lane_of_ten_thousand_changes_has_a_bounded_number_of_spans(crowded):
    noisy = crowded[crowded["lane"] == "noisy"]
    assert 100 < len(noisy) <= timeline.MOST_SPANS
    assert noisy["changes"].sum() == 10_000
    assert noisy["from_us"].min() == 0
    assert noisy["to_us"].max() == END


def test_what_is_put_together_is_told_by_the_worst_of_it(crowded):
    [worst] = crowded[(crowded["lane"] == "noisy") & (crowded["level"] == 3)].to_dict("records")
    assert worst["state"] == "no leader"
    assert worst["value"] == 4321
    assert worst["from_us"] <= 4321 * 2 * MS < worst["to_us"]


def test_the_most_troubled_lanes_are_kept_and_internal_ones_last(crowded):
    kept = set(crowded["lane"])
    assert len(kept) == timeline.MOST_LANES
    assert "noisy" in kept
    assert "__internal-0" not in kept
    assert set(crowded["lanes"]) == {61}


def test_columns_of_a_heat_map_divide_a_bin_and_are_few():
    for end_us in (1, S, 40 * S, 239 * S, 241 * S, 7_000 * S):
        width = SECOND * max(1, -(-end_us // (600 * SECOND)))
        fine = latency.fine_width(width, end_us)
        assert width % fine == 0
        assert end_us / fine <= 600


PHASES = {
    "M": {"name", "ph", "pid", "tid", "args"},
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"},
    "C": {"name", "cat", "ph", "ts", "pid", "tid", "args"},
    "b": {"name", "cat", "ph", "id", "ts", "pid", "tid", "args"},
    "e": {"name", "cat", "ph", "id", "ts", "pid", "tid"},
}


def check_format(told):
    """What the Trace Event Format asks of the JSON object format and of the phases used here."""
    assert isinstance(told["traceEvents"], list)
    assert told["displayTimeUnit"] in ("ms", "ns")
    named, opened, last = set(), {}, {}
    for event in told["traceEvents"]:
        assert set(event) == PHASES[event["ph"]], event
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["ph"] == "M" or event["ts"] >= 0
        if event["ph"] == "M":
            named.add((event["pid"], event["name"]))
            assert len(event["args"]) == 1
        elif event["ph"] == "X":
            thread = event["pid"], event["tid"]
            assert event["dur"] >= 0
            assert last.get(thread, 0) <= event["ts"], "spans of a thread overlap"
            last[thread] = event["ts"] + event["dur"]
        elif event["ph"] == "C":
            assert all(isinstance(v, int | float) for v in event["args"].values())
        elif event["ph"] == "b":
            assert event["id"] not in opened
            opened[event["id"]] = event
        else:
            begun = opened.pop(event["id"])
            assert begun["ts"] <= event["ts"]
            assert (begun["cat"], begun["name"]) == (event["cat"], event["name"])
    assert not opened, "a request never ends"
    for event in told["traceEvents"]:
        assert (event["pid"], "process_name") in named
    return told["traceEvents"]


def test_the_exported_file_keeps_the_trace_event_format(exported):
    events = check_format(exported)
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {"faults", "control", "partitions", "groups", "broker-1", "controller-1"} <= names
    [fault] = [e for e in events if e.get("cat") == "fault"]
    assert (fault["name"], fault["ts"], fault["dur"]) == ("cra<sh>", 5 * S, 4 * S)
    assert {e["name"] for e in events if e.get("cat") == "partition"} >= {
        "leader 1: all in sync", "no leader", "leader 2: some out of sync",
    }  # fmt: skip
    assert [e["args"]["request_handlers"] for e in events if e["ph"] == "C"] == [25.0] * 3


def test_requests_are_bounded_and_the_rare_kind_is_among_them(exported):
    begun = [e for e in exported["traceEvents"] if e["ph"] == "b"]
    assert [e["name"] for e in begun].count("Produce") == 100
    assert [e["name"] for e in begun].count("AlterPartition") == 1
    assert begun[0]["args"]["waited_for_others_us"] == 41


@pytest.mark.parametrize(
    "spoil",
    [
        lambda events: events.append({"ph": "X", "name": "x"}),
        lambda events: events.remove(next(e for e in events if e["ph"] == "e")),
        lambda events: next(e for e in events if e["ph"] == "X").update(dur=-1),
        lambda events: events.append(dict(next(e for e in events if e["ph"] == "X"))),
    ],
)
def test_a_file_that_breaks_the_format_is_seen(exported, spoil):
    broken = json.loads(json.dumps(exported))
    spoil(broken["traceEvents"])
    with pytest.raises((AssertionError, KeyError)):
        check_format(broken)


def test_an_export_is_refused_where_a_file_stands_or_no_run_is(tmp_path):
    def answer(*words):
        return CliRunner().invoke(app, ["export", *map(str, words)])

    there = tmp_path / "out.json"
    told = answer(tmp_path, "--perfetto", there)
    assert told.exit_code == 2
    assert "not a run directory" in told.output
    (tmp_path / "run.json").write_text("{}")
    there.write_text("mine")
    assert "--force replaces it" in answer(tmp_path, "--perfetto", there).output
    assert "not a place for a file" in answer(tmp_path, "--perfetto", tmp_path).output
    assert there.read_text() == "mine"


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    with pytest.raises(SimulationError, match="cannot be written"):
        perfetto._write(tmp_path / "none" / "x.json", "{}")
    (tmp_path / "x.json").write_text("earlier")
    perfetto._write(tmp_path / "x.json", "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_faults_in_the_file_are_within_the_run():
    window = findings.FaultWindow(0, "crash", "t", "r", -5, 30 * S, True, True, "")
    late = replace(window, number=1, from_us=25 * S)
    drawn = [e for e in perfetto._faults((window, late), END) if e["ph"] == "X"]
    assert [(e["ts"], e["dur"]) for e in drawn] == [(0, END)]
