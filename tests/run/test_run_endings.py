"""However a run ends, what it leaves can be read; and it never takes what is not its own."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest
import yaml

from sim.errors import InvariantBroken, SimulationError
from sim.inspect.doctor import examine
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.trace.parquet import PartFiles
from sim.trace.schema import TABLES
from tests.scenarios import planted
from tests.scenarios.run_kit import ROOT, text_of

SHORT = {"lasts": "2s", "producer": {"rate": "100/s"}}
LONG = {"lasts": "900s", "producer": {"rate": "2000/s"}}


def command(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "sim", *map(str, words)], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def card(out):
    return json.loads((out / "run.json").read_text())


def readable_rows(out):
    """Rows of each table, every file of which must be readable."""
    rows = {}
    for table in TABLES:
        parts = sorted((out / "trace" / table.name).glob("*.parquet"))
        rows[table.name] = sum(pq.read_table(part).num_rows for part in parts)
    return rows


def written(directory, **parts):
    file = directory / "scenario.yaml"
    file.write_text(text_of(**parts))
    return file


# -- cut short ------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_mid_run_leaves_a_readable_directory(number, tmp_path):
    out = tmp_path / "run"
    process = command("run", written(tmp_path, **LONG), "--out", out)
    try:
        deadline = time.monotonic() + 60
        log = out / "disks" / "broker-1" / "data-0" / "orders-0" / f"{0:020d}.log"
        while not log.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert stderr == "interrupted: complete is false in run.json\n"
    assert "INTERRUPTED" in stdout
    told = card(out)
    assert told["complete"] is False
    assert told["trace_digest"] == told["disk_digest"] == ""
    rows = readable_rows(out)
    assert rows["appends"] > 100
    assert rows == told["rows"]
    assert json.loads((out / "verdict.json").read_text())["held"] is False
    for directory in sorted((out / "disks").glob("*/*")):
        assert examine(directory) == []


def test_a_run_that_is_let_be_is_complete(tmp_path):
    """The twin: the marks above are not always there."""
    process = command("run", written(tmp_path, **SHORT), "--out", tmp_path / "run")
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert card(tmp_path / "run")["complete"] is True
    assert len(card(tmp_path / "run")["trace_digest"]) == 64


def test_an_exception_in_mid_run_leaves_what_was_recorded(tmp_path, monkeypatch):
    planted.acknowledged_at_append(monkeypatch)
    with pytest.raises(InvariantBroken):
        run(load_text(text_of(**SHORT)), out=tmp_path / "run")
    assert card(tmp_path / "run")["complete"] is False
    rows = readable_rows(tmp_path / "run")
    assert rows["acknowledgements"] > 0
    assert rows["partition_changes"] > 0


# -- a real disk that fills up --------------------------------------------------------------------


def test_a_machine_disk_that_fills_up_leaves_whole_tables(tmp_path, monkeypatch):
    real = PartFiles.write

    def write(self, arrays):
        if self._directory.name == "high_watermarks":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._directory))
        real(self, arrays)

    monkeypatch.setattr(PartFiles, "write", write)
    with pytest.raises(OSError, match="No space left on device") as caught:
        run(load_text(text_of(**SHORT)), out=tmp_path / "run")
    assert caught.value.errno == errno.ENOSPC
    assert card(tmp_path / "run")["complete"] is False
    rows = readable_rows(tmp_path / "run")
    assert rows["high_watermarks"] == 0
    assert rows["appends"] > 0, "the other tables are finished all the same"


def may_mount():
    words = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/mnt"]
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="a small file system needs a namespace of its own")
def test_a_small_file_system_is_seen_before_anything_is_written_to_it(tmp_path):
    scenario = written(tmp_path, **(LONG | {"producer": {"rate": "5000/s"}}))
    small = tmp_path / "small"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size=12m none '{small}' && "
        f"'{sys.executable}' -m sim run '{scenario}' --out '{small}/run'; code=$?; "
        f"ls -A '{small}'; exit $code"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "and 11 MiB are allowed (12 MiB free, of which 614 KiB stay free)" in done.stderr


@pytest.mark.skipif(not may_mount(), reason="a small file system needs a namespace of its own")
@pytest.mark.parametrize("size", ["2m", "12m"])
def test_a_file_system_without_room_gives_one_line_and_a_readable_directory(size, tmp_path):
    """What was on the small file system is copied before the namespace ends with it."""
    scenario = written(tmp_path, **(LONG | {"producer": {"rate": "5000/s"}}))
    small, kept = tmp_path / "small", tmp_path / "kept"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size={size} none '{small}' && "
        f"'{sys.executable}' -m sim run '{scenario}' --out '{small}/run' --no-space-check; "
        f"code=$?; cp -r '{small}/run' '{kept}'; exit $code"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert "disk is full; the run directory is left incomplete" in done.stderr
    assert card(kept)["complete"] is False
    readable_rows(kept)


# -- what was there before ------------------------------------------------------------------------


def test_an_earlier_run_is_refused_without_force_and_replaced_with_it(tmp_path):
    out = tmp_path / "run"
    run(load_text(text_of(**SHORT)), out=out)
    (out / "report").mkdir()
    before = {path: path.stat().st_mtime_ns for path in sorted(out.rglob("*"))}
    with pytest.raises(SimulationError, match="holds an earlier run; add --force"):
        run(load_text(text_of(**SHORT)), out=out)
    assert {path: path.stat().st_mtime_ns for path in sorted(out.rglob("*"))} == before
    again = run(load_text(text_of(**SHORT)), 2, out, force=True)
    assert again.held
    assert card(out)["seed"] == 2
    assert not (out / "report").exists(), "an old report must not stand beside a new run"


@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_run_is_never_touched(force, tmp_path):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter-1.tex").write_text("years of work")
    with pytest.raises(SimulationError, match="not a run directory"):
        run(load_text(text_of(**SHORT)), out=out, force=force)
    assert [path.name for path in out.iterdir()] == ["chapter-1.tex"]
    file = tmp_path / "file"
    file.write_text("years of work")
    with pytest.raises(SimulationError, match="not a run directory"):
        run(load_text(text_of(**SHORT)), out=file, force=force)
    assert file.read_text() == "years of work"


def test_an_empty_directory_is_taken(tmp_path):
    """The limit: there is nothing to lose."""
    assert run(load_text(text_of(**SHORT)), out=tmp_path).held


# -- bad input through the real command -----------------------------------------------------------

BAD = {
    "RF above brokers": (("topics", "orders", "replication.factor"), 4),
    "min.insync above RF": (("topics", "orders", "config", "min.insync.replicas"), 4),
    "unknown target": (("faults", 0, "target"), "broker-9"),
    "negative time": (("faults", 0, "at"), "-1s"),
    "wrong unit": (("faults", 0, "at"), "1 fortnight"),
    "overlapping times": (("faults", 1, "at"), "1500ms"),
    "unknown setting": (("producers", 0, "config", "acsk"), "all"),
    "unknown key": (("producers", 0, "speed"), "1/s"),
}


@pytest.mark.parametrize("name", [*BAD, "not YAML", "empty", "object tag"])
def test_bad_input_is_one_line_with_its_place_and_nothing_is_written(name, tmp_path):
    crash = {"do": "crash", "target": "broker-1", "for": "1s"}
    data = yaml.safe_load(text_of(**SHORT, faults=[{"at": "1s", **crash}, {"at": "5s", **crash}]))
    data["run"]["for"] = "9s"
    text = {"not YAML": "claim: [", "empty": "", "object tag": "claim: !!python/object:os.x {}"}
    if name in BAD:
        *path, key = BAD[name][0]
        place = data
        for step in path:
            place = place[step]
        place[key] = BAD[name][1]
    file = tmp_path / "bad.yaml"
    file.write_text(text.get(name) if name in text else yaml.safe_dump(data, sort_keys=False))
    process = command("run", file, "--out", tmp_path / "run")
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (2, "")
    assert stderr.count("\n") == 1
    assert stderr.startswith(f"{file}:"), stderr
    assert stderr.removeprefix(f"{file}:").split(":")[0].isdigit(), "the line is told"
    assert [path.name for path in tmp_path.iterdir()] == ["bad.yaml"]
