"""Both judges on a tenth of the thousand seeds of the swarm."""

from types import SimpleNamespace

import pytest

from analysis.spark import session
from sim.checking.outcomes.verdict import COUNTS
from tests.scenarios.compiled import run_beside
from tests.scenarios.judges import differences, reported
from tests.scenarios.run_kit import Ran
from tests.swarm.scenarios import drawn

SEEDS = range(0, 1_000, 10)


@pytest.fixture(scope="module")
def spark():
    with session.using("local[2]", is_long=True) as running:
        yield running


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("seed", SEEDS)
def test_both_judges_agree_on_a_seed_of_the_swarm(seed, tmp_path):
    out = tmp_path / "run"
    run_beside(drawn(seed).text, out)
    ran = Ran(out)
    found = reported(out, tmp_path)
    assert differences(found, ran) == []
    assert found["complete"] is True
    assert found["availability"]["partitions"] == ran.verdict["availability"]["partitions"]


def agreeing():
    found = {
        "differences": [],
        "inputs": {"differences": []},
        "durability": {"records": dict.fromkeys(COUNTS, 7)},
        "agrees_with_checker": True,
    }
    return found, SimpleNamespace(records=dict.fromkeys(COUNTS, 7))


def test_judges_that_say_the_same_agree():
    assert differences(*agreeing()) == []


@pytest.mark.parametrize("name", COUNTS)
def test_planted_a_number_that_one_judge_has_otherwise_is_told(name):
    found, ran = agreeing()
    ran.records[name] += 1
    assert differences(found, ran) == [f"{name}: Spark 7, the checker 8"]


def test_planted_what_the_report_itself_finds_is_told():
    found, ran = agreeing()
    found["inputs"]["differences"] = ["broker-1: log start 3 in the trace, 4 on its disk"]
    assert differences(found, ran) == found["inputs"]["differences"]
    found, ran = agreeing()
    found["agrees_with_checker"] = False
    assert differences(found, ran) == ["the report does not say that they agree"]
