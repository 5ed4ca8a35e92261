"""Single faults: which are tried, what is said of them, and that a planted weakness is found."""

import json

import pytest

from sim.errors import ScenarioError, SimulationError
from sim.protocol.clients.producer.partitioner import key_of, partition_of
from sim.scenario.loader import load
from sim.suite.cache import Cache
from sim.suite.fault_outcomes import answer, closing, distinct, parse_budget, ranked, three
from sim.suite.outcome import Outcome, from_json
from sim.suite.pool import Pool, pool
from sim.suite.single_faults import SingleFault, lasting, single_faults
from sim.suite.survey import CARD, execute, prepare, untried
from sim.units import SECOND

WEAK = """
claim: Planted.
cluster:
  racks: {a: 3}
  controllers: 3
  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500}
topics:
  orders: {partitions: 1, replication.factor: 3, config: {min.insync.replicas: 1}}
producers:
  - {name: shop, topic: orders, rate: 40/s, record.size: 100B, config: {acks: 1}}
faults:
  - {at: 1s, do: crash, target: broker-1, for: 1s}
run: {for: 5s}
expect: {lost_acked: 3}
"""
SOUND = (
    WEAK.replace("{a: 3}", "{a: 1, b: 1, c: 1}")
    .replace("controllers: 3", "controllers: {a: 1, b: 1, c: 1}")
    .replace("acks: 1}", "acks: all}")
    .replace("min.insync.replicas: 1", "min.insync.replicas: 2")
)
TWO = ("power-loss-rack-a", "isolation-orders")
"""The faults that the tests really run: all of them would take too long."""

FAULT = SingleFault("crash-broker-1", "A crash of broker-1", {"do": "crash", "target": "broker-1"})


def written(tmp_path, text, name="planted.yaml"):
    file = tmp_path / name
    file.write_text(text)
    return file


def surveyed(tmp_path, text, names=TWO, seeds=(1,), **options):
    """The answers of some faults, by name, and the survey."""
    survey = prepare(written(tmp_path, text), (), seeds, tmp_path / "out")
    chosen = [job for job in survey.jobs if job.path.rsplit("/", 1)[1][:-5] in names]
    assert len(chosen) == len(names) * len(seeds)
    object.__setattr__(survey, "jobs", tuple(chosen))
    cache = options.get("cache") or Cache(None)
    stop = options.get("stop") or (lambda: False)
    told = []
    found = execute(
        survey, cache, Pool(1, None), stop, lambda what, held: told.append((what, held))
    )
    return {each.name: each for each in found}, survey, told


def ran(seed, directory="", status="held", **found):
    """An outcome with these numbers."""
    idle = ("a fault",) if found.pop("idle", False) else ()
    gap, offline = found.pop("gap", 0), found.pop("offline", 0)
    hits, unserved = found.pop("hits", ()), found.pop("unserved", ())
    numbers = found.pop("numbers", {})
    return Outcome(
        "x.yaml", seed, status, found.pop("message", ""), faults_without_effect=idle,
        records={"lost_acked": 0, "duplicated": 0, "reordered": 0} | found,
        metrics={"unavailable.produce.max": gap}, unserved=unserved, directory=directory,
        offline_us=offline, hits=hits,
        answer=tuple((name, level, f"{size}") for name, (level, size) in numbers.items()),
        sizes={name: size for name, (_, size) in numbers.items()},
    )  # fmt: skip


def numbers(lost=0, down=0, slow=5, level="green"):
    return {"lost": (level, lost), "down": ("green", down), "slow": ("green", slow)}


def test_each_of_the_three_numbers_is_that_of_the_fault_and_seed_that_made_it_worst():
    found = [
        answer(None, "calm.yaml", SECOND, [ran(1, numbers=numbers(slow=9)), ran(2)]),
        answer(FAULT, "crash.yaml", SECOND, [
            ran(1, numbers=numbers(down=7)), ran(2, numbers=numbers(lost=3, level="red")),
            ran(3, numbers=numbers(down=99), idle=True),
        ]),
    ]  # fmt: skip
    assert [tuple(line) for line in three(found)] == [
        ("lost", "red", "A crash of broker-1: 3", 3, 2),
        ("down", "green", "A crash of broker-1: 7", 7, 1),
        ("slow", "green", "Nothing going wrong: 9", 9, 1),
    ]
    assert three([answer(None, "calm.yaml", SECOND, [])]) == []


# -- the faults ------------------------------------------------------------------------------------


def test_every_broker_and_rack_and_written_topic_is_tried_and_every_kind_before_the_second(
    tmp_path,
):
    scenario = load(written(tmp_path, SOUND))
    names = [fault.name for fault in single_faults(scenario, 15 * SECOND)]
    first = [
        "power-loss-rack-a", "isolation-orders", "crash-broker-1", "pause-orders",
        "crash-controller", "slow-disk-orders", "rolling-restart",
    ]  # fmt: skip
    assert names[: len(first)] == first
    assert sorted(names[len(first) :]) == sorted(
        ["power-loss-rack-b", "power-loss-rack-c", "crash-broker-2", "crash-broker-3"]
    )


def test_without_racks_the_brokers_share_their_power(tmp_path):
    scenario = load(written(tmp_path, WEAK.replace("racks: {a: 3}", "brokers: 3")))
    entries = [f.entry for f in single_faults(scenario, SECOND) if f.entry["do"] == "power-loss"]
    assert entries == [{"do": "power-loss", "target": "all brokers", "for": "1s"}]


def test_a_fault_outlasts_the_session_of_a_broker(tmp_path):
    patient = WEAK.replace("broker.session.timeout.ms: 3000", "broker.session.timeout.ms: 30000")
    assert lasting(load(written(tmp_path, WEAK))) == 15 * SECOND
    assert lasting(load(written(tmp_path, patient))) == 36 * SECOND


@pytest.mark.parametrize(
    ("change", "also"),
    [
        ({}, "crash-controller"),
        ({"controllers: 3": "zookeeper: {servers: 3}"}, "crash-zookeeper-leader"),
        ({"controllers: 3": "combined: 3"}, "crash-controller"),
    ],
)
def test_every_scenario_that_is_written_can_be_run(tmp_path, change, also):
    text = WEAK.replace("racks: {a: 3}", "brokers: 3")
    for old, new in change.items():
        text = text.replace(old, new).replace(
            "  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500}\n",
            "",
        )
    survey = prepare(written(tmp_path, text), (), (1,), tmp_path / "out")
    faults = {file: load(file).faults for _, file in survey.faults}
    assert [len(each) for each in faults.values()] == [0] + [1] * (len(faults) - 1)
    assert any(also in file for file in faults)


def test_own_faults_and_expectations_of_the_scenario_are_left_out(tmp_path):
    survey = prepare(written(tmp_path, WEAK), ["producers.shop.rate=77/s"], (1,), tmp_path / "out")
    calm = load(survey.faults[0][1])
    assert calm.faults == ()
    assert [line.name for line in calm.expect] == ["lost_acked", "duplicated"]
    assert [fault.kind for fault in load(survey.faults[1][1]).faults] == ["power-loss"]
    assert "rate: 77/s" in (tmp_path / "out" / "nothing.yaml").read_text()


def test_what_cannot_be_judged_is_refused_before_anything_is_written(tmp_path):
    silent = WEAK.split("producers:", maxsplit=1)[0] + "run: {for: 5s}\n"
    with pytest.raises(ScenarioError, match="without producers nothing can be lost"):
        prepare(written(tmp_path, silent), (), (1,), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("mine")
    with pytest.raises(SimulationError, match="holds something else"):
        prepare(written(tmp_path, WEAK), (), (1,), tmp_path / "out")


# -- planted weaknesses ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weak(tmp_path_factory):
    return surveyed(tmp_path_factory.mktemp("weak"), WEAK)


def test_acks_1_and_one_rack_are_found_with_a_command_that_shows_it(weak):
    found, _, told = weak
    power, isolation = (found[name] for name in TWO)
    assert power.lost > 40
    assert isolation.lost > 200
    assert SECOND < power.lost_us < 12 * SECOND
    (sentence, seed), *_ = isolation.sentences()
    assert sentence.startswith(
        "Isolation of the leader of orders-0 from all other servers loses up to "
    )
    assert sentence.endswith(f"({isolation.lost:,} records), in 1 of 1 seed.")
    assert isolation.command(seed).endswith("/isolation-orders.yaml --seed 1")
    assert told == [(name, False) for name in TWO]


def test_the_seconds_lost_are_those_of_the_partition_that_lost_them(weak):
    found, survey, _ = weak
    isolation = found["isolation-orders"]
    # One partition with 42 records a second, 2 of them of the producer that reaches all partitions:
    # seconds and records tell the same.
    assert isolation.lost_us == pytest.approx(isolation.lost * SECOND / 42, rel=0.05)
    assert survey.run_us == 33 * SECOND


def test_what_was_found_lies_beside_the_scenarios(weak):
    found, survey, _ = weak
    kept = json.loads((survey.directory / CARD).read_text())
    assert [each["name"] for each in kept] == [each.name for each in ranked(found.values())]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("sound")
    return tmp_path, surveyed(tmp_path, SOUND, cache=Cache(tmp_path / "cache"))


def test_a_sound_cluster_loses_nothing_by_the_same_faults(sound):
    _, (found, _, _) = sound
    assert [each.lost for each in found.values()] == [0, 0]
    assert all(each.seeds == (1,) for each in found.values()), "both took effect"
    lines = closing(list(found.values()), 0, "5m")
    assert any(line.startswith("None of 2 single faults lost an acknowl") for line in lines)


def test_what_was_run_is_not_run_again(sound):
    tmp_path, (found, _, _) = sound
    cache = Cache(tmp_path / "cache")
    again, survey, told = surveyed(tmp_path, SOUND, cache=cache, stop=lambda: True)
    assert again == found
    assert told == [(name, True) for name in TWO]
    assert untried(survey, list(again.values())) == 0


def test_a_stop_leaves_the_rest_untried(tmp_path):
    found, survey, _ = surveyed(tmp_path, SOUND, stop=lambda: True)
    assert found == {}
    assert untried(survey, []) == 2


@pytest.mark.slow
def test_every_fault_spares_a_sound_cluster_and_some_do_not_spare_a_weak_one(tmp_path):
    outcome = {}
    for name, text in (("weak", WEAK), ("sound", SOUND)):
        (tmp_path / name).mkdir()
        survey = prepare(written(tmp_path / name, text), (), (1, 2), tmp_path / name / "out")
        with pool(2) as some:
            found = execute(survey, Cache(None), some, lambda: False, lambda _what, _held: None)
        assert not any(each.errors for each in found)
        assert untried(survey, found) == 0
        outcome[name] = {each.name for each in found if each.lost}
    assert {"power-loss-rack-a", "isolation-orders"} <= outcome["weak"]
    assert outcome["sound"] == set()


# -- one fault under several names, and a load that meets every partition -------------------------

SHARED = """
claim: One broker leads three topics, and one key is all that is written.
cluster:
  brokers: 2
  controllers: 1
  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500}
topics:
  orders: {partitions: 1, replication.factor: 2, replicas: [[broker-1, broker-2]]}
  audit: {partitions: 1, replication.factor: 2, replicas: [[broker-1, broker-2]]}
  carts:
    partitions: 2
    replication.factor: 2
    replicas: [[broker-1, broker-2], [broker-2, broker-1]]
producers:
  - {name: shop, topic: orders, rate: 5/s, record.size: 100B}
  - {name: log, topic: audit, rate: 5/s, record.size: 100B}
  - {name: cart, topic: carts, rate: 5/s, record.size: 100B, keys: uniform, key.count: 1}
run: {for: 5s}
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    names = ("pause-orders", "pause-audit", "pause-carts", "crash-broker-1", "crash-broker-2")
    return surveyed(tmp_path_factory.mktemp("shared"), SHARED, names)


@pytest.mark.slow
def test_the_leader_of_three_topics_is_one_broker_and_its_pause_one_fault(shared):
    found, survey, _ = shared
    assert sorted(found) == ["crash-broker-1", "crash-broker-2", "pause-orders"]
    pause = found["pause-orders"]
    assert pause.also == ("A pause of the leader of audit-0", "A pause of the leader of carts-0")
    (sentence, _), *_ = pause.sentences()
    assert sentence.startswith(
        "A pause of the leader of orders-0 (here the same as: A pause of the leader of audit-0; "
    )
    assert untried(survey, list(found.values())) == 0
    lines = closing(list(found.values()), 0, "5m")
    assert any(line.startswith("None of 3 single faults lost an acknowledged") for line in lines)


@pytest.mark.slow
def test_of_two_equal_brokers_neither_is_harmless_because_no_key_met_it(shared):
    found, _, _ = shared
    for name in ("crash-broker-1", "crash-broker-2"):
        assert found[name].unavailable_us > SECOND, name
        assert not found[name].is_harmless


def test_faults_are_one_if_they_met_the_same_servers_at_the_same_instants_in_every_seed():
    def met(name, *hits):
        fault = SingleFault(name, name, {})
        return fault, f"{name}.yaml", [ran(n, hits=(hit,)) for n, hit in enumerate(hits, 1) if hit]

    first, later, other = (
        ("pause", "8", "23", "broker-1"), ("pause", "9", "23", "broker-1"),
        ("pause", "8", "23", "broker-2"),
    )  # fmt: skip
    tried = [
        met("a", first, first), met("same", first, first), met("fewer", first, None),
        met("later", first, later), met("other", other, other),
        met("crash", ("crash", "8", "23", "broker-1"), None), met("nobody", ("pause", "8", "8")),
        met("nobody-too", ("pause", "8", "8")),
    ]  # fmt: skip
    names = [[fault.name for fault, _, _ in group] for group in distinct(tried)]
    assert names == [
        ["a", "same", "fewer"], ["later"], ["other"], ["crash"], ["nobody"], ["nobody-too"],
    ]  # fmt: skip


def test_whom_a_fault_met_is_remembered_with_the_run():
    outcome = ran(1, hits=(("pause", "8", "23", "broker-1"),))
    assert from_json(json.loads(json.dumps(outcome.as_json()))) == outcome


def test_the_load_of_the_trials_reaches_every_partition(tmp_path):
    survey = prepare(written(tmp_path, SHARED), (), (1,), tmp_path / "out")
    calm = load(survey.faults[0][1])
    assert [p.name for p in calm.producers] == [
        "shop", "log", "cart", "reach-orders", "reach-audit", "reach-carts",
    ]  # fmt: skip
    carts = calm.producers[-1]
    assert {partition_of(key_of(n), 2) for n in range(carts.key_count)} == {0, 1}
    assert carts.rate_per_s * lasting(calm) >= 16 * 2 * SECOND


def test_a_partition_without_a_leader_is_a_cost_although_nobody_waits_for_it():
    found = answer(FAULT, "x.yaml", SECOND, [ran(1), ran(2, offline=9_100_000)])
    assert found.sentences() == [
        ("A crash of broker-1 leaves a partition without a leader for up to 9.1 s.", 2)
    ]
    assert not found.is_harmless
    calm = answer(FAULT, "x.yaml", SECOND, [ran(1, gap=2_000_000)])
    assert ranked([calm, found]) == [found, calm]


# -- sentences -------------------------------------------------------------------------------------


def test_the_worst_seed_is_told_and_how_many_lost_something(tmp_path):
    (tmp_path / "verdict.json").write_text(
        json.dumps(
            {
                "partitions": {
                    "orders-0": {"lost_acked": 82, "sent": 660},
                    "orders-1": {"lost_acked": 0, "sent": 0},
                }
            }
        )
    )
    runs = [ran(1), ran(2, lost_acked=82, directory=str(tmp_path), gap=9_100_000), ran(3, gap=9)]
    found = answer(FAULT, "x/crash-broker-1.yaml", 33 * SECOND, runs)
    first, second = found.sentences()
    often = "in 1 of 3 seeds."
    words = f"A crash of broker-1 loses up to 4.1 s of acknowledged records (82 records), {often}"
    assert first == (words, 2)
    assert second == ("A crash of broker-1 stops writes to a partition for up to 9.1 s.", 2)
    assert found.command(2) == "logquake run x/crash-broker-1.yaml --seed 2"
    assert not found.is_harmless


def test_duplicates_and_disorder_have_sentences_of_their_own():
    found = answer(FAULT, "x.yaml", SECOND, [ran(4, duplicated=1), ran(5, reordered=7)])
    assert [seed for _, seed in found.sentences()] == [4, 5]
    assert "leaves up to 1 record twice in the log" in found.sentences()[0][0]
    assert "leaves up to 7 records behind later ones" in found.sentences()[1][0]


def test_a_topic_that_refuses_what_it_is_sent_is_not_harmless():
    words = "topic t: nothing was acknowledged of 10 records sent: 10 failed (INVALID_RECORD 10)"
    found = answer(None, "x.yaml", SECOND, [ran(1), ran(2, status="failed", unserved=(words,))])
    assert found.sentences() == [(f"Nothing going wrong: {words}.", 2)]
    assert not found.is_harmless


def test_a_fault_without_effect_is_no_comfort():
    idle = answer(FAULT, "x.yaml", SECOND, [ran(1, idle=True, status="failed")])
    assert (idle.seeds, idle.idle_seeds, idle.is_harmless) == ((), (1,), False)
    lines = closing([idle], 0, "5m")
    assert lines == ["A crash of broker-1 did not take effect, which says nothing."]


def test_a_run_without_a_verdict_is_no_comfort_either():
    found = answer(FAULT, "x.yaml", SECOND, [ran(1, status="defect", message="boom")])
    assert found.errors == ("seed 1: defect: boom",)
    assert not found.is_harmless


def test_what_few_seeds_may_miss_is_said_and_what_the_budget_left_out():
    calm = answer(FAULT, "x.yaml", SECOND, [ran(1), ran(2), ran(3)])
    lines = closing([calm], 4, "90s")
    assert lines[0] == "Harmless (1 s at most): A crash of broker-1."
    assert "less than 63% of the cases" in lines[1]
    assert lines[2].startswith("4 runs did not fit into the budget of 90s")


@pytest.mark.parametrize(
    ("text", "micros"), [("90s", 90), ("5m", 300), ("2min", 120), ("1h", 3600)]
)
def test_a_budget_is_a_time(text, micros):
    assert parse_budget(text) == micros * SECOND


@pytest.mark.parametrize("text", ["5", "m", "soon", ""])
def test_what_is_no_time_is_no_budget(text):
    with pytest.raises(ValueError):
        parse_budget(text)
