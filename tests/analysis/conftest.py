"""One Spark session for all tests of the analysis."""

import pytest

from analysis.spark import session


@pytest.fixture(scope="session")
def spark():
    with session.using("local[2]", is_long=True) as running, session.fitted(running, 0):
        yield running
