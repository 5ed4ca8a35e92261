"""Draws of a hunt come together as failures do, and its corpus keeps what nearly failed."""

from collections import Counter

import pytest

from sim.hunting.search.corpus import Corpus, coarse
from sim.hunting.search.execution import Scout
from sim.hunting.search.menu import Menu, micros
from sim.hunting.search.nearness import NEAR
from sim.hunting.search.points import Point
from sim.hunting.search.prior import Times
from sim.hunting.search.schedule import Breeder, Parent, Schedule
from sim.rng import Stream
from sim.scenario.loader import load_data
from sim.scenario.run.runner import run
from sim.suite.pool import pool
from sim.units import MS, SECOND
from tests.hunting.losing import SERVERS, SHOP, losing

PLAIN = losing(
    [],
    producers=[SHOP | {"rate": "20/s", "stop": "8s"}],
    consumers=[{"group": "audit", "topics": ["orders"], "stop": "9s"}],
    run={"for": "12s", "drain.timeout": "20s"},
)
MESSAGES = (
    "broker-1 FetchResponse broker-2",
    "broker-2 FetchRequest broker-1",
    "shop ProduceRequest broker-1",
    "broker-1 ProduceResponse shop",
)


def menu(plain=PLAIN, kinds=()):
    return Menu(load_data(plain), kinds, MESSAGES)


def drawn(count=600, kinds=(), plain=PLAIN):
    every = menu(plain, kinds)
    return [every.draw(Stream(1, f"draw/{number}")) for number in range(count)]


# -- whom ------------------------------------------------------------------------------------------


def test_power_leaves_the_leader_all_brokers_and_all_but_one_in_tens_of_draws_not_in_hundreds():
    hit = Counter(str(strike["target"]) for strike in drawn(kinds=("power-loss",)))
    assert hit["leader of orders-0"] > 600 / 10
    assert hit["all brokers"] > 600 / 30
    together = sum(hit[str(some)] for some in (["broker-1", "broker-2"], ["broker-1", "broker-3"],
                                               ["broker-2", "broker-3"]))  # fmt: skip
    assert together > 600 / 30
    assert hit["controller leader"] > 600 / 60


def test_racks_fail_as_a_whole():
    racks = {"a": 1, "b": 1, "c": 1}
    servers = {"racks": racks, "controllers": racks, "config": SERVERS["config"]}
    hit = Counter(
        str(s["target"]) for s in drawn(kinds=("crash",), plain=PLAIN | {"cluster": servers})
    )
    assert hit["rack a"] + hit["rack b"] + hit["rack c"] > 600 / 30


def test_what_takes_a_server_away_is_drawn_more_often_than_what_makes_it_late():
    kinds = Counter(strike["do"] for strike in drawn(2000))
    for often in ("crash", "power-loss", "pause", "partition"):
        assert kinds[often] > 2000 / 20
        assert kinds[often] > 2 * kinds["slow-cpu"]


def test_a_fault_of_messages_is_where_they_are_sent():
    for strike in drawn(kinds=("hold", "drop", "duplicate")):
        is_sent = strike["message"] in ("FetchResponse", "ProduceResponse")
        servers = ("broker-1", "leader of orders-0", "all brokers")
        if is_sent:
            assert strike["from"] in servers
        elif strike["message"] == "ProduceRequest":
            assert strike["from"] == "shop"


def followed(first, count=600, kinds=("crash",), plain=PLAIN):
    every = menu(plain, kinds)
    return [every.following([first], Stream(8, f"{n}")) for n in range(count)]


def test_a_later_fault_mostly_meets_whom_the_first_hit_or_whom_it_left():
    two = {"at": "3s", "do": "crash", "target": ["broker-1", "broker-2"], "for": "4s"}
    hit = Counter(str(strike["target"]) for strike in followed(two))
    assert hit["broker-3"] > 600 / 5
    assert hit["['broker-1', 'broker-2']"] > 600 / 5
    one = {"at": "3s", "do": "crash", "target": "leader of orders-0", "for": "4s"}
    # Without the rule it is a quarter.
    assert Counter(str(s["target"]) for s in followed(one))["leader of orders-0"] > 600 * 0.5


def test_no_later_fault_is_put_on_whom_its_kind_cannot_hit():
    client = {"at": "3s", "do": "pause", "target": "shop", "for": "1s"}
    assert not any(s["target"] == "shop" for s in followed(client, kinds=("wiped-disk",)))
    assert any(s["target"] == "shop" for s in followed(client, kinds=("crash",)))


def test_coordinators_are_hit_as_roles():
    hit = Counter(str(strike["target"]) for strike in drawn(kinds=("crash",)))
    assert hit["group coordinator of audit"] > 600 / 60
    shop = SHOP | {"rate": "20/s", "stop": "8s", "transaction": {"records": 5},
                   "config": {"transactional.id": "till"}}  # fmt: skip
    hit = Counter(
        str(s["target"]) for s in drawn(kinds=("crash",), plain=PLAIN | {"producers": [shop]})
    )
    assert hit["transaction coordinator of till"] > 600 / 90


# -- when, and how long ----------------------------------------------------------------------------


def test_the_second_fault_mostly_meets_the_first_or_comes_soon_after_it():
    every = menu()
    first = {"at": "3s", "do": "crash", "target": "broker-1", "for": "2s"}
    near = 0
    for number in range(300):
        second = every.following([first], Stream(2, f"{number}"))
        # The longest timer within the run is the session of 3 s.
        near += 3 * SECOND <= micros(second["at"]) <= 8 * SECOND
    assert near > 300 * 0.75
    alone = [micros(strike["at"]) for strike in drawn(300)]
    assert max(alone) > 8 * SECOND
    assert min(alone) < 3 * SECOND


def test_lengths_are_around_timers_of_the_settings_that_can_end_within_the_run():
    config = {**SERVERS["config"], "replica.lag.time.max.ms": 4000}
    times = Times(load_data(PLAIN | {"cluster": {**SERVERS, "config": config}}))
    assert 3 * SECOND in times.timers
    assert 4 * SECOND in times.timers
    assert max(times.timers) < 12 * SECOND
    lengths = [times.length(Stream(3, f"{n}")) for n in range(400)]
    assert sum(1_500 * MS < each < 10 * SECOND for each in lengths) > 200
    assert all(each % MS == 0 for each in lengths)


CRASHED = {"at": "2s", "do": "crash", "target": "broker-1", "for": "5s"}
DARK = {"at": "2s", "do": "power-loss", "target": "all brokers", "for": "5s"}


def test_some_later_faults_begin_when_a_timer_ends_that_began_with_the_first():
    times = Times(load_data(PLAIN))
    longest = max(times.timers)
    began, ended = SECOND, SECOND + 100 * MS
    late = sum(
        began + longest <= times.follow(began, ended, Stream(9, f"{n}")) <= began + 2 * longest
        for n in range(400)
    )
    assert late > 400 / 8


def test_lengths_are_around_timers_of_applications_too():
    copy = {"name": "copy", "topics": ["orders"], "output": "bills",
            "config": {"consumer.session.timeout.ms": 6500}}  # fmt: skip
    topics = PLAIN["topics"] | {"bills": PLAIN["topics"]["orders"]}
    times = Times(load_data(PLAIN | {"topics": topics, "processors": [copy]}))
    assert 6_500 * MS in times.timers


@pytest.mark.parametrize(
    ("strikes", "is_idle"),
    [
        ([CRASHED, {"at": "3s", "do": "pause", "target": "broker-1", "for": "1s"}], True),
        ([CRASHED, {"at": "3s", "do": "pause", "target": "broker-1", "for": "9s"}], False),
        ([CRASHED, {"at": "3s", "do": "pause", "target": "broker-2", "for": "1s"}], False),
        ([CRASHED, {"at": "3s", "do": "power-loss", "target": "broker-1", "for": "1s"}], False),
        ([CRASHED, {"at": "3s", "do": "wiped-disk", "target": "broker-1"}], False),
        ([DARK, {"at": "3s", "do": "crash", "target": "leader of orders-0", "for": "1s"}], True),
        ([DARK, {"at": "3s", "do": "crash", "target": "controller leader", "for": "1s"}], False),
        ([CRASHED | {"target": "leader of orders-0"},
          {"at": "3s", "do": "pause", "target": "broker-1", "for": "1s"}], False),
        ([{"at": "8s", "do": "pause", "target": "shop", "for": "1s"}], True),
        ([{"at": "8s", "do": "pause", "target": "audit", "for": "1s"}], False),
        ([{"at": "9s", "do": "delay", "between": "audit", "by": "1ms", "for": "1s"}], True),
    ],
)  # fmt: skip
def test_what_can_meet_nothing_is_not_drawn(strikes, is_idle):
    assert menu().is_idle(strikes) is is_idle


def test_no_schedule_of_a_hunt_has_a_fault_that_can_meet_nothing():
    breeder = Breeder(PLAIN, menu(kinds=("crash", "pause")), 3)
    made = [breeder.uniform(Stream(4, f"{n}"))[0] for n in range(120)]
    assert not any(breeder.menu.is_idle([dict(f) for f in each.faults]) for each in made)
    assert breeder.drawn > 120


# -- nearness --------------------------------------------------------------------------------------


def scouted(tmp_path, *faults, **parts):
    scenario = load_data(PLAIN | {"faults": list(faults)} | parts)
    scout = Scout(scenario, is_waiting=False, hears_messages=False)
    run(scenario, 1, tmp_path / "run", force=True, level="facts", hooks=scout)
    return scout.coverage


def test_fewer_copies_of_what_was_acknowledged_are_nearer_to_a_loss(tmp_path):
    safe = PLAIN["producers"][0] | {"config": {"acks": "all"}}
    crash = {"at": "3s", "do": "crash", "for": "8s"}
    calm = scouted(tmp_path, producers=[safe]).near
    one = scouted(tmp_path, crash | {"target": "broker-1"}, producers=[safe]).near
    two = scouted(tmp_path, crash | {"target": ["broker-1", "broker-2"]}, producers=[safe])
    assert calm.least.get("copies", 3) == 3
    assert one.least["copies"] == 2
    assert two.near.least["copies"] == two.near.least["live-in-sync"] == 1
    assert calm.distance > one.distance > two.near.distance
    last = {point.node for point in two.points.kept() if point.name == "last-copy"}
    assert last == {"broker-3"}


def test_a_leader_whose_log_ends_below_what_was_acknowledged_is_the_nearest(tmp_path):
    dark = {"at": "4s", "do": "power-loss", "target": "all brokers", "unflushed": "lost",
            "for": "2s"}  # fmt: skip
    near = scouted(tmp_path, dark).near
    assert near.least["behind"] == 0
    assert near.least["copies"] == 0


# -- the corpus ------------------------------------------------------------------------------------


def test_what_came_nearer_is_kept_without_a_new_state_and_is_continued_more_often():
    corpus = Corpus()
    far, near, other = (Parent(Schedule(seed=n)) for n in (1, 2, 3))
    for _ in range(20):
        corpus.add(far, [1], 15)
    assert corpus.add(near, [1], 5) == 0
    assert corpus.add(other, [1], 7) == 0
    assert [entry.parent for entry in corpus.entries] == [far, near]
    assert corpus.energy(1) > 100 * corpus.energy(0)


def test_what_nearly_failed_stays_near_whatever_else_has_failed():
    corpus = Corpus()
    corpus.add(Parent(Schedule(seed=1)), [1], 0, is_found=True)
    assert corpus.nearest is None
    corpus.add(Parent(Schedule(seed=2)), [1], 7)
    assert corpus.nearest == 7
    assert corpus.energy(1) > corpus.energy(0)


def test_what_has_failed_is_continued_less_often_than_what_nearly_did():
    corpus = Corpus()
    corpus.add(Parent(Schedule(seed=1)), [1], 5, is_found=True)
    corpus.add(Parent(Schedule(seed=2)), [2], 5)
    assert corpus.energy(1) == pytest.approx(4 * corpus.energy(0), rel=1e-3)


def test_what_failed_as_another_one_is_counted_and_not_continued():
    corpus = Corpus()
    corpus.add(Parent(Schedule(seed=1)), [1], 0, is_found=True)
    assert corpus.add(Parent(Schedule(seed=2)), [2, 3], 0, is_found=True, is_known=True) == 2
    assert [entry.parent.schedule.seed for entry in corpus.entries] == [1]
    assert corpus.counts == {1: 1, 2: 1, 3: 1}


def test_cells_of_a_corpus_are_named_states_and_pairs_of_them():
    assert len(coarse(["elr", "overlap", "paused"], ["crash"])) == 3 + 3 + 1
    assert coarse(["elr", "overlap"], []) == coarse(["overlap", "elr"], [])


def test_a_child_of_what_nearly_failed_mostly_hits_the_last_copy():
    near = Point(NEAR[0], 4 * SECOND, "broker-3")
    parent = Parent(
        Schedule((CRASHED,), 5),
        (near, *(Point(f"step-{n}", SECOND, "broker-2") for n in range(30))),
    )
    breeder = Breeder(PLAIN, menu(), 2)
    children = [breeder.child([parent], Stream(6, f"{n}"))[0] for n in range(60)]
    aimed = sum(
        any("broker-3" in fault.values() and 4 * SECOND <= micros(fault["at"]) <= 7 * SECOND
            for fault in child.faults)
        for child in children
    )  # fmt: skip
    assert aimed >= 8


def test_an_aim_at_the_last_copy_mostly_takes_the_server_or_its_data_away():
    every = menu()
    kinds = Counter()
    for name in (NEAR[0], "append"):
        point = Point(name, 4 * SECOND, "broker-3")
        for n in range(300):
            kind = every.kind_of(every.aimed(point, Stream(10, f"{n}")))
            kinds[name] += bool(kind.outage or kind.takes_copies)
    assert kinds[NEAR[0]] > 300 * 0.65
    assert kinds[NEAR[0]] > kinds["append"] * 1.3


def test_in_one_process_what_is_imported_is_no_garbage_to_look_for():
    import gc  # noqa: PLC0415 - of this test alone

    before = gc.get_freeze_count()
    with pool(1):
        assert gc.get_freeze_count() > before + 10_000
    assert gc.get_freeze_count() == 0


def test_in_a_full_schedule_what_led_to_the_moment_of_an_aim_stays():
    near = Point(NEAR[0], 6 * SECOND, "broker-3")
    late = {"at": "10s", "do": "clock-jump", "target": "broker-2", "by": "1s"}
    parent = Parent(Schedule((CRASHED, late), 5), (near,))
    breeder = Breeder(PLAIN, menu(), 2)
    children = [breeder.child([parent], Stream(7, f"{n}"))[0] for n in range(80)]
    aimed = [
        child
        for child in children
        if any("broker-3" in f.values() and micros(f["at"]) >= 6 * SECOND for f in child.faults)
    ]
    assert len(aimed) > 15
    kept = sum(any(f["do"] == "crash" and f["at"] == "2s" for f in c.faults) for c in aimed)
    assert kept > len(aimed) * 0.7
