"""Start of Spark, for the report, the tests and the notebooks.

Local mode is the default: no UI, UTC, quiet logs, as many shuffle partitions as cores. With a
``master`` URL the same jobs run on a cluster whose workers see the run directories under the same
paths; ``analysis`` and ``sim`` travel with them as a zip file.
"""

import logging
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from analysis.spark import class_archive, java
from sim.errors import SimulationError
from sim.trace.run_files import read_part
from sim.trace.schema import BY_NAME
from sim.units import GIB, MIB

LOCAL: Final = "local[*]"
"""The default master."""

_MEMORY: Final = "SPARK_DRIVER_MEMORY"
"""Spark's own environment variable for the heap of the driver, which wins where it is set."""

_AGAIN_S: Final = 0.05
"""A finalizer has ended by then."""

_STANDALONE: Final = "spark://"
_REACHED_WITHIN_S: Final = 10.0
_UNSEEN: Final = re.compile(r"FileNotFound|FILE_NOT_EXIST|No such file|does not exist")

_HOUSE: Final = Path(__file__).resolve().parents[2]
_MOST_PARTITIONS: Final = 16

FEW_ROWS: Final = 250_000
"""Below so many rows Spark's work on a query costs more than the rows (alike at about 300,000)."""

_NOBODY_LOOKS: Final = {
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "100",
    "spark.sql.constraintPropagation.enabled": "false",
}
"""Call sites of every column, checks of the optimizer's steps, printed plans, filters inferred from
filters: a fifth of the processor time of a small report."""

_GROWN: Final = ((3 * GIB, "-Xms1500m -Xmn1100m"), (GIB, "-Xms700m -Xmn400m"))
"""Heaps that need not grow step by step, each time by a collection of everything, by the least
memory of the driver that they fit into, if nobody has said less."""

_METASPACE: Final = "-XX:MetaspaceSize=300m"

_TRUSTED: Final = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""The classes are those of pinned packages: without verifying them a report takes 45 s of processor
time instead of 48."""

_FOR_FEW_ROWS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Queries as single jobs that interpret their plans: nothing is compiled for one use."""


def _nothing() -> None:
    """Does nothing."""


def start(
    master: str | None = None,
    *,
    is_long: bool = False,
    meanwhile: Callable[[], None] = _nothing,
    keeps_classes: bool = False,
) -> SparkSession:
    """The running session of this process, else a new one.

    Args:
        master: Spark master URL; ``None`` for every core of this machine.
        is_long: Whether minutes of work on many rows lie ahead; of local mode only.
        meanwhile: Called once while Java starts, if it has to.
        keeps_classes: Whether Java writes an archive of its classes when it ends
            (:mod:`analysis.spark.class_archive`); of local mode only.

    Raises:
        SimulationError: If there is no Java runtime that Spark can use, or no master at the URL.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    where = master or LOCAL
    local = where.startswith("local")
    _check_master(where)
    settings = _settings(local=local, is_long=is_long, keeps_classes=keeps_classes)
    with _environment(_launch_environment(local=local)), _temporary_files(java.scratch()):
        conf = SparkConf().setMaster(where).setAppName("logquake").setAll([*settings.items()])
        spark = _begin(conf, meanwhile)
    if not where.startswith("local") or where.startswith("local-cluster"):
        spark.sparkContext.addPyFile(_packages())
    return spark


def _begin(conf: SparkConf, meanwhile: Callable[[], None]) -> SparkSession:
    """A new session of this thread, whose context has been begun in another one.

    In the main thread a SparkContext would install a handler of SIGINT that calls Java from inside
    a call of Java's: py4j then logs tracebacks, whatever handler is put in its place afterwards.
    """
    begun: Future[SparkContext] = Future()

    def work() -> None:
        try:
            begun.set_result(SparkContext.getOrCreate(conf))
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            begun.set_exception(error)

    threading.Thread(target=work, name="spark", daemon=True).start()
    meanwhile()
    begun.result()
    builder = SparkSession.Builder()
    for key, value in conf.getAll():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def using(
    master: str | None = None,
    *,
    is_long: bool = False,
    meanwhile: Callable[[], None] = _nothing,
    keeps_classes: bool = False,
) -> Iterator[SparkSession]:
    """As :func:`start`, for a block; the session is stopped at the end if the block started it.

    Raises:
        KeyboardInterrupt: If SIGINT comes; nothing is logged on the way, and Spark is stopped.
    """
    found = SparkSession.getActiveSession()
    with _quiet_interrupt() as launched:
        spark = start(master, is_long=is_long, meanwhile=meanwhile, keeps_classes=keeps_classes)
        try:
            launched()
            yield spark
        except KeyboardInterrupt:
            if found is None:
                with suppress(Exception):
                    spark.stop()
            raise
        except BaseException:
            if found is None:
                spark.stop()
            raise
        if found is None:
            spark.stop()


@contextmanager
def _quiet_interrupt() -> Iterator[Callable[[], None]]:
    """Makes SIGINT raise KeyboardInterrupt without the traceback that py4j logs each time.

    One that comes before Java has started waits until it has, for a Java process that loses its
    parent then writes a traceback; a second one does not wait. The yielded function is called when
    Java has started. Nothing changes outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        yield lambda: None
        return
    waiting = False

    def later(_number: int, _frame: FrameType | None) -> None:
        nonlocal waiting
        waiting = True
        signal.signal(signal.SIGINT, quietly)

    def quietly(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            logging.disable(logging.CRITICAL)
            # Of a query that is cancelled pyspark warns, with Java's stack.
            warnings.filterwarnings("ignore", module=r"pyspark\.")
            raise

    def launched() -> None:
        signal.signal(signal.SIGINT, quietly)
        if waiting:
            quietly(signal.SIGINT, None)

    signal.signal(signal.SIGINT, later)
    try:
        with _repeated_if_lost(), warnings.catch_warnings():
            yield launched
    finally:
        signal.signal(signal.SIGINT, before)
        logging.disable(logging.NOTSET)


@contextmanager
def _repeated_if_lost() -> Iterator[None]:
    """Sends SIGINT again if Python drops its exception, which it does in a finalizer of py4j's."""
    shown = sys.unraisablehook

    def again(dropped: "sys.UnraisableHookArgs") -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            shown(dropped)
            return
        main = threading.main_thread().ident or 0
        timer = threading.Timer(_AGAIN_S, signal.pthread_kill, (main, signal.SIGINT))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = shown


@contextmanager
def explained(spark: SparkSession, what: Path) -> Iterator[None]:
    """Converts Spark's errors of a block about files that a worker lacks into messages.

    Args:
        spark: The session.
        what: The directory that workers read.

    Raises:
        SimulationError: If a file of the directory was not there, or is damaged.
    """
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if not _UNSEEN.search(str(error)):
            for part in sorted((what / "trace").glob("*/part-*.parquet")):
                table = BY_NAME.get(part.parent.name)
                if table is not None:
                    read_part(table, part, ())
            raise
        where = spark.sparkContext.master
        raise SimulationError(
            f"{what}: a Spark task did not find a file that is to be there. With --master {where} "
            "every worker must see the directory under this path: put it on a file system that "
            f"all machines share, at {what.resolve()}; or leave out --master"
        ) from error


@contextmanager
def fitted(spark: SparkSession, rows: int) -> Iterator[None]:
    """Configures the session for a block's queries in the way that is cheapest for so many rows.

    Local mode only: a cluster keeps its owner's settings.
    """
    if not _is_local(spark):
        yield
        return
    before = {name: spark.conf.get(name, None) for name in _FOR_FEW_ROWS}
    _set(spark, _FOR_FEW_ROWS if rows < FEW_ROWS else dict.fromkeys(_FOR_FEW_ROWS))
    try:
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, values: Mapping[str, str | None]) -> None:
    """Set each; ``None`` is the value with which the session was started.

    Spark's own ``unset`` returns to its defaults instead: 200 files for each shuffle's task.
    """
    started = spark.sparkContext.getConf()
    for name, value in values.items():
        chosen = started.get(name) if value is None else value
        if chosen is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, chosen)


def _is_local(spark: SparkSession) -> bool:
    return str(spark.sparkContext.master).startswith("local[")


def _check_master(where: str) -> None:
    """Checks that a standalone master listens at its URL; Spark itself retries for a minute."""
    if not where.startswith(_STANDALONE):
        return
    places = where.removeprefix(_STANDALONE).split(",")
    seen: list[str] = []
    for place in places:
        host, _, port = place.rpartition(":")
        if not host or not port.isdecimal():
            raise SimulationError(f"--master {where}: {place!r} is not host:port")
        try:
            socket.create_connection((host, int(port)), _REACHED_WITHIN_S).close()
        except (OSError, OverflowError) as error:
            seen.append(f"{place}: {error}")
    if len(seen) == len(places):
        raise SimulationError(
            f"--master {where}: no master answers ({'; '.join(seen)}); is it up, and is this the "
            "URL that it shows in its log?"
        )


def _launch_environment(*, local: bool) -> dict[str, str]:
    """Environment that the Java process and, below it, the Python workers of local mode inherit."""
    changes = {
        "JAVA_HOME": str(java.launcher(java.find().home)),
        "TMPDIR": str(java.scratch()),
    }
    # Spark's scripts start a Java process that only writes the command of the real one.
    brief = "-Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    changes["SPARK_LAUNCHER_OPTS"] = os.environ.get("SPARK_LAUNCHER_OPTS", brief)
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


@contextmanager
def _temporary_files(directory: Path) -> Iterator[None]:
    """Directory of this process's temporary files for the time of a block."""
    before = tempfile.tempdir
    tempfile.tempdir = str(directory)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _settings(*, local: bool, is_long: bool, keeps_classes: bool) -> dict[str, str]:
    log = (Path(__file__).parent / "log4j2.properties").as_uri()
    options = [f"-Dlog4j2.configurationFile={log}", "-Duser.timezone=UTC"]
    if local:
        options += ["-XX:+UseParallelGC", *_TRUSTED.split()]
        found = java.find()
        options += class_archive.written() if keeps_classes else class_archive.used(found)
    if local and not is_long:
        # A usual report is many small jobs: the second compiler would cost more processor time than
        # its code saves (measured: 97 s against 50 s for half a million records). For ten million
        # rows of a trace it saves a third.
        options.append("-XX:TieredStopAtLevel=1")
        if _MEMORY not in os.environ:
            memory = _driver_bytes()
            grown = next(heap for least, heap in _GROWN if memory >= least)
            options += [*grown.split(), _METASPACE]
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        **_NOBODY_LOOKS,
    }
    if local:
        if _MEMORY not in os.environ:
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
    path = Path(tempfile.mkdtemp(prefix="packages-", dir=java.scratch())) / "logquake.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for package in ("analysis", "sim"):
            for file in sorted((_HOUSE / package).rglob("*.*")):
                if file.suffix in (".py", ".jsonl"):
                    archive.write(file, file.relative_to(_HOUSE))
    return str(path)
