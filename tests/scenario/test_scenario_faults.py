"""Keys of faults that exclude each other, and targets that are many: what may be written."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from sim.substrate.distributions import Spread
from tests.scenarios.run_kit import text_of

COMBINED = {"combined": 2}
ZOOKEEPER = {"zookeeper": {"servers": 3}, "kafka": "3.9"}


def loaded(cluster=(), **fault):
    fault = {key.rstrip("_"): value for key, value in fault.items()}
    return load_text(text_of(cluster=cluster, faults=[{"at": "1s", **fault}]), "bad.yaml")


def refused(cluster=(), **fault):
    with pytest.raises(ScenarioError) as caught:
        loaded(cluster, **fault)
    return str(caught.value)


# -- slow-disk ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flush", "spread"),
    [
        ({"p50": "50ms"}, Spread(50_000, 50_000)),
        ({"p50": "50ms", "p99": "200ms"}, Spread(50_000, 200_000)),
    ],
)
def test_a_slow_disk_may_have_the_latency_of_its_fsyncs(flush, spread):
    found = loaded(do="slow-disk", target="broker-1", flush=flush)
    assert found.faults[0].flush == spread
    assert load_text(found.as_yaml(), "bad.yaml") == found


@pytest.mark.parametrize(
    ("keys", "path", "says"),
    [
        ({}, "factor", "add factor or flush"),
        ({"factor": 2, "flush": {"p50": "9ms"}}, "flush", "flush beside factor; allowed: one of"),
        ({"flush": {"p50": "9ms", "p99": "8ms"}}, "flush.p50", "p50 at most p99"),
        ({"flush": {"p50": "0ms"}}, "flush.p50", "more than zero"),
        ({"flush": {"p99": "8ms"}}, "flush.p50", "the key is missing"),
        ({"flush": "50ms"}, "flush", "a mapping"),
        ({"flush": {"p50": "50"}}, "flush.p50", "'50' has no unit"),
        ({"factor": 1}, "factor", "greater than or equal to 2"),
    ],
)
def test_a_slow_disk_is_slow_by_a_factor_or_by_a_latency(keys, path, says):
    message = refused(do="slow-disk", target="broker-1", **keys)
    assert f"faults[0].{path}: " in message
    assert says in message


# -- all controllers ------------------------------------------------------------------------------

ALL = "all controllers"


@pytest.mark.parametrize(
    ("cluster", "names"),
    [
        ({"controllers": 2}, ("controller-1", "controller-2")),
        (COMBINED, ("broker-1", "broker-2")),
    ],
)
def test_all_controllers_are_those_of_the_cluster(cluster, names):
    found = loaded(cluster, do="crash", target=ALL)
    (target,) = found.faults[0].targets
    assert target.names == names
    assert not target.is_role
    assert load_text(found.as_yaml(), "bad.yaml") == found


@pytest.mark.parametrize(
    "fault",
    [
        {"do": "slow-disk", "target": ALL, "flush": {"p50": "50ms"}},
        {"do": "power-loss", "target": ["all brokers", ALL]},
        {"do": "partition", "between": ALL},
        {"do": "partition", "between": ALL, "and": "all brokers"},
        {"do": "hold", "message": "FetchRequest", "from": ALL},
        {"do": "rolling-restart", "target": ALL},
    ],
)
def test_all_controllers_may_be_the_target_of_whatever_hits_several(fault):
    assert loaded(**fault).faults


@pytest.mark.parametrize(
    ("cluster", "fault", "says"),
    [
        ({}, {"do": "add-controller", "target": ALL}, "is not one controller"),
        ({}, {"do": "lost-replica", "target": ALL, "partition": "orders-0"}, "is not one broker"),
        (COMBINED, {"do": "torn-write", "target": ALL, "partition": "orders-0"}, "not one broker"),
        ({}, {"do": "load-surge", "target": ALL, "factor": 2, "for": "1s"}, "is no producer"),
        ({"disk": {"directories": 2}}, {"do": "full-disk", "target": ALL, "directory": 1},
         "0: it has only one"),
        (COMBINED, {"do": "partition", "between": ALL, "and": "all brokers"}, "is on both sides"),
        (ZOOKEEPER, {"do": "crash", "target": ALL},
         "with cluster.zookeeper, where a broker is the controller; allowed: controller leader"),
    ],
)  # fmt: skip
def test_all_controllers_are_refused_where_they_mean_nothing(cluster, fault, says):
    assert says in refused(cluster, **fault)


def test_controllers_that_are_targets_already_overlap_with_all_of_them():
    faults = [
        {"at": "1s", "do": "crash", "target": ALL, "for": "2s"},
        {"at": "2s", "do": "crash", "target": "controller-1", "for": "1s"},
    ]
    with pytest.raises(ScenarioError, match=r"overlaps faults\[0\]"):
        load_text(text_of(faults=faults), "bad.yaml")


# -- consumers and groups -------------------------------------------------------------------------

READERS = (
    {"name": "reader", "group": "billing", "topics": ["orders"]},
    {"name": "sharer", "group": "sharers", "group.type": "share", "topics": ["orders"]},
)
SEEK = {"do": "seek", "target": "reader", "partitions": "orders-0"}
RESET = {"do": "reset-offsets", "group": "billing", "partitions": "orders-0"}


def read_by(fault):
    consumers, cluster = list(READERS), {"kafka": "4.1"}
    faults = [{"at": "1s", **fault}]
    return load_text(text_of(consumers=consumers, cluster=cluster, faults=faults), "bad.yaml")


@pytest.mark.parametrize(
    "fault",
    [
        SEEK | {"to": 5},
        SEEK | {"to": "end"},
        SEEK | {"datetime": "0s"},
        {"do": "pause-partitions", "target": "reader", "partitions": "orders", "for": "1s"},
        RESET | {"to": "latest"},
        RESET | {"to": 7},
        RESET | {"shift": -3},
        RESET | {"duration": "500ms"},
        {"do": "delete-offsets", "group": "billing", "partitions": ["orders-0", "orders-2"]},
        {"do": "delete-group", "group": "billing"},
    ],
)
def test_what_consumers_and_groups_are_told_is_written_out_and_read_back(fault):
    found = read_by(fault)
    assert load_text(found.as_yaml(), "bad.yaml") == found


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (SEEK, "add to or datetime"),
        (SEEK | {"to": 5, "datetime": "1s"}, "one of the two"),
        (SEEK | {"to": "middle"}, "to"),
        (SEEK | {"target": "shop", "to": 5}, "'shop' is no consumer"),
        (SEEK | {"target": "sharer", "to": 5}, "'sharer' is no consumer"),
        (SEEK | {"target": "broker-1", "to": 5}, "'broker-1' is no consumer"),
        (SEEK | {"partitions": ["orders", "orders-1"], "to": 5}, "orders-1 twice"),
        (SEEK | {"partitions": "orders-9", "to": 5}, "no partition 'orders-9'"),
        (RESET | {"to": "beginning"}, "to"),
        (RESET | {"shift": 1, "duration": "1s"}, "one of the two"),
        (RESET | {"group": "sharers", "to": 1}, "no group 'sharers'"),
    ],
)
def test_calls_and_commands_that_mean_nothing_are_refused(fault, says):
    with pytest.raises(ScenarioError) as caught:
        read_by(fault)
    assert says in str(caught.value)
