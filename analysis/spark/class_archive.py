"""Archive of the classes that Java loads for a report: later ones start some seconds sooner.

Java parses and links some 20,000 classes of Spark before a small report's first answer. An archive
(application class data sharing, JEP 350) has them as they are in memory. It holds for one runtime
and one Spark, at their places; where it does not fit any more, Java leaves it aside. One that is
cut short would end Java: its size is kept beside it.
"""

import hashlib
import os
import shutil
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Final

from pyspark import SparkContext

from analysis.spark.java import JavaFound, scratch
from sim.errors import SimulationError
from sim.units import Bytes

_WRITTEN_WITHIN_S: Final = 300.0
_SILENT: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Java writes to standard output what it leaves out of an archive, or why it leaves one aside."""


def place(java: JavaFound) -> Path:
    """Path of the archive for a runtime and this Spark, whether it is there or not."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    spark = find_spec("pyspark")
    words = (java.version, str(java.home), version("pyspark"), str(spark and spark.origin))
    name = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
    return Path(root) / "logquake" / f"classes-{name}.jsa"


def size(java: JavaFound) -> Bytes:
    """Size of the archive; 0 if there is none, or not all of it."""
    archive = place(java)
    with suppress(OSError, ValueError):
        found = archive.stat().st_size
        if found == int(_size_of(archive).read_text(encoding="ascii")):
            return found
    return 0


def used(java: JavaFound) -> tuple[str, ...]:
    """Options of Java that use the archive; none without a whole one."""
    return (f"-XX:SharedArchiveFile={place(java)}", *_SILENT) if size(java) else ()


def written() -> tuple[str, ...]:
    """Options of Java with which it writes an archive when it ends, see :func:`keep`.

    Until then it is a temporary file of this process: nothing stays of a report that fails.
    """
    return (f"-XX:ArchiveClassesAtExit={_unfinished()}", *_SILENT)


def keep(java: JavaFound) -> Path:
    """Ends Java, which was started with the options of :func:`written`, and keeps the archive.

    Raises:
        SimulationError: If Java has written none.
    """
    unfinished = _unfinished()
    has_ended = _end_java()
    if not has_ended or not unfinished.is_file():
        raise SimulationError(
            f"Java {java.version} from {java.source} wrote no archive of its classes to "
            f"{unfinished.parent}; it needs its own archive (lib/server/classes.jsa) and 200 MB "
            "there: leave out --prepare, or set JAVA_HOME to another runtime"
        )
    archive = place(java)
    archive.parent.mkdir(parents=True, exist_ok=True)
    size_bytes = unfinished.stat().st_size
    # Without its size it is not used, so that nobody meets a half of it.
    for former in (_size_of(archive), archive):
        former.unlink(missing_ok=True)
    shutil.move(unfinished, archive)
    _size_of(archive).write_text(f"{size_bytes}\n", encoding="ascii")
    return archive


def _unfinished() -> Path:
    return scratch() / "classes.jsa"


def _size_of(archive: Path) -> Path:
    return archive.with_suffix(".size")


def _end_java() -> bool:
    """Ends the process behind Spark's gateway, which ends when its standard input does.

    Returns:
        False if it does not end in time.
    """
    gateway = SparkContext._gateway  # noqa: SLF001 - Spark has no other way to end Java
    if gateway is None:
        return True
    with suppress(OSError):
        gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - as before the first start
    try:
        process.wait(_WRITTEN_WITHIN_S)
    except TimeoutExpired:
        return False
    return True
