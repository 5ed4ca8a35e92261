"""``logquake init``: a scenario to begin with, commented, from three answers or from an example."""

import sys
from pathlib import Path
from string import Template
from typing import Final, TypeVar

import typer

from sim.cli.commands.init_options import Acks, Fails, InitOptions
from sim.cli.exits import exit_codes
from sim.cli.screen import say
from sim.errors import SimulationError
from sim.scenario.loader import load
from sim.scenario.schema.json_schema import SCHEMA_FILE
from sim.scenario.shipped import find

Choice = TypeVar("Choice", Acks, Fails)

_ZONES: Final = "abcdefghi"
_TEMPLATE: Final = Path(__file__).with_name("init.yaml")


def init_command(file: Path, options: InitOptions) -> None:
    """Write a scenario that runs as it is; exits 2 if the file is there."""
    with exit_codes():
        if file.exists() and not options.force:
            raise SimulationError(f"{file}: exists; --force replaces it")
        if not file.parent.is_dir():
            raise SimulationError(f"{file.parent}: no such directory; make it, or choose another")
        if options.source is not None:
            text = find(options.source).read_text(encoding="utf-8")
        else:
            text = scenario_text(*_answers(options), zones=options.zones)
        file.write_text(_modelines(file.parent) + text, encoding="utf-8")
        scenario = load(file)
        say(f"{file}: written; it claims: {scenario.claim}")
        say(f"next: logquake run {file} --report")


def _modelines(folder: Path) -> str:
    """Comments by which an editor finds the JSON Schema; empty if the folder does not have it.

    The first is the YAML language server's, the second that of the JetBrains editors.
    """
    name = SCHEMA_FILE.name
    if not (folder / name).exists():
        return ""
    return f"# yaml-language-server: $schema={name}\n# $schema: {name}\n"


def _answers(options: InitOptions) -> tuple[int, Acks, Fails]:
    """From flags; else from the user, if there is one; else defaults."""
    brokers, acks, fails = options.brokers, options.acks, options.fails
    if sys.stdin.isatty() and brokers is None and acks is None and fails is None:
        brokers = typer.prompt("How many brokers", default=3, type=int)
        acks = _choice(Acks, "acks of the producers", Acks.ALL)
        fails = _choice(Fails, "What fails", Fails.BROKER)
    return 3 if brokers is None else brokers, acks or Acks.ALL, fails or Fails.BROKER


def _choice(kind: type[Choice], question: str, default: Choice) -> Choice:
    known = ", ".join(kind)
    given = typer.prompt(f"{question} ({known})", default=default.value)
    try:
        return kind(given)
    except ValueError:
        raise SimulationError(f"{question}: {given!r}; allowed: {known}") from None


def scenario_text(brokers: int, acks: Acks, fails: Fails, *, zones: int) -> str:
    """A commented scenario.

    Raises:
        SimulationError: If a zone is to fail where there are fewer than two, or the numbers of
            brokers and zones do not fit.
    """
    if not 1 <= brokers <= 99:
        raise SimulationError(f"--brokers {brokers}: 1 to 99 are allowed")
    if zones > min(brokers, len(_ZONES)) or zones < 1:
        most = min(brokers, len(_ZONES))
        raise SimulationError(f"--zones {zones}: with {_many(brokers)}, 1 to {most} are allowed")
    if fails is Fails.ZONE and zones < 2:
        raise SimulationError("--fails zone: there is one zone only; add --zones 3")
    replicas = min(3, brokers)
    least = max(1, replicas - 1)
    idempotence = "" if acks is Acks.ALL else ", enable.idempotence: false"
    fault, claim = _fault(fails, brokers, zones)
    template = Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(
        claim=claim.format(acks=acks.value, least=least),
        cluster=_cluster(brokers, zones),
        config="unclean.leader.election.enable: false"
        + (f", offsets.topic.replication.factor: {replicas}" if replicas < 3 else ""),
        replicas=replicas,
        least=least,
        acks=acks.value,
        idempotence=idempotence,
        faults=fault,
        lost="0" if acks is Acks.ALL else "at least 0",
        lost_why=(
            "Nothing acknowledged may be lost."
            if acks is Acks.ALL
            else "With this acks some may be lost: see what the run finds, then write your bound."
        ),
    )


def _many(brokers: int) -> str:
    return f"{brokers} broker{'s' * (brokers != 1)}"


def _cluster(brokers: int, zones: int) -> str:
    if zones == 1:
        return f"  brokers: {brokers}\n  controllers: {min(3, brokers)}"
    share, more = divmod(brokers, zones)
    names = _ZONES[:zones]
    racks = ", ".join(f"{name}: {share + (place < more)}" for place, name in enumerate(names))
    return (
        f"  racks: {{{racks}}}   # brokers in each availability zone (broker.rack)\n"
        "  controllers: 3"
    )


_NOTES: Final = {
    Fails.DISK: "Kafka acknowledges from the page cache; flush.messages: 1 waits for fsync.",
    Fails.CONTROLLER: "An outage of all of them: `target: all controllers`.",
}
"""Comments of faults that may seem to do nothing."""


def _fault(fails: Fails, brokers: int, zones: int) -> tuple[str, str]:
    """The lines of ``faults``, and the claim."""
    begin = "With acks={acks} and min.insync.replicas={least}, "
    leader = "leader of orders-0"
    others = "rack b" if zones > 1 else "all brokers"
    here = "rack a" if zones > 1 else leader
    faults = {
        Fails.BROKER: (f"do: crash, target: {leader}, for: 20s", "a crash of a leader"),
        Fails.ZONE: ("do: power-loss, target: rack a, for: 20s", "a zone without power"),
        Fails.DISK: (f"do: slow-disk, target: {leader}, factor: 50, for: 20s", "a slow disk"),
        Fails.NETWORK: (
            f"do: partition, between: [{here}], and: [{others}], for: 20s",
            "a network partition",
        ),
        Fails.CONTROLLER: (
            "do: crash, target: controller leader, for: 20s",
            "a crash of the active controller",
        ),
    }
    if fails is Fails.NOTHING or (fails is Fails.NETWORK and brokers == 1):
        return "faults: []", begin + "a cluster without faults is measured."
    words, what = faults[fails]
    note = f"  # {_NOTES[fails]}\n" if fails in _NOTES else ""
    return f"faults:\n{note}  - {{at: 20s, {words}}}", begin + what + " is survived."
