"""Violations of the invariants of authorisation, beside those of ``planted_rows``."""

from tests.checking.planted_rows import broken_by


def guarded(facts, *acls):
    """A broker with an authorizer, and ACLs of principal, operation and topic."""
    facts.row("principals", 1, "p-0", "User:shop", "p-0", 0, False, False)
    facts.row("principals", 1, "c-0", "User:billing", "c-0", -1, False, False)
    for principal, operation, topic in acls:
        acl_row(facts, "added", 1, principal, operation, topic)
    facts.row("acl_changes", 1, "settled", 1, *[""] * 7)
    authentication(facts, 1, "opened")
    authentication(facts, 1, "authenticated", "User:shop")
    admitted(facts, 1)
    token(facts, "none", "", "")
    token(facts, "applied")
    named(facts, 3)
    admitted(facts, 3, arrived_us=0)


def token(facts, change, found="token", owner="User:shop", expires_us=100_000):
    facts.row("delegation_tokens", 1, change, found, owner, expires_us, "", -1)


def named(facts, connection, owner="User:shop", principal="User:shop", expires_us=100_000):
    """A login with a token whose session the broker says ends long after."""
    authentication(facts, connection, "opened")
    facts.row("delegation_tokens", 1, "named", "token", owner, expires_us, "p-0", connection)
    authentication(facts, connection, "authenticated", principal, 900_000)


def authentication(facts, connection, event, principal="", expires_us=-1):
    facts.row("authentications", 1, "p-0", connection, event, "SASL_SSL", "PLAIN", principal,
              "NONE", expires_us)  # fmt: skip


def admitted(facts, connection, request="Produce", arrived_us=0):
    facts.row("admitted_requests", 1, "p-0", connection, request, arrived_us)


def acl_row(facts, change, version, principal, operation, topic, permission="allow"):
    facts.row("acl_changes", 1, change, version, principal, "*", operation, permission, "topic",
              topic, "literal")  # fmt: skip


@broken_by("writes-are-authorized")
def a_leader_appends_for_a_producer_whose_right_was_withdrawn(f):
    guarded(f, ("User:shop", "Write", "orders"))
    f.append(1)
    acl_row(f, "removed", 2, "User:shop", "Write", "orders")
    f.append(1)
    f.row("acl_changes", 1, "settled", 2, *[""] * 7)
    return lambda: f.append(1)


@broken_by("writes-are-authorized")
def a_leader_appends_although_another_acl_denies(f):
    guarded(f, ("User:shop", "Write", "orders"))
    acl_row(f, "added", 2, "User:*", "All", "*", "deny")
    f.row("acl_changes", 1, "settled", 2, *[""] * 7)
    return lambda: f.append(1)


@broken_by("reads-are-authorized")
def a_consumer_gets_what_was_appended_after_it_lost_the_right(f):
    guarded(f, ("User:shop", "Write", "orders"), ("User:billing", "Read", "orders"))
    f.replicate(10)
    f.watermark(10)
    acl_row(f, "removed", 2, "User:billing", "Read", "orders")
    f.row("acl_changes", 1, "settled", 2, *[""] * 7)
    f.replicate(10)
    f.watermark(20)
    f.read(0, 9)
    return lambda: f.read(10, 19)


@broken_by("clients-are-authenticated")
def a_request_of_a_connection_whose_login_has_failed_is_handled(f):
    guarded(f)
    authentication(f, 2, "opened")
    authentication(f, 2, "failed")
    return lambda: admitted(f, 2, "Metadata")


@broken_by("clients-are-authenticated")
def a_request_is_handled_on_another_connection_than_the_one_that_is_authenticated(f):
    guarded(f)
    authentication(f, 2, "opened")
    return lambda: admitted(f, 2)


@broken_by("clients-are-authenticated")
def a_broker_that_has_started_again_takes_a_new_connection_for_an_old_one(f):
    guarded(f)
    authentication(f, 1, "opened")
    return lambda: admitted(f, 1)


@broken_by("clients-are-authenticated")
def a_request_that_arrives_after_the_end_of_its_session_is_handled(f):
    guarded(f)
    authentication(f, 2, "opened")
    authentication(f, 2, "authenticated", "User:shop", 100)
    admitted(f, 2, arrived_us=100)
    return lambda: admitted(f, 2, arrived_us=101)


@broken_by("tokens-limit-sessions")
def a_request_that_arrives_after_the_end_of_its_token_is_handled(f):
    guarded(f)
    named(f, 4)
    admitted(f, 4, arrived_us=101_000)
    return lambda: admitted(f, 4, arrived_us=101_001)


@broken_by("tokens-limit-sessions")
def a_token_is_taken_that_was_removed(f):
    guarded(f)
    token(f, "removed")
    return lambda: named(f, 4)


@broken_by("tokens-limit-sessions")
def a_broker_that_has_started_again_takes_a_token_before_it_has_read_the_metadata(f):
    guarded(f)
    token(f, "none", "", "")
    return lambda: named(f, 4)


@broken_by("tokens-limit-sessions")
def a_client_with_a_token_is_taken_for_somebody_else(f):
    guarded(f)
    return lambda: named(f, 4, principal="User:billing")


@broken_by("tokens-limit-sessions")
def a_renewal_that_came_after_the_login_prolongs_its_session(f):
    guarded(f)
    named(f, 4)
    token(f, "applied", expires_us=500_000)
    return lambda: admitted(f, 4, arrived_us=200_000)
