"""Every test here needs Apache Kafka, brought by Maven; without Maven or Java it is skipped."""

import pytest

from tests.kafka import apache
from tests.kafka.client_sockets import KafkaNetSocket, closing


@pytest.fixture(scope="session")
def kafka():
    """The kit, once everything is there."""
    if reason := apache.missing():
        pytest.skip(reason)
    apache.bring()
    KafkaNetSocket.sock_connect = closing
    return apache
