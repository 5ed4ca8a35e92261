"""The options of ``logquake dump``: those of ``kafka-dump-log``, as arguments of a command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

MESSAGE_MAX: Final = 5_242_880
"""Default of ``--max-message-size``, in bytes; Kafka's."""

Files = Annotated[
    list[Path] | None, typer.Argument(help="Files of a log directory.", metavar="FILE ...")
]
Named = Annotated[
    str, typer.Option("--files", help="The same, with commas between.", metavar="FILE,...")
]
Deep = Annotated[bool, typer.Option("--deep-iteration", help="A line for each record.")]
PrintData = Annotated[bool, typer.Option("--print-data-log", help="Print the records' contents.")]
Offsets = Annotated[bool, typer.Option("--offsets-decoder", help="Decode __consumer_offsets.")]
Transactions = Annotated[
    bool, typer.Option("--transaction-log-decoder", help="Decode __transaction_state.")
]
Metadata = Annotated[
    bool, typer.Option("--cluster-metadata-decoder", help="Decode __cluster_metadata.")
]
ShareState = Annotated[
    bool, typer.Option("--share-group-state-decoder", help="Decode __share_group_state.")
]
RemoteMetadata = Annotated[
    bool, typer.Option("--remote-log-metadata-decoder", help="Refused: not printed.")
]
KeyDecoder = Annotated[str, typer.Option("--key-decoder-class", help="Refused: no Java classes.")]
ValueDecoder = Annotated[
    str, typer.Option("--value-decoder-class", help="Refused: no Java classes.")
]
SkipMetadata = Annotated[
    bool, typer.Option("--skip-record-metadata", help="Of records, only their contents.")
]
SanityOnly = Annotated[
    bool,
    typer.Option(
        "--index-sanity-check", help="Of indexes, only whether a broker would rebuild them."
    ),
]
VerifyOnly = Annotated[
    bool, typer.Option("--verify-index-only", help="Of indexes, only complaints.")
]
MaxBytes = Annotated[
    int | None,
    typer.Option("--max-bytes", min=0, help="How much of a file of batches is read."),
]
MaxMessageSize = Annotated[
    int,
    typer.Option("--max-message-size", min=1, help="Largest batch that an index may point to."),
]


class DumpArguments(NamedTuple):
    """Arguments of ``logquake dump``."""

    files: Sequence[Path]
    decoders: Sequence[str]
    """Names of the decoders, without ``--`` and ``-decoder``; one at most."""
    classes: Sequence[str]
    """Java classes that should decode keys or values: there are none here."""
    deep: bool
    print_data: bool
    skip_record_metadata: bool
    index_sanity_only: bool
    verify_index_only: bool
    max_bytes: int | None
    max_message_bytes: int
    as_json: bool
