"""Sessions, heartbeats and intervals of one group, as the metadata has them.

Source: ``GroupConfigManager``.
"""

import pytest

from sim.protocol.coordinator.group.context import ModernGroupConfig
from sim.protocol.effects import SetTimer
from sim.protocol.events import RequestReceived
from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from sim.protocol.messages.share import ShareGroupHeartbeatRequest
from sim.units import MINUTE, SECOND
from tests.kips.test_kip_848 import Table

NOBODY = {}


def table_with(configs, **more):
    table = Table(**more)
    table.image.group_configs = {"g": configs, "other": {"consumer.session.timeout.ms": "1"}}
    return table


def session_of(table, request):
    """Distance of the session's end from a heartbeat at zero."""
    effects = table.machine.handle(RequestReceived(99, "a", request), 0)
    (end,) = [e.at for e in effects if isinstance(e, SetTimer) and e.name.startswith("session/")]
    return end


MODERN = ConsumerGroupHeartbeatRequest("g", "a", 0, owned=(), rebalance_timeout_us=MINUTE,
                                       topics=("t",))  # fmt: skip
SHARE = ShareGroupHeartbeatRequest("g", "a", 0, ("t",))


@pytest.mark.parametrize(("kind", "request_"), [("consumer", MODERN), ("share", SHARE)])
def test_a_session_is_the_groups_own_if_it_has_one(kind, request_):
    own = {f"{kind}.session.timeout.ms": "50000"}
    assert session_of(table_with(own), request_) == 50 * SECOND
    assert session_of(table_with(NOBODY), request_) == 45 * SECOND
    other = "share" if kind == "consumer" else "consumer"
    assert session_of(table_with({f"{other}.session.timeout.ms": "50000"}), request_) == (
        45 * SECOND
    )


def test_members_are_told_the_groups_own_interval_of_heartbeats():
    table = table_with({"consumer.heartbeat.interval.ms": "7000"})
    assert table.join("a").heartbeat_interval_us == 7 * SECOND
    assert table_with(NOBODY).join("a").heartbeat_interval_us == 5 * SECOND


def test_target_assignments_are_the_groups_own_interval_apart():
    second = ModernGroupConfig(assignment_interval_us=1 * SECOND)
    table = table_with({"consumer.assignment.interval.ms": "3000"}, consumer=second)
    table.join("a", now=SECOND)
    table.join("b", now=3 * SECOND)
    assert table.group.assignment_epoch == 1
    table.beat("a", 1, now=4 * SECOND)
    assert table.group.assignment_epoch == 2


def test_a_change_holds_from_the_next_heartbeat():
    table = table_with(NOBODY)
    assert session_of(table, MODERN) == 45 * SECOND
    table.image.group_configs["g"] = {"consumer.session.timeout.ms": "60000"}
    assert session_of(table, MODERN) == 60 * SECOND
