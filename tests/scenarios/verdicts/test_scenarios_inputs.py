"""What both judges take from the trace is held against the bytes on the simulated disks."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.verify import inputs
from sim.cli.report import differences
from sim.log.store import checkpoints
from tests.scenarios.run_kit import go

RETAINED = {"retention.ms": 2500, "segment.ms": 1000, "min.insync.replicas": 2}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Retention moves log starts, and a restart the leader once its session has ended."""
    ran = go(
        tmp_path_factory.mktemp("inputs"),
        topic={"partitions": 1, "config": RETAINED},
        config={"log.initial.task.delay.ms": 0, "log.retention.check.interval.ms": 500},
        faults=[{"at": "1s", "do": "restart", "target": "leader of orders-0"}],
        lasts="14s",
        then="stop",
    )
    assert ran.rows("log_starts", reason="retention.ms")
    return ran


@pytest.fixture
def run(made, tmp_path):
    """A copy to spoil."""
    return shutil.copytree(made.directory, tmp_path / "run")


def edited(run, table, change):
    """Rewrite a table of the trace; ``change`` gets its rows and may change them."""
    parts = sorted((run / "trace" / table).glob("part-*.parquet"))
    schema = pq.read_schema(parts[0])
    rows = [row for part in parts for row in pq.read_table(part).to_pylist()]
    change([row for row in rows if row.get("topic") == "orders"], rows)
    pq.write_table(pa.Table.from_pylist(rows, schema), parts[0])
    for part in parts[1:]:
        part.unlink()


def noted(run, broker, name, offset):
    """Change the offset of orders-0 in a broker's checkpoint file."""
    file = run / "disks" / f"broker-{broker}" / "data-0" / name
    offsets = checkpoints.decode_offsets(file.read_bytes(), name) if file.is_file() else {}
    lines = {str(tp): f"{tp.topic} {tp.partition} {value}" for tp, value in offsets.items()}
    lines["orders-0"] = f"orders 0 {offset}"
    file.write_bytes(checkpoints.encode_lines(list(lines.values())))
    return file.relative_to(run).as_posix()


def last_leader(ran):
    return ran.leader_changes()[-1][1]


def only(run, kind):
    found = inputs.check(run).differences
    assert {(each.kind, each.topic, each.partition) for each in found} == {(kind, "orders", 0)}
    return found[0].sentence


def test_the_disks_of_a_run_say_what_both_judges_take_from_its_trace(made):
    found = inputs.check(made.directory)
    assert (found.differences, found.unchecked) == ([], [])
    replicas = 3
    assert found.compared["last leader"] == 1 + replicas, "the metadata, and an epoch file each"
    assert found.compared["high watermark"] > replicas
    assert found.compared["log start"] == replicas


def test_a_last_leader_whom_the_metadata_log_does_not_name_is_found(made, run):
    right = last_leader(made)

    def change(orders, _):
        orders[-1]["leader"] = right % 3 + 1

    edited(run, "partition_changes", change)
    sentence = only(run, inputs.LEADERS)
    assert f"last leader of orders-0: the trace says leader {right % 3 + 1} in" in sentence
    assert f"__cluster_metadata-0 says leader {right} in leader epoch" in sentence


def test_an_election_of_the_metadata_log_that_the_trace_lacks_is_found(made, run):
    first = made.leader_changes()[0][1]

    def change(orders, rows):
        for row in orders[1:]:
            rows.remove(row)

    edited(run, "partition_changes", change)
    found = {each.sentence for each in inputs.check(run).differences}
    assert any(f"the trace says leader {first} in leader epoch 0" in each for each in found)


def test_a_leader_epoch_file_that_knows_a_later_leader_than_the_trace_is_found(run):
    file = run / "disks" / "broker-1" / "data-0" / "orders-0" / checkpoints.LEADER_EPOCHS
    epochs = checkpoints.decode_epochs(file.read_bytes(), file.name)
    file.write_bytes(checkpoints.encode_epochs([*epochs, (77, 1 << 30)]))
    assert "leader-epoch-checkpoint says leader epoch 77" in only(run, inputs.LEADERS)


def test_a_checkpoint_above_every_high_watermark_of_the_trace_is_found(made, run):
    file = noted(run, last_leader(made), checkpoints.HIGH_WATERMARKS, 1_000_000)
    most = max(row["high_watermark"] for row in made.rows("high_watermarks", topic="orders"))
    assert only(run, inputs.HIGH_WATERMARKS) == (
        f"high watermark of orders-0: the trace says at most {most}, {file} says 1000000"
    )


def test_a_high_watermark_above_the_bytes_of_a_replica_in_sync_is_found(made, run):
    directory = run / "disks" / f"broker-{last_leader(made)}" / "data-0" / "orders-0"
    segments = sorted(directory.glob("*.log"))
    last = [file for file in segments if file.stat().st_size][-1]
    for empty in segments[segments.index(last) + 1 :]:
        empty.unlink()
    with last.open("r+b") as file:
        file.truncate(last.stat().st_size - 1)
    sentence = only(run, inputs.HIGH_WATERMARKS)
    assert f"{last.relative_to(run).as_posix()} says log end" in sentence


def test_a_log_start_checkpoint_above_the_log_start_of_the_trace_is_found(run):
    file = noted(run, 1, checkpoints.LOG_STARTS, 1_000_000)
    sentence = only(run, inputs.LOG_STARTS)
    assert sentence.startswith("log start of orders-0: the trace says ")
    assert sentence.endswith(f" on broker-1, {file} says 1000000")


@pytest.mark.parametrize("by", [-1, 1])
def test_retention_that_the_trace_puts_elsewhere_than_the_first_segment_is_found(made, run, by):
    leader = last_leader(made)

    def change(orders, _):
        [*_, last] = [row for row in orders if row["broker"] == leader]
        last["to_offset"] += by

    edited(run, "log_starts", change)
    assert ".log says " in only(run, inputs.LOG_STARTS)


def test_where_zookeeper_keeps_the_leaders_that_is_said_and_their_epochs_are_compared(tmp_path):
    cluster = {"zookeeper": {"servers": 3}}
    ran = go(tmp_path, cluster=cluster, lasts="1s", topic={"partitions": 1})
    found = inputs.check(ran.directory)
    assert found.differences == []
    assert found.compared["last leader"] == 3
    [words] = found.unchecked
    assert "servers of ZooKeeper keep no bytes" in words


def test_a_report_names_each_contradiction_of_the_disks_as_a_difference_of_the_judges(made, run):
    noted(run, last_leader(made), checkpoints.HIGH_WATERMARKS, 1_000_000)
    sentences = [each.sentence for each in inputs.check(run).differences]
    told = {"complete": True, "differences": [], "inputs": {"differences": sentences}}
    (run / "report").mkdir()
    (run / "report" / "report.json").write_text(json.dumps(told))
    assert list(differences(run)) == [f"{run}: {sentence}" for sentence in sentences] != []
