"""logquake explain names the cause that the trace shows, and none that it does not."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.errors import InvariantBroken
from sim.faults.injector import FaultReport
from sim.scenario.expect.stories import nearest_fault
from sim.scenario.loader import load, load_text
from sim.scenario.run.runner import run
from sim.suite.explain import chain, whatif
from sim.suite.explain.causes import causes
from sim.suite.explain.run_facts import RunFacts, Story
from sim.suite.explain.waits import forgotten_batch
from tests.scenarios.run_kit import CATALOGUE, text_of

ONE = {"partitions": 1}
SLOW = {"rate": "50/s"}
SHORT = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}


def story_of(tmp_path, asked="", **parts):
    """The story that a small run tells."""
    parts = {"topic": ONE, "producer": SLOW, "config": SHORT} | parts
    run(load_text(text_of(**parts)), out=tmp_path / "run", level="facts")
    facts = RunFacts(tmp_path / "run")
    return Story(facts, facts.pick(asked))


def told(directory, *words):
    """What the command prints of a run."""
    done = CliRunner().invoke(app, ["explain", str(directory), *words])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def silent(tmp_path_factory):
    """A leader is paused; another one is ready after three seconds, and clients hear nothing."""
    pause = {"at": "2s", "do": "pause", "target": "leader of orders-0", "for": "17s"}
    client = {**SLOW, "config": {"request.timeout.ms": 15000}}
    return story_of(tmp_path_factory.mktemp("silent"), lasts="20s", faults=[pause], producer=client)


def test_a_silent_leader_costs_request_timeout_ms_although_another_one_is_ready(silent):
    first, second = causes(silent)
    elected = next(row["t_us"] for row in silent.changes if row["leader_epoch"] == 1)
    (sent_again,) = {
        row["last_sent_us"]
        for row in silent.facts.rows("client_batches")
        if row["t_us"] == silent.window[1]
    }
    assert sent_again - elected > 8_000_000
    assert first.startswith("request.timeout.ms: shop sent record ")
    assert "for 15,000 ms" in first
    assert f"had been leader for {(sent_again - elected) / 1e6:.4g} s by then" in first
    assert "waited for the session of broker-1 to end" in second


PATIENCE = {"metadata.max.age.ms": 700, "request.timeout.ms": 8000, "delivery.timeout.ms": 12000}
SINGLES = {"batch.size": 0, **PATIENCE}
IN_TURN = [[f"broker-{(first + turn) % 3 + 1}" for turn in range(3)] for first in range(3)]


def test_a_batch_that_the_next_leader_has_and_forgot_is_refused_until_its_producer_gives_up(
    tmp_path,
):
    """Copied, not answered; and its producer goes on at the next leader before it tries again."""
    mute = {"message": "ProduceResponse", "from": "broker-1", "to": "shop"}
    story = story_of(
        tmp_path, lasts="14s", producer={**SLOW, "config": SINGLES}, topic={"replicas": IN_TURN},
        faults=[
            {"at": "2s", "do": "hold", "for": "10s", **mute},
            {"at": "2500ms", "do": "pause", "target": "broker-1", "for": "11s"},
        ],
    )  # fmt: skip
    refused = [r for r in story.facts.rows("client_batches") if r["outcome"] != "ok"]
    assert [row["outcome"] for row in refused] == ["unknown"] * 5, "all that were in flight"
    assert story.facts.verdict["records"]["unacked_present"] == 5
    first = causes(story)[0]
    assert first.startswith("retry of a batch that is forgotten: shop sent record ")
    assert "and remembers 5 of a producer: OUT_OF_ORDER_SEQUENCE_NUMBER" in first
    assert not [each for each in causes(story) if each.startswith("request.timeout.ms")]


def test_a_batch_that_a_new_leader_never_had_is_refused_behind_a_later_one():
    """A leader that has lost its log knows no producer, and takes whatever comes first."""
    sent = {
        "producer": "shop", "producer_index": 0, "first_record": 37, "first_sent_us": 2_000_000,
        "last_sent_us": 120_000_000, "t_us": 120_000_000, "attempts": 102, "outcome": "unknown",
    }  # fmt: skip
    taken = {
        "broker": 3, "producer_index": 0, "first_record": 42, "base_sequence": 42,
        "base_offset": 0, "t_us": 25_000_000,
    }  # fmt: skip
    facts = SimpleNamespace(rows=lambda *_: [sent])
    story = SimpleNamespace(
        window=(2_000_000, 120_000_000), subject="orders-0", facts=facts, leader_at=lambda _: 3,
        appends=[taken],
    )  # fmt: skip
    (words,) = forgotten_batch(story)
    assert words == (
        "retry of a batch that a later one has overtaken: shop sent record 37 102 times, until "
        "120.000000 s; broker-3, the leader then, had record 42 of the same producer at offset 0, "
        "since 25.000000 s, and not this one: OUT_OF_ORDER_SEQUENCE_NUMBER"
    )
    story.appends = [taken | {"first_record": 36}]
    assert not list(forgotten_batch(story)), "an earlier one refuses nothing"


@pytest.mark.slow
def test_a_shorter_request_timeout_ms_is_what_saves_the_clients_of_a_silent_leader(
    silent, tmp_path
):
    found = list(whatif.trials(silent.facts, "outage", tmp_path, lambda: False))
    assert found[-1].change.words == "request.timeout.ms=5000"
    assert found[-1].saves


def test_a_machine_without_power_resets_no_connection_until_it_is_up_again(tmp_path):
    dark = {"at": "2s", "do": "power-loss", "target": "broker-1", "for": "10s"}
    story = story_of(
        tmp_path, lasts="22s", faults=[dark], producer={"rate": "200/s"},
        topic={"partitions": 1, "replicas": [["broker-1", "broker-2", "broker-3"]]},
    )  # fmt: skip
    first, second = causes(story)
    assert first.startswith("a machine without power resets no connection: shop sent record ")
    assert (
        "started again at 12.000000 s, refused a retransmission; request.timeout.ms is 30,000"
        in first
    )
    assert "broker-2 had been leader for " in first
    assert "waited for the session of broker-1 to end" in second


def test_a_crashed_leader_resets_its_connections_and_request_timeout_ms_is_not_named(tmp_path):
    crash = {"at": "2s", "do": "crash", "target": "leader of orders-0", "for": "8s"}
    story = story_of(tmp_path, lasts="11s", faults=[crash])
    (why,) = causes(story)
    assert "controller-1 waited for the session of broker-1 to end" in why
    assert "broker.session.timeout.ms 3,000" in why
    (fenced,) = [r["t_us"] for r in story.facts.rows("broker_states") if r["state"] == "fenced"]
    assert f"fenced it at {fenced / 1e6:.6f} s" in why


def test_under_zookeeper_it_is_the_end_of_the_leaders_session_that_is_named(tmp_path):
    crash = {"at": "2s", "do": "crash", "target": "leader of orders-0", "for": "8s"}
    story = story_of(
        tmp_path, lasts="11s", faults=[crash], cluster={"zookeeper": {"servers": 3}},
        config={"zookeeper.session.timeout.ms": 4000},
    )  # fmt: skip
    (ended,) = [
        row
        for row in story.facts.rows("broker_states")
        if row["state"] == "unregistered" and 2_000_000 < row["t_us"] < 10_000_000
    ]
    assert 2_000_000 < ended["t_us"] - 2_000_000 <= 4_000_000 + 2_000_000
    old = f"broker-{ended['broker']}"
    (why,) = [each for each in causes(story) if "session" in each]
    elected = next(row for row in story.changes if row["leader_epoch"] == 1)
    assert why.startswith(f"broker-{elected['leader']} was made leader ")
    assert why.endswith(
        f"ZooKeeper waited for the session of {old} to end until {ended['t_us'] / 1e6:.6f} s "
        "(zookeeper.session.timeout.ms 4,000)"
    )


def test_without_any_controller_nobody_waited_and_nobody_could_elect(tmp_path):
    all_of_them = ["controller-1", "controller-2", "controller-3"]
    faults = [
        {"at": "2s", "do": "crash", "target": all_of_them, "for": "7s"},
        {"at": "3s", "do": "crash", "target": "leader of orders-0", "for": "12s"},
    ]
    story = story_of(tmp_path, lasts="16s", faults=faults)
    first, second = causes(story)
    leads = [r["t_us"] for r in story.facts.rows("quorum") if r["role"] == "leader"]
    until = next(at for at in leads if at > 2_000_000)
    assert first.startswith(
        f"no controller was active from 2.000000 s to {until / 1e6:.6f} s "
        "(controller-1, controller-2, controller-3 down)"
    )
    assert "after it had become the controller" in second


def test_a_flipped_bit_is_named_and_not_a_lost_write(tmp_path):
    flip = {"at": "2s", "do": "corrupt-replica", "target": "broker-1", "partition": "orders-0"}
    alone = {"partitions": 1, "replication.factor": 1, "config": {}}
    story = story_of(
        tmp_path, lasts="4s", topic=alone, faults=[flip], cluster={"brokers": 1, "controllers": 1}
    )
    assert story.subject.kind == "lost_acked"
    (cut,) = [row["to_offset"] for row in story.truncations]
    why = causes(story)
    assert why[0] == "acks=all meant broker-1 alone: the partition has no other replica"
    assert why[1].startswith("damaged bytes: a bit flipped on broker-1 at 2.000000 s (faults[0])")
    assert f"at offset {cut}," in why[1]
    assert len(why) == 2, "the election behind it has lost nothing"
    words = [line for _, line in chain.lines(story)]
    assert "broker-1 lost it in recovery: a bit flipped, and the log is cut there" in words
    assert not any("platter" in line for line in words)


def test_a_power_loss_is_still_named_as_one(tmp_path):
    dark = {"at": "2s", "do": "power-loss", "target": "broker-1", "for": "1s"}
    alone = {"partitions": 1, "replication.factor": 1, "config": {}}
    story = story_of(
        tmp_path, lasts="5s", topic=alone, faults=[dark], cluster={"brokers": 1, "controllers": 1}
    )
    assert any(why.startswith("power loss: broker-1 had the record") for why in causes(story))


def test_what_the_object_store_has_and_its_metadata_lost_is_named_before_the_power_loss(tmp_path):
    """Seen on a real Kafka 4.3.1 with LocalTieredStorage."""
    dark = {"at": "6500ms", "do": "power-loss", "target": "broker-1", "for": "1s"}
    tiered = {
        "remote.log.storage.system.enable": True, "remote.log.manager.task.interval.ms": 1000,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "log.initial.task.delay.ms": 1000, "log.retention.check.interval.ms": 1000,
    }  # fmt: skip
    latency = {"p50": "20ms", "p99": "60ms"}
    small = {"remote.storage.enable": True, "segment.bytes": 2**20, "local.retention.bytes": 2**20}
    story = story_of(
        tmp_path, lasts="16s", topic={"partitions": 1, "replication.factor": 1, "config": small},
        producer={"rate": "100/s", "record.size": "5KB"}, config=SHORT | tiered, faults=[dark],
        cluster={"brokers": 1, "controllers": 1, "object-store": {"latency": latency}},
    )  # fmt: skip
    assert story.subject.kind == "lost_acked"
    (start,) = story.facts.rows("log_starts")
    assert start["reason"] == "remote"
    why = causes(story)
    assert why[0].startswith("forgotten in the object store: at ")
    words = [line for _, line in chain.lines(story)]
    known = "broker-1 moved its log start above it: it knows no remote segment that has it"
    assert known in words


def test_the_epoch_that_cut_a_log_and_the_one_that_leads_are_told_as_the_trace_has_them(tmp_path):
    """The leader that took over first is not the one that leads when the old one comes back."""
    faults = [
        {"at": "1s", "do": "delay", "between": "broker-1", "and": ["broker-2", "broker-3"],
         "one-way": True, "by": "80ms", "for": "1500ms"},
        {"at": "2s", "do": "crash", "target": "broker-1", "for": "20s"},
        {"at": "8s", "do": "crash", "target": "broker-2", "for": "6s"},
        {"at": "16s", "do": "crash", "target": "broker-3", "for": "3s"},
    ]  # fmt: skip
    topic = {
        "partitions": 1, "replicas": [["broker-1", "broker-2", "broker-3"]],
        "config": {"min.insync.replicas": 1},
    }  # fmt: skip
    story = story_of(tmp_path, lasts="24s", acks=1, topic=topic, faults=faults)
    assert story.subject.kind == "lost_acked"
    cuts = [row["leader_epoch"] for row in story.truncations if row["broker"] == 1]
    assert cuts[0] > 1
    (why,) = [line for line in causes(story) if line.startswith("election of a leader without")]
    assert "broker-2 took over in leader epoch 1, and broker-1 truncated" in why
    assert why.endswith(f"in leader epoch {cuts[0]}")
    last = story.changes[-1]
    leads = f"in the end broker-{last['leader']} leads in leader epoch {last['leader_epoch']};"
    assert chain.ending(story).startswith(leads)
    epochs = [b["leader_epoch"] for a, b in pairwise(story.changes) if _is_new(a, b)]
    words = " ".join(line for _, line in chain.lines(story))
    assert all(f"leader epoch {epoch}" in words for epoch in epochs)


def _is_new(before, after):
    return before["leader_epoch"] != after["leader_epoch"]


LOOKS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000}
"""How often a coordinator looks for transactions that took too long."""


def transactional(tmp_path, **more):
    """A producer whose fifth EndTxn is held for six seconds."""
    hold = {"at": "4500ms", "do": "hold", "message": "EndTxnRequest", "from": "shop", "count": 1,
            "for": "6s"}  # fmt: skip
    client = {**SLOW, "transaction": {"records": 50}}
    config = {"transactional.id": "front", **more}
    return story_of(
        tmp_path,
        lasts="12s",
        producer={**client, "config": config},
        faults=[hold],
        config=SHORT | LOOKS,
    )


def test_a_late_end_txn_is_named_as_what_the_next_transaction_waits_for(tmp_path):
    story = transactional(tmp_path)
    assert story.subject.kind == "outage"
    decided = max(
        row["t_us"]
        for row in story.facts.rows("transactions")
        if row["state"] == "PrepareCommit" and row["t_us"] < story.window[1]
    )
    (why,) = causes(story)
    assert why.startswith("late EndTxn: broker-")
    assert f"decided transaction 4 of front at {decided / 1e6:.6f} s" in why
    assert "faults[0] at work: 1 messages held, EndTxnRequest: shop" in why


def test_a_transaction_whose_end_txn_came_too_late_is_told_of_its_records(tmp_path):
    """It timed out at 7 s, the coordinator sees it by 8 s, and its EndTxn arrives at 10.5 s."""
    story = transactional(tmp_path, **{"transaction.timeout.ms": 3000})
    assert story.subject.kind == "aborted"
    (why,) = causes(story)
    assert why.startswith("no EndTxn in time: broker-")
    assert "aborted transaction 4 of front" in why
    assert "answered with INVALID_TXN_STATE" in why
    words = [line for _, line in chain.lines(story)]
    for event in ("the coordinator: PrepareAbort (timed out)", "the ABORT marker at offset",
                  "learns the end of transaction 4 of front: aborted"):  # fmt: skip
        assert any(event in line for line in words), words
    assert "was sent in a transaction that was aborted" in told(tmp_path / "run", "--no-rerun")
    early = story.facts.pick("shop:orders-0:3")
    assert early.kind == "late", "its transaction was committed"


def test_the_nearest_fault_is_the_nearest_that_took_effect():
    def report(place, at, took_effect):
        return FaultReport(
            place, "crash", "broker-1", "broker-1", at, at + 1, took_effect, "was not running"
        )

    idle, real = report(0, 5_000_000, False), report(1, 9_000_000, True)
    assert "faults[1], begun at 9.000000 s" in nearest_fault(5_000_001, (idle, real))
    assert nearest_fault(5_000_001, (idle,)) == "no fault took effect"
    assert nearest_fault(5_000_001, ()) == "no fault began"


def test_a_fault_without_effect_is_told_as_such_in_the_chain(tmp_path):
    faults = [
        {"at": "2s", "do": "crash", "target": "leader of orders-0", "for": "5s"},
        {"at": "3s", "do": "pause", "target": "leader of orders-0", "for": "1s"},
    ]
    story = story_of(tmp_path, lasts="8s", faults=faults)
    words = [line for _, line in chain.lines(story)]
    paused = [line for line in words if line.startswith("fault 1, pause of leader of orders-0")]
    assert paused == [f"fault 1, pause of leader of orders-0, {edge}, without effect: "
                      "was not running" for edge in ("begins", "is over")]  # fmt: skip


OLD = {"truncation": "kip101", "transactions": "kip98", "recovery": "isr"}


@pytest.fixture(scope="module")
def guiltless(tmp_path_factory):
    """``acks=1`` loses records; three old behaviours have no part in it."""
    faults = [
        {"at": "1s", "do": "delay", "between": "leader of orders-0", "and": "all brokers",
         "one-way": True, "by": "80ms", "for": "2s"},
        {"at": "2s", "do": "crash", "target": "leader of orders-0", "for": "5s"},
    ]  # fmt: skip
    return story_of(
        tmp_path_factory.mktemp("guiltless"), lasts="8s", acks=1, faults=faults, behaviours=OLD
    )


def test_an_old_behaviour_that_changes_nothing_is_no_cause(guiltless, tmp_path):
    assert guiltless.subject.kind == "lost_acked"
    assert not any("before a fix" in why for why in causes(guiltless))
    assert whatif.blamed(guiltless.facts, "lost_acked", tmp_path, lambda: False) is None
    printed = told(guiltless.facts.directory, "--no-rerun")
    assert "not tried: whether it takes behaviours of an older version (recovery is isr" in printed


@pytest.mark.slow
def test_the_old_behaviour_of_a_published_failure_is_found_among_others(tmp_path):
    """B1: an ISR that keeps who came back from an unclean shutdown, before ELR (KIP-966)."""
    also = ("behaviours.transactions=kip98",)
    run(load(CATALOGUE["b01-last-replica-standing-historic"], also), out=tmp_path / "run",
        level="facts")  # fmt: skip
    facts = RunFacts(tmp_path / "run")
    blame = whatif.blamed(facts, facts.pick().kind, tmp_path, lambda: False)
    assert "recovery is isr, today's is elr" in blame.words
    assert not any("transactions" in words for words in blame.words)
    assert blame.found == 0


@pytest.mark.parametrize(
    ("guilty", "runs"), [({"recovery"}, 5), ({"truncation"}, 5), ({"recovery", "truncation"}, 6)]
)
def test_the_old_behaviour_that_it_takes_is_found_by_halves(
    guilty, runs, guiltless, tmp_path, monkeypatch
):
    tried = []

    def again(facts, kind, overrides, directory, should_stop):
        tried.append(overrides)
        left = {word.partition(".")[2].partition("=")[0] for word in overrides}
        return 0 if guilty <= left else 7

    monkeypatch.setattr(whatif, "_again", again)
    blame = whatif.blamed(guiltless.facts, "lost_acked", tmp_path, lambda: False)
    names = [words.partition(" ")[0] for words in blame.words]
    assert set(names) == guilty
    assert len(tried) <= runs


def test_a_trial_that_breaks_an_invariant_shows_nothing_and_is_told(
    guiltless, tmp_path, monkeypatch
):
    """A mixture of versions that never was: one of two behaviours alone."""

    def again(facts, kind, overrides, directory, should_stop):
        if len(overrides) < len(OLD):
            raise InvariantBroken("in-sync-complete broken at 47 s\nrows")
        return 0

    monkeypatch.setattr(whatif, "_again", again)
    blame = whatif.blamed(guiltless.facts, "lost_acked", tmp_path, lambda: False)
    assert len(blame.words) == len(OLD)
    assert all(error.endswith(": in-sync-complete broken at 47 s") for error in blame.errors)
    (first, *_) = whatif.trials(guiltless.facts, "lost_acked", tmp_path, lambda: False)
    assert (first.saves, first.error) == (False, "in-sync-complete broken at 47 s")


def test_a_few_milliseconds_without_an_answer_are_no_outage(tmp_path):
    story = story_of(tmp_path, lasts="2s")
    assert story.subject.kind == "wait"
    assert story.subject.for_us < 50_000
    assert causes(story) == []
    printed = told(tmp_path / "run")
    assert "nothing went wrong; the longest time without an acknowledgement is" in printed
    assert "which is no outage" in printed
    assert "why:" not in printed
    assert "would have" not in printed


def test_what_an_expectation_calls_too_long_is_an_outage_however_short(tmp_path):
    story = story_of(tmp_path, lasts="2s", expect={"unavailable.produce.max": "< 1ms"})
    assert story.subject.kind == "outage"
