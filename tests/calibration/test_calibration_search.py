"""The search: it finds a least place, never makes worse, and repeats itself."""

from math import log

from sim.calibration.parameters import Parameter
from sim.calibration.search import WIDTH, least

TWO = (Parameter("a", 1, 1e6, 100, "us"), Parameter("b", 1, 100, 2, "times"))
START = {"a": 100.0, "b": 2.0, "c": 7.0}


def bowl(a, b):
    return lambda at: log(at["a"] / a) ** 2 + log(at["b"] / b) ** 2


def test_a_least_place_is_found_far_from_the_start_and_other_parameters_stay():
    found = least(bowl(40_000, 30), TWO, START, sweeps=2)
    assert abs(log(found["a"] / 40_000)) < WIDTH
    assert abs(log(found["b"] / 30)) < WIDTH
    assert found["c"] == 7.0


def test_a_place_that_is_best_already_is_kept():
    assert least(bowl(100, 2), TWO, START, sweeps=2) == START


def test_a_parameter_on_which_nothing_depends_stays():
    found = least(lambda at: log(at["a"] / 5_000) ** 2, TWO, START, sweeps=1)
    assert found["b"] <= START["b"]
    assert abs(log(found["a"] / 5_000)) < 4 * WIDTH


def test_a_second_search_finds_the_same():
    tries = []

    def stepped(at):
        tries.append(dict(at))
        return round(bowl(3_000, 9)(at), 1)

    assert least(stepped, TWO, START, sweeps=2) == least(stepped, TWO, START, sweeps=2)
    assert tries[: len(tries) // 2] == tries[len(tries) // 2 :]


def test_a_search_nearby_tries_nothing_far():
    seen = []
    least(lambda at: seen.append(at["a"]) or bowl(120, 2)(at), TWO, START, sweeps=1, is_near=True)
    assert min(seen) >= 100 / 3.01
    assert max(seen) <= 100 * 3.01
