"""AlterClientQuotas at the controller (KIP-546).

Source: ``ClientQuotaControlManager.alterClientQuotas``, ``DynamicConfig``; KIP-612.
"""

from typing import Final

from sim.error_codes import ErrorCode
from sim.protocol.controller.types import Decision
from sim.protocol.messages.admin import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlteration,
    quota_entity_text,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import ClientQuotaRecord, MetadataRecord

QUOTA_KEYS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
"""Quotas of users and client-ids."""

ADDRESS_KEYS: Final = ("connection_creation_rate",)
"""Quotas of addresses."""

_TYPES: Final = ("user", "client-id")

_ADDRESS: Final = "ip"

_WHOLE: Final = ("producer_byte_rate", "consumer_byte_rate", "connection_creation_rate")

_EPSILON: Final = 1e-6


def alter_client_quotas(image: MetadataImage, request: AlterClientQuotasRequest) -> Decision:
    """Sets and removes quotas; unchanged values make no record."""
    records: list[MetadataRecord] = []
    errors: list[tuple[str, ErrorCode]] = []
    for entry in request.entries:
        text = quota_entity_text(entry.entity)
        if not _is_valid(entry):
            errors.append((text, ErrorCode.INVALID_REQUEST))
            continue
        known = image.client_quotas.get(entry.entity, {})
        for key, value in entry.changes:
            if known.get(key) != value:
                records.append(ClientQuotaRecord(entry.entity, key, value))
        errors.append((text, ErrorCode.NONE))
    return Decision(tuple(records), AlterClientQuotasResponse(tuple(errors)))


def _is_valid(entry: QuotaAlteration) -> bool:
    kinds = [kind for kind, _ in entry.entity]
    keys = [key for key, _ in entry.changes]
    if not kinds or len(dict.fromkeys(kinds)) < len(kinds) or len(dict.fromkeys(keys)) < len(keys):
        return False
    # An ip is the only part of its entity.
    is_address = kinds == [_ADDRESS]
    if any(name == "" or (kind not in _TYPES and not is_address) for kind, name in entry.entity):
        return False
    known = ADDRESS_KEYS if is_address else QUOTA_KEYS
    return all(_is_allowed(known, key, value) for key, value in entry.changes)


def _is_allowed(known: tuple[str, ...], key: str, value: float | None) -> bool:
    """True if the quota is known or removed; rates of bytes are whole numbers."""
    if value is None:
        return True
    if key not in known:
        return False
    return key not in _WHOLE or abs(int(value + _EPSILON) - value) <= _EPSILON
