"""Findings of runs that never were: what pages show, without Spark."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from analysis.report.fault_windows import FaultWindow
from analysis.report.findings import Findings
from analysis.verify.durability import COUNTS
from analysis.verify.inputs import Difference, Inputs
from analysis.verify.run_files import RunFiles
from tests.analysis.synthetic import S

HOSTILE = "</script><img src=x onerror=\"console.error('ran')\"><b>'&amp;"
SPANS = ("track", "lane", "from_us", "to_us", "state", "level", "value", "detail", "changes")
BANDS = ("bin", "p50", "p90", "p99", "p999", "max")
UNREADABLE = ("broker", "topic", "partition", "status", "batches", "size_bytes")
GAPS = ("topic", "partition", "gap_us", "from_us", "to_us", "is_longest")
REPLICATION = (
    "topic", "partition", "leaderless_us", "under_min_us", "elections", "unclean_elections",
)  # fmt: skip
MEASURED = {
    "partition_states": ("topic", "partition", "from_us"),
    "load": ("node", "bin"),
    "stages": ("stage", "mean"),
    "outcomes": ("bin", "outcome", "records"),
    "lag": ("group", "bin", "lag_max"),
    "offline_stretches": ("topic", "partition", "from_us", "to_us"),
}
SENT = ("second", "sent_us", "t_us", "sender", "receiver", "kind", "delayed_by", "total")


def found(spans, cells=(), bands=(), sent=(), nodes=(), *, end_us=20 * S, faults=(), traced=True):
    """Findings of a run of which little but the timeline is known."""
    frames = {
        "timeline": pd.DataFrame(spans, columns=SPANS).assign(lanes=99),
        "messages": pd.DataFrame(sent, columns=SENT),
        "message_nodes": pd.DataFrame({"node": list(nodes)}),
        "produce_gaps": pd.DataFrame((), columns=GAPS),
        "fetch_gaps": pd.DataFrame((), columns=GAPS),
        "replication": pd.DataFrame((), columns=REPLICATION),
        "offline": pd.DataFrame((), columns=("topic", "max_us")),
    }
    frames |= {name: pd.DataFrame((), columns=columns) for name, columns in MEASURED.items()}
    for name in ("produce", "end_to_end"):
        own = name == "produce"
        frames[f"{name}_latency_heat"] = pd.DataFrame(
            cells if own else (), columns=["bin", "row", "records"]
        )
        frames[f"{name}_latency_bands"] = pd.DataFrame(bands if own else (), columns=BANDS)
    files = RunFiles(Path("run"), {}, {}, {})
    unreadable = pd.DataFrame((), columns=UNREADABLE)
    latencies = {"produce": {}, "end_to_end": {}}
    return Findings(
        files=files,
        end_us=end_us,
        width_us=S,
        fine_us=100_000,
        topics={},
        examples={},
        unreadable=unreadable,
        latency_us=latencies,
        frames=frames,
        faults=tuple(faults),
        is_traced_in_detail=traced,
    )


def window(number, kind, begin, end, resolved="broker-1"):
    return FaultWindow(number, kind, "leader of x", resolved, begin, end, True, True, "")


def small(**more):
    spans = [
        ("controller", "controller", 0, 20 * S, "controller-1", 0, 1, "epoch 1", 1),
        ("server", "broker-1", 0, 5 * S, "running", 0, 1, "incarnation 1", 1),
        ("server", "broker-1", 5 * S, 20 * S, "crashed", 3, 1, "incarnation 1", 1),
        ("partition", f"{HOSTILE}-0", 0, 5 * S, "all in sync", 0, 1, "epoch 0", 1),
        ("partition", f"{HOSTILE}-0", 5 * S, 20 * S, "no leader", 3, -1, "epoch 1", 1),
        ("partition", "__internal-0", 0, 20 * S, "all in sync", 0, 1, "epoch 0", 1),
        ("group", HOSTILE, 0, 20 * S, "Stable", 0, 1, HOSTILE, 1),
    ]
    cells = [(n, 40 + n % 3, 5) for n in range(200)]
    bands = [(n, 300, 400, 500, 600, 700) for n in range(200)]
    sent = [
        (5, 5 * S + n * 1000, 5 * S + n * 1000 + 700, "broker-1", HOSTILE, kind, rule, 500)
        for n in range(40)
        for kind, rule in (("FetchRequest", "" if n else "delay faults[0]"), ("VoteRequest", ""))
    ]
    nodes = ["broker-1", HOSTILE]
    faults = [window(0, HOSTILE, 5 * S, 9 * S, HOSTILE)]
    return found(spans, cells, bands, sent, nodes, faults=faults, **more)


EXPLAINED = {
    "head": f"a record {HOSTILE} is lost",
    "is_time": False,
    "chain": [{"t_us": S, "what": HOSTILE}],
    "ending": HOSTILE,
    "causes": [f"acks=1 {HOSTILE}"],
    "tried": [
        {"change": {"words": HOSTILE}, "found": 7, "saves": False, "error": HOSTILE},
        {"change": {"words": f"acks=all {HOSTILE}"}, "found": 0, "saves": True, "error": ""},
    ],
    "advice": f"the smallest change that saves it: {HOSTILE}",
    "is_tried": True,
    "wall_us": 3 * S,
}
"""What ``logquake explain --json`` says of a run."""


def everything():
    """Findings with something in each section of the page, and a hostile name wherever one fits."""
    plain = small()
    numbers = dict.fromkeys(COUNTS, 2)
    latency = dict.fromkeys(("p50", "p90", "p99", "p999", "max", "mean"), 1_500.0)
    gap = (HOSTILE, 0, 3 * S, 5 * S, 8 * S, True)
    frames = plain.frames | {
        "produce_gaps": pd.DataFrame([gap, ("orders", 1, 1, 2, 3, False)], columns=GAPS),
        "fetch_gaps": pd.DataFrame([gap], columns=GAPS),
        "replication": pd.DataFrame([(HOSTILE, 0, 3 * S, 4 * S, 2, 1)], columns=REPLICATION),
        "lag": pd.DataFrame([(HOSTILE, 3, 70)], columns=MEASURED["lag"]),
    }
    unreadable = [
        (1, "orders-10", 0, "bad_crc", 1, 3_000_000), (2, "orders-9", 0, "cut", 1, 5_000),
        (3, HOSTILE, 0, HOSTILE, 1, 400),
    ]  # fmt: skip
    verdict = {
        "answer": {
            name: {"level": level, "text": "", "parts": [f"{name} {HOSTILE}"], "number": name[1:]}
            for name, level in (("lost", "red"), ("down", "amber"), ("slow", "green"))
        }
        | {"faults": [{"fault": 0, "level": "amber", "text": HOSTILE}] * 41},
        "held": False,
        "records": numbers | {"lost_acked": 0},
        "topics": {HOSTILE: numbers},
        "expectations": [
            {
                "name": "produce.p99",
                "where": HOSTILE,
                "asked": HOSTILE,
                "found": 1500,
                "held": True,
            },
            {"name": "lost_acked", "asked": "0", "found": 1_234, "held": False},
            {"name": HOSTILE, "asked": None, "found": HOSTILE, "held": False},
        ],
        "checks": [
            {"name": HOSTILE, "outcome": "held", "checked": 1_000, "sentence": HOSTILE},
            {"name": "b", "outcome": HOSTILE, "suspended": {HOSTILE: 3}, "sentence": "s"},
        ],
    }
    wrong = Difference("last leader", HOSTILE, 0, HOSTILE, HOSTILE, HOSTILE)
    return replace(
        plain,
        files=RunFiles(
            Path(f"run {HOSTILE.replace('/', '')}"),
            {"complete": False, "version": HOSTILE, "seed": 7, "trace_digest": HOSTILE},
            verdict,
            {"claim": f" {HOSTILE} "},
        ),
        topics={HOSTILE: numbers},
        examples={HOSTILE: [{HOSTILE: HOSTILE, "offset": None}], "none": []},
        unreadable=pd.DataFrame(unreadable, columns=UNREADABLE),
        latency_us={name: latency | {"records": 12_000} for name in ("produce", "end_to_end")},
        frames=frames,
        faults=tuple(
            replace(plain.faults[0], number=number, target="a <-> b", effect=HOSTILE)
            for number in range(41)
        ),
        inputs=Inputs(differences=[wrong], unchecked=[HOSTILE]),
    )
