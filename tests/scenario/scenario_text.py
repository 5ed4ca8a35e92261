"""A scenario to break, one line at a time."""

GOOD = """\
claim: Losing a rack loses no acknowledged record.
cluster:
  racks: {a: 2, b: 2, c: 2}
  config: {replica.lag.time.max.ms: 30000}
  network: {same-rack: {p50: 120us, p99: 400us}}
topics:
  orders: {partitions: 12, replication.factor: 3, config: {min.insync.replicas: 2}}
producers:
  - {name: shop, topic: orders, count: 4, rate: 5000/s, record.size: 512B, config: {linger.ms: 5}}
consumers:
  - {group: billing, topics: [orders], count: 3}
faults:
  - {at: 20s, do: power-loss, target: rack a, for: 15s}
  - {at: 40s, do: partition, between: [rack b], and: [rack c], for: 8s, one-way: true}
  - {at: 50s, do: slow-disk, target: leader of orders-0, factor: 50, for: 5s}
run: {for: 60s, then: heal and drain, seed: 7}
expect: {lost_acked: 0, produce.p99: "< 250ms"}
behaviours: {recovery: elr}
"""


def with_line(number: int, text: str) -> str:
    """The good scenario with one line replaced (from 1)."""
    lines = GOOD.splitlines()
    lines[number - 1] = text
    return "\n".join(lines) + "\n"


def changed(old: str, new: str) -> str:
    """The good scenario with one text replaced, which must be there once."""
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)
