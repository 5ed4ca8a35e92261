"""A message is charged for what Kafka 4.3 would send: formulas against encoded messages."""

from importlib import import_module
from pkgutil import iter_modules

import pytest

from sim.protocol import messages
from sim.protocol.messages.base import Echo, Request, Response
from sim.protocol.messages.data import FetchRequest
from sim.protocol.messages.group import OffsetCommitResponse
from sim.wire.definitions import definition
from tests.log.list_log import ListBatch
from tests.protocol.messages import filled
from tests.protocol.messages.filled import FILLED, OTHER_NAMES
from tests.protocol.messages.kafka_sizes import kafka_size, negotiated
from tests.protocol.messages.rare import RARE

NOT_KAFKAS = {
    "RaftVote", "RaftAppend", "RaftHeartbeat", "RaftTimeoutNow", "RaftLeaders",
    "DecommissionBroker", "GetReplicaLogInfo", "TombstoneOffsets",
}  # fmt: skip
"""Requests between members of Redpanda's Raft groups; and one of KIP-966 that no release has."""

OBJECT_STORE = {"PutObject", "GetObject", "DeleteObject", "ObjectResponse"}
"""Calls of the object store, which speaks HTTP."""

COUNTS = (0, 1, 10, 200)
"""Elements of a message: none, few, and more than one byte can count."""


def kafka_name(instance):
    name = type(instance).__name__
    return OTHER_NAMES.get(name, name)


def by_name():
    return {type(pair[0](1)).__name__: pair for pair in FILLED}


def excess(name, n):
    """Bytes charged beyond what Kafka sends."""
    instance, values = by_name()[name]
    said = instance(n)
    if isinstance(said, Echo):
        request, _ = by_name()[f"{name.removesuffix('Response')}Request"]
        said = said.answering(request(n))
    return said.size_bytes - kafka_size(kafka_name(said), values(n))


def test_every_request_and_response_of_kafka_is_compared():
    modules = (
        import_module(f"{messages.__name__}.{m.name}") for m in iter_modules(messages.__path__)
    )
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    found = {kind.__name__ for kind in kinds if issubclass(kind, Request | Response)}
    ours = {f"{name}{end}" for name in NOT_KAFKAS for end in ("Request", "Response")}
    assert found - {"Request", "Response", "Echo"} - ours - OBJECT_STORE == by_name().keys()
    assert len(FILLED) == len(by_name())


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("name", by_name())
def test_a_message_is_charged_for_what_kafka_sends_to_the_byte(name, n):
    assert excess(name, n) == 0


@pytest.mark.parametrize("pair", RARE, ids=lambda pair: type(pair[0]).__name__)
def test_so_is_one_with_what_is_often_absent(pair):
    said, values = pair
    assert said.size_bytes == kafka_size(kafka_name(said), values)


@pytest.mark.parametrize(
    "name", ["ProduceRequest", "FetchResponse", "ShareFetchResponse", "QuorumFetchResponse"]
)
def test_record_batches_are_charged_byte_for_byte(name, monkeypatch):
    monkeypatch.setattr(filled, "BATCH", ListBatch(size_bytes=90_000))
    monkeypatch.setattr(filled, "BYTES", b"\0" * 90_000)
    assert excess(name, 10) == 0


def test_a_formula_that_is_changed_is_found(monkeypatch):
    monkeypatch.setattr(FetchRequest, "size_bytes", property(lambda self: self.sent_bytes + 1))
    assert excess("FetchRequest", 10) == 1


def test_a_response_that_repeats_its_request_has_no_size_without_it():
    response = OffsetCommitResponse(filled.NONE)
    with pytest.raises(AssertionError, match="paired"):
        assert response.size_bytes
    request, _ = by_name()["OffsetCommitRequest"]
    more = [response.answering(request(n)).size_bytes for n in (1, 2)]
    assert more[1] - more[0] == 4 + 2 + 1
    assert response.answering(request(1)) == response


def test_sizes_are_those_of_the_versions_that_kafka_negotiates():
    assert negotiated("FetchRequest") == negotiated("FetchResponse") == 18
    assert negotiated("InitProducerIdRequest") == 5, "the sixth is unstable"
    # Length, api key, version, correlation and client id; two texts and their tags, by hand.
    header = 4 + 2 + 2 + 4 + (2 + 10) + 1
    said = {"clientSoftwareName": "apache-kafka-java", "clientSoftwareVersion": "4.3.1"}
    assert kafka_size("ApiVersionsRequest", said) == header + (1 + 17) + (1 + 5) + 1
    one = {"partitions": [{}]}
    fetch = 4 + 4 + 4 + 1 + 4 + 4 + (1 + (16 + (1 + 33) + 1)) + 1 + 1 + 1
    assert kafka_size("FetchRequest", {"topics": [one]}) == header + fetch
    assert definition("ApiVersionsResponse").flexible_since == 3
    assert kafka_size("ApiVersionsResponse", {}) == 4 + 4 + (2 + 1 + 4 + 1)
