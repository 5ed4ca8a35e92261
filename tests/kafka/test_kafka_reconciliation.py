"""Each step of a member towards its target against Apache Kafka's group coordinator."""

import random
import subprocess

import pytest

from sim.ids import TopicPartition
from sim.protocol.coordinator.group.consumer_group_records import MemberState
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroupMember
from sim.protocol.coordinator.group.reconciliation import reconcile
from tests.kafka.apache import HERE, java

pytestmark = pytest.mark.kafka

CASES = 3_000
EVERY = range(6)


def places(numbers):
    return tuple(TopicPartition("t", number) for number in sorted(numbers))


def text(partitions):
    return ",".join(str(place.partition) for place in partitions)


def cases():
    """Members in every state, with what others have, and what they say they own."""
    draw = random.Random(848)
    for _ in range(CASES):
        numbers = draw.sample(EVERY, len(EVERY))
        cuts = sorted(draw.randint(0, len(EVERY)) for _ in range(3))
        state = MemberState(draw.randint(0, 2))
        assigned, pending, others = (
            numbers[: cuts[0]], numbers[cuts[0] : cuts[1]], numbers[cuts[1] : cuts[2]],
        )  # fmt: skip
        if state is not MemberState.UNREVOKED_PARTITIONS:
            others, pending = [*others, *pending], []
        epoch = draw.randint(1, 4)
        member = ConsumerGroupMember(
            "m",
            epoch=epoch,
            previous_epoch=draw.randint(0, epoch),
            state=state,
            assigned=places(assigned),
            pending_revocation=places(pending),
        )
        target = places(draw.sample(EVERY, draw.randint(0, len(EVERY))))
        owned = None if draw.random() < 0.3 else places(draw.sample(EVERY, draw.randint(0, 4)))
        yield member, draw.randint(epoch, 5), target, places(others), owned


def line(member, epoch, target, others, owned):
    parts = [
        int(member.state), member.epoch, member.previous_epoch, text(member.assigned),
        text(member.pending_revocation), epoch, text(target), text(others),
        "-" if owned is None else text(owned),
    ]  # fmt: skip
    return ";".join(map(str, parts))


def ours(member, epoch, target, others, owned):
    owners = dict.fromkeys(others, "n")
    owners |= dict.fromkeys((*member.assigned, *member.pending_revocation), "m")
    after = reconcile(member, epoch, target, owners, owned)
    return (
        f"{int(after.state)};{after.epoch};{after.previous_epoch};"
        f"{text(after.assigned)};{text(after.pending_revocation)}"
    )


def test_a_member_goes_where_kafkas_own_coordinator_sends_it(kafka):
    given = list(cases())
    asked = "\n".join(line(*case) for case in given)
    command = java(str(HERE / "Reconciliations.java"))
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = done.stdout.splitlines()
    for case, answer in zip(given, theirs, strict=True):
        assert ours(*case) == answer, line(*case)
    assert len({answer.split(";")[0] for answer in theirs}) == 3, "every state was reached"
