"""Rules between a producer's transactions, its settings and the coordinator's.

Source: ``ProducerConfig.postProcessAndValidateIdempotenceConfigs``,
``TransactionCoordinator.handleInitProducerId``.
"""

from collections.abc import Mapping

from sim.scenario.model.clients import ProducerModel
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.settings.registry import default_of
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem

_ID = "transactional.id"
_TIMEOUT = "transaction.timeout.ms"
_LONGEST = "transaction.max.timeout.ms"
_STATE = "transaction.state.log"
_EXAMPLE = "transaction: {records: 500} or transaction: {every: 100ms}"


def check_state_topic(cluster: ClusterSpec) -> None:
    """Check that ``__transaction_state`` can be made and written, when there are transactions.

    Raises:
        Problem: With the setting's name as its path.
    """
    factor_name, least_name = f"{_STATE}.replication.factor", f"{_STATE}.min.isr"
    brokers = len(cluster.first_brokers)
    factor, least = cluster.config.number(factor_name), cluster.config.number(least_name)
    if factor > brokers:
        raise Problem(
            (factor_name,),
            f"{factor} with {brokers} brokers, and there are transactional producers",
            f"1 to {brokers}",
            f"set {factor_name}: {brokers}",
        )
    if least > factor:
        raise Problem(
            (least_name,),
            f"{least} is above {factor_name}, {factor}: no transaction could begin",
            f"1 to {factor}",
        )


def check_behaviours(given: Mapping[str, str], positions: Mapping[str, str]) -> None:
    """Check that the behaviours that are given go with how partitions join a transaction.

    With KIP-890 whole, leaders add partitions and verify them, and each end of a transaction, a
    fence above all, has an epoch of its own.

    Args:
        given: Those that the scenario names.
        positions: Every switch with its position.

    Raises:
        Problem: With the behaviour's name as its path.
    """
    leaders_add = "where leaders add every partition themselves"
    for name, old, now, why in (
        ("transaction.verification", "off", "on", leaders_add),
        ("client.add_partitions", "first", "all", leaders_add),
        ("transaction.fence", "each_attempt", "once", "where each end of one has its own epoch"),
    ):
        if given.get(name) == old and positions["transactions"] != "kip98":
            raise Problem(
                (name,),
                f"{old} with transactions: {positions['transactions']}, {why}",
                now,
                "behaviours: {transactions: kip98} beside it, or leave it out",
            )


def check(model: ProducerModel, config: Config, broker: Config) -> None:
    """Check how a producer sends in transactions, or that it does not.

    Args:
        model: The producer's entry.
        config: Its settings, as the Java client would run with them.
        broker: The cluster's settings.

    Raises:
        Problem: With a path that starts below the producer.
    """
    transaction = model.transaction
    if not config.text(_ID):
        if config[_ID] is not None:
            raise Problem(("config", _ID), "an empty text", "a name")
        if transaction is not None:
            raise Problem(
                ("transaction",),
                f"a transaction without {_ID}",
                "producers with one",
                f"add config: {{{_ID}: {model.name}}}",
            )
        if config[_TIMEOUT] != default_of("producer", _TIMEOUT, config.version):
            raise Problem(("config", _TIMEOUT), f"{_TIMEOUT} without {_ID}", f"{_ID} beside it")
        return
    if not config.flag("enable.idempotence"):
        raise Problem(
            ("config", _ID),
            f"{config.text(_ID)!r} without idempotence",
            "acks all, retries above 0 and enable.idempotence true",
        )
    longest = broker.number(_LONGEST)
    if config.number(_TIMEOUT) > longest:
        raise Problem(
            ("config", _TIMEOUT),
            f"{config.number(_TIMEOUT)} is above {_LONGEST}, {longest}: no coordinator takes it",
            f"1 to {longest}",
            f"lower it or raise {_LONGEST} in cluster.config",
        )
    if transaction is None:
        raise Problem(
            ("config", _ID), f"{config.text(_ID)!r} without a transaction", _EXAMPLE, "add one"
        )
    if (transaction.records is None) == (transaction.every_us is None):
        found = (
            "neither records nor every" if transaction.records is None else "records beside every"
        )
        raise Problem(("transaction",), found, _EXAMPLE)
    if transaction.every_us == 0:
        raise Problem(("transaction", "every"), "0us", "more than zero")
