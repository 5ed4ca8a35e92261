"""The directory that a run leaves: never over another, readable even when cut short.

``run.json`` says ``complete: false`` from the first moment and ``true`` only at the very end.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sim.errors import SimulationError

CARD = "run.json"
"""The run card's file name; a directory that holds one is a run directory."""


class RunDirectory:
    """Where one run writes.

    Args:
        path: The directory itself.
        force: Replace an earlier run there.

    Raises:
        SimulationError: If the path holds an earlier run and ``force`` is not given, or holds
            anything else than a run.
    """

    def __init__(self, path: Path, *, force: bool) -> None:
        self.path = path
        if path.exists() and any(path.iterdir() if path.is_dir() else [path]):
            self._make_room(force=force)
        path.mkdir(parents=True, exist_ok=True)
        self.trace = path / "trace"
        self.disks = path / "disks"

    def _make_room(self, *, force: bool) -> None:
        path = self.path
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
        shutil.rmtree(path)

    def write_card(self, card: Mapping[str, object]) -> None:
        """Write the run card, at once or not at all."""
        self.write_json(CARD, card)

    def write_json(self, name: str, value: Mapping[str, object]) -> None:
        """Write a JSON file, at once or not at all."""
        self.write_text(name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, at once or not at all."""
        temporary = self.path / f"{name}.tmp"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.path / name)

    def wall_us(self) -> int:
        """Real microseconds from the first file written to the last one, as the file system says.

        The simulator itself reads no clock. With the verdict there, it is how long the run took.
        """
        written = [file.stat().st_mtime_ns for file in self.path.iterdir() if file.is_file()]
        return (max(written) - min(written)) // 1_000 if written else 0

    def disk_digest(self) -> str:
        """Hex SHA-256 over the name and the SHA-256 of every file on the simulated disks."""
        files = sorted(p for p in self.disks.rglob("*") if p.is_file())
        total = hashlib.sha256()
        # Hashing holds no lock of the interpreter, and there are gigabytes of it after a long run.
        with ThreadPoolExecutor() as pool:
            for file, digest in zip(files, pool.map(_sha256, files), strict=True):
                total.update(file.relative_to(self.disks).as_posix().encode() + b"\0" + digest)
        return total.hexdigest()


def _sha256(file: Path) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()
