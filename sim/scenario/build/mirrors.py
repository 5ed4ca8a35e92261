"""Mirrors of a run: from their parts to processes that connect two clusters."""

from sim.nodes.apps.mirror import MirrorNode, MirrorTargetNode
from sim.nodes.clients.producer import ProducerClient
from sim.scenario.build import client_configs, translate
from sim.scenario.build.cluster import Builder
from sim.scenario.model.apps import MirrorSpec
from sim.scenario.scenario import OtherCluster


def build(
    spec: MirrorSpec, source: Builder, target: Builder, other: OtherCluster, index: int
) -> MirrorNode:
    """A mirror that does not run yet.

    It has a host with a network card to each cluster; the one to the cluster of the other region is
    far from everything there.

    Args:
        spec: What it does.
        source: Of the cluster that it reads.
        target: Of the cluster that it writes to.
        other: That cluster.
        index: Its number among the producers there.
    """
    behaviours = source.scenario.behaviours
    reads, writes = source.client_host(spec.name), target.client_host(spec.name)
    far = reads if spec.at == "target" else writes
    far.network.topology.place_far(far.name, translate.spread(other.distance))
    writer = MirrorTargetNode(
        spec.name,
        writes,
        target.cluster,
        ProducerClient(
            index, client_configs.producer_config(spec.producer, behaviours), target.bootstrap
        ),
        client_configs.mirror_plan(spec, behaviours),
    )
    target.connect_by(writer, spec.producer)
    reader = MirrorNode(
        spec.name,
        reads,
        source.cluster,
        client_configs.mirror_consumer_config(spec, behaviours),
        source.bootstrap,
        writer,
    )
    source.connect_by(reader, spec.consumer)
    target.cluster.add(writer)
    source.cluster.add(reader)
    return reader
