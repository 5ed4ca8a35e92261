"""Logins with delegation tokens: what a broker takes, and how long the session lasts."""

from dataclasses import replace

import pytest

from sim.error_codes import ErrorCode
from sim.protocol.messages.metadata import MetadataRequest
from sim.protocol.messages.security import SaslHandshakeRequest
from sim.protocol.metadata.records import DelegationTokenRecord
from sim.protocol.security.client import SaslClientAuthenticator
from sim.protocol.security.config import SCRAM, ClientSecurity, ListenerSecurity
from sim.protocol.security.mechanisms import ScramClient
from sim.protocol.security.server import ServerAuthenticator
from sim.protocol.security.tokens import (
    NamedToken,
    TokenCache,
    hmac_of,
    password_of,
    token_id,
)
from sim.units import MS, NEVER, SECOND, timestamp_ms

SECRET = "hush"
ID = token_id("orders")
RECORD = DelegationTokenRecord(
    "User:shop", "User:shop", (), timestamp_ms(0), timestamp_ms(60 * SECOND),
    timestamp_ms(10 * SECOND), ID,
)  # fmt: skip
REFUSED = ErrorCode.SASL_AUTHENTICATION_FAILED


def cache(*records):
    found = TokenCache(SECRET)
    found.update({record.token_id: record for record in records})
    return found


def server(tokens, **more):
    listener = ListenerSecurity(
        "SASL_PLAINTEXT", {}, tuple(SCRAM), {"shop": "secret"}, token_secret=SECRET, **more
    )
    return ServerAuthenticator(listener, None, "nonce", tokens, encrypted=False)


def client(mechanism="SCRAM-SHA-256", *, secret=SECRET, user=ID, token=ID):
    password = password_of(secret, ID)
    credentials = ClientSecurity("SASL_PLAINTEXT", mechanism, user, password, token=token)
    return SaslClientAuthenticator(credentials, "n", 0.5)


def log_in(ours, theirs, now=0, offset=0, *, again=False):
    """The last step of the client in an exchange at an instant."""
    request, step = ours.begin_again() if again else ours.begin(), None
    while request is not None:
        verdict = theirs.receive(request, now, offset)
        assert verdict.response is not None
        step = ours.receive(verdict.response)
        request = step.request
    return step


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_client_with_a_token_is_its_owner(mechanism):
    theirs = server(cache(RECORD))
    assert log_in(client(mechanism), theirs).error is ErrorCode.NONE
    assert theirs.principal == "User:shop"
    assert theirs.receive(MetadataRequest(()), 1).passes


def test_the_first_message_has_the_extension_of_kip_48():
    plain = ScramClient(ClientSecurity("SASL_PLAINTEXT", "SCRAM-SHA-256", ID, "x", token=ID), "n")
    assert plain.first() == f"n,,n={ID},r=n,tokenauth=true".encode()


def test_the_password_is_the_hmac_of_the_id_by_sha_512():
    assert len(hmac_of(SECRET, ID)) == 64
    assert hmac_of(SECRET, ID) != hmac_of("other", ID)
    assert NamedToken("orders", "User:shop", SECRET).hmac == hmac_of(SECRET, ID)


@pytest.mark.parametrize(
    ("tokens", "how"),
    [
        (cache(), {}),
        (cache(RECORD), {"secret": "other"}),
        (cache(RECORD), {"token": ""}),
        (cache(RECORD), {"user": "shop"}),
    ],
    ids=["unknown", "wrong key", "without the extension", "a user by the extension"],
)
def test_a_token_that_is_not_one_is_refused_as_a_wrong_password_is(tokens, how):
    theirs = server(tokens)
    assert log_in(client(**how), theirs).error is REFUSED
    assert theirs.principal == ""


def test_a_session_ends_with_the_token():
    theirs = server(cache(RECORD))
    step = log_in(client(), theirs, now=4 * SECOND)
    assert theirs.session_until == 10 * SECOND
    assert step.session_us == int(0.9 * 6 * SECOND)
    assert theirs.receive(MetadataRequest(()), 10 * SECOND).passes
    assert theirs.receive(MetadataRequest(()), 10 * SECOND + 1).expired


@pytest.mark.parametrize(("limit", "until"), [(2, 6), (60, 10)])
def test_the_shorter_of_token_and_setting_limits_the_session(limit, until):
    theirs = server(cache(RECORD), max_reauth_us=limit * SECOND)
    log_in(client(), theirs, now=4 * SECOND)
    assert theirs.session_until == until * SECOND


def test_an_expired_token_logs_in_until_it_is_removed_and_its_session_ends_at_once():
    tokens = cache(RECORD)
    theirs = server(tokens)
    step = log_in(client(), theirs, now=11 * SECOND)
    assert (step.error, step.session_us) == (ErrorCode.NONE, 0)
    assert theirs.receive(MetadataRequest(()), 11 * SECOND + 1).expired
    tokens.update({})
    assert log_in(client(), server(tokens), now=12 * SECOND).error is REFUSED


def test_a_token_s_end_is_a_matter_of_the_broker_s_clock():
    ahead = server(cache(RECORD))
    log_in(client(), ahead, now=4 * SECOND, offset=3 * SECOND)
    assert ahead.session_until == 7 * SECOND


def test_a_renewal_counts_from_the_next_exchange_on():
    tokens = cache(RECORD)
    theirs = server(tokens)
    log_in(client(), theirs)
    tokens.update({ID: replace(RECORD, expiry_ms=timestamp_ms(30 * SECOND))})
    assert theirs.session_until == 10 * SECOND
    log_in(client(), theirs, now=9 * SECOND, again=True)
    assert theirs.session_until == 30 * SECOND


def test_a_second_exchange_within_a_second_is_refused_as_any_other():
    theirs = server(cache(RECORD))
    log_in(client(), theirs)
    log_in(client(), theirs, now=8 * SECOND, again=True)
    again = theirs.receive(SaslHandshakeRequest("SCRAM-SHA-256"), 8 * SECOND + 999 * MS)
    assert again.response.error is ErrorCode.ILLEGAL_SASL_STATE


def test_removal_of_a_token_leaves_sessions_alone():
    tokens = cache(RECORD)
    theirs = server(tokens)
    log_in(client(), theirs)
    tokens.update({})
    assert theirs.receive(MetadataRequest(()), 9 * SECOND).passes
    step = log_in(client(), theirs, now=9 * SECOND, again=True)
    assert step.error is REFUSED


def test_a_user_with_a_password_has_no_session_that_ends():
    theirs = server(cache(RECORD))
    security = ClientSecurity("SASL_PLAINTEXT", "SCRAM-SHA-256", "shop", "secret")
    log_in(SaslClientAuthenticator(security, "n"), theirs)
    assert (theirs.principal, theirs.session_until) == ("User:shop", NEVER)


def test_a_cache_says_what_an_update_has_changed():
    tokens = TokenCache(SECRET)
    assert tokens.update({ID: RECORD}).applied == (RECORD,)
    renewed = replace(RECORD, expiry_ms=RECORD.expiry_ms + 1)
    update = tokens.update({ID: renewed})
    assert (update.applied, update.removed) == ((renewed,), ())
    assert tokens.update({ID: renewed}).applied == ()
    update = tokens.update({})
    assert (update.applied, update.removed) == ((), (renewed,))
    assert tokens.of(ID) is None
