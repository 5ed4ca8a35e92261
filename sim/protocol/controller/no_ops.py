"""Administrator's requests that would change nothing in the committed metadata.

Kafka answers such a request without an error, and writes no record.

Source: ``ConfigurationControlManager.incrementalAlterConfigResource``,
``ClientQuotaControlManager.alterClientQuotas``, ``PartitionChangeBuilder.build``.
"""

from sim.ids import NO_LEADER
from sim.protocol.messages.admin import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    IncrementalAlterConfigsRequest,
    UpdateFeaturesRequest,
)
from sim.protocol.messages.base import Request
from sim.protocol.messages.security import CreateAclsRequest, DeleteAclsRequest
from sim.protocol.metadata.image import MetadataImage


def known_configs(image: MetadataImage, request: IncrementalAlterConfigsRequest) -> dict[str, str]:
    """Present settings of the topic, the group, the broker or the cluster of a request."""
    if request.topic:
        return image.topic_configs.get(request.topic, {})
    if request.group:
        return image.group_configs.get(request.group, {})
    if request.broker != NO_LEADER:
        return image.broker_configs.get(request.broker, {})
    return image.cluster_configs


def is_no_op(image: MetadataImage, request: Request) -> bool:
    """True if a request to the controller would change nothing; false for one it would refuse."""
    match request:
        case IncrementalAlterConfigsRequest():
            known = known_configs(image, request)
            return all(known.get(name) == value for name, value in request.changes)
        case AlterClientQuotasRequest():
            return all(
                image.client_quotas.get(entry.entity, {}).get(key) == value
                for entry in request.entries
                for key, value in entry.changes
            )
        case CreateAclsRequest():
            return all(acl in image.acls.values() for acl in request.acls)
        case DeleteAclsRequest():
            return all(acl not in image.acls.values() for acl in request.acls)
        case AlterPartitionReassignmentsRequest():
            found = [(image.partitions.get(name), replicas) for name, replicas in request.items]
            return all(
                state is not None
                and state.replicas == replicas
                and not state.adding
                and not state.removing
                for state, replicas in found
            )
        case UpdateFeaturesRequest():
            return all(image.features.get(name, 0) == level for name, level in request.updates)
        case _:
            return False
