"""The JSON Schema of scenario files: current, named, and of one opinion with the loader."""

import json
import re

import pytest
import yaml
from jsonschema import Draft7Validator, Draft202012Validator
from typer.testing import CliRunner

from sim.cli import app
from sim.scenario.expect.bounds import VOCABULARY, parse
from sim.scenario.schema.json_schema import SCHEMA_FILE, SCHEMA_ID, schema_text
from sim.scenario.text.problems import Problem
from tests.scenarios.run_kit import CATALOGUE, ROOT, SHIPPED
from tools.house_text import code_blocks

SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
EDITORS = (ROOT / "docs" / "guide" / "editor.md").read_text(encoding="utf-8")


class AsEditorsRead(yaml.SafeLoader):
    """YAML 1.2: ``on`` and ``off`` are words."""


AsEditorsRead.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if not (tag.endswith(":bool") and first in "oOyYnN")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def errors(text, validator=Draft202012Validator):
    content = yaml.load(text, AsEditorsRead)
    return [error.message for error in validator(SCHEMA).iter_errors(content)]


def test_the_file_in_the_package_is_current():
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), "run: make docs"
    assert json.loads(CliRunner().invoke(app, ["schema"]).stdout) == SCHEMA


def test_its_name_has_the_version_and_is_no_address():
    assert re.fullmatch(r"urn:[a-z]+:scenario:\d+", SCHEMA["$id"])
    assert SCHEMA["$id"] == SCHEMA_ID
    assert f"`{SCHEMA_ID}`" in EDITORS
    assert not [ref for ref in re.findall(r'"\$ref": "([^"]*)"', schema_text()) if ref[0] != "#"]


@pytest.mark.parametrize("validator", [Draft202012Validator, Draft7Validator])
def test_an_editor_takes_every_scenario_that_is_shipped(validator):
    """Also one that knows draft 7 only, as older versions of the YAML language server do."""
    files = [*SHIPPED.values(), *(ROOT / "docs" / "guide").glob("*.yaml")]
    assert {f.stem: e for f in files if (e := errors(f.read_text(), validator))} == {}


@pytest.mark.slow
def test_an_editor_takes_every_scenario_of_the_catalogue():
    Draft202012Validator.check_schema(SCHEMA)
    assert {f.stem: e for f in CATALOGUE.values() if (e := errors(f.read_text()))} == {}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("faults:", "fault:"),
        ("do: crash", "do: crush"),
        ("target: leader of orders-0", "targets: leader of orders-0"),
        ("at: 10s", "at: 10"),
        ("lost_acked:", "lost:"),
        ("rate: 5000/s", "rate: 5000"),
    ],
)
def test_an_editor_marks_what_the_loader_refuses(right, wrong):
    blocks = code_blocks(ROOT / "README.md")
    text = next(text for _, _, text in blocks if text.startswith("claim:"))
    assert errors(text) == []
    assert right in text
    assert errors(text.replace(right, wrong))


def test_an_editor_takes_a_plain_number_wherever_the_loader_does():
    for name in VOCABULARY:
        try:
            parse(name, 0)
        except Problem:
            assert errors(f"expect: {{{name}: 0}}") != errors(f"expect: {{{name}: 0us..1s}}"), name
        else:
            assert errors(f"expect: {{{name}: 0}}") == errors(f"expect: {{{name}: at most 0}}"), (
                name
            )


def test_comments_of_the_recipe_are_those_that_editors_look_for(tmp_path):
    """As the YAML language server and the JetBrains editors write them in their documents."""
    (tmp_path / SCHEMA_FILE.name).write_text(schema_text())
    mine = tmp_path / "mine.yaml"
    done = CliRunner().invoke(app, ["init", str(mine), "--brokers", "3"])
    assert done.exit_code == 0, done.output
    first, second = mine.read_text().splitlines()[:2]
    assert (
        re.fullmatch(r"#\s+yaml-language-server\s*:\s*\$schema=(\S+)", first)[1] == SCHEMA_FILE.name
    )
    assert re.fullmatch(r"# \$schema: (\S+)", second)[1] == SCHEMA_FILE.name
    assert f"{first}\n" in EDITORS
    assert f"{second}\n" in EDITORS
    assert f"logquake schema > {SCHEMA_FILE.name}\n" in EDITORS


def test_a_folder_without_the_schema_gets_no_comment_that_would_lead_nowhere(tmp_path):
    mine = tmp_path / "mine.yaml"
    CliRunner().invoke(app, ["init", str(mine), "--brokers", "3"])
    assert "$schema" not in mine.read_text()
