"""A kind of fault as one class: its keys, its texts, and its action.

A fault is an action without an expected result: its effect is read from the substrate when it is
healed.

A kind is a class with these parts, from which lists, the scenario's types, its canonical form and
the documents are derived: the docstring (its meaning in one sentence), ``kind``, ``proof``,
``may_break``, ``span``, ``hits``, its keys as fields, and ``action``.

Source: the fault table of the design, section 2; Kafka's Trogdor, whose ``TaskSpec`` is a value
that makes its own worker.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Final, Literal, NamedTuple, Self, TypeAlias, cast

from sim.faults.action import Action
from sim.faults.after import After
from sim.faults.resolve import Site
from sim.faults.target import Target
from sim.units import Micros

Form: TypeAlias = Literal[
    "targets", "target", "side", "messages", "requests", "duration", "spread", "bandwidth",
    "whole", "ratio", "flag", "word", "directory", "other directory", "partition", "replica",
    "topic", "config",
    "broker config", "broker", "brokers", "more partitions", "offset", "quota", "acl", "faults",
    "partitions", "seek", "reset", "group", "release", "metadata release",
    "token", "user",
]  # fmt: skip
"""Notation of a key's value: its type, its resolution, and its text."""

Span: TypeAlias = Literal["lasting", "instant", "procedure", "operation", "drawn"]
"""``lasting``: until it is healed; ``instant``: without a duration; ``procedure``: until it is
completed; ``operation``: an administrator's request, answered later; ``drawn``: another one."""

Hits: TypeAlias = Literal[
    "process", "server", "replica", "producer", "transactional producer", "consumer", "controller",
    "broker", "spare broker",
]  # fmt: skip
"""Form of its target."""

Outage: TypeAlias = Literal["", "service", "data"]
"""Loss of a broker while a fault lasts: nothing, its service, or its disks' data as well."""


class Release(NamedTuple):
    """A release of Kafka, and the feature levels of its upgrade."""

    name: str
    before: str
    """The release before it; empty for the first that is known."""
    levels: tuple[tuple[str, int], ...]


_KEY: Final = "key"


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an entry of ``faults:``."""

    name: str
    form: Form
    hint: str = ""
    """For the JSON schema."""
    low: int | None = None
    """Least value of a ``whole``; of a ``duration``: true if it may be zero."""
    high: int | None = None
    words: tuple[str, ...] = ()
    """Values of a ``word``."""


def key(
    name: str,
    form: Form,
    hint: str = "",
    *,
    low: int | None = None,
    high: int | None = None,
    words: tuple[str, ...] = (),
) -> Mapping[str, Key]:
    """Metadata of a field that is a key; without a default the key must be given."""
    return {_KEY: Key(name, form, hint, low, high, words)}


@dataclass(frozen=True, kw_only=True)
class Fault(ABC):
    """One line of the calendar; keys of only one kind are fields of a subclass."""

    index: int
    """Place in the scenario, from 0."""
    at_us: Micros
    """Instant at which it starts; at or after 0."""
    for_us: Micros | None = None
    """Duration. ``None``: until everything is healed at the end, or it has no duration."""
    spread_us: Micros = 0
    """Width of the window from which its instant is drawn, uniform in ``[at_us, at_us +
    spread_us]``."""
    name: str = ""
    """Name by which other faults refer to it; empty: none."""
    after: After | None = None
    """Distance from another fault whose instant is left to the seed; ``at_us`` and ``spread_us``
    then say where it can lie."""
    mtbf_us: Micros = 0
    """Mean time to the next failure of each component, exponential; 0: it happens once. Then
    ``for_us`` is the mean time to repair, exponential too."""

    kind: ClassVar[str]
    """The word after ``do:``."""
    proof: ClassVar[str]
    """Observation that proves that it took effect."""
    may_break: ClassVar[str]
    """Promises of Kafka that it may break: for a topic of three replicas with ``acks=all``,
    ``min.insync.replicas=2`` and no unclean election, and for the fault alone. Two at a time may
    break more: an unclean end uses up what ``min.insync.replicas`` - 1 allows for (KIP-966).

    Source: Kafka's documentation, section "Replication"; the failure catalogue.
    """
    span: ClassVar[Span] = "lasting"
    hits: ClassVar[Hits] = "process"
    absent_with: ClassVar[tuple[str, ...]] = ()
    """``isr``, ``raft`` or ``zookeeper``, if it is not modelled with that replication or quorum."""

    alternatives: ClassVar[tuple[str, ...]] = ()
    """Keys of which exactly one is given."""

    outage: ClassVar[Outage] = ""
    takes_copies: ClassVar[bool] = False
    """True if logs are empty afterwards, or missing."""
    damage: ClassVar[str] = ""
    """Name of the damage, if the platter has other bytes than were written."""

    # Not annotated, so that they are no fields: kinds that have them declare them as keys.
    targets = cast("tuple[Target, ...]", ())
    peers = cast("tuple[Target, ...]", ())
    messages = cast("tuple[str, ...]", ())
    choices = cast("tuple[Fault, ...]", ())

    @abstractmethod
    def action(self, site: Site) -> tuple[Action | None, str]:
        """The fault's action and its resolved target; no action if a role is not filled."""

    @classmethod
    def meaning(cls) -> str:
        """Its effect, in one sentence that begins in lower case and has no full stop."""
        first = (cls.__doc__ or "").partition("\n\n")[0]
        sentence = " ".join(first.split()).removesuffix(".")
        return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]

    @classmethod
    def keys(cls) -> dict[str, Key]:
        """Its own keys by the fields that hold them, in the order of the scenario."""
        return {f.name: f.metadata[_KEY] for f in fields(cls) if _KEY in f.metadata}

    @classmethod
    def has_key(cls, form: Form) -> bool:
        """True if one of its keys has the form."""
        return any(each.form == form for each in cls.keys().values())

    @classmethod
    def is_instant(cls) -> bool:
        """True if it has no duration."""
        return cls.span in {"instant", "operation"}

    @property
    def until_us(self) -> Micros | None:
        """Last instant at which it heals on its own; ``None`` if it does not, or may come again."""
        if self.mtbf_us:
            return None
        lasting = [choice.for_us for choice in self.choices] or [self.for_us]
        longest = max((time for time in lasting if time is not None), default=0)
        return None if None in lasting else self.at_us + self.spread_us + longest

    @property
    def components(self) -> tuple[Target | None, ...]:
        """Components that fail on their own under ``mtbf_us``; ``None``: the targets as a whole."""
        return self.targets[0].parts if self.targets and self.targets[0].parts else (None,)

    @property
    def target_text(self) -> str:
        """Its target as in the scenario; both sides of a link."""
        return ", ".join(target.text for target in self.targets)

    @property
    def place(self) -> object:
        """Its place on the target: at two places two faults of a kind do not overlap."""
        return 0

    def of(self, part: Target) -> Self:
        """The same fault of one component."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return type(self)(**values | {"targets": (part,)})


@dataclass(frozen=True, kw_only=True)
class TargetFault(Fault):
    """A fault of processes or their hosts."""

    targets: tuple[Target, ...] = field(metadata=key("target", "targets"))

    def action(self, site: Site) -> tuple[Action | None, str]:
        """The fault's action on the processes of its resolved target."""
        names = site.nodes(self.targets)
        action = self.on(names, site) if names else None
        return action, ", ".join(names) if action is not None else ""

    @abstractmethod
    def on(self, names: tuple[str, ...], site: Site) -> Action | None:
        """The action on processes, one or more; ``None`` if they lack what it hits."""


NOTHING: Final = "nothing that is acknowledged; service stops until another leads"
LATE: Final = "nothing; records are late, and may reach their time-out"
ONE_COPY: Final = "one replica's copy: nothing while another in-sync one exists"


@dataclass(frozen=True, kw_only=True)
class OneOf(Fault):
    """One of the faults in `of`, each as likely, by the seed."""

    kind = "one-of"
    proof = "the one that was drawn did"
    may_break = "what the fault that was drawn may break"
    span: ClassVar[Span] = "drawn"
    choices: tuple[Fault, ...] = field(metadata=key("of", "faults"))

    @property
    def target_text(self) -> str:
        """Every choice with its target."""
        return ", ".join(f"{choice.kind} of {choice.target_text}" for choice in self.choices)

    def action(self, site: Site) -> tuple[Action | None, str]:  # noqa: ARG002 - the interface
        """Never called: a choice is drawn before the run."""
        raise AssertionError("one-of is drawn before a run begins")
