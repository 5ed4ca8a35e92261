"""The server over standard input and output, and what it says of itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from sim.mcp import resources
from sim.mcp.limits import Limits
from sim.mcp.process import Commands, Slots
from sim.mcp.tools import Tools
from sim.mcp.workspace import Workspace

_INSTRUCTIONS: Final = """\
Logquake simulates an Apache Kafka cluster with its failures, and says what is lost, for how long it
is down, and how slow it gets. The same scenario with the same seed gives the same answer.

Begin with catalogue_search, or with a scenario of your own: the resource logquake://schema has its
keys, logquake://list/faults the failures, and validate says what is wrong before anything runs.
Then run; explain its directory if something was lost or down; verdict for what a cluster cannot
survive; explore to compare settings over many seeds. Read `understood` of each answer: it is what
was simulated, every default filled in. `commands` give the same answer in a shell.
"""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of ``logquake mcp``."""

    root: Path
    read: Sequence[Path]
    limits: Limits
    jobs: int


def build(options: ServerOptions) -> "MCPServer[object]":
    """The server with its tools and resources; the root directory is made."""
    server: MCPServer[object] = MCPServer(
        name="logquake",
        title="Logquake",
        description="A deterministic simulator of Apache Kafka clusters.",
        version=version("logquake"),
        instructions=f"{_INSTRUCTIONS}\n{options.limits.as_text()}",
        log_level="WARNING",
    )
    workspace = Workspace(options.root, options.read)
    commands = Commands(workspace, options.limits, Slots(options.jobs))
    tools = Tools(workspace, options.limits, commands)
    writes = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool, hints in (
        (tools.run, writes),
        (tools.explain, reads),
        (tools.verdict, writes),
        (tools.explore, writes),
        (tools.validate, writes),
        (tools.catalogue_search, reads),
    ):
        server.add_tool(tool, annotations=hints)
    resources.register(server, commands)
    return server


def serve(options: ServerOptions) -> None:
    """Serve one client until it closes standard input."""
    build(options).run("stdio")
