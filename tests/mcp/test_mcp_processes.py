"""``logquake mcp``: long calls, limits, the pipes, and the end of processes."""

import json
import signal
import subprocess

import anyio
import pytest

from sim.mcp.workspace import Workspace
from tests.mcp.served import BAD, ENDLESS, TINY, is_free, parameters, serving, wait_for

# --- long calls -------------------------------------------------------------------------------


def run_until(served, when, tool, /, **arguments):
    """Call a tool, and cancel the call as soon as its progress fulfils the condition."""

    async def call():
        async def on_progress(_done, _total, message):
            if when(message):
                scope.cancel()

        with anyio.CancelScope() as scope:
            await served.client.call_tool(tool, arguments, progress_callback=on_progress)
        return scope.cancelled_caught

    return served.portal.call(call)


def test_a_cancelled_run_ends_and_leaves_a_readable_directory(server):
    assert run_until(server, lambda m: m.startswith("run,"), "run", scenario=ENDLESS, name="long")
    (directory,) = server.root.glob("long-*-s7")
    wait_for(lambda: is_free(directory), 20)
    assert json.loads((directory / "run.json").read_text())["complete"] is False
    assert server.answer("run", scenario=TINY, name="after")["lost"]


def test_a_second_run_waits_for_the_first_and_other_tools_do_not(server):
    async def both():
        waiting, seen = anyio.Event(), []

        async def note(_done, _total, message):
            if message.startswith("run,"):
                running.set()

        async def note_wait(_done, _total, message):
            seen.append(message)
            waiting.set()

        running = anyio.Event()
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                first = {"scenario": ENDLESS, "name": "first"}
                second = {"scenario": TINY, "name": "second"}
                call = server.client.call_tool
                group.start_soon(lambda: call("run", first, progress_callback=note))
                await running.wait()
                group.start_soon(lambda: call("run", second, progress_callback=note_wait))
                await waiting.wait()
                found = await call("validate", {"scenario": TINY})
                group.cancel_scope.cancel()
        return found, seen

    found, seen = server.portal.call(both)
    assert found.structured_content["ok"]
    assert seen[0] == "waiting for another call to end"
    (directory,) = server.root.glob("first-*-s7")
    wait_for(lambda: is_free(directory), 20)
    assert not list(server.root.glob("second-*"))


@pytest.mark.slow
def test_limits_hold_before_a_run_and_while_it_runs(tmp_path):
    options = ("--max-records", 4_000_000, "--max-simulated", "30m", "--max-time", "12s")
    with serving(tmp_path / "root", *options) as served:
        more = served.refusal("run", scenario=ENDLESS.replace("2000/s", "4000/s"))
        assert "6,000,000 records in all; allowed: at most 4,000,000 (--max-records" in more
        longer = served.refusal("run", scenario=TINY, changes=["run.for=31min"])
        assert "1860 s of simulated time; allowed: at most 1800 s (--max-simulated" in longer
        assert served.refusal("run", scenario=ENDLESS).startswith("stopped after 12 s of real time")
        (directory,) = served.root.glob("scenario-*-s7")
        assert json.loads((directory / "run.json").read_text())["complete"] is False
    with serving(tmp_path / "root", "--max-disk", "4KiB") as served:
        full = served.refusal("run", scenario=TINY)
        assert "allowed: at most 4 KiB (--max-disk" in full


def test_a_directory_is_given_to_one_call_only_although_it_is_not_made_yet(tmp_path):
    workspace = Workspace(tmp_path)
    (tmp_path / "a").mkdir()
    assert [workspace.free("a").name for _ in range(3)] == ["a-2", "a-3", "a-4"]


# --- the pipes --------------------------------------------------------------------------------


def message(method, number=None, **params):
    envelope = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(envelope if number is None else {**envelope, "id": number}) + "\n"


def begun(root):
    """A server of which the test holds the pipes, after the handshake."""
    given = parameters("--root", root)
    server = subprocess.Popen(
        [given.command, *given.args],
        env=given.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    send(server, message("initialize", 1, **hello))
    assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "logquake"
    send(server, message("notifications/initialized"))
    return server


def send(server, text):
    server.stdin.write(text)
    server.stdin.flush()


def started_run(server, root):
    """Let it run what takes minutes; the directory of the run, once it runs."""
    call = {"name": "run", "arguments": {"scenario": ENDLESS}, "_meta": {"progressToken": 5}}
    send(server, message("tools/call", 2, **call))
    while "run, " not in json.loads(server.stdout.readline())["params"]["message"]:
        pass
    (directory,) = root.glob("scenario-*-s7")
    return directory


def test_standard_output_carries_the_protocol_alone(tmp_path):
    server = begun(tmp_path)
    calls = [("run", {"scenario": TINY}), ("run", {"scenario": BAD}), ("nothing", {})]
    for number, (name, arguments) in enumerate(calls, 2):
        meta = {"progressToken": number}
        send(server, message("tools/call", number, name=name, arguments=arguments, _meta=meta))
    send(server, "no message\n")
    lines = []
    while not {line.get("id") for line in lines} >= {2, 3, 4}:
        lines.append(json.loads(server.stdout.readline()))
    rest, errors = server.communicate(timeout=60)
    lines += [json.loads(line) for line in rest.splitlines()]
    assert all(line["jsonrpc"] == "2.0" for line in lines)
    results = {line["id"]: line for line in lines if line.get("id")}
    assert not results[2]["result"].get("isError")
    assert results[3]["result"]["isError"]
    assert server.returncode == 0, errors


@pytest.mark.parametrize(
    "end", ["kill", *(pytest.param(end, marks=pytest.mark.slow) for end in ("terminate", "close"))]
)
def test_a_run_ends_with_its_server(tmp_path, end):
    server = begun(tmp_path)
    directory = started_run(server, tmp_path)
    if end == "close":
        server.stdin.close()
    else:
        getattr(server, end)()
    code = server.wait(30)
    server.stdout.close()
    server.stderr.close()
    if end != "close":
        server.stdin.close()
    assert code == {"kill": -signal.SIGKILL, "terminate": 130, "close": 0}[end]
    wait_for(lambda: is_free(directory), 15)
    card = json.loads((directory / "run.json").read_text())
    assert card["complete"] is False
