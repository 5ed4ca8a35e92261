"""Apache Kafka as it is released, brought by Maven: its dump tool, and brokers on loopback."""

import re
import subprocess
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import pytest

from sim.rehearsal import apache as released
from tests.ports import free_ports

with warnings.catch_warnings():  # its import uses deprecated functions of the standard library
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, TopicPartition
    from kafka.admin import KafkaAdminClient
    from kafka.consumer.fetcher import ConsumerRecord

HERE = Path(__file__).parent
LIBRARY = HERE / "target" / "lib"
"""Jars of the newest release."""
NEWEST = list(released.RELEASES.values())[-1]


def by_turns(values, always):
    """Parameters of which one is tried at each landing, the others in their turn (slow)."""
    return [value if value == always else pytest.param(value, marks=pytest.mark.slow)
            for value in values]  # fmt: skip


START_S = 240
"""Patience with brokers that start; three of them take about 20 s on two cores."""

READ_S = 120
"""Patience with a client that reads; it takes a second or two."""

STARTED = "Kafka Server started"
RECOVERED = re.compile(
    r"\[LogLoader partition=(\S+), dir=\S+\] Loading producer state till offset (\d+)"
)


def missing() -> str:
    """What this machine lacks to bring Apache Kafka, or nothing."""
    lacks = released.missing("mvn", "java")
    return f"Apache Kafka needs {' and '.join(lacks)}" if lacks else ""


def library(release: str = "") -> Path:
    """Where the jars of a release are; those of the newest one if none is named."""
    return LIBRARY.with_name(f"lib-{release}") if release else LIBRARY


def bring(release: str = "") -> None:
    """Let Maven fetch the jars of a release, the newest one if none is named, once.

    Other workers wait.
    """
    released.bring(release or NEWEST, library(release))


def java(main: str, *arguments: str, heap: str = "512m", release: str = "") -> list[str]:
    """The command line that runs a class of Kafka's."""
    of = released.Apache(release or NEWEST, library(release))
    quick = main in ("kafka.Kafka", "kafka.tools.StorageTool")
    return of.java(main, *arguments, heap=heap, quick=quick)


ARGUMENT_MAX = 100_000
"""Characters of a list of files."""


class Dumped:
    """What ``kafka-dump-log`` printed: lines of the files, and complaints."""

    def __init__(self, files: Sequence[Path], *options: str, release: str = "") -> None:
        self.lines: list[str] = []
        self.complaints: list[str] = []
        for names in _arguments(files):
            main = f"{_tools_of(release)}.DumpLogSegments"
            self._dump(java(main, *options, "--files", names, release=release))

    def _dump(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        printed = done.stdout.splitlines()
        self.lines += printed
        self.complaints += [line for line in done.stderr.splitlines() if line.strip()]
        self.complaints += [line for line in printed if "isvalid: false" in line]
        if done.returncode:
            self.complaints.append(f"exit code {done.returncode}")


def _tools_of(release: str) -> str:
    """Package of the dump tool, which was in the core up to 4.1."""
    in_core = release.startswith(("3.", "4.0.", "4.1."))
    return "kafka.tools" if in_core else "org.apache.kafka.tools"


def _arguments(files: Sequence[Path]) -> Iterator[str]:
    """Names joined by commas; an argument of a command has at most 128 KiB (execve(2))."""
    names: list[str] = []
    for name in map(str, files):
        if names and sum(map(len, names)) + len(names) + len(name) > ARGUMENT_MAX:
            yield ",".join(names)
            names = []
        names.append(name)
    yield ",".join(names)


class Cluster:
    """Combined nodes (broker and controller in one process), by number with their log directories.

    Use it as a context manager; the directories are changed by it.
    """

    def __init__(
        self,
        directories: Mapping[int, Sequence[Path]],
        work: Path,
        settings: str = "",
        release: str = "",
    ) -> None:
        self._release = release
        self._logs = {node: work / f"broker-{node}.out" for node in directories}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        ports = free_ports(2 * len(directories))
        self._clients = dict(zip(directories, ports, strict=False))
        controllers = dict(zip(directories, ports[len(directories) :], strict=True))
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in controllers.items())
        self._properties = {}
        for node, own in directories.items():
            self._properties[node] = work / f"{node}.properties"
            self._properties[node].write_text(
                f"process.roles=broker,controller\nnode.id={node}\n"
                f"controller.quorum.voters={voters}\ncontroller.listener.names=CONTROLLER\n"
                f"listeners=PLAINTEXT://127.0.0.1:{self._clients[node]},"
                f"CONTROLLER://127.0.0.1:{controllers[node]}\n"
                f"log.dirs={','.join(map(str, own))}\n"
                # Simulated timestamps are old: a real broker would delete such records at once.
                "log.retention.ms=-1\n"
                "log.cleaner.dedupe.buffer.size=8388608\nnum.network.threads=1\n"
                "num.io.threads=2\nauto.create.topics.enable=false\n"
                "group.initial.rebalance.delay.ms=0\n" + settings
            )

    def __enter__(self) -> Self:
        for node, properties in self._properties.items():
            with self._logs[node].open("wb") as out:
                self._processes[node] = subprocess.Popen(
                    java("kafka.Kafka", str(properties), heap="384m", release=self._release),
                    stdout=out,
                    stderr=out,
                )
        try:
            self._wait_until_started()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def format(self, node: int, *options: str) -> None:
        """Make an empty directory the log directory of a new cluster."""
        given = ["format", "-t", "AbCdEfGhIjKlMnOpQrStUg", "-c", str(self._properties[node])]
        command = java("kafka.tools.StorageTool", *given, *options, release=self._release)
        subprocess.run(command, check=True, capture_output=True)

    def _wait_until_started(self) -> None:
        end = time.monotonic() + START_S
        while not all(STARTED in self.said(node) for node in self._processes):
            ended = [
                node for node, process in self._processes.items() if process.poll() is not None
            ]
            if ended or time.monotonic() > end:
                tails = [f"{node}: {self.said(node)[-3_000:]}" for node in ended or self._processes]
                raise AssertionError("no real cluster on these directories:\n" + "\n".join(tails))
            time.sleep(0.5)

    def said(self, node: int) -> str:
        """All that a broker has said."""
        return self._logs[node].read_text()

    def recovered(self, node: int) -> dict[str, int]:
        """Log end offsets that the broker found when it loaded its logs, by partition."""
        return {partition: int(end) for partition, end in RECOVERED.findall(self.said(node))}

    def stop(self) -> None:
        """Stop every process, cleanly if it can be."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    # -- as a client sees it -----------------------------------------------------------------------

    @property
    def servers(self) -> list[str]:
        """What a client's ``bootstrap.servers`` says."""
        return [f"127.0.0.1:{port}" for port in self._clients.values()]

    def consumer(
        self, group: str | None = None, isolation: str = "read_uncommitted"
    ) -> KafkaConsumer:
        """kafka-python's consumer of this cluster; it commits nothing."""
        return KafkaConsumer(
            bootstrap_servers=self.servers,
            group_id=group,
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

    def records(self, partition: TopicPartition) -> Iterator[tuple[int, bytes]]:
        """Offset and value of every record of a partition, in the order of reading."""
        for record in self.read(partition):
            yield record.offset, record.value

    def read(
        self, partition: TopicPartition, isolation: str = "read_uncommitted"
    ) -> Iterator[ConsumerRecord]:
        """Every record of a partition that a reader may have, in the order of reading."""
        consumer = self.consumer(isolation=isolation)
        try:
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            end = consumer.end_offsets([partition])[partition]
            patience = time.monotonic() + READ_S
            while consumer.position(partition) < end:
                assert time.monotonic() < patience, f"{partition}: nothing more comes before {end}"
                yield from consumer.poll(1_000, max_records=10_000).get(partition, [])
        finally:
            consumer.close()

    def leader(self, partition: TopicPartition) -> int:
        """Which broker leads a partition now."""
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            (topic,) = admin.describe_topics([partition.topic])
        finally:
            admin.close()
        of = {told["partition_index"]: told["leader_id"] for told in topic["partitions"]}
        return of[partition.partition]

    def committed(self, group: str, partition: TopicPartition) -> int | None:
        """What the group has committed."""
        consumer = self.consumer(group)
        try:
            return consumer.committed(partition)
        finally:
            consumer.close()
