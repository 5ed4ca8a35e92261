"""Requests of clients, administrators and broker lifecycles, read from a dialogue's line."""

from collections.abc import Callable
from dataclasses import dataclass

from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.messages.admin import ElectLeadersRequest
from sim.protocol.messages.base import Request
from sim.protocol.messages.cluster import BrokerHeartbeatRequest, BrokerRegistrationRequest
from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from sim.protocol.messages.data import FetchPartition, FetchRequest, ProduceRequest
from sim.protocol.messages.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from sim.protocol.messages.leader_epochs import OffsetForLeaderEpochRequest
from sim.protocol.messages.metadata import InitProducerIdRequest
from sim.protocol.messages.quorum import VoteRequest
from sim.protocol.messages.transaction import AddPartitionsToTxnRequest, EndTxnRequest
from sim.units import MIB, MS, SECOND
from tests.dialogues.words import text_of
from tests.log.list_log import ListBatch


@dataclass(frozen=True)
class Words:
    """A line without the message's name: words in order, and fields by name."""

    speaker: str
    plain: tuple[str, ...]
    fields: dict[str, str]

    def number(self, name: str, usual: int = -1) -> int:
        return int(self.fields.get(name, usual))

    def names(self, name: str) -> tuple[str, ...]:
        return names_in(self.fields.get(name, "none"))

    def places(self, name: str) -> tuple[TopicPartition, ...]:
        return tuple(place_in(word) for word in self.names(name))

    @property
    def place(self) -> TopicPartition:
        return place_in(self.plain[0])

    @property
    def node(self) -> int:
        return node_in(self.speaker)

    @property
    def member(self) -> str:
        return self.fields["member"].replace("none", "")

    @property
    def identity(self) -> tuple[int, int]:
        return self.number("producer_id"), self.number("epoch")


def names_in(text: str) -> tuple[str, ...]:
    return () if text == "none" else tuple(text.split(","))


def place_in(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def node_in(name: str) -> int:
    return int(name.rpartition("-")[2])


def _produce(w: Words) -> Request:
    acks = w.fields["acks"]
    name = w.fields.get("transactional_id", "")
    batch = ListBatch(
        record_count=w.number("records"),
        producer_id=w.number("producer_id"),
        producer_epoch=w.number("epoch"),
        base_sequence=w.number("sequence"),
        is_transactional=bool(name),
    )
    number = -1 if acks == "all" else int(acks)
    return ProduceRequest(number, 30 * SECOND, ((w.place, batch),), name)


def _fetch(w: Words) -> Request:
    asked: tuple[FetchPartition, ...] = ()
    if w.plain:
        asked = (FetchPartition(w.place, w.number("offset"), w.number("leader_epoch")),)
    session = w.fields["session"].rstrip(";")
    number, epoch = (0, 0) if session == "new" else map(int, session.split("/"))
    isolation = "read_committed" if "read_committed" in w.plain else "read_uncommitted"
    limits = 500 * MS, 1, 50 * MIB
    return FetchRequest(-1, -1, *limits, number, epoch, asked, isolation_level=isolation)


def _beat(w: Words) -> Request:
    wants = "want_fence" in w.plain, "want_shut_down" in w.plain
    return BrokerHeartbeatRequest(w.node, -1, -1, *wants)  # the stage knows epoch and offset


def _join(w: Words) -> Request:
    subscription = Subscription(w.names("topics"), w.places("owned"))
    member, protocols, timeouts = w.member, w.names("protocols"), (45 * SECOND, 300 * SECOND)
    return JoinGroupRequest(
        w.fields["group"], member, w.speaker, subscription, protocols, *timeouts
    )


def _sync(w: Words) -> Request:
    shares = {}
    for word in w.plain:
        member, _, places = word.rpartition(":")
        shares[member] = tuple(place_in(name) for name in names_in(places))
    return SyncGroupRequest(w.fields["group"], w.member, w.number("generation"), shares)


def _consumer_beat(w: Words) -> Request:
    joins = w.number("epoch") == 0
    return ConsumerGroupHeartbeatRequest(
        w.fields["group"],
        w.member,
        w.number("epoch"),
        300 * SECOND if joins else None,
        w.names("topics") if "topics" in w.fields else None,
        owned=w.places("owned") if "owned" in w.fields else None,
    )


def _add_partitions(w: Words) -> Request:
    name = w.fields["transactional_id"]
    return AddPartitionsToTxnRequest(
        name, *w.identity, w.places("partitions"), "verify_only" in w.plain
    )


def _pre_vote(w: Words) -> Request:
    offset, _, epoch = w.fields["log_end"].partition("@")
    last = int(epoch), int(offset)
    return VoteRequest(w.node, w.number("epoch"), *last, "pre_vote" in w.plain)


_READERS: dict[str, Callable[[Words], Request]] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "OffsetForLeaderEpoch": lambda w: OffsetForLeaderEpochRequest(
        w.place, w.number("epoch"), w.number("current")
    ),
    "BrokerHeartbeat": _beat,
    "BrokerRegistration": lambda w: BrokerRegistrationRequest(
        w.node, w.fields["incarnation"], "", -1, (f"dir-{w.node}",)
    ),
    "ElectLeaders": lambda w: ElectLeadersRequest(
        "unclean" if w.plain[0] == "unclean" else "preferred",
        tuple(place_in(name) for name in names_in(w.plain[1])),
    ),
    "Vote": _pre_vote,
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "Heartbeat": lambda w: HeartbeatRequest(w.fields["group"], w.member, w.number("generation")),
    "LeaveGroup": lambda w: LeaveGroupRequest(w.fields["group"], w.member),
    "ConsumerGroupHeartbeat": _consumer_beat,
    "InitProducerId": lambda w: InitProducerIdRequest(
        w.fields.get("transactional_id", ""), 60 * SECOND, *w.identity
    ),
    "AddPartitionsToTxn": _add_partitions,
    "EndTxn": lambda w: EndTxnRequest(
        w.fields["transactional_id"], *w.identity, w.plain[0] == "commit"
    ),
}


def request_of(speaker: str, text: str) -> Request:
    """The request that a line says.

    Raises:
        ValueError: If it is none, or says something that the request does not.
    """
    name, *words = text.split()
    if name not in _READERS:
        raise ValueError(f"{speaker} cannot say {name}; known: {', '.join(sorted(_READERS))}")
    plain = tuple(word for word in words if "=" not in word)
    fields = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        request = _READERS[name](Words(speaker, plain, fields))
    except (KeyError, IndexError) as missing:
        raise ValueError(f"{name} lacks {missing}: {text}") from missing
    if text_of(request) != text:
        raise ValueError(f"{text!r} is understood as {text_of(request)!r}")
    return request
