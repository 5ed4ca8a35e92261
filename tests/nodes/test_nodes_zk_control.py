"""The thread of a controller in ZooKeeper mode: what keeps it, and what waits for it meanwhile."""

from types import SimpleNamespace

from sim.nodes.broker.settings import ZkBrokerSettings
from sim.nodes.broker.zookeeper import FIRST_ZOOKEEPER_ID, ZkControl
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.port import Port
from sim.protocol.events import ResponseReceived
from sim.protocol.zk_mode.broker_types import ZkBrokerConfig
from sim.protocol.zk_mode.controller_types import StatesLogged
from sim.units import MS


def answers_taken(*effects: StatesLogged) -> list[int]:
    """When the thread takes in two answers of ZooKeeper that have come by 10 ms."""
    taken: list[int] = []
    process = SimpleNamespace(
        kernel=SimpleNamespace(time=10 * MS),
        deliver=None,
        call_at=lambda at, *_: taken.append(at),
    )
    settings = ZkBrokerSettings((FIRST_ZOOKEEPER_ID,), ZkBrokerConfig())
    control = ZkControl(process, 1, CpuSpec(), settings)
    port = control._port = Port("zookeeper", None, serial=False)
    for effect in effects:
        control.performers[StatesLogged](port, effect)
    for number in range(2):
        assert control.receive(port, ResponseReceived(FIRST_ZOOKEEPER_ID, number, None))
    return taken


def test_a_controller_takes_one_answer_of_zookeeper_after_the_other():
    assert answers_taken() == [10_140, 10_280]


def test_a_controller_that_logs_every_state_keeps_answers_waiting_kafka_6116():
    assert answers_taken(StatesLogged(25_000)) == [82_140, 82_280]
    assert answers_taken(StatesLogged(25_000), StatesLogged(25_000))[0] == 154_140
