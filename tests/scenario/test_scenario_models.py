"""A part of a scenario is one frozen model, which is read and writes itself out."""

import pytest
from pydantic import Field, ValidationError

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from sim.scenario.model.cluster import ZooKeeperModel
from sim.scenario.model.machines import CpuModel, DiskModel, NetworkModel
from sim.scenario.model.topics import TopicModel, TopicSpec
from sim.scenario.model.types import NOT_WRITTEN, Duration, Share, Strict, When, filled
from sim.scenario.settings.resolved import Config
from tests.scenario.scenario_text import GOOD


class Part(Strict, frozen=True):
    quiet = ("later",)
    behind = (("first", "second"),)

    first: Duration = Field(0, alias="at")
    second: Share | None = None
    later: When = (1, 1)


class Whole(Part, frozen=True):
    second: Share
    name: str = NOT_WRITTEN


@pytest.mark.parametrize("kind", [NetworkModel, DiskModel, CpuModel, ZooKeeperModel])
def test_defaults_written_out_are_read_as_the_same(kind):
    defaults = kind.model_construct()
    assert kind.model_validate(defaults.plain(whole=True)) == defaults
    assert kind.model_validate(defaults.plain()) == defaults


def test_quantities_are_written_as_texts_and_none_is_left_out():
    part = Part.model_validate({"at": "1500us", "second": None})
    assert part.plain() == {"at": "1500us"}
    assert part.plain(whole=True) == {"at": "1500us", "later": "1us"}


def test_a_quiet_field_is_written_only_off_its_default():
    part = Part.model_validate({"later": "2us..3us"})
    assert part.plain() == {"at": "0us", "later": "2us..3us"}


def test_a_field_with_an_older_place_keeps_it():
    assert list(Part.model_validate({"second": "5%"}).plain()) == ["second", "at"]


def test_what_follows_from_other_fields_is_never_written():
    whole = filled(Whole, Part.model_validate({"at": "1s"}), second=70_000, name="orders")
    assert whole.plain() == {"second": "7%", "at": "1s"}


@pytest.mark.parametrize("parts", [{}, {"second": 1}, {"second": 1, "name": "x", "nmae": "x"}])
def test_a_model_is_filled_with_all_its_fields_and_no_other(parts):
    with pytest.raises(TypeError, match=r"name|nmae"):
        filled(Whole, Part.model_validate({}), **parts)


def test_a_part_cannot_be_changed():
    topic = load_text(GOOD).topics[0]
    with pytest.raises(ValidationError, match="frozen"):
        topic.partitions = 7


def test_fields_of_a_part_that_a_file_does_not_have_are_unknown_keys():
    assert {"name", "assignment"} == set(TopicSpec.model_fields) - set(TopicModel.model_fields)
    text = GOOD.replace("replication.factor:", "assignment: [[1]], replication.factor:", 1)
    with pytest.raises(ScenarioError, match="unknown key assignment"):
        load_text(text)


def test_settings_are_a_mapping_that_compares_by_its_values():
    config = Config({"linger.ms": 5, "acks": "all"})
    assert config == Config({"acks": "all", "linger.ms": 5})
    assert config.changed({"acks": "1"}) != config
    assert dict(config) == {"linger.ms": 5, "acks": "all"}
    assert "retries" not in config
