"""A row on its way to the trace, as a machine or a node hands it over."""

from typing import NamedTuple


class Emit(NamedTuple):
    """One row of the named table, without its instant; made by the table's own ``row(...)``.

    As an effect of a machine it is written at the instant at which it is performed.
    """

    table: str
    row: tuple[object, ...]
