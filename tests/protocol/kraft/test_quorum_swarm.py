"""No seed makes three quorum machines break a promise, and planted defects are found."""

import pytest

from sim.protocol.kraft.raft import Quorum
from sim.protocol.kraft.types import Role
from sim.protocol.messages.quorum import VoteRequest
from tests.protocol.kraft.quorum_swarm import SECOND, Cluster, swarm


def test_no_seed_breaks_a_promise_of_the_quorum():
    broken, saw = swarm(range(120))
    assert broken == {}
    assert saw["elected"] > 240
    assert saw["committed"] > 2_000
    assert saw["crash"] > 100
    assert saw["power cut"] > 30


def test_no_seed_breaks_a_promise_when_commits_answer_no_fetch_that_waits():
    """As before KIP-1166."""
    broken, saw = swarm(range(60), wakes_on_commit=False)
    assert broken == {}
    assert saw["elected"] > 120
    assert saw["committed"] > 1_000


def test_no_seed_breaks_a_promise_when_voters_die_as_they_vote():
    broken, saw = swarm(range(60), spite=True)
    assert broken == {}
    assert saw["elected"] > 60
    assert saw["crash"] > 300


def test_no_seed_breaks_a_promise_when_members_drop_the_heads_of_their_logs():
    broken, saw = swarm(range(120), snapshots=True)
    assert broken == {}
    assert saw["committed"] > 2_000
    assert saw["snapshot loaded"] > 300
    assert saw["snapshot fetched"] > 20
    assert saw["next slice"] > 100


def test_a_healed_cluster_elects_a_leader_and_commits():
    for seed in range(10):
        cluster = Cluster(seed, faults=False)
        cluster.disturb(8 * SECOND, power=True)
        cluster.run(20 * SECOND)
        before = len(cluster.committed)
        cluster.run(25 * SECOND)
        assert len(cluster.committed) > before, seed


class VotesTwice(Quorum):
    """Grants a second vote in an epoch."""

    def _grants(self, request: VoteRequest):
        log = self.log
        fresh = (request.last_epoch, request.last_offset) >= (log.latest_epoch, log.log_end_offset)
        return super()._grants(request) or (fresh and self.role is not Role.LEADER)


class CommitsAlone(Quorum):
    """Commits what only the leader has."""

    def _committable(self):
        return self.log.log_end_offset


class CommitsOldEpochs(Quorum):
    """Commits what a majority has, although nothing of the leader's own epoch is under it."""

    def _may_commit(self, offset):
        return offset > self.high_watermark


class SkipsTheSnapshot(Quorum):
    """Tells what is committed from the log alone, which has lost its head."""

    def _load_snapshot(self, end):
        self.high_watermark = max(self.high_watermark, min(end, self.log.log_start_offset))


@pytest.mark.parametrize(
    ("how", "seeds"),
    [
        pytest.param({"machine": VotesTwice}, 60, id="two votes in an epoch"),
        pytest.param({"machine": CommitsAlone}, 60, id="commit without a majority"),
        pytest.param({"machine": CommitsOldEpochs}, 120, id="commit of an old epoch's record"),
        pytest.param(
            {"machine": SkipsTheSnapshot, "snapshots": True}, 20, id="snapshot not loaded"
        ),
        pytest.param(
            {"remembers_vote": False, "spite": True}, 120, id="vote forgotten at a restart"
        ),
    ],
)
def test_the_harness_finds_a_planted_defect(how, seeds):
    for first in range(0, seeds, 20):
        broken, _ = swarm(range(first, first + 20), **how)
        if broken:
            return
    pytest.fail("not found")
