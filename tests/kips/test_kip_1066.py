"""KIP-1066: a log directory that is cordoned gets no new replicas, and keeps those that it has.

Brokers report cordoned directories with their heartbeats. The controller places no replica on a
broker whose directories are all cordoned; a broker makes new logs in the others.
"""

import pytest

from sim.error_codes import ErrorCode as E
from sim.errors import ScenarioError
from sim.ids import TopicPartition
from sim.protocol.kraft.metadata_snapshot import image_records
from sim.protocol.messages.admin import IncrementalAlterConfigsRequest
from sim.protocol.messages.cluster import BrokerHeartbeatRequest, CreateTopicsRequest, NewTopic
from sim.protocol.metadata import records as mr
from sim.protocol.metadata.versions import CORDONED_DIRECTORIES
from sim.records import metadata as codec
from sim.records.metadata_versions import version_of
from sim.scenario.loader import load_text
from tests.protocol.controller.controller_kit import Desk
from tests.scenarios.run_kit import go, text_of

NAME = "cordoned.log.dirs"


def desk(level=CORDONED_DIRECTORIES):
    return Desk(metadata_version=level)


def cordon(found, broker, *directories):
    image = found.controller.image
    request = BrokerHeartbeatRequest(
        broker, found.epochs[broker], image.offset - 1,
        want_fence=False, want_shut_down=False, cordoned_directories=directories,
    )  # fmt: skip
    assert found.ask(request).error is E.NONE


def create(found, name, factor, partitions=9):
    answer = found.ask(CreateTopicsRequest((NewTopic(name, partitions, factor),)))
    return dict(answer.errors)[name]


def hosts(found, name):
    image = found.controller.image
    return {
        broker
        for number in range(image.partition_counts[name])
        for broker in image.partitions[TopicPartition(name, number)].replicas
    }


def test_no_replica_is_placed_on_a_broker_whose_directories_are_all_cordoned():
    found = desk()
    cordon(found, 2, "dir-2")
    assert create(found, "new", 2) is E.NONE
    assert hosts(found, "new") == {1, 3}
    assert create(found, "wide", 3) is E.INVALID_REPLICATION_FACTOR
    cordon(found, 2)
    assert create(found, "wide", 3) is E.NONE
    assert hosts(found, "wide") == {1, 2, 3}


def test_a_broker_with_a_directory_that_is_open_gets_replicas():
    found = desk()
    cordon(found, 2, "another")
    assert found.controller.image.brokers[2].has_open_directory
    assert create(found, "new", 3) is E.NONE


def test_the_controller_writes_what_changes_once_and_only_from_its_metadata_version_on():
    found = desk()
    before = found.controller.image.offset
    cordon(found, 2, "dir-2")
    assert found.controller.image.offset == before + 1
    cordon(found, 2, "dir-2")
    assert found.controller.image.offset == before + 1
    old = desk(CORDONED_DIRECTORIES - 1)
    before = old.controller.image.offset
    cordon(old, 2, "dir-2")
    assert old.controller.image.offset == before
    assert old.controller.image.brokers[2].cordoned is None


def test_an_administrator_cannot_cordon_below_it():
    request = IncrementalAlterConfigsRequest("", ((NAME, "data-0"),), 2)
    assert desk().ask(request).error is E.NONE
    assert desk(CORDONED_DIRECTORIES - 1).ask(request).error is E.INVALID_CONFIG


def test_records_and_snapshots_have_them_in_kafkas_versions():
    found = desk()
    cordon(found, 2, "A" * 22)
    image = found.controller.image
    (registered,) = [
        record for record in image_records(image)
        if isinstance(record, mr.RegisterBrokerRecord) and record.broker == 2
    ]  # fmt: skip
    assert registered.cordoned == ("A" * 22,)
    change = mr.BrokerRegistrationChangeRecord(2, 7, cordoned=("A" * 22,))
    assert version_of(change, CORDONED_DIRECTORIES) == 3
    assert version_of(mr.BrokerRegistrationChangeRecord(2, 7), CORDONED_DIRECTORIES) == 0
    none = mr.BrokerRegistrationChangeRecord(2, 7, cordoned=())
    registration = mr.RegisterBrokerRecord(2, "A" * 22, 7, "", fenced=True, cordoned=("A" * 22,))
    for record in (change, none, registration):
        form = codec.RecordForm(CORDONED_DIRECTORIES)
        assert codec.decode_record(codec.encode_record(record, form)) == record


DISK = {"disk": {"directories": 2}}


def test_new_logs_are_made_in_the_other_directories_and_old_ones_stay(tmp_path):
    ran = go(
        tmp_path,
        cluster=DISK,
        topic={"partitions": 4},
        faults=[
            {"at": "1s", "do": "alter-broker-config", "broker": "broker-1",
             "config": {NAME: "data-0"}},
            {"at": "2s", "do": "create-partitions", "topic": "orders", "count": 10},
            {"at": "3s", "do": "alter-replica-log-dirs", "broker": "broker-1",
             "partition": "orders-0", "to": 0},
        ],
        lasts="5s",
    )  # fmt: skip

    def found(broker, number):
        base = ran.directory / "disks" / f"broker-{broker}" / f"data-{number}"
        return {int(path.name.rpartition("-")[2]) for path in base.glob("orders-*")}

    cordoned, refused = ran.faults[0], ran.faults[2]
    assert cordoned["effect"] == f"broker-1: {NAME}  -> data-0"
    assert "INVALID_REPLICA_ASSIGNMENT" in refused["effect"]
    assert found(1, 0) <= {0, 1, 2, 3}
    assert found(1, 0), "what was there before has stayed"
    assert {4, 5, 6, 7, 8, 9} <= found(1, 1)
    assert any(number > 3 for number in found(2, 0)), "no other broker closes its directory"
    assert ran.records["lost_acked"] == 0


def test_directories_that_are_cordoned_from_the_start_stay_empty(tmp_path):
    ran = go(tmp_path, cluster=DISK, config={NAME: "data-0"}, lasts="1s", then="stop")
    disks = ran.directory / "disks"
    assert not list(disks.glob("broker-*/data-0/orders-*"))
    assert len(list(disks.glob("broker-*/data-1/orders-*"))) == 9


def test_a_broker_that_is_cordoned_whole_gets_no_replicas_until_it_is_opened(tmp_path):
    ran = go(
        tmp_path,
        cluster=DISK,
        topic={"partitions": 1, "replication.factor": 2},
        faults=[
            {"at": "1s", "do": "alter-broker-config", "broker": "broker-2", "config": {NAME: "*"}},
            {"at": "2s", "do": "create-partitions", "topic": "orders", "count": 7},
            {"at": "3s", "do": "alter-broker-config", "broker": "broker-2", "config": {NAME: None}},
            {"at": "4s", "do": "create-partitions", "topic": "orders", "count": 13},
        ],
        lasts="6s",
    )  # fmt: skip
    first = {}
    for row in ran.rows("partition_changes", topic="orders"):
        first.setdefault(row["partition"], row["replicas"].split(","))
    assert all("2" not in first[number] for number in range(1, 7))
    assert any("2" in first[number] for number in range(7, 13))


def load(kafka="4.3", **parts):
    text = text_of(**parts)
    return load_text(text.replace("cluster:", f"cluster:\n  kafka: '{kafka}'", 1), "t")


@pytest.mark.parametrize(
    ("value", "error"),
    [("data-2", "data-0, data-1"), ("*,data-0", "alone"), ("data-0,data-0", "each directory once")],
)
def test_what_kafka_would_refuse_is_refused(value, error):
    with pytest.raises(ScenarioError, match=error):
        load(cluster=DISK, config={NAME: value})
    change = {
        "at": "1s",
        "do": "alter-broker-config",
        "broker": "broker-1",
        "config": {NAME: value},
    }
    with pytest.raises(ScenarioError, match=error):
        load(cluster=DISK, faults=[change | {"config": {NAME: value}}])


def test_it_came_with_4_3_and_is_changed_for_one_broker_at_a_time():
    change = {"at": "1s", "do": "alter-broker-config", "config": {NAME: "data-0"}}
    with pytest.raises(ScenarioError, match="one broker's, as in Kafka"):
        load(cluster=DISK, faults=[change])
    with pytest.raises(ScenarioError, match=r"came with 4\.3"):
        load("4.2", cluster=DISK, faults=[change | {"broker": "broker-1"}])
    with pytest.raises(ScenarioError, match=r"came with 4\.3"):
        load("4.2", cluster=DISK, config={NAME: "data-0"})
    assert f"{NAME}: data-0" in load(cluster=DISK, config={NAME: "data-0"}).as_yaml()
    assert NAME not in load(cluster=DISK).as_yaml()
