"""Pages of the site before it is built: links, names, the API's rule."""

import importlib
import re
from pathlib import Path

import pytest
from griffe import Docstring, Module

import sim
from sim.scenario.loader import load
from tools.catalogue_entries import CATALOGUE, entries
from tools.site import api, links, pages, roles

ROOT = Path(__file__).parents[2]
HOSTILE = '<img src=x onerror="alert(1)"> `a` *b* [c](d) | {e}'


@pytest.mark.parametrize(
    ("link", "origin", "page", "fitted"),
    [
        ("docs/explore.md", "README.md", "index.md", "explore.md"),
        ("../scenario.md#run", "docs/guide/ci.md", "guide/ci.md", "../scenario.md#run"),
        ("../scenarios/tradeoff.yaml", "docs/scenario.md", "scenario.md", "examples.md#tradeoff"),
        (
            "../scenarios/catalogue/README.md", "docs/catalogue.md", "catalogue.md",
            "gallery/index.md",
        ),
        (
            "a02-acks1-leader-crash-fixed.yaml", "scenarios/catalogue/README.md",
            "gallery/index.md", "a.md#a02-acks1-leader-crash-fixed",
        ),
        ("../CONTRIBUTING.md", "docs/results.md", "results.md", "project/contributing.md"),
        ("https://kafka.apache.org", "README.md", "index.md", "https://kafka.apache.org"),
        ("#the-answer", "docs/results.md", "results.md", "#the-answer"),
    ],
)  # fmt: skip
def test_a_link_between_files_becomes_one_between_pages(link, origin, page, fitted):
    assert links.fitted(f"[x]({link})", origin, page) == f"[x]({fitted})"


def test_a_test_has_no_page_and_is_named_without_a_link():
    text = "| SimPy | [`test_a_trap`](tests/kernel/test_kernel_traps.py) |"
    assert links.fitted(text, "README.md", "index.md") == "| SimPy | `test_a_trap` |"


def test_what_a_fenced_block_shows_is_not_changed():
    text = "```md\n[x](docs/explore.md)\n```\n"
    assert links.fitted(text, "README.md", "index.md") == text


def test_pipes_in_the_code_of_a_table_are_as_the_program_has_them():
    text = "| `--acks all\\|1` | a\\|b |\n\nNo table: `x\\|y`\n"
    assert links.with_plain_pipes(text) == "| `--acks all|1` | a\\|b |\n\nNo table: `x\\|y`\n"


def test_a_link_to_a_file_without_a_page_is_an_error():
    with pytest.raises(ValueError, match=r"no page of the site shows ../Makefile"):
        links.fitted("[x](../Makefile)", "docs/scenario.md", "scenario.md")


def test_names_that_look_like_markdown_or_html_are_shown_as_they_are():
    markdown = importlib.import_module("markdown")
    html = markdown.markdown(pages.plain(HOSTILE), extensions=["tables", "attr_list"])
    assert "<img" not in html
    assert html.count("<") == 2, "the paragraph's own tags"
    text = re.sub(r"<[^>]*>", "", html)
    assert text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"') == HOSTILE


def test_a_scenario_with_a_hostile_claim_cannot_run_a_script_on_its_page(tmp_path, monkeypatch):
    file = tmp_path / "a01-acks0-leader-kill-x.yaml"
    text = (CATALOGUE / "a01-acks0-leader-kill-fixed.yaml").read_text()
    claim = "</script><script>alert(1)</script>" + HOSTILE + "."
    file.write_text(re.sub(r"^claim:.*$", lambda _: f"claim: '{claim}'", text, flags=re.MULTILINE))
    lines = [("scenario", ""), ("lost", HOSTILE), ("down", HOSTILE)]
    lines += [(line.name, HOSTILE) for line in load(file).expect]
    monkeypatch.setattr(pages, "found_in", lambda _: lines)
    shown = "\n\n".join(pages._scenario(file, entries()[0]))
    outside = re.sub(r"```.*?```", "", shown, flags=re.DOTALL)
    assert "<script" not in outside
    assert "<img src=x" not in outside


def test_every_entry_and_every_scenario_of_the_catalogue_is_in_the_gallery():
    made = pages.generated()
    shown = "".join(made[f"gallery/{letter}.md"] for letter in pages.FIELDS)
    for entry in entries():
        assert f"{{#{entry.number.lower()}}}" in shown, entry.number
        assert f'#{entry.number.lower()}">' in made["gallery/index.md"], entry.number
    for file in CATALOGUE.glob("*.yaml"):
        assert f"{{#{file.stem}}}" in shown, file.stem
        assert f'<img src="{file.stem}.svg"' in shown, file.stem
        lines, source = pages.history_of(file)
        assert lines, file.stem
        assert "Source:" not in lines
        assert not lines.startswith("Failure catalogue")
        assert source or "beside it" in file.read_text(), f"{file.stem} names no source"


def test_the_reference_has_what_the_package_offers_and_what_documents_import():
    parts = list(api.public_modules().values())
    assert "sim.scenario.run.runner" in parts[0]
    assert set(sim._HOMES.values()) == set(parts[0])
    assert {"analysis.sweep.explore", "analysis.notebook", "analysis.spark.tables"} <= {*parts[1]}
    assert "sim.faults.registry" in parts[2]
    every = [name for part in parts for name in part]
    assert len(every) == len(set(every))
    for name in every:
        assert api.first_sentence(name).endswith("."), name
        assert ":mod:" not in api.first_sentence(name), name


def test_sphinx_roles_of_docstrings_become_code():
    module = Module("m", docstring=Docstring("Calls :func:`run`, see :class:`~sim.x.Scenario`."))
    roles.Roles().on_object(obj=module)
    assert module.docstring.value == "Calls `run`, see `sim.x.Scenario`."


def test_every_document_is_in_the_navigation_and_its_links_have_pages():
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    for document in sorted((ROOT / "docs").rglob("*.md")):
        place = document.relative_to(ROOT / "docs").as_posix()
        assert place in nav or place.startswith("decisions/"), f"{place}: not in mkdocs.yml"
        links.fitted(document.read_text(), f"docs/{place}", place)
    for path, page in links.PAGES.items():
        assert (ROOT / path).exists(), path
        if path.endswith(".md"):
            links.fitted((ROOT / path).read_text(), path, page)
