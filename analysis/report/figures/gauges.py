"""The figure of Kafka's gauges of partitions over time."""

import numpy as np
from matplotlib.ticker import MaxNLocator

from analysis.pages.cells import Picture
from analysis.report.figures.canvas import BLUE, ORANGE, RED, finish, timed
from analysis.report.findings import Drawable
from analysis.report.kafka_metrics import GAUGES
from analysis.report.kafka_metrics import gauges as over_time
from sim.units import SECOND


def gauges(drawable: Drawable) -> Picture:
    """Partitions that are under-replicated, under their minimum ISR, and without a leader."""
    name, title = "gauges", ", ".join(GAUGES)
    states = drawable.frames["partition_states"]
    if states.empty:
        return Picture(name, title, "No data: no partition state was committed.", "")
    found = over_time(states, drawable.end_us)
    edges = np.append(found["t_us"], drawable.end_us) / SECOND
    figure, axes = timed(drawable)
    for metric, colour in zip(GAUGES, (BLUE, ORANGE, RED), strict=True):
        axes.stairs(found[metric].to_numpy(), edges, color=colour, label=metric, linewidth=1.6)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("partitions")
    note = (
        "As the brokers' and the controller's metrics have them, of the whole cluster, internal "
        "topics too."
    )
    return Picture(name, title, note, finish(figure, axes))
