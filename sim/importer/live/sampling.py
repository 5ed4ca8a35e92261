"""Offsets and sizes at two instants, from which the load of a cluster is computed.

Ends are asked of the partitions' leaders, committed offsets of the groups' coordinators, sizes of
every broker. Leaders are looked up for each sample, as they may move in between.

Source: ``ListOffsets`` (a consumer's end is the high watermark), ``OffsetFetch``,
``DescribeLogDirs`` (KIP-113).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest

from sim.importer.live.connection import Connection, NoAnswer
from sim.importer.live.facts import ClusterFacts, Place, Sample, some_of
from sim.importer.live.guard import Foreign
from sim.importer.live.reading import metadata, refusal

PARTITIONS_AT_ONCE: Final = 2_000

_LATEST, _EARLIEST = -1, -2
_CONSUMER: Final = -1
_NO_EPOCH: Final = -1
_READ_UNCOMMITTED: Final = 0
_SINCE_ALL_TOPICS: Final = 2
"""Version of OffsetFetch that can name every topic of a group by null."""

_LAST_FOR_ONE_GROUP: Final = 7
_OFFSETS_VERSION_MAX: Final = 7


def measure(
    connection: Connection, facts: ClusterFacts, seconds: float, say: Callable[[str], None]
) -> None:
    """Take two samples, so long after each other, and add them to the facts.

    Args:
        connection: An open one.
        facts: Brokers, topics and groups; gaps of both samples are added once each.
        seconds: Real time between the samples.
        say: Called each second.
    """
    for wait_s in (0.0, seconds):
        _wait(connection, wait_s, say)
        sampling = _Sampling(connection, facts)
        say("offsets")
        facts.samples.append(sampling.sample())
        facts.gaps += [line for line in sampling.gaps if line not in facts.gaps]


def _wait(connection: Connection, seconds: float, say: Callable[[str], None]) -> None:
    began = connection.now_s()
    while (passed := connection.now_s() - began) < seconds:
        say(f"load, {passed:.0f} s of {seconds:.0f} s")
        connection.wait(min(1.0, seconds - passed))


class _Sampling:
    def __init__(self, connection: Connection, facts: ClusterFacts) -> None:
        self._connection = connection
        self._facts = facts
        self.gaps: list[str] = []

    def sample(self) -> Sample:
        leaders = self._leaders()
        ends_s = self._connection.now_s()
        ends = self._offsets(leaders, _LATEST)
        committed_s = self._connection.now_s()
        committed = self._committed()
        sizes = self._sizes(leaders)
        starts = self._offsets(leaders, _EARLIEST)
        return Sample(ends_s, committed_s, ends, starts, sizes, committed)

    def _leaders(self) -> dict[Place, int]:
        try:
            answer = metadata(self._connection)
        except NoAnswer as error:
            self.gaps.append(f"offsets: not known: {error}")
            return {}
        found = {
            (topic.name, part.partition_index): part.leader_id
            for topic in answer.topics
            for part in topic.partitions
        }
        known = {topic.name for topic in self._facts.topics if not topic.internal}
        return {place: leader for place, leader in found.items() if place[0] in known}

    def _offsets(self, leaders: Mapping[Place, int], which: int) -> dict[Place, int]:
        found: dict[Place, int] = {}
        for leader in sorted(set(leaders.values())):
            places = sorted(place for place, node in leaders.items() if node == leader)
            if leader < 0:
                self._missing(places, "no leader")
                continue
            for first in range(0, len(places), PARTITIONS_AT_ONCE):
                some = places[first : first + PARTITIONS_AT_ONCE]
                try:
                    answer = self._connection.answer(_list_offsets(some, which), leader)
                except NoAnswer as error:
                    self._missing(some, str(error))
                    continue
                self._take(answer, found)
        return found

    def _take(self, answer: Foreign, found: dict[Place, int]) -> None:
        bad: dict[int, list[Place]] = {}
        for topic in answer.topics:
            for part in topic.partitions:
                place = (topic.name, part.partition_index)
                if part.error_code:
                    bad.setdefault(part.error_code, []).append(place)
                elif part.offset >= 0:
                    found[place] = part.offset
        for code, places in bad.items():
            self._missing(places, refusal(code, "Describe on the topic"))

    def _missing(self, places: Sequence[Place], why: str) -> None:
        names = some_of([f"{topic}-{number}" for topic, number in places])
        self.gaps.append(f"offsets of {names}: not known: {why}")

    def _committed(self) -> dict[str, dict[Place, int]]:
        found: dict[str, dict[Place, int]] = {}
        for group in self._facts.groups:
            if group.kind == "share":
                continue
            request = OffsetFetchRequest(
                group_id=group.name,
                topics=None,
                min_version=_SINCE_ALL_TOPICS,
                max_version=_LAST_FOR_ONE_GROUP,
            )
            try:
                answer = self._connection.answer(request, group.coordinator)
            except NoAnswer as error:
                self.gaps.append(f"group {group.name}: its offsets are not known: {error}")
                continue
            if answer.error_code:
                why = refusal(answer.error_code, "Describe on the group")
                self.gaps.append(f"group {group.name}: its offsets are not known: {why}")
                continue
            found[group.name] = {
                (topic.name, part.partition_index): part.committed_offset
                for topic in answer.topics
                for part in topic.partitions
                if not part.error_code and part.committed_offset >= 0
            }
        return found

    def _sizes(self, leaders: Mapping[Place, int]) -> dict[Place, int]:
        found: dict[Place, int] = {}
        for broker in self._facts.brokers:
            if not broker.is_up:
                continue
            what = f"sizes of the logs of broker {broker.node}"
            try:
                answer = self._connection.answer(DescribeLogDirsRequest(topics=None), broker.node)
            except NoAnswer as error:
                self.gaps.append(f"{what}: not known: {error}")
                continue
            codes = [answer.error_code or 0, *(each.error_code for each in answer.results)]
            if bad := [code for code in codes if code]:
                why = refusal(bad[0], "Describe on the cluster")
                self.gaps.append(f"{what}: not known: {why}")
            for topic in (each for directory in answer.results for each in directory.topics):
                for part in topic.partitions:
                    place = (topic.name, part.partition_index)
                    is_leaders = leaders.get(place) == broker.node
                    if not part.is_future_key and (is_leaders or place not in found):
                        found[place] = part.partition_size
        return found


def _list_offsets(places: Sequence[Place], which: int) -> Foreign:
    topic = ListOffsetsRequest.ListOffsetsTopic
    of: dict[str, list[int]] = {}
    for name, number in places:
        of.setdefault(name, []).append(number)
    chosen = [
        topic(
            name=name,
            partitions=[
                topic.ListOffsetsPartition(
                    partition_index=number, current_leader_epoch=_NO_EPOCH, timestamp=which
                )
                for number in numbers
            ],
        )
        for name, numbers in of.items()
    ]
    return ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=_READ_UNCOMMITTED,
        topics=chosen,
        min_version=1,
        max_version=_OFFSETS_VERSION_MAX,
    )
