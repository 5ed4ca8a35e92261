"""Writes what Apache Kafka defines, by version, to ``sim/scenario/settings/data``.

The facts are those of the released jars: Maven brings them, and ``KafkaFacts.java`` reads their
``ConfigDef`` by reflection. Maven and a Java of 17 or newer are needed. Run ``make kafka-facts``
when a release is added to :data:`RELEASES`.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

RELEASES: Final = {"3.9": "3.9.2", "4.0": "4.0.2", "4.1": "4.1.2", "4.2": "4.2.0", "4.3": "4.3.1"}
"""The release that is read of each version, oldest first.

Of 4.2 it is the first one: Maven Central lacks artifacts of MirrorMaker of 4.2.1 and 4.2.2.
"""

TARGET: Final = Path(__file__).parents[1] / "sim/scenario/settings/data/kafka_settings.jsonl"
"""The data file; the README beside it says what a line is."""

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
"""A line of the Java program, or of the data file."""


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


def printed(library: Path) -> list[Row]:
    """Every setting of the release whose jars are given, one for each ConfigDef that has it."""
    source = Path(__file__).with_name("KafkaFacts.java")
    done = subprocess.run(
        ["java", "-Djava.io.tmpdir=/tmp", "-cp", f"{library}/*", str(source)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def merged(rows: Mapping[str, Iterable[Row]]) -> list[Row]:
    """Lines of the data file, from the rows of each version, oldest first.

    Raises:
        ValueError: If a setting is absent from a version between two that have it.
    """
    facts: dict[tuple[str, str], dict[str, Row]] = {}
    for version, found in rows.items():
        for row in found:
            plain = {key: value for key, value in row.items() if key not in ("of", "name")}
            facts.setdefault((row["name"], row["of"]), {})[version] = plain
    alike: dict[tuple[str, str], list[str]] = {}
    for (name, scope), history in sorted(facts.items()):
        text = json.dumps(_line(name, history, list(rows)), separators=(",", ":"))
        alike.setdefault((name, text), []).append(scope)
    return [json.loads(text) | {"of": scopes} for (_, text), scopes in alike.items()]


def _line(name: str, history: Mapping[str, Row], versions: list[str]) -> Row:
    first = versions.index(next(iter(history)))
    has = versions[first : first + len(history)]
    if has != list(history):
        raise ValueError(f"{name} is in {', '.join(history)}")
    line: dict[str, Any] = {"name": name, "since": has[0], **history[has[0]]}
    changes = {
        version: history[version]
        for before, version in pairwise(has)
        if history[version] != history[before]
    }
    if changes:
        line["then"] = changes
    if has[-1] != versions[-1]:
        line["last"] = has[-1]
    return line


_ORDER: Final = ("name", "of", "since", "last")


def text(rows: Mapping[str, Iterable[Row]]) -> str:
    """The data file's content: a head, then a line of JSON for each setting, sorted by name."""
    head = {
        "generated": "make kafka-facts (tools/kafka_facts.py); do not edit",
        "releases": {version: RELEASES[version] for version in rows},
    }
    lines = [json.dumps(head)]
    for row in merged(rows):
        keys = [key for key in _ORDER if key in row]
        keys += [key for key in row if key not in _ORDER]
        lines.append(json.dumps({key: row[key] for key in keys}, separators=(",", ":")))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the data file."""
    with tempfile.TemporaryDirectory() as directory:
        rows = {
            version: printed(jars(release, Path(directory) / release))
            for version, release in RELEASES.items()
        }
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
