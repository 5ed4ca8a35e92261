"""The commands of the guide's page on clusters find what local mode finds."""

import json
import shutil
import socket

import pandas as pd
import pytest

from analysis.spark import session
from analysis.verify import survivors
from sim.errors import SimulationError
from tests.analysis.cluster_kit import cluster, commands
from tests.analysis.synthetic import Model, Outage, S, modelled

pytestmark = pytest.mark.spark
LOSS = Model(
    seconds=6,
    producers=2,
    partitions=2,
    brokers=3,
    interval_us=200_000,
    outages=(Outage(1, 2 * S, 4 * S, lost_us=250_000),),
)


@pytest.mark.slow
def test_a_cluster_finds_what_local_mode_finds(tmp_path):
    (exports, report, explore) = commands()[-1]
    here = tmp_path / "runs" / "small-s1"
    alone = tmp_path / "alone" / "small-s1"
    here.mkdir(parents=True)
    modelled(here, LOSS)
    shutil.copytree(here, alone)
    with cluster(tmp_path) as spark:
        for line in (report, explore):
            done = spark.run([exports, line])
            assert done.returncode == 0, done.stderr
        executors = spark.executors()
        local = [line.partition(" --master ")[0] for line in (report, explore)]
        local[0] = local[0].replace("runs/", "alone/")
        local[1] = local[1].replace("runs/spread", "alone/spread")
        done = spark.run(local)
        assert done.returncode == 0, done.stderr
    assert len(executors) == 4, "each command had an executor on each worker"
    assert all("-Xmx800M" in line for line in executors)
    assert told(here) == told(alone)
    assert told(here)["durability"]["records"]["lost_acked"] > 0
    tables = sorted(path.name for path in (alone / "report" / "tables").iterdir())
    assert sorted(path.name for path in (here / "report" / "tables").iterdir()) == tables
    for name in tables:
        pd.testing.assert_frame_equal(table(here, name), table(alone, name))
    rows = [tmp_path / place / "spread" / "runs.parquet" for place in ("runs", "alone")]
    assert rows[0].read_bytes() == rows[1].read_bytes()


def told(run):
    return json.loads((run / "report" / "report.json").read_text())


def table(run, name):
    """A table of a report; of survivors, whose parts come in any order, sorted."""
    found = pd.read_parquet(run / "report" / "tables" / name)
    if name != "survivors.parquet":
        return found
    found["path"] = found["path"].str.removeprefix(str(run))
    return found.sort_values(["path", "position", "base_offset"], ignore_index=True)


def test_a_master_that_is_not_there_is_told_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Nobody listens, and nobody else can.
        url = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SimulationError, match=r"no master answers .*refused"):
            session._check_master(url)
    for wrong in ("spark://host", "spark://:7077", "spark://host:port"):
        with pytest.raises(SimulationError, match="is not host:port"):
            session._check_master(wrong)
    session._check_master("local[2]")


def test_one_of_several_masters_is_enough():
    with socket.socket() as master, socket.socket() as standby:
        master.bind(("127.0.0.1", 0))
        master.listen()
        standby.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in (standby, master)]
        session._check_master(f"spark://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}")


def test_a_file_that_a_worker_does_not_see_is_told_with_what_to_do(spark, tmp_path):
    (tmp_path / "run").mkdir()
    run = modelled(tmp_path / "run", LOSS)
    found = survivors.read(spark, survivors.replicas(run))
    shutil.rmtree(run / "disks")
    with (
        pytest.raises(SimulationError, match="every worker must see the directory under this path"),
        session.explained(spark, run),
    ):
        found.count()
