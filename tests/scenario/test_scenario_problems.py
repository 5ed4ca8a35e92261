"""All mistakes of a file that do not hide each other come at once, in the order of its lines."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import PROBLEMS_MAX, load_text
from sim.scenario.text.problems import Problem, gather

HEAD = """\
claim: Nothing is lost.
cluster: {brokers: 3, controllers: 3}
topics:
  orders: {partitions: 2, replication.factor: 3}
producers:
  - {name: shop, topic: orders, rate: 100/s, record.size: 1KiB}
"""
RUN = "run: {for: 30s}\n"


def mistakes(text):
    with pytest.raises(ScenarioError) as raised:
        load_text(text, "mine.yaml")
    return [line.split(": ")[:2] for line in str(raised.value).splitlines()]


def test_mistakes_of_keys_come_together():
    text = HEAD.replace("partitions: 2", "partitions: -1").replace("100/s", "100")
    text += "run: {for: soon}\n"
    assert mistakes(text) == [
        ["mine.yaml:4", "topics.orders.partitions"],
        ["mine.yaml:6", "producers[0].rate"],
        ["mine.yaml:7", "run.for"],
    ]


def test_wrong_settings_come_together():
    config = "config: {log.segment.byte: 1, num.io.thread: 2, min.insync.replicas: x}"
    text = HEAD.replace("controllers: 3}", "controllers: 3, " + config + "}") + RUN
    names = ("log.segment.byte", "num.io.thread", "min.insync.replicas")
    assert mistakes(text) == [["mine.yaml:2", f"cluster.config.{name}"] for name in names]


def test_wrong_topics_come_together_and_hide_what_needs_them():
    one = "{partitions: 1, replication.factor: 1}"
    more = f"  __mine: {one}\n  b c: {one}\nproducers:"
    text = HEAD.replace("producers:", more).replace("topic: orders", "topic: none") + RUN
    assert [where for where, _ in mistakes(text)] == ["mine.yaml:5", "mine.yaml:6"]


def test_wrong_faults_come_together_and_so_do_expectations():
    text = HEAD + "run: {for: 30s}\nfaults:\n"
    faults = (
        "  - {at: 5s, do: crash, target: broker-9}\n  - {at: 50s, do: crash, target: broker-1}\n"
    )
    expect = "expect: {lost_acket: 0, produce.p98: 1s}\n"
    assert [where for where, _ in mistakes(text + faults + expect)] == [
        "mine.yaml:9",
        "mine.yaml:10",
    ]
    assert mistakes(text.replace("faults:\n", expect)) == [
        ["mine.yaml:8", "expect.lost_acket"], ["mine.yaml:8", "expect.produce.p98"],
    ]  # fmt: skip


def test_a_very_long_list_is_cut_and_counted():
    producers = "".join(f"  - {{name: p{n}, topic: orders, rate: 1}}\n" for n in range(40))
    text = HEAD + producers
    with pytest.raises(ScenarioError) as raised:
        load_text(text)
    lines = str(raised.value).splitlines()
    assert len(lines) == PROBLEMS_MAX + 1
    assert lines[-1].startswith("and ")


def test_gathering_runs_every_function_and_raises_once():
    def wrong(name):
        raise Problem((name,), "found", "allowed")

    assert gather([lambda: 1, lambda: 2]) == (1, 2)
    with pytest.raises(Problem) as raised:
        gather([lambda: wrong("a"), lambda: 1, lambda: gather([lambda: wrong("b")] * 2)])
    assert [each.path for each in (raised.value, *raised.value.others)] == [("a",), ("b",), ("b",)]
    above = raised.value.below("x")
    assert [each.path for each in above.others] == [("x", "b"), ("x", "b")]
