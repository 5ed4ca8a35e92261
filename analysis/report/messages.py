"""A bounded choice of the messages between nodes, for space-time diagrams.

Source of the diagram: Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System"
(CACM 1978). A short run is kept whole. Of a longer one each second has a share, larger where
something happened; within a second every flow (sender, receiver and kind) is represented before
another one is represented twice, so that a rare vote is not drowned by fetches. How many messages
a second had is told beside those that are kept.
"""

from collections.abc import Sequence
from typing import Final

import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from analysis.report.timeline import SERVER
from sim.units import SECOND, Micros

MOST: Final = 24_000
"""Messages of a run that are kept, at most."""

MOST_NODES: Final = 24
"""Nodes whose messages are kept: servers first, then those that speak most."""

MOST_NOTABLE: Final = 40
"""Seconds that have the larger share."""

_NOTABLE_SHARE: Final = 400
_CALM: Final = MOST - MOST_NOTABLE * _NOTABLE_SHARE


def nodes(messages: DataFrame) -> DataFrame:
    """Who sent and received, in the order in which lanes are given to them.

    Returns:
        ``DataFrame[node, messages]``, at most :data:`MOST_NODES` rows.
    """
    ends = messages.select(f.explode(f.array("sender", "receiver")).alias("node"))
    is_server = f.col("node").rlike(SERVER).cast("int")
    counted = ends.groupBy("node").agg(f.count(f.lit(1)).alias("messages"))
    return counted.orderBy(is_server.desc(), f.col("messages").desc(), "node").limit(MOST_NODES)


def notable(spans: pd.DataFrame, faults: Sequence[Micros]) -> list[int]:
    """Seconds in which a fault began or ended, then those in which most lanes changed.

    Args:
        spans: What :func:`analysis.report.timeline.spans` found.
        faults: Instants at which faults began or ended.
    """
    first = sorted({at // SECOND for at in faults if at >= 0})
    changes = (spans["from_us"][spans["from_us"] > 0] // SECOND).value_counts()
    ranked = sorted(changes.index, key=lambda second: (-int(changes[second]), int(second)))
    found = dict.fromkeys([*first, *(int(second) for second in ranked)])
    return list(found)[:MOST_NOTABLE]


def kept(
    messages: DataFrame, seen: pd.DataFrame, seconds: Sequence[int], end_us: Micros
) -> DataFrame:
    """The messages to show, each by the second in which it was sent.

    Args:
        messages: Trace table.
        seen: What :func:`nodes` found.
        seconds: Of :func:`notable`.
        end_us: End of the run; the share of a calm second follows from it.

    Returns:
        ``DataFrame[second, sent_us, t_us, sender, receiver, kind, delayed_by, total]``; ``total``
        is how many messages of these nodes the second had. At most :data:`MOST` rows.
    """
    names = seen["node"].tolist()
    here = messages.where(
        f.col("sent_us").between(0, end_us)
        & f.col("sender").isin(*names)
        & f.col("receiver").isin(*names)
    )
    # Every message has two ends, so this many at most are left.
    whole = int(seen["messages"].sum()) <= 2 * MOST
    calm = _CALM // (end_us // SECOND + 1)
    most = MOST if whole else max(calm, _NOTABLE_SHARE)
    found = taking_turns(here, "sent_us", ["sender", "receiver", "kind"], most)
    if not whole:
        share = f.when(f.col("second").isin(*seconds), _NOTABLE_SHARE).otherwise(calm)
        found = found.where(f.col("place") <= share)
    return found.select(
        "second", "sent_us", "t_us", "sender", "receiver", "kind", "delayed_by", "total"
    )


def taking_turns(rows: DataFrame, instant: str, flow: Sequence[str], most: int) -> DataFrame:
    """Rows in an order in which every flow of a second comes once before any comes twice.

    Args:
        rows: With ``t_us`` and the columns that are named.
        instant: Column that says which second a row belongs to.
        flow: Columns that tell flows apart.
        most: Rows of a second that are wanted, at most.

    Returns:
        The first rows of each second with ``second``, ``place`` (from 1) and ``total``, how many
        rows the second has. Within a flow the order is drawn from what the rows say: the same for
        the same trace.
    """
    known = [instant, "t_us", *flow]
    timed = rows.withColumn("second", f.floor(f.col(instant) / SECOND).cast("int"))
    totals = timed.groupBy("second").agg(f.count(f.lit(1)).alias("total"))
    own = Window.partitionBy("second", *flow).orderBy("draw", *known)
    turns = Window.partitionBy("second").orderBy("turn", "draw", *known)
    # A limit that stands right behind its window is kept while rows are read: the flood is never
    # sorted as a whole.
    first = (
        timed.withColumn("draw", f.xxhash64(*known))
        .withColumn("turn", f.row_number().over(own))
        .where(f.col("turn") <= most)
        .withColumn("place", f.row_number().over(turns))
        .where(f.col("place") <= most)
    )
    return first.join(f.broadcast(totals), "second")
