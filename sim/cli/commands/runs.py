"""Commands that make runs, and that look at them."""

# ruff: noqa: PLC0415 - commands import what they need when they are called

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.commands import run_options as running
from sim.cli.commands.app import AsJson, Sets, app
from sim.cli.commands.init_options import Acks, Fails, InitOptions


@app.command()
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE")] = Path("scenario.yaml"),
    *,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="An example; see `logquake list scenarios`."),
    ] = None,
    brokers: Annotated[int | None, typer.Option(help="Number of brokers.")] = None,
    zones: Annotated[int, typer.Option(help="Availability zones they are in.")] = 1,
    acks: Annotated[Acks | None, typer.Option(help="acks of the producers.")] = None,
    fails: Annotated[Fails | None, typer.Option(help="What fails after 20 s.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a commented scenario to begin with: from three answers, or from an example."""
    from sim.cli.init import init_command

    init_command(file, InitOptions(source, brokers, zones, acks, fails, force))


@app.command()
def run(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO")],
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of run.seed.")] = None,
    set_: Sets = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; default runs/SCENARIO-sSEED.")
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier run there.")] = False,
    report: running.Report = False,
    trace: running.Trace = running.Level.DETAIL,
    keep: running.Kept = running.Keep.ALL,
    estimate: running.Estimate = False,
    no_cache: running.NoCache = False,
    no_space_check: running.NoSpaceCheck = False,
    json: AsJson = False,
) -> None:
    """Run a scenario and judge it, or say beforehand what that takes."""
    options = running.RunOptions(
        seed, tuple(set_ or ()), out, force, report, trace.value, keep.value, no_space_check, json
    )
    if estimate:
        from sim.cli.measure import estimate_command

        estimate_command(scenario, options, refresh=no_cache)
        return
    from sim.cli.run import run_command

    run_command(scenario, options)


@app.command()
def rehearse(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO")],
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of run.seed.")] = None,
    set_: Sets = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write; default runs/SCENARIO-sSEED-real, numbered if several."),
    ] = None,
    kafka: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="An unpacked Kafka; default: Maven brings the release."),
    ] = None,
    scale: Annotated[float, typer.Option(help="Of the producers' rates, up to 1.")] = 1.0,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Rehearsals, one by one.")] = 1,
    warm_up: Annotated[
        str, typer.Option(metavar="TIME", help="Load before zero, so that code is compiled.")
    ] = "8s",
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier run there.")] = False,
    json: AsJson = False,
) -> None:
    """Run a scenario on a real Apache Kafka, as processes of this machine, and judge it."""
    from sim.cli.rehearse import RehearseOptions, rehearse_command

    options = RehearseOptions(
        seed, tuple(set_ or ()), out, force, kafka, scale, repeat, warm_up, json
    )
    rehearse_command(scenario, options)


@app.command()
def calibrate(
    kafka: Annotated[
        str, typer.Option(metavar="VERSION", help="Release that is started, such as 4.3 or 4.3.1.")
    ] = "4.3",
    kafka_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="An unpacked Kafka; default: Maven brings the release."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("runs/calibration"),
    seconds: Annotated[int, typer.Option(help="Length of each load, 2 to 30.")] = 4,
    source: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Fit what an earlier calibration measured, and start nothing; repeatable.",
        ),
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Measure a cluster that runs already."),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(metavar="NAME", help="A topic of it that is for this alone.")
    ] = None,
    *,
    yes_produce: Annotated[
        bool, typer.Option("--yes-produce", help="Do write records to that topic.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier calibration there.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Measure a real cluster with small loads, and fit a preset of hardware to it."""
    from sim.cli.calibrate import CalibrateOptions, calibrate_command

    calibrate_command(
        CalibrateOptions(
            kafka=kafka,
            unpacked=kafka_dir,
            out=out,
            force=force,
            seconds=seconds,
            kept=tuple(source or ()),
            servers=bootstrap_servers,
            topic=topic,
            yes_produce=yes_produce,
            as_json=json,
        )
    )


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Directories of runs and of rehearsals.", metavar="RUN_DIR ..."),
    ],
    against: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A run of the reference, of any kind; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write compare.html and compare.json there.")
    ] = None,
    time_share: Annotated[float, typer.Option(help="Allowed share of a time's median.")] = 0.2,
    time_floor: Annotated[float, typer.Option(help="Allowed anyway, in seconds.")] = 0.3,
    latency_factor: Annotated[float, typer.Option(help="Allowed factor of a latency.")] = 1.5,
    records_factor: Annotated[float, typer.Option(help="Allowed factor of lost records.")] = 2.0,
    *,
    json: AsJson = False,
) -> None:
    """Compare simulated runs with rehearsals on a real Kafka, number by number."""
    from sim.cli.sides.compare import CompareOptions, compare_command

    factors = (time_share, time_floor, latency_factor, records_factor)
    compare_command(runs, CompareOptions(tuple(against or ()), out, *factors, json))


@app.command()
def check(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Scenario files, or directories of them.", metavar="PATH ..."),
    ],
    seeds: Annotated[
        str, typer.Option(help="Such as 1..20 or 3,7; default: each file's own.")
    ] = "",
    jobs: Annotated[int, typer.Option(min=0, help="Processes; default: one for each core.")] = 0,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML there.")] = None,
    summary: Annotated[
        Path | None,
        typer.Option(help="Append Markdown there.", envvar="GITHUB_STEP_SUMMARY"),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Compare with what runs measured then.")
    ] = None,
    *,
    update: Annotated[bool, typer.Option("--update", help="Write the baseline again.")] = False,
    golden: Annotated[
        bool, typer.Option("--golden", help="A trace that moved since the baseline is a failure.")
    ] = False,
    twice: Annotated[
        bool, typer.Option("--twice", help="Each run in two processes, which must agree.")
    ] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first run that does not hold.")
    ] = False,
    keep: running.KeptOfMany = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Run everything again, and remember nothing.")
    ] = False,
    annotate: Annotated[
        bool, typer.Option(help="Print GitHub's annotations.", envvar="GITHUB_ACTIONS")
    ] = False,
    json: AsJson = False,
) -> None:
    """Run many scenarios with many seeds and say what did not hold, or what got worse."""
    from sim.cli.check import CheckOptions, check_command

    check_command(
        paths,
        CheckOptions(
            seeds=seeds,
            jobs=jobs,
            junit=junit,
            summary=summary,
            annotate=annotate,
            baseline=baseline,
            update=update,
            golden=golden,
            twice=twice,
            fail_fast=fail_fast,
            keep=None if keep is None else keep.value,
            use_cache=not no_cache,
            as_json=json,
        ),
    )


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.", metavar="RUN_DIR ...")],
    master: Annotated[
        str | None, typer.Option(help="Spark's master URL; default: this machine's cores.")
    ] = None,
    *,
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="Also keep Java's classes (190 MB, once): later reports take 4 s less.",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Make the report of one run or several, with Spark."""
    from sim.cli.report import report_command

    report_command(runs, master, prepares=prepare, as_json=json)


@app.command()
def export(
    run_dir: Annotated[Path, typer.Argument(help="What a run left.", metavar="RUN_DIR")],
    perfetto: Annotated[
        Path, typer.Option(help="Write a trace for Perfetto or chrome://tracing there.")
    ],
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier file.")] = False,
    json: AsJson = False,
) -> None:
    """Write a run as a file for another tool: what each node did, faults, leaders, requests."""
    from sim.cli.export import export_command

    export_command(run_dir, perfetto, force=force, as_json=json)


@app.command()
def explore(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO")],
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=A,B,C", help="A key or Kafka setting and its values; repeatable."
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(help="How many, from 1 on; or a range: 1..50.")] = "20",
    set_: Sets = None,
    outage: Annotated[str, typer.Option(help="A longer time without service is an outage.")] = "1s",
    master: Annotated[
        str | None, typer.Option(help="Spark's master URL; default: this machine's cores.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; default runs/SCENARIO-explore.")
    ] = None,
    *,
    json: AsJson = False,
) -> None:
    """Compare configurations over the same seeds, with Spark; a stopped sweep is resumed."""
    from sim.cli.explore import ExploreOptions, explore_command

    options = ExploreOptions(tuple(vary or ()), seeds, tuple(set_ or ()), outage, master, out, json)
    explore_command(scenario, options)


@app.command()
def explain(
    run_dir: Annotated[Path, typer.Argument(help="What a run left.", metavar="RUN_DIR")],
    record: Annotated[
        str,
        typer.Argument(
            help="PRODUCER:TOPIC-PARTITION:NUMBER or TOPIC-PARTITION@OFFSET; default: the first "
            "thing that went wrong.",
            metavar="[RECORD]",
        ),
    ] = "",
    *,
    rerun: Annotated[
        bool, typer.Option(help="Run the seed again to find the smallest change that helps.")
    ] = True,
    json: AsJson = False,
) -> None:
    """Explain what became of a record, why, and which smallest change would have saved it."""
    from sim.cli.explain import explain_command

    explain_command(run_dir, record, rerun=rerun, as_json=json)
