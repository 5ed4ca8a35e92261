"""Released jars of Apache Kafka, brought by Maven, and Java programs that print what is in them."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sim.rehearsal.apache import RELEASES as REHEARSED

RELEASES: Final = {
    "0.10": "0.10.2.2", "0.11": "0.11.0.3", "1.0": "1.0.2", "1.1": "1.1.1", "2.0": "2.0.1",
    "2.1": "2.1.1", "2.2": "2.2.2", "2.3": "2.3.1", "2.4": "2.4.1", "2.5": "2.5.1",
    "2.6": "2.6.3", "2.7": "2.7.2", "2.8": "2.8.2", "3.0": "3.0.2", "3.1": "3.1.2",
    "3.2": "3.2.3", "3.3": "3.3.2", "3.4": "3.4.1", "3.5": "3.5.2", "3.6": "3.6.2",
    "3.7": "3.7.2", "3.8": "3.8.1", **REHEARSED,
}  # fmt: skip
"""The release that is read of each version, oldest first."""

MESSAGE_RELEASES: Final = {version: RELEASES[version] for version in list(RELEASES)[-5:]}
"""Releases whose messages are read, too: 3.9 and newer."""

PREVIEW: Final = "2.8"
"""The release whose metadata records alone are read: those of KRaft's preview, in a form of their
own that no later release reads."""

FEATURE_RELEASES: Final = {version: RELEASES[version] for version in list(RELEASES)[-11:]}
"""Releases whose feature levels are read: 3.3, the first with KRaft for production, and newer."""

_INSTEAD: Final[Mapping[str, Mapping[str, str]]] = {
    "0.10.2.2": {"connect-runtime": "0.10.2.1"},
    "3.2.3": {"connect-mirror": "3.2.0"},
    "3.5.2": {"connect-mirror": "3.5.1"},
}
"""Releases of artifacts whose own are not in Maven Central."""

_MIRROR_SINCE: Final = "2.7"
"""The first version whose MirrorMaker 2 is in Maven Central; it came with 2.4."""

_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>logquake</groupId><artifactId>facts</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY: Final = """
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId>
      <version>{release}</version>
      <exclusions><exclusion>
        <groupId>org.rocksdb</groupId><artifactId>rocksdbjni</artifactId>
      </exclusion></exclusions>
    </dependency>"""
Row = Mapping[str, Any]
"""A line of a Java program, or of a data file."""


def jars(release: str, directory: Path) -> Path:
    """Let Maven bring the jars of a release into a new directory."""
    directory.mkdir()
    dependencies = (
        _DEPENDENCY.format(artifact=each, release=its) for each, its in _artifacts(release).items()
    )
    pom = _POM.format(dependencies="".join(dependencies))
    (directory / "pom.xml").write_text(pom, encoding="utf-8")
    subprocess.run(
        ["mvn", "-q", "-B", _COPY, "-DoutputDirectory=jars", "-DincludeScope=runtime"],
        cwd=directory,
        check=True,
    )
    return directory / "jars"


def _artifacts(release: str) -> Mapping[str, str]:
    """Artifacts that are asked for, with the release of each; they bring the others."""
    order = list(RELEASES.values())
    mirrors = list(RELEASES).index(_MIRROR_SINCE)
    is_old = order.index(release) < mirrors
    names = ("kafka_2.12" if is_old else "kafka_2.13", "kafka-streams")
    connect = "connect-runtime" if is_old else "connect-mirror"
    instead = _INSTEAD.get(release, {})
    return {each: instead.get(each, release) for each in (*names, connect)}


def printed(library: Path, program: str) -> list[Row]:
    """Lines of JSON that a Java program of this folder prints with a release's jars."""
    source = Path(__file__).with_name(program)
    done = subprocess.run(
        ["java", "-Djava.io.tmpdir=/tmp", "-cp", f"{library}/*", str(source)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
