"""Kafka's own metrics of a run, under the names that a Grafana board has them.

A report says what happened; a user who lays it beside the board of a real cluster looks for these
names. Each is computed from what the report has anyway; its note says where it differs.

Source: Kafka's documentation, "Monitoring"; ``ReplicaManager``, ``ControllerMetrics``,
``RequestChannel``, ``FetchMetricsRegistry``, ``SenderMetricsRegistry``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from sim.units import MS, SECOND, Micros

GAUGES: Final = {
    "UnderReplicatedPartitions": "kafka.server:type=ReplicaManager, of all brokers together",
    "UnderMinIsrPartitionCount": "kafka.server:type=ReplicaManager, of all brokers together",
    "OfflinePartitionsCount": "kafka.controller:type=KafkaController",
}
"""Numbers of partitions, internal topics too, and where Kafka has them."""

_QUIET: Final = {
    "OfflinePartitionsCount": "a dead leader counts from the instant its broker is fenced"
}
"""Notes of gauges that were always 0."""

_REQUEST: Final = "kafka.network:type=RequestMetrics,request=Produce"
_STAGES: Final = {
    "waiting for a handler": "RequestQueueTimeMs",
    "append": "LocalTimeMs",
    "replication wait": "RemoteTimeMs",
}
"""Stages of :data:`analysis.report.latency.STAGES`, and the metric of each."""

_SENT_FROM: Final = 2
"""The first stage between a request's send and its response."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric over a run."""

    name: str
    bean: str
    """The MBean, or the client's group of metrics."""
    worst: str
    """Its largest value, or its smallest where that is the bad one, with unit."""
    at_us: Micros | None
    """The first instant of it; ``None`` for what is of the whole run."""
    note: str = ""


def metrics(frames: Mapping[str, pd.DataFrame], end_us: Micros, width_us: Micros) -> list[Metric]:
    """All metrics that the run has data of.

    Args:
        frames: Those of :class:`analysis.report.findings.Findings`: ``partition_states``, ``load``,
            ``lag``, ``stages`` and ``outcomes`` are read.
        end_us: End of the run.
        width_us: Width of the bins of ``load``, ``lag`` and ``outcomes``.
    """
    return [
        *_partitions(frames["partition_states"], end_us),
        *_isr(frames["partition_states"]),
        *_idle(frames["load"], width_us),
        *_requests(frames["stages"]),
        *_outcomes(frames["outcomes"], width_us),
        *_lags(frames["lag"], width_us),
    ]


def gauges(states: pd.DataFrame, end_us: Micros) -> pd.DataFrame:
    """Numbers of partitions over time, from the beginning of the workload on.

    Args:
        states: Rows of :func:`analysis.report.replication.spans`.
        end_us: End of the run.

    Returns:
        ``[t_us, *GAUGES]``: the values from each instant on at which one changes.
    """
    shown = states[(states["to_us"] > 0) & (states["from_us"] < end_us)]
    has_leader = shown["leader"] >= 0
    masks = (
        has_leader & (shown["in_sync_count"] < shown["replica_count"]),
        has_leader & shown["is_under_min"].astype(bool),
        ~has_leader,
    )
    instants = np.unique(np.concatenate(([0], shown["from_us"].clip(lower=0))))
    found = {"t_us": instants}
    for name, mask in zip(GAUGES, masks, strict=True):
        rows = shown[mask]
        begins, ends = (np.sort(rows[column].to_numpy()) for column in ("from_us", "to_us"))
        begun = np.searchsorted(begins, instants, side="right")
        found[name] = begun - np.searchsorted(ends, instants, side="right")
    return pd.DataFrame(found)


def _partitions(states: pd.DataFrame, end_us: Micros) -> Iterator[Metric]:
    if states.empty:
        return
    over_time = gauges(states, end_us)
    lasted = np.diff(np.append(over_time["t_us"], end_us))
    for name, bean in GAUGES.items():
        values = over_time[name].to_numpy()
        place = int(values.argmax())
        above = int(lasted[values > 0].sum())
        note = f"above 0 for {above / SECOND:.3g} s" if above else _QUIET.get(name, "")
        yield Metric(name, bean, f"{values[place]:,}", _instant(over_time, place, values), note)


def _instant(over_time: pd.DataFrame, place: int, values: "np.ndarray") -> Micros | None:
    return int(over_time["t_us"].iloc[place]) if values[place] else None


def _isr(states: pd.DataFrame) -> Iterator[Metric]:
    if states.empty:
        return
    ordered = states.sort_values(["topic", "partition", "from_us", "partition_epoch"])
    change = ordered.groupby(["topic", "partition"])["in_sync_count"].diff()
    during = ordered["from_us"] >= 0
    bean = "kafka.server:type=ReplicaManager"
    note = "those of the controller too, which Kafka's meter does not count"
    for name, found in (("IsrShrinksPerSec", change < 0), ("IsrExpandsPerSec", change > 0)):
        yield Metric(name, bean, f"{int((found & during).sum()):,} in all", None, note)
    unclean = int(ordered.loc[during, "unclean"].astype(int).sum())
    where = "kafka.controller:type=ControllerStats"
    yield Metric("UncleanLeaderElectionsPerSec", where, f"{unclean:,} in all", None)


def _idle(load: pd.DataFrame, width_us: Micros) -> Iterator[Metric]:
    beans = {
        "request_handlers": (
            "RequestHandlerAvgIdlePercent",
            "kafka.server:type=KafkaRequestHandlerPool",
        ),
        "network_threads": ("NetworkProcessorAvgIdlePercent", "kafka.network:type=SocketServer"),
    }
    shown = load[load["bin"] >= 0]
    for column, (name, bean) in beans.items() if not shown.empty else ():
        row = _largest(shown, column)
        yield Metric(
            name, bean, f"{1 - row[column]:.1%}", int(row["bin"]) * width_us,
            f"the least, of {row['node']}",
        )  # fmt: skip


def _largest(frame: pd.DataFrame, column: str) -> "pd.Series[Any]":
    """The first row with the largest value."""
    return frame.iloc[int(frame[column].to_numpy().argmax())]


def _requests(stages: pd.DataFrame) -> Iterator[Metric]:
    if stages.empty:
        return
    # Here, because the latency module needs Spark.
    from analysis.report.latency import STAGES  # noqa: PLC0415

    by_name = {STAGES[int(row["stage"])][0]: row for row in stages.to_dict("records")}
    for stage, name in _STAGES.items():
        if stage in by_name:
            p99 = float(by_name[stage]["p99"]) / MS
            yield Metric(name, _REQUEST, f"{p99:.3g} ms", None, "99 %, of acknowledged batches")
    means = sum(float(row["mean"]) for row in by_name.values() if row["stage"] >= _SENT_FROM) / MS
    bean = "producer-metrics"
    yield Metric("request-latency-avg", bean, f"{means:.3g} ms", None, "of acknowledged batches")


def _outcomes(outcomes: pd.DataFrame, width_us: Micros) -> Iterator[Metric]:
    seconds = width_us / SECOND
    for outcome, name in (("ok", "record-send-rate"), ("failed", "record-error-rate")):
        rows = outcomes[outcomes["outcome"] == outcome]
        if not rows.empty:
            row = _largest(rows, "records")
            rate = row["records"] / seconds
            at = int(row["bin"]) * width_us
            yield Metric(name, "producer-metrics", f"{rate:,.0f}/s", at, "all producers together")


def _lags(lag: pd.DataFrame, width_us: Micros) -> Iterator[Metric]:
    for group, rows in lag.groupby("group"):
        row = _largest(rows, "lag_max")
        note = f"group {group}; sampled each second"
        at = int(row["bin"]) * width_us
        bean = "consumer-fetch-manager-metrics"
        yield Metric("records-lag-max", bean, f"{int(row['lag_max']):,}", at, note)
