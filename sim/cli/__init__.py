"""The command ``logquake``.

Each command imports what it needs when it is called, so that ``--help`` and short answers come at
once, and ``run`` never waits for Spark. Each command's work is in its own module; here are only its
words.
"""

# ruff: noqa: PLC0415 - commands import what they need when they are called

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sim.cli import dump_options as flags
from sim.cli import run_options as running
from sim.cli.init_options import Acks, Fails, InitOptions
from sim.cli.serving import mcp

app = typer.Typer(
    name="logquake",
    help="A deterministic simulator of Apache Kafka clusters that writes real Kafka segment files.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario; repeatable."),
]


class ListSubject(StrEnum):
    """Subjects of ``list``."""

    FAULTS = "faults"
    SETTINGS = "settings"
    CHECKS = "checks"
    BEHAVIOURS = "behaviours"
    HARDWARE = "hardware"
    SCENARIOS = "scenarios"


def _say_version(is_requested: bool) -> None:  # noqa: FBT001 - typer gives the option's value
    from importlib.metadata import version

    from sim.scenario.behaviours.versions import VERSIONS

    if is_requested:
        typer.echo(
            f"logquake {version('logquake')}, simulates Kafka {VERSIONS[0]} to {VERSIONS[-1]}"
        )
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_say_version, is_eager=True
        ),
    ] = False,
) -> None:
    from sim.cli.screen import let_streams_degrade

    let_streams_degrade()


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
    json: AsJson = False,
) -> None:
    """Make the report of one run or several, with Spark."""
    from sim.cli.run import report_command

    report_command(runs, master, as_json=json)


@app.command()
def export(
    run_dir: Annotated[Path, typer.Argument(help="What a run left.", metavar="RUN_DIR")],
    perfetto: Annotated[
        Path, typer.Option(help="Write a trace for Perfetto or chrome://tracing there.")
    ],
    master: Annotated[
        str | None, typer.Option(help="Spark's master URL; default: this machine's cores.")
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier file.")] = False,
    json: AsJson = False,
) -> None:
    """Write a run as a file for another tool: what each node did, faults, leaders, requests."""
    from sim.cli.export import export_command

    export_command(run_dir, perfetto, master, force=force, as_json=json)


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


@app.command()
def verdict(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO")],
    seeds: Annotated[str, typer.Option(help="Such as 1..3 or 3,7.")] = "1..3",
    budget: Annotated[str, typer.Option(help="Real time it may take, as in 90s or 1h.")] = "5m",
    jobs: Annotated[int, typer.Option(min=0, help="Processes; default: one for each core.")] = 0,
    set_: Sets = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; default runs/SCENARIO-verdict.")
    ] = None,
    *,
    keep: running.KeptOfMany = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Run everything again, and remember nothing.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Try every single fault on a cluster and say in sentences what it loses, and for how long."""
    from sim.cli.verdict import VerdictOptions, verdict_command

    options = VerdictOptions(
        seeds, budget, jobs, tuple(set_ or ()), out, None if keep is None else keep.value,
        not no_cache, json,
    )  # fmt: skip
    verdict_command(scenario, options)


@app.command(name="import")
def import_(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="server.properties, a producer's properties, what kafka-topics --describe and "
            "kafka-configs --describe printed.",
            metavar="[FILE ...]",
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(help="Ask a running cluster; it is only read.", metavar="HOST:PORT,..."),
    ] = None,
    command_config: Annotated[
        Path | None, typer.Option(help="A client's properties, for TLS and SASL there.")
    ] = None,
    for_: Annotated[
        str | None, typer.Option("--for", help="How long its load is measured (60s).")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Load of topics of which it is not known; 100/s with files.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; default: standard output.")
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace the file there.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 2 if anything cannot be simulated.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Build a scenario from a running cluster, or from its files; what is left out is listed."""
    from sim.cli.importing import ImportOptions, import_command

    options = ImportOptions(rate, out, force, strict, json, bootstrap, command_config, for_)
    import_command(files or [], options)


@app.command()
def diff(
    first: Annotated[Path, typer.Argument(metavar="RUN_DIR")],
    second: Annotated[Path, typer.Argument(metavar="RUN_DIR")],
    *,
    as_json: AsJson = False,
) -> None:
    """Compare two runs: settings, lost, down and slow, and the first row in which they part."""
    from sim.cli.diff import diff_command

    diff_command(first, second, as_data=as_json)


@app.command()
def validate(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Scenario files or directories of them.", metavar="PATH ..."),
    ],
    set_: Sets = None,
    *,
    show: Annotated[bool, typer.Option("--show", help="Print each with all its values.")] = False,
    json: AsJson = False,
) -> None:
    """Check scenario files without running them."""
    from sim.cli.scenarios import validate_command

    validate_command(paths, tuple(set_ or ()), shows=show, as_json=json)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from sim.cli.scenarios import schema_command

    schema_command()


@app.command(name="list")
def list_(subject: ListSubject, *, json: AsJson = False) -> None:
    """List what is known: faults, Kafka settings, checks, behaviours, hardware, scenarios."""
    from sim.cli.lists import list_command

    list_command(subject.value, as_json=json)


@app.command()
def dump(
    files: flags.Files = None,
    *,
    named: flags.Named = "",
    deep: flags.Deep = False,
    print_data: flags.PrintData = False,
    offsets: flags.Offsets = False,
    transactions: flags.Transactions = False,
    metadata: flags.Metadata = False,
    share_state: flags.ShareState = False,
    remote_metadata: flags.RemoteMetadata = False,
    key_decoder: flags.KeyDecoder = "",
    value_decoder: flags.ValueDecoder = "",
    skip_metadata: flags.SkipMetadata = False,
    sanity_only: flags.SanityOnly = False,
    verify_only: flags.VerifyOnly = False,
    max_bytes: flags.MaxBytes = None,
    max_message_size: flags.MaxMessageSize = flags.MESSAGE_MAX,
    json: AsJson = False,
) -> None:
    """Print segments, indexes, snapshots and checkpoints, as kafka-dump-log does.

    Complaints come on standard error after all files, in the words of Kafka's tool, and do not
    change the exit code, as there; an index that cannot be held against its log does.
    """
    from sim.cli.files import dump_command

    decoders = {
        "offsets": offsets,
        "transaction-log": transactions,
        "cluster-metadata": metadata,
        "share-group-state": share_state,
        "remote-log-metadata": remote_metadata,
    }
    dump_command(
        flags.DumpArguments(
            files=(*(files or ()), *(Path(name) for name in named.split(",") if name)),
            decoders=tuple(name for name, is_set in decoders.items() if is_set),
            classes=tuple(name for name in (key_decoder, value_decoder) if name),
            deep=deep,
            print_data=print_data,
            skip_record_metadata=skip_metadata,
            index_sanity_only=sanity_only,
            verify_index_only=verify_only,
            max_bytes=max_bytes,
            max_message_bytes=max_message_size,
            as_json=json,
        )
    )


@app.command()
def doctor(
    directory: Annotated[
        Path | None,
        typer.Argument(help="A log directory, or all disks of a run.", metavar="[DIR]"),
    ] = None,
    *,
    json: AsJson = False,
) -> None:
    """Check this machine's Python, Java, libraries and disk space, or log directories."""
    from sim.cli.files import doctor_command

    doctor_command(directory, as_json=json)


class Study(StrEnum):
    """Studies, which need no run."""

    FAILOVER = "failover"
    SHUTDOWN = "shutdown"
    YEAR = "year"


@app.command()
def study(
    subject: Annotated[
        Study,
        typer.Argument(
            help="failover: ZooKeeper against KRaft; shutdown: Kafka 1.0 against 1.1; "
            "year: failing components.",
            metavar="SUBJECT",
        ),
    ],
    scenario: Annotated[
        Path | None, typer.Argument(help="For year: a scenario file.", metavar="[SCENARIO]")
    ] = None,
    partitions: Annotated[
        str,
        typer.Option(
            help="For failover and shutdown: sizes of the cluster, separated by commas; "
            "default: those published."
        ),
    ] = "",
    samples: Annotated[
        int, typer.Option(min=2, max=10_000_000, help="For year: how many are sampled.")
    ] = 5_000,
    set_: Sets = None,
    *,
    json: AsJson = False,
) -> None:
    """Answer a question without a run: the control plane's, or how rare coincidences are."""
    from sim.cli.study import StudyOptions, study_command

    options = StudyOptions(scenario, partitions, samples, tuple(set_ or ()), json)
    study_command(subject.value, options)


@app.command()
def bench(*, json: AsJson = False) -> None:
    """Measure this machine: batches, trace rows and simulated seconds per second."""
    from sim.cli.measure import bench_command

    bench_command(as_json=json)


app.command()(mcp)


def main() -> None:
    """Entry point of ``logquake`` and ``python -m sim``."""
    from sim.lifetime import interrupt_by_signals

    interrupt_by_signals()
    try:
        app(prog_name="logquake")
    except KeyboardInterrupt:
        # It came before a command could take it, or after: nothing but the code is owed.
        raise SystemExit(130) from None
