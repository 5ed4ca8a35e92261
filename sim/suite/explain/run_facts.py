"""Rows of a trace about one record: when it was made, who held it and when, who led.

A record is known as its producer numbers it, and an offset leads to it. Who holds it is followed
from appends, truncations, recoveries, cleanings and log starts: nothing is taken from the verdict.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

from sim.errors import SimulationError
from sim.faults.registry import KINDS
from sim.ids import server_name
from sim.scenario.loader import load
from sim.scenario.scenario import Scenario
from sim.suite.explain.subject import Copy, Subject
from sim.trace.kept import check_kept
from sim.trace.run_files import ENDED_CARD, ENDED_VERDICT, read_mapping, read_part
from sim.trace.schema import BY_NAME
from sim.units import SECOND, Micros

Row: TypeAlias = Mapping[str, Any]
"""One row of a trace table, by column."""

_BY_NUMBER: Final = re.compile(r"(.+):(.+)-(\d+):(\d+)", re.ASCII)
_BY_OFFSET: Final = re.compile(r"(.+)-(\d+)@(\d+)", re.ASCII)
_ALLOWED: Final = "PRODUCER:TOPIC-PARTITION:NUMBER or TOPIC-PARTITION@OFFSET"

LOOK_BACK_US: Final[Micros] = 15 * SECOND
"""Faults and changes so long before the record are part of its story."""

RECORD_KINDS: Final = ("lost_acked", "divergent", "duplicated", "reordered")
"""Subjects in order, if none is named and the scenario expects nothing."""

TASK_KINDS: Final = ("unprocessed", "reprocessed")
"""Defects of a task's outputs; after the records themselves."""

OUTAGE_US: Final[Micros] = SECOND
"""A partition that serves nobody for less waits for an answer, a flush or a full batch: that is
latency, unless an expectation of the scenario says otherwise."""

DAMAGES: Final = {name: kind.damage for name, kind in KINDS.items() if kind.damage}
"""Faults after which the platter has other bytes than were written."""

COPIES_TAKEN: Final = tuple(name for name, kind in KINDS.items() if kind.takes_copies)
"""Faults after which logs are empty, or not there."""

_DAMAGES_OF_DISKS: Final = (*DAMAGES, *COPIES_TAKEN)

_OF_OUTAGES: Final = ("unavailable.produce.max", "offline.max")
"""Expectations about partitions that nobody can write to."""


class RunFacts:
    """A run directory.

    Raises:
        SimulationError: If it is none, the run did not come to its end, or a file is damaged.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        check_kept(directory, "trace")
        try:
            self.card = read_mapping(directory / "run.json", ENDED_CARD)
            self.verdict = read_mapping(directory / "verdict.json", ENDED_VERDICT)
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
    def is_real(self) -> bool:
        """True if real processes ran (``logquake rehearse``): no seed brings the same run again."""
        return bool(self.card.get("real", False))

    @property
    def end_us(self) -> Micros:
        """End of the run."""
        return int(self.card["simulated_us"])

    def rows(self, table: str, subject: Subject | None = None) -> list[Row]:
        """Rows of a table in order of time, of the subject's partition if one is given.

        Raises:
            SimulationError: If a part of it is damaged.
        """
        filters: list[tuple[str, str, Any]] = []
        if subject is not None:
            filters = [("topic", "=", subject.topic), ("partition", "=", subject.partition)]
        found: list[Row] = []
        for part in sorted((self.directory / "trace" / table).glob("*.parquet")):
            found += read_part(BY_NAME[table], part, filters).to_pylist()
        return found

    def pick(self, named: str = "") -> Subject:
        """The record that is named; or the first thing that went wrong, or took longest.

        Raises:
            SimulationError: If it is not known.
        """
        if named:
            return self._named(named)
        spoken_of = [line.name for line in self.scenario.expect if line.name in RECORD_KINDS]
        for kind in dict.fromkeys([*spoken_of, *RECORD_KINDS, *TASK_KINDS]):
            for subject in self.subjects(kind):
                return subject
        gap, unread = self._longest_gap(), self._longest_unread()
        failed = [e["name"] for e in self.verdict["expectations"] if not e["held"]]
        missed_one = gap is not None and bool(set(failed) & set(_OF_OUTAGES))
        longest = 0 if gap is None else gap.for_us
        if unread is not None and not missed_one and unread.for_us >= longest + OUTAGE_US:
            return unread
        if gap is not None and (gap.for_us >= OUTAGE_US or missed_one):
            return gap
        ended = self._aborted()
        if ended is not None:
            return ended
        if gap is None:
            raise SimulationError(f"{self.directory}: nothing was sent, and nothing went wrong")
        return replace(gap, kind="wait")

    def subjects(self, kind: str) -> Iterator[Subject]:
        """Examples of a kind, as the verdict has them, the first one first."""
        for each in self.verdict["examples"].get(kind, ()):
            who = (each.get("producer", ""), each.get("record", -1), each["offset"])
            yield Subject(kind, each["topic"], each["partition"], *who)
        for each in self.verdict.get("processing", {}).get("examples", {}).get(kind, ()):
            yield self._input(kind, each)

    def _longest_gap(self) -> Subject | None:
        gaps = [
            (report["produce_us"], name, report["produce_from_us"])
            for name, report in self.verdict["availability"]["partitions"].items()
            if "produce_us" in report
        ]
        if not gaps:
            return None
        length, name, start = max(gaps)
        topic, _, number = name.rpartition("-")
        return Subject("outage", topic, int(number), from_us=start, for_us=length)

    def _longest_unread(self) -> Subject | None:
        """The consumers' longest outage."""
        for each in self.verdict["answer"]["down"]["worst"]:
            if each["what"] == "consume":
                topic, _, number = each["of"].rpartition("-")
                since, length = each["from_us"], each["max_us"]
                return Subject("unread", topic, int(number), from_us=since, for_us=length)
        return None

    def _aborted(self) -> Subject | None:
        """The first record of the first transaction that an error ended."""
        for row in self.rows("transaction_outcomes"):
            if row["outcome"] == "committed" or row["error"] == "NONE":
                continue
            for part in self.rows("transaction_records"):
                if all(part[name] == row[name] for name in ("producer", "transaction")):
                    place = (part["topic"], part["partition"], part["producer"])
                    story = Story(self, Subject("aborted", *place, part["first_record"]))
                    return replace(story.subject, offset=story.offset)
        return None

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

    def _named(self, named: str) -> Subject:
        if match := _BY_NUMBER.fullmatch(named):
            subject = Subject("", match[2], int(match[3]), match[1], int(match[4]))
        elif match := _BY_OFFSET.fullmatch(named):
            subject = Subject("", match[1], int(match[2]), offset=int(match[3]))
        else:
            raise SimulationError(f"RECORD: found {named!r}; allowed: {_ALLOWED}")
        story = Story(self, subject)
        if story.batch is None and not story.copies:
            raise SimulationError(
                f"RECORD: {named}: the run has no such record; producers are "
                f"{', '.join(self.card['producers'])}"
            )
        return story.settled()


class Story:
    """All rows that matter to one subject."""

    def __init__(self, facts: RunFacts, subject: Subject) -> None:
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
        """Outcome of the record at its producer."""
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
    def appends(self) -> list[Row]:
        """Appends to the partition's logs, in order of time."""
        return self._appends

    @property
    def offset(self) -> int:
        """Offset at which a log had it first; -1 if none ever had it."""
        return self.copies[0].offset if self.copies else -1

    @property
    def window(self) -> tuple[Micros, Micros]:
        """Span of the outage; or until the record's producer learned its outcome."""
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
    def transaction(self) -> Row | None:
        """Outcome, at its producer, of the transaction in which the record was sent."""
        subject = self.subject
        for part in self.facts.rows("transaction_records", subject):
            is_its = part["producer"] == subject.producer
            if is_its and part["first_record"] <= subject.record <= part["last_record"]:
                for row in self.facts.rows("transaction_outcomes"):
                    if all(part[name] == row[name] for name in ("producer", "transaction")):
                        return row
        return None

    @cached_property
    def outputs(self) -> list[Row]:
        """Outputs that tasks made of the record, in order of time."""
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
        """Last leader; -1 for nobody."""
        leaders = [row["leader"] for row in self.changes if row["leader"] >= 0]
        return leaders[-1] if leaders else -1

    def leader_at(self, at: Micros) -> int:
        """Leaders, as the controller had committed them."""
        leaders = [row["leader"] for row in self.changes if row["t_us"] <= at]
        return leaders[-1] if leaders else -1

    def in_sync_at(self, at: Micros) -> list[int]:
        """The ISR, as the controller had committed it."""
        found = [row["in_sync"] for row in self.changes if row["t_us"] <= at]
        return [int(word) for word in found[-1].split(",") if word] if found else []

    def holds(self, broker: int, at: Micros) -> bool:
        """True if a broker's log had the record."""
        return any(copy.broker == broker and copy.holds_at(at) for copy in self.copies)

    def is_down(self, broker: int, low: Micros, high: Micros) -> bool:
        """True if a broker's process was not at work at some time."""
        rows = [row for row in self.states if row["node"] == server_name(broker)]
        before = [row["state"] for row in rows if row["t_us"] <= low][-1:]
        during = [row["state"] for row in rows if low < row["t_us"] <= high]
        return any(
            each in ("crashed", "powered_off", "paused", "stopped") for each in (*before, *during)
        )

    def damage_of(self, copy: Copy) -> Row | None:
        """The fault that took a copy's bytes from the platter, or changed them.

        A later power loss takes what had been written since: then it is not the damage.
        """
        where = f"{self.subject.topic}-{self.subject.partition}"
        until = self._dark_until(copy)
        found = None
        for fault in self.faults:
            at, kind = fault["began_us"], fault["kind"]
            if at is None or not until <= at <= (copy.until_us or 0) or at < copy.since_us:
                continue
            is_its = copy.name in fault["resolved"].split(", ") and fault["took_effect"]
            is_here = kind not in DAMAGES or where in fault["effect"]
            if kind in _DAMAGES_OF_DISKS and is_its and is_here:
                found = fault
        return found

    def went_dark(self, copy: Copy) -> bool:
        """True if its host lost power while it had the copy."""
        return self._dark_until(copy) > -1 << 62

    def _dark_until(self, copy: Copy) -> Micros:
        """The last loss of power of its host before a copy ended; the far past for none."""
        return max(
            (
                row["t_us"]
                for row in self.states
                if row["node"] == copy.name
                and row["state"] == "powered_off"
                and copy.since_us <= row["t_us"] <= (copy.until_us or 0)
            ),
            default=-1 << 62,
        )

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
        if self.transaction is not None and self.transaction["outcome"] in ("aborted", "fenced"):
            kind = "aborted"
        place = (subject.topic, subject.partition, subject.producer, subject.record)
        return Subject(kind, *place, self.offset if subject.offset < 0 else subject.offset)

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
        """Instant and manner in which a log lost what it had at an offset."""
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
            (row["t_us"], "hole")
            for row in self.facts.rows("log_holes", self.subject)
            if row["broker"] == broker and row["from_offset"] <= offset < row["to_offset"]
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
