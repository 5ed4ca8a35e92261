"""Fork: the curves of three known stories have their step where Kafka's rules put it.

Each story is run, explained, and continued in many ways from instants on both sides of the one that
``logquake explain`` names. Before the step no future fails and the interval is below one half;
behind it each fails and the interval is above one half.
"""

import mmap
import os
from dataclasses import dataclass
from unittest.mock import patch

import pytest

from sim.hunting import sought
from sim.hunting.forking.curve import curve, sentence
from sim.hunting.forking.future import CAN_FORK, Change, Task, branches
from sim.scenario.loader import load_data
from sim.scenario.run.runner import run
from sim.suite.explain import chain
from sim.suite.explain.causes import mechanisms
from sim.suite.explain.run_facts import RunFacts, Story
from sim.suite.pool import pool
from tests.hunting.losing import CRASH, LATE, SERVERS, SHOP, TOPIC, losing

LOSS = sought.parse("lost_acked")
FUTURES = 6
"""Of an instant: 0 of 6 is below 46 %, and 6 of 6 above 54 %, with 95 % confidence."""

SESSION_US = SERVERS["config"]["broker.session.timeout.ms"] * 1000
HEARTBEAT_US = SERVERS["config"]["broker.heartbeat.interval.ms"] * 1000
APPLIED_US = 200_000
"""Bound of the time until a changed setting is in force and the next record has come: connections
of an administrator, a batch of the quorum (``controller.quorum.append.linger.ms``: 25 ms), a fetch
that is answered as soon as there is a record, and 20 ms to the next record of the producer."""

needs_forks = pytest.mark.skipif(not CAN_FORK, reason="processes are forked on Linux alone")


@dataclass(frozen=True)
class Known:
    """A story with its rule."""

    data: dict
    change: Change
    """What would have saved the data."""
    mechanism: str
    """The explanation's."""
    says: str
    """In the line of the explanation that has the instant."""
    saved: tuple[int, ...]
    """Instants at which the rule says that it can be saved, in microseconds."""
    lost: tuple[int, ...]
    """Instants at which it says that it cannot."""


def altered(**config):
    """A change of the topic's settings."""
    return Change(configs=({"do": "alter-config", "topic": "orders", "config": config},))


CRASH_US = 2_200_000
ACKS_1 = Known(
    losing(
        [LATE, CRASH | {"for": "2s"}],
        producers=[SHOP | {"rate": "100/s", "stop": "4s"}],
        run={"for": "5s", "seed": 1, "drain.timeout": "5s"},
    ),
    Change(without=(1,)),
    "acks-1",
    "broker-1 crashed",
    (CRASH_US - 50_000, CRASH_US - 1000),
    (CRASH_US, CRASH_US + 700_000),
)
"""The leader answers after its own append; its followers fetch 50 ms late, so that at any instant a
part of what was acknowledged is in its log alone. When it dies that part has no leader any more:
started at once, within its session, it registers with a new epoch, which takes it out of the ISR
(``ReplicationControlManager.handleBrokerShutdown``, KIP-966), and follows its leader. The step
is at the crash, in the microsecond."""

DEATH_US = 4_000_000
UNCLEAN = Known(
    losing(
        [
            {"at": "1s", "do": "controlled-shutdown", "target": "broker-3", "for": "4s"},
            {"at": "2s", "do": "controlled-shutdown", "target": "broker-2", "for": "8s"},
            {"at": "4s", "do": "crash", "target": "leader of orders-0", "for": "6s"},
        ],
        topics={
            "orders": {
                **TOPIC,
                "replicas": [["broker-1", "broker-2", "broker-3"]],
                "config": {"min.insync.replicas": 1, "unclean.leader.election.enable": True},
            }
        },
        producers=[
            SHOP
            | {"rate": "50/s", "stop": "4s", "config": {"acks": "all", "metadata.max.age.ms": 500}}
        ],
        run={"for": "11s", "seed": 1},
    ),
    altered(**{"unclean.leader.election.enable": False}),
    "unclean",
    "uncleanly",
    (DEATH_US, DEATH_US + SESSION_US - HEARTBEAT_US - APPLIED_US),
    (DEATH_US + SESSION_US + APPLIED_US, DEATH_US + SESSION_US + 1_000_000),
)
"""The leader's death loses nothing: its log is whole, and the stale follower that is back a second
later may not lead while the dead leader is in the ISR and unfenced. The controller fences the
leader ``broker.session.timeout.ms`` behind its last heartbeat (``BrokerHeartbeatManager``), which
was sent at most ``broker.heartbeat.interval.ms`` before its death, and only then elects, uncleanly
(``PartitionChangeBuilder``). The step is between 2.5 s and 3 s after the death; a partition that by
then is forbidden to be led uncleanly waits for its old leader."""

DARK_US = 3_000_000
_ZONE = losing(
    [{"at": "3s", "do": "power-loss", "target": "rack a", "for": "2s"}],
    cluster={"racks": {"a": 2, "b": 1}, "controllers": 1, "config": SERVERS["config"]},
    topics={
        "orders": {
            "partitions": 1,
            "replication.factor": 2,
            "replicas": [["broker-1", "broker-2"]],
            "config": {"min.insync.replicas": 2},
        }
    },
    producers=[SHOP | {"rate": "50/s", "stop": "3s", "config": {"acks": "all"}}],
    run={"for": "6s", "seed": 1},
)
ZONE = Known(
    _ZONE,
    Change(without=(0,)),
    "power",
    "loses power",
    (DARK_US - 1_000_000, DARK_US - 1000),
    (DARK_US, DARK_US + 1_000_000),
)
"""An administrator has placed both replicas into one zone. ``acks=all`` means that each has it in
its page cache: nothing is flushed before the acknowledgement (``log.flush.interval.messages`` has
no limit), and three seconds are less than the kernel's 30 s of writing back. Power that comes back
at once brings no page back. The step is at the loss of power, in the microsecond."""

ZONE_FLUSHED = Known(
    _ZONE,
    altered(**{"flush.messages": 1}),
    "power",
    "loses power",
    (DARK_US - 1_000_000, DARK_US - APPLIED_US),
    (DARK_US, DARK_US + 1_000_000),
)
"""The same zone, whose power fails anyway. ``flush.messages=1`` flushes all of a log with the next
append (``UnifiedLog.append``), what was written before included, and an acknowledgement waits for
both replicas: it saves everything up to the instant at which no append comes any more."""

STORIES = {
    "acks-1": ACKS_1,
    "unclean": UNCLEAN,
    "zone": ZONE,
    "zone-flushed": ZONE_FLUSHED,
}


def explained(known, directory):
    """The instant of the step in the explanation of a lost record."""
    run(load_data(known.data), 1, directory, level="facts")
    facts = RunFacts(directory)
    story = Story(facts, facts.pick())
    assert known.mechanism in mechanisms(story)
    return next(at for at, words in chain.lines(story) if known.says in words)


def futures_of(known, instants):
    task = Task(known.data, 1, instants, tuple(range(1, FUTURES + 1)), known.change, LOSS)
    with pool(1, apart=True) as some:
        ((_, found),) = some.results(branches, [task], lambda: False)
    assert not found.error
    return found.futures


@pytest.mark.slow
@needs_forks
@pytest.mark.parametrize("known", STORIES.values(), ids=STORIES)
def test_the_step_is_where_the_rule_and_the_explanation_say(known, tmp_path):
    step = explained(known, tmp_path / "run")
    assert known.saved[-1] < step <= known.lost[0]
    near = ()
    if known.lost[0] - known.saved[-1] > 2 * APPLIED_US:
        # The rule leaves a heartbeat's interval open; the explanation closes it.
        near = (step - APPLIED_US, step)
    instants = tuple(sorted({*known.saved, *known.lost, *near}))
    points = curve(futures_of(known, instants), "lost_acked")
    assert [point.at_us for point in points] == list(instants)
    for point in points:
        is_late = point.at_us >= step
        assert point.hits == (FUTURES if is_late else 0), point
        assert (point.low > 0.5) if is_late else (point.high < 0.5), point
    first = next(at for at in instants if at >= step)
    said = f"lost_acked: could no longer be saved from {first / 1e6:.6g} s on (100% of the futures"
    assert sentence(points, "lost_acked").startswith(said)


def counted(task, should_stop):
    """Futures of a task, and how many processes were forked for them, by children too."""
    forks = mmap.mmap(-1, 1)
    real = os.fork

    def fork():
        forks[0] += 1
        return real()

    with patch.object(os, "fork", fork):
        return branches(task, should_stop), forks[0]


@needs_forks
def test_each_future_is_forked_once_however_many_instants_are_behind_its_own():
    calm = losing([], producers=[SHOP | {"rate": "1/s", "stop": "1s"}], run={"for": "1s"})
    task = Task(calm, 1, (100_000, 200_000, 300_000), (1, 2), Change(), LOSS)
    with pool(1, apart=True) as some:
        ((_, (found, forks)),) = some.results(counted, [task], lambda: False)
    assert len(found.futures) == forks == 6
