"""Resources: the scenario language as JSON Schema and lists, and the documents where they are."""

from functools import partial
from json import dumps
from pathlib import Path
from typing import Final

from anyio.to_thread import run_sync
from mcp.server.mcpserver import MCPServer

import sim
from sim.mcp.process import Commands
from sim.progress import Step
from sim.scenario.schema.json_schema import json_schema

_DOCS: Final = Path(sim.__file__).parents[1] / "docs"
"""In a checkout; an installed package has none."""

_DOCUMENTS: Final = {
    "scenario": "The scenario language: clusters, workloads, faults, expectations.",
    "results": "Files of a run, the three numbers, every number of a verdict.",
    "fidelity": "What is simulated exactly, approximately, and not at all.",
    "catalogue": "Published failures: outcomes reported and found.",
    "glossary": "Words.",
}
_LISTS: Final = {
    "faults": "Kinds of fault: keys, proof of effect, promises of Kafka that they may break.",
    "settings": "Kafka's settings with defaults, and whether they are simulated.",
    "checks": "Invariants, and the numbers that a scenario may expect.",
    "behaviours": "Historic behaviours that a scenario may choose.",
}


def register(server: "MCPServer[object]", commands: Commands) -> None:
    """Add every resource to the server."""

    @server.resource(
        "logquake://schema",
        name="schema",
        description="JSON Schema of scenario files.",
        mime_type="application/json",
    )
    async def schema() -> str:
        return await run_sync(lambda: dumps(json_schema(), indent=1))

    for name, text in _LISTS.items():
        server.resource(
            f"logquake://list/{name}", name=name, description=text, mime_type="application/json"
        )(partial(_list, commands, name))
    for name, text in _DOCUMENTS.items():
        if (_DOCS / f"{name}.md").is_file():
            server.resource(
                f"logquake://docs/{name}", name=name, description=text, mime_type="text/markdown"
            )(partial(_document, name))


async def _list(commands: Commands, subject: str) -> str:
    rows = await commands.answer(["list", subject], _silent, places=0)
    return dumps(rows, indent=1)


async def _document(name: str) -> str:
    return await run_sync((_DOCS / f"{name}.md").read_text, "utf-8")


async def _silent(_step: Step) -> None:
    """Ignores progress."""
