"""``logquake mcp``: tools, answers and problems, as the SDK's own client sees them."""

import json
from pathlib import Path

import pytest

from tests.mcp.served import BAD, ROOT, TINY, TOOLS, serving, shell

# --- what a client sees first -----------------------------------------------------------------


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_of_either_protocol_version_finds_every_tool_with_schemas(tmp_path, mode):
    with serving(tmp_path, mode=mode) as served:
        tools = served.portal.call(served.client.list_tools).tools
        assert {tool.name for tool in tools} == TOOLS
        for tool in tools:
            assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
            assert {"understood", "commands"} <= set(tool.output_schema["properties"])
            described = tool.input_schema["properties"].values()
            assert all("description" in each or "minimum" in each for each in described)
        assert served.answer("validate", scenario=TINY)["ok"]


def test_the_scenario_language_can_be_read_as_resources(server):
    read = server.client.read_resource
    schema = json.loads(server.portal.call(read, "logquake://schema").contents[0].text)
    assert "faults" in schema["properties"]
    faults = json.loads(server.portal.call(read, "logquake://list/faults").contents[0].text)
    assert "power-loss" in [row["fault"] for row in faults]
    assert "# " in server.portal.call(read, "logquake://docs/fidelity").contents[0].text


# --- run --------------------------------------------------------------------------------------


def test_a_run_says_what_it_understood(ran, server):
    answer, _ = ran
    understood = answer["understood"]
    assert understood["given_as"] == "text"
    assert Path(understood["file"]).read_text() == TINY
    assert Path(understood["file"]).is_relative_to(server.root)
    scenario = understood["scenario"]
    assert (scenario["brokers"], scenario["controllers"], scenario["seed"]) == (3, 1, 7)
    assert scenario["topics"][0]["min_insync_replicas"] == 1
    assert scenario["producers"][0]["acks"] == "1"
    assert scenario["faults"][1] == "2 s crash leader of orders-0"
    changed = {each["path"]: each["value"] for each in scenario["off_default"]}
    assert changed["producers.shop.config.acks"] == "1"


def test_a_run_answers_with_the_three_numbers_and_what_did_not_hold(ran):
    answer, _ = ran
    verdict = json.loads((Path(answer["directory"]) / "verdict.json").read_text())
    for name in ("lost", "down", "slow"):
        assert answer[name]["text"] == verdict["answer"][name]["text"]
    assert answer["lost"]["level"] == "red"
    assert [each["text"] for each in answer["faults"]] == [
        each["text"] for each in verdict["answer"]["faults"]
    ]
    assert answer["held"] is False
    (line,) = answer["expectations"]
    assert (line["name"], line["expected"], line["held"]) == ("lost_acked", "0", False)
    assert line["found"] == str(answer["records"]["lost_acked"])


def test_its_command_gives_the_same_verdict_in_a_shell(ran, tmp_path):
    answer, _ = ran
    file = Path(answer["directory"]) / "verdict.json"
    before = file.read_bytes()
    digest = json.loads((file.parent / "run.json").read_text())["trace_digest"]
    assert digest == answer["trace_digest"]
    (line,) = answer["commands"]
    file.unlink()
    done = shell(line, tmp_path)
    assert done.returncode == 1, done.stderr
    assert file.read_bytes() == before
    assert json.loads((file.parent / "run.json").read_text())["trace_digest"] == digest
    assert not list(tmp_path.iterdir())


def test_progress_increases_and_ends_where_the_run_does(ran):
    _, steps = ran
    numbers = [done for done, _, _ in steps]
    assert len(numbers) >= 2
    assert numbers == sorted(set(numbers))
    assert "simulated time, faults 2/2" in steps[-1][2]


def test_seed_and_changes_are_those_of_the_command(server, tmp_path):
    answer = server.answer(
        "run", scenario=TINY, name="changed", seed=3, changes=["producers.shop.config.acks=all"]
    )
    assert answer["understood"]["scenario"]["seed"] == 3
    assert answer["understood"]["scenario"]["producers"][0]["acks"] == "all"
    assert (answer["held"], answer["lost"]["level"]) == (True, "green")
    (line,) = answer["commands"]
    assert "--seed 3 --set producers.shop.config.acks=all" in line
    file = Path(answer["directory"]) / "verdict.json"
    before = file.read_bytes()
    assert shell(line, tmp_path).returncode == 0
    assert file.read_bytes() == before


def test_the_same_run_again_replaces_nothing(ran, server):
    first, _ = ran
    again = server.answer("run", scenario=TINY, name="tiny")
    assert again["directory"] == f"{first['directory']}-2"
    assert again["trace_digest"] == first["trace_digest"]


def test_a_scenario_that_comes_with_the_program_is_known_by_its_name(server):
    answer = server.answer("validate", scenario="acks1-leader-crash")
    assert answer["understood"]["given_as"] == "shipped"
    assert answer["understood"]["scenario"]["claim"].startswith("With acks=1")
    assert "acks1-leader-crash" in server.refusal("validate", scenario="acks1-leader")


# --- problems ---------------------------------------------------------------------------------


def test_a_problem_is_an_error_in_the_words_of_the_command_line(server, tmp_path):
    text = server.refusal("run", scenario=BAD, name="bad")
    file = text.split(":", 1)[0]
    assert text == shell(f"logquake run {file}", tmp_path).stderr.strip()
    assert text.count("\n") == 1, "both mistakes"
    assert "allowed" in text


def test_validate_has_every_problem_and_the_command_that_prints_them(server, tmp_path):
    answer = server.answer("validate", scenario=BAD)
    assert not answer["ok"]
    assert answer["understood"] is None
    assert len(answer["problems"]) == 2
    done = shell(answer["commands"][0], tmp_path)
    assert done.stderr.splitlines() == answer["problems"]


def test_arguments_of_another_type_are_refused(server):
    assert "seed" in server.refusal("run", scenario=TINY, seed=-1)
    assert "limit" in server.refusal("catalogue_search", limit=0)
    for given in ({"scenario": TINY}, {"files": ["server.properties"]}):
        text = server.refusal("verdict", name="../up", **given)
        assert text.startswith("name: found '../up'; allowed: lower-case letters")


@pytest.mark.parametrize("path", ["/etc/hosts.yaml", "../up.yaml", "a/../../up.yaml", "link.yaml"])
def test_a_path_outside_of_the_root_is_refused_whether_it_is_there_or_not(server, tmp_path, path):
    outside = tmp_path / "outside.yaml"
    outside.write_text(TINY)
    link = server.root / "link.yaml"
    link.unlink(missing_ok=True)
    link.symlink_to(outside)
    for tool in ("run", "validate", "verdict"):
        text = server.refusal(tool, scenario=path)
        assert "outside of what this server may read" in text
        assert str(server.root) in text
    assert "outside" in server.refusal("verdict", files=[path])
    assert "outside" in server.refusal("explain", run=f"../{path}")
    assert "outside" in server.refusal("run", scenario=str(outside))


def test_a_directory_given_with_read_is_read_and_not_written(server):
    file = ROOT / "scenarios" / "quickstart.yaml"
    assert server.answer("validate", scenario=str(file))["understood"]["given_as"] == "path"
    assert "outside" in server.refusal("explain", run=str(file.parent))


# --- the other tools --------------------------------------------------------------------------


@pytest.mark.slow
def test_explain_takes_a_run_by_name_and_says_what_its_command_says(ran, server, tmp_path):
    answer, _ = ran
    name = Path(answer["directory"]).name
    found = server.answer("explain", run=name)
    assert found["understood"]["seed"] == 7
    assert found["understood"]["complete"] is True
    assert "was acknowledged, and is lost" in found["head"]
    assert found["causes"]
    assert any(trial["saves"] for trial in found["tried"])
    assert found["smallest_change"]
    short = server.answer("explain", run=name, rerun=False)
    assert short["chain"] == found["chain"]
    done = shell(short["commands"][0], tmp_path)
    assert done.returncode == 0, done.stderr
    assert found["head"] in done.stdout
    replay = shell(found["commands"][1], tmp_path)
    assert replay.returncode == 0, replay.stdout + replay.stderr


def test_explain_of_no_run_names_the_runs_that_there_are(ran, server):
    text = server.refusal("explain", run="nothing")
    assert Path(ran[0]["directory"]).name in text


@pytest.mark.slow
def test_a_verdict_keeps_to_its_budget_and_each_finding_has_a_command(server):
    found, steps = server("verdict", scenario=TINY, name="weak", seeds="1", budget="1s")
    assert not found.is_error, found.content[0].text
    answer = found.structured_content
    assert answer["understood"]["seeds"] == "1"
    assert answer["understood"]["budget"] == "1s"
    assert answer["untried_runs"] > 0
    assert answer["findings"] or answer["closing"]
    for finding in answer["findings"]:
        assert finding["command"].startswith(f"logquake run {answer['directory']}")
    (line,) = answer["commands"]
    assert line.startswith("logquake verdict ")
    assert "--seeds 1 --budget 1s" in line
    assert steps[0][1] >= answer["untried_runs"], "of all runs"


def test_a_verdict_on_the_files_of_a_cluster_says_what_they_leave_out(server):
    properties = server.root / "server.properties"
    properties.write_text(
        "node.id=1\nprocess.roles=broker,controller\ncontroller.quorum.voters=1@one:9093\n"
        "log.dirs=/data\nbackground.threads=12\n"
    )
    topics = server.root / "topics.txt"
    topics.write_text(
        "Topic: orders\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    )
    files = ["server.properties", "topics.txt"]
    answer = server.answer("verdict", files=files, seeds="1", budget="3s")
    assert answer["understood"]["imported_from"] == files
    assert answer["understood"]["not_simulated"]
    assert [line.split()[1] for line in answer["commands"]] == ["import", "verdict"]
    assert "and not both" in server.refusal("verdict", scenario=TINY, files=["a"])
    assert "at most" in server.refusal("verdict", scenario=TINY, budget="11h")


@pytest.mark.spark
@pytest.mark.slow
def test_explore_has_a_table_and_the_safest_choice(server, tmp_path):
    found, steps = server("explore", scenario=TINY, name="trade", vary=["acks=1,all"], seeds="2")
    assert not found.is_error, found.content[0].text
    answer = found.structured_content
    assert [row["settings"] for row in answer["table"]] == [{"acks": "1"}, {"acks": "all"}]
    assert answer["safest"] == {"acks": "all"}
    assert answer["table"][0]["loss"] > answer["table"][1]["loss"] == 0
    assert Path(answer["report"]).is_file()
    assert steps[-1][:2] == (4, 4)
    done = shell(answer["commands"][1], tmp_path)
    assert done.returncode == 0, done.stderr
    again = shell(f"{answer['commands'][0]} --json", tmp_path)
    assert json.loads(again.stdout)["verdict"] == answer["verdict"]


def test_explore_refuses_more_runs_than_allowed_before_it_starts(server):
    text = server.refusal("explore", scenario=TINY, vary=["linger.ms=0..100"], seeds="50")
    assert "5,050 runs; allowed: at most 200 (--max-runs of logquake mcp)" in text
    longer = server.refusal("explore", scenario=TINY, vary=["run.for=5s,31min"], seeds="1")
    assert "1860 s of simulated time" in longer
    assert "varies nothing" in server.refusal("explore", scenario=TINY, vary=["acks"])


def test_the_catalogue_is_searched_by_words_of_names_claims_and_sources(server):
    answer = server.answer("catalogue_search", words="unclean election", kind="catalogue")
    assert answer["found"] >= 2
    first = answer["entries"][0]
    assert first["kind"] == "catalogue"
    assert "nclean" in first["claim"]
    assert first["versions"].startswith("Kafka ")
    assert Path(first["file"]).is_file()
    by_ticket = server.answer("catalogue_search", words="KAFKA-4623")["entries"]
    assert {"a06-unclean-leader-election-loss-fixed"} <= {each["name"] for each in by_ticket}
    assert all("KAFKA-4623" in each["source"] for each in by_ticket)
    nothing = server.answer("catalogue_search", words="uncleen")
    assert nothing["found"] == 0
    assert "unclean" in nothing["near"]
    everything = server.answer("catalogue_search", limit=1)
    assert everything["found"] == everything["understood"]["searched"]


def test_python_beside_a_scenario_is_run_from_the_root_alone(tmp_path):
    own = "class Own:\n    def partition(self, topic, key, value_size, partitions, available):\n"
    named = TINY.replace("acks: 1", "acks: 1, partitioner.class: own.py:Own")
    assert named != TINY
    for place in ("root", "beside"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "own.py").write_text(own + "        return 0\n")
        (tmp_path / place / "own.yaml").write_text(named)
    with serving(tmp_path / "root", "--read", str(tmp_path / "beside")) as served:
        assert served.answer("validate", scenario="own.yaml")["ok"]
        outside = str(tmp_path / "beside" / "own.yaml")
        for tool in ("validate", "run", "verdict"):
            assert "Python is run from" in served.refusal(tool, scenario=outside)
