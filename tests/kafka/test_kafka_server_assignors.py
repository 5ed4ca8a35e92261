"""Server-side assignments against those of Apache Kafka's group coordinator."""

import json
import os
import random
import subprocess
import sys
from base64 import urlsafe_b64encode

import pytest

from sim.compiled import PURE_VARIABLE
from sim.ids import TopicPartition
from sim.protocol.coordinator.group.assignors.registry import SERVER_ASSIGNORS, TopicDescription
from tests.kafka.apache import HERE, java
from tests.scenarios.run_kit import ROOT

pytestmark = pytest.mark.kafka

HISTORIES = 400
ROUNDS = 5


def uuid(draw):
    while True:
        text = urlsafe_b64encode(draw.randbytes(16)).decode()[:22]
        if text[0] != "-":
            return text


class Groups:
    """Groups whose members come, go and change their minds; each round is asked of both."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.asked = []
        self.ours = []

    def histories(self, count):
        for _ in range(count):
            topics = {
                f"t{number}": TopicDescription(uuid(self.draw), self.draw.randint(1, 40))
                for number in range(self.draw.randint(1, 5))
            }
            names = [uuid(self.draw) for _ in range(self.draw.randint(1, 20))]
            alike = self.draw.random() < 0.5
            assignor = self.draw.choice(("uniform", "uniform", "range"))
            current = {}
            for _ in range(ROUNDS):
                here = self.draw.sample(names, self.draw.randint(1, len(names)))
                every = tuple(topics)
                wanted = {
                    member: every
                    if alike
                    else tuple(self.draw.sample(every, self.draw.randint(1, len(every))))
                    for member in here
                }
                current = {member: current.get(member, ()) for member in here}
                current = self.ask(assignor, topics, wanted, current)

    def ask(self, assignor, topics, wanted, current):
        def place(p):
            return f"{topics[p.topic].topic_id}.{p.partition}"

        said = ",".join(f"{t.topic_id}={t.partition_count}" for t in topics.values())
        members = ",".join(
            f"{member}:{'+'.join(topics[t].topic_id for t in names)}"
            f":{'+'.join(map(place, current[member]))}"
            for member, names in wanted.items()
        )
        self.asked.append(f"{assignor};{said};{members}")
        found = SERVER_ASSIGNORS[assignor](wanted, current, topics)
        self.ours.append({m: sorted(map(place, places)) for m, places in found.items()})
        return found


def theirs(asked):
    command = java(str(HERE / "ServerAssignments.java"))
    done = subprocess.run(
        command, input="\n".join(asked), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        pairs = (one.split("=") for one in line.split(";") if one)
        yield {member: sorted(text.split("+")) if text else [] for member, text in pairs}


def test_members_get_what_kafkas_own_coordinator_gives_them(kafka):
    groups = Groups(848)
    groups.histories(HISTORIES)
    answers = list(theirs(groups.asked))
    assert len(answers) == HISTORIES * ROUNDS
    for asked, ours, answer in zip(groups.asked, groups.ours, answers, strict=True):
        assert ours == answer, asked
    assert sum(line.startswith("range") for line in groups.asked) > HISTORIES


PLANTED = """
import json
from sim.protocol.coordinator.group.assignors import registry as server_assignors
from tests.kafka.test_kafka_server_assignors import Groups

server_assignors.string_order = sorted
groups = Groups(7)
groups.histories(20)
print(json.dumps([groups.asked, groups.ours]))
"""
"""In a process of its own, for compiled modules cannot be changed."""


def test_the_judge_tells_an_assignment_that_ignores_hash_codes(kafka):
    """The twin: members in the order of their names, in place of Java's tables."""
    done = subprocess.run(
        [sys.executable, "-c", PLANTED], cwd=ROOT, env=os.environ | {PURE_VARIABLE: "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    asked, ours = json.loads(done.stdout)
    assert list(theirs(asked)) != ours


def test_partitions_are_the_simulators_own(kafka):
    groups = Groups(9)
    topics = {"t": TopicDescription(uuid(groups.draw), 3)}
    found = groups.ask("uniform", topics, {"m": ("t",)}, {"m": ()})
    assert found == {"m": tuple(TopicPartition("t", number) for number in range(3))}
