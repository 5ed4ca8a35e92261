"""logquake explain names what happened to a record, in order, and why; and what would help."""

import json
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.cli.report import RERUN_MAX, for_report
from sim.errors import SimulationError
from sim.scenario.loader import load, load_text
from sim.scenario.run.runner import run
from sim.suite.explain import chain, whatif
from sim.suite.explain.causes import causes
from sim.suite.explain.run_facts import RunFacts, Story
from tests.scenarios.run_kit import CATALOGUE, ROOT, SHIPPED, text_of

LOSES = {
    "lasts": "12s",
    "acks": 1,
    "topic": {"partitions": 1, "config": {"min.insync.replicas": 1}},
    "faults": [
        {"at": "1s", "do": "delay", "between": "leader of orders-0", "and": "all brokers",
         "one-way": True, "by": "80ms", "for": "2s"},
        {"at": "2s", "do": "crash", "target": "leader of orders-0", "for": "9s"},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def lost(tmp_path_factory):
    directory = tmp_path_factory.mktemp("explain") / "run"
    run(load_text(text_of(**LOSES)), out=directory, level="facts")
    return RunFacts(directory)


def test_the_chain_of_a_lost_record_is_told_in_order(lost):
    story = Story(lost, lost.pick())
    assert story.subject.kind == "lost_acked"
    told = [words for _, words in chain.lines(story)]
    events = [
        "shop means to send record", "shop sends it with acks=1", "appends it as leader at offset",
        "shop is told that it is written", "crashed", "leader, leader epoch 1",
        "truncated it, following its new leader's epochs",
    ]  # fmt: skip
    places = [next(n for n, words in enumerate(told) if event in words) for event in events]
    assert places == sorted(places), told
    assert chain.ending(story).endswith("no log holds it")
    first, second, *_ = causes(story)
    assert first.startswith("acks=1: broker-")
    assert second.startswith("election of a leader without the record")


def test_a_record_is_found_by_its_number_and_by_its_offset(lost):
    subject = lost.pick()
    by_number = lost.pick(f"shop:orders-0:{subject.record}")
    assert (by_number.kind, by_number.offset) == ("lost_acked", subject.offset)
    early = lost.pick("orders-0@3")
    assert (early.kind, early.producer, early.record) == ("late", "shop", 3)
    story = Story(lost, early)
    assert len(story.copies) == 3
    assert "still hold it" in chain.ending(story)


@pytest.mark.parametrize("asked", ["orders", "shop:orders-0", "shop:orders-0:x", "orders-0@"])
def test_what_names_no_record_is_refused_with_what_is_allowed(lost, asked):
    with pytest.raises(SimulationError, match="PRODUCER:TOPIC-PARTITION:NUMBER"):
        lost.pick(asked)
    with pytest.raises(SimulationError, match="no such record; producers are shop"):
        lost.pick("nobody:orders-0:3")


def test_a_directory_without_a_run_is_refused(tmp_path):
    with pytest.raises(SimulationError, match="needs the directory of a run that ended"):
        RunFacts(tmp_path)


def test_the_smallest_change_that_saves_it_is_found(lost, tmp_path):
    found = list(whatif.trials(lost, "lost_acked", tmp_path, lambda: False))
    assert [(trial.change.words, trial.saves) for trial in found] == [("acks=all", True)]
    assert found[0].change.overrides == ("producers.0.config.acks=all",)


def test_a_leader_that_forgot_a_producer_s_batches_in_a_restart_is_named(tmp_path):
    """Written five times and forgotten: an idempotent producer's resend is new."""
    run(load(SHIPPED["idempotence-across-restart"]), out=tmp_path / "run", level="facts")
    story = Story(facts := RunFacts(tmp_path / "run"), facts.pick())
    assert story.subject.kind == "duplicated"
    why = causes(story)
    assert len(why) == 1
    assert "broker-2 was restarted in between" in why[0]
    assert "remembers the last batch only" in why[0]


def test_a_late_record_is_explained_by_what_happened_while_it_waited(lost):
    """It was meant to be sent while nobody led, and came through under the next leader."""
    crashed = 2_000_000
    waited = next(
        row for row in lost.rows("client_batches")
        if row["outcome"] == "ok" and row["t_us"] - max(row["latency_us"]) > crashed
        and max(row["latency_us"]) > 1_000_000
    )  # fmt: skip
    story = Story(lost, lost.pick(f"shop:orders-0:{waited['first_record']}"))
    assert story.subject.kind == "late"
    assert story.window == (waited["t_us"] - waited["latency_us"][0], waited["t_us"])
    assert any("was made leader" in why for why in causes(story))


def test_why_a_broker_ended_by_itself_is_told(tmp_path):
    full = {"at": "2s", "do": "full-disk", "target": "leader of orders-0", "for": "9s"}
    run(load_text(text_of(lasts="13s", faults=[full])), out=tmp_path / "run", level="facts")
    facts = RunFacts(tmp_path / "run")
    story = Story(facts, facts.pick("orders-0@1000"))
    (halt,) = facts.rows("halts")
    assert halt["reason"] == "data-0/orders-0/00000000000000000000.log: no space left on device"
    assert f"{halt['node']} halts: {halt['reason']}" in [words for _, words in chain.lines(story)]
    assert any(why.startswith(f"{halt['node']} halted at 2.0") for why in causes(story))


def test_changes_are_tried_from_the_client_to_the_version():
    scenario = load_text(text_of(**LOSES, behaviours={"truncation": "kip101"}))
    words = [change.words for change in whatif.changes(scenario, "lost_acked")]
    assert words[0] == "acks=all"
    assert words[-1] == "truncation: kip320"
    assert words.index("acks=all") < words.index("min.insync.replicas=2")


def test_the_command_answers_for_programs_too(lost):
    done = subprocess.run(
        [sys.executable, "-m", "sim", "explain", str(lost.directory), "--no-rerun", "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["subject"]["kind"] == "lost_acked"
    assert told["causes"][0].startswith("acks=1")
    assert told["chain"] == sorted(told["chain"], key=lambda line: line["t_us"])


MECHANISMS = {
    "a01-acks0-leader-kill-historic": ("acks=0", "asked for no acknowledgement"),
    "a02-acks1-leader-crash-historic": ("acks=1", "before any follower had fetched"),
    "a04-isolated-zombie-leader-acks1-historic": ("zombie leader", "acks=1"),
    "a05-jepsen-2013-isr-of-one-then-unclean-historic": ("ISR had shrunk", "unclean election"),
    "a06-unclean-leader-election-loss-historic": ("unclean election", "not in sync"),
    "a07-minisr1-acks-all-isr-shrinks-then-crash-historic": ("ISR had shrunk", "page cache"),
    "a08-minisr-availability-wall-control": ("below min.insync.replicas", "NOT_ENOUGH_REPLICAS"),
    "b01-last-replica-standing-historic": ("page cache", "recovery is isr"),
    "b02-correlated-power-loss-whole-cluster-unflushed": ("power loss", "page cache"),
    "b04-kip101-hw-truncation-then-election-historic": ("own high watermark", "truncation is hw"),
    "b06-kip279-fast-failover-divergence-historic": ("divergence", "truncation is kip101"),
    "b08-sole-isr-member-returns-with-empty-disk-historic": ("empty disk", "recovery is isr"),
    "b07-isr-expansion-on-lagging-hw-historic": (
        "election of a leader without the record", "isr_expand is reach_hw",
    ),
    "b10-shutdown-on-forbidden-truncation-historic": ("page cache", "broker-2 halted at"),
    "d03-disk-full-correlated-historic": ("halted at", "no space left on device"),
    "c02-node-shrinks-isr-to-itself-until-restart": (
        "below min.insync.replicas", "NOT_ENOUGH_REPLICAS",
    ),
    "d07-tombstone-removed-before-slow-reader-historic": (
        "log cleaner", "cleaner.delete_horizon is segment_mtime",
    ),
    "e03-auto-commit-before-processing-historic": (
        "offsets committed before processing", "copy crashed",
    ),
    "e08-zombie-consumer-commits-after-revocation-historic": (
        "zombie task", "transaction.offsets is unfenced",
    ),
    "f01-reorder-with-in-flight-gt-1-historic": ("without idempotence", "in flight"),
    "f02-duplicate-on-retry-historic": ("retry without idempotence", "2 times"),
}  # fmt: skip
"""Entries of the catalogue, and key words of the mechanism that their source tells of."""


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_right_cause_is_named_for_an_entry_of_the_catalogue(name, tmp_path):
    run(load(CATALOGUE[name]), out=tmp_path / "run", level="facts")
    done = CliRunner().invoke(app, ["explain", str(tmp_path / "run"), "--no-rerun"])
    assert done.exit_code == 0, done.output
    told = "\n".join(line for line in done.output.splitlines() if line.startswith("why: "))
    if any(" is " in word for word in MECHANISMS[name]):
        # A behaviour of an old version leaves no row: running the seed without it shows it.
        facts = RunFacts(tmp_path / "run")
        blame = whatif.blamed(facts, facts.pick().kind, tmp_path, lambda: False)
        told += f"\n{'; '.join(blame.words) if blame else ''}"
    for word in MECHANISMS[name]:
        assert word in told, done.output


def coloured(lost, tmp_path, lost_level, wall_us=0):
    """The run, as if it had these colours and had taken so long."""
    directory = tmp_path / lost_level
    shutil.copytree(lost.directory, directory)
    numbers = {
        name: {"level": lost_level if name == "lost" else "green", "text": ""}
        for name in ("lost", "down", "slow")
    }
    for name, change in (
        ("verdict.json", {"answer": {**numbers, "faults": []}}),
        ("run.json", {"wall_us": wall_us}),
    ):
        file = directory / name
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
    return directory


def test_a_report_explains_what_is_not_green_and_tries_changes_of_what_is_red(lost, tmp_path):
    red = coloured(lost, tmp_path, "red")
    found = for_report(red, may_rerun=True)
    assert found["is_tried"]
    assert found["causes"][0].startswith("acks=1: broker-")
    assert found["advice"].startswith("the smallest change that saves it: acks=all (--set ")
    alone = for_report(red, may_rerun=False)
    assert (alone["is_tried"], alone["tried"], alone["causes"][0]) == (
        False,
        [],
        found["causes"][0],
    )
    amber = for_report(coloured(lost, tmp_path, "amber"), may_rerun=True)
    assert (amber["is_tried"], bool(amber["chain"])) == (False, True)
    assert for_report(coloured(lost, tmp_path, "green"), may_rerun=True) == {}


def test_a_report_leaves_long_runs_and_damaged_ones_to_the_user(lost, tmp_path):
    long = coloured(lost, tmp_path, "red", wall_us=RERUN_MAX + 1)
    assert for_report(long, may_rerun=True)["is_tried"] is False
    for part in (long / "trace").rglob("*.parquet"):
        part.write_bytes(b"PAR1")
    assert for_report(long, may_rerun=True) == {}
    (long / "verdict.json").unlink()
    assert for_report(long, may_rerun=True) == {}
