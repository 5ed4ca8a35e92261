"""Quotas of connections: how long acceptors wait, who is closed, and who is let in all the same."""

from sim.protocol.quotas.connection import (
    AcceptConnection,
    ConnectionQuotaConfig,
    ConnectionQuotas,
    DropConnection,
    Waited,
    WakeAt,
)
from sim.units import MS, SECOND

NOW = 100 * SECOND


def limited(**config):
    return ConnectionQuotas(ConnectionQuotaConfig(**config))


def come(quotas, keys, address="shop", now=NOW, *, protected=False):
    return [e for key in keys for e in quotas.arrived(key, address, now, protected=protected)]


def accepted(effects):
    return [effect.key for effect in effects if isinstance(effect, AcceptConnection)]


def test_above_the_rate_the_acceptor_waits_until_the_rate_would_be_back_at_its_bound():
    """100 in the window of ten seconds are 10 a second; the 101st is 1 % too many: 100 ms."""
    quotas = limited(creation_rate=10)
    assert len(accepted(come(quotas, range(100)))) == 100
    assert come(quotas, [100]) == [Waited(100, 100 * MS), WakeAt(NOW + 100 * MS)]
    assert come(quotas, [101]) == [WakeAt(NOW + 100 * MS)]
    effects = quotas.wake(NOW + 100 * MS)
    assert accepted(effects) == [100]
    # The next one is counted when it is taken from the backlog: 102 in 10.1 s.
    assert Waited(101, 100 * MS) in effects


def test_nobody_waits_longer_than_a_window_for_a_rate():
    quotas = limited(creation_rate=1)
    come(quotas, range(10))
    assert come(quotas, [10])[0] == Waited(10, SECOND)


def test_other_brokers_are_not_held_back_by_the_rate_nor_counted_in_it():
    quotas = limited(creation_rate=1)
    assert len(accepted(come(quotas, range(30), "broker-2", protected=True))) == 30
    assert accepted(come(quotas, [99])) == [99]


def test_when_the_broker_is_full_clients_wait_until_another_one_goes():
    quotas = limited(max_connections=2)
    assert accepted(come(quotas, [1, 2, 3, 4])) == [1, 2]
    assert accepted(quotas.closed(1, NOW)) == [3]
    assert quotas.closed(4, NOW) == []
    assert quotas.count == 2


def test_a_broker_that_comes_to_a_full_one_takes_the_place_of_the_client_idle_for_longest():
    quotas = limited(max_connections=2)
    come(quotas, [1, 2])
    quotas.used(1)
    effects = come(quotas, [3], "broker-2", protected=True)
    assert effects == [AcceptConnection(3), DropConnection(2, NOW, "max.connections")]
    quotas.closed(2, NOW)
    assert quotas.count == 2


def test_an_address_with_as_many_as_it_may_have_is_refused_at_once_and_others_are_not():
    quotas = limited(max_per_address=1, overrides={"bills": 2, "stranger": 0})
    assert come(quotas, [1, 2])[1] == DropConnection(2, NOW, "max.connections.per.ip")
    assert accepted(come(quotas, [3, 4, 5], "bills")) == [3, 4]
    assert accepted(come(quotas, [6], "stranger")) == []
    quotas.closed(2, NOW)
    quotas.closed(1, NOW)
    assert accepted(come(quotas, [7])) == [7]


def test_an_address_above_its_rate_is_closed_after_its_wait_and_that_is_not_counted():
    quotas = limited()
    quotas.update({(("ip", "shop"),): {"connection_creation_rate": 1.0}})
    assert len(accepted(come(quotas, range(10)))) == 10
    late = DropConnection(10, NOW + SECOND, "connection_creation_rate")
    assert come(quotas, [10]) == [late]
    assert come(quotas, [11]) == [late._replace(key=11)]
    assert accepted(come(quotas, [12], "bills")) == [12]


def test_the_default_is_for_every_address_without_a_rate_of_its_own():
    quotas = limited()
    rates = {(("ip", None),): 1.0, (("ip", "bills"),): 2.0}
    quotas.update({e: {"connection_creation_rate": rate} for e, rate in rates.items()})
    assert len(accepted(come(quotas, range(15)))) == 10
    assert len(accepted(come(quotas, range(20, 45), "bills"))) == 20
