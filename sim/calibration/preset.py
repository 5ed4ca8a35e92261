"""The preset that a calibration writes: figures of a cluster, where they are from, and their error.

The file is what ``cluster.hardware.file`` names. Its ``measured`` is for people and for programs
that read it; the simulator takes the figures alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from sim.calibration.fit import FACTOR, Error, Fit, Line
from sim.calibration.parameters import PARAMETERS, UPPER_LIMITS, figures, shown

NAME: Final = "hardware.yaml"
REPORT: Final = "calibration.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """Place, time and machine of a measurement."""

    date: str
    kafka: str
    cores: int
    noise: Mapping[str, int]
    """As in ``run.json`` of a rehearsal; empty if nobody measured it."""
    cluster: str
    """``this machine``, or the bootstrap servers."""
    rounds: int


def text(found: Fit, origin: Origin) -> str:
    """The file."""
    checked = found.error("held back")
    return "".join(f"# {line}\n" for line in _head(found, origin, checked)) + yaml.safe_dump(
        {
            "measured": plain_origin(origin)
            | {
                "error": _error(checked),
                "error_without_preset": _error(found.error("held back", before=True)),
                "not_fitted": list(found.absent),
                "upper_limits": _limits(found),
            },
            **_figures(found),
        },
        sort_keys=False,
        allow_unicode=True,
    )


def _head(found: Fit, origin: Origin, checked: Error) -> Iterator[str]:
    yield f"Hardware as logquake calibrate measured it on {origin.cluster}, {origin.date}."
    yield (
        f"On loads that were held back it is {checked.median:.2f} times too fast or too slow at "
        f"the median and {checked.worst:.2f} times at worst."
    )
    yield f"Use it: cluster: {{hardware: {{file: {NAME}}}}}"
    for parameter in PARAMETERS:
        if parameter.name in found.fitted:
            low, high = (shown(parameter, each) for each in found.ranges[parameter.name])
            value = shown(parameter, found.values[parameter.name])
            limit = "; an upper limit, not set" if parameter.name in UPPER_LIMITS else ""
            yield f"{parameter.name}: {value} (rounds alone: {low} to {high}){limit}"


def _figures(found: Fit) -> dict[str, Any]:
    """Figures that the preset sets."""
    return figures(found.values, [name for name in found.fitted if name not in UPPER_LIMITS])


def _limits(found: Fit) -> dict[str, Any]:
    """Figures that are no more than that."""
    return figures(found.values, [name for name in found.fitted if name in UPPER_LIMITS])


def plain_origin(origin: Origin) -> dict[str, Any]:
    """Place, time and machine as plain data."""
    return {
        "by": "logquake calibrate",
        "date": origin.date,
        "kafka": origin.kafka,
        "cluster": origin.cluster,
        "cores": origin.cores,
        "rounds": origin.rounds,
        **({"noise": dict(origin.noise)} if origin.noise else {}),
    }


def report(found: Fit, origin: Origin) -> dict[str, Any]:
    """Everything, for programs: parameters with ranges, every line, and the errors."""
    return {
        "measured": plain_origin(origin),
        "parameters": {
            each.name: {
                "value": round(found.values[each.name], 4),
                "unit": each.unit,
                "least": round(found.ranges[each.name][0], 4),
                "largest": round(found.ranges[each.name][1], 4),
                "default": round(each.start, 4),
            }
            for each in PARAMETERS
            if each.name in found.fitted
        },
        "not_fitted": list(found.absent),
        "figures": _figures(found),
        "upper_limits": _limits(found),
        "loads": [_line(each) for each in found.lines],
        "error": {
            role: {
                "before": _error(found.error(role, before=True)),
                "after": _error(found.error(role)),
            }
            for role in ("fitted", "held back")
        },
        "runs": found.runs,
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "load": line.load.name,
        "role": line.load.role,
        "what": line.load.what,
        "percentile": line.percentile,
        "real_us": line.real_us,
        "before_us": line.before_us,
        "after_us": line.after_us,
        "factor_before": round(line.factor_before, 3),
        "factor": round(line.factor, 3),
    }


def _error(error: Error) -> dict[str, Any]:
    return {
        "median_factor": round(error.median, 2),
        "worst_factor": round(error.worst, 2),
        f"within_{FACTOR}": f"{error.near} of {error.lines}",
    }
