"""Plays a dialogue: each line is what happens next, and must be what was sent.

The grammar, of which ``docs/architecture.md`` shows an example:

=====================================================  ====================================
``# words``                                            a comment; the first says the rule
``cluster  brokers=1,2,3``                             a controller, and brokers in service
``topic  orders replicas=1,2,3 min.insync=2``          ``replicas=1,2;2,1``: two partitions
``quorum  3001=1,1 3002=1 3003``                       voters, and the epochs in their logs
``groups  orders=3``                                   a group coordinator; topics
``transactions``                                       a transaction coordinator
``broker-2 -> broker-1  Fetch ...``                    the message arrives
``broker-2 -x broker-1  Fetch ...``                    its connection breaks, and loses it
``controller => broker-2  PartitionChangeRecord ...``  a broker applies committed metadata
``controller => brokers  ...``                         every broker that waits for it
``broker-2: log=0@0 high_watermark=1``                 what a process has now
``after 500 ms``                                       time passes, and timers fire
``broker-3 stops``                                     it is killed; also ``starts``
``broker-3 is silent``                                 it runs on without heartbeats
=====================================================  ====================================

A name that is no server's (``producer``, ``admin``) asks what its line says; so does a broker that
registers or sends a heartbeat. What a server sends has to be a line, word for word, in the order in
which its connection carries it; how connections interleave is for the dialogue to say.
"""

import re
from collections.abc import Callable
from pathlib import Path

from sim.protocol.coordinator.group.context import GroupConfig
from sim.units import MS, SECOND
from tests.dialogues.holdings import holdings
from tests.dialogues.spoken import request_of
from tests.dialogues.stage import Stage

_MESSAGE = re.compile(r"(\S+) (->|-x|=>) (\S+) +(.+)")
_STATE = re.compile(r"(\S+): +(.+)")
_TIME = re.compile(r"after (\d+) (ms|s)")
_LIFE = re.compile(r"(\S+) (stops|starts|is silent)")
_UNITS = {"ms": MS, "s": SECOND}
_OWN_WORDS = ("BrokerRegistration", "BrokerHeartbeat")
"""What brokers say on a line's word: their lifecycle is not on the stage."""


class Mismatch(AssertionError):
    """A dialogue that is not what happens: where, what it says, and what was sent instead."""


def play(path: Path) -> Stage:
    """Play a dialogue from its file."""
    return play_text(path.read_text(encoding="utf-8"), path.name)


def play_text(text: str, name: str) -> Stage:
    """Play a dialogue; the stage as it is at the end.

    Raises:
        Mismatch: If a line is not what happens, or something happens of which no line speaks.
    """
    stage = Stage()
    number = 0
    try:
        for number, raw in enumerate(text.splitlines(), 1):
            line = " ".join(raw.split())
            if line and not line.startswith("#"):
                stage.line = number
                _perform(stage, line)
    except (ValueError, AssertionError) as wrong:
        raise Mismatch(f"{name}:{number}: {wrong}") from wrong
    left = stage.left_over()
    if left:
        sent = "\n".join(f"    {x.sender} -> {x.to}  {x.text}  (since line {x.line})" for x in left)
        raise Mismatch(f"{name}:{number}: no line speaks of\n{sent}")
    return stage


def _perform(stage: Stage, line: str) -> None:
    if found := _MESSAGE.fullmatch(line):
        _append_control(stage, *found.groups())
    elif found := _TIME.fullmatch(line):
        stage.wait(int(found[1]) * _UNITS[found[2]])
    elif found := _LIFE.fullmatch(line):
        _live(stage, *found.groups())
    elif found := _STATE.fullmatch(line):
        _look(stage, *found.groups())
    else:
        word, *fields = line.split()
        if word not in _SETTINGS:
            raise ValueError(f"cannot read {line!r}")
        _SETTINGS[word](stage, fields)


# -- lines ----------------------------------------------------------------------------------------


def _append_control(stage: Stage, sender: str, arrow: str, to: str, text: str) -> None:
    if arrow == "=>":
        _commit(stage, to, text)
        return
    known = stage.processes.get(sender)
    if known is None or text.split(maxsplit=1)[0] in _OWN_WORDS:
        if arrow == "-x":
            raise ValueError("what only a line says cannot be lost")
        stage.ask(sender, to, request_of(sender, text))
        return
    letters = [x for x in stage.letters if (x.sender, x.to) == (sender, to)]
    found = next((x for x in letters if x.text == text), None)
    if found is None:
        sent = "\n".join(f"        {x.text}" for x in letters) or "        nothing"
        others = "".join(
            f"\n        to {x.to}: {x.text}"
            for x in stage.letters
            if x.sender == sender and x.to != to
        )
        raise Mismatch(f"expected {sender} {arrow} {to}\n        {text}\n    sent\n{sent}{others}")
    first = next(x for x in letters if x.connection == found.connection)
    if first is not found:
        raise Mismatch(f"{text}\n    comes after\n        {first.text}")
    server = stage.processes.get(to)
    if arrow == "->" and server is not None and server.machine is None:
        raise ValueError(f"{to} does not run: what is sent to it is lost (-x)")
    stage.letters.remove(found)
    (found.deliver if arrow == "->" else found.lose)()


def _commit(stage: Stage, to: str, text: str) -> None:
    names = [to]
    if to == "brokers":
        names = [name for name, process in stage.processes.items() if process.commits]
        if not names:
            raise Mismatch(f"expected for all\n        {text}\n    committed\n        nothing")
    for name in names:
        found = stage.apply(name, text)
        if found:
            raise Mismatch(f"expected for {name}\n        {text}\n    committed\n        {found}")


def _live(stage: Stage, name: str, what: str) -> None:
    if what == "stops":
        stage.stop(name)
    elif what == "starts":
        stage.start(name)
    else:
        stage.processes[name].beats = False


def _look(stage: Stage, name: str, text: str) -> None:
    known = holdings(stage, name)
    for word in text.split():
        key, _, value = word.partition("=")
        if key not in known:
            raise ValueError(f"{name} has no {key}; it has {', '.join(known)}")
        if known[key] != value:
            raise Mismatch(f"expected {name} to have {word}, it has {key}={known[key]}")


# -- settings -------------------------------------------------------------------------------------


def _fields(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) if "=" in word else (word, "") for word in words)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(",") if word)


def _cluster(stage: Stage, words: list[str]) -> None:
    fields = _fields(words)
    stage.cluster(
        _numbers(fields["brokers"]),
        elr=fields.get("elr", "on") == "on",
        transaction_version=int(fields.get("transaction.version", "2")),
        gates=fields.get("high_watermark.gate", "min_isr") == "min_isr",
    )


def _topic(stage: Stage, words: list[str]) -> None:
    name, *rest = words
    fields = _fields(rest)
    replicas = tuple(_numbers(part) for part in fields.pop("replicas").split(";"))
    configs = {_CONFIGS[key]: value for key, value in fields.items()}
    stage.topic(name, replicas, configs)


_CONFIGS = {
    "min.insync": "min.insync.replicas",
    "unclean": "unclean.leader.election.enable",
}


def _quorum(stage: Stage, words: list[str]) -> None:
    stage.quorum({int(node): _numbers(epochs) for node, epochs in _fields(words).items()})


def _groups(stage: Stage, words: list[str]) -> None:
    topics = {topic: int(count) for topic, count in _fields(words).items()}
    stage.groups(topics, GroupConfig())


def _transactions(stage: Stage, words: list[str]) -> None:
    assert not words, "transaction.version is the cluster's"
    stage.transactions()


_SETTINGS: dict[str, Callable[[Stage, list[str]], None]] = {
    "cluster": _cluster,
    "topic": _topic,
    "quorum": _quorum,
    "groups": _groups,
    "transactions": _transactions,
}
