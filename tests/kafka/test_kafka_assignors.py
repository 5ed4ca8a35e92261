"""Who gets which partitions, against the assignors of Kafka's own client."""

import random
import subprocess
from collections import Counter

import pytest

from sim.ids import TopicPartition
from sim.protocol.assignors.registry import ASSIGNORS
from sim.protocol.assignors.subscription import Subscription
from tests.kafka.apache import HERE, java

pytestmark = pytest.mark.kafka

CHAINS = 150
REBALANCES = 6
TOPICS = ("a", "b", "c", "d")
RACKS = "xyz"


class Group:
    """Members that come, go and change their minds, and what they say each time."""

    def __init__(self, draw, assignor):
        self.draw = draw
        self.assignor = assignor
        self.alike = draw.random() < 0.5
        self.in_racks = draw.random() < 0.5
        self.static = draw.random() < 0.3
        self.born = 0
        self.generation = 0
        self.counts = {topic: draw.randint(1, 9) for topic in TOPICS[: draw.randint(1, 4)]}
        self.together = draw.random() < 0.5
        self.wishes = {}
        self.racks = {}
        self.has = {}
        """What each member was last given, and in which generation."""
        for _ in range(draw.randint(1, 6)):
            self.join()

    def join(self):
        self.born += 1
        member = f"{self.draw.choice(('app', 'x', 'consumer'))}-{self.draw.randrange(10**6)}"
        self.wishes[member] = self.wish()
        self.racks[member] = self.draw.choice(("", *RACKS)) if self.in_racks else ""

    def wish(self):
        if self.alike:
            return tuple(self.counts)
        return tuple(self.draw.sample(sorted(self.counts), self.draw.randint(1, len(self.counts))))

    def change(self):
        draw = self.draw
        for member in list(self.wishes):
            if len(self.wishes) > 1 and draw.random() < 0.25:
                del self.wishes[member]
            elif not self.alike and draw.random() < 0.2:
                self.wishes[member] = self.wish()
        for _ in range(draw.choice((0, 0, 1, 1, 2))):
            self.join()
        if draw.random() < 0.2:
            self.counts[draw.choice(sorted(self.counts))] += 1

    def topics(self):
        def racks(number):
            if not self.in_racks:
                return ()
            return tuple(sorted(self.draw.sample(RACKS, self.draw.randint(1, 2))))

        count = max(self.counts.values())
        if self.together:
            placed = [racks(n) for n in range(count)]
            return {topic: tuple(placed[:many]) for topic, many in self.counts.items()}
        return {t: tuple(racks(n) for n in range(many)) for t, many in self.counts.items()}

    def say(self, member):
        share, generation = self.has.get(member, ((), -1))
        if self.draw.random() < 0.1:  # it was not there when the others went on
            generation -= 1 if generation > 0 else 0
        eager = self.assignor != "cooperative-sticky"
        lost = self.draw.random() < 0.1
        keeps = () if eager or lost else share
        if not eager and not lost and self.has and self.draw.random() < 0.1:
            other = self.draw.choice(sorted(self.has))
            keeps = tuple(dict.fromkeys((*keeps, *self.has[other][0])))
        return Subscription(
            self.wishes[member],
            keeps,
            -1 if lost else generation,
            self.racks[member],
            f"i-{member[-3:]}-{len(member)}" if self.static and len(member) % 2 else "",
            share if self.assignor == "sticky" else (),
            generation,
        )


def line(assignor, topics, members):
    def places(partitions):
        return "+".join(f"{p.topic}:{p.partition}" for p in partitions)

    told = ";".join(
        f"{topic}={'/'.join(''.join(racks) for racks in placed)}"
        for topic, placed in topics.items()
    )
    said = ";".join(
        f"{member},{s.instance_id},{s.rack},{s.generation},{'+'.join(s.topics)},"
        f"{places(s.owned)},{places(s.remembered)},{s.remembered_generation}"
        for member, s in members.items()
    )
    return f"{assignor}|{told}|{said}"


def cases(assignor):
    draw = random.Random(f"{assignor}")
    for _ in range(CHAINS):
        group = Group(draw, assignor)
        for _ in range(REBALANCES):
            topics = group.topics()
            members = {member: group.say(member) for member in group.wishes}
            shares = ASSIGNORS[assignor](members, topics)
            yield topics, members, shares
            group.generation += 1
            group.has = {member: (share, group.generation) for member, share in shares.items()}
            group.change()


@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
def test_partitions_go_where_kafkas_own_assignors_send_them(kafka, assignor):
    made = list(cases(assignor))
    asked = "\n".join(line(assignor, topics, members) for topics, members, _ in made)
    command = java(str(HERE / "Assignments.java"))
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kinds = Counter()
    told = [text[2:] for text in done.stdout.splitlines() if text.startswith("> ")]
    for (topics, members, ours), theirs in zip(made, told, strict=True):
        found = {}
        for share in theirs.rstrip(";").split(";"):
            member, _, listed = share.partition("=")
            names = [name.split(":") for name in listed.split("+") if name]
            found[member] = tuple(sorted(TopicPartition(t, int(n)) for t, n in names))
        assert ours == found, line(assignor, topics, members)
        kinds["alike"] += len({tuple(sorted(s.topics)) for s in members.values()}) == 1
        kinds["racks"] += any(s.rack for s in members.values())
        kinds["all given out"] += sum(map(len, ours.values())) == sum(map(len, topics.values()))
    assert all(count > 100 for count in kinds.values()), kinds
    assert kinds["alike"] < len(made)
