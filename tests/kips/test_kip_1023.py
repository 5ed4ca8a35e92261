"""KIP-1023: a new follower of a tiered topic begins where the remote log ends.

Without follower.fetch.last.tiered.offset.enable it begins at the start of the leader's local log,
and copies from the leader what lies in the remote log, too.
"""

from types import SimpleNamespace

import pytest

from sim.error_codes import ErrorCode
from sim.errors import ScenarioError
from sim.ids import TopicPartition
from sim.protocol.broker.replication.leader.list_offsets import list_offsets
from sim.protocol.messages.data import EARLIEST_PENDING_UPLOAD_TIMESTAMP, ListOffsetsRequest
from sim.scenario.loader import load_text
from tests.kips.test_kip_405 import CONFIG, SHOP, STORE, TIERED
from tests.scenarios.run_kit import go, text_of

NAME = "follower.fetch.last.tiered.offset.enable"
P = TopicPartition("orders", 0)


def pending(start, local, highest, *, tiered=True):
    log = SimpleNamespace(
        is_tiered=tiered, log_start_offset=start, local_log_start_offset=local,
        highest_remote_offset=highest, log_end_offset=100, epochs=[(0, 0), (2, 50)],
    )  # fmt: skip
    replica = SimpleNamespace(log=log, leader_epoch=3, partition=P)
    request = ListOffsetsRequest(P, EARLIEST_PENDING_UPLOAD_TIMESTAMP, 3, 2)
    answer = list_offsets(SimpleNamespace(led=lambda _: replica), request)
    assert answer.error is ErrorCode.NONE
    return answer.offset, answer.leader_epoch


def test_the_leader_says_the_first_offset_that_is_not_uploaded_and_its_epoch():
    assert pending(0, 20, 59) == (60, 2)
    assert pending(0, 20, 39) == (40, 0)


def test_that_is_never_below_its_local_log():
    assert pending(0, 70, 59) == (70, 2)
    assert pending(70, 70, 59) == (70, 2)


def test_a_leader_that_uploaded_nothing_says_its_start_and_one_that_does_not_know_says_nothing():
    assert pending(10, 10, -1) == (10, 0)
    assert pending(10, 20, -1) == (-1, -1)
    assert pending(10, 20, 59, tiered=False) == (-1, -1)


@pytest.fixture(scope="module", params=[False, True])
def ran(request, tmp_path_factory):
    own = TIERED["config"] | {"local.retention.bytes": 3 << 20}
    return request.param, go(
        tmp_path_factory.mktemp("tiered"),
        config=CONFIG | {NAME: request.param},
        cluster=STORE,
        topic=TIERED | {"config": own},
        producer=SHOP,
        # A segment of 1,025 records is full each 1.28 s, and copied within a task interval of 0.5 s
        # and a PUT: the sixth by 8.3 s, the seventh not before 8.97 s. A follower fetches before it
        # is registered (since 3.5), so that it asks, and begins, 0.2 s after 8.4 s: between both.
        faults=[{"at": "8400ms", "do": "wiped-disk", "target": "follower of orders-0"}],
        lasts="11s",
    )  # fmt: skip


def test_a_wiped_follower_copies_what_is_in_the_remote_log_only_without_it(ran):
    enabled, found = ran
    (rebuilt,) = found.rows("local_log_starts", reason="rebuilt")
    at, broker = rebuilt["t_us"], rebuilt["broker"]
    others = [
        row["to_offset"]
        for row in found.rows("local_log_starts")
        if row["broker"] != broker and row["t_us"] <= at
    ]
    copied = [
        row["end_offset"] for row in found.rows("remote_segments", state="COPY_SEGMENT_FINISHED")
        if row["t_us"] <= at
    ]  # fmt: skip
    local, behind = max(others), max(copied) + 1
    assert local + 1_000 < behind, "the leader's local log overlaps the remote one"
    assert rebuilt["to_offset"] == (behind if enabled else local)
    final = found.rows("partition_changes", topic="orders")[-1]
    assert len(final["in_sync"].split(",")) == 3
    assert found.records["lost_acked"] == 0


def test_it_came_with_4_3_and_goes_with_tiered_storage():
    def given(kafka, **parts):
        text = text_of(config={NAME: True} | parts.pop("config", {}), **parts)
        return load_text(text.replace("cluster:", f"cluster:\n  kafka: '{kafka}'", 1), "t")

    tier = {"config": {"remote.log.storage.system.enable": True}, "cluster": STORE}
    assert f"{NAME}: true" in given("4.3", **tier).as_yaml()
    with pytest.raises(ScenarioError, match=r"came with 4\.3"):
        given("4.2", **tier)
    with pytest.raises(ScenarioError, match="without remote"):
        given("4.3")


def test_a_scenario_that_leaves_it_out_does_not_write_it():
    assert NAME not in load_text(text_of(), "t").as_yaml()
