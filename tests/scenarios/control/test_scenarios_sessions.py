"""Sessions that end: clients authenticate again on their connections, or lose them (KIP-368)."""

from itertools import pairwise

import pytest

from sim.errors import InvariantBroken
from sim.nodes.process import authentication
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from tests.scenarios.control.test_scenarios_security import (
    RIGHT,
    events,
    listener,
    reader,
    secured,
    shop,
)
from tests.scenarios.run_kit import S, text_of

LIFETIME = 2 * S
SESSIONS = {"connections.max.reauth.ms": 2_000}


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """Clients of today, and one of 2.1 that knows nothing of it."""
    plain = RIGHT | {"sasl.mechanism": "PLAIN"}
    old = shop(RIGHT, name="old", **{"enable.idempotence": True}) | {"kafka": "2.1"}
    return secured(
        tmp_path_factory.mktemp("sessions"),
        listener(**SESSIONS),
        [shop(RIGHT), old, shop(plain, name="unacked", acks="0")],
        [reader(RIGHT)],
        lasts="10s",
    )


def connections(ran, client):
    """Instants at which each connection of a client was authenticated."""
    found = {}
    for row in events(ran, client, "authenticated"):
        found.setdefault((row["broker"], row["connection"]), []).append(row)
    return found


def test_a_client_authenticates_again_before_85_to_95_percent_of_its_session_are_over(sessions):
    """With the request that comes next: here there are 50 a second to three partitions."""
    busy = [rows for rows in connections(sessions, "shop").values() if len(rows) > 2]
    assert busy
    for rows in busy:
        for early, late in pairwise(rows):
            gap = late["t_us"] - early["t_us"]
            assert 0.85 * LIFETIME <= gap <= LIFETIME
            assert early["expires_us"] - early["t_us"] <= LIFETIME


def test_nobody_notices_it(sessions):
    rows = [row for row in sessions.rows("client_batches") if row["producer"] != "old"]
    assert {row["outcome"] for row in rows if row["t_us"] < 9 * S} == {"ok"}
    assert not events(sessions, "shop", "expired")
    assert not events(sessions, "shop", "failed")


def test_a_client_before_2_2_loses_its_connection_and_makes_another(sessions):
    """Its next request after the end closes it; what was in flight is sent again."""
    expired = events(sessions, "old", "expired")
    assert len(expired) > 3
    assert all(len(rows) == 1 for rows in connections(sessions, "old").values())
    done = sessions.rows("client_batches", producer="old")
    assert {row["outcome"] for row in done if row["t_us"] < 9 * S} == {"ok"}
    assert max(row["attempts"] for row in done) > 0


def test_the_check_met_its_subject(sessions):
    assert sessions.checked("clients-are-authenticated") > 500
    assert sessions.records["duplicated"] == sessions.records["lost_acked"] == 0


def test_planted_a_broker_that_forgets_the_end_of_sessions_breaks_the_invariant(
    tmp_path, monkeypatch
):
    old = shop(RIGHT) | {"kafka": "2.1"}
    text = text_of(cluster={"security": listener(**SESSIONS)}, producers=[old], lasts="4s")
    takes = authentication.Authentication.takes

    def forgets(self, call):
        session = self._sessions.get(call.link)
        if session is not None and session.authenticator.principal:
            return False
        return takes(self, call)

    monkeypatch.setattr(authentication.Authentication, "takes", forgets)
    with pytest.raises(InvariantBroken, match="whose session has ended"):
        run(load_text(text, "planted"), out=tmp_path / "run")
