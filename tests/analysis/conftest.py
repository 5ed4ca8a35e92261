"""One Spark session for all tests of the analysis."""

import pytest

from analysis.spark import session


@pytest.fixture(scope="session")
def spark():
    with session.using("local[2]") as running:
        yield running
