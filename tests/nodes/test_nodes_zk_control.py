"""The thread of a controller in ZooKeeper mode: what keeps it, and what waits for it meanwhile."""

from types import SimpleNamespace

from sim.nodes.broker.settings import ZkBrokerSettings
from sim.nodes.broker.zookeeper import FIRST_ZOOKEEPER_ID, ZkControl
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.port import Port
from sim.protocol.events import NotificationReceived, ResponseReceived
from sim.protocol.zk_mode.broker_types import ZkBrokerConfig
from sim.protocol.zk_mode.controller_types import StatesLogged
from sim.protocol.zookeeper.messages import ZkWatchNotification
from sim.protocol.zookeeper.tree import WatchEvent
from sim.units import MS


def answers_taken(*effects: StatesLogged) -> list[int]:
    """When the thread takes in two answers of ZooKeeper that have come by 10 ms."""
    control, port, taken = idle()
    for effect in effects:
        control.performers[StatesLogged](port, effect)
    for number in range(2):
        assert control.receive(port, ResponseReceived(FIRST_ZOOKEEPER_ID, number, None))
    return [at for at, _ in taken]


def idle() -> tuple[ZkControl, Port, list[tuple[int, object]]]:
    """A control plane at 10 ms, its port, and a list of what its thread takes in, and when."""
    taken: list[tuple[int, object]] = []
    process = SimpleNamespace(
        kernel=SimpleNamespace(time=10 * MS),
        deliver=None,
        call_at=lambda at, _, port, event: taken.append((at, event)),
    )
    settings = ZkBrokerSettings((FIRST_ZOOKEEPER_ID,), ZkBrokerConfig())
    control = ZkControl(process, 1, CpuSpec(), settings)
    port = control._port = Port("zookeeper", None, serial=False)
    return control, port, taken


def test_a_controller_takes_one_answer_of_zookeeper_after_the_other():
    assert answers_taken() == [10_140, 10_280]


def test_a_controller_that_logs_every_state_keeps_answers_waiting_kafka_6116():
    assert answers_taken(StatesLogged(25_000)) == [82_140, 82_280]
    assert answers_taken(StatesLogged(25_000), StatesLogged(25_000))[0] == 154_140


def test_a_watch_event_waits_for_the_answer_before_it_and_the_next_one_for_it():
    control, port, taken = idle()
    answers = [ResponseReceived(FIRST_ZOOKEEPER_ID, number, None) for number in range(2)]
    notification = ZkWatchNotification("/controller", WatchEvent.DELETED)
    event = NotificationReceived(FIRST_ZOOKEEPER_ID, notification)
    assert control.receive(port, answers[0])
    control.notified(port, event)
    assert control.receive(port, answers[1])
    assert taken == [(10_140, answers[0]), (10_280, event), (10_420, answers[1])]
