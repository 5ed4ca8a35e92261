"""Compiled packages: imported only if they are of these sources, and alike in every byte."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from sim.compiled import MANIFEST, compiled_modules, digest
from tools import compile_packages

ROOT = Path(__file__).parents[1]


def checkout(tmp_path: Path, *, soabi: str = "") -> Path:
    """A checkout with one module, compiled."""
    (tmp_path / "sim").mkdir()
    source = tmp_path / "sim" / "kernel.py"
    source.write_text("A = 1\n")
    manifest = {
        "soabi": soabi or sysconfig.get_config_var("SOABI"),
        "modules": {"sim.kernel": "sim/kernel.so"},
        "sources": {"sim/kernel.py": digest(source.read_bytes())},
    }
    compiled = tmp_path / "compiled"
    compiled.mkdir()
    (compiled / MANIFEST).write_text(json.dumps(manifest))
    return compiled


def test_what_was_compiled_from_these_sources_is_found(tmp_path):
    compiled = checkout(tmp_path)
    assert compiled_modules(tmp_path, compiled) == ({"sim.kernel": compiled / "sim/kernel.so"}, "")


def test_a_changed_source_is_imported_instead_of_what_was_compiled_from_it(tmp_path):
    compiled = checkout(tmp_path)
    (tmp_path / "sim" / "kernel.py").write_text("A = 2\n")
    assert compiled_modules(tmp_path, compiled) == (
        {},
        "sim/kernel.py was changed since it was compiled",
    )


def test_what_was_compiled_for_another_python_is_not_imported(tmp_path):
    compiled = checkout(tmp_path, soabi="cpython-27-pdp11")
    assert compiled_modules(tmp_path, compiled) == ({}, "compiled for cpython-27-pdp11")


def test_without_a_manifest_nothing_is_compiled(tmp_path):
    assert compiled_modules(tmp_path, tmp_path) == ({}, "nothing is compiled")


def test_a_machine_without_a_compiler_is_told_what_is_missing(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    assert "no-such-compiler" in compile_packages.missing()


def test_each_folder_becomes_one_library_and_no_module_is_left_out():
    files = compile_packages.sources()
    libraries = compile_packages.libraries(files)
    assert sorted(file for members, _ in libraries for file in members) == sorted(files)
    assert len({name for _, name in libraries}) == len(libraries)
    for members, name in libraries:
        assert {file.rpartition("/")[0].replace("/", "_") for file in members} == {
            (name or "").removeprefix("logquake_")
        }


def made(directory: Path, *, of: str, calls: list[str]) -> None:
    """Bring a file up to date, as a later run of the tool would."""
    cache = compile_packages.Made(directory / "made.json")
    file = directory / "object"

    def make() -> None:
        calls.append(of)
        file.write_text(of)

    cache.bring(str(file), of, make)
    cache.save()


def test_a_file_is_made_once_and_again_when_what_it_is_made_of_differs(tmp_path):
    calls: list[str] = []
    for of in ("first", "first", "second", "second", "first"):
        made(tmp_path, of=of, calls=calls)
    assert calls == ["first", "second", "first"]
    assert (tmp_path / "object").read_text() == "first"


def test_a_file_that_was_removed_is_made_again(tmp_path):
    calls: list[str] = []
    made(tmp_path, of="first", calls=calls)
    (tmp_path / "object").unlink()
    made(tmp_path, of="first", calls=calls)
    assert calls == ["first", "first"]


def test_a_file_whose_making_failed_is_made_again(tmp_path):
    cache = compile_packages.Made(tmp_path / "made.json")
    (tmp_path / "object").write_text("half of it")

    def fail() -> None:
        raise OSError("planted")

    with pytest.raises(OSError, match="planted"):
        cache.bring(str(tmp_path / "object"), "first", fail)
    cache.save()
    calls: list[str] = []
    made(tmp_path, of="first", calls=calls)
    assert calls == ["first"]


@pytest.mark.parametrize("changed", ["source.c", "layout.h"])
def test_an_object_is_made_of_its_source_and_of_every_generated_header(tmp_path, changed):
    for name in ("source.c", "layout.h"):
        (tmp_path / name).write_text("int a;\n")
    job = compile_packages.Job(
        str(tmp_path / "source.c"), "source.o", (), ("-O1",), (str(tmp_path / "layout.h"),)
    )
    before = job.made_of()
    assert before == job.made_of()
    (tmp_path / changed).write_text("long a;\n")
    compile_packages.digest_of.cache_clear()
    assert before != job.made_of()
    assert replace(job, arguments=("-O2",)).made_of() != job.made_of()


@pytest.mark.parametrize("keeps", [True, False])
def test_what_does_not_compile_with_what_is_kept_is_compiled_from_nothing(
    tmp_path, monkeypatch, keeps
):
    kept = [tmp_path / compile_packages.CACHE, tmp_path / compile_packages.GENERATED]
    attempts = []

    def attempt():
        attempts.append([path.exists() for path in kept])
        if len(attempts) == 1:
            raise SystemExit("no such member")

    monkeypatch.setattr(compile_packages, "ROOT", tmp_path)
    monkeypatch.setattr(compile_packages, "compile_packages", attempt)
    if not keeps:
        with pytest.raises(SystemExit):
            compile_packages.compile_or_start_over()
        return
    for path in kept:
        path.mkdir(parents=True)
    compile_packages.compile_or_start_over()
    assert attempts == [[True, True], [False, False]]


NEEDS_A_COMPILER = pytest.mark.skipif(
    compile_packages.missing() != "", reason=compile_packages.missing()
)

# mypyc takes some classes that mypy likes and fails only when the module is imported.
IMPORT_ALL = """
import importlib, json, sys
import sim
names = json.loads(sys.stdin.read())
files = [importlib.import_module(name).__file__ for name in names]
print(json.dumps([name for name, file in zip(names, files) if not file.endswith(".so")]))
"""


@NEEDS_A_COMPILER
def test_every_compiled_module_can_be_imported():
    modules, reason = compiled_modules(ROOT, compile_packages.COMPILED)
    assert modules, f"{reason}; make compile"
    imported = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        cwd=ROOT,
        env={**os.environ, "LOGQUAKE_PURE": "0"},
        input=json.dumps(sorted(modules)),
        check=False,
        capture_output=True,
        text=True,
    )
    assert (imported.stderr, json.loads(imported.stdout or "null")) == ("", [])


EVERYTHING = """
claim: Whatever a cluster does, it does alike from sources and compiled.
cluster:
  brokers: 3
  controllers: 3
  disk: {directories: 2}
  config:
    log.cleaner.backoff.ms: 300
    log.retention.check.interval.ms: 500
    replica.lag.time.max.ms: 3000
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 500
    metadata.log.max.record.bytes.between.snapshots: 3000
    security.inter.broker.protocol: SSL
topics:
  orders:
    partitions: 3
    replication.factor: 3
    config: {min.insync.replicas: 2, retention.ms: 3000, segment.ms: 1000}
  accounts:
    partitions: 1
    replication.factor: 3
    config:
      min.insync.replicas: 2
      cleanup.policy: compact
      segment.ms: 500
      min.cleanable.dirty.ratio: 0.1
      compression.type: zstd
producers:
  - name: shop
    topic: orders
    rate: 200/s
    record.size: 200B
    keys: uniform
    transaction: {records: 20, abort: 10%}
    config: {transactional.id: shop, compression.type: gzip}
  - name: desk
    topic: accounts
    rate: 300/s
    record.size: 120B
    keys: zipf
    key.count: 50
    tombstones: 5%
    config: {compression.type: lz4}
consumers:
  - group: billing
    topics: [orders, accounts]
    count: 2
    config: {isolation.level: read_committed, auto.offset.reset: earliest, security.protocol: SSL}
faults:
  - {at: 2s, do: reassign, partition: orders-0, replicas: [broker-2, broker-1]}
  - {at: 3s, do: crash, target: leader of accounts-0, for: 1s}
  - {at: 6s, do: failed-disk, target: broker-2, directory: 1, for: 2s}
run: {for: 12s, then: heal and drain, seed: 1}
expect: {}
"""


def run_of(scenario: Path, out: Path, *, pure: bool) -> dict[str, object]:
    """Run in a process of its own; the run card."""
    subprocess.run(
        [sys.executable, "-m", "sim", "run", str(scenario), "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "LOGQUAKE_PURE": "1" if pure else "0"},
        check=False,
        capture_output=True,
    )
    card: dict[str, object] = json.loads((out / "run.json").read_text())
    return card


def changed_copy(place: Path, module: str, before: str, after: str) -> None:
    """Compile a copy of the checkout with another body in a module: few objects are made."""
    modules, reason = compiled_modules(ROOT, compile_packages.COMPILED)
    assert modules, f"{reason}; make compile"
    for name in ("sim", "tools", "build"):
        shutil.copytree(ROOT / name, place / name, symlinks=True)
    shutil.copy2(ROOT / "pyproject.toml", place)
    source = place / module
    assert before in source.read_text()
    source.write_text(source.read_text().replace(before, after))
    objects = place / compile_packages.GENERATED / "objects"
    made = {file: file.stat().st_mtime_ns for file in objects.rglob("*.o")}
    subprocess.run(
        [sys.executable, "-m", "tools.compile_packages", "--demand"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place), "LOGQUAKE_PURE": "1"},
        check=True,
    )
    again = [file.name for file in made if file.stat().st_mtime_ns != made[file]]
    assert 0 < len(again) < len(made) / 100, again


def said_by_compiled(place: Path, code: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", f"import sim\n{code}"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place), "LOGQUAKE_PURE": "0"},
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout.split()


ASSIGNED = """
from sim.protocol.assignors import range, subscription
one = {"member": subscription.Subscription(("orders",))}
print(range.__file__, range.range_assignment(one, {"orders": ((), ())}))
"""


@pytest.mark.slow
@NEEDS_A_COMPILER
def test_a_change_in_one_module_compiles_that_module_and_little_else(tmp_path):
    """In the middle of the packages; what imports it does not depend on its body."""
    module = "sim/protocol/assignors/range.py"
    changed_copy(tmp_path, module, "return as_assignments(shares)\n", "return {}\n")
    file, answer = said_by_compiled(tmp_path, ASSIGNED)
    assert (Path(file).suffix, answer) == (".so", "{}")


@pytest.mark.slow
@NEEDS_A_COMPILER
def test_a_changed_module_that_reads_a_number_of_another_class_is_compiled(tmp_path):
    """What mypyc keeps of that class is not enough: everything is generated again."""
    reads = "self.ratio > self.log.config.min_cleanable_dirty_ratio"
    changed_copy(tmp_path, "sim/log/cleaning/cleanable.py", reads, reads.replace(">", ">="))
    code = "from sim.log.cleaning import cleanable; print(cleanable.__file__)"
    [file] = said_by_compiled(tmp_path, code)
    assert Path(file).suffix == ".so"


@NEEDS_A_COMPILER
@pytest.mark.parametrize(
    "text",
    [EVERYTHING, (ROOT / "scenarios" / "power-loss-whole-cluster.yaml").read_text()],
    ids=["everything", "power-loss-whole-cluster"],
)
def test_compiled_packages_leave_the_same_bytes_as_their_sources(tmp_path, text):
    modules, reason = compiled_modules(ROOT, compile_packages.COMPILED)
    assert modules, f"{reason}; make compile"
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(text)
    compiled = run_of(scenario, tmp_path / "compiled", pure=False)
    sources = run_of(scenario, tmp_path / "sources", pure=True)
    assert (compiled.pop("compiled"), sources.pop("compiled")) == (True, False)
    assert compiled["complete"] is True
    del compiled["wall_us"], sources["wall_us"]
    assert compiled == sources
    names = sorted(
        file.relative_to(tmp_path / "compiled")
        for file in (tmp_path / "compiled").rglob("*")
        if file.is_file() and file.name != "run.json"
    )
    assert any(name.suffix == ".parquet" for name in names)
    assert any(name.suffix == ".log" for name in names)
    differ = [
        name
        for name in names
        if (tmp_path / "compiled" / name).read_bytes() != (tmp_path / "sources" / name).read_bytes()
    ]
    assert differ == []
