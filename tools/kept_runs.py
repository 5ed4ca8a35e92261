"""A measured run as plain data, which is kept when its directory is not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sim.errors import SimulationError
from sim.suite.comparison.measured import Event, Measured, Number, Step
from sim.trace.run_files import Shape, misfit

SHAPE: Final[Shape] = {
    "real": bool,
    "kafka": str,
    "scale": float,
    "end_us": int,
    "numbers": {"*": {"kind": str}},
    "events": [{"t_us": int, "name": str, "phase": str, "resolved": str}],
    "partitions": {"*": [{"t_us": int, "after": str, "since_us": int, "state": str, "level": str}]},
}


def as_plain(run: Measured) -> dict[str, Any]:
    """Rows of a run as JSON has them; its directory and its scenario are left out."""
    return {
        "real": run.is_real,
        "kafka": run.kafka,
        "scale": run.scale,
        "end_us": run.end_us,
        "numbers": {
            number.name: {"kind": number.kind, "value": number.value}
            for number in run.numbers.values()
        },
        "events": [event._asdict() for event in run.events],
        "partitions": {name: [s._asdict() for s in steps] for name, steps in run.steps.items()},
    }


def from_plain(plain: Mapping[str, Any], source: Path) -> Measured:
    """The run that :func:`as_plain` wrote.

    Args:
        plain: Its data.
        source: The file that has it.

    Raises:
        SimulationError: If the data has another shape.
    """
    wrong = misfit(plain, SHAPE)
    if wrong:
        raise SimulationError(f"{source}: damaged: {wrong}; measure it again with make rehearse")
    return Measured(
        directory=source,
        is_real=plain["real"],
        scale=float(plain["scale"]),
        kafka=plain["kafka"],
        end_us=plain["end_us"],
        scenario={},
        numbers={
            name: Number(name, number["kind"], number.get("value"))
            for name, number in plain["numbers"].items()
        },
        steps={name: [Step(**s) for s in steps] for name, steps in plain["partitions"].items()},
        events=[Event(**event) for event in plain["events"]],
    )
