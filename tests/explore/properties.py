"""What must hold in every state of a fixed cluster: the properties of Kafka's formal models.

Each returns what is wrong, or ``""``. Names and numbers are those of the failure catalogue, section
0.6; ``CONDITIONS`` says when each is promised.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.explore.world import State, World

if TYPE_CHECKING:
    from tests.explore.cluster_promises import Promises

Property = Callable[[World, State], str]


def log_matching(world: World, state: State) -> str:
    """1: any two replicas agree below both high watermarks."""
    views = [world.view(state, b) for b in world.ids]
    for i, one in enumerate(views):
        for two in views[i + 1 :]:
            shared = min(one.high_watermark, two.high_watermark)
            if one.disk.records[:shared] != two.disk.records[:shared]:
                return f"{one.disk.records[:shared]} and {two.disk.records[:shared]}"
    return ""


def leader_completeness(world: World, state: State) -> str:
    """2: the leader of the latest epoch has every committed record."""
    partition = state.metadata.partition
    if partition.leader < 0:
        return ""
    view = world.view(state, partition.leader)
    leads = view.is_leader and view.leader_epoch == partition.leader_epoch
    if leads and view.disk.records[: len(state.committed)] != state.committed:
        return f"leader {partition.leader} has {view.disk.records}, committed {state.committed}"
    return ""


def candidate_completeness(world: World, state: State) -> str:
    """3: every member of the controller's ISR and ELR has every committed record."""
    partition = state.metadata.partition
    for broker in (*partition.in_sync, *partition.eligible):
        records = world.view(state, broker).disk.records
        lost = broker in state.lossy
        if not lost and records[: len(state.committed)] != state.committed:
            return f"broker {broker} has {records}, committed {state.committed}"
    return ""


def quorum_superset(world: World, state: State) -> str:
    """4: the maximal ISR of the controller's leader contains the controller's ISR."""
    partition = state.metadata.partition
    if partition.leader < 0:
        return ""
    view = world.view(state, partition.leader)
    if not view.is_leader or view.leader_epoch != partition.leader_epoch:
        return ""
    missing = [b for b in partition.in_sync if b not in view.maximal_in_sync]
    return (
        f"leader {partition.leader} has {view.maximal_in_sync}, lacks {missing}" if missing else ""
    )


def unclean_exclusion(world: World, state: State) -> str:
    """5: who lost records neither leads nor counts as in sync once it is registered again."""
    partition = state.metadata.partition
    for broker in partition.in_sync:
        records = world.view(state, broker).disk.records
        is_registered = broker not in state.lossy
        if is_registered and len(records) < len(state.committed):
            return f"broker {broker} is in sync with {len(records)} of {len(state.committed)}"
    return ""


def honest_views(world: World, state: State) -> str:
    """6: what a leader believes of a follower of its own epoch is in that process's log."""
    for broker in world.ids:
        view = world.view(state, broker)
        if not view.is_leader:
            continue
        for follower, end, process in view.remote_ends:
            other = world.view(state, follower)
            if end < 0 or (other.broker_epoch, other.leader_epoch) != (process, view.leader_epoch):
                continue
            if other.disk.records[:end] != view.disk.records[:end]:
                return f"leader {broker} counts {end} of {follower}, which has {other.disk.records}"
    return ""


def kept_somewhere(world: World, state: State) -> str:
    """7: every committed record is on some disk."""
    records = state.committed
    if any(world.view(state, b).disk.records[: len(records)] == records for b in world.ids):
        return ""
    return f"committed {records} is on no disk"


PROPERTIES: dict[str, Property] = {
    "log matching": log_matching,
    "leader completeness": leader_completeness,
    "candidate completeness": candidate_completeness,
    "replication quorum superset": quorum_superset,
    "unclean exclusion": unclean_exclusion,
    "honest views": honest_views,
    "kept somewhere": kept_somewhere,
}


def metadata_log_matching(promises: "Promises") -> str:
    """1, of the metadata log: a common (offset, epoch) means that all before it is the same."""
    logs = [(n.id, n.metadata_log.whole()) for n in promises.nodes.values()]
    for i, (one, left) in enumerate(logs):
        for two, right in logs[i + 1 :]:
            pairs = enumerate(zip(left, right, strict=False))
            shared = [at for at, (a, b) in pairs if a.epoch == b.epoch]
            if shared and left[: shared[-1] + 1] != right[: shared[-1] + 1]:
                return f"{one} and {two} part below offset {shared[-1]}"
    return ""


def metadata_kept_by_majority(promises: "Promises") -> str:
    """7, of the metadata log: what is committed is on the disks of a majority of the voters."""
    size = len(promises.log)
    if not size:
        return ""
    last = promises.log[-1][1]
    logs = [promises.nodes[v].metadata_log for v in promises.voters]
    having = [
        log for log in logs if [r.epoch for r in log.records_between(size - 1, size)] == [last]
    ]
    if len(having) * 2 > len(logs):
        return ""
    return f"{len(having)} of {len(logs)} voters have offset {size - 1} of epoch {last}"


METADATA_PROPERTIES: dict[str, "Callable[[Promises], str]"] = {
    "metadata log matching": metadata_log_matching,
    "metadata kept by a majority": metadata_kept_by_majority,
}
"""Of the metadata log; that an epoch has one leader, who has all that is committed, is looked at
where leaders are elected."""
