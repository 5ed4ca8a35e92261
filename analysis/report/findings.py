"""All findings of one run's report, computed by Spark, mostly, and small enough for memory.

Records and rows of the trace stay in Spark, or are read a row group at a time: of those that gaps
in service need, a few numbers are held. Results are bounded by partitions, servers, topics, latency
buckets and the bins of a time axis.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from analysis.report import client_times, groups, latency, messages, states
from analysis.report.fault_windows import FaultWindow, end_of, fault_windows
from analysis.report.progress import STEPS, Progress, Steps, silent
from analysis.spark import histogram, tables
from analysis.spark.parallel import parallel
from analysis.verify import (
    acknowledgements,
    availability,
    connecting,
    durability,
    inputs,
    mirroring,
    processing,
    records,
    run_data,
    sharing,
    survivors,
)
from analysis.verify.inputs import Inputs
from analysis.verify.run_files import RunFiles, open_run
from sim.units import SECOND, Micros

_MOST_BINS: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawable:
    """Frames and bounds of the figures, known before the fates of records are."""

    end_us: Micros
    """Latest instant of the trace's client, load and fault tables."""
    width_us: Micros
    """Width of a bin of the time axes."""
    frames: dict[str, pd.DataFrame]
    """Small tables by name, written to the report's ``tables`` directory."""
    faults: tuple[FaultWindow, ...]
    is_traced_in_detail: bool
    """True if the tables of level ``detail`` are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings(Drawable):
    """Numbers and small frames; instants and durations are microseconds."""

    files: RunFiles
    fine_us: Micros
    """Width of a column of the heat maps; it divides ``width_us``."""
    topics: dict[str, dict[str, int]]
    """By topic, the numbers of :data:`analysis.verify.durability.COUNTS`."""
    examples: dict[str, list[dict[str, object]]]
    unreadable: pd.DataFrame
    """``[broker, topic, partition, status, batches, size_bytes]``."""
    latency_us: dict[str, dict[str, float]]
    """``produce`` and ``end_to_end``: percentiles; empty where nothing was measured."""
    processing: dict[str, int] = field(default_factory=dict)
    """Of tasks: :data:`analysis.verify.processing.COUNTS`; empty where there are none."""
    sharing: dict[str, int] = field(default_factory=dict)
    """Of share groups: :data:`analysis.verify.sharing.COUNTS`; empty without any."""
    mirroring: dict[str, int] = field(default_factory=dict)
    """Of mirrors: :data:`analysis.verify.mirroring.COUNTS`; empty where there are none."""
    connecting: dict[str, int] = field(default_factory=dict)
    """Of connectors: :data:`analysis.verify.connecting.COUNTS`; empty where there are none."""
    answers: Mapping[str, int] = field(default_factory=dict)
    """:data:`analysis.verify.acknowledgements.COUNTS`; empty where the trace lacks details."""
    other_answers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The same of the run's other clusters, by their aliases."""
    inputs: Inputs = field(default_factory=Inputs)
    """Shared inputs of both judges, compared with the disks."""

    @property
    def totals(self) -> dict[str, int]:
        """The topics' numbers added up."""
        return {
            name: sum(topic[name] for topic in self.topics.values()) for name in durability.COUNTS
        }


def gather(
    spark: SparkSession,
    files: RunFiles,
    scratch: Path,
    report: Progress,
    meanwhile: Callable[[], None] = lambda: None,
    draw: Callable[[Drawable], None] = lambda _: None,
) -> Findings:
    """Computes everything.

    Args:
        spark: The session.
        files: The run.
        scratch: Directory for the decoded survivors, kept as a table of the report.
        report: Called with each step as it begins, and how many of all have begun.
        meanwhile: Called once while Spark works.
        draw: Called once with what figures show, while Spark still counts records.

    Raises:
        SimulationError: If the trace is of another version or not complete.
    """
    return _Gathering(spark, files, scratch, Steps(report, STEPS)).findings(meanwhile, draw)


class _Gathering:
    """One run's tables, read once, and the steps over them."""

    def __init__(self, spark: SparkSession, files: RunFiles, scratch: Path, steps: Steps) -> None:
        self._spark = spark
        self._files = files
        self._scratch = scratch
        self._steps = steps
        self._processing: dict[str, int] = {}
        self._mirroring: dict[str, int] = {}
        self._connecting: dict[str, int] = {}
        self._batches = self._table("client_batches")
        self._reads = self._table("reads")
        self._faults = tables.small(files.directory, "faults")
        self._end_us = end_of(files.directory, self._faults)
        self._width_us = SECOND * max(1, -(-self._end_us // (SECOND * _MOST_BINS)))
        self._fine_us = latency.fine_width(self._width_us, self._end_us)

    def _table(self, name: str) -> DataFrame:
        return tables.read(self._spark, self._files.directory, name)

    def _is_empty(self, name: str) -> bool:
        return tables.is_empty(self._files.directory, name)

    def _held(self, frame: DataFrame) -> DataFrame:
        return tables.held(self._spark, frame)

    def _small(self, name: str) -> pd.DataFrame:
        return tables.small(self._files.directory, name)

    def findings(self, meanwhile: Callable[[], None], draw: Callable[[Drawable], None]) -> Findings:
        with parallel(self._spark) as start:
            fates = start(self._durability)
            judges = start(self._judges)
            meanwhile()
            # Without Spark: no part waits for it.
            latency_us, distributions = self._record_latency()
            over_time = self._states()
            drawable = self._drawable(distributions | over_time)
            draw(drawable)
            judged = fates.result()
            answers, other_answers, compared, shared = judges.result()
        return Findings(
            **{each.name: getattr(drawable, each.name) for each in fields(drawable)},
            files=self._files,
            fine_us=self._fine_us,
            topics=judged.topics,
            examples=judged.examples,
            unreadable=judged.unreadable,
            latency_us=latency_us,
            processing=self._processing,
            mirroring=self._mirroring,
            sharing=shared,
            connecting=self._connecting,
            answers=answers,
            other_answers=other_answers,
            inputs=compared,
        )

    def _drawable(self, frames: dict[str, pd.DataFrame]) -> Drawable:
        return Drawable(
            end_us=self._end_us,
            width_us=self._width_us,
            frames=frames,
            faults=fault_windows(self._faults, self._end_us),
            is_traced_in_detail=tables.is_written(self._files.directory, "requests"),
        )

    def _states(self) -> dict[str, pd.DataFrame]:
        frames = self._stages() | self._availability() | self._cluster()
        return frames | self._messages(frames["timeline"])

    def _judges(
        self,
    ) -> tuple[Mapping[str, int], Mapping[str, Mapping[str, int]], Inputs, dict[str, int]]:
        self._steps.begin("comparing the acknowledgements of brokers with those of producers")
        has_shared = not self._is_empty("share_states")
        shared = sharing.counts(self._table("share_states")) if has_shared else {}
        answers = self._answers(self._files.directory)
        return answers, self._other_answers(), self._inputs(), shared

    def _inputs(self) -> Inputs:
        self._steps.begin("comparing the inputs of both judges with the disks")
        return inputs.check(self._files.directory)

    def _answers(self, directory: Path) -> Mapping[str, int]:
        """Records on which brokers and producers differ; empty without brokers' rows."""
        if not tables.is_written(directory, "requests"):
            return {}
        return acknowledgements.counts(directory)

    def _other_answers(self) -> Mapping[str, Mapping[str, int]]:
        found = {
            directory.name: self._answers(directory)
            for directory in sorted((self._files.directory / "clusters").glob("*/"))
            if (directory / "trace").is_dir()
        }
        return {alias: numbers for alias, numbers in found.items() if numbers}

    def data(self) -> tuple[Sequence[survivors.ReplicaFiles], run_data.RunData]:
        """Numbers of records from the replicas' files and the trace."""
        self._steps.begin("reading the replicas' segment files")
        run = self._files.directory
        replicas = survivors.replicas(run)
        place = self._scratch / "survivors.parquet"
        return replicas, run_data.gather(self._spark, run, replicas, place)

    def _connectors(
        self, replicas: Sequence[survivors.ReplicaFiles], data: run_data.RunData
    ) -> None:
        """Numbers of all connectors together."""
        tasks = self._table("connector_tasks")
        if self._is_empty("connector_tasks"):
            return
        self._steps.within("comparing the deliveries of connectors with their inputs")
        sources = tasks.where("kind = 'source'").select("topics").distinct()
        written = [str(row["topics"]) for row in sources.collect()]
        self._connecting = connecting.counts(
            tasks,
            self._table("external_logs"),
            self._table("external_writes"),
            durability.leader_runs(data),
            processing.origins(self._spark, replicas, written),
        )

    def _mirrors(self) -> dict[str, int]:
        """Numbers of all mirrors together; their clusters' directories are below this run's."""
        mirrors = self._files.scenario.get("mirrors")
        total: dict[str, int] = {}
        for mirror in mirrors if isinstance(mirrors, list) else ():
            self._steps.within(f"comparing what mirror {mirror['name']} copied with its originals")
            directory = self._files.directory / "clusters" / str(mirror["to"])
            scratch = self._scratch / "clusters" / str(mirror["to"])
            scratch.mkdir(parents=True, exist_ok=True)
            other = _Gathering(self._spark, open_run(directory), scratch, Steps(silent, 0))
            found = mirroring.counts(other.mirrored(mirror, self._batches, self._reads))
            total = {name: total.get(name, 0) + number for name, number in found.items()}
        return total

    def mirrored(
        self, mirror: Mapping[str, object], batches: DataFrame, reads: DataFrame
    ) -> mirroring.Mirrored:
        """A mirror that writes to this cluster; batches and reads are the source cluster's."""
        replicas, data = self.data()
        copies = self._table("mirrored").where(f.col("mirror") == str(mirror["name"]))
        identity = copies.select("topic", "producer_index").distinct().first()
        topic = "" if identity is None else str(identity["topic"])
        groups = mirror.get("groups")
        return mirroring.Mirrored(
            str(mirror["topic"]),
            topic,
            -1 if identity is None else int(identity["producer_index"]),
            tuple(str(group) for group in groups) if isinstance(groups, list) else (),
            batches,
            reads,
            self._reads,
            self._table("positions"),
            durability.leader_runs(data),
            processing.origins(self._spark, replicas, [topic]),
        )

    def _durability(self) -> records.Records:
        replicas, data = self.data()
        self._steps.begin("comparing acknowledgements with survivors")
        found = records.judged(data, self._held)
        tasks = self._table("tasks")
        if not self._is_empty("tasks"):
            self._steps.within("comparing the outputs of tasks with their inputs")
            written = [str(row["output"]) for row in tasks.select("output").distinct().collect()]
            named = processing.origins(self._spark, replicas, written)
            self._processing = processing.counts(tasks, durability.leader_runs(data), named)
        self._connectors(replicas, data)
        self._mirroring = self._mirrors()
        return found

    def _record_latency(self) -> tuple[dict[str, dict[str, float]], dict[str, pd.DataFrame]]:
        self._steps.begin(
            "latency from the intended instant to the acknowledgement, and to the reader"
        )
        summaries: dict[str, dict[str, float]] = {}
        frames: dict[str, pd.DataFrame] = {}
        counted = client_times.latencies(self._files.directory, self._fine_us)
        steps = self._width_us // self._fine_us
        for name, (fine, by_topic) in counted.items():
            coarse = fine.assign(bin=(fine["bin"] // steps).astype("int32"))
            whole = histogram.percentiles(fine, [])
            spread = fine.groupby("bucket", as_index=False).agg({"records": "sum", "top_us": "max"})
            frames[f"{name}_latency_spread"] = spread
            frames[f"{name}_latency_by_topic"] = histogram.percentiles(by_topic, ["topic"])
            frames[f"{name}_latency_over_time"] = histogram.percentiles(coarse, ["bin"])
            frames[f"{name}_latency_bands"] = histogram.percentiles(fine, ["bin"])
            frames[f"{name}_latency_heat"] = latency.heat(fine)
            columns = (*histogram.QUANTILES, "max", "mean", "records")
            rows = whole.to_dict("records")
            summaries[name] = {key: float(rows[0][key]) for key in columns} if rows else {}
        return summaries, frames

    def _stages(self) -> dict[str, pd.DataFrame]:
        self._steps.begin("latency by stage")
        run, width_us = self._files.directory, self._width_us
        spent = client_times.stages(run, width_us)
        return {
            "outcomes": client_times.outcomes(run, width_us),
            "stages": histogram.percentiles(spent, ["stage"]),
            "stages_over_time": histogram.percentiles(spent, ["bin", "stage"]),
        }

    def _availability(self) -> dict[str, pd.DataFrame]:
        self._steps.begin("gaps in service")
        found = availability.notable(availability.gaps(self._files.directory))
        return {
            f"{side}_gaps": found[found["side"] == side].drop(columns="side").reset_index(drop=True)
            for side in ("produce", "fetch")
        }

    def _cluster(self) -> dict[str, pd.DataFrame]:
        self._steps.begin("replication, load and lag")
        files = self._files
        found = states.frames(files.directory, files.card, self._end_us, self._width_us)
        return found | self._groups()

    def _messages(self, spans: pd.DataFrame) -> dict[str, pd.DataFrame]:
        self._steps.begin("messages between nodes")
        nodes = messages.nodes(self._files.directory)
        seconds = messages.notable(spans, self._faults["t_us"].tolist())
        shown = messages.kept(self._files.directory, nodes, seconds, self._end_us)
        return {"message_nodes": nodes, "messages": shown}

    def _groups(self) -> dict[str, pd.DataFrame]:
        owned = self._small("assignments").query("group != ''")
        members, owners = groups.memberships(
            owned,
            self._small("revocations"),
            self._small("node_states"),
            self._end_us,
        )
        found = {"group_members": members, "group_owners": owners}
        found["rebalances"] = groups.rebalances(self._small("groups"), self._end_us)
        return found
