"""Producer ids of transactions, which the client's interface does not say, from the logs.

A producer keeps its id until it is fenced or its epochs are used up; then the numbers of its later
records have another one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from sim.ids import ProducerId
from sim.trace.emit import Emit
from sim.trace.rows.clients import TransactionOutcomes, TransactionRecords
from sim.trace.rows.log import Appends
from sim.units import Micros

Rows = Iterable[tuple[Micros, Emit]]


def with_producer_ids(client_rows: Rows, appends: Rows) -> Iterator[tuple[Micros, Emit]]:
    """The clients' rows; outcomes of transactions have the id under which records were appended.

    Args:
        client_rows: Of all clients.
        appends: Rows of all logs.
    """
    ids = _Ids(appends)
    rows = list(client_rows)
    first: dict[tuple[object, object], tuple[int, int]] = {}
    for _, emit in rows:
        if emit.table == "transaction_records":
            row = (0, *emit.row)
            name = row[TransactionRecords.PRODUCER], row[TransactionRecords.TRANSACTION]
            producer, number = (
                row[TransactionRecords.PRODUCER_INDEX],
                row[TransactionRecords.FIRST_RECORD],
            )
            assert isinstance(producer, int), "the table says so"
            assert isinstance(number, int), "the table says so"
            first.setdefault(name, (producer, number))
    for at, emit in rows:
        if emit.table == "transaction_outcomes":
            row = (0, *emit.row)
            name = row[TransactionOutcomes.PRODUCER], row[TransactionOutcomes.TRANSACTION]
            if name in first:
                known = [*emit.row]
                known[TransactionOutcomes.PRODUCER_ID - 1] = ids.of(*first[name])
                yield at, emit._replace(row=tuple(known))
                continue
        yield at, emit


class _Ids:
    """Ids of producers by their index and the numbers of their records."""

    def __init__(self, appends: Rows) -> None:
        known: dict[int, dict[int, ProducerId]] = {}
        for _, emit in appends:
            if emit.table != "appends":
                continue
            row = (0, *emit.row)
            producer, number, given = (
                row[Appends.PRODUCER_INDEX],
                row[Appends.FIRST_RECORD],
                row[Appends.PRODUCER_ID],
            )
            assert isinstance(producer, int), "the table says so"
            assert isinstance(number, int), "the table says so"
            assert isinstance(given, int), "the table says so"
            if producer >= 0 and given >= 0:
                known.setdefault(producer, {})[number] = given
        self._known = {producer: sorted(ids.items()) for producer, ids in known.items()}

    def of(self, producer: int, number: int) -> ProducerId:
        """The id under which a record was sent; -1 if the producer never had one."""
        ids = self._known.get(producer, [])
        if not ids:
            return -1
        return ids[max(bisect_right(ids, (number, 1 << 62)) - 1, 0)][1]
