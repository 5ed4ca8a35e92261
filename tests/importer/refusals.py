"""Imports that reach no cluster, each in a process of its own: kafka-python leaves sockets open."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPATIENT = """
from sim.importer.live import connection
connection.BOOTSTRAP_MS = 2_000
from sim.cli import main
main()
"""


def refused(*words):
    """The message of an import that gives up after two seconds."""
    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT, "import", *map(str, words)],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1, "nothing of kafka-python's log"
    return done.stderr
