"""An expectation compares with the verdict, and never holds for what was not measured."""

from sim.checking.scope import Scope
from sim.scenario.expect.bounds import VOCABULARY, evaluate, parse

VERDICT = {
    "records": {name: 0 for name, (unit, _) in VOCABULARY.items() if unit == "records"},
    "latency_us": {
        "produce": {"p50": 1_000, "p90": 2_000, "p99": 3_000, "p999": 4_000, "max": 5_000},
        "end_to_end": {"p50": 1_000, "p90": 2_000, "p99": 3_000, "p999": 4_000, "max": 5_000},
    },
    "readers": dict.fromkeys(
        [
            "resurrected",
            "undelivered",
            "delivered_twice",
            "skipped_by_reset",
            "removed_unread",
            "read_lost",
            "read_aborted",
        ],
        0,
    ),
    "processing": {"unprocessed": 0, "reprocessed": 0, "orphaned": 0},
    "connecting": {"missing": 0, "duplicated": 0, "orphaned": 0},
    "sharing": {"accepted": 0, "rejected": 0, "archived": 0, "unfinished": 0},
    "availability": {"produce_max_us": 9_000_000, "fetch_max_us": 8_000_000, "offline_max_us": 0},
    "divergence": {},
    "throttling": {"max_us": 1_000_000},
    "balance": {"replicas_spread": 0, "leaders_spread": 0},
    "consumer_errors": {"consumers": 0},
    "heaps": {"exhausted": 0, "used_max_percent": 0},
    "changes": {"quorum_epochs": 0, "controller_changes": 0, "leader_epochs": 0, "isr_min": 0},
    "throughput": {"records_per_s": 0, "bytes_per_s": 0},
    "keys": {"live": 0, "stale": 0},
    "mirroring": {
        **dict.fromkeys(["missing", "duplicated", "skipped", "reread"], 0),
        "away_max_us": 7_000_000,
    },
}
SLICED = ("changes", "throughput", "keys")
GROUPS = {Scope(): {"groups": {"lag_max": 0}, **{name: VERDICT[name] for name in SLICED}}}
"""What the slice of the whole run tells of its groups, and of what is measured by slices alone."""


def held(name: str, asked: object, verdict: dict = VERDICT) -> bool:
    return evaluate([parse(name, asked)], verdict, GROUPS)[0]["held"]


def test_every_name_finds_its_number():
    for name, (unit, _) in VOCABULARY.items():
        asked = 0 if unit != "time" else "0us..1h"
        assert held(name, asked), name


def test_expectation_fails_beside_its_bound():
    assert held("lost_acked", 0)
    assert not held("lost_acked", "at least 1")
    assert held("produce.p99", "< 3001us")
    assert not held("produce.p99", "< 3ms")
    assert held("unavailable.produce.max", "7s..15s")
    assert not held("unavailable.produce.max", "< 9s")
    assert held("throttled.max", "1s")
    assert not held("throttled.max", "< 1s")


def test_what_was_not_measured_does_not_hold():
    empty = {"records": {}, "latency_us": {"produce": {"p99": None}}, "availability": {}}
    for name in ("lost_acked", "produce.p99", "unavailable.fetch.max"):
        asked = "at least 0" if VOCABULARY[name][0] == "records" else "at least 0s"
        line = evaluate([parse(name, asked)], empty)[0]
        assert (line["held"], line["found"], line["shown"]) == (False, None, "not measured")


def test_answer_says_name_asked_and_found():
    (line,) = evaluate([parse("acked", "at least 1")], {"records": {"acked": 1_234}})
    assert line == {
        "name": "acked", "asked": "at least 1", "found": 1_234, "shown": "1,234", "held": True,
        "where": "", "story": "",
    }  # fmt: skip
