"""What is left to the seed is drawn from streams of its own, with the stated distributions."""

import itertools
import math

from sim.faults.draw import draw, exponential
from sim.faults.registry import KINDS
from sim.faults.target import Target
from sim.rng import Stream, Streams

S = 1_000_000
HOUR = 3_600 * S
BROKERS = tuple(Target("node", f"broker-{n}", names=(f"broker-{n}",)) for n in range(1, 4))
EACH = Target("each", "each broker", tuple(n for b in BROKERS for n in b.names), parts=BROKERS)


def line_of(kind, targets, at=0, lasts=None, index=0, **more):
    return KINDS[kind](index=index, at_us=at, for_us=lasts, targets=targets, **more)


def crash(index=0, **more):
    return line_of("crash", (BROKERS[0],), index=index, **more)


def test_a_line_without_chance_is_taken_over_as_it_is():
    line = crash(at=5 * S, lasts=S)
    assert draw([line], Streams(1), 60 * S) == (line,)


def test_an_instant_lies_anywhere_in_its_window_and_nowhere_else():
    line = crash(at=5 * S, lasts=S, spread_us=10 * S)
    found = [draw([line], Streams(seed), 60 * S)[0] for seed in range(1_000)]
    assert all(5 * S <= fault.at_us <= 15 * S and fault.spread_us == 0 for fault in found)
    assert all(fault.until_us == fault.at_us + S for fault in found)
    mean = sum(fault.at_us for fault in found) / len(found)
    assert abs(mean - 10 * S) < 5 * 10 * S / math.sqrt(12 * len(found))


def test_every_choice_is_as_likely_and_keeps_its_own_duration():
    choices = (crash(lasts=S), line_of("pause", (BROKERS[1],), lasts=2 * S, index=1))
    line = KINDS["one-of"](index=3, at_us=5 * S, choices=choices)
    found = [draw([line], Streams(seed), 60 * S)[0] for seed in range(1_000)]
    assert {(f.kind, f.for_us, f.index, f.at_us) for f in found} == {
        ("crash", S, 3, 5 * S),
        ("pause", 2 * S, 3, 5 * S),
    }
    assert abs(sum(f.kind == "crash" for f in found) - 500) < 5 * math.sqrt(250)


def test_components_fail_and_are_repaired_with_the_stated_means():
    line = line_of("crash", (EACH,), lasts=10 * HOUR, mtbf_us=90 * HOUR)
    end = 20_000 * HOUR
    found = draw([line], Streams(7), end)
    # Three components, each with cycles of 100 h: 600 cycles, each end being a failure.
    assert abs(len(found) - 600) < 5 * math.sqrt(600)
    down = sum(f.for_us for f in found if f.for_us is not None) / (3 * end)
    assert abs(down - 0.1) < 0.02


def test_a_component_does_not_fail_while_it_is_down_and_failures_are_numbered_by_time():
    line = line_of("crash", (EACH,), lasts=HOUR, index=2, mtbf_us=HOUR)
    found = draw([crash(0), crash(1), line], Streams(7), 100 * HOUR)[2:]
    assert [fault.index for fault in found] == list(range(3, 3 + len(found)))
    assert [fault.at_us for fault in found] == sorted(fault.at_us for fault in found)
    for broker in BROKERS:
        own = [fault for fault in found if fault.targets == (broker,)]
        assert len(own) > 20
        assert all(a.until_us < b.at_us for a, b in itertools.pairwise(own))


def test_without_repair_a_component_fails_once_and_one_without_duration_again_and_again():
    once = draw([line_of("crash", (EACH,), mtbf_us=HOUR)], Streams(1), 1_000 * HOUR)
    assert [(f.targets, f.for_us) for f in sorted(once, key=lambda f: f.targets[0].text)] == [
        ((broker,), None) for broker in BROKERS
    ]
    line = line_of("lost-replica", (BROKERS[0],), mtbf_us=HOUR)
    assert len(draw([line], Streams(1), 1_000 * HOUR)) > 800


def test_a_repair_that_would_come_after_the_end_is_left_to_the_end():
    line = line_of("crash", (EACH,), lasts=1_000 * HOUR, mtbf_us=HOUR)
    found = draw([line], Streams(1), 50 * HOUR)
    assert all(f.for_us is None or f.until_us < 50 * HOUR for f in found)
    assert any(f.for_us is None for f in found)


def test_one_more_line_or_component_moves_no_other():
    two = Target("each", "each broker", (), parts=BROKERS[:2])
    line = line_of("crash", (two,), lasts=HOUR, mtbf_us=HOUR)
    more = line_of("crash", (EACH,), lasts=HOUR, mtbf_us=HOUR)
    windows = [line_of("pause", (BROKERS[2],), at=S, lasts=S, index=1, spread_us=S)]
    few = {(f.targets[0].text, f.at_us) for f in draw([line], Streams(5), 50 * HOUR)}
    many = {
        (f.targets[0].text, f.at_us)
        for f in draw([more, *windows], Streams(5), 50 * HOUR)
        if f.kind == "crash"
    }
    assert few == {found for found in many if found[0] != "broker-3"}


def test_the_same_seed_draws_the_same_and_another_one_does_not():
    line = line_of("crash", (EACH,), lasts=HOUR, mtbf_us=HOUR)
    one, again, other = (draw([line], Streams(seed), 50 * HOUR) for seed in (1, 1, 2))
    assert one == again != other


def test_exponential_times_have_mean_and_memorylessness():
    stream = Stream(3, "x")
    drawn = [exponential(stream, HOUR) for _ in range(20_000)]
    assert min(drawn) >= 1
    assert abs(sum(drawn) / len(drawn) / HOUR - 1) < 5 / math.sqrt(len(drawn))
    late = [time for time in drawn if time > HOUR]
    assert abs(len(late) / len(drawn) - math.exp(-1)) < 0.02
    assert abs(sum(time - HOUR for time in late) / len(late) / HOUR - 1) < 0.06
