"""Measures DuckDB on the largest aggregates of a report that is there: ``RUN_DIR [--memory 2GB]``.

DuckDB is no dependency of the project: this runs in any interpreter that has it, and needs nothing
else. The statements are in ``report.sql``. Segment files are read by the report alone, so DuckDB
begins with the table of survivors that the report left. Prints one line of JSON: seconds of each
step and in all, processor time, peak memory, and what was found, to be held to ``report.json``.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import duckdb

_SQL = Path(__file__).with_name("report.sql")


def measure(run: Path, memory: str, threads: int) -> dict[str, object]:
    """Run every statement, and fetch its rows."""
    told = json.loads((run / "report" / "report.json").read_text(encoding="utf-8"))
    width = told["timeline"]["fine"]
    database = duckdb.connect(
        config={"memory_limit": memory, "threads": threads, "temp_directory": str(run / ".duckdb")}
    )
    steps: list[tuple[str, float, int]] = []
    records: dict[str, int] = {}
    for part in _SQL.read_text(encoding="utf-8").split("-- step: ")[1:]:
        name, _, statement = part.partition("\n")
        began = time.monotonic()
        found = database.sql(statement.format(run=run, width=width))
        names, rows = found.columns, found.fetchall()
        steps.append((name, round(time.monotonic() - began, 1), len(rows)))
        if name == "records by fate":
            for column, values in zip(names[2:], list(zip(*rows, strict=True))[2:], strict=True):
                records[column] = sum(value or 0 for value in values)
    used = resource.getrusage(resource.RUSAGE_SELF)
    judged = told["durability"]["records"]
    return {
        "duckdb": duckdb.__version__,
        "seconds": round(sum(seconds for _, seconds, _ in steps), 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": used.ru_maxrss // 1_000,
        "steps": steps,
        "records": records,
        "agrees": all(judged[name] == count for name, count in records.items()),
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure_duckdb", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN_DIR")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    found = measure(asked.run, asked.memory, asked.threads)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
