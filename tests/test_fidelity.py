"""What docs/fidelity.md calls absent is refused when a scenario asks for it, never ignored."""

from pathlib import Path

import pytest

from sim.errors import SimulationError
from sim.scenario.behaviours import registry as behaviours
from sim.scenario.behaviours.versions import VERSIONS
from sim.scenario.loader import load
from sim.scenario.model.cluster import ClusterModel
from sim.scenario.settings import registry as settings
from sim.scenario.text.problems import Problem

FIDELITY = Path(__file__).parents[1] / "docs" / "fidelity.md"

NOTHING = "\N{EN DASH}"

ABSENT = {
    (scope, name): (setting, version)
    for version in VERSIONS
    for scope, table in settings.settings_at(version).items()
    for name, setting in table.items()
    if not setting.is_modelled and not setting.missing
}
"""Settings that are known and absent, each with the last version that has it."""


def other_than_default(setting):
    """A value that Kafka takes for a setting, and that is not its default."""
    if setting.type == "boolean":
        return not setting.default
    if setting.type in {"int", "double"}:
        low = setting.low or 0
        return low + 1 if setting.default == low else low
    return next((choice for choice in setting.choices if choice != setting.default), "another")


@pytest.mark.parametrize(("scope", "name"), ABSENT)
def test_absent_behaviour_is_refused(scope, name):
    setting, version = ABSENT[scope, name]
    with pytest.raises(Problem) as caught:
        settings.resolve(scope, {name: other_than_default(setting)}, version=version)
    assert setting.absent in str(caught.value)


@pytest.mark.parametrize(("scope", "name"), ABSENT)
def test_absent_behaviour_is_accepted_at_kafkas_own_default(scope, name):
    setting, version = ABSENT[scope, name]
    if setting.default is not None:
        settings.resolve(scope, {name: setting.default}, version=version)


@pytest.mark.parametrize(
    ("scope", "name", "value"),
    [
        ("broker", "replica.selector.class", "MySelector"),
        ("broker", "security.inter.broker.protocol", "SASL_SSL"),
    ],
)
def test_values_that_are_not_simulated_are_refused(scope, name, value):
    with pytest.raises(Problem):
        settings.resolve(scope, {name: value})


def test_historic_behaviour_that_is_built_is_accepted():
    assert behaviours.resolve({"recovery": "isr"})["recovery"] == "isr"


def test_an_unknown_version_of_kafka_is_refused():
    ClusterModel.model_validate({"kafka": "4.1"})
    with pytest.raises(ValueError, match=r"0\.8 of Kafka"):
        ClusterModel.model_validate({"kafka": "0.8"})


@pytest.mark.parametrize("kind", ["reorder", "lying-disk", "unregister-broker"])
def test_a_fault_that_is_not_built_is_refused(tmp_path, kind):
    path = tmp_path / "scenario.yaml"
    text = (Path(__file__).parents[1] / "scenarios" / "acks1-leader-crash.yaml").read_text()
    path.write_text(text)
    load(path)
    path.write_text(text.replace("do: crash", f"do: {kind}"))
    with pytest.raises(SimulationError, match=kind):
        load(path)


def exact_with_a_difference(text: str) -> list[str]:
    """Behaviours that are graded exact although something differs."""
    wrong = []
    for line in text.splitlines():
        cells = line.strip("| ").split(" | ")
        if len(cells) != 4 or cells[1] != "exact" or cells[2] == NOTHING:
            continue
        if not cells[2].startswith("scope: "):
            wrong.append(cells[0])
    return wrong


def test_what_is_graded_exact_differs_in_nothing_or_says_for_which_cases_it_is_claimed():
    text = FIDELITY.read_text()
    assert text.count(" | exact | ") > 100
    assert exact_with_a_difference(text) == []


def test_a_planted_difference_of_something_exact_is_found():
    row = "| leases | exact | renewed every minute, Kafka's every second | `tests/x.py::test_x` |"
    bare = "| leases | exact | scope | `tests/x.py::test_x` |"
    planted = FIDELITY.read_text() + f"{row}\n{bare}\n"
    assert exact_with_a_difference(planted) == ["leases", "leases"]
    fine = row.replace("renewed", "scope: renewed")
    assert exact_with_a_difference(fine) == []
    assert exact_with_a_difference(row.replace("exact", "approximate")) == []
    assert exact_with_a_difference(FIDELITY.read_text().replace("scope: ", "", 1)) != []


@pytest.mark.parametrize("name", behaviours.DEFAULTS)
def test_each_behaviour_of_a_release_has_a_line_with_its_name(name):
    """As `isr_expand`, or `zk.batching: off`."""
    text = FIDELITY.read_text()
    assert f"`{name}`" in text or f"`{name}: " in text or f"{{{name}: " in text


def said_twice(text: str) -> list[str]:
    """Behaviours with a second line, or with one that is outside of a table."""
    lines = text.splitlines()
    wrong = []
    for at, line in enumerate(lines):
        cells = line.strip("| ").split(" | ")
        is_row = line.startswith("| ") and cells[0] not in {"behaviour", "promise"}
        starts = is_row and not lines[at - 1].startswith("|")
        if is_row and (starts or line in lines[:at]):
            wrong.append(cells[0])
    return wrong


def test_each_behaviour_has_one_line_inside_a_table():
    assert said_twice(FIDELITY.read_text()) == []


def test_a_planted_second_line_or_blank_line_is_found():
    text = FIDELITY.read_text()
    row = next(line for line in text.splitlines() if " | exact | " in line)
    name = row.strip("| ").split(" | ")[0]
    assert said_twice(text.replace(row, f"{row}\n{row}")) == [name]
    assert said_twice(text.replace(f"\n{row}", f"\n\n{row}")) == [name]
