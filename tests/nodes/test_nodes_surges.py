"""A surge squeezes the application's time: more is sent in it, and what came before is the same."""

import numpy as np
import pytest

from sim.nodes.clients.surges import Surge, SurgingTime
from sim.nodes.clients.workload import Poisson, Rate, Steady, Workload, WorkloadSpec
from sim.rng import Streams

S = 1_000_000


def instants(arrivals, *surges, end=10 * S, start=0):
    spec = WorkloadSpec("orders", arrivals, 100, start_us=start, end_us=end, surges=surges)
    source = Workload(spec, Streams(7), "shop")
    blocks = []
    while (block := source.next_block()) is not None:
        blocks.append(block.instants_us)
    return np.concatenate(blocks)


def within(found, start, end):
    return int(((found >= start) & (found < end)).sum())


@pytest.mark.parametrize("arrivals", [Steady(Rate(100, S)), Poisson(Rate(100, S))])
def test_a_surge_of_three_sends_three_times_as_much_while_it_lasts(arrivals):
    usual = instants(arrivals)
    surging = instants(arrivals, Surge(2 * S, 4 * S, 3))
    assert (surging[surging < 2 * S] == usual[usual < 2 * S]).all()
    assert within(surging, 2 * S, 4 * S) == pytest.approx(600, rel=0.15)
    assert within(surging, 4 * S, 10 * S) == pytest.approx(600, rel=0.15)
    assert (np.diff(surging) >= 0).all()


def test_records_of_a_surge_are_those_that_would_have_come_later():
    usual = instants(Poisson(Rate(100, S)), end=14 * S)
    surging = instants(Poisson(Rate(100, S)), Surge(2 * S, 4 * S, 3))
    assert (surging[surging >= 4 * S] == usual[(usual >= 8 * S)] - 4 * S).all()


def test_two_surges_and_one_that_lasts_until_the_end():
    found = instants(Steady(Rate(100, S)), Surge(1 * S, 2 * S, 2), Surge(5 * S, 10 * S, 4))
    assert within(found, 1 * S, 2 * S) == 200
    assert within(found, 2 * S, 5 * S) == 300
    assert within(found, 5 * S, 10 * S) == 2_000


def test_a_workload_that_starts_within_a_surge_begins_at_its_start():
    found = instants(Steady(Rate(100, S)), Surge(1 * S, 6 * S, 2), start=5 * S)
    assert (int(found[0]), len(found)) == (5 * S, 600)


def test_both_times_agree_at_every_instant():
    time = SurgingTime([Surge(100, 200, 3), Surge(300, 310, 7)])
    for at in (-50, 0, 99, 100, 101, 150, 200, 250, 300, 305, 310, 900):
        (back,) = next(time.true([np.array([time.own(at)])]))
        assert back == at
