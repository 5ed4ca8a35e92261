"""Codec of the metadata records about rights: ACLs and delegation tokens.

Source: ``metadata/src/main/resources/common/metadata``; ``DelegationTokenData.toRecord``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from sim.protocol.acls import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCE_TYPES, Acl
from sim.protocol.metadata import records as mr
from sim.wire.fields import Value

Values: TypeAlias = Mapping[str, Value]


def _acl(record: mr.AccessControlEntryRecord) -> Values:
    acl = record.acl
    return {
        "id": record.entry_id,
        "resourceType": RESOURCE_TYPES[acl.resource_type],
        "resourceName": acl.resource_name,
        "patternType": PATTERNS[acl.pattern],
        "principal": acl.principal,
        "host": acl.host,
        "operation": OPERATIONS[acl.operation],
        "permissionType": PERMISSIONS[acl.permission],
    }


def _token(record: mr.DelegationTokenRecord) -> Values:
    return {
        "owner": record.owner,
        "requester": record.requester,
        "renewers": list(record.renewers),
        "issueTimestamp": record.issue_ms,
        "maxTimestamp": record.max_ms,
        "expirationTimestamp": record.expiry_ms,
        "tokenId": record.token_id,
    }


def _text(values: Values, name: str) -> str:
    return cast("str", values[name])


def _number(values: Values, name: str) -> int:
    return cast("int", values[name])


def _read_acl(v: Values) -> mr.AccessControlEntryRecord:
    def word(codes: Mapping[str, int], name: str) -> str:
        code = _number(v, name)
        return next(word for word, each in codes.items() if each == code)

    acl = Acl(
        word(RESOURCE_TYPES, "resourceType"),
        _text(v, "resourceName"),
        word(PATTERNS, "patternType"),
        _text(v, "principal"),
        _text(v, "host"),
        word(OPERATIONS, "operation"),
        word(PERMISSIONS, "permissionType"),
    )
    return mr.AccessControlEntryRecord(_text(v, "id"), acl)


def _read_token(v: Values) -> mr.DelegationTokenRecord:
    return mr.DelegationTokenRecord(
        _text(v, "owner"),
        _text(v, "requester"),
        tuple(cast("Sequence[str]", v["renewers"])),
        _number(v, "issueTimestamp"),
        _number(v, "maxTimestamp"),
        _number(v, "expirationTimestamp"),
        _text(v, "tokenId"),
    )


# Each function takes the record type it is registered for; the dictionary's type is wider.
ENCODERS: Final[dict[type, tuple[str, Callable[..., Values]]]] = {
    mr.AccessControlEntryRecord: ("AccessControlEntryRecord", _acl),
    mr.RemoveAccessControlEntryRecord: (
        "RemoveAccessControlEntryRecord",
        lambda r: {"id": r.entry_id},
    ),
    mr.DelegationTokenRecord: ("DelegationTokenRecord", _token),
    mr.RemoveDelegationTokenRecord: (
        "RemoveDelegationTokenRecord",
        lambda r: {"tokenId": r.token_id},
    ),
}

DECODERS: Final[dict[str, Callable[[Values], mr.MetadataRecord]]] = {
    "AccessControlEntryRecord": _read_acl,
    "RemoveAccessControlEntryRecord": lambda v: mr.RemoveAccessControlEntryRecord(_text(v, "id")),
    "DelegationTokenRecord": _read_token,
    "RemoveDelegationTokenRecord": lambda v: mr.RemoveDelegationTokenRecord(_text(v, "tokenId")),
}
