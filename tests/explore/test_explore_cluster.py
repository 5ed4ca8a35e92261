"""Hypothesis over brokers, quorum and controller together: nothing breaks, and defects shrink."""

import sys
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RULE_MARKER, run_state_machine_as_test

from sim.protocol.controller import brokers as controller_brokers
from sim.protocol.controller.controller import Controller
from sim.protocol.controller.partitions import leader_and_isr_updates
from sim.protocol.effects import Reply
from sim.protocol.kraft.raft import Quorum
from tests.explore.cluster_machine import ClusterMachine, cluster_of
from tests.explore.cluster_nodes import Plan
from tests.explore.cluster_promises import Broken

KAFKA = Plan()
ALL = tuple(name for name, member in vars(ClusterMachine).items() if hasattr(member, RULE_MARKER))


HEALED_WHILE_THE_ISR_SHRINKS = (
    ("heartbeat", {"broker": 1}),
    ("connection_breaks", {"turn": 15}),
    ("one_message", {"turn": 14}),
    ("produce", {"broker": 1, "count": 5}),
    ("slow_metadata", {"broker": 2}),
    ("isolate", {"node": 1}),
    ("elect_preferred", {}),
    ("isolate", {"node": 3002}),
    ("one_message", {"turn": 0}),
    ("produce", {"broker": 1, "count": 15}),
    ("join", {}),
    ("silence", {"count": 19, "group": "all", "span": 20000}),
    ("messages", {"count": 2, "group": "controllers"}),
    ("produce", {"broker": 3, "count": 18}),
    ("messages", {"count": 1, "group": "controllers"}),
    ("one_message", {"turn": 5}),
    ("produce", {"broker": 3, "count": 18}),
    ("slow_metadata", {"broker": 1}),
    ("isolate", {"node": 3}),
    ("slow_metadata", {"broker": 1}),
    ("produce", {"broker": 1, "count": 5}),
    ("one_message", {"turn": 10}),
    ("silence", {"count": 11, "group": "brokers", "span": 20000}),
    ("silence", {"count": 5, "group": "all", "span": 2000000}),
    ("heartbeat", {"broker": 3}),
    ("heartbeat", {"broker": 3}),
    ("slow_metadata", {"broker": 1}),
    ("silence", {"count": 7, "group": "controllers", "span": 500000}),
    ("heartbeat", {"broker": 2}),
    ("one_message", {"turn": 14}),
    ("silence", {"count": 27, "group": "controllers", "span": 5000000}),
    ("isolate", {"node": 3000}),
    ("join", {}),
)
"""A leader asks for a smaller ISR across a cut, hears that it is agreed after the heal, when the
follower has caught up already, and is shown no metadata of that partition epoch any more."""


def machine(plan=KAFKA, *, heals=True, only=ALL):
    """A machine with these rules of all; a defect is found sooner without those it never needs."""
    cluster_of(plan)
    rules = dict.fromkeys(name for name in ALL if name not in only)
    return type("Cluster", (ClusterMachine,), {"runs": [], "plan": plan, "heals": heals, **rules})


def run(kind, examples, steps, phases=(Phase.generate,)):
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=phases,
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(kind, settings=how)
    seen = Counter()
    for one in kind.runs:
        seen.update(dict.fromkeys(one.cluster.promises.saw, 1))
    return seen


def shrunk(plan=KAFKA, examples=2_000, steps=8, only=ALL):
    """The shortest trace to which a broken promise shrinks, and its name."""
    kind = machine(plan, heals=False, only=only)
    with pytest.raises(Broken) as found:
        run(kind, examples, steps, (Phase.generate, Phase.shrink))
    last = kind.runs[-1]
    sys.stdout.write(f"{found.value}\n" + "".join(f"  {words}\n" for words in last.told))
    return last.broken, last.told


def test_30_runs_of_25_steps_break_no_promise_and_are_in_service_after_the_heal():
    seen = run(machine(), 30, 25)
    assert min(seen[kind] for kind in ("elected", "acknowledged", "isr changed")) >= 3, seen


def test_a_follower_that_caught_up_before_its_removal_was_agreed_on_joins_the_isr_again():
    cluster = machine()()
    for step, arguments in HEALED_WHILE_THE_ISR_SHRINKS:
        getattr(cluster, step)(**arguments)
    cluster.teardown()
    # 0: as created; then without broker 3, and with it.
    assert cluster.cluster.promises.partition.partition_epoch == 2


@pytest.mark.slow
def test_500_runs_of_40_steps_break_no_promise_and_see_every_kind_of_trouble():
    seen = run(machine(), 500, 40)
    kinds = ("elected", "acknowledged", "refused", "isr changed", "elr", "lost records", "unclean")
    assert min(seen[kind] for kind in kinds) >= 10, seen


@pytest.mark.slow
def test_a_cut_at_the_high_watermark_shrinks_to_a_few_steps():
    broken, told = shrunk(Plan(truncation="hw", min_in_sync=1), only=("produce", "crash", "calm"))
    assert broken in {"candidate completeness", "leader completeness", "honest views"}
    assert len(told) <= 3


def test_a_controller_that_answers_before_its_quorum_has_committed_shrinks_to_a_few(monkeypatch):
    def early(controller, token, request, response):
        del request
        controller._out.append(Reply(token, response))

    cluster_of(KAFKA)
    monkeypatch.setattr(Controller, "_release", early)
    broken, told = shrunk(KAFKA, only=("crash", "calm"))
    assert broken == "answers tell what is committed"
    assert len(told) <= 2


@pytest.mark.slow
def test_a_voter_that_forgets_its_vote_at_a_restart_shrinks_to_a_few_steps():
    broken, told = shrunk(Plan(remembers_vote=False), only=("silence", "controller_restarts"))
    assert broken == "one vote per epoch"
    assert len(told) <= 6


def test_a_commit_without_a_majority_shrinks_to_a_step_or_two(monkeypatch):
    cluster_of(KAFKA)
    monkeypatch.setattr(Quorum, "_committable", lambda quorum: quorum.log.log_end_offset)
    broken, told = shrunk(only=("calm", "silence", "messages"))
    assert broken == "metadata kept by a majority"
    assert len(told) <= 2


@pytest.mark.slow
def test_a_lossy_restart_that_passes_for_a_clean_one_shrinks_to_a_few_steps(monkeypatch):
    def credulous(image, partitions, *, remove=-1, add=-1, unclean=-1):
        del unclean
        return leader_and_isr_updates(image, partitions, remove=remove, add=add)

    cluster_of(KAFKA)
    monkeypatch.setattr(controller_brokers, "leader_and_isr_updates", credulous)
    broken, told = shrunk(
        examples=1_000, only=("produce", "power_loss", "crash", "controller_resigns")
    )
    assert broken in {"candidate completeness", "unclean exclusion"}
    assert len(told) <= 6
