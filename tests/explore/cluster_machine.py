"""A Hypothesis state machine over a whole cluster: what may happen, step by step, told in words."""

import pickle
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sim.units import MS, SECOND
from tests.explore.cluster_nodes import BROKERS, VOTERS, Plan
from tests.explore.cluster_promises import Broken
from tests.explore.cluster_world import ClusterWorld

brokers = st.sampled_from(BROKERS)
LEADER, ACTIVE = 0, 3000
"""Whoever leads the partition, whoever is the active controller."""
nodes = st.sampled_from((LEADER, ACTIVE, *BROKERS, *VOTERS))
GROUPS = {"all": (*BROKERS, *VOTERS), "controllers": VOTERS, "brokers": BROKERS}
groups = st.sampled_from(tuple(GROUPS))
counts = st.integers(0, 30)
spans = st.sampled_from((0, 20 * MS, 500 * MS, 2 * SECOND, 5 * SECOND))
HEAL_US = 15 * SECOND


@lru_cache(maxsize=8)
def cluster_of(plan: Plan) -> bytes:
    """A cluster in service: three brokers in sync, an active controller."""
    return pickle.dumps(ClusterWorld(plan).in_service(), 5)


class ClusterMachine(RuleBasedStateMachine):
    """Any order of messages, faults and time; nothing is written twice or made up."""

    plan = Plan()
    heals = True
    """Whether a run ends with a heal, after which the cluster must be in service."""
    runs: ClassVar[list] = []
    """Of every run so far: what it saw, and in what words it was told, the last one last."""

    def __init__(self) -> None:
        super().__init__()
        plan = self.plan
        self.cluster: ClusterWorld = pickle.loads(cluster_of(replace(plan, remembers_vote=True)))
        self.cluster.plan = plan
        self.told: list[str] = []
        self.runs.append(self)
        self.weak = 0
        self.broken = ""

    # -- the network ------------------------------------------------------------------------------

    @rule(count=counts, group=groups)
    def messages(self, count, group):
        self._append_control(f"the {count} oldest messages among {group} arrive")
        self._do(self.cluster.deliver, count, GROUPS[group])

    @rule(turn=st.integers(0, 15))
    def one_message(self, turn):
        movable = self.cluster.movable(forced=True)
        if movable:
            _, what = movable[turn % len(movable)]
            self._append_control(f"{what[0]} {what[1]} overtakes others")
            self._do(self.cluster.move, what)

    @rule(turn=st.integers(0, 15))
    def connection_breaks(self, turn):
        wires = self.cluster.wires
        busy = [key for key, wire in wires.items() if wire.deadline() is not None]
        if busy:
            key = busy[turn % len(busy)]
            self._append_control(f"the connection {key} breaks")
            self._do(self.cluster.break_off, key)

    @rule(node=nodes)
    def isolate(self, node):
        node = self._named(node)
        if node and node not in self.cluster.isolated:
            self._append_control(f"{node} is cut off")
            self.cluster.isolated += (node,)

    @precondition(lambda self: self.cluster.isolated)
    @rule()
    def join(self):
        self._append_control("all reach each other again")
        self.cluster.isolated = ()

    # -- time -------------------------------------------------------------------------------------

    @rule(span=spans)
    def calm(self, span):
        self._append_control(f"{span / SECOND} s go by undisturbed")
        self._do(self.cluster.calm, span)

    @rule(span=spans, count=counts, group=groups)
    def silence(self, span, count, group):
        more = f", then {count} arrive among {group}" if count else ""
        self._append_control(f"{span / SECOND} s go by without a message{more}")
        self._do(self.cluster.silence, span)
        self._do(self.cluster.deliver, count, GROUPS[group])

    @rule(broker=brokers)
    def heartbeat(self, broker):
        if self.cluster.nodes[broker].is_up:
            self._append_control(f"broker {broker} sends a heartbeat")
            self._do(self.cluster.heartbeat, broker)

    # -- work -------------------------------------------------------------------------------------

    @rule(broker=st.sampled_from((LEADER, *BROKERS)), count=counts)
    def produce(self, broker, count):
        broker = self._named(broker)
        if broker and self.cluster.nodes[broker].leads:
            self._append_control(f"a record is written to broker {broker}, {count} messages arrive")
            self._do(self.cluster.produce, broker)
            self._do(self.cluster.deliver, count, GROUPS["all"])

    @rule()
    def elect_preferred(self):
        if self.cluster.active() is not None:
            self._append_control("the preferred leader shall lead")
            self._do(self.cluster.elect_preferred)

    @rule()
    def controller_resigns(self):
        if self.cluster.active() is not None:
            self._append_control("the active controller resigns")
            self._do(self.cluster.resign)

    @rule(broker=brokers)
    def slow_metadata(self, broker):
        node = self.cluster.nodes[broker]
        if node.is_up:
            self._append_control(
                f"broker {broker} applies metadata {'late' if not node.is_slow else 'soon'}"
            )
            node.is_slow = not node.is_slow

    # -- processes --------------------------------------------------------------------------------

    @rule(node=nodes, back=st.booleans(), span=spans)
    def crash(self, node, back, span):
        node = self._named(node)
        if node and self.cluster.nodes[node].is_up:
            again = " and starts again" if back else ""
            self._append_control(f"{node} is killed{again}, {span / SECOND} s go by")
            self._stop(node, None, back=back, span=span)

    @rule(voter=st.sampled_from(VOTERS), span=spans)
    def controller_restarts(self, voter, span):
        if self.cluster.nodes[voter].is_up:
            self._append_control(f"{voter} is killed and starts again, {span / SECOND} s go by")
            self._stop(voter, None, back=True, span=span)

    @rule(node=nodes, back=st.booleans(), kept=st.sampled_from((0.0, 0.5)), span=spans)
    def power_loss(self, node, back, kept, span):
        node = self._named(node)
        if not node or not self.cluster.nodes[node].is_up or not self._may_lose(node):
            return
        again = " and starts again" if back else ""
        self._append_control(
            f"{node} loses power{again} with {kept:.0%} of its tail, {span / SECOND} s go by"
        )
        self._stop(node, kept, back=back, span=span)

    @rule(node=nodes)
    def start(self, node):
        if node in self.cluster.nodes and not self.cluster.nodes[node].is_up:
            self._append_control(f"{node} starts")
            self._do(self.cluster.start, node)

    def _stop(self, node: int, kept: float | None, *, back: bool, span: int) -> None:
        self._do(self.cluster.stop, node, kept)
        if back:
            self._do(self.cluster.start, node)
        self._do(self.cluster.calm, span)

    def _named(self, node: int) -> int:
        """The number of a node that is named by what it does; 0 if there is none."""
        if node == LEADER:
            return max(self.cluster.promises.partition.leader, 0)
        if node == ACTIVE:
            active = self.cluster.active()
            return 0 if active is None else active.id
        return node

    def _may_lose(self, node: int) -> bool:
        """One broker at a time, until it is in sync again: what KIP-966 promises for min ISR 2."""
        if node in VOTERS:
            return True
        promises = self.cluster.promises
        is_weak = self.weak and (
            self.weak in promises.lossy or self.weak not in promises.partition.in_sync
        )
        if is_weak or self.plan.min_in_sync < 2:
            return False
        self.weak = node
        return True

    # -- what must hold ---------------------------------------------------------------------------

    @invariant()
    def metadata_logs(self):
        self._do(self.cluster.promises.look_at_logs)

    def teardown(self) -> None:
        if self.broken or not self.heals:
            return
        cluster, promises = self.cluster, self.cluster.promises
        cluster.isolated = ()
        for number, node in cluster.nodes.items():
            node.is_slow = False
            if not node.is_up:
                cluster.start(number)
        cluster.calm(HEAL_US)
        assert cluster.active() is not None, "no active controller after the heal"
        assert all(not promises.image.brokers[b].fenced for b in BROKERS), promises.image.brokers
        if promises.unclean:
            return
        assert promises.partition.in_sync == BROKERS, promises.partition
        before = len(promises.records)
        cluster.produce(promises.partition.leader)
        cluster.calm(2 * SECOND)
        assert len(promises.records) > before, "nothing is committed after the heal"
        promises.look_at_logs()

    def _append_control(self, words: str) -> None:
        self.told.append(words)

    def _do(self, act, *args) -> None:
        try:
            act(*args)
        except Broken as broken:
            self.broken = broken.name
            raise
