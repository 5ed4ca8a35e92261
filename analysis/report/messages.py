"""A bounded sample of the messages between nodes, for space-time diagrams.

Source of the diagram: Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System"
(CACM 1978). A short run is kept whole. Of a longer one each second has a share, larger at events;
within a second every flow (sender, receiver and kind) is represented before another one is
represented twice, so that a rare vote is not drowned by fetches. The sample has each second's
number of messages, too.
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
"""Nodes whose messages are kept: servers first, then those with most messages."""

MOST_NOTABLE: Final = 40
"""Seconds that have the larger share."""

_NOTABLE_SHARE: Final = 400
_CALM: Final = MOST - MOST_NOTABLE * _NOTABLE_SHARE


def nodes(messages: DataFrame) -> DataFrame:
    """Senders and receivers, in the order of their lanes.

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
        spans: Spans of :func:`analysis.report.timeline.spans`.
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
        seen: Nodes of :func:`nodes`.
        seconds: Of :func:`notable`.
        end_us: End of the run; the share of a calm second follows from it.

    Returns:
        ``DataFrame[second, sent_us, t_us, sender, receiver, kind, delayed_by, total]``; ``total``
        is the second's number of messages of these nodes. At most :data:`MOST` rows.
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
        instant: Column of the instant, which determines the second.
        flow: Columns that identify a flow.
        most: Greatest number of rows of a second.

    Returns:
        The first rows of each second with ``second``, ``place`` (from 1) and ``total``, its number
        of rows. A flow is known by a hash of 64 bits. Within it a hash of the rows is the order:
        the same for the same trace.
    """
    known = [instant, "t_us", *flow]
    timed = rows.withColumn("second", f.floor(f.col(instant) / SECOND).cast("int"))
    totals = timed.groupBy("second").agg(f.count(f.lit(1)).alias("total"))
    own = Window.partitionBy("second", "flow").orderBy("draw", *known)
    turns = Window.partitionBy("second").orderBy("turn", "draw", *known)
    # A limit directly behind its window is applied while rows are read: all rows are never sorted
    # as a whole.
    first = (
        # Numbers are sorted and compared at a fraction of the price of names.
        timed.withColumns({"draw": f.xxhash64(*known), "flow": f.xxhash64(*flow)})
        .withColumn("turn", f.row_number().over(own))
        .where(f.col("turn") <= most)
        .withColumn("place", f.row_number().over(turns))
        .where(f.col("place") <= most)
    )
    return first.join(f.broadcast(totals), "second")
