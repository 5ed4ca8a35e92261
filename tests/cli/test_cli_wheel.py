"""Wheels, as a user has them who has installed one: nothing of the repository is within reach."""

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from sim.compiled import compiled_modules
from sim.scenario.shipped import shipped
from tests.scenarios.run_kit import ROOT

PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
COMPILED = bool(compiled_modules(ROOT, ROOT / "build" / "compiled")[0])


def built(tmp_path, form):
    """A wheel of this form, and where it is installed."""
    wheels, place = tmp_path / "wheels", tmp_path / "site"
    words = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run(
        [*PIP, *words], env=os.environ | {"LOGQUAKE_WHEEL": form}, check=True, capture_output=True
    )
    [wheel] = wheels.glob("logquake-*.whl")
    words = ["install", "--no-deps", "--no-index", "--target", str(place), str(wheel)]
    subprocess.run([*PIP, *words], check=True, capture_output=True)
    return wheel, place


def logquake(tmp_path, place, *words):
    """The command of an installed wheel, from a directory in which there is nothing else."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    code = (
        f"import sys; sys.path[:0] = [{str(place)!r}]; import sim; print(sim.__file__); "
        "from sim.cli import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *words],
        cwd=home, env=os.environ | {"PYTHONPATH": "", "LOGQUAKE_PURE": "0"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "form",
    [
        "pure",
        pytest.param("compiled", marks=pytest.mark.skipif(not COMPILED, reason="not compiled")),
    ],
)
def test_a_wheel_brings_every_scenario_and_runs_one_from_another_directory(tmp_path, form):
    wheel, place = built(tmp_path, form)
    assert wheel.name.endswith("-py3-none-any.whl") is (form == "pure")
    there = {path.stem for path in (place / "sim" / "shipped").rglob("*.yaml")}
    assert there == set(shipped())
    made = logquake(tmp_path, place, "init", "tiny.yaml", "--from", "tradeoff")
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines()[0].startswith(str(place)), "the wheel's own code"
    ran = logquake(tmp_path, place, "run", "tiny.yaml", "--out", "run")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "lost     0 of" in ran.stdout
    card = json.loads((tmp_path / "home" / "run" / "run.json").read_text())
    assert card["compiled"] is (form == "compiled")


def test_a_form_of_wheels_that_is_unknown_is_refused(tmp_path):
    words = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT)]
    done = subprocess.run(
        [*PIP, *words], env=os.environ | {"LOGQUAKE_WHEEL": "fast"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "LOGQUAKE_WHEEL: found 'fast'; allowed: pure, compiled" in done.stdout + done.stderr


def test_pages_and_the_container_name_the_version_and_the_extras_that_there_are():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = "".join(
        (ROOT / name).read_text() for name in ("docs/guide/install.md", "docs/guide/ci.md")
    )
    assert set(re.findall(r"logquake-(\d+\.\d+\.\d+)-py3", text)) == {project["version"]}
    container = (ROOT / "Containerfile").read_text()
    named = set(re.findall(r"\.whl\)?\[(\w+)\]", text + container))
    assert named <= set(project["optional-dependencies"])
    [command] = re.findall(r"RUN (sed .*?) > /pins.txt", container)
    pins = subprocess.run(command, shell=True, cwd=ROOT, check=True, capture_output=True, text=True)
    found = [Requirement(line) for line in pins.stdout.splitlines()]
    assert {"setuptools", "wheel", "pyspark"} <= {each.name for each in found}
    here = [each.name for each in found if each.marker is None or each.marker.evaluate()]
    assert len(here) == len(set(here)), "two versions of one package for one Python"


def test_a_compiled_wheel_is_built_with_the_versions_of_the_lock(monkeypatch):
    from tools.wheel import WheelHook  # noqa: PLC0415 - hatchling is a tool of the build

    class Named:
        root = str(ROOT)
        target_name = "wheel"

        class metadata:  # noqa: N801 - Hatch's name
            class core:  # noqa: N801
                dependencies = ("simpy>=4.1,<5", "PyYAML>=6")

    monkeypatch.setenv("LOGQUAKE_WHEEL", "compiled")
    found = WheelHook.dependencies(Named)
    lock = (ROOT / "constraints.txt").read_text()
    assert [each.partition("==")[0] for each in found[:3]] == ["simpy", "PyYAML", "mypy"]
    assert all(f"\n{each.lower()} " in f"\n{lock.lower()}" for each in found)
    monkeypatch.setenv("LOGQUAKE_WHEEL", "pure")
    assert WheelHook.dependencies(Named) == []
