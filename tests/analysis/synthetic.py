"""Run directories made by hand or by rule, to try the analysis on: no simulator is involved.

``write_run`` takes rows and batches as they are; ``modelled`` draws a plausible minute of a cluster
with outages, of any size, with real segment files.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sim.trace.columns import arrow_schema
from sim.trace.schema import BY_NAME, TABLES
from sim.wire.payload import build_producer_batch
from sim.wire.record_batch import RecordBatch

DEFAULTS = {"int8": 0, "int32": 0, "int64": 0, "string": "", "bool": False, "list<int32>": ()}
ROWS_PER_PART = 1_000_000
S = 1_000_000


def row(table: str, **values) -> dict:
    """A row with defaults for what is not said."""
    columns = {column.name: DEFAULTS[column.type] for column in BY_NAME[table].columns}
    unknown = set(values) - set(columns)
    assert not unknown, f"{table} has no {unknown}"
    return columns | values


def sent(first, count, **values) -> dict:
    """A row of ``client_batches``: acknowledged with offsets like the record numbers."""
    latencies = values.pop("latency_us", [1000] * count)
    given = {
        "t_us": 1000, "producer": f"shop-{values.get('producer_index', 0) + 1}", "topic": "orders",
        "first_record": first, "record_count": count, "size_bytes": 100 * count, "acks": -1,
        "attempts": 1, "outcome": "ok", "error": "NONE", "base_offset": first, "answered_by": 1,
    }  # fmt: skip
    return row("client_batches", latency_us=latencies, **(given | values))


def change(leader, replicas="1,2,3", **values) -> dict:
    """A row of ``partition_changes`` with everybody in sync."""
    given = {"t_us": -S, "topic": "orders", "leader": leader, "in_sync": replicas}
    return row("partition_changes", replicas=replicas, **(given | values))


def batch(first, count, *, producer=0, offset=None, epoch=0, value_size=24) -> RecordBatch:
    """A real batch of a producer at its place in a log."""
    instants = np.arange(count, dtype=np.int64) + 1000 * first
    built = build_producer_batch(
        producer_index=producer, first_record=first, intended_us=instants, value_size=value_size,
        timestamps_ms=instants // 1000,
    )  # fmt: skip
    return built.stamped(first if offset is None else offset, epoch)


def write_run(
    directory: Path,
    tables: Mapping[str, Sequence[dict]],
    logs: Mapping[tuple[int, str, int], bytes | Sequence[RecordBatch]] = {},
    *,
    verdict: dict | None = None,
    scenario: str = "claim: Nothing is lost.\n",
    card: dict | None = None,
) -> Path:
    """A run directory of rows and logs; ``logs`` is by broker, topic and partition."""
    for table in TABLES:
        rows = tables.get(table.name, ())
        write_table(
            directory, table.name, {name: [r[name] for r in rows] for name in table.column_names}
        )
    for (broker, topic, partition), content in logs.items():
        data = content if isinstance(content, bytes) else b"".join(b.data for b in content)
        write_log(directory, broker, topic, partition, data)
    (directory / "scenario.yaml").write_text(scenario)
    (directory / "run.json").write_text(json.dumps(card or {"seed": 7, "complete": True}))
    if verdict is not None:
        (directory / "verdict.json").write_text(json.dumps(verdict))
    return directory


def write_log(directory: Path, broker: int, topic: str, partition: int, data: bytes) -> None:
    place = directory / "disks" / f"broker-{broker}" / "data-0" / f"{topic}-{partition}"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{0:020d}.log").write_bytes(data)


def write_table(directory: Path, name: str, columns: Mapping[str, object]) -> None:
    """One trace table from its columns, in parts."""
    place = directory / "trace" / name
    place.mkdir(parents=True, exist_ok=True)
    table = pa.table(dict(columns), schema=arrow_schema(BY_NAME[name]))
    for number, start in enumerate(range(0, max(1, table.num_rows), ROWS_PER_PART)):
        part = place / f"part-{number:05d}.parquet"
        pq.write_table(table.slice(start, ROWS_PER_PART), part, compression="zstd")


@dataclass(frozen=True)
class Outage:
    """A stretch of time in which the partitions led by a broker do not answer."""

    broker: int
    start_us: int
    end_us: int
    kind: str = "crash"
    lost_us: int = 0
    """Batches acknowledged so shortly before are missing in the next leader's log."""


@dataclass(frozen=True)
class Model:
    """How much traffic, and what goes wrong."""

    seconds: int = 60
    producers: int = 4
    partitions: int = 12
    interval_us: int = 50_000
    records: int = 10
    value_size: int = 100
    brokers: int = 6
    outages: tuple[Outage, ...] = (
        Outage(1, 15 * S, 24 * S, "crash"),
        Outage(3, 36 * S, 39 * S, "power-loss"),
    )
    topic: str = "orders"
    seed: int = 1
    claim: str = "With acks=all, losing a broker loses no acknowledged record."
    extra: Mapping[str, object] = field(default_factory=dict)


def modelled(directory: Path, model: Model) -> Path:
    """A run directory by rule."""
    chance = np.random.default_rng(model.seed)
    batches = _batches(model, chance)
    tables = _tables(model, batches, chance)
    for table in TABLES:
        columns = tables.get(table.name, {name: [] for name in table.column_names})
        count = max((len(column) for column in columns.values()), default=0)
        for column in table.columns:
            columns.setdefault(column.name, [DEFAULTS[column.type]] * count)
        columns = {name: columns[name] for name in table.column_names}
        if count and table.name != "client_batches":
            order = np.argsort(np.asarray(columns["t_us"]), kind="stable")
            columns = {name: np.asarray(values)[order] for name, values in columns.items()}
        write_table(directory, table.name, columns)
    _write_logs(directory, model, batches)
    (directory / "scenario.yaml").write_text(
        f"claim: {json.dumps(model.claim)}\nrun: {{for: {model.seconds}s, seed: {model.seed}}}\n"
    )
    card = {"version": "0.1.0", "seed": model.seed, "complete": True, "scenario": "synthetic"}
    (directory / "run.json").write_text(json.dumps(card))
    (directory / "verdict.json").write_text(json.dumps(_verdict(model, batches)))
    return directory


def leader_at(model: Model, partition: int, instant: int) -> int:
    home = partition % model.brokers + 1
    gone = any(o.broker == home and o.start_us <= instant for o in model.outages)
    return home % model.brokers + 1 if gone else home


def _batches(model: Model, chance: np.random.Generator) -> dict[str, np.ndarray]:
    per_pair = model.seconds * S // model.interval_us
    pairs = model.producers * model.partitions
    producer = np.repeat(np.arange(pairs) // model.partitions, per_pair)
    partition = np.repeat(np.arange(pairs) % model.partitions, per_pair)
    number = np.tile(np.arange(per_pair), pairs)
    jitter = chance.integers(0, model.interval_us // 2, len(number))
    created = number * model.interval_us + jitter
    ready = created + 5_000
    way = (chance.lognormal(7.2, 0.5, (4, len(number)))).astype(np.int64)
    sent_us = ready + chance.integers(0, 300, len(number))
    last_sent = sent_us.copy()
    attempts = np.ones(len(number), dtype=np.int32)
    home = partition % model.brokers + 1
    answered = home.copy()
    lost = np.zeros(len(number), dtype=bool)
    for outage in model.outages:
        mine = home == outage.broker
        held = mine & (sent_us >= outage.start_us) & (sent_us < outage.end_us)
        last_sent[held] = outage.end_us + (sent_us[held] - outage.start_us) // 50
        attempts[held] += 2
        lost |= mine & (sent_us < outage.start_us) & (sent_us >= outage.start_us - outage.lost_us)
        answered[mine & (sent_us >= outage.start_us)] = outage.broker % model.brokers + 1
    arrived = last_sent + 200 + way[0] // 10
    started = arrived + way[1] // 8
    decided = started + 60
    replied = decided + way[2]
    t = replied + 200 + way[3] // 10
    batches = {
        "producer": producer, "partition": partition, "number": number, "created": created,
        "first_sent": sent_us, "last_sent": last_sent, "attempts": attempts, "answered": answered,
        "arrived": arrived, "started": started, "decided": decided, "replied": replied, "t": t,
        "lost": lost, "correlation": np.arange(len(number)),
    }  # fmt: skip
    in_turn = np.maximum.accumulate(decided.reshape(pairs, per_pair), axis=1).reshape(-1)
    order = np.lexsort((number, producer, in_turn, partition))
    batches = {name: values[order] for name, values in batches.items()}
    offset = np.zeros(len(order), dtype=np.int64)
    for which in range(model.partitions):
        mine = batches["partition"] == which
        kept = (~batches["lost"][mine]).astype(np.int64) * model.records
        offset[mine] = np.cumsum(kept) - kept
    return batches | {"offset": offset}


def _tables(model: Model, b: dict[str, np.ndarray], chance: np.random.Generator) -> dict:
    size = len(b["t"])
    spacing = model.interval_us // 2 // max(1, model.records) // 4
    took = (b["t"] - b["created"])[:, None] - np.arange(model.records) * spacing
    lists = pa.ListArray.from_arrays(
        pa.array(np.arange(size + 1) * model.records, pa.int32()),
        pa.array(took.reshape(-1).astype(np.int32)),
    )
    by_ack = np.argsort(b["t"], kind="stable")
    topic = np.array([model.topic] * size)
    names = np.char.add("shop-", (b["producer"] + 1).astype(str))
    records = np.full(size, model.records)
    place = {"topic": topic, "partition": b["partition"]}
    range_ = {
        "base_offset": b["offset"], "last_offset": b["offset"] + model.records - 1,
        "producer_index": b["producer"], "first_record": b["number"] * model.records,
        "record_count": records,
    }  # fmt: skip
    client = {
        "t_us": b["t"], "producer": names, "producer_index": b["producer"], **place,
        "first_record": b["number"] * model.records, "record_count": records,
        "size_bytes": records * model.value_size, "acks": np.full(size, -1, np.int8),
        "created_us": b["created"], "first_sent_us": b["first_sent"],
        "last_sent_us": b["last_sent"], "attempts": b["attempts"],
        "outcome": np.array(["ok"] * size), "error": np.array(["NONE"] * size),
        "base_offset": b["offset"], "answered_by": b["answered"],
        "correlation": b["correlation"],
    }  # fmt: skip
    client = {name: values[by_ack] for name, values in client.items()}
    client["latency_us"] = lists.take(pa.array(by_ack))
    three = [b["decided"] + delay for delay in (0, 400, 700)]
    appends = {
        "t_us": np.concatenate(three),
        "broker": np.concatenate([(b["answered"] + i - 1) % model.brokers + 1 for i in range(3)]),
        **{name: np.tile(values, 3) for name, values in (place | range_).items()},
        "as_leader": np.repeat([True, False, False], size),
    }
    requests = {
        "t_us": np.concatenate([b["replied"], *three[1:]]),
        "node": np.tile(b["answered"], 3),
        "kind": np.repeat(["Produce", "FetchFollower", "FetchFollower"], size),
        "client": np.concatenate([names, np.repeat(["broker-9", "broker-8"], size)]),
        "correlation": np.tile(b["correlation"], 3), "sent_us": np.tile(b["last_sent"], 3),
        "arrived_us": np.tile(b["arrived"], 3), "started_us": np.tile(b["started"], 3),
        "decided_us": np.tile(b["decided"], 3),
    }  # fmt: skip
    reads = {
        "t_us": b["t"] + chance.integers(300, 4000, size),
        "consumer": np.array(["billing-1"] * size), "group": np.array(["billing"] * size),
        **place, **range_,
    }  # fmt: skip
    kept = ~b["lost"]
    return {
        "client_batches": client,
        "appends": appends,
        "high_watermarks": {
            "t_us": b["replied"], "broker": b["answered"], **place,
            "min_in_sync": np.full(size, 2),
        },
        "follower_watermarks": {
            "t_us": np.tile(b["replied"], 2), "broker": np.tile(b["answered"], 2),
            "topic": np.tile(topic, 2), "partition": np.tile(b["partition"], 2),
        },
        "acknowledgements": {"t_us": b["replied"], "broker": b["answered"], **place},
        "requests": requests,
        "messages": _messages(b, names),
        "reads": {name: values[kept] for name, values in reads.items()},
        **_slow_tables(model, chance),
    }  # fmt: skip


def _messages(b: dict[str, np.ndarray], names: np.ndarray) -> dict:
    size = len(names)
    return {
        "t_us": np.tile(b["arrived"], 6), "sender": np.tile(names, 6),
        "receiver": np.array(["broker-1"] * (6 * size)), "kind": np.array(["Produce"] * (6 * size)),
        "sent_us": np.tile(b["last_sent"], 6),
    }  # fmt: skip


def _columns(table: str, rows: Sequence[dict]) -> dict:
    return {name: [r[name] for r in rows] for name in BY_NAME[table].column_names}


def _slow_tables(model: Model, chance: np.random.Generator) -> dict:
    changes, faults, load, lag = [], [], [], []
    for which in range(model.partitions):
        home = which % model.brokers + 1
        replicas = [(home + i - 1) % model.brokers + 1 for i in range(3)]
        told = ",".join(map(str, replicas))
        state = {"topic": model.topic, "partition": which, "replicas": told, "controller": 3001}
        epoch = 0
        changes.append(row("partition_changes", t_us=-5 * S, leader=home, in_sync=told, **state))
        for outage in model.outages:
            if outage.broker not in replicas:
                continue
            left = [r for r in replicas if r != outage.broker]
            steps = [(outage.start_us + 9 * (outage.end_us - outage.start_us) // 10, left)]
            steps.append((outage.end_us + 4 * S, replicas))
            for instant, members in steps:
                epoch += 1
                leader = leader_at(model, which, instant)
                text = ",".join(str(m) for m in sorted(members))
                changes.append(row(
                    "partition_changes", t_us=instant, leader=leader, leader_epoch=epoch,
                    partition_epoch=epoch, in_sync=text, **state,
                ))  # fmt: skip
    for which, outage in enumerate(model.outages):
        told = {"fault": which, "kind": outage.kind, "target": f"leader of {model.topic}-0"}
        told |= {"resolved": f"broker-{outage.broker}", "took_effect": True}
        told |= {"effect": "the process was running"}
        faults.append(row("faults", t_us=outage.start_us, phase="began", **told))
        faults.append(row("faults", t_us=outage.end_us, phase="healed", **told))
    for second in range(1, model.seconds + 5):
        down = {o.broker for o in model.outages if o.start_us < second * S <= o.end_us}
        for broker in range(1, model.brokers + 1):
            if broker in down:
                continue
            busy = {"network_threads_ratio": 80, "request_handlers_ratio": 150, "disk_ratio": 300}
            drawn = {name: int(v * chance.uniform(0.7, 1.4)) for name, v in busy.items()}
            load.append(
                row(
                    "load",
                    t_us=second * S,
                    node=f"broker-{broker}",
                    disk_written_bytes=8_000_000,
                    dirty_bytes=90_000_000,
                    **drawn,
                )
            )
        for which in range(model.partitions):
            behind = int(chance.integers(0, 60)) + 4000 * (which % model.brokers + 1 in down)
            high = second * 1000
            lag.append(
                row(
                    "lag",
                    t_us=second * S,
                    group="billing",
                    topic=model.topic,
                    partition=which,
                    position=max(0, high - behind),
                    committed=max(0, high - behind - 500),
                    high_watermark=high,
                )
            )
    found = {"partition_changes": changes, "faults": faults, "load": load, "lag": lag}
    return {name: _columns(name, rows) for name, rows in found.items()}


def _write_logs(directory: Path, model: Model, b: dict[str, np.ndarray]) -> None:
    spacing = np.arange(model.records, dtype=np.int64) * 10
    for which in range(model.partitions):
        mine = np.nonzero((b["partition"] == which) & ~b["lost"])[0]
        data: list[bytes] = []
        for producer, number, created, offset in zip(
            b["producer"][mine].tolist(), b["number"][mine].tolist(), b["created"][mine].tolist(),
            b["offset"][mine].tolist(), strict=True,
        ):  # fmt: skip
            instants = created + spacing
            built = build_producer_batch(
                producer_index=producer, first_record=number * model.records,
                intended_us=instants, value_size=model.value_size, timestamps_ms=instants // 1000,
            )  # fmt: skip
            data.append(built.stamped(offset, 0).data)
        whole = b"".join(data)
        for i in range(3):
            broker = (which + i) % model.brokers + 1
            write_log(directory, broker, model.topic, which, whole)


def _verdict(model: Model, b: dict[str, np.ndarray]) -> dict:
    sent_count = len(b["t"]) * model.records
    lost = int(b["lost"].sum()) * model.records
    records = {
        "sent": sent_count, "acked": sent_count, "failed": 0, "unknown": 0,
        "survived": sent_count - lost, "lost_acked": lost, "unacked_present": 0, "duplicated": 0,
        "reordered": 0, "divergent": 0, "removed": 0,
        "early_tombstones": 0, "aborted": 0, "aborted_visible": 0,
        "aborted_read": 0, "undecided": 0, "torn_transactions": 0,
    }  # fmt: skip
    return {
        "records": records,
        "topics": {model.topic: records},
        "expectations": [
            {"name": "lost_acked", "asked": 0, "found": lost, "held": lost == 0},
            {"name": "produce.p99", "asked": "< 250ms", "found": 9_200_000, "held": False},
        ],
    }
