"""What quotas measure, against the rates of Apache Kafka's own metrics."""

import random
import subprocess

import pytest

from sim.protocol.quotas.rate import SampledRate
from tests.kafka.apache import HERE, java

pytestmark = pytest.mark.kafka

STEPS = (0, 3, 250, 999, 1_000, 1_001, 4_000, 11_000, 30_000)


def test_rates_are_those_of_kafkas_own_metrics(kafka):
    draw = random.Random(3)
    cases = []
    for samples, window in ((11, 1_000), (2, 1_000), (1, 250), (5, 3_000)):
        at, events = 5_000, []
        for _ in range(120):
            at += draw.choice(STEPS)
            events.append((at, draw.choice((1, 700, 1_000_000, -700))))
        cases.append((samples, window, events))
    asked = [f"{s}:{w}:" + ",".join(f"{at}/{v}" for at, v in events) for s, w, events in cases]
    command = java(str(HERE / "Rates.java"), *asked)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for (samples, window, events), line in zip(cases, done.stdout.split(), strict=True):
        rate = SampledRate(samples, window)
        ours = []
        for at, value in events:
            rate.record(value, at)
            ours.append((rate.simple_window_ms(at), round(rate.simple_rate(at) * 1e6)))
            ours.append((rate.full_window_ms(at), round(rate.full_rate(at) * 1e6)))
        theirs = [tuple(map(int, said.split("/"))) for said in line.split(",") if said]
        assert [w for w, _ in ours] == [w for w, _ in theirs]
        assert all(abs(a - b) <= 1 for (_, a), (_, b) in zip(ours, theirs, strict=True))
