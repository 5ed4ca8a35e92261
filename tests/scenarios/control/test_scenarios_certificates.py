"""Certificates that expire in mid-run: what goes on working, what does not, and what mends it.

Source: RFC 5280 and RFC 8446: a certificate is looked at in the handshake alone; reports of it are
confluentinc/confluent-kafka-python issue 797 (a consumer reads on after its certificate has
expired), banzaicloud/koperator issue 396 and strimzi/strimzi-kafka-operator issue 6649.
"""

import pytest

from sim.errors import ScenarioError
from sim.protocol.security.config import Certificate
from sim.scenario.loader import load_text
from sim.units import NEVER
from tests.scenarios.control.test_scenarios_security import events, listener, reader, shop
from tests.scenarios.run_kit import S, go, text_of

EXPIRY = 3 * S
REFUSED = "SSL_AUTHENTICATION_FAILED"
ONE = {"replication.factor": 1, "partitions": 1, "config": {}}
ALONE = {"brokers": 1, "config": {"offsets.topic.replication.factor": 1}}


def held(**more):
    """A client's certificate that expires after 3 s."""
    return {"certificate": {"subject": "CN=shop", "not.after": "3s", **more}}


def mutual(**certificate):
    more = {"certificate": certificate} if certificate else {}
    return listener("SSL", **{"ssl.client.auth": "required"}, **more)


def secured(tmp_path, security, clients, consumers=(), **more):
    more = {"lasts": "10s", "then": "stop", "topic": ONE, "cluster": {}} | more
    cluster = ALONE | {"security": security} | more.pop("cluster")
    return go(tmp_path, cluster=cluster, producers=clients, consumers=consumers, **more)


CRASH = [{"at": "5s", "do": "crash", "target": "broker-1", "for": "500ms"}]
"""It is in service again when its former session has ended, after 9 s at most."""

BACK = 15 * S


@pytest.fixture(scope="module")
def expired(tmp_path_factory):
    """Clients whose certificate expires, without and with a reason to connect again."""
    return secured(
        tmp_path_factory.mktemp("expired"),
        mutual(),
        [shop(held(), "SSL")],
        [reader(held(), "SSL", name="reader")],
        faults=CRASH,
        lasts="20s",
    )


def test_an_established_connection_outlives_the_certificate_it_was_made_with(expired):
    acked = [row["t_us"] for row in expired.rows("client_batches", outcome="ok")]
    assert 4_900_000 < max(acked) < 5 * S, "two seconds longer than the certificate"
    assert 4_900_000 < max(expired.times("reads")) < 5 * S


def test_the_outage_begins_when_the_client_connects_again(expired):
    """Each reason will do: here the broker ended, and came back."""
    later = [row for row in expired.rows("authentications") if row["t_us"] > 5 * S]
    assert {row["event"] for row in later} == {"opened", "failed"}
    assert {row["error"] for row in later if row["event"] == "failed"} == {REFUSED}
    [stopped] = expired.times("node_states", node="reader", state="stopped")
    assert 5_500_000 < stopped < BACK + 2 * S, "its poll raises SslAuthenticationException"
    # The producer has metadata: what it has taken waits for delivery.timeout.ms.
    assert not expired.rows("node_states", node="shop", state="stopped")
    assert {row["error"] for row in expired.rows("client_batches", outcome="failed")} <= {
        "NEVER_SENT", "NETWORK_EXCEPTION",
    }  # fmt: skip


def test_a_client_that_starts_again_reads_its_renewed_certificate(tmp_path):
    """Its keystore has had another one since 2 s; a process reads it once."""
    again = [{"at": "18s", "do": "restart", "target": "shop"}]
    ran = secured(
        tmp_path,
        mutual(),
        [shop(held(renewed="2s"), "SSL")],
        faults=[*CRASH, *again],
        lasts="25s",
    )
    assert events(ran, "shop", "failed")
    assert max(row["t_us"] for row in events(ran, "shop", "failed")) < 18 * S
    assert max(row["t_us"] for row in ran.rows("client_batches", outcome="ok")) > 20 * S


def late(name="late", start="4s"):
    return {**reader(None, "SSL", name=name), "start": start}


def test_with_an_expired_certificate_of_its_brokers_a_new_client_has_no_start(tmp_path):
    """Who was connected before notices nothing."""
    certificate = {"not.after": "3s"}
    ran = secured(tmp_path, listener("SSL", certificate=certificate), [shop(None, "SSL")], [late()])
    [stopped] = ran.times("node_states", node="late", state="stopped")
    assert 4 * S < stopped < 4 * S + 50_000
    assert not ran.rows("admitted_requests", client="late")
    batches = ran.rows("client_batches")
    assert {row["outcome"] for row in batches if row["t_us"] < 9 * S} == {"ok"}


def test_brokers_that_read_their_keystore_again_take_new_clients(tmp_path):
    certificate = {"not.after": "3s", "renewed": "5s", "reloaded": "6s"}
    clients = [late(), late("between", "5500ms"), late("after", "6500ms")]
    ran = secured(tmp_path, listener("SSL", certificate=certificate), [shop(None, "SSL")], clients)
    early = {row["node"] for row in ran.rows("node_states", state="stopped") if row["t_us"] < 6 * S}
    assert {"late", "between"} <= early, "a renewed file is not read by itself"
    assert "after" not in early
    assert ran.rows("admitted_requests", client="after")


def test_a_broker_that_starts_again_reads_its_keystore(tmp_path):
    certificate = {"not.after": "3s", "renewed": "4s"}
    ran = secured(
        tmp_path,
        listener("SSL", certificate=certificate),
        [shop(None, "SSL")],
        [late("before"), late("after", "16s")],
        faults=CRASH,
        lasts="20s",
    )
    assert not ran.rows("admitted_requests", client="before")
    assert ran.rows("admitted_requests", client="after")
    assert max(row["t_us"] for row in ran.rows("client_batches", outcome="ok")) > 19 * S


def test_validity_is_a_matter_of_the_clock_that_looks_at_it(tmp_path):
    """The client's clock is an hour ahead: for it the brokers' certificate has expired."""
    certificate = {"not.after": "30min"}
    jump = [{"at": "500ms", "do": "clock-jump", "target": "late", "by": "1h"}]
    ran = secured(
        tmp_path, listener("SSL", certificate=certificate), [shop(None, "SSL")],
        [late(start="1s")], faults=jump, lasts="4s",
    )  # fmt: skip
    assert not ran.rows("admitted_requests", client="late")
    assert {row["outcome"] for row in ran.rows("client_batches", outcome="failed")} == set()


def test_a_process_presents_what_its_file_had_when_it_read_it():
    certificate = Certificate("CN=x", not_after_us=50, renewed_us=40, reloaded_us=60)
    assert certificate.valid_until(10, 55) == 50
    assert certificate.valid_until(39, 59) == 50
    assert certificate.valid_until(40, 45) == NEVER
    assert certificate.valid_until(10, 60) == NEVER


@pytest.mark.parametrize(
    ("security", "login", "said"),
    [
        (listener(certificate={"not.after": "3s"}), None, "a certificate with SASL_PLAINTEXT"),
        (mutual(**{"not.after": "3s", "renewed": "5s", "reloaded": "4s"}), None, "read again"),
        (mutual(), {"certificate": {"subject": "CN=x", "renewed": "3s"}}, "without not.after"),
    ],
)
def test_what_means_nothing_is_refused(security, login, said):
    text = text_of(cluster={"security": security}, producers=[shop(login, "SSL")])
    with pytest.raises(ScenarioError, match=said):
        load_text(text, "refused")


def rolled(tmp_path, at, target):
    """Three brokers whose certificates for each other expire after 20 s; one is restarted.

    The file has had another certificate since 5 s.
    """
    certificate = {"not.after": "20s", "renewed": "5s"}
    security = listener("PLAINTEXT", **{"inter.broker.certificate": certificate})
    config = {"security.inter.broker.protocol": "SSL", "replica.lag.time.max.ms": 5_000}
    return go(
        tmp_path,
        cluster={"security": security, "config": config},
        producers=[shop(None, "PLAINTEXT")],
        topic={"partitions": 1},
        faults=[{"at": at, "do": "restart", "target": f"{target} of orders-0"}],
        lasts="45s",
        then="stop",
    )


def in_sync(ran, until):
    """Number of replicas in sync of the partition at an instant, by the controller."""
    rows = [row for row in ran.rows("partition_changes", topic="orders") if row["t_us"] <= until]
    return len(rows[-1]["in_sync"].split(","))


def acked(ran, since):
    return [row for row in ran.rows("client_batches", outcome="ok") if row["t_us"] > since]


def test_a_broker_with_a_new_certificate_and_those_with_the_expired_one_part_company(tmp_path):
    """strimzi/strimzi-kafka-operator issue 8878: rolled too late, replicas stay behind.

    What the others present is refused in both directions; they themselves fetch on connections
    that are older than the end of their certificates.
    """
    ran = rolled(tmp_path, "25s", "follower")
    assert in_sync(ran, 24 * S) == 3
    assert in_sync(ran, 45 * S) == 2
    assert acked(ran, 40 * S), "two of three in sync are enough"


def test_a_leader_that_is_restarted_too_late_takes_the_partition_with_it(tmp_path):
    """Its successor has had no connection from the third broker, and gets none."""
    ran = rolled(tmp_path, "25s", "leader")
    assert in_sync(ran, 24 * S) == 3
    assert in_sync(ran, 45 * S) == 1
    assert not acked(ran, 40 * S), "min.insync.replicas is 2"


@pytest.mark.parametrize("target", ["leader", "follower"])
def test_brokers_that_are_restarted_before_the_old_certificate_ends_stay_together(tmp_path, target):
    ran = rolled(tmp_path, "8s", target)
    assert in_sync(ran, 45 * S) == 3
    assert acked(ran, 40 * S)
