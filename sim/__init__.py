"""The simulator, and its Python face: what a notebook needs comes from here.

``from sim import load, load_text, run, trial`` gives a scenario, a run that leaves a directory, and
a run for its numbers alone. Names are imported on first use, so that importing a package loads no
other; only the choice between sources and compiled packages is made at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

import sim.compiled as _compiled  # noqa: F401 - importing it makes the choice

if TYPE_CHECKING:
    from sim.scenario.loader import load, load_text
    from sim.scenario.run.result import Result
    from sim.scenario.run.runner import run
    from sim.scenario.run.trial import Trial, trial
    from sim.scenario.scenario import Scenario

__all__ = ["Result", "Scenario", "Trial", "load", "load_text", "run", "trial"]

_HOMES: Final = {
    "Result": "sim.scenario.run.result",
    "Scenario": "sim.scenario.scenario",
    "Trial": "sim.scenario.run.trial",
    "load": "sim.scenario.loader",
    "load_text": "sim.scenario.loader",
    "run": "sim.scenario.run.runner",
    "trial": "sim.scenario.run.trial",
}


def __getattr__(name: str) -> object:
    """Imports a name of the Python face."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sim' has no attribute {name!r}; it has {', '.join(_HOMES)}")
    return getattr(import_module(_HOMES[name]), name)
