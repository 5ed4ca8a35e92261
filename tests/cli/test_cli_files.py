"""``logquake dump`` and ``logquake doctor`` as a user meets them."""

import json

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.ids import TopicPartition, uuid_text
from sim.log.directory.manager import LogManager
from sim.log.store.files import FileStore
from sim.units import EPOCH_MS
from sim.wire.record_batch import NewRecord, build_batch


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def directory(tmp_path):
    made = LogManager((FileStore(tmp_path),), 1, uuid_text("c"), (uuid_text("d"),))
    log = made.create(TopicPartition("t", 0), uuid_text("t"))
    log.append_as_leader(build_batch([NewRecord(EPOCH_MS, b"k", b"v")] * 2), 0, EPOCH_MS)
    made.shutdown(5)
    made.finish()
    return tmp_path


def log_of(directory):
    return directory / "t-0" / f"{0:020d}.log"


def test_files_may_be_named_in_both_ways(directory):
    log = log_of(directory)
    both = invoke("dump", log, "--files", f"{log},{directory / 'meta.properties'}")
    assert both.exit_code == 0
    assert [line for line in both.stdout.splitlines() if line.startswith("Dumping")] == [
        f"Dumping {log}",
        f"Dumping {log}",
        f"Dumping {directory / 'meta.properties'}",
    ]


def test_complaints_come_last_on_standard_error_and_leave_the_exit_code(directory):
    log = log_of(directory)
    more = build_batch([NewRecord(EPOCH_MS, b"k", b"v")], base_offset=9, leader_epoch=0)
    log.write_bytes(log.read_bytes() + more.data)
    told = invoke("dump", log, "--deep-iteration")
    assert told.exit_code == 0
    assert told.stderr == f"Non-consecutive offsets in {log}\n  1 is followed by 9\n"
    assert "Non-consecutive" not in told.stdout


def test_programs_get_a_json_object_for_each_line(directory):
    told = invoke("dump", log_of(directory), "--print-data-log", "--json")
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert [line["kind"] for line in lines] == ["title", "title", "batch", "record", "record"]
    assert lines[2]["isvalid"] is True
    assert (lines[3]["key"], lines[3]["payload"], lines[3]["headerKeys"]) == ("k", "v", [])
    assert {line["file"] for line in lines} == {str(log_of(directory))}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--value-decoder-class", "org.x.Y"), "org.x.Y: there are no Java classes here"),
        (("--key-decoder-class", "org.x.Y"), "org.x.Y: there are no Java classes here"),
        (("--remote-log-metadata-decoder",), "remote segments are not printed"),
        (
            ("--offsets-decoder", "--share-group-state-decoder"),
            "--offsets-decoder and --share-group-state-decoder: a file has records of one kind",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(directory, options, message):
    told = invoke("dump", log_of(directory), *options)
    assert told.exit_code == 2
    assert message in told.stderr


def test_without_a_file_nothing_is_dumped():
    told = invoke("dump")
    assert told.exit_code == 2
    assert "no file given" in told.stderr


def test_the_doctor_answers_in_json_and_with_its_exit_code(directory):
    sound = invoke("doctor", directory, "--json")
    assert sound.exit_code == 0
    assert json.loads(sound.stdout) == {
        "level": "ok",
        "subject": str(directory),
        "message": "every file is as Kafka would leave it",
    }
    log = log_of(directory)
    log.write_bytes(log.read_bytes()[:-1] + b"!")
    sick = invoke("doctor", directory, "--json")
    assert sick.exit_code == 2
    found = [json.loads(line) for line in sick.stdout.splitlines()]
    assert {"error"} == {line["level"] for line in found if line["subject"] == str(log)}


def test_a_warning_is_no_failure(directory):
    (directory / "t-0" / "x.tmp").touch()
    told = invoke("doctor", directory)
    assert told.exit_code == 0
    assert "warning" in told.stdout
