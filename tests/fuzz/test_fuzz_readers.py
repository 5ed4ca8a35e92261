"""Damaged files of a run or a log directory are bad input: exit code 2, a message, no traceback."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from analysis.sweep import store as sweep_store
from analysis.verify.run_files import open_run
from sim import run
from sim.cli import app
from sim.errors import SimulationError
from sim.log.partition.reading import file_batches
from sim.scenario.loader import load_text
from sim.suite.baseline import check_power, read_baseline
from sim.suite.cache import Cache
from tests.fuzz.damage import NESTED, damaged
from tests.fuzz.judge import Answer

SCENARIO = """\
claim: Some are lost.
cluster: {brokers: 3, controllers: 1, config: {offsets.topic.num.partitions: 1, transaction.state.log.num.partitions: 1, log.segment.bytes: 1048576}}
topics: {orders: {partitions: 1, replication.factor: 2}}
producers:
  - {name: shop, topic: orders, rate: 40/s, keys: uniform, config: {acks: "1"}, record.headers: {count: 1}}
  - {name: bank, topic: orders, rate: 20/s, config: {transactional.id: t}, transaction: {records: 5}}
consumers: [{group: billing, topics: [orders]}]
faults: [{at: 1s, do: crash, target: leader of orders-0}]
run: {for: 2s}
"""  # noqa: E501 - flow style
FAST, MANY = 40, 3_000
"""Mutants of each kind of file; ``MANY`` where time is no matter."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that came to its end, with everything that a reader reads."""
    directory = tmp_path_factory.mktemp("run") / "whole"
    run(load_text(SCENARIO, "small.yaml"), 1, directory)
    return directory


@pytest.fixture
def copy(whole, tmp_path):
    """A copy that may be damaged."""
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def ask(*words) -> Answer:
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return Answer(99, f"{done.exception!r} came through\n{done.output}")
    return Answer(done.exit_code, done.output)


def refusal(work, *words) -> str:
    """Why the caller is refused; empty: it is not."""
    try:
        work(*words)
    except SimulationError as error:
        return str(error)
    return ""


def each_mutant(file: Path, count: int, first: int = 0):
    content = file.read_bytes()
    for number in range(first, first + count):
        way, mutant = damaged(content, number)
        if mutant != content:
            file.write_bytes(mutant)
            yield number, way
    file.write_bytes(content)


def answers(file: Path, count: int, words, allowed=(2,)):
    """What is wrong with the answers to the mutants of a file, a line each."""
    wrong = []
    for number, way in each_mutant(file, count):
        answer = ask(*words)
        fault = answer.fault
        if not fault and answer.code not in allowed:
            fault = f"exit code {answer.code}: {answer.output[-200:]}"
        if not fault and answer.code == 2 and str(file.parent.parent.name) not in answer.output:
            fault = f"the message names no file: {answer.output[-300:]}"
        if fault:
            wrong.append(f"{file.name}, mutant {number} ({way}): {fault}")
    return wrong


# -- a run's card and verdict ----------------------------------------------------------------------

HARMLESS = ("edited", "flipped", "truncated")
"""Of these a file may stay what it was meant to be: another number, a list with one item less."""


def explained(directory: Path, name: str, count: int):
    file = directory / name
    wrong = []
    for number, way in each_mutant(file, count):
        answer = ask("explain", directory, "--no-rerun")
        fault = answer.fault
        if not fault and answer.code == 0 and way not in HARMLESS:
            fault = f"nonsense explained: {answer.output[-200:]}"
        if not fault and answer.code == 2 and str(directory) not in answer.output:
            fault = f"the message names no file: {answer.output[-300:]}"
        if not fault and answer.code == 1:
            fault = "exit code 1"
        if fault:
            wrong.append(f"{name}, mutant {number} ({way}): {fault}")
    return wrong


@pytest.mark.parametrize("name", ["run.json", "verdict.json"])
def test_explain_refuses_a_damaged_card_or_verdict_as_bad_input(copy, name):
    assert explained(copy, name, FAST) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"null", b"1", b'"x"', b"{", b"{}", b"[" * NESTED, '{"é": 1}'.encode("latin-1")],
)
@pytest.mark.parametrize("name", ["run.json", "verdict.json"])
def test_explain_names_the_file_that_is_no_card_or_verdict(copy, name, content):
    (copy / name).write_bytes(content)
    answer = ask("explain", copy, "--no-rerun")
    assert (answer.code, answer.fault) == (2, "")
    assert f"{copy / name}: damaged: " in answer.output


@pytest.mark.parametrize("command", ["report", "export"])
@pytest.mark.parametrize("content", [b"[]", b"", b"null", b"\xff\xfe{", b"[" * 2_000])
@pytest.mark.parametrize("name", ["run.json", "verdict.json", "scenario.yaml"])
def test_report_and_export_refuse_a_damaged_run_before_spark_starts(
    copy, name, content, command, tmp_path
):
    (copy / name).write_bytes(content)
    more = ["--perfetto", tmp_path / "trace.json"] if command == "export" else []
    answer = ask(command, copy, *more)
    assert (answer.code, answer.fault) == (2, "")
    assert f"{copy / name}: damaged: " in answer.output


@pytest.mark.parametrize("name", ["run.json", "verdict.json"])
def test_a_report_is_refused_for_a_card_or_verdict_of_other_types(copy, name):
    refused = 0
    for _number, way in each_mutant(copy / name, FAST):
        message = refusal(open_run, copy)
        assert message == "" or str(copy / name) in message
        assert message or way in HARMLESS
        refused += bool(message)
    assert refused > FAST // 3


# -- traces ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["appends", "partition_changes", "client_batches"])
def test_explain_refuses_damaged_parquet_by_its_name(copy, table):
    (part,) = (copy / "trace" / table).glob("*.parquet")
    for number, way in each_mutant(part, FAST // 4):
        answer = ask("explain", copy, "--no-rerun")
        assert answer.fault == "", f"mutant {number} ({way})"
        assert answer.code == 2 or way in ("flipped", "appended", "zeroed"), f"{number} ({way})"
        if answer.code == 2:
            assert str(copy) in answer.output


def test_cut_parquet_is_named(copy):
    (part,) = (copy / "trace" / "appends").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    answer = ask("explain", copy, "--no-rerun")
    assert answer.code == 2
    assert f"{part}: damaged: not a readable Parquet file" in answer.output


# -- logs ------------------------------------------------------------------------------------------


def first_batch(log: Path):
    return next(batch for _, batch in file_batches(log))


def log_files(directory: Path) -> list[Path]:
    wanted = (".log", ".index", ".timeindex", ".snapshot", ".txnindex", ".checkpoint", ".metadata")
    found = [p for p in sorted((directory / "disks").rglob("*")) if p.is_file()]
    named = ("recovery-point", "replication-offset", "meta.properties", "quorum-state", "kafka_cl")
    files: dict[tuple[str, str], Path] = {}
    for path in found:
        is_small = any(word in path.name for word in (*named, "leader-epoch"))
        if (path.suffix in wanted or is_small) and path.stat().st_size < 300_000:
            kind = path.parent.name.rpartition("-")[0] if path.suffix == ".log" else ""
            files.setdefault((path.suffix or path.name, kind), path)
    return list(files.values())


def test_doctor_and_dump_say_what_is_wrong_with_damaged_logs_and_never_fail(copy):
    files = log_files(copy)
    assert {".log", ".index", ".snapshot"} <= {path.suffix for path in files}
    wrong = []
    for file in files:
        place = file.parent if (file.parent / "meta.properties").is_file() else file.parent.parent
        wrong += answers(file, 8, ["doctor", place], (0, 2))
        if file.suffix in (".log", ".index", ".timeindex", ".snapshot", ".txnindex", ".checkpoint"):
            wrong += answers(file, 8, ["dump", file, "--print-data-log"], (0, 2))
    assert wrong == []


@pytest.mark.parametrize("command", ["dump", "doctor"])
def test_a_header_key_that_is_not_utf8_is_read_as_kafka_reads_it(copy, command):
    log = next(iter(sorted((copy / "disks").rglob("orders-0/*.log"))))
    content = log.read_bytes()
    keys = [header.key for record in first_batch(log).records() for header in record.headers]
    key = keys[-1].encode()
    assert content.count(key) > 1
    log.write_bytes(content.replace(key, b"\xff\xfe" + key[2:], 1))
    words = [log, "--print-data-log"] if command == "dump" else [log.parents[1]]
    answer = ask(command, *words)
    assert answer.fault == ""
    if command == "dump":
        assert f"headerKeys: [\ufffd\ufffd{key.decode()[2:]}]" in answer.output
    else:
        assert "the checksum is wrong" in " ".join(answer.output.split())


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["", "offsets", "transaction-log", "cluster-metadata"])
def test_dump_never_fails_on_damaged_logs(copy, decoder):
    words = [f"--{decoder}-decoder"] if decoder else ["--deep-iteration"]
    logs = [file for file in log_files(copy) if file.suffix in (".log", ".checkpoint")]
    wrong = []
    for file in logs:
        wrong += answers(file, MANY // 10, ["dump", file, *words], (0, 2))
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run.json", "verdict.json"])
def test_explain_refuses_thousands_of_damaged_cards_and_verdicts(copy, name):
    assert explained(copy, name, MANY) == []


@pytest.mark.parametrize("name", ["abc.log", "1x.log", "\u0661.log", "-1.log"])
def test_a_log_that_is_not_named_by_a_base_offset_is_bad_input(copy, name):
    log = next(path for path in sorted((copy / "disks").rglob("orders-0/*.log")))
    strange = log.with_name(name)
    shutil.copy(log, strange)
    answer = ask("dump", strange)
    assert (answer.code, answer.fault) == (2, "")
    answer = ask("doctor", copy / "disks")
    assert (answer.code, answer.fault) == (2, "")
    assert "not named by a base offset: a broker does not start on it" in " ".join(
        answer.output.split()
    )


# -- what commands keep for themselves -------------------------------------------------------------

BASELINE = {
    "format": 1,
    "scenarios": {
        "a.yaml": {
            "digest": "d",
            "code": "c",
            "runs": {
                str(seed): {
                    "status": "held",
                    "metrics": {"lost_acked": seed, "produce.p99": 5_000},
                    "trace_digest": "t",
                    "rows": {"appends": 3},
                    "table_digests": {"appends": "x"},
                }
                for seed in range(3)
            },
        }
    },
}


def test_check_refuses_a_damaged_baseline_by_its_name(tmp_path):
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps(BASELINE))
    refused = 0
    for number, way in each_mutant(file, 400):
        message = refusal(lambda: check_power(read_baseline(file), ["a.yaml"], 3))
        assert message or way in HARMLESS, f"mutant {number} ({way})"
        refused += str(file) in message
    assert refused > 200
    for content in (b"[]", b"", b"[" * NESTED, b"\xff"):
        file.write_bytes(content)
        answer = ask("check", "scenarios/quickstart.yaml", "--baseline", file)
        assert (answer.code, answer.fault) == (2, "")
        assert str(file) in answer.output


def test_a_damaged_result_in_the_cache_is_as_good_as_none(tmp_path):
    cache = Cache(tmp_path)
    outcome = {
        "path": "a.yaml", "seed": 1, "status": "held", "message": "", "expectations": [],
        "faults_without_effect": [], "unserved": [], "offline_us": 0, "hits": [],
        "answer": [["lost", "green", "0 of 1 acknowledged records"]], "sizes": {"lost": 0},
        "records": {"sent": 1}, "metrics": {}, "rows": {"appends": 1},
        "table_digests": {}, "scenario_digest": "d", "trace_digest": "t", "wall_us": 1,
        "directory": "", "cached": False,
    }  # fmt: skip

    class Asked:
        path, keep, key = "a.yaml", False, "abc"

    file = tmp_path / "ab" / "abc.json"
    file.parent.mkdir()
    file.write_text(json.dumps(outcome))
    found = cache.find(Asked)
    assert found is not None
    assert found.records == {"sent": 1}
    for number, way in each_mutant(file, 300):
        outcome = cache.find(Asked)
        assert outcome is None or way in HARMLESS, f"mutant {number} ({way})"
        if outcome is not None:
            assert isinstance(outcome.records, dict)
            assert outcome.failures == [] or outcome.status
            assert all(len(line) == 3 for line in outcome.answer)


def test_a_stopped_sweep_goes_on_without_the_rows_that_are_damaged(tmp_path):
    row = dict.fromkeys(sweep_store.SCHEMA.names, None)
    row |= {"key": "a", "status": "done", "held": True, "message": "", "configuration": 0}
    row |= dict.fromkeys(sweep_store.NUMBERS, 1) | {"seed": 1}
    file = tmp_path / "rows.parquet"
    sweep_store.write([row], file)
    assert sweep_store.Store(tmp_path).has("a")
    lost = 0
    for _number, _way in each_mutant(file, 200):
        store = sweep_store.Store(tmp_path)
        lost += not store.has("a")
    assert lost > 50
    sweep_store.write([row | {"sent": None}], file)
    assert not sweep_store.Store(tmp_path).has("a")
