"""Expectations of a scenario, compared with a verdict.

Names are those of the verdict: counts of records, percentiles of latency, longest gaps.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypedDict

from sim.checking.scope import EVERYTHING, Scope, pair_name
from sim.scenario.model.run import Expectation
from sim.scenario.text.problems import Problem, nearest
from sim.scenario.text.quantities import BoundUnit, QuantityError, parse_bound
from sim.units import show_duration

NOTHING_SLICED: Final[Mapping[Scope, Mapping[str, object]]] = {}
"""For expectations of which none is about a part of a run that a verdict does not have."""

_COUNTS: Final[Mapping[str, str]] = {
    "sent": "records handed to producers",
    "acked": "records whose producer was told that they are written",
    "failed": "records whose producer was told that they are not written",
    "unknown": "records whose producer never learned their fate",
    "survived": "records in the final leader's log",
    "lost_acked": "acknowledged records that are gone without a lawful reason",
    "removed": "acknowledged records that retention, DeleteRecords or a cleaner took away lawfully",
    "early_tombstones": "acknowledged tombstones that a cleaner took before their time",
    "aborted": "records sent in transactions that aborted",
    "aborted_visible": "records of aborted transactions that a commit marker covers",
    "aborted_read": "records of aborted transactions that a reader of committed data got",
    "undecided": "records in the final leader's log that wait for their transaction's marker",
    "torn_transactions": "transactions of which some acknowledged records are visible, others not",
    "unacked_present": "records that were not acknowledged and are in the log all the same",
    "duplicated": "extra copies of records in the final leader's log",
    "reordered": "records behind a later record of the same producer and partition",
    "divergent": "offsets at which two replicas differ",
}
READERS: Final[Mapping[str, str]] = {
    "resurrected": "keys that a reader of a compacted topic keeps: their tombstone was gone",
    "undelivered": "records in the log that a reader passed and was never given",
    "delivered_twice": "records given to a reader again",
    "skipped_by_reset": "records that auto.offset.reset, a seek or reset-offsets jumped over",
    "removed_unread": "records that retention took and a reader that passed them was never given",
    "read_lost": "records that a reader was given and that are gone without a lawful reason",
    "read_aborted": "records of aborted transactions that any reader was given",
}
_GROUPS: Final[Mapping[str, str]] = {
    "lag.max": "largest distance of a group from the end of a partition, sampled each second",
}
_PROCESSING: Final[Mapping[str, str]] = {
    "unprocessed": "outputs of visible input records that no reader of committed data can see",
    "reprocessed": "visible outputs of an input record beyond those that it asks for",
    "orphaned": "visible outputs whose input record is not in the log, or not any more",
}
SHARING: Final[Mapping[str, str]] = {
    "accepted": "records that members of share groups accepted",
    "rejected": "records that members of share groups rejected",
    "archived": "records that share groups gave up after too many deliveries",
    "unfinished": "records given to share groups that are none of these three in the end",
}
"""Of share groups: about all topics and groups together."""
_MIRRORING: Final[Mapping[str, tuple[BoundUnit, str]]] = {
    "mirror.missing": ("records", "acknowledged records of mirrored topics without a copy"),
    "mirror.duplicated": ("records", "copies of records beyond the first"),
    "mirror.skipped": (
        "records",
        "records that a group which moved to the other cluster passed by and never got",
    ),
    "mirror.reread": (
        "records",
        "deliveries of records to a group beyond the first, in both clusters",
    ),
    "mirror.away.max": (
        "time",
        "longest time from a group's last record in the source cluster to its first in the other",
    ),
}
_BALANCE: Final[Mapping[str, str]] = {
    "replicas.spread": "most replicas on a broker in service at the end, less the fewest on one",
    "leaders.spread": "most leaders on a broker in service at the end, less the fewest on one",
}
_HEAPS: Final[Mapping[str, tuple[BoundUnit, str]]] = {
    "heap.exhausted": ("brokers", "brokers that ended with OutOfMemoryError"),
    "heap.used.max": ("percent", "most of a broker's heap that could not be collected"),
}
_ENDED: Final[Mapping[str, tuple[BoundUnit, str]]] = {
    "consumers.ended": ("consumers", "consumers that ended because poll() raised an error"),
}
_CONNECTING: Final[Mapping[str, str]] = {
    "connector.missing": "external records that a source, or records that a sink, did not deliver",
    "connector.duplicated": "deliveries by connectors beyond those that are asked for",
    "connector.orphaned": "rows of sinks whose record is not in the log, or not any more",
}
_CHANGES: Final[Mapping[str, tuple[BoundUnit, str]]] = {
    "quorum.epochs": ("changes", "epochs that the metadata quorum began"),
    "controller.changes": ("changes", "times another server became the active controller"),
    "leader.epochs": ("changes", "most leader epochs that a partition began"),
    "isr.min": ("replicas", "fewest in-sync replicas of a partition"),
}
"""Of the run from zero, or of a window of it."""

_THROUGHPUT: Final[Mapping[str, tuple[BoundUnit, str]]] = {
    "throughput.records": ("records/s", "records acknowledged a second, until the workload ends"),
    "throughput.bytes": ("bytes/s", "bytes of acknowledged batches a second, likewise"),
}
_KEYS: Final[Mapping[str, tuple[BoundUnit, str]]] = {
    "keys.live": ("keys", "keys of compacted topics whose last record has a value at the end"),
    "keys.stale": (
        "keys",
        "keys of which an acknowledged record is lost and none that is later is there",
    ),
}
KEY_STATES: Final = tuple(_KEYS)
"""Of compacted topics, whose keys are in the trace."""

_SLICED: Final = (*_CHANGES, *_THROUGHPUT, *_KEYS)
"""Never in a verdict: measured where a scenario expects them."""

_PERCENTILES: Final = ("p50", "p90", "p99", "p999", "max")

VOCABULARY: Final[Mapping[str, tuple[BoundUnit, str]]] = {
    **{name: ("records", meaning) for name, meaning in _COUNTS.items()},
    **{name: ("records", meaning) for name, meaning in READERS.items()},
    **{name: ("records", meaning) for name, meaning in _PROCESSING.items()},
    **{name: ("records", meaning) for name, meaning in SHARING.items()},
    **{
        f"produce.{rank}": ("time", f"{rank} from the intended send to the acknowledgement")
        for rank in _PERCENTILES
    },
    **{
        f"end_to_end.{rank}": ("time", f"{rank} from the intended send to the consumer's poll")
        for rank in _PERCENTILES
    },
    "unavailable.produce.max": (
        "time",
        (
            "longest time in which records of a partition waited, or failed one after the other, "
            "and none was acknowledged"
        ),
    ),
    "unavailable.fetch.max": (
        "time",
        "longest time in which records of a partition waited and none was read",
    ),
    "offline.max": (
        "time",
        "longest time in which a partition had no leader, or a dead one (not with `raft`)",
    ),
    **{name: ("records", meaning) for name, meaning in _GROUPS.items()},
    "divergence": (
        "records",
        "offsets at which the logs of two brokers differ, for each pair that is named",
    ),
    **_MIRRORING,
    **{name: ("records", meaning) for name, meaning in _CONNECTING.items()},
    "throttled.max": ("time", "longest time for which a quota made a client wait"),
    **{name: ("replicas", meaning) for name, meaning in _BALANCE.items()},
    **_HEAPS,
    **_ENDED,
    **_CHANGES,
    **_THROUGHPUT,
    **_KEYS,
}
"""Every name that ``expect`` may have: its unit, and its meaning."""


Held = TypedDict(  # noqa: UP013 - `asked` is the verdict's key, and no name here
    "Held",
    {
        "name": str,
        "asked": str,
        "found": int | None,
        "shown": str,
        "held": bool,
        "where": str,
        "story": str,
    },
)
"""One expectation in ``verdict.json``; ``found`` is ``None`` when nothing was measured.

``where`` is the part of the run that it is about, empty for all of it. Of an expectation that did
not hold ``story`` says what was found first, and which fault was nearest, if that is known.
"""


def parse(name: str, given: object, scope: Scope = EVERYTHING) -> Expectation:
    """One number and its bound; :mod:`sim.scenario.expect.lines` reads whole entries.

    Raises:
        Problem: For an unknown name or an interval that cannot be read; its path is the name.
    """
    if name not in VOCABULARY:
        raise Problem(
            (name,),
            f"unknown expectation {name}",
            ", ".join(VOCABULARY),
            nearest(name, VOCABULARY),
        )
    try:
        bound = parse_bound(given, VOCABULARY[name][0])
    except QuantityError as error:
        raise Problem((name,), error.found, error.allowed) from None
    return Expectation(
        name, str(given).strip(), bound.low, bound.high, bound.low_open, bound.high_open, scope
    )


def evaluate(
    expect: Iterable[Expectation],
    verdict: Mapping[str, object],
    sliced: Mapping[Scope, Mapping[str, object]] = NOTHING_SLICED,
) -> list[Held]:
    """Compare each expectation with the verdict, in the scenario's order.

    An expectation about something that was never measured does not hold: a run without
    acknowledgements has no latency, and says nothing about it.

    Args:
        expect: Lines of the scenario.
        verdict: ``verdict.json`` as a mapping: ``records``, ``latency_us``, ``availability``.
        sliced: What slices report, by scope.
    """
    return [_evaluate(line, report_for(line, verdict, sliced)) for line in expect]


def report_for(
    line: Expectation,
    verdict: Mapping[str, object],
    sliced: Mapping[Scope, Mapping[str, object]] = NOTHING_SLICED,
) -> Mapping[str, object]:
    """The report with an expectation's number: the verdict, a part of it, or a slice."""
    scope = line.scope
    if needs_slice(line):
        return sliced.get(scope, {})
    if line.name == "divergence":
        pairs = verdict.get("divergence")
        return {"pair": pairs.get(pair_name(scope.brokers), 0) if isinstance(pairs, dict) else None}
    if scope.group:
        readers = verdict.get("readers")
        found = readers.get("by_reader", {}) if isinstance(readers, Mapping) else {}
        return {"readers": found.get(scope.group)}
    if not scope.topic:
        return verdict
    kind, key = "topics", scope.topic
    if scope.partition >= 0:
        kind, key = "partitions", f"{scope.topic}-{scope.partition}"
    parts = verdict.get(kind)
    return {"records": parts.get(key)} if isinstance(parts, Mapping) else {}


def needs_slice(line: Expectation) -> bool:
    """True if a verdict has not the number of its part of the run anyway."""
    scope = line.scope
    if line.name in READERS and scope.group:
        return False
    if line.name in (*_GROUPS, *_SLICED) or scope.has_window or scope.group or scope.producer:
        return True
    return bool(scope.topic) and line.name not in _COUNTS


_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: ("records", name) for name in _COUNTS},
    **{name: ("readers", name) for name in READERS},
    **dict.fromkeys(_GROUPS, ("groups", "lag_max")),
    **{name: ("processing", name) for name in _PROCESSING},
    **{name: ("sharing", name) for name in SHARING},
    **{name: ("mirroring", name.removeprefix("mirror.")) for name in _MIRRORING},
    **{name: ("connecting", name.removeprefix("connector.")) for name in _CONNECTING},
    **{name: ("balance", name.replace(".", "_")) for name in _BALANCE},
    "mirror.away.max": ("mirroring", "away_max_us"),
    "divergence": ("pair",),
    "offline.max": ("availability", "offline_max_us"),
    "throttled.max": ("throttling", "max_us"),
    **dict.fromkeys(_ENDED, ("consumer_errors", "consumers")),
    "heap.exhausted": ("heaps", "exhausted"),
    "heap.used.max": ("heaps", "used_max_percent"),
    **{name: ("changes", name.replace(".", "_")) for name in _CHANGES},
    **{name: ("throughput", f"{name.removeprefix('throughput.')}_per_s") for name in _THROUGHPUT},
    **{name: ("keys", name.removeprefix("keys.")) for name in _KEYS},
}
"""Path of an expectation's number in a verdict."""


def found_in(name: str, verdict: Mapping[str, object]) -> int | None:
    """The verdict's number for an expectation's name; ``None`` if it was not measured.

    Beside the :data:`_PLACES`, percentiles are ``latency_us[produce|end_to_end][rank]``, and gaps
    ``availability[produce_max_us|fetch_max_us]``.
    """
    place = _PLACES.get(name)
    if place is not None:
        return _number(verdict, *place)
    if name.startswith("unavailable."):
        return _number(verdict, "availability", f"{name.split('.')[1]}_max_us")
    subject, rank = name.split(".")
    return _number(verdict, "latency_us", subject, rank)


def _evaluate(line: Expectation, verdict: Mapping[str, object]) -> Held:
    found = found_in(line.name, verdict)
    unit = VOCABULARY[line.name][0]
    shown = "not measured"
    if found is not None:
        shown = show_duration(found) if unit == "time" else f"{found:,}"
    held = found is not None and line.holds(found)
    where = str(line.scope)
    return Held(
        name=line.name, asked=line.given, found=found, shown=shown, held=held, where=where, story=""
    )


def _number(verdict: Mapping[str, object], *keys: str) -> int | None:
    value: object = verdict
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value if isinstance(value, int) else None
