"""Quotas of changes to the metadata: a bucket of tokens, and an administrator who waits."""

import pytest

from sim.error_codes import ErrorCode
from sim.protocol.clients.admin.client import AdminClient, OperationDone, OperationRequested
from sim.protocol.controller.mutation_quotas import (
    MutationQuotaConfig,
    MutationQuotas,
    MutationThrottled,
    TokenBucket,
)
from sim.protocol.controller.types import ControllerConfig
from sim.protocol.effects import Send, SetTimer
from sim.protocol.events import RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.admin import (
    AlterClientQuotasRequest,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    QuotaAlteration,
)
from sim.units import MS, SECOND
from tests.protocol.controller.controller_kit import Desk

ADMIN = (("client-id", "admin"),)
NOW = 100 * SECOND


def quotas(rate=1.0, entity=ADMIN, **config):
    made = MutationQuotas(MutationQuotaConfig({"admin": "admin"}, **config))
    made.update({entity: {"controller_mutation_rate": rate}})
    return made


def test_kafkas_own_example_of_a_token_bucket():
    """A rate of 5 and 100 windows of a second hold 500 tokens; 560 overdraw them by 12 s' worth."""
    bucket = TokenBucket(100, 1_000)
    bucket.take(560, 5, 1_000)
    assert bucket.level(5, 1_000) == -60
    assert bucket.level(5, 13_000) == 0
    assert bucket.level(5, 10_000_000) == 500


def test_who_knows_the_error_may_overdraw_the_bucket_once_and_is_then_refused_until_it_is_even():
    made = quotas()
    first = made.of("admin", NOW)
    first.take(14)
    assert first.throttle_us == 0
    again = made.of("admin", NOW + 500 * MS)
    with pytest.raises(MutationThrottled):
        again.take(1)
    assert again.throttle_us == 2_500 * MS
    made.of("admin", NOW + 3 * SECOND).take(1)


def test_who_does_not_know_it_is_never_refused_and_told_to_wait():
    made = quotas(strict=False)
    first = made.of("admin", NOW)
    first.take(14)
    assert first.throttle_us == 3 * SECOND
    again = made.of("admin", NOW)
    again.take(1)
    assert again.throttle_us == 4 * SECOND


def test_nobody_else_is_limited():
    assert quotas().of("broker-1", NOW) is None
    assert quotas(entity=(("client-id", "shop"),)).of("admin", NOW) is None
    assert quotas(entity=(("user", None),)).of("admin", NOW) is not None
    assert MutationQuotas(MutationQuotaConfig({"admin": "admin"})).of("admin", NOW) is None


# -- the controller -------------------------------------------------------------------------------


@pytest.fixture
def desk():
    found = Desk(mutation_quotas=MutationQuotaConfig({"admin": "admin"}))
    assert isinstance(found.controller.config, ControllerConfig)
    found.create(assignment=((1, 2, 3),) * 2, configs=())
    change = QuotaAlteration(ADMIN, (("controller_mutation_rate", 1.0),))
    found.ask(AlterClientQuotasRequest((change,)))
    return found


def ask(desk, request, client="admin"):
    desk.token += 1
    desk.feed(RequestReceived(desk.token, client, request))
    return desk.replies[desk.token]


def test_the_controller_refuses_what_is_above_the_quota_and_changes_nothing(desk):
    more = ask(desk, CreatePartitionsRequest("orders", 20))
    assert (more.error, more.throttle_us) == (ErrorCode.NONE, 0)
    refused = ask(desk, CreatePartitionsRequest("orders", 21))
    assert refused.error is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert refused.throttle_us == 7 * SECOND
    assert desk.controller.image.partition_counts["orders"] == 20
    gone = ask(desk, DeleteTopicsRequest(("orders",)))
    assert gone.errors == (("orders", ErrorCode.THROTTLING_QUOTA_EXCEEDED),)
    assert gone.throttle_us == 7 * SECOND
    desk.now += 7 * SECOND
    assert ask(desk, DeleteTopicsRequest(("orders",))).errors == (("orders", ErrorCode.NONE),)


def test_brokers_and_mistakes_cost_nothing(desk):
    for _ in range(3):
        assert ask(desk, CreatePartitionsRequest("orders", 1)).error is ErrorCode.INVALID_PARTITIONS
    ask(desk, CreatePartitionsRequest("orders", 90), client="broker-1")
    assert ask(desk, CreatePartitionsRequest("orders", 91)).throttle_us == 0


# -- the administrator ----------------------------------------------------------------------------


def sent(effects):
    return [effect for effect in effects if isinstance(effect, Send)]


def answer(client, send, error, throttle_us, now):
    response = CreatePartitionsResponse(error, throttle_us)
    return client.handle(ResponseReceived(send.to, send.correlation, response), now)


REFUSED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_the_administrator_asks_again_when_he_may_and_asks_controllers_nothing_before():
    client = AdminClient((3001,))
    (first,) = sent(client.handle(OperationRequested(1, CreatePartitionsRequest("orders", 9)), 0))
    (timer,) = answer(client, first, REFUSED, 2 * SECOND, SECOND)
    assert timer == SetTimer("throttled", 3 * SECOND)
    other = client.handle(
        OperationRequested(2, IncrementalAlterConfigsRequest("a", ())), 2 * SECOND
    )
    assert sent(other) == []
    again = sent(client.handle(TimerFired("throttled"), 3 * SECOND))
    assert [send.request.topic for send in again] == ["orders", "a"]
    assert answer(client, again[0], ErrorCode.NONE, 0, 4 * SECOND) == [
        OperationDone(1, (("", ErrorCode.NONE),))
    ]


def test_an_administrator_who_would_have_to_wait_too_long_gives_up():
    client = AdminClient((3001,))
    (first,) = sent(client.handle(OperationRequested(1, CreatePartitionsRequest("orders", 9)), 0))
    assert answer(client, first, REFUSED, 60 * SECOND, SECOND) == [
        OperationDone(1, (("", REFUSED),))
    ]
