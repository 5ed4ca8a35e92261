"""Findings of the doctor."""

from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["error", "warning"]
"""A warning is legal after an unclean stop or put right by the next start; an error never is."""


class Finding(NamedTuple):
    """Something wrong with a file: where, what was found, and what is expected."""

    path: Path
    severity: Severity
    message: str
