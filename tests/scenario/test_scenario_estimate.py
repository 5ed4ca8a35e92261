"""What a run would take is known before it: bytes from its scenario, time and memory by machine."""

import itertools
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sim import bench
from sim.scenario.estimate import storage as storages
from sim.scenario.estimate.flows import flows, out_of_service
from sim.scenario.estimate.forecast import Speed, estimate
from sim.scenario.estimate.space import Space, about, check_run, occupied, space_at
from sim.scenario.loader import load, load_text
from sim.units import MIB
from tests.scenarios.run_kit import CATALOGUE, ROOT, SHIPPED, text_of
from tests.swarm import once, scenarios

DISK, MEMORY, TIME = 1.3, 1.5, 2.0
"""Factors of docs/performance.md."""

KINDS = (
    "separate-roles-crash", "acks-all-leader-crash", "compression", "transactions",
    "group-protocols", "share-group", "region-loss-mirror", "raft-leader-crash", "read-replica",
    "connect-at-least-once", "compaction",
)  # fmt: skip
"""One of each kind: controllers, load, codecs, transactions, groups, queues, mirrors, Raft, ..."""

FAST = ("tradeoff", "separate-roles-crash", "read-replica")


def measured(path, out, *words):
    """Bytes on the disk, peak memory and seconds of a core of a run in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sim", "run", str(path), "--out", str(out), "--json", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    _, status, used = os.wait4(process.pid, 0)
    complaints = process.stderr.read()
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), complaints
    directories = sum(1 for each in out.rglob("*") if each.is_dir())
    size = occupied(out) + directories * storages.BLOCK
    return size, used.ru_maxrss * 1024, used.ru_utime + used.ru_stime


def is_within(found, expected, factor):
    return expected / factor <= found <= expected * factor


def given(config=None, **parts):
    topic = {"partitions": 2, "config": {"min.insync.replicas": 2, **(config or {})}}
    return load_text(text_of(**{"lasts": "60s", "topic": topic, "faults": [], **parts}))


def test_memory_grows_slowly_once_old_batches_are_forgotten():
    """Measured with 160 a second: 233 MiB at 60 s, 267 at 250 s, 279 at 500 s, 295 at 1,000 s."""
    producer = {"rate": "800/s", "record.size": "500B", "config": {"linger.ms": 5}}
    runs = [
        estimate(given(lasts=lasts, producer=producer), "facts")
        for lasts in ("60s", "250s", "500s", "1000s")
    ]
    assert runs[1].batches == pytest.approx(40_000, rel=0.05)
    first, middle, last = (
        (after.load_bytes - before.load_bytes) / MIB for before, after in itertools.pairwise(runs)
    )
    assert 20 < first < 70  # 34 measured
    assert 6 < middle < 24  # 12
    assert 8 < last < 32  # 16


def logs(scenario):
    return estimate(scenario).disk.logs


@pytest.mark.parametrize("name", FAST)
def test_bytes_on_the_disk_are_what_the_scenario_lets_expect(name, tmp_path):
    size, _, _ = measured(SHIPPED[name], tmp_path / "run")
    assert is_within(estimate(load(SHIPPED[name])).disk.total, size, DISK)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_time_memory_and_disk_are_within_the_stated_factors(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = estimate(load(SHIPPED[name]))
    before, _ = bench.speed(refresh=True)
    size, memory, seconds = measured(SHIPPED[name], tmp_path / "run")
    after, _ = bench.speed(refresh=True)  # a shared machine is not as fast from minute to minute
    speed = replace(after, factor=(before.factor + after.factor) / 2)
    assert is_within(found.disk.total, size, DISK), (about(found.disk.total), about(size))
    assert is_within(found.memory(speed), memory, MEMORY), (found.memory(speed), memory)
    assert is_within(found.seconds(speed), seconds, TIME), (found.seconds(speed), seconds)


def test_a_model_without_replicas_is_found_by_that_measure(tmp_path, monkeypatch):
    """A planted defect."""
    monkeypatch.setattr(storages, "copies_of", lambda _scenario, _topic: 1)
    scenario = load(SHIPPED["acks-all-leader-crash"])
    topics = tuple(t.model_copy(update={"replication_factor": 1}) for t in scenario.topics)
    whole, single = logs(scenario), logs(replace(scenario, topics=topics))
    assert not is_within(single, whole, DISK)


def test_every_shipped_scenario_has_an_estimate():
    for path in (*SHIPPED.values(), *CATALOGUE.values()):
        found = estimate(load(path))
        assert found.disk.total > 0, path
        assert found.seconds(Speed()) > 1, path
        assert found.memory(Speed()) > 100_000_000, path


EDGES = {
    "nobody sends": {"producers": []},
    "a millisecond": {"lasts": "1ms"},
    "one broker": {
        "cluster": {"brokers": 1, "controllers": 1},
        "topic": {"replication.factor": 1, "config": {}},
    },
    "nothing is ever removed": {"topic": {"config": {"retention.ms": -1, "retention.bytes": -1}}},
    "a log that is never clean enough": {
        "topic": {"config": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 1.0}},
        "producer": {"keys": "uniform", "key.count": 1},
    },
    "batches of one record": {"producer": {"config": {"linger.ms": 100_000_000, "batch.size": 0}}},
    "a year": {"lasts": "8000h", "producer": {"rate": "1/s"}},
    "a producer for an instant": {"producer": {"start": "5s", "stop": "5001ms"}},
}


@pytest.mark.parametrize("name", EDGES)
def test_a_scenario_at_an_edge_has_an_estimate(name):
    assert_sound(load_text(text_of(**EDGES[name])))


def test_whatever_the_swarm_draws_has_an_estimate():
    for seed in range(40):
        assert_sound(load_text(scenarios.drawn(seed).text))
    for kind in once.KINDS:
        assert_sound(load_text(once.drawn(kind, 1)))


def assert_sound(scenario):
    for level in ("facts", "detail"):
        found = estimate(scenario, level)
        numbers = (found.disk.logs, found.disk.trace, found.rows, found.requests)
        times = (found.seconds(Speed()), found.memory(Speed()))
        assert all(number > 0 and math.isfinite(number) for number in (*numbers, *times))


def test_records_are_those_that_clients_mean_to_send():
    quickstart = load(SHIPPED["quickstart"])
    assert sum(flow.records for flow in flows(quickstart)) == pytest.approx(1_200_000)
    mirror = load(SHIPPED["region-loss-mirror"])
    assert flows(mirror)[0].records == pytest.approx(7_500), "its process dies after 15 s"


def test_records_of_a_surge_and_of_bursts_are_counted():
    surge = {"at": "10s", "do": "load-surge", "target": "shop", "factor": 3, "for": "20s"}
    burst = {"on": "1s", "off": "9s", "peak": "1000/s"}
    calm = given(producer={"rate": "100/s"})
    surging = given(producer={"rate": "100/s"}, faults=[surge])
    bursting = given(producer={"rate": "100/s", "arrivals": "burst", "burst": burst})
    counted = [sum(flow.records for flow in flows(each)) for each in (calm, surging, bursting)]
    assert counted == pytest.approx([6_000, 10_000, 6 * 1_900])


def test_retention_bounds_the_logs_by_time_and_by_size():
    brief = {"segment.ms": 1_000, "file.delete.delay.ms": 0}
    looks = {"config": {"log.retention.check.interval.ms": 1_000, "log.initial.task.delay.ms": 0}}
    load_ = {"producer": {"rate": "1000/s", "record.size": "1000B"}, "cluster": looks}
    every = logs(given(brief, **load_))
    by_time = logs(given(brief | {"retention.ms": 10_000}, **load_))
    by_size = logs(given(brief | {"retention.bytes": 2_000_000}, **load_))
    assert 4 < every / by_time < 6, "13 s of 60 s"
    assert 5 < every / by_size < 13, "4 MB and two seconds of 60 MB"


def test_a_partition_that_never_rolls_is_not_bounded():
    load_ = {"producer": {"rate": "1000/s", "record.size": "1000B"}}
    assert logs(given({"retention.ms": 10_000}, **load_)) == pytest.approx(logs(given(**load_)))


def test_compaction_bounds_the_logs_by_the_number_of_keys():
    keys = {"keys": "uniform", "key.count": 100}
    load_ = {"producer": {"rate": "1000/s", "record.size": "1000B", **keys}}
    config = {"cleanup.policy": "compact", "segment.ms": 1_000, "file.delete.delay.ms": 0}
    every, few = logs(given(**load_)), logs(given(config, **load_))
    assert every / few > 2, "what is not cleaned yet, 16 s of 60"
    off = {"cluster": {"config": {"log.cleaner.enable": False}}}
    assert logs(given(config, **load_, **off)) > 0.9 * every


def test_disks_hold_no_more_than_their_capacity():
    load_ = {"producer": {"rate": "1000/s", "record.size": "1000B"}}
    small = given(**load_, cluster={"disk": {"capacity": "5MB"}})
    assert logs(small) < 17_000_000 < logs(given(**load_))


def test_codecs_leave_what_does_not_compress():
    half = {"record.size": "1000B", "rate": "1000/s", "record.compressibility": 0.5}
    plain = given(producer=half)
    packed = given(producer=half | {"config": {"compression.type": "lz4"}})
    assert 1.7 < logs(plain) / logs(packed) < 2.2


def test_a_trace_of_facts_is_smaller_and_the_logs_are_as_large():
    scenario = load(SHIPPED["quickstart"])
    facts, detail = estimate(scenario, "facts"), estimate(scenario)
    assert facts.disk.logs == detail.disk.logs
    assert facts.disk.trace < detail.disk.trace
    assert facts.rows < detail.rows
    assert detail.disk.kept("verdict") < detail.disk.kept("logs") < detail.disk.kept("all")


def test_an_outage_is_as_long_as_a_session_whatever_the_broker_does():
    crash = {"at": "10s", "do": "crash", "target": "broker-1", "for": "1s"}
    assert out_of_service(given(faults=[crash])) == pytest.approx(11.125 / 60 / 3)
    assert out_of_service(given(faults=[])) == 0


def test_refusal_advises_only_what_makes_the_run_fit():
    found = estimate(load(SHIPPED["quickstart"]))
    facts = estimate(load(SHIPPED["quickstart"]), "facts").disk.total
    for allowed, is_enough in ((facts, True), (facts - 1, False)):
        place = Space(Path("x"), allowed, 0)
        with pytest.raises(Exception, match="would write about") as caught:
            check_run(found, place, ())
        assert ("--trace facts" in str(caught.value)) is is_enough
    with pytest.raises(Exception, match=r"run\.for=28s in place of 60s") as caught:
        check_run(found, Space(Path("x"), found.disk.total // 2, 0), ("more",))
    assert str(caught.value).endswith("; more")
    shorter = estimate(load(SHIPPED["quickstart"], ("run.for=28s", "faults=[]")))
    assert shorter.disk.total < found.disk.total // 2


def test_a_run_that_fits_is_announced_only_if_it_is_large():
    place = Space(Path("x"), 1 << 50, 0)
    small = estimate(load(SHIPPED["tradeoff"]))
    assert check_run(small, place, ()) == ""
    large = estimate(given(producer={"rate": "20000/s", "record.size": "1000B"}))
    line = check_run(large, place, ())
    assert "the run will write about 3.4 GiB there" in line
    assert "\n" not in line


def test_what_a_run_replaces_is_room_for_it(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "big").write_bytes(b"x" * 1_000_000)
    kept, replaced = space_at(tmp_path / "run"), space_at(tmp_path / "run", replaces=True)
    assert replaced.free - kept.free > 500_000
    assert space_at(tmp_path / "not" / "there" / "yet").reserve == kept.reserve


@pytest.mark.parametrize(
    ("size", "words"),
    [(12, "12 B"), (1_536, "1.5 KiB"), (5_523_690_106, "5.1 GiB"), (130 << 20, "130 MiB")],
)
def test_sizes_have_two_figures(size, words):
    assert about(size) == words


# -- the machine ----------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Stands in for the measurement: counts how often it is made."""
    made = []

    def measure(milliseconds):
        made.append(milliseconds)
        return {"cpu_seconds": 2.2, "peak_rss_bytes": 250_000_000, "compiled": False}

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(bench, "_in_own_process", measure)
    return made


def test_a_machine_is_measured_once_and_again_when_asked(machine):
    speed, words = bench.speed()
    assert speed.factor == pytest.approx(2.0)
    assert words.endswith("from the sources, measured just now")
    again, later = bench.speed()
    assert (again, len(machine)) == (speed, 1)
    assert "measured on 20" in later
    bench.speed(refresh=True)
    assert len(machine) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"cpu_seconds": "3"}', '{"cpu_seconds": 0}'])
def test_a_damaged_measurement_is_made_again(machine, tmp_path, content):
    bench.speed()
    (file,) = (tmp_path / "cache" / "logquake").iterdir()
    file.write_text(content)
    assert bench.speed()[0].factor == pytest.approx(2.0)
    assert json.loads(file.read_text())["cpu_seconds"] == 2.2


def test_a_home_that_cannot_be_written_to_costs_nothing_else(machine, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert bench.speed()[0].factor == pytest.approx(2.0)


def test_another_version_is_measured_for_itself(machine, monkeypatch):
    bench.speed()
    monkeypatch.setattr(bench, "version", lambda _: "99.0")
    bench.speed()
    assert len(machine) == 2
