"""Messages as a dialogue writes them: what a request or an answer says, in one line of text.

Broker epochs, directories, byte limits and time-outs are left out. Batches are written as offsets
and leader epoch: ``0..1@0,2@1``.
"""

from collections.abc import Callable, Iterable
from typing import Any

from sim.error_codes import ErrorCode
from sim.protocol.messages.admin import ElectLeadersRequest, ElectLeadersResponse
from sim.protocol.messages.cluster import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from sim.protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from sim.protocol.messages.data import (
    READ_COMMITTED,
    FetchRequest,
    FetchResponse,
    LeaderHint,
    ProduceRequest,
    ProduceResponse,
)
from sim.protocol.messages.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from sim.protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sim.protocol.messages.metadata import InitProducerIdRequest, InitProducerIdResponse
from sim.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)
from sim.protocol.messages.transaction import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from sim.protocol.metadata import records as r
from sim.protocol.ports import NO_EPOCH_END


def numbers(values: Iterable[object]) -> str:
    """A list as in Kafka's tools: ``1,2,3``; ``none`` if it is empty."""
    return ",".join(map(str, values)) or "none"


def batches(found: Iterable[Any]) -> str:
    """Offsets and leader epoch of each batch."""
    texts = []
    for batch in found:
        ends = str(batch.base_offset)
        if batch.last_offset != batch.base_offset:
            ends += f"..{batch.last_offset}"
        texts.append(f"{ends}@{batch.leader_epoch}")
    return numbers(texts)


def unless(value: object, usual: object, text: str) -> str:
    """A field, unless it has its usual value."""
    return "" if value == usual else text


def named(**fields: object) -> str:
    """Fields by name, in this order."""
    return " ".join(f"{name}={value}" for name, value in fields.items())


def said(error: ErrorCode) -> str:
    """An error; nothing if there is none."""
    return unless(error, ErrorCode.NONE, error.name)


def producer(batch: Any) -> str:
    """A batch's identity, if its producer is idempotent."""
    return unless(batch.producer_id, -1, identity(batch) + f" sequence={batch.base_sequence}")


def identity(request: Any) -> str:
    """Producer id and epoch."""
    return named(producer_id=request.producer_id, epoch=request.producer_epoch)


def hint(found: LeaderHint | None) -> str:
    """The leader that an error names (KIP-951)."""
    return "" if found is None else named(leader=found.leader, leader_epoch=found.leader_epoch)


# -- the data plane -------------------------------------------------------------------------------


def _produce(request: ProduceRequest) -> str:
    acks = "all" if request.acks == -1 else request.acks
    parts = [
        f"{place} acks={acks} records={batch.record_count} {producer(batch)}"
        for place, batch in request.batches
    ]
    return "; ".join(parts) + unless(
        request.transactional_id, "", f" transactional_id={request.transactional_id}"
    )


def _produced(response: ProduceResponse) -> str:
    return "; ".join(
        f"{p.partition} {said(p.error)} {hint(p.hint)}"
        + unless(p.base_offset, -1, f"base_offset={p.base_offset}")
        for p in response.results
    )


def _fetch(request: FetchRequest) -> str:
    number, epoch = request.session_id, request.session_epoch
    parts = [f"session={number}/{epoch}" if epoch else "session=new"]
    parts += [
        f"{p.partition} offset={p.fetch_offset}"
        + unless(p.leader_epoch, -1, f" leader_epoch={p.leader_epoch}")
        + unless(p.last_fetched_epoch, -1, f" last_epoch={p.last_fetched_epoch}")
        for p in request.partitions
    ]
    parts += [f"forgets {place}" for place in request.forgotten]
    committed = request.isolation_level == READ_COMMITTED
    return "; ".join(parts) + (" read_committed" if committed else "")


def _fetched(response: FetchResponse) -> str:
    parts = [f"{said(response.error)} session={response.session_id}"]
    for result in response.results:
        words = [str(result.partition), said(result.error), hint(result.hint)]
        if result.diverging != NO_EPOCH_END:
            words.append(f"diverging_epoch={result.diverging.epoch}")
            words.append(f"end_offset={result.diverging.offset}")
        elif result.error is ErrorCode.NONE:
            words.append(unless(result.batches, (), f"records={batches(result.batches)}"))
            words.append(f"high_watermark={result.high_watermark}")
        words.append(
            unless(result.last_stable_offset, -1, f"last_stable_offset={result.last_stable_offset}")
        )
        words += [f"aborted={a.producer_id}@{a.first_offset}" for a in result.aborted]
        parts.append(" ".join(words))
    return "; ".join(parts)


def _epoch_end(request: OffsetForLeaderEpochRequest) -> str:
    asked = unless(request.current_leader_epoch, -1, f"current={request.current_leader_epoch}")
    return f"{request.partition} epoch={request.leader_epoch} {asked}"


def _epoch_ended(response: OffsetForLeaderEpochResponse) -> str:
    found = named(epoch=response.leader_epoch, end_offset=response.end_offset)
    return f"{response.partition} {said(response.error) or found}"


# -- the controller -------------------------------------------------------------------------------


def _alter(request: AlterPartitionRequest) -> str:
    return "; ".join(
        f"{item.partition} isr={numbers(member.broker for member in item.in_sync)} "
        + named(leader_epoch=item.leader_epoch, partition_epoch=item.partition_epoch)
        for item in request.items
    )


def _altered(response: AlterPartitionResponse) -> str:
    parts = [said(response.error)]
    for p in response.results:
        state = named(
            leader=p.leader,
            leader_epoch=p.leader_epoch,
            isr=numbers(p.in_sync),
            partition_epoch=p.partition_epoch,
        )
        parts.append(f"{p.partition} {said(p.error) or state}")
    return "; ".join(part for part in parts if part)


def _beat(request: BrokerHeartbeatRequest) -> str:
    wants = [" want_fence" if request.want_fence else ""]
    wants += [" want_shut_down" if request.want_shut_down else ""]
    return "".join(wants)


def _beaten(response: BrokerHeartbeatResponse) -> str:
    words = ["fenced" if response.is_fenced else "unfenced"]
    words += ["should_shut_down"] if response.should_shut_down else []
    return said(response.error) or " ".join(words)


def _elect(request: ElectLeadersRequest) -> str:
    return f"{request.kind} {numbers(request.partitions)}"


def _errors(response: Any) -> str:
    return "; ".join(f"{name} {error.name}" for name, error in response.errors)


# -- the metadata quorum --------------------------------------------------------------------------


def _vote(request: VoteRequest) -> str:
    kind = "pre_vote " if request.pre_vote else ""
    last = f"log_end={request.last_offset}@{request.last_epoch}"
    return f"{kind}epoch={request.epoch} {last}"


def _voted(response: VoteResponse) -> str:
    answer = "granted" if response.granted else "refused"
    return f"{said(response.error) or answer} epoch={response.epoch}" + unless(
        response.leader, -1, f" leader={response.leader}"
    )


def _quorum_epoch(message: Any) -> str:
    error = said(getattr(message, "error", ErrorCode.NONE))
    return f"{error} {named(leader=message.leader, epoch=message.epoch)}"


def _quorum_fetch(request: QuorumFetchRequest) -> str:
    return named(
        offset=request.fetch_offset,
        epoch=request.epoch,
        last_epoch=request.last_fetched_epoch,
        high_watermark=request.high_watermark,
    )


def _quorum_fetched(response: QuorumFetchResponse) -> str:
    words = [said(response.error), named(leader=response.leader, epoch=response.epoch)]
    if response.diverging != NO_EPOCH_END:
        words.append(f"diverging_epoch={response.diverging.epoch}")
        words.append(f"end_offset={response.diverging.offset}")
    words.append(unless(response.batches, (), f"records={batches(response.batches)}"))
    words.append(unless(response.high_watermark, -1, f"high_watermark={response.high_watermark}"))
    return " ".join(words)


# -- groups ---------------------------------------------------------------------------------------


def _join(request: JoinGroupRequest) -> str:
    subscription = request.subscription
    return named(
        group=request.group,
        member=request.member_id or "none",
        topics=numbers(subscription.topics),
        protocols=numbers(request.protocols),
    ) + unless(subscription.owned, (), f" owned={numbers(subscription.owned)}")


def _joined(response: JoinGroupResponse) -> str:
    if response.error is not ErrorCode.NONE:
        return f"{response.error.name} " + unless(
            response.member_id, "", f"member={response.member_id}"
        )
    owned = [f" {name}:{numbers(s.owned)}" for name, s in response.members if s.owned]
    return (
        named(
            generation=response.generation,
            member=response.member_id,
            leader=response.leader,
            protocol=response.protocol,
        )
        + unless(response.members, (), f" members={numbers(name for name, _ in response.members)}")
        + "".join(owned)
    )


def _sync(request: SyncGroupRequest) -> str:
    shares = [f" {member}:{numbers(share)}" for member, share in request.assignments.items()]
    who = named(group=request.group, generation=request.generation, member=request.member_id)
    return who + "".join(shares)


def _in_group(request: Any) -> str:
    return named(group=request.group, generation=request.generation, member=request.member_id)


def _consumer_beat(request: ConsumerGroupHeartbeatRequest) -> str:
    who = named(group=request.group, member=request.member_id, epoch=request.member_epoch)
    owned = "" if request.owned is None else f" owned={numbers(request.owned)}"
    topics = "" if request.topics is None else f" topics={numbers(request.topics)}"
    return who + topics + owned


def _consumer_beaten(response: ConsumerGroupHeartbeatResponse) -> str:
    share = response.assignment
    given = "" if share is None else f" assignment={numbers(share)}"
    return said(response.error) or f"epoch={response.member_epoch}{given}"


# -- transactions ---------------------------------------------------------------------------------


def _init(request: InitProducerIdRequest) -> str:
    name = unless(request.transactional_id, "", f"transactional_id={request.transactional_id} ")
    return name + unless(request.producer_id, -1, identity(request))


def _identity(response: Any) -> str:
    known = unless(response.producer_id, -1, identity(response))
    return said(response.error) or known or "NONE"


def _in_transaction(request: AddPartitionsToTxnRequest) -> str:
    verify = " verify_only" if request.verify_only else ""
    name = f"transactional_id={request.transactional_id}"
    return f"{name} {identity(request)} partitions={numbers(request.partitions)}{verify}"


def _end(request: EndTxnRequest) -> str:
    outcome = "commit" if request.committed else "abort"
    return f"{outcome} transactional_id={request.transactional_id} {identity(request)}"


def _markers(request: WriteTxnMarkersRequest) -> str:
    outcome = "commit" if request.committed else "abort"
    return f"{outcome} {identity(request)} partitions={numbers(request.partitions)}"


def _error(response: Any) -> str:
    return str(response.error.name)


_FORMS: dict[type, Callable[[Any], str]] = {
    ProduceRequest: _produce,
    ProduceResponse: _produced,
    FetchRequest: _fetch,
    FetchResponse: _fetched,
    OffsetForLeaderEpochRequest: _epoch_end,
    OffsetForLeaderEpochResponse: _epoch_ended,
    AlterPartitionRequest: _alter,
    AlterPartitionResponse: _altered,
    BrokerRegistrationRequest: lambda request: f"incarnation={request.incarnation}",
    BrokerRegistrationResponse: _error,
    BrokerHeartbeatRequest: _beat,
    BrokerHeartbeatResponse: _beaten,
    ElectLeadersRequest: _elect,
    ElectLeadersResponse: _errors,
    VoteRequest: _vote,
    VoteResponse: _voted,
    BeginQuorumEpochRequest: _quorum_epoch,
    EndQuorumEpochRequest: _quorum_epoch,
    QuorumEpochResponse: _quorum_epoch,
    QuorumFetchRequest: _quorum_fetch,
    QuorumFetchResponse: _quorum_fetched,
    JoinGroupRequest: _join,
    JoinGroupResponse: _joined,
    SyncGroupRequest: _sync,
    SyncGroupResponse: lambda answer: said(answer.error) or numbers(answer.assignment),
    HeartbeatRequest: _in_group,
    HeartbeatResponse: _error,
    LeaveGroupRequest: lambda request: named(group=request.group, member=request.member_id),
    LeaveGroupResponse: _error,
    ConsumerGroupHeartbeatRequest: _consumer_beat,
    ConsumerGroupHeartbeatResponse: _consumer_beaten,
    InitProducerIdRequest: _init,
    InitProducerIdResponse: _identity,
    AddPartitionsToTxnRequest: _in_transaction,
    AddPartitionsToTxnResponse: _error,
    EndTxnRequest: _end,
    EndTxnResponse: _identity,
    WriteTxnMarkersRequest: _markers,
    WriteTxnMarkersResponse: _errors,
}


def text_of(message: object) -> str:
    """A message in one line: Kafka's name for it, then what it says."""
    kind = type(message)
    name = kind.__name__.removesuffix("Request").replace("QuorumFetch", "Fetch")
    return " ".join(f"{name} {_FORMS[kind](message)}".replace(" ;", ";").split())


# -- metadata records -----------------------------------------------------------------------------


def _changed(record: Any, topics: dict[str, str]) -> str:
    fields = {
        "leader": record.leader,
        "isr": None if record.in_sync is None else numbers(record.in_sync),
        "elr": None if record.eligible is None else numbers(record.eligible),
        "last_known_elr": None
        if record.last_known_eligible is None
        else numbers(record.last_known_eligible),
        "recovering": None if record.recovering is None else str(record.recovering).lower(),
    }
    known = {name: value for name, value in fields.items() if value is not None}
    return f"{topics[record.topic_id]}-{record.partition} {named(**known)}"


def record_text(record: object, topics: dict[str, str]) -> str:
    """A metadata record in one line; "" for one that no dialogue is about."""
    match record:
        case r.PartitionChangeRecord():
            return f"PartitionChangeRecord {_changed(record, topics)}"
        case r.RegisterBrokerRecord():
            return f"RegisterBrokerRecord broker-{record.broker} fenced"
        case r.BrokerRegistrationChangeRecord():
            changes = ["fenced"] if record.fenced == r.FENCE else []
            changes += ["unfenced"] if record.fenced == r.UNFENCE else []
            changes += ["in_controlled_shutdown"] if record.in_controlled_shutdown else []
            return f"BrokerRegistrationChangeRecord broker-{record.broker} {' '.join(changes)}"
        case _:
            return ""
