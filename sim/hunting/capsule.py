"""Capsule: a failure in one file, which replays anywhere.

It has the scenario with its seed, the version and the digest of the Logquake that saw the failure,
what was looked for, and the fingerprint. Every command that takes a scenario takes it;
``logquake check`` says if the version differs and if the failure still happens.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import yaml

from sim.errors import SimulationError
from sim.hunting.fingerprint import Finding
from sim.hunting.replay import replay
from sim.hunting.sought import Sought, parse, show
from sim.scenario.loader import load, load_text
from sim.scenario.scenario import Scenario
from sim.scenario.settings import partitioners
from sim.scenario.text.capsules import SCENARIO, VERSION, is_capsule
from sim.scenario.text.yaml import read
from sim.suite.plan import code_digest

ENDING: Final = ".capsule.yaml"
"""Of the names of capsules."""

FORMAT: Final = 1

_HEAD: Final = "# A failure that Logquake can replay: logquake check FILE, or logquake run FILE.\n"
_DIGITS: Final = 16
"""Of the digest of Logquake's sources."""


@dataclass(frozen=True, slots=True)
class Capsule:
    """A failure, and all that is needed to see it again."""

    data: Mapping[str, Any]
    """The scenario, as its file has it."""
    scenario: Scenario
    sought: tuple[Sought, ...]
    finding: Finding
    logquake: str
    """Version that saw it."""
    code: str
    """Beginning of the digest of that version's sources."""

    @property
    def seed(self) -> int:
        """Of the run."""
        return self.scenario.run.seed

    def difference(self) -> str:
        """Difference of the version that saw it from this one, in words; empty without one."""
        here = version("logquake")
        if self.logquake != here:
            return f"it was seen with Logquake {self.logquake}, and this is {here}"
        if self.code != code_digest()[:_DIGITS]:
            return f"it was seen with Logquake {here} from other sources ({self.code})"
        return ""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Result of a capsule's replay."""

    happens: bool
    """True if the same fingerprint was found."""
    findings: tuple[Finding, ...]
    difference: str
    """As :meth:`Capsule.difference`."""
    complete: bool = True

    def lines(self, capsule: Capsule) -> list[str]:
        """The result in sentences."""
        found = [f"note: {self.difference}"] if self.difference else []
        same = next((f for f in self.findings if f == capsule.finding), None)
        if same is not None:
            return [*found, f"it still happens: {same.fingerprint} ({same.words})"]
        found.append(f"it does not happen any more: {capsule.finding.fingerprint}")
        found += [f"something else does: {f.fingerprint} ({f.words})" for f in self.findings]
        return found


def made(
    data: Mapping[str, Any],
    seed: int,
    sought: Sequence[Sought],
    finding: Finding,
    directory: Path | None = None,
) -> Capsule:
    """A capsule of a failure that this version of Logquake has seen.

    Args:
        data: The scenario, as its file has it.
        seed: Of the run that failed.
        sought: What was looked for.
        finding: What was found.
        directory: Of the scenario's file.

    Raises:
        SimulationError: If the scenario needs a file beside it, or a distribution whose release it
            does not name.
    """
    run = data.get("run")
    seeded = {**data, "run": {**(run if isinstance(run, dict) else {}), "seed": seed}}
    scenario = load_text(dumped(seeded), "capsule.yaml", directory=directory)
    if scenario.modules:
        file = scenario.modules[0][0]
        raise SimulationError(
            f"the scenario uses a class in {file}; allowed in a capsule, which is one file: none; "
            "remove partitioner.class"
        )
    _check_distributions(seeded, scenario)
    return Capsule(
        seeded, scenario, tuple(sought), finding, version("logquake"), code_digest()[:_DIGITS]
    )


def _check_distributions(data: Mapping[str, Any], scenario: Scenario) -> None:
    """Checks that the file says which release of a distribution each partitioner is of."""
    said = [partitioners.offered(given) for given in _given(data)]
    for part in (scenario, *(other.scenario for other in scenario.clusters)):
        for producer in part.producers:
            given = producer.config.text(partitioners.NAME)
            if partitioners.offered(given) not in (None, *said):
                raise SimulationError(
                    "the scenario uses a partitioner of an installed distribution, and does not "
                    f"say of which release; allowed in a capsule: {partitioners.NAME}: {given}; "
                    "write that into the scenario"
                )


def _given(data: object) -> Iterator[str]:
    """Every value of ``partitioner.class`` in a file."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key == partitioners.NAME and isinstance(value, str):
                yield value
            else:
                yield from _given(value)
    elif isinstance(data, list):
        for value in data:
            yield from _given(value)


def text_of(capsule: Capsule) -> str:
    """The text of a capsule's file."""
    plain = {
        VERSION: FORMAT,
        "logquake": capsule.logquake,
        "code": capsule.code,
        "looking_for": show(capsule.sought),
        "fingerprint": {"kind": capsule.finding.kind, "chain": list(capsule.finding.chain)},
        "found": capsule.finding.words,
        SCENARIO: dict(capsule.data),
    }
    return _HEAD + dumped(plain)


def dumped(plain: Mapping[str, Any]) -> str:
    """Data as YAML that a person reads: innermost lists and mappings are on one line."""
    return yaml.safe_dump(
        dict(plain), sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )


def opened(path: Path) -> Capsule:
    """The capsule in a file.

    Raises:
        SimulationError: If it is none, or cannot be read.
        ScenarioError: If its scenario cannot be run by this version.
    """
    scenario = load(path)
    data = read(path.read_text(encoding="utf-8"), str(path)).data
    if not isinstance(data, dict) or not is_capsule(data):
        raise SimulationError(
            f"{path}: not a capsule (it has no key {VERSION}); allowed: a file that logquake hunt "
            "or logquake shrink wrote"
        )
    if data[VERSION] != FORMAT:
        raise SimulationError(
            f"{path}: {VERSION}: {data[VERSION]!r}; allowed: {FORMAT}; it is of a later Logquake"
        )
    try:
        chain = tuple(str(word) for word in data["fingerprint"]["chain"])
        finding = Finding(str(data["fingerprint"]["kind"]), chain, str(data.get("found", "")))
        sought, logquake, code = str(data["looking_for"]), str(data["logquake"]), str(data["code"])
    except (KeyError, TypeError) as error:
        raise SimulationError(
            f"{path}: a capsule without a readable {error}; allowed: logquake, code, looking_for, "
            f"fingerprint with kind and chain, {SCENARIO}"
        ) from None
    return Capsule(data[SCENARIO], scenario, parse(sought), finding, logquake, code)


def check(capsule: Capsule, should_stop: Callable[[], bool] | None = None) -> Recurrence:
    """Replay a capsule.

    Raises:
        SimulationError: If the cluster cannot come up.
        OSError: If the real disk fills up.
    """
    found = replay(capsule.scenario, capsule.seed, capsule.sought, should_stop=should_stop)
    return Recurrence(
        capsule.finding in found.findings, found.findings, capsule.difference(), found.complete
    )
