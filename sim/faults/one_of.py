"""A fault whose kind the seed chooses; :mod:`sim.faults.draw` draws it before the run."""

from dataclasses import dataclass, field
from typing import ClassVar

from sim.faults.action import Action
from sim.faults.fault import Fault, Span, key
from sim.faults.resolve import Site


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
