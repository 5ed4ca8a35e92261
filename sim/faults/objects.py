"""Faults of the object store of tiered storage: slow, refusing, or without an object.

Left out: lists of objects that are late, for no broker requests one.

Source: KIP-405; the object stores' own answer 503 (``SlowDown``).
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Action, Evidence, Instant
from sim.faults.fault import Fault, Span, key
from sim.faults.resolve import Site
from sim.faults.surface import ObjectStore
from sim.ids import TopicPartition

_NAME: Final = "object-store"
_CELLS: Final = 1_000
"""Places of a segment among those that there are, from which one is drawn."""


class _StoreFault(Fault):
    """A fault of the object store."""

    def action(self, site: Site) -> tuple[Action | None, str]:
        """The fault's action on the object store."""
        store = site.world.object_store
        return (None, "") if store is None else (self.on(store, site), _NAME)

    @abstractmethod
    def on(self, store: ObjectStore, site: Site) -> Action:
        """The action on the store."""


class _Lasting:
    """A fault that lasts."""

    def __init__(self, store: ObjectStore, factor: int, verb: str) -> None:
        self._store = store
        self._factor = factor
        self._verb = verb
        self._before = 0
        self._after: int | None = None

    def begin(self) -> None:
        """Makes the store slow, or lets it refuse; factor 0 means that."""
        self._before = self._store.affected
        if self._factor:
            self._store.factor = self._factor
        else:
            self._store.refuses = True

    def heal(self) -> bool:
        """The store is as before."""
        if self._factor:
            self._store.factor = 1
        else:
            self._store.refuses = False
        self._after = self._store.affected
        return True

    def evidence(self) -> Evidence:
        """Requests that it concerned."""
        after = self._store.affected if self._after is None else self._after
        affected = after - self._before
        return Evidence(affected > 0, f"{affected} requests {self._verb}")


@dataclass(frozen=True, kw_only=True)
class SlowObjectStore(_StoreFault):
    """The object store takes `factor` times as long."""

    kind = "slow-object-store"
    proof = "requests took longer"
    may_break = "nothing; copies fall behind, and remote reads may reach their time-out"
    factor: int = field(metadata=key("factor", "whole", low=2, high=1_000_000))

    def on(self, store: ObjectStore, site: Site) -> _Lasting:
        """Action on the store."""
        del site
        return _Lasting(store, self.factor, "took longer")


class ObjectStoreErrors(_StoreFault):
    """The object store answers every request with 503."""

    kind = "object-store-errors"
    proof = "requests were refused"
    may_break = "nothing; copies and remote reads fail, and local logs grow"

    def on(self, store: ObjectStore, site: Site) -> _Lasting:
        """Action on the store."""
        del site
        return _Lasting(store, 0, "were answered with 503")


class _Loss(Instant):
    """Loses the objects of one segment."""

    def __init__(self, store: ObjectStore, partition: TopicPartition, place: float) -> None:
        self._store = store
        self._partition = partition
        self._place = place
        self._lost = ""

    def begin(self) -> None:
        """Loses them."""
        self._lost = self._store.lose(*self._partition, self._place)

    def evidence(self) -> Evidence:
        """The segment that was lost."""
        if not self._lost:
            return Evidence(took_effect=False, effect=f"no segment of {self._partition} was there")
        return Evidence(took_effect=True, effect=f"lost {self._lost}")


@dataclass(frozen=True, kw_only=True)
class LostObject(_StoreFault):
    """The object store loses one remote segment of a partition."""

    kind = "lost-object"
    proof = "a segment was there"
    may_break = "acknowledged records, if no replica holds them locally any longer"
    span: ClassVar[Span] = "instant"
    partition: TopicPartition = field(metadata=key("partition", "partition"))

    def on(self, store: ObjectStore, site: Site) -> _Loss:
        """Action on the store; chance says which segment."""
        return _Loss(store, self.partition, site.draw(_CELLS) / _CELLS)


OBJECT_FAULTS: Final[tuple[type[Fault], ...]] = (SlowObjectStore, ObjectStoreErrors, LostObject)
