"""The scenario file as strict types.

Only shapes and units are checked here, key by key; what one part must be to another is checked by
the loader. Every quantity becomes a whole number of our smallest unit on the way in.
"""

from typing import Annotated, TypeAlias

from pydantic import Field, WithJsonSchema

from sim.scenario.behaviours.registry import BEHAVIOURS
from sim.scenario.expect.bounds import VOCABULARY
from sim.scenario.model.acls import AclModel
from sim.scenario.model.apps import ConnectorModel, MirrorModel, ProcessorModel
from sim.scenario.model.clients import ConsumerModel, ProducerModel
from sim.scenario.model.cluster import ClusterModel
from sim.scenario.model.groups import GroupModel
from sim.scenario.model.machines import QuantilesModel, quantiles
from sim.scenario.model.quotas import QuotaModel
from sim.scenario.model.run import RunModel
from sim.scenario.model.topics import TopicModel
from sim.scenario.model.types import Strict
from sim.scenario.schema.faults import Entry
from sim.units import MS

_Expect: TypeAlias = Annotated[
    dict[str, object],
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: {
                    "description": meaning,
                    "type": [
                        *(["integer"] if unit != "time" else []),
                        *("string", "object", "array"),
                    ],
                }
                for name, (unit, meaning) in VOCABULARY.items()
            },
        }
    ),
]
_Behaviours: TypeAlias = Annotated[
    dict[str, str],
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                item.name: {"description": item.meaning, "enum": list(item.choices)}
                for item in BEHAVIOURS
            },
        }
    ),
]


class OtherClusterModel(Strict, frozen=True):
    """A cluster in another region, with its own topics, clients and faults."""

    cluster: ClusterModel
    distance: QuantilesModel = quantiles(40 * MS, 60 * MS)
    topics: dict[str, TopicModel] = Field(default_factory=dict)
    producers: list[ProducerModel] = Field(default_factory=list)
    consumers: list[ConsumerModel] = Field(default_factory=list)
    faults: list[Entry] = Field(default_factory=list)
    expect: _Expect = Field(default_factory=dict)


class ScenarioModel(Strict, frozen=True):
    """A scenario file."""

    claim: Annotated[str, Field(min_length=1)]
    cluster: ClusterModel
    topics: Annotated[dict[str, TopicModel], Field(min_length=1)]
    producers: list[ProducerModel] = Field(default_factory=list)
    consumers: list[ConsumerModel] = Field(default_factory=list)
    quotas: list[QuotaModel] = Field(default_factory=list)
    acls: list[AclModel] = Field(default_factory=list)
    groups: dict[str, GroupModel] = Field(default_factory=dict)
    processors: list[ProcessorModel] = Field(default_factory=list)
    connectors: list[ConnectorModel] = Field(default_factory=list)
    clusters: dict[str, OtherClusterModel] = Field(default_factory=dict)
    mirrors: list[MirrorModel] = Field(default_factory=list)
    faults: list[Entry] = Field(default_factory=list)
    run: RunModel
    expect: _Expect = Field(default_factory=dict)
    behaviours: _Behaviours = Field(default_factory=dict)
