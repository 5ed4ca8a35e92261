"""A running cluster is only read; its client's secrets stay secret; the command's mistakes."""

import json
import socket
import ssl
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.errors import SimulationError
from sim.importer.live.client_config import options_of, read
from sim.importer.live.group_describe import ConsumerGroupDescribe, Described
from sim.importer.live.guard import ALLOWED, Gate, WriteRefused
from sim.importer.live.translate import sources_of
from sim.scenario.loader import load_text
from sim.wire.definitions import definition, keys
from sim.wire.fields import Writer
from tests.importer.refusals import refused
from tests.importer.test_importer_cluster import OLD_TOPICS
from tests.importer.test_importer_live import CANARY, cluster

# -- nothing is written ----------------------------------------------------------------------------


def frame(key, size=8):
    return struct.pack(">ih", size, key) + b"\0" * (size - 2)


def test_only_requests_that_read_pass_the_gate():
    names = {key: name.removesuffix("Request") for name, key in keys("request").items()}
    for key, name in names.items():
        gate = Gate()
        if key in ALLOWED:
            assert ALLOWED[key] == name
            gate.check_frames(frame(key))
            assert gate.sent[key] == 1
            continue
        with pytest.raises(WriteRefused):
            gate.check_frames(frame(key))
        with pytest.raises(WriteRefused):
            gate.check_request(SimpleNamespace(API_KEY=key))
        assert not gate.sent
    reads = ("Describe", "List", "Metadata", "OffsetFetch", "ApiVersions", "Sasl", "ConsumerGroupD")
    assert all(name.startswith(reads) for name in ALLOWED.values())


@pytest.mark.parametrize(
    "data",
    [frame(3) + frame(19), frame(3)[:5], frame(3) + b"\0", struct.pack(">ih", -1, 3), frame(3)[:8]],
)  # fmt: skip
def test_a_write_behind_a_read_and_what_is_no_request_do_not_pass(data):
    with pytest.raises(WriteRefused):
        Gate().check_frames(data)


def test_metadata_that_could_create_a_topic_does_not_pass():
    def metadata(topics, creates):
        return SimpleNamespace(API_KEY=3, topics=topics, allow_auto_topic_creation=creates)

    Gate().check_request(metadata(None, creates=True))
    Gate().check_request(metadata(["t"], creates=False))
    with pytest.raises(WriteRefused, match="may create topics"):
        Gate().check_request(metadata(["t"], creates=True))


def test_group_descriptions_are_encoded_and_decoded_as_kafka_defines_them():
    request = ConsumerGroupDescribe(["a", "bb"])
    request.with_header(correlation_id=7, client_id="me")
    data = request.encode(framed=True, header=True)
    assert data == bytes.fromhex(
        "00000015" "0045" "0000" "00000007" "0002" "6d65" "00" "03" "02" "61" "03" "6262" "00" "00"
    )  # fmt: skip
    Gate().check_frames(data)
    schema = definition("ConsumerGroupDescribeResponse").schema
    member = {
        "memberId": "m", "memberEpoch": 1, "clientId": "c", "clientHost": "h",
        "subscribedTopicNames": ["t"],
        "assignment": {"topicPartitions": []}, "targetAssignment": {"topicPartitions": []},
    }  # fmt: skip
    group = {
        "errorCode": 0, "groupId": "a", "groupState": "Stable", "groupEpoch": 1,
        "assignmentEpoch": 1, "assignorName": "uniform", "members": [member],
    }  # fmt: skip
    body = Writer(schema, 0, flexible=True).structure(
        schema.fields, {"throttleTimeMs": 0, "groups": [group]}
    )
    (found,) = Described.decode(memoryview_of(body)).groups
    assert (found["assignorName"], found["members"][0]["clientId"]) == ("uniform", "c")


def memoryview_of(body):
    return SimpleNamespace(read=lambda: body)


# -- the client's properties, and secrets ----------------------------------------------------------

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": 'x.ScramLoginModule required username=\'me\'\n  password="a\\"b;c";',
}


def test_properties_of_kafkas_own_tools_are_taken():
    found = options_of(SASL | {"request.timeout.ms": "5000", "my.own": CANARY})
    assert found.options == {
        "security_protocol": "SASL_PLAINTEXT",
        "request_timeout_ms": 5_000,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": 'a"b;c',
    }
    assert found.unused == ["my.own"]
    assert "b;c" not in repr(found)
    tls = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}
    context = options_of(tls).options["ssl_context"]
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"security.protocol": CANARY}, "security.protocol: not one that is known here; allowed"),
        (SASL | {"sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism: not one that is known here"),
        (SASL | {"sasl.jaas.config": f"x required username={CANARY};"}, 'no password="..."'),
        (SASL | {"sasl.jaas.config": "${file:x:y}"}, "configuration providers are not read"),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": f"/{CANARY}.jks"},
            "ssl.truststore.location: a Java store cannot be read here; convert it to PEM",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.certificates": f"-----BEGIN {CANARY}"},
            "no certificates in PEM can be read there",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.key": CANARY}, "a key inside the properties"),
        (
            {
                "security.protocol": "SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": f"/no/{CANARY}",
                "ssl.key.password": CANARY,
            },
            "is ssl.key.password right?",
        ),
        ({"request.timeout.ms": CANARY}, "request.timeout.ms: allowed: a whole number"),
    ],
)
def test_a_clients_properties_that_cannot_be_used_are_refused_without_their_values(values, line):
    with pytest.raises(SimulationError) as caught:
        options_of(values)
    assert line in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_file_of_properties_is_named_in_the_message(tmp_path):
    path = tmp_path / "client.properties"
    with pytest.raises(SimulationError, match=r"client\.properties: cannot be read"):
        read(path)
    path.write_text(f"security.protocol={CANARY}\n")
    with pytest.raises(SimulationError, match=r"client\.properties: security\.protocol: not one"):
        read(path)


# -- the command -----------------------------------------------------------------------------------


def invoke(*words):
    return CliRunner().invoke(app, ["import", *(str(word) for word in words)])


def given(monkeypatch, answer):
    """The command with an answer in place of a cluster."""
    module = SimpleNamespace(live_sources=answer)
    monkeypatch.setitem(sys.modules, "sim.importer.live.cluster", module)


def test_the_command_writes_what_the_cluster_said(monkeypatch, tmp_path):
    calls = []

    def answer(*words):
        calls.append(words[:3])
        return sources_of(cluster())

    given(monkeypatch, answer)
    out = tmp_path / "mine.yaml"
    words = ["--bootstrap", "h:1,i:2", "--for", "90s", "--out", out]
    done = invoke(*words, "--strict")
    assert (done.exit_code, done.stdout) == (0, "")
    assert calls == [("h:1,i:2", None, 90_000_000)]
    assert "measured: orders: 40.0 records/s" in done.stderr
    assert "not known: producers: " in done.stderr
    assert "imported: brokers 3, topics 2; nothing not simulated or not alike" in done.stderr
    assert load_text(out.read_text()).producers
    printed = json.loads(invoke("--bootstrap", "h:1", "--json").stdout)
    assert printed["measured"][0] == "for 10 s, from offsets and sizes of logs"
    assert len(printed["not_known"]) == 4


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "nothing to read: give files, or --bootstrap HOST:PORT"),
        (("--for", "9s"), "--command-config and --for go with --bootstrap"),
        (("--bootstrap", "h:1", "--for", "9"), "--for: '9' has no unit"),
        (("--bootstrap", "h:1", "--for", "1ms"), "--for: less than a second"),
        (("--bootstrap", "kafka"), "--bootstrap: allowed: HOST:PORT, several joined by commas"),
        (("--bootstrap", "a:1,http://b:2"), "--bootstrap: allowed: HOST:PORT"),
        (("--bootstrap", "h:1", "topics.txt"), "beside --bootstrap only a producer's properties"),
    ],
)
def test_options_that_do_not_fit_are_refused(words, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("topics.txt").write_text(OLD_TOPICS)
    done = invoke(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert line in done.stderr


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_cluster_that_is_not_there_is_named_with_the_reason(is_silent):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        if not is_silent:
            listening.close()
        message = refused("--bootstrap", f"127.0.0.1:{port}")
    why = "no answer in time" if is_silent else "connection refused: does a broker listen there?"
    assert message.startswith(f"--bootstrap 127.0.0.1:{port}: no broker answers: {why}")


def test_without_kafka_python_the_message_says_what_to_install(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("sim.importer.live.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kafka", None)
    done = invoke("--bootstrap", "h:1")
    assert done.exit_code == 2
    assert "--bootstrap needs kafka-python: pip install 'logquake[live]'" in done.stderr


def test_no_secret_is_in_the_traceback_of_a_defect_while_a_cluster_is_read(monkeypatch):
    def broken(*_words):
        raise ValueError(f"password {CANARY}")

    given(monkeypatch, broken)
    done = invoke("--bootstrap", "h:1")
    assert done.exit_code == 4
    assert CANARY not in done.output
    assert "the import failed: ValueError at importing.py:" in done.output
