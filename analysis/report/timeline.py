"""Lanes of the cluster's states over time, as spans that can be shown and scrubbed.

A *lane* is one thing that is always in one state: a server, a broker's registration, the
controllership, a partition, a group. Lanes of the same kind are a *track*. However long the run
was, what comes back has at most :data:`MOST_LANES` lanes in a track, the most troubled ones, and at
most :data:`MOST_SPANS` spans in a lane: beyond that, neighbours are merged into the worst of them,
with their number.

Left out: lanes of clients; the outdated views of brokers.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from sim.ids import FIRST_CONTROLLER_ID, FIRST_ZOOKEEPER_ID
from sim.units import Micros

MOST_LANES: Final = 48
"""Lanes of a track."""

MOST_SPANS: Final = 150
"""Spans of a lane."""

TRACKS: Final = ("controller", "server", "registration", "partition", "group")
"""In the order in which they are shown."""

_LANE: Final = ["track", "lane"]
_EVENT: Final = (*_LANE, "t_us", "step", "state", "level", "value", "detail")
SERVER: Final = r"^(broker|controller|zookeeper)-\d+$"
"""Printed names of servers, see :func:`sim.ids.server_name`."""
_ENDED: Final = ("crashed", "powered_off", "stopped")

Read = Callable[[str], DataFrame]
"""A table of the trace by its name."""


def spans(read: Read, states: DataFrame, end_us: Micros) -> DataFrame:
    """All tracks from simulated zero to the end.

    Args:
        read: Tables of the trace.
        states: Intervals of :func:`analysis.report.replication.spans`.
        end_us: End of open spans.

    Returns:
        ``DataFrame[track, lane, from_us, to_us, state, level, value, detail, changes, lanes]``.
        ``level`` is 0 (well) to 3 (worst); ``value`` is the leader of a partition, the generation
        of a group, the incarnation of a server, the epoch of a controller; ``changes`` is the
        number of states merged into the span, ``lanes`` that of all lanes of the track.
    """
    events = (
        controllers(read("quorum"), read("controllers"), read("node_states")),
        servers(read("node_states")),
        registrations(read("broker_states")),
        partitions(states, read("topic_deletions")),
        groups(read("groups")),
    )
    return _most_troubled(_coarse(_between(_union(events), end_us), end_us))


def servers(node_states: DataFrame) -> DataFrame:
    """Processes of brokers, controllers and ZooKeeper servers as they start and end."""
    state = f.col("state")
    known = (
        f.when(state.isin("running", "resumed"), "running")
        .when(state == "started", "starting")
        .otherwise(state)
    )
    level = (
        f.when(known == "running", 0)
        .when(known == "starting", 1)
        .when(known == "paused", 2)
        .otherwise(3)
    )
    return node_states.where(f.col("node").rlike(SERVER)).select(
        f.lit("server").alias("track"),
        f.col("node").alias("lane"),
        "t_us",
        # A process that is up at the instant at which it starts has started first.
        f.when(known == "running", 1).otherwise(0).cast("long").alias("step"),
        known.alias("state"),
        level.alias("level"),
        f.col("incarnation").cast("long").alias("value"),
        f.concat(f.lit("incarnation "), "incarnation").alias("detail"),
    )


def registrations(broker_states: DataFrame) -> DataFrame:
    """Brokers as the active controller has them registered."""
    state = f.col("state")
    level = (
        f.when(state == "unfenced", 0)
        .when(state.isin("registered", "controlled_shutdown"), 1)
        .otherwise(2)
    )
    return broker_states.select(
        f.lit("registration").alias("track"),
        _name(f.col("broker")).alias("lane"),
        "t_us",
        f.when(state == "unfenced", 1).otherwise(0).cast("long").alias("step"),
        state.alias("state"),
        level.alias("level"),
        f.col("broker_epoch").alias("value"),
        f.concat(f.lit("broker epoch "), "broker_epoch").alias("detail"),
    )


def controllers(quorum: DataFrame, elected: DataFrame, node_states: DataFrame) -> DataFrame:
    """The active controller; with ZooKeeper, the ensemble's leader as well.

    A leader is one until it resigns, its process ends, or another one has a later epoch.
    """
    began = f.when(f.col("role") == "leader", 1).otherwise(0)
    votes = quorum.select("t_us", "node", "epoch", began.alias("leads"))
    chosen = elected.select(
        "t_us",
        f.col("broker").alias("node"),
        "epoch",
        f.when(f.col("state") == "resigned", 0).otherwise(1).alias("leads"),
    )
    ended = node_states.where(f.col("state").isin(*_ENDED)).select(
        "t_us", f.col("node").alias("name"), f.lit(-1).alias("epoch"), f.lit(0).alias("leads")
    )
    named = votes.unionByName(chosen).withColumn("name", _name(f.col("node"))).drop("node")
    own = Window.partitionBy("name").orderBy("t_us", f.col("epoch"), "leads")
    was = f.lag(f.struct("leads", "epoch")).over(own)
    lane = f.when(f.col("name").startswith("zookeeper"), "ZooKeeper leader").otherwise("controller")
    turns = (
        named.unionByName(ended)
        .withColumn("was", was)
        .where((f.col("leads") == 1) | (f.col("was.leads") == 1))
        .select(
            lane.alias("lane"),
            "t_us",
            "leads",
            "name",
            f.when(f.col("leads") == 1, f.col("epoch"))
            .otherwise(f.col("was.epoch"))
            .alias("epoch"),
        )
    )
    by_time = Window.partitionBy("lane").orderBy("t_us", "epoch", f.col("leads").desc())
    newest = f.max("epoch").over(by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    leads = f.col("leads") == 1
    return (
        turns.withColumn("newest", newest)
        .where(f.col("epoch") == f.col("newest"))
        .select(
            f.lit("controller").alias("track"),
            "lane",
            "t_us",
            (f.col("epoch") * 2 + (1 - f.col("leads"))).cast("long").alias("step"),
            f.when(leads, f.col("name")).otherwise("nobody").alias("state"),
            f.when(leads, 0).otherwise(3).alias("level"),
            f.col("epoch").cast("long").alias("value"),
            f.concat(f.lit("epoch "), "epoch").alias("detail"),
        )
    )


def partitions(states: DataFrame, topic_deletions: DataFrame) -> DataFrame:
    """Leaders and in-sync replicas as the controller committed them, until the topic is deleted."""
    level = (
        f.when(f.col("leader") < 0, 3)
        .when(f.col("is_under_min"), 2)
        .when(f.col("in_sync_count") < f.col("replica_count"), 1)
        .otherwise(0)
    )
    words = (
        f.when(level == 3, "no leader")
        .when(level == 2, "under min.insync.replicas")
        .when(level == 1, "some out of sync")
        .otherwise("all in sync")
    )
    lane = f.concat("topic", f.lit("-"), "partition")
    detail = f.concat(
        f.lit("epoch "),
        "leader_epoch",
        f.lit("; in sync "),
        f.when(f.col("in_sync") == "", "nobody").otherwise(f.col("in_sync")),
        f.lit(" of "),
        "replicas",
        f.when(f.col("unclean"), "; unclean").otherwise(""),
    )
    here = states.select(
        f.lit("partition").alias("track"),
        lane.alias("lane"),
        f.col("from_us").alias("t_us"),
        f.col("partition_epoch").cast("long").alias("step"),
        words.alias("state"),
        level.alias("level"),
        f.col("leader").cast("long").alias("value"),
        detail.alias("detail"),
    )
    places = states.select("topic", lane.alias("lane")).distinct()
    ended = topic_deletions.select("topic", "t_us").join(places, "topic")
    return here.unionByName(
        ended.select(
            f.lit("partition").alias("track"),
            "lane",
            "t_us",
            f.lit(2**40).alias("step"),
            f.lit("").alias("state"),
            f.lit(0).alias("level"),
            f.lit(-1).cast("long").alias("value"),
            f.lit("").alias("detail"),
        )
    )


def groups(group_states: DataFrame) -> DataFrame:
    """Consumer groups by their coordinators; states that are not settled are rebalances."""
    state = f.col("state")
    level = f.when(state.isin("Stable", "Empty"), 0).otherwise(1)
    # Of states of one generation at one instant, a group is made first and settles last.
    is_new = (state == "Empty") & (f.col("generation") == 0)
    turn = (
        f.when(is_new, 0)
        .when(state.isin("Stable", "Empty"), 3)
        .when(state == "CompletingRebalance", 2)
        .otherwise(1)
    )
    detail = f.concat(
        f.lit("generation "), "generation", f.lit("; members "), "members", f.lit("; "), "reason"
    )
    return group_states.select(
        f.lit("group").alias("track"),
        f.col("group").alias("lane"),
        "t_us",
        (f.col("generation") * 4 + turn).cast("long").alias("step"),
        state.alias("state"),
        level.alias("level"),
        f.col("generation").cast("long").alias("value"),
        detail.alias("detail"),
    )


def _name(node: Column) -> Column:
    """A server's printed name, as :func:`sim.ids.server_name` has it."""
    zookeeper = f.concat(f.lit("zookeeper-"), node - (FIRST_ZOOKEEPER_ID - 1))
    controller = f.concat(f.lit("controller-"), node - (FIRST_CONTROLLER_ID - 1))
    return (
        f.when(node >= FIRST_ZOOKEEPER_ID, zookeeper)
        .when(node >= FIRST_CONTROLLER_ID, controller)
        .otherwise(f.concat(f.lit("broker-"), node))
    )


def _union(events: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, (frame.select(*_EVENT) for frame in events))


def _between(events: DataFrame, end_us: Micros) -> DataFrame:
    """From each change to the next, from simulated zero on; an empty state is no span."""
    order = Window.partitionBy(*_LANE).orderBy("t_us", "step", "detail")
    now = f.struct("state", "value", "detail")
    until = f.coalesce(f.lead("t_us").over(order), f.lit(end_us))
    return (
        events.withColumn("before", f.lag(now).over(order))
        .where(f.col("before").isNull() | (f.col("before") != now))
        .withColumn("to_us", f.least(until, f.lit(end_us)))
        .withColumn("from_us", f.greatest("t_us", f.lit(0)))
        .where((f.col("to_us") > f.col("from_us")) & (f.col("state") != ""))
        .select(*_LANE, "from_us", "to_us", "state", "level", "value", "detail")
    )


def _coarse(found: DataFrame, end_us: Micros) -> DataFrame:
    """Cuts lanes with too many spans into cells, each shown as its worst span."""
    lane = Window.partitionBy(*_LANE)
    cell = f.floor(f.col("from_us") * MOST_SPANS / f.lit(max(1, end_us)))
    own = f.row_number().over(lane.orderBy("from_us")).cast("long")
    crowded = f.count(f.lit(1)).over(lane) > MOST_SPANS
    worst = f.struct("level", (f.col("to_us") - f.col("from_us")).alias("took_us"), "from_us")
    kept = f.struct("state", "level", "value", "detail")
    return (
        found.withColumn("crowded", crowded)
        .withColumn("cell", f.when(f.col("crowded"), cell).otherwise(own))
        .groupBy(*_LANE, "cell")
        .agg(
            f.min("from_us").alias("from_us"),
            f.max("to_us").alias("to_us"),
            f.max_by(kept, worst).alias("kept"),
            f.count(f.lit(1)).alias("changes"),
        )
        .select(*_LANE, "from_us", "to_us", "kept.*", "changes")
    )


def _most_troubled(found: DataFrame) -> DataFrame:
    """The lanes of each track that fared worst; of equal ones those with the most changes.

    Partitions of internal topics come after all others.
    """
    lane = Window.partitionBy(*_LANE)
    track = Window.partitionBy("track")
    worst_first = track.orderBy(
        f.col("lane").startswith("__"), f.col("trouble").desc(), f.col("all").desc(), "lane"
    )
    return (
        found.withColumn(
            "trouble", f.sum(f.col("level") * (f.col("to_us") - f.col("from_us"))).over(lane)
        )
        .withColumn("all", f.sum("changes").over(lane))
        .withColumn("place", f.dense_rank().over(worst_first))
        .withColumn("lanes", f.max("place").over(track))
        .where(f.col("place") <= MOST_LANES)
        .drop("trouble", "all", "place")
    )
