"""The directory that a run leaves: never over another, readable even when cut short.

``run.json`` says ``complete: false`` from the first moment and ``true`` only at the very end. It is
the first file of a run and, where a run replaces an earlier one, says so before anything of that is
removed: whenever a run is killed, what it leaves is known for a run's. While it runs it holds
``run.lock``, so that no other one writes to the same directory.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from sim.errors import SimulationError, named
from sim.locks import check_free, hold
from sim.trace.kept import LEFT_OUT, Kept

CARD = "run.json"
"""The run card's file name; a directory that holds one is a run directory."""

LOCK = "run.lock"
"""File that a run holds as long as it writes; what a killed run left of it blocks nobody."""

OBJECTS: Final = "object-store"
"""Directory of the objects of tiered storage."""

_OTHERS: Final = "clusters"
"""Directory of the run directories of other clusters."""

_FIRST = (CARD, f"{CARD}.tmp", LOCK)
"""Files of a run that are there before its card."""


class RunDirectory:
    """Directory of one run.

    Args:
        path: The directory itself.
        force: Replace an earlier run there.
        is_part: Part of a directory that this process has for itself already: no other one can
            write there, and no card is due before the run writes one.

    Raises:
        SimulationError: If another run writes there, or the path holds an earlier run and ``force``
            is not given, or anything else than a run; nothing is touched then.
    """

    def __init__(self, path: Path, *, force: bool, is_part: bool = False) -> None:
        self.path = path
        self.trace = path / "trace"
        self.disks = path / "disks"
        self._lock = None
        self._check(force=force)
        path.mkdir(parents=True, exist_ok=True)
        if is_part:
            return
        self._lock = hold(path / LOCK)
        try:
            self._check(force=force)  # another run may have come and ended
            self.write_card({"complete": False})
            self._clear()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let others write there; a second call does nothing."""
        if self._lock is not None:
            self._lock.release()

    def _check(self, *, force: bool) -> None:
        path = self.path
        if not path.exists():
            return
        if path.is_dir():
            if self._lock is None:
                check_free(path / LOCK)
            if not (path / CARD).exists() and all(p.name in _FIRST for p in path.iterdir()):
                return  # empty, or of a run that was killed at once
        if not path.is_dir() or not (path / CARD).is_file():
            message = (
                f"{path}: exists and is not a run directory (it has no {CARD}); "
                "choose another --out"
            )
            raise SimulationError(message)
        if not force:
            message = (
                f"{path}: holds an earlier run; add --force to replace it, or choose another --out"
            )
            raise SimulationError(message)
        if path.is_symlink():
            raise SimulationError(
                f"{path}: is a link, and only a directory itself is replaced; remove the link, or "
                "choose another --out"
            )

    def _clear(self) -> None:
        """Remove what an earlier run left, but for the card, which is this run's already."""
        for entry in sorted(self.path.iterdir()):
            if entry.name in (CARD, LOCK):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def write_card(self, card: Mapping[str, object]) -> None:
        """Write the run card, at once or not at all."""
        self.write_json(CARD, card)

    def write_json(self, name: str, value: Mapping[str, object]) -> None:
        """Write a JSON file, at once or not at all."""
        self.write_text(name, _as_text(value))

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, at once or not at all."""
        _write_text(self.path / name, text)

    def wall_us(self) -> int:
        """Real microseconds from the first file written to the last one, as the file system says.

        The simulator itself reads no clock. With the verdict there, it is how long the run took.
        """
        files = [file for file in self.path.iterdir() if file.is_file() and file.name != LOCK]
        written = [file.stat().st_mtime_ns for file in files]
        return (max(written) - min(written)) // 1_000 if written else 0

    def disk_digest(self) -> str:
        """Hex SHA-256 over the name and the SHA-256 of every file of disks and object store."""
        places = (self.disks, self.path / OBJECTS)
        files = sorted(p for place in places for p in place.rglob("*") if p.is_file())
        total = hashlib.sha256()
        # Hashing holds no lock of the interpreter, and there are gigabytes of it after a long run.
        with ThreadPoolExecutor() as pool:
            for file, digest in zip(files, pool.map(_sha256, files), strict=True):
                total.update(_named(file, self.disks).encode() + b"\0" + digest)
        return total.hexdigest()


def keep_only(path: Path, kept: Kept, card: Mapping[str, object]) -> None:
    """Remove from the directory of a run that has been judged what is not to be kept.

    The card says so first: a removal that is cut short leaves a run directory all the same.

    Args:
        path: The run directory.
        kept: What stays.
        card: The run card as the run wrote it.

    Raises:
        SimulationError: If another run writes there, or has meanwhile; nothing is removed then.
    """
    if kept == "all":
        return
    lock = hold(path / LOCK)
    try:
        if json.loads((path / CARD).read_text(encoding="utf-8")) != json.loads(json.dumps(card)):
            raise SimulationError(
                f"{path}: another run has replaced this one; nothing of it was removed"
            )
        parts = [path, *sorted((path / _OTHERS).glob("*/"))]
        for part in parts:
            _write_kept(part, kept)
        for part in parts:
            for name in LEFT_OUT[kept]:
                if (part / name).exists():
                    shutil.rmtree(part / name)
    finally:
        lock.release()


def _write_kept(part: Path, kept: Kept) -> None:
    card = json.loads((part / CARD).read_text(encoding="utf-8"))
    for each in (card, *card.get(_OTHERS, {}).values()):
        each["kept"] = kept
    _write_text(part / CARD, _as_text(card))


def _as_text(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _write_text(file: Path, text: str) -> None:
    temporary = file.with_name(f"{file.name}.tmp")
    with named(temporary):
        temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)


def _sha256(file: Path) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _named(file: Path, disks: Path) -> str:
    """Name of a file below the disks, or of an object with its directory's."""
    below = disks if file.is_relative_to(disks) else disks.parent
    return file.relative_to(below).as_posix()
