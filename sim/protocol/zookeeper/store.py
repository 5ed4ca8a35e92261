"""Durable state of a ZooKeeper server: epochs, the transaction log, and the tree.

Approximate: the tree includes all applied transactions, so a restart replays nothing; the log keeps
as many transactions as ZooKeeper's leader keeps for followers that come back.

Source: ``org.apache.zookeeper.server.{ZKDatabase,persistence.FileTxnSnapLog}`` (3.8).
"""

from bisect import bisect_left, bisect_right

from sim.ids import NO_LEADER, LeaderEpoch, NodeId
from sim.protocol.zookeeper.messages import ZkTransaction
from sim.protocol.zookeeper.tree import Tree, WatchEvent, ZkOutcome, Zxid

LOG_LENGTH = 500
"""Applied transactions that stay in the log. Source: ``ZKDatabase.commitLogCount``."""


class ZkStore:
    """The disk of one server."""

    def __init__(self, tree: Tree | None = None) -> None:
        self.tree = Tree() if tree is None else tree
        self.epoch: LeaderEpoch = 0
        """Largest epoch that it has voted in or learned of; ``acceptedEpoch``."""
        self.voted_for: NodeId = NO_LEADER
        self.history_epoch: LeaderEpoch = 0
        """Epoch of the last leader whose whole history it has; ``currentEpoch``."""
        self.log: list[ZkTransaction] = []
        """Transactions after ``base``, oldest first; the first ones are in the tree already."""
        self.base: Zxid = self.tree.zxid
        self._zxids: list[Zxid] = []
        self._forced: Zxid = self.base

    @property
    def last_zxid(self) -> Zxid:
        """The last transaction that it has, applied or not."""
        return self._zxids[-1] if self._zxids else self.base

    @property
    def forced_zxid(self) -> Zxid:
        """The last transaction on the platter."""
        return self._forced

    def append(self, transaction: ZkTransaction) -> None:
        """Appends a transaction, not yet forced to disk."""
        assert transaction.zxid > self.last_zxid, "transactions come in order"
        self.log.append(transaction)
        self._zxids.append(transaction.zxid)

    def forced(self, zxid: Zxid) -> None:
        """Everything up to the transaction is on the platter."""
        self._forced = max(self._forced, min(zxid, self.last_zxid))

    def lose_unforced(self) -> None:
        """Drops transactions that were not forced before a power loss."""
        self.truncate_after(max(self._forced, self.tree.zxid))

    def has(self, zxid: Zxid) -> bool:
        """True if the log, or its base, has the transaction."""
        if zxid == self.base:
            return True
        index = bisect_left(self._zxids, zxid)
        return index < len(self._zxids) and self._zxids[index] == zxid

    def not_above(self, zxid: Zxid) -> Zxid:
        """The last transaction not above the one given; below the base, -1."""
        if zxid < self.base:
            return -1
        index = bisect_right(self._zxids, zxid)
        return self._zxids[index - 1] if index else self.base

    def after(self, zxid: Zxid) -> tuple[ZkTransaction, ...]:
        """All transactions after the given one."""
        start = bisect_right(self._zxids, zxid)
        return tuple(self.log[start:])

    def truncate_after(self, zxid: Zxid) -> None:
        """Drops all transactions after the given one.

        Raises:
            AssertionError: If something applied were dropped: it was committed.
        """
        if zxid >= self.last_zxid:
            return
        assert zxid >= self.tree.zxid, f"{zxid:#x} is below the committed {self.tree.zxid:#x}"
        keep = bisect_right(self._zxids, zxid)
        del self.log[keep:]
        del self._zxids[keep:]
        self._forced = min(self._forced, zxid)

    def apply_to(
        self, committed: Zxid
    ) -> list[tuple[ZkTransaction, ZkOutcome, list[tuple[str, WatchEvent]]]]:
        """Applies the log up to the transaction; outcomes and changes in order."""
        start = bisect_right(self._zxids, self.tree.zxid)
        end = bisect_right(self._zxids, committed)
        applied: list[tuple[ZkTransaction, ZkOutcome, list[tuple[str, WatchEvent]]]] = []
        for index in range(start, end):
            transaction = self.log[index]
            outcome, changes = self.tree.apply(
                transaction.zxid, transaction.session, transaction.op
            )
            applied.append((transaction, outcome, changes))
        if end > 2 * LOG_LENGTH:
            self._trim(end - LOG_LENGTH)
        return applied

    def install(self, tree: Tree) -> None:
        """Restarts from a leader's tree."""
        self.tree = tree
        self.base = self._forced = tree.zxid
        self.log = []
        self._zxids = []

    def _trim(self, count: int) -> None:
        self.base = self._zxids[count - 1]
        del self.log[:count]
        del self._zxids[:count]
