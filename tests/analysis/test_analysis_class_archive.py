"""Java's classes are kept where that is asked for; reports use them, and never need them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import SparkContext

from analysis.spark import class_archive
from analysis.spark.java import JavaFound, find
from sim.errors import SimulationError

ROOT = Path(__file__).parents[2]

QUESTION = """
from pathlib import Path
from pyspark import SparkContext
from analysis.spark.session import using
with using() as spark:
    assert spark.range(10).count() == 10
    maps = Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()
print("classes-" in maps)
"""

SCENARIO = """
claim: A little of everything.
cluster: {brokers: 1, controllers: 1}
topics: {orders: {partitions: 1, replication.factor: 1}}
producers: [{name: shop, topic: orders, rate: 50/s, record.size: 100B}]
run: {for: 1s, seed: 1}
"""


@pytest.fixture
def java(monkeypatch, tmp_path):
    # To keep the archive ends Java, which other tests of this process have.
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return JavaFound(Path("somewhere"), "17.0.1", "PATH")


def ran(*words):
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_java_has_an_option_for_a_whole_archive_alone(java):
    assert class_archive.used(java) == ()
    class_archive.written()
    class_archive._unfinished().write_bytes(b"classes")
    archive = class_archive.keep(java)
    assert f"-XX:SharedArchiveFile={archive}" in class_archive.used(java)
    archive.write_bytes(b"class")
    assert class_archive.used(java) == ()
    archive.unlink()
    assert class_archive.used(java) == ()


def test_another_java_or_another_place_of_it_has_another_archive(java):
    others = (
        JavaFound(java.home, "17.0.2", "PATH"),
        JavaFound(Path("elsewhere"), java.version, "PATH"),
    )
    assert len({class_archive.place(each) for each in (java, *others)}) == 3


def test_what_is_being_written_is_no_archive_yet(java):
    class_archive.written()
    class_archive._unfinished().write_bytes(b"half of it")
    assert class_archive.used(java) == ()
    assert class_archive.keep(java) == class_archive.place(java)
    assert class_archive.used(java) != ()


def test_a_java_that_wrote_none_is_named_with_what_to_do(java):
    with pytest.raises(SimulationError, match=r"wrote no archive .* leave out --prepare"):
        class_archive.keep(java)


@pytest.mark.slow
def test_a_report_that_prepares_leaves_an_archive_that_the_next_one_maps(java, tmp_path):
    del java  # Only the place of the cache.
    (tmp_path / "little.yaml").write_text(SCENARIO)
    run = str(tmp_path / "run")
    ran("-m", "sim", "run", str(tmp_path / "little.yaml"), "--out", run)
    assert ran("-c", QUESTION) == "False\n"
    ran("-m", "sim", "report", run, "--prepare")
    archive = class_archive.place(find())
    assert sorted(archive.parent.iterdir()) == [archive, archive.with_suffix(".size")]
    assert ran("-c", QUESTION) == "True\n"
    ran("-m", "sim", "report", run)
    archive.chmod(0o600)
    os.truncate(archive, archive.stat().st_size // 2)
    assert ran("-c", QUESTION) == "False\n"
