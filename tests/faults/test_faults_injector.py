"""Faults act through the surface, heal when they should, and tell whether they took effect."""

import pytest

from sim.faults.fault import Fault
from sim.faults.registry import KINDS
from sim.faults.target import Target
from sim.trace.rows.run import Faults
from tests.faults.injector_kit import TP, Bench, S, fault, node


def test_crash_kills_and_starts_again_when_it_heals():
    bench = Bench(fault("crash", node("broker-1"), lasts=3)).run(2 * S)
    assert not bench.world.nodes["broker-1"].running
    bench.run(5 * S)
    assert bench.world.nodes["broker-1"].calls == ["crash", "start"]
    assert bench.phases() == [(1, 0, "began"), (4, 0, "healed")]
    (report,) = bench.injector.reports()
    assert (report.took_effect, report.effect) == (True, "killed broker-1")


def test_crash_of_a_dead_process_takes_no_effect_and_says_so():
    bench = Bench(fault("crash", node("broker-1"), lasts=3))
    bench.world.nodes["broker-1"].running = False
    bench.run(5 * S)
    (report,) = bench.injector.reports()
    assert (report.took_effect, report.effect) == (False, "was not running")


def test_crash_does_not_start_a_process_on_a_dark_host():
    bench = Bench(
        fault("crash", node("broker-1"), at=1, lasts=3),
        fault("power-loss", node("broker-1"), at=2, lasts=5, index=1),
    ).run(5 * S)
    assert not bench.world.nodes["broker-1"].running
    bench.run(8 * S)
    assert bench.world.nodes["broker-1"].running


def test_restart_brings_a_new_incarnation_whether_or_not_it_ran():
    bench = Bench(fault("restart", node("broker-1", "broker-2")))
    bench.world.nodes["broker-2"].running = False
    bench.run(2 * S)
    assert bench.world.nodes["broker-1"].calls == ["crash", "start"]
    assert bench.world.nodes["broker-2"].calls == ["start"]
    assert bench.injector.reports()[0].took_effect
    assert bench.phases() == [(1, 0, "began")]


def test_restart_without_power_takes_no_effect():
    bench = Bench(fault("restart", node("broker-1")))
    host = bench.world.hosts["broker-1"]
    host.power_off()
    bench.run(2 * S)
    assert not bench.injector.reports()[0].took_effect
    host.power_on()
    assert not bench.injector.reports()[0].took_effect, "that start was not its doing"


def test_pause_resumes_and_leaves_alone_what_died_meanwhile():
    bench = Bench(
        fault("pause", node("broker-1", "broker-2"), lasts=3),
        fault("crash", node("broker-2"), at=2, index=1),
    ).run(5 * S)
    assert bench.world.nodes["broker-1"].calls == ["pause", "resume"]
    assert bench.world.nodes["broker-2"].calls == ["pause", "crash"]


def test_controlled_shutdown_waits_for_the_stop_before_it_starts_again():
    bench = Bench(fault("controlled-shutdown", node("broker-1"), lasts=1))
    broker = bench.world.nodes["broker-1"]
    broker.stops_after_asking = False
    bench.run(4 * S)
    assert broker.calls == ["shut_down"]
    assert not bench.injector.is_settled
    broker.running = False
    bench.run(5 * S)
    assert broker.calls == ["shut_down", "start"]
    assert bench.injector.is_settled


def test_a_power_loss_says_whether_anything_unflushed_is_spared():
    faults = [fault("power-loss", node("broker-1"), unflushed=s) for s in ("by chance", "lost")]
    told = [Bench(one).run(2 * S).injector.reports()[0].effect for one in faults]
    assert told == [f"broker-1 went dark; {size} KiB of page cache lost" for size in (4, 8)]


def test_power_loss_of_a_rack_takes_every_host_in_it_and_tells_what_was_lost():
    rack = Target("rack", "rack a", ("broker-1", "broker-2"))
    bench = Bench(fault("power-loss", (rack,), lasts=2)).run(2 * S)
    dark = [name for name, host in bench.world.hosts.items() if not host.powered]
    assert dark == ["broker-1", "broker-2"]
    bench.run(4 * S)
    assert all(host.powered for host in bench.world.hosts.values())
    assert "8 KiB of page cache lost" in bench.injector.reports()[0].effect


def test_partition_cuts_both_ways_and_one_way_only_one():
    sides = {"targets": node("broker-1"), "peers": node("broker-3")}
    both = Bench(fault("partition", **sides)).run(2 * S)
    ways = [(sorted(h.rule.senders), sorted(h.rule.receivers)) for h in both.world.network.rules]
    assert ways == [(["broker-1"], ["broker-3"]), (["broker-3"], ["broker-1"])]
    one = Bench(fault("partition", one_way=True, **sides)).run(2 * S)
    assert len(one.world.network.rules) == 1
    assert one.world.network.rules[0].rule.cut


def test_partition_without_peers_cuts_from_everyone_else():
    bench = Bench(fault("partition", node("broker-1"), lasts=2)).run(2 * S)
    receivers = bench.world.network.rules[0].rule.receivers
    assert sorted(receivers) == ["broker-2", "broker-3", "controller-1", "shop"]
    bench.run(4 * S)
    assert bench.world.network.rules == []


def test_link_fault_takes_effect_only_if_a_message_met_it():
    quiet = Bench(fault("delay", node("broker-1"), lasts=2, by_us=50)).run(4 * S)
    assert not quiet.injector.reports()[0].took_effect
    busy = Bench(fault("loss", node("broker-1"), lasts=2, ratio=0.5)).run(2 * S)
    busy.world.network.seen[1].affected = 3
    busy.run(4 * S)
    (report,) = busy.injector.reports()
    assert (report.took_effect, report.effect) == (True, "3 messages sent again")
    assert [row[Faults.TOOK_EFFECT] for row in busy.rows] == [False, True]


def test_healing_one_disk_fault_leaves_the_other_on_the_same_disk():
    bench = Bench(
        fault("slow-disk", node("broker-1"), lasts=2, factor=50),
        fault("full-disk", node("broker-1"), at=2, lasts=5, index=1),
    )
    disk = bench.world.hosts["broker-1"].disks[0]
    bench.run(int(2.5 * S))
    assert disk.state == ["slow 50 until 3000000", "fill"]
    bench.run(4 * S)
    assert disk.state == ["fill"]
    bench.run(8 * S)
    assert disk.state == []


def test_disk_fault_takes_effect_only_if_an_operation_met_it():
    bench = Bench(
        fault("slow-disk", node("broker-1"), lasts=2, factor=50),
        fault("stalled-disk", node("broker-2"), lasts=2, index=1),
    )
    bench.run(2 * S)
    bench.world.hosts["broker-1"].disks[0].troubles["slow"] = 7
    bench.run(4 * S)
    assert [report.took_effect for report in bench.injector.reports()] == [True, False]


def test_a_disk_fault_is_not_at_work_because_another_one_is():
    bench = Bench(
        fault("slow-disk", node("broker-1"), lasts=2, factor=50),
        fault("lying-flush", node("broker-1"), lasts=2, index=1),
    ).run(2 * S)
    bench.world.hosts["broker-1"].disks[0].troubles["slow"] = 7
    bench.run(4 * S)
    assert [report.took_effect for report in bench.injector.reports()] == [True, False]


@pytest.mark.parametrize("kind", ["slow-disk", "slow-cpu"])
def test_what_comes_after_a_fault_is_healed_is_not_its_doing(kind):
    """The same disk or CPU is slow once more, and only then has something to do."""
    bench = Bench(
        fault(kind, node("broker-1"), lasts=2, factor=50),
        fault(kind, node("broker-1"), at=5, lasts=2, factor=50, index=1),
    ).run(6 * S)
    host = bench.world.hosts["broker-1"]
    host.work_slowed = host.disks[0].troubles["slow"] = 7
    bench.run(8 * S)
    assert [report.took_effect for report in bench.injector.reports()] == [False, True]


@pytest.mark.parametrize(("runs_again", "effect"), [(2, True), (9, False)])
def test_a_clock_that_nobody_can_read_has_not_jumped(runs_again, effect):
    bench = Bench(fault("clock-jump", node("broker-1"), lasts=3, by_us=S))
    bench.world.nodes["broker-1"].running = False
    bench.run(runs_again * S)
    bench.world.nodes["broker-1"].running = True
    bench.run(10 * S)
    (report,) = bench.injector.reports()
    assert report.took_effect is effect
    assert bench.world.hosts["broker-1"].clock_offset_us == 0


@pytest.mark.parametrize("kind", ["lost-replica", "corrupt-replica"])
def test_replica_fault_takes_effect_only_where_there_is_a_replica(kind):
    bench = Bench(
        fault(kind, node("broker-1"), partition=TP),
        fault(kind, node("broker-2"), index=1, partition=TP),
    )
    bench.world.nodes["broker-2"].replicas = []
    bench.run(2 * S)
    assert [report.took_effect for report in bench.injector.reports()] == [True, False]


@pytest.mark.parametrize(
    ("target", "resolved"),
    [
        (Target("leader", "leader of orders-0", partition=TP), "broker-2"),
        (Target("follower", "follower of orders-0", partition=TP), "broker-1"),
        (Target("controller leader", "controller leader"), "controller-1"),
        (Target("all brokers", "all brokers", ("broker-1", "broker-2", "broker-3")),
         "broker-1, broker-2, broker-3"),
    ],
)  # fmt: skip
def test_role_is_resolved_when_the_fault_starts_and_written_down(target, resolved):
    bench = Bench(fault("crash", (target,))).run(2 * S)
    assert bench.rows[0][4:6] == (target.text, resolved)
    assert all(not bench.world.nodes[name].running for name in resolved.split(", "))


def test_role_follows_the_cluster_until_the_fault_starts():
    leader = Target("leader", "leader of orders-0", partition=TP)
    bench = Bench(fault("crash", (leader,), at=5))
    bench.run(2 * S)
    bench.world.leader = "broker-3"
    bench.run(6 * S)
    assert bench.injector.reports()[0].resolved == "broker-3"


def test_role_that_nobody_fills_is_reported_and_needs_no_healing():
    leader = Target("leader", "leader of orders-0", partition=TP)
    bench = Bench(fault("crash", (leader,), lasts=2))
    bench.world.leader = None
    bench.run(5 * S)
    (report,) = bench.injector.reports()
    assert (report.took_effect, report.effect) == (False, "nobody filled the role")
    assert bench.phases() == [(1, 0, "began")]
    assert bench.injector.is_settled


def test_random_broker_is_one_that_runs_and_the_same_for_the_same_seed():
    random = Target("random broker", "random broker")
    chosen = []
    for _ in range(2):
        bench = Bench(fault("crash", (random,)))
        bench.world.nodes["broker-2"].running = False
        chosen.append(bench.run(2 * S).injector.reports()[0].resolved)
    assert chosen[0] == chosen[1]
    assert chosen[0] in {"broker-1", "broker-3"}


def test_heal_all_mends_what_is_open_and_starts_every_server_that_is_down():
    bench = Bench(
        fault("crash", node("broker-1")),
        fault("partition", node("broker-2"), index=1),
        fault("power-loss", node("broker-3"), index=2),
    ).run(2 * S)
    bench.world.nodes["controller-1"].running = False
    bench.world.nodes["shop"].running = False
    assert bench.injector.begun == 3
    bench.injector.heal_all()
    assert [bench.world.nodes[name].running for name in bench.world.servers] == [True] * 4
    assert not bench.world.nodes["shop"].running, "a client that left on its own stays away"
    assert bench.world.network.rules == []
    assert bench.world.host_of("broker-2").disks[0].state == ["extended"]
    assert bench.injector.is_settled


def test_heal_all_restarts_a_server_that_runs_beside_a_replaced_disk_and_no_other():
    bench = Bench(fault("crash", node("shop"))).run(2 * S)
    bench.world.host_of("broker-2").disks[0].awaits_mount = True
    bench.injector.heal_all()
    calls = {name: bench.world.nodes[name].calls for name in bench.world.servers}
    assert calls.pop("broker-2") == ["crash", "start"]
    assert not any(calls.values())


def test_heal_all_starts_a_client_that_a_fault_killed():
    bench = Bench(fault("crash", node("shop"))).run(2 * S)
    bench.injector.heal_all()
    assert bench.world.nodes["shop"].running


def test_fault_that_never_began_is_reported_as_such():
    bench = Bench(fault("crash", node("broker-1"), at=9)).run(2 * S)
    (report,) = bench.injector.reports()
    assert (report.began_us, report.effect) == (None, "it never began")


def test_every_kind_says_what_it_means_what_proves_it_and_what_it_may_break():
    assert all(name == kind.kind for name, kind in KINDS.items())
    assert all(kind.meaning() and kind.proof and kind.may_break for kind in KINDS.values())


def kinds_below(kind):
    """Every class of a kind that is declared."""
    named = [kind] if "kind" in vars(kind) else []
    return named + [found for below in kind.__subclasses__() for found in kinds_below(below)]


def test_every_kind_that_is_declared_is_in_the_registry():
    declared = [kind for kind in kinds_below(Fault) if kind.__module__.startswith("sim.")]
    assert sorted(kind.kind for kind in declared) == sorted(KINDS)


def test_a_kind_that_its_family_forgot_is_found():
    class Forgotten(KINDS["crash"]):
        kind = "forgotten"

    assert Forgotten in kinds_below(Fault)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_key_of_a_kind_has_the_name_of_another_or_of_a_time(kind):
    names = [key.name for key in kind.keys().values()]
    taken = {"at", "do", "for", "every", "times", "mtbf", "mttr"}
    assert len({*names, *taken}) == len(names) + len(taken)


def test_a_meaning_begins_in_lower_case_unless_with_an_abbreviation():
    class Slow(KINDS["crash"]):
        """CPU is slow."""

    assert Slow.meaning() == "CPU is slow"
    assert KINDS["clock-jump"].meaning().startswith("a host's clock")
