"""The data file of Kafka's settings is what the released jars say today."""

import pytest

from sim.scenario.settings.facts import (
    features_of,
    settings_of,
    supported_features,
    versions,
)
from tests.kafka.apache import by_turns
from tools.kafka_facts import FEATURES, PROGRAM, levels, of_quotas_alone, supported
from tools.kafka_jars import FEATURE_RELEASES, RELEASES, jars, printed

pytestmark = pytest.mark.kafka

READ = ("0.10", "2.0", "3.6", "4.1")
"""Versions that are read again: Scala's objects and the classes of after them."""


@pytest.fixture(scope="module", params=by_turns(READ, READ[-1]))
def version(request):
    return request.param


@pytest.fixture(scope="module")
def library(kafka, version, tmp_path_factory):
    return jars(RELEASES[version], tmp_path_factory.mktemp("facts") / version)


@pytest.fixture(scope="module")
def theirs(library):
    return of_quotas_alone(printed(library, PROGRAM))


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


def test_the_data_file_has_every_setting_of_a_release_as_its_jars_define_it(theirs, version):
    assert version in versions()
    definitions = dict.fromkeys(row["of"] for row in theirs)
    assert len(definitions) > 9
    for definition in definitions:
        ours = {
            name: setting.at(version)
            for name, setting in settings_of(definition).items()
            if setting.at(version) is not None
        }
        assert ours == {row["name"]: as_held(row) for row in theirs if row["of"] == definition}


def test_the_data_file_has_the_broker_settings_that_stand_in_for_a_topics(theirs, version):
    if version != READ[-1]:
        pytest.skip("a table of them came with 3.5, and grew")
    rows = [row for row in theirs if row["of"] == "topic"]
    found = {row["name"]: tuple(map(tuple, row.get("broker", ()))) for row in rows}
    known = settings_of("topic")
    assert {name: known[name].brokers for name in found} == found
    assert found["retention.ms"][-1] == ("log.retention.hours", 3_600_000)


def test_the_data_file_has_the_features_of_a_new_cluster(library, version):
    if version not in FEATURE_RELEASES:
        pytest.skip("KRaft was not for production")
    rows = printed(library, FEATURES)
    assert levels(rows) == features_of(version)
    ranges = {name: [low, high] for name, low, high in supported_features(version)}
    assert supported(rows) == ranges
