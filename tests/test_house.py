"""The house test: rules that no linter knows, and a proof of each that it can fail."""

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sim.trace.schema import TABLES
from sim.trace.schema_types import Column
from tests.house_planted import KEPT, VIOLATIONS
from tools import house, house_packages, house_text, house_words, tables_doc, trace_rows
from tools.house import Finding, Source

ROOT = Path(__file__).parents[1]
PACKAGES = ("sim", "analysis")
DOORS = (
    "sim.cli",
    "sim.__main__",
    "sim.bench",
    "sim.suite.pytest_plugin",
    "analysis.sweep.explore",
    "analysis.notebook",
)
"""Modules that are called from outside the packages."""


def show(findings: Iterator[Finding] | list[Finding]) -> str:
    return "\n".join(str(finding) for finding in findings)


def python_files() -> Iterator[Source]:
    return house.sources(ROOT, "sim", "analysis", "tests", "tools")


def documents() -> list[Path]:
    return [path for path in house_text.text_files(ROOT) if path.suffix == ".md"]


def planted(text: str, path: str = "sim/planted.py") -> Source:
    return Source(path, text, ast.parse(text))


# --- the house as it stands -------------------------------------------------------------------


RULES = {
    **dict.fromkeys(house.FOR_EVERY_FILE, ("sim/", "analysis/", "tests/", "tools/")),
    **dict.fromkeys((*house.FOR_THE_PACKAGES, house_words.lost_words), ("sim/", "analysis/")),
    **dict.fromkeys((*house.FOR_THE_SIMULATOR, house.hidden_imports), ("sim/",)),
}
"""Each rule, and the folders that keep it."""


@pytest.fixture(scope="module")
def findings() -> dict[Callable[[Source], Iterator[Finding]], list[Finding]]:
    """Of every rule, what it finds; each file is parsed once."""
    found: dict[Callable[[Source], Iterator[Finding]], list[Finding]] = {rule: [] for rule in RULES}
    for source in python_files():
        for rule, folders in RULES.items():
            if source.path.startswith(folders):
                found[rule] += rule(source)
    return found


@pytest.mark.parametrize("rule", RULES)
def test_the_house_keeps(rule, findings):
    assert show(findings[rule]) == ""


def test_few_modules_are_excused_from_naming_their_owner():
    assert len(house.MAY_NAME_FOR_TYPES) <= 3


def test_every_module_is_reached_from_another_or_is_a_door():
    packages = list(house.sources(ROOT, *PACKAGES))
    assert show(house_packages.unreachable(packages, DOORS)) == ""


def test_a_package_has_no_more_modules_than_a_reader_can_survey():
    assert show(house_packages.crowded_packages(house.sources(ROOT, *PACKAGES))) == ""


def test_a_name_of_a_package_is_its_module_whatever_was_imported_before():
    assert show(house_packages.shaded_modules(house.sources(ROOT, *PACKAGES))) == ""


def test_every_module_can_be_imported():
    names = [
        source.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for source in house.sources(ROOT, *PACKAGES)
        if not source.path.endswith("__main__.py")
    ]
    assert "sim.kernel" in names
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    done = in_python(code, *names)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("sim.cli", "pyspark"),
        ("sim.cli", "pandas"),
        ("sim.cli", "matplotlib"),
        ("sim.trace.schema", "simpy"),
        ("sim.trace.schema", "numpy"),
        ("sim.protocol.messages", "simpy"),
    ],
)
def test_a_module_starts_without(module: str, unwanted: str):
    done = in_python(f"import {module}, sys; sys.exit({unwanted!r} in sys.modules)")
    assert done.returncode == 0, f"{module} imports {unwanted} {done.stderr}"


def test_no_text_names_a_machine_or_leaves_work_for_later():
    found = [f for p in house_text.text_files(ROOT) for f in house_text.forbidden_text(ROOT, p)]
    assert show(found) == ""


def test_the_lock_pins_everything_by_hash_and_holds_no_address():
    assert show(house_text.loose_pins(ROOT, ROOT / "constraints.txt")) == ""


def test_every_change_is_one_line_of_a_known_kind():
    assert show(house_text.ill_formed_changes(ROOT)) == ""


def test_code_blocks_of_documents_parse():
    found = [f for path in documents() for f in house_text.broken_blocks(ROOT, path)]
    assert show(found) == ""


def test_scenario_blocks_of_documents_are_valid_scenarios(tmp_path):
    load = importlib.import_module("sim.scenario.loader").load
    for document in documents():
        for line, text in house_text.scenario_blocks(document):
            path = tmp_path / f"{document.stem}-{line}.yaml"
            path.write_text(text)
            load(path)


def test_imports_in_documents_work():
    code = [
        text for p in documents() for _, lang, text in house_text.code_blocks(p) if lang == "python"
    ]
    imports = [
        ast.unparse(node)
        for text in code
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert imports
    done = in_python("\n".join(imports))
    assert done.returncode == 0, done.stderr


def test_links_of_documents_lead_somewhere():
    found = [f for path in documents() for f in house_text.broken_links(ROOT, path)]
    assert show(found) == ""


def test_sources_that_documents_name_exist():
    assert show(f for path in documents() for f in house_text.missing_sources(ROOT, path)) == ""


def test_tests_that_documents_name_exist():
    found = [f for path in documents() for f in house_text.missing_tests(ROOT, path)]
    assert show(found) == ""


def test_scenarios_begin_with_a_claim():
    paths = sorted((ROOT / "scenarios").rglob("*.yaml"))
    assert show([f for path in paths for f in house_text.claimless(ROOT, path)]) == ""


@pytest.mark.parametrize("part", tables_doc.PARTS, ids=lambda part: part.name)
def test_a_generated_part_of_a_document_is_up_to_date(part: tables_doc.Part):
    document = (tables_doc.DOCS / part.document).read_text(encoding="utf-8")
    assert tables_doc.renewed(part, document) == document, "run: make docs"


def test_the_types_of_the_rows_of_the_trace_are_up_to_date():
    generated = dict(trace_rows.files())
    modules = {path for path in trace_rows.ROWS.glob("*.py") if path.name != "__init__.py"}
    assert modules == set(generated), "a module of the schema is not generated, or one is gone"
    given = [table for group in trace_rows.GROUPS.values() for table in group]
    assert sorted(t.name for t in given) == sorted(t.name for t in TABLES)
    for path, text in generated.items():
        assert path.read_text(encoding="utf-8") == text, "run: make docs"


# --- every rule can fail ----------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "text"), VIOLATIONS)
def test_a_planted_violation_is_caught(rule, text: str):
    assert list(rule(planted(text)))


@pytest.mark.parametrize(("rule", "text"), KEPT)
def test_what_keeps_the_rule_is_left_alone(rule, text: str):
    assert list(rule(planted(text))) == []


def test_a_docstring_that_only_repeats_the_folder_is_caught():
    text, path = '"""rules."""\n', "sim/scenario/rules/__init__.py"
    assert list(house.missing_module_docstring(planted(text, path)))
    assert list(house.missing_module_docstring(planted(text, "sim/scenario/run/bounds.py"))) == []


def test_a_column_that_a_check_takes_by_number_is_caught_whatever_the_row_is_called():
    text = "def f(partition):\n    return partition.change[4] - 1\n"
    assert list(house.numbered_columns(planted(text, "sim/checking/planted.py")))
    assert list(house.numbered_columns(planted(text, "sim/nodes/planted.py"))) == []
    text = "def f(spans):\n    return spans[-1][2]\n"
    assert list(house.numbered_columns(planted(text, "sim/checking/planted.py"))) == []


def test_a_machine_whose_effects_may_be_anything_is_caught():
    text = "class C:\n  def handle(self, event) -> list[Any]:\n    return []\n"
    assert list(house.open_lists(planted(text, "sim/protocol/planted.py")))
    text = "Rest: TypeAlias = Callable[[Micros, list[Any]], None]\n"
    assert list(house.open_lists(planted(text, "sim/protocol/planted.py")))


def test_a_row_is_made_by_hand_where_its_constructor_is():
    text = "def row(broker):\n    return Emit('markers', (broker,))\n"
    assert list(house.rows_by_hand(planted(text, "sim/trace/rows/planted.py"))) == []
    assert list(house.rows_by_hand(planted(text, "sim/trace/planted.py")))


def test_only_the_streams_may_import_random():
    text = "import random\n"
    assert list(house.banned_modules(planted(text, "sim/rng.py"))) == []
    assert list(house.banned_modules(planted(text, "sim/kernel.py")))


def test_a_package_with_too_many_modules_is_found():
    many = [planted("", f"sim/log/m{n}.py") for n in range(house_packages.MODULES_MAX)]
    few = [planted("", "sim/log/__init__.py"), planted("", "sim/log/store/files.py")]
    assert list(house_packages.crowded_packages(many + few)) == []
    found = list(house_packages.crowded_packages([*many, *few, planted("", "sim/log/more.py")]))
    assert [finding.path for finding in found] == ["sim/log"]


def test_a_name_that_hides_a_module_of_its_package_is_found():
    modules = [planted("", "sim/cli/scenarios.py"), planted("", "sim/cli/commands/scenarios.py")]
    its_own = planted("from sim.cli import scenarios\n", "sim/cli/__init__.py")
    another = planted("from sim.cli.commands import scenarios\n", "sim/cli/__init__.py")
    assert list(house_packages.shaded_modules([*modules, its_own])) == []
    (found,) = house_packages.shaded_modules([*modules, another])
    assert "scenarios of sim.cli.commands hides the module sim/cli/scenarios" in str(found)


def test_a_module_that_nothing_imports_is_found():
    packages = [
        planted("import sim.a\n", "sim/cli.py"),
        planted("from sim import b\n", "sim/a.py"),
        planted("import sim.c\n", "sim/c.py"),
        planted("", "sim/b.py"),
    ]
    assert [f.path for f in house_packages.unreachable(packages, ("sim.cli",))] == ["sim/c.py"]


@pytest.mark.parametrize(
    "line",
    [
        "see " + "/" + "home/someone/project",
        "see " + "/" + "root/.cache",
        "from https://" + "py" + "pi.org/simple",
        "pip install --index-" + "url https:/" + "/example.org x",
        "# TO" + "DO: later",
        "# FIX" + "ME",
    ],
)
def test_a_forbidden_word_is_found(tmp_path, line: str):
    (tmp_path / "page.md").write_text(f"fine\n{line}\n")
    (path,) = house_text.text_files(tmp_path)
    assert [f.line for f in house_text.forbidden_text(tmp_path, path)] == [2]


def test_words_of_kafka_and_spark_are_no_forbidden_words(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("session.timeout.ms, a SparkSession, path/to/home, workload, rooted\n")
    assert list(house_text.forbidden_text(tmp_path, page)) == []


def test_what_git_ignores_is_not_read(tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "page.md").write_text("x")
    assert list(house_text.text_files(tmp_path)) == []


@pytest.mark.parametrize(
    "block", ["```python\ndef f(:\n```\n", "```yaml\na: [1\n```\n", "```yaml\na: b: c\n```\n"]
)
def test_a_broken_code_block_is_found(tmp_path, block: str):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{block}")
    assert [f.line for f in house_text.broken_blocks(tmp_path, page)] == [4]


def test_a_scenario_block_is_told_from_other_yaml(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```yaml\nclaim: It holds.\ncluster: {}\n```\n```yaml\ntopics: {}\n```\n")
    assert [line for line, _ in house_text.scenario_blocks(page)] == [2]


@pytest.mark.parametrize("link", ["nowhere.md", "other.md#nothing", "#nothing"])
def test_a_link_to_nowhere_is_found(tmp_path, link: str):
    (tmp_path / "other.md").write_text("# Some heading\n")
    page = tmp_path / "page.md"
    page.write_text(
        f"# Page\n[x]({link}) [y](other.md#some-heading) [z](https://kafka.apache.org)\n"
    )
    assert [f.line for f in house_text.broken_links(tmp_path, page)] == [2]


@pytest.mark.parametrize(
    ("named", "lines"),
    [("sim/log", []), ("sim/log/", []), ("sim/kernel.py", []), ("sim/b.py", [2])],
)
def test_a_named_source_that_is_not_there_is_found(tmp_path, named: str, lines: list[int]):
    (tmp_path / "sim" / "log").mkdir(parents=True)
    (tmp_path / "sim" / "kernel.py").touch()
    document = tmp_path / "a.md"
    document.write_text(f"One line.\nSee `sim/log` and `{named}`.\n")
    assert [found.line for found in house_text.missing_sources(tmp_path, document)] == lines


@pytest.mark.parametrize("test", ["tests/b.py", "tests/a.py::test_c", "tests/b.py::test_a"])
def test_a_named_test_that_is_not_there_is_found(tmp_path, test: str):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.py").write_text("def test_a():\n    pass\n")
    page = tmp_path / "page.md"
    page.write_text(f"`tests/a.py::test_a` `tests/a.py`\n`{test}`\n")
    assert [f.line for f in house_text.missing_tests(tmp_path, page)] == [2]
    file, _, name = test.partition("::")
    page.write_text(f"[`test_a`](tests/a.py)\n[`{name or 'test_a'}`]({file})\n")
    assert [f.line for f in house_text.missing_tests(tmp_path, page)] == [2]


@pytest.mark.parametrize(
    "lock",
    [
        "simpy>=4 \\\n",
        "simpy==4.1.2\n",
        "--index-" + "url https:/" + "/example.org\nsimpy==4.1.2 \\\n",
        "numpy==2 \\\n    --hash=sha256:" + "0" * 64 + "\n",
        "simpy==4.1.2 \\\n    --hash=md5:00\n",
    ],
)
def test_a_loose_lock_is_found(tmp_path, lock: str):
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["simpy>=4"]\n')
    path = tmp_path / "constraints.txt"
    path.write_text(lock)
    assert list(house_text.loose_pins(tmp_path, path))


def test_a_tight_lock_is_accepted(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["types-PyYAML>=6,<7"]\n')
    path = tmp_path / "constraints.txt"
    path.write_text(
        "types-pyyaml==6.0 ; sys_platform == 'linux' \\\n    --hash=sha256:" + "0" * 64 + "\n"
    )
    assert list(house_text.loose_pins(tmp_path, path)) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("+a.added.md", "A change.\nAnd more of it.\n"),
        ("+a.added.md", "- A change.\n"),
        ("+a.added.md", "A change\n"),
        ("+a.added.md", ""),
        ("+a.added.md", f"A {'very ' * 50}long change.\n"),
        ("+a.removed.md", "A change.\n"),
        ("a.added.md", "A change.\n"),
        ("../CHANGELOG.md", "- A change that\n  has two lines.\n"),
        ("../CHANGELOG.md", "### Before\n"),
    ],
)
def test_a_change_of_another_form_is_found(tmp_path, name: str, text: str):
    (tmp_path / "changes").mkdir()
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.0.0 (2026-01-01)\n")
    (tmp_path / "changes" / "+b.fixed.md").write_text("`key` works.\n")
    assert list(house_text.ill_formed_changes(tmp_path)) == []
    (tmp_path / "changes" / name).write_text(text)
    assert len(list(house_text.ill_formed_changes(tmp_path))) == 1


@pytest.mark.parametrize("text", ["cluster: {}\nclaim: It holds.\n", "claim: it holds\n", ""])
def test_a_scenario_without_a_claim_is_found(tmp_path, text: str):
    path = tmp_path / "planted.yaml"
    path.write_text(text)
    assert list(house_text.claimless(tmp_path, path))


def test_a_changed_table_is_seen_in_the_document():
    part = tables_doc.PARTS[0]
    document = (tables_doc.DOCS / part.document).read_text(encoding="utf-8")
    changed = document.replace("| `t_us` |", "| `t_ms` |", 1)
    assert tables_doc.renewed(part, changed) != changed
    with pytest.raises(ValueError, match="lacks"):
        tables_doc.renewed(part, "no markers")


def test_a_new_column_is_seen_in_the_types_of_rows():
    path, text = next(trace_rows.files())
    first, *others = trace_rows.GROUPS[path.stem]
    new = Column("rack", "string", "planted")
    changed = replace(first, columns=(first.columns[0], new, *first.columns[1:]))
    found = trace_rows.module(path.stem, (changed, *others))
    assert found != text
    name = trace_rows.class_name(first.name)
    assert f"class {name}:" in found
    assert "    RACK: Final = 1\n" in found
    assert f"    {first.columns[1].name.upper()}: Final = 2\n" in found
    assert f"{name}Row: TypeAlias = tuple[int, str, " in found.replace("[\n    ", "[")


def test_an_unwanted_import_would_be_seen():
    done = in_python("import simpy, sys; sys.exit('simpy' in sys.modules)")
    assert done.returncode == 1


def in_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a line of Python in a process of its own, at the project's root."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
