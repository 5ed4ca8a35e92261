"""The states of a cluster over time: partitions, offline time, load, lag and the timeline.

Their sources grow with what happens to servers, partitions and groups, and with the seconds of a
run, not with its records: they are read by this process, for a query of Spark's costs more than all
these rows.
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from analysis.report import load, replication, timeline
from analysis.spark import tables
from analysis.verify import offline
from sim.units import Micros


def frames(
    directory: Path,
    card: Mapping[str, object],
    end_us: Micros,
    width_us: Micros,
) -> dict[str, pd.DataFrame]:
    """Tables of the report by name. Their sources are small in a long run, too, mostly.

    Args:
        directory: The run's.
        card: Its ``run.json``.
        end_us: End of simulated time.
        width_us: Width of a bin.
    """

    def small(name: str) -> pd.DataFrame:
        return tables.small(directory, name)

    states = partitions(directory, end_us)
    return {
        **offline.frames(small, card, end_us),
        "partition_states": states,
        "replication": replication.totals(states),
        "load": load.servers(small("load"), width_us),
        "lag": load.consumers(small("lag"), width_us),
        "timeline": timeline.spans(small, states, end_us),
    }


def partitions(directory: Path, end_us: Micros) -> pd.DataFrame:
    """Intervals of :func:`analysis.report.replication.spans` of a run."""
    least = tables.most(directory, "high_watermarks", ["topic", "partition"], "min_in_sync")
    changes = tables.small(directory, "partition_changes")
    return replication.spans(changes, replication.minima(least), end_us)
