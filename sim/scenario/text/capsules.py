"""Capsules as text: a failure in one file, in which a scenario is one of the keys.

Whatever loads a scenario loads that of a capsule. The other keys say what is expected of it:
:mod:`sim.hunting.capsule`.
"""

from pathlib import Path
from typing import Final

from sim.scenario.text.yaml import Document, ReadError, read

VERSION: Final = "capsule"
"""Key of the format's version; a file that has it is a capsule."""

SCENARIO: Final = "scenario"
"""Key of the scenario, with its seed under ``run.seed``."""


def is_capsule(data: object) -> bool:
    """True for the data of a capsule."""
    return isinstance(data, dict) and VERSION in data and isinstance(data.get(SCENARIO), dict)


def is_capsule_file(path: Path) -> bool:
    """True for a file that is a capsule, whatever its name; false for one that cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        if f"{VERSION}:" not in text:
            return False  # of hundreds of files each would be parsed once more
        return is_capsule(read(text, str(path)).data)
    except (OSError, UnicodeDecodeError, ReadError):
        return False


def unpacked(document: Document) -> Document:
    """The scenario of a capsule, which keeps its lines; any other document as it is."""
    data = document.data
    if not isinstance(data, dict) or not is_capsule(data):
        return document
    origins = {path[1:]: at for path, at in document.origins.items() if path[:1] == (SCENARIO,)}
    return Document(data[SCENARIO], origins, document.origin((SCENARIO,)))
