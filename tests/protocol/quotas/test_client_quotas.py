"""Quotas of clients: how long they wait, who counts with whom, what the controller allows."""

import pytest

from sim.error_codes import ErrorCode
from sim.protocol.controller.quotas import alter_client_quotas
from sim.protocol.kraft.metadata_snapshot import image_records
from sim.protocol.messages.admin import AlterClientQuotasRequest, QuotaAlteration
from sim.protocol.messages.data import FetchRequest, ProduceRequest
from sim.protocol.messages.metadata import MetadataRequest
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.quotas.client import ClientQuotaConfig, ClientQuotas
from sim.units import MS, SECOND

SHOP = (("client-id", "shop"),)
DEFAULT = (("client-id", None),)
NOW = 100 * SECOND


def quotas(*, mutes=True, **values):
    made = ClientQuotas(ClientQuotaConfig({"shop-1": "shop", "shop-2": "shop"}, mutes=mutes))
    made.update({SHOP: values})
    return made


def wait(made, request, size, *, client="shop-1", thread_us=0, network_us=0, now=NOW):
    made.begin(1, client, request, size, thread_us)
    throttle = made.answered(1, network_us, now)
    return 0 if throttle is None else throttle.unmute_after_us


PRODUCE = ProduceRequest(-1, 30 * SECOND, ())
FETCH = FetchRequest(-1, -1, 0, 1, 1 << 20, 0, 0, ())


def test_a_client_waits_until_the_rate_would_be_back_at_its_bound():
    """15 MB in a window of ten seconds are half as much again as 1 MB/s: wait half a window."""
    assert wait(quotas(producer_byte_rate=1e6), PRODUCE, 15_000_000) == 5 * SECOND
    assert wait(quotas(producer_byte_rate=1e6), PRODUCE, 10_000_000) == 0


def test_clients_with_one_client_id_are_counted_together_and_brokers_not_at_all():
    made = quotas(producer_byte_rate=1e6)
    assert wait(made, PRODUCE, 10_000_000) == 0
    assert wait(made, PRODUCE, 1_000_000, client="shop-2") == SECOND
    assert wait(made, PRODUCE, 99_000_000, client="broker-2") == 0


def test_threads_time_counts_in_percent_of_one_thread_and_nobody_waits_longer_than_a_sample():
    """10 % of a second in each of ten seconds is one second of a thread."""
    made = quotas(request_percentage=10.0)
    assert wait(made, MetadataRequest(()), 50, thread_us=SECOND) == 0
    assert wait(made, MetadataRequest(()), 50, thread_us=50 * MS) == 500 * MS
    assert wait(made, MetadataRequest(()), 50, thread_us=5 * SECOND) == SECOND


def test_network_threads_count_for_the_next_request_and_unanswered_ones_are_exempt():
    made = quotas(request_percentage=10.0)
    silent = ProduceRequest(0, 30 * SECOND, ())
    assert wait(made, silent, 50, thread_us=9 * SECOND) == 0
    assert wait(made, FETCH, 50, network_us=2 * SECOND) == 0
    assert wait(made, FETCH, 50) == SECOND


def test_a_fetch_above_the_quota_gets_nothing_and_is_not_charged_for_it():
    made = quotas(consumer_byte_rate=1e6)
    made.begin(1, "shop-1", FETCH, 50, 0)
    assert made.holds_back(1, 15_000_000, NOW)
    assert made.answered(1, 0, NOW).unmute_after_us == 5 * SECOND
    made.begin(2, "shop-1", FETCH, 50, 0)
    assert not made.holds_back(2, 10_000_000, NOW)
    assert made.answered(2, 0, NOW) is None


def test_before_kip219_a_fetch_is_charged_and_its_answer_waits_with_its_records():
    made = quotas(mutes=False, consumer_byte_rate=1e6)
    made.begin(1, "shop-1", FETCH, 50, 0)
    assert not made.holds_back(1, 15_000_000, NOW)
    throttle = made.answered(1, 0, NOW)
    assert (throttle.answer_after_us, throttle.unmute_after_us) == (5 * SECOND, 5 * SECOND)
    assert throttle.throttle_time_us == 0
    made.begin(2, "shop-1", FETCH, 50, 0)
    made.holds_back(2, 0, NOW)
    assert made.answered(2, 0, NOW).answer_after_us == 5 * SECOND


def test_no_answer_may_have_more_than_the_window_allows():
    made = quotas(consumer_byte_rate=1_000.0)
    assert made.fetch_bytes_max("shop-1") == 10_000
    assert made.fetch_bytes_max("broker-2") > 1 << 60
    made.update({})
    assert made.fetch_bytes_max("shop-1") > 1 << 60


def altered(image, entity, *changes):
    decision = alter_client_quotas(
        image, AlterClientQuotasRequest((QuotaAlteration(entity, changes),))
    )
    for record in decision.records:
        image.replay(image.offset, 1, record)
    return decision


def test_the_controller_writes_what_is_new_and_the_image_follows():
    image = MetadataImage()
    assert len(altered(image, SHOP, ("producer_byte_rate", 5.0)).records) == 1
    assert altered(image, SHOP, ("producer_byte_rate", 5.0)).records == ()
    altered(image, DEFAULT, ("request_percentage", 12.5))
    copy = image.copy()
    altered(image, SHOP, ("producer_byte_rate", None))
    assert image.client_quotas == {DEFAULT: {"request_percentage": 12.5}}
    assert copy.client_quotas == {SHOP: {"producer_byte_rate": 5.0}, **image.client_quotas}
    loaded = MetadataImage()
    loaded.load(image.offset, 1, image_records(image))
    assert loaded.client_quotas == image.client_quotas


@pytest.mark.parametrize(
    ("entity", "changes"),
    [
        ((), (("producer_byte_rate", 5.0),)),
        ((("client-id", ""),), (("producer_byte_rate", 5.0),)),
        ((("ip", "10.0.0.1"),), (("producer_byte_rate", 5.0),)),
        ((("ip", "10.0.0.1"),), (("connection_creation_rate", 5.5),)),
        ((("ip", "10.0.0.1"), *SHOP), (("connection_creation_rate", 5.0),)),
        ((*SHOP, *SHOP), (("producer_byte_rate", 5.0),)),
        (SHOP, (("producer_byte_rate", 5.5),)),
        (SHOP, (("connection_creation_rate", 5.0),)),
        (SHOP, (("producer_byte_rate", 5.0), ("producer_byte_rate", 6.0))),
    ],
)
def test_the_controller_refuses_what_is_no_quota(entity, changes):
    decision = altered(MetadataImage(), entity, *changes)
    assert decision.records == ()
    assert [error for _, error in decision.response.errors] == [ErrorCode.INVALID_REQUEST]
