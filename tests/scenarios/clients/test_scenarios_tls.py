"""TLS: what it costs brokers and clients, and what it does not change."""

import pytest

from sim.substrate.tls import RECORD_OVERHEAD, TlsSpec, sealed
from tests.scenarios.run_kit import S, go

SSL = {"security.protocol": "SSL"}
INTER_BROKER = {"security.inter.broker.protocol": "SSL"}
CONSUMER = {"name": "reader", "group": "none", "topics": ["orders"]}


def load(tmp_path, *, clients=(), brokers=(), cpu=()):
    """4 MB/s through one partition and one consumer."""
    return go(
        tmp_path, lasts="4s", topic={"partitions": 1},
        config={"num.network.threads": 1} | dict(brokers),
        producer={"rate": "100/s", "record.size": "40KB", "config": dict(clients)},
        consumers=[CONSUMER | {"config": dict(clients)}], cluster={"cpu": dict(cpu)},
    )  # fmt: skip


def network_busy(ran):
    """Service of all brokers' network threads in the busy seconds, in thousandths of a thread."""
    rows = ran.rows("load")
    chosen = [r for r in rows if r["node"].startswith("broker") and S < r["t_us"] <= 4 * S]
    return sum(row["network_threads_ratio"] for row in chosen)


def median(ran, which):
    return ran.verdict["latency_us"][which]["p50"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return load(tmp_path_factory.mktemp("plain"))


def test_tls_takes_network_threads_and_time_at_both_ends(plain, tmp_path):
    """40 kB are encrypted, decrypted, at 1 ns a byte: 80 us from producer to broker, 80 us on."""
    ran = load(tmp_path, clients=SSL)
    assert median(ran, "produce") - median(plain, "produce") >= 60
    assert median(ran, "end_to_end") - median(plain, "end_to_end") >= 120
    assert network_busy(ran) > 1.4 * network_busy(plain)
    assert ran.records["lost_acked"] == ran.records["duplicated"] == 0


def test_inter_broker_tls_makes_acks_all_wait_for_it_and_clients_speak_plaintext(plain, tmp_path):
    ran = load(tmp_path, brokers=INTER_BROKER)
    assert median(ran, "produce") - median(plain, "produce") >= 60
    assert network_busy(ran) > 1.4 * network_busy(plain)


def test_with_a_processor_that_encrypts_for_nothing_only_the_handshake_is_left(plain, tmp_path):
    """The limit; the planted defect of TLS without cost looks the same."""
    free = {"tls.bytes": "1000000GB/s", "tls.handshake": "0us"}
    ran = load(tmp_path, clients=SSL, brokers=INTER_BROKER, cpu=free)
    assert abs(median(ran, "produce") - median(plain, "produce")) < 60


def test_an_encrypted_connection_takes_another_round_trip_and_the_servers_time(tmp_path, plain):
    ran = load(tmp_path, clients=SSL, cpu={"tls.handshake": "50ms"})

    def first_fetch(which):
        rows = which.rows("requests", client="reader")
        return (
            min(row["arrived_us"] for row in rows)
            - which.rows("node_states", node="reader")[0]["t_us"]
        )

    assert 50_000 <= first_fetch(ran) - first_fetch(plain) < 60_000


def test_a_record_layer_adds_its_bytes():
    assert sealed(100) == 100 + RECORD_OVERHEAD
    assert sealed(16_384) == 16_384 + RECORD_OVERHEAD
    assert sealed(16_385) == 16_385 + 2 * RECORD_OVERHEAD
    assert TlsSpec().crypt_us(1_000_000) == 1_000
