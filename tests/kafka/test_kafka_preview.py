"""What KRaft clusters of 2.8 and 3.2 leave in their metadata logs, read by those releases."""

import json
import subprocess

import pytest

from sim.log.partition.reading import file_batches
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.wire.schemas import decode
from tests.kafka.apache import by_turns
from tools.kafka_jars import RELEASES, jars

pytestmark = pytest.mark.kafka

TEXT = """
claim: A small cluster of one release, with a quota; a broker comes back.
cluster:
  kafka: "{release}"
  brokers: 3
  controllers: 1
  config: {{offsets.topic.num.partitions: 1}}
topics: {{orders: {{partitions: 2, replication.factor: 3}}}}
producers: [{{name: shop, topic: orders, rate: 50/s}}]
quotas: [{{client.id: shop, producer_byte_rate: 2MB/s}}]
consumers: [{{group: billing, topics: orders}}]
faults:
  - {{at: 2s, do: alter-config, topic: orders, config: {{retention.ms: 60000}}}}
  - {{at: 3s, do: restart, target: broker-2}}
run: {{for: 9s, seed: 3}}
"""


@pytest.fixture(scope="module", params=by_turns(("2.8", "3.0", "3.2"), "3.2"))
def release(request):
    return request.param


@pytest.fixture(scope="module")
def log(release, tmp_path_factory):
    out = tmp_path_factory.mktemp("preview") / "run"
    run(load_text(TEXT.format(release=release), "preview"), out=out)
    disk = out / "disks" / "controller-1" / "data-0" / "__cluster_metadata-0"
    [file] = disk.glob("*.log")
    return file


@pytest.fixture(scope="module")
def payloads(kafka, release, log, tmp_path_factory):
    """What the release's own tool prints of each record."""
    library = jars(RELEASES[release], tmp_path_factory.mktemp("jars") / release)
    done = subprocess.run(
        ["java", "-cp", f"{library}/*", "kafka.tools.DumpLogSegments",
         "--cluster-metadata-decoder", "--files", str(log)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "isvalid: false" not in done.stdout
    assert "skipping" not in done.stdout
    return [
        json.loads(line.partition("payload: ")[2])
        for line in done.stdout.splitlines()
        if "payload: " in line
    ]


def records(log):
    return [
        decode(record.value)
        for _, batch in file_batches(log)
        if not batch.is_control
        for record in batch.records()
    ]  # fmt: skip


RENAMED = {"producerIdsEnd": "nextProducerId"}
"""Fields that had another name in 3.0, for the same number."""


def kind(name):
    return "".join(f"_{c}" if c.isupper() else c.upper() for c in name).lstrip("_")


def test_the_release_s_own_tool_reads_every_record_as_we_do(payloads, log):
    ours = records(log)
    assert len(payloads) == len(ours) > 20
    for theirs, record in zip(payloads, ours, strict=True):
        assert (theirs["type"], theirs["version"]) == (kind(record.name), record.version)
        for field, value in theirs["data"].items():
            mine = record.values[RENAMED.get(field, field)]
            assert mine == value, (record.name, field)


def test_it_finds_the_records_of_its_release_alone(release, payloads):
    kinds = {payload["type"] for payload in payloads}
    assert {"REGISTER_BROKER_RECORD", "UNFENCE_BROKER_RECORD", "FENCE_BROKER_RECORD"} <= kinds
    assert not {"FEATURE_LEVEL_RECORD", "NO_OP_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"} & kinds
    assert ("QUOTA_RECORD" if release == "2.8" else "CLIENT_QUOTA_RECORD") in kinds
