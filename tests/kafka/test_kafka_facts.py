"""The data file of Kafka's settings is what the released jars say today."""

import pytest

from sim.scenario.settings.facts import settings_of, versions
from tools.kafka_facts import PROGRAM
from tools.kafka_jars import RELEASES, jars, printed

pytestmark = pytest.mark.kafka

VERSION = "4.1"
"""The one whose settings and defaults scenarios have."""


@pytest.fixture(scope="module")
def theirs(kafka, tmp_path_factory):
    return printed(jars(RELEASES[VERSION], tmp_path_factory.mktemp("facts") / VERSION), PROGRAM)


def as_held(row):
    """What the data file should hold of a printed setting."""
    return (
        row["type"],
        row.get("default"),
        "default" not in row,
        row.get("valid", ""),
        row["importance"],
        row.get("internal", False),
    )


def test_the_data_file_has_every_setting_of_a_release_as_its_jars_define_it(theirs):
    assert VERSION in versions()
    definitions = dict.fromkeys(row["of"] for row in theirs)
    assert len(definitions) > 20
    for definition in definitions:
        ours = {
            name: setting.at(VERSION)
            for name, setting in settings_of(definition).items()
            if setting.at(VERSION) is not None
        }
        assert ours == {row["name"]: as_held(row) for row in theirs if row["of"] == definition}


def test_the_data_file_has_the_broker_settings_that_stand_in_for_a_topics(theirs):
    rows = [row for row in theirs if row["of"] == "topic"]
    found = {row["name"]: tuple(map(tuple, row.get("broker", ()))) for row in rows}
    known = settings_of("topic")
    assert {name: known[name].brokers for name in found} == found
    assert found["retention.ms"][-1] == ("log.retention.hours", 3_600_000)
