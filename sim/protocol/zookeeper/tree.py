"""ZooKeeper's tree of nodes, to which committed transactions are applied.

Every server of the ensemble applies the same transactions in the same order with this code, so a
conditional write has the same outcome at every server.

Approximate: a node's parents need not exist, and a parent that was never created does not list its
children. Left out: ACLs, time-to-live, containers, quotas of nodes.

Source: ``org.apache.zookeeper.server.DataTree``, ``PrepRequestProcessor`` (3.8).
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from sim.units import Micros

Zxid: TypeAlias = int
"""Number of a transaction: the leader's epoch in the upper half, a counter in the lower."""

SessionId: TypeAlias = int
"""Id of a session; 0 for none."""

ANY_VERSION = -1
"""A write with this version is unconditional."""

NO_SESSION: SessionId = 0
"""Owner of a persistent node."""


class ZkCode(IntEnum):
    """Outcome of an operation. Source: ``KeeperException.Code``."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    """Another operation of the same multi failed."""
    CONNECTION_LOSS = -4
    NO_NODE = -101
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112


class Znode:
    """One node. Immutable: a write replaces it, so servers may share it."""

    __slots__ = ("created", "data", "modified", "owner", "version")

    def __init__(
        self, data: object, version: int, created: Zxid, modified: Zxid, owner: SessionId
    ) -> None:
        self.data = data
        self.version = version
        self.created = created
        """``czxid``: for a broker's node, the broker's epoch (KIP-380)."""
        self.modified = modified
        """``mzxid``."""
        self.owner = owner
        """Session whose end deletes it; 0: it is persistent."""


class Create:
    """Creates a node; ``sequential`` appends ten digits, counted by parent. Immutable."""

    __slots__ = ("data", "ephemeral", "path", "sequential")

    def __init__(
        self, path: str, data: object, *, ephemeral: bool = False, sequential: bool = False
    ) -> None:
        self.path = path
        self.data = data
        self.ephemeral = ephemeral
        self.sequential = sequential


class SetData:
    """Replaces a node's data if its version matches. Immutable."""

    __slots__ = ("data", "path", "version")

    def __init__(self, path: str, data: object, version: int = ANY_VERSION) -> None:
        self.path = path
        self.data = data
        self.version = version


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes a node if its version matches."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Part of a :class:`Multi`: fail if the node's version is another."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Multi:
    """All of these or none."""

    ops: tuple[Create | SetData | Delete | Check, ...]


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A client's session begins; its id is the transaction's number."""

    timeout_us: Micros


@dataclass(frozen=True, slots=True)
class CloseSession:
    """A session ends: closed by its client, or expired."""

    session: SessionId


@dataclass(frozen=True, slots=True)
class GetData:
    """A node's data and version."""

    path: str


@dataclass(frozen=True, slots=True)
class GetChildren:
    """Names of a node's children, oldest first."""

    path: str


@dataclass(frozen=True, slots=True)
class Exists:
    """As :class:`GetData`; a watch may be left on a missing node."""

    path: str


WriteOp = Create | SetData | Delete | Multi | OpenSession | CloseSession
"""Operations that go through the leader."""

ReadOp = GetData | GetChildren | Exists
"""Operations that a server answers from its own tree."""

READS = (GetData, GetChildren, Exists)


class WatchEvent(IntEnum):
    """Kind of a watch event. Source: ``Watcher.Event.EventType``."""

    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


class ZkOutcome:
    """Outcome of an operation; also the body of the client's response."""

    __slots__ = ("children", "code", "node", "parts", "path", "session")

    def __init__(
        self,
        code: ZkCode,
        path: str = "",
        node: Znode | None = None,
        children: tuple[str, ...] = (),
        parts: "tuple[ZkOutcome, ...]" = (),
        session: SessionId = NO_SESSION,
    ) -> None:
        self.code = code
        self.path = path
        """Path of the created node; has a sequential node's number."""
        self.node = node
        self.children = children
        self.parts = parts
        """Of a multi, one for each operation."""
        self.session = session


_OK = ZkOutcome(ZkCode.OK)
_NO_NODE = ZkOutcome(ZkCode.NO_NODE)
_BAD_VERSION = ZkOutcome(ZkCode.BAD_VERSION)
_EXPIRED = ZkOutcome(ZkCode.SESSION_EXPIRED)

Changes: TypeAlias = list[tuple[str, WatchEvent]]
"""Paths and their changes, in order."""


class Tree:
    """The state after some transactions."""

    def __init__(self) -> None:
        self.zxid: Zxid = 0
        """The last transaction in it."""
        self.nodes: dict[str, Znode] = {}
        self.children: dict[str, dict[str, None]] = {}
        """Names of children, oldest first, of every parent that was created."""
        self.sessions: dict[SessionId, Micros] = {}
        """Open sessions and their timeouts."""
        self._counters: dict[str, int] = {}
        self._owned: dict[SessionId, dict[str, None]] = {}

    def copy(self) -> "Tree":
        """A copy that can diverge."""
        other = Tree()
        other.zxid = self.zxid
        other.nodes = dict(self.nodes)
        other.children = {path: dict(names) for path, names in self.children.items()}
        other.sessions = dict(self.sessions)
        other._counters = dict(self._counters)
        other._owned = {session: dict(paths) for session, paths in self._owned.items()}
        return other

    def read(self, op: ReadOp) -> ZkOutcome:
        """Outcome of a read of the present state."""
        node = self.nodes.get(op.path)
        if node is None:
            return _NO_NODE
        if isinstance(op, GetChildren):
            return ZkOutcome(ZkCode.OK, op.path, node, tuple(self.children.get(op.path, ())))
        return ZkOutcome(ZkCode.OK, op.path, node)

    def apply(self, zxid: Zxid, session: SessionId, op: WriteOp) -> tuple[ZkOutcome, Changes]:
        """Applies the transaction; one that fails changes only the zxid.

        Raises:
            AssertionError: If the number is not above the last one.
        """
        assert zxid > self.zxid, f"transaction {zxid:#x} after {self.zxid:#x}"
        self.zxid = zxid
        changes: Changes = []
        if isinstance(op, OpenSession):
            self.sessions[zxid] = op.timeout_us
            return ZkOutcome(ZkCode.OK, session=zxid), changes
        if isinstance(op, CloseSession):
            return self._close(op.session, changes), changes
        if session not in self.sessions:
            return _EXPIRED, changes
        if isinstance(op, Multi):
            return self._apply_all(zxid, session, op, changes), changes
        outcome = self._check(op)
        if outcome.code is ZkCode.OK:
            outcome = self._do(zxid, session, op, changes)
        return outcome, changes

    def _apply_all(self, zxid: Zxid, session: SessionId, op: Multi, changes: Changes) -> ZkOutcome:
        """Parts are checked on the tree before the multi: none of ours needs another's effect."""
        checked = [self._check(part) for part in op.ops]
        failed = next((o.code for o in checked if o.code is not ZkCode.OK), ZkCode.OK)
        if failed is not ZkCode.OK:
            rest = ZkOutcome(ZkCode.RUNTIME_INCONSISTENCY)
            parts = tuple(rest if o.code is ZkCode.OK else o for o in checked)
            return ZkOutcome(failed, parts=parts)
        done = tuple(self._do(zxid, session, part, changes) for part in op.ops)
        return ZkOutcome(ZkCode.OK, parts=done)

    def _check(self, op: Create | SetData | Delete | Check) -> ZkOutcome:
        """Error of an operation; OK if it can be done."""
        if isinstance(op, Create):
            if not op.sequential and op.path in self.nodes:
                return ZkOutcome(ZkCode.NODE_EXISTS)
            parent = self.nodes.get(_parent(op.path))
            if parent is not None and parent.owner != NO_SESSION:
                return ZkOutcome(ZkCode.NO_CHILDREN_FOR_EPHEMERALS)
            return _OK
        node = self.nodes.get(op.path)
        if node is None:
            return _NO_NODE
        if op.version not in {ANY_VERSION, node.version}:
            return _BAD_VERSION
        if isinstance(op, Delete) and self.children.get(op.path):
            return ZkOutcome(ZkCode.NOT_EMPTY)
        return _OK

    def _do(
        self,
        zxid: Zxid,
        session: SessionId,
        op: Create | SetData | Delete | Check,
        changes: Changes,
    ) -> ZkOutcome:
        if isinstance(op, Create):
            return self._create(zxid, session, op, changes)
        if isinstance(op, SetData):
            old = self.nodes[op.path]
            node = Znode(op.data, old.version + 1, old.created, zxid, old.owner)
            self.nodes[op.path] = node
            changes.append((op.path, WatchEvent.DATA_CHANGED))
            return ZkOutcome(ZkCode.OK, op.path, node)
        if isinstance(op, Delete):
            self._remove(op.path, changes)
        return _OK

    def _create(self, zxid: Zxid, session: SessionId, op: Create, changes: Changes) -> ZkOutcome:
        path = op.path
        parent = _parent(path)
        if op.sequential:
            number = self._counters.get(parent, 0)
            self._counters[parent] = number + 1
            path = f"{path}{number:010d}"
        owner = session if op.ephemeral else NO_SESSION
        node = self.nodes[path] = Znode(op.data, 0, zxid, zxid, owner)
        changes.append((path, WatchEvent.CREATED))
        if parent in self.nodes:
            self.children.setdefault(parent, {})[path[len(parent) + 1 :]] = None
            changes.append((parent, WatchEvent.CHILDREN_CHANGED))
        if op.ephemeral:
            self._owned.setdefault(session, {})[path] = None
        return ZkOutcome(ZkCode.OK, path, node)

    def _remove(self, path: str, changes: Changes) -> None:
        node = self.nodes.pop(path)
        self.children.pop(path, None)
        if node.owner != NO_SESSION:
            self._owned[node.owner].pop(path, None)
        changes.append((path, WatchEvent.DELETED))
        parent = _parent(path)
        siblings = self.children.get(parent)
        if siblings is not None and siblings.pop(path[len(parent) + 1 :], path) is None:
            changes.append((parent, WatchEvent.CHILDREN_CHANGED))

    def _close(self, session: SessionId, changes: Changes) -> ZkOutcome:
        """Ends a session; deletes its ephemeral nodes in the order of their creation."""
        if self.sessions.pop(session, None) is None:
            return _EXPIRED
        for path in tuple(self._owned.get(session, ())):
            self._remove(path, changes)
        self._owned.pop(session, None)
        return _OK


class Watches:
    """Watches left at one server; each fires once, in the order of changes."""

    def __init__(self) -> None:
        self._data: dict[str, dict[SessionId, None]] = {}
        self._children: dict[str, dict[SessionId, None]] = {}

    def leave(self, session: SessionId, op: ReadOp, outcome: ZkOutcome) -> None:
        """Leaves a watch for the session; only ``Exists`` can watch a missing node."""
        if isinstance(op, GetChildren):
            if outcome.code is ZkCode.OK:
                self._children.setdefault(op.path, {})[session] = None
        elif outcome.code is ZkCode.OK or isinstance(op, Exists):
            self._data.setdefault(op.path, {})[session] = None

    def triggered(self, path: str, change: WatchEvent) -> tuple[SessionId, ...]:
        """Sessions with a watch on the path, which are removed."""
        if change is WatchEvent.CHILDREN_CHANGED:
            return tuple(self._children.pop(path, ()))
        fired = self._data.pop(path, {})
        if change is WatchEvent.DELETED:
            fired |= self._children.pop(path, {})
        return tuple(fired)

    def forget(self, session: SessionId) -> None:
        """Removes the watches of a session that has ended or reconnected elsewhere."""
        for table in (self._data, self._children):
            for path in [p for p, sessions in table.items() if session in sessions]:
                del table[path][session]
                if not table[path]:
                    del table[path]


def _parent(path: str) -> str:
    return path[: path.rfind("/")]
