"""Released jars of Apache Kafka, brought by Maven, and Java programs that print what is in them."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

RELEASES: Final = {"3.9": "3.9.2", "4.0": "4.0.2", "4.1": "4.1.2", "4.2": "4.2.0", "4.3": "4.3.1"}
"""The release that is read of each version, oldest first.

Of 4.2 it is the first one: Maven Central lacks artifacts of MirrorMaker of 4.2.1 and 4.2.2.
"""

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
_ARTIFACTS: Final = ("kafka_2.13", "connect-mirror", "kafka-streams")

Row = Mapping[str, Any]
"""A line of a Java program, or of a data file."""


def jars(release: str, directory: Path) -> Path:
    """Let Maven bring the jars of a release into a new directory."""
    directory.mkdir()
    dependencies = (_DEPENDENCY.format(artifact=each, release=release) for each in _ARTIFACTS)
    pom = _POM.format(dependencies="".join(dependencies))
    (directory / "pom.xml").write_text(pom, encoding="utf-8")
    subprocess.run(
        ["mvn", "-q", "-B", _COPY, "-DoutputDirectory=jars", "-DincludeScope=runtime"],
        cwd=directory,
        check=True,
    )
    return directory / "jars"


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
