"""The speed beside a real Kafka's: what its own tool says is read, or it is an error."""

import sys
from dataclasses import dataclass

import pytest

from sim.errors import SimulationError
from tools import measure_real

SAID = """9990 records sent, 1998.0 records/sec (0.19 MB/sec), 12.1 ms avg latency, 300 ms max latency.
100000 records sent, 90000.1 records/sec (8.58 MB/sec), 250.30 ms avg latency, 500.00 ms max latency, 240 ms 50th, 400 ms 95th, 450 ms 99th, 490 ms 99.9th.
{sent} steady state records sent, 123456.7 records/sec (11.77 MB/sec), 250.30 ms avg latency, 500.00 ms max latency, 240 ms 50th, 400 ms 95th, 450 ms 99th, 490 ms 99.9th.
"""  # noqa: E501 - as the tool prints it


@dataclass
class SaysOf:
    """A cluster whose tool prints a text."""

    text: str
    code: int = 0
    bootstrap: str = "broker-1:9092"

    def tool(self, main, *arguments):
        """A program that checks its own arguments, and prints."""
        assert main == measure_real.PRODUCERS
        assert {"acks=all", "batch.size=11000", "--throughput"} <= {*arguments}
        return [sys.executable, "-c", f"import sys; print({self.text!r}); sys.exit({self.code})"]


def test_the_rate_is_that_of_a_warm_client():
    assert measure_real.load(SaysOf(SAID.format(sent=50_000)), "bench", 100_000) == 123456.7


@pytest.mark.parametrize(
    "said",
    [SaysOf(SAID.format(sent=49_999)), SaysOf(SAID.format(sent=50_000), code=1), SaysOf("")],
    ids=["some records missing", "failed", "silent"],
)
def test_a_load_that_did_not_send_every_record_is_an_error(said):
    with pytest.raises(SimulationError, match="the load of the real cluster failed"):
        measure_real.load(said, "bench", 100_000)


def test_both_sides_close_a_batch_behind_its_hundredth_record():
    config = measure_real.SCENARIO
    for setting in measure_real.CONFIG:
        name, value = setting.split("=")
        assert name == "acks" or f"{name}: {value}" in config
    assert f"record.size: {measure_real.RECORD_BYTES}B" in config
