"""A server as a client has it: the real command over its pipes, with the SDK's own client."""

import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from sim.errors import SimulationError
from sim.locks import check_free
from sim.scenario.run.directory import LOCK

ROOT = Path(__file__).parents[2]
TINY = """\
claim: With acks=1 a leader that crashes takes acknowledged records with it.
cluster: {brokers: 3, controllers: 1}
topics:
  orders: {partitions: 1, replication.factor: 3}
producers:
  - {name: shop, topic: orders, rate: 200/s, record.size: 100B, config: {acks: 1}}
faults:
  - {at: 1s, do: delay, between: [leader of orders-0], and: [all brokers], by: 100ms, for: 2s}
  - {at: 2s, do: crash, target: leader of orders-0, for: 2s}
run: {for: 4s, then: heal and drain, seed: 7}
expect: {lost_acked: 0}
"""
BAD = TINY.replace("{brokers: 3, ", "{broker: 3, ").replace("rate: 200/s", "rate: 200")
ENDLESS = TINY.replace("for: 4s", "for: 25min").replace("rate: 200/s", "rate: 2000/s")
TOOLS = {"run", "explain", "verdict", "explore", "validate", "catalogue_search"}


class Served:
    """A server, and calls of its client from a test that waits."""

    def __init__(self, client, portal, root):
        self.client = client
        self.portal = portal
        self.root = root

    def __call__(self, tool, /, **arguments):
        steps = []

        async def on_progress(done, total, message):
            steps.append((done, total, message))

        async def call():
            return await self.client.call_tool(tool, arguments, progress_callback=on_progress)

        found = self.portal.call(call)
        return found, steps

    def answer(self, tool, /, **arguments):
        found, _ = self(tool, **arguments)
        assert not found.is_error, found.content[0].text
        return found.structured_content

    def refusal(self, tool, /, **arguments):
        found, _ = self(tool, **arguments)
        assert found.is_error, found.structured_content
        return found.content[0].text


def parameters(*options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = ["-m", "sim", "mcp", *(str(option) for option in options)]
    return StdioServerParameters(command=sys.executable, args=words, env=environment)


@contextmanager
def serving(root, *options, mode="auto"):
    client = Client(parameters("--root", root, *options), mode=mode)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as connected:
        yield Served(connected, portal, root)


def shell(line, cwd, **options):
    program, *words = shlex.split(line)
    assert program == "logquake"
    return subprocess.run(
        [sys.executable, "-m", "sim", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def is_free(directory):
    try:
        check_free(directory / LOCK)
    except SimulationError:
        return False
    return True


def wait_for(condition, seconds=60):
    until = monotonic() + seconds
    while not condition():
        assert monotonic() < until, "it did not come"
        sleep(0.05)
