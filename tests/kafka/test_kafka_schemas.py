"""Our tables of messages against the message definitions that Apache Kafka's own jars carry."""

import json
import re
import zipfile

import pytest

from sim.inspect.dump import dump
from sim.wire.fields import Schema, default_of
from sim.wire.record_batch import NewRecord, build_batch
from sim.wire.schemas import encode, messages

pytestmark = pytest.mark.kafka

JARS = {
    "kafka-metadata": "metadata",
    "kafka-group-coordinator": "coordinator",
    "kafka-share-coordinator": "coordinator",
    "kafka-transaction-coordinator": "coordinator",
}
BLOBS = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")
CONTROL = (
    "LeaderChangeMessage", "SnapshotHeaderRecord", "SnapshotFooterRecord", "KRaftVersionRecord",
    "VotersRecord",
)  # fmt: skip


def definitions(library):
    """Every message of the jars, by name."""
    found = {}
    for jar in sorted(library.glob("kafka-*.jar")):
        wanted = any(jar.name.startswith(f"{name}-4") for name in (*JARS, "kafka-clients"))
        if not wanted:
            continue
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.startswith("common/") and name.endswith(".json"):
                    text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                    text = re.sub(r"//[^\"\n]*$", "", text, flags=re.MULTILINE)
                    message = json.loads(text)
                    found[message["name"]] = message
    return found


@pytest.fixture(scope="module")
def theirs(kafka):
    return definitions(kafka.LIBRARY)


def span(text):
    """Versions like ``3+``, ``0-1`` or ``none`` as a range."""
    if text is None or text == "none":
        return range(0)
    low, _, high = text.partition("-")
    if text.endswith("+"):
        return range(int(text[:-1]), 1 << 15)
    return range(int(low), int(high or low) + 1)


def their_layout(message, fields, version, structures):
    """Fields of a version: name, type (nested ones in place), nullable, tag and default."""
    layout = []
    for field in fields:
        tagged = version in span(field.get("taggedVersions"))
        if version not in span(field.get("versions", field.get("taggedVersions"))):
            continue
        kind = field["type"].removeprefix("[]")
        nested = field.get("fields") or structures.get(kind)
        what = their_layout(message, nested, version, structures) if nested else kind
        nullable = version in span(field.get("nullableVersions"))
        tag = field["tag"] if tagged else None
        layout.append(
            (
                field["name"].lower(),
                field["type"].startswith("[]"),
                what,
                nullable,
                tag,
                their_default(field, nested, version) if tagged else None,
            )
        )
    return layout


def their_default(field, nested, version):
    """The default of a field, as we would say it; a ``null`` without quotes means none."""
    given = field.get("default")
    if given == "null":
        return None
    if field["type"].startswith("[]"):
        return []
    if nested:
        return {
            inner["name"][0].lower() + inner["name"][1:]: their_default(inner, None, version)
            for inner in nested
            if version in span(inner["versions"])
        }
    if field["type"] == "uuid":
        return "A" * 22
    return int(str(given or 0), 0) if field["type"] != "string" else given or ""


def our_layout(schema: Schema, fields, version):
    layout = []
    for field in fields:
        if not field.in_version(version):
            continue
        inner = schema.structures.get(field.type)
        what = our_layout(schema, inner, version) if inner is not None else field.type
        nullable = field.nullable_since is not None and version >= field.nullable_since
        default = default_of(field, schema, version) if field.tag is not None else None
        layout.append((field.name.lower(), field.array, what, nullable, field.tag, default))
    return layout


REMOTE = sorted(name for name, message in messages().items() if message.kind == "remote log")
"""Records of ``__remote_log_metadata``: their jar has classes alone; Kafka's tool reads ours."""

OURS = sorted(set(messages()) - {"EndTxnMarker", *REMOTE})


@pytest.mark.parametrize("name", OURS)
def test_a_message_has_kafkas_fields_in_every_version(theirs, name):
    message = messages()[name]
    definition = theirs[name]
    assert list(message.versions) == list(span(definition["validVersions"]))
    if "apiKey" in definition and message.kind != "value":
        assert message.number == definition["apiKey"]
    flexible = span(definition["flexibleVersions"])
    structures = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    for version in message.versions:
        assert (version >= message.flexible_since) == (version in flexible)
        theirs_now = their_layout(definition, definition["fields"], version, structures)
        ours_now = our_layout(message.schema, message.schema.fields, version)
        if message.kind == "control":
            # The version inside a control record is its first field; here it is the prefix.
            assert theirs_now.pop(0)[0] == "version"
        assert ours_now == theirs_now


def test_every_record_that_kafka_may_write_to_its_internal_logs_is_known(theirs):
    kinds = ("metadata", "coordinator-key", "coordinator-value")
    wanted = {name for name, each in theirs.items() if each["type"] in kinds}
    assert len(wanted) > 60
    assert wanted - set(messages()) == set()
    assert set(CONTROL) | set(BLOBS) <= set(messages())


# -- every message, written by us, read by Kafka's tool -------------------------------------------

PLAIN = {
    "bool": True, "int8": 1, "int16": 2, "uint16": 9092, "int32": 3, "int64": 1 << 40,
    "float64": 2.5, "uuid": "dNAcL_edIud9BnlR3R025A", "string": "text", "bytes": b"\x01\x02",
}  # fmt: skip
SUBSCRIPTION = encode(
    "ConsumerProtocolSubscription", 1, {"topics": ["t"], "userData": b"", "ownedPartitions": []}
)
ASSIGNMENT = encode(
    "ConsumerProtocolAssignment",
    0,
    {"assignedPartitions": [{"topic": "t", "partitions": [0, 1]}], "userData": None},
)
KNOWN = {"subscription": SUBSCRIPTION, "assignment": ASSIGNMENT, "protocolType": "consumer"}


def sample(schema, fields, version, *, bare):
    """A value for every field: bare ones are null, empty or at their default where they can be."""
    values = {}
    for field in fields:
        if not field.in_version(version):
            continue
        if bare and (field.tag is not None or field.default is not None):
            continue
        inner = schema.structures.get(field.type)
        if field.nullable_since is not None and version >= field.nullable_since and bare:
            values[field.name] = None
            continue
        one = PLAIN.get(field.type) if bare else KNOWN.get(field.name, PLAIN.get(field.type))
        if inner is not None:
            one = sample(schema, inner, version, bare=bare)
        values[field.name] = ([] if bare else [one, one]) if field.array else one
    return values


def written(path, records):
    """A log of one-record batches."""
    batches = [
        build_batch([NewRecord(1_700_000_000_000, *record)], base_offset=offset, leader_epoch=0)
        for offset, record in enumerate(records)
    ]
    path.parent.mkdir()
    path.write_bytes(b"".join(batch.data for batch in batches))
    return path


def metadata_records():
    for name, message in messages().items():
        if message.kind == "metadata":
            for version in message.versions:
                for bare in (True, False):
                    values = sample(message.schema, message.schema.fields, version, bare=bare)
                    yield None, encode(name, version, values)


def coordinator_records(kind):
    known = messages()
    for name, message in known.items():
        if message.kind == kind:
            key = encode(name, 0, sample(message.schema, message.schema.fields, 0, bare=False))
            yield key, None
            value = known[name.removesuffix("Key") + "Value"]
            for version in value.versions:
                for bare in (True, False):
                    values = sample(value.schema, value.schema.fields, version, bare=bare)
                    yield key, encode(value.schema.name, version, values)


KINDS = {
    "cluster-metadata": metadata_records,
    "offsets": lambda: coordinator_records("key"),
    "transaction-log": lambda: coordinator_records("transaction key"),
    "share-group-state": lambda: coordinator_records("share state key"),
}


@pytest.mark.parametrize("decoder", KINDS)
def test_kafkas_tool_prints_every_message_that_we_encode_as_ours_does(kafka, tmp_path, decoder):
    records = list(KINDS[decoder]())
    path = written(tmp_path / "t-0" / f"{0:020d}.log", records)
    theirs = kafka.Dumped([path], f"--{decoder}-decoder")
    assert theirs.complaints == []
    for ours, line in zip(dump(path, decoder=decoder), theirs.lines, strict=True):
        assert ours == line
    assert not any("Error" in line for line in theirs.lines)
    assert sum(line.startswith("|") for line in theirs.lines) == len(records)


def test_kafkas_tool_reads_every_record_of_remote_segments_that_we_encode(kafka, tmp_path):
    assert len(REMOTE) == 4
    records = [
        (None, encode(name, 0, sample(schema, schema.fields, 0, bare=False)))
        for name, schema in ((name, messages()[name].schema) for name in REMOTE)
    ]
    path = written(tmp_path / "t-0" / f"{0:020d}.log", records)
    lines = kafka.Dumped([path], "--remote-log-metadata-decoder").lines
    read = [line for line in lines if line.startswith("|")]
    assert len(read) == len(records)
    for name, line in zip(REMOTE, read, strict=True):
        assert f" payload: {name.removesuffix('Record')}{{" in line
        known = {"startOffset": str(1 << 40), "brokerId": "3", "segmentSizeInBytes": "3"}
        shown = re.findall(r"(startOffset|brokerId|segmentSizeInBytes)=(\d+)", line)
        assert shown
        assert all(known[field] == value for field, value in shown)
