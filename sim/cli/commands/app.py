"""The program, and options that several commands have."""

from typing import Annotated

import typer

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
