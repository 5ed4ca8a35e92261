"""ACLs, and the decision of Kafka's ``StandardAuthorizer`` (KIP-801).

An ACL names one principal, or with ``User:*`` every one; one host, or with ``*`` every one; one
operation, or All. Of the ACLs that match, one that denies wins. Without any ACL for the resource
the default decides, and a super user is never refused.

Words are those of ``kafka-acls``: ``Read``, ``topic``, ``literal``, ``allow``.

Source: ``org.apache.kafka.metadata.authorizer.StandardAuthorizerData``,
``Authorizer.authorizeByResourceType`` (4.1); KIP-11, KIP-290, KIP-679.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

ANONYMOUS: Final = "User:ANONYMOUS"
"""``KafkaPrincipal.ANONYMOUS``: every client of a listener without authentication."""

ANY_PRINCIPAL: Final = "User:*"

ANY: Final = "*"
"""Every host; as a literal name, every resource of the type."""

ALL: Final = "All"

CLUSTER: Final = "kafka-cluster"
"""The one resource of type cluster."""

OPERATIONS: Final = {
    word: code
    for code, word in enumerate(
        ("All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction",
         "DescribeConfigs", "AlterConfigs", "IdempotentWrite", "CreateTokens", "DescribeTokens",
         "TwoPhaseCommit"), 2)
}  # fmt: skip
"""Codes of ``AclOperation``."""

RESOURCE_TYPES: Final = {
    "topic": 2, "group": 3, "cluster": 4, "transactional-id": 5, "delegation-token": 6, "user": 7,
}  # fmt: skip
"""Codes of ``ResourceType``."""

PATTERNS: Final = {"literal": 3, "prefixed": 4}
"""Codes of ``PatternType``."""

PERMISSIONS: Final = {"deny": 2, "allow": 3}
"""Codes of ``AclPermissionType``."""

_IMPLY: Final[dict[str, tuple[str, ...]]] = {
    "Describe": ("Describe", "Read", "Write", "Delete", "Alter"),
    "DescribeConfigs": ("DescribeConfigs", "AlterConfigs"),
}
"""Operations of ACLs that allow others, by those."""


class Acl(NamedTuple):
    """An access control entry, with the resources that it is for."""

    resource_type: str
    resource_name: str
    pattern: str
    """``literal`` or ``prefixed``."""
    principal: str
    host: str
    operation: str
    permission: str
    """``allow`` or ``deny``."""

    def __str__(self) -> str:
        where = "" if self.host == ANY else f" from {self.host}"
        name = f"{self.resource_name}*" if self.pattern == "prefixed" else self.resource_name
        what = f"{self.permission} {self.principal} {self.operation}"
        return f"{what} {self.resource_type} {name}{where}"

    def covers(self, resource_type: str, name: str) -> bool:
        """True if it is for the resource."""
        if self.resource_type != resource_type:
            return False
        if self.pattern == "prefixed":
            return name.startswith(self.resource_name)
        return self.resource_name in (name, ANY)

    def is_of(self, principal: str, host: str) -> bool:
        """True if it is for the client."""
        return self.principal in (principal, ANY_PRINCIPAL) and self.host in (host, ANY)

    def names(self, operation: str) -> bool:
        """True if it is about the operation; only what allows one implies others."""
        if self.operation in (ALL, operation):
            return True
        return self.permission == "allow" and self.operation in _IMPLY.get(operation, ())


class Authorizer:
    """Decisions on one broker, by the ACLs that it has applied.

    Args:
        super_users: ``super.users``.
        allows_by_default: ``allow.everyone.if.no.acl.found``.
    """

    def __init__(self, super_users: Iterable[str], *, allows_by_default: bool = False) -> None:
        self._super_users = tuple(super_users)
        self._allows_by_default = allows_by_default
        self._acls: tuple[Acl, ...] = ()
        self._known: dict[tuple[str, str, str, str, str], bool] = {}

    @property
    def acls(self) -> tuple[Acl, ...]:
        """ACLs in force."""
        return self._acls

    def update(self, acls: Iterable[Acl]) -> None:
        """Sets all ACLs."""
        self._acls = tuple(acls)
        self._known.clear()

    def allows(
        self, principal: str, host: str, operation: str, resource_type: str, name: str
    ) -> bool:
        """True if the client may do that to the resource."""
        if principal in self._super_users:
            return True
        key = (principal, host, operation, resource_type, name)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._decide(key)
        return known

    def _decide(self, key: tuple[str, str, str, str, str]) -> bool:
        principal, host, operation, resource_type, name = key
        found = [acl for acl in self._acls if acl.covers(resource_type, name)]
        if not found:
            return self._allows_by_default
        matching = [acl for acl in found if acl.is_of(principal, host) and acl.names(operation)]
        return bool(matching) and all(acl.permission == "allow" for acl in matching)

    def allows_any(self, principal: str, host: str, operation: str, resource_type: str) -> bool:
        """True if there may be a resource of the type to which the client may do that.

        Resources need not exist. An ACL that allows counts unless one that denies covers all of it;
        implied operations do not count.

        Source: ``Authorizer.authorizeByResourceType``.
        """
        if self.allows(principal, host, operation, resource_type, "hardcode"):
            return True
        own = [
            acl
            for acl in self._acls
            if acl.resource_type == resource_type
            and acl.is_of(principal, host)
            and acl.operation in (ALL, operation)
        ]
        denied = [acl for acl in own if acl.permission == "deny"]
        if any(acl.pattern == "literal" and acl.resource_name == ANY for acl in denied):
            return False
        return any(acl.permission == "allow" and not _is_dominated(acl, denied) for acl in own)


def _is_dominated(allowed: Acl, denied: list[Acl]) -> bool:
    """True if an ACL denies all that this one allows."""
    is_literal = allowed.pattern == "literal"
    name = allowed.resource_name
    if is_literal and name == ANY:
        return False
    return any(
        name.startswith(acl.resource_name)
        if acl.pattern == "prefixed"
        else is_literal and acl.resource_name == name
        for acl in denied
    )
