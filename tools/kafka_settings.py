"""Writes which settings Apache Kafka has, by release: ``sim/scenario/settings/kafka_settings.tsv``.

The facts are those of the released jars: Maven brings them, and ``KafkaSettings.java`` prints the
``ConfigDef`` of brokers, topics, producers and consumers. Maven and a Java of 17 or newer are
needed; run ``python -m tools.kafka_settings`` when a release is added below.
"""

import subprocess
import tempfile
from pathlib import Path

RELEASES = ("3.9.1", "4.1.1", "4.3.1")
"""The last one with ZooKeeper, the one that is simulated, and the newest; oldest first."""

TARGET = Path(__file__).parents[1] / "sim" / "scenario" / "settings" / "kafka_settings.tsv"

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>logquake</groupId><artifactId>settings</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{}</version>
  </dependency></dependencies>
</project>
"""
_HEAD = """\
# Settings that Apache Kafka defines, read by tools/kafka_settings.py from the released jars
# org.apache.kafka:kafka_2.13 {releases} (ConfigDef of brokers, topics, producers, consumers).
# scope, name, type, default (empty: there is none), releases that have it; type and default are
# those of the newest of them.
"""


def defined(release: str, directory: Path) -> list[tuple[str, str, str, str]]:
    """Scope, name, type and default of each setting of a release."""
    directory.mkdir()
    (directory / "pom.xml").write_text(_POM.format(release), encoding="utf-8")
    subprocess.run(
        ["mvn", "-q", "-B", _COPY, "-DoutputDirectory=jars", "-DincludeScope=runtime"],
        cwd=directory,
        check=True,
    )
    source = Path(__file__).with_name("KafkaSettings.java")
    printed = subprocess.run(
        ["java", "-cp", f"{directory}/jars/*", str(source)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    found = []
    for line in printed.splitlines():
        scope, name, kind, default = line.split("\t")
        found.append((scope, name, kind, default))
    return found


def text() -> str:
    """The file's content."""
    rows: dict[tuple[str, str], tuple[str, str, list[str]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for release in RELEASES:
            for scope, name, kind, default in defined(release, Path(directory) / release):
                before = rows.get((scope, name), ("", "", []))[2]
                rows[scope, name] = (kind, default, [*before, release])
    lines = [
        "\t".join((scope, name, kind, default, ",".join(releases)))
        for (scope, name), (kind, default, releases) in sorted(rows.items())
    ]
    return _HEAD.format(releases=", ".join(RELEASES)) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
