"""Names of topics, clients, groups, racks and clusters."""

import re
from typing import Final

from sim.scenario.text.problems import Problem

NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,200}")
"""Kafka's rule for topics; all these names become parts of file names."""


def check_name(path: tuple[str | int, ...], name: str) -> None:
    """Check that something may be called that.

    Raises:
        Problem: With the path.
    """
    if not NAME.fullmatch(name) or name in {".", ".."}:
        raise Problem(path, f"the name {name!r}", "letters, digits, '.', '_' and '-', at most 200")
