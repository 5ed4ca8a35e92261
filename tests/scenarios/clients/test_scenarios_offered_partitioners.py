"""``partitioner.class`` of an installed distribution: an entry point, found and never guessed.

A distribution is planted as an installer writes it: a package and its ``dist-info`` on the path.
"""

import sys

import pytest
import yaml

from sim.errors import ScenarioError, SimulationError
from sim.hunting import capsule as capsules
from sim.hunting.fingerprint import Finding
from sim.rehearsal import limits
from sim.scenario.build.partitioners import partitioner_of
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from tests.scenarios.run_kit import Ran, text_of

NAME = "partitioner.class"
CODE = """
class Second:
    def partition(self, topic, key, value_size, partitions, available):
        return available[1]


class Nothing:
    pass


class Greedy:
    def __init__(self, more):
        pass

    def partition(self, topic, key, value_size, partitions, available):
        return 0
"""


def plant(tmp_path, monkeypatch, distribution="Acme_Rings", version="1.2", package="acme_rings"):
    """Installs a distribution with entry points into a directory of its own."""
    site = tmp_path / f"site-{distribution}-{version}"
    info = site / f"{distribution}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    (info / "entry_points.txt").write_text(
        "[logquake.partitioners]\n"
        f"ring = {package}:Second\nnothing = {package}:Nothing\n"
        f"greedy = {package}:Greedy\nabsent = {package}:Absent\n"
    )
    (site / f"{package}.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, package, raising=False)
    return site


def scenario(given, **parts):
    producer = {"config": {NAME: given, "linger.ms": 0}, "rate": "100/s"}
    return load_text(text_of(lasts="2s", producer=producer, **parts))


def test_a_class_of_an_installed_distribution_chooses_each_partition(tmp_path, monkeypatch):
    plant(tmp_path, monkeypatch)
    run(scenario("ring"), 3, tmp_path / "out", level="facts")
    ran = Ran(tmp_path / "out")
    assert {row["partition"] for row in ran.rows("client_batches", outcome="ok")} == {1}


def test_the_scenario_says_of_which_release_it_is(tmp_path, monkeypatch):
    """Its digest, too: another release of the distribution is another run."""
    plant(tmp_path, monkeypatch)
    short, whole = scenario("ring"), scenario("ring@acme-rings==1.2")
    assert short.producers[0].config.text(NAME) == "ring@acme-rings==1.2"
    assert short.digest == whole.digest == scenario("ring@Acme.Rings==1.2").digest
    assert "ring@acme-rings==1.2" in short.as_yaml()
    with pytest.raises(ScenarioError, match=r"no ring of acme-rings 2\.0 is installed") as caught:
        scenario("ring@acme-rings==2.0")
    assert "ring@acme-rings==1.2" in str(caught.value)
    assert "pip install acme-rings==2.0" in str(caught.value)


def test_a_name_that_nobody_offers_is_refused_with_those_that_are(tmp_path, monkeypatch):
    plant(tmp_path, monkeypatch)
    with pytest.raises(ScenarioError, match="no partitioner 'rong'") as caught:
        scenario("rong")
    assert "logquake.partitioners (absent, greedy, nothing, ring)" in str(caught.value)
    assert "did you mean ring" in str(caught.value)


def test_without_a_distribution_none_is_said_to_be_installed():
    with pytest.raises(ScenarioError, match="none is installed"):
        scenario("ring")


def test_a_name_that_two_distributions_offer_has_to_say_of_which(tmp_path, monkeypatch):
    plant(tmp_path, monkeypatch)
    plant(tmp_path, monkeypatch, "other", "0.1", "other_rings")
    with pytest.raises(ScenarioError, match="2 distributions offer") as caught:
        scenario("ring")
    assert "ring@acme-rings==1.2, ring@other==0.1" in str(caught.value)
    assert scenario("ring@other==0.1").producers[0].config.text(NAME) == "ring@other==0.1"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nothing", "has no method partition"),
        ("greedy", "can be made without arguments"),
        ("absent", "AttributeError"),
    ],
)
def test_a_class_that_cannot_be_used_is_refused_before_the_run(tmp_path, monkeypatch, given, words):
    plant(tmp_path, monkeypatch)
    (spec, *_) = scenario(given).producers
    with pytest.raises(SimulationError, match=f"{given}@acme-rings==1\\.2") as caught:
        partitioner_of(spec, "4.1")(lambda: 0.5)
    assert words in str(caught.value)


def test_reading_a_scenario_imports_nothing_of_the_distribution(tmp_path, monkeypatch):
    plant(tmp_path, monkeypatch)
    scenario("ring")
    assert "acme_rings" not in sys.modules


def test_a_capsule_says_of_which_release_its_partitioner_is(tmp_path, monkeypatch):
    plant(tmp_path, monkeypatch)
    producer = {"config": {NAME: "ring"}, "rate": "100/s"}
    plain = yaml.safe_load(text_of(lasts="2s", producer=producer))
    found = Finding("lost_acked", ("acks-1", "truncated"))
    with pytest.raises(SimulationError, match=r"allowed in a capsule: .*ring@acme-rings==1\.2"):
        capsules.made(plain, 1, (), found)
    plain["producers"][0]["config"][NAME] = "ring@acme-rings==1.2"
    assert "ring@acme-rings==1.2" in capsules.text_of(capsules.made(plain, 1, (), found))


def test_a_rehearsal_refuses_it_as_it_does_a_file(tmp_path, monkeypatch):
    plant(tmp_path, monkeypatch)
    found = scenario("ring")
    with pytest.raises(SimulationError, match="one in Python is not rehearsed"):
        limits.check(found, (), 1.0)
