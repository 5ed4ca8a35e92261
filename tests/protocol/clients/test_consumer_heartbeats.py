"""Heartbeats of the consumer protocol (KIP-848), from the member's side."""

from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from sim.units import MS, SECOND
from tests.kips.test_kip_848 import watched


def test_a_heartbeat_that_came_to_the_wrong_broker_is_sent_again_when_the_right_one_is_known():
    """Source: ``HeartbeatRequestState.onFailedAttempt``, which resets the timer to 0."""
    bench = watched(["a"])
    bench.run(20 * SECOND)
    heard, arrive = [], bench._arrive

    def note(asker, effect):
        if isinstance(effect.request, ConsumerGroupHeartbeatRequest):
            heard.append((effect.to, bench.now))
        arrive(asker, effect)

    bench._arrive = note
    bench.elect(2)
    bench.run(29 * SECOND)
    (_, refused), (_, taken) = heard[:2]
    assert [to for to, _ in heard[:2]] == [1, 2]
    assert taken - refused < 500 * MS, "not an interval of 5 s later"
