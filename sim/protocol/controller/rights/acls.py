"""ACLs that an administrator creates and deletes.

The id of an ACL is derived from it and from the offset of its record; Kafka draws it at random.

Source: ``AclControlManager`` (4.1); KIP-801.
"""

from sim.error_codes import ErrorCode
from sim.ids import uuid_text
from sim.protocol.controller.types import Decision
from sim.protocol.messages.security import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import (
    AccessControlEntryRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
)


def create_acls(image: MetadataImage, request: CreateAclsRequest) -> Decision:
    """Creates entries; those that exist make no record."""
    known = dict.fromkeys(image.acls.values())
    records: list[MetadataRecord] = []
    for acl in request.acls:
        if acl not in known:
            known[acl] = None
            entry_id = uuid_text(f"acl/{image.offset + len(records)}/{acl}")
            records.append(AccessControlEntryRecord(entry_id, acl))
    errors = tuple((str(acl), ErrorCode.NONE) for acl in request.acls)
    return Decision(tuple(records), CreateAclsResponse(errors))


def delete_acls(image: MetadataImage, request: DeleteAclsRequest) -> Decision:
    """Deletes entries, where they exist."""
    known = {entry_id: acl for entry_id, acl in image.acls.items() if acl in request.acls}
    records = tuple(RemoveAccessControlEntryRecord(entry_id) for entry_id in known)
    errors = tuple((str(acl), ErrorCode.NONE) for acl in request.acls)
    return Decision(records, DeleteAclsResponse(errors, tuple(known.values())))
