"""``report.json``: the numbers of a report, for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from analysis.pages.cells import rows_of
from analysis.report import agreement, latency, page
from analysis.report.findings import Findings
from analysis.report.kafka_metrics import metrics
from analysis.spark import histogram
from analysis.verify import availability

FORMAT: Final = 1
"""Version of ``report.json``."""


def summary(found: Findings, compared: Sequence[agreement.JudgedNumber]) -> dict[str, object]:
    """Contents of ``report.json``. Instants and durations are microseconds."""
    differences = [
        {
            "cluster": item.cluster,
            "topic": item.topic,
            "name": item.name,
            "spark": item.ours,
            "checker": item.checker,
        }
        for item in compared
        if not item.is_same
    ]
    stages = {
        latency.STAGES[int(row["stage"])][0]: {
            name: float(row[name]) for name in (*histogram.QUANTILES, "max", "mean")
        }
        for row in rows_of(found.frames["stages"])
    }
    return {
        "format": FORMAT,
        "run": found.files.name,
        "claim": found.files.scenario.get("claim"),
        "seed": found.files.card.get("seed"),
        "complete": found.files.card.get("complete"),
        "verdict": page.sentence(found.totals),
        "durability": {"records": found.totals, "topics": found.topics},
        **({"processing": found.processing} if found.processing else {}),
        **({"sharing": found.sharing} if found.sharing else {}),
        **({"mirroring": found.mirroring} if found.mirroring else {}),
        **({"connecting": found.connecting} if found.connecting else {}),
        "examples": found.examples,
        "unreadable": rows_of(found.unreadable),
        "agrees_with_checker": bool(found.files.verdict)
        and not differences
        and not found.inputs.differences,
        "differences": differences,
        "inputs": {
            "compared": found.inputs.compared,
            "differences": [each.sentence for each in found.inputs.differences],
            "not_compared": found.inputs.unchecked,
        },
        "availability": _availability(found),
        "latency_us": {
            **found.latency_us,
            "stages": stages,
            "relative_error": histogram.RELATIVE_ERROR,
        },
        "replication": rows_of(found.frames["replication"]),
        "metrics": [asdict(each) for each in metrics(found.frames, found.end_us, found.width_us)],
        "faults": [
            {
                "fault": fault.number,
                "kind": fault.kind,
                "target": fault.target,
                "resolved": fault.resolved,
                "from_us": fault.from_us,
                "to_us": fault.to_us if fault.healed else None,
                "took_effect": fault.took_effect,
            }
            for fault in found.faults
        ],
    }


def _availability(found: Findings) -> dict[str, object]:
    """Longest gaps under the verdict's own names, and all gaps long enough to be reported."""
    partitions: dict[str, dict[str, int]] = {}
    listed: dict[str, object] = {}
    largest: dict[str, int] = {}
    for kind in ("produce", "fetch"):
        rows = rows_of(found.frames[f"{kind}_gaps"])
        for row in rows:
            found_gaps = partitions.setdefault(f"{row['topic']}-{row['partition']}", {})
            down = int(row["gap_us"]) if row["gap_us"] > availability.REPORTED_FROM else 0
            found_gaps[f"{kind}_down_us"] = found_gaps.get(f"{kind}_down_us", 0) + down
            if row["is_longest"]:
                found_gaps[f"{kind}_us"] = int(row["gap_us"])
                found_gaps[f"{kind}_from_us"] = int(row["from_us"])
        if rows:
            largest[f"{kind}_max_us"] = max(int(row["gap_us"]) for row in rows)
        listed[f"{kind}_gaps"] = [
            {
                "topic": str(row["topic"]),
                "partition": int(row["partition"]),
                "from_us": int(row["from_us"]),
                "to_us": int(row["to_us"]),
            }
            for row in rows
            if row["gap_us"] > availability.REPORTED_FROM
        ]
    offline = {
        f"{row['topic']}-{row['partition']}": {
            name: int(row[name]) for name in ("max_us", "from_us", "total_us")
        }
        for row in rows_of(found.frames["offline"])
    }
    return {
        **largest,
        "offline_max_us": max((each["max_us"] for each in offline.values()), default=0),
        "offline": offline,
        "partitions": partitions,
        **listed,
        "reported_from_us": availability.REPORTED_FROM,
    }
