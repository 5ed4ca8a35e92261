"""Not a test: runs the scenarios of some seeds and says of each what happened and what broke.

Usage: python -m tests.swarm.swarm FIRST COUNT DIRECTORY. Prints one line of JSON for each seed.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sim.errors import InvariantBroken, SimulationError
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from tests.scenarios.run_kit import Ran
from tests.swarm.scenarios import HEALED_AT, Drawn, drawn

SECOND = 1_000_000


@dataclass
class Outcome:
    """What one seed led to."""

    seed: int
    frugal: bool
    broken: list[str] = field(default_factory=list)
    """Promises that were broken, and progress that was not made."""

    saw: dict[str, int] = field(default_factory=dict)
    """How often something rare happened."""


def outcome(seed: int, directory: Path) -> Outcome:
    """Run one seed's scenario in a directory that is removed again, unless something broke."""
    return judged(drawn(seed), seed, directory)


def judged(scenario: Drawn, seed: int, directory: Path) -> Outcome:
    """Run a scenario, and say what it led to."""
    text, frugal = scenario
    told = Outcome(seed, frugal)
    where = directory / f"seed-{seed}"
    try:
        run(load_text(text, f"swarm-{seed}"), out=where, level="facts")
    except (SimulationError, InvariantBroken) as error:
        told.broken.append(f"{type(error).__name__}: {error}")
        return told
    ran = Ran(where)
    told.broken += [*_unsafe(ran, frugal=frugal), *_stuck(ran, frugal=frugal)]
    told.saw = _rare(ran)
    if not told.broken:
        shutil.rmtree(where)
    return told


def _unsafe(ran: Ran, *, frugal: bool) -> Iterator[str]:
    """Records that are twice, out of order, gone, or not the same everywhere."""
    never = ["duplicated", "reordered", "divergent", *(["lost_acked"] if frugal else [])]
    for name in never:
        excused = _forgotten(ran) if name == "duplicated" else 0
        if name in ("divergent", "lost_acked"):
            excused = _in_holes(ran)
        found = _divergent(ran) if name == "divergent" else ran.records[name]
        if found > excused:
            yield f"{name}: {found}"
    if ran.verdict["internal_divergent"] > _in_holes(ran, internal=True):
        yield f"internal_divergent: {ran.verdict['internal_divergent']}"


def _divergent(ran: Ran) -> int:
    """The most records in which two brokers' logs differ, whose disks held only their own pages.

    A page of another file can be of whole batches with right checksums: a recovery keeps what fits.
    """
    foreign = {
        fault["resolved"]
        for fault in ran.rows("faults", kind="misdirected-write", phase="began", took_effect=True)
    }
    pairs: dict[str, int] = ran.verdict["divergence"]
    return max((n for pair, n in pairs.items() if not foreign & set(pair.split(", "))), default=0)


def _in_holes(ran: Ran, *, internal: bool = False) -> int:
    """Offsets that a power loss took from the ends of segments, and left what lay behind them.

    Kafka's recovery keeps both (``LogLoader.recoverLog``). Such a replica fetches from its log end
    on, is in sync there, and may lead: then what the others have in that place is lost.
    """
    lost = {
        (row["topic"], row["partition"], offset)
        for row in ran.rows("log_holes")
        if row["topic"].startswith("__") is internal
        for offset in range(row["from_offset"], row["to_offset"])
    }
    return len(lost)


def _forgotten(ran: Ran) -> int:
    """Records that a leader wrote again because it had been restarted in between.

    A snapshot keeps the last batch of a producer only. Of several that were not answered before the
    restart, all but the last are out of order then, and an idempotent producer begins a new epoch
    and sends them again (``ProducerStateManager.writeSnapshot``, ``TransactionManager.canRetry``).
    """
    written: dict[tuple[str, int, int], dict] = {}
    starts = ran.rows("recoveries")
    again = set()
    for row in ran.rows("appends", as_leader=True):
        for record in range(row["first_record"], row["first_record"] + row["record_count"]):
            place = row["topic"], row["partition"], record
            before = written.setdefault(place, row) if row["first_record"] >= 0 else row
            if before["producer_epoch"] < row["producer_epoch"] and any(
                before["t_us"] < start["t_us"] < row["t_us"] and start["broker"] == row["broker"]
                for start in starts
            ):
                again.add(place)
    return len(again)


def _stuck(ran: Ran, *, frugal: bool) -> Iterator[str]:
    """What does not go on after everything was healed."""
    last: dict[tuple[str, int], dict] = {}
    for row in ran.rows("partition_changes"):
        last[row["topic"], row["partition"]] = row
    gone = [] if frugal else [place for place, row in last.items() if _is_lost_for_good(row)]
    unknown = [] if gone else _unknown(ran)
    if unknown:
        yield f"unknown: {sum(row['record_count'] for row in unknown)}"
    for place, row in sorted(last.items()):
        if place in gone:
            continue
        missing = set(row["replicas"].split(",")) - set(row["in_sync"].split(","))
        if row["leader"] < 0 or not missing <= _damaged(ran, *place):
            yield f"{place}: led by {row['leader']}, ISR {row['in_sync']} of {row['replicas']}"
    ended = _ended(ran)
    for topic in sorted({topic for topic, _ in last if not topic.startswith("__")} - ended):
        if gone or any(_is_written_late(row) for row in ran.rows("client_batches", topic=topic)):
            continue
        yield f"no batch of {topic} begun after everything was healed was acknowledged"


def _damaged(ran: Ran, topic: str, partition: int) -> set[str]:
    """Brokers whose copy was damaged in a way that a recovery may take for good.

    No checksum covers a batch's epoch, nor that a page belongs here. Who then claims an epoch that
    no leader knows, or an end within a batch, fetches in vain for ever, in Kafka, too. A
    follower that meets an unreadable header while it truncates does not fetch before the next
    leader epoch (KIP-461).
    """
    kinds = ("corrupt-replica", "misdirected-write")
    return {
        fault["resolved"].removeprefix("broker-")
        for kind in kinds
        for fault in ran.rows("faults", kind=kind, phase="began", took_effect=True)
        if f"{topic}-{partition} on" in fault["effect"]
    }


def _unknown(ran: Ran) -> list[dict]:
    """Batches of which nobody knows, but for those of a transaction that is known to be aborted.

    A broker that was restarted remembers the last batch of a producer only, as its snapshots do: of
    several that lie there unanswered, all but the last are then out of order for good
    (``TransactionManager.canRetry``), and the application aborts.
    """
    aborted = ran.rows("transaction_outcomes", outcome="aborted")
    return [
        batch
        for batch in ran.rows("client_batches", outcome="unknown")
        if not any(
            end["producer"] == batch["producer"] and end["begun_us"] <= batch["t_us"] <= end["t_us"]
            for end in aborted
        )
    ]


def _is_lost_for_good(row: dict) -> bool:
    """Whether a partition waits for somebody to decide: all who had its records came back less."""
    return row["leader"] < 0 and not row["in_sync"] and not row["eligible"]


def _is_written_late(batch: dict) -> bool:
    """Whether a batch was acknowledged that its producer began after the heal.

    When its records were meant to be sent says nothing: where each append waits for a slow fsync, a
    producer falls behind its load and stays behind.
    """
    return batch["outcome"] == "ok" and batch["created_us"] > HEALED_AT * SECOND


def _ended(ran: Ran) -> set[str]:
    """Topics whose transactional application met a fatal error, as Kafka's ends then.

    A coordinator that does not know yet that it was replaced answers from what it remembers
    (``TransactionCoordinator.endTransaction``: INVALID_TXN_STATE); one whose log is lost does not
    know the producer at all (INVALID_PRODUCER_ID_MAPPING).
    """
    stopped = {row["node"] for row in ran.rows("node_states", state="stopped")}
    fatal = {
        row["producer"]
        for row in ran.rows("transaction_outcomes")
        if row["error"] in {"INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"}
        and row["producer"] in stopped
    }
    return {row["topic"] for row in ran.rows("client_batches") if row["producer"] in fatal}


def _rare(ran: Ran) -> dict[str, int]:
    return {
        "unclean start": len(ran.rows("recoveries", clean=False)),
        "fencing": sum(row["t_us"] > 0 for row in ran.rows("broker_states", state="fenced")),
        "ELR election": _elr_elections(ran),
        "divergence truncation": len(ran.rows("truncations", reason="diverging_epoch")),
        "controller fail-over": len({r["epoch"] for r in ran.rows("quorum", role="leader")}) - 1,
        "snapshot": sum(
            not file.name.startswith("00000000000000000000-")
            for file in (ran.directory / "disks").rglob("__cluster_metadata-0/*.checkpoint")
        ),
        "acknowledged": ran.records["acked"],
        "lost": ran.records["lost_acked"],
        "aborted": ran.records["aborted"],
        "offline for good": len(
            {
                (row["topic"], row["partition"])
                for row in ran.rows("partition_changes")
                if _is_lost_for_good(row)
            }
        ),
        "application ended": len(_ended(ran)),
    }


def _elr_elections(ran: Ran) -> int:
    """Leaders that came from the eligible leader replicas."""
    former: dict[tuple[str, int], dict] = {}
    found = 0
    for row in ran.rows("partition_changes"):
        place = row["topic"], row["partition"]
        before = former.get(place)
        if before is not None and row["leader"] not in (before["leader"], -1):
            found += str(row["leader"]) in before["eligible"].split(",")
        former[place] = row
    return found


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        sys.stdout.write(json.dumps(asdict(outcome(seed, Path(sys.argv[3])))) + "\n")
        sys.stdout.flush()
