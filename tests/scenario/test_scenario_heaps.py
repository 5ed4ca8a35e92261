"""``cluster.heap`` and ``producer.per``: what a scenario may say of them."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.build import translate
from sim.scenario.loader import load_text
from sim.scenario.scenario import document

PRODUCER = "{name: shop, topic: t, rate: 1/s%s}"


def text(heap="", producer="", cluster=""):
    parts = [part for part in (f"heap: {heap}" if heap else "", cluster) if part]
    return (
        f"claim: x\ncluster: {{{', '.join(parts)}}}\ntopics: {{t: {{replication.factor: 1}}}}\n"
        f"producers: [{PRODUCER % producer}]\nrun: {{for: 1s}}\n"
    )


def test_without_a_heap_memory_has_no_end_and_a_scenario_is_written_as_before():
    scenario = load_text(text())
    assert scenario.cluster.heap is None
    assert translate.heap_spec(scenario.cluster.heap) is None
    assert "heap" not in scenario.as_yaml()
    assert "producer.per" not in scenario.as_yaml()


def test_a_heap_and_what_things_take_of_it_reach_every_broker():
    scenario = load_text(text("{size: 6GB, used: 2GB, per.producer.id: 1kB, per.connection: 2kB}"))
    made = translate.heap_spec(scenario.cluster.heap)
    assert made is not None
    assert (made.size_bytes, made.used_bytes) == (6 * 10**9, 2 * 10**9)
    assert (made.producer_bytes, made.connection_bytes) == (1_000, 2_000)
    assert (made.request_bytes, made.collected_bytes_per_s) == (64 * 1_024, 10**9)


def test_what_a_heap_says_for_itself_is_on_the_card():
    scenario = load_text(text("{size: 6GB, used: 1GiB, per.request: 1kB}"))
    told = {each.path: (each.value, each.default) for each in scenario.off_default}
    assert told == {
        "cluster.heap.size": ("5859375KiB", "no end"),
        "cluster.heap.per.request": ("1000B", "64KiB"),
    }
    plain = document(scenario)["cluster"]["heap"]
    assert plain == {
        "size": "5859375KiB", "used": "1GiB", "per.producer.id": "264B",
        "per.connection": "64KiB", "per.request": "1000B", "collection": "1GB/s",
    }  # fmt: skip


def test_what_is_written_out_is_read_as_the_same_scenario():
    scenario = load_text(text("{size: 6GB, used: 2GB}", ", producer.per: request"))
    again = load_text(scenario.as_yaml())
    assert again.cluster.heap == scenario.cluster.heap
    assert again.producers[0].per_request
    assert again.digest == scenario.digest


@pytest.mark.parametrize(
    ("heap", "said"),
    [
        ("{size: 0B}", r"cluster\.heap\.size.*0B.*more than 0B"),
        ("{size: 17TB}", r"cluster\.heap\.size.*at most 16TB"),
        ("{size: 1GB, used: 950MB}", r"cluster\.heap\.used.*no broker could work.*90 percent"),
        ("{size: 1GB, used: 1MB, per.producer.id: 2GB}", r"per\.producer\.id.*at most size"),
        ("{size: 1GB, used: 1MB, per.connection: 2GB}", r"per\.connection.*at most size"),
        ("{size: 1GB, used: 1MB, per.request: 2GB}", r"per\.request.*at most size"),
        ("{size: 1GB, used: 1MB, collection: 1B/s}", r"heap\.collection.*at least 1MB/s"),
        ("{used: 1GB}", r"cluster\.heap.*size"),
        ("{size: 1GB, young: 1MB}", r"young.*size, used, per\.producer\.id"),
    ],
)
def test_a_heap_in_which_no_broker_could_work_or_that_no_jvm_has_is_refused(heap, said):
    with pytest.raises(ScenarioError, match=said):
        load_text(text(heap))


def test_brokers_that_have_no_jvm_have_no_heap():
    with pytest.raises(ScenarioError, match=r"cluster\.heap.*no JVM.*isr"):
        load_text(text("{size: 6GB}", cluster="replication: raft"))


def test_a_transaction_needs_one_producer_from_its_beginning_to_its_end():
    more = ", producer.per: request, transaction: {records: 5}, config: {transactional.id: a}"
    with pytest.raises(ScenarioError, match=r"producer\.per.*request beside transaction.*process"):
        load_text(text(producer=more))


def test_a_producer_is_made_for_a_process_or_for_a_request():
    with pytest.raises(ScenarioError, match=r"producer\.per.*process.*request"):
        load_text(text(producer=", producer.per: record"))
