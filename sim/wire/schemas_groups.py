"""Schemas of what the coordinators of consumer, share and streams groups write, as plain tables.

Keys are of version 0 and inflexible, values of version 0 and flexible. See :mod:`sim.wire.schemas`.

Source: ``common/message`` under the resources of Kafka 4.3's modules ``group-coordinator`` and
``share-coordinator``; KIP-848, KIP-932, KIP-1071.
"""

from typing import Final

_OF_GROUP: Final = "GroupId:string"
_OF_MEMBER: Final = "GroupId:string MemberId:string"
_OF_SHARE_PARTITION: Final = "GroupId:string TopicId:uuid Partition:int32"
_TARGET: Final = "AssignmentEpoch:int32 AssignmentTimestamp:int64#0=0"
_TASKS: Final = "ActiveTasks:[]Tasks StandbyTasks:[]Tasks WarmupTasks:[]Tasks"

STRUCTURES: Final = {
    "ClassicProtocol": "Name:string Metadata:bytes",
    "ClassicMember": "SessionTimeoutMs:int32 SupportedProtocols:[]ClassicProtocol",
    "TopicIdPartitions": "TopicId:uuid Partitions:[]int32",
    "OwnedTopicPartitions": "TopicId:uuid Partitions:[]int32 AssignmentEpochs:[]int32?#0",
    "PartitionRacks": "Partition:int32 Racks:[]string",
    "TopicRacks": (
        "TopicId:uuid TopicName:string NumPartitions:int32 PartitionMetadata:[]PartitionRacks"
    ),
    "TopicName": "TopicId:uuid TopicName:string",
    "TopicNamePartitions": "TopicId:uuid TopicName:string Partitions:[]int32",
    "StateBatch": "FirstOffset:int64 LastOffset:int64 DeliveryState:int8 DeliveryCount:int16",
    "KeyValue": "Key:string Value:string",
    "HostPort": "Host:string Port:uint16",
    "Tasks": "SubtopologyId:string Partitions:[]int32",
    "OwnedTasks": "SubtopologyId:string Partitions:[]int32 AssignmentEpochs:[]int32?#0",
    "TopicSetting": "key:string value:string",
    "InternalTopic": (
        "Name:string Partitions:int32 ReplicationFactor:int16 TopicConfigs:[]TopicSetting"
    ),
    "CopartitionGroup": (
        "SourceTopics:[]int16 SourceTopicRegex:[]int16 RepartitionSourceTopics:[]int16"
    ),
    "Subtopology": (
        "SubtopologyId:string SourceTopics:[]string SourceTopicRegex:[]string "
        "StateChangelogTopics:[]InternalTopic RepartitionSinkTopics:[]string "
        "RepartitionSourceTopics:[]InternalTopic CopartitionGroups:[]CopartitionGroup"
    ),
}
"""Structures inside the values, by the names that they have here."""

GROUP_MESSAGES: Final = (
    ("ConsumerGroupMetadata", 3, _OF_GROUP, "Epoch:int32 MetadataHash:int64#0=0"),
    ("ConsumerGroupPartitionMetadata", 4, _OF_GROUP, "Topics:[]TopicRacks"),
    (
        "ConsumerGroupMemberMetadata",
        5,
        _OF_MEMBER,
        (
            "InstanceId:string? RackId:string? ClientId:string ClientHost:string "
            "SubscribedTopicNames:[]string SubscribedTopicRegex:string? "
            "RebalanceTimeoutMs:int32=-1 ServerAssignor:string? "
            "ClassicMemberMetadata:ClassicMember?#0"
        ),
    ),
    ("ConsumerGroupTargetAssignmentMetadata", 6, _OF_GROUP, _TARGET),
    (
        "ConsumerGroupTargetAssignmentMember",
        7,
        _OF_MEMBER,
        "TopicPartitions:[]TopicIdPartitions",
    ),
    (
        "ConsumerGroupCurrentMemberAssignment",
        8,
        _OF_MEMBER,
        (
            "MemberEpoch:int32 PreviousMemberEpoch:int32 State:int8 "
            "AssignedPartitions:[]OwnedTopicPartitions "
            "PartitionsPendingRevocation:[]OwnedTopicPartitions"
        ),
    ),
    (
        "ShareGroupMemberMetadata",
        10,
        _OF_MEMBER,
        "RackId:string? ClientId:string ClientHost:string SubscribedTopicNames:[]string",
    ),
    ("ShareGroupMetadata", 11, _OF_GROUP, "Epoch:int32 MetadataHash:int64"),
    ("ShareGroupTargetAssignmentMetadata", 12, _OF_GROUP, _TARGET),
    ("ShareGroupTargetAssignmentMember", 13, _OF_MEMBER, "TopicPartitions:[]TopicIdPartitions"),
    (
        "ShareGroupCurrentMemberAssignment",
        14,
        _OF_MEMBER,
        (
            "MemberEpoch:int32 PreviousMemberEpoch:int32 State:int8 "
            "AssignedPartitions:[]TopicIdPartitions"
        ),
    ),
    (
        "ShareGroupStatePartitionMetadata",
        15,
        _OF_GROUP,
        (
            "InitializingTopics:[]TopicNamePartitions InitializedTopics:[]TopicNamePartitions "
            "DeletingTopics:[]TopicName"
        ),
    ),
    (
        "ConsumerGroupRegularExpression",
        16,
        "GroupId:string RegularExpression:string",
        "Topics:[]string Version:int64 Timestamp:int64",
    ),
    (
        "StreamsGroupMetadata",
        17,
        _OF_GROUP,
        (
            "Epoch:int32 MetadataHash:int64 ValidatedTopologyEpoch:int32#0=-1 "
            "LastAssignmentConfigs:[]KeyValue?#1"
        ),
    ),
    (
        "StreamsGroupMemberMetadata",
        19,
        _OF_MEMBER,
        (
            "InstanceId:string? RackId:string? ClientId:string ClientHost:string "
            "RebalanceTimeoutMs:int32=-1 TopologyEpoch:int32 ProcessId:string "
            "UserEndpoint:HostPort?=null ClientTags:[]KeyValue"
        ),
    ),
    ("StreamsGroupTargetAssignmentMetadata", 20, _OF_GROUP, _TARGET),
    ("StreamsGroupTargetAssignmentMember", 21, _OF_MEMBER, _TASKS),
    (
        "StreamsGroupCurrentMemberAssignment",
        22,
        _OF_MEMBER,
        (
            "MemberEpoch:int32 PreviousMemberEpoch:int32 State:int8 ActiveTasks:[]OwnedTasks "
            "StandbyTasks:[]OwnedTasks WarmupTasks:[]OwnedTasks "
            "ActiveTasksPendingRevocation:[]OwnedTasks StandbyTasksPendingRevocation:[]OwnedTasks "
            "WarmupTasksPendingRevocation:[]OwnedTasks"
        ),
    ),
    ("StreamsGroupTopology", 23, _OF_GROUP, "Epoch:int32 Subtopologies:[]Subtopology"),
)
"""Records of ``__consumer_offsets``: name, type of the key, fields of key and value."""

SHARE_STATE_MESSAGES: Final = (
    (
        "ShareSnapshot",
        0,
        _OF_SHARE_PARTITION,
        (
            "SnapshotEpoch:int32 StateEpoch:int32 LeaderEpoch:int32 StartOffset:int64 "
            "DeliveryCompleteCount:int32#0=-1 CreateTimestamp:int64 WriteTimestamp:int64 "
            "StateBatches:[]StateBatch"
        ),
    ),
    (
        "ShareUpdate",
        1,
        _OF_SHARE_PARTITION,
        (
            "SnapshotEpoch:int32 LeaderEpoch:int32 StartOffset:int64 "
            "DeliveryCompleteCount:int32#0=-1 StateBatches:[]StateBatch"
        ),
    ),
)
"""Records of ``__share_group_state``: name, type of the key, fields of key and value."""
