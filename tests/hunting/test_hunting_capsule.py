"""A capsule replays its failure anywhere, and says if the version differs and if it happens."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from sim.cli import app
from sim.errors import InvariantBroken, SimulationError
from sim.hunting import capsule as capsules
from sim.hunting import sought
from sim.hunting.fingerprint import Finding, of_error
from sim.hunting.replay import replay
from sim.scenario.loader import load, load_text
from sim.scenario.text.capsules import is_capsule_file
from tests.hunting.losing import SHOP, losing, written

LOST = Finding("lost_acked", ("acks-1", "truncated"))
LOSS = sought.parse("lost_acked")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("capsules") / "lost.capsule.yaml"
    path.write_text(capsules.text_of(capsules.made(losing(), 7, LOSS, LOST)))
    return path


def ran(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def changed(file, tmp_path, old, new):
    text = file.read_text()
    assert old in text
    path = tmp_path / "changed.capsule.yaml"
    path.write_text(text.replace(old, new))
    return path


def test_a_capsule_is_a_scenario_with_its_seed_and_is_read_as_it_was_written(file):
    again = capsules.opened(file)
    assert (again.finding, again.sought, again.seed) == (LOST, LOSS, 7)
    assert again.difference() == ""
    assert load(file).digest == load_text(yaml.safe_dump(losing())).digest
    assert load(file).run.seed == 7


def test_a_mistake_in_a_capsule_has_the_line_of_its_file(file, tmp_path):
    broken = changed(file, tmp_path, "rate: 200/s", "rate: often")
    line = broken.read_text().splitlines().index("    rate: often") + 1
    with pytest.raises(SimulationError, match=f"{broken}:{line}: producers.0..rate"):
        load(broken)


def test_the_same_failure_has_the_same_fingerprint_whatever_the_seed():
    found = [replay(load_text(yaml.safe_dump(losing())), seed, LOSS).findings for seed in (1, 2)]
    assert found == [(LOST,), (LOST,)]
    assert found[0][0].words != found[1][0].words


def test_check_and_run_say_that_it_still_happens_and_fail(file, tmp_path):
    done = ran("check", file, "--no-cache")
    assert done.exit_code == 1
    assert "it still happens: lost_acked: acks-1, truncated" in done.output
    done = ran("run", file, "--out", tmp_path / "run")
    assert done.exit_code == 1
    assert "it still happens: lost_acked: acks-1, truncated" in done.output


def test_planted_a_cured_scenario_is_reported_as_cured(file, tmp_path):
    cured = changed(file, tmp_path, "{acks: 1}", "{acks: all}")
    done = ran("check", cured, "--json")
    assert done.exit_code == 0
    (told,) = json.loads(done.stdout)["capsules"]
    assert told["status"] == "held"
    assert told["message"] == "it does not happen any more: lost_acked: acks-1, truncated"


def test_planted_another_failure_is_not_taken_for_the_expected_one(file, tmp_path):
    other = changed(file, tmp_path, "chain: [acks-1, truncated]", "chain: [unclean]")
    done = ran("check", other)
    assert done.exit_code == 0
    assert "it does not happen any more: lost_acked: unclean" in done.output
    assert "something else does: lost_acked: acks-1, truncated" in done.output


def test_another_version_and_other_sources_are_named(file, tmp_path):
    text = file.read_text()
    code = text.split("code: ")[1].splitlines()[0]
    older = changed(file, tmp_path, f"code: {code}", "code: 0123456789abcdef")
    assert capsules.opened(older).difference().endswith("other sources (0123456789abcdef)")
    older = changed(file, tmp_path, "logquake: ", "logquake: 0.0.1 #")
    assert "seen with Logquake 0.0.1, and this is" in capsules.opened(older).difference()


def test_a_file_that_is_no_capsule_and_a_damaged_one_are_refused(file, tmp_path):
    plain = written(tmp_path / "plain.yaml", losing())
    assert not is_capsule_file(plain)
    with pytest.raises(SimulationError, match="not a capsule"):
        capsules.opened(plain)
    with pytest.raises(SimulationError, match="of a later Logquake"):
        capsules.opened(changed(file, tmp_path, "capsule: 1", "capsule: 2"))
    with pytest.raises(SimulationError, match="without a readable 'looking_for'"):
        capsules.opened(changed(file, tmp_path, "looking_for", "looked_for"))


def test_options_that_mean_nothing_for_a_capsule_are_refused(file):
    for option in (["--twice"], ["--seeds", "1..3"]):
        done = ran("check", file, *option)
        assert done.exit_code == 2
        assert f"{option[0]} with the capsule" in done.output


def test_a_scenario_that_needs_a_file_beside_it_is_no_capsule(tmp_path):
    (tmp_path / "own.py").write_text(
        "class Own:\n    def partition(self, topic, key, partitions, record):\n        return 0\n"
    )
    config = {"acks": 1, "partitioner.class": "own.py:Own"}
    plain = losing(producers=[SHOP | {"config": config}])
    with pytest.raises(SimulationError, match=r"uses a class in own\.py"):
        capsules.made(plain, 1, LOSS, LOST, tmp_path)


# -- what is looked for ----------------------------------------------------------------------------


def test_failures_are_named_with_a_bound_where_zero_is_not_meant():
    found = sought.parse("lost_acked, down>60s,stuck,duplicated>3,down>1s")
    assert sought.show(found) == "lost_acked,down>60s,stuck,duplicated>3"
    assert sought.parse(sought.show(found)) == found
    assert sought.parse("down")[0].above == 30_000_000


@pytest.mark.parametrize("text", ["lost", "down>often", "stuck>1", "lost_acked>-1", "isr.min"])
def test_what_cannot_be_looked_for_is_refused(text):
    with pytest.raises(SimulationError, match="--looking-for: found"):
        sought.parse(text)


def test_a_broken_promise_and_an_error_are_failures_with_a_name():
    broken = InvariantBroken("invariant in-sync-complete broken at 1 s on broker-1: ...")
    assert of_error(broken).fingerprint == "broken: in-sync-complete"
    with pytest.raises(SimulationError) as caught:
        load_text("[]")
    assert of_error(caught.value).kind == "defect"
