"""Entries of expect: what they may be about, and what is told of one that cannot be."""

import pytest
import yaml

from sim.checking.scope import Scope
from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, text_of

READERS = [{"group": "billing", "topics": "orders", "count": 1}]


def loaded(expect):
    return load_text(text_of(expect=expect, consumers=READERS))


def test_one_name_may_ask_of_several_parts():
    scenario = loaded(
        {"lost_acked": [0, {"is": 0, "during": "1s..2s"}, {"is": 0, "partition": "orders-1"}]}
    )
    assert [line.scope for line in scenario.expect] == [
        Scope(), Scope(from_us=S, to_us=2 * S), Scope("orders", 1),
    ]  # fmt: skip


def test_what_was_asked_is_written_out_and_read_again_as_the_same():
    scenario = loaded(
        {
            "acked": 5,
            "produce.p99": [
                "< 1s",
                {"is": "< 2s", "topic": "orders", "during": "500ms..1500ms"},
            ],
            "lag.max": {"is": "< 9", "group": "billing"},
            "divergence": {"broker-2, broker-1": 0, "broker-1, broker-3": "< 5"},
        }
    )
    again = load_text(scenario.as_yaml())
    assert again.expect == scenario.expect
    assert again.digest == scenario.digest


def test_a_pair_without_quotes_is_the_same_pair():
    """YAML reads ``{broker-1, broker-3: 1}`` as two keys, the first without a value."""
    bare = yaml.safe_load("{broker-1, broker-3: 1}")
    assert bare == {"broker-1": None, "broker-3": 1}
    (line,) = loaded({"divergence": bare}).expect
    assert line == loaded({"divergence": {"broker-1, broker-3": 1}}).expect[0]
    assert line.scope.brokers == (1, 3)


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ({"lost_acked": {"is": 0, "topc": "orders"}}, "unknown key topc; .*did you mean topic"),
        ({"lost_acked": {"topic": "orders"}}, "a mapping without its bound"),
        ({"lost_acked": {"is": 0, "topic": "order"}}, "no topic 'order'; .*did you mean orders"),
        ({"lost_acked": {"is": 0, "partition": "orders-9"}}, "no partition 'orders-9'"),
        ({"lag.max": {"is": 0, "group": "bills"}}, "no group 'bills'; allowed: billing"),
        ({"lost_acked": {"is": 0, "group": "billing"}}, "lost_acked is not about a group"),
        ({"duplicated": {"is": 0, "during": "1s..2s"}}, "duplicated has no instant"),
        ({"acked": {"is": 0, "during": "2s"}}, "'2s' is no window; allowed: .*20s..35s"),
        ({"acked": {"is": 0, "during": "2s..1s"}}, "'2s..1s' is an empty range"),
        ({"acked": {"is": 0, "during": "9s..10s"}}, "begins after the run"),
        ({"acked": []}, "an empty list"),
        ({"acked": [0, {"is": "x"}]}, r"expect.acked\[1\]: 'x' is not a number"),
        ({"resurrected": {"is": 0, "topic": "orders"}}, "is about all topics"),
        ({"divergence": 0}, "no pair of brokers"),
        ({"divergence": {"broker-1": 0}}, "broker-1 is no pair"),
        ({"divergence": {"broker-1, broker-9": 0}}, "broker-9"),
        ({"divergence": {"broker-1": 0, "broker-2": None}}, "is no pair|without a bound"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_place_and_what_is_allowed(expect, message):
    with pytest.raises(ScenarioError, match=message) as caught:
        loaded(expect)
    assert "expect." in str(caught.value)
