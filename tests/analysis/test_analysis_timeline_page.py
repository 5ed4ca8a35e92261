"""The page that can be scrubbed, in a real browser, without Spark: its data are made here."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from jinja2 import UndefinedError

from analysis.pages import markup, script
from analysis.report import agreement, latency, messages, page, timeline, timeline_page
from analysis.verify.durability import COUNTS
from tests.analysis import browser_kit
from tests.analysis.page_kit import EXPLAINED, HOSTILE, everything, found, small, window
from tests.analysis.synthetic import S


def page_of(findings):
    data = timeline_page.data(findings)
    explanation = EXPLAINED if findings.files.verdict else {}
    return page.page(findings, agreement.compare(findings), (), data, explanation)


def data_in(text):
    """JSON of the page's script."""
    return re.search(r'<script type="application/json" id="lq-data">(.*?)</script>', text)[1]


def written(directory, findings):
    """The page of a run; its path."""
    path = directory / "page.html"
    path.write_text(page_of(findings), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium():
    path = browser_kit.find()
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(browser_kit.NAMES)} is installed")
    with browser_kit.browser(path) as page:
        yield page


@pytest.fixture
def shown(chromium, tmp_path):
    """The small page in the browser, seen for the first time."""
    chromium.complaints.clear()
    chromium.fetched.clear()
    chromium.open(written(tmp_path, everything()))
    yield chromium
    assert chromium.complaints == []
    assert [url for url in chromium.fetched if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in chromium.fetched if url.startswith("file:")]) == 1


def view(page):
    told = page.run("({...document.getElementById('lq-timeline').dataset})")
    return {name: int(value) for name, value in told.items()}


def test_the_page_is_scrubbed_zoomed_and_sorted_in_a_real_browser(shown):
    """One visit: no complaint, nothing fetched, no hostile name obeyed."""
    assert view(shown)["cursor"] == 5 * S, "where the first fault begins"
    assert "no leader" in shown.text("#lq-state")
    shown.drag("#lq-lanes", 0.9, 0.25)
    scrubbed = view(shown)
    assert S < scrubbed["cursor"] < 4 * S
    assert (scrubbed["from"], scrubbed["to"]) == (0, 20 * S)
    assert "no leader" not in shown.text("#lq-state")
    shown.click("#lq-in")
    zoomed = view(shown)
    assert zoomed["to"] - zoomed["from"] == 10 * S
    assert zoomed["from"] <= zoomed["cursor"] <= zoomed["to"]
    shown.click("#unreadable + .scroll th:nth-child(6)")
    names = shown.texts("tr:has(td:nth-child(6):last-child) td:nth-child(2)")
    assert names == [HOSTILE, "orders-9", "orders-10"], "by what the sizes are"
    assert shown.run("document.images.length") == 0, "a hostile name is text"


LUMINANCE = """((selector) => {
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const element = document.querySelector(selector);
  let paper = element;
  const none = "rgba(0, 0, 0, 0)";
  while (paper.parentElement && getComputedStyle(paper).backgroundColor === none)
    paper = paper.parentElement;
  const ink = light(getComputedStyle(element).color);
  const ground = light(getComputedStyle(paper).backgroundColor);
  return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
})"""
"""Contrast of an element's text with what is behind it (WCAG 2, relative luminance)."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_read_first_has_contrast_on_white_and_on_black(scheme, shown):
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    shown.call("Emulation.setEmulatedMedia", features=media)
    try:
        ground = shown.run("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 24, 39)"}[scheme]
        for selector in (
            ".verdict", ".advice p", ".advice b", ".answer dt", ".answer dd", ".costs li", "nav a",
            ".glance span", ".glance .faults i", ".ticks b", "h1", "p.note", ".no", "th",
            "button", "summary", ".legend",
        ):  # fmt: skip
            assert shown.run(f"{LUMINANCE}({json.dumps(selector)})") >= 4.5, selector
    finally:
        shown.call("Emulation.setEmulatedMedia", features=[])


def test_names_that_are_no_names_stay_text_wherever_a_page_has_them():
    text = page_of(everything())
    assert json.loads(data_in(text))["faults"][0]["kind"] == HOSTILE
    assert text.count("<script") == 2, "the page's own, and its data"
    assert "<img" not in text
    assert text.count("&lt;img src=x") > 80


def test_the_answer_comes_first_then_the_timeline_and_what_needs_more_time_further_down():
    text = page_of(everything())
    chapters = ("timeline", "latency", "faults", "expectations", "durability", "judges")
    order = ['class="verdict', 'class="answer"', 'class="glance"', 'class="costs"', "<nav>"]
    order += [f'id="{name}"' for name in chapters]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    anchors = re.findall(r'<a href="#(\w+)"', text)
    assert [name for name in anchors if f'id="{name}"' not in text] == []


def test_judges_that_contradict_each_other_are_named_on_the_first_screen():
    words = "Do not trust these numbers yet"
    text = page_of(everything())
    assert text.index(words) < text.index("<nav>")
    assert words not in page_of(found(()))


def test_a_run_that_did_not_hold_has_no_green_banner_although_nothing_was_lost():
    run = everything()
    numbers = dict.fromkeys(COUNTS, 0) | {"acked": 5, "sent": 5}
    whole = replace(run, topics={"orders": numbers})
    assert 'class="verdict bad"' in page_of(whole)
    held = replace(run.files, verdict=run.files.verdict | {"held": True})
    assert 'class="verdict good"' in page_of(replace(whole, files=held))


def test_outages_of_producers_are_drawn_over_their_partitions():
    outages = timeline_page.data(everything())["outages"]
    assert outages == {f"{HOSTILE}-0": [5 * S, 8 * S]}


def test_every_section_of_a_page_has_what_was_found():
    text = re.sub(r"\s+", " ", page_of(everything()))
    for shown in (
        '<p class="verdict bad">Did not hold. 2 records were',
        '<dt>lost <b>ost</b></dt><dd>lost &lt;',
        '<div class="amber"><dt>down', '<div class="green"><dt>slow', "and 1 more, <a",
        "Besides: 2 duplicated, 2 reordered, 2 divergent",
        "The run was interrupted", "The two judges differ in 1 of", "The disks contradict 1 of 0",
        ">Expectations: 1 of 3 held</h2>", '<data value="1500.0">1.5 ms</data>',
        "<td>1,234</td>",
        '<td class="n no">2</td>', "<summary>topic ", "<summary>1 of 2 checks held while the run",
        "<summary>first examples of none</summary>", '<td class="no">bad crc</td>',
        "<summary>one more fault</summary>", 'a <span class="w">&lt;-&gt;</span> b',
        "<td>end to end</td>", "12,000</td>", "longest gap of each partition",
        '<td class="w">records-lag-max</td>', "group &lt;/script&gt;",
        "leadership of each partition", "<li>acks=1 &lt;/script&gt;",
        "<b>What to change</b> the smallest change that saves it: &lt;/script&gt;",
        "<td>acks=all &lt;/script&gt;", "how it came about</summary>",
        "logquake &lt;/script&gt;", "· seed 7 ·",
    ):  # fmt: skip
        assert shown in text, shown
    quiet = re.sub(r"\s+", " ", page_of(found(())))
    for shown in (
        "No producer sent a record.", "The disks say what both judges take from the trace: 0 last",
        "The scenario expects nothing", "There is no verdict.json", "No fault was injected.",
        "Every batch of every replica", "No data: no record was acknowledged or read.",
    ):  # fmt: skip
        assert shown in quiet, shown


def test_a_value_that_is_missing_is_an_error_and_no_empty_place():
    with pytest.raises(UndefinedError, match="runs"):
        markup.render("analysis.report", "overview.html")


def test_only_the_pages_own_script_may_run():
    text = page_of(small())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    own = script.text(script.TIMELINE)
    assert f"<script>{own}</script>" in text
    assert "default-src 'none'" in policy
    assert f"script-src '{script.digest(own)}'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1]
    assert script.digest("a") != script.digest("b")


def test_a_trace_without_messages_says_so_instead_of_drawing_none():
    findings = small(traced=False)
    assert timeline_page.data(findings)["space"] is None
    text = page_of(findings)
    assert "this trace has no messages" in text
    assert 'id="lq-space"' not in text


def test_lanes_are_in_the_order_of_their_numbers():
    spans = [("partition", f"orders-{n}", 0, S, "s", 0, 1, "d", 1) for n in (10, 9, 1)]
    tracks = timeline_page.data(found(spans))["tracks"]
    [lanes] = [track["lanes"] for track in tracks if track["name"] == "partition"]
    assert [lane["name"] for lane in lanes] == ["orders-1", "orders-9", "orders-10"]


def worst():
    """As much as the aggregates may hold, and names as long as they like."""
    lanes = [f"{'x' * 200}-{n}" for n in range(timeline.MOST_LANES)]
    end = 600 * S
    spans = [
        (track, lane, n * S, n * S + S, f"state{n}", 3, n, f"{track}{lane[-9:]}{n}" + "y" * 200, 1)
        for track in timeline.TRACKS for lane in lanes for n in range(timeline.MOST_SPANS)
    ]  # fmt: skip
    rows = 8 * latency.ROWS_PER_DECADE
    columns, heights = np.divmod(np.arange(600 * rows), rows)
    cells = pd.DataFrame({"bin": columns, "row": heights, "records": 10**6})
    bands = [(n, *(99_999_999 + k for k in range(5))) for n in range(600)]
    nodes = [f"broker-{n}" for n in range(messages.MOST_NODES)]
    sent = [
        (n % 600, n % 600 * S + 999_999, n % 600 * S + 1_099_999, nodes[n % 24], nodes[n % 7],
         f"Kind{n % 90}Request", f"rule {n % 200}", 10**6)
        for n in range(messages.MOST)
    ]  # fmt: skip
    faults = [window(n, "k" * 300, n * S, n * S + S, "r" * 999) for n in range(900)]
    return found(spans, cells, bands, sent, nodes, end_us=end, faults=faults)


def test_the_pages_data_are_bounded_whatever_the_run_was():
    """Both latencies at their worst, too, although the second is empty here."""
    data = timeline_page.data(worst())
    latencies = json.dumps(data["latency"], separators=(",", ":"))
    size = len(data_in(page_of(worst()))) + len(latencies)
    assert 2_000_000 < size < timeline_page.MOST_BYTES


@pytest.mark.slow
def test_every_way_to_zoom_and_scrub(shown):
    box = shown.box("#lq-lanes")
    x, y = box["x"] + box["width"] / 2, box["y"] + 40
    shown.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300, modifiers=2)
    shown.settle()
    wheeled = view(shown)
    assert wheeled["to"] - wheeled["from"] < 12 * S
    shown.click("#lq-all")
    assert (view(shown)["from"], view(shown)["to"]) == (0, 20 * S)
    shown.mouse("mouseWheel", x, y, deltaX=0, deltaY=-50)
    assert view(shown)["to"] == 20 * S, "a wheel without Ctrl turns the page"
    shown.drag("#lq-overview", 0.5, 0.8)
    ranged = view(shown)
    assert 5 * S < ranged["from"] < ranged["to"] < 18 * S
    shown.drag("#lq-lanes", 0.4, 0.6, modifiers=8)
    assert view(shown)["to"] - view(shown)["from"] < (ranged["to"] - ranged["from"]) / 2
    shown.run("document.getElementById('lq-lanes').focus()")
    shown.key("0")
    before = view(shown)["cursor"]
    shown.key("ArrowRight")
    assert view(shown)["cursor"] == before + 100_000
    shown.key("+")
    assert view(shown)["to"] - view(shown)["from"] == 10 * S
    for _ in range(30):
        shown.key("+")
    assert view(shown)["to"] - view(shown)["from"] == 1000, "a millisecond is the least"


@pytest.mark.slow
def test_the_space_time_diagram_draws_what_was_on_its_way(shown):
    assert view(shown)["drawn"] == 80
    assert "80 of 500" in shown.text("#lq-space-note")
    shown.click('button[data-wide="10000"]')
    assert view(shown)["drawn"] == 10, "those of five milliseconds, two at a time"
    shown.click("#lq-kinds button")
    assert view(shown)["drawn"] == 5
    shown.run("document.getElementById('lq-slider').value = '15000000'")
    shown.run("document.getElementById('lq-slider').dispatchEvent(new Event('input'))")
    shown.settle()
    assert view(shown)["drawn"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(chromium, tmp_path, width):
    chromium.open(written(tmp_path, small()), width=width)
    assert chromium.run("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_the_fullest_page_is_drawn_and_zoomed(chromium, tmp_path):
    """As many spans, cells and messages as there can be."""
    chromium.complaints.clear()
    chromium.open(written(tmp_path, worst()))
    chromium.click("#lq-in")
    assert view(chromium)["to"] - view(chromium)["from"] == 300 * S
    assert view(chromium)["drawn"] > 0
    assert chromium.complaints == []


@pytest.mark.slow
def test_a_complaint_or_a_foreign_script_would_be_seen(chromium, tmp_path):
    chromium.complaints.clear()
    path = written(tmp_path, small())
    text = path.read_text()
    path.write_text(text.replace("</body>", "<script>throw new Error('planted')</script></body>"))
    chromium.open(path)
    assert any("Content Security Policy" in line for line in chromium.complaints)
    chromium.complaints.clear()
    chromium.run("setTimeout(() => { throw new Error('planted') })")
    chromium.settle()
    assert any("planted" in line for line in chromium.complaints)
    chromium.complaints.clear()
