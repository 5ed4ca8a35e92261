"""Whatever a scenario file holds, the command answers: 0, 1 or 2, in time, and writes nowhere else.

Mutants of every shipped scenario are validated; those of small ones that are scenarios still are
run. A number makes the same mutant again: ``mutant(SOURCES, number)``.
"""

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz import judge
from tests.fuzz.mutate import mutant
from tests.scenarios.run_kit import CATALOGUE, SHIPPED, text_of

LEADER = "leader of orders-0"
QUICK = {"lasts": "2s", "producer": {"rate": "50/s"}, "topic": {"partitions": 1}}
READER = {"group": "billing", "topics": ["orders"], "config": {"auto.offset.reset": "earliest"}}
SMALL = (
    text_of(**QUICK, faults=[{"at": "1s", "do": "crash", "target": LEADER, "for": "500ms"}]),
    text_of(**QUICK, consumers=[READER], expect={"lost_acked": 0, "produce.p99": "< 1s"}),
    text_of(**QUICK, cluster={"zookeeper": {"servers": 3}, "kafka": "3.9"}),
    text_of(**QUICK, faults=[{"at": "1s", "do": "partition", "between": LEADER, "for": "300ms"}]),
    text_of(
        **(QUICK | {"producer": {"rate": "50/s", "keys": "zipf", "tombstones": "5%"}}),
        faults=[{"at": "1s", "do": "slow-disk", "target": "random broker", "factor": 9}],
        then="stop",
    ),
)
"""Runs of two simulated seconds."""

LARGE = tuple(path.read_text() for path in (SHIPPED | CATALOGUE).values())
SOURCES = (*LARGE, *SMALL * 2)

MEMORY_KB_MAX = 3 << 20
"""What no file may make the command take."""


class Trial:
    """Mutants tried one after the other: answers by code, and every wrong one with its number."""

    def __init__(self, place):
        self.place = place
        self.codes = Counter()
        self.wrong = []

    def validate(self, number, raw):
        home = self.place / str(number)
        home.mkdir()
        file = home / "mutant.yaml"
        file.write_bytes(raw)
        with judge.WATCHED.within(home):
            answer = judge.validate(file)
        self.note(number, "validate", answer)
        left = sorted(path.name for path in home.iterdir())
        if left != ["mutant.yaml"] or file.read_bytes() != raw:
            self.wrong.append(f"{number}: validate left {left}")
        return file, answer

    def run(self, number, file):
        before = file.read_bytes()
        out = file.parent / "run"
        with judge.WATCHED.within(out):
            answer = judge.run(file, out)
        self.note(number, "run", answer)
        left = sorted(path.name for path in file.parent.iterdir() if path != out)
        if left != ["mutant.yaml"] or file.read_bytes() != before:
            self.wrong.append(f"{number}: run left {left}")
        if answer.code in (0, 1, 130) and not (out / "run.json").is_file():
            self.wrong.append(f"{number}: no run card in the run directory")

    def note(self, number, what, answer):
        self.codes[f"{what} {answer.code}{' when asked to stop' * answer.was_stopped}"] += 1
        for told in (answer.fault, *judge.WATCHED.outside):
            if told:
                self.wrong.append(f"{number}: {what}: {told}")


def tried(numbers, place, *, runs):
    trial = Trial(place)
    forget_peak()
    for number in numbers:
        source, raw = mutant(SOURCES, number)
        try:
            file, answer = trial.validate(number, raw)
            if runs and answer.code == 0 and source >= len(LARGE):
                trial.run(number, file)
        except judge.Hangs as hangs:
            trial.wrong.append(f"{number}: hangs: {hangs}")
        shutil.rmtree(place / str(number))
    assert peak_kb() < MEMORY_KB_MAX
    return trial


def forget_peak():
    """Begin the memory's peak anew: tests before this one ran in the same process (proc(5))."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")


def peak_kb():
    """Resident memory at its peak since :func:`forget_peak`; 0 where that is not known."""
    if sys.platform != "linux":
        return 0
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def test_a_number_makes_the_same_mutant_again():
    assert [mutant(SOURCES, n) for n in range(50)] == [mutant(SOURCES, n) for n in range(50)]
    assert len({raw for _, raw in (mutant(SOURCES, n) for n in range(200))}) > 190


def test_mutants_are_understood_or_refused(tmp_path):
    trial = tried(range(240), tmp_path, runs=False)
    assert trial.wrong == []
    assert trial.codes["validate 0"] > 20, "some are scenarios still"
    assert trial.codes["validate 2"] > 60, "and most are not"


@pytest.mark.night
@pytest.mark.parametrize("block", range(20))
def test_ten_thousand_mutants_are_understood_or_refused_and_run_to_an_end(block, tmp_path, capsys):
    trial = tried(range(500 * block, 500 * (block + 1)), tmp_path, runs=True)
    with capsys.disabled():
        print(f"\nblock {block}: {dict(sorted(trial.codes.items()))}")  # noqa: T201
    assert trial.wrong == []


# -- the judge can say no --------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read in /proc")
def test_memory_that_was_taken_before_is_not_counted_and_memory_taken_now_is():
    before = bytearray(b"x") * (256 << 20)
    del before
    forget_peak()
    idle = peak_kb()
    now = bytearray(b"x") * (256 << 20)
    assert peak_kb() > idle + (200 << 10)
    del now
    forget_peak()
    assert peak_kb() < idle + (100 << 10)


def test_a_file_that_takes_for_ever_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(judge, "VALIDATE_S", 1)
    monkeypatch.setattr("sim.cli.validate.load", lambda *_: [None for _ in iter(int, 1)])
    trial = tried(range(1), tmp_path, runs=False)
    assert "no answer in 1 s" in trial.wrong[0]


def test_a_traceback_and_a_file_elsewhere_are_noticed(tmp_path, monkeypatch):
    place = tmp_path / "place"
    place.mkdir()

    def broken(*_):
        (tmp_path / "elsewhere").write_text("x")
        raise ZeroDivisionError

    monkeypatch.setattr("sim.cli.validate.load", broken)
    first, second = tried(range(1), place, runs=False).wrong
    assert "ZeroDivisionError" in first
    assert "elsewhere" in second
