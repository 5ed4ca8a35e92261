"""``cluster.hardware``: computers of servers, by presets or in figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from sim.scenario.model.machines import QuantilesModel
from sim.scenario.model.presets import Part, names_of, preset
from sim.scenario.model.types import Bandwidth, Duration, Fields, Strict, refuse

_EXAMPLE = "a mapping such as {disk: gp3, network: 10gbit, zones: three, cores: 8}"


@dataclass(frozen=True, slots=True)
class _PresetOf:
    """Annotation of the name of a part's preset."""

    part: Part

    def __get_pydantic_core_schema__(self, _: object, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.nullable_schema(core_schema.literal_schema([*names_of(self.part)]))


class _Figures(Strict, frozen=True):
    """Figures of one's own, or a preset by its name, or a preset with some figures replaced."""

    part: ClassVar[Part]

    @property
    def figures(self) -> dict[str, Any]:
        """All that is set, by the fields of the cluster's disk or network."""
        own = {name: value for name, value in self if value is not None}
        name = own.pop("preset", None)
        return {**(preset(self.part, name).figures if name else {}), **own}

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: object) -> object:
        if isinstance(value, str):
            return {"preset": value}
        if not isinstance(value, Mapping):
            raise refuse(repr(value), f"{', '.join(names_of(cls.part))}, or a mapping of figures")
        return value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"enum": [*names_of(cls.part)]}, handler(core)]}


class DiskFigures(_Figures, frozen=True):
    """Disks of a server, where they are other ones than ``cluster.disk`` says."""

    part: ClassVar[Part] = "disk"

    preset: Annotated[str | None, _PresetOf("disk")] = None
    write_bytes_per_s: Bandwidth | None = Field(None, alias="write")
    read_bytes_per_s: Bandwidth | None = Field(None, alias="read")
    access_us: Duration | None = Field(None, alias="access")
    flush: QuantilesModel | None = None


class InterfaceFigures(_Figures, frozen=True):
    """Network interface of a server."""

    part: ClassVar[Part] = "network"

    preset: Annotated[str | None, _PresetOf("network")] = None
    bandwidth_bytes_per_s: Bandwidth | None = Field(None, alias="bandwidth")


class ComputerModel(Strict, frozen=True):
    """Disks, network and cores of a server."""

    disk: DiskFigures | None = None
    network: InterfaceFigures | None = None
    cores: Annotated[int, Field(ge=1, le=1_024)] | None = Field(
        None, description="shared by its network threads and request handlers; default: no limit"
    )


class HardwareModel(ComputerModel, frozen=True):
    """All servers' computers, and those of some servers."""

    quiet: ClassVar[Fields] = ("file", "servers")

    file: Annotated[str, Field(max_length=4_096)] | None = Field(
        None,
        description="figures that logquake calibrate wrote; "
        "its name as it is seen from this scenario's directory",
    )
    """Replaced by its figures beforehand: :mod:`sim.scenario.text.hardware_files`."""
    zones: Annotated[str | None, _PresetOf("zones")] = Field(
        None, description="delays within racks and between them"
    )
    servers: dict[str, ComputerModel] = Field(
        default_factory=dict,
        description="by name, or of rack a, all brokers, all controllers: what is other there",
    )

    @model_validator(mode="before")
    @classmethod
    def _not_a_name(cls, value: object) -> object:
        if isinstance(value, str):
            raise refuse(repr(value), _EXAMPLE)
        return value
