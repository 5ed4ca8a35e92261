"""One server for the tests that need no other, and a run that loses records."""

import pytest

from tests.mcp.served import ROOT, TINY, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("root"), "--read", ROOT / "scenarios") as served:
        yield served


@pytest.fixture(scope="session")
def ran(server):
    """A run that loses records, with its progress."""
    found, steps = server("run", scenario=TINY, name="tiny")
    assert not found.is_error, found.content[0].text
    return found.structured_content, steps
