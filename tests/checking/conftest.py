"""A small cluster's facts, written row by row in the vocabulary of the trace."""

from itertools import count

import numpy as np
import pytest

from sim.checking.durability import Judge
from sim.checking.invariants.registry import Watch
from sim.trace.writer import Trace


class Facts:
    """Adds rows to a trace. Time advances by one millisecond with each row."""

    def __init__(self, *, waived=None, watched=True):
        self.trace = Trace(None)
        self.watch = Watch(self.trace, waived=waived) if watched else None
        self.judge = Judge(self.trace, self.watch)
        self.t = 0
        self._crc = count(1_000)
        self.ends: dict[tuple[int, int], int] = {}
        self.crcs: dict[tuple[int, int, int], int] = {}

    def row(self, table, *values, t=None):
        self.t = self.t + 1_000 if t is None else t
        self.trace.table(table).add((self.t, *values))

    def append(self, broker, n=10, *, epoch=0, leader=None, partition=0, base=None, crc=None,
               producer=0, first=None, topic="orders"):  # fmt: skip
        """Append n records; a follower gets what the epoch's chain has at that offset."""
        base = self.ends.get((broker, partition), 0) if base is None else base
        known = self.crcs.setdefault((partition, epoch, base), next(self._crc))
        self.ends[broker, partition] = base + n
        leader = broker == 1 if leader is None else leader
        self.row("appends", broker, topic, partition, base, base + n - 1, epoch, leader, n * 100,
                 known if crc is None else crc, producer, base if first is None else first, n,
                 7, 0, base)  # fmt: skip

    def replicate(self, n=10, *, epoch=0, leader=1, brokers=(1, 2, 3), **options):
        """The leader appends, then the others."""
        for broker in sorted(brokers, key=lambda b: b != leader):
            self.append(broker, n, epoch=epoch, leader=broker == leader, **options)

    def watermark(self, hw, *, broker=1, epoch=0, end=None, in_sync=3, needed=2, lowest=None,
                  partition=0, topic="orders"):  # fmt: skip
        end = self.ends.get((broker, partition), hw) if end is None else end
        self.row("high_watermarks", broker, topic, partition, epoch, hw, end, in_sync, needed,
                 end if lowest is None else lowest)  # fmt: skip

    def follower_watermark(self, hw, *, broker=2, epoch=0, end=None, sent=None):
        end = self.ends.get((broker, 0), hw) if end is None else end
        self.row("follower_watermarks", broker, "orders", 0, epoch, hw, end,
                 hw if sent is None else sent)  # fmt: skip

    def acknowledge(self, base, last, hw, *, acks=-1, error="NONE", in_sync=3, needed=2):
        self.row(
            "acknowledgements", 1, "orders", 0, 0, acks, error, base, last, hw, in_sync, needed
        )

    def truncate(self, broker, to, *, reason="diverging_epoch", partition=0, topic="orders"):
        before = self.ends.get((broker, partition), 0)
        self.ends[broker, partition] = to
        self.row("truncations", broker, topic, partition, before, to, min(before, to), 0, reason)

    def move_start(self, broker, to, reason="retention.ms", *, before=0, partition=0):
        self.row("log_starts", broker, "orders", partition, before, to, reason)

    def remote(self, start, end, state="COPY_SEGMENT_FINISHED", *, name="a", broker=2):
        """An event of a remote segment; both offsets are inclusive."""
        self.row("remote_segments", broker, "orders", 0, name, state, start, end, "0:0", 100)

    def local(self, broker, start, to, *, log_start=0, reason="retention.bytes"):
        """A tiered replica's local log starts elsewhere."""
        self.row("local_log_starts", broker, "orders", 0, start, to, log_start, reason)

    def keys(self, first, keys, *, tombstones=(), producer=0, partition=0):
        """A producer made a batch of records with these keys."""
        self.row("record_keys", producer, "orders", partition, first, len(keys),
                 np.array(keys, np.int32), np.array(tombstones, np.int32))  # fmt: skip

    def contents(self, broker, base, last, kept, *, how="cleaned", partition=0, t=None,
                 retention_ms=1_000):  # fmt: skip
        """A cleaner left these offsets of a stretch."""
        places = np.array([offset - base for offset in kept], np.int32)
        began = self.t + 1_000 if t is None else t
        self.row("log_contents", broker, "orders", partition, base, last, places, how, began,
                 retention_ms, t=t)  # fmt: skip

    def transaction(self, number, first, last, outcome="committed", *, producer=0, pid=7,
                    partitions=(0,)):  # fmt: skip
        """A client learned how a transaction with these records ended."""
        who = (f"shop-{producer}", f"till-{producer}", number)
        for partition in partitions:
            self.row("transaction_records", *who, producer, "orders", partition, first, last)
        self.row("transaction_outcomes", *who, pid, 0, 0, outcome, "NONE", last - first + 1)

    def marker(self, *, committed=True, brokers=(1, 2, 3), pid=7, partition=0, told=True):
        """A leader appends a marker, and the others copy it."""
        offset = self.ends.get((brokers[0], partition), 0)
        if told:
            decided = "PrepareCommit" if committed else "PrepareAbort"
            self.row("transactions", 1, f"till-{pid}", pid, 0, decided, 1, 0, "end")
            self.row("markers", brokers[0], "orders", partition, offset, pid, 0, committed, 0)
        for broker in brokers:
            self.append(broker, 1, producer=-1, first=-1, partition=partition)

    def recover(self, broker, end, *, clean=False, partition=0):
        self.ends[broker, partition] = end
        self.row("recoveries", broker, "orders", partition, clean, 0, end, 0, 0, 0, 0)

    def lead(self, broker, epoch, *, role="leader", end=None, hw=0, partition_epoch=None):
        end = self.ends.get((broker, 0), 0) if end is None else end
        self.row("leadership", broker, "orders", 0, role, 1, epoch,
                 epoch if partition_epoch is None else partition_epoch, "1,2,3", end,
                 hw)  # fmt: skip

    def change(self, leader, epoch, partition_epoch, in_sync="1,2,3", *, eligible="",
               replicas="1,2,3", unclean=False, partition=0, t=None, topic="orders"):  # fmt: skip
        self.row("partition_changes", 3001, topic, partition, leader, epoch, partition_epoch,
                 in_sync, eligible, replicas, unclean, t=t)  # fmt: skip

    def broker_state(self, broker, state, epoch, *, t=None):
        self.row("broker_states", 3001, broker, state, epoch, t=t)

    def quorum(self, node, role, epoch, *, leader=-1, voted_for=-1):
        self.row("quorum", node, role, epoch, leader, voted_for, 0, 0)

    def node(self, name, state):
        self.row("node_states", name, state, 1)

    def read(self, base, last, *, consumer="c-0", hw=None, producer=0, first=None, n=None, t=None,
             partition=0):  # fmt: skip
        self.row("reads", consumer, "billing", "orders", partition, base, last, 0, producer,
                 base if first is None else first, last - base + 1 if n is None else n,
                 last + 1 if hw is None else hw, 1, t=t)  # fmt: skip

    def assign(self, consumer, generation, partitions, *, member=None):
        self.row("assignments", consumer, "billing", member or consumer, generation, partitions)

    def group(self, generation, *, state="Stable", reason="test", t=None, group="billing"):
        self.row("groups", 1, group, state, generation, 2, reason, t=t)

    def member(self, name, epoch, assigned="", *, revokes="", group="billing", t=None):
        state = "GONE" if epoch < 0 else "UNREVOKED_PARTITIONS" if revokes else "STABLE"
        row = (1, group, f"id-{name}", name, epoch, state, assigned, revokes)
        self.row("group_members", *row, t=t)

    def share(self, start, *, epoch=0, reason="moved", limit=5):
        """Where a share partition of the group jobs begins."""
        self.row("share_partitions", 1, "jobs", "orders", 0, epoch, start, start, limit, reason)

    def state(self, first, last, state, reason, *, count=1, consumer="w-0", epoch=0):
        """Records of a share partition came into another state."""
        self.row("share_states", 1, "jobs", "orders", 0, epoch, first, last, state, count, consumer,
                 reason)  # fmt: skip

    def acquire(self, first, last, **more):
        self.state(first, last, "ACQUIRED", "acquired", **more)

    def renew(self, first, last, until, *, consumer="w-0", epoch=0, t=None):
        self.row("share_renewals", 1, "jobs", "orders", 0, epoch, first, last, consumer, until, t=t)

    def commit(self, generation, *, consumer="c-0", error="NONE", t=None, group="billing"):
        self.row("commits", consumer, group, "orders", 0, 5, generation, error, t=t)

    def told(self, first, n=10, outcome="ok", *, producer=0, partition=0, topic="orders",
             latency=None, t=None, offset=None):  # fmt: skip
        """A producer learned the outcome of records first to first + n - 1."""
        latency = [5_000] * n if latency is None else latency
        offset = first if offset is None else offset
        self.row("client_batches", f"shop-{producer}", producer, topic, partition, first, n,
                 n * 100, -1, self.t, self.t, self.t, 1, outcome, "NONE", offset, 1, 1, latency,
                 t=t)  # fmt: skip

    def coordinate(self, state, *, epoch=0, coordinator=3):
        self.row("transactions", 1, "till", 70, epoch, state, 1, coordinator, "test")

    def pay(self, base, n=4, *, epoch=0, sequence=0):
        """A transactional producer's batch in a partition of its own."""
        self.row("appends", 1, "pay", 0, base, base + n - 1, 0, True, n * 100, 70 + base, -1, -1, n,
                 70, epoch, sequence)  # fmt: skip

    def mark(self, offset, *, epoch, committed=True, coordinator=3):
        """The marker, as a batch and as what it says."""
        self.row("markers", 1, "pay", 0, offset, 70, epoch, committed, coordinator)
        self.row("appends", 1, "pay", 0, offset, offset, 0, True, 78, 99 + offset, -1, -1, 1, 70,
                 epoch, -1)  # fmt: skip

    def stable(self, offset, hw, *, leader_epoch=0):
        self.row("stable_offsets", 1, "pay", 0, leader_epoch, offset, hw)

    def checked(self, name):
        return self.report(name).checked

    def report(self, name):
        return next(report for report in self.watch.reports() if report.name == name)

    def verdict(self):
        return self.judge.verdict(self.t)

    def records(self):
        return self.verdict()["records"]


@pytest.fixture
def facts():
    return Facts()


@pytest.fixture
def make_facts():
    return Facts


@pytest.fixture(scope="module")
def facts_class():
    return Facts
