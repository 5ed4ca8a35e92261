"""Kafka's metrics of a report: their names, and values from frames that are known."""

import pandas as pd
import pytest

from analysis.report.kafka_metrics import GAUGES, gauges, metrics

S = 1_000_000


def state(partition, from_s, to_s, leader, in_sync, *, under=False, unclean=False, epoch=0):
    return {
        "topic": "orders", "partition": partition, "from_us": from_s * S, "to_us": to_s * S,
        "leader": leader, "in_sync_count": in_sync, "replica_count": 3, "is_under_min": under,
        "unclean": unclean, "partition_epoch": epoch,
    }  # fmt: skip


STATES = pd.DataFrame([
    state(0, -5, 10, 1, 3), state(0, 10, 14, 2, 2, epoch=1), state(0, 14, 40, 2, 3, epoch=2),
    state(1, -5, 10, 3, 3), state(1, 10, 12, 3, 1, under=True, epoch=1),
    state(1, 12, 20, -1, 0, epoch=2), state(1, 20, 40, 1, 1, under=True, unclean=True, epoch=3),
])  # fmt: skip


def frames(**more):
    return {
        "partition_states": STATES,
        "load": pd.DataFrame([
            {"node": "broker-3", "bin": -1, "request_handlers": 0.9, "network_threads": 0.9},
            {"node": "broker-1", "bin": 3, "request_handlers": 0.25, "network_threads": 0.5},
            {"node": "broker-2", "bin": 4, "request_handlers": 0.75, "network_threads": 0.1},
        ]),
        "lag": pd.DataFrame([
            {"group": "billing", "bin": 1, "lag": 9, "lag_max": 5},
            {"group": "billing", "bin": 2, "lag": 8, "lag_max": 7},
        ]),
        "stages": pd.DataFrame([
            {"stage": 0, "mean": 500.0, "p99": 900.0}, {"stage": 3, "mean": 250.0, "p99": 2_000.0},
            {"stage": 5, "mean": 1_750.0, "p99": 9_000.0},
        ]),
        "outcomes": pd.DataFrame([
            {"bin": 0, "outcome": "ok", "records": 100}, {"bin": 1, "outcome": "ok", "records": 50},
            {"bin": 1, "outcome": "failed", "records": 30},
        ]),
    } | more  # fmt: skip


def found(**more):
    return {each.name: (each.worst, each.at_us, each.note) for each in
            metrics(frames(**more), 40 * S, 2 * S)}  # fmt: skip


def test_gauges_count_partitions_as_leaders_and_the_controller_do():
    over_time = gauges(STATES, 40 * S)
    assert list(over_time["t_us"] // S) == [0, 10, 12, 14, 20]
    assert [list(over_time[name]) for name in GAUGES] == [
        [0, 2, 1, 0, 1],  # a partition without a leader is offline, and nobody's under-replicated
        [0, 1, 0, 0, 1],
        [0, 0, 1, 1, 0],
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("UnderReplicatedPartitions", ("2", 10 * S, "above 0 for 24 s")),
        ("UnderMinIsrPartitionCount", ("1", 10 * S, "above 0 for 22 s")),
        ("OfflinePartitionsCount", ("1", 12 * S, "above 0 for 8 s")),
        ("UncleanLeaderElectionsPerSec", ("1 in all", None, "")),
        ("RequestHandlerAvgIdlePercent", ("25.0%", 8 * S, "the least, of broker-2")),
        ("NetworkProcessorAvgIdlePercent", ("50.0%", 6 * S, "the least, of broker-1")),
        ("RequestQueueTimeMs", ("2 ms", None, "99 %, of acknowledged batches")),
        ("RemoteTimeMs", ("9 ms", None, "99 %, of acknowledged batches")),
        ("request-latency-avg", ("2 ms", None, "of acknowledged batches")),
        ("record-send-rate", ("50/s", 0, "all producers together")),
        ("record-error-rate", ("15/s", 2 * S, "all producers together")),
        ("records-lag-max", ("7", 4 * S, "group billing; sampled each second")),
    ],
)  # fmt: skip
def test_a_metric_has_its_worst_value_and_the_first_instant_of_it(name, expected):
    assert found()[name] == expected


def test_shrinks_and_expansions_of_the_isr_are_counted_from_the_workloads_beginning():
    assert found()["IsrShrinksPerSec"][0] == "3 in all"
    assert found()["IsrExpandsPerSec"][0] == "2 in all"
    early = STATES.assign(from_us=STATES["from_us"] - 60 * S, to_us=STATES["to_us"] - 60 * S)
    names = found(partition_states=early)
    assert names["IsrShrinksPerSec"][0] == "0 in all"
    assert names["UnderReplicatedPartitions"] == ("0", None, "")


def test_what_was_not_measured_has_no_line():
    nothing = {name: frame.iloc[:0] for name, frame in frames().items()}
    assert metrics(nothing, 40 * S, 2 * S) == []
