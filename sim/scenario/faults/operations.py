"""The administrator's entries of the calendar, checked and made into requests."""

from collections.abc import Mapping

from sim.faults.spec import OperationSpec
from sim.ids import NodeId
from sim.log.directory.names import directory_name
from sim.protocol.clients.admin.client import API_TIMEOUT_US
from sim.protocol.messages import (
    UP_TO_HIGH_WATERMARK,
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    NewTopic,
)
from sim.scenario.canonical.scenario import quota_keys
from sim.scenario.faults.targets import Targets
from sim.scenario.model.parts import ClusterSpec, TopicSpec
from sim.scenario.rules import cross as cross_rules
from sim.scenario.rules.quotas import check_replication, quota_of
from sim.scenario.rules.topic_configs import topic_configs, topic_settings
from sim.scenario.schema import faults as schema_faults
from sim.scenario.settings import registry as settings
from sim.scenario.text.problems import Problem, nearest

OperationModel = (
    schema_faults.TopicOperationModel
    | schema_faults.CreatePartitionsModel
    | schema_faults.AlterConfigModel
    | schema_faults.ReassignModel
    | schema_faults.CancelReassignmentModel
    | schema_faults.ElectLeaderModel
    | schema_faults.DeleteRecordsModel
    | schema_faults.AlterReplicaLogDirsModel
    | schema_faults.AlterClientQuotasModel
)
"""An entry that is an administrator's doing."""


def operation(model: OperationModel, targets: Targets, cluster: ClusterSpec) -> OperationSpec:
    """What the administrator is to ask for.

    Raises:
        Problem: For a topic, partition, broker or setting that is not there.
    """
    match model:
        case schema_faults.TopicOperationModel():
            return _topic(model, _known(model.topic, targets))
        case schema_faults.CreatePartitionsModel():
            return _more_partitions(model, _known(model.topic, targets))
        case schema_faults.AlterConfigModel():
            return _alter_config(model, _known(model.topic, targets), cluster)
        case schema_faults.ReassignModel():
            return _reassign(model, targets, cluster)
        case schema_faults.CancelReassignmentModel():
            partition = targets.partition_under("partition", model.partition)
            cancelled = AlterPartitionReassignmentsRequest(((partition, None),))
            return OperationSpec(str(partition), cancelled, {"partition": str(partition)})
        case schema_faults.ElectLeaderModel():
            partition = targets.partition_under("partition", model.partition)
            asked = ElectLeadersRequest(model.election, (partition,))
            keys = {"partition": str(partition), "election": model.election}
            return OperationSpec(str(partition), asked, keys)
        case schema_faults.DeleteRecordsModel():
            return _delete_records(model, targets)
        case schema_faults.AlterClientQuotasModel():
            check_replication(cluster)
            quota = quota_of(model, targets.client_ids, targets.addresses)
            altered = AlterClientQuotasRequest((quota.alteration,))
            return OperationSpec(quota.text, altered, quota_keys(quota))
        case schema_faults.AlterReplicaLogDirsModel():
            return _alter_replica_log_dirs(model, targets, cluster)


def _known(name: str, targets: Targets) -> TopicSpec:
    topic = targets.topics.get(name)
    if topic is None:
        known = tuple(targets.topics)
        raise Problem(("topic",), f"no topic {name!r}", ", ".join(known), nearest(name, known))
    return topic


def _topic(model: schema_faults.TopicOperationModel, topic: TopicSpec) -> OperationSpec:
    keys = {"topic": topic.name}
    if model.do == "delete-topic":
        return OperationSpec(topic.name, DeleteTopicsRequest((topic.name,)), keys)
    wanted = NewTopic(
        topic.name,
        topic.partitions,
        topic.replication_factor,
        topic_configs(topic.config),
        topic.assignment,
    )
    return OperationSpec(topic.name, CreateTopicsRequest((wanted,)), keys)


def _more_partitions(model: schema_faults.CreatePartitionsModel, topic: TopicSpec) -> OperationSpec:
    if model.count <= topic.partitions:
        raise Problem(
            ("count",),
            f"{model.count} partitions, but {topic.name} has {topic.partitions} from the start",
            f"more than {topic.partitions}",
            "Kafka cannot take partitions away",
        )
    request = CreatePartitionsRequest(topic.name, model.count)
    return OperationSpec(topic.name, request, {"topic": topic.name, "count": model.count})


def _alter_config(
    model: schema_faults.AlterConfigModel, topic: TopicSpec, cluster: ClusterSpec
) -> OperationSpec:
    try:
        config = settings.resolve("topic", model.config, cluster.config)
    except Problem as problem:
        raise problem.below("config") from None
    changed = TopicSpec(
        topic.name,
        topic.partitions,
        topic.replication_factor,
        # A setting that is not modelled can only have been given Kafka's default: no change.
        topic.config.changed({n: config[n] for n in model.config if n in config.values}),
    )
    given: Mapping[str, object] = model.config
    cross_rules.check_topic(changed, [server.node for server in cluster.brokers], given)
    texts = dict(topic_settings(changed.config))
    changes = tuple((name, texts[name]) for name in model.config if name in texts)
    request = IncrementalAlterConfigsRequest(topic.name, changes)
    values = {name: changed.config[name] for name, _ in changes}
    return OperationSpec(topic.name, request, {"topic": topic.name, "config": values})


def _delete_records(model: schema_faults.DeleteRecordsModel, targets: Targets) -> OperationSpec:
    partition = targets.partition_under("partition", model.partition)
    before = UP_TO_HIGH_WATERMARK if model.before == "high-watermark" else model.before
    request = DeleteRecordsRequest(((partition, before),), API_TIMEOUT_US)
    keys = {"partition": str(partition), "before": model.before}
    return OperationSpec(str(partition), request, keys)


def _alter_replica_log_dirs(
    model: schema_faults.AlterReplicaLogDirsModel, targets: Targets, cluster: ClusterSpec
) -> OperationSpec:
    partition = targets.partition_under("partition", model.partition)
    broker = _broker("broker", model.broker, cluster)
    count = cluster.disk.directories
    if count < 2:
        raise Problem(
            ("to",),
            "each broker has one log directory",
            "two or more, to move a replica between them",
            "add cluster.disk.directories",
        )
    if model.to >= count:
        allowed = f"0 to {count - 1} (cluster.disk.directories)"
        raise Problem(("to",), f"no log directory {model.to}", allowed)
    request = AlterReplicaLogDirsRequest(((partition, directory_name(model.to)),))
    keys = {"partition": str(partition), "broker": model.broker, "to": model.to}
    return OperationSpec(f"{partition} on {model.broker}", request, keys, broker, model.to)


def _broker(key: str, name: str, cluster: ClusterSpec) -> NodeId:
    numbers = {server.name: server.node for server in cluster.brokers}
    if name not in numbers:
        known = tuple(numbers)
        raise Problem((key,), f"no broker {name!r}", ", ".join(known), nearest(name, known))
    return numbers[name]


def _reassign(
    model: schema_faults.ReassignModel, targets: Targets, cluster: ClusterSpec
) -> OperationSpec:
    partition = targets.partition_under("partition", model.partition)
    replicas: list[NodeId] = []
    for name in model.replicas:
        broker = _broker("replicas", name, cluster)
        if broker in replicas:
            raise Problem(("replicas",), f"{name} twice", "each broker once")
        replicas.append(broker)
    request = AlterPartitionReassignmentsRequest(((partition, tuple(replicas)),))
    keys = {"partition": str(partition), "replicas": list(model.replicas)}
    return OperationSpec(str(partition), request, keys)
