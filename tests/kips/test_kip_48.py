"""KIP-48: a delegation token is a secret of its owner's that ends, for applications without his.

Who is logged in by other means may have a token made, and is its owner. Owner and renewers may give
it a later end, up to its greatest lifetime, or an earlier one. Nobody who is logged in with a token
may do any of that. The controller keeps tokens in the metadata log since 3.6 (KAFKA-15219), and
removes those that have ended; brokers take those that they have replayed.
"""

from dataclasses import replace

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.controller.rights.tokens import TIMER, swept
from sim.protocol.controller.types import ControllerConfig
from sim.protocol.effects import CancelTimer, SetTimer
from sim.protocol.events import TimerFired
from sim.protocol.kraft.metadata_snapshot import image_records
from sim.protocol.kraft.types import LeadershipChanged
from sim.protocol.messages.security import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    TokenRequester,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import DelegationTokenRecord, RemoveDelegationTokenRecord
from sim.protocol.metadata.versions import DELEGATION_TOKENS
from sim.protocol.security.tokens import NamedToken, TokenConfig
from sim.records import metadata as codec
from sim.units import SECOND, timestamp_ms
from tests.protocol.controller.controller_kit import Desk

SECRET = "hush"
OWNER, RENEWER, STRANGER = (f"User:{name}" for name in ("shop", "ops", "eve"))
TOKEN = NamedToken("orders", OWNER, SECRET, (RENEWER,))
LIFE_S, EXPIRY_S, CHECK_S = 60, 20, 7
CONFIG = TokenConfig(SECRET, LIFE_S * 1_000, EXPIRY_S * 1_000, CHECK_S * 1_000)


def desk(*, made=True, level=DELEGATION_TOKENS, config=CONFIG):
    found = Desk(metadata_version=level, tokens=config, elr=False)
    if made:
        assert found.ask(TOKEN.creation()).error is E.NONE
    return found


def at(seconds):
    return timestamp_ms(seconds * SECOND)


def token(found):
    return found.controller.committed.tokens.get(TOKEN.token_id)


def renew(found, by=RENEWER, period_s=None, hmac=TOKEN.hmac, **more):
    period_ms = -1 if period_s is None else period_s * 1_000
    return found.ask(RenewDelegationTokenRequest(hmac, TokenRequester(by, **more), period_ms))


def expire(found, by=OWNER, period_s=None, hmac=TOKEN.hmac, **more):
    period_ms = -1 if period_s is None else period_s * 1_000
    return found.ask(ExpireDelegationTokenRequest(hmac, TokenRequester(by, **more), period_ms))


def create(found, lifetime_s=None, renewers=(), **more):
    lifetime_ms = -1 if lifetime_s is None else lifetime_s * 1_000
    requester = TokenRequester(OWNER, **more)
    return found.ask(CreateDelegationTokenRequest("id", requester, renewers, lifetime_ms))


def test_who_requests_a_token_owns_it_and_gets_its_hmac():
    found = desk(made=False)
    answer = found.ask(TOKEN.creation())
    assert answer.hmac == TOKEN.hmac
    assert token(found) == DelegationTokenRecord(
        OWNER, OWNER, (RENEWER,), at(0), at(LIFE_S), at(EXPIRY_S), TOKEN.token_id
    )
    assert (answer.issue_ms, answer.max_ms, answer.expiry_ms) == (at(0), at(LIFE_S), at(EXPIRY_S))


@pytest.mark.parametrize(("asked", "greatest", "end"), [
    (None, LIFE_S, EXPIRY_S), (30, 30, EXPIRY_S), (5, 5, 5), (900, LIFE_S, EXPIRY_S),
])  # fmt: skip
def test_a_lifetime_is_what_was_asked_for_or_the_setting_if_that_is_less(asked, greatest, end):
    answer = create(desk(made=False), asked)
    assert (answer.max_ms, answer.expiry_ms) == (at(greatest), at(end))


@pytest.mark.parametrize("by", [OWNER, RENEWER])
@pytest.mark.parametrize(("period", "end"), [(None, 10 + EXPIRY_S), (5, 15), (40, 10 + EXPIRY_S)])
def test_owner_and_renewers_give_it_an_end_that_counts_from_the_request(by, period, end):
    found = desk()
    found.now = 10 * SECOND
    answer = renew(found, by, period)
    assert (answer.error, answer.expiry_ms) == (E.NONE, at(end))
    assert token(found).expiry_ms == at(end)
    assert token(found).max_ms == at(LIFE_S)


def test_no_renewal_goes_beyond_the_greatest_lifetime():
    found = desk()
    for now in (15, 30, 45):
        found.now = now * SECOND
        assert renew(found).error is E.NONE
    assert token(found).expiry_ms == at(LIFE_S)


@pytest.mark.parametrize("change", [renew, expire])
def test_nobody_else_may_change_it(change):
    found = desk()
    assert change(found, by=STRANGER).error is E.DELEGATION_TOKEN_OWNER_MISMATCH
    assert token(found).expiry_ms == at(EXPIRY_S)


@pytest.mark.parametrize("change", [renew, expire])
def test_an_hmac_of_no_token_finds_none(change):
    found = desk()
    other = NamedToken("orders", OWNER, "another key").hmac
    assert change(found, hmac=other).error is E.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_that_has_expired_cannot_be_renewed_even_before_it_is_swept():
    found = desk()
    found.now = EXPIRY_S * SECOND
    assert renew(found, period_s=1).error is E.NONE, "its last millisecond"
    found.now = (EXPIRY_S + 2) * SECOND
    assert renew(found).error is E.DELEGATION_TOKEN_EXPIRED
    assert renew(found, by=STRANGER).error is E.DELEGATION_TOKEN_EXPIRED
    assert token(found) is not None


def test_it_can_be_given_an_earlier_end_or_be_removed_at_once():
    found = desk()
    assert expire(found, RENEWER, 5).expiry_ms == at(5)
    assert token(found).expiry_ms == at(5)
    found.now = 6 * SECOND
    assert expire(found, period_s=5).error is E.DELEGATION_TOKEN_EXPIRED
    assert expire(found).expiry_ms == at(6), "even after its end"
    assert token(found) is None
    assert renew(found).error is E.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize("request_of", [create, renew, expire])
def test_a_connection_that_is_logged_in_with_a_token_may_request_nothing(request_of):
    found = desk()
    answer = request_of(found, by_token=True)
    assert answer.error is E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert token(found).expiry_ms == at(EXPIRY_S)


@pytest.mark.parametrize("request_of", [create, renew, expire])
def test_without_a_secret_key_there_are_no_tokens(request_of):
    found = desk(made=False, config=None)
    assert request_of(found).error is E.DELEGATION_TOKEN_AUTH_DISABLED
    assert TIMER not in found.timers


@pytest.mark.parametrize("request_of", [create, renew, expire])
def test_below_metadata_version_3_6_iv2_there_are_none_either(request_of):
    found = desk(made=False, level=DELEGATION_TOKENS - 1)
    assert request_of(found).error is E.UNSUPPORTED_VERSION
    assert not found.controller.image.tokens


def test_renewers_are_users():
    found = desk(made=False)
    assert create(found, renewers=("Group:ops",)).error is E.INVALID_PRINCIPAL_TYPE
    assert not found.controller.image.tokens


def test_the_active_controller_removes_what_has_expired_at_its_interval():
    found = desk()
    found.pass_time(3 * CHECK_S * SECOND - 1)
    assert token(found) is not None, "a second after its end nobody has looked yet"
    found.pass_time(3 * CHECK_S * SECOND)
    assert token(found) is None
    assert found.timers[TIMER] == 4 * CHECK_S * SECOND


def test_a_controller_that_is_not_active_any_more_sweeps_nothing():
    found = desk()
    effects = found.controller.handle(LeadershipChanged(2, 3002, is_leader=False), found.now)
    assert CancelTimer(TIMER) in effects


def test_a_sweep_removes_a_thousand_and_begins_again():
    def ended(number):
        return DelegationTokenRecord(OWNER, OWNER, (), at(0), at(1), at(1), str(number))

    tokens = {str(number): ended(number) for number in range(1_001)}
    assert len(swept(tokens, 2 * SECOND, 1_000)) == 1_000
    assert len(swept(tokens, 2 * SECOND, None)) == 1_001
    assert swept(tokens, SECOND, 1_000) == ()


@pytest.mark.parametrize(("most", "left"), [(1, 2), (None, 0)])
def test_before_4_0_one_sweep_removes_all_and_since_then_so_many(most, left):
    """Planted: one token is as many as a sweep of 4.x removes."""
    found = desk(made=False, config=replace(CONFIG, sweep_max=most))
    for name in ("one", "two", "three"):
        made = NamedToken(name, OWNER, SECRET, ()).creation()
        assert found.ask(made).error is E.NONE
    found.now = 3 * CHECK_S * SECOND
    effects = found.controller.handle(TimerFired(TIMER), found.now)
    assert len(found.controller.image.tokens) == left
    again = next(each for each in effects if isinstance(each, SetTimer) and each.name == TIMER)
    assert again.at == found.now + (CHECK_S * SECOND if most is None else 0)


def test_two_requests_that_overlap_do_not_see_each_other():
    """Kafka looks tokens up in what it has published, which is committed."""
    found = desk()
    found.commits = False
    expire(found)
    renew(found)
    assert len(found.appended) == 2
    found.commit()
    assert token(found) is not None, "the renewal was written after the removal"


def test_tokens_are_in_snapshots_and_in_bytes():
    found = desk()
    renew(found)
    image = found.controller.image
    again = MetadataImage()
    again.load(image.offset, image.epoch, tuple(image_records(image)))
    assert again.tokens == image.tokens == {TOKEN.token_id: token(found)}
    for record in (token(found), RemoveDelegationTokenRecord(TOKEN.token_id)):
        assert codec.decode_record(codec.encode_record(record)) == record


def test_settings_are_those_of_kafka():
    assert TokenConfig(SECRET) == TokenConfig(SECRET, 604_800_000, 86_400_000, 3_600_000)
    assert ControllerConfig().tokens is None
