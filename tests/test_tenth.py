"""``make tenth`` runs a tenth of the long tests; ten landings in a row run all of them."""

import subprocess
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import conftest
from tools import tenth

CONFTEST = Path(__file__).with_name("conftest.py")
NAMES = [f"tests/log/test_{module}.py::test_{n}[{n}]" for module in "abcde" for n in range(100)]


def git(place, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run(["git", *who, *words], cwd=place, check=True, capture_output=True)


def commit(place, text):
    (place / "file").write_text(text)
    git(place, "add", ".")
    git(place, "commit", "-m", text)


@pytest.fixture
def landed(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "turn").write_text("7\n")
    git(tmp_path, "init")
    commit(tmp_path, "first")
    return tmp_path


def test_ten_turns_in_a_row_run_every_test_once():
    parts = [[name for name in NAMES if tenth.part_of(name) == turn % 10] for turn in range(23, 33)]
    assert sorted(name for part in parts for name in part) == sorted(NAMES)
    assert max(map(len, parts)) < 2 * len(NAMES) / 10


def test_the_turn_of_a_commit_is_the_recorded_one(landed):
    assert tenth.turn(landed) == 7


def test_taking_a_turn_counts_one_on(landed):
    assert tenth.take_turn(landed) == 8
    commit(landed, "second")
    assert tenth.turn(landed) == 8


def test_a_forgotten_turn_is_taken_after_many_commits(landed):
    for number in range(tenth.COMMITS_A_TURN):
        commit(landed, f"more {number}")
    assert tenth.turn(landed) == 8
    assert tenth.take_turn(landed) == 9


def test_without_history_the_recorded_turn_counts(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "turn").write_text("7\n")
    assert tenth.turn(tmp_path) == 7


def test_a_turn_that_is_no_number_is_refused(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "turn").write_text("next\n")
    with pytest.raises(SystemExit, match="make turn"):
        tenth.turn(tmp_path)


@pytest.fixture
def hooks(request):
    """What tests/conftest.py tells pytest, and a configuration in which ``--tenth`` is given."""
    plugins = request.config.pluginmanager.get_plugins()
    (found,) = [each for each in plugins if getattr(each, "__file__", "") == str(CONFTEST)]
    left = []

    def deselected(items):
        left.extend(items)

    hook = SimpleNamespace(pytest_deselected=deselected)
    return found, SimpleNamespace(getoption=lambda name: name == "tenth", hook=hook), left


def test_pytest_runs_the_tests_of_the_turn_and_counts_the_others(hooks):
    plugin, config, left = hooks
    items = [SimpleNamespace(nodeid=name, get_closest_marker=bool) for name in NAMES]
    plugin.pytest_collection_modifyitems(config, items)
    part = tenth.turn() % tenth.PARTS
    assert {tenth.part_of(item.nodeid) for item in items} == {part}
    assert sorted(item.nodeid for item in items + left) == sorted(NAMES)


def test_what_was_chosen_is_printed(hooks):
    plugin, config, _ = hooks
    turn = tenth.turn()
    told = plugin.pytest_report_header(config)
    assert told == f"tenth: turn {turn}, part {turn % tenth.PARTS} of 0..9"


@pytest.fixture
def begin(monkeypatch):
    """Begin a test that says how long it takes, with a limit; both in minutes."""
    monkeypatch.setattr(conftest, "_begun", [])

    def begin(limit, takes=None):
        config = SimpleNamespace(getoption=lambda name: {"minutes": limit}[name])
        marker = takes and SimpleNamespace(args=(takes,))
        item = SimpleNamespace(config=config, nodeid="a", get_closest_marker=lambda name: marker)
        conftest.pytest_runtest_setup(item)

    return begin


def test_when_the_time_is_up_no_test_begins_and_the_report_says_so(begin):
    begin(0)
    begin(60 * 24)
    with pytest.raises(pytest.skip.Exception, match="left for a later landing"):
        begin(1e-9)


def test_a_test_that_takes_longer_than_what_is_left_is_left(begin):
    begin(60 * 24)
    begin(60 * 24, takes=3)
    with pytest.raises(pytest.skip.Exception, match="it takes 2000 minutes"):
        begin(60 * 24, takes=2_000)


def test_a_test_that_takes_longer_than_the_whole_is_begun_where_it_comes_first(begin):
    begin(60 * 24, takes=2_000)


def test_without_a_limit_a_long_test_begins(begin):
    begin(0)
    begin(0, takes=2_000)


# -- which tests share a worker --------------------------------------------------------------------


def scopes(expression, *names):
    """What the scheduler keeps together in a run of tests that an expression of markers chooses."""
    option = SimpleNamespace(markexpr=expression)
    groups = conftest.Groups.__new__(conftest.Groups)
    groups.config = SimpleNamespace(option=option, rootpath=CONFTEST.parents[1])
    return [groups._split_scope(name) for name in names]


JUDGES = "tests/scenarios/catalogue/test_scenarios_judges.py"
OUTCOMES = "tests/scenarios/catalogue/test_scenarios_catalogue.py"
BOOT = "tests/kafka/test_kafka_boot.py"


def test_fast_tests_of_a_file_share_a_worker_and_those_with_spark_another():
    names = (f"{JUDGES}::a", "tests/analysis/test_analysis_report.py::b", f"{OUTCOMES}::c[x]")
    assert scopes("not slow and not night", *names) == ["spark", "spark", OUTCOMES]


def test_long_tests_of_a_scenario_share_a_worker_and_their_judges_too():
    names = (f"{OUTCOMES}::a[x]", f"{OUTCOMES}::b[x]", f"{JUDGES}::a[x]", f"{OUTCOMES}::a[y]")
    one, same, judged, other = scopes("slow or night", *names)
    assert one == same == judged != other


def test_a_real_cluster_is_started_by_one_worker():
    assert scopes("slow or night", f"{BOOT}::a[x]", f"{BOOT}::b[y]") == [BOOT, BOOT]


def test_what_needs_spark_is_given_away_first(monkeypatch):
    given = []
    monkeypatch.setattr(
        conftest.LoadScopeScheduling,
        "_assign_work_unit",
        lambda groups, node: given.append(groups.workqueue.popitem(last=False)[0]),
    )
    groups = conftest.Groups.__new__(conftest.Groups)
    groups.workqueue = OrderedDict.fromkeys(["a.py", "spark", "b.py"])
    for node in range(3):
        groups._assign_work_unit(node)
    assert given == ["spark", "a.py", "b.py"]
