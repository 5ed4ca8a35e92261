"""The modules of the API reference, by a rule: those that somebody outside is to import or extend.

A module is public if the Python face names it (``sim.__all__``), if a document or a notebook
imports from it, or if ``docs/architecture.md`` names it as the counterpart of a Kafka class or as
the place where something is added.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import sim
from tools.house_text import code_blocks
from tools.site.roles import as_markdown

ROOT: Final = Path(__file__).parents[2]
_ARCHITECTURE: Final = ROOT / "docs" / "architecture.md"
_NAMED: Final = re.compile(r"`((?:sim|analysis)/[\w/]+)\.py`")
_PACKAGES: Final = ("sim", "analysis")


def public_modules() -> dict[str, tuple[str, ...]]:
    """Titles of the reference's parts, with their modules in the order of their names.

    A module is in the first part that names it.
    """
    known: set[str] = set()
    parts: dict[str, tuple[str, ...]] = {}
    for title, names in (
        ("Run scenarios", _face()),
        ("Work on results, in notebooks and scripts", _imported()),
        ("Understand and extend the simulator", _named()),
    ):
        parts[title] = tuple(sorted(set(names) - known))
        known |= set(names)
    return parts


def first_sentence(module: str) -> str:
    """First sentence of a module's docstring."""
    tree = ast.parse(_file(module).read_text(encoding="utf-8"))
    text = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
    return as_markdown(text).replace("``", "`")


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _face() -> Iterator[str]:
    """Modules whose names the package itself offers."""
    tree = ast.parse(Path(sim.__file__).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sim."):
            names = {alias.name for alias in node.names}
            if names & set(sim.__all__):
                yield str(node.module)


def _imported() -> Iterator[str]:
    """Modules that documents and notebooks import."""
    for text in _examples():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                if node.module.partition(".")[0] not in _PACKAGES:
                    continue
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    module = inner if _file(inner).exists() else node.module
                    if module != "sim":
                        yield module


def _examples() -> Iterator[str]:
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for document in documents:
        yield from (text for _, language, text in code_blocks(document) if language == "python")
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                yield "".join(cell["source"])


def _named() -> Iterator[str]:
    """Modules that the architecture names."""
    for path in _NAMED.findall(_ARCHITECTURE.read_text(encoding="utf-8")):
        yield path.replace("/", ".")
