"""What our checker says survives a run, record for record, and what others find: the same shape."""

from typing import NamedTuple
from unittest import mock

from sim.checking.durability import Judge
from sim.checking.outcomes.policy import shown
from sim.log.partition.reading import file_batches
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.wire.record_batch import PAYLOAD
from tests.scenarios.run_kit import Ran


class Named(NamedTuple):
    """A record of a simulated producer, by what stands in it."""

    offset: int
    producer: int
    number: int


class Survivors(NamedTuple):
    """Of one replica of a partition."""

    everything: list[Named]
    """As a reader gets it that asks for no isolation."""
    committed: list[Named]
    """Without what abort markers cover."""


def simulated(text, out):
    """Run a scenario; what it left behind, and what its checker knows in the end of each replica.

    Cleaners work at each broker for themselves, so replicas of a compacted log may differ in what
    they hold.
    """
    judges = []

    def kept(*arguments, **options):
        judges.append(Judge(*arguments, **options))
        return judges[-1]

    with mock.patch("sim.scenario.run.runner.Judge", kept):
        run(load_text(text, "history.yaml"), out=out)
    (judge,) = judges
    known = {
        key: {broker: _survivors(file.history, log) for broker, log in file.history.logs.items()}
        for key, file in sorted(judge._files.items())
    }
    return Ran(out), {
        key: of for key, of in known.items() if any(one.everything for one in of.values())
    }


def _survivors(history, log):
    runs = list(log.batches())
    visible = runs
    if history.transactions is not None:
        visible = shown(runs, history.transactions.settle(runs).hidden)
    return Survivors(_named(runs), _named(visible))


def _named(runs):
    return [
        Named(base + i, producer, first + i)
        for base, count, producer, first in runs
        if producer >= 0
        for i in range(count)
    ]


def named(offset, value, headers):
    """A record as another reader gets it; of a tombstone the first header says who it is."""
    _, producer, number, _ = PAYLOAD.unpack_from(headers[0][1] if value is None else value)
    return Named(offset, producer, number)


def on_disk(directory):
    """Every record of a producer in a partition's directory."""
    return [
        named(record.offset, record.value, record.headers)
        for log in sorted(directory.glob("*.log"))
        for _, batch in file_batches(log)
        if not batch.is_control
        for record in batch.records()
    ]
