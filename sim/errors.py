"""The tree of our exceptions.

Three kinds are never mixed: Kafka's own error is an :class:`~sim.error_codes.ErrorCode` in a
response; a caller's mistake is a :class:`SimulationError`; a broken promise of ours is an
assertion or an :class:`InvariantBroken`, and is never swallowed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath


@contextmanager
def named(path: PurePath) -> Iterator[None]:
    """Adds the file's name to errors of the block: a failed write has none.

    Raises:
        OSError: The block's error.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


class SimulationError(Exception):
    """The caller is wrong: a scenario, an argument, a directory. The message says what to do."""


class ScenarioError(SimulationError):
    """A scenario file that cannot be run. ``args``: the message, with file and line in it."""


class InvariantBroken(Exception):  # noqa: N818
    """A guarantee of Kafka did not hold after an event. ``args``: the claim, with its history."""


class NoProgress(SimulationError):  # noqa: N818
    """The run exceeded its limit of events, or of events at one instant."""


class DefectFound(Exception):  # noqa: N818
    """The simulator itself failed. ``args``: the message; the cause is chained."""


class StorageFailed(Exception):  # noqa: N818
    """A simulated disk rejected a read or a write (EIO, ENOSPC). ``args``: what and where."""


class CorruptRecord(StorageFailed):
    """Bytes of a batch do not match their checksum or format. ``args``: what and where.

    Kafka's ``CorruptRecordException``: a follower that fetched them waits and fetches again, and
    its own disk stays online; other callers treat it as a failed disk.
    """
