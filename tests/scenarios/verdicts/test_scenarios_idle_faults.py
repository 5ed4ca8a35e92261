"""A fault that meets nothing is told, whatever its kind, and the run is no pass.

One cluster in which everything is struck that cannot be struck: a broker without power, clients
that have not begun, an administrator who asks for what is so already, or what cannot be.
"""

import pytest

from sim.errors import ScenarioError
from sim.faults.objects import OBJECT_FAULTS
from sim.faults.registry import KINDS
from sim.scenario.loader import load_text
from tests.scenarios.each_fault import DARK, IDLE
from tests.scenarios.run_kit import go, text_of

SETUP = [
    {"at": "500ms", "do": "power-loss", "target": DARK, "for": "6500ms"},
    {"at": "1s", "do": "wiped-disk", "target": DARK},
    {"at": "1s", "do": "add-broker", "target": "broker-4"},
    {"at": "1100ms", "do": "delete-topic", "topic": "gone"},
    {"at": "1200ms", "do": "create-partitions", "topic": "wide", "count": 2},
    {"at": "1300ms", "do": "alter-client-quotas", "client.id": "late",
     "producer_byte_rate": "1MB/s"},
    {"at": "1400ms", "do": "alter-replica-log-dirs", "partition": "lonely-0",
     "broker": "broker-1", "to": 1},
    {"at": "1500ms", "do": "unregister", "target": DARK},
    {"at": "8s", "do": "crash", "target": ["controller-1", "controller-2", "controller-3"]},
    {"at": "8100ms", "do": "delete-topic", "topic": "again"},
]  # fmt: skip
"""What prepares it, and takes effect itself (but for the last, whose answer comes too late)."""

ELSEWHERE = (
    *("decommission", "add-acl", "remove-acl", "upgrade-features"),
    *("create-token", "renew-token", "expire-token"),
)
"""Kinds of clusters that are not this one: of Raft groups, with an authorizer, between releases,
with delegation tokens."""

AT = {"create-topic": "9200ms"} | dict.fromkeys(("slow-cpu", "slow-disk"), "3s")
"""When, if not at 2 s: with the controllers gone nobody makes a topic."""

CLIENTS = [
    {"name": "late", "topic": "wide", "rate": "10/s", "start": "9900ms", "config": {"acks": "all"}},
    {"name": "ended", "topic": "wide", "rate": "10/s", "stop": "1s", "transaction": {"records": 5},
     "config": {"transactional.id": "ended"}},
]  # fmt: skip
TOPICS = {
    "lonely": {
        "replication.factor": 2, "replicas": [["broker-1", DARK]],
        "config": {"min.insync.replicas": 1},
    },
    **{
        name: {"replication.factor": 2, "replicas": [["broker-1", "broker-2"]],
               "config": {"min.insync.replicas": 1}}
        for name in ("wide", "gone", "again")
    },
}  # fmt: skip
RAFT = {"partitions": 1, "config": {}}
PARTS = {
    "topics": TOPICS,
    "producers": CLIENTS,
    "consumers": [
        {"name": "sleeper", "group": "sleepers", "topics": ["wide"], "start": "9900ms"},
    ],
    "cluster": {"brokers": 4, "initial.brokers": 3, "disk": {"directories": 2}},
    "lasts": "10s",
    "then": "stop",
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    lines = [{"at": AT.get(kind, "2s"), "do": kind, **keys} for kind, keys in IDLE.items()]
    return go(tmp_path_factory.mktemp("idle"), faults=[*SETUP, *lines], **PARTS)


def test_every_kind_is_tried():
    objects = {kind.kind for kind in OBJECT_FAULTS}
    assert {*IDLE, *ELSEWHERE} | objects == {*KINDS}


@pytest.mark.parametrize("kind", IDLE)
def test_a_fault_that_meets_nothing_is_told_and_is_no_pass(ran, kind):
    report = ran.faults[len(SETUP) + list(IDLE).index(kind)]
    assert report["kind"] == ("crash" if kind == "one-of" else kind)
    assert not report["took_effect"], report["effect"]
    assert report["effect"]
    assert ran.verdict["held"] is False
    assert all(line["held"] for line in ran.verdict["expectations"])


def test_what_prepared_it_took_effect(ran):
    """The twin: kinds that are idle here can be seen at work."""
    told = {
        n: fault["effect"]
        for n, fault in enumerate(ran.faults[: len(SETUP) - 1])
        if not fault["took_effect"]
    }
    assert told == {}


def test_a_broker_whose_replicas_have_no_other_place_is_not_decommissioned(tmp_path):
    """Three replicas on three brokers."""
    asked = {"at": "2s", "do": "decommission", "target": "broker-3"}
    ran = go(tmp_path, faults=[asked], cluster={"replication": "raft"}, topic=RAFT, lasts="4s")
    (report,) = ran.faults
    assert not report["took_effect"]
    assert report["effect"]
    assert ran.verdict["held"] is False


@pytest.mark.parametrize("kind", ["clock-jump", "delay"])
def test_no_time_at_all_is_refused(kind):
    where = {"target": DARK} if kind == "clock-jump" else {"between": DARK}
    with pytest.raises(ScenarioError, match="by: 0us changes nothing"):
        load_text(text_of(faults=[{"at": "1s", "do": kind, "by": "0s", **where}]))
