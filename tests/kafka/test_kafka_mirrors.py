"""What a mirror tells of offsets and makes of them, against Kafka's own classes."""

import random
import subprocess

import pytest

from sim.ids import TopicPartition
from sim.protocol.mirror.offsets import OffsetSyncStore, OffsetSyncWriter
from tests.kafka.apache import HERE, LIBRARY, java

pytestmark = pytest.mark.kafka

ORDERS = TopicPartition("orders", 0)


def history(seed):
    """Records of one partition on their way: in a row, behind a marker, behind a gap, twice."""
    draw = random.Random(seed)
    upstream, downstream = draw.choice((0, 0, 900_000)), draw.choice((0, 0, 17))
    runs = []
    for _ in range(draw.randrange(1, 60)):
        count = draw.choice((1, 2, 10, 97, 500))
        runs.append((upstream, downstream, count))
        upstream += count + draw.choice((0, 1, 1, 1, 3, 250))
        downstream += count + draw.choice((0, 0, 0, 1))
        if draw.random() < 0.03:
            upstream = max(0, upstream - 300)  # a mirror that begins again
    questions = sorted(draw.randrange(upstream + 50) for _ in range(60))
    return draw.choice((0, 1, 10, 100, 100, 1_000)), runs, questions


CASES = [history(seed) for seed in range(200)]


def ours(lag_max, runs, questions):
    writer, store = OffsetSyncWriter(lag_max), OffsetSyncStore()
    told = []
    for upstream, downstream, count in runs:
        told += writer.mirrored(ORDERS, upstream, downstream, count)
    for sync in told:
        store.take(sync)
    answers = [store.translate(ORDERS, asked) for asked in questions]
    syncs = "".join(f"{sync.upstream}/{sync.downstream}," for sync in told)
    return syncs + ":" + "".join(f"{'x' if found is None else found}," for found in answers)


def test_offsets_are_told_and_translated_as_by_kafkas_own_mirror(kafka, tmp_path):
    asked = [
        f"{lag}:{','.join('/'.join(map(str, run)) for run in runs)}:{','.join(map(str, questions))}"
        for lag, runs, questions in CASES
    ]
    source = str(HERE / "Translations.java")
    # In Kafka's own package, which only classes of that package see.
    done = subprocess.run(
        ["javac", "-cp", f"{LIBRARY}/*", "-d", str(tmp_path), source],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    main = "org.apache.kafka.connect.mirror.Translations"
    command = java(main, *asked)
    command[command.index("-cp") + 1] += f":{tmp_path}"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for case, line in zip(CASES, done.stdout.split(), strict=True):
        assert ours(*case) == line, case
