"""KIP-951: a broker that does not lead names the leader with its error; clients go there at once.

A producer asks for no metadata first, and its batch waits no back-off for a leader that is newer.
"""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.events import MetadataApplied
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.messages.data import LeaderHint
from sim.units import MS, SECOND
from tests.protocol.broker.replica_kit import P, ToyLog, image, state
from tests.protocol.clients.producer_kit import check_exactly_once, world


def test_a_refusal_names_the_leader_only_since_kip951():
    for hints in (True, False):
        config = ReplicaManagerConfig(gives_leader_hints=hints)
        manager = ReplicaManager(2, config, lambda *_: ToyLog(), {})
        manager.handle(MetadataApplied(image(state(epoch=3)), (P,)), 0)
        hint = manager.hint(P, E.NOT_LEADER_OR_FOLLOWER)
        assert (hint is not None) is hints


def test_a_leader_hint_spares_the_back_off():
    def answer(run, p, draft):
        if run.leaders[p] != 3:
            run.leaders[p], run.epochs[p] = 3, run.epochs[p] + 1
            return E.NOT_LEADER_OR_FOLLOWER, -1, LeaderHint(3, run.epochs[p])
        return None

    run = world([200_000, 900_000], partitions=1, latency=(100, 100))
    run.answer = answer
    run.run(10 * SECOND)
    assert run.sent[1][1].to == 3
    assert run.sent[1][0] - run.sent[0][0] < 5 * MS


@pytest.mark.parametrize(("hurries", "low", "high"), [(True, 0, 5), (False, 80, 125)])
def test_a_newer_leader_in_the_metadata_spares_the_back_off_only_since_3_7(hurries, low, high):
    def answer(run, p, draft):
        if run.leaders[p] != 3:
            run.leaders[p], run.epochs[p] = 3, run.epochs[p] + 1
            return E.NOT_LEADER_OR_FOLLOWER, -1, None
        return None

    config = {"skips_backoff_on_leader_hint": hurries}
    run = world([200_000, 900_000], partitions=1, latency=(100, 100), config=config)
    run.answer = answer
    run.run(10 * SECOND)
    assert run.sent[1][1].to == 3
    assert low * MS <= run.sent[1][0] - run.sent[0][0] < high * MS
    check_exactly_once(run, 2)


def test_a_hint_of_an_older_epoch_does_not():
    def answer(run, p, draft):
        if run.now < 250_000:
            return E.NOT_LEADER_OR_FOLLOWER, -1, LeaderHint(3, -1)
        return None

    run = world([200_000], partitions=1, latency=(100, 100))
    run.answer = answer
    run.run(10 * SECOND)
    assert run.sent[1][1].to == 1
    assert run.sent[1][0] - run.sent[0][0] >= 80 * MS
