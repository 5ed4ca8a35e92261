"""A bounded sample of the messages between nodes, for space-time diagrams.

Source of the diagram: Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System"
(CACM 1978). A short run is kept whole. Of a longer one each second has a share, larger at events;
within a second every flow (sender, receiver and kind) is represented before another one is
represented twice, so that a rare vote is not drowned by fetches. The sample has each second's
number of messages, too.

Spark is not involved: rows are read a row group at a time, and only those that the rows before them
leave a place are held.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.report.timeline import SERVER
from analysis.spark import tables
from sim.units import SECOND, Micros

MOST: Final = 24_000
"""Messages of a run that are kept, at most."""

MOST_NODES: Final = 24
"""Nodes whose messages are kept: servers first, then those with most messages."""

MOST_NOTABLE: Final = 40
"""Seconds that have the larger share."""

_NOTABLE_SHARE: Final = 400
_CALM: Final = MOST - MOST_NOTABLE * _NOTABLE_SHARE
_ENDS: Final = ("sender", "receiver")
_FLOW: Final = (*_ENDS, "kind")
_SHOWN: Final = ("sent_us", "t_us", *_FLOW, "delayed_by")
_DRAW: Final = "draw"
_PENDING: Final = 65_536
"""Rows that wait to be compared with those that have a place."""


def nodes(run: Path) -> pd.DataFrame:
    """Senders and receivers, in the order of their lanes.

    Args:
        run: Run directory, with the trace table ``messages``.

    Returns:
        ``[node, messages]``, at most :data:`MOST_NODES` rows.
    """
    known: dict[str, int] = {}
    counted = np.zeros(0, np.int64)
    for rows in tables.row_groups(run, "messages", _ENDS):
        for end in _ENDS:
            found = np.bincount(tables.codes(rows[end], known), minlength=len(known))
            counted = found + np.pad(counted, (0, len(found) - len(counted)))
    is_server = re.compile(SERVER).search
    ranked = sorted(
        zip(known, counted.tolist(), strict=True),
        key=lambda node: (not is_server(node[0]), -node[1], node[0]),
    )[:MOST_NODES]
    return pd.DataFrame(
        {
            "node": pd.Series([name for name, _ in ranked], dtype=object),
            "messages": pd.Series([number for _, number in ranked], dtype=np.int64),
        }
    )


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


def kept(run: Path, seen: pd.DataFrame, seconds: Sequence[int], end_us: Micros) -> pd.DataFrame:
    """The messages to show, each by the second in which it was sent.

    Args:
        run: Run directory, with the trace table ``messages``.
        seen: Nodes of :func:`nodes`.
        seconds: Of :func:`notable`.
        end_us: End of the run; the share of a calm second follows from it.

    Returns:
        ``[second, sent_us, t_us, sender, receiver, kind, delayed_by, total]``, ordered by all but
        the last two; ``total`` is the second's number of messages of these nodes. At most
        :data:`MOST` rows.
    """
    # Every message has two ends, so this many at most are left.
    if int(seen["messages"].sum()) <= 2 * MOST:
        most, larger = MOST, {}
    else:
        most = _CALM // (end_us // SECOND + 1)
        larger = dict.fromkeys(seconds, _NOTABLE_SHARE)
    here = _among(run, seen["node"].tolist(), end_us)
    found = taking_turns(here, "sent_us", _FLOW, most, larger)
    shown: pd.DataFrame = found[["second", *_SHOWN, "total"]]
    return shown.sort_values(["sent_us", "t_us", *_FLOW], kind="stable", ignore_index=True)


def _among(run: Path, names: Sequence[str], end_us: Micros) -> Iterator[pa.Table]:
    """Messages of some nodes, without those from before the run's beginning or after its end."""
    known = pa.array(names, pa.string())
    for rows in tables.row_groups(run, "messages", _SHOWN):
        are_theirs = pc.and_(pc.is_in(rows["sender"], known), pc.is_in(rows["receiver"], known))
        yield rows.filter(pc.and_(are_theirs, within(rows["sent_us"], end_us)))


def within(instants: pa.ChunkedArray, end_us: Micros) -> pa.ChunkedArray:
    """True for instants between simulated zero and the end, both included."""
    return pc.and_(pc.greater_equal(instants, 0), pc.less_equal(instants, end_us))


def taking_turns(
    parts: Iterable[pa.Table],
    instant: str,
    flow: Sequence[str],
    most: int,
    larger: Mapping[int, int] = {},
) -> pd.DataFrame:
    """Chooses rows in an order in which every flow of a second comes once before any comes twice.

    Within a flow, and among rows that are a flow's n-th, a hash of the rows' numbers is the order:
    the same for the same trace, and related to nothing that a row says.

    A row without a place among the rows so far never gets one: each turn of a flow is taken by the
    least of its hashes, so more rows leave at least as many before it. So the choice among those
    that have a place and the rows behind them is the choice among all.

    Args:
        parts: Rows, at least one table, maybe without rows.
        instant: Column of the instant, which determines the second.
        flow: Columns that identify a flow.
        most: Greatest number of rows of a second.
        larger: The same for seconds that have another.

    Returns:
        The first rows of each second with ``second``, ``place`` (from 1) and ``total``, its number
        of rows, ordered by second and place.
    """
    totals: Counter[int] = Counter()
    chosen: list[pa.Table] = []
    number, pending = 0, 0
    for rows in parts:
        second = (rows[instant].to_numpy() // SECOND).astype(np.int32)
        found, counts = np.unique(second, return_counts=True)
        totals.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
        draw = pd.util.hash_array(np.arange(number, number + len(second), dtype=np.uint64))
        number += len(second)
        drawn = rows.append_column("second", pa.array(second)).append_column(_DRAW, pa.array(draw))
        chosen.append(_first(drawn, flow, most, larger))
        pending += chosen[-1].num_rows
        if pending >= _PENDING:
            chosen = [_first(pa.concat_tables(chosen), flow, most, larger)]
            pending = 0
    first = _first(pa.concat_tables(chosen), flow, most, larger)
    whole: pd.DataFrame = first.drop_columns([_DRAW]).to_pandas()
    counted = whole["second"].map(dict(totals)).astype(np.int64)
    place: pd.Series[int] = whole.groupby("second").cumcount() + 1
    return whole.assign(place=place, total=counted)


def _first(rows: pa.Table, flow: Sequence[str], most: int, larger: Mapping[int, int]) -> pa.Table:
    """The rows that have a place, ordered by second and place; names are no longer encoded."""
    second, draw = rows["second"].to_numpy(), rows[_DRAW].to_numpy()
    own = _flows(rows, flow)
    seconds, places = np.unique(second, return_inverse=True)
    each = [larger.get(every, most) for every in seconds.tolist()]
    share = np.array(each, np.int64)[places]
    order = np.lexsort((draw, own, second))
    turn = _counted(second[order], own[order])
    is_early = turn <= share[order]
    order, turn = order[is_early], turn[is_early]
    again = np.lexsort((draw[order], turn, second[order]))
    order = order[again]
    order = order[_counted(second[order]) <= share[order]]
    return _decoded(rows.take(pa.array(order)))


def _flows(rows: pa.Table, flow: Sequence[str]) -> npt.NDArray[np.int64]:
    """A number for each flow."""
    found = np.zeros(rows.num_rows, np.int64)
    for name in flow:
        texts = rows[name].dictionary_encode().unify_dictionaries().combine_chunks()
        found = found * max(1, len(texts.dictionary)) + texts.indices.to_numpy()
    return found


def _counted(*keys: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Numbers rows from 1 within each stretch of equal keys."""
    places = np.arange(len(keys[0]))
    is_next = np.zeros(len(places), np.bool_)
    for key in keys:
        is_next[1:] |= key[1:] != key[:-1]
    return places - np.maximum.accumulate(np.where(is_next, places, 0)) + 1


def _decoded(rows: pa.Table) -> pa.Table:
    """The same rows with plain strings, which need no dictionary of their row group."""
    kinds = [
        each.type.value_type if pa.types.is_dictionary(each.type) else each.type
        for each in rows.schema
    ]
    return rows.cast(pa.schema(zip(rows.column_names, kinds, strict=True)))
