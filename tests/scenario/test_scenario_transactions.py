"""Transactions in a scenario: what is taken, what is refused, and what is written down."""

import pytest

from sim.errors import ScenarioError
from sim.ids import TopicPartition
from sim.protocol.assignors.registry import partition_for_group
from sim.scenario.loader import load_text
from sim.scenario.model.clients import TransactionModel
from tests.scenario.scenario_text import changed

PRODUCER = (
    "  - {name: shop, topic: orders, count: 4, rate: 5000/s, record.size: 512B, "
    "config: {linger.ms: 5}}"
)


def scenario(transaction="transaction: {records: 500}", config="transactional.id: till", count=1):
    return changed(
        PRODUCER,
        f"  - {{name: shop, topic: orders, count: {count}, rate: 5000/s, "
        f"{transaction}{', ' if transaction else ''}config: {{{config}}}}}",
    )


def loaded(**parts):
    return load_text(scenario(**parts), "good.yaml", ()).producers[0]


def test_transactions_by_number_and_by_time():
    assert loaded().transaction == TransactionModel(records=500)
    timed = loaded(transaction="transaction: {every: 100ms, abort: 1%}")
    assert timed.transaction == TransactionModel(every="100ms", abort="1%")
    assert load_text(changed("seed: 7", "seed: 8"), "x.yaml", ()).producers[0].transaction is None


@pytest.mark.parametrize("size", ["records: 500", "every: 250ms, abort: 0.1%"])
def test_what_is_written_down_loads_again_as_the_same(size):
    first = load_text(scenario(transaction=f"transaction: {{{size}}}"), "a.yaml", ())
    again = load_text(first.as_yaml(), "a.yaml", ())
    assert again.producers == first.producers
    assert again.digest == first.digest


@pytest.mark.parametrize(
    ("transaction", "config", "path", "says"),
    [
        ("transaction: {records: 5}", "linger.ms: 5", "transaction", "without transactional.id"),
        ("", "transactional.id: till", "config.transactional.id", "without a transaction"),
        ("", "transaction.timeout.ms: 9", "config.transaction.timeout.ms", "without"),
        ("transaction: {}", "transactional.id: till", "transaction", "neither"),
        (
            "transaction: {records: 5, every: 5ms}", "transactional.id: till", "transaction",
            "records beside every",
        ),
        ("transaction: {every: 0ms}", "transactional.id: till", "transaction.every", "0us"),
        ("transaction: {records: 0}", "transactional.id: till", "transaction.records", ""),
        ("transaction: {records: 5, abort: 101%}", "transactional.id: till", "transaction.abort",
         "more than all"),
        ("transaction: {records: 5, abort: 1}", "transactional.id: till", "transaction.abort",
         "no unit"),
        ("transaction: {records: 5}", "transactional.id: ''", "config.transactional.id", "empty"),
        ("transaction: {records: 5}", "transactional.id: till, acks: 1",
         "config.transactional.id", "without idempotence"),
        ("transaction: {records: 5}", "transactional.id: till, enable.idempotence: false",
         "config.transactional.id", "without idempotence"),
        ("transaction: {records: 5}", "transactional.id: till, transaction.timeout.ms: 900001",
         "config.transaction.timeout.ms", "transaction.max.timeout.ms, 900000"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_place(transaction, config, path, says):
    with pytest.raises(ScenarioError) as caught:
        load_text(scenario(transaction=transaction, config=config), "bad.yaml", ())
    assert f"producers[0].{path}" in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("transaction.state.log.replication.factor: 9", "1 to 6"),
        ("transaction.state.log.min.isr: 4", "no transaction could begin"),
    ],
)
def test_a_log_of_transactions_that_could_not_be_written_is_refused(setting, says):
    one = "config: {replica.lag.time.max.ms: 30000}"
    text = scenario().replace(one, f"config: {{{setting}}}")
    with pytest.raises(ScenarioError, match=says):
        load_text(text, "bad.yaml", ())
    load_text(changed(one, f"config: {{{setting}}}"), "good.yaml", ())


def test_a_coordinator_is_a_target_by_its_group_or_transactional_id():
    text = scenario(count=2).replace("leader of orders-0", "transaction coordinator of till-2")
    text = text.replace("target: rack a", "target: group coordinator of billing")
    first, _, third = load_text(text, "good.yaml", ()).faults
    assert first.targets[0].partition == TopicPartition(
        "__consumer_offsets", partition_for_group("billing")
    )
    assert third.targets[0].partition == TopicPartition(
        "__transaction_state", partition_for_group("till-2")
    )
    with pytest.raises(ScenarioError, match="till-1, till-2"):
        load_text(text.replace("of till-2", "of till"), "bad.yaml", ())


def test_an_unknown_isolation_level_is_refused():
    text = changed("count: 3}", "count: 3, config: {isolation.level: serializable}}")
    with pytest.raises(ScenarioError, match="read_committed, read_uncommitted"):
        load_text(text, "bad.yaml", ())
    fine = changed("count: 3}", "count: 3, config: {isolation.level: read_committed}}")
    consumer = load_text(fine, "good.yaml", ()).consumers[0]
    assert consumer.config.text("isolation.level") == "read_committed"


@pytest.mark.parametrize(
    ("name", "old", "why"),
    [
        ("transaction.verification", "off", "add every partition themselves"),
        ("client.add_partitions", "first", "add every partition themselves"),
        ("transaction.fence", "each_attempt", "each end of one has its own epoch"),
    ],
)
def test_what_was_done_before_kip_890_goes_with_its_transactions_only(name, old, why):
    asked = f"{name}: '{old}'"
    with pytest.raises(ScenarioError, match=rf"behaviours\.{name}.*{why}"):
        load_text(changed("recovery: elr", asked), "bad.yaml", ())
    fine = load_text(changed("recovery: elr", f"{asked}, transactions: kip98"), "good.yaml", ())
    assert fine.behaviours[name] == old
