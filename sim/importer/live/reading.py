"""Questions to a running cluster, and their answers as facts; what is not answered leaves a line.

A group is described by the broker that lists it, which is its coordinator, so that none has to be
looked up. Left out: settings of groups and of client metrics, ACLs, delegation tokens, SCRAM users.

Source: the requests of ``sim.importer.live.guard.ALLOWED``; KIP-133, KIP-430, KIP-546, KIP-595.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kafka import errors
from kafka.protocol.admin import (
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeQuorumRequest,
    ListGroupsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kafka.protocol.metadata import MetadataRequest

from sim.importer.live.connection import Connection, NoAnswer
from sim.importer.live.facts import (
    UNSAID,
    BrokerFacts,
    ClusterFacts,
    GroupFacts,
    MemberFacts,
    PartitionFacts,
    Place,
    QuotaFacts,
    TopicFacts,
    some_of,
)
from sim.importer.live.group_describe import ConsumerGroupDescribe
from sim.importer.live.guard import Foreign

AT_ONCE: Final = 200
"""Topics, or groups, of one request."""

REASSIGNMENTS_MS: Final = 10_000

_TOPIC, _BROKER = 2, 4
_DEFAULT_SOURCE: Final = 5
_TOPIC_SOURCE: Final = 1
_QUORUM: Final = "__cluster_metadata"
_OFFSETS: Final = "__consumer_offsets"
_BAD_BLOB: Final = (struct.error, ValueError, IndexError, TypeError)


def refusal(code: int, grant: str) -> str:
    """Words for an error code of Kafka's; what to grant, if it is one of authorisation."""
    name = str(errors.for_code(code).__name__)
    return f"not authorised; grant {grant}" if "Authorization" in name else name


def metadata(connection: Connection) -> Foreign:
    """Brokers that are up, and all topics that may be seen; it creates none.

    Raises:
        NoAnswer: If no broker answers.
    """
    return connection.answer(MetadataRequest(topics=None, allow_auto_topic_creation=False))


def read_cluster(connection: Connection, say: Callable[[str], None]) -> ClusterFacts:
    """Everything but offsets.

    Args:
        connection: An open one.
        say: Called with the present step, for people.

    Raises:
        NoAnswer: If no broker says which topics there are.
    """
    return _Reading(connection, say).facts()


class _Reading:
    def __init__(self, connection: Connection, say: Callable[[str], None]) -> None:
        self._connection = connection
        self._say = say
        self._found = ClusterFacts()

    def facts(self) -> ClusterFacts:
        self._say("topics")
        answer = metadata(self._connection)
        self._found.cluster = answer.cluster_id or ""
        self._brokers(answer)
        self._topics(answer)
        self._say("quorum and quotas")
        self._quorum()
        self._quotas()
        self._groups()
        return self._found

    def _gap(self, line: str) -> None:
        self._found.gaps.append(line)

    def _answer(self, what: str, request: Foreign, node: int | None = None) -> Foreign | None:
        """The answer, or ``None`` and a line that says what is not known."""
        try:
            return self._connection.answer(request, node)
        except NoAnswer as error:
            self._gap(f"{what}: not known: {error}")
        return None

    # -- brokers ----------------------------------------------------------------------------------

    def _brokers(self, answer: Foreign) -> None:
        """Those of the metadata are up; a cluster of Kafka 4 also names those that are not."""
        racks = {each.node_id: each.rack or "" for each in answer.brokers}
        up = list(racks)
        try:
            more = self._connection.answer(DescribeClusterRequest(include_fenced_brokers=True))
            racks |= {b.broker_id: b.rack or "" for b in more.brokers if b.broker_id not in racks}
        except NoAnswer:
            pass  # before Kafka 2.8 the metadata is all there is
        placed = {n for t in answer.topics for p in t.partitions for n in p.replica_nodes}
        racks |= dict.fromkeys(sorted(placed - racks.keys()), "")
        for node in sorted(racks):
            self._say(f"broker {node}")
            if node not in up:
                self._gap(
                    f"broker {node}: it is down, so its settings are not known; here it is like "
                    "the others, and up"
                )
                self._found.brokers.append(BrokerFacts(node, racks[node], is_up=False))
                continue
            configs = self._configs("settings of broker", _BROKER, [str(node)], node)
            version = self._connection.version(node)
            found = configs.get(str(node))
            self._found.brokers.append(BrokerFacts(node, racks[node], found, version=version))

    def _configs(
        self, what: str, kind: int, names: Sequence[str], node: int | None
    ) -> dict[str, dict[str, str]]:
        """Settings that were set, by the name of their broker or topic."""
        resource = DescribeConfigsRequest.DescribeConfigsResource
        resources = [
            resource(resource_type=kind, resource_name=name, configuration_keys=None)
            for name in names
        ]
        request = DescribeConfigsRequest(resources=resources)
        answer = self._answer(f"{what} {some_of(names)}", request, node)
        found: dict[str, dict[str, str]] = {}
        refused: dict[int, list[str]] = {}
        for result in () if answer is None else answer.results:
            if result.error_code:
                refused.setdefault(result.error_code, []).append(result.resource_name)
                continue
            found[result.resource_name] = {
                each.name: UNSAID if each.is_sensitive else each.value
                for each in sorted(result.configs, key=lambda each: str(each.name))
                if _was_set(each, kind) and (each.is_sensitive or each.value is not None)
            }
        for code, those in refused.items():
            why = refusal(code, f"DescribeConfigs on the {'topics' if node is None else 'cluster'}")
            self._gap(f"{what} {some_of(those)}: not known: {why}")
        return found

    # -- topics -----------------------------------------------------------------------------------

    def _topics(self, answer: Foreign) -> None:
        moving = self._moving(answer)
        names = []
        for topic in answer.topics:
            if topic.error_code:
                grant = "Describe on the topic"
                self._gap(f"topic {topic.name}: not known: {refusal(topic.error_code, grant)}")
            else:
                names.append(topic.name)
        configs: dict[str, dict[str, str]] = {}
        for first in range(0, len(names), AT_ONCE):
            self._say(f"topics {first} of {len(names)}")
            some = sorted(names)[first : first + AT_ONCE]
            configs |= self._configs("overrides of", _TOPIC, some, None)
        for topic in sorted(answer.topics, key=lambda topic: str(topic.name)):
            if topic.error_code:
                continue
            partitions = {
                each.partition_index: PartitionFacts(
                    tuple(each.replica_nodes),
                    tuple(each.isr_nodes),
                    each.leader_id,
                    (topic.name, each.partition_index) in moving,
                )
                for each in sorted(topic.partitions, key=_index)
            }
            found = configs.get(topic.name)
            self._found.topics.append(
                TopicFacts(topic.name, partitions, bool(topic.is_internal), found)
            )

    def _moving(self, cluster: Foreign) -> list[Place]:
        """With ZooKeeper the controller alone knows; with KRaft any broker passes it on."""
        request = ListPartitionReassignmentsRequest(timeout_ms=REASSIGNMENTS_MS, topics=None)
        up = [broker.node_id for broker in cluster.brokers]
        controller = cluster.controller_id if cluster.controller_id in up else None
        answer = self._answer("reassignments under way", request, controller)
        if answer is None:
            return []
        if answer.error_code:
            why = refusal(answer.error_code, "Describe on the cluster")
            self._gap(f"reassignments under way: not known: {why}")
        return [(t.name, p.partition_index) for t in answer.topics or () for p in t.partitions]

    # -- the cluster's own ------------------------------------------------------------------------

    def _quorum(self) -> None:
        topic = DescribeQuorumRequest.TopicData
        chosen = topic(topic_name=_QUORUM, partitions=[topic.PartitionData(partition_index=0)])
        try:
            answer = self._connection.answer(DescribeQuorumRequest(topics=[chosen]))
        except NoAnswer:
            if not any("zookeeper.connect" in (b.configs or {}) for b in self._found.brokers):
                self._gap("controllers: no broker says who votes; taken from their settings")
            return
        if answer.error_code:
            why = refusal(answer.error_code, "Describe on the cluster")
            self._gap(f"controllers: who votes is not known: {why}")
            return
        for part in (each for found in answer.topics for each in found.partitions):
            self._found.voters = tuple(sorted(voter.replica_id for voter in part.current_voters))
        level = self._connection.features().get("kraft.version", {}).get("finalized", (0, 0))
        self._found.is_dynamic = level[1] > 0

    def _quotas(self) -> None:
        request = DescribeClientQuotasRequest(components=[], strict=False)
        answer = self._answer("quotas", request)
        if answer is None:
            return
        if answer.error_code:
            why = refusal(answer.error_code, "DescribeConfigs on the cluster")
            self._gap(f"quotas: not known: {why}")
        for entry in answer.entries or ():
            entity = tuple((each.entity_type, each.entity_name) for each in entry.entity)
            values = {each.key: each.value for each in entry.values}
            self._found.quotas.append(QuotaFacts(tuple(sorted(entity, key=_kind)), values))
        self._found.quotas.sort(key=lambda quota: str(quota.entity))

    # -- groups -----------------------------------------------------------------------------------

    def _groups(self) -> None:
        """Each broker lists the groups that it coordinates."""
        has_any = any(topic.name == _OFFSETS for topic in self._found.topics)
        for broker in self._found.brokers:
            if not broker.is_up:
                continue
            self._say(f"groups of broker {broker.node}")
            what = f"groups that broker {broker.node} coordinates"
            answer = self._answer(what, ListGroupsRequest(), broker.node)
            if answer is None:
                continue
            if answer.error_code and has_any:
                why = refusal(answer.error_code, "Describe on the groups")
                self._gap(f"{what}: not known: {why}")
            self._describe(broker.node, sorted(answer.groups, key=lambda g: str(g.group_id)))
        self._found.groups.sort(key=lambda group: group.name)

    def _describe(self, node: int, listed: Sequence[Any]) -> None:
        kinds = {each.group_id: (each.group_type or "classic").lower() for each in listed}
        for group, kind in kinds.items():
            if kind not in ("classic", "consumer"):
                self._found.groups.append(GroupFacts(group, kind, coordinator=node))
        for kind, describe in (("classic", self._classic), ("consumer", self._consumer)):
            names = [group for group, found in kinds.items() if found == kind]
            for first in range(0, len(names), AT_ONCE):
                describe(node, names[first : first + AT_ONCE])

    def _classic(self, node: int, names: Sequence[str]) -> None:
        answer = self._answer("classic groups", DescribeGroupsRequest(groups=list(names)), node)
        for group in () if answer is None else answer.groups:
            if group.error_code:
                why = refusal(group.error_code, "Describe on the group")
                self._gap(f"group {group.group_id}: not known: {why}")
                continue
            members = tuple(
                MemberFacts(
                    each.client_id or "",
                    each.group_instance_id or "",
                    _subscribed(each) if group.protocol_type == "consumer" else (),
                )
                for each in sorted(group.members, key=lambda each: str(each.member_id))
            )
            self._found.groups.append(
                GroupFacts(
                    *(group.group_id, "classic", group.protocol_type or "", group.group_state),
                    *(group.protocol_data or "", members, node),
                )
            )

    def _consumer(self, node: int, names: Sequence[str]) -> None:
        answer = self._answer("groups of the consumer protocol", ConsumerGroupDescribe(names), node)
        for group in () if answer is None else answer.groups:
            if group["errorCode"]:
                why = refusal(group["errorCode"], "Describe on the group and its topics")
                self._gap(f"group {group['groupId']}: not known: {why}")
                continue
            members = tuple(
                MemberFacts(each["clientId"], each["instanceId"] or "", _assigned(each))
                for each in sorted(group["members"], key=lambda each: str(each["memberId"]))
            )
            self._found.groups.append(
                GroupFacts(
                    *(group["groupId"], "consumer", "consumer", group["groupState"]),
                    *(group["assignorName"], members, node),
                )
            )


def _was_set(config: Foreign, kind: int) -> bool:
    """True if it is no default of Kafka's, and a topic's is the topic's own."""
    source = config.config_source
    if source < 0:  # before Kafka 1.1
        return not config.is_default
    return bool(source == _TOPIC_SOURCE if kind == _TOPIC else source != _DEFAULT_SOURCE)


def _index(partition: Foreign) -> int:
    return int(partition.partition_index)


def _kind(entity: tuple[str, str | None]) -> str:
    return entity[0]


def _subscribed(member: Foreign) -> tuple[str, ...]:
    """Topics of a classic member; those that it was assigned, if it does not say it readably."""
    try:
        if member.member_metadata:
            found = ConsumerProtocolSubscription.decode(member.member_metadata)
            return tuple(sorted(found.topics))
        if member.member_assignment:
            given = ConsumerProtocolAssignment.decode(member.member_assignment)
            return tuple(sorted(each.topic for each in given.assigned_partitions))
    except _BAD_BLOB:
        pass
    return ()


def _assigned(member: Mapping[str, Any]) -> tuple[str, ...]:
    """Topics by name, and those that a pattern has brought."""
    named = list(member["subscribedTopicNames"] or ())
    if member["subscribedTopicRegex"]:
        named += [each["topicName"] for each in member["assignment"]["topicPartitions"]]
    return tuple(sorted(dict.fromkeys(named)))
