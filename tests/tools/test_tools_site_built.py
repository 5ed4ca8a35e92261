"""The site as it is built: strict, whole, from nowhere else, without a complaint in a browser."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.analysis import browser_kit
from tools.site import checked

ROOT = Path(__file__).parents[2]
PAGES = (
    "index", "guide/01-acknowledged", "guide/editor", "scenario", "settings", "results", "cli",
    "gallery/index", "gallery/b", "examples", "notebooks", "api/index",
    "api/sim.scenario.run.runner", "architecture", "fidelity",
)  # fmt: skip
"""Pages that a browser opens: one of each kind, and the longest."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as ``make site`` does."""
    place = tmp_path_factory.mktemp("built") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return place


@pytest.fixture(scope="module")
def chromium():
    path = browser_kit.find()
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(browser_kit.NAMES)} is installed")
    with browser_kit.browser(path) as page:
        yield page


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere_and_every_page_is_linked(site):
    assert list(checked.broken_links(site)) == []
    assert list(checked.lonely_pages(site)) == []
    assert len(list(site.rglob("*.html"))) > 100


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site):
    assert list(checked.foreign_addresses(site)) == []


@pytest.mark.slow
def test_the_schema_is_in_the_site(site):
    own = ROOT / "sim" / "scenario" / "schema" / "logquake.schema.json"
    assert (site / own.name).read_bytes() == own.read_bytes()


@pytest.mark.slow
def test_the_reference_has_docstrings_with_arguments_and_errors_and_no_roles(site):
    text = (site / "api" / "sim.scenario.run.runner.html").read_text()
    for shown in ("Run a scenario and leave a run directory.", "should_stop", "InvariantBroken"):
        assert shown in text, shown
    for page in (site / "api").glob("*.html"):
        assert ":func:" not in page.read_text(), page.name


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1400])
def test_pages_have_no_complaint_and_fit_the_window(site, chromium, width, scheme):
    """Opened as files; the scheme is the system's."""
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    chromium.call("Emulation.setEmulatedMedia", features=media)
    try:
        for name in PAGES:
            chromium.complaints.clear()
            chromium.fetched.clear()
            chromium.open(site / f"{name}.html", width=width)
            assert chromium.complaints == [], name
            assert [u for u in chromium.fetched if not u.startswith(("file:", "data:"))] == [], name
            assert chromium.run("document.documentElement.scrollWidth") <= width, name
            kind = chromium.run("document.body.dataset.mdColorScheme")
            assert kind == {"light": "default", "dark": "slate"}[scheme]
    finally:
        chromium.call("Emulation.setEmulatedMedia", features=[])


@pytest.mark.slow
def test_the_search_finds_pages_without_a_server(site, chromium):
    chromium.complaints.clear()
    chromium.open(site / "index.html", width=1400)
    chromium.run("document.querySelector('[data-md-toggle=search]').click(), 1")
    chromium.run("""(box => {
      box.focus();
      box.value = 'min.insync.replicas';
      box.dispatchEvent(new Event('input', {bubbles: true}));
      box.dispatchEvent(new Event('keyup', {bubbles: true}));
      return 1;
    })(document.querySelector('[data-md-component=search-query]'))""")
    until = time.monotonic() + browser_kit.PATIENCE_S
    while not (found := chromium.texts(".md-search-result__item h1, .md-search-result__item h2")):
        assert time.monotonic() < until, "the search finds nothing"
        time.sleep(0.1)
    assert "Kafka settings" in found or "The scenario file" in found, found
    assert chromium.complaints == []


@pytest.mark.slow
def test_a_page_that_would_fetch_something_is_stopped_by_its_policy(site, chromium, tmp_path):
    text = (site / "glossary.html").read_text()
    planted = site / "planted.html"
    planted.write_text(
        text.replace("</article>", '<img src="https://example.org/x.png"></article>')
    )
    try:
        chromium.complaints.clear()
        chromium.open(planted)
        assert any("Content Security Policy" in line for line in chromium.complaints)
        assert list(checked.foreign_addresses(site)) == ["planted.html: https://example.org/x.png"]
    finally:
        planted.unlink()


PLANTED = {
    '<a href="other.html">x</a>': "index.html: other.html: no such file",
    '<a href="#nowhere">x</a>': "index.html: #nowhere: no such place on the page",
    '<img src="a.png">': "index.html: a.png: no such file",
    '<a href="https://kafka.apache.org">x</a><a href="#here" id="here">y</a>': None,
}


@pytest.mark.parametrize("text", PLANTED)
def test_a_link_to_nowhere_is_found(tmp_path, text):
    (tmp_path / "index.html").write_text(text)
    wanted = [PLANTED[text]] if PLANTED[text] else []
    assert list(checked.broken_links(tmp_path)) == wanted


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://unpkg.com/x"></script>'),
        ("a.html", '<link rel="stylesheet" href="//fonts.googleapis.com/css">'),
        ("a.html", '<p style="background: url(https://example.org/x.png)">'),
        ("a.css", "@import 'https://example.org/x.css';"),
        ("a.css", "p { background: url(//example.org/x.png) }"),
        ("a.svg", '<svg><style>@import url("https://example.org/x")</style></svg>'),
        ("a.js", 'load("https://unpkg.com/mermaid@11")'),
    ],
)
def test_an_address_that_would_be_loaded_from_elsewhere_is_found(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert len(list(checked.foreign_addresses(tmp_path))) == 1


def test_a_page_that_nothing_leads_to_is_found(tmp_path):
    (tmp_path / "index.html").write_text('<a href="a.html">a</a>')
    (tmp_path / "a.html").touch()
    (tmp_path / "b.html").touch()
    assert list(checked.lonely_pages(tmp_path)) == ["b.html"]
