"""``logquake study``: a table, or JSON with the costs that it comes from."""

import json

import pytest
from typer.testing import CliRunner

from sim.cli import app


def study(*words):
    return CliRunner().invoke(app, ["study", "failover", *words])


def test_the_table_has_a_line_for_each_control_plane_and_event():
    done = study("--partitions", "500")
    assert done.exit_code == 0
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[:3] for line in lines] == [
        ["500", plane, event]
        for plane in ("zookeeper", "kraft")
        for event in ("controlled shutdown", "uncontrolled shutdown")
    ]
    assert all(float(line[3]) > 0 for line in lines)


def test_json_has_the_costs_too():
    answer = json.loads(study("--partitions", "500", "--json").stdout)
    assert answer["costs"]["zk_answer_us"] == 140
    assert len(answer["rows"]) == 4


@pytest.mark.parametrize("wrong", ["ten", "10", "9000000", "1000,", "-5"])
def test_what_is_not_a_size_is_refused_before_anything_runs(wrong):
    done = study("--partitions", wrong)
    assert done.exit_code == 2
    assert "whole numbers from 100 to 4,000,000" in done.stderr
    assert done.stdout == ""


def test_a_shutdown_is_shown_for_each_way_in_which_the_controller_works():
    done = CliRunner().invoke(app, ["study", "shutdown", "--partitions", "500"])
    assert done.exit_code == 0
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines] == [["500", "200"]] * 3
    found = [float(line[3]) for line in lines]
    assert found == sorted(found, reverse=True)
    answer = CliRunner().invoke(app, ["study", "shutdown", "--partitions", "500", "--json"])
    assert [row["seconds"] for row in json.loads(answer.stdout)["rows"]] == pytest.approx(
        found, abs=0.01
    )


def test_what_is_not_a_study_is_refused():
    assert CliRunner().invoke(app, ["study", "nonsense"]).exit_code == 2
