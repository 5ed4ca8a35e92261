"""One way to start Spark, for the report, the tests and the notebooks.

Local mode is the default: no UI, UTC, quiet logs, as many shuffle partitions as cores. With a
``master`` URL the same jobs run on a cluster whose workers see the run directories under the same
paths; ``analysis`` and ``sim`` travel with them as a zip file.
"""

import atexit
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from analysis import java
from sim.units import GIB, MIB

LOCAL: Final = "local[*]"
"""The master that is taken when none is named."""

_HOUSE: Final = Path(__file__).resolve().parent.parent
_MOST_PARTITIONS: Final = 16


def start(master: str | None = None) -> SparkSession:
    """The running session of this process, else a new one.

    Args:
        master: Spark master URL; ``None`` for every core of this machine.

    Raises:
        SimulationError: If there is no Java runtime that Spark can use.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    where = master or LOCAL
    local = where.startswith("local")
    builder = SparkSession.Builder().master(where).appName("logquake")
    for key, value in _settings(local=local).items():
        builder = builder.config(key, value)
    with _environment(_launch_environment(local=local)):
        spark = builder.getOrCreate()
    if not where.startswith("local") or where.startswith("local-cluster"):
        spark.sparkContext.addPyFile(_packages())
    return spark


@contextmanager
def using(master: str | None = None) -> Iterator[SparkSession]:
    """A session for a block; it is stopped at the end only if the block started it."""
    found = SparkSession.getActiveSession()
    spark = start(master)
    try:
        yield spark
    finally:
        if found is None:
            spark.stop()


def _launch_environment(*, local: bool) -> dict[str, str]:
    """What the Java process and, below it, the Python workers of local mode inherit."""
    changes = {"JAVA_HOME": str(java.launcher(java.find().home))}
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        changes[name] = os.environ.get(name, sys.executable)
    if local:
        changes["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
        paths = [str(_HOUSE), os.environ.get("PYTHONPATH", "")]
        changes["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return changes


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Environment variables for the time of a block."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _settings(*, local: bool) -> dict[str, str]:
    log = (Path(__file__).parent / "log4j2.properties").as_uri()
    options = [f"-Dlog4j2.configurationFile={log}", "-Duser.timezone=UTC"]
    if local:
        # A report is minutes of many small jobs: the second compiler would cost more processor time
        # than its code saves (measured: 97 s against 50 s for half a million records).
        options += ["-XX:TieredStopAtLevel=1", "-XX:+UseParallelGC"]
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
    }
    if local:
        settings["spark.driver.memory"] = f"{_driver_bytes() // MIB}m"
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        settings["spark.sql.shuffle.partitions"] = str(max(2, min(cores, _MOST_PARTITIONS)))
    return settings


def _driver_bytes() -> int:
    """A quarter of the machine's memory, at least 1 GiB and at most 4 GiB."""
    if not hasattr(os, "sysconf"):
        return GIB
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(max(GIB, min(4 * GIB, machine // 4)))


def _packages() -> str:
    """A zip of ``analysis`` and ``sim`` for executors, which lasts as long as this process."""
    scratch = Path(tempfile.mkdtemp(prefix="logquake-packages-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    path = scratch / "logquake.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for package in ("analysis", "sim"):
            for file in sorted((_HOUSE / package).rglob("*.py")):
                archive.write(file, file.relative_to(_HOUSE))
    return str(path)
