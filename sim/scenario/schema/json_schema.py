"""JSON Schema of the scenario file, for editors.

Apart from the file's types: only ``logquake schema`` needs pydantic's generator.
"""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from sim.scenario.schema.file import ScenarioModel


class _WithTexts(GenerateJsonSchema):
    """Defaults of quantities as a file has them: with their units."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        inner: Any = schema
        while "schema" in inner:
            inner = inner["schema"]
        written = inner.get("serialization", {})
        if type(found.get("default")) is int and written.get("type") == "function-plain":
            found["default"] = written["function"](found["default"])
        return found


def json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario file."""
    schema = ScenarioModel.model_json_schema(by_alias=True, schema_generator=_WithTexts)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
