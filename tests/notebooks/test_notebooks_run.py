"""Notebooks run top to bottom, show figures, and are kept as they are written: without outputs."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUICK = "01-a-first-run"
PLACE = 'RUNS = Path("../runs/notebooks")'

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of jupyter's own libraries


def executed(path, runs, monkeypatch):
    """The notebook after every cell, with its runs elsewhere."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    text = path.read_text(encoding="utf-8")
    escaped = json.dumps(PLACE)[1:-1]
    assert text.count(escaped) == 1, "the first cell says where runs go"
    moved = json.dumps(f"RUNS = Path({str(runs)!r})")[1:-1]
    notebook = nbformat.reads(text.replace(escaped, moved), 4)
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=place).execute()
    return notebook


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def figures(notebook):
    return [o for o in outputs(notebook) if "image/png" in o.get("data", {})]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_asks_one_question_and_is_kept_without_outputs(path):
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    first, second, *_ = notebook.cells
    assert first.source.startswith(f"# {int(path.stem[:2])}. ")
    questions = [line for line in first.source.splitlines() if line.endswith("?**")]
    assert len(questions) == 1, "one question, in bold, at the top"
    assert second.cell_type == "code"
    assert "import" in second.source
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert len(cell.source.splitlines()) <= 60, "a cell fits on a screen"


def test_notebooks_are_numbered_without_a_gap():
    assert [int(path.stem[:2]) for path in NOTEBOOKS] == list(range(1, len(NOTEBOOKS) + 1))


def test_links_between_notebooks_lead_somewhere():
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, 4).cells:
            for word in cell.source.split("](")[1:]:
                target = word.partition(")")[0].partition("#")[0]
                assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_first_notebook_runs_and_shows_its_figures(tmp_path, monkeypatch):
    notebook = executed(ROOT / "notebooks" / f"{QUICK}.ipynb", tmp_path, monkeypatch)
    assert len(figures(notebook)) == 2
    assert any("first-run, seed 1: held" in str(o.get("data")) for o in outputs(notebook))
    assert (tmp_path / "01" / "run" / "verdict.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [p for p in NOTEBOOKS if p.stem != QUICK], ids=lambda path: path.stem
)
def test_every_notebook_runs_and_shows_a_figure(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert figures(executed(path, tmp_path, monkeypatch))


def test_a_cell_that_fails_fails_the_test(tmp_path, monkeypatch):
    path = tmp_path / "broken.ipynb"
    cells = [
        nbformat.v4.new_code_cell(
            f"from pathlib import Path\n{PLACE}\nassert RUNS.parts[0] != '..'\n1/0"
        )
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        executed(path, tmp_path, monkeypatch)
    assert [file.name for file in tmp_path.iterdir()] == ["broken.ipynb"]
