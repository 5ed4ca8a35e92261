"""Values that YAML and JSON can hold."""

from typing import TypeAlias

Plain: TypeAlias = "str | int | float | bool | dict[str, Plain] | list[Plain] | None"
"""A value of a scenario as it is written out."""
