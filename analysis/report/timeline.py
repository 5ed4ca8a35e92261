"""Lanes of the cluster's states over time, as spans that can be shown and scrubbed.

A *lane* is one thing that is always in one state: a server, a broker's registration, the
controllership, a partition, a group. Lanes of the same kind are a *track*. However long the run
was, what comes back has at most :data:`MOST_LANES` lanes in a track, the most troubled ones, and at
most :data:`MOST_SPANS` spans in a lane: beyond that, neighbours are merged into the worst of them,
with their number.

Left out: lanes of clients; the outdated views of brokers.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd

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
_LAST_STEP: Final = 2**40
_ENDED: Final = ("crashed", "powered_off", "stopped")

Read = Callable[[str], pd.DataFrame]
"""A table of the trace by its name."""


def spans(read: Read, states: pd.DataFrame, end_us: Micros) -> pd.DataFrame:
    """All tracks from simulated zero to the end.

    Args:
        read: Tables of the trace.
        states: Intervals of :func:`analysis.report.replication.spans`.
        end_us: End of open spans.

    Returns:
        ``[track, lane, from_us, to_us, state, level, value, detail, changes, lanes]``, ordered by
        lane and time. ``level`` is 0 (well) to 3 (worst); ``value`` is the leader of a partition,
        the generation of a group, the incarnation of a server, the epoch of a controller;
        ``changes`` is the number of states merged into the span, ``lanes`` that of all lanes of
        the track.
    """
    events = (
        controllers(read("quorum"), read("controllers"), read("node_states")),
        servers(read("node_states")),
        registrations(read("broker_states")),
        partitions(states, read("topic_deletions")),
        groups(read("groups")),
    )
    found = _most_troubled(_coarse(_between(pd.concat(events, ignore_index=True), end_us), end_us))
    return found.sort_values([*_LANE, "from_us"], ignore_index=True)


def servers(node_states: pd.DataFrame) -> pd.DataFrame:
    """Processes of brokers, controllers and ZooKeeper servers as they start and end."""
    rows = node_states[node_states["node"].str.match(SERVER)]
    state = rows["state"]
    known = state.replace({"resumed": "running", "started": "starting"})
    level = known.map({"running": 0, "starting": 1, "paused": 2}).fillna(3)
    return _events(
        "server",
        rows["node"],
        rows["t_us"],
        # A process that is up at the instant at which it starts has started first.
        (known == "running").astype(np.int64),
        known,
        level,
        rows["incarnation"],
        "incarnation " + rows["incarnation"].astype(str),
    )


def registrations(broker_states: pd.DataFrame) -> pd.DataFrame:
    """Brokers as the active controller has them registered."""
    state = broker_states["state"]
    level = state.map({"unfenced": 0, "registered": 1, "controlled_shutdown": 1}).fillna(2)
    return _events(
        "registration",
        _names(broker_states["broker"]),
        broker_states["t_us"],
        (state == "unfenced").astype(np.int64),
        state,
        level,
        broker_states["broker_epoch"],
        "broker epoch " + broker_states["broker_epoch"].astype(str),
    )


def controllers(
    quorum: pd.DataFrame, elected: pd.DataFrame, node_states: pd.DataFrame
) -> pd.DataFrame:
    """The active controller; with ZooKeeper, the ensemble's leader as well.

    A leader is one until it resigns, its process ends, or another one has a later epoch.
    """
    votes = quorum.assign(name=_names(quorum["node"]), leads=quorum["role"] == "leader")
    chosen = elected.assign(name=_names(elected["broker"]), leads=elected["state"] != "resigned")
    ended = node_states[node_states["state"].isin(_ENDED)]
    ended = ended.assign(name=ended["node"], epoch=-1, leads=False)
    kinds = {"t_us": np.int64, "name": object, "epoch": np.int64, "leads": np.int64}
    parts = [frame[[*kinds]].astype(kinds) for frame in (votes, chosen, ended)]
    named = pd.concat(parts, ignore_index=True)
    own = named.sort_values(["name", "t_us", "epoch", "leads"], ignore_index=True)
    before = own.groupby("name")[["leads", "epoch"]].shift(1)
    own = own.assign(was=before["epoch"])[(own["leads"] == 1) | (before["leads"] == 1)]
    own["epoch"] = np.where(own["leads"] == 1, own["epoch"], own["was"]).astype(np.int64)
    is_ensemble = own["name"].str.startswith("zookeeper").astype(bool)
    own["lane"] = np.where(is_ensemble, "ZooKeeper leader", "controller")
    turns = own.sort_values(["lane", "t_us", "epoch", "leads"], ascending=[True, True, True, False])
    turns = turns[turns["epoch"] == turns.groupby("lane")["epoch"].cummax()]
    leads = turns["leads"] == 1
    return _events(
        "controller",
        turns["lane"],
        turns["t_us"],
        turns["epoch"] * 2 + (1 - turns["leads"]),
        turns["name"].where(leads, "nobody"),
        (~leads) * 3,
        turns["epoch"],
        "epoch " + turns["epoch"].astype(str),
    )


def partitions(states: pd.DataFrame, topic_deletions: pd.DataFrame) -> pd.DataFrame:
    """Leaders and in-sync replicas as the controller committed them, until the topic is deleted."""
    level = np.select(
        [
            states["leader"] < 0,
            states["is_under_min"].astype(bool),
            states["in_sync_count"] < states["replica_count"],
        ],
        [3, 2, 1],
    )
    words = ("all in sync", "some out of sync", "under min.insync.replicas", "no leader")
    lane = states["topic"] + "-" + states["partition"].astype(str)
    detail = (
        "epoch "
        + states["leader_epoch"].astype(str)
        + "; in sync "
        + states["in_sync"].where(states["in_sync"] != "", "nobody")
        + " of "
        + states["replicas"]
        + states["unclean"].map({True: "; unclean", False: ""}).astype(object)
    )
    here = _events(
        "partition",
        lane,
        states["from_us"],
        states["partition_epoch"],
        pd.Series([words[place] for place in level], states.index, object),
        level,
        states["leader"],
        detail,
    )
    places = pd.DataFrame({"topic": states["topic"], "lane": lane}).drop_duplicates()
    ended = topic_deletions[["topic", "t_us"]].merge(places, on="topic")
    return pd.concat(
        [
            here,
            _events("partition", ended["lane"], ended["t_us"], _LAST_STEP, "", 0, -1, ""),
        ],
        ignore_index=True,
    )


def groups(group_states: pd.DataFrame) -> pd.DataFrame:
    """Consumer groups by their coordinators; states that are not settled are rebalances."""
    state, generation = group_states["state"], group_states["generation"]
    is_settled = state.isin(("Stable", "Empty"))
    # Of states of one generation at one instant, a group is made first and settles last.
    is_new = (state == "Empty") & (generation == 0)
    turn = np.select([is_new, is_settled, state == "CompletingRebalance"], [0, 3, 2], 1)
    detail = (
        "generation "
        + generation.astype(str)
        + "; members "
        + group_states["members"].astype(str)
        + "; "
        + group_states["reason"]
    )
    return _events(
        "group",
        group_states["group"],
        group_states["t_us"],
        generation.astype(np.int64) * 4 + turn,
        state,
        (~is_settled).astype(np.int32),
        generation,
        detail,
    )


def _events(track: str, lane: object, t_us: object, *columns: object) -> pd.DataFrame:
    """Rows of :data:`_EVENT` behind the track; a single value is that of all rows."""
    named = dict(zip(_EVENT[1:], (lane, t_us, *columns), strict=True))
    kinds = {
        "lane": object,
        "t_us": np.int64,
        "step": np.int64,
        "state": object,
        "level": np.int32,
        "value": np.int64,
        "detail": object,
    }
    found = pd.DataFrame(named).reset_index(drop=True).astype(kinds)
    found.insert(0, "track", track)
    return found


def _names(nodes: "pd.Series[int]") -> "pd.Series[str]":
    return pd.Series([_name(node) for node in nodes], nodes.index, object)


def _name(node: int) -> str:
    """A server's printed name, as :func:`sim.ids.server_name` has it."""
    if node >= FIRST_ZOOKEEPER_ID:
        return f"zookeeper-{node - (FIRST_ZOOKEEPER_ID - 1)}"
    if node >= FIRST_CONTROLLER_ID:
        return f"controller-{node - (FIRST_CONTROLLER_ID - 1)}"
    return f"broker-{node}"


def _between(events: pd.DataFrame, end_us: Micros) -> pd.DataFrame:
    """From each change to the next, from simulated zero on; an empty state is no span."""
    ordered = events.sort_values([*_LANE, "t_us", "step", "detail"], ignore_index=True)
    now = ordered[[*_LANE, "state", "value", "detail"]]
    changed = ordered[(now != now.shift(1)).any(axis=1)]
    until = changed.groupby(_LANE)["t_us"].shift(-1).fillna(end_us).astype(np.int64)
    found = changed.assign(from_us=changed["t_us"].clip(lower=0), to_us=until.clip(upper=end_us))
    found = found[(found["to_us"] > found["from_us"]) & (found["state"] != "")]
    return found[[*_LANE, "from_us", "to_us", "state", "level", "value", "detail"]]


def _coarse(found: pd.DataFrame, end_us: Micros) -> pd.DataFrame:
    """Cuts lanes with too many spans into cells, each shown as its worst span."""
    ordered = found.sort_values([*_LANE, "from_us"], ignore_index=True)
    lanes = ordered.groupby(_LANE)
    is_crowded = lanes["from_us"].transform("size") > MOST_SPANS
    cell = (ordered["from_us"] * MOST_SPANS / max(1, end_us)).astype(np.int64)
    ordered["cell"] = cell.where(is_crowded, lanes.cumcount())
    ordered["took_us"] = ordered["to_us"] - ordered["from_us"]
    cells = [*_LANE, "cell"]
    whole = ordered.groupby(cells).agg(
        from_us=("from_us", "min"), to_us=("to_us", "max"), changes=("from_us", "size")
    )
    # Of equal ones the latest, as of Spark's structs the largest.
    worst = ordered.sort_values([*cells, "level", "took_us", "from_us"]).groupby(cells).tail(1)
    kept = whole.join(worst.set_index(cells)[["state", "level", "value", "detail"]])
    order = [*_LANE, "from_us", "to_us", "state", "level", "value", "detail", "changes"]
    return kept.reset_index()[order]


def _most_troubled(found: pd.DataFrame) -> pd.DataFrame:
    """The lanes of each track that fared worst; of equal ones those with the most changes.

    Partitions of internal topics come after all others.
    """
    trouble = found["level"] * (found["to_us"] - found["from_us"])
    lanes = (
        found.assign(trouble=-trouble, all=-found["changes"])
        .groupby(_LANE, as_index=False)[["trouble", "all"]]
        .sum()
    )
    lanes["is_internal"] = lanes["lane"].str.startswith("__")
    ranked = lanes.sort_values(["track", "is_internal", "trouble", "all", "lane"])
    tracks = ranked.groupby("track")
    kept = ranked.assign(lanes=tracks["lane"].transform("size").astype(np.int32))
    kept = kept[tracks.cumcount() < MOST_LANES]
    return found.merge(kept[[*_LANE, "lanes"]], on=_LANE)
