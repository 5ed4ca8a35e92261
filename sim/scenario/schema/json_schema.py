"""JSON Schema of the scenario file, for editors.

Apart from the file's types: only ``logquake schema`` needs pydantic's generator. The same schema is
in the package as a file, which ``make docs`` writes.
"""

import json
from pathlib import Path
from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from sim.scenario.schema.file import ScenarioModel

SCHEMA_FILE: Final = Path(__file__).with_name("logquake.schema.json")
"""The schema as a file of the package."""


SCHEMA_ID: Final = "urn:logquake:scenario:1"
"""Name of the schema, with the version of the language: the number grows when a file that was valid
no longer is. A URN, for a URL would promise a host that answers, and editors may try."""


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
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID}
    return {**head, **schema, "title": "Logquake scenario"}


def schema_text() -> str:
    """Content of :data:`SCHEMA_FILE`."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
