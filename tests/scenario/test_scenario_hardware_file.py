"""``cluster.hardware.file``: its figures take its place, and what is refused of it."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load, load_data, load_text

SCENARIO = """claim: c.
cluster:
  brokers: 1
  controllers: 1
  network: {bandwidth: 1Gbit/s}
  hardware: {file: %s, cores: 4}
topics: {t: {partitions: 1, replication.factor: 1}}
run: {for: 5s}
"""
FIGURES = """measured: {date: today, error: {median_factor: 1.2}}
network: {client: {p50: 900us, p99: 2ms}}
cpu: {handler.request: 70us}
disk: {flush: {p50: 3ms, p99: 9ms}}
"""


@pytest.fixture
def file(tmp_path):
    """A scenario with a file of figures beside it."""
    (tmp_path / "hardware.yaml").write_text(FIGURES)
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO % "hardware.yaml")
    return path


def refused(path, *overrides):
    with pytest.raises(ScenarioError) as caught:
        load(path, overrides)
    return str(caught.value)


def test_figures_of_the_file_are_the_clusters(file):
    cluster = load(file).cluster
    assert (cluster.network.client.p50_us, cluster.network.client.p99_us) == (900, 2_000)
    assert cluster.cpu.handler_request_us == 70
    assert cluster.disk.flush.p99_us == 9_000
    assert cluster.network.bandwidth_bytes_per_s == 125_000_000
    assert cluster.hardware.cores == 4


def test_what_was_run_has_the_figures_and_needs_no_file(file):
    scenario = load(file)
    text = scenario.as_yaml()
    assert "hardware.yaml" not in text
    assert load_text(text).digest == scenario.digest


def test_an_override_names_the_file_too(file, tmp_path):
    (tmp_path / "other.yaml").write_text("cpu: {handler.request: 80us}")
    assert load(file, ["cluster.hardware.file=other.yaml"]).cluster.cpu.handler_request_us == 80


def test_a_figure_that_is_given_twice_is_refused_where_it_is(file):
    file.write_text(file.read_text().replace("{bandwidth", "{client: {p50: 1ms, p99: 1ms}, b"))
    found = refused(file)
    assert "scenario.yaml:5: cluster.network.client: client beside hardware.file" in found
    assert "remove it, or change it in hardware.yaml" in found


def test_a_figure_beside_a_preset_that_sets_it_too_is_refused(file):
    found = refused(file, "cluster.hardware.disk=gp3")
    assert "flush beside hardware.disk, which sets it too" in found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("netwrok: {}", "unknown key netwrok; allowed: network, disk, cpu; did you mean network?"),
        ("cpu: 7", "cpu: no mapping; allowed: figures"),
        ("[1]", "not a mapping of keys"),
        ("cpu: {handler.requets: 7us}", "unknown key handler.requets"),
        ("cpu: {handler.request: fast}", "hardware.yaml:cpu.handler.request"),
        ("cpu: {", "hardware.yaml:"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_place(file, text, words):
    (file.parent / "hardware.yaml").write_text(text)
    assert words in refused(file)


def test_a_file_that_is_not_there_is_refused_with_where_it_was_looked_for(file):
    found = refused(file, "cluster.hardware.file=no.yaml")
    assert f"no file '{file.parent / 'no.yaml'}'" in found
    assert "logquake calibrate writes such a file" in found
    assert "the name of a file" in refused(file, "cluster.hardware.file=7")


def test_a_scenario_that_is_in_no_file_may_name_none():
    with pytest.raises(ScenarioError, match="this scenario is in none itself"):
        load_text(SCENARIO % "hardware.yaml")
    with pytest.raises(ScenarioError, match="this scenario is in none itself"):
        load_data({"claim": "c.", "cluster": {"hardware": {"file": "x.yaml"}}})
