"""Sizes of the messages in :mod:`sim.protocol.messages.security`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.base import Response
from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


class ExpireDelegationTokenResponse(Response):
    """ExpireDelegationTokenResponse 2: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 24


class RenewDelegationTokenResponse(Response):
    """RenewDelegationTokenResponse 2: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 24


def create_acls_request(*, creations: Collection[tuple[str, str, str]]) -> Bytes:
    """CreateAclsRequest 3."""
    size = 26 + wire.uvarint(len(creations) + 1)
    for resource_name_1, principal_1, host_1 in creations:
        size += 5 + wire.text(resource_name_1) + wire.text(principal_1)
        size += wire.text(host_1)
    return size


def create_acls_response(*, results: int) -> Bytes:
    """CreateAclsResponse 3."""
    return 14 + wire.numbers(results, 4)


def create_delegation_token_request(
    *,
    owner_principal_type: str | None = None, owner_principal_name: str | None = None,
    renewers: Collection[tuple[str, str]],
) -> Bytes:
    """CreateDelegationTokenRequest 3."""
    size = (
        34 + wire.text(owner_principal_type) + wire.text(owner_principal_name) +
        wire.uvarint(len(renewers) + 1)
    )
    for principal_type_1, principal_name_1 in renewers:
        size += 1 + wire.text(principal_type_1) + wire.text(principal_name_1)
    return size


def create_delegation_token_response(
    *,
    principal_type: str, principal_name: str, token_requester_principal_type: str,
    token_requester_principal_name: str, token_id: str, hmac: Bytes,
) -> Bytes:
    """CreateDelegationTokenResponse 3."""
    return (
        40 + wire.text(principal_type) + wire.text(principal_name) +
        wire.text(token_requester_principal_type) + wire.text(token_requester_principal_name) +
        wire.text(token_id) + wire.blob(hmac)
    )


def delete_acls_request(
    *,
    filters: Collection[tuple[str | None, str | None, str | None]],
) -> Bytes:
    """DeleteAclsRequest 3."""
    size = 26 + wire.uvarint(len(filters) + 1)
    for resource_name_filter_1, principal_filter_1, host_filter_1 in filters:
        size += 5 + wire.text(resource_name_filter_1) + wire.text(principal_filter_1)
        size += wire.text(host_filter_1)
    return size


def delete_acls_response(*, filter_results: Collection[Collection[tuple[str, str, str]]]) -> Bytes:
    """DeleteAclsResponse 3."""
    size = 14 + wire.uvarint(len(filter_results) + 1)
    for matching_acls_1 in filter_results:
        size += 4 + wire.uvarint(len(matching_acls_1) + 1)
        for resource_name_2, principal_2, host_2 in matching_acls_1:
            size += 8 + wire.text(resource_name_2) + wire.text(principal_2)
            size += wire.text(host_2)
    return size


def expire_delegation_token_request(*, hmac: Bytes) -> Bytes:
    """ExpireDelegationTokenRequest 2."""
    return 34 + wire.blob(hmac)


def renew_delegation_token_request(*, hmac: Bytes) -> Bytes:
    """RenewDelegationTokenRequest 2."""
    return 34 + wire.blob(hmac)


def sasl_authenticate_request(*, auth_bytes: Bytes) -> Bytes:
    """SaslAuthenticateRequest 2."""
    return 26 + wire.blob(auth_bytes)


def sasl_authenticate_response(*, error_message: str | None = None, auth_bytes: Bytes) -> Bytes:
    """SaslAuthenticateResponse 2."""
    return 20 + wire.text(error_message) + wire.blob(auth_bytes)


def sasl_handshake_request(*, mechanism: str) -> Bytes:
    """SaslHandshakeRequest 1."""
    return 24 + wire.plain_text(mechanism)


def sasl_handshake_response(*, mechanisms: Collection[str]) -> Bytes:
    """SaslHandshakeResponse 1."""
    size = 10 + 4
    for each in mechanisms:
        size += wire.plain_text(each)
    return size
