"""The authorizer against a model that was written apart, and the claims of Kafka's class."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.checking.invariants.rights import is_allowed
from sim.protocol.acls import OPERATIONS, RESOURCE_TYPES, Acl, Authorizer

NAMES = ["a", "ab", "abc", "b", "*"]
USERS = ["User:x", "User:y", "User:*"]
WORDS = ["Read", "Write", "Delete", "Alter", "Describe", "DescribeConfigs", "AlterConfigs", "All"]

acls = st.lists(
    st.builds(
        Acl,
        st.sampled_from(["topic", "group"]),
        st.sampled_from(NAMES),
        st.sampled_from(["literal", "prefixed"]),
        st.sampled_from(USERS),
        st.sampled_from(["h1", "h2", "*"]),
        st.sampled_from(WORDS),
        st.sampled_from(["allow", "deny"]),
    ),
    max_size=6,
)


def naive(entries, default, principal, host, operation, kind, name):
    """KIP-11 and KIP-290 in their own words: every entry is looked at, in three questions."""
    about = [
        e
        for e in entries
        if e.resource_type == kind
        and (
            name[: len(e.resource_name)] == e.resource_name
            if e.pattern == "prefixed"
            else e.resource_name in {name, "*"}
        )
    ]
    if not about:
        return default
    own = [e for e in about if e.principal in {principal, "User:*"} and e.host in {host, "*"}]
    if any(e.permission == "deny" and e.operation in {operation, "All"} for e in own):
        return False
    enough = {operation, "All"}
    if operation == "Describe":
        enough |= {"Read", "Write", "Delete", "Alter"}
    if operation == "DescribeConfigs":
        enough |= {"AlterConfigs"}
    return any(e.permission == "allow" and e.operation in enough for e in own)


@settings(max_examples=400, deadline=None)
@given(
    entries=acls,
    default=st.booleans(),
    principal=st.sampled_from(USERS[:2]),
    host=st.sampled_from(["h1", "h3"]),
    operation=st.sampled_from(WORDS[:-1]),
    kind=st.sampled_from(["topic", "group"]),
    name=st.sampled_from(NAMES[:-1]),
)
def test_it_decides_as_a_naive_model_does(
    entries, default, principal, host, operation, kind, name
):  # fmt: skip
    authorizer = Authorizer((), allows_by_default=default)
    authorizer.update(entries)
    expected = naive(entries, default, principal, host, operation, kind, name)
    assert authorizer.allows(principal, host, operation, kind, name) is expected
    assert authorizer.allows(principal, host, operation, kind, name) is expected, "from its cache"
    if kind == "topic" and operation in {"Read", "Write"}:
        row = (0, 1, "c", principal, host, -1, False, default)
        told = [
            (e.principal, e.host, e.operation, e.permission, e.resource_type, e.resource_name,
             e.pattern)
            for e in entries
        ]  # fmt: skip
        assert is_allowed(told, row, operation, name) is expected, "the check's own rule"


@settings(max_examples=300, deadline=None)
@given(entries=acls, principal=st.sampled_from(USERS[:2]), host=st.sampled_from(["h1", "h3"]))
def test_a_right_on_some_topic_is_found_if_any_short_name_has_it(entries, principal, host):
    """Of names that can be written with the letters of the patterns, and one more."""
    authorizer = Authorizer(())
    authorizer.update(entries)
    names = [*NAMES[:-1], "abcz", "abz", "az", "bz", "z"]
    some = any(authorizer.allows(principal, host, "Write", "topic", name) for name in names)
    assert authorizer.allows_any(principal, host, "Write", "topic") or not some


def authorizer(*entries, **options):
    made = Authorizer(("User:root",), **options)
    made.update(entries)
    return made


def entry(principal="User:x", operation="Read", permission="allow", name="a", pattern="literal"):
    return Acl("topic", name, pattern, principal, "*", operation, permission)


def test_an_acl_that_denies_wins_over_any_that_allows():
    made = authorizer(entry(), entry("User:*", "All"), entry("User:*", permission="deny", name="*"))
    assert not made.allows("User:x", "h", "Read", "topic", "a")


def test_an_acl_that_denies_implies_nothing():
    made = authorizer(entry(operation="Read", permission="deny"), entry(operation="Write"))
    assert made.allows("User:x", "h", "Describe", "topic", "a")


def test_a_super_user_is_never_refused():
    made = authorizer(entry("User:*", "All", "deny", "*"))
    assert made.allows("User:root", "h", "Write", "topic", "a")


def test_the_default_is_for_resources_without_any_acl_alone():
    made = authorizer(entry("User:y"), allows_by_default=True)
    assert made.allows("User:x", "h", "Read", "topic", "b")
    assert not made.allows("User:x", "h", "Read", "topic", "a"), "it has an ACL, of another user"


def test_a_prefix_that_is_denied_takes_every_right_on_some_topic_below_it():
    made = authorizer(
        entry(operation="Write", name="ab", pattern="prefixed"),
        entry(operation="Write", permission="deny", name="a", pattern="prefixed"),
    )
    assert not made.allows_any("User:x", "h", "Write", "topic")


@pytest.mark.parametrize(
    ("codes", "word", "code"),
    [
        (OPERATIONS, "All", 2), (OPERATIONS, "Read", 3), (OPERATIONS, "Describe", 8),
        (OPERATIONS, "IdempotentWrite", 12), (OPERATIONS, "TwoPhaseCommit", 15),
        (RESOURCE_TYPES, "transactional-id", 5),
    ],
)  # fmt: skip
def test_codes_are_those_of_kafkas_enumerations(codes, word, code):
    assert codes[word] == code
