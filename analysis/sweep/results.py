"""Results of a sweep: a row for each configuration, differences, and the influence of settings.

Probabilities have exact 95 % intervals; with no hit in n runs, the probability is below
3/n with that confidence (the rule of three). Because all configurations meet the same seeds, a
difference between two of them is the mean of differences seed by seed, whose interval is much
shorter than those of the two means. Percentiles of latency are those of all records of all runs of
a configuration, each within :data:`LATENCY_ERROR`.
"""

from collections.abc import Hashable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from analysis.pages.cells import rows_of, short
from analysis.pages.markup import render
from analysis.spark.histogram import QUANTILES
from analysis.sweep import confidence as intervals
from analysis.sweep.confidence import Estimate
from analysis.sweep.store import DONE, SCHEMA, Row
from sim.levels import level_of
from sim.units import SECOND, Micros

LATENCY_ERROR: Final = 1 / 256
"""Error of a percentile of latency, as runs count them; the largest value is exact."""

OBJECTIVES: Final = ("loss", "unavailable_us", "p50", "replicas")
"""Measures of a configuration on the Pareto front: less is better."""

_ROUNDING: Final = 1e-9
"""Means that differ by a smaller share are equal."""

MOVED: Final = {
    "loss": "probability of loss",
    "lost_records": "lost records",
    "outage": "probability of an outage",
    "unavailable_us": "longest time without service",
    "p50": "latency, median",
    "p99": "latency, 99 %",
    "p999": "latency, 99.9 %",
    "throughput": "acknowledged records a second",
    "cross_rack_bytes": "bytes between racks",
    "disk_bytes": "bytes on disks",
    "replicas": "replicas",
}
"""Columns of configurations that settings influence, with their titles."""

_OF_WORST: Final = {"lost": "lost_acked"} | {
    name: name for name in ("down_us", "slow_normal_us", "slow_fault_us")
}
"""Columns of runs of which a configuration has the largest."""

Labels = Sequence[tuple[str, str]]
"""Key and value of everything that is varied."""


class Sweep:
    """Results of one sweep.

    Args:
        name: The scenario's.
        claim: The scenario's.
        directory: Directory of the sweep.
        keys: Labels of each configuration.
        refused: Impossible combinations, with reasons.
        rows: One for each run, by configuration and seed.
        outage_us: A longer gap in service is an outage.
    """

    def __init__(
        self,
        name: str,
        claim: str,
        directory: Path,
        keys: Sequence[Labels],
        refused: Sequence[tuple[str, str]],
        rows: Sequence[Row],
        outage_us: Micros,
    ) -> None:
        self.name = name
        self.claim = claim
        self.directory = directory
        self.labels = [dict(labels) for labels in keys]
        self.varied = list(self.labels[0]) if self.labels else []
        """Varied settings, in order."""
        self.refused = list(refused)
        self.outage_us = outage_us
        self.runs = pd.DataFrame(list(rows), columns=SCHEMA.names)
        """A row for each run: the columns of ``runs.parquet``."""
        done = self.runs[self.runs["status"] == DONE]
        found = ((n, done[done["configuration"] == n]) for n in range(len(self.labels)))
        self._done = {number: group for number, group in found if len(group)}

    def text_of(self, configuration: int) -> str:
        """A configuration in one line."""
        labels = self.labels[configuration].items()
        return ", ".join(f"{key}={label}" for key, label in labels) or "as it is"

    @property
    def failed(self) -> pd.DataFrame:
        """Failed runs: ``configuration, seed, status, message``."""
        bad = self.runs[self.runs["status"] != DONE]
        return bad[["configuration", "seed", "status", "message"]].reset_index(drop=True)

    @cached_property
    def configurations(self) -> pd.DataFrame:
        """A row for each configuration: its settings, and every number with its interval."""
        rows = [
            {"configuration": number, **labels, **self._numbers(number)}
            for number, labels in enumerate(self.labels)
        ]
        frame = pd.DataFrame(rows)
        frame["is_best"] = _undominated(frame)
        return frame

    def differences(self, baseline: int = 0) -> pd.DataFrame:
        """Each configuration against one of them, seed by seed.

        Returns:
            ``configuration, pairs, lost_more, lost_less, loss_p, unavailable_us, _low, _high, p99,
            …``: seeds in which only this one or only the other lost records, the probability of
            that split by chance, and the mean differences with their intervals.
        """
        base = self._done.get(baseline)
        rows = []
        for number in range(len(self.labels)):
            group = self._done.get(number)
            if number == baseline or group is None or base is None:
                continue
            both = group.merge(base, on="seed", suffixes=("", "_base"))
            if both.empty:
                continue
            lost, lost_base = both["lost_acked"] > 0, both["lost_acked_base"] > 0
            more, less = int((lost & ~lost_base).sum()), int((~lost & lost_base).sum())
            row: dict[str, object] = {
                "configuration": number,
                "pairs": len(both),
                "lost_more": more,
                "lost_less": less,
                "loss_p": intervals.sign_test(more, less),
            }
            for name in ("unavailable_produce_us", "produce_p50_us", "produce_p99_us"):
                pairs = both[[name, f"{name}_base"]].dropna()
                if len(pairs):
                    gaps = (pairs[name] - pairs[f"{name}_base"]).astype(float)
                    row |= _columns(name, intervals.mean(gaps.tolist()))
            rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def sensitivity(self) -> pd.DataFrame:
        """Influence of each setting on each number.

        Returns:
            ``number, key, low_at, low, high_at, high, share``: the mean over everything else at the
            value of the key where it is least and where it is most, and the share of all variance
            between configurations that the key alone explains.
        """
        frame = self.configurations
        rows = []
        for number in MOVED:
            values = frame[number].astype(float)
            spread = float(((values - values.mean()) ** 2).sum())
            differs = float(values.max() - values.min()) > _ROUNDING * abs(float(values.max()))
            for key in self.varied:
                means = values.groupby(frame[key], sort=False).mean().dropna()
                if means.empty:
                    continue
                sizes = values.groupby(frame[key], sort=False).count()[means.index]
                between = float((sizes * (means - values.mean()) ** 2).sum())
                rows.append(
                    {
                        "number": number,
                        "key": key,
                        "low_at": str(means.idxmin()),
                        "low": float(means.min()),
                        "high_at": str(means.idxmax()),
                        "high": float(means.max()),
                        "share": between / spread if differs else 0.0,
                    }
                )
        return pd.DataFrame(
            rows, columns=["number", "key", "low_at", "low", "high_at", "high", "share"]
        )

    # -- inside -----------------------------------------------------------------------------------

    def _numbers(self, configuration: int) -> dict[str, object]:
        group = self._done.get(configuration)
        total = int((self.runs["configuration"] == configuration).sum())
        if group is None:
            empty = dict.fromkeys((*MOVED, "promised", *(f"worst_{name}" for name in _OF_WORST)))
            return {"runs": 0, "failed_runs": total, **empty}
        runs = len(group)
        lost = int((group["lost_acked"] > 0).sum())
        gaps = group["unavailable_produce_us"].dropna().astype(float)
        outages = int((gaps > self.outage_us).sum())
        seconds = group["run_us"].astype(float) / SECOND
        return {
            "runs": runs,
            "failed_runs": total - runs,
            "lost_runs": lost,
            **_worst(group),
            **_columns("loss", intervals.proportion(lost, runs)),
            **_columns("lost_records", _mean_of(group["lost_acked"])),
            "outages": outages,
            **_columns("outage", intervals.proportion(outages, runs)),
            # Without a wait there is no time without service.
            **_columns("unavailable_us", _mean_of(group["unavailable_produce_us"].fillna(0))),
            **_percentiles(group),
            **_columns("throughput", _mean_of(group["acked"] / seconds)),
            **_columns("cross_rack_bytes", _mean_of(group["cross_rack_bytes"])),
            **_columns("disk_bytes", _mean_of(group["disk_bytes"])),
            "replicas": int(group["replicas"].iloc[0]),
            "promised": int(group["promised"].iloc[0]),
        }

    def _repr_html_(self) -> str:
        rows = rows_of(self.configurations)
        own = {"probability": probability, "spell": spell, "three": three}
        return render("analysis.sweep", "results.html", sweep=self, rows=rows, **own)


class Cell(NamedTuple):
    """One of the three numbers of a configuration: its colour and its words."""

    level: str
    text: str


def three(row: dict[Hashable, Any]) -> list[Cell]:
    """Lost, down and slow in the worst of a configuration's runs, coloured as for one run.

    Source: :mod:`sim.scenario.run.answer`.
    """
    lost = int(row["worst_lost"])
    normal, fault = (row[f"worst_slow_{name}_us"] for name in ("normal", "fault"))
    both = [value for value in (normal, fault) if value is not None and not pd.isna(value)]
    return [
        Cell("red" if lost else "green", f"{lost:,} records" if lost else "nothing"),
        Cell(level_of(int(row["worst_down_us"])), short(row["worst_down_us"])),
        Cell(
            level_of(int(max(both))) if both else "amber",
            ", in a fault ".join(short(value) for value in both) or "nothing acknowledged",
        ),
    ]


def probability(row: dict[Hashable, Any], name: str, hits: str) -> str:
    """A probability with its interval, in per cent; below 3/n without a hit."""
    if not row["runs"]:
        return "no run"
    if not row[hits]:
        return f"none in {row['runs']:,} (below {percent(min(1.0, 3 / row['runs']))})"
    low, high = percent(row[f"{name}_low"]), percent(row[f"{name}_high"])
    return f"{percent(row[name])} ({low} to {high})"


def percent(share: float) -> str:
    """A share in per cent, to three digits."""
    return f"{100 * share:.3g} %"


def spell(row: dict[Hashable, Any], name: str) -> str:
    """A duration of a row, with its interval if it has one."""
    value = row.get(name)
    if value is None or pd.isna(value):
        return "not measured"
    half = row.get(f"{name}_high")
    if half is None or pd.isna(half) or not np.isfinite(half):
        return short(value)
    return f"{short(value)} ± {short(half - value)}"


def _columns(name: str, found: Estimate) -> dict[str, object]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def _mean_of(values: pd.Series) -> Estimate:
    return intervals.mean([float(value) for value in values])


def _worst(group: pd.DataFrame) -> dict[str, object]:
    """The three numbers of the worst run; a configuration is as good as its worst seed."""
    found = {f"worst_{name}": group[column].max() for name, column in _OF_WORST.items()}
    return {name: None if pd.isna(value) else int(value) for name, value in found.items()}


def _percentiles(group: pd.DataFrame) -> dict[str, object]:
    """Percentiles of all records of all runs, in microseconds."""
    columns = (group["latency_us"], group["latency_records"])
    values, counts = (np.concatenate([np.asarray(each, np.int64) for each in c]) for c in columns)
    if not len(values):
        return dict.fromkeys((*QUANTILES, "max"))
    shares = list(QUANTILES.values())
    found = np.quantile(values, shares, weights=counts, method="inverted_cdf")
    return {**dict(zip(QUANTILES, map(int, found), strict=True)), "max": int(values.max())}


def _undominated(frame: pd.DataFrame) -> list[bool]:
    """Configurations that no other one equals in everything and betters in something."""
    points = frame[list(OBJECTIVES)].astype(float).to_numpy()
    known = ~np.isnan(points).any(axis=1)
    return [
        bool(known[i])
        and not any(
            known[j] and (points[j] <= points[i]).all() and (points[j] < points[i]).any()
            for j in range(len(points))
        )
        for i in range(len(points))
    ]
