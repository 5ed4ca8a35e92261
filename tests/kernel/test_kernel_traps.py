"""Five traps of SimPy, each closed; and the order, limits and timers of the kernel."""

import pytest
import simpy

from sim.errors import NoProgress
from sim.kernel import EVENTS_AT_ONE_INSTANT_MAX, Kernel


class KeywordOnly(Exception):
    """SimPy re-creates exceptions from their args; this one cannot be re-created."""

    def __init__(self, *, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def test_a_failing_process_surfaces_its_own_exception_with_the_process_named():
    kernel = Kernel()

    def task():
        yield kernel.sleep(5)
        raise KeywordOnly(detail="disk on fire")

    kernel.spawn("broker-1", task())
    with pytest.raises(KeywordOnly) as caught:
        kernel.run(10)
    assert caught.value.detail == "disk on fire"
    assert "in process 'broker-1' at t=0.000005 s" in caught.value.__notes__


def test_bare_simpy_loses_that_exception_which_is_why_the_kernel_guards_processes():
    env = simpy.Environment()

    def task():
        yield env.timeout(5)
        raise KeywordOnly(detail="disk on fire")

    env.process(task())
    with pytest.raises(TypeError):
        env.run()


def test_a_thousand_moved_timers_leave_one_entry_in_the_queue():
    kernel = Kernel()
    fired = []
    timer = kernel.timer(lambda: fired.append(kernel.now()))
    for request in range(1_000):
        timer.set(30_000_000 + request)
    assert kernel.pending() == 1
    kernel.run(40_000_000)
    assert fired == [30_000_999]


def test_cancelled_calls_are_swept_out_of_the_queue():
    kernel = Kernel()
    for _ in range(20_000):
        kernel.call_at(1_000_000, pytest.fail, "cancelled").cancel()
    assert kernel.pending() < 10_000
    kernel.run(2_000_000)
    assert kernel.now() == 2_000_000


def test_a_timer_set_earlier_fires_earlier_and_once():
    kernel = Kernel()
    fired = []
    timer = kernel.timer(lambda: fired.append(kernel.now()))
    timer.set(100)
    timer.set(10)
    kernel.run(200)
    assert fired == [10]


def test_a_cancelled_timer_stays_silent_and_can_be_set_again():
    kernel = Kernel()
    fired = []
    timer = kernel.timer(lambda: fired.append(kernel.now()))
    timer.set(10)
    timer.cancel()
    kernel.run(50)
    timer.set(60)
    kernel.run(100)
    assert fired == [60]


def test_an_interrupted_process_ends_quietly_and_takes_nothing_with_it():
    kernel = Kernel()
    seen = []

    def task(name):
        yield kernel.sleep(10)
        seen.append(name)

    victim = kernel.spawn("victim", task("victim"))
    kernel.spawn("other", task("other"))
    kernel.call_at(5, victim.interrupt)
    kernel.run(20)
    assert seen == ["other"]


@pytest.mark.parametrize("instant", [1.0, 10.5])
def test_the_clock_refuses_a_float(instant):
    kernel = Kernel()
    with pytest.raises(TypeError, match="whole number of microseconds"):
        kernel.call_at(instant, print)
    with pytest.raises(TypeError, match="whole number of microseconds"):
        kernel.run(instant)


def test_the_clock_stays_whole_and_may_begin_before_zero():
    kernel = Kernel(-20_000_000)
    kernel.call_at(-5, lambda: None)
    kernel.run(0)
    assert kernel.now() == 0
    assert type(kernel.now()) is int


def test_equal_instants_happen_in_the_order_of_scheduling_processes_and_calls_alike():
    kernel = Kernel()
    seen = []

    def task():
        yield kernel.sleep(10)
        seen.append("process")

    kernel.spawn("p", task())
    kernel.run(0)
    kernel.call_at(10, seen.append, "call")
    kernel.call_at(10, seen.append, "later call")
    kernel.run(10)
    assert seen == ["process", "call", "later call"]


def test_a_loop_that_takes_no_time_is_stopped_and_names_who_is_next():
    kernel = Kernel()

    def spin():
        kernel.call_in(0, spin)

    spin()
    with pytest.raises(NoProgress, match=r"time does not advance.*spin"):
        kernel.run(1)
    assert kernel.events >= EVENTS_AT_ONE_INSTANT_MAX


def test_the_limit_on_events_is_kept():
    kernel = Kernel()

    def tick():
        kernel.call_in(1, tick)

    tick()
    with pytest.raises(NoProgress, match="more than 100000 events"):
        kernel.run(10_000_000, events_max=100_000)
