"""Every test here needs Apache Kafka, brought by Maven; without Maven or Java it is skipped."""

import pytest

from tests.kafka import apache


@pytest.fixture(scope="session")
def kafka():
    """The kit, once everything is there."""
    if reason := apache.missing():
        pytest.skip(reason)
    apache.bring()
    return apache
