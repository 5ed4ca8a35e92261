"""Scenarios that come with the program: examples, and the catalogue of published failures.

They are files of the repository's ``scenarios``; a wheel has them inside the package.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sim.errors import SimulationError

_SIM: Final = Path(__file__).parents[1]
_PLACES: Final = (_SIM / "shipped", _SIM.parent / "scenarios")


def shipped() -> Mapping[str, Path]:
    """Every scenario that comes with the program, by its name: the file's, without ``.yaml``."""
    place = next((place for place in _PLACES if place.is_dir()), None)
    files = [] if place is None else sorted(place.rglob("*.yaml"))
    return {file.stem: file for file in files}


def find(name: str) -> Path:
    """The file of a scenario that comes with the program.

    Raises:
        SimulationError: If there is none of that name; the message has those that contain it.
    """
    known = shipped()
    if name not in known:
        near = [each for each in known if name in each] or ["quickstart"]
        raise SimulationError(
            f"no scenario {name!r} comes with logquake; perhaps {', '.join(near[:8])}? "
            "`logquake list scenarios` has all of them"
        )
    return known[name]
