"""Finalized feature levels: which servers support which, and who may raise them.

A level is raised when the active controller, every registered broker and every controller support
it. Brokers count as long as they are registered, alive or not. Controllers register from
``metadata.version`` 3.7-IV0 on; below it their support cannot be checked.

Left out: downgrades, changes of the quorum's ``kraft.version``.

Source: ``org.apache.kafka.controller.{FeatureControlManager,QuorumFeatures}``,
``ClusterControlManager.{processRegistrationFeature,registerController}`` (4.1); KIP-584, KIP-919.
"""

from collections.abc import Mapping
from typing import Final

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol.controller.types import ControllerConfig, Decision
from sim.protocol.kraft.metadata_snapshot import feature_records
from sim.protocol.messages.admin import UpdateFeaturesRequest, UpdateFeaturesResponse
from sim.protocol.messages.cluster import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import (
    BROKER_RESOURCE,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    RegisterControllerRecord,
    ZkMigrationStateRecord,
)
from sim.protocol.metadata.versions import (
    CONTROLLER_REGISTRATION,
    ELIGIBLE_REPLICAS,
    ELR_FEATURE,
    FEATURE,
    TRANSACTIONS,
    SupportedFeatures,
    finalized,
    has_migration_state,
    implied,
    is_at_least,
)

_NEEDS: Final[Mapping[tuple[str, int], int]] = {(ELR_FEATURE, 1): ELIGIBLE_REPLICAS}
"""Level of ``metadata.version`` that a level of another feature needs.

Source: ``FeatureVersion.dependencies``.
"""

_MIN_ISR: Final = "min.insync.replicas"


def update_features(
    image: MetadataImage, node: NodeId, config: ControllerConfig, request: UpdateFeaturesRequest
) -> Decision:
    """Raises finalized levels, all of the request or none.

    Args:
        image: The state.
        node: The active controller.
        config: Its settings.
        request: The new levels.
    """
    proposed = {**image.features, **dict(request.updates)}
    records: list[MetadataRecord] = []
    for name, level in request.updates:
        reason = _reason_against(image, node, config, name, level)
        reason = reason or _missing_dependency(proposed, name, level)
        if reason:
            text = f"{name} {level}: {reason}"
            refused = UpdateFeaturesResponse(ErrorCode.INVALID_UPDATE_VERSION, text)
            return Decision((), refused)
        if name == ELR_FEATURE and level > 0 and not image.features.get(name, 0):
            records.extend(_safe_for_elr(image, config))
        if image.features.get(name, 0) != level:
            records.append(FeatureLevelRecord(name, level))
    # The metadata version decides the form of those behind it.
    records.sort(key=lambda r: not (isinstance(r, FeatureLevelRecord) and r.name == FEATURE))
    return Decision(tuple(records), UpdateFeaturesResponse(ErrorCode.NONE))


def _reason_against(
    image: MetadataImage, node: NodeId, config: ControllerConfig, name: str, level: int
) -> str:
    """Reason why a level cannot be finalized; empty if it can."""
    reason = _unsupported(f"controller {node}", config.supported, name, level)
    for broker in sorted(image.brokers):
        supported = image.brokers[broker].features
        reason = reason or _unsupported(f"broker {broker}", supported, name, level)
    if is_at_least(image.features, CONTROLLER_REGISTRATION):
        for other in sorted({*image.controllers, *config.quorum}):
            if other == node or reason:
                continue
            registered = image.controllers.get(other)
            if registered is None:
                return f"controller {other} has not registered, and may not support it"
            reason = _unsupported(f"controller {other}", registered.features, name, level)
    if not reason and level < image.features.get(name, 0):
        reason = f"it is {image.features[name]}, and a downgrade has to be asked for as one"
    return reason


def _unsupported(who: str, supported: SupportedFeatures, name: str, level: int) -> str:
    low, high = range_of(supported, name)
    if low <= level <= high:
        return ""
    return f"{who} only supports versions {low} to {high}" if high else f"{who} does not support it"


def range_of(supported: SupportedFeatures, name: str) -> tuple[int, int]:
    """Lowest and highest level of a feature; 0 and 0 where it is not known."""
    return next(((low, high) for known, low, high in supported if known == name), (0, 0))


def _missing_dependency(proposed: Mapping[str, int], name: str, level: int) -> str:
    needed = _NEEDS.get((name, level), 0)
    if proposed.get(FEATURE, 0) >= needed:
        return ""
    return f"it needs {FEATURE} {needed}"


def _safe_for_elr(image: MetadataImage, config: ControllerConfig) -> list[MetadataRecord]:
    """``min.insync.replicas`` of the cluster in the metadata, and of no single broker.

    The controller has to know it for every topic.

    Source: ``ConfigurationControlManager.maybeGenerateElrSafetyRecords``.
    """
    records: list[MetadataRecord] = []
    if _MIN_ISR not in image.cluster_configs:
        value = dict(config.cluster_configs).get(_MIN_ISR, "1")
        records.append(ConfigRecord(BROKER_RESOURCE, "", _MIN_ISR, value))
    records.extend(
        ConfigRecord(BROKER_RESOURCE, str(broker), _MIN_ISR, None)
        for broker in sorted(image.broker_configs)
        if _MIN_ISR in image.broker_configs[broker]
    )
    return records


def bootstrap_records(config: ControllerConfig) -> tuple[MetadataRecord, ...]:
    """The first records of a new cluster: finalized features and cluster-wide settings.

    Source: ``ActivationRecordsGenerator``, ``BootstrapMetadata``.
    """
    configs = dict(config.cluster_configs)
    if config.elr:
        configs.setdefault(_MIN_ISR, "1")
    features = config.features
    records: tuple[MetadataRecord, ...] = (
        *feature_records(features),
        *(ConfigRecord(BROKER_RESOURCE, "", name, configs[name]) for name in sorted(configs)),
    )
    if has_migration_state(features, config.supported):
        records = (*records, ZkMigrationStateRecord())
    if not is_at_least(features, TRANSACTIONS):
        return records
    return (BeginTransactionRecord("Bootstrap records"), *records, EndTransactionRecord())


def is_new(image: MetadataImage) -> bool:
    """True if a cluster has no metadata yet: no finalized feature, or nothing at all before 3.3."""
    if finalized(image.features):
        return False
    return not implied(image.features) or not any(
        (image.brokers, image.topic_ids, image.cluster_configs, image.broker_configs)
    )


def lacking_feature(
    image: MetadataImage, founded: Mapping[str, int], supported: SupportedFeatures
) -> str:
    """A finalized feature whose level a server that registers does not support; empty: none.

    Levels with which the cluster was formatted are those of its oldest release, or were chosen by
    a scenario that mixes behaviours of several.
    """
    for name, level in finalized(image.features).items():
        low, high = range_of(supported, name)
        if level != founded.get(name, 0) and not low <= level <= high:
            return name
    return ""


def register_controller(image: MetadataImage, request: ControllerRegistrationRequest) -> Decision:
    """Registers a controller process, in place of its former one."""
    if not is_at_least(image.features, CONTROLLER_REGISTRATION):
        return Decision((), request.refused(ErrorCode.UNSUPPORTED_VERSION))
    record = RegisterControllerRecord(request.controller, request.incarnation, request.features)
    return Decision((record,), ControllerRegistrationResponse(ErrorCode.NONE))
