"""What files hold cannot act on a terminal, and no terminal's encoding ends a command."""

import errno
import json
import os
import subprocess
import sys

import pytest
from rich.table import Table
from typer.testing import CliRunner

from sim import run
from sim.cli import app
from sim.cli.screen import json_text, visible
from sim.cli.terminal import show_table
from sim.errors import SimulationError, named
from sim.log.store.platter import RealFiles
from sim.scenario.loader import load_text
from sim.scenario.run.directory import RunDirectory

SCENARIO = """\
claim: Nothing é lost — 中 ✓.
cluster: {brokers: 1, controllers: 1, config: {offsets.topic.replication.factor: 1}}
topics: {orders: {replication.factor: 1}}
producers: [{name: p, topic: orders, rate: 20/s, record.headers: {count: 1}}]
run: {for: 1s}
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("é中✓", "é中✓"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("\x9b31m\x85", "\\x9b31m\\x85"),
        ("a\u202eb\u2066c\u200bd\ufeff", "a\\u202eb\\u2066c\\u200bd\\ufeff"),
        ("\r\x00\x7f", "\\x0d\\x00\\x7f"),
        ("\udcff\U000e0001\u2028", "\\udcff\\U000e0001\\u2028"),
    ],
)
def test_what_acts_on_a_terminal_is_written_out(text, shown):
    assert visible(text) == shown


def test_json_stays_json_and_acts_on_no_terminal():
    value = {"key": "\x1b\u202e\x9b\x7fé\U000e0001\udcff"}
    text = json_text(value, indent=2)
    assert json.loads(text) == value
    assert visible(text) == text


def test_the_name_of_a_file_is_printed_without_its_escape_sequences(tmp_path):
    file = tmp_path / "\x1b[2Jbad\u202e.yaml"
    file.write_text("claim: x\n")
    bad = CliRunner().invoke(app, ["validate", str(file)])
    file.write_text(SCENARIO)
    good = CliRunner().invoke(app, ["validate", str(file)])
    assert (bad.exit_code, good.exit_code) == (2, 0)
    for answer in (bad, good):
        assert "\\x1b[2Jbad\\u202e.yaml" in answer.output
        assert "\x1b" not in answer.output
        assert "\u202e" not in answer.output


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_header_key_with_escape_sequences_is_printed_without_them(tmp_path, words):
    run(load_text(SCENARIO, "small.yaml"), 1, tmp_path / "run")
    (log,) = (tmp_path / "run" / "disks").rglob("orders-0/*.log")
    before = CliRunner().invoke(app, ["dump", str(log), "--deep-iteration"]).output
    key = before.partition("headerKeys: [")[2].partition("]")[0].rpartition(",")[2].encode()
    log.write_bytes(log.read_bytes().replace(key, b"\x1b[2J\x9b\xe2\x80\xae"[: len(key)], 1))
    answer = CliRunner().invoke(app, ["dump", str(log), "--deep-iteration", *words])
    assert answer.exit_code == 0
    assert "\x1b" not in answer.output
    assert ("\\u001b" if words else "\\x1b") in answer.output


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_claim_that_standard_output_cannot_encode_is_written_as_escapes(
    tmp_path, encoding, words
):
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sim", "run", str(file), "--out", str(tmp_path / "o"), *words],
        env={**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode(encoding)
    if words:
        assert json.loads(text)["held"] is True
    else:
        assert "\\u4e2d" in text


def test_a_write_that_fails_names_its_file(tmp_path):
    with pytest.raises(OSError, match=r"x\.json") as caught, named(tmp_path / "x.json"):
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    assert caught.value.filename == str(tmp_path / "x.json")


def test_a_log_that_the_machine_refuses_to_write_is_named(tmp_path, monkeypatch):
    (tmp_path / "0.log").touch()
    files = RealFiles(tmp_path)

    def refused(*_words):
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    monkeypatch.setattr(os, "pwritev", refused)
    with pytest.raises(OSError, match=r"0\.log"):
        files.write("0.log", 0, [b"x"])


def test_a_link_to_an_earlier_run_is_not_replaced_and_is_named(tmp_path):
    earlier = tmp_path / "earlier"
    run = RunDirectory(earlier, force=False)
    run.write_card({})
    run.release()
    link = tmp_path / "link"
    link.symlink_to(earlier)
    with pytest.raises(SimulationError, match=f"{link}: is a link"):
        RunDirectory(link, force=True)
    assert (earlier / "run.json").is_file()


def test_a_table_is_as_wide_as_columns_says(monkeypatch, capsys):

    def widest():
        table = Table("a", "b")
        table.add_row("word " * 40, "other " * 40)
        show_table(table)
        return max(map(len, capsys.readouterr().out.splitlines()))

    monkeypatch.setenv("COLUMNS", "60")
    assert widest() <= 60
    monkeypatch.setenv("COLUMNS", "200")
    assert 60 < widest() <= 200
