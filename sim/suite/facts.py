"""What a trace says of one record: when it was made, who held it and when, who led.

A record is known as its producer numbers it, and an offset leads to it. Who holds it is followed
from appends, truncations, recoveries, cleanings and log starts: nothing is taken from the verdict.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow.parquet as pq

from sim.errors import SimulationError
from sim.ids import server_name
from sim.scenario.loader import load
from sim.scenario.model import Scenario
from sim.units import SECOND, Micros

Row: TypeAlias = Mapping[str, Any]
"""One row of a trace table, by column."""

_BY_NUMBER: Final = re.compile(r"(.+):(.+)-(\d+):(\d+)", re.ASCII)
_BY_OFFSET: Final = re.compile(r"(.+)-(\d+)@(\d+)", re.ASCII)
_ALLOWED: Final = "PRODUCER:TOPIC-PARTITION:NUMBER or TOPIC-PARTITION@OFFSET"

LOOK_BACK_US: Final[Micros] = 15 * SECOND
"""Faults and changes so long before the record are part of its story."""

_KINDS: Final = ("lost_acked", "divergent", "duplicated", "reordered")
"""What is explained first, if nothing is asked for and the scenario speaks of nothing."""

_TASK_KINDS: Final = ("unprocessed", "reprocessed")
"""What went wrong with a task's outputs; after the records themselves."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is to be explained: a record, an offset, or an outage."""

    kind: str
    """As in a verdict; or ``late`` (it came through), ``outage``, ``ok`` (never acknowledged)."""
    topic: str
    partition: int
    producer: str = ""
    record: int = -1
    offset: int = -1
    from_us: Micros = 0
    for_us: Micros = 0
    group: str = ""
    """Of the tasks that read it, if it is about their outputs."""

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition}"
        if self.record >= 0:
            return f"record {self.record} of {self.producer} in {where}"
        return f"offset {self.offset} of {where}" if self.offset >= 0 else where


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a record in one log, and what became of it."""

    broker: int
    offset: int
    epoch: int
    as_leader: bool
    since_us: Micros
    until_us: Micros | None
    """``None``: to the end."""
    ended_by: str = ""

    @property
    def name(self) -> str:
        """The broker's printed name."""
        return server_name(self.broker)

    def holds_at(self, at: Micros) -> bool:
        """Whether it was there."""
        return self.since_us <= at and (self.until_us is None or at < self.until_us)


class Facts:
    """A run directory.

    Raises:
        SimulationError: If it is none, or the run did not come to its end.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            self.card = json.loads((directory / "run.json").read_text(encoding="utf-8"))
            self.verdict = json.loads((directory / "verdict.json").read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise SimulationError(
                f"{error.filename}: not there; explain needs the directory of a run that ended"
            ) from None
        self.scenario: Scenario = load(directory / "scenario.yaml")

    @property
    def seed(self) -> int:
        """Of the run."""
        return int(self.card["seed"])

    @property
    def end_us(self) -> Micros:
        """When the run ended."""
        return int(self.card["simulated_us"])

    def rows(self, table: str, subject: Subject | None = None) -> list[Row]:
        """Rows of a table in order of time, of the subject's partition if one is given."""
        path = self.directory / "trace" / table
        if not path.is_dir() or not any(path.iterdir()):
            return []
        filters = None
        if subject is not None:
            filters = [("topic", "=", subject.topic), ("partition", "=", subject.partition)]
        found: list[Row] = pq.read_table(path, filters=filters).to_pylist()
        return found

    def pick(self, asked: str = "") -> Subject:
        """The record that is asked for; or the first thing that went wrong, or took longest.

        Raises:
            SimulationError: If it is not known.
        """
        if asked:
            return self._asked(asked)
        spoken_of = [line.name for line in self.scenario.expect if line.name in _KINDS]
        for kind in dict.fromkeys([*spoken_of, *_KINDS]):
            for example in self.verdict["examples"].get(kind, ()):
                return Subject(
                    kind,
                    example["topic"],
                    example["partition"],
                    example.get("producer", ""),
                    example.get("record", -1),
                    example["offset"],
                )
        for kind in _TASK_KINDS:
            for example in self.verdict.get("processing", {}).get("examples", {}).get(kind, ()):
                return self._input(kind, example)
        gaps = [
            (report["produce_us"], name, report["produce_from_us"])
            for name, report in self.verdict["availability"]["partitions"].items()
            if "produce_us" in report
        ]
        if not gaps:
            raise SimulationError(f"{self.directory}: nothing was sent, and nothing went wrong")
        length, name, start = max(gaps)
        topic, _, number = name.rpartition("-")
        return Subject("outage", topic, int(number), from_us=start, for_us=length)

    def _input(self, kind: str, example: Row) -> Subject:
        """The input record of which a task made too little, or too much."""
        producer = self.card["producers"][example["producer_index"]]
        group, place = example["group"], (example["partition"], producer, example["record"])
        topics = [t for task in self.rows("tasks") if task["group"] == group for t in
                  task["inputs"].split(",")]  # fmt: skip
        for topic in dict.fromkeys(topics):
            story = Story(self, Subject(kind, topic, *place))
            if story.copies:
                return Subject(kind, topic, *place, story.copies[0].offset, group=group)
        raise AssertionError(f"no log ever had the input record {place} of {group}")

    def _asked(self, asked: str) -> Subject:
        if match := _BY_NUMBER.fullmatch(asked):
            subject = Subject("", match[2], int(match[3]), match[1], int(match[4]))
        elif match := _BY_OFFSET.fullmatch(asked):
            subject = Subject("", match[1], int(match[2]), offset=int(match[3]))
        else:
            raise SimulationError(f"RECORD: found {asked!r}; allowed: {_ALLOWED}")
        story = Story(self, subject)
        if story.batch is None and not story.copies:
            raise SimulationError(
                f"RECORD: {asked}: the run has no such record; producers are "
                f"{', '.join(self.card['producers'])}"
            )
        return story.settled()


class Story:
    """All rows that matter to one subject."""

    def __init__(self, facts: Facts, subject: Subject) -> None:
        self.facts = facts
        self._producers: list[str] = facts.card["producers"]
        self._appends = facts.rows("appends", subject)
        if subject.record < 0 <= subject.offset:
            subject = self._named(subject)
        self.subject = subject
        self.changes = facts.rows("partition_changes", subject)
        self.watermarks = facts.rows("high_watermarks", subject)
        self.truncations = facts.rows("truncations", subject)
        self.recoveries = facts.rows("recoveries", subject)
        self.states = facts.rows("node_states")
        self.halts = facts.rows("halts")
        self.faults = facts.verdict["faults"]

    @cached_property
    def batch(self) -> Row | None:
        """What its producer learned of the record."""
        subject = self.subject
        for row in self.facts.rows("client_batches", subject):
            if row["producer"] == subject.producer and _has(row, subject.record):
                return row
        return None

    @cached_property
    def meant_us(self) -> Micros:
        """The instant at which the record was meant to be sent."""
        row = self.batch
        if row is None:
            return self.copies[0].since_us if self.copies else self.subject.from_us
        waited: int = row["latency_us"][self.subject.record - row["first_record"]]
        return int(row["t_us"]) - waited

    @property
    def window(self) -> tuple[Micros, Micros]:
        """From when to when it lasted: the outage; or until the record's producer was told."""
        subject, row = self.subject, self.batch
        if row is None:
            return subject.from_us, subject.from_us + subject.for_us
        return self.meant_us, row["t_us"]

    @property
    def replicas(self) -> list[str]:
        """Printed names of the partition's brokers, as assigned last."""
        if not self.changes:
            return []
        return [server_name(int(word)) for word in self.changes[-1]["replicas"].split(",")]

    @cached_property
    def copies(self) -> list[Copy]:
        """Every copy that ever was, in order of time."""
        found = []
        for row in self._appends:
            if self.subject.record >= 0:
                if not self._is_of_the_record(row):
                    continue
                offset = row["base_offset"] + self.subject.record - row["first_record"]
            else:
                offset = self.subject.offset
                if not row["base_offset"] <= offset <= row["last_offset"]:
                    continue
            until, why = self._end_of(row["broker"], offset, row["t_us"])
            found.append(
                Copy(
                    row["broker"], offset, row["leader_epoch"], row["as_leader"], row["t_us"],
                    until, why,
                )
            )  # fmt: skip
        return found

    @cached_property
    def outputs(self) -> list[Row]:
        """What tasks encoded of the record, in order of time."""
        subject = self.subject
        return [
            row
            for row in self.facts.rows("outputs")
            if (row["input_topic"], row["input_partition"]) == (subject.topic, subject.partition)
            and self._producers[row["input_producer"]] == subject.producer
            and 0 <= subject.record - row["input_record"] < -(-row["record_count"] // row["each"])
        ]

    @cached_property
    def commits(self) -> list[Row]:
        """Offsets that the group of tasks committed beyond the record, in order of time."""
        return [
            row
            for row in self.facts.rows("commits", self.subject)
            if row["group"] == self.subject.group
            and row["offset"] > self.subject.offset
            and row["error"] == "NONE"
        ]

    @cached_property
    def final_leader(self) -> int:
        """Who led last; -1 for nobody."""
        leaders = [row["leader"] for row in self.changes if row["leader"] >= 0]
        return leaders[-1] if leaders else -1

    def leader_at(self, at: Micros) -> int:
        """Who led, as the controller had committed it."""
        leaders = [row["leader"] for row in self.changes if row["t_us"] <= at]
        return leaders[-1] if leaders else -1

    def in_sync_at(self, at: Micros) -> list[int]:
        """The ISR, as the controller had committed it."""
        found = [row["in_sync"] for row in self.changes if row["t_us"] <= at]
        return [int(word) for word in found[-1].split(",") if word] if found else []

    def settled(self) -> Subject:
        """The subject with what became of it, from the copies in the final leader's log."""
        row, subject = self.batch, self.subject
        left = [c for c in self.copies if c.broker == self.final_leader and c.until_us is None]
        kind = "ok"
        if row is not None and row["outcome"] == "ok" and not left:
            kind = "lost_acked"
        elif len(left) > 1:
            kind = "duplicated"
        elif row is not None and row["outcome"] == "ok":
            kind = "late"
        offset = self.copies[0].offset if self.copies else -1
        place = (subject.topic, subject.partition, subject.producer, subject.record)
        return Subject(kind, *place, offset if subject.offset < 0 else subject.offset)

    def _named(self, subject: Subject) -> Subject:
        """An offset's record: the one that was written there last."""
        for row in reversed(self._appends):
            if row["base_offset"] <= subject.offset <= row["last_offset"]:
                if row["producer_index"] < 0 or subject.kind == "divergent":
                    return subject
                number = row["first_record"] + subject.offset - row["base_offset"]
                name = self._producers[row["producer_index"]]
                place = (subject.topic, subject.partition)
                return Subject(subject.kind, *place, name, number, subject.offset)
        return subject

    def _is_of_the_record(self, row: Row) -> bool:
        index = row["producer_index"]
        name = self._producers[index] if index >= 0 else ""
        return name == self.subject.producer and _has(row, self.subject.record)

    def _end_of(self, broker: int, offset: int, since: Micros) -> tuple[Micros | None, str]:
        """When a log lost what stood at an offset, and how."""
        ends: list[tuple[Micros, str]] = []
        for row in self.truncations:
            # A jump forward drops everything.
            is_cut = row["to_offset"] <= offset or row["to_offset"] > row["from_offset"]
            if row["broker"] == broker and is_cut and row["from_offset"] > offset:
                ends.append((row["t_us"], f"truncation:{row['reason']}"))
        ends += [
            (row["t_us"], "recovery")
            for row in self.recoveries
            if row["broker"] == broker and row["log_end_offset"] <= offset
        ]
        ends += [
            (row["t_us"], f"log start:{row['reason']}")
            for row in self.facts.rows("log_starts", self.subject)
            if row["broker"] == broker and row["to_offset"] > offset
        ]
        ends += [
            (row["t_us"], f"cleaner:{row['how']}")
            for row in self.facts.rows("log_contents", self.subject)
            if row["broker"] == broker
            and row["base_offset"] <= offset <= row["last_offset"]
            and offset - row["base_offset"] not in row["kept"]
        ]
        later = sorted(end for end in ends if end[0] > since)
        return later[0] if later else (None, "")


def _has(row: Row, record: int) -> bool:
    first: int = row["first_record"]
    return first <= record < first + int(row["record_count"])
