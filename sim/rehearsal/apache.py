"""Apache Kafka as it is released: jars brought by Maven, or an unpacked distribution.

Jars of a release are brought once, into a directory of the user's cache; other processes wait.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sim.errors import SimulationError

RELEASES: Final = {
    "3.9": "3.9.2", "4.0": "4.0.2", "4.1": "4.1.2", "4.2": "4.2.0", "4.3": "4.3.1",
}  # fmt: skip
"""The release that is run of each version.

Of 4.2 it is the first one: Maven Central lacks artifacts of MirrorMaker of 4.2.1 and 4.2.2.
"""

SETTINGS: Final = Path(__file__).parent / "maven"
"""The Maven project that names the jars, and the log's settings of a real broker."""

SOURCES: Final = Path(__file__).parent / "java"
"""Programs of our own that use Kafka's clients."""

_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_ATTEMPTS: Final = 3
"""Attempts of Maven: a registry can be busy."""

_QUICK_START: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
"""A quarter less processor time for a process that starts and works for minutes. A dump of many
files takes longer with them: there the second compiler pays."""

_CLIENTS: Final = re.compile(r"kafka-clients-(\d+(?:\.\d+)+)\.jar")


@dataclass(frozen=True, slots=True)
class Apache:
    """A release of Kafka on this machine."""

    release: str
    """As in ``4.3.1``."""
    library: Path
    """Directory of its jars."""

    def java(
        self,
        main: str,
        *arguments: str,
        heap: str = "512m",
        quick: bool = False,
        options: Sequence[str] = (),
        classes: Path | None = None,
    ) -> list[str]:
        """The command line that runs a class.

        Args:
            main: The class.
            arguments: Of its ``main``.
            heap: Largest size of the heap.
            quick: Compile less, which suits a process of minutes.
            options: Of the virtual machine.
            classes: Directory of classes beside those of the jars.
        """
        path = f"{self.library}/*" if classes is None else f"{classes}:{self.library}/*"
        return [
            "java", f"-Xmx{heap}", *(_QUICK_START if quick else ()), *options,
            f"-Dlog4j2.configurationFile={SETTINGS / 'log4j2.properties'}",
            "-cp", path, main, *arguments,
        ]  # fmt: skip

    def classes(self) -> Path:
        """Our own programs, compiled with the jars, once for each text of theirs.

        Raises:
            SimulationError: If they cannot be compiled.
        """
        sources = sorted(SOURCES.glob("*.java"))
        text = b"".join(source.read_bytes() for source in sources)
        digest = hashlib.sha256(text).hexdigest()[:16]
        place = cache() / f"classes-{self.release}-{digest}"
        cache().mkdir(parents=True, exist_ok=True)
        with (cache() / "classes.lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            if place.is_dir():
                return place
            made = place.with_suffix(".new")
            shutil.rmtree(made, ignore_errors=True)
            command = ["javac", "-nowarn", "-d", str(made), "-cp", f"{self.library}/*"]
            done = subprocess.run(  # noqa: S603 - our own programs
                [*command, *map(str, sources)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                said = done.stderr.strip()[-2_000:]
                raise SimulationError(f"javac could not compile the clients of a rehearsal: {said}")
            made.rename(place)
        return place


def cache() -> Path:
    """The user's cache of jars and classes; ``XDG_CACHE_HOME`` says where."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if home else Path.home() / ".cache") / "logquake"


def java_version() -> str:
    """The first line in which the Java on the PATH names itself."""
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)  # noqa: S607 - the user's
    return done.stderr.partition("\n")[0].strip()


def missing(*programs: str) -> list[str]:
    """Programs, of those named, that this machine lacks."""
    return [name for name in programs if shutil.which(name) is None]


def found(version: str, directory: Path | None) -> Apache:
    """A release of a version, brought if it is not there.

    Args:
        version: As a scenario has it: ``4.3``.
        directory: An unpacked Kafka; ``None``: Maven brings the release.

    Raises:
        SimulationError: If the version is not rehearsed, or programs or jars are missing.
    """
    if directory is not None:
        return _unpacked(version, directory)
    if version not in RELEASES:
        raise SimulationError(
            f"cluster.kafka: found {version!r}; a rehearsal can have {', '.join(RELEASES)}"
        )
    lacks = missing("mvn", "java", "javac")
    if lacks:
        raise SimulationError(
            f"a rehearsal needs {' and '.join(lacks)}, not found on the PATH; install Maven and a "
            "JDK of Java 17 or newer, or give an unpacked Kafka with --kafka DIR, which needs the "
            "JDK alone"
        )
    release = RELEASES[version]
    return bring(release, cache() / f"kafka-{release}")


def _unpacked(version: str, directory: Path) -> Apache:
    library = directory / "libs"
    releases = [m[1] for path in library.glob("*.jar") if (m := _CLIENTS.fullmatch(path.name))]
    if len(releases) != 1:
        raise SimulationError(
            f"--kafka {directory}: no unpacked Kafka (libs/ has no kafka-clients-VERSION.jar)"
        )
    if not releases[0].startswith(f"{version}."):
        raise SimulationError(
            f"--kafka {directory}: has Kafka {releases[0]}, and cluster.kafka is {version!r}; "
            f"give a release of {version}, or add --set cluster.kafka=VERSION"
        )
    if version not in RELEASES:
        raise SimulationError(f"cluster.kafka: a rehearsal can have {', '.join(RELEASES)}")
    lacks = missing("java", "javac")
    if lacks:
        raise SimulationError(
            f"a rehearsal needs {' and '.join(lacks)}, not found on the PATH; install a JDK of "
            "Java 17 or newer"
        )
    return Apache(releases[0], library.absolute())


def bring(release: str, place: Path) -> Apache:
    """Let Maven copy the jars of a release into a directory, once.

    Raises:
        SimulationError: If Maven cannot.
    """
    pom = (SETTINGS / "pom.xml").read_text(encoding="utf-8")
    stamp = place / ".complete"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_name(f"{place.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not stamp.is_file() or stamp.read_text(encoding="utf-8") != pom:
            shutil.rmtree(place, ignore_errors=True)
            _copy(release, place)
            for other in place.glob("slf4j-reload4j-*.jar"):
                other.unlink()  # 3.9 brings it; the log4j of pom.xml has our settings
            stamp.write_text(pom, encoding="utf-8")
    return Apache(release, place)


def _copy(release: str, place: Path) -> None:
    command = [
        "mvn", "-q", "-B", "-f", str(SETTINGS / "pom.xml"), _COPY,
        f"-DoutputDirectory={place.absolute()}", "-DincludeScope=runtime",
        f"-Dkafka.version={release}",
    ]  # fmt: skip
    said = ""
    for _ in range(_ATTEMPTS):
        done = subprocess.run(  # noqa: S603 - our own project
            command, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return
        said = (done.stdout + done.stderr).strip()[-1_000:]
    raise SimulationError(f"Maven could not bring Apache Kafka {release}: {said}")
