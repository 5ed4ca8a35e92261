"""What no machine would come to the end of is refused at once, and told what is too much."""

import time

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from sim.scenario.rules.limits import FAULTS_MAX
from tests.scenarios.run_kit import text_of

SHOP = {"name": "shop", "topic": "orders", "config": {"acks": "all"}}
INSTANT = {"target": "broker-1", "partition": "orders-0"}


def refused(match, **parts):
    with pytest.raises(ScenarioError, match=match) as caught:
        load_text(text_of(**parts))
    return str(caught.value)


def test_ten_years_are_refused_and_a_year_is_not():
    refused(r"run\.for: .*; allowed: at most 366d, a year; shorten it", lasts="3650d")
    quiet = {"rate": "1/s", "stop": "1s"}
    assert load_text(text_of(lasts="366d", producer=quiet)).run.for_us == 366 * 86_400_000_000
    endless = text_of().replace("drain.timeout: 30s", "drain.timeout: 3650d")
    with pytest.raises(ScenarioError, match=r"run\.drain\.timeout"):
        load_text(endless)


def test_a_time_that_fits_into_no_row_is_refused():
    refused("more than 63 bits of microseconds", lasts="99999999999d")
    refused("is not a quantity", lasts="9" * 5_000 + "s")
    refused("is not a quantity", lasts="1 s" + " " * 100_000 + "x")
    refused("is not a number of records", expect={"lost_acked": "9" * 5_000})
    refused("more than 63 bits of records", expect={"lost_acked": 10**30})


def test_more_records_than_anybody_waits_for_are_refused():
    found = r"producers\[0\]\.rate: 6,000,000,000 records in all; allowed: at most 1,000,000,000"
    refused(found, producer={"rate": "1000000000/s"})
    load_text(text_of(producer={"rate": "100000000/s"}))
    surge = {"at": "1s", "do": "load-surge", "target": "shop", "factor": 1_000, "for": "5s"}
    refused("25,005,000,000 records", producer={"rate": "5000000/s"}, faults=[surge])
    peak = {"on": "1s", "off": "1s", "peak": "1000000000/s"}
    refused("records in all", producer={"rate": "1/s", "arrivals": "burst", "burst": peak})


def test_more_servers_clients_and_replicas_than_fit_are_refused_before_they_are_built():
    start = time.process_time()
    refused("51,000 brokers in all", cluster={"brokers": None, "racks": {
        f"r{n}": 1_000 for n in range(51)}})  # fmt: skip
    many = [SHOP | {"name": f"p{n}", "rate": "1/s", "count": 100_000} for n in range(100)]
    refused("10,000,000 clients in all", producers=many)
    refused("300,000 replicas", topics={
        "orders": {"partitions": 10_000, "replication.factor": 30}})  # fmt: skip
    assert time.process_time() - start < 5


@pytest.mark.parametrize("count", [10**39, {"a": 10**39}])
def test_more_controllers_than_there_can_be_are_refused_before_they_are_built(count):
    """Found by a mutant: so many were put into racks before they were counted."""
    racks = {"brokers": None, "racks": {"a": 3}}
    found = f"{10**39} controllers; allowed: 1 to 99"
    refused(found, cluster=racks | {"controllers": count})
    servers = {"zookeeper": {"servers": count}, "kafka": "3.9"}
    refused(f"{10**39} servers; allowed: 1 to 99", cluster=racks | servers)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("num.io.threads", "2,147,483,647 threads"),
        ("num.recovery.threads.per.data.dir", "2,147,483,647 threads"),
        ("offsets.topic.num.partitions", "6,442,450,941 replicas"),
        ("transaction.state.log.num.partitions", "6,442,450,941 replicas"),
    ],
)
def test_a_setting_that_kafka_allows_and_no_memory_holds_is_refused(name, found):
    assert f"cluster.config.{name}" in refused(found, config={name: 2**31 - 1})


def test_components_that_fail_all_the_time_are_refused():
    fails = {"do": "crash", "target": "each broker", "mtbf": "1us", "mttr": "1us"}
    refused(r"faults\[0\]\.mtbf: about 9,000,000 failures in the run", faults=[fails])
    once = {"do": "crash", "target": "each broker", "mtbf": "1us"}
    load_text(text_of(faults=[once]))
    again = {"do": "lost-replica", **INSTANT, "mtbf": "100us"}
    refused("about 60,000 failures", faults=[again])


def test_a_long_calendar_is_checked_in_time_and_a_longer_one_is_refused():
    flaps = {"at": "0s", "do": "partition", "between": "broker-1", "for": "50us", "every": "100us"}
    start = time.process_time()
    lines = [flaps | {"times": FAULTS_MAX // 2, "between": f"broker-{n}"} for n in (1, 2)]
    assert len(load_text(text_of(faults=lines)).faults) == FAULTS_MAX
    assert time.process_time() - start < 20
    refused("10,002 faults up to here", faults=[*lines, flaps | {"at": "3s", "times": 2}])


def test_an_overlap_in_a_long_calendar_is_found_all_the_same():
    flaps = {"at": "1s", "do": "pause", "target": "broker-1", "for": "5ms", "every": "10ms"}
    late = {"at": "5s", "do": "pause", "target": "broker-1", "for": "5ms"}
    refused(r"faults\[\d+\]\.at: overlaps faults\[400\]", faults=[flaps | {"times": 450}, late])
