"""SASL's exchanges against the examples of their RFCs, and both ends against each other."""

from base64 import b64encode

import pytest

from sim.error_codes import ErrorCode
from sim.protocol.messages.metadata import MetadataRequest
from sim.protocol.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from sim.protocol.messages.voters import ApiVersionsRequest
from sim.protocol.security import scram
from sim.protocol.security.client import SaslClientAuthenticator
from sim.protocol.security.config import MECHANISMS, Certificate, ClientSecurity, ListenerSecurity
from sim.protocol.security.mechanisms import Failed, PlainServer, ScramClient, ScramServer
from sim.protocol.security.server import ServerAuthenticator
from sim.protocol.security.tokens import TokenCache
from sim.units import SECOND

USERS = {"shop": "shop-secret", "a,b=c": "odd"}


def listener(protocol="SASL_PLAINTEXT", mechanisms=MECHANISMS, **more):
    return ListenerSecurity(protocol, {}, mechanisms, USERS, **more)


def server(security=None, certificate=None, *, encrypted=False):
    return ServerAuthenticator(
        security or listener(), certificate, "3rfc", TokenCache(""), encrypted=encrypted
    )


def client(mechanism="PLAIN", user="shop", password="shop-secret"):
    return SaslClientAuthenticator(ClientSecurity("SASL_PLAINTEXT", mechanism, user, password), "n")


def talk(ours, theirs):
    """Requests of an exchange by name, and what the client makes of the last response."""
    request, said = ours.begin(), []
    while request is not None:
        said.append(type(request).__name__)
        verdict = theirs.receive(request, 0)
        if verdict.response is None:
            return said, verdict.error
        step = ours.receive(verdict.response)
        if step.error is not ErrorCode.NONE:
            return said, step.error
        request = step.request
    return said, ErrorCode.NONE


def test_scram_computes_what_rfc_7677_has_in_its_example():
    ours = ScramClient(
        ClientSecurity("SASL_SSL", "SCRAM-SHA-256", "user", "pencil"), "rOprNGfwEbeRWgbNEkqO"
    )
    assert ours.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    first = (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert ours.answer(first) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert ours.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None
    other = ScramServer("SCRAM-SHA-256", {"user": "pencil"}, "x", TokenCache(""))
    other.answer(ours.first())
    signed = b64encode(b"\0" * 32)
    with pytest.raises(Failed):
        ours.answer(b"v=" + signed)


def test_a_server_of_scram_accepts_the_proof_of_rfc_7677(monkeypatch):
    salt = scram.from_text("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = scram.salted_password("SCRAM-SHA-256", "pencil", salt)
    keys = [scram.sign("SCRAM-SHA-256", salted, text) for text in (b"Client Key", b"Server Key")]
    kept = scram.ScramCredential(salt, scram.hashed("SCRAM-SHA-256", keys[0]), keys[1])
    monkeypatch.setattr(scram, "credential", lambda *_: kept)
    nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    theirs = ScramServer("SCRAM-SHA-256", {"user": "pencil"}, nonce, TokenCache(""))
    theirs.answer(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    answered = theirs.answer(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert answered == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert theirs.is_complete
    assert theirs.user == "user"


def test_plain_sends_user_and_password_as_rfc_4616_has_it():
    theirs = PlainServer({"tim": "tanstaaftanstaaf"})
    assert theirs.answer(b"\0tim\0tanstaaftanstaaf") == b""
    assert theirs.user == "tim"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", USERS)
def test_both_ends_agree_with_the_right_password(mechanism, user):
    theirs = server()
    said, error = talk(client(mechanism, user, USERS[user]), theirs)
    tokens = 1 if mechanism == "PLAIN" else 2
    assert said == ["ApiVersionsRequest", "SaslHandshakeRequest"] + tokens * [
        "SaslAuthenticateRequest"
    ]
    assert (error, theirs.principal) == (ErrorCode.NONE, f"User:{user}")
    assert theirs.receive(MetadataRequest(()), 0).passes


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "tokens"), [("shop", 2), ("nobody", 1)])
def test_a_wrong_password_fails_and_so_does_a_user_that_does_not_exist(mechanism, user, tokens):
    theirs = server()
    said, error = talk(client(mechanism, user, "wrong"), theirs)
    assert error is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert said.count("SaslAuthenticateRequest") == (1 if mechanism == "PLAIN" else tokens)
    assert not theirs.principal


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are():
    theirs = server(listener(mechanisms=("SCRAM-SHA-512",)))
    verdict = theirs.receive(SaslHandshakeRequest("PLAIN"), 0)
    assert verdict.error is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert verdict.response == SaslHandshakeResponse(verdict.error, ("SCRAM-SHA-512",))


@pytest.mark.parametrize("before", [0, 1, 2])
def test_any_other_request_before_the_end_of_an_exchange_ends_it(before):
    theirs = server()
    for request in (ApiVersionsRequest(), SaslHandshakeRequest("PLAIN"))[:before]:
        assert theirs.receive(request, 0).error is ErrorCode.NONE
    verdict = theirs.receive(MetadataRequest(()), 0)
    assert verdict.error is ErrorCode.ILLEGAL_SASL_STATE
    assert verdict.response is None
    assert not verdict.passes


def test_a_token_before_a_handshake_is_no_login():
    verdict = server().receive(SaslAuthenticateRequest(b"\0shop\0shop-secret"), 0)
    assert verdict.error is ErrorCode.ILLEGAL_SASL_STATE


def test_a_listener_without_sasl_answers_its_handshake_with_illegal_sasl_state():
    said, error = talk(client(), server(listener("PLAINTEXT", ())))
    assert said == ["ApiVersionsRequest", "SaslHandshakeRequest"]
    assert error is ErrorCode.ILLEGAL_SASL_STATE


SHOP = Certificate("CN=shop,O=Acme")
STRANGER = Certificate("CN=shop,O=Acme", is_trusted=False)


@pytest.mark.parametrize(
    ("asked", "certificate", "principal"),
    [
        ("none", None, "User:ANONYMOUS"),
        ("none", SHOP, "User:ANONYMOUS"),
        ("none", STRANGER, "User:ANONYMOUS"),
        ("requested", None, "User:ANONYMOUS"),
        ("requested", SHOP, "User:CN=shop,O=Acme"),
        ("requested", STRANGER, ""),
        ("required", None, ""),
        ("required", SHOP, "User:CN=shop,O=Acme"),
        ("required", STRANGER, ""),
    ],
)
def test_the_principal_of_tls_is_the_subject_of_a_certificate_that_is_asked_for(
    asked, certificate, principal
):
    theirs = server(listener("SSL", (), client_auth=asked), certificate, encrypted=True)
    verdict = theirs.receive(MetadataRequest(()), 0)
    assert verdict.passes == bool(principal)
    assert verdict.alerts == (not principal)
    assert theirs.principal == principal


def test_a_client_without_tls_gets_no_answer_of_a_listener_with_it():
    verdict = server(listener("SSL", ())).receive(MetadataRequest(()), 0)
    assert (verdict.error, verdict.alerts) == (ErrorCode.SSL_AUTHENTICATION_FAILED, False)
    assert verdict.response is None


def test_the_sentence_of_a_failure_does_not_say_whether_the_user_exists():
    said = {
        theirs.receive(SaslAuthenticateRequest(token), 0).response
        for token in (b"\0shop\0wrong", b"\0nobody\0wrong")
        for theirs in [server()]
        if theirs.receive(SaslHandshakeRequest("PLAIN"), 0).response
    }
    [response] = said
    assert isinstance(response, SaslAuthenticateResponse)
    assert response.error is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_handshake_sooner_than_a_second_after_the_last_is_illegal():
    theirs = server(listener(max_reauth_us=10 * SECOND))
    assert talk(client(), theirs)[1] is ErrorCode.NONE
    login = SaslAuthenticateRequest(b"\0shop\0shop-secret")
    for now, error in ((5, 0), (5.9, ErrorCode.ILLEGAL_SASL_STATE), (6, 0)):
        verdict = theirs.receive(SaslHandshakeRequest("PLAIN"), int(now * SECOND))
        assert isinstance(verdict.response, SaslHandshakeResponse)
        assert verdict.response.error == error
        if not error:
            assert theirs.receive(login, int(now * SECOND)).logs_in


def test_a_session_ends_after_its_lifetime_and_an_exchange_prolongs_it():
    theirs = server(listener(max_reauth_us=10 * SECOND))
    talk(client(), theirs)
    assert theirs.receive(MetadataRequest(()), 10 * SECOND).passes
    assert theirs.receive(MetadataRequest(()), 10 * SECOND + 1).expired
    # A client that is too late for another request may still authenticate.
    assert theirs.receive(SaslHandshakeRequest("PLAIN"), 11 * SECOND).response is not None
    login = SaslAuthenticateRequest(b"\0shop\0shop-secret")
    assert theirs.receive(login, 11 * SECOND).logs_in
    assert theirs.receive(MetadataRequest(()), 21 * SECOND).passes


def test_an_exchange_that_fails_ends_a_session_that_was_good():
    theirs = server(listener(max_reauth_us=10 * SECOND))
    talk(client(), theirs)
    theirs.receive(SaslHandshakeRequest("PLAIN"), 5 * SECOND)
    verdict = theirs.receive(SaslAuthenticateRequest(b"\0shop\0wrong"), 5 * SECOND)
    assert verdict.error is ErrorCode.SASL_AUTHENTICATION_FAILED
