"""Commands about files of brokers, about this machine, and about questions without a run."""

# ruff: noqa: PLC0415 - commands import what they need when they are called

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sim.cli.commands import dump_options as flags
from sim.cli.commands.app import AsJson, Sets, app


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
