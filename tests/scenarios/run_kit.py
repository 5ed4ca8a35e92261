"""Small whole runs for tests: a scenario from a few parts, and what it left behind as rows."""

import json
from functools import cached_property
from pathlib import Path

import pyarrow.parquet as pq
import yaml

from tests.scenarios.compiled import run_beside

ROOT = Path(__file__).parents[2]
SHIPPED = {path.stem: path for path in sorted((ROOT / "scenarios").glob("*.yaml"))}
"""Every scenario that the project ships, but for those of the catalogue."""

TWICE = (
    "group-protocols", "jbod-disk-failure", "power-loss-whole-cluster", "raft-leader-crash",
    "transactions", "zookeeper-majority-lost",
)  # fmt: skip
"""What the fast tests run twice, one of a kind; slow tests do it to all."""

CATALOGUE = {path.stem: path for path in sorted((ROOT / "scenarios" / "catalogue").glob("*.yaml"))}
"""The failure catalogue: a published failure in each, as it was, or gone."""

SMALL = Path(__file__).with_name("small.yaml")
"""The quickstart's faults on a smaller load."""

S = 1_000_000
"""Microseconds in a second."""

JOIN_US = S // 10
"""Allowance for commits, round trips and service beside a timer."""


class Ran:
    """A run directory, read as a stranger would read it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.card = json.loads((directory / "run.json").read_text())
        self.verdict = json.loads((directory / "verdict.json").read_text())
        self._tables: dict[str, list[dict]] = {}

    @property
    def records(self) -> dict[str, int]:
        return self.verdict["records"]

    @cached_property
    def faults(self) -> list[dict]:
        return self.verdict["faults"]

    def checked(self, name: str) -> int:
        (report,) = [check for check in self.verdict["checks"] if check["name"] == name]
        return report["checked"]

    def rows(self, table: str, **where) -> list[dict]:
        """Rows of a table, those whose columns have the given values; ``t_us`` among them."""
        if table not in self._tables:
            self._tables[table] = pq.read_table(self.directory / "trace" / table).to_pylist()
        return [
            row
            for row in self._tables[table]
            if all(row[name] == value for name, value in where.items())
        ]

    def times(self, table: str, **where) -> list[int]:
        return [row["t_us"] for row in self.rows(table, **where)]

    def leader_changes(self, partition: int = 0, topic: str = "orders") -> list[tuple[int, int]]:
        """(instant, leader) each time the controller committed another one, the first included."""
        found: list[tuple[int, int]] = []
        for row in self.rows("partition_changes", topic=topic, partition=partition):
            if not found or found[-1][1] != row["leader"]:
                found.append((row["t_us"], row["leader"]))
        return found

    def leader_at(self, at: int, partition: int = 0, topic: str = "orders") -> int:
        return [who for t, who in self.leader_changes(partition, topic) if t <= at][-1]

    def changed_leader(self, after: int, partition: int = 0) -> int:
        """Instant of the first other leader (a real one) after an instant."""
        return next(t for t, who in self.leader_changes(partition) if t > after and who >= 0)

    def log_dirs(self, kind: str = "") -> list[Path]:
        """Kafka's; what servers of ZooKeeper keep has no bytes."""
        found = (self.directory / "disks").glob(f"{kind}*/*")
        return sorted(path for path in found if not path.parent.name.startswith("zookeeper-"))


def text_of(
    *,
    faults=(),
    lasts="6s",
    topics=None,
    topic=(),
    producers=None,
    producer=(),
    acks="all",
    consumers=(),
    cluster=(),
    config=(),
    expect=(),
    then="heal and drain",
    seed=1,
    **more,
) -> str:
    """A scenario on three brokers: a topic of three partitions, a producer, and what is given."""
    known = {"partitions": 3, "replication.factor": 3, "config": {"min.insync.replicas": 2}}
    shop = {
        "name": "shop", "topic": "orders", "rate": "500/s", "record.size": "100B",
        "config": {"acks": acks},
    }  # fmt: skip
    given = {"zookeeper", "combined"} & set(dict(cluster))
    governing = {} if given else {"controllers": 3}
    servers = {"brokers": 3, **governing, "config": dict(config), **dict(cluster)}
    return yaml.safe_dump(
        {
            "claim": "A test's scenario.",
            "cluster": servers,
            "topics": topics or {"orders": known | dict(topic)},
            "producers": [shop | dict(producer)] if producers is None else producers,
            "consumers": list(consumers),
            "faults": list(faults),
            "run": {"for": lasts, "then": then, "seed": seed, "drain.timeout": "30s"},
            "expect": dict(expect),
            **more,
        },
        sort_keys=False,
    )


def go(directory: Path, **parts) -> Ran:
    """Run a small scenario into a new directory below the given one."""
    out = directory / f"run-{len(list(directory.iterdir()))}"
    run_beside(text_of(**parts), out)
    return Ran(out)


def arrow(column_type: str) -> str:
    """The Arrow type's printed name of a column type of the schema."""
    return {"list<int32>": "list<element: int32>"}.get(column_type, column_type)
