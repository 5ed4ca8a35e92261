"""How long clients wait for their quotas, against Apache Kafka's own quota manager."""

import random
import subprocess

import pytest

from sim.protocol.quotas.client import QuotaManager
from tests.kafka.apache import HERE, java

pytestmark = pytest.mark.kafka

USERS = ("ann", "bob")
CLIENTS = ("shop", "billing", "audit")
ENTITIES = [
    (u, c) for u in ("-", "*", *USERS) for c in ("-", "*", *CLIENTS) if (u, c) != ("-", "-")
]
BURST_MAX = 10**18
"""Bursts are printed up to here; without a quota there is no bound."""


def steps_of(draw, entities):
    """Quotas come and go while clients send; on one level only, or on all of them."""
    at, steps = 5_000, []
    for _ in range(150):
        at += draw.choice((0, 3, 250, 999, 1_000, 4_000, 30_000))
        what = draw.random()
        if what < 0.15:
            steps.append(("set", *draw.choice(entities), draw.choice((1_000, 20_000, 500_000))))
        elif what < 0.22:
            steps.append(("remove", *draw.choice(entities)))
        elif what < 0.30:
            steps.append(("burst", draw.choice(USERS), draw.choice(CLIENTS)))
        else:
            value = draw.choice((1, 900, 40_000, 3_000_000))
            steps.append(("record", draw.choice(USERS), draw.choice(CLIENTS), value, at))
    return steps


def entity_of(user, client):
    parts = (("user", user), ("client-id", client))
    return tuple((kind, None if name == "*" else name) for kind, name in parts if name != "-")


def ours(samples, window, steps):
    manager = QuotaManager(samples, window * 1_000)
    quotas, said = {}, []
    for kind, user, client, *more in steps:
        if kind == "set":
            quotas[entity_of(user, client)] = float(more[0])
        elif kind == "remove":
            quotas.pop(entity_of(user, client), None)
        elif kind == "burst":
            limit = manager.burst(user, client) if manager.enabled else BURST_MAX
            said.append(min(limit, BURST_MAX))
        else:
            value, at = more
            said.append(manager.record(user, client, value, at) if manager.enabled else 0)
        manager.update(dict(quotas))
    return said


def test_clients_wait_as_long_as_kafkas_own_quota_manager_says(kafka):
    draw = random.Random(11)
    levels = (
        [e for e in ENTITIES if e[0] == "-"],
        [e for e in ENTITIES if e[1] == "-"],
        [e for e in ENTITIES if "-" not in e],
        ENTITIES,
        ENTITIES,
    )
    windows = ((11, 1), (11, 1), (2, 3), (5, 2), (11, 1))
    cases = [
        (samples, window, steps_of(draw, entities))
        for (samples, window), entities in zip(windows, levels, strict=True)
    ]
    asked = [
        f"{samples}:{window}:" + ",".join("/".join(map(str, step)) for step in steps)
        for samples, window, steps in cases
    ]
    command = java(str(HERE / "ClientQuotas.java"), *asked)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    throttled = 0
    lines = [line for line in done.stdout.splitlines() if line.startswith("case,")]
    for (samples, window, steps), line in zip(cases, lines, strict=True):
        theirs = [int(said) for said in line.split(",")[1:]]
        mine = ours(samples, window, steps)
        assert mine == theirs
        throttled += sum(said > 0 for said in theirs)
    assert throttled > 100
