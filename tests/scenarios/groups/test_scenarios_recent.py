"""Groups of Kafka 4.2 and 4.3 in a whole cluster."""

import pytest

from tests.scenarios.groups.test_scenarios_consumer_protocol import TWELVE, group, held, unread
from tests.scenarios.groups.test_scenarios_share_groups import WORKERS
from tests.scenarios.run_kit import S, go

HEARTBEAT = {
    "group.consumer.heartbeat.interval.ms": 1_000,
    "group.consumer.min.heartbeat.interval.ms": 1_000,
}
SLOWLY = {"rate": "50/s"}


def joined(directory, kafka):
    """Three members that come one after the other, 200 ms apart."""
    members = [group(1) | {"name": f"m{n}", "start": f"{2_000 + n * 200}ms"} for n in range(3)]
    return go(
        directory, cluster={"kafka": kafka}, consumers=members, topic=TWELVE, config=HEARTBEAT,
        lasts="10s", producer=SLOWLY,
    )  # fmt: skip


def targets(ran):
    return len(ran.rows("groups", reason="assignment committed"))


def test_members_that_come_together_share_a_target_since_4_3(tmp_path):
    (before, since) = (joined(tmp_path, kafka) for kafka in ("4.2", "4.3"))
    assert targets(before) == 3
    assert targets(since) == 2
    for ran in (before, since):
        assert sorted(map(len, held(ran, 10 * S).values())) == [4, 4, 4]
        assert unread(ran) == []


def acquired(ran):
    """Numbers of records that a broker gave a member at once."""
    counts = {}
    for row in ran.rows("share_states", state="ACQUIRED"):
        at = (row["t_us"], row["consumer"])
        counts[at] = counts.get(at, 0) + row["last_offset"] - row["first_offset"] + 1
    return counts.values()


@pytest.mark.parametrize("mode", ["batch_optimized", "record_limit"])
def test_a_share_consumer_with_a_limit_gets_no_more_than_it_polls_for(tmp_path, mode):
    config = WORKERS["config"] | {"share.acquire.mode": mode, "max.poll.records": 7}
    workers = WORKERS | {"config": config, "count": 2, "processing": "1ms"}
    ran = go(
        tmp_path, cluster={"kafka": "4.2"}, topic={"partitions": 2}, consumers=[workers],
        lasts="6s",
    )  # fmt: skip
    sharing = ran.verdict["sharing"]
    assert sharing["unfinished"] == 0
    assert (max(acquired(ran)) <= 7) is (mode == "record_limit")
