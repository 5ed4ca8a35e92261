"""The rules of the house for text: what may not be written, documents, the lock file, scenarios."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import yaml

from tools.house import Finding

_SKIPPED_FOLDERS = (
    ".git", ".venv", "runs", "build", "dist", "spark-warehouse", "metastore_db", "__pycache__",
    ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache", ".cache",
)  # fmt: skip
_TEXT_ENDINGS = (
    ".py", ".md", ".toml", ".yaml", ".yml", ".txt", ".ipynb", ".cfg", ".html", ".css", ".js",
)  # fmt: skip
_TEXT_NAMES = ("Makefile", "run", "LICENSE", ".gitignore")

# Written so that no pattern matches its own source.
_FORBIDDEN = (
    (re.compile(r"/(?:work|root|home|Users)/[\w.]"), "names a path of somebody's machine"),
    (re.compile(r"[A-Z]:\\Users\\"), "names a path of somebody's machine"),
    (
        re.compile(r"\bpypi\.org|pythonhosted\.org|art[i]factory|\bmaven\.org", re.IGNORECASE),
        "names a host",
    ),
    (re.compile(r"--(?:extra-)?index[-]url\s*[= ]\s*\S*:/"), "names a package index"),
    (re.compile(r"\b(?:T[O]DO|FIX[M]E|XX[X])\b"), "leaves work for later; open an issue instead"),
)

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6}\s+(.*)$", re.MULTILINE)
_SOURCE = re.compile(r"`((?:sim|analysis|tools)/[\w./-]+)`")
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
_LINKED_TEST = re.compile(r"\[`(test_\w+)`\]\((tests/[\w/]+\.py)\)")
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)(?:\s*;\s*([^\\]+?))?\s*\\$")
_CHANGE = re.compile(r"\+[a-z0-9-]+\.(?:added|changed|fixed)\.md")
_CHANGE_MAX = 210
_LOG_LINES = ("# ", "## ", "### Added", "### Changed", "### Fixed", "- ", "<!--", "What a user")
_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def text_files(root: Path) -> Iterator[Path]:
    """Every text file of the project, sorted; what git ignores and binary files are left out."""
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if any(part in _SKIPPED_FOLDERS or part.endswith(".egg-info") for part in parts):
            continue
        if path.is_file() and (path.suffix in _TEXT_ENDINGS or path.name in _TEXT_NAMES):
            yield path


def forbidden_text(root: Path, path: Path) -> Iterator[Finding]:
    """No machine's paths, no package hosts, nothing left for later."""
    name = path.relative_to(root).as_posix()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for pattern, sentence in _FORBIDDEN:
            if pattern.search(line):
                yield Finding(name, number, sentence)


def code_blocks(path: Path) -> Iterator[tuple[int, str, str]]:
    """Every fenced block of a document: line of its first line, language, text."""
    text = path.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match.group(1), match.group(2)


def broken_blocks(root: Path, path: Path) -> Iterator[Finding]:
    """Python and YAML blocks of a document are at least well formed."""
    name = path.relative_to(root).as_posix()
    for line, language, text in code_blocks(path):
        try:
            if language == "python":
                ast.parse(text)
            elif language == "yaml":
                yaml.safe_load(text)
        except (SyntaxError, yaml.YAMLError) as error:
            reason = str(error).splitlines()[0]
            yield Finding(name, line, f"{language} block does not parse: {reason}")


def scenario_blocks(path: Path) -> Iterator[tuple[int, str]]:
    """The YAML blocks of a document that are whole scenarios: they have a claim and a cluster."""
    for line, language, text in code_blocks(path):
        if (
            language == "yaml"
            and re.search(r"^claim:", text, re.MULTILINE)
            and "\ncluster:" in text
        ):
            yield line, text


def broken_links(root: Path, path: Path) -> Iterator[Finding]:
    """Every relative link of a document leads to a file, and to a heading if it names one."""
    name = path.relative_to(root).as_posix()
    text = _FENCE.sub(lambda match: "\n" * match.group(0).count("\n"), path.read_text("utf-8"))
    for match in _LINK.finditer(text):
        target = match.group(1) or match.group(2)
        line = text.count("\n", 0, match.start()) + 1
        if re.match(r"[a-z]+:", target):
            continue
        file_part, _, anchor = target.partition("#")
        file = (path.parent / file_part).resolve() if file_part else path
        if not file.exists():
            yield Finding(name, line, f"link to {target}: no such file")
        elif anchor and file.suffix == ".md" and anchor not in _anchors(file):
            yield Finding(name, line, f"link to {target}: no such heading")


def ill_formed_changes(root: Path) -> Iterator[Finding]:
    """A change is one line, in ``changes`` one file; the change log has nothing else."""
    for path in sorted((root / "changes").iterdir()):
        name = path.relative_to(root).as_posix()
        if path.name == "README.md":
            continue
        if not _CHANGE.fullmatch(path.name):
            yield Finding(name, 1, "is not called +NAME.added.md, .changed.md or .fixed.md")
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) != 1 or not re.fullmatch(r"[^-\s].*\.", lines[0]):
            yield Finding(name, 1, "is not one line with a full stop at its end")
        elif len(lines[0]) > _CHANGE_MAX:
            yield Finding(name, 1, f"has {len(lines[0])} characters; {_CHANGE_MAX} are allowed")
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith(_LOG_LINES):
            yield Finding("CHANGELOG.md", number, "a change is one line below its kind")


def missing_tests(root: Path, path: Path) -> Iterator[Finding]:
    """Every test that a document names exists.

    It is named as ``tests/a.py`` or ``tests/a.py::test_b``, or by a link to its file.
    """
    name = path.relative_to(root).as_posix()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        linked = [(file, test) for test, file in _LINKED_TEST.findall(line)]
        for file_part, test in (*_TEST.findall(line), *linked):
            file = root / file_part
            if not file.exists():
                yield Finding(name, number, f"{file_part}: no such file")
            elif test and f"def {test}(" not in file.read_text(encoding="utf-8"):
                yield Finding(name, number, f"{file_part} has no {test}")


def missing_sources(root: Path, path: Path) -> Iterator[Finding]:
    """Every source file or folder that a document names in backticks is there."""
    name = path.relative_to(root).as_posix()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for named in _SOURCE.findall(line):
            if not (root / named).exists():
                yield Finding(name, number, f"{named}: no such file or folder")


def loose_pins(root: Path, lock: Path) -> Iterator[Finding]:
    """The lock pins every package by version and hash, and holds no address and no path."""
    name = lock.relative_to(root).as_posix()
    pinned: dict[str, int] = {}
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), 1):
        match = _PINNED.match(line)
        if match:
            pinned[_normal(match.group(1))] = number
        elif not _HASH.match(line):
            yield Finding(name, number, f"neither a pinned package nor a hash: {line[:60]!r}")
    for wanted in _direct_dependencies(root / "pyproject.toml"):
        if wanted not in pinned:
            yield Finding(name, 1, f"{wanted} of pyproject.toml is not pinned: make lock")


def claimless(root: Path, path: Path) -> Iterator[Finding]:
    """A scenario's first line that is not a comment is its claim, a sentence."""
    name = path.relative_to(root).as_posix()
    lines = path.read_text(encoding="utf-8").splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    if not first.startswith("claim:"):
        yield Finding(name, 1, "the first line that is not a comment must be the claim")
        return
    claim = str(yaml.safe_load("\n".join(lines))["claim"]).strip()
    if not claim.endswith("."):
        yield Finding(name, 1, f"the claim is not a sentence: {claim!r}")


def _anchors(path: Path) -> list[str]:
    headings = _HEADING.findall(_FENCE.sub("", path.read_text(encoding="utf-8")))
    return [
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    ]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _direct_dependencies(pyproject: Path) -> list[str]:
    data = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project = data["project"]
    wanted = list(project.get("dependencies", []))
    for extra in project.get("optional-dependencies", {}).values():
        wanted += extra
    for group in data.get("dependency-groups", {}).values():
        wanted += group
    names = [_normal(re.split(r"[\s<>=!~;\[]", requirement)[0]) for requirement in wanted]
    return [
        name for name in names if name != _normal(project.get("name", ""))
    ]  # an extra of its own
