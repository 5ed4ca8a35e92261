"""Messages by version, as Kafka's released jars define them."""

import json
import subprocess
import sys

import pytest

from sim.wire.definitions import TABLE, definition, keys, releases
from sim.wire.fields import parse_fields
from tests.wire.held_messages import differences, held
from tools.kafka_jars import MESSAGE_RELEASES
from tools.kafka_messages import lines, message, notation, text

NAMES = list(dict.fromkeys(json.loads(row)["name"] for row in TABLE.read_text().splitlines()[1:]))


def messages_of(release):
    found = (held(name, release) for name in NAMES)
    return [one for one in found if one is not None]


def brought(name, version, release="4.3", structure=""):
    """Fields that the version has and the one before has not, and the reverse."""
    layouts = held(name, release).layouts
    new, old = layouts[version][structure], layouts[version - 1][structure]
    return [f for f in new if f not in old], [f for f in old if f not in new]


@pytest.mark.parametrize(
    ("name", "structure", "version", "new", "old"),
    [
        ("FetchRequest", "FetchPartition", 17, ["replicaDirectoryId:uuid#0"], []),
        ("FetchRequest", "FetchPartition", 18, ["highWatermark:int64#1=9223372036854775807"], []),
        ("FetchRequest", "", 15, ["replicaState:ReplicaState#1"], ["replicaId:int32=-1"]),
        ("ProduceRequest", "TopicProduceData", 13, ["topicId:uuid"], ["name:string"]),
        ("OffsetCommitRequest", "OffsetCommitRequestTopic", 10, ["topicId:uuid"], ["name:string"]),
        ("RegisterBrokerRecord", "", 4, ["cordonedLogDirs:[]uuid?#1=null"], []),
        ("PartitionChangeRecord", "", 1, ["directories:[]uuid?#8=null"], []),
        ("OffsetCommitValue", "", 4, ["topicId:uuid#0"], []),
        ("EndTxnResponse", "", 5, ["producerId:int64=-1", "producerEpoch:int16=-1"], []),
    ],
)
def test_a_version_brings_these_fields(name, structure, version, new, old):
    assert brought(name, version, structure=structure) == (new, old)


def test_releases_have_their_own_versions_of_a_message():
    assert releases() == ("3.9", "4.0", "4.1", "4.2", "4.3")
    fetch = {release: definition("FetchRequest", release) for release in releases()}
    assert [each.versions for each in fetch.values()] == [
        range(18), range(4, 18), range(4, 19), range(4, 19), range(4, 19),
    ]  # fmt: skip
    assert {(each.key, each.flexible_since, each.of) for each in fetch.values()} == {
        (1, 12, "request")
    }
    assert definition("RegisterBrokerRecord", "4.2").versions == range(4)
    assert definition("RegisterBrokerRecord").versions == range(5)
    assert definition("LeaderAndIsrRequest", "3.9").key == 4
    assert definition("LeaderAndIsrRequest", "4.0") is None
    assert definition("NoSuchMessage") is None


def test_a_tagged_field_that_a_release_adds_to_a_version_is_in_no_older_release():
    def fields(release, name):
        return [field.name for field in definition(name, release).schema.fields]

    assert "topicId" not in fields("4.0", "OffsetCommitValue")
    assert "topicId" in fields("4.1", "OffsetCommitValue")
    assert "deliveryCompleteCount" not in fields("4.1", "ShareSnapshotValue")
    assert "deliveryCompleteCount" in fields("4.2", "ShareSnapshotValue")


def test_an_unstable_version_is_not_the_newest_that_is_negotiated():
    commit = definition("OffsetCommitRequest", "4.1")
    assert (commit.versions[-1], commit.newest) == (10, 9)
    assert definition("OffsetCommitRequest", "4.2").newest == 10
    assert definition("InitProducerIdRequest").newest == 5


def test_every_kind_of_message_is_there_with_its_keys():
    assert keys("metadata")["PartitionChangeRecord"] == 5
    assert keys("group")["OffsetCommitKey"] == 1
    assert keys("group")["ShareGroupStatePartitionMetadataKey"] == 15
    assert keys("share") == {
        "ShareSnapshotKey": 0, "ShareSnapshotValue": 0, "ShareUpdateKey": 1, "ShareUpdateValue": 1,
    }  # fmt: skip
    assert "ShareGroupPartitionMetadataKey" not in keys("group"), "4.0 was the last that had it"
    assert len(keys("request")) == len(keys("response")) > 80


def test_the_data_file_is_what_its_own_facts_are_written_as():
    assert (
        text({release: messages_of(release) for release in MESSAGE_RELEASES}) == TABLE.read_text()
    )


@pytest.mark.parametrize(
    ("name", "found", "planted"),
    [
        ("FetchRequest", "highWatermark:int64#1", "highWatermark:int64#2"),
        ("FetchRequest", "topicId:uuid", "topicId:string"),
        ("ProduceRequest", "acks:int16", "acks:int32"),
        ("OffsetCommitValue", "commitTimestamp:int64", "commitTimestamp:int64=-1"),
        ("OffsetCommitKey", "topic:string", "topic:string?"),
        ("ConsumerGroupMemberMetadataValue", "Metadata?#0", "Metadata?#0=null"),
    ],
)
def test_a_planted_difference_to_a_release_is_found(name, found, planted):
    whole = messages_of("4.3")
    assert differences(whole, "4.3") == []
    wrong = [
        one._replace(layouts=eval(repr(one.layouts).replace(found, planted)))
        if one.name == name
        else one
        for one in whole
    ]
    assert differences(wrong, "4.3") == [name]


def test_a_planted_version_or_key_is_found():
    fetch = held("FetchRequest", "4.3")
    without = {version: layout for version, layout in fetch.layouts.items() if version != 18}
    flags = {version: version >= 11 for version in fetch.flexible}
    for wrong in (
        fetch._replace(layouts=without, flexible={v: fetch.flexible[v] for v in without}),
        fetch._replace(flexible=flags),
        fetch._replace(key=2),
        fetch._replace(unstable=True),
    ):
        assert differences([wrong], "4.3") == ["FetchRequest"]
    assert differences([fetch], "4.0") == ["FetchRequest"]


def row(*versions, name="XRequestData", key=7):
    facts = {str(v): {"flexible": v > 0, "": fields} for v, fields in enumerate(versions)}
    package = "org.apache.kafka.common.message"
    return {
        "name": name, "package": package, "key": key, "unstable": False, "versions": facts,
    }  # fmt: skip


def test_releases_that_agree_share_a_line_and_others_have_their_own():
    old, new = row("a:int8"), row("a:int8", "b:int16?#0=null a:int8")
    other = row("a:int8", "a:int8 c:string")
    one = {"name": "XRequest", "of": "request", "key": 7}
    alike = {"3.9": [message(old)], "4.0": [message(new)], "4.1": [message(new)]}
    assert lines(alike) == [
        one | {"in": {"3.9": "0", "4.0-4.1": "0-1"}, "flexible": 1,
               "fields": {"": "b:int16?@1#0=null a:int8"}},
    ]  # fmt: skip
    assert lines({"4.0": [message(new)], "4.1": [message(other)]}) == [
        one | {"in": {"4.1": "0-1"}, "flexible": 1, "fields": {"": "a:int8 c:string@1"}},
        one | {"in": {"4.0": "0-1"}, "flexible": 1,
               "fields": {"": "b:int16?@1#0=null a:int8"}},
    ]  # fmt: skip


def test_a_notation_has_every_version_and_refuses_what_it_cannot_say():
    versions = {0: ["a:int8"], 1: ["a:int8?", "b:[]X"], 2: ["a:int8?"]}
    assert notation(versions) == "a:int8?1 b:[]X@1-1"
    a, b = parse_fields("a:int8?1 b:[]X@1-1")
    assert (a.nullable_since, b.low, b.high) == (1, 1, 1)
    for bad in (
        {0: ["a:int8"], 1: [], 2: ["a:int8"]},
        {0: ["a:int8?"], 1: ["a:int8"]},
        {0: ["a:int8", "b:int8"], 1: ["b:int8", "a:int8"]},
        {0: ["a int8"]},
    ):
        with pytest.raises(ValueError, match=r"versions|place|no field"):
            notation(bad)


def test_nothing_is_read_before_a_message_is_used():
    code = (
        "import sim.records.metadata\n"
        "from sim.wire import definitions, schemas\n"
        "assert definitions._text.cache_info().currsize == 0\n"
        "schemas.encode('NoOpRecord', 0, {})\n"
        "assert definitions.definition.cache_info().currsize == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
